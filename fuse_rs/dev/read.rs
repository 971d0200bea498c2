// SPDX-License-Identifier: GPL-2.0

//! Reading the device: the server takes a request.

use crate::{
    chan::Chan,
    iqueue::{
        Forgets,
        Work, //
    },
    pqueue::Pqueue,
    req::{
        Answer,
        Request, //
    }, //
};
use fuse_abi::{
    BatchForgetIn,
    ForgetIn,
    ForgetOne,
    InHeader,
    Opcode, //
};
use fuse_core::request::Read;
use kernel::{
    iov::IovIterDest,
    prelude::*,
    sync::Arc, //
};
use vfs::splice::PipeDest;
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
}

impl Dest for IovIterDest<'_> {
    fn room(&self) -> usize {
        self.len()
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        self.copy_to_iter(bytes) == bytes.len()
    }
}

impl Dest for PipeDest<'_> {
    fn room(&self) -> usize {
        PipeDest::room(self)
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        PipeDest::put(self, bytes).is_ok()
    }
}

/// Writes the next request to `to`, waiting for it unless `nonblock`. Returns its length.
///
/// # Errors
///
/// `EINVAL`: the buffer is too small for the largest request that may come. `EAGAIN`: no request,
/// and `nonblock`. `ERESTARTSYS`: a signal. `EFAULT`: not all of the buffer can be written; the
/// request has failed. `ENODEV`: there is no client any more.
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
        match chan.next(pqueue, room, nonblock)? {
            Work::Forgets {
                unique,
                forgets,
                count,
            } => return read_forgets(unique, forgets, count, to),
            Work::Request(request) if request.len() <= room => {
                return read_request(chan, pqueue, &request, to)
            }
            Work::Request(request) => {
                let error = match request.opcode() {
                    Opcode::Setxattr => E2BIG,
                    _ => EIO,
                };
                fail(chan, pqueue, &request, error)?;
            }
        }
    }
}

/// Writes a request, which is the reader's.
fn read_request(
    chan: &Chan,
    pqueue: &Pqueue,
    request: &Arc<Request>,
    to: &mut impl Dest,
) -> Result<usize> {
    // The arguments are the request's own and do not change: there is nothing that an abort would
    // have to wait for, so this may fault.
    if !put(to, &request.header()) || !put(to, request.args()) {
        fail(chan, pqueue, request, EIO)?;
        return Err(EFAULT);
    }

    let mut inner = request.lock();
    match inner.state.read_done() {
        // Nobody calls `signal` yet, so none has come.
        Ok(Read::Sent | Read::QueueInterrupt) => {}
        Ok(Read::End(end)) => {
            let ended = request.settle(inner, end, Ok(Answer::empty()));
            pqueue.remove(request.unique());
            chan.finish(ended);
        }
        Err(_) => return Err(ENODEV),
    }
    Ok(request.len())
}

/// Ends a request that can't be read.
///
/// # Errors
///
/// `ENODEV`: an abort has ended it.
fn fail(chan: &Chan, pqueue: &Pqueue, request: &Arc<Request>, error: Error) -> Result {
    let mut inner = request.lock();
    let end = inner.state.read_failed().map_err(|_| ENODEV)?;
    let ended = request.settle(inner, end, Err(error));
    pqueue.remove(request.unique());
    chan.finish(ended);
    Ok(())
}

/// Writes `count` forgets as one request, for which there is room. What can't be written is lost.
fn read_forgets(
    unique: u64,
    mut forgets: Forgets,
    count: u32,
    to: &mut impl Dest,
) -> Result<usize> {
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
