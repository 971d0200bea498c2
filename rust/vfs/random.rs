// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use fuse_bindings as bindings;

/// Random words that nobody can guess (`get_random_bytes`). Does not sleep.
pub fn words<const N: usize>() -> [u32; N] {
    let mut words = [0u32; N];
    // SAFETY: The array has as many bytes, and any bytes are words.
    unsafe { bindings::get_random_bytes(words.as_mut_ptr().cast(), size_of::<[u32; N]>()) };
    words
}
