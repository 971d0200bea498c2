// SPDX-License-Identifier: GPL-2.0

//! Folios of the page cache.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h)

use core::ptr::NonNull;
use fuse_bindings as bindings;
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

/// A folio, wrapping `struct folio`: a power of two of pages that the page cache handles as one.
///
/// Its bytes can be copied from and to, never borrowed: user space may have them mapped.
#[repr(transparent)]
pub struct Folio(Opaque<bindings::folio>);

// SAFETY: Folios are shared between threads; the methods only copy, and read what is fixed while
// referenced.
unsafe impl Send for Folio {}
// SAFETY: As above.
unsafe impl Sync for Folio {}

// SAFETY: `folio_get` and `folio_put` count references.
unsafe impl AlwaysRefCounted for Folio {
    fn inc_ref(&self) {
        // SAFETY: A shared reference means that the folio is referenced already.
        unsafe { bindings::folio_get(self.as_ptr()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference, which passes to `folio_put`.
        unsafe { bindings::folio_put(obj.cast().as_ptr()) };
    }
}

impl Folio {
    /// Borrows a folio.
    ///
    /// # Safety
    ///
    /// `ptr` must be a folio that stays referenced during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::folio) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::folio {
        self.0.get()
    }

    /// The size in bytes.
    pub fn size(&self) -> usize {
        // SAFETY: The folio is referenced, so its size does not change.
        unsafe { bindings::folio_size(self.as_ptr()) }
    }

    /// The place in the file, in bytes. The folio is locked, so that it keeps its place.
    pub(crate) fn pos(&self) -> i64 {
        // SAFETY: The folio is referenced.
        unsafe { bindings::folio_pos(self.as_ptr()) }
    }

    /// Copies up to `len` bytes of user memory to `offset`, page faults disabled: it never sleeps
    /// for user memory.
    ///
    /// Returns the bytes copied, by which `from` moved on; fewer than asked for mean that the next
    /// ones of user memory are not present, or that `from` is at its end.
    pub(crate) fn copy_from_iter_nofault(
        &self,
        offset: usize,
        len: usize,
        from: &mut IovIterSource<'_>,
    ) -> usize {
        let len = self.clamp(offset, len);
        // SAFETY: The range is within the folio, which is referenced.
        unsafe { bindings::copy_folio_iter_nofault(self.as_ptr(), offset, len, from.as_raw()) }
    }

    /// Zeroes up to `len` bytes at `offset`.
    pub(crate) fn zero_range(&self, offset: usize, len: usize) {
        let len = self.clamp(offset, len);
        // SAFETY: The range is within the folio, which is referenced.
        unsafe { bindings::folio_zero_range(self.as_ptr(), offset, len) };
    }

    /// The part of `len` that lies within the folio.
    fn clamp(&self, offset: usize, len: usize) -> usize {
        len.min(self.size().saturating_sub(offset))
    }
}

/// Bytes of a folio, for somebody who reads them.
///
/// The reference keeps the memory, not the bytes: they change under the reader unless somebody else
/// keeps them from it.
///
/// # Invariants
///
/// `offset + len` is at most the folio's size, and `len` is not 0.
pub struct FolioRange {
    folio: ARef<Folio>,
    offset: usize,
    len: usize,
}

impl FolioRange {
    /// The `len` bytes at `offset`; [`None`] if there are none, or not all of them are within the
    /// folio.
    pub fn new(folio: ARef<Folio>, offset: usize, len: usize) -> Option<Self> {
        if len == 0 || offset.checked_add(len)? > folio.size() {
            return None;
        }
        // INVARIANT: Checked.
        Some(Self { folio, offset, len })
    }

    /// The length in bytes, not 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn folio(&self) -> &ARef<Folio> {
        &self.folio
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Copies what is from `at` on to user memory, as far as that is present; never sleeps for it.
    ///
    /// Returns the bytes copied, by which `to` moved on.
    pub fn copy_to_iter_nofault(&self, at: usize, to: &mut IovIterDest<'_>) -> usize {
        let len = self.len.saturating_sub(at);
        let offset = self.offset.saturating_add(at);
        // SAFETY: By the type invariants the bytes are within the folio, or there are none.
        unsafe { bindings::copy_folio_iter_nofault(self.folio.as_ptr(), offset, len, to.as_raw()) }
    }

    /// Copies what is from `at` on to `to`, as much as there is room for. Returns the bytes copied.
    pub(crate) fn read(&self, at: usize, to: &mut [u8]) -> usize {
        let len = self.len.saturating_sub(at).min(to.len());
        let offset = self.offset.saturating_add(at);
        let to = to.as_mut_ptr();
        // SAFETY: By the type invariants the bytes are within the folio, or there are none, and
        // there is room for them.
        unsafe { bindings::memcpy_from_folio(to, self.folio.as_ptr(), offset, len) };
        len
    }
}

/// The largest order of folios that the page cache can hold.
pub fn max_pagecache_order() -> u32 {
    // SAFETY: A constant of the configuration.
    unsafe { bindings::max_pagecache_order() }
}
