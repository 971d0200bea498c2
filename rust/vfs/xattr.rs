// SPDX-License-Identifier: GPL-2.0

//! Extended attributes.
//!
//! C header: [`include/linux/xattr.h`](srctree/include/linux/xattr.h)

use crate::{
    inode::INode,
    super_block::NewSuperBlock,
    FileSystem, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use fuse_bindings as bindings;
use kernel::{
    prelude::*,
    str::as_char_ptr_in_const_context, //
};

/// The longest value, and the longest list of names, in bytes.
pub const SIZE_MAX: usize = bindings::XATTR_SIZE_MAX as usize;

/// Where a value, or a list of names that end with NUL, is wanted.
///
/// # Invariants
///
/// `ptr` is valid for writes of `len` bytes that nobody else uses.
pub struct Buffer<'a> {
    ptr: *mut u8,
    len: usize,
    _memory: PhantomData<&'a mut [u8]>,
}

impl Buffer<'_> {
    /// # Safety
    ///
    /// See the type's invariant; it must hold as long as the object.
    pub(crate) unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        Self {
            ptr,
            len: if ptr.is_null() { 0 } else { len },
            _memory: PhantomData,
        }
    }

    /// Bytes that there is room for; 0 if only the size is asked for.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Hands out `bytes`; returns how many they are.
    ///
    /// # Errors
    ///
    /// `ERANGE`: there is not so much room.
    pub fn put(self, bytes: &[u8]) -> Result<usize> {
        if bytes.len() > self.len {
            return Err(ERANGE);
        }
        // SAFETY: By the type invariant there is room, which is nobody else's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr, bytes.len()) };
        Ok(bytes.len())
    }
}

/// The extended attributes of all names that the VFS has no use of its own for,
/// `struct xattr_handler`.
pub trait Operations {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// Reads the value of `name`, into `value` if it has room; returns its size. May sleep.
    fn get(inode: &INode<Self::FileSystem>, name: &CStr, value: Buffer<'_>) -> Result<usize>;
}

struct Table<O: Operations>(PhantomData<O>);

impl<O: Operations> Table<O> {
    const HANDLER: &'static bindings::xattr_handler = &bindings::xattr_handler {
        // Of every name.
        prefix: as_char_ptr_in_const_context(c""),
        get: Some(Self::get),
        ..pin_init::zeroed()
    };

    /// Ends with null.
    const HANDLERS: &'static [*const bindings::xattr_handler; 2] = &[Self::HANDLER, ptr::null()];

    /// # Safety
    ///
    /// `inode` must be of the filesystem, `name` end with NUL, and `buffer` have `size` bytes or be
    /// null.
    unsafe extern "C" fn get(
        _handler: *const bindings::xattr_handler,
        _dentry: *mut bindings::dentry,
        inode: *mut bindings::inode,
        name: *const kernel::ffi::c_char,
        buffer: *mut kernel::ffi::c_void,
        size: usize,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let inode = unsafe { INode::from_raw(inode) };
        // SAFETY: By the function's contract.
        let name = unsafe { CStr::from_char_ptr(name) };
        // SAFETY: By the function's contract.
        let value = unsafe { Buffer::new(buffer.cast(), size) };
        match O::get(inode, name, value) {
            // At most SIZE_MAX, else the caller has no room.
            Ok(size) => size.min(SIZE_MAX) as kernel::ffi::c_int,
            Err(err) => err.to_errno(),
        }
    }
}

impl<T: FileSystem> NewSuperBlock<'_, T> {
    /// Gives the files of the superblock extended attributes.
    pub fn set_xattrs<O: Operations<FileSystem = T>>(&self) {
        // SAFETY: The superblock is not visible to others yet, and the table lives for ever.
        unsafe { (*self.as_ptr()).s_xattr = Table::<O>::HANDLERS.as_ptr() };
    }
}
