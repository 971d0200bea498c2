// SPDX-License-Identifier: GPL-2.0

//! Knobs under `/proc/sys`.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)

use core::{mem::size_of, ptr::NonNull};
use fuse_bindings as bindings;
use kernel::{
    prelude::*,
    sync::atomic::{ordering::Relaxed, Atomic}, //
};

/// An unsigned integer that the administrator may set, within bounds.
pub struct Uint {
    name: &'static CStr,
    value: Atomic<u32>,
    min: u32,
    max: u32,
}

impl Uint {
    /// A knob for the file `name`, which is `value` until it is set and then at least `min` and at
    /// most `max`.
    pub const fn new(name: &'static CStr, value: u32, min: u32, max: u32) -> Self {
        Self {
            name,
            value: Atomic::new(value),
            min,
            max,
        }
    }

    /// The value now.
    pub fn get(&self) -> u32 {
        self.value.load(Relaxed)
    }

    /// Its line of a table.
    const fn entry(&'static self) -> bindings::ctl_table {
        bindings::ctl_table {
            procname: kernel::str::as_char_ptr_in_const_context(self.name),
            data: (&raw const self.value).cast_mut().cast(),
            maxlen: size_of::<u32>() as c_int,
            mode: 0o644,
            proc_handler: Some(bindings::proc_douintvec_minmax),
            extra1: (&raw const self.min).cast_mut().cast(),
            extra2: (&raw const self.max).cast_mut().cast(),
            ..pin_init::zeroed()
        }
    }
}

/// Knobs that are in place; dropping it takes them away, after waiting for those who are at them.
///
/// # Invariants
///
/// `header` is what `register_sysctl_sz` made of `table`.
pub struct Registration {
    header: NonNull<bindings::ctl_table_header>,
    // On the heap, where it stays when the registration moves.
    #[expect(dead_code)]
    table: KVec<bindings::ctl_table>,
}

// SAFETY: `unregister_sysctl_table` can be called from any thread, and nothing else is done.
unsafe impl Send for Registration {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl Sync for Registration {}

impl Registration {
    /// Puts `knobs` into the directory `dir`, which is relative to `/proc/sys` and made if need be.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also when a file of that name is there already: C does not tell which it was.
    pub fn new(dir: &'static CStr, knobs: &[&'static Uint]) -> Result<Self> {
        let mut table = KVec::with_capacity(knobs.len(), GFP_KERNEL)?;
        for knob in knobs {
            table.push(knob.entry(), GFP_KERNEL)?;
        }
        let (dir, entries) = (dir.as_char_ptr(), table.as_ptr());
        // SAFETY: `dir` and what the table refers to are static; the table outlives the
        // registration. The handler writes `value` and reads `min` and `max` as the `unsigned int`
        // that they are, `value` like an atomic.
        let header = unsafe { bindings::register_sysctl_sz(dir, entries, table.len()) };
        // INVARIANT: Just made.
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
            table,
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and it happens once.
        unsafe { bindings::unregister_sysctl_table(self.header.as_ptr()) };
    }
}
