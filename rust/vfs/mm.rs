// SPDX-License-Identifier: GPL-2.0

//! Memory of the machine.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h)

use fuse_bindings as bindings;

/// Pages of memory that the kernel manages (`totalram_pages`).
pub fn totalram_pages() -> usize {
    // SAFETY: Reads a counter.
    unsafe { bindings::totalram_pages() }
}
