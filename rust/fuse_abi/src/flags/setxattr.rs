// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of SETXATTR beside those of setxattr(2). Kernel to server.
    pub struct SetxattrFlags: u32 {
        /// Clear set-group-ID when system.posix_acl_access is set.
        const ACL_KILL_SGID = 1 << 0;
    }
}
