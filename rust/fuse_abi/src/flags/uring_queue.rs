// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of the command that adds an io_uring queue; [`crate::UringCmdReq::flags`]. Server to
    /// kernel.
    pub struct UringQueueFlags: u64 {
        /// Payload pages are handed over, not copied. Needs a buffer pool and a privileged server.
        const ZERO_COPY = 1 << 0;
    }
}
