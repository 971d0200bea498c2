// SPDX-License-Identifier: GPL-2.0

//! The filesystem's half of a connection to a server: what was mounted, and what was agreed on by
//! INIT.

pub(crate) mod init;

use crate::{
    chan::{Chan, Watchdog},
    poll::Polls,
    req::Creds,
};
use fuse_abi::InitFlags;
use fuse_core::{init::Negotiated, limits::Limits, lock_owner::LockOwners};
use fuse_sys::params;
use kernel::{
    pid_namespace::PidNamespace,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{ordering::Relaxed, Atomic, AtomicFlag},
        Arc, SetOnce,
    },
};
use vfs::{
    cred::{self, Kgid, Kuid, UserNamespace},
    lock::LockOwner,
    random,
    small_fs::Entry,
};

/// Until INIT is answered, the smallest limits that any server has: a folio of more than a page
/// cannot be read.
const LIMITS_BEFORE_INIT: Limits = Limits {
    max_read: 4096,
    max_write: 4096,
    max_pages: 1,
};

/// What a mount was asked for by its options.
pub(crate) struct Options {
    /// Whose mount it is.
    pub(crate) user_id: Kuid,
    /// Whose mount it is.
    pub(crate) group_id: Kgid,
    /// The client checks permissions by mode.
    pub(crate) default_permissions: bool,
    /// Others than the owner may use the mount.
    pub(crate) allow_other: bool,
    /// Most bytes of a READ; `u32::MAX` if it was not given.
    pub(crate) max_read: u32,
}

/// A thing learnt from the server once and never forgotten, such as that it does not know a
/// request. Kept by itself: it orders nothing else.
pub(crate) struct Sticky(AtomicFlag);

impl Sticky {
    const fn new() -> Self {
        Self(AtomicFlag::new(false))
    }

    /// Whether it was learnt.
    pub(crate) fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Learns it.
    pub(crate) fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Sends a request of which it is to be learnt that the server does not know it (`ENOSYS`);
    /// [`None`] if that is so.
    pub(crate) fn unless<R>(&self, send: impl FnOnce() -> Result<R>) -> Result<Option<R>> {
        if self.get() {
            return Ok(None);
        }
        match send() {
            Err(err) if err == ENOSYS => {
                self.set();
                Ok(None)
            }
            result => result.map(Some),
        }
    }
}

/// What the client knows at some time. A request for attributes notes it when it starts, and its
/// answer is judged by it.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    /// How often attributes were taken over: attributes that were taken over since may be newer
    /// than the answer.
    pub(crate) attr_version: u64,
    /// How many inodes went that can be found again.
    pub(crate) evictions: u64,
    /// How often all names were said not to hold any more.
    pub(crate) epoch: usize,
}

/// A connection to a server. The superblock holds it, and the completion of INIT.
pub(crate) struct Conn {
    chan: Arc<Chan>,
    watchdog: Watchdog,
    options: Options,
    user_ns: ARef<UserNamespace>,
    pid_ns: ARef<PidNamespace>,
    /// Its directory in the control filesystem, once the mount is made.
    control: SetOnce<Entry<Chan>>,
    negotiated: SetOnce<Negotiated>,
    attr_version: Atomic<u64>,
    lock_owners: LockOwners,
    evictions: Atomic<u64>,
    epoch: Atomic<usize>,
    /// ENOSYS to OPEN: files need no OPEN.
    pub(crate) no_open: Sticky,
    /// ENOSYS to OPENDIR: directories need no OPENDIR.
    pub(crate) no_opendir: Sticky,
    /// ENOSYS to ACCESS: everything may be tried.
    pub(crate) no_access: Sticky,
    /// ENOSYS to STATX: the time of creation can't be had.
    pub(crate) no_statx: Sticky,
    /// ENOSYS to FLUSH: there is nothing to do at close.
    pub(crate) no_flush: Sticky,
    /// ENOSYS to POLL: files can always be read and written.
    pub(crate) no_poll: Sticky,
    /// Open files that were polled.
    pub(crate) polls: Polls,
    /// ENOSYS to FSYNC: what is written is durable, or the server does not care.
    pub(crate) no_fsync: Sticky,
    /// ENOSYS to FSYNCDIR: as for FSYNC.
    pub(crate) no_fsyncdir: Sticky,
    /// ENOSYS to LSEEK: files have no holes.
    pub(crate) no_lseek: Sticky,
    /// ENOSYS to GETXATTR: there are no extended attributes.
    pub(crate) no_getxattr: Sticky,
    /// ENOSYS to LISTXATTR: as for GETXATTR.
    pub(crate) no_listxattr: Sticky,
}

impl Conn {
    /// A connection that no device has yet. Owners are understood in `user_ns`, process IDs in the
    /// caller's namespace.
    pub(crate) fn new(options: Options, user_ns: ARef<UserNamespace>) -> Result<Arc<Self>> {
        let chan = Chan::new()?;
        Ok(Arc::new(
            Self {
                watchdog: Watchdog::new(chan.clone())?,
                chan,
                options,
                user_ns,
                pid_ns: cred::current_pid_ns()?,
                control: SetOnce::new(),
                negotiated: SetOnce::new(),
                attr_version: Atomic::new(0),
                lock_owners: LockOwners::new(random::words()),
                evictions: Atomic::new(0),
                epoch: Atomic::new(1),
                no_open: Sticky::new(),
                no_opendir: Sticky::new(),
                no_access: Sticky::new(),
                no_statx: Sticky::new(),
                no_flush: Sticky::new(),
                no_poll: Sticky::new(),
                polls: Polls::new()?,
                no_fsync: Sticky::new(),
                no_fsyncdir: Sticky::new(),
                no_lseek: Sticky::new(),
                no_getxattr: Sticky::new(),
                no_listxattr: Sticky::new(),
            },
            GFP_KERNEL,
        )?)
    }

    /// The way to the server.
    pub(crate) fn chan(&self) -> &Arc<Chan> {
        &self.chan
    }

    /// What ends the connection if the server takes too long.
    pub(crate) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// What the mount was asked for.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Takes over the connection's directory in the control filesystem.
    pub(crate) fn show(&self, entry: Entry<Chan>) {
        self.control.populate(entry);
    }

    /// Removes it, as the mount goes. Sleeps.
    pub(crate) fn hide(&self) {
        if let Some(entry) = self.control.as_ref() {
            entry.remove();
        }
    }

    /// The user namespace in which IDs go over the wire.
    pub(crate) fn user_ns(&self) -> &UserNamespace {
        &self.user_ns
    }

    /// Who the caller is, as the server is told. Waits for INIT first, so that whoever makes a
    /// request with it knows what was agreed on. Sleeps.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW` if user or group have no number in the namespace of the mount, and those of
    /// [`Chan::wait_ready`].
    pub(crate) fn creds(&self) -> Result<Creds> {
        if self.negotiated.as_ref().is_none() {
            self.chan.wait_ready()?;
        }
        let ids = cred::current_ids();
        Ok(Creds {
            uid: self.user_ns.from_kuid(ids.fsuid).ok_or(EOVERFLOW)?,
            gid: self.user_ns.from_kgid(ids.fsgid).ok_or(EOVERFLOW)?,
            pid: cred::current_pid(&self.pid_ns),
        })
    }

    /// As [`creds`](Self::creds), for a request that must be sent: a user or group without a number
    /// is sent as the overflow ID. For what only comes after INIT; does not sleep.
    pub(crate) fn forced_creds(&self) -> Creds {
        let ids = cred::current_ids();
        Creds {
            uid: self.user_ns.from_kuid_munged(ids.fsuid),
            gid: self.user_ns.from_kgid_munged(ids.fsgid),
            pid: cred::current_pid(&self.pid_ns),
        }
    }

    /// What the server is told of the owner of a lock.
    pub(crate) fn lock_owner(&self, owner: LockOwner) -> u64 {
        self.lock_owners.name(owner.addr())
    }

    /// The PID namespace in which processes are named over the wire.
    pub(crate) fn pid_ns(&self) -> &PidNamespace {
        &self.pid_ns
    }

    /// The calling process, as the server is told; 0 if it has no number there.
    pub(crate) fn current_process(&self) -> u32 {
        cred::current_process(&self.pid_ns)
    }

    /// Limits of READ and WRITE.
    pub(crate) fn limits(&self) -> Limits {
        self.negotiated
            .as_ref()
            .map_or(LIMITS_BEFORE_INIT, |n| n.limits)
    }

    /// What both sides implement; nothing until INIT is answered.
    pub(crate) fn features(&self) -> InitFlags {
        self.negotiated
            .as_ref()
            .map_or(InitFlags::empty(), |n| n.flags)
    }

    /// The minor version both sides speak; ours until INIT is answered.
    pub(crate) fn minor(&self) -> u32 {
        self.negotiated
            .as_ref()
            .map_or(fuse_abi::MINOR_VERSION, |n| n.minor)
    }

    /// The longest name, bytes.
    pub(crate) fn name_max(&self) -> usize {
        self.negotiated
            .as_ref()
            .map_or(1024, |n| n.name_max as usize)
    }

    /// Whether the client checks permissions by mode, instead of the server.
    pub(crate) fn default_permissions(&self) -> bool {
        self.negotiated
            .as_ref()
            .map_or(self.options.default_permissions, |n| n.default_permissions)
    }

    /// Whether the caller may use the mount at all. A server sees what its callers do, can hold
    /// them up and feed them any data: so, unless the administrator allows it by `allow_other`,
    /// they must wholly be the owner of the mount. Even with it, callers from outside of the user
    /// namespace of the mount are safe from it. The administrator may exempt himself from all this
    /// by a parameter.
    pub(crate) fn allow_current_process(&self) -> bool {
        let allowed = if self.options.allow_other {
            self.user_ns.has_current()
        } else {
            self.owned_by_current()
        };
        allowed || params::allow_sys_admin_access() && cred::is_sys_admin()
    }

    /// Whether all IDs of the caller are those of the owner of the mount: such a caller gives no
    /// right away that the owner does not have.
    fn owned_by_current(&self) -> bool {
        let Options {
            user_id, group_id, ..
        } = self.options;
        let ids = cred::current_ids();
        [ids.uid, ids.euid, ids.suid]
            .iter()
            .all(|&uid| uid == user_id)
            && [ids.gid, ids.egid, ids.sgid]
                .iter()
                .all(|&gid| gid == group_id)
    }

    /// What is known now.
    pub(crate) fn known(&self) -> Known {
        Known {
            attr_version: self.attr_version.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            epoch: self.epoch(),
        }
    }

    /// Names that are known from an earlier epoch do not hold any more. Not 0.
    pub(crate) fn epoch(&self) -> usize {
        self.epoch.load(Relaxed)
    }

    /// No name that is known holds any more.
    pub(crate) fn next_epoch(&self) {
        self.epoch.fetch_add(1usize, Relaxed);
    }

    /// A version newer than all before.
    pub(crate) fn next_attr_version(&self) -> u64 {
        self.attr_version.fetch_add(1u64, Relaxed).wrapping_add(1)
    }

    /// An inode goes that can be found again.
    pub(crate) fn count_eviction(&self) {
        self.evictions.fetch_add(1u64, Relaxed);
    }
}
