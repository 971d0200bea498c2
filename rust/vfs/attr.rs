// SPDX-License-Identifier: GPL-2.0

//! File types and what `stat` shows.
//!
//! C headers: [`include/linux/stat.h`](srctree/include/linux/stat.h),
//! [`include/uapi/linux/stat.h`](srctree/include/uapi/linux/stat.h)

use crate::{inode::INode, time::Timespec, FileSystem};
use core::marker::PhantomData;
use fuse_bindings as bindings;

/// Which attributes of a file are meant, `STATX_*` of statx(2).
pub mod fields {
    use fuse_bindings as bindings;

    /// The type of the file.
    pub const TYPE: u32 = bindings::STATX_TYPE;
    /// Permissions.
    pub const MODE: u32 = bindings::STATX_MODE;
    /// The number of hard links.
    pub const NLINK: u32 = bindings::STATX_NLINK;
    /// The owner.
    pub const UID: u32 = bindings::STATX_UID;
    /// The group.
    pub const GID: u32 = bindings::STATX_GID;
    /// The time of the last access.
    pub const ATIME: u32 = bindings::STATX_ATIME;
    /// The time of the last change of the contents.
    pub const MTIME: u32 = bindings::STATX_MTIME;
    /// The time of the last change of the inode.
    pub const CTIME: u32 = bindings::STATX_CTIME;
    /// The inode number.
    pub const INO: u32 = bindings::STATX_INO;
    /// The size.
    pub const SIZE: u32 = bindings::STATX_SIZE;
    /// The number of blocks.
    pub const BLOCKS: u32 = bindings::STATX_BLOCKS;
    /// All that stat(2) shows.
    pub const BASIC: u32 = bindings::STATX_BASIC_STATS;
    /// The time of creation.
    pub const BTIME: u32 = bindings::STATX_BTIME;
}

/// The seven types of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice,
    /// A directory.
    Directory,
    /// A block device.
    BlockDevice,
    /// A regular file.
    Regular,
    /// A symbolic link.
    Symlink,
    /// A socket.
    Socket,
}

impl FileType {
    /// The type in the upper bits of a mode, if it is one.
    pub fn from_mode(mode: u16) -> Option<Self> {
        match u32::from(mode) & bindings::S_IFMT {
            bindings::S_IFIFO => Some(Self::Fifo),
            bindings::S_IFCHR => Some(Self::CharDevice),
            bindings::S_IFDIR => Some(Self::Directory),
            bindings::S_IFBLK => Some(Self::BlockDevice),
            bindings::S_IFREG => Some(Self::Regular),
            bindings::S_IFLNK => Some(Self::Symlink),
            bindings::S_IFSOCK => Some(Self::Socket),
            _ => None,
        }
    }

    /// The upper bits of a mode.
    pub fn to_mode(self) -> u16 {
        let bits = match self {
            Self::Fifo => bindings::S_IFIFO,
            Self::CharDevice => bindings::S_IFCHR,
            Self::Directory => bindings::S_IFDIR,
            Self::BlockDevice => bindings::S_IFBLK,
            Self::Regular => bindings::S_IFREG,
            Self::Symlink => bindings::S_IFLNK,
            Self::Socket => bindings::S_IFSOCK,
        };
        // The types are bits 12 to 15.
        bits as u16
    }
}

/// What `stat` is to show, wrapping `struct kstat`, for a caller who sees the mount through an
/// idmap.
pub struct Stat<'a, T: FileSystem> {
    stat: &'a mut bindings::kstat,
    idmap: *mut bindings::mnt_idmap,
    _fs: PhantomData<fn() -> T>,
}

impl<'a, T: FileSystem> Stat<'a, T> {
    /// # Safety
    ///
    /// `idmap` must be that of the mount, and outlive `'a`.
    pub(crate) unsafe fn new(
        stat: &'a mut bindings::kstat,
        idmap: *mut bindings::mnt_idmap,
    ) -> Self {
        Self {
            stat,
            idmap,
            _fs: PhantomData,
        }
    }

    /// Fills in what the VFS knows of `inode`. `request_mask` is the caller's, `STATX_*`.
    pub fn fill(&mut self, inode: &INode<T>, request_mask: u32) {
        // SAFETY: All are valid; `idmap` by the contract of `new`.
        unsafe { bindings::generic_fillattr(self.idmap, request_mask, inode.as_ptr(), self.stat) };
    }

    /// Sets the device number alone, for a caller who may know no more.
    pub fn set_dev(&mut self, dev: u32) {
        self.stat.dev = dev;
        self.stat.result_mask = 0;
    }

    /// Sets the time of creation.
    pub fn set_btime(&mut self, btime: Timespec) {
        self.stat.btime.tv_sec = btime.sec;
        self.stat.btime.tv_nsec = btime.nsec as isize;
        self.stat.result_mask |= fields::BTIME;
    }

    /// Says that the other basic [`fields`] than those in `known` are not known.
    pub fn limit(&mut self, known: u32) {
        self.stat.result_mask &= known | !fields::BASIC;
    }

    /// Sets type and permissions.
    pub fn set_mode(&mut self, mode: u16) {
        self.stat.mode = mode;
    }

    /// Sets the block size that programs should use, in bytes.
    pub fn set_blksize(&mut self, blksize: u32) {
        self.stat.blksize = blksize;
    }
}
