// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of WRITE. Kernel to server.
    pub struct WriteFlags: u32 {
        /// From the page cache, later than the write(2); the file handle is a guess.
        const CACHE = 1 << 0;
        /// The lock owner is valid.
        const LOCKOWNER = 1 << 1;
        /// Clear set-user-ID, and set-group-ID if executable by the group.
        const KILL_SUIDGID = 1 << 2;
    }
}
