// SPDX-License-Identifier: GPL-2.0

//! Notifications: what the server tells unasked.
//!
//! The server's memory is read before anything is locked: a page fault in it may wait for the
//! server, and the superblock is kept from going only while a notification is carried out.

mod data;

use crate::{
    attr,
    chan::Notified,
    conn::Conn,
    inode::{
        self,
        INode,
        NodeId, //
    },
    super_block::Fuse, //
};
use fuse_abi::{
    InvalEntryFlags,
    NotifyCode,
    NotifyDeleteOut,
    NotifyInvalEntryOut,
    NotifyInvalInodeOut,
    NotifyPollWakeupOut,
    NotifyPruneOut,
    NotifyStoreOut, //
};
use fuse_sys::params;
use kernel::{
    iov::IovIterSource,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        ArcBorrow, //
    }, //
};
use vfs::{
    dentry::Child,
    link::{
        Guard,
        Link, //
    },
    super_block::SuperBlock, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

/// Node IDs of a PRUNE that are handled at a time.
const PRUNE_BATCH: usize = 512;

/// Carries out the notifications for a mount.
pub(crate) struct Notifications(Arc<Link<Fuse>>);

impl Notifications {
    /// For the mount that `link` leads to.
    pub(crate) fn new(link: Arc<Link<Fuse>>) -> Self {
        Self(link)
    }

    /// The mount, kept from going.
    ///
    /// # Errors
    ///
    /// `ENOTCONN`: it is going. `EINTR`: a fatal signal came first.
    fn mount(&self) -> Result<Guard<'_, Fuse>> {
        self.0.get()?.ok_or(ENOTCONN)
    }

    fn inval_inode(&self, arg: &NotifyInvalInodeOut) -> Result {
        let sb = self.mount()?;
        let inode = find(&sb, arg.ino)?;
        attr::outdate(&inode);
        let Ok(start) = u64::try_from(arg.off) else {
            return Ok(());
        };
        // A length that is not positive, or goes past what a file may have, means to the end.
        let last = match u64::try_from(arg.len) {
            Ok(len @ 1..) => start.saturating_add(len).saturating_sub(1),
            _ => u64::MAX,
        };
        inode.mapping().invalidate_range_killable(start, last)
    }

    /// Runs `op` with what is cached of the name in the directory, whose attributes are asked for
    /// anew.
    fn with_name(
        &self,
        parent: u64,
        name: &[u8],
        op: impl FnOnce(Child<'_, Fuse>) -> Result,
    ) -> Result {
        let sb = self.mount()?;
        let dir = find(&sb, parent)?;
        let names = dir.lock_names_killable()?;
        let child = names.get(name).ok_or(ENOENT)?;
        attr::invalidate(&dir, !0);
        child.set_time(0);
        op(child)
    }

    fn inval_entry(&self, arg: &NotifyInvalEntryOut, name: &[u8]) -> Result {
        self.with_name(arg.parent, name, |child| {
            if !arg.flags.contains(InvalEntryFlags::EXPIRE_ONLY) {
                child.invalidate();
            }
            Ok(())
        })
    }

    fn delete(&self, arg: &NotifyDeleteOut, name: &[u8]) -> Result {
        self.with_name(arg.parent, name, |child| {
            match child.inode() {
                Some(inode) if inode::nodeid(inode) != arg.child => {
                    child.invalidate();
                    return Err(ENOENT);
                }
                Some(inode) => attr::invalidate(inode, !0),
                None => {}
            }
            child.remove()
        })
    }

    fn prune(&self, mut count: usize, from: &mut IovIterSource<'_>) -> Result {
        let mut nodeids = KVec::from_elem(0u64, count.min(PRUNE_BATCH), GFP_KERNEL)?;
        while count > 0 {
            nodeids.truncate(count);
            read(from, nodeids.as_mut_bytes())?;
            let sb = self.mount()?;
            for &nodeid in &nodeids {
                if let Ok(inode) = find(&sb, nodeid) {
                    inode.prune_aliases();
                }
            }
            count = count.saturating_sub(nodeids.len());
        }
        Ok(())
    }

    fn conn<'a>(sb: &'a SuperBlock<Fuse>) -> ArcBorrow<'a, Conn> {
        sb.info()
    }

    /// The name at the end of a notification, whose length was found by `len`; the NUL that follows
    /// it is left.
    fn name(
        &self,
        from: &mut IovIterSource<'_>,
        len: impl FnOnce(usize) -> Result<usize, fuse_abi::Malformed>,
    ) -> Result<KVec<u8>> {
        let name_max = Self::conn(&*self.mount()?).name_max();
        let len = len(name_max).map_err(|err| match err {
            fuse_abi::Malformed::NameTooLong(_) => ENAMETOOLONG,
            _ => EINVAL,
        })?;
        let mut name = KVec::from_elem(0u8, len, GFP_KERNEL)?;
        read(from, &mut name)?;
        Ok(name)
    }
}

impl Notified for Notifications {
    fn notify(&self, code: NotifyCode, len: usize, from: &mut IovIterSource<'_>) -> Result {
        match code {
            NotifyCode::InvalInode => self.inval_inode(&only(len, from)?),
            NotifyCode::InvalEntry => {
                let arg: NotifyInvalEntryOut = fixed(len, from)?;
                let name = self.name(from, |max| arg.name_len(len, max))?;
                self.inval_entry(&arg, &name)
            }
            NotifyCode::Delete => {
                let arg: NotifyDeleteOut = fixed(len, from)?;
                let name = self.name(from, |max| arg.name_len(len, max))?;
                self.delete(&arg, &name)
            }
            NotifyCode::Prune => {
                let arg: NotifyPruneOut = fixed(len, from)?;
                let count = arg.nodeids(len).map_err(|_| EINVAL)?;
                self.prune(count, from)
            }
            NotifyCode::Store => {
                let arg: NotifyStoreOut = fixed(len, from)?;
                let len = arg.data_len(len).map_err(|_| EINVAL)?;
                self.store(&arg, len, from)
            }
            NotifyCode::Retrieve => self.retrieve(&only(len, from)?),
            NotifyCode::IncEpoch => {
                let sb = self.mount()?;
                Self::conn(&sb).next_epoch();
                if params::inval_wq() > 0 {
                    sb.maintain();
                }
                Ok(())
            }
            NotifyCode::Poll => {
                let arg: NotifyPollWakeupOut = only(len, from)?;
                Self::conn(&*self.mount()?).polls.wake(arg.kh);
                Ok(())
            }
            // The transport's own.
            NotifyCode::Resend => Err(EINVAL),
        }
    }
}

/// The inode that the server calls `nodeid`.
///
/// # Errors
///
/// `ENOENT`: it is not cached.
fn find(sb: &SuperBlock<Fuse>, nodeid: u64) -> Result<ARef<INode>> {
    sb.ilookup5(nodeid, &NodeId(nodeid)).ok_or(ENOENT)
}

/// Reads all of `to` from the server's memory. Sleeps.
fn read(from: &mut IovIterSource<'_>, to: &mut [u8]) -> Result {
    if from.copy_from_iter(to) != to.len() {
        return Err(EFAULT);
    }
    Ok(())
}

/// Reads the fixed part of a notification of `len` bytes.
///
/// # Errors
///
/// `EINVAL`: it is shorter. `EFAULT`.
fn fixed<T: FromBytes + IntoBytes>(len: usize, from: &mut IovIterSource<'_>) -> Result<T> {
    if len < size_of::<T>() {
        return Err(EINVAL);
    }
    let mut value = T::new_zeroed();
    read(from, value.as_mut_bytes())?;
    Ok(value)
}

/// As [`fixed`], when nothing may follow.
fn only<T: FromBytes + IntoBytes>(len: usize, from: &mut IovIterSource<'_>) -> Result<T> {
    if len != size_of::<T>() {
        return Err(EINVAL);
    }
    fixed(len, from)
}
