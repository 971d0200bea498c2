// SPDX-License-Identifier: GPL-2.0

//! Requests that the server asks to get again, since it has forgotten them.

use super::Chan;
use kernel::prelude::*;

impl Chan {
    /// Sends all that was sent and not answered once more, the oldest first and before anything
    /// else. The server gets it with an ID of its own, which has [`fuse_abi::UNIQUE_RESEND`], and
    /// answers by that. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: INIT is not answered, or there is no client any more.
    pub(crate) fn resend(&self) -> Result {
        let pqueues = self.pqueues.lock();
        let mut iqueue = self.iqueue.lock();
        // After an abort nobody would find what is put into the queue.
        if !matches!(iqueue.admits(false), Some(Ok(()))) {
            return Err(EINVAL);
        }
        let mut again = 0u32;
        for pqueue in pqueues.iter() {
            again = again.saturating_add(iqueue.resend(pqueue));
        }
        drop(iqueue);
        drop(pqueues);
        self.wake_readers(again);
        Ok(())
    }
}
