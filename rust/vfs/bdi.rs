// SPDX-License-Identifier: GPL-2.0

//! What the page cache knows of the device or server behind a superblock.
//!
//! C headers: [`include/linux/backing-dev.h`](srctree/include/linux/backing-dev.h),
//! [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use core::ptr::{addr_of_mut, NonNull};
use fuse_bindings as bindings;
use kernel::{sync::aref::AlwaysRefCounted, types::Opaque};

/// A backing device, wrapping `struct backing_dev_info`. It may be held longer than its superblock.
///
/// # Invariants
///
/// The structure is reference-counted, and has a reference as long as it is borrowed.
#[repr(transparent)]
pub struct Bdi(Opaque<bindings::backing_dev_info>);

// SAFETY: References can be dropped on any thread.
unsafe impl Send for Bdi {}
// SAFETY: The methods access single fields, whole.
unsafe impl Sync for Bdi {}

// SAFETY: `bdi_get` and `bdi_put` count references.
unsafe impl AlwaysRefCounted for Bdi {
    fn inc_ref(&self) {
        // SAFETY: By the type invariant there is a reference already.
        unsafe { bindings::bdi_get(self.0.get()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference, which passes to `bdi_put`.
        unsafe { bindings::bdi_put(obj.cast().as_ptr()) };
    }
}

impl Bdi {
    /// Borrows a backing device.
    ///
    /// # Safety
    ///
    /// `ptr` must be valid, and keep a reference during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::backing_dev_info) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    /// Sets how many pages are read ahead at most. Holds for files that are opened from now on.
    pub fn set_ra_pages(&self, pages: usize) {
        // SAFETY: By the type invariant; readers take the field as it is at the moment.
        unsafe { addr_of_mut!((*self.0.get()).ra_pages).write_volatile(pages) };
    }

    /// Sets how many pages one request can have: a read of so many is not cut to the readahead
    /// window.
    pub fn set_io_pages(&self, pages: usize) {
        // SAFETY: As above.
        unsafe { addr_of_mut!((*self.0.get()).io_pages).write_volatile(pages) };
    }
}
