// SPDX-License-Identifier: GPL-2.0

//! The life of a request between its sender and the server.
//!
//! [`RequestState`] says who owns a request. It is a plain value: the transport keeps one in each
//! request under the request's lock and calls one method for each event. No method sleeps, takes a
//! lock or panics.
//!
//! # Who owns what
//!
//! | phase       | where the request is                  | owner          | its pages may be touched by          |
//! |-------------|---------------------------------------|----------------|--------------------------------------|
//! | `Pending`   | pending queue (or background queue)   | the queue      | nobody                               |
//! | `Reading`   | table of the device that reads it     | that reader    | the reader, inside its copy section  |
//! | `Sent`      | same table                            | the server     | nobody                               |
//! | `Answering` | same table                            | a writer       | the writer, inside its copy section  |
//! | `Finished`  | nowhere                               | the sender     | the sender                           |
//!
//! A reader or writer copies inside a *copy section*, [`enter_copy`](RequestState::enter_copy) to
//! [`leave_copy`](RequestState::leave_copy). The section is bounded because no copy in it can
//! fault; to fault user pages in, the copier leaves it and enters it again. An abort that meets a
//! request inside the section marks it, and the copier ends it on leaving. Outside the section the
//! abort ends it at once; the copier learns that when it enters again, and must not touch the pages
//! any more, for they may hold somebody else's data by then. So an abort never waits for a copier,
//! and a copier never meets pages that were given back.
//!
//! `docs/request-states.md` lists every phase and event; a test compares it with this code.
//!
//! # Ending
//!
//! Each request is ended once, by whoever an event hands its [`End`] to. The owner of the [`End`]
//!
//! 1. stores the result in the request before it drops the lock under which it got the [`End`],
//! 2. takes the request out of the queue or table, where it still is there, and its INTERRUPT, if
//!    [`is_interrupt_queued`](RequestState::is_interrupt_queued), out of the interrupt queue,
//! 3. wakes the sender or runs the completion of a background request.
//!
//! # Contract with the transport
//!
//! * Lock order: queue lock, then the table lock of a device, then the request lock.
//! * `connected` belongs to the queue lock. Queueing a request, [`take`](RequestState::take) and
//!   [`resend`](RequestState::resend) happen with the queue lock held and `connected` found true,
//!   and the move between queue and table is complete before the queue lock is dropped. Abort
//!   clears `connected` under the queue lock, and so finds each request in the queue or in a table.
//! * A request stays in the table until it is ended or resent: the table is how an abort and the
//!   server's answer find it.
//! * All other events need the request lock only. What they ask for (queue an INTERRUPT, take the
//!   ended request out of its list) is done after the request lock is dropped; a request that ended
//!   in between is found out by [`take`](RequestState::take) and
//!   [`take_interrupt`](RequestState::take_interrupt), which refuse it. An INTERRUPT is queued with
//!   the queue lock held, if the request is not finished: so none is left behind.

use fuse_abi::UNIQUE_STEP;

/// How many unique ids there are until they repeat.
const UNIQUE_COUNT: u64 = (fuse_abi::UNIQUE_RESEND / UNIQUE_STEP) - 1;

/// The unique id of the `n`th request of a connection, counted from 0 by a counter that may wrap.
///
/// It is never 0, which stands for a notification, and leaves the bits
/// [`fuse_abi::UNIQUE_INTERRUPT`] and [`fuse_abi::UNIQUE_RESEND`] clear.
pub const fn unique(n: u64) -> u64 {
    // At most UNIQUE_COUNT * UNIQUE_STEP, so nothing wraps.
    (n % UNIQUE_COUNT).wrapping_add(1).wrapping_mul(UNIQUE_STEP)
}

/// Where a request is in its life, see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waits in a queue for a reader.
    Pending,
    /// A reader copies the arguments to the server.
    Reading,
    /// The server works on it.
    Sent,
    /// A writer copies the answer in.
    Answering,
    /// Ended.
    Finished,
}

/// The duty to end a request. There is one for each request, whoever holds it ends the request (see
/// the [module](self) for how).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the request is finished and its sender waits: end it"]
pub struct End(());

/// Why an event does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request was ended meanwhile. Let go of it and do not touch its pages.
    Ended,
    /// The event does not belong to this phase. For [`answer`](RequestState::answer) and
    /// [`take_interrupt`](RequestState::take_interrupt) that can happen at any time; for all others
    /// the transport is wrong.
    WrongPhase,
}

/// What a reader does with a request whose arguments it has copied out.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Read {
    /// Nothing: the server has it.
    Sent,
    /// Queue an INTERRUPT for it: a signal came before the server had it.
    QueueInterrupt,
    /// End it with success: it has no reply.
    End(End),
}

/// The state of one request: its phase and the marks beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestState {
    phase: Phase,
    /// A copier is inside its copy section.
    inside: bool,
    /// Aborted inside a copy section: the copier ends it.
    aborted: bool,
    /// The sender got a signal.
    interrupted: bool,
    /// It is in the interrupt queue.
    interrupt_queued: bool,
    force: bool,
    no_reply: bool,
}

impl RequestState {
    /// A request that was not handed to the server yet, with a sender that a fatal signal may take
    /// away.
    pub const fn new() -> Self {
        Self {
            phase: Phase::Pending,
            inside: false,
            aborted: false,
            interrupted: false,
            interrupt_queued: false,
            force: false,
            no_reply: false,
        }
    }

    /// Makes it one that must reach the server: a fatal signal does not end it (FLUSH, RELEASE,
    /// DESTROY).
    pub const fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Makes it one without a reply: it ends when it was read (NOTIFY_REPLY, a forced FORGET).
    pub const fn no_reply(mut self) -> Self {
        self.no_reply = true;
        self
    }

    /// Where the request is in its life.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it was ended and so its result is there.
    pub const fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    /// Whether the sender got a signal.
    pub const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether it is in the interrupt queue, or about to be.
    pub const fn is_interrupt_queued(&self) -> bool {
        self.interrupt_queued
    }

    /// A reader took it out of the pending queue.
    ///
    /// Queue lock and request lock held; put it into the reader's table before the queue lock is
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`Refused::Ended`]: it was ended in the queue; drop it and take the next.
    pub fn take(&mut self) -> Result<(), Refused> {
        self.expect(Phase::Pending)?;
        self.phase = Phase::Reading;
        Ok(())
    }

    /// The reader or writer that owns it wants to touch its pages.
    ///
    /// # Errors
    ///
    /// [`Refused::Ended`]: aborted. A reader or writer returns ENODEV or ECONNABORTED to the
    /// server.
    pub fn enter_copy(&mut self) -> Result<(), Refused> {
        match self.phase {
            Phase::Reading | Phase::Answering if !self.inside => {
                self.inside = true;
                Ok(())
            }
            Phase::Finished => Err(Refused::Ended),
            _ => Err(Refused::WrongPhase),
        }
    }

    /// The reader or writer has stopped touching its pages.
    ///
    /// With `Some`, the request was aborted meanwhile: end it with the error of the abort.
    ///
    /// # Errors
    ///
    /// [`Refused::WrongPhase`]: there was no copy section.
    pub fn leave_copy(&mut self) -> Result<Option<End>, Refused> {
        if !self.inside {
            return Err(Refused::WrongPhase);
        }
        self.inside = false;
        Ok(if self.aborted { Some(self.end()) } else { None })
    }

    /// The reader has copied all arguments out and has left the copy section.
    ///
    /// # Errors
    ///
    /// [`Refused::Ended`]: aborted since.
    pub fn read_done(&mut self) -> Result<Read, Refused> {
        self.expect(Phase::Reading)?;
        if self.no_reply {
            return Ok(Read::End(self.end()));
        }
        self.phase = Phase::Sent;
        Ok(if self.want_interrupt() {
            Read::QueueInterrupt
        } else {
            Read::Sent
        })
    }

    /// The reader could not copy the arguments out: the server's buffer faulted or is too small.
    /// The copy section is left.
    ///
    /// # Errors
    ///
    /// [`Refused::Ended`]: aborted since.
    pub fn read_failed(&mut self) -> Result<End, Refused> {
        self.expect(Phase::Reading)?;
        Ok(self.end())
    }

    /// A writer found it by the unique id of its answer.
    ///
    /// # Errors
    ///
    /// Any: nothing of that id is waiting for an answer, ENOENT for the server.
    pub fn answer(&mut self) -> Result<(), Refused> {
        self.expect(Phase::Sent)?;
        self.phase = Phase::Answering;
        Ok(())
    }

    /// The writer has copied the answer in, or has failed to, and has left the copy section. End
    /// the request with the answer or EIO.
    ///
    /// # Errors
    ///
    /// [`Refused::Ended`]: aborted since.
    pub fn answered(&mut self) -> Result<End, Refused> {
        self.expect(Phase::Answering)?;
        Ok(self.end())
    }

    /// The sender's sleep was broken by a signal.
    ///
    /// True: queue an INTERRUPT for it. A signal that comes before the server has the request is
    /// kept for [`read_done`](Self::read_done).
    #[must_use = "queue an INTERRUPT"]
    pub fn signal(&mut self) -> bool {
        if self.interrupted || self.is_finished() {
            return false;
        }
        self.interrupted = true;
        self.phase == Phase::Sent && self.want_interrupt()
    }

    /// The sender's sleep was broken by a fatal signal.
    ///
    /// With `Some`, no reader had it yet: end it with EINTR. With `None` the server has it, or must
    /// get it: sleep on until it is finished.
    #[must_use]
    pub fn fatal_signal(&mut self) -> Option<End> {
        if self.phase == Phase::Pending && !self.force {
            Some(self.end())
        } else {
            None
        }
    }

    /// A reader took it out of the interrupt queue. Queue lock and request lock held.
    ///
    /// # Errors
    ///
    /// Any: it is answered, ended or to be sent again; send no INTERRUPT.
    pub fn take_interrupt(&mut self) -> Result<(), Refused> {
        self.interrupt_queued = false;
        self.expect(Phase::Sent)
    }

    /// The server answered an INTERRUPT for it with EAGAIN: it did not know the request yet.
    ///
    /// True: queue an INTERRUPT again.
    #[must_use = "queue an INTERRUPT"]
    pub fn interrupt_again(&mut self) -> bool {
        self.phase == Phase::Sent && self.want_interrupt()
    }

    /// The server lost what it had been sent and asks for it again.
    ///
    /// True: move it from the table to the head of the pending queue (the oldest first) and set the
    /// resend bit of its unique id, by which it is answered then. Queue lock, table lock and request lock held.
    #[must_use = "move it back to the pending queue"]
    pub fn resend(&mut self) -> bool {
        let sent = self.phase == Phase::Sent;
        if sent {
            self.phase = Phase::Pending;
        }
        sent
    }

    /// The connection is gone, or the device whose table it is in.
    ///
    /// With `Some`, end it with ENOTCONN or ECONNABORTED. With `None` it is ended already, or its
    /// copier will do it.
    #[must_use]
    pub fn abort(&mut self) -> Option<End> {
        if self.is_finished() {
            return None;
        }
        if self.inside {
            self.aborted = true;
            return None;
        }
        Some(self.end())
    }

    fn want_interrupt(&mut self) -> bool {
        let want = self.interrupted && !self.interrupt_queued;
        self.interrupt_queued |= want;
        want
    }

    fn expect(&self, phase: Phase) -> Result<(), Refused> {
        if self.phase == phase && !self.inside {
            Ok(())
        } else if self.is_finished() {
            Err(Refused::Ended)
        } else {
            Err(Refused::WrongPhase)
        }
    }

    fn end(&mut self) -> End {
        self.phase = Phase::Finished;
        End(())
    }
}

impl Default for RequestState {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
