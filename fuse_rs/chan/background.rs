// SPDX-License-Identifier: GPL-2.0

//! Requests in the background, for which no task waits.
//!
//! Only `max_background` of them are with the server at a time, the others wait for their turn. When
//! that many are under way or wait for their turn, whoever wants to add one waits, unless it is
//! forced. From `congestion_threshold` on the connection is congested: readahead that nobody waits
//! for is left out.

use super::{
    refuse,
    Chan, //
};
use crate::req::{
    Args,
    Completion,
    Prepared, //
};
use kernel::prelude::*;

impl Chan {
    /// Allocates a request to be sent in the background, and waits until there are few enough of
    /// them and INIT is answered. A forced one waits for nothing. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`. `EINTR`: a fatal signal came first. `ENOTCONN`, `ECONNREFUSED` as for
    /// [`send`](Chan::send).
    pub(crate) fn prepare_background(
        &self,
        args: Args,
        done: Option<KBox<dyn Completion>>,
    ) -> Result<Prepared> {
        let prepared = Prepared::new(args, done)?;
        if !prepared.is_force() {
            self.enter();
            let admitted = self
                .crowd
                .wait_killable_exclusive(|| self.iqueue.lock().admits_background());
            self.leave();
            admitted.map_err(|_| EINTR)??;
        }
        Ok(prepared)
    }

    /// Sends a request and does not wait for anything. Its completion runs when it is ended: in
    /// here, if there is no server. Does not sleep, if the completion does not.
    pub(crate) fn send_background(&self, mut prepared: Prepared) {
        prepared.set_background();
        let mut iqueue = self.iqueue.lock();
        if let Some(Err(error)) = iqueue.admits(prepared.is_force()) {
            drop(iqueue);
            return refuse(prepared, error);
        }
        self.enter();
        iqueue.push_background(prepared);
        let started = iqueue.start_background(self.connection());
        drop(iqueue);
        self.wake_readers(started);
    }

    /// A background request has ended: there is room for another one.
    pub(super) fn end_background(&self) {
        let mut iqueue = self.iqueue.lock();
        iqueue.end_background();
        let started = iqueue.start_background(self.connection());
        drop(iqueue);
        self.wake_readers(started);
        self.crowd.wake(1);
    }

    /// Whether readahead that nobody waits for should be left out.
    pub(crate) fn is_congested(&self) -> bool {
        self.iqueue.lock().is_congested()
    }

    /// Most background requests that are with the server at a time.
    pub(crate) fn max_background(&self) -> u32 {
        self.iqueue.lock().max_background()
    }

    /// Sets [`max_background`](Self::max_background).
    pub(crate) fn set_max_background(&self, max: u32) {
        let mut iqueue = self.iqueue.lock();
        let room = iqueue.set_max_background(max);
        let started = iqueue.start_background(self.connection());
        drop(iqueue);
        self.wake_readers(started);
        self.crowd.wake(room);
    }

    /// From how many background requests on the connection is congested.
    pub(crate) fn congestion_threshold(&self) -> u32 {
        self.iqueue.lock().congestion_threshold()
    }

    /// Sets [`congestion_threshold`](Self::congestion_threshold).
    pub(crate) fn set_congestion_threshold(&self, threshold: u32) {
        self.iqueue.lock().set_congestion_threshold(threshold);
    }
}
