// SPDX-License-Identifier: GPL-2.0

//! Bindings to the kernel's C code: those of the `kernel` crate and, beside them, the headers,
//! inline functions and macros that it lacks.
//!
//! One module holds both, so that a type that `kernel::bindings` only declares is here the
//! complete one, and every other type is the `kernel` crate's own. A type that is complete in
//! both would be two types: the build refuses it (`check-duplicates`).
//!
//! Not for use outside of `vfs` and `fuse_sys`.

#![allow(
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unknown_lints, // `unnecessary_transmutes` is newer than the oldest supported rustc.
    unnecessary_transmutes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

mod generated {
    use kernel::ffi;
    use pin_init::{MaybeZeroable, Zeroable};

    pub use kernel::bindings::*;

    // bindgen is told to leave these out, as they are not `usize` on every target.
    type __kernel_size_t = usize;
    type __kernel_ssize_t = isize;
    type __kernel_ptrdiff_t = isize;

    pub const IOMAP_NULL_ADDR: u64 = u64::MAX;

    // SAFETY: `__BindgenBitfieldUnit<Storage>` is a newtype around `Storage`.
    unsafe impl<Storage> Zeroable for __BindgenBitfieldUnit<Storage> where Storage: Zeroable {}

    include!(concat!(
        env!("FUSE_RS_OBJTREE"),
        "/rust/bindings/bindings_generated.rs"
    ));
    include!(concat!(
        env!("FUSE_RS_OBJTREE"),
        "/rust/bindings/helpers_generated.rs"
    ));
}

pub use generated::*;
