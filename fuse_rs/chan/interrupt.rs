// SPDX-License-Identifier: GPL-2.0

//! Signals to tasks that wait for an answer.

use super::Chan;
use crate::{
    pqueue::Pqueue,
    req::{
        QueueSlot,
        Reply,
        Request, //
    }, //
};
use fuse_core::request::Phase;
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    }, //
};
use vfs::mm;

impl Chan {
    /// Waits for the answer to a request. The server is told of the first signal that comes. A
    /// fatal one ends a request that no server has read, unless it is forced. Sleeps.
    ///
    /// # Errors
    ///
    /// As for [`send`](Chan::send).
    pub(super) fn wait_answer(&self, request: &Arc<Request>) -> Result<Reply> {
        if !self.no_interrupt.load(Relaxed) {
            match request.wait_interruptible() {
                Ok(result) => return result,
                Err(_) => self.interrupt(request),
            }
        }
        if !request.is_force() {
            match request.wait_killable() {
                Ok(result) => return result,
                Err(_) => self.give_up(request)?,
            }
        }
        request.wait()
    }

    /// A signal came while a task waits for `request`. Sleeps.
    fn interrupt(&self, request: &Arc<Request>) {
        // Not prepared with every request, as hardly any needs it. Without this memory the signal
        // would be lost.
        let Ok(slot) = QueueSlot::new(mm::GFP_NOFAIL) else {
            return;
        };
        let mut inner = request.lock();
        inner.interrupt = Some(slot);
        let queue = inner.state.signal();
        drop(inner);
        if queue {
            self.queue_interrupt(request);
        }
    }

    /// Queues an INTERRUPT for `request`, as its state wants it.
    pub(crate) fn queue_interrupt(&self, request: &Arc<Request>) {
        self.iqueue.lock().push_interrupt(request);
        self.wake_reader();
    }

    /// A fatal signal came while a task waits for `request`.
    ///
    /// # Errors
    ///
    /// `EINTR`: no server has read it, and now none will. Else it has to be waited for.
    fn give_up(&self, request: &Arc<Request>) -> Result {
        let mut inner = request.lock();
        let Some(end) = inner.state.fatal_signal() else {
            return Ok(());
        };
        let ended = request.settle(inner, end, Err(EINTR));
        let node = self.iqueue.lock().remove(request);
        drop(node);
        self.finish(ended);
        Err(EINTR)
    }

    /// The server of the device with table `pqueue` has answered the INTERRUPT of the request with
    /// ID `unique` with `error`, a negative errno or 0.
    ///
    /// # Errors
    ///
    /// `ENOENT`: no request of that ID waits for an answer. `EINVAL`: it is to be told again of a
    /// signal that never was.
    pub(crate) fn interrupt_answered(&self, pqueue: &Pqueue, unique: u64, error: i32) -> Result {
        let request = pqueue.get(unique).ok_or(ENOENT)?;
        let mut inner = request.lock();
        if inner.state.phase() != Phase::Sent {
            return Err(ENOENT);
        }
        if error == ENOSYS.to_errno() {
            self.no_interrupt.store(true, Relaxed);
        } else if error == EAGAIN.to_errno() {
            // It did not know the request yet.
            if !inner.state.is_interrupted() {
                return Err(EINVAL);
            }
            let queue = inner.state.interrupt_again();
            drop(inner);
            if queue {
                self.queue_interrupt(&request);
            }
        }
        Ok(())
    }
}
