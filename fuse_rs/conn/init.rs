// SPDX-License-Identifier: GPL-2.0

//! INIT: the first request of a connection. It is sent when the mount is made. Every other request
//! waits for the answer, and if the server wants it so (`FUSE_DEV_IOC_SYNC_INIT`) the mount does too.

use crate::{
    conn::Conn,
    req::{Args, Completion, Creds, Prepared, Reply, Sink},
    sysctl,
};
use core::mem::size_of;
use fuse_abi::{InitFlags, InitIn, InitOut, Opcode};
use fuse_core::init::{negotiate, InitError, Negotiated, Policy};
use fuse_sys::params;
use kernel::{
    page::{PAGE_SHIFT, PAGE_SIZE},
    prelude::*,
    sync::{aref::ARef, Arc},
};
use vfs::{bdi::Bdi, cred, ratelimit};

/// What is implemented. A server may take any of it, thus nothing more must be here.
const OFFER: InitFlags = InitFlags::ASYNC_READ
    .union(InitFlags::SPLICE_WRITE)
    .union(InitFlags::SPLICE_MOVE)
    .union(InitFlags::SPLICE_READ)
    // Nothing is created that a umask could apply to; fuse-overlayfs does not do without it.
    .union(InitFlags::DONT_MASK)
    .union(InitFlags::AUTO_INVAL_DATA)
    .union(InitFlags::ASYNC_DIO)
    .union(InitFlags::POSIX_LOCKS)
    .union(InitFlags::FLOCK_LOCKS)
    .union(InitFlags::HAS_IOCTL_DIR)
    .union(InitFlags::PARALLEL_DIROPS)
    .union(InitFlags::NO_OPEN_SUPPORT)
    .union(InitFlags::NO_OPENDIR_SUPPORT)
    .union(InitFlags::ABORT_ERROR)
    .union(InitFlags::HAS_RESEND)
    .union(InitFlags::MAX_PAGES)
    .union(InitFlags::EXPLICIT_INVAL_DATA)
    .union(InitFlags::HAS_EXPIRE_ONLY)
    .union(InitFlags::REQUEST_TIMEOUT)
    .union(InitFlags::INIT_EXT);

/// The readahead window of a server that does not take larger requests, bytes: what filesystems
/// have by default.
const DEFAULT_READAHEAD: usize = 128 << 10;

/// Waits for the answer.
struct Init {
    conn: Arc<Conn>,
    bdi: ARef<Bdi>,
    offer: InitIn,
    /// What the offer was made by.
    max_pages_limit: u32,
}

/// INIT, ready to be sent as soon as the device is known.
pub(crate) struct Ready {
    prepared: Prepared,
    /// What waits for the answer in the task that sends it; without it the task does not wait.
    wait: Option<KBox<Init>>,
}

/// Makes INIT. With `wait` the sender waits for the answer. What that means for readahead goes to
/// `bdi`.
pub(crate) fn prepare(conn: &Arc<Conn>, bdi: ARef<Bdi>, wait: bool) -> Result<Ready> {
    let max_pages_limit = sysctl::MAX_PAGES_LIMIT.get();
    // One request may be as large as the readahead window: offer the largest there can be, not the
    // usual 128 KiB.
    let max_readahead = (max_pages_limit as usize).saturating_mul(PAGE_SIZE);
    let offer = InitIn::new(u32::try_from(max_readahead).unwrap_or(u32::MAX), OFFER);
    let args = Args::new(Opcode::Init, 0, Creds::NONE)
        .arg(&offer)?
        .sink(Sink::Inline {
            // As much of it as the server knows.
            min: 0,
            max: size_of::<InitOut>(),
        });
    let init = Init {
        conn: conn.clone(),
        bdi,
        offer,
        max_pages_limit,
    };
    let init = KBox::new(init, GFP_KERNEL)?;
    Ok(if wait {
        Ready {
            prepared: Prepared::new(args, None)?,
            wait: Some(init),
        }
    } else {
        Ready {
            prepared: Prepared::new(args, Some(init))?,
            wait: None,
        }
    })
}

impl Ready {
    /// Sends INIT. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOTCONN`: it has failed, and the connection is ended. Only if the answer was waited for.
    pub(crate) fn send(self, conn: &Conn) -> Result {
        let chan = conn.chan();
        let Some(init) = self.wait else {
            chan.send_now(self.prepared);
            return Ok(());
        };
        init.complete(chan.call_init(self.prepared));
        if conn.negotiated.as_ref().is_some() {
            return Ok(());
        }
        chan.abort();
        chan.wait_aborted();
        Err(ENOTCONN)
    }
}

impl Init {
    fn negotiate(&self, result: Result<Reply>) -> Result<Negotiated, InitError> {
        let reply = result.map_err(|e| InitError::Errno(e.to_errno().saturating_neg()))?;
        let reply = InitOut::parse(reply.bytes()).map_err(InitError::Malformed)?;
        let policy = Policy {
            max_read: self.conn.options().max_read,
            max_pages_limit: self.max_pages_limit,
            default_permissions: self.conn.options().default_permissions,
            privileged: cred::is_sys_admin(),
            max_user_bgreq: params::max_user_bgreq(),
            max_user_congthresh: params::max_user_congthresh(),
            default_request_timeout: sysctl::DEFAULT_REQUEST_TIMEOUT.get(),
            max_request_timeout: sysctl::MAX_REQUEST_TIMEOUT.get(),
        };
        negotiate::<{ PAGE_SHIFT as u32 }>(&self.offer, &policy, &reply)
    }
}

impl Completion for Init {
    fn complete(self: KBox<Self>, result: Result<Reply>) {
        let chan = self.conn.chan();
        match self.negotiate(result) {
            Ok(negotiated) => {
                // A server that takes large requests gets a window of one, so that reads in a row
                // make such requests.
                let window = (negotiated.io_pages as usize).max(DEFAULT_READAHEAD / PAGE_SIZE);
                self.bdi
                    .set_ra_pages(window.min(negotiated.ra_pages as usize));
                self.bdi.set_io_pages(negotiated.io_pages as usize);
                self.conn.negotiated.populate(negotiated);
                // The gate opens last: who comes through it finds all that was agreed.
                chan.set_initialized(&negotiated);
                self.conn.watchdog.start(negotiated.request_timeout);
            }
            Err(error) => {
                // If there is no server any more, nothing is wrong with its answer.
                if chan.is_connected() && ratelimit::may_print() {
                    pr_err!("mount is unusable: {}\n", format_args!("{error}"));
                }
                chan.set_failed();
            }
        }
    }
}
