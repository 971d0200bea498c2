// SPDX-License-Identifier: GPL-2.0

//! Flags and limits of superblocks.
//!
//! C headers: [`include/linux/fs/super_types.h`](srctree/include/linux/fs/super_types.h),
//! [`include/linux/fs.h`](srctree/include/linux/fs.h)

use fuse_bindings as bindings;

/// Nothing can be changed.
pub const RDONLY: usize = bindings::SB_RDONLY;
/// Mandatory locks, which do not exist any more.
pub const MANDLOCK: usize = bindings::SB_MANDLOCK;
/// POSIX ACLs.
pub const POSIXACL: usize = bindings::SB_POSIXACL;

/// IMA cannot tell whether a file is what it was when it was measured.
pub const I_IMA_UNVERIFIABLE_SIGNATURE: usize = bindings::SB_I_IMA_UNVERIFIABLE_SIGNATURE as usize;
/// Whoever mounted it is not trusted.
pub const I_UNTRUSTED_MOUNTER: usize = bindings::SB_I_UNTRUSTED_MOUNTER as usize;
/// It cannot be mounted with other owners than it has.
pub const I_NOIDMAP: usize = bindings::SB_I_NOIDMAP as usize;
/// sync(2) does not wait for data to be on a disk.
pub const I_NO_DATA_INTEGRITY: usize = bindings::SB_I_NO_DATA_INTEGRITY as usize;

/// The largest file that the page cache can have, bytes.
pub const MAX_LFS_FILESIZE: i64 = bindings::MAX_LFS_FILESIZE;
