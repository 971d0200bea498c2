// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of GETATTR and STATX. Kernel to server.
    pub struct GetattrFlags: u32 {
        /// The file handle is valid.
        const FH = 1 << 0;
    }
}
