// SPDX-License-Identifier: GPL-2.0

//! What [`kernel::iov`] lacks: copies of user memory that must not fault are made in two steps,
//! faulting in and copying.
//!
//! C header: [`include/linux/uio.h`](srctree/include/linux/uio.h)

use fuse_bindings as bindings;
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*, //
};

/// Whether `to` is memory of a process, not of the kernel.
pub fn is_user_dest(to: &mut IovIterDest<'_>) -> bool {
    // SAFETY: A reference to an iterator is a valid pointer to one.
    unsafe { bindings::user_backed_iter(to.as_raw()) }
}

/// Whether `from` is memory of a process, not of the kernel.
pub fn is_user_source(from: &mut IovIterSource<'_>) -> bool {
    // SAFETY: A reference to an iterator is a valid pointer to one.
    unsafe { bindings::user_backed_iter(from.as_raw()) }
}

/// Makes the pages of the next `len` bytes of `to` present and writable, as far as it gets. As
/// [`fault_in_readable`] otherwise.
///
/// # Errors
///
/// `EFAULT`: not even the first byte can be written.
pub fn fault_in_writeable(to: &mut IovIterDest<'_>, len: usize) -> Result {
    // SAFETY: A reference to an iterator is a valid pointer to one.
    let missing = unsafe { bindings::fault_in_iov_iter_writeable(to.as_raw(), len) };
    if len != 0 && missing == len {
        return Err(EFAULT);
    }
    Ok(())
}

/// Makes the pages of the next `len` bytes of `from` present, as far as it gets, so that a copy
/// with page faults disabled can read them. They may be gone again before it does. Sleeps; may run
/// into handlers of the process itself (userfaultfd, a mapping of any filesystem), so hold no lock.
///
/// # Errors
///
/// `EFAULT`: not even the first byte can be read.
pub fn fault_in_readable(from: &mut IovIterSource<'_>, len: usize) -> Result {
    // SAFETY: A reference to an iterator is a valid pointer to one.
    let missing = unsafe { bindings::fault_in_iov_iter_readable(from.as_raw(), len) };
    if len != 0 && missing == len {
        return Err(EFAULT);
    }
    Ok(())
}
