// SPDX-License-Identifier: GPL-2.0

//! Pipes that data is spliced into.
//!
//! C headers: [`include/linux/splice.h`](srctree/include/linux/splice.h),
//! [`include/linux/pipe_fs_i.h`](srctree/include/linux/pipe_fs_i.h)

use core::mem::ManuallyDrop;
use fuse_bindings as bindings;
use kernel::{
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*, //
};

/// What goes into a pipe by one splice(2): pages of its own, filled with copies.
///
/// Nothing is in the pipe before [`commit`](Self::commit).
///
/// # Invariants
///
/// `pipe` is locked, and has free buffers for `room` bytes in whole pages. `pages` hold `len`
/// bytes, all but the last full.
pub struct PipeDest<'a> {
    pipe: &'a mut bindings::pipe_inode_info,
    room: usize,
    len: usize,
    pages: KVec<Page>,
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
            len: 0,
            pages: KVec::new(),
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
    /// `ENOSPC`: there is not so much room. `ENOMEM`. What was added by then is undefined.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result {
        if bytes.len() > self.room() {
            return Err(ENOSPC);
        }
        while !bytes.is_empty() {
            let offset = self.len % PAGE_SIZE;
            if offset == 0 {
                self.pages.push(Page::alloc_page(GFP_KERNEL)?, GFP_KERNEL)?;
            }
            let page = self.pages.last().ok_or(ENOMEM)?;
            let n = bytes.len().min(PAGE_SIZE - offset);
            // SAFETY: The source has at least `n` bytes, and the page is nobody else's yet.
            unsafe { page.write_raw(bytes.as_ptr(), offset, n) }?;
            bytes = bytes.get(n..).unwrap_or_default();
            self.len = self.len.saturating_add(n);
        }
        Ok(())
    }

    /// Moves the pages into the pipe; returns the bytes.
    ///
    /// # Errors
    ///
    /// `EPIPE`: nobody reads the pipe any more; the caller gets `SIGPIPE`.
    pub(crate) fn commit(self) -> Result<usize> {
        let mut rest = self.len;
        for page in self.pages {
            let len = rest.min(PAGE_SIZE);
            rest -= len;
            let mut buf = bindings::pipe_buffer {
                // The reference goes to the pipe.
                page: ManuallyDrop::new(page).as_ptr(),
                offset: 0,
                len: len as u32,
                // Its release drops the page's reference.
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
