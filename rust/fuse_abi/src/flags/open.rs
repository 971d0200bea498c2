// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// How an open file behaves (`FOPEN_*`); [`crate::OpenOut::open_flags`]. Server to kernel.
    pub struct OpenFlags: u32 {
        /// Reads and writes bypass the page cache.
        const DIRECT_IO = 1 << 0;
        /// Keep the data that are cached already.
        const KEEP_CACHE = 1 << 1;
        /// The file cannot seek.
        const NONSEEKABLE = 1 << 2;
        /// The directory's content may be cached.
        const CACHE_DIR = 1 << 3;
        /// The file has no position at all.
        const STREAM = 1 << 4;
        /// No FLUSH on close, unless dirty data are cached by the kernel.
        const NOFLUSH = 1 << 5;
        /// Direct writes to the file may run at the same time.
        const PARALLEL_DIRECT_WRITES = 1 << 6;
        /// Reads and writes go to the backing file [`crate::OpenOut::backing_id`].
        const PASSTHROUGH = 1 << 7;
        /// Reads and writes over a zero-copy io_uring queue hand over the pages themselves.
        const IO_URING_ZERO_COPY = 1 << 8;
    }
}
