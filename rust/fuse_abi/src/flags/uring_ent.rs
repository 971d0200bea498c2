// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of a request on an io_uring queue; [`crate::UringEntInOut::flags`]. Kernel to server.
    pub struct UringEntFlags: u64 {
        /// The payload stands in the pages registered for this entry.
        const ZERO_COPY = 1 << 0;
    }
}
