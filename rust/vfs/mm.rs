// SPDX-License-Identifier: GPL-2.0

//! Memory allocation.
//!
//! C header: [`include/linux/gfp_types.h`](srctree/include/linux/gfp_types.h)

use core::mem;
use fuse_bindings as bindings;
use kernel::alloc::Flags;

/// `GFP_KERNEL | __GFP_NOFAIL`: waits for memory for as long as it takes. For what is small and must
/// not fail. Sleeps.
pub const GFP_NOFAIL: Flags = {
    let flags: u32 = bindings::GFP_KERNEL | bindings::__GFP_NOFAIL;
    // SAFETY: `Flags` has one field, a `u32`, and is as large as that, or this does not compile: so
    // it is just the `u32`, of which each value is valid.
    unsafe { mem::transmute::<u32, Flags>(flags) }
};
