// SPDX-License-Identifier: GPL-2.0

//! Memory of a process that a read fills past the page cache, pinned and described by runs of
//! folios: it is written to from any context, whatever becomes of the process.
//!
//! C header: [`include/linux/uio.h`](srctree/include/linux/uio.h)

use crate::iov::is_user_dest;
use fuse_bindings as bindings;
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// Takes memory out of an iterator in pieces.
pub struct Extractor<'a, 'data> {
    to: &'a mut IovIterDest<'data>,
    /// Bytes that the iterator was moved on by.
    taken: usize,
}

impl<'a, 'data> Extractor<'a, 'data> {
    /// [`None`] if it is memory of the kernel, which lives no longer than its user wants.
    pub fn new(to: &'a mut IovIterDest<'data>) -> Option<Self> {
        is_user_dest(to).then_some(Self { to, taken: 0 })
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.to.len()
    }

    /// Pins the next bytes, `max` or fewer. May sleep, and run into handlers of the process itself:
    /// hold no lock.
    ///
    /// # Errors
    ///
    /// `EFAULT`: not even the first byte can be written to. `ENOMEM`.
    pub fn extract(&mut self, max: usize) -> Result<UserMemory> {
        let max = max.min(self.left());
        // A piece that is not aligned is on one page more than it fills.
        let pages = u16::try_from(max / PAGE_SIZE + 2).unwrap_or(u16::MAX);
        let mut memory = UserMemory {
            runs: KVVec::with_capacity(pages.into(), GFP_KERNEL)?,
            len: 0,
        };
        while memory.len < max && memory.runs.len() < pages.into() {
            let old = memory.runs.len();
            let mut count = old as u16;
            // SAFETY: The iterator is valid; there is room for `pages` runs, of which `count` are
            // initialised.
            let n = unsafe {
                bindings::iov_iter_extract_bvecs(
                    self.to.as_raw(),
                    memory.runs.as_mut_ptr(),
                    max.saturating_sub(memory.len),
                    &mut count,
                    pages,
                    0,
                    0,
                )
            };
            let Ok(n) = usize::try_from(n) else {
                if memory.len == 0 {
                    // An error is a small negative number.
                    return Err(Error::from_errno(n as i32));
                }
                break;
            };
            // INVARIANT: `new - old` more runs were initialised, with `n` bytes that are pinned, as
            // the iterator is memory of a process.
            //
            // SAFETY: As above; the capacity is `pages`.
            unsafe { memory.runs.inc_len(usize::from(count).saturating_sub(old)) };
            for run in memory.runs.get(old..).unwrap_or_default() {
                // Now, when the process itself may wait for its page, rather than when the read
                // ends in another.
                //
                // SAFETY: By the type invariant.
                unsafe { bindings::bvec_set_dirty(run) };
            }
            memory.len = memory.len.saturating_add(n);
            self.taken = self.taken.saturating_add(n);
            if n == 0 {
                break;
            }
        }
        Ok(memory)
    }

    /// Only the first `used` of the bytes taken were read to: the iterator goes on behind them.
    pub fn finish(self, used: usize) {
        let unused = self.taken.saturating_sub(used);
        // SAFETY: The iterator was moved on by at least as many bytes.
        unsafe { self.to.revert(unused) };
    }
}

/// Memory of a process that is to be written to. Dropping it unpins the memory; that may sleep, if
/// the memory is a file's that was written back meanwhile.
///
/// # Invariants
///
/// Each run lies in one folio, and its pages are pinned by this object. The runs have `len` bytes
/// together.
pub struct UserMemory {
    runs: KVVec<bindings::bio_vec>,
    len: usize,
}

// SAFETY: Pinned pages may be written to, and unpinned, by any thread.
unsafe impl Send for UserMemory {}
// SAFETY: Shared references give out the length alone.
unsafe impl Sync for UserMemory {}

impl UserMemory {
    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies to the memory, from byte `at` on, page faults disabled: it never sleeps.
    ///
    /// Returns the bytes copied, by which `from` moved on; fewer than there are room for mean that
    /// the next bytes of `from` are not present, or that it is at its end.
    pub fn copy_from_iter_nofault(&mut self, at: usize, from: &mut IovIterSource<'_>) -> usize {
        let mut start = 0usize;
        let mut copied = 0usize;
        for run in self.runs.iter() {
            let len = run.bv_len as usize;
            let end = start.saturating_add(len);
            let now = at.saturating_add(copied);
            if now < end {
                // SAFETY: By the type invariant; the rest of the run is what is asked for.
                let n = unsafe {
                    bindings::copy_bvec_from_iter_nofault(
                        run,
                        now.wrapping_sub(start),
                        from.as_raw(),
                    )
                };
                copied = copied.saturating_add(n);
                if now.saturating_add(n) < end {
                    break;
                }
            }
            start = end;
        }
        copied
    }
}

impl Drop for UserMemory {
    fn drop(&mut self) {
        for run in self.runs.iter() {
            // SAFETY: By the type invariant the run is pinned, and this is its end.
            unsafe { bindings::bvec_unpin_dirty(run) };
        }
    }
}
