// SPDX-License-Identifier: GPL-2.0

//! Work that a kernel thread does later.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::{pin::Pin, ptr};
use fuse_bindings as bindings;
use kernel::{
    container_of,
    prelude::*,
    sync::{Arc, LockClassKey},
    types::Opaque, //
};

/// What a [`DelayedWork`] does.
pub trait Work: Send + Sync + 'static {
    /// Runs in a kernel thread; may sleep. Returns the milliseconds after which it is to run again,
    /// if it is.
    fn run(&self) -> Option<u32>;
}

/// Work to be done after a while (`struct delayed_work`).
///
/// While it is queued, and while it runs, it holds itself.
///
/// # Invariants
///
/// `work` is initialised and runs [`Self::run`]. While it is pending a reference to the [`Arc`] that
/// this is in belongs to it.
#[pin_data]
pub struct DelayedWork<T: Work> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    data: T,
}

// SAFETY: The functions of a work may be called from any thread, and `T` is `Send`.
unsafe impl<T: Work> Send for DelayedWork<T> {}
// SAFETY: The functions of a work may be called from several threads, and `T` is `Sync`.
unsafe impl<T: Work> Sync for DelayedWork<T> {}

impl<T: Work> DelayedWork<T> {
    /// Makes work that is not queued. `name` and the keys, one for the work and one for its timer,
    /// are for lockdep. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(
        data: T,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
        timer_key: Pin<&'static LockClassKey>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                work <- Opaque::ffi_init(|slot: *mut bindings::delayed_work| {
                    // SAFETY: `slot` is where the work stays.
                    let work = unsafe { &raw mut (*slot).work };
                    // SAFETY: As above.
                    let timer = unsafe { &raw mut (*slot).timer };
                    // SAFETY: The work is valid for writes; name and key live for ever.
                    unsafe {
                        bindings::init_work_with_key(
                            work,
                            Some(Self::run),
                            false,
                            name.as_char_ptr(),
                            key.as_ptr(),
                        )
                    };
                    // SAFETY: As above; this is the function and the flag of a work's timer.
                    unsafe {
                        bindings::timer_init_key(
                            timer,
                            Some(bindings::delayed_work_timer_fn),
                            bindings::TIMER_IRQSAFE,
                            name.as_char_ptr(),
                            timer_key.as_ptr(),
                        )
                    };
                }),
                data,
            }),
            GFP_KERNEL,
        )
    }

    /// What was given to [`new`](Self::new).
    pub fn data(&self) -> &T {
        &self.data
    }

    /// Queues it to run in `msecs` milliseconds, unless it is queued already, or was stopped. Any
    /// context.
    pub fn start(self: &Arc<Self>, msecs: u32) {
        self.queue(msecs);
    }

    /// Has it run at once, even if it is queued for later, unless it was stopped. If it runs
    /// already, it runs once more. Any context.
    pub fn start_now(self: &Arc<Self>) {
        while !self.queue(0) {
            // SAFETY: By the type invariants the work is initialised.
            if !unsafe { bindings::cancel_delayed_work(self.work.get()) } {
                // It has begun since, or was stopped.
                return;
            }
            // SAFETY: It was pending and is not any more: by the type invariants its reference is
            // there to be dropped.
            drop(unsafe { Arc::from_raw(ptr::from_ref(&**self)) });
        }
    }

    /// Queues it as [`start`](Self::start) does, and returns whether it did.
    fn queue(self: &Arc<Self>, msecs: u32) -> bool {
        let this = Arc::into_raw(self.clone());
        // SAFETY: Does no more than compute.
        let delay = unsafe { bindings::__msecs_to_jiffies(msecs) };
        // SAFETY: The queue exists from early boot on.
        let queue = unsafe { bindings::system_percpu_wq };
        // INVARIANT: The reference goes to the work when it gets pending.
        //
        // SAFETY: By the type invariants the work is initialised.
        let queued = unsafe {
            bindings::queue_delayed_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                queue,
                self.work.get(),
                delay,
            )
        };
        if !queued {
            // SAFETY: The reference was just made, and nobody else has taken it.
            drop(unsafe { Arc::from_raw(this) });
        }
        queued
    }

    /// Waits for it to end if it runs; it is not queued any more, nor will it ever be. Sleeps; must
    /// not be called by the work itself, nor with a lock that it takes.
    pub fn stop(&self) {
        // SAFETY: By the type invariants the work is initialised.
        if unsafe { bindings::disable_delayed_work_sync(self.work.get()) } {
            // SAFETY: It was pending and is not any more: by the type invariants its reference is
            // there to be dropped.
            drop(unsafe { Arc::from_raw(ptr::from_ref(self)) });
        }
    }

    /// # Safety
    ///
    /// Called by the workqueue, for the work of a `Self`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the function's contract.
        let work = unsafe { container_of!(work, bindings::delayed_work, work) };
        // SAFETY: As above.
        let this = unsafe { container_of!(Opaque::cast_from(work), Self, work) };
        // SAFETY: By the type invariants a reference belonged to the work, which has just ceased to
        // be pending.
        let this = unsafe { Arc::from_raw(this) };
        if let Some(msecs) = this.data.run() {
            this.start(msecs);
        }
    }
}
