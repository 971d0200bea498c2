// SPDX-License-Identifier: GPL-2.0

//! What the server says about nodes, filesystems and locks.

use crate::{flags::AttrFlags, Malformed};

const S_IFMT: u32 = 0o170_000;

const STATX_TYPE: u32 = 0x1;
const STATX_SIZE: u32 = 0x200;

const F_RDLCK: u32 = 0;
const F_WRLCK: u32 = 1;
const F_UNLCK: u32 = 2;

wire! {
    /// Attributes of a node. Times are seconds and nanoseconds since 1970.
    pub struct Attr {
        /// Inode number that stat(2) shows; need not be the node ID.
        pub ino: u64,
        /// Bytes.
        pub size: u64,
        /// Allocated blocks of 512 bytes.
        pub blocks: u64,
        /// Last access.
        pub atime: u64,
        /// Last change of the data.
        pub mtime: u64,
        /// Last change of the attributes.
        pub ctime: u64,
        /// Nanoseconds of `atime`.
        pub atimensec: u32,
        /// Nanoseconds of `mtime`.
        pub mtimensec: u32,
        /// Nanoseconds of `ctime`.
        pub ctimensec: u32,
        /// File type and permissions.
        pub mode: u32,
        /// Hard links.
        pub nlink: u32,
        /// Owner, in the server's user namespace.
        pub uid: u32,
        /// Group, in the server's user namespace.
        pub gid: u32,
        /// Device number of a device node, in the format of new_encode_dev().
        pub rdev: u32,
        /// Bytes that are good to read or write at a time; 0 if the server does not say. Since 7.9.
        pub blksize: u32,
        /// Since 7.32; zero before.
        pub flags: AttrFlags,
    }

    /// A time of statx(2).
    pub struct SxTime {
        /// Seconds since 1970.
        pub tv_sec: i64,
        /// Nanoseconds.
        pub tv_nsec: u32,
        /// Unused.
        pub reserved: i32,
    }

    /// Attributes as statx(2) gives them. Only fields whose bit is in `mask` are valid.
    pub struct Statx {
        /// `STATX_*`.
        pub mask: u32,
        /// Bytes that are good to read or write at a time.
        pub blksize: u32,
        /// `STATX_ATTR_*`.
        pub attributes: u64,
        /// Hard links.
        pub nlink: u32,
        /// Owner, in the server's user namespace.
        pub uid: u32,
        /// Group, in the server's user namespace.
        pub gid: u32,
        /// File type and permissions.
        pub mode: u16,
        /// Unused.
        pub spare0: u16,
        /// Inode number.
        pub ino: u64,
        /// Bytes.
        pub size: u64,
        /// Allocated blocks of 512 bytes.
        pub blocks: u64,
        /// Which bits of `attributes` the server knows.
        pub attributes_mask: u64,
        /// Last access.
        pub atime: SxTime,
        /// Creation.
        pub btime: SxTime,
        /// Last change of the attributes.
        pub ctime: SxTime,
        /// Last change of the data.
        pub mtime: SxTime,
        /// Major number of a device node.
        pub rdev_major: u32,
        /// Minor number of a device node.
        pub rdev_minor: u32,
        /// Major number of the device that the file is on.
        pub dev_major: u32,
        /// Minor number of the device that the file is on.
        pub dev_minor: u32,
        /// Unused.
        pub spare2: [u64; 14],
    }

    /// Numbers of a filesystem, as statfs(2) gives them.
    pub struct Kstatfs {
        /// Size in units of `frsize`.
        pub blocks: u64,
        /// Free, in units of `frsize`.
        pub bfree: u64,
        /// Free for ordinary users, in units of `frsize`.
        pub bavail: u64,
        /// Inodes.
        pub files: u64,
        /// Free inodes.
        pub ffree: u64,
        /// Bytes that are good to read or write at a time.
        pub bsize: u32,
        /// Longest name in bytes.
        pub namelen: u32,
        /// Bytes of a block. Since 7.4; zero before.
        pub frsize: u32,
        /// Unused.
        pub padding: u32,
        /// Unused.
        pub spare: [u32; 6],
    }

    /// A lock of fcntl(2) or flock(2), in both directions.
    pub struct FileLock {
        /// First byte.
        pub start: u64,
        /// Last byte; `i64::MAX` for no end.
        pub end: u64,
        /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
        pub type_: u32,
        /// Process of the owner, in the server's pid namespace.
        pub pid: u32,
    }
}

impl Attr {
    /// Checks what a client relies on: one of the seven file types, and a size that fits the VFS's
    /// loff_t.
    pub fn validate(&self) -> Result<(), Malformed> {
        file_type(self.mode)?;
        file_size(self.size)
    }
}

impl Statx {
    /// Checks as [`Attr::validate`] those of type and size that are valid.
    pub fn validate(&self) -> Result<(), Malformed> {
        if self.mask & STATX_TYPE != 0 {
            file_type(u32::from(self.mode))?;
        }
        if self.mask & STATX_SIZE != 0 {
            file_size(self.size)?;
        }
        Ok(())
    }
}

impl FileLock {
    /// Checks the type and, where there is a lock, the range.
    pub fn validate(&self) -> Result<(), Malformed> {
        match self.type_ {
            F_UNLCK => Ok(()),
            F_RDLCK | F_WRLCK if self.start <= self.end && self.end <= i64::MAX as u64 => Ok(()),
            _ => Err(Malformed::Lock),
        }
    }
}

/// Checks that a mode has one of the seven file types.
fn file_type(mode: u32) -> Result<(), Malformed> {
    match mode & S_IFMT {
        // Socket, symbolic link, regular file, block device, directory, character device, FIFO.
        0o140_000 | 0o120_000 | 0o100_000 | 0o060_000 | 0o040_000 | 0o020_000 | 0o010_000 => Ok(()),
        _ => Err(Malformed::FileType(mode)),
    }
}

/// Checks that a size or offset fits the VFS's loff_t.
pub(crate) fn file_size(size: u64) -> Result<(), Malformed> {
    if size > i64::MAX as u64 {
        return Err(Malformed::FileSize(size));
    }
    Ok(())
}
