// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of OPEN and CREATE beside those of open(2). Kernel to server.
    pub struct OpenInFlags: u32 {
        /// Clear set-user-ID, and set-group-ID if executable by the group.
        const KILL_SUIDGID = 1 << 0;
    }
}
