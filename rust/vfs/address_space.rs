// SPDX-License-Identifier: GPL-2.0

//! The page cache of an inode.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h) (`struct address_space`)

use crate::{inode::INode, iomap, FileSystem};
use core::marker::PhantomData;
use fuse_bindings as bindings;
use kernel::{error::to_result, prelude::*, types::Opaque};

/// The page cache of an inode of `T`, wrapping `struct address_space`.
///
/// # Invariants
///
/// It is the `i_mapping` of an inode of `T`.
#[repr(transparent)]
pub struct AddressSpace<T: FileSystem>(Opaque<bindings::address_space>, PhantomData<fn() -> T>);

impl<T: FileSystem> AddressSpace<T> {
    /// Borrows a mapping.
    ///
    /// # Safety
    ///
    /// `ptr` must be the mapping of an inode of `T` that outlives `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::address_space) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::address_space {
        self.0.get()
    }

    /// Drops all pages, also those that are mapped. May sleep, also for folios that are being read.
    ///
    /// # Errors
    ///
    /// `EBUSY` if a page could not be dropped.
    pub fn invalidate_pages2(&self) -> Result {
        // SAFETY: The mapping is valid.
        to_result(unsafe { bindings::invalidate_inode_pages2(self.as_ptr()) })
    }

    /// As [`invalidate_pages2`](Self::invalidate_pages2), from the folio of the byte at `pos` on.
    pub fn invalidate_pages2_from(&self, pos: i64) -> Result {
        let first = (pos >> bindings::PAGE_SHIFT) as usize;
        // SAFETY: The mapping is valid.
        to_result(unsafe {
            bindings::invalidate_inode_pages2_range(self.as_ptr(), first, usize::MAX)
        })
    }
}

impl<T: FileSystem> INode<T> {
    /// Drops the pages beyond `size`, and zeroes the rest of the page that `size` is in. May sleep.
    pub fn truncate_pagecache(&self, size: i64) {
        // SAFETY: The inode is valid.
        unsafe { bindings::truncate_pagecache(self.as_ptr(), size) };
    }
}

/// A table of page cache operations for the filesystem `T`.
pub struct Ops<T: FileSystem>(
    pub(crate) *const bindings::address_space_operations,
    PhantomData<T>,
);

impl<T: FileSystem> Ops<T> {
    /// A page cache that is read through iomap, by the callbacks of `O`.
    pub const fn iomap_read<O: iomap::ReadOps<FileSystem = T>>() -> Self {
        Self(&iomap::ReadTable::<O>::AOPS, PhantomData)
    }
}
