// SPDX-License-Identifier: GPL-2.0

//! What waits for a reader of the device: requests, forgets, and background requests whose turn has
//! not come.
//!
//! # Lock order
//!
//! The lock of the [`Iqueue`], which is [`Chan`](crate::chan::Chan)'s, then that of a [`Pqueue`],
//! then that of a [`Request`].

use crate::{
    pqueue::Pqueue,
    req::{
        self,
        Prepared,
        Queue,
        QueueNode,
        QueueSlot,
        Request, //
    }, //
};
use core::mem;
use fuse_abi::ForgetOne;
use fuse_core::{
    forget::{
        self,
        ForgetTurn, //
    },
    request, //
};
use fuse_sys::trace;
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::Arc, //
};

/// Background requests that may be under way until INIT says how many, and how many are congestion.
const DEFAULT_MAX_BACKGROUND: u32 = 12;
const DEFAULT_CONGESTION_THRESHOLD: u32 = 9;

/// Whether requests may pass.
#[derive(Clone, Copy, PartialEq)]
enum Gate {
    /// They wait: INIT is not answered.
    Shut,
    /// INIT is answered.
    Open,
    /// INIT has failed: all but forced ones are refused.
    Failed,
}

/// The memory to queue a forget with.
pub(crate) struct ForgetSlot(RBTreeNodeReservation<u64, ForgetOne>);

impl ForgetSlot {
    /// Allocates. Sleeps.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL)?))
    }
}

/// Forgets, oldest first. The keys only number them.
pub(crate) type Forgets = RBTree<u64, ForgetOne>;

/// How many forgets are taken with the lock held.
const FORGETS_PER_LOCK: u32 = 64;

/// Forgets to be sent as one request.
pub(crate) struct ForgetBatch {
    /// ID of the request.
    pub(crate) unique: u64,
    pub(crate) forgets: Forgets,
    /// How many there are, and how many more there is room for.
    pub(crate) count: u32,
    room: u32,
}

/// What a reader of the device has taken.
pub(crate) enum Work {
    /// Forgets to be sent as one request.
    Forgets(ForgetBatch),
    /// An INTERRUPT for the request of this ID.
    Interrupt { unique: u64 },
    /// A request, which is in the reader's table.
    Request(Arc<Request>),
}

/// See the [module](self).
pub(crate) struct Iqueue {
    connected: bool,
    gate: Gate,
    /// Requests numbered so far.
    numbered: u64,
    /// Requests of which the server is to be told that they were interrupted. They are in a table,
    /// too.
    interrupts: Queue,
    pending: Queue,
    forgets: Forgets,
    /// How many `forgets` there are, and how many there ever were.
    forgets_waiting: u32,
    forgets_queued: u64,
    turn: ForgetTurn,
    /// Background requests beyond `max_background`, oldest first. The keys only number them.
    background: Queue,
    background_queued: u64,
    /// Background requests that were started and have not ended, and those that wait for their turn
    /// besides.
    background_active: u32,
    background_all: u32,
    max_background: u32,
    congestion_threshold: u32,
}

impl Iqueue {
    pub(crate) fn new() -> Self {
        Self {
            connected: true,
            gate: Gate::Shut,
            numbered: 0,
            interrupts: RBTree::new(),
            pending: RBTree::new(),
            forgets: RBTree::new(),
            forgets_waiting: 0,
            forgets_queued: 0,
            turn: ForgetTurn::new(),
            background: RBTree::new(),
            background_queued: 0,
            background_active: 0,
            background_all: 0,
            max_background: DEFAULT_MAX_BACKGROUND,
            congestion_threshold: DEFAULT_CONGESTION_THRESHOLD,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether a reader would find something.
    pub(crate) fn has_work(&self) -> bool {
        !self.interrupts.is_empty() || !self.pending.is_empty() || !self.forgets.is_empty()
    }

    /// Whether a request may be queued: [`None`] is not yet.
    ///
    /// # Errors
    ///
    /// `ENOTCONN`: there is no server. `ECONNREFUSED`: INIT has failed.
    pub(crate) fn admits(&self, force: bool) -> Option<Result> {
        if !self.connected {
            return Some(Err(ENOTCONN));
        }
        match self.gate {
            Gate::Open => Some(Ok(())),
            _ if force => Some(Ok(())),
            Gate::Shut => None,
            Gate::Failed => Some(Err(ECONNREFUSED)),
        }
    }

    /// Whether a task may add a background request: [`None`] is not yet.
    ///
    /// # Errors
    ///
    /// As for [`admits`](Self::admits).
    pub(crate) fn admits_background(&self) -> Option<Result> {
        let admitted = self.admits(false)?;
        (admitted.is_err() || self.background_all < self.max_background).then_some(admitted)
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.background_all >= self.congestion_threshold
    }

    pub(crate) fn max_background(&self) -> u32 {
        self.max_background
    }

    /// Returns how many background requests there is room for.
    pub(crate) fn set_max_background(&mut self, max: u32) -> u32 {
        self.max_background = max;
        max.saturating_sub(self.background_all)
    }

    pub(crate) fn congestion_threshold(&self) -> u32 {
        self.congestion_threshold
    }

    pub(crate) fn set_congestion_threshold(&mut self, threshold: u32) {
        self.congestion_threshold = threshold;
    }

    fn next_unique(&mut self) -> u64 {
        let unique = request::unique(self.numbered);
        self.numbered = self.numbered.wrapping_add(1);
        unique
    }

    fn push_pending(&mut self, connection: u32, request: Arc<Request>, slot: QueueSlot) {
        let unique = self.next_unique();
        request.set_unique(unique);
        trace::request_send(connection, unique, request.opcode(), request.len() as u32);
        // The IDs do not repeat within 2^62 requests: there is no other one of this ID.
        self.pending.insert(slot.into_node(unique, request));
    }

    /// Queues a request for the server. `connection` is for the tracepoint.
    pub(crate) fn push(&mut self, connection: u32, prepared: Prepared) -> Arc<Request> {
        let (request, slot) = prepared.into_parts();
        self.push_pending(connection, request.clone(), slot);
        request
    }

    /// Queues a background request, which [`start_background`](Self::start_background) lets go to
    /// the server in its turn.
    pub(crate) fn push_background(&mut self, prepared: Prepared) {
        let (request, slot) = prepared.into_parts();
        self.background_queued = self.background_queued.wrapping_add(1);
        self.background_all = self.background_all.saturating_add(1);
        self.background
            .insert(slot.into_node(self.background_queued, request));
    }

    /// Moves background requests to the server's queue, as many as may be under way. Returns how
    /// many.
    pub(crate) fn start_background(&mut self, connection: u32) -> u32 {
        let mut started = 0u32;
        while self.gate != Gate::Shut && self.background_active < self.max_background {
            let Some((request, node)) = pop(&mut self.background) else {
                break;
            };
            self.background_active = self.background_active.saturating_add(1);
            started = started.saturating_add(1);
            self.push_pending(connection, request, node.into_reservation());
        }
        started
    }

    /// A background request has ended.
    pub(crate) fn end_background(&mut self) {
        // One that has ended before it was started makes no difference: none is started after that.
        self.background_active = self.background_active.saturating_sub(1);
        self.background_all = self.background_all.saturating_sub(1);
    }

    pub(crate) fn push_forget(&mut self, slot: ForgetSlot, forget: ForgetOne) {
        self.forgets_queued = self.forgets_queued.wrapping_add(1);
        self.forgets_waiting = self.forgets_waiting.saturating_add(1);
        self.forgets
            .insert(slot.0.into_node(self.forgets_queued, forget));
    }

    /// Queues an INTERRUPT for `request`, for which it has the memory. What is ended needs none.
    pub(crate) fn push_interrupt(&mut self, request: &Arc<Request>) {
        let mut inner = request.lock();
        if !self.connected || inner.state.is_finished() {
            return;
        }
        let slot = inner.interrupt.take();
        drop(inner);
        if let Some(slot) = slot {
            self.interrupts
                .insert(slot.into_node(request.key(), request.clone()));
        }
    }

    /// Takes the INTERRUPT for an ended request out, if it still is there. It is dropped by the
    /// caller, without the lock.
    pub(crate) fn remove_interrupt(&mut self, request: &Request) -> Option<QueueNode> {
        self.interrupts.remove_node(&request.key())
    }

    /// The INTERRUPTs, which nobody is told any more.
    pub(crate) fn drop_interrupts(&mut self) -> Queue {
        mem::take(&mut self.interrupts)
    }

    /// Moves what the server has of the device with table `pqueue` back to the head of the queue.
    /// Returns how many requests.
    pub(crate) fn resend(&mut self, pqueue: &Pqueue) -> u32 {
        pqueue.resend_to(&mut self.pending)
    }

    /// How long the oldest request has waited, in ticks; 0 if none waits.
    pub(crate) fn age(&self) -> u64 {
        req::age(&self.pending).max(req::age(&self.background))
    }

    /// Takes out an ended request. It is dropped by the caller, without the lock.
    pub(crate) fn remove(&mut self, request: &Request) -> Option<QueueNode> {
        self.pending.remove_node(&request.key())
    }

    /// Lets requests pass. INIT has set the limits of background requests.
    pub(crate) fn open(&mut self, max_background: u32, congestion_threshold: u32) {
        self.gate = Gate::Open;
        self.max_background = max_background;
        self.congestion_threshold = congestion_threshold;
    }

    /// INIT has failed. Returns the background requests that waited for it, to be ended.
    pub(crate) fn fail(&mut self) -> Queue {
        self.gate = Gate::Failed;
        mem::take(&mut self.background)
    }

    /// The server is gone. Returns all requests that wait, to be ended: those that had no turn yet,
    /// and the others; [`None`] if that was known already.
    pub(crate) fn disconnect(&mut self) -> Option<(Queue, Queue)> {
        if !mem::replace(&mut self.connected, false) {
            return None;
        }
        Some((
            mem::take(&mut self.background),
            mem::take(&mut self.pending),
        ))
    }

    /// The forgets, which nobody is told any more.
    pub(crate) fn drop_forgets(&mut self) -> Forgets {
        self.forgets_waiting = 0;
        mem::take(&mut self.forgets)
    }

    /// Takes what is next for a reader of the device with table `pqueue`, with a buffer of
    /// `buf_len` bytes, for a server of version 7.`minor`; [`None`] if nothing waits.
    pub(crate) fn take(&mut self, pqueue: &Pqueue, minor: u32, buf_len: usize) -> Option<Work> {
        if let Some(unique) = self.take_interrupt() {
            return Some(Work::Interrupt { unique });
        }
        let forgets = !self.forgets.is_empty();
        if self.turn.is_forget(forgets, !self.pending.is_empty()) {
            let count = forget::per_read(minor, self.forgets_waiting, buf_len);
            if count > 0 {
                let mut batch = ForgetBatch {
                    unique: self.next_unique(),
                    forgets: RBTree::new(),
                    count: 0,
                    room: count,
                };
                self.fill(&mut batch);
                return Some(Work::Forgets(batch));
            }
        }
        loop {
            let (request, node) = pop(&mut self.pending)?;
            let taken = request.lock().state.take();
            // One that was ended in the queue is let go here; who has ended it still holds it.
            if taken.is_ok() {
                pqueue.insert(node);
                return Some(Work::Request(request));
            }
        }
    }

    /// Takes the oldest request of whose interruption the server is to be told; returns its ID.
    fn take_interrupt(&mut self) -> Option<u64> {
        loop {
            let (request, node) = pop(&mut self.interrupts)?;
            let mut inner = request.lock();
            // One that is being answered, or was queued again, is let go here; it is not ended and
            // so is held elsewhere.
            let taken = inner.state.take_interrupt();
            inner.interrupt = Some(node.into_reservation());
            if taken.is_ok() {
                return Some(request.unique());
            }
        }
    }

    /// Takes forgets into the batch, not many at a time. Returns whether there is more to take.
    pub(crate) fn fill(&mut self, batch: &mut ForgetBatch) -> bool {
        let count = if batch.count == 0 && self.forgets_waiting <= batch.room {
            batch.forgets = mem::take(&mut self.forgets);
            self.forgets_waiting
        } else {
            let mut taken = 0u32;
            while taken < batch.room.min(FORGETS_PER_LOCK) {
                let Some(first) = self.forgets.cursor_front_mut() else {
                    break;
                };
                batch.forgets.insert(first.remove_current().1);
                taken = taken.saturating_add(1);
            }
            taken
        };
        self.forgets_waiting = self.forgets_waiting.saturating_sub(count);
        batch.count = batch.count.saturating_add(count);
        batch.room = batch.room.saturating_sub(count);
        batch.room > 0 && self.forgets_waiting > 0
    }
}

/// Takes the first request out of a queue, and the node that holds it.
fn pop(queue: &mut Queue) -> Option<(Arc<Request>, QueueNode)> {
    let first = queue.cursor_front_mut()?;
    let request = first.current().1.clone();
    Some((request, first.remove_current().1))
}
