// SPDX-License-Identifier: GPL-2.0

//! Reads and writes in progress.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h) (`struct kiocb`)

use crate::{
    file::File,
    FileSystem, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use fuse_bindings as bindings;
use kernel::{
    iov::IovIterDest,
    prelude::*, //
};

/// A read or write in progress, wrapping `struct kiocb`.
pub struct Kiocb<'a, T: FileSystem>(&'a mut bindings::kiocb, PhantomData<fn() -> T>);

/// What an operation that was given a [`Kiocb`] returns: it can only be had for one. Bytes, or a
/// negative errno.
pub struct Transferred<'a>(isize, PhantomData<&'a mut ()>);

impl Transferred<'_> {
    pub(crate) fn into_raw(self) -> isize {
        self.0
    }
}

impl<'a, T: FileSystem> Kiocb<'a, T> {
    /// Borrows a read or write.
    ///
    /// # Safety
    ///
    /// `ptr` must be for an open file of `T`, and nobody else's during `'a`.
    pub(crate) unsafe fn from_raw(ptr: *mut bindings::kiocb) -> Self {
        // SAFETY: By the function's contract.
        Self(unsafe { &mut *ptr }, PhantomData)
    }

    /// The file.
    pub fn file(&self) -> &File<T> {
        // SAFETY: The file of a read or write of the filesystem is open during it.
        unsafe { File::from_raw(self.0.ki_filp) }
    }

    /// The position in bytes.
    pub fn pos(&self) -> i64 {
        self.0.ki_pos
    }

    /// Moves the position on by `bytes`.
    pub fn advance(&mut self, bytes: usize) {
        // The position stays below the largest file size, which fits.
        self.0.ki_pos = self.0.ki_pos.saturating_add(bytes as i64);
    }

    /// Whether the caller waits for the end of it (`is_sync_kiocb`).
    fn is_sync(&self) -> bool {
        self.0.ki_complete.is_none()
    }

    /// It is over.
    pub fn done(self, result: Result<usize>) -> Transferred<'a> {
        Transferred(raw(result), PhantomData)
    }

    /// Reads from the page cache, which is filled as needed; with `O_DIRECT` past it, by
    /// [`direct_read`](crate::iomap::ReadOps::direct_read). May sleep.
    pub fn generic_read(self, iov: &mut IovIterDest<'_>) -> Transferred<'a> {
        // SAFETY: Both are valid.
        let ret = unsafe { bindings::generic_file_read_iter(self.0, iov.as_raw()) };
        Transferred(ret, PhantomData)
    }

    /// What comes first of the two tells the caller the end, later.
    ///
    /// # Errors
    ///
    /// The caller waits: `self` comes back.
    pub fn queue(self) -> Result<(Queued, Transferred<'a>), Self> {
        if self.is_sync() {
            return Err(self);
        }
        // INVARIANT: `self` is gone, and the operation can return nothing but EIOCBQUEUED for it.
        Ok((
            Queued(NonNull::from(self.0)),
            Transferred(EIOCBQUEUED.to_errno() as isize, PhantomData),
        ))
    }
}

/// Bytes, or a negative errno.
fn raw(result: Result<usize>) -> isize {
    match result {
        // No transfer is larger than MAX_RW_COUNT.
        Ok(n) => n as isize,
        Err(err) => err.to_errno() as isize,
    }
}

/// A read or write whose end the caller will be told. Dropping it says that it has failed.
///
/// # Invariants
///
/// The operation returns `-EIOCBQUEUED`, and the caller was told nothing else.
pub struct Queued(NonNull<bindings::kiocb>);

// SAFETY: Any thread may tell the end.
unsafe impl Send for Queued {}

impl Queued {
    /// It is over. Process context; no locks held.
    pub fn complete(self, result: Result<usize>) {
        ManuallyDrop::new(self).end(result);
    }

    /// Must be called once, as the last use.
    fn end(&mut self, result: Result<usize>) {
        let kiocb = self.0.as_ptr();
        if let Ok(bytes) = result {
            // SAFETY: By the type invariant the caller keeps it, and leaves it to this object.
            let pos = unsafe { &mut (*kiocb).ki_pos };
            *pos = pos.saturating_add(bytes as i64);
        }
        // SAFETY: As above; the caller does not change the field.
        if let Some(complete) = unsafe { (*kiocb).ki_complete } {
            // SAFETY: As above, and this is the last use.
            unsafe { complete(kiocb, raw(result)) };
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.end(Err(EIO));
    }
}
