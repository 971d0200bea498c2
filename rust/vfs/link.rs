// SPDX-License-Identifier: GPL-2.0

//! Ways to a superblock for those whom no mount, path or open file of it keeps alive.
//!
//! C header: [`include/linux/rwsem.h`](srctree/include/linux/rwsem.h)

use crate::{
    super_block::SuperBlock,
    FileSystem, //
};
use core::{
    cell::UnsafeCell,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    prelude::*,
    static_lock_class,
    sync::Arc,
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};

/// A way to a superblock, which leads nowhere once the superblock begins to go.
///
/// Made by [`NewSuperBlock::link`](crate::super_block::NewSuperBlock::link).
///
/// # Invariants
///
/// `lock` is initialised. `sb` is null or a superblock of `T` that is not being killed yet; it is
/// only set to null with the lock held for writing, and read with it held.
#[pin_data]
pub struct Link<T: FileSystem> {
    #[pin]
    lock: Opaque<bindings::rw_semaphore>,
    sb: UnsafeCell<*const SuperBlock<T>>,
}

// SAFETY: Superblocks are shared between threads, and the lock orders what is done to the pointer.
unsafe impl<T: FileSystem> Send for Link<T> {}
// SAFETY: As above.
unsafe impl<T: FileSystem> Sync for Link<T> {}

impl<T: FileSystem> Link<T> {
    /// A way to `sb`, which must be cut before `sb` goes: [`cut`](Self::cut).
    pub(crate) fn new(sb: &SuperBlock<T>) -> Result<Arc<Self>> {
        let sb = ptr::from_ref(sb);
        Arc::pin_init(
            pin_init!(Self {
                // SAFETY: `slot` is where the lock stays, as it is pinned; name and key live for
                // ever.
                lock <- Opaque::ffi_init(|slot| unsafe {
                    bindings::__init_rwsem(
                        slot,
                        c"link".as_char_ptr(),
                        static_lock_class!().as_ptr(),
                    )
                }),
                sb: UnsafeCell::new(sb),
            }),
            GFP_KERNEL,
        )
    }

    /// The superblock, if it is there; it stays while the guard does. Sleeps.
    ///
    /// Unmounting waits for the guard: with it, wait for nothing that the end of the mount does not
    /// end too.
    ///
    /// # Errors
    ///
    /// `EINTR`: a fatal signal came before it was known.
    pub fn get(&self) -> Result<Option<Guard<'_, T>>> {
        // SAFETY: By the type invariant the lock is initialised.
        to_result(unsafe { bindings::down_read_killable(self.lock.get()) })?;
        let guard = Locked {
            lock: &self.lock,
            _not_send: NotThreadSafe,
        };
        // SAFETY: The lock is held.
        let sb = NonNull::new(unsafe { *self.sb.get() }.cast_mut());
        // INVARIANT: `cut` waits for the lock before the superblock goes.
        Ok(sb.map(|sb| Guard { sb, _lock: guard }))
    }

    /// Whether this is the way to `sb`. Only for who keeps it from being cut.
    pub(crate) fn leads_to(&self, sb: &SuperBlock<T>) -> bool {
        // SAFETY: Nobody cuts it meanwhile, so that it is not written to.
        ptr::eq(unsafe { *self.sb.get() }, sb)
    }

    /// Cuts the way off, once nobody is on it. Sleeps.
    pub(crate) fn cut(&self) {
        // SAFETY: By the type invariant the lock is initialised.
        unsafe { bindings::down_write(self.lock.get()) };
        // SAFETY: The lock is held for writing.
        unsafe { *self.sb.get() = ptr::null() };
        // SAFETY: This task holds the lock.
        unsafe { bindings::up_write(self.lock.get()) };
    }
}

/// A lock held for reading.
///
/// # Invariants
///
/// This task holds `lock`.
struct Locked<'a> {
    lock: &'a Opaque<bindings::rw_semaphore>,
    _not_send: NotThreadSafe,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::up_read(self.lock.get()) };
    }
}

/// Keeps a superblock from being killed.
///
/// # Invariants
///
/// `sb` is not being killed while the lock is held.
pub struct Guard<'a, T: FileSystem> {
    sb: NonNull<SuperBlock<T>>,
    _lock: Locked<'a>,
}

impl<T: FileSystem> Deref for Guard<'_, T> {
    type Target = SuperBlock<T>;

    fn deref(&self) -> &SuperBlock<T> {
        // SAFETY: By the type invariant.
        unsafe { self.sb.as_ref() }
    }
}
