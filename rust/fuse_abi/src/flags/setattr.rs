// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Which fields of [`crate::SetattrIn`] count (`FATTR_*`). Kernel to server.
    pub struct SetattrValid: u32 {
        /// `mode`.
        const MODE = 1 << 0;
        /// `uid`.
        const UID = 1 << 1;
        /// `gid`.
        const GID = 1 << 2;
        /// `size`.
        const SIZE = 1 << 3;
        /// `atime` and `atimensec`.
        const ATIME = 1 << 4;
        /// `mtime` and `mtimensec`.
        const MTIME = 1 << 5;
        /// `fh`.
        const FH = 1 << 6;
        /// The access time becomes the server's present time.
        const ATIME_NOW = 1 << 7;
        /// The modification time becomes the server's present time.
        const MTIME_NOW = 1 << 8;
        /// `lock_owner`.
        const LOCKOWNER = 1 << 9;
        /// `ctime` and `ctimensec`.
        const CTIME = 1 << 10;
        /// Clear set-user-ID, and set-group-ID if executable by the group.
        const KILL_SUIDGID = 1 << 11;
    }
}
