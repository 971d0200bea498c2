// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of GETLK, SETLK and SETLKW. Kernel to server.
    pub struct LkFlags: u32 {
        /// A lock of flock(2), not of fcntl(2).
        const FLOCK = 1 << 0;
    }
}
