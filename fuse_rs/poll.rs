// SPDX-License-Identifier: GPL-2.0

//! poll(2) of regular files: POLL, and who waits for the server to say that something has happened.

use crate::{
    file::{
        open_file,
        File,
        OpenFile, //
    },
    inode::{
        conn,
        nodeid, //
    },
    req::{
        Args,
        Sink, //
    }, //
};
use core::pin::Pin;
use fuse_abi::{
    Opcode,
    PollFlags,
    PollIn,
    PollOut,
    Reply as _, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    static_lock_class,
    sync::{
        new_mutex,
        Arc,
        Mutex,
        SetOnce, //
    }, //
};
use vfs::wait::{
    self,
    PollTable,
    WaitQueue,
    EPOLLERR,
    EPOLLIN,
    EPOLLOUT,
    EPOLLRDNORM,
    EPOLLWRNORM, //
};

/// What is always true of a file that can't be polled.
const DEFAULT_POLLMASK: u32 = EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM;

/// An open file that was polled once.
#[pin_data]
pub(crate) struct Polled {
    /// What the server calls it in a notification.
    kh: u64,
    #[pin]
    pollers: WaitQueue,
}

/// The open files of a connection that were polled.
pub(crate) struct Polls(Pin<KBox<Mutex<Table>>>);

struct Table {
    /// The last `kh` given out.
    last: u64,
    files: RBTree<u64, Arc<Polled>>,
}

impl Polls {
    /// None yet. Sleeps.
    pub(crate) fn new() -> Result<Self> {
        let table = Table {
            last: 0,
            files: RBTree::new(),
        };
        Ok(Self(KBox::pin_init(
            new_mutex!(table, "fuse_rs_polls"),
            GFP_KERNEL,
        )?))
    }

    /// What `polled` holds, made if need be. Sleeps.
    fn get<'a>(&self, polled: &'a SetOnce<Arc<Polled>>) -> Result<&'a Arc<Polled>> {
        if let Some(polled) = polled.as_ref() {
            return Ok(polled);
        }
        // Whoever makes one holds the lock.
        let mut table = self.0.lock();
        if polled.as_ref().is_none() {
            let kh = table.last.wrapping_add(1);
            let new = Arc::pin_init(
                pin_init!(Polled {
                    kh,
                    pollers <- WaitQueue::new(c"fuse_rs_pollers", static_lock_class!()),
                }),
                GFP_KERNEL,
            )?;
            let node = RBTreeNode::new(kh, new.clone(), GFP_KERNEL)?;
            table.last = kh;
            table.files.insert(node);
            polled.populate(new);
        }
        polled.as_ref().ok_or(EIO)
    }

    /// The file is closed. Sleeps.
    pub(crate) fn remove(&self, polled: &SetOnce<Arc<Polled>>) {
        if let Some(polled) = polled.as_ref() {
            let node = self.0.lock().files.remove_node(&polled.kh);
            drop(node);
        }
    }

    /// Something has happened to the file `kh`, if it is still open. Sleeps.
    pub(crate) fn wake(&self, kh: u64) {
        let polled = self.0.lock().files.get(&kh).cloned();
        if let Some(polled) = polled {
            polled.pollers.wake_all();
        }
    }
}

/// What is true of the file now, `EPOLL*`; `table` is told who wakes the poller. Sleeps.
pub(crate) fn poll<'file>(file: &'file File, table: &PollTable<'file>) -> u32 {
    let conn = conn(file.inode());
    match conn.no_poll.unless(|| ask(file, table)) {
        Ok(events) => events.unwrap_or(DEFAULT_POLLMASK),
        Err(_) => EPOLLERR,
    }
}

fn ask<'file>(file: &'file File, table: &PollTable<'file>) -> Result<u32> {
    let inode = file.inode();
    let conn = conn(inode);
    let open = open_file(file)?;
    let polled = conn.polls.get(&open.polled)?;
    table.wait_at(open, |open: &OpenFile| Some(&open.polled.as_ref()?.pollers));
    // The server need not tell if nobody waits.
    let flags = if polled.pollers.has_waiters() {
        PollFlags::SCHEDULE_NOTIFY
    } else {
        PollFlags::empty()
    };
    let args = Args::new(Opcode::Poll, nodeid(inode), conn.creds()?)
        .arg(&PollIn {
            fh: open.fh(),
            kh: polled.kh,
            flags,
            events: wait::mangle_poll(table.requested_events()).into(),
        })?
        .sink(Sink::exactly(PollOut::wire_size(conn.minor())));
    let reply = conn.chan().send(args)?;
    let out = PollOut::parse(reply.bytes(), conn.minor()).map_err(|_| EIO)?;
    Ok(wait::demangle_poll(out.revents as u16))
}
