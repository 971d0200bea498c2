// SPDX-License-Identifier: GPL-2.0

//! Reading the device: the server takes a request.

use super::Fruitless;
use crate::{
    chan::Chan,
    iqueue::{
        ForgetBatch,
        Work, //
    },
    pqueue::Pqueue,
    req::{
        Answer,
        Inner,
        Request, //
    }, //
};
use fuse_abi::{
    BatchForgetIn,
    ForgetIn,
    ForgetOne,
    InHeader,
    InterruptIn,
    Opcode,
    UNIQUE_INTERRUPT, //
};
use fuse_core::request::{
    End,
    Read, //
};
use kernel::{
    iov::IovIterDest,
    prelude::*,
    sync::{
        lock::spinlock::SpinLockGuard,
        Arc, //
    }, //
};
use vfs::{
    iov,
    splice::PipeDest, //
};
use zerocopy::{
    FromZeros,
    Immutable,
    IntoBytes, //
};

/// Forgets that are copied at a time.
const FORGETS_PER_COPY: usize = 16;

/// Where a request is written to.
pub(super) trait Dest {
    /// Bytes that there is room for.
    fn room(&self) -> usize;

    /// Writes all of `bytes`, or says that it could not. Sleeps.
    fn put(&mut self, bytes: &[u8]) -> bool;

    /// Writes the folios of the request that `reader` has. Sleeps.
    ///
    /// # Errors
    ///
    /// That of [`Chan::gone`]: an abort has ended the request. Any other: they can't be written.
    fn put_folios(&mut self, reader: &Reader<'_>) -> Result;
}

impl Dest for IovIterDest<'_> {
    fn room(&self) -> usize {
        self.len()
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        self.copy_to_iter(bytes) == bytes.len()
    }

    fn put_folios(&mut self, reader: &Reader<'_>) -> Result {
        let mut fruitless = Fruitless::new();
        for range in reader.request.folios() {
            let mut at = 0usize;
            loop {
                let copied = reader.copy_section(|| range.copy_to_iter_nofault(at, self))?;
                at = at.saturating_add(copied);
                if at >= range.len() {
                    break;
                }
                if fruitless.too_many(copied) {
                    return Err(EFAULT);
                }
                iov::fault_in_writeable(self, range.len().saturating_sub(at))?;
            }
        }
        Ok(())
    }
}

impl Dest for PipeDest<'_> {
    fn room(&self) -> usize {
        PipeDest::room(self)
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        PipeDest::put(self, bytes).is_ok()
    }

    fn put_folios(&mut self, reader: &Reader<'_>) -> Result {
        // No copy section: if the request is ended meanwhile, nothing of this gets into the pipe.
        PipeDest::put_folios(self, reader.request.folios())
    }
}

/// Writes the next request to `to`, waiting for it unless `nonblock`. Returns its length.
///
/// # Errors
///
/// `EINVAL`: the buffer is too small for the largest request that may come. `EAGAIN`: no request,
/// and `nonblock`. `ERESTARTSYS`: a signal. `EFAULT`: not all of the buffer can be written; the
/// request has failed. Those of [`Chan::gone`]: there is no client any more.
pub(super) fn read(
    chan: &Chan,
    pqueue: &Pqueue,
    nonblock: bool,
    to: &mut impl Dest,
) -> Result<usize> {
    let room = to.room();
    if room < fuse_abi::min_read_buffer(chan.max_write()) {
        return Err(EINVAL);
    }
    loop {
        let request = match chan.next(pqueue, room, nonblock)? {
            Work::Forgets(batch) => return read_forgets(batch, to),
            Work::Interrupt { unique } => return read_interrupt(unique, to),
            Work::Request(request) => request,
        };
        let reader = Reader {
            chan,
            pqueue,
            request,
        };
        if reader.request.len() <= room {
            return reader.read(to);
        }
        reader.fail(match reader.request.opcode() {
            Opcode::Setxattr => E2BIG,
            _ => EIO,
        })?;
    }
}

/// The owner of a request that is being read.
pub(super) struct Reader<'a> {
    chan: &'a Chan,
    pqueue: &'a Pqueue,
    request: Arc<Request>,
}

impl Reader<'_> {
    /// Writes the request, for which there is room.
    fn read(&self, to: &mut impl Dest) -> Result<usize> {
        // The arguments are the request's own and do not change: there is nothing that an abort
        // would have to wait for, so this may fault.
        let written = if put(to, &self.request.header()) && put(to, self.request.args()) {
            to.put_folios(self)
        } else {
            Err(EFAULT)
        };
        if written.is_err() {
            self.fail(EIO)?;
            return Err(EFAULT);
        }

        let mut inner = self.request.lock();
        match inner.state.read_done() {
            Ok(Read::Sent) => {}
            Ok(Read::QueueInterrupt) => {
                drop(inner);
                self.chan.queue_interrupt(&self.request);
            }
            Ok(Read::End(end)) => self.end(inner, end, Ok(Answer::empty())),
            Err(_) => return Err(self.chan.gone()),
        }
        Ok(self.request.len())
    }

    /// Runs `copy`, which may touch the bytes of the request's folios and must not sleep.
    ///
    /// # Errors
    ///
    /// Those of [`Chan::gone`]: the request was aborted, before or meanwhile; it is ended.
    fn copy_section<R>(&self, copy: impl FnOnce() -> R) -> Result<R> {
        self.request
            .lock()
            .state
            .enter_copy()
            .map_err(|_| self.chan.gone())?;
        let copied = copy();
        let mut inner = self.request.lock();
        match inner.state.leave_copy() {
            Ok(None) => Ok(copied),
            Ok(Some(end)) => {
                self.end(inner, end, Err(ECONNABORTED));
                Err(self.chan.gone())
            }
            Err(_) => Err(self.chan.gone()),
        }
    }

    /// Ends the request, which can't be read.
    ///
    /// # Errors
    ///
    /// Those of [`Chan::gone`]: an abort has ended it.
    fn fail(&self, error: Error) -> Result {
        let mut inner = self.request.lock();
        let end = inner.state.read_failed().map_err(|_| self.chan.gone())?;
        self.end(inner, end, Err(error));
        Ok(())
    }

    fn end(&self, inner: SpinLockGuard<'_, Inner>, end: End, answer: Result<Answer>) {
        self.chan
            .end(self.pqueue, &self.request, inner, end, answer);
    }
}

/// Writes the INTERRUPT for the request of ID `unique`, for which there is room. If it can't be
/// written it is lost.
fn read_interrupt(unique: u64, to: &mut impl Dest) -> Result<usize> {
    let arg = InterruptIn { unique };
    let len = size_of::<InHeader>() + size_of::<InterruptIn>();
    let own = unique | UNIQUE_INTERRUPT;
    let header = InHeader::new(Opcode::Interrupt, own, 0, len as u32, 0, 0, 0);
    if !put(to, &header) || !put(to, &arg) {
        return Err(EFAULT);
    }
    Ok(len)
}

/// Writes forgets as one request, for which there is room. What can't be written is lost.
fn read_forgets(batch: ForgetBatch, to: &mut impl Dest) -> Result<usize> {
    let ForgetBatch {
        unique,
        mut forgets,
        count,
        ..
    } = batch;
    let room = to.room();
    if count == 1 {
        let (_, &one) = forgets.cursor_front().ok_or(EIO)?.current();
        let arg = ForgetIn {
            nlookup: one.nlookup,
        };
        let len = size_of::<InHeader>() + size_of::<ForgetIn>();
        let header = InHeader::new(Opcode::Forget, unique, one.nodeid, len as u32, 0, 0, 0);
        if !put(to, &header) || !put(to, &arg) {
            return Err(EFAULT);
        }
        return Ok(room.saturating_sub(to.room()));
    }

    let arg = BatchForgetIn { count, dummy: 0 };
    let len = (count as usize)
        .saturating_mul(size_of::<ForgetOne>())
        .saturating_add(size_of::<InHeader>() + size_of::<BatchForgetIn>());
    let header = InHeader::new(Opcode::BatchForget, unique, 0, len as u32, 0, 0, 0);
    if !put(to, &header) || !put(to, &arg) {
        return Err(EFAULT);
    }
    while !forgets.is_empty() {
        let mut chunk = [ForgetOne::new_zeroed(); FORGETS_PER_COPY];
        let mut filled = 0;
        for slot in &mut chunk {
            let Some(first) = forgets.cursor_front_mut() else {
                break;
            };
            *slot = first.remove_current().1.to_key_value().1;
            filled += 1;
        }
        if !put(to, chunk.get(..filled).unwrap_or_default()) {
            return Err(EFAULT);
        }
    }
    Ok(room.saturating_sub(to.room()))
}

/// Writes all of `data`, or says that it could not. Sleeps.
fn put<T: IntoBytes + Immutable + ?Sized>(to: &mut impl Dest, data: &T) -> bool {
    to.put(data.as_bytes())
}
