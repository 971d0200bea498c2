// SPDX-License-Identifier: GPL-2.0

//! The connection to a server as the filesystem sees it: requests go in, answers come out.
//!
//! Before INIT is answered requests wait at a gate, only INIT itself and forced ones pass. Once the
//! connection is aborted, which happens at unmount, when the server's last device is closed, or on
//! demand, all requests end.
//!
//! # Lock order
//!
//! `pqueues`, [`Iqueue`], [`Pqueue`], [`Request`]; `pqueues` is a mutex. Completions run without
//! locks.

use crate::{
    iqueue::{
        ForgetSlot,
        Iqueue,
        Work, //
    },
    pqueue::Pqueue,
    req::{
        Answer,
        Args,
        Ended,
        Inner,
        Prepared,
        Queue,
        Reply,
        Request, //
    }, //
};
use fuse_abi::{
    ForgetOne,
    InitFlags, //
};
use fuse_core::{
    init::Negotiated,
    request::End, //
};
use fuse_sys::trace;
use kernel::{
    prelude::*,
    rbtree::RBTree,
    static_lock_class,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        lock::spinlock::SpinLockGuard,
        new_mutex,
        new_spinlock,
        Arc,
        Mutex,
        SetOnce,
        SpinLock, //
    }, //
};
use vfs::{
    fasync::FasyncList,
    wait::{
        PollTable,
        WaitQueue,
        EPOLLIN,
        EPOLLRDNORM, //
    }, //
};

mod background;
mod interrupt;
mod notify;
mod resend;
mod timeout;

pub(crate) use timeout::Watchdog;

pub(crate) use notify::Notified;

/// A connection.
#[pin_data]
pub(crate) struct Chan {
    /// The device number of the mount, for tracepoints; 0 until it is known.
    connection: Atomic<u32>,
    /// Minor version of the protocol, and most bytes of a WRITE, as INIT has set them; 0 before.
    minor: Atomic<u32>,
    max_write: Atomic<u32>,
    /// Requests whose sender was not told yet how they ended, and tasks that wait to send one.
    waiting: Atomic<usize>,
    /// Set after [`Iqueue`] was disconnected.
    aborted: Atomic<bool>,
    /// The server wants to know an abort by the administrator from the end of the mount
    /// (`ABORT_ERROR`), and that there was one.
    abort_error: Atomic<bool>,
    aborted_by_user: Atomic<bool>,
    /// The server knows no INTERRUPT.
    no_interrupt: Atomic<bool>,
    /// Takes notifications.
    notified: SetOnce<Arc<dyn Notified>>,
    #[pin]
    iqueue: SpinLock<Iqueue>,
    /// Readers and pollers of the device.
    #[pin]
    readers: WaitQueue,
    /// Servers that want a signal instead.
    fasync: FasyncList,
    /// Senders that wait for INIT.
    #[pin]
    gate: WaitQueue,
    /// Tasks that want to send a request in the background, while there are enough of those.
    #[pin]
    crowd: WaitQueue,
    /// Woken when nobody waits any more after an abort.
    #[pin]
    idle: WaitQueue,
    /// The tables of the server's devices.
    #[pin]
    pqueues: Mutex<KVec<Arc<Pqueue>>>,
}

impl Chan {
    /// A connection whose server has not answered INIT. It needs a device:
    /// [`Dev::install`](crate::dev::Dev::install).
    pub(crate) fn new() -> Result<Arc<Self>> {
        let pqueues = KVec::with_capacity(1, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                connection: Atomic::new(0),
                minor: Atomic::new(0),
                max_write: Atomic::new(0),
                waiting: Atomic::new(0),
                aborted: Atomic::new(false),
                abort_error: Atomic::new(false),
                aborted_by_user: Atomic::new(false),
                no_interrupt: Atomic::new(false),
                notified: SetOnce::new(),
                iqueue <- new_spinlock!(Iqueue::new(), "fuse_rs_iqueue"),
                readers <- WaitQueue::new(c"fuse_rs_readers", static_lock_class!()),
                fasync: FasyncList::new(),
                gate <- WaitQueue::new(c"fuse_rs_gate", static_lock_class!()),
                crowd <- WaitQueue::new(c"fuse_rs_crowd", static_lock_class!()),
                idle <- WaitQueue::new(c"fuse_rs_idle", static_lock_class!()),
                pqueues <- new_mutex!(pqueues, "fuse_rs_pqueues"),
            }),
            GFP_KERNEL,
        )
    }

    /// Waits until INIT is answered: what a request looks like depends on what was agreed by it.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR`: a fatal signal came first. `ENOTCONN`, `ECONNREFUSED` as for [`send`](Self::send).
    pub(crate) fn wait_ready(&self) -> Result {
        self.enter();
        let ready = self.gate.wait_killable(|| self.iqueue.lock().admits(false));
        self.leave();
        ready.map_err(|_| EINTR)?
    }

    /// A request, or a task that waits to send one, is there.
    fn enter(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    /// Its sender was told how the request ended, or the task does not send it.
    fn leave(&self) {
        // The last one sees the abort, or wait_aborted() sees the last one: both sides write, have
        // a full barrier, and read.
        if self.waiting.fetch_sub(1, Full) == 1 && self.aborted.load(Relaxed) {
            self.idle.wake_all();
        }
    }

    /// Sends a request and waits for the answer. It waits for INIT before, unless it is forced.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// What the server answers. `EINTR`: a fatal signal came before the server had read the
    /// request; after that the answer is waited for. `ENOTCONN`: there is no server;
    /// `ECONNABORTED`: it went away meanwhile. `ECONNREFUSED`: INIT has failed. `EIO`: the server's
    /// answer did not fit, or the request did not fit into its buffer. `ENOMEM`.
    pub(crate) fn send(&self, args: Args) -> Result<Reply> {
        let request = self.queue(Prepared::new(args, None)?)?;
        self.wait_answer(&request)
    }

    /// Queues a request for the server, once the gate lets it pass.
    fn queue(&self, prepared: Prepared) -> Result<Arc<Request>> {
        let force = prepared.is_force();
        let mut prepared = Some(prepared);
        self.enter();
        let queued = self.gate.wait_killable(|| {
            let mut iqueue = self.iqueue.lock();
            if let Err(error) = iqueue.admits(force)? {
                return Some(Err(error));
            }
            let prepared = prepared.take()?;
            Some(Ok(iqueue.push(self.connection(), prepared)))
        });
        match queued.unwrap_or(Err(EINTR)) {
            Ok(request) => {
                self.wake_reader();
                Ok(request)
            }
            Err(error) => {
                self.leave();
                Err(error)
            }
        }
    }

    /// Sends INIT, which does not wait for itself, or a NOTIFY_REPLY. Otherwise as
    /// [`send_background`](Self::send_background), but counts against no limit. [`None`]: there is
    /// no server, the request is ended.
    pub(crate) fn send_now(&self, prepared: Prepared) -> Option<Arc<Request>> {
        let mut iqueue = self.iqueue.lock();
        if !iqueue.is_connected() {
            drop(iqueue);
            refuse(prepared, ENOTCONN);
            return None;
        }
        self.enter();
        let request = iqueue.push(self.connection(), prepared);
        drop(iqueue);
        self.wake_reader();
        Some(request)
    }

    /// Sends INIT and waits for the answer. A fatal signal ends the connection: without INIT there
    /// is no use for it. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOTCONN`, `ECONNABORTED`: there is no server any more. What the server answers.
    pub(crate) fn call_init(&self, prepared: Prepared) -> Result<Reply> {
        let request = self.send_now(prepared).ok_or(ENOTCONN)?;
        match request.wait_killable() {
            Ok(answer) => answer,
            Err(_) => {
                self.abort();
                request.wait()
            }
        }
    }

    /// Gives `nlookup` lookups of the node back to the server, if there is one. Any context in
    /// which memory may be freed.
    pub(crate) fn queue_forget(&self, slot: ForgetSlot, nodeid: u64, nlookup: u64) {
        let mut iqueue = self.iqueue.lock();
        if iqueue.is_connected() {
            iqueue.push_forget(slot, ForgetOne { nodeid, nlookup });
            drop(iqueue);
            self.wake_reader();
        }
    }

    /// INIT was answered: requests pass, within what was agreed on.
    pub(crate) fn set_initialized(&self, negotiated: &Negotiated) {
        self.minor.store(negotiated.minor, Relaxed);
        self.max_write.store(negotiated.limits.max_write, Relaxed);
        let abort_error = negotiated.flags.contains(InitFlags::ABORT_ERROR);
        self.abort_error.store(abort_error, Relaxed);
        let mut iqueue = self.iqueue.lock();
        iqueue.open(negotiated.max_background, negotiated.congestion_threshold);
        let started = iqueue.start_background(self.connection());
        drop(iqueue);
        self.gate.wake_all();
        self.crowd.wake_all();
        self.wake_readers(started);
    }

    /// INIT has failed: requests that wait for it, and later ones that are not forced, end with
    /// `ECONNREFUSED`.
    pub(crate) fn set_failed(&self) {
        let waiting = self.iqueue.lock().fail();
        self.gate.wake_all();
        self.crowd.wake_all();
        self.end_all(waiting, ECONNREFUSED);
    }

    /// Ends the connection: all requests end with `ECONNABORTED`, later ones with `ENOTCONN`. A
    /// request whose folios a server is copying to right now is ended by the copier, see
    /// [`wait_aborted`](Self::wait_aborted). Sleeps.
    pub(crate) fn abort(&self) {
        let mut iqueue = self.iqueue.lock();
        let Some((background, mut requests)) = iqueue.disconnect() else {
            return;
        };
        let forgets = iqueue.drop_forgets();
        let interrupts = iqueue.drop_interrupts();
        drop(iqueue);
        drop(forgets);
        drop(interrupts);

        self.aborted.xchg(true, Full);
        // For those who lost the race to abort and wait: the last request may have ended already.
        self.idle.wake_all();
        self.gate.wake_all();
        self.crowd.wake_all();
        self.readers.wake_all();
        self.fasync.readable();

        // No reader takes a request any more: all are in a table or in what was taken out of the
        // queue.
        for pqueue in self.pqueues.lock().iter() {
            pqueue.drain_to(&mut requests);
        }
        self.end_all(requests, ECONNABORTED);
        self.end_all(background, ECONNABORTED);
    }

    /// As [`abort`](Self::abort), by the administrator: the server gets `ECONNABORTED` from its
    /// device instead of `ENODEV`, if it has asked for that. Sleeps.
    pub(crate) fn abort_by_user(&self) {
        if self.abort_error.load(Relaxed) {
            self.aborted_by_user.store(true, Relaxed);
        }
        self.abort();
    }

    /// What the server is told by its device when the connection is gone.
    pub(crate) fn gone(&self) -> Error {
        if self.aborted_by_user.load(Relaxed) {
            ECONNABORTED
        } else {
            ENODEV
        }
    }

    /// Requests whose sender was not told yet how they ended, and tasks that wait to send one.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Waits until each request is ended and its sender told. After [`abort`](Self::abort), else
    /// there is no end to it. Sleeps.
    pub(crate) fn wait_aborted(&self) {
        self.idle
            .wait(|| (self.waiting.load(Relaxed) == 0).then_some(()))
    }

    /// Whether there is a server.
    pub(crate) fn is_connected(&self) -> bool {
        !self.aborted.load(Relaxed)
    }

    /// Minor version of the protocol that both sides speak.
    pub(crate) fn minor(&self) -> u32 {
        self.minor.load(Relaxed)
    }

    /// Most bytes of a WRITE.
    pub(crate) fn max_write(&self) -> u32 {
        self.max_write.load(Relaxed)
    }

    /// Sets what tracepoints call the connection: the device number of its mount,
    /// `new_encode_dev()` of it.
    pub(crate) fn set_connection(&self, dev: u32) {
        self.connection.store(dev, Relaxed);
    }

    /// See [`set_connection`](Self::set_connection).
    pub(crate) fn connection(&self) -> u32 {
        self.connection.load(Relaxed)
    }

    /// Servers that want a signal when there is something to read.
    pub(crate) fn fasync(&self) -> &FasyncList {
        &self.fasync
    }

    fn wake_reader(&self) {
        self.readers.wake_poll(EPOLLIN | EPOLLRDNORM);
        self.fasync.readable();
    }

    fn wake_readers(&self, count: u32) {
        for _ in 0..count {
            self.wake_reader();
        }
    }

    fn end_all(&self, mut requests: Queue, error: Error) {
        while let Some(first) = requests.cursor_front_mut() {
            let request = first.remove_current().1.to_key_value().1;
            let mut inner = request.lock();
            if let Some(end) = inner.state.abort() {
                let ended = request.settle(inner, end, Err(error));
                self.finish(ended);
            }
        }
    }

    /// Ends a request, by its lock `inner`, that is in the table of a device. No other locks held;
    /// may run completions.
    pub(crate) fn end(
        &self,
        pqueue: &Pqueue,
        request: &Arc<Request>,
        inner: SpinLockGuard<'_, Inner>,
        end: End,
        answer: Result<Answer>,
    ) {
        let ended = request.settle(inner, end, answer);
        pqueue.remove(request);
        self.finish(ended);
    }

    /// Tells the sender of an ended request, which was taken out of where it was. No locks held;
    /// may run completions.
    pub(crate) fn finish(&self, ended: Ended) {
        trace::request_end(
            self.connection(),
            ended.request().unique(),
            ended.len(),
            ended.errno(),
        );
        if ended.is_interrupt_queued() {
            let interrupt = self.iqueue.lock().remove_interrupt(ended.request());
            drop(interrupt);
        }
        let request = ended.deliver();
        if request.is_background() {
            self.end_background();
        }
        self.leave();
    }

    /// Lets a device serve the connection. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn attach(&self, pqueue: Arc<Pqueue>) -> Result {
        Ok(self.pqueues.lock().push(pqueue, GFP_KERNEL)?)
    }

    /// A device is closed: what it has read ends, and with the last device the connection. Sleeps.
    pub(crate) fn detach(&self, pqueue: &Arc<Pqueue>) {
        let mut pqueues = self.pqueues.lock();
        pqueues.retain(|other| !Arc::ptr_eq(other, pqueue));
        let last = pqueues.is_empty();
        drop(pqueues);

        // The connection ends first: that an INIT is not answered is not the server's answer then.
        if last {
            self.abort();
        }
        let mut requests = RBTree::new();
        pqueue.drain_to(&mut requests);
        self.end_all(requests, ECONNABORTED);
    }

    /// Takes what is next for a reader of the device with table `pqueue` and a buffer of `buf_len`
    /// bytes.
    ///
    /// # Errors
    ///
    /// Those of [`gone`](Self::gone): there is no client any more.
    fn take(&self, pqueue: &Pqueue, buf_len: usize) -> Option<Result<Work>> {
        let mut iqueue = self.iqueue.lock();
        if !iqueue.is_connected() {
            return Some(Err(self.gone()));
        }
        iqueue.take(pqueue, self.minor(), buf_len).map(Ok)
    }

    /// Takes what is next for a reader; waits for it, unless `nonblock`. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`gone`](Self::gone): there is no client any more. `EAGAIN`: nothing there.
    /// `ERESTARTSYS`: a signal.
    pub(crate) fn next(&self, pqueue: &Pqueue, buf_len: usize, nonblock: bool) -> Result<Work> {
        let mut work = if nonblock {
            self.take(pqueue, buf_len).unwrap_or(Err(EAGAIN))
        } else {
            self.readers
                .wait_interruptible_exclusive(|| self.take(pqueue, buf_len))?
        }?;
        if let Work::Forgets(batch) = &mut work {
            while self.iqueue.lock().fill(batch) {}
        }
        Ok(work)
    }

    /// What a poller of the device may do, [`None`] if there is no client any more: whether there
    /// is something to read.
    pub(crate) fn poll<'file>(&'file self, table: &PollTable<'file>) -> Option<bool> {
        table.wait(&self.readers);
        let iqueue = self.iqueue.lock();
        iqueue.is_connected().then(|| iqueue.has_work())
    }
}

/// Ends a request that was never queued.
fn refuse(prepared: Prepared, error: Error) {
    let (request, _) = prepared.into_parts();
    let mut inner = request.lock();
    if let Some(end) = inner.state.abort() {
        request.settle(inner, end, Err(error)).deliver();
    }
}
