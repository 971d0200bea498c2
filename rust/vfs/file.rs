// SPDX-License-Identifier: GPL-2.0

//! Open files and their operations.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h) (`struct file_operations`)

use crate::{
    attr::FileType,
    inode::INode,
    kiocb::{Kiocb, Transferred},
    lock::{Command, Lock, LockOwner, Taken},
    wait::PollTable,
    FileSystem, //
};
use core::{marker::PhantomData, ops::Deref};
use fuse_bindings as bindings;
use kernel::{
    error::{from_result, to_result, VTABLE_DEFAULT_ERROR},
    iov::IovIterDest,
    module::this_module,
    prelude::*,
    types::ForeignOwnable, //
};

/// An open file of the filesystem `T`, wrapping `struct file`.
///
/// # Invariants
///
/// The file's inode is of `T`.
#[repr(transparent)]
pub struct File<T: FileSystem>(kernel::fs::File, PhantomData<fn() -> T>);

impl<T: FileSystem> Deref for File<T> {
    type Target = kernel::fs::File;

    fn deref(&self) -> &kernel::fs::File {
        &self.0
    }
}

impl<T: FileSystem> File<T> {
    /// Borrows an open file.
    ///
    /// # Safety
    ///
    /// `ptr` must be a file of the filesystem `T` that outlives `'a`, whose position nobody else
    /// on this thread holds by `fdget_pos`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::file) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    /// The inode of the file.
    pub fn inode(&self) -> &INode<T> {
        // SAFETY: The file is valid.
        let inode = unsafe { bindings::file_inode(self.0.as_ptr()) };
        // SAFETY: By the type invariant; the file keeps its inode.
        unsafe { INode::from_raw(inode) }
    }

    /// Makes it a file that can't be seeked, nor read at a position (`nonseekable_open`). For use
    /// in `open`.
    pub fn set_nonseekable(&self) {
        // SAFETY: The file is valid and not visible to others yet. The call always succeeds.
        unsafe {
            bindings::nonseekable_open(bindings::file_inode(self.0.as_ptr()), self.0.as_ptr())
        };
    }

    /// Makes it a file without position (`stream_open`). For use in `open`.
    pub fn set_stream(&self) {
        // SAFETY: The file is valid and not visible to others yet. The call always succeeds.
        unsafe { bindings::stream_open(bindings::file_inode(self.0.as_ptr()), self.0.as_ptr()) };
    }

    /// Seeks as in any file whose size is known, which has no holes (`generic_file_llseek`).
    ///
    /// # Errors
    ///
    /// `EINVAL`, `ENXIO`, `EOVERFLOW` as of lseek(2).
    pub fn generic_seek(&self, offset: i64, whence: Whence) -> Result<i64> {
        // SAFETY: The file is open.
        let pos = unsafe { bindings::generic_file_llseek(self.0.as_ptr(), offset, whence.0) };
        result(pos)
    }

    /// Sets the position, in bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL`: no file of this filesystem can be so large.
    pub fn set_pos(&self, pos: i64) -> Result<i64> {
        // SAFETY: The superblock of an open file is valid.
        let max = unsafe { (*self.inode().super_block().as_ptr()).s_maxbytes };
        // SAFETY: The file is open.
        result(unsafe { bindings::vfs_setpos(self.0.as_ptr(), pos, max) })
    }

    /// What `open` returned; none while the file is not open yet, or for one of a type that has no
    /// `open` here.
    pub fn info(&self) -> Option<<T::FileInfo as ForeignOwnable>::Borrowed<'_>> {
        // SAFETY: The field is fixed between open and release.
        let info = unsafe { (*self.0.as_ptr()).private_data };
        // SAFETY: The tables of this module store nothing else there, and take it back on release.
        (!info.is_null()).then(|| unsafe { T::FileInfo::borrow(info) })
    }
}

/// A position, or a negative errno.
fn result(pos: i64) -> Result<i64> {
    if pos < 0 {
        // An error is a small number.
        return Err(Error::from_errno(pos as i32));
    }
    Ok(pos)
}

/// From where lseek(2) seeks: a `SEEK_*`, maybe one that nobody knows.
#[derive(Clone, Copy)]
pub struct Whence(kernel::ffi::c_int);

impl Whence {
    /// Whether it is from the end of the file (`SEEK_END`).
    pub fn is_end(self) -> bool {
        self.0 == bindings::SEEK_END
    }

    /// Whether data or a hole is sought (`SEEK_DATA`, `SEEK_HOLE`).
    pub fn is_data_or_hole(self) -> bool {
        matches!(self.0, bindings::SEEK_DATA | bindings::SEEK_HOLE)
    }

    /// The number, as of user space.
    pub fn as_raw(self) -> u32 {
        self.0 as u32
    }
}

/// Where `readdir` puts the entries, wrapping `struct dir_context`.
pub struct DirContext<'a>(&'a mut bindings::dir_context);

impl DirContext<'_> {
    /// The position to go on from: an opaque number of the filesystem.
    pub fn pos(&self) -> i64 {
        self.0.pos
    }

    /// Sets the position to go on from the next time.
    pub fn set_pos(&mut self, pos: i64) {
        self.0.pos = pos;
    }

    /// The bytes that the caller has room for; 0 if it does not say.
    pub fn count(&self) -> usize {
        usize::try_from(self.0.count).unwrap_or(0)
    }

    /// Hands out an entry. `dtype` is a `DT_*`. Returns whether there is room for more: a signal
    /// does not keep one away that is here already.
    pub fn emit(&mut self, name: &[u8], ino: u64, dtype: u32) -> bool {
        let Ok(len) = i32::try_from(name.len()) else {
            return false;
        };
        let dtype = dtype | bindings::FILLDIR_FLAG_NOINTR;
        // SAFETY: The context is valid, and the name has `len` bytes.
        unsafe { bindings::dir_emit(self.0, name.as_ptr().cast(), len, ino, dtype) }
    }
}

/// The operations of an open file, `struct file_operations`.
#[vtable]
pub trait Operations {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// The type of file that they are for: what reads a regular file from the page cache, maps,
    /// splices and seeks in it comes from the VFS.
    const FILE_TYPE: FileType;

    /// Opens the file. May sleep.
    fn open(
        inode: &INode<Self::FileSystem>,
        file: &File<Self::FileSystem>,
    ) -> Result<<Self::FileSystem as FileSystem>::FileInfo>;

    /// The last reference to the open file is gone. May sleep.
    fn release(
        info: <Self::FileSystem as FileSystem>::FileInfo,
        inode: &INode<Self::FileSystem>,
        file: &File<Self::FileSystem>,
    );

    /// One file descriptor is closed, of those that `owner` has. May sleep.
    fn flush(_file: &File<Self::FileSystem>, _owner: LockOwner) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets the position, and returns it. May sleep.
    fn llseek(_file: &File<Self::FileSystem>, _offset: i64, _whence: Whence) -> Result<i64> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes durable what was written to the file, by whomever; only its data, and what is needed
    /// to find them, if `datasync`. May sleep.
    fn fsync(_file: &File<Self::FileSystem>, _datasync: bool) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Tests, takes or gives up a lock of fcntl(2). May sleep.
    fn lock(_file: &File<Self::FileSystem>, _command: Command, _lock: Lock<'_>) -> Result<Taken> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Takes or gives up a lock of flock(2). May sleep.
    fn flock(_file: &File<Self::FileSystem>, _lock: Lock<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// An ioctl(2) that the VFS does not know; `compat` if the caller is a 32-bit one. May sleep.
    /// Returns what it returns.
    fn ioctl(
        _file: &File<Self::FileSystem>,
        _cmd: u32,
        _arg: usize,
        _compat: bool,
    ) -> Result<isize> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reads from the file. May sleep.
    fn read_iter<'a>(
        _kiocb: Kiocb<'a, Self::FileSystem>,
        _iov: &mut IovIterDest<'_>,
    ) -> Transferred<'a> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Whether what is spliced from the file comes out of the page cache. Else it is what
    /// [`read_iter`](Self::read_iter) reads.
    fn is_cached(_file: &File<Self::FileSystem>) -> bool {
        true
    }

    /// The file is about to be mapped from its page cache, read-only. Sleeps; memory management
    /// locks are held.
    fn mmap(_file: &File<Self::FileSystem>, _shared: bool) -> Result {
        Ok(())
    }

    /// poll(2), select(2) and epoll: the events `EPOLL*` that are true now; tells `table` which
    /// queue is woken when that changes. May sleep.
    fn poll<'file>(_file: &'file File<Self::FileSystem>, _table: &PollTable<'file>) -> u32 {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Lists the directory. May sleep; the directory is locked, shared.
    fn iterate_shared(_file: &File<Self::FileSystem>, _ctx: &mut DirContext<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// A table of file operations for the filesystem `T`.
pub struct Ops<T: FileSystem>(pub(crate) *const bindings::file_operations, PhantomData<T>);

impl<T: FileSystem> Ops<T> {
    /// The table of `O`.
    pub const fn new<O: Operations<FileSystem = T>>() -> Self {
        Self(&Table::<O>::OPS, PhantomData)
    }
}

struct Table<O: Operations>(PhantomData<O>);

impl<O: Operations> Table<O> {
    const REGULAR: bool = matches!(O::FILE_TYPE, FileType::Regular);

    const OPS: bindings::file_operations = bindings::file_operations {
        owner: this_module::<<O::FileSystem as FileSystem>::OwnerModule>().as_ptr(),
        open: Some(Self::open),
        release: Some(Self::release),
        flush: if O::HAS_FLUSH {
            Some(Self::flush)
        } else {
            None
        },
        llseek: if O::HAS_LLSEEK {
            Some(Self::llseek)
        } else {
            Some(bindings::generic_file_llseek)
        },
        fsync: if O::HAS_FSYNC {
            Some(Self::fsync)
        } else {
            None
        },
        poll: if O::HAS_POLL { Some(Self::poll) } else { None },
        read_iter: if O::HAS_READ_ITER {
            Some(Self::read_iter)
        } else {
            None
        },
        iterate_shared: if O::HAS_ITERATE_SHARED {
            Some(Self::iterate_shared)
        } else {
            None
        },
        read: if Self::REGULAR {
            None
        } else {
            Some(bindings::generic_read_dir)
        },
        mmap_prepare: if Self::REGULAR {
            Some(Self::mmap_prepare)
        } else {
            None
        },
        splice_read: if Self::REGULAR {
            Some(Self::splice_read)
        } else {
            None
        },
        get_unmapped_area: if Self::REGULAR {
            Some(bindings::thp_get_unmapped_area)
        } else {
            None
        },
        setlease: Some(Self::setlease),
        lock: if O::HAS_LOCK { Some(Self::lock) } else { None },
        flock: if O::HAS_FLOCK {
            Some(Self::flock)
        } else {
            None
        },
        unlocked_ioctl: if O::HAS_IOCTL {
            Some(Self::ioctl)
        } else {
            None
        },
        compat_ioctl: if O::HAS_IOCTL {
            Some(Self::compat_ioctl)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// `file` must be a file of the filesystem that is being opened, `inode` its inode.
    unsafe extern "C" fn open(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> kernel::ffi::c_int {
        from_result(|| {
            if Self::REGULAR {
                // SAFETY: By the function's contract.
                to_result(unsafe { bindings::generic_file_open(inode, file) })?;
            }
            // SAFETY: By the function's contract.
            let inode = unsafe { INode::from_raw(inode) };
            // SAFETY: By the function's contract.
            let info = O::open(inode, unsafe { File::from_raw(file) })?;
            // SAFETY: The field is the filesystem's, and the file not open yet.
            unsafe { (*file).private_data = info.into_foreign() };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `file` must have been opened by [`open`](Self::open) and be at its end.
    unsafe extern "C" fn release(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let info = unsafe { (*file).private_data };
        // SAFETY: `open` stored it, and this is the last use.
        let info = unsafe { <O::FileSystem as FileSystem>::FileInfo::from_foreign(info) };
        // SAFETY: By the function's contract.
        let inode = unsafe { INode::from_raw(inode) };
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        O::release(info, inode, file);
        0
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem.
    unsafe extern "C" fn flush(
        file: *mut bindings::file,
        owner: bindings::fl_owner_t,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        from_result(|| {
            O::flush(file, LockOwner::from_raw(owner))?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem.
    unsafe extern "C" fn llseek(
        file: *mut bindings::file,
        offset: bindings::loff_t,
        whence: kernel::ffi::c_int,
    ) -> bindings::loff_t {
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        match O::llseek(file, offset, Whence(whence)) {
            Ok(pos) => pos,
            Err(err) => err.to_errno().into(),
        }
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem.
    unsafe extern "C" fn fsync(
        file: *mut bindings::file,
        _start: bindings::loff_t,
        _end: bindings::loff_t,
        datasync: kernel::ffi::c_int,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        from_result(|| {
            O::fsync(file, datasync != 0)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem; `table` null or valid.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table,
    ) -> bindings::__poll_t {
        // SAFETY: By the function's contract.
        let this = unsafe { File::from_raw(file) };
        // SAFETY: The table is valid by the function's contract. `O::poll` does not know `'file`:
        // what it has for so long it has from `this`, by shared references, and what is behind a
        // file stays until it is released; or it is static.
        let table = unsafe { PollTable::from_raw(this, table) };
        O::poll(this, &table)
    }

    /// # Safety
    ///
    /// `kiocb` must be for an open file of the filesystem, and `iter` a destination.
    unsafe extern "C" fn read_iter(
        kiocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: By the function's contract.
        let kiocb = unsafe { Kiocb::from_raw(kiocb) };
        // SAFETY: By the function's contract.
        let iov = unsafe { IovIterDest::from_raw(iter) };
        O::read_iter(kiocb, iov).into_raw()
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem, `pos` valid and `pipe` locked.
    unsafe extern "C" fn splice_read(
        file: *mut bindings::file,
        pos: *mut bindings::loff_t,
        pipe: *mut kernel::bindings::pipe_inode_info,
        len: usize,
        flags: kernel::ffi::c_uint,
    ) -> isize {
        // SAFETY: By the function's contract.
        if O::is_cached(unsafe { File::from_raw(file) }) {
            // SAFETY: By the function's contract.
            unsafe { bindings::filemap_splice_read(file, pos, pipe, len, flags) }
        } else {
            // SAFETY: By the function's contract.
            unsafe { bindings::copy_splice_read(file, pos, pipe, len, flags) }
        }
    }

    /// # Safety
    ///
    /// `desc` must describe a mapping to be made of an open file of the filesystem.
    unsafe extern "C" fn mmap_prepare(desc: *mut bindings::vm_area_desc) -> kernel::ffi::c_int {
        from_result(|| {
            // SAFETY: By the function's contract.
            let file = unsafe { File::from_raw((*desc).file) };
            // SAFETY: By the function's contract.
            let shared = unsafe { bindings::vma_desc_is_shared(desc) };
            O::mmap(file, shared)?;
            // SAFETY: By the function's contract.
            to_result(unsafe { bindings::generic_file_readonly_mmap_prepare(desc) })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem, and `lock` valid.
    unsafe extern "C" fn lock(
        file: *mut bindings::file,
        command: kernel::ffi::c_int,
        lock: *mut kernel::bindings::file_lock,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        // SAFETY: By the function's contract.
        let lock = unsafe { Lock::from_raw(lock.cast()) };
        match O::lock(file, Command::from_raw(command), lock) {
            Ok(taken) => taken.0,
            Err(err) => err.to_errno(),
        }
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem, and `lock` valid.
    unsafe extern "C" fn flock(
        file: *mut bindings::file,
        _command: kernel::ffi::c_int,
        lock: *mut kernel::bindings::file_lock,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        // SAFETY: By the function's contract.
        let lock = unsafe { Lock::from_raw(lock.cast()) };
        from_result(|| {
            O::flock(file, lock)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem.
    unsafe extern "C" fn ioctl(
        file: *mut bindings::file,
        cmd: kernel::ffi::c_uint,
        arg: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_long {
        // SAFETY: By the function's contract.
        match O::ioctl(unsafe { File::from_raw(file) }, cmd, arg, false) {
            Ok(ret) => ret,
            Err(err) => err.to_errno() as kernel::ffi::c_long,
        }
    }

    /// # Safety
    ///
    /// `file` must be an open file of the filesystem.
    unsafe extern "C" fn compat_ioctl(
        file: *mut bindings::file,
        cmd: kernel::ffi::c_uint,
        arg: kernel::ffi::c_ulong,
    ) -> kernel::ffi::c_long {
        // SAFETY: By the function's contract.
        match O::ioctl(unsafe { File::from_raw(file) }, cmd, arg, true) {
            Ok(ret) => ret,
            Err(err) => err.to_errno() as kernel::ffi::c_long,
        }
    }

    /// # Safety
    ///
    /// As for `generic_setlease`, which grants leases to whoever opens the file on this machine.
    unsafe extern "C" fn setlease(
        file: *mut bindings::file,
        arg: kernel::ffi::c_int,
        lease: *mut *mut kernel::bindings::file_lease,
        private: *mut *mut kernel::ffi::c_void,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        unsafe { bindings::generic_setlease(file, arg, lease.cast(), private) }
    }

    /// # Safety
    ///
    /// `file` must be an open directory of the filesystem, and `ctx` valid.
    unsafe extern "C" fn iterate_shared(
        file: *mut bindings::file,
        ctx: *mut bindings::dir_context,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let file = unsafe { File::from_raw(file) };
        // SAFETY: By the function's contract; nobody else uses it during the call.
        let ctx = unsafe { &mut *ctx };
        from_result(|| {
            O::iterate_shared(file, &mut DirContext(ctx))?;
            Ok(0)
        })
    }
}
