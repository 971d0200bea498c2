// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of RELEASE. Kernel to server.
    pub struct ReleaseFlags: u32 {
        /// Do what FLUSH does, too.
        const FLUSH = 1 << 0;
        /// The file had locks of flock(2): release them.
        const FLOCK_UNLOCK = 1 << 1;
    }
}
