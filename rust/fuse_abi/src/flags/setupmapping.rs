// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// What a range of the DAX window may be used for; SETUPMAPPING. Kernel to server.
    pub struct SetupmappingFlags: u64 {
        /// Writing.
        const WRITE = 1 << 0;
        /// Reading.
        const READ = 1 << 1;
    }
}
