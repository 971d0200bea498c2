// SPDX-License-Identifier: GPL-2.0

//! Pipes that data is spliced into and out of.
//!
//! C headers: [`include/linux/splice.h`](srctree/include/linux/splice.h),
//! [`include/linux/pipe_fs_i.h`](srctree/include/linux/pipe_fs_i.h)

use crate::folio::{
    Folio,
    FolioRange, //
};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    iov::IovIterSource,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::aref::ARef,
    types::Opaque, //
};

/// Bytes that are copied at a time from a folio to a page.
const BOUNCE: usize = 512;

/// What one buffer of the pipe will hold: `len` bytes at `offset`.
struct Buf {
    memory: Memory,
    offset: usize,
    len: usize,
}

enum Memory {
    /// Filled from its start.
    Own(Page),
    /// As it is, and with what others change in it.
    Shared(ARef<Folio>),
}

/// What goes into a pipe by one splice(2): pages of its own, filled with copies, and references to
/// folios.
///
/// Nothing is in the pipe before [`commit`](Self::commit).
///
/// # Invariants
///
/// `pipe` is locked, and has `free` free buffers, which are enough for `room` bytes in whole pages.
/// `bufs` are at most so many, and hold `len` bytes, at most `room`.
pub struct PipeDest<'a> {
    pipe: &'a mut bindings::pipe_inode_info,
    free: usize,
    room: usize,
    len: usize,
    bufs: KVVec<Buf>,
}

impl<'a> PipeDest<'a> {
    /// At most `len` bytes for `pipe`.
    ///
    /// # Safety
    ///
    /// The pipe must be locked during `'a`.
    pub(crate) unsafe fn new(pipe: &'a mut bindings::pipe_inode_info, len: usize) -> Self {
        // SAFETY: The pipe is locked, so its ends do not move.
        let used = unsafe { bindings::pipe_buf_usage(pipe) };
        let free = pipe.max_usage.saturating_sub(used) as usize;
        // INVARIANT: As many bytes as fit in the free buffers, and nothing in them yet.
        Self {
            room: len.min(free.saturating_mul(PAGE_SIZE)),
            free,
            len: 0,
            bufs: KVVec::new(),
            pipe,
        }
    }

    /// Bytes that may still be added.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.len)
    }

    /// Adds a copy of `bytes`. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOSPC`: there is not so much room. `ENOMEM`.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result {
        if bytes.len() > self.room() {
            return Err(ENOSPC);
        }
        while !bytes.is_empty() {
            let (page, filled) = self.own_page()?;
            let n = bytes.len().min(PAGE_SIZE.saturating_sub(*filled));
            // SAFETY: The source has at least `n` bytes, and the page is nobody else's yet.
            unsafe { page.write_raw(bytes.as_ptr(), *filled, n) }?;
            *filled = filled.saturating_add(n);
            self.len = self.len.saturating_add(n);
            bytes = bytes.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// A page with room that bytes may be added to, and how many it has.
    fn own_page(&mut self) -> Result<(&mut Page, &mut usize)> {
        let has_room = self
            .bufs
            .last()
            .is_some_and(|last| matches!(last.memory, Memory::Own(_)) && last.len < PAGE_SIZE);
        if !has_room {
            if self.bufs.len() >= self.free {
                return Err(ENOSPC);
            }
            let buf = Buf {
                memory: Memory::Own(Page::alloc_page(GFP_KERNEL)?),
                offset: 0,
                len: 0,
            };
            self.bufs.push(buf, GFP_KERNEL)?;
        }
        match self.bufs.last_mut() {
            Some(Buf {
                memory: Memory::Own(page),
                len,
                ..
            }) => Ok((page, len)),
            _ => Err(ENOMEM),
        }
    }

    /// Adds the bytes of folios, not copied if there are buffers enough, one for each range: who
    /// reads the pipe gets what is in them then. May sleep.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put).
    pub fn put_folios(&mut self, ranges: &[FolioRange]) -> Result {
        if ranges.len() > self.free.saturating_sub(self.bufs.len()) {
            return ranges.iter().try_for_each(|range| self.put_copy(range));
        }
        for range in ranges {
            if range.len() > self.room() {
                return Err(ENOSPC);
            }
            let buf = Buf {
                memory: Memory::Shared(range.folio().clone()),
                offset: range.offset(),
                len: range.len(),
            };
            self.bufs.push(buf, GFP_KERNEL)?;
            self.len = self.len.saturating_add(range.len());
        }
        Ok(())
    }

    fn put_copy(&mut self, range: &FolioRange) -> Result {
        let mut bytes = [0; BOUNCE];
        let mut at = 0usize;
        while at < range.len() {
            let n = range.read(at, &mut bytes);
            self.put(bytes.get(..n).unwrap_or_default())?;
            at = at.saturating_add(n);
        }
        Ok(())
    }

    /// Moves all into the pipe; returns the bytes.
    ///
    /// # Errors
    ///
    /// `EPIPE`: nobody reads the pipe any more; the caller gets `SIGPIPE`.
    pub(crate) fn commit(self) -> Result<usize> {
        for Buf {
            memory,
            offset,
            len,
        } in self.bufs
        {
            let mut buf = bindings::pipe_buffer {
                // The reference goes to the pipe.
                page: match memory {
                    Memory::Own(page) => ManuallyDrop::new(page).as_ptr(),
                    // A folio is its first page; those that follow lie behind it.
                    Memory::Shared(folio) => ARef::into_raw(folio).cast().as_ptr(),
                },
                offset: offset as u32,
                len: len as u32,
                // Its release drops the reference.
                ops: &raw const bindings::nosteal_pipe_buf_ops,
                ..pin_init::zeroed()
            };
            // SAFETY: The pipe is locked. The buffer is taken over, or released.
            let ret = unsafe { bindings::add_to_pipe(self.pipe, &mut buf) };
            // By the type invariants there is a free buffer.
            if ret < 0 {
                return Err(Error::from_errno(ret as i32));
            }
        }
        Ok(self.len)
    }
}

/// A pipe that so many bytes of are spliced out of by one splice(2).
///
/// # Invariants
///
/// `pipe` is valid during `'a`, and not locked by this task.
pub struct PipeSource<'a> {
    pipe: *mut bindings::pipe_inode_info,
    len: usize,
    _pipe: PhantomData<&'a ()>,
}

impl PipeSource<'_> {
    /// The first `len` bytes of `pipe`.
    ///
    /// # Safety
    ///
    /// The pipe must be valid during `'a`, and not locked by this task.
    pub(crate) unsafe fn new(pipe: *mut bindings::pipe_inode_info, len: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            pipe,
            len,
            _pipe: PhantomData,
        }
    }

    /// Takes the bytes out of the pipe, and has `read` read them. They are where whoever filled the
    /// pipe has put them, and may change underneath, but reading them never faults. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: there are not so many in the pipe; they stay there. After any other error they are
    /// lost: `EFAULT`, `EIO`, `ENODATA` if a page can't be read, and those of `read`.
    pub fn take<R>(self, read: impl FnOnce(&mut IovIterSource<'_>) -> Result<R>) -> Result<R> {
        // INVARIANT: By the type invariants, and nothing is taken yet.
        let mut taken = Taken {
            source: &self,
            bufs: KVVec::new(),
            segments: KVVec::new(),
        };
        taken.fill(self.len)?;
        taken.confirm()?;

        let iter = Opaque::<bindings::iov_iter>::uninit();
        // SAFETY: `iter` is valid for writes. The segments hold the bytes, in pages to which the
        // buffers have references; neither changes before `taken` is dropped.
        unsafe {
            bindings::iov_iter_bvec(
                iter.get(),
                bindings::ITER_SOURCE,
                taken.segments.as_ptr(),
                taken.segments.len(),
                self.len,
            )
        };
        // SAFETY: Initialised, and nobody else's.
        read(unsafe { IovIterSource::from_raw(iter.get()) })
    }
}

/// Buffers that were taken out of a pipe.
///
/// # Invariants
///
/// `bufs` were taken out of the pipe, or share a page with one that is in it still, and are released
/// by nobody else. `segments` are what they hold, in order.
struct Taken<'a> {
    source: &'a PipeSource<'a>,
    bufs: KVVec<bindings::pipe_buffer>,
    segments: KVVec<bindings::bio_vec>,
}

impl Taken<'_> {
    /// Takes the first `len` bytes out of the pipe. Sleeps.
    fn fill(&mut self, len: usize) -> Result {
        // SAFETY: By the type invariants of the source.
        unsafe { bindings::pipe_lock(self.source.pipe) };
        // SAFETY: The pipe is locked.
        let was_full = unsafe { bindings::pipe_is_full(self.source.pipe) };
        let filled = self.fill_locked(len);
        // SAFETY: As above.
        let is_full = unsafe { bindings::pipe_is_full(self.source.pipe) };
        // SAFETY: As above.
        unsafe { bindings::pipe_unlock(self.source.pipe) };
        if was_full && !is_full {
            // SAFETY: The pipe is valid.
            unsafe { bindings::wake_pipe_writers(self.source.pipe) };
        }
        filled
    }

    /// The same with the pipe locked.
    fn fill_locked(&mut self, len: usize) -> Result {
        // SAFETY: The pipe is locked.
        let used = unsafe { bindings::pipe_buf_usage(self.source.pipe) };
        let mut count = 0;
        let mut found = 0usize;
        while found < len && count < used {
            // SAFETY: The pipe is locked, and has more than `count` buffers.
            let buf = unsafe { *bindings::pipe_nth_buf(self.source.pipe, count) };
            found = found.saturating_add(buf.len as usize);
            count = count.saturating_add(1);
        }
        if found < len {
            return Err(EINVAL);
        }
        self.bufs.reserve(count as usize, GFP_KERNEL)?;
        self.segments.reserve(count as usize, GFP_KERNEL)?;
        let mut rest = len;
        while rest > 0 {
            rest = rest.saturating_sub(self.take_first(rest)?);
        }
        Ok(())
    }

    /// Takes the first buffer, or as much as `max` bytes of it; returns how much. The pipe is
    /// locked, and not empty.
    fn take_first(&mut self, max: usize) -> Result<usize> {
        // SAFETY: The pipe is locked, and has a buffer.
        let first = unsafe { bindings::pipe_nth_buf(self.source.pipe, 0) };
        // SAFETY: As above: nobody else uses its buffers.
        let mut buf = unsafe { *first };
        if buf.len as usize <= max {
            // SAFETY: As above. INVARIANT: The buffer is ours from here on.
            unsafe { bindings::pipe_remove_first_buf(self.source.pipe) };
        } else {
            // SAFETY: As above. INVARIANT: The reference is ours.
            if !unsafe { bindings::pipe_buf_get(self.source.pipe, first) } {
                return Err(EFAULT);
            }
            buf.len = max as u32;
            // SAFETY: As above; more than `max` bytes are there.
            unsafe { (*first).offset = (*first).offset.wrapping_add(buf.len) };
            // SAFETY: As above.
            unsafe { (*first).len = (*first).len.wrapping_sub(buf.len) };
            // What is shared is not to be taken away.
            buf.flags &= !bindings::PIPE_BUF_FLAG_GIFT;
        }
        if buf.len != 0 {
            let segment = bindings::bio_vec {
                bv_page: buf.page,
                bv_len: buf.len,
                bv_offset: buf.offset,
            };
            self.segments.push(segment, GFP_KERNEL)?;
        }
        let len = buf.len as usize;
        self.bufs.push(buf, GFP_KERNEL)?;
        Ok(len)
    }

    /// Makes sure that the bytes are there: the pages may still be being read. Sleeps.
    fn confirm(&mut self) -> Result {
        for buf in &mut self.bufs {
            // SAFETY: By the type invariants.
            to_result(unsafe { bindings::pipe_buf_confirm(self.source.pipe, buf) })?;
        }
        Ok(())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // The pipe keeps pages of its own for later.
        //
        // SAFETY: By the type invariants of the source.
        unsafe { bindings::pipe_lock(self.source.pipe) };
        for buf in &mut self.bufs {
            // SAFETY: By the type invariants, and this is the last use of the buffer.
            unsafe { bindings::pipe_buf_release(self.source.pipe, buf) };
        }
        // SAFETY: It is locked.
        unsafe { bindings::pipe_unlock(self.source.pipe) };
    }
}
