// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions of the VFS, the page cache and iomap. Knows nothing of FUSE.
//!
//! All unsafe code of the module is here and in `fuse_sys`. One trait stands for one C table of
//! operations, with the names of C's; a table is attached to the one object it serves. What is
//! encoded in types is what `Documentation/filesystems/{vfs,locking,porting}.rst` states.
//!
//! Nothing here hands out a reference to memory of the page cache or of user space: both can change
//! under the reader, so they are only ever copied from and to.

pub mod address_space;
pub mod attr;
pub mod bdi;
pub mod cdev;
pub mod cred;
pub mod dentry;
pub mod fasync;
pub mod file;
pub mod filemap;
pub mod folio;
pub mod fs_context;
pub mod fs_type;
pub mod inode;
pub mod inode_ops;
pub mod iomap;
pub mod iov;
pub mod kiocb;
pub mod link;
pub mod lock;
pub mod mm;
pub mod random;
pub mod ratelimit;
pub mod sb_flags;
pub mod small_fs;
pub mod splice;
pub mod super_block;
pub mod supers;
pub mod sysctl;
pub mod sysfs;
pub mod time;
pub mod user_memory;
pub mod wait;
pub mod workqueue;
pub mod xattr;

use kernel::prelude::*;
use kernel::types::ForeignOwnable;

/// Prefix of what the crate prints, as `pr_*!` wants it.
#[allow(dead_code)]
const __LOG_PREFIX: &[u8] = b"fuse_rs\0";

/// A filesystem: the types that hang off its superblocks, inodes and open files.
///
/// A pointer to one of these objects is typed by its filesystem (`INode<T>`, `SuperBlock<T>`), and
/// the operation tables of `T` are only ever attached to objects of `T`. That is what makes the
/// private data behind such a pointer of a known type.
pub trait FileSystem: Sized + 'static {
    /// The module that implements the filesystem; it stays loaded while a mount or an open file
    /// exists.
    type OwnerModule: kernel::ModuleMetadata;

    /// What the type is registered with, for all its superblocks.
    type TypeInfo: Send + Sync;

    /// What `super_block::s_fs_info` points at, from [`fs_context::Context::get_tree`] to the end
    /// of the superblock.
    type SuperBlockInfo: ForeignOwnable + Send + Sync;

    /// What is embedded in each inode's slab object. It is dropped after a grace period, in a
    /// context that must not sleep, as path walks under RCU may still look at it until then.
    type InodeInfo: Send + Sync;

    /// What `file::private_data` points at between open and release.
    type FileInfo: ForeignOwnable + Send + Sync;

    /// What the mount options are gathered in.
    type Context: fs_context::Context<Self>;

    /// The superblock's operations.
    type SuperOps: super_block::Operations<FileSystem = Self>;

    /// The name of the slab cache of its inodes, which must be no other cache's.
    const INODE_CACHE: &'static CStr;

    /// `FS_*` flags of the type.
    const FLAGS: i32;

    /// Makes the information of a new inode. May sleep.
    fn new_inode_info() -> impl PinInit<Self::InodeInfo, Error>;
}
