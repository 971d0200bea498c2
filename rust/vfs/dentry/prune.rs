// SPDX-License-Identifier: GPL-2.0

//! Dropping dentries that nobody uses.
//!
//! C header: [`include/linux/list_lru.h`](srctree/include/linux/list_lru.h)

use super::DEntry;
use crate::{
    super_block::SuperBlock,
    FileSystem, //
};
use core::{
    ffi::c_void,
    marker::PhantomData,
    num::NonZeroUsize,
    ptr::{
        self,
        addr_of_mut, //
    }, //
};
use fuse_bindings as bindings;
use kernel::{
    container_of,
    sync::rcu, //
};

/// About how many dentries are looked at in a row.
const BATCH: usize = 1024;

/// A walk over a part of the idle dentries of a superblock: a share of each list, of which there is
/// one for each memory control group.
///
/// # Invariants
///
/// `dispose` is an initialised list that does not move.
struct Walk<'a, T: FileSystem, F> {
    unwanted: &'a F,
    /// Which part of each list is looked at: one in so many.
    parts: NonZeroUsize,
    /// The list that is walked.
    list: *const bindings::list_lru_one,
    /// How many of it are still to be looked at.
    left: usize,
    dispose: *mut bindings::list_head,
    _fs: PhantomData<fn() -> T>,
}

impl<T: FileSystem, F: Fn(&DEntry<T>) -> bool> Walk<'_, T, F> {
    /// The callback of `list_lru_walk`, which is told what to do next. Looked at from the head, and
    /// moved to the tail, all come by once in as many walks as there are parts, and the order in
    /// which memory is reclaimed does not change.
    ///
    /// # Safety
    ///
    /// `item` must be that of a dentry of `T` on `list`, of which the caller holds the lock and
    /// expects it released with `LRU_RETRY` and `LRU_STOP`; `walk` must be a `Self` that nobody else
    /// uses. In an RCU read-side critical section.
    unsafe extern "C" fn isolate(
        item: *mut bindings::list_head,
        list: *mut bindings::list_lru_one,
        walk: *mut c_void,
    ) -> bindings::lru_status {
        // SAFETY: By the function's contract.
        let walk = unsafe { &mut *walk.cast::<Self>() };
        // SAFETY: By the function's contract.
        let lock = unsafe { addr_of_mut!((*list).lock) };
        if !ptr::eq(walk.list, list) {
            walk.list = list;
            // SAFETY: The lock of the list is held.
            let items = usize::try_from(unsafe { (*list).nr_items }).unwrap_or(0);
            walk.left = items.div_ceil(walk.parts.get());
        }
        let Some(left) = walk.left.checked_sub(1) else {
            // SAFETY: By the function's contract.
            unsafe { bindings::spin_unlock(lock) };
            return bindings::lru_status::LRU_STOP;
        };
        walk.left = left;
        // SAFETY: By the function's contract.
        let dentry = unsafe { container_of!(item, bindings::dentry, d_lru) };
        // SAFETY: By the function's contract.
        let this = unsafe { DEntry::<T>::from_raw(dentry) };
        // SAFETY: Reads a field of a valid dentry.
        if unsafe { bindings::d_count(dentry) } != 0 || !(walk.unwanted)(this) {
            return bindings::lru_status::LRU_ROTATE;
        }
        // The lock of a dentry comes before that of the list.
        //
        // SAFETY: By the function's contract.
        unsafe { bindings::spin_unlock(lock) };
        // SAFETY: Until the end of the RCU section the memory is that of the dentry.
        unsafe { bindings::d_lock(dentry) };
        // Nothing is done if it has come into use or is going.
        //
        // SAFETY: The dentry is locked, and the list is one by the type invariant.
        unsafe { bindings::__move_to_shrink_list(dentry, walk.dispose) };
        // SAFETY: Locked above.
        unsafe { bindings::d_unlock(dentry) };
        bindings::lru_status::LRU_RETRY
    }
}

impl<T: FileSystem> SuperBlock<T> {
    /// Drops the dentries that nobody uses and `unwanted` says yes to, and with them the directories
    /// that were used by nothing else. What comes to be unused meanwhile may be left. Sleeps;
    /// `unwanted` must not.
    pub fn prune_dentries(&self, unwanted: impl Fn(&DEntry<T>) -> bool) {
        // SAFETY: The superblock is valid.
        let lru = unsafe { addr_of_mut!((*self.as_ptr()).s_dentry_lru) };
        // SAFETY: The list is initialised together with the superblock.
        let batches = unsafe { bindings::list_lru_count(lru) } / BATCH;
        let parts = NonZeroUsize::MIN.saturating_add(batches);
        for _ in 0..parts.get() {
            self.prune_part(parts, &unwanted);
            // SAFETY: The context may sleep.
            unsafe { bindings::cond_resched() };
        }
    }

    fn prune_part<F: Fn(&DEntry<T>) -> bool>(&self, parts: NonZeroUsize, unwanted: &F) {
        let mut dispose = bindings::list_head::default();
        let dispose = &raw mut dispose;
        // SAFETY: The list is valid, and does not move until it is empty again.
        unsafe { bindings::INIT_LIST_HEAD(dispose) };
        // INVARIANT: Just initialised.
        let mut walk = Walk::<T, F> {
            unwanted,
            parts,
            list: ptr::null(),
            left: 0,
            dispose,
            _fs: PhantomData,
        };
        let guard = rcu::read_lock();
        // SAFETY: The superblock is valid.
        let lru = unsafe { addr_of_mut!((*self.as_ptr()).s_dentry_lru) };
        // SAFETY: The list is that of dentries of `T`, and the RCU read-side lock is held.
        unsafe {
            bindings::list_lru_walk(
                lru,
                Some(Walk::<T, F>::isolate),
                (&raw mut walk).cast(),
                usize::MAX,
            )
        };
        drop(guard);
        // SAFETY: The list has what was moved to it, which is ours alone to let go.
        unsafe { bindings::shrink_dentry_list(dispose) };
    }
}
