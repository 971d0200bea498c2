// SPDX-License-Identifier: GPL-2.0

//! Character devices: misc devices, each of whose open files is a Rust object.
//!
//! C headers: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h),
//! [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::{
    fasync::FasyncList,
    splice::{
        PipeDest,
        PipeSource, //
    },
    wait::PollTable, //
};
use core::marker::PhantomData;
use core::pin::Pin;
use fuse_bindings as bindings;
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    fs::LocalFile,
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    module::this_module,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

/// The `struct file_operations` of a device, implemented by what its open file is.
///
/// All functions are called in process context without locks, and may sleep. Several tasks may call
/// them on the same file at the same time.
#[vtable]
pub trait Operations: Sized + Send + Sync + 'static {
    /// The device is opened; what is returned is the file until [`release`](Self::release).
    ///
    /// # Errors
    ///
    /// Any: they are what open(2) returns.
    fn open() -> Result<Arc<Self>>;

    /// read(2), readv(2) and their kind. Returns the bytes written to `to`.
    ///
    /// # Errors
    ///
    /// Any: they are what the system call returns; `ERESTARTSYS` for a signal.
    fn read_iter(&self, file: &LocalFile, to: &mut IovIterDest<'_>) -> Result<usize>;

    /// write(2), writev(2) and their kind. Returns the bytes taken from `from`.
    ///
    /// # Errors
    ///
    /// As for [`read_iter`](Self::read_iter).
    fn write_iter(&self, file: &LocalFile, from: &mut IovIterSource<'_>) -> Result<usize>;

    /// splice(2) from the device. What was put into `to` goes to the pipe unless an error is
    /// returned.
    ///
    /// # Errors
    ///
    /// As for [`read_iter`](Self::read_iter).
    fn splice_read(&self, file: &LocalFile, to: &mut PipeDest<'_>) -> Result;

    /// splice(2) to the device. Returns the bytes taken.
    ///
    /// # Errors
    ///
    /// As for [`read_iter`](Self::read_iter).
    fn splice_write(&self, file: &LocalFile, from: PipeSource<'_>) -> Result<usize>;

    /// poll(2), select(2) and epoll. Returns the events `EPOLL*` that are true now, and tells
    /// `table` which queue is woken when that changes.
    fn poll<'file>(&'file self, table: &PollTable<'file>) -> u32;

    /// ioctl(2), `arg` as the caller gave it. From a 32-bit caller comes what a 64-bit one would
    /// give: whatever `arg` points at must look alike for both.
    ///
    /// # Errors
    ///
    /// As for [`read_iter`](Self::read_iter); `ENOTTY` for a `cmd` that is not known.
    fn ioctl(&self, file: &LocalFile, cmd: u32, arg: usize) -> Result;

    /// The list that gets a signal when there is something to read, if the file can be in one.
    fn fasync(&self) -> Option<&FasyncList>;

    /// Adds lines to `/proc/PID/fdinfo/FD`.
    fn show_fdinfo(&self, seq: &SeqFile);

    /// The last file descriptor and the last mapping are gone. Others may still hold what [`data`]
    /// gave them.
    fn release(&self);
}

/// The table of `T`.
struct FileOperations<T>(PhantomData<T>);

impl<T: Operations> FileOperations<T> {
    /// # Safety
    ///
    /// `inode` and `file` are those of a file of the device that is being opened.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Both are valid by the safety requirements.
        let ret = unsafe { bindings::generic_file_open(inode, file) };
        if ret != 0 {
            return ret;
        }
        match T::open() {
            // SAFETY: Nobody else knows the file yet. What misc_open() left there, the device, is
            // not needed any more.
            Ok(data) => unsafe { (*file).private_data = Arc::into_raw(data).cast_mut().cast() },
            Err(error) => return error.to_errno(),
        }
        0
    }

    /// # Safety
    ///
    /// `file` is an open file of the device, for as long as `'a`.
    unsafe fn data<'a>(file: *mut bindings::file) -> &'a T {
        // SAFETY: open() has set `private_data`, and only release() reads or changes it after that.
        let data = unsafe { (*file).private_data };
        // SAFETY: It is the `T` in the `Arc<T>` of open(), to which the file holds a reference
        // until it is released. That is not before the end of `'a`.
        unsafe { &*data.cast::<T>() }
    }

    /// # Safety
    ///
    /// `kiocb` is valid and its file is an open file of the device; `iter` is valid, and its data
    /// may be written.
    unsafe extern "C" fn read_iter(
        kiocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: Valid by the safety requirements.
        let file = unsafe { (*kiocb).ki_filp };
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        // SAFETY: The VFS passes a destination, which is ours during the call.
        let to = unsafe { IovIterDest::from_raw(iter) };
        match T::read_iter(data, file, to) {
            Ok(len) => len as isize,
            Err(error) => error.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// `kiocb` is valid and its file is an open file of the device; `iter` is valid, and its data
    /// may be read.
    unsafe extern "C" fn write_iter(
        kiocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: Valid by the safety requirements.
        let file = unsafe { (*kiocb).ki_filp };
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        // SAFETY: The VFS passes a source, which is ours during the call.
        let from = unsafe { IovIterSource::from_raw(iter) };
        match T::write_iter(data, file, from) {
            Ok(len) => len as isize,
            Err(error) => error.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// `file` is an open file of the device; `pipe` is valid and locked.
    unsafe extern "C" fn splice_read(
        file: *mut bindings::file,
        _pos: *mut bindings::loff_t,
        pipe: *mut kernel::bindings::pipe_inode_info,
        len: usize,
        _flags: kernel::ffi::c_uint,
    ) -> isize {
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        // SAFETY: The lock makes the pipe ours during the call.
        let pipe = unsafe { &mut *pipe.cast() };
        // SAFETY: By the safety requirements.
        let mut to = unsafe { PipeDest::new(pipe, len) };
        match T::splice_read(data, file, &mut to).and_then(|()| to.commit()) {
            Ok(len) => len as isize,
            Err(error) => error.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// `file` is an open file of the device; `pipe` is valid, and not locked by this task.
    unsafe extern "C" fn splice_write(
        pipe: *mut kernel::bindings::pipe_inode_info,
        file: *mut bindings::file,
        _pos: *mut bindings::loff_t,
        len: usize,
        _flags: kernel::ffi::c_uint,
    ) -> isize {
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        // SAFETY: By the safety requirements; the pipe stays during the call.
        let from = unsafe { PipeSource::new(pipe.cast(), len) };
        match T::splice_write(data, file, from) {
            Ok(len) => len as isize,
            Err(error) => error.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// `file` is an open file of the device; `table` is null or valid.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table,
    ) -> bindings::__poll_t {
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        // SAFETY: The table is valid by the safety requirements. `T::poll` does not know `'file`:
        // what it has for so long it has from `data` by shared references, or it is static. `data`
        // is dropped after the file was released, and is never borrowed mutably before.
        let table = unsafe { PollTable::from_raw(file, table) };
        T::poll(data, &table)
    }

    /// # Safety
    ///
    /// `file` is an open file of the device.
    unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: u32, arg: c_ulong) -> c_long {
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        match T::ioctl(data, file, cmd, arg) {
            Ok(()) => 0,
            Err(error) => error.to_errno() as c_long,
        }
    }

    /// # Safety
    ///
    /// `file` is an open file of the device.
    unsafe extern "C" fn fasync(fd: c_int, file: *mut bindings::file, on: c_int) -> c_int {
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: As above. If fdget_pos() has not locked the position, it was this task that
        // called it.
        let file = unsafe { LocalFile::from_raw_file(file) };
        from_result(|| {
            let list = T::fasync(data).ok_or(EPERM)?;
            list.set(fd, file, on != 0)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `file` is an open file of the device; `seq` is valid and nobody else's.
    unsafe extern "C" fn show_fdinfo(seq: *mut bindings::seq_file, file: *mut bindings::file) {
        // SAFETY: The file stays open during the call.
        let data = unsafe { Self::data(file) };
        // SAFETY: By the safety requirements.
        T::show_fdinfo(data, unsafe { SeqFile::from_raw(seq) });
    }

    /// # Safety
    ///
    /// `file` is a file of the device that is being released.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: open() has set `private_data`.
        let data = unsafe { (*file).private_data };
        // SAFETY: It comes from `Arc::into_raw`, and nobody reads it after this, the last call for
        // the file.
        let data = unsafe { Arc::from_raw(data.cast::<T>()) };
        T::release(&data);
        0
    }

    /// `owner` keeps the module loaded for as long as there is an open file.
    const TABLE: bindings::file_operations = bindings::file_operations {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        open: Some(Self::open),
        read_iter: Some(Self::read_iter),
        write_iter: Some(Self::write_iter),
        splice_read: Some(Self::splice_read),
        splice_write: Some(Self::splice_write),
        poll: Some(Self::poll),
        unlocked_ioctl: Some(Self::ioctl),
        compat_ioctl: bindings::compat_ptr_ioctl,
        fasync: Some(Self::fasync),
        show_fdinfo: Some(Self::show_fdinfo),
        release: Some(Self::release),
        ..pin_init::zeroed()
    };

    const fn table() -> &'static bindings::file_operations {
        &Self::TABLE
    }
}

/// What `file` is, if it is an open file of the device of `T`.
pub fn data<T: Operations>(file: &LocalFile) -> Option<Arc<T>> {
    // If the compiler made two tables of one, the worst is that a file is not known.
    //
    // SAFETY: The file is valid, and the table of an open file does not change.
    let table = unsafe { (*file.as_ptr()).f_op };
    if !core::ptr::eq(table, FileOperations::<T>::table()) {
        return None;
    }
    // SAFETY: With this table, open() has set `private_data`, and it stays for as long as there is
    // a reference to the file.
    let data = unsafe { (*file.as_ptr()).private_data };
    // SAFETY: It comes from `Arc::into_raw`, and the `Arc` exists as the file is not released yet.
    Some(unsafe { ArcBorrow::from_raw(data.cast::<T>()) }.into())
}

/// A registered device, from [`Registration::new`] until it is dropped.
///
/// Drop it only when no new file is wanted. Open files go on.
///
/// # Invariants
///
/// `device` is registered.
#[pin_data(PinnedDrop)]
pub struct Registration<T: Operations> {
    #[pin]
    device: Opaque<bindings::miscdevice>,
    _operations: PhantomData<T>,
}

// SAFETY: misc_deregister() may be called by any thread.
unsafe impl<T: Operations> Send for Registration<T> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<T: Operations> Sync for Registration<T> {}

impl<T: Operations> Registration<T> {
    /// Registers the device `/dev/<name>` with the permissions `mode` and a minor number, by default
    /// one of the kernel's choice. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY`: the minor is taken, or none is free. `EEXIST`: there is a device of that name.
    /// `ENOMEM`.
    pub fn new(name: &'static CStr, minor: Option<u8>, mode: u16) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: Registered, or the initialiser fails.
            device <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                let device = bindings::miscdevice {
                    minor: minor.map_or(bindings::MISC_DYNAMIC_MINOR as c_int, c_int::from),
                    name: name.as_char_ptr(),
                    fops: FileOperations::<T>::table(),
                    mode,
                    ..pin_init::zeroed()
                };
                // SAFETY: The slot is valid for writes.
                unsafe { slot.write(device) };
                // SAFETY: The device is filled in, and stays at its place as it is pinned, until it
                // is dropped, which deregisters it.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
            _operations: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants the device is registered.
        unsafe { bindings::misc_deregister(self.device.get()) };
    }
}
