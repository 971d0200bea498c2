// SPDX-License-Identifier: GPL-2.0

//! Servers that take too long: the connection ends when one request has waited for longer than was
//! agreed on.
//!
//! Only the oldest request of each queue and table is looked at, every [`INTERVAL`]: a request is
//! found to have waited too long up to an interval late.

use super::Chan;
use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    },
    time::msecs_to_jiffies, //
};
use vfs::{
    ratelimit,
    workqueue::{
        DelayedWork,
        Work, //
    }, //
};

/// Milliseconds from one look to the next.
const INTERVAL: u32 = 15_000;

/// Looks after the requests of a connection.
pub(crate) struct Watchdog(Arc<DelayedWork<Watch>>);

struct Watch {
    chan: Arc<Chan>,
    /// Seconds that a request may wait.
    timeout: Atomic<u32>,
}

impl Watchdog {
    /// Does nothing until it is started.
    pub(crate) fn new(chan: Arc<Chan>) -> Result<Self> {
        let watch = Watch {
            chan,
            timeout: Atomic::new(0),
        };
        Ok(Self(DelayedWork::new(
            watch,
            c"fuse_rs_timeout",
            static_lock_class!(),
            static_lock_class!(),
        )?))
    }

    /// No request may wait longer than `timeout` seconds from now on; 0 for no limit.
    pub(crate) fn start(&self, timeout: u32) {
        if timeout > 0 {
            self.0.data().timeout.store(timeout, Relaxed);
            self.0.start(INTERVAL);
        }
    }

    /// Stops it for ever, and waits until it is stopped. Sleeps.
    pub(crate) fn stop(&self) {
        self.0.stop();
    }
}

impl Work for Watch {
    fn run(&self) -> Option<u32> {
        if !self.chan.is_connected() {
            return None;
        }
        let timeout = self.timeout.load(Relaxed);
        let ticks = msecs_to_jiffies(timeout.saturating_mul(1000));
        if !self.chan.has_waited_for(ticks as u64) {
            return Some(INTERVAL);
        }
        if ratelimit::may_print() {
            pr_err!("the server has not answered within {timeout} seconds: connection aborted\n");
        }
        self.chan.abort();
        None
    }
}

impl Chan {
    /// Whether a request has waited for so many ticks, or more. Sleeps.
    fn has_waited_for(&self, ticks: u64) -> bool {
        if self.iqueue.lock().age() >= ticks {
            return true;
        }
        let pqueues = self.pqueues.lock();
        let late = pqueues.iter().any(|pqueue| pqueue.age() >= ticks);
        late
    }
}
