// SPDX-License-Identifier: GPL-2.0

// Compares `abi`, this crate, with `uapi`, what bindgen makes of include/uapi/linux/fuse.h.
// Everything happens at compile time. Meant for `include!` by a crate that sees both and names them
// so: in the kernel `fuse_sys`, on the host a test.

// The same size, the same fields at the same offsets, and none left out on either side.
macro_rules! same_layout {
    ($($abi:ident = $uapi:ident { $($field:ident),* }
       $(renamed { $($new:ident = $old:ident),* })? $(without { $flexible:ident })?;)*) => {$(
        const _: () = {
            use core::mem::{offset_of, size_of};

            assert!(size_of::<abi::$abi>() == size_of::<uapi::$uapi>(), stringify!($uapi));
            $(assert!(
                offset_of!(abi::$abi, $field) == offset_of!(uapi::$uapi, $field),
                concat!(stringify!($uapi), ".", stringify!($field))
            );)*
            $($(assert!(
                offset_of!(abi::$abi, $new) == offset_of!(uapi::$uapi, $old),
                concat!(stringify!($uapi), ".", stringify!($old))
            );)*)?
            // These patterns do not compile when a field is missing.
            let _ = |abi::$abi { $($field: _,)* $($($new: _),*)? }: &abi::$abi| ();
            let _ = |
                uapi::$uapi { $($field: _,)* $($($old: _),*)? $($flexible: _)? }: &uapi::$uapi
            | ();
        };
    )*};
}

// The same numbers, and no number of `abi` that the header does not have.
macro_rules! same_codes {
    ($($abi:ident { $($variant:ident = $uapi:ident,)* })*) => {$(
        $(const _: () = assert!(
            abi::$abi::$variant as u32 == uapi::$uapi as u32,
            stringify!($uapi)
        );)*
        const _: () = assert!(abi::$abi::ALL.len() == [$(stringify!($variant)),*].len());
    )*};
}

// The same bits, and no named bit of `abi` that the header does not have.
macro_rules! same_flags {
    ($($abi:ident { $($flag:ident = $uapi:ident,)* })*) => {$(
        $(const _: () = assert!(
            abi::$abi::$flag.bits() as u64 == uapi::$uapi as u64,
            stringify!($uapi)
        );)*
        // One more: the bits without a name.
        const _: () = assert!(
            <abi::$abi as ::bitflags::Flags>::FLAGS.len() == [$(stringify!($flag)),*].len() + 1
        );
    )*};
}

macro_rules! same_constants {
    ($($abi:ident = $uapi:ident;)*) => {$(
        const _: () = assert!(abi::$abi as u64 == uapi::$uapi as u64, stringify!($uapi));
    )*};
}

same_constants! {
    CUSE_INIT_INFO_MAX = CUSE_INIT_INFO_MAX;
    DEV_IOC_MAGIC = FUSE_DEV_IOC_MAGIC;
    EXT_GROUPS = fuse_ext_type_FUSE_EXT_GROUPS;
    IOCTL_MAX_IOV = FUSE_IOCTL_MAX_IOV;
    MAX_NR_SECCTX = fuse_ext_type_FUSE_MAX_NR_SECCTX;
    MINOR_VERSION = FUSE_KERNEL_MINOR_VERSION;
    MIN_READ_BUFFER = FUSE_MIN_READ_BUFFER;
    ROOT_ID = FUSE_ROOT_ID;
    UNIQUE_RESEND = FUSE_UNIQUE_RESEND;
    URING_IN_OUT_HEADER_SZ = FUSE_URING_IN_OUT_HEADER_SZ;
    URING_OP_IN_OUT_SZ = FUSE_URING_OP_IN_OUT_SZ;
    VERSION = FUSE_KERNEL_VERSION;
}

same_codes! {
    Opcode {
        Lookup = fuse_opcode_FUSE_LOOKUP,
        Forget = fuse_opcode_FUSE_FORGET,
        Getattr = fuse_opcode_FUSE_GETATTR,
        Setattr = fuse_opcode_FUSE_SETATTR,
        Readlink = fuse_opcode_FUSE_READLINK,
        Symlink = fuse_opcode_FUSE_SYMLINK,
        Mknod = fuse_opcode_FUSE_MKNOD,
        Mkdir = fuse_opcode_FUSE_MKDIR,
        Unlink = fuse_opcode_FUSE_UNLINK,
        Rmdir = fuse_opcode_FUSE_RMDIR,
        Rename = fuse_opcode_FUSE_RENAME,
        Link = fuse_opcode_FUSE_LINK,
        Open = fuse_opcode_FUSE_OPEN,
        Read = fuse_opcode_FUSE_READ,
        Write = fuse_opcode_FUSE_WRITE,
        Statfs = fuse_opcode_FUSE_STATFS,
        Release = fuse_opcode_FUSE_RELEASE,
        Fsync = fuse_opcode_FUSE_FSYNC,
        Setxattr = fuse_opcode_FUSE_SETXATTR,
        Getxattr = fuse_opcode_FUSE_GETXATTR,
        Listxattr = fuse_opcode_FUSE_LISTXATTR,
        Removexattr = fuse_opcode_FUSE_REMOVEXATTR,
        Flush = fuse_opcode_FUSE_FLUSH,
        Init = fuse_opcode_FUSE_INIT,
        Opendir = fuse_opcode_FUSE_OPENDIR,
        Readdir = fuse_opcode_FUSE_READDIR,
        Releasedir = fuse_opcode_FUSE_RELEASEDIR,
        Fsyncdir = fuse_opcode_FUSE_FSYNCDIR,
        Getlk = fuse_opcode_FUSE_GETLK,
        Setlk = fuse_opcode_FUSE_SETLK,
        Setlkw = fuse_opcode_FUSE_SETLKW,
        Access = fuse_opcode_FUSE_ACCESS,
        Create = fuse_opcode_FUSE_CREATE,
        Interrupt = fuse_opcode_FUSE_INTERRUPT,
        Bmap = fuse_opcode_FUSE_BMAP,
        Destroy = fuse_opcode_FUSE_DESTROY,
        Ioctl = fuse_opcode_FUSE_IOCTL,
        Poll = fuse_opcode_FUSE_POLL,
        NotifyReply = fuse_opcode_FUSE_NOTIFY_REPLY,
        BatchForget = fuse_opcode_FUSE_BATCH_FORGET,
        Fallocate = fuse_opcode_FUSE_FALLOCATE,
        Readdirplus = fuse_opcode_FUSE_READDIRPLUS,
        Rename2 = fuse_opcode_FUSE_RENAME2,
        Lseek = fuse_opcode_FUSE_LSEEK,
        CopyFileRange = fuse_opcode_FUSE_COPY_FILE_RANGE,
        Setupmapping = fuse_opcode_FUSE_SETUPMAPPING,
        Removemapping = fuse_opcode_FUSE_REMOVEMAPPING,
        Syncfs = fuse_opcode_FUSE_SYNCFS,
        Tmpfile = fuse_opcode_FUSE_TMPFILE,
        Statx = fuse_opcode_FUSE_STATX,
        CopyFileRange64 = fuse_opcode_FUSE_COPY_FILE_RANGE_64,
        CuseInit = fuse_opcode_CUSE_INIT,
        CuseInitBswapReserved = fuse_opcode_CUSE_INIT_BSWAP_RESERVED,
        InitBswapReserved = fuse_opcode_FUSE_INIT_BSWAP_RESERVED,
    }
    NotifyCode {
        Poll = fuse_notify_code_FUSE_NOTIFY_POLL,
        InvalInode = fuse_notify_code_FUSE_NOTIFY_INVAL_INODE,
        InvalEntry = fuse_notify_code_FUSE_NOTIFY_INVAL_ENTRY,
        Store = fuse_notify_code_FUSE_NOTIFY_STORE,
        Retrieve = fuse_notify_code_FUSE_NOTIFY_RETRIEVE,
        Delete = fuse_notify_code_FUSE_NOTIFY_DELETE,
        Resend = fuse_notify_code_FUSE_NOTIFY_RESEND,
        IncEpoch = fuse_notify_code_FUSE_NOTIFY_INC_EPOCH,
        Prune = fuse_notify_code_FUSE_NOTIFY_PRUNE,
    }
    UringCmd {
        Invalid = fuse_uring_cmd_FUSE_IO_URING_CMD_INVALID,
        Register = fuse_uring_cmd_FUSE_IO_URING_CMD_REGISTER,
        CommitAndFetch = fuse_uring_cmd_FUSE_IO_URING_CMD_COMMIT_AND_FETCH,
        AddQueue = fuse_uring_cmd_FUSE_IO_URING_CMD_ADD_QUEUE,
        AddBufpool = fuse_uring_cmd_FUSE_IO_URING_CMD_ADD_BUFPOOL,
    }
}

same_flags! {
    AttrFlags {
        SUBMOUNT = FUSE_ATTR_SUBMOUNT,
        DAX = FUSE_ATTR_DAX,
    }
    CuseInitFlags {
        UNRESTRICTED_IOCTL = CUSE_UNRESTRICTED_IOCTL,
    }
    FsyncFlags {
        FDATASYNC = FUSE_FSYNC_FDATASYNC,
    }
    GetattrFlags {
        FH = FUSE_GETATTR_FH,
    }
    InitFlags {
        ASYNC_READ = FUSE_ASYNC_READ,
        POSIX_LOCKS = FUSE_POSIX_LOCKS,
        FILE_OPS = FUSE_FILE_OPS,
        ATOMIC_O_TRUNC = FUSE_ATOMIC_O_TRUNC,
        EXPORT_SUPPORT = FUSE_EXPORT_SUPPORT,
        BIG_WRITES = FUSE_BIG_WRITES,
        DONT_MASK = FUSE_DONT_MASK,
        SPLICE_WRITE = FUSE_SPLICE_WRITE,
        SPLICE_MOVE = FUSE_SPLICE_MOVE,
        SPLICE_READ = FUSE_SPLICE_READ,
        FLOCK_LOCKS = FUSE_FLOCK_LOCKS,
        HAS_IOCTL_DIR = FUSE_HAS_IOCTL_DIR,
        AUTO_INVAL_DATA = FUSE_AUTO_INVAL_DATA,
        DO_READDIRPLUS = FUSE_DO_READDIRPLUS,
        READDIRPLUS_AUTO = FUSE_READDIRPLUS_AUTO,
        ASYNC_DIO = FUSE_ASYNC_DIO,
        WRITEBACK_CACHE = FUSE_WRITEBACK_CACHE,
        NO_OPEN_SUPPORT = FUSE_NO_OPEN_SUPPORT,
        PARALLEL_DIROPS = FUSE_PARALLEL_DIROPS,
        HANDLE_KILLPRIV = FUSE_HANDLE_KILLPRIV,
        POSIX_ACL = FUSE_POSIX_ACL,
        ABORT_ERROR = FUSE_ABORT_ERROR,
        MAX_PAGES = FUSE_MAX_PAGES,
        CACHE_SYMLINKS = FUSE_CACHE_SYMLINKS,
        NO_OPENDIR_SUPPORT = FUSE_NO_OPENDIR_SUPPORT,
        EXPLICIT_INVAL_DATA = FUSE_EXPLICIT_INVAL_DATA,
        MAP_ALIGNMENT = FUSE_MAP_ALIGNMENT,
        SUBMOUNTS = FUSE_SUBMOUNTS,
        HANDLE_KILLPRIV_V2 = FUSE_HANDLE_KILLPRIV_V2,
        SETXATTR_EXT = FUSE_SETXATTR_EXT,
        INIT_EXT = FUSE_INIT_EXT,
        INIT_RESERVED = FUSE_INIT_RESERVED,
        SECURITY_CTX = FUSE_SECURITY_CTX,
        HAS_INODE_DAX = FUSE_HAS_INODE_DAX,
        CREATE_SUPP_GROUP = FUSE_CREATE_SUPP_GROUP,
        HAS_EXPIRE_ONLY = FUSE_HAS_EXPIRE_ONLY,
        DIRECT_IO_ALLOW_MMAP = FUSE_DIRECT_IO_ALLOW_MMAP,
        PASSTHROUGH = FUSE_PASSTHROUGH,
        NO_EXPORT_SUPPORT = FUSE_NO_EXPORT_SUPPORT,
        HAS_RESEND = FUSE_HAS_RESEND,
        ALLOW_IDMAP = FUSE_ALLOW_IDMAP,
        OVER_IO_URING = FUSE_OVER_IO_URING,
        REQUEST_TIMEOUT = FUSE_REQUEST_TIMEOUT,
        HAS_IO_URING_BUFPOOL = FUSE_HAS_IO_URING_BUFPOOL,
    }
    InvalEntryFlags {
        EXPIRE_ONLY = FUSE_EXPIRE_ONLY,
    }
    IoctlFlags {
        COMPAT = FUSE_IOCTL_COMPAT,
        UNRESTRICTED = FUSE_IOCTL_UNRESTRICTED,
        RETRY = FUSE_IOCTL_RETRY,
        IS_32BIT = FUSE_IOCTL_32BIT,
        DIR = FUSE_IOCTL_DIR,
        COMPAT_X32 = FUSE_IOCTL_COMPAT_X32,
    }
    LkFlags {
        FLOCK = FUSE_LK_FLOCK,
    }
    OpenFlags {
        DIRECT_IO = FOPEN_DIRECT_IO,
        KEEP_CACHE = FOPEN_KEEP_CACHE,
        NONSEEKABLE = FOPEN_NONSEEKABLE,
        CACHE_DIR = FOPEN_CACHE_DIR,
        STREAM = FOPEN_STREAM,
        NOFLUSH = FOPEN_NOFLUSH,
        PARALLEL_DIRECT_WRITES = FOPEN_PARALLEL_DIRECT_WRITES,
        PASSTHROUGH = FOPEN_PASSTHROUGH,
        IO_URING_ZERO_COPY = FOPEN_IO_URING_ZERO_COPY,
    }
    OpenInFlags {
        KILL_SUIDGID = FUSE_OPEN_KILL_SUIDGID,
    }
    PollFlags {
        SCHEDULE_NOTIFY = FUSE_POLL_SCHEDULE_NOTIFY,
    }
    ReadFlags {
        LOCKOWNER = FUSE_READ_LOCKOWNER,
    }
    ReleaseFlags {
        FLUSH = FUSE_RELEASE_FLUSH,
        FLOCK_UNLOCK = FUSE_RELEASE_FLOCK_UNLOCK,
    }
    SetattrValid {
        MODE = FATTR_MODE,
        UID = FATTR_UID,
        GID = FATTR_GID,
        SIZE = FATTR_SIZE,
        ATIME = FATTR_ATIME,
        MTIME = FATTR_MTIME,
        FH = FATTR_FH,
        ATIME_NOW = FATTR_ATIME_NOW,
        MTIME_NOW = FATTR_MTIME_NOW,
        LOCKOWNER = FATTR_LOCKOWNER,
        CTIME = FATTR_CTIME,
        KILL_SUIDGID = FATTR_KILL_SUIDGID,
    }
    SetupmappingFlags {
        WRITE = FUSE_SETUPMAPPING_FLAG_WRITE,
        READ = FUSE_SETUPMAPPING_FLAG_READ,
    }
    SetxattrFlags {
        ACL_KILL_SGID = FUSE_SETXATTR_ACL_KILL_SGID,
    }
    UringEntFlags {
        ZERO_COPY = FUSE_URING_ENT_ZERO_COPY,
    }
    UringQueueFlags {
        ZERO_COPY = FUSE_URING_ZERO_COPY,
    }
    WriteFlags {
        CACHE = FUSE_WRITE_CACHE,
        LOCKOWNER = FUSE_WRITE_LOCKOWNER,
        KILL_SUIDGID = FUSE_WRITE_KILL_SUIDGID,
    }
}

same_layout! {
    Attr = fuse_attr {
        ino, size, blocks, atime, mtime, ctime, atimensec, mtimensec, ctimensec, mode, nlink, uid,
        gid, rdev, blksize, flags
    };
    SxTime = fuse_sx_time { tv_sec, tv_nsec } renamed { reserved = __reserved };
    Statx = fuse_statx {
        mask, blksize, attributes, nlink, uid, gid, mode, ino, size, blocks, attributes_mask, atime,
        btime, ctime, mtime, rdev_major, rdev_minor, dev_major, dev_minor
    } renamed { spare0 = __spare0, spare2 = __spare2 };
    Kstatfs = fuse_kstatfs {
        blocks, bfree, bavail, files, ffree, bsize, namelen, frsize, padding, spare
    };
    FileLock = fuse_file_lock { start, end, type_, pid };
    EntryOut = fuse_entry_out {
        nodeid, generation, entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec, attr
    };
    ForgetIn = fuse_forget_in { nlookup };
    ForgetOne = fuse_forget_one { nodeid, nlookup };
    BatchForgetIn = fuse_batch_forget_in { count, dummy };
    GetattrIn = fuse_getattr_in { getattr_flags, dummy, fh };
    AttrOut = fuse_attr_out { attr_valid, attr_valid_nsec, dummy, attr };
    StatxIn = fuse_statx_in { getattr_flags, reserved, fh, sx_flags, sx_mask };
    StatxOut = fuse_statx_out { attr_valid, attr_valid_nsec, flags, spare, stat };
    MknodIn = fuse_mknod_in { mode, rdev, umask, padding };
    MkdirIn = fuse_mkdir_in { mode, umask };
    RenameIn = fuse_rename_in { newdir };
    Rename2In = fuse_rename2_in { newdir, flags, padding };
    LinkIn = fuse_link_in { oldnodeid };
    SetattrIn = fuse_setattr_in {
        valid, padding, fh, size, lock_owner, atime, mtime, ctime, atimensec, mtimensec, ctimensec,
        mode, unused4, uid, gid, unused5
    };
    OpenIn = fuse_open_in { flags, open_flags };
    CreateIn = fuse_create_in { flags, mode, umask, open_flags };
    OpenOut = fuse_open_out { fh, open_flags, backing_id };
    ReleaseIn = fuse_release_in { fh, flags, release_flags, lock_owner };
    FlushIn = fuse_flush_in { fh, unused, padding, lock_owner };
    ReadIn = fuse_read_in { fh, offset, size, read_flags, lock_owner, flags, padding };
    WriteIn = fuse_write_in { fh, offset, size, write_flags, lock_owner, flags, padding };
    WriteOut = fuse_write_out { size, padding };
    StatfsOut = fuse_statfs_out { st };
    FsyncIn = fuse_fsync_in { fh, fsync_flags, padding };
    SetxattrIn = fuse_setxattr_in { size, flags, setxattr_flags, padding };
    GetxattrIn = fuse_getxattr_in { size, padding };
    GetxattrOut = fuse_getxattr_out { size, padding };
    LkIn = fuse_lk_in { fh, owner, lk, lk_flags, padding };
    LkOut = fuse_lk_out { lk };
    AccessIn = fuse_access_in { mask, padding };
    InitIn = fuse_init_in { major, minor, max_readahead, flags, flags2, unused };
    InitOut = fuse_init_out {
        major, minor, max_readahead, flags, max_background, congestion_threshold, max_write,
        time_gran, max_pages, map_alignment, flags2, max_stack_depth, request_timeout, unused
    };
    CuseInitIn = cuse_init_in { major, minor, unused, flags };
    CuseInitOut = cuse_init_out {
        major, minor, unused, flags, max_read, max_write, dev_major, dev_minor, spare
    };
    InterruptIn = fuse_interrupt_in { unique };
    BmapIn = fuse_bmap_in { block, blocksize, padding };
    BmapOut = fuse_bmap_out { block };
    IoctlIn = fuse_ioctl_in { fh, flags, cmd, arg, in_size, out_size };
    IoctlIovec = fuse_ioctl_iovec { base, len };
    IoctlOut = fuse_ioctl_out { result, flags, in_iovs, out_iovs };
    PollIn = fuse_poll_in { fh, kh, flags, events };
    PollOut = fuse_poll_out { revents, padding };
    NotifyPollWakeupOut = fuse_notify_poll_wakeup_out { kh };
    FallocateIn = fuse_fallocate_in { fh, offset, length, mode, padding };
    InHeader = fuse_in_header { len, opcode, unique, nodeid, uid, gid, pid, total_extlen, padding };
    OutHeader = fuse_out_header { len, error, unique };
    DirentHeader = fuse_dirent { ino, off, namelen, type_ } without { name };
    DirentPlusHeader = fuse_direntplus { entry_out, dirent };
    NotifyInvalInodeOut = fuse_notify_inval_inode_out { ino, off, len };
    NotifyInvalEntryOut = fuse_notify_inval_entry_out { parent, namelen, flags };
    NotifyDeleteOut = fuse_notify_delete_out { parent, child, namelen, padding };
    NotifyStoreOut = fuse_notify_store_out { nodeid, offset, size, padding };
    NotifyRetrieveOut = fuse_notify_retrieve_out { notify_unique, nodeid, offset, size, padding };
    NotifyRetrieveIn = fuse_notify_retrieve_in { dummy1, offset, size, dummy2, dummy3, dummy4 };
    NotifyPruneOut = fuse_notify_prune_out { count, padding, spare };
    BackingMap = fuse_backing_map { fd, flags, padding };
    LseekIn = fuse_lseek_in { fh, offset, whence, padding };
    LseekOut = fuse_lseek_out { offset };
    CopyFileRangeIn = fuse_copy_file_range_in {
        fh_in, off_in, nodeid_out, fh_out, off_out, len, flags
    };
    CopyFileRangeOut = fuse_copy_file_range_out { bytes_copied };
    SetupmappingIn = fuse_setupmapping_in { fh, foffset, len, flags, moffset };
    RemovemappingIn = fuse_removemapping_in { count };
    RemovemappingOne = fuse_removemapping_one { moffset, len };
    SyncfsIn = fuse_syncfs_in { padding };
    Secctx = fuse_secctx { size, padding };
    SecctxHeader = fuse_secctx_header { size, nr_secctx };
    ExtHeader = fuse_ext_header { size, type_ };
    SuppGroups = fuse_supp_groups { nr_groups } without { groups };
    UringEntInOut = fuse_uring_ent_in_out { flags, commit_id, payload_sz, offset, reserved };
    UringReqHeader = fuse_uring_req_header { in_out, op_in, ring_ent_in_out };
    UringCmdReq = fuse_uring_cmd_req {
        flags, commit_id, qid, padding
    } renamed { bufpool = __bindgen_anon_1 };
    UringBufpool = fuse_uring_cmd_req__bindgen_ty_1__bindgen_ty_1 { uaddr, len, reserved };
}
