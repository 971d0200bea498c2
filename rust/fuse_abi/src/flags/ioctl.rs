// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of IOCTL, in both directions.
    pub struct IoctlFlags: u32 {
        /// A 32-bit caller on a 64-bit kernel.
        const COMPAT = 1 << 0;
        /// The number need not tell the sizes; the server may ask for a retry.
        const UNRESTRICTED = 1 << 1;
        /// Server to kernel: send again with the data that these iovecs name.
        const RETRY = 1 << 2;
        /// A 32-bit caller.
        const IS_32BIT = 1 << 3;
        /// On a directory.
        const DIR = 1 << 4;
        /// A caller of the x32 ABI, whose time_t has 64 bits.
        const COMPAT_X32 = 1 << 5;
    }
}
