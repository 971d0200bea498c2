// SPDX-License-Identifier: GPL-2.0

//! What of a page cache is at which place of the file.
//!
//! C header: [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h)

use crate::{
    address_space::AddressSpace,
    folio::Folio,
    FileSystem, //
};
use core::ptr::NonNull;
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    page::PAGE_SHIFT,
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

impl Folio {
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
