// SPDX-License-Identifier: GPL-2.0

//! What a request asks for.

wire_enum! {
    /// The operation that a request asks the server for; stands in [`crate::InHeader::opcode`].
    pub enum Opcode {
        /// Find a name in a directory; adds one to the node's lookup count.
        Lookup = 1, "LOOKUP";
        /// Give back lookup counts of one node. Has no reply.
        Forget = 2, "FORGET";
        /// Read the attributes of a node.
        Getattr = 3, "GETATTR";
        /// Change attributes of a node.
        Setattr = 4, "SETATTR";
        /// Read the target of a symbolic link.
        Readlink = 5, "READLINK";
        /// Make a symbolic link.
        Symlink = 6, "SYMLINK";
        /// Make a regular or special file.
        Mknod = 8, "MKNOD";
        /// Make a directory.
        Mkdir = 9, "MKDIR";
        /// Remove a name that is no directory.
        Unlink = 10, "UNLINK";
        /// Remove an empty directory.
        Rmdir = 11, "RMDIR";
        /// Rename without flags.
        Rename = 12, "RENAME";
        /// Make a hard link.
        Link = 13, "LINK";
        /// Open a file.
        Open = 14, "OPEN";
        /// Read data from an open file.
        Read = 15, "READ";
        /// Write data to an open file.
        Write = 16, "WRITE";
        /// Read the filesystem's numbers.
        Statfs = 17, "STATFS";
        /// The last user of an open file is gone.
        Release = 18, "RELEASE";
        /// Make a file's data durable.
        Fsync = 20, "FSYNC";
        /// Set an extended attribute.
        Setxattr = 21, "SETXATTR";
        /// Read an extended attribute or its size.
        Getxattr = 22, "GETXATTR";
        /// Read the names of the extended attributes or their size.
        Listxattr = 23, "LISTXATTR";
        /// Remove an extended attribute.
        Removexattr = 24, "REMOVEXATTR";
        /// A file descriptor of an open file was closed.
        Flush = 25, "FLUSH";
        /// Negotiate version and features; the first request of a connection.
        Init = 26, "INIT";
        /// Open a directory.
        Opendir = 27, "OPENDIR";
        /// Read names from an open directory.
        Readdir = 28, "READDIR";
        /// The last user of an open directory is gone.
        Releasedir = 29, "RELEASEDIR";
        /// Make a directory durable.
        Fsyncdir = 30, "FSYNCDIR";
        /// Ask for a lock that stands in the way.
        Getlk = 31, "GETLK";
        /// Take or release a lock, without waiting.
        Setlk = 32, "SETLK";
        /// Take a lock, waiting for it.
        Setlkw = 33, "SETLKW";
        /// Check access(2) rights.
        Access = 34, "ACCESS";
        /// Make a regular file and open it.
        Create = 35, "CREATE";
        /// The caller of an earlier request was interrupted. Only answered with EAGAIN or ENOSYS,
        /// if at all.
        Interrupt = 36, "INTERRUPT";
        /// Map a block of a file to one of the device.
        Bmap = 37, "BMAP";
        /// The filesystem was unmounted.
        Destroy = 38, "DESTROY";
        /// ioctl(2) on a file or directory.
        Ioctl = 39, "IOCTL";
        /// poll(2) on a file.
        Poll = 40, "POLL";
        /// The cached data that a RETRIEVE notification asked for. Has no reply.
        NotifyReply = 41, "NOTIFY_REPLY";
        /// Give back lookup counts of several nodes. Has no reply.
        BatchForget = 42, "BATCH_FORGET";
        /// fallocate(2) on an open file.
        Fallocate = 43, "FALLOCATE";
        /// Read names with their attributes from an open directory; adds to lookup counts.
        Readdirplus = 44, "READDIRPLUS";
        /// Rename with flags of renameat2(2).
        Rename2 = 45, "RENAME2";
        /// Find data or a hole in an open file.
        Lseek = 46, "LSEEK";
        /// Copy between open files; the reply has 32 bits.
        CopyFileRange = 47, "COPY_FILE_RANGE";
        /// Map a range of a file into the DAX window.
        Setupmapping = 48, "SETUPMAPPING";
        /// Remove ranges from the DAX window.
        Removemapping = 49, "REMOVEMAPPING";
        /// Make the whole filesystem durable.
        Syncfs = 50, "SYNCFS";
        /// Make a file without a name and open it.
        Tmpfile = 51, "TMPFILE";
        /// Read the extended attributes of statx(2).
        Statx = 52, "STATX";
        /// Copy between open files; the reply has 64 bits.
        CopyFileRange64 = 53, "COPY_FILE_RANGE_64";
        /// INIT of a character device in user space.
        CuseInit = 4096, "CUSE_INIT";
        /// CUSE_INIT as the other byte order shows it; never sent.
        CuseInitBswapReserved = 1_048_576, "CUSE_INIT_BSWAP_RESERVED";
        /// INIT as the other byte order shows it; never sent.
        InitBswapReserved = 436_207_616, "INIT_BSWAP_RESERVED";
    }
}

impl Opcode {
    /// Whether the sender waits for a reply.
    pub const fn has_reply(self) -> bool {
        !matches!(
            self,
            Self::Forget | Self::BatchForget | Self::NotifyReply | Self::Interrupt
        )
    }
}
