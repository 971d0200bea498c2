// SPDX-License-Identifier: GPL-2.0

//! Reading past the page cache: `O_DIRECT`, and files that the server does not want cached
//! (`FOPEN_DIRECT_IO`).
//!
//! The READs of one call fill the caller's own memory, which is pinned for them. They own what they
//! need, so that a caller that is killed just leaves.

use super::{
    open_file,
    OpenFile, //
};
use crate::{
    chan::Chan,
    inode::{
        conn,
        nodeid,
        INode,
        PAGE_SHIFT, //
    },
    req::{
        Args,
        FolioSink,
        Sink, //
    },
    super_block::Fuse, //
};
use fuse_abi::{
    InitFlags,
    Opcode,
    ReadFlags,
    ReadIn, //
};
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*,
    static_lock_class,
    sync::{
        new_spinlock,
        Arc,
        SpinLock, //
    }, //
};
use vfs::{
    kiocb::{
        Kiocb,
        Queued,
        Transferred, //
    },
    lock::LockOwner,
    user_memory::{
        Extractor,
        UserMemory, //
    },
    wait::WaitQueue, //
};

/// What the READs of one call have in common.
struct Target {
    open: Arc<OpenFile>,
    /// `O_*` of the open file.
    flags: u32,
    lock_owner: u64,
}

impl Target {
    fn new(kiocb: &Kiocb<'_, Fuse>) -> Result<Self> {
        let file = kiocb.file();
        Ok(Self {
            open: open_file(file)?.into(),
            flags: file.flags(),
            lock_owner: conn(file.inode()).lock_owner(LockOwner::current()),
        })
    }

    fn inode(&self) -> &INode {
        &self.open.inode
    }

    fn chan(&self) -> &Arc<Chan> {
        &self.open.chan
    }

    /// How many of `len` bytes at `pos` one READ may ask for.
    fn fit(&self, pos: u64, len: usize) -> usize {
        conn(self.inode())
            .limits()
            .read::<PAGE_SHIFT>()
            .fit(pos, len as u64) as usize
    }

    fn read(&self, pos: u64, len: usize, sink: Sink) -> Result<Args> {
        let creds = conn(self.inode()).creds()?;
        Ok(Args::new(Opcode::Read, nodeid(self.inode()), creds)
            .arg(&ReadIn {
                fh: self.open.fh,
                offset: pos,
                // Cut by `fit`.
                size: len as u32,
                read_flags: ReadFlags::LOCKOWNER,
                lock_owner: self.lock_owner,
                flags: self.flags,
                ..ReadIn::default()
            })?
            .sink(sink))
    }
}

/// READs under way for one call; they end in any order.
#[pin_data]
struct Reads {
    #[pin]
    state: SpinLock<State>,
    /// Woken when all are over.
    #[pin]
    over: WaitQueue,
}

struct State {
    /// READs that are not over, and one for the caller that still sends some.
    pending: usize,
    /// Position up to which there is no gap.
    end: u64,
    error: Option<Error>,
    /// Whoever does not wait, but wants to be told.
    queued: Option<Queued>,
}

impl State {
    /// Position up to which was read.
    fn result(&self) -> Result<u64> {
        self.error.map_or(Ok(self.end), Err)
    }
}

impl Reads {
    fn new(queued: Option<Queued>) -> Result<Arc<Self>> {
        let state = State {
            pending: 1,
            end: u64::MAX,
            error: None,
            queued,
        };
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock!(state, "fuse_rs_direct"),
                over <- WaitQueue::new(c"fuse_rs_direct_over", static_lock_class!()),
            }),
            GFP_KERNEL,
        )
    }

    fn begin(&self) {
        let mut state = self.state.lock();
        state.pending = state.pending.saturating_add(1);
    }

    /// One is over, up to where, or the caller has sent all.
    fn end(&self, start: u64, result: Result<u64>) {
        let mut state = self.state.lock();
        match result {
            Ok(end) => state.end = state.end.min(end),
            Err(error) => state.error = state.error.or(Some(error)),
        }
        state.pending = state.pending.saturating_sub(1);
        if state.pending > 0 {
            return;
        }
        let queued = state.queued.take();
        let result = state.result();
        drop(state);
        match queued {
            Some(queued) => queued.complete(result.map(|end| bytes(start, end))),
            None => self.over.wake_all(),
        }
    }

    /// Waits for all; returns up to where was read. Sleeps.
    ///
    /// # Errors
    ///
    /// What the first that failed did; `EINTR` if a fatal signal came.
    fn wait(&self) -> Result<u64> {
        self.over
            .wait_killable(|| {
                let state = self.state.lock();
                (state.pending == 0).then(|| state.result())
            })
            .map_err(|_| EINTR)?
    }
}

/// The memory that one READ fills.
struct Part {
    memory: UserMemory,
    /// Where the call began to read.
    start: u64,
    pos: u64,
    reads: Arc<Reads>,
    /// Not released before its reads are over.
    _open: Arc<OpenFile>,
}

impl FolioSink for Part {
    fn len(&self) -> usize {
        self.memory.len()
    }

    fn copy_from(&mut self, at: usize, from: &mut IovIterSource<'_>) -> usize {
        self.memory.copy_from_iter_nofault(at, from)
    }

    fn complete(self: KBox<Self>, result: Result<usize>) {
        let Self {
            memory,
            start,
            pos,
            reads,
            _open,
        } = KBox::into_inner(self);
        let result = match result {
            // As far as is known, there is no gap behind it.
            Ok(n) if n == memory.len() => Ok(u64::MAX),
            Ok(n) => Ok(pos.saturating_add(n as u64)),
            Err(error) => Err(error),
        };
        drop(memory);
        reads.end(start, result);
    }
}

/// Bytes from one position to another.
fn bytes(start: u64, end: u64) -> usize {
    end.saturating_sub(start) as usize
}

/// Reads at the position, without moving it, up to the end of the file: all READs at once if the
/// server takes them so. Sleeps.
pub(super) fn read<'a>(kiocb: Kiocb<'a, Fuse>, iov: &mut IovIterDest<'_>) -> Transferred<'a> {
    let inode = kiocb.file().inode();
    let size = inode.size();
    if kiocb.pos() >= size || iov.is_empty() {
        return kiocb.done(Ok(0));
    }
    if conn(inode).features().contains(InitFlags::ASYNC_DIO) {
        parallel(kiocb, iov, size as u64)
    } else {
        let result = one_by_one(&kiocb, iov);
        kiocb.done(result)
    }
}

/// Sends READs one after the other, up to the first answer that is shorter than asked for. Does not
/// move the position. Sleeps.
pub(super) fn one_by_one(kiocb: &Kiocb<'_, Fuse>, iov: &mut IovIterDest<'_>) -> Result<usize> {
    let target = Target::new(kiocb)?;
    let pos = u64::try_from(kiocb.pos()).map_err(|_| EINVAL)?;
    let mut done = 0usize;
    while !iov.is_empty() {
        let now = pos.saturating_add(done as u64);
        let want = target.fit(now, iov.len());
        match read_once(&target, now, want, iov) {
            Ok((asked, got)) => {
                done = done.saturating_add(got);
                if got < asked {
                    break;
                }
            }
            Err(err) if done == 0 => return Err(err),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Sends one READ for `want` bytes, or as many as there is memory for; returns how many that were,
/// and how many came. Sleeps.
fn read_once(
    target: &Target,
    pos: u64,
    want: usize,
    iov: &mut IovIterDest<'_>,
) -> Result<(usize, usize)> {
    let Some(mut extractor) = Extractor::new(iov) else {
        return read_buffered(target, pos, want, iov);
    };
    let memory = extractor.extract(want)?;
    let len = memory.len();
    let reads = Reads::new(None)?;
    let part = KBox::new(
        Part {
            memory,
            start: pos,
            pos,
            reads: reads.clone(),
            _open: target.open.clone(),
        },
        GFP_KERNEL,
    )?;
    let result = target
        .read(pos, len, Sink::Folios(part))
        .and_then(|args| target.chan().send(args))
        .and_then(|_| reads.wait());
    let got = result.as_ref().map_or(0, |&end| bytes(pos, end).min(len));
    extractor.finish(got);
    result.map(|_| (len, got))
}

/// As [`read_once`], to memory that its owner may take back while the server still writes: through
/// a buffer.
fn read_buffered(
    target: &Target,
    pos: u64,
    want: usize,
    iov: &mut IovIterDest<'_>,
) -> Result<(usize, usize)> {
    let args = target.read(pos, want, Sink::buffer(want)?)?;
    let reply = target.chan().send(args)?;
    let got = iov.copy_to_iter(reply.bytes());
    if got == 0 && !reply.bytes().is_empty() {
        return Err(EFAULT);
    }
    Ok((want, got))
}

/// Sends READs for all that is before `size`, and waits for them if the caller does. Sleeps.
fn parallel<'a>(kiocb: Kiocb<'a, Fuse>, iov: &mut IovIterDest<'_>, size: u64) -> Transferred<'a> {
    let (Ok(target), Ok(pos)) = (Target::new(&kiocb), u64::try_from(kiocb.pos())) else {
        return kiocb.done(Err(EBADF));
    };
    let Some(mut extractor) = Extractor::new(iov) else {
        let result = one_by_one(&kiocb, iov);
        return kiocb.done(result);
    };
    let reads = match Reads::new(None) {
        Ok(reads) => reads,
        Err(err) => return kiocb.done(Err(err)),
    };
    match kiocb.queue() {
        Ok((queued, transferred)) => {
            reads.state.lock().queued = Some(queued);
            let sent = send_all(&target, &reads, &mut extractor, pos, size);
            // From here on the iterator may be gone.
            reads.end(pos, sent);
            transferred
        }
        Err(kiocb) => {
            let sent = send_all(&target, &reads, &mut extractor, pos, size);
            reads.end(pos, sent);
            let result = reads.wait().map(|end| bytes(pos, end));
            extractor.finish(*result.as_ref().unwrap_or(&0));
            kiocb.done(result)
        }
    }
}

/// Sends READs for the memory of `extractor`, as far as it is before `size`. Returns the position
/// up to which it did. Sleeps.
///
/// # Errors
///
/// Not even the first could be sent.
fn send_all(
    target: &Target,
    reads: &Arc<Reads>,
    extractor: &mut Extractor<'_, '_>,
    start: u64,
    size: u64,
) -> Result<u64> {
    let mut pos = start;
    while extractor.left() > 0 && pos < size {
        match send_part(target, reads, extractor, start, pos) {
            Ok(len) => pos = pos.saturating_add(len as u64),
            Err(err) if pos == start => return Err(err),
            Err(_) => break,
        }
    }
    Ok(pos)
}

/// Sends the READ at `pos`; returns how many bytes it asks for.
fn send_part(
    target: &Target,
    reads: &Arc<Reads>,
    extractor: &mut Extractor<'_, '_>,
    start: u64,
    pos: u64,
) -> Result<usize> {
    let memory = extractor.extract(target.fit(pos, extractor.left()))?;
    let len = memory.len();
    let part = KBox::new(
        Part {
            memory,
            start,
            pos,
            reads: reads.clone(),
            _open: target.open.clone(),
        },
        GFP_KERNEL,
    )?;
    let args = target.read(pos, len, Sink::Folios(part))?;
    let prepared = target.chan().prepare_background(args, None)?;
    reads.begin();
    target.chan().send_background(prepared);
    Ok(len)
}
