// SPDX-License-Identifier: GPL-2.0

//! The requests that the server reads, has, or answers, by device.

use crate::req::{
    self,
    Queue,
    QueueNode,
    Request, //
};
use core::mem;
use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::{
        new_spinlock,
        Arc,
        SpinLock, //
    }, //
};

/// The table of one open device. Its lock comes after that of the [`Iqueue`](crate::iqueue::Iqueue)
/// and before those of the requests.
#[pin_data]
pub(crate) struct Pqueue {
    #[pin]
    table: SpinLock<Queue>,
}

impl Pqueue {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                table <- new_spinlock!(RBTree::new(), "fuse_rs_pqueue"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a request that a reader of the device has taken.
    pub(crate) fn insert(&self, node: QueueNode) {
        // The IDs do not repeat within 2^62 requests: there is no other one of this ID.
        self.table.lock().insert(node);
    }

    /// The request of the ID that the server answers.
    pub(crate) fn get(&self, unique: u64) -> Option<Arc<Request>> {
        let request = self.table.lock().get(&req::key(unique)).cloned()?;
        // Once it was sent again, the answer to what was sent first is out of date.
        (request.unique() == unique).then_some(request)
    }

    /// Takes out an ended request.
    pub(crate) fn remove(&self, request: &Request) {
        let node = self.table.lock().remove_node(&request.key());
        drop(node);
    }

    /// How long the oldest request has waited, in ticks; 0 if none waits.
    pub(crate) fn age(&self) -> u64 {
        req::age(&self.table.lock())
    }

    /// Moves what the server has to `pending`, to be sent again. Returns how many requests.
    pub(crate) fn resend_to(&self, pending: &mut Queue) -> u32 {
        let mut table = self.table.lock();
        let mut moved = 0u32;
        let mut next = table.cursor_front_mut();
        while let Some(cursor) = next {
            if cursor.current().1.resend() {
                let (rest, node) = cursor.remove_current();
                pending.insert(node);
                moved = moved.saturating_add(1);
                // All before it were seen, the first of the rest may be one of them.
                next = rest;
            } else {
                next = cursor.move_next();
            }
        }
        moved
    }

    /// Moves all requests to `queue`, to be aborted.
    pub(crate) fn drain_to(&self, queue: &mut Queue) {
        let mut table = mem::take(&mut *self.table.lock());
        while let Some(first) = table.cursor_front_mut() {
            queue.insert(first.remove_current().1);
        }
    }
}
