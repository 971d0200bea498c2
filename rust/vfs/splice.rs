// SPDX-License-Identifier: GPL-2.0

//! Pipes that data is spliced into.
//!
//! C headers: [`include/linux/splice.h`](srctree/include/linux/splice.h),
//! [`include/linux/pipe_fs_i.h`](srctree/include/linux/pipe_fs_i.h)

use crate::folio::{
    Folio,
    FolioRange, //
};
use core::mem::ManuallyDrop;
use fuse_bindings as bindings;
use kernel::{
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::aref::ARef, //
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
