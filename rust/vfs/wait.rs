// SPDX-License-Identifier: GPL-2.0

//! Wait queues whose waiters name the condition that they wait for.
//!
//! C headers: [`include/linux/wait.h`](srctree/include/linux/wait.h),
//! [`include/linux/poll.h`](srctree/include/linux/poll.h)

use core::marker::PhantomData;
use core::pin::Pin;
use fuse_bindings as bindings;
use kernel::{
    fs::LocalFile,
    prelude::*,
    sync::{
        ArcBorrow,
        LockClassKey, //
    },
    task::{
        might_sleep,
        TASK_INTERRUPTIBLE,
        TASK_UNINTERRUPTIBLE, //
    },
    types::Opaque, //
};

/// Woken by fatal signals only; a macro of two flags in C.
const TASK_KILLABLE: c_int = TASK_UNINTERRUPTIBLE | bindings::TASK_WAKEKILL as c_int;

/// Events of poll(2), as the kernel has them.
pub const EPOLLIN: u32 = bindings::EPOLLIN;
/// See [`EPOLLIN`].
pub const EPOLLOUT: u32 = bindings::EPOLLOUT;
/// See [`EPOLLIN`].
pub const EPOLLERR: u32 = bindings::EPOLLERR;
/// See [`EPOLLIN`].
pub const EPOLLRDNORM: u32 = bindings::EPOLLRDNORM;
/// See [`EPOLLIN`].
pub const EPOLLWRNORM: u32 = bindings::EPOLLWRNORM;

/// The kernel's `wait_queue_head_t`.
///
/// A waiter's condition is a closure that returns what was waited for, or [`None`] to wait on. It
/// runs before the first sleep and after each wake-up, in a task that is about to sleep: it may
/// take spinlocks, but must not sleep. Whoever makes the condition true does so under a lock that
/// the condition takes too, and then wakes the queue.
///
/// # Invariants
///
/// `head` is initialised.
#[pin_data]
pub struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A wait queue head may be used on, and dropped by, any thread.
unsafe impl Send for WaitQueue {}
// SAFETY: A wait queue head has a lock of its own; all functions called on it take that lock.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// An empty queue. `name` and `key` are for lockdep: [`kernel::static_lock_class!`] makes a
    /// key.
    pub fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: `slot` is where the queue stays, as it is pinned; name and key live for ever.
            head <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// Waits until `condition` gives a value, whatever signals come. Sleeps.
    pub fn wait<R>(&self, mut condition: impl FnMut() -> Option<R>) -> R {
        loop {
            // Without signals in this state the wait only ends with a value.
            if let Ok(value) = self.wait_in(TASK_UNINTERRUPTIBLE, 0, &mut condition) {
                return value;
            }
        }
    }

    /// Waits until `condition` gives a value or a fatal signal is pending. Sleeps.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS`: a fatal signal came first.
    pub fn wait_killable<R>(&self, mut condition: impl FnMut() -> Option<R>) -> Result<R> {
        self.wait_in(TASK_KILLABLE, 0, &mut condition)
    }

    /// Waits until `condition` gives a value or a signal is pending. Sleeps.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS`: a signal came first.
    pub fn wait_interruptible<R>(&self, mut condition: impl FnMut() -> Option<R>) -> Result<R> {
        self.wait_in(TASK_INTERRUPTIBLE, 0, &mut condition)
    }

    /// As [`wait_killable`](Self::wait_killable); [`wake`](Self::wake) wakes only so many of the
    /// tasks that wait so. Sleeps.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS`: a fatal signal came first.
    pub fn wait_killable_exclusive<R>(
        &self,
        mut condition: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        self.wait_in(
            TASK_KILLABLE,
            bindings::WQ_FLAG_EXCLUSIVE as c_int,
            &mut condition,
        )
    }

    /// Waits until `condition` gives a value or a signal is pending; [`wake_poll`](Self::wake_poll)
    /// wakes one of the tasks that wait so. Sleeps.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS`: a signal came first.
    pub fn wait_interruptible_exclusive<R>(
        &self,
        mut condition: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        self.wait_in(
            TASK_INTERRUPTIBLE,
            bindings::WQ_FLAG_EXCLUSIVE as c_int,
            &mut condition,
        )
    }

    fn wait_in<R>(
        &self,
        state: c_int,
        flags: c_int,
        condition: &mut dyn FnMut() -> Option<R>,
    ) -> Result<R> {
        might_sleep();
        if let Some(value) = condition() {
            return Ok(value);
        }

        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `entry` is valid for writes.
        unsafe { bindings::init_wait_entry(entry.get(), flags) };
        let head = self.head.get();
        let result = loop {
            // SAFETY: By the type invariants the queue is initialised. `entry` is initialised and
            // stays at its place, which this function does not leave before the entry is off the
            // queue.
            let signal = unsafe { bindings::prepare_to_wait_event(head, entry.get(), state) };
            if let Some(value) = condition() {
                break Ok(value);
            }
            if signal != 0 {
                break Err(Error::from_errno(signal as c_int));
            }
            // SAFETY: A task may sleep here; the caller holds no spinlock.
            unsafe { bindings::schedule() };
        };
        // SAFETY: As for prepare_to_wait_event(). This sets the task running again and takes the
        // entry off the queue.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
        result
    }

    /// Whether there is a waiter or poller. One that comes meanwhile may be missed, unless it came
    /// before by what this task did.
    pub fn has_waiters(&self) -> bool {
        // SAFETY: By the type invariants the queue is initialised.
        unsafe { bindings::waitqueue_active(self.head.get()) }
    }

    /// Wakes all waiters and pollers. Any context.
    pub fn wake_all(&self) {
        // SAFETY: By the type invariants the queue is initialised.
        unsafe { bindings::wake_up_all(self.head.get()) };
    }

    /// Wakes `count` exclusive waiters, and all others. Any context.
    pub fn wake(&self, count: u32) {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        // To C, 0 is all.
        if count > 0 {
            // SAFETY: By the type invariants the queue is initialised.
            unsafe { bindings::wake_up_nr(self.head.get(), count) };
        }
    }

    /// Wakes one exclusive waiter, all others, and the pollers that poll for one of the events
    /// `EPOLL*`. Any context.
    pub fn wake_poll(&self, events: u32) {
        // SAFETY: By the type invariants the queue is initialised.
        unsafe { bindings::wake_up_poll(self.head.get(), events) };
    }
}

/// The kernel's `poll_table`, in a call of `poll` on an object that lives for `'file`.
///
/// # Invariants
///
/// `table` is null or valid, and `file` is valid, for the duration of the call of `poll`. What
/// lives for `'file` lives until the file is released. (`'file` is invariant: it can't be made
/// shorter.)
pub struct PollTable<'file> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table,
    _file: PhantomData<fn(&'file ()) -> &'file ()>,
}

impl<'file> PollTable<'file> {
    /// # Safety
    ///
    /// `table` is null or valid for the duration of the call of `poll` that got it with `file`.
    /// What lives for `'file` lives until `file` is released.
    pub(crate) unsafe fn from_raw(file: &LocalFile, table: *mut bindings::poll_table) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            file: file.as_ptr(),
            table,
            _file: PhantomData,
        }
    }

    /// Lets the poller be woken by `queue`, until it stops polling, which is at the latest when the
    /// file is released.
    pub fn wait(&self, queue: &'file WaitQueue) {
        // SAFETY: By the type invariants file and table are valid here, and the queue exists for as
        // long as the poller may be on it: eventpoll leaves it when the file is released, select
        // and poll hold the file.
        unsafe { bindings::poll_wait(self.file, queue.head.get(), self.table) };
    }

    /// As [`wait`](Self::wait), for the queue that `queue` finds in an object, if there is one.
    pub fn wait_at<T>(
        &self,
        object: ArcBorrow<'file, T>,
        queue: impl for<'a> FnOnce(&'a T) -> Option<&'a WaitQueue>,
    ) {
        let object: *const T = &*object;
        // SAFETY: An `ArcBorrow<'file, _>` is valid for `'file`.
        if let Some(queue) = queue(unsafe { &*object }) {
            self.wait(queue);
        }
    }

    /// The events `EPOLL*` that the poller is interested in.
    pub fn requested_events(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::poll_requested_events(self.table) }
    }
}

/// The `POLL*` of programs for `EPOLL*`.
pub fn mangle_poll(events: u32) -> u16 {
    // SAFETY: A calculation.
    unsafe { bindings::mangle_poll(events) }
}

/// The `EPOLL*` for `POLL*` of programs.
pub fn demangle_poll(events: u16) -> u32 {
    // SAFETY: A calculation.
    unsafe { bindings::demangle_poll(events) }
}
