// SPDX-License-Identifier: GPL-2.0

//! Locks of files.
//!
//! C header: [`include/linux/filelock.h`](srctree/include/linux/filelock.h)

use fuse_bindings as bindings;

/// Whom a lock belongs to: the open files of a process, or one open file. Wraps `fl_owner_t`.
///
/// The number is an address of the kernel: not for anyone outside.
#[derive(Clone, Copy)]
pub struct LockOwner(bindings::fl_owner_t);

impl LockOwner {
    pub(crate) fn from_raw(owner: bindings::fl_owner_t) -> Self {
        Self(owner)
    }

    /// The open files of the caller.
    pub fn current() -> Self {
        // SAFETY: There are no requirements.
        Self(unsafe { bindings::current_files() })
    }

    /// The number.
    pub fn addr(self) -> u64 {
        self.0 as u64
    }
}
