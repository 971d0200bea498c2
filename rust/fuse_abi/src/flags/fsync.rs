// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of FSYNC and FSYNCDIR. Kernel to server.
    pub struct FsyncFlags: u32 {
        /// Only the data, and what is needed to find them.
        const FDATASYNC = 1 << 0;
    }
}
