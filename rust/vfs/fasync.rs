// SPDX-License-Identifier: GPL-2.0

//! Signals to those who set `O_ASYNC` on an open file.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use core::ptr::null_mut;
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    fs::LocalFile,
    prelude::*,
    types::Opaque, //
};

/// The open files whose owners want a signal, wrapping the head of a list of `struct fasync_struct`.
///
/// # Invariants
///
/// The list is valid. Each of its files has called `fasync` of its table to get into it; the VFS
/// calls that again, to take the file out, before it releases the file.
pub struct FasyncList(Opaque<*mut bindings::fasync_struct>);

// SAFETY: The list has locks of its own.
unsafe impl Send for FasyncList {}
// SAFETY: As above.
unsafe impl Sync for FasyncList {}

impl FasyncList {
    /// An empty list.
    pub const fn new() -> Self {
        // INVARIANT: No files.
        Self(Opaque::new(null_mut()))
    }

    /// Adds `file` to the list, or takes it out. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn set(&self, fd: c_int, file: &LocalFile, on: bool) -> Result {
        let on = c_int::from(on);
        // SAFETY: By the type invariants the list is valid, and so is the file.
        to_result(unsafe { bindings::fasync_helper(fd, file.as_ptr(), on, self.0.get()) })
    }

    /// Sends `SIGIO`, or what the owners want instead of it: there is something to read. Any
    /// context.
    pub fn readable(&self) {
        // SAFETY: By the type invariants the list is valid. Its members are freed after a grace
        // period.
        unsafe {
            bindings::kill_fasync(
                self.0.get(),
                bindings::SIGIO as c_int,
                bindings::POLL_IN as c_int,
            )
        };
    }
}

impl Default for FasyncList {
    fn default() -> Self {
        Self::new()
    }
}
