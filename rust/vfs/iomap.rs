// SPDX-License-Identifier: GPL-2.0

//! Reading the page cache through iomap, for filesystems that get their data by requests.
//!
//! iomap finds out which blocks of a folio are to be read and keeps the state of folios that are
//! larger than a block. What remains for the filesystem is to gather the ranges into requests and
//! to finish each range.
//!
//! C header: [`include/linux/iomap.h`](srctree/include/linux/iomap.h)

use crate::{
    file::File,
    folio::Folio,
    inode::INode,
    kiocb::{Kiocb, Transferred},
    FileSystem, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use fuse_bindings as bindings;
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*,
    sync::aref::ARef, //
};

/// A range of a locked folio that is to be read.
///
/// While it exists the folio stays locked and thereby in its mapping. Dropping it ends the read
/// with an error; [`finish`](Self::finish) ends it with success. Either may happen in any context.
///
/// # Invariants
///
/// iomap counts `len` bytes of the folio as being read on behalf of this object, and `offset + len`
/// is at most the folio's size. The folio is locked, in the page cache of an inode of `T`.
pub struct ReadRange<T: FileSystem> {
    folio: ARef<Folio>,
    offset: usize,
    len: usize,
    /// What the read ends with: 0 or a negative errno.
    result: i32,
    _fs: PhantomData<fn() -> T>,
}

impl<T: FileSystem> ReadRange<T> {
    /// The place in the file, in bytes.
    pub fn pos(&self) -> u64 {
        // A position in a file is not negative, and the sum is one too.
        (self.folio.pos() as u64).wrapping_add(self.offset as u64)
    }

    /// The length in bytes, not 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The inode whose page cache is read.
    pub fn inode(&self) -> &INode<T> {
        // SAFETY: By the type invariant the folio is locked, so its mapping stays.
        let mapping = unsafe { bindings::folio_mapping(self.folio.as_ptr()) };
        // SAFETY: As above; the mapping's folios are gone before its inode goes.
        let host = unsafe { (*mapping).host };
        // SAFETY: By the type invariant.
        unsafe { INode::from_raw(host) }
    }

    /// Copies user memory to `at` of the range, as far as it is present; never sleeps for it.
    ///
    /// Returns the bytes copied, at most up to the end of the range.
    pub fn copy_from_iter_nofault(&mut self, at: usize, from: &mut IovIterSource<'_>) -> usize {
        let len = self.len.saturating_sub(at);
        self.folio
            .copy_from_iter_nofault(self.offset.saturating_add(at), len, from)
    }

    /// Zeroes the range from `at` to its end.
    pub fn zero_from(&mut self, at: usize) {
        let len = self.len.saturating_sub(at);
        self.folio.zero_range(self.offset.saturating_add(at), len);
    }

    /// Cuts off what is from `at` on, so that the two parts can be read by different requests.
    ///
    /// iomap keeps the state of a folio by blocks: nothing is cut off, and none returned, unless
    /// `at` is on a block boundary within the range.
    pub fn split_off(&mut self, at: usize) -> Option<Self> {
        let offset = self.offset.checked_add(at)?;
        let rest = self.len.checked_sub(at)?;
        if at == 0 || rest == 0 || offset.trailing_zeros() < self.inode().blkbits() {
            return None;
        }
        // INVARIANT: The two parts are what the one range was. The folio has more than one block,
        // so iomap counts its bytes, and not the folio as a whole.
        let rest = Self {
            folio: self.folio.clone(),
            offset,
            len: rest,
            result: self.result,
            _fs: PhantomData,
        };
        self.len = at;
        Some(rest)
    }

    /// The whole range was read.
    pub fn finish(mut self) {
        self.result = 0;
    }
}

impl<T: FileSystem> Drop for ReadRange<T> {
    fn drop(&mut self) {
        let Self {
            ref folio,
            offset,
            len,
            result,
            ..
        } = *self;
        // SAFETY: By the type invariant these bytes are being read, and this object ends here. The
        // reference to the folio goes after it.
        unsafe { bindings::iomap_finish_folio_read(folio.as_ptr(), offset, len, result) };
    }
}

/// How ranges of folios are read.
pub trait ReadOps {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// What one read request is gathered in.
    type Batch;

    /// Takes on a range: adds it to the batch, or submits the batch and begins a new one. Ranges
    /// come in ascending order. May sleep. A range that can't be read is dropped.
    ///
    /// `file` is the open file that the read is for, if there is one.
    fn read_range(
        batch: &mut Option<Self::Batch>,
        file: Option<&File<Self::FileSystem>>,
        range: ReadRange<Self::FileSystem>,
    );

    /// Whether so much is being read that readahead which nobody waits for should be left out.
    fn is_congested(inode: &INode<Self::FileSystem>) -> bool;

    /// Sends off what was gathered.
    fn submit(inode: &INode<Self::FileSystem>, batch: Self::Batch);

    /// Reads past the page cache (`O_DIRECT`), without moving the position. What is read less than
    /// asked for, and than the file has, is read from the page cache then. May sleep.
    fn direct_read<'a>(
        kiocb: Kiocb<'a, Self::FileSystem>,
        iov: &mut IovIterDest<'_>,
    ) -> Transferred<'a>;
}

/// Whether no more than what is read in advance is left of the readahead.
///
/// # Safety
///
/// `rac` must be valid.
unsafe fn only_async_left(rac: *const bindings::readahead_control) -> bool {
    // SAFETY: By the function's contract.
    let left = unsafe { (*rac)._nr_pages };
    // SAFETY: By the function's contract; a readahead has a state.
    let wanted_later = unsafe { (*(*rac).ra).async_size };
    wanted_later >= left
}

/// What one call of `read_folio` or `readahead` works with; iomap passes its address through.
struct ReadContext<O: ReadOps> {
    batch: Option<O::Batch>,
    file: *mut bindings::file,
}

pub(crate) struct ReadTable<O: ReadOps>(PhantomData<O>);

impl<O: ReadOps> ReadTable<O> {
    pub(crate) const AOPS: bindings::address_space_operations =
        bindings::address_space_operations {
            read_folio: Some(Self::read_folio),
            readahead: Some(Self::readahead),
            release_folio: Some(bindings::iomap_release_folio),
            invalidate_folio: Some(bindings::iomap_invalidate_folio),
            is_partially_uptodate: Some(bindings::iomap_is_partially_uptodate),
            migrate_folio: Some(bindings::filemap_migrate_folio),
            bmap: Some(Self::bmap),
            direct_IO: Some(Self::direct_io),
            ..pin_init::zeroed()
        };

    const IOMAP_OPS: bindings::iomap_ops = bindings::iomap_ops {
        iomap_begin: Some(Self::begin),
        ..pin_init::zeroed()
    };

    const READ_OPS: bindings::iomap_read_ops = bindings::iomap_read_ops {
        read_folio_range: Some(Self::read_folio_range),
        submit_read: Some(Self::submit_read),
        ..pin_init::zeroed()
    };

    /// Runs `call` with a context for iomap.
    fn with_context(
        file: *mut bindings::file,
        folio: *mut bindings::folio,
        rac: *mut bindings::readahead_control,
        call: impl FnOnce(&mut bindings::iomap_read_folio_ctx),
    ) {
        let mut context = ReadContext::<O> { batch: None, file };
        let mut ctx = bindings::iomap_read_folio_ctx {
            ops: &Self::READ_OPS,
            cur_folio: folio,
            rac,
            read_ctx: ptr::from_mut(&mut context).cast(),
            ..pin_init::zeroed()
        };
        call(&mut ctx);
    }

    /// # Safety
    ///
    /// `folio` must be locked, of the filesystem, and not uptodate; `file` may be null.
    unsafe extern "C" fn read_folio(
        file: *mut bindings::file,
        folio: *mut bindings::folio,
    ) -> kernel::ffi::c_int {
        Self::with_context(file, folio, ptr::null_mut(), |ctx| {
            // SAFETY: By the function's contract.
            unsafe { bindings::iomap_read_folio(&Self::IOMAP_OPS, ctx, ptr::null_mut()) }
        });
        0
    }

    /// # Safety
    ///
    /// `rac` must be a readahead of the filesystem.
    unsafe extern "C" fn readahead(rac: *mut bindings::readahead_control) {
        // SAFETY: By the function's contract.
        let file = unsafe { (*rac).file };
        Self::with_context(file, ptr::null_mut(), rac, |ctx| {
            // SAFETY: By the function's contract.
            unsafe { bindings::iomap_readahead(&Self::IOMAP_OPS, ctx, ptr::null_mut()) }
        });
    }

    /// Says that no block of the file is on a device that anyone else may look at.
    ///
    /// # Safety
    ///
    /// There are no requirements.
    unsafe extern "C" fn bmap(
        _mapping: *mut bindings::address_space,
        _block: bindings::sector_t,
    ) -> bindings::sector_t {
        0
    }

    /// # Safety
    ///
    /// `kiocb` must be a read of an open file of the filesystem, and `iter` a destination.
    unsafe extern "C" fn direct_io(
        kiocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: By the function's contract.
        let kiocb = unsafe { Kiocb::from_raw(kiocb) };
        // SAFETY: By the function's contract.
        let iov = unsafe { IovIterDest::from_raw(iter) };
        O::direct_read(kiocb, iov).into_raw()
    }

    /// Maps all of the file: where its data is, only the server knows.
    ///
    /// # Safety
    ///
    /// `iomap` must be valid.
    unsafe extern "C" fn begin(
        _inode: *mut bindings::inode,
        pos: bindings::loff_t,
        length: bindings::loff_t,
        _flags: kernel::ffi::c_uint,
        iomap: *mut bindings::iomap,
        _srcmap: *mut bindings::iomap,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract; iomap zeroed it.
        let iomap = unsafe { &mut *iomap };
        iomap.type_ = bindings::IOMAP_MAPPED as u16;
        iomap.offset = pos;
        iomap.length = length as u64;
        iomap.addr = bindings::IOMAP_NULL_ADDR;
        0
    }

    /// # Safety
    ///
    /// Called by iomap in [`with_context`](Self::with_context).
    unsafe extern "C" fn read_folio_range(
        iter: *const bindings::iomap_iter,
        ctx: *mut bindings::iomap_read_folio_ctx,
        len: usize,
    ) -> kernel::ffi::c_int {
        // SAFETY: `ctx` is valid.
        let rac = unsafe { (*ctx).rac };
        // SAFETY: `iter` is valid, and its inode of the filesystem.
        let inode = unsafe { INode::from_raw((*iter).inode) };
        // SAFETY: `rac` is null or the readahead that is going on.
        if !rac.is_null() && unsafe { only_async_left(rac) } && O::is_congested(inode) {
            // The rest of the readahead is dropped.
            return EAGAIN.to_errno();
        }
        // SAFETY: iomap reads into the locked folio `cur_folio`.
        let folio = unsafe { Folio::from_raw((*ctx).cur_folio) };
        // SAFETY: `iter` is valid.
        let pos = unsafe { (*iter).pos };
        // SAFETY: `read_ctx` is what `with_context` set.
        let context = unsafe { &mut *(*ctx).read_ctx.cast::<ReadContext<O>>() };
        // SAFETY: A file that came with the read is open during it.
        let file = (!context.file.is_null()).then(|| unsafe { File::from_raw(context.file) });
        // INVARIANT: Returning 0 makes iomap count `len` bytes from `pos` on, which lie in the
        // folio.
        let range = ReadRange {
            folio: folio.into(),
            offset: pos.wrapping_sub(folio.pos()) as usize,
            len,
            result: EIO.to_errno(),
            _fs: PhantomData,
        };
        O::read_range(&mut context.batch, file, range);
        0
    }

    /// # Safety
    ///
    /// Called by iomap in [`with_context`](Self::with_context).
    unsafe extern "C" fn submit_read(
        iter: *const bindings::iomap_iter,
        ctx: *mut bindings::iomap_read_folio_ctx,
    ) {
        // SAFETY: `read_ctx` is what `with_context` set.
        let context = unsafe { &mut *(*ctx).read_ctx.cast::<ReadContext<O>>() };
        // SAFETY: `iter` is valid, and its inode of the filesystem.
        let inode = unsafe { INode::from_raw((*iter).inode) };
        if let Some(batch) = context.batch.take() {
            O::submit(inode, batch);
        }
    }
}
