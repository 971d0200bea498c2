// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// The features that INIT negotiates: the kernel offers, the server picks.
    ///
    /// On the wire the low half is `flags`, the high half `flags2`.
    pub struct InitFlags: u64 {
        /// Several READs of one file at the same time.
        const ASYNC_READ = 1 << 0;
        /// The server keeps the locks of fcntl(2).
        const POSIX_LOCKS = 1 << 1;
        /// Unused.
        const FILE_OPS = 1 << 2;
        /// O_TRUNC is passed in OPEN.
        const ATOMIC_O_TRUNC = 1 << 3;
        /// LOOKUP of "." and ".." works.
        const EXPORT_SUPPORT = 1 << 4;
        /// WRITEs of more than one page.
        const BIG_WRITES = 1 << 5;
        /// The server applies the umask.
        const DONT_MASK = 1 << 6;
        /// The device takes splice(2) writes.
        const SPLICE_WRITE = 1 << 7;
        /// The device can move pages in splice(2).
        const SPLICE_MOVE = 1 << 8;
        /// The device takes splice(2) reads.
        const SPLICE_READ = 1 << 9;
        /// The server keeps the locks of flock(2).
        const FLOCK_LOCKS = 1 << 10;
        /// ioctl(2) on directories.
        const HAS_IOCTL_DIR = 1 << 11;
        /// Cached data are dropped when size or modification time change.
        const AUTO_INVAL_DATA = 1 << 12;
        /// READDIRPLUS.
        const DO_READDIRPLUS = 1 << 13;
        /// READDIRPLUS only where it seems to pay.
        const READDIRPLUS_AUTO = 1 << 14;
        /// Direct I/O of one call in several requests at the same time.
        const ASYNC_DIO = 1 << 15;
        /// Written data stay in the page cache first.
        const WRITEBACK_CACHE = 1 << 16;
        /// ENOSYS to OPEN means that files need no open.
        const NO_OPEN_SUPPORT = 1 << 17;
        /// LOOKUP and READDIR of one directory at the same time.
        const PARALLEL_DIROPS = 1 << 18;
        /// The server clears set-user-ID, set-group-ID and capabilities on write, chown and
        /// truncate.
        const HANDLE_KILLPRIV = 1 << 19;
        /// POSIX ACLs.
        const POSIX_ACL = 1 << 20;
        /// After an abort the device says ECONNABORTED.
        const ABORT_ERROR = 1 << 21;
        /// [`crate::InitOut::max_pages`] is valid.
        const MAX_PAGES = 1 << 22;
        /// Targets of symbolic links may be cached.
        const CACHE_SYMLINKS = 1 << 23;
        /// ENOSYS to OPENDIR means that directories need no open.
        const NO_OPENDIR_SUPPORT = 1 << 24;
        /// Cached data are dropped only when the server says so.
        const EXPLICIT_INVAL_DATA = 1 << 25;
        /// [`crate::InitOut::map_alignment`] is valid.
        const MAP_ALIGNMENT = 1 << 26;
        /// Mounts inside the server are shown as mounts.
        const SUBMOUNTS = 1 << 27;
        /// As HANDLE_KILLPRIV, with the VFS's exceptions, and told by flags of the requests.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
        /// SETXATTR has the long argument.
        const SETXATTR_EXT = 1 << 29;
        /// `flags2` is valid.
        const INIT_EXT = 1 << 30;
        /// Must not be used.
        const INIT_RESERVED = 1 << 31;
        /// Requests that make a node carry its security context.
        const SECURITY_CTX = 1 << 32;
        /// DAX per inode.
        const HAS_INODE_DAX = 1 << 33;
        /// Requests that make a node carry a supplementary group.
        const CREATE_SUPP_GROUP = 1 << 34;
        /// INVAL_ENTRY knows EXPIRE_ONLY.
        const HAS_EXPIRE_ONLY = 1 << 35;
        /// Files opened for direct I/O can be mapped shared.
        const DIRECT_IO_ALLOW_MMAP = 1 << 36;
        /// Reads and writes can go to a backing file.
        const PASSTHROUGH = 1 << 37;
        /// No file handles for NFS export.
        const NO_EXPORT_SUPPORT = 1 << 38;
        /// The RESEND notification, and [`crate::UNIQUE_RESEND`].
        const HAS_RESEND = 1 << 39;
        /// The mount can be idmapped.
        const ALLOW_IDMAP = 1 << 40;
        /// Requests go over io_uring.
        const OVER_IO_URING = 1 << 41;
        /// [`crate::InitOut::request_timeout`] is valid.
        const REQUEST_TIMEOUT = 1 << 42;
        /// io_uring queues can have buffer pools.
        const HAS_IO_URING_BUFPOOL = 1 << 43;
    }
}

impl InitFlags {
    /// The words `flags` and `flags2` of the wire.
    pub const fn split(self) -> (u32, u32) {
        let bits = self.bits();
        (bits as u32, (bits >> 32) as u32)
    }

    /// From the words `flags` and `flags2` of the wire; unknown bits are kept.
    pub const fn join(flags: u32, flags2: u32) -> Self {
        Self::from_bits_retain(flags as u64 | ((flags2 as u64) << 32))
    }
}
