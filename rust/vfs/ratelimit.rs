// SPDX-License-Identifier: GPL-2.0

//! Limits to what others can make the kernel print.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)

use fuse_bindings as bindings;

/// Whether a message that somebody can provoke may be printed now: the module has ten in five
/// seconds, for all of those together. Any context.
pub fn may_print() -> bool {
    // SAFETY: It has a lock of its own.
    unsafe { bindings::may_print() }
}
