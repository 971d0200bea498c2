// SPDX-License-Identifier: GPL-2.0

//! Arguments of requests. Kernel to server.
//!
//! An argument stands behind the [`crate::InHeader`]; names and data follow it. Names end with NUL.
//! Times are seconds and nanoseconds since 1970; `fh` is the handle that the server gave in
//! [`crate::OpenOut`]; owner and group IDs are as the server's user namespace has them.

use crate::{
    flags::{
        FsyncFlags, GetattrFlags, IoctlFlags, LkFlags, OpenInFlags, PollFlags, ReadFlags,
        ReleaseFlags, SetattrValid, SetupmappingFlags, SetxattrFlags, WriteFlags,
    },
    FileLock,
};

wire! {
    /// FORGET.
    pub struct ForgetIn {
        /// Lookup counts that are given back.
        pub nlookup: u64,
    }

    /// One node of BATCH_FORGET.
    pub struct ForgetOne {
        /// The node.
        pub nodeid: u64,
        /// Lookup counts that are given back.
        pub nlookup: u64,
    }

    /// BATCH_FORGET; that many [`ForgetOne`] follow. Since 7.16.
    pub struct BatchForgetIn {
        /// How many nodes.
        pub count: u32,
        /// Zero.
        pub dummy: u32,
    }

    /// GETATTR. Since 7.9; an older server does not look at it.
    pub struct GetattrIn {
        /// Whether `fh` is valid.
        pub getattr_flags: GetattrFlags,
        /// Zero.
        pub dummy: u32,
        /// Handle of an open file.
        pub fh: u64,
    }

    /// STATX.
    pub struct StatxIn {
        /// Whether `fh` is valid.
        pub getattr_flags: GetattrFlags,
        /// Zero.
        pub reserved: u32,
        /// Handle of an open file.
        pub fh: u64,
        /// `AT_STATX_*` of statx(2).
        pub sx_flags: u32,
        /// `STATX_*` that are wanted.
        pub sx_mask: u32,
    }

    /// MKNOD; the name follows.
    pub struct MknodIn {
        /// File type and permissions.
        pub mode: u32,
        /// Device number, in the format of new_encode_dev().
        pub rdev: u32,
        /// The caller's umask. Since 7.12.
        pub umask: u32,
        /// Zero.
        pub padding: u32,
    }

    /// MKDIR; the name follows.
    pub struct MkdirIn {
        /// Permissions.
        pub mode: u32,
        /// The caller's umask. Since 7.12.
        pub umask: u32,
    }

    /// RENAME; old and new name follow.
    pub struct RenameIn {
        /// Node ID of the new directory.
        pub newdir: u64,
    }

    /// RENAME2; old and new name follow.
    pub struct Rename2In {
        /// Node ID of the new directory.
        pub newdir: u64,
        /// `RENAME_*` of renameat2(2).
        pub flags: u32,
        /// Zero.
        pub padding: u32,
    }

    /// LINK; the new name follows.
    pub struct LinkIn {
        /// Node ID of the file that gets one more name.
        pub oldnodeid: u64,
    }

    /// SETATTR.
    pub struct SetattrIn {
        /// Which of the fields count.
        pub valid: SetattrValid,
        /// Zero.
        pub padding: u32,
        /// Handle of an open file.
        pub fh: u64,
        /// Bytes.
        pub size: u64,
        /// Owner of locks, for mandatory locking.
        pub lock_owner: u64,
        /// Last access.
        pub atime: u64,
        /// Last change of the data.
        pub mtime: u64,
        /// Last change of the attributes. Since 7.23.
        pub ctime: u64,
        /// Nanoseconds of `atime`.
        pub atimensec: u32,
        /// Nanoseconds of `mtime`.
        pub mtimensec: u32,
        /// Nanoseconds of `ctime`.
        pub ctimensec: u32,
        /// File type and permissions.
        pub mode: u32,
        /// Zero.
        pub unused4: u32,
        /// Owner.
        pub uid: u32,
        /// Group.
        pub gid: u32,
        /// Zero.
        pub unused5: u32,
    }

    /// OPEN and OPENDIR.
    pub struct OpenIn {
        /// `O_*` of open(2).
        pub flags: u32,
        /// Flags of the protocol's own.
        pub open_flags: OpenInFlags,
    }

    /// CREATE and TMPFILE; the name follows.
    pub struct CreateIn {
        /// `O_*` of open(2).
        pub flags: u32,
        /// File type and permissions.
        pub mode: u32,
        /// The caller's umask. Since 7.12.
        pub umask: u32,
        /// Flags of the protocol's own.
        pub open_flags: OpenInFlags,
    }

    /// RELEASE and RELEASEDIR.
    pub struct ReleaseIn {
        /// Handle of the open file.
        pub fh: u64,
        /// `O_*` of open(2).
        pub flags: u32,
        /// What else is to be done.
        pub release_flags: ReleaseFlags,
        /// Owner of the locks to release.
        pub lock_owner: u64,
    }

    /// FLUSH.
    pub struct FlushIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Zero.
        pub unused: u32,
        /// Zero.
        pub padding: u32,
        /// Owner of the locks to release.
        pub lock_owner: u64,
    }

    /// READ, READDIR and READDIRPLUS.
    pub struct ReadIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Bytes into the file; in a directory the [`crate::DirentHeader::off`] of the last entry
        /// seen, 0 at first.
        pub offset: u64,
        /// Bytes wanted at most.
        pub size: u32,
        /// Whether `lock_owner` is valid. Since 7.9.
        pub read_flags: ReadFlags,
        /// Owner of locks, for mandatory locking. Since 7.9.
        pub lock_owner: u64,
        /// `O_*` of open(2). Since 7.9.
        pub flags: u32,
        /// Zero.
        pub padding: u32,
    }

    /// WRITE; the data follow.
    pub struct WriteIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Bytes into the file.
        pub offset: u64,
        /// Bytes of data.
        pub size: u32,
        /// How the data came to be written.
        pub write_flags: WriteFlags,
        /// Owner of locks, for mandatory locking. Since 7.9.
        pub lock_owner: u64,
        /// `O_*` of open(2). Since 7.9.
        pub flags: u32,
        /// Zero.
        pub padding: u32,
    }

    /// FSYNC and FSYNCDIR.
    pub struct FsyncIn {
        /// Handle of the open file.
        pub fh: u64,
        /// What is to be made durable.
        pub fsync_flags: FsyncFlags,
        /// Zero.
        pub padding: u32,
    }

    /// SETXATTR; name and value follow. Only the first half without
    /// [`crate::InitFlags::SETXATTR_EXT`].
    pub struct SetxattrIn {
        /// Bytes of the value.
        pub size: u32,
        /// `XATTR_*` of setxattr(2).
        pub flags: u32,
        /// Flags of the protocol's own.
        pub setxattr_flags: SetxattrFlags,
        /// Zero.
        pub padding: u32,
    }

    /// GETXATTR, followed by the name, and LISTXATTR.
    pub struct GetxattrIn {
        /// Bytes wanted at most; 0 asks for the size.
        pub size: u32,
        /// Zero.
        pub padding: u32,
    }

    /// GETLK, SETLK and SETLKW.
    pub struct LkIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Owner of the lock.
        pub owner: u64,
        /// The lock.
        pub lk: FileLock,
        /// Of which kind the lock is. Since 7.9.
        pub lk_flags: LkFlags,
        /// Zero.
        pub padding: u32,
    }

    /// ACCESS.
    pub struct AccessIn {
        /// `R_OK`, `W_OK`, `X_OK` of access(2).
        pub mask: u32,
        /// Zero.
        pub padding: u32,
    }

    /// INTERRUPT.
    pub struct InterruptIn {
        /// ID of the request whose caller was interrupted.
        pub unique: u64,
    }

    /// BMAP.
    pub struct BmapIn {
        /// Block of the file, in units of `blocksize`.
        pub block: u64,
        /// Bytes.
        pub blocksize: u32,
        /// Zero.
        pub padding: u32,
    }

    /// IOCTL; the input data follow.
    pub struct IoctlIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Who calls.
        pub flags: IoctlFlags,
        /// Number of the ioctl.
        pub cmd: u32,
        /// Argument, a user-space address as a rule.
        pub arg: u64,
        /// Bytes of input data.
        pub in_size: u32,
        /// Bytes of output data at most.
        pub out_size: u32,
    }

    /// POLL.
    pub struct PollIn {
        /// Handle of the open file.
        pub fh: u64,
        /// The kernel's handle, for the POLL notification.
        pub kh: u64,
        /// Whether someone waits.
        pub flags: PollFlags,
        /// `POLL*` that are asked for. Since 7.21.
        pub events: u32,
    }

    /// FALLOCATE.
    pub struct FallocateIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Bytes into the file.
        pub offset: u64,
        /// Bytes.
        pub length: u64,
        /// `FALLOC_FL_*` of fallocate(2).
        pub mode: u32,
        /// Zero.
        pub padding: u32,
    }

    /// LSEEK.
    pub struct LseekIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Bytes into the file, from `whence`.
        pub offset: u64,
        /// `SEEK_*` of lseek(2).
        pub whence: u32,
        /// Zero.
        pub padding: u32,
    }

    /// COPY_FILE_RANGE and COPY_FILE_RANGE_64; the node of the header is the source.
    pub struct CopyFileRangeIn {
        /// Handle of the source.
        pub fh_in: u64,
        /// Bytes into the source.
        pub off_in: u64,
        /// Node ID of the destination.
        pub nodeid_out: u64,
        /// Handle of the destination.
        pub fh_out: u64,
        /// Bytes into the destination.
        pub off_out: u64,
        /// Bytes.
        pub len: u64,
        /// Flags of copy_file_range(2).
        pub flags: u64,
    }

    /// SYNCFS.
    pub struct SyncfsIn {
        /// Zero.
        pub padding: u64,
    }

    /// SETUPMAPPING.
    pub struct SetupmappingIn {
        /// Handle of the open file.
        pub fh: u64,
        /// Bytes into the file.
        pub foffset: u64,
        /// Bytes.
        pub len: u64,
        /// What the range is used for.
        pub flags: SetupmappingFlags,
        /// Bytes into the DAX window.
        pub moffset: u64,
    }

    /// REMOVEMAPPING; that many [`RemovemappingOne`] follow.
    pub struct RemovemappingIn {
        /// How many ranges; together no more than a page.
        pub count: u32,
    }

    /// One range of REMOVEMAPPING.
    pub struct RemovemappingOne {
        /// Bytes into the DAX window.
        pub moffset: u64,
        /// Bytes.
        pub len: u64,
    }
}
