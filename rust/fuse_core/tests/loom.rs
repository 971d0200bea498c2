// SPDX-License-Identifier: GPL-2.0

//! A model of the transport around `RequestState`, run in every order of its threads.
//!
//! It takes the locks and the steps that the documentation of `fuse_core::request` asks of a transport. In each order:
//! one party ends the request, the sender wakes with the result of that party, and no copier is at the request's pages
//! when the sender has them back.

use fuse_core::request::{End, Read, Refused, RequestState};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Done {
    Answered,
    NoReply,
    /// ENOTCONN.
    Aborted,
    /// EINTR.
    Killed,
}

struct Request {
    unique: u64,
    /// The request lock.
    locked: Mutex<Locked>,
    wake: Condvar,
    pages_returned: AtomicBool,
    ends: AtomicUsize,
}

struct Locked {
    state: RequestState,
    done: Option<Done>,
}

impl Request {
    fn new(unique: u64, state: RequestState) -> Arc<Self> {
        Arc::new(Self {
            unique,
            locked: Mutex::new(Locked { state, done: None }),
            wake: Condvar::new(),
            pages_returned: AtomicBool::new(false),
            ends: AtomicUsize::new(0),
        })
    }

    fn event<T>(&self, event: impl FnOnce(&mut RequestState) -> T) -> T {
        event(&mut self.locked.lock().unwrap().state)
    }

    /// An event whose `End` is taken up before the request lock is dropped.
    fn event_end(&self, done: Done, event: impl FnOnce(&mut RequestState) -> Option<End>) -> bool {
        let mut locked = self.locked.lock().unwrap();
        let end = event(&mut locked.state);
        if end.is_some() {
            assert_eq!(locked.done.replace(done), None);
            self.ends.fetch_add(1, SeqCst);
        }
        end.is_some()
    }

    /// The sender sleeps until the request is finished, and has its pages back then.
    fn wait(&self) -> Done {
        let mut locked = self.locked.lock().unwrap();
        while !locked.state.is_finished() {
            locked = self.wake.wait(locked).unwrap();
        }
        self.pages_returned.store(true, SeqCst);
        locked.done.expect("finished without a result")
    }

    fn touch_pages(&self) {
        assert!(
            !self.pages_returned.load(SeqCst),
            "copy to pages that were given back"
        );
    }
}

#[derive(Default)]
struct Queue {
    connected: bool,
    pending: VecDeque<Arc<Request>>,
    interrupts: VecDeque<Arc<Request>>,
}

/// One connection with one device.
struct Chan {
    /// The queue lock, before the table lock, before a request lock.
    queue: Mutex<Queue>,
    readers: Condvar,
    table: Mutex<Vec<Arc<Request>>>,
}

#[derive(Debug, PartialEq)]
enum Message {
    Request(u64),
    Interrupt(u64),
    /// The read failed, or there is nothing to read.
    Nothing,
}

impl Chan {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue {
                connected: true,
                ..Queue::default()
            }),
            readers: Condvar::new(),
            table: Mutex::new(Vec::new()),
        })
    }

    fn send(&self, request: &Arc<Request>) {
        let mut queue = self.queue.lock().unwrap();
        assert!(queue.connected);
        queue.pending.push_back(request.clone());
        self.readers.notify_one();
    }

    fn queue_interrupt(&self, request: &Arc<Request>) {
        let mut queue = self.queue.lock().unwrap();
        if queue.connected && !request.event(|state| state.is_finished()) {
            queue.interrupts.push_back(request.clone());
            self.readers.notify_one();
        }
    }

    /// After its end.
    fn ended(&self, request: &Arc<Request>) {
        self.table
            .lock()
            .unwrap()
            .retain(|other| !Arc::ptr_eq(other, request));
        if request.event(|state| state.is_interrupt_queued()) {
            let mut queue = self.queue.lock().unwrap();
            queue
                .interrupts
                .retain(|other| !Arc::ptr_eq(other, request));
        }
        request.wake.notify_all();
    }

    /// Copies in two spans, between which the user's page faults.
    fn copy(&self, request: &Arc<Request>) -> Result<(), Refused> {
        for _ in 0..2 {
            request.event(|state| state.enter_copy())?;
            request.touch_pages();
            let end = |state: &mut RequestState| state.leave_copy().expect("in a copy section");
            if request.event_end(Done::Aborted, end) {
                self.ended(request);
                return Err(Refused::Ended);
            }
        }
        Ok(())
    }

    /// read(2) of the device.
    fn read(&self, block: bool) -> Message {
        let request = {
            let mut queue = self.queue.lock().unwrap();
            loop {
                if !queue.connected {
                    return Message::Nothing;
                }
                if let Some(request) = queue.interrupts.pop_front() {
                    if request.event(|state| state.take_interrupt()).is_ok() {
                        return Message::Interrupt(request.unique);
                    }
                } else if let Some(request) = queue.pending.pop_front() {
                    let mut table = self.table.lock().unwrap();
                    if request.event(|state| state.take()).is_ok() {
                        table.push(request.clone());
                        break request;
                    }
                } else if block {
                    queue = self.readers.wait(queue).unwrap();
                } else {
                    return Message::Nothing;
                }
            }
        };
        if self.copy(&request).is_err() {
            return Message::Nothing;
        }
        let mut read = Err(Refused::Ended);
        let ended = request.event_end(Done::NoReply, |state| match state.read_done() {
            Ok(Read::End(end)) => Some(end),
            other => {
                read = other;
                None
            }
        });
        if ended {
            self.ended(&request);
            return Message::Request(request.unique);
        }
        match read {
            Ok(Read::QueueInterrupt) => self.queue_interrupt(&request),
            Ok(_) => {}
            Err(_) => return Message::Nothing,
        }
        Message::Request(request.unique)
    }

    fn find(&self, unique: u64) -> Option<Arc<Request>> {
        let table = self.table.lock().unwrap();
        table
            .iter()
            .find(|request| request.unique == unique)
            .cloned()
    }

    /// write(2) of the answer to the device. True where it was taken.
    fn answer(&self, unique: u64) -> bool {
        let Some(request) = self.find(unique) else {
            return false;
        };
        if request.event(|state| state.answer()).is_err() || self.copy(&request).is_err() {
            return false;
        }
        let ended = request.event_end(Done::Answered, |state| state.answered().ok());
        if ended {
            self.ended(&request);
        }
        ended
    }

    /// write(2) of EAGAIN as the answer to an INTERRUPT.
    fn answer_interrupt_again(&self, unique: u64) {
        if let Some(request) = self.find(unique) {
            if request.event(|state| state.interrupt_again()) {
                self.queue_interrupt(&request);
            }
        }
    }

    fn signal(&self, request: &Arc<Request>) {
        if request.event(|state| state.signal()) {
            self.queue_interrupt(request);
        }
    }

    fn fatal_signal(&self, request: &Arc<Request>) {
        if request.event_end(Done::Killed, |state| state.fatal_signal()) {
            let mut queue = self.queue.lock().unwrap();
            queue.pending.retain(|other| !Arc::ptr_eq(other, request));
            drop(queue);
            self.ended(request);
        }
    }

    fn abort(&self) {
        let pending = {
            let mut queue = self.queue.lock().unwrap();
            queue.connected = false;
            queue.interrupts.clear();
            self.readers.notify_all();
            std::mem::take(&mut queue.pending)
        };
        let table = std::mem::take(&mut *self.table.lock().unwrap());
        for request in pending.into_iter().chain(table) {
            if request.event_end(Done::Aborted, |state| state.abort()) {
                self.ended(&request);
            }
        }
    }

    fn resend(&self) {
        let mut queue = self.queue.lock().unwrap();
        if !queue.connected {
            return;
        }
        let mut table = self.table.lock().unwrap();
        let (again, stay) = table
            .drain(..)
            .partition(|request| request.event(|s| s.resend()));
        *table = stay;
        let again: Vec<_> = again;
        for request in again.into_iter().rev() {
            queue.pending.push_front(request);
        }
        self.readers.notify_one();
    }

    /// Once all is over, no INTERRUPT is left to be read.
    fn no_interrupt_left(&self) {
        assert!(self.queue.lock().unwrap().interrupts.is_empty());
    }

    /// Waits for the request and checks what must hold in every order.
    fn wait(&self, request: &Arc<Request>) -> Done {
        let done = request.wait();
        assert_eq!(request.ends.load(SeqCst), 1);
        done
    }
}

/// Runs `model` in every order with at most two switches away from a thread that could go on, or as many as
/// LOOM_MAX_PREEMPTIONS says.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(model);
}

fn spawn<T: 'static>(
    chan: &Arc<Chan>,
    run: impl FnOnce(&Chan) -> T + 'static,
) -> thread::JoinHandle<T> {
    let chan = chan.clone();
    thread::spawn(move || run(&chan))
}

const ID: u64 = 2;

/// All at once.
#[test]
fn two_readers_a_writer_a_signal_and_an_abort() {
    check(|| {
        let chan = Chan::new();
        let request = Request::new(ID, RequestState::new());
        chan.send(&request);
        let readers = [(), ()].map(|()| spawn(&chan, |chan| chan.read(true)));
        let writer = spawn(&chan, |chan| chan.answer(ID));
        let signal = {
            let request = request.clone();
            spawn(&chan, move |chan| {
                chan.signal(&request);
                chan.fatal_signal(&request);
            })
        };
        chan.abort();
        let done = chan.wait(&request);
        let reads = readers.map(|reader| reader.join().unwrap());
        signal.join().unwrap();
        assert_eq!(writer.join().unwrap(), done == Done::Answered);
        let received = |message| reads.iter().filter(|read| **read == message).count();
        assert!(received(Message::Request(ID)) <= 1);
        assert!(received(Message::Interrupt(ID)) <= 1);
        if done == Done::Killed {
            assert_eq!(received(Message::Request(ID)), 0);
        }
        chan.no_interrupt_left();
    });
}

/// A server that takes one message after the other, and answers the request, always gets the answer through where
/// nobody aborts, and hears of the signal at most once, after the request.
#[test]
fn signal_while_the_server_works() {
    check(|| {
        let chan = Chan::new();
        let request = Request::new(ID, RequestState::new().force());
        chan.send(&request);
        let server = spawn(&chan, |chan| {
            assert_eq!(chan.read(true), Message::Request(ID));
            let interrupt = chan.read(false);
            assert!(matches!(
                interrupt,
                Message::Nothing | Message::Interrupt(ID)
            ));
            if interrupt != Message::Nothing {
                // As if it did not know the request yet: it is told again, once.
                chan.answer_interrupt_again(ID);
                assert_eq!(chan.read(false), Message::Interrupt(ID));
            }
            assert!(chan.answer(ID));
        });
        chan.signal(&request);
        chan.fatal_signal(&request);
        assert_eq!(chan.wait(&request), Done::Answered);
        server.join().unwrap();
        assert_eq!(
            chan.read(false),
            Message::Nothing,
            "an INTERRUPT for an answered request"
        );
    });
}

/// A request that a fatal signal takes away is not sent; one that was sent is answered.
#[test]
fn fatal_signal_against_two_readers() {
    check(|| {
        let chan = Chan::new();
        let request = Request::new(ID, RequestState::new());
        chan.send(&request);
        let readers = [(), ()].map(|()| {
            spawn(&chan, |chan| {
                let read = chan.read(false);
                if read == Message::Request(ID) {
                    assert!(chan.answer(ID));
                }
                read
            })
        });
        chan.fatal_signal(&request);
        let done = chan.wait(&request);
        let reads = readers.map(|reader| reader.join().unwrap());
        let sent = reads
            .iter()
            .filter(|read| **read == Message::Request(ID))
            .count();
        assert_eq!(sent, usize::from(done == Done::Answered));
    });
}

/// Two answers to one request: one is taken.
#[test]
fn two_writers_and_an_abort() {
    check(|| {
        let chan = Chan::new();
        let request = Request::new(ID, RequestState::new());
        chan.send(&request);
        assert_eq!(chan.read(false), Message::Request(ID));
        let writers = [(), ()].map(|()| spawn(&chan, |chan| chan.answer(ID)));
        let abort = spawn(&chan, Chan::abort);
        let done = chan.wait(&request);
        let taken = writers.map(|writer| writer.join().unwrap());
        abort.join().unwrap();
        assert_eq!(
            taken.iter().filter(|taken| **taken).count(),
            usize::from(done == Done::Answered)
        );
    });
}

/// A request without a reply ends once, whoever comes first.
#[test]
fn no_reply_against_an_abort() {
    check(|| {
        let chan = Chan::new();
        let request = Request::new(ID, RequestState::new().no_reply());
        chan.send(&request);
        let reader = spawn(&chan, |chan| chan.read(true));
        let abort = spawn(&chan, Chan::abort);
        let done = chan.wait(&request);
        abort.join().unwrap();
        let read = reader.join().unwrap();
        assert_eq!(read == Message::Request(ID), done == Done::NoReply);
    });
}

/// A resent request is neither lost nor sent to two readers at once, and an abort finds it on its way back.
#[test]
fn resend_against_a_signal_an_answer_and_an_abort() {
    check(|| {
        let chan = Chan::new();
        let request = Request::new(ID, RequestState::new());
        chan.send(&request);
        assert_eq!(chan.read(false), Message::Request(ID));
        let server = spawn(&chan, |chan| {
            chan.resend();
            chan.read(false);
            chan.answer(ID)
        });
        let signal = {
            let request = request.clone();
            spawn(&chan, move |chan| {
                chan.signal(&request);
                chan.fatal_signal(&request);
            })
        };
        chan.abort();
        let done = chan.wait(&request);
        assert_eq!(server.join().unwrap(), done == Done::Answered);
        signal.join().unwrap();
        chan.no_interrupt_left();
    });
}
