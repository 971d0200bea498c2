// SPDX-License-Identifier: GPL-2.0

//! What of a page cache is at which place of the file.
//!
//! C header: [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h)

use crate::{
    address_space::AddressSpace,
    folio::{
        Folio,
        FolioRange, //
    },
    FileSystem, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use fuse_bindings as bindings;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    iov::IovIterSource,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::aref::ARef, //
};

/// Some folios of a page cache, in the order of the file, referenced.
///
/// # Invariants
///
/// The batch owns a reference to each of its folios that [`next`](Iterator::next) has not given
/// out.
struct Batch(bindings::folio_batch);

impl Batch {
    /// The folios from page `*start` to page `last`, as many as fit into a batch; moves `start` on
    /// behind them. Empty if there are no more.
    fn find<T: FileSystem>(mapping: &AddressSpace<T>, start: &mut usize, last: usize) -> Self {
        let mut batch = pin_init::zeroed();
        // SAFETY: The mapping is valid, and the batch is empty.
        unsafe { bindings::filemap_get_folios(mapping.as_ptr(), start, last, &mut batch) };
        Self(batch)
    }

    fn is_empty(&self) -> bool {
        self.0.i >= self.0.nr
    }
}

impl Iterator for Batch {
    type Item = ARef<Folio>;

    fn next(&mut self) -> Option<ARef<Folio>> {
        if self.is_empty() {
            return None;
        }
        let folio = *self.0.folios.get(usize::from(self.0.i))?;
        self.0.i = self.0.i.saturating_add(1);
        // SAFETY: By the type invariant the reference is the batch's, which does not give out this
        // folio again.
        NonNull::new(folio).map(|folio| unsafe { ARef::from_raw(folio.cast()) })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<T: FileSystem> AddressSpace<T> {
    /// Drops the folios that have any of the bytes `first` to `last` of the file, also those that
    /// are mapped; dirty ones are written back first. Sleeps until they are read and written.
    ///
    /// Folios that can't be dropped, as somebody is using them, stay.
    ///
    /// # Errors
    ///
    /// `EINTR`: a fatal signal came while a folio was locked or under writeback; those before it
    /// are dropped.
    pub fn invalidate_range_killable(&self, first: u64, last: u64) -> Result {
        let last = (last >> PAGE_SHIFT) as usize;
        let mut next = (first >> PAGE_SHIFT) as usize;
        loop {
            let start = next;
            let batch = Batch::find(self, &mut next, last);
            if batch.is_empty() {
                return Ok(());
            }
            // The call below waits, too, but not killably: let it find nothing to wait for.
            for folio in batch {
                folio.wait_idle_killable()?;
            }
            // `next` is behind the folios of the batch.
            //
            // SAFETY: The mapping is valid. What could not be dropped is told by the result.
            let _ = unsafe {
                bindings::invalidate_inode_pages2_range(
                    self.as_ptr(),
                    start,
                    next.saturating_sub(1).min(last),
                )
            };
        }
    }
}

impl<T: FileSystem> AddressSpace<T> {
    /// Finds the folio that has the byte `pos` of the file, or makes one, and locks it. A new one
    /// has only bytes of the `len` from `pos` on, unless these are no whole page. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`. `EINTR`: a fatal signal came first.
    pub fn lock_folio_killable(&self, pos: u64, len: usize) -> Result<LockedFolio<'_, T>> {
        let index = (pos >> PAGE_SHIFT) as usize;
        let pages = if pos % PAGE_SIZE as u64 == 0 {
            (len >> PAGE_SHIFT).max(1)
        } else {
            1
        };
        // Without a lock, as that would be taken whatever signals come.
        //
        // SAFETY: A calculation.
        let flags = unsafe { bindings::fgf_set_order(pages << PAGE_SHIFT) }
            | bindings::FGP_ACCESSED
            | bindings::FGP_CREAT
            | bindings::FGP_FOR_MMAP;
        // SAFETY: The mapping is valid.
        let gfp = unsafe { bindings::mapping_gfp_mask(self.as_ptr()) };
        loop {
            // SAFETY: The mapping is valid.
            let folio = from_err_ptr(unsafe {
                bindings::__filemap_get_folio(self.as_ptr(), index, flags, gfp)
            })?;
            let folio = NonNull::new(folio).ok_or(ENOMEM)?;
            // SAFETY: The reference is ours.
            let folio: ARef<Folio> = unsafe { ARef::from_raw(folio.cast()) };
            // SAFETY: The folio is referenced.
            to_result(unsafe { bindings::folio_lock_killable(folio.as_ptr()) })?;
            // INVARIANT: Just locked; used as in the mapping only if it is.
            let locked = LockedFolio {
                folio,
                _mapping: PhantomData,
            };
            // SAFETY: The folio is locked.
            if unsafe { bindings::folio_mapping(locked.folio.as_ptr()) } == self.as_ptr() {
                return Ok(locked);
            }
        }
    }

    /// The bytes of the file from `pos` on, `len` at most, as far as they are cached and valid and
    /// are in `pages` pages at most. Does not sleep, except for memory.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn cached_ranges(&self, pos: u64, len: usize, pages: usize) -> Result<KVec<FolioRange>> {
        let mut ranges = KVec::new();
        // Where the page of `pos` starts, the pages end.
        let limit = (pos & !(PAGE_SIZE as u64 - 1)).saturating_add((pages as u64) << PAGE_SHIFT);
        let end = pos.saturating_add(len as u64).min(limit);
        let mut pos = pos;
        while pos < end {
            let index = (pos >> PAGE_SHIFT) as usize;
            // SAFETY: The mapping is valid.
            let folio = unsafe { bindings::__filemap_get_folio(self.as_ptr(), index, 0, 0) };
            let Some(folio) = from_err_ptr(folio).ok().and_then(NonNull::new) else {
                break;
            };
            // SAFETY: The reference is ours.
            let folio: ARef<Folio> = unsafe { ARef::from_raw(folio.cast()) };
            if !folio.is_uptodate() {
                break;
            }
            // The reference keeps the folio from being split, and thus its place.
            let offset = pos.saturating_sub(folio.pos() as u64) as usize;
            let len = folio.size().saturating_sub(offset);
            let len = len.min(end.saturating_sub(pos) as usize);
            let Some(range) = FolioRange::new(folio, offset, len) else {
                break;
            };
            ranges.push(range, GFP_KERNEL)?;
            pos = pos.saturating_add(len as u64);
        }
        Ok(ranges)
    }
}

/// A locked folio of a page cache, which thereby stays in it.
///
/// # Invariants
///
/// `folio` is locked.
pub struct LockedFolio<'a, T: FileSystem> {
    folio: ARef<Folio>,
    _mapping: PhantomData<&'a AddressSpace<T>>,
}

impl<T: FileSystem> LockedFolio<'_, T> {
    /// The place in the file, in bytes.
    pub fn pos(&self) -> u64 {
        self.folio.pos() as u64
    }

    /// The size in bytes.
    pub fn size(&self) -> usize {
        self.folio.size()
    }

    /// Whether all bytes are valid.
    pub fn is_uptodate(&self) -> bool {
        self.folio.is_uptodate()
    }

    /// Copies up to `len` bytes of user memory to `offset`, as far as it is present; never sleeps
    /// for it. Returns the bytes copied, by which `from` moved on.
    pub fn copy_from_iter_nofault(
        &mut self,
        offset: usize,
        len: usize,
        from: &mut IovIterSource<'_>,
    ) -> usize {
        self.folio.copy_from_iter_nofault(offset, len, from)
    }

    /// Fills a folio that is not valid: by `len` bytes of user memory, then zeros. Does nothing
    /// unless all that memory is present; never sleeps for it. Returns whether it did.
    pub fn fill_from_iter_nofault(&mut self, len: usize, from: &mut IovIterSource<'_>) -> bool {
        let copied = self.folio.copy_from_iter_nofault(0, len, from);
        if copied < len {
            // SAFETY: By so much it has just moved on.
            unsafe { from.revert(copied) };
            return false;
        }
        self.folio
            .zero_range(len, self.folio.size().saturating_sub(len));
        // SAFETY: The folio is locked, and all its bytes were written.
        unsafe { bindings::iomap_folio_mark_uptodate(self.folio.as_ptr()) };
        true
    }
}

impl<T: FileSystem> Drop for LockedFolio<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::folio_unlock(self.folio.as_ptr()) };
    }
}

impl Folio {
    /// Whether all bytes are valid.
    fn is_uptodate(&self) -> bool {
        // SAFETY: The folio is referenced.
        unsafe { bindings::folio_test_uptodate(self.as_ptr()) }
    }

    /// Waits until the folio is neither locked nor under writeback. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR`: a fatal signal came first.
    fn wait_idle_killable(&self) -> Result {
        // SAFETY: The folio is referenced.
        to_result(unsafe { bindings::folio_lock_killable(self.as_ptr()) })?;
        // SAFETY: It was just locked.
        unsafe { bindings::folio_unlock(self.as_ptr()) };
        // SAFETY: The folio is referenced.
        to_result(unsafe { bindings::folio_wait_writeback_killable(self.as_ptr()) })
    }
}
