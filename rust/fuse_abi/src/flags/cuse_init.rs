// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Features of a character device; in [`crate::CuseInitIn`] what the kernel can do, in
    /// [`crate::CuseInitOut`] what the server wants.
    pub struct CuseInitFlags: u32 {
        /// ioctls of any form, not only those whose number tells the sizes.
        const UNRESTRICTED_IOCTL = 1 << 0;
    }
}
