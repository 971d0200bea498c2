// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of READ. Kernel to server.
    pub struct ReadFlags: u32 {
        /// The lock owner is valid.
        const LOCKOWNER = 1 << 1;
    }
}
