// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, as they are now: most may be changed at any time. Any context.
//!
//! `rust/helpers/params.c` makes them; its descriptions are what `modinfo` shows.

use fuse_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Most background requests of a server without `CAP_SYS_ADMIN`, at most 65535.
pub fn max_user_bgreq() -> u32 {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_max_user_bgreq() }
}

/// Highest congestion threshold of a server without `CAP_SYS_ADMIN`, at most 65535.
pub fn max_user_congthresh() -> u32 {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_max_user_congthresh() }
}

/// Whether `CAP_SYS_ADMIN` in the first user namespace is enough to use any mount.
pub fn allow_sys_admin_access() -> bool {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_allow_sys_admin_access() }
}

/// Whether the names of the in-tree client are taken. Does not change.
pub fn dropin() -> bool {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_dropin() }
}

/// Seconds from one search for names that do not hold any more to the next: 0 for none, or 5 to
/// 65535.
pub fn inval_wq() -> u32 {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_inval_wq() }
}

/// Who is told that a parameter has changed.
pub trait Changed: Send + Sync + 'static {
    /// Called by whoever changed it, after the change. May sleep.
    fn changed(&self);
}

/// Has [`inval_wq`] watched. There must be no more than one at a time.
///
/// # Invariants
///
/// What the C code calls is [`Self::changed`] with the object in `_watcher`.
pub struct OnInvalWq<C: Changed> {
    _watcher: Arc<C>,
}

impl<C: Changed> OnInvalWq<C> {
    /// `watcher` is told from now on. Sleeps.
    pub fn new(watcher: Arc<C>) -> Self {
        let arg = core::ptr::from_ref(&*watcher).cast_mut().cast();
        // SAFETY: What `arg` points at is kept until `drop` has the C code forget it.
        unsafe { bindings::param_on_inval_wq(Some(Self::changed), arg) };
        // INVARIANT: Just set so.
        Self { _watcher: watcher }
    }

    /// # Safety
    ///
    /// `arg` must be a valid `C`.
    unsafe extern "C" fn changed(arg: *mut c_void) {
        // SAFETY: By the function's contract.
        let watcher = unsafe { &*arg.cast::<C>() };
        watcher.changed();
    }
}

impl<C: Changed> Drop for OnInvalWq<C> {
    fn drop(&mut self) {
        // It waits for a call that is under way.
        //
        // SAFETY: Sets a variable under its lock.
        unsafe { bindings::param_on_inval_wq(None, core::ptr::null_mut()) };
    }
}
