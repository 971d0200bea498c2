// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of the INVAL_ENTRY notification. Server to kernel.
    pub struct InvalEntryFlags: u32 {
        /// Only end the time for which the name is valid; it may be confirmed by the next lookup.
        const EXPIRE_ONLY = 1 << 0;
    }
}
