// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of POLL. Kernel to server.
    pub struct PollFlags: u32 {
        /// Someone waits: send a POLL notification when the events change.
        const SCHEDULE_NOTIFY = 1 << 0;
    }
}
