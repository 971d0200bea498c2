// SPDX-License-Identifier: GPL-2.0

//! Writing the device: the server answers a request.

use super::Fruitless;
use crate::{
    chan::Chan,
    pqueue::Pqueue,
    req::{
        Answer,
        FolioSink,
        Reply,
        Request,
        Sink, //
    }, //
};
use core::mem;
use fuse_abi::{
    Message,
    OutHeader, //
};
use kernel::{
    iov::IovIterSource,
    prelude::*,
    sync::Arc, //
};
use vfs::iov;

/// Takes a message of the server from `from`. Returns its length.
///
/// # Errors
///
/// `EINVAL`: it is malformed, or its payload is not of a length that the request can have; a
/// request that it answers has failed then. `ENOENT`: no request of that ID waits for an answer, or
/// it was aborted meanwhile. `EFAULT`: the buffer can't be read; the request has failed.
pub(super) fn write(chan: &Chan, pqueue: &Pqueue, from: &mut IovIterSource<'_>) -> Result<usize> {
    let len = from.len();
    let mut header = [0; size_of::<OutHeader>()];
    if len < header.len() {
        return Err(EINVAL);
    }
    if from.copy_from_iter(&mut header) != header.len() {
        return Err(EFAULT);
    }
    let header = OutHeader::parse(&header).map_err(|_| EINVAL)?;
    match header.check(len).map_err(|_| EINVAL)? {
        Message::Notify { code, payload } => chan.notify(code, payload, from)?,
        Message::InterruptReply { unique, error } => {
            chan.interrupt_answered(pqueue, unique, error)?;
        }
        Message::ErrorReply {
            unique,
            error,
            payload: 0,
        } => {
            let writer = Writer::find(chan, pqueue, unique)?;
            writer.end(Err(Error::from_errno(error)))?;
        }
        Message::ErrorReply { unique, .. } => {
            Writer::find(chan, pqueue, unique)?.end(Err(EIO))?;
            return Err(EINVAL);
        }
        Message::Reply { unique, payload } => {
            let writer = Writer::find(chan, pqueue, unique)?;
            writer.payload(payload, from)?;
        }
    }
    Ok(len)
}

/// The owner of a request that is being answered.
struct Writer<'a> {
    chan: &'a Chan,
    pqueue: &'a Pqueue,
    request: Arc<Request>,
}

impl<'a> Writer<'a> {
    /// Becomes the owner of the request with the ID.
    ///
    /// # Errors
    ///
    /// `ENOENT`: there is none that waits for an answer.
    fn find(chan: &'a Chan, pqueue: &'a Pqueue, unique: u64) -> Result<Self> {
        let request = pqueue.get(unique).ok_or(ENOENT)?;
        request.lock().state.answer().map_err(|_| ENOENT)?;
        Ok(Self {
            chan,
            pqueue,
            request,
        })
    }

    /// Takes the payload of an answer and ends the request.
    fn payload(self, len: usize, from: &mut IovIterSource<'_>) -> Result {
        let mut inner = self.request.lock();
        if !inner.sink.takes(len) {
            drop(inner);
            self.end(Err(EIO))?;
            return Err(EINVAL);
        }
        // The memory of the first two is the writer's own from here on: it may fault, and an abort
        // needs not wait.
        let copied = match mem::take(&mut inner.sink) {
            Sink::Inline { .. } => {
                drop(inner);
                copy_inline(len, from)
            }
            Sink::Buffer(buffer) => {
                drop(inner);
                copy_buffer(len, buffer, from)
            }
            folios @ Sink::Folios(_) => {
                inner.sink = folios;
                drop(inner);
                return self.folios(len, from);
            }
        };
        match copied {
            Ok(reply) => self.end(Ok(Answer::Reply(reply))),
            Err(error) => {
                self.end(Err(EIO))?;
                Err(error)
            }
        }
    }

    /// Copies `len` bytes to the folios of the request and ends it.
    fn folios(self, len: usize, from: &mut IovIterSource<'_>) -> Result {
        let mut at = 0usize;
        let mut fruitless = Fruitless::new();
        loop {
            let copied = self.copy_section(|folios| folios.copy_from(at, from))?;
            at = at.saturating_add(copied);
            if at >= len {
                return self.end(Ok(Answer::Folios(len)));
            }
            if fruitless.too_many(copied)
                || iov::fault_in_readable(from, len.saturating_sub(at)).is_err()
            {
                self.end(Err(EIO))?;
                return Err(EFAULT);
            }
        }
    }

    /// Runs `copy` on the folios of the request, inside its copy section. `copy` must not sleep.
    ///
    /// # Errors
    ///
    /// `ENOENT`: the request was aborted, before or meanwhile; it is ended.
    fn copy_section(&self, copy: impl FnOnce(&mut dyn FolioSink) -> usize) -> Result<usize> {
        let mut inner = self.request.lock();
        inner.state.enter_copy().map_err(|_| ENOENT)?;
        let mut sink = mem::take(&mut inner.sink);
        drop(inner);

        let copied = match &mut sink {
            Sink::Folios(folios) => copy(&mut **folios),
            _ => 0,
        };

        let mut inner = self.request.lock();
        inner.sink = sink;
        match inner.state.leave_copy() {
            Ok(None) => Ok(copied),
            Ok(Some(end)) => {
                let aborted = Err(ECONNABORTED);
                self.chan
                    .end(self.pqueue, &self.request, inner, end, aborted);
                Err(ENOENT)
            }
            Err(_) => Err(ENOENT),
        }
    }

    /// Ends the request.
    ///
    /// # Errors
    ///
    /// `ENOENT`: an abort was faster.
    fn end(&self, answer: Result<Answer>) -> Result {
        let mut inner = self.request.lock();
        let end = inner.state.answered().map_err(|_| ENOENT)?;
        self.chan
            .end(self.pqueue, &self.request, inner, end, answer);
        Ok(())
    }
}

fn copy_inline(len: usize, from: &mut IovIterSource<'_>) -> Result<Reply> {
    let mut bytes = [0; Reply::INLINE];
    let to = bytes.get_mut(..len).ok_or(EINVAL)?;
    if from.copy_from_iter(to) != len {
        return Err(EFAULT);
    }
    Ok(Reply::inline(bytes, len))
}

fn copy_buffer(len: usize, mut buffer: KVVec<u8>, from: &mut IovIterSource<'_>) -> Result<Reply> {
    // The rest of `from` is the payload, for which there is room.
    if from.copy_from_iter_vec(&mut buffer, GFP_KERNEL)? != len {
        return Err(EFAULT);
    }
    Ok(Reply::buffer(buffer))
}
