// SPDX-License-Identifier: GPL-2.0

//! Requests: what is asked of the server, where its answer goes, and how the asker learns of it.
//!
//! A [`Request`] owns its arguments and its [`Sink`]; nothing of it is on the stack of a task that
//! may go away. Where it is in its life, and who may touch what, is said by [`RequestState`], kept
//! under the request's lock.
//!
//! The sink moves: it is in the request, except that a writer of the device takes it out while it
//! fills it. Whoever is handed the [`End`] of the request finds the sink in the request, or holds
//! it. So a writer that was not let into its copy section has no folios to copy to.
//!
//! # Lock order
//!
//! [`Iqueue`](crate::iqueue::Iqueue), [`Pqueue`](crate::pqueue::Pqueue), [`Request`]. Completions
//! run without locks.

use core::mem;
use core::pin::Pin;
use fuse_abi::{
    InHeader,
    Opcode,
    OutHeader,
    UNIQUE_RESEND, //
};
use fuse_core::request::{
    End,
    RequestState, //
};
use kernel::{
    alloc::{
        AllocError,
        Flags, //
    },
    iov::IovIterSource,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    static_lock_class,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        lock::spinlock::SpinLockGuard,
        new_spinlock,
        Arc,
        SpinLock,
        UniqueArc, //
    }, //
};
use vfs::{
    folio::FolioRange,
    mm,
    time,
    wait::WaitQueue, //
};
use zerocopy::{
    Immutable,
    IntoBytes, //
};

/// Requests in the order in which the server gets them, or by the ID by which it answers: that is
/// the same.
pub(crate) type Queue = RBTree<u64, Arc<Request>>;
/// By what the request with an ID is found in a [`Queue`]: being sent again changes the ID, but not
/// the place.
pub(crate) fn key(unique: u64) -> u64 {
    unique & !UNIQUE_RESEND
}

/// How long the first request of a queue has waited, in ticks; 0 if there is none.
pub(crate) fn age(queue: &Queue) -> u64 {
    queue.values().next().map_or(0, |request| {
        time::jiffies64().saturating_sub(request.queued)
    })
}

/// A request in a [`Queue`], or between two.
pub(crate) type QueueNode = RBTreeNode<u64, Arc<Request>>;
/// The memory of a [`QueueNode`]: a request has it from the start, and queueing it never fails.
pub(crate) type QueueSlot = RBTreeNodeReservation<u64, Arc<Request>>;

/// Who asks, as the server is to see him.
#[derive(Clone, Copy)]
pub(crate) struct Creds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) pid: u32,
}

impl Creds {
    /// Nobody: for requests that are the client's own.
    pub(crate) const NONE: Self = Self {
        uid: 0,
        gid: 0,
        pid: 0,
    };
}

/// Where the payload of an answer goes.
pub(crate) enum Sink {
    /// Into the [`Reply`]: from `min` to `max` bytes, `max` at most [`Reply::INLINE`].
    Inline { min: usize, max: usize },
    /// Into this empty vector, up to its capacity.
    Buffer(KVVec<u8>),
    /// Into the page cache, up to [`FolioSink::len`].
    Folios(KBox<dyn FolioSink>),
}

impl Sink {
    /// A payload of exactly `len` bytes.
    pub(crate) const fn exactly(len: usize) -> Self {
        Self::Inline { min: len, max: len }
    }

    /// A payload of `max` bytes or fewer, into a buffer of its own. Sleeps.
    pub(crate) fn buffer(max: usize) -> Result<Self, AllocError> {
        Ok(Self::Buffer(KVVec::with_capacity(max, GFP_KERNEL)?))
    }

    /// Whether the server may answer with `payload` bytes.
    pub(crate) fn takes(&self, payload: usize) -> bool {
        match self {
            Self::Inline { min, max } => (*min..=*max).contains(&payload),
            Self::Buffer(buffer) => payload <= buffer.capacity(),
            Self::Folios(folios) => payload <= folios.len(),
        }
    }
}

impl Default for Sink {
    /// No payload.
    fn default() -> Self {
        Self::exactly(0)
    }
}

/// Ranges of folios, in ascending order of the file, that a READ fills.
pub(crate) trait FolioSink: Send {
    /// Bytes of all ranges.
    fn len(&self) -> usize;

    /// Copies from the server's buffer to the ranges, from byte `at` on, with page faults disabled.
    /// Returns the bytes copied: fewer than there are when user memory was not present. Does not
    /// sleep.
    fn copy_from(&mut self, at: usize, from: &mut IovIterSource<'_>) -> usize;

    /// The read is over: the first bytes, so many as `result` says, were copied. Called once,
    /// without locks.
    fn complete(self: KBox<Self>, result: Result<usize>);
}

/// What happens at the end of a background request.
pub(crate) trait Completion: Send {
    /// Runs in whoever ends the request: the server that writes the answer, or who aborts the
    /// connection. Without locks; must not sleep long, nor send requests that wait.
    fn complete(self: KBox<Self>, result: Result<Reply>);
}

/// A request that is being put together.
pub(crate) struct Args {
    opcode: Opcode,
    nodeid: u64,
    creds: Creds,
    bytes: KVec<u8>,
    folios: KVec<FolioRange>,
    sink: Sink,
    force: bool,
    answers: Option<u64>,
}

impl Args {
    /// A request without arguments, with an empty answer.
    pub(crate) fn new(opcode: Opcode, nodeid: u64, creds: Creds) -> Self {
        Self {
            opcode,
            nodeid,
            creds,
            bytes: KVec::new(),
            folios: KVec::new(),
            sink: Sink::default(),
            force: false,
            answers: None,
        }
    }

    /// What the server asked for by a notification, under the ID that it chose. It does not answer
    /// in its turn.
    pub(crate) fn notify_reply(nodeid: u64, unique: u64) -> Self {
        Self {
            answers: Some(unique),
            ..Self::new(Opcode::NotifyReply, nodeid, Creds::NONE)
        }
    }

    /// A request that must reach the server: it neither waits for INIT nor ends by a fatal signal,
    /// and there is always memory for it and its arguments.
    pub(crate) fn forced(opcode: Opcode, nodeid: u64, creds: Creds) -> Self {
        Self {
            force: true,
            ..Self::new(opcode, nodeid, creds)
        }
    }

    fn gfp(&self) -> Flags {
        if self.force {
            mm::GFP_NOFAIL
        } else {
            GFP_KERNEL
        }
    }

    /// Adds an argument. Sleeps.
    pub(crate) fn arg<T: IntoBytes + Immutable + ?Sized>(
        mut self,
        arg: &T,
    ) -> Result<Self, AllocError> {
        self.bytes.extend_from_slice(arg.as_bytes(), self.gfp())?;
        Ok(self)
    }

    /// Adds a name, and the NUL that ends it. Sleeps.
    pub(crate) fn name(mut self, name: &[u8]) -> Result<Self, AllocError> {
        let gfp = self.gfp();
        self.bytes.extend_from_slice(name, gfp)?;
        self.bytes.push(0, gfp)?;
        Ok(self)
    }

    /// Adds a payload, behind all arguments: the bytes of folios, whose memory stays until the
    /// request is ended. They are copied while the server reads the request, not before.
    pub(crate) fn folios(mut self, folios: KVec<FolioRange>) -> Self {
        self.folios = folios;
        self
    }

    /// Says where the answer's payload goes.
    pub(crate) fn sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }
}

/// The payload of an answer.
pub(crate) struct Reply(Payload);

enum Payload {
    Inline {
        bytes: [u8; Reply::INLINE],
        len: usize,
    },
    Buffer(KVVec<u8>),
}

impl Reply {
    /// Most bytes of a [`Sink::Inline`]: the answer to CREATE.
    pub(crate) const INLINE: usize = 144;

    /// The first `len` of `bytes`.
    pub(crate) fn inline(bytes: [u8; Self::INLINE], len: usize) -> Self {
        Self(Payload::Inline { bytes, len })
    }

    /// The bytes of a [`Sink::Buffer`].
    pub(crate) fn buffer(buffer: KVVec<u8>) -> Self {
        Self(Payload::Buffer(buffer))
    }

    /// What followed the header of the answer; empty if it went to a [`Sink::Folios`].
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Payload::Inline { bytes, len } => bytes.get(..*len).unwrap_or_default(),
            Payload::Buffer(buffer) => buffer,
        }
    }
}

/// A successful answer.
pub(crate) enum Answer {
    /// The payload of a [`Sink::Inline`] or [`Sink::Buffer`].
    Reply(Reply),
    /// So many bytes went to the [`Sink::Folios`], which is in the request.
    Folios(usize),
}

impl Answer {
    /// An answer without payload.
    pub(crate) fn empty() -> Self {
        Self::Reply(Reply::inline([0; Reply::INLINE], 0))
    }

    fn len(&self) -> usize {
        match self {
            Self::Reply(reply) => reply.bytes().len(),
            Self::Folios(len) => *len,
        }
    }
}

/// A request on its way to the server and back.
#[pin_data]
pub(crate) struct Request {
    opcode: Opcode,
    nodeid: u64,
    creds: Creds,
    args: KVec<u8>,
    /// Behind `args`. Once the request is ended their bytes may be anything, which no server must
    /// see.
    folios: KVec<FolioRange>,
    force: bool,
    /// Counts against `max_background`.
    background: bool,
    /// The tick at which it was queued, in the background or for the server.
    queued: u64,
    /// The ID; 0 until it is queued for the server.
    unique: Atomic<u64>,
    /// The ID that the server gets instead, as it chose it.
    answers: Option<u64>,
    #[pin]
    inner: SpinLock<Inner>,
    /// Woken when the result is there.
    #[pin]
    wait: WaitQueue,
}

/// What the lock of a request protects.
pub(crate) struct Inner {
    pub(crate) state: RequestState,
    /// Without payload once the request is ended, and while a writer holds the sink.
    pub(crate) sink: Sink,
    /// Absent if a task waits.
    done: Option<KBox<dyn Completion>>,
    /// For the task that waits.
    result: Option<Result<Reply>>,
    /// The memory to queue an INTERRUPT with, once a signal came and while none is queued.
    pub(crate) interrupt: Option<QueueSlot>,
}

impl Request {
    fn new(
        args: Args,
        done: Option<KBox<dyn Completion>>,
    ) -> Result<Pin<UniqueArc<Self>>, AllocError> {
        let gfp = args.gfp();
        let Args {
            opcode,
            nodeid,
            creds,
            bytes,
            folios,
            sink,
            force,
            answers,
        } = args;
        let mut state = RequestState::new();
        if force {
            state = state.force();
        }
        if answers.is_some() {
            state = state.no_reply();
        }
        let inner = Inner {
            state,
            sink,
            done,
            result: None,
            interrupt: None,
        };
        UniqueArc::pin_init(
            pin_init!(Self {
                opcode,
                nodeid,
                creds,
                args: bytes,
                folios,
                force,
                background: false,
                queued: 0,
                unique: Atomic::new(0),
                answers,
                inner <- new_spinlock!(inner, "fuse_rs_request"),
                wait <- WaitQueue::new(c"fuse_rs_request_wait", static_lock_class!()),
            }),
            gfp,
        )
        .map_err(|_| AllocError)
    }

    pub(crate) fn lock(&self) -> SpinLockGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(crate) fn opcode(&self) -> Opcode {
        self.opcode
    }

    pub(crate) fn unique(&self) -> u64 {
        // Written before the request is put where others find it.
        self.unique.load(Relaxed)
    }

    pub(crate) fn set_unique(&self, unique: u64) {
        self.unique.store(unique, Relaxed);
    }

    /// By what it is found in a [`Queue`].
    pub(crate) fn key(&self) -> u64 {
        key(self.unique())
    }

    /// Makes it pending again, with another ID, if the server has it.
    pub(crate) fn resend(&self) -> bool {
        let mut inner = self.inner.lock();
        let again = inner.state.resend();
        if again {
            self.set_unique(self.unique() | UNIQUE_RESEND);
        }
        again
    }

    pub(crate) fn is_force(&self) -> bool {
        self.force
    }

    pub(crate) fn is_background(&self) -> bool {
        self.background
    }

    /// Bytes of the request, its header included.
    pub(crate) fn len(&self) -> usize {
        let folios = self.folios.iter().map(FolioRange::len);
        folios.fold(
            size_of::<InHeader>().saturating_add(self.args.len()),
            usize::saturating_add,
        )
    }

    /// The header.
    pub(crate) fn header(&self) -> InHeader {
        let Creds { uid, gid, pid } = self.creds;
        InHeader::new(
            self.opcode,
            self.answers.unwrap_or_else(|| self.unique()),
            self.nodeid,
            // The longest requests are WRITEs, as long as `max_write` allows.
            self.len() as u32,
            uid,
            gid,
            pid,
        )
    }

    /// What follows the header.
    pub(crate) fn args(&self) -> &[u8] {
        &self.args
    }

    /// What follows the arguments.
    pub(crate) fn folios(&self) -> &[FolioRange] {
        &self.folios
    }

    /// Ends the request under its lock, `inner`, which is dropped; [`Ended`] does the rest.
    pub(crate) fn settle(
        self: &Arc<Self>,
        mut inner: SpinLockGuard<'_, Inner>,
        _end: End,
        answer: Result<Answer>,
    ) -> Ended {
        let sink = mem::take(&mut inner.sink);
        let done = inner.done.take();
        let interrupt_queued = inner.state.is_interrupt_queued();
        drop(inner);

        let payload = answer.as_ref().map_or(0, Answer::len);
        Ended {
            request: self.clone(),
            len: size_of::<OutHeader>().saturating_add(payload) as u32,
            sink,
            done,
            interrupt_queued,
            answer,
        }
    }

    /// Waits until the request is ended. Sleeps, whatever signals come.
    pub(crate) fn wait(&self) -> Result<Reply> {
        self.wait.wait(|| self.inner.lock().result.take())
    }

    /// Waits until the request is ended. Sleeps.
    ///
    /// # Errors
    ///
    /// The outer one: a signal came first.
    pub(crate) fn wait_interruptible(&self) -> Result<Result<Reply>> {
        self.wait
            .wait_interruptible(|| self.inner.lock().result.take())
    }

    /// Waits until the request is ended. Sleeps.
    ///
    /// # Errors
    ///
    /// The outer one: a fatal signal came first.
    pub(crate) fn wait_killable(&self) -> Result<Result<Reply>> {
        self.wait.wait_killable(|| self.inner.lock().result.take())
    }
}

/// A request that has the memory to be sent.
pub(crate) struct Prepared {
    request: Pin<UniqueArc<Request>>,
    slot: QueueSlot,
}

impl Prepared {
    /// Allocates. Sleeps. Without `done`, a task waits or nobody cares.
    pub(crate) fn new(args: Args, done: Option<KBox<dyn Completion>>) -> Result<Self> {
        Ok(Self {
            slot: QueueSlot::new(args.gfp())?,
            request: Request::new(args, done)?,
        })
    }

    /// Replaces the arguments by one of the same length, which was not known when the request was
    /// prepared.
    ///
    /// # Errors
    ///
    /// `EINVAL`: of another length.
    pub(crate) fn set_arg<T: IntoBytes + Immutable>(&mut self, arg: &T) -> Result {
        let args = self.request.as_mut().project().args;
        let arg = arg.as_bytes();
        if args.len() != arg.len() {
            return Err(EINVAL);
        }
        args.copy_from_slice(arg);
        Ok(())
    }

    pub(crate) fn is_force(&self) -> bool {
        self.request.force
    }

    /// Counts it against `max_background`.
    pub(crate) fn set_background(&mut self) {
        *self.request.as_mut().project().background = true;
    }

    /// The request, to be shared, and the memory to queue it with, which is done now.
    pub(crate) fn into_parts(mut self) -> (Arc<Request>, QueueSlot) {
        *self.request.as_mut().project().queued = time::jiffies64();
        (self.request.into(), self.slot)
    }
}

/// A request that was ended, with what is to be done about it now that its lock is dropped: see
/// [`Chan::finish`].
///
/// [`Chan::finish`]: crate::chan::Chan::finish
#[must_use = "the sender waits"]
pub(crate) struct Ended {
    request: Arc<Request>,
    /// Bytes of the answer, its header included.
    len: u32,
    sink: Sink,
    done: Option<KBox<dyn Completion>>,
    interrupt_queued: bool,
    answer: Result<Answer>,
}

impl Ended {
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Whether an INTERRUPT for it may be queued.
    pub(crate) fn is_interrupt_queued(&self) -> bool {
        self.interrupt_queued
    }

    /// Bytes of the answer, its header included.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// 0 or a negative errno.
    pub(crate) fn errno(&self) -> i32 {
        self.answer
            .as_ref()
            .err()
            .map_or(0, |error| error.to_errno())
    }

    /// Completes the sink, then hands the result to the sender: a task that waits finds its folios
    /// done. No locks held.
    pub(crate) fn deliver(self) -> Arc<Request> {
        let (copied, result) = match self.answer {
            Ok(Answer::Reply(reply)) => (Ok(0), Ok(reply)),
            Ok(Answer::Folios(len)) => (Ok(len), Ok(Reply::inline([0; Reply::INLINE], 0))),
            Err(error) => (Err(error), Err(error)),
        };
        if let Sink::Folios(folios) = self.sink {
            folios.complete(copied);
        }
        match self.done {
            Some(done) => done.complete(result),
            None => {
                self.request.lock().result = Some(result);
                self.request.wait.wake_all();
            }
        }
        self.request
    }
}
