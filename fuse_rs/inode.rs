// SPDX-License-Identifier: GPL-2.0

//! Inodes: identity and lookup counts.
//!
//! A node ID names an inode at the server. Each reply that hands one out adds to the count of
//! lookups that the client gives back by FORGET when it evicts the inode.

use crate::{
    attr::{
        self,
        AttrState,
        Reported, //
    },
    conn::Conn,
    dir,
    file,
    iqueue::ForgetSlot,
    super_block::Fuse, //
};
use fuse_abi::{
    Attr,
    ROOT_ID, //
};
use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        lock::spinlock::SpinLockGuard,
        ArcBorrow,
        Mutex,
        SpinLock, //
    }, //
};
use vfs::{
    attr::FileType,
    folio::max_pagecache_order,
    inode::{
        Iget,
        Key,
        NewINode, //
    },
    super_block::{
        Evicted,
        SuperBlock, //
    }, //
};

pub(crate) type INode = vfs::inode::INode<Fuse>;

/// Pages of the kernel, as `fuse_core` counts in them.
pub(crate) const PAGE_SHIFT: u32 = kernel::page::PAGE_SHIFT as u32;

/// What this client keeps of each inode.
#[pin_data]
pub(crate) struct InodeInfo {
    /// The server's name of the inode; set when the inode is hashed.
    nodeid: Atomic<u64>,
    /// The server reused the node ID for another file, or said what can't be: all that is done to
    /// the inode fails.
    bad: Atomic<bool>,
    #[pin]
    state: SpinLock<State>,
    /// Held over LOOKUP and READDIR in a directory of a server that takes them only one by one.
    #[pin]
    dirops: Mutex<()>,
}

/// What changes of an inode.
pub(crate) struct State {
    /// Lookups to give back.
    nlookup: u64,
    /// The memory to give them back with.
    forget: Option<ForgetSlot>,
    pub(crate) attr: AttrState,
}

impl InodeInfo {
    /// The information of an inode that is not known yet. Sleeps.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            nodeid: Atomic::new(0),
            bad: Atomic::new(false),
            state <- new_spinlock!(
                State {
                    nlookup: 0,
                    forget: Some(ForgetSlot::new()?),
                    attr: AttrState::new(),
                },
                "fuse_rs_inode"
            ),
            dirops <- new_mutex!((), "fuse_rs_dirops"),
        })
    }

    /// What changes of the inode, for as long as nothing sleeps.
    pub(crate) fn lock(&self) -> SpinLockGuard<'_, State> {
        self.state.lock()
    }
}

/// Finds inodes by node ID.
pub(crate) struct NodeId(pub(crate) u64);

impl Key<Fuse> for NodeId {
    fn matches(&self, inode: &INode) -> bool {
        nodeid(inode) == self.0
    }

    fn set(&self, inode: &INode) {
        inode.info().nodeid.store(self.0, Relaxed);
    }
}

/// The server's name of an inode.
pub(crate) fn nodeid(inode: &INode) -> u64 {
    inode.info().nodeid.load(Relaxed)
}

/// The connection of an inode.
pub(crate) fn conn(inode: &INode) -> ArcBorrow<'_, Conn> {
    inode.super_block().info()
}

/// Fails if nothing can be done to the inode any more.
///
/// # Errors
///
/// `EIO`.
pub(crate) fn check_good(inode: &INode) -> Result {
    if is_bad(inode) {
        return Err(EIO);
    }
    Ok(())
}

/// Whether nothing can be done to the inode any more. Does not sleep.
pub(crate) fn is_bad(inode: &INode) -> bool {
    inode.info().bad.load(Relaxed)
}

/// Lets all that is done to the inode fail, and the next look-up of its node ID find another.
pub(crate) fn make_bad(inode: &INode) {
    inode.info().bad.store(true, Relaxed);
    if nodeid(inode) != ROOT_ID {
        inode.unhash();
    }
}

/// Whether the server means another file by the node ID than when the inode was made.
pub(crate) fn is_stale(inode: &INode, generation: u64, attr: &Attr) -> bool {
    inode.generation() != generation as u32 || inode.file_type() != file_type(attr)
}

/// The type of the file that `attr` describes.
fn file_type(attr: &Attr) -> Option<FileType> {
    FileType::from_mode(attr.mode as u16)
}

/// Finds or makes the inode of a node that a reply handed out, and counts the lookup. Sleeps.
///
/// # Errors
///
/// `ENOMEM`: the lookup is not counted. `EIO`: the file has no type, or the root is another one.
pub(crate) fn iget(
    sb: &SuperBlock<Fuse>,
    nodeid: u64,
    generation: u64,
    reported: &Reported,
) -> Result<ARef<INode>> {
    let file_type = file_type(reported.attr()).ok_or(EIO)?;
    loop {
        match sb.iget5_locked(nodeid, &NodeId(nodeid))? {
            Iget::New(new) => {
                set_up(&new, file_type, generation as u32, reported.attr().rdev);
                attr::init(&new, reported);
                count_lookup(&new);
                return Ok(new.unlock());
            }
            Iget::Cached(inode) if is_stale(&inode, generation, reported.attr()) => {
                make_bad(&inode);
                if nodeid == ROOT_ID {
                    return Err(EIO);
                }
            }
            Iget::Cached(inode) => {
                count_lookup(&inode);
                attr::change(&inode, reported);
                return Ok(inode);
            }
        }
    }
}

/// Makes the root of a mount, whose type is all that is known of it before INIT.
pub(crate) fn root(sb: &SuperBlock<Fuse>, rootmode: u32) -> Result<ARef<INode>> {
    let attr = Attr {
        ino: ROOT_ID,
        mode: rootmode,
        nlink: 1,
        ..Attr::default()
    };
    let known = sb.info().known();
    iget(sb, ROOT_ID, 0, &Reported::provisional(attr, known))
}

/// Gives a new inode its type, and the operations that go with it.
fn set_up(new: &NewINode<Fuse>, file_type: FileType, generation: u32, rdev: u32) {
    /// `S_NOATIME | S_NOCMTIME`: times are the server's.
    const FLAGS: u32 = 1 << 1 | 1 << 7;

    new.set_identity(file_type, generation);
    new.set_flags(FLAGS);
    match file_type {
        FileType::Regular => {
            new.set_iops(dir::FILE_IOPS);
            new.set_fops(file::FOPS);
            new.set_aops(file::AOPS);
            let limits = conn(new).limits();
            new.set_folio_order_range(limits.mapping_order::<PAGE_SHIFT>(max_pagecache_order()));
        }
        FileType::Directory => {
            new.set_iops(dir::DIR_IOPS);
            new.set_fops(dir::FOPS);
        }
        FileType::Symlink => new.set_iops(dir::SYMLINK_IOPS),
        FileType::Fifo | FileType::CharDevice | FileType::BlockDevice | FileType::Socket => {
            new.set_iops(dir::FILE_IOPS);
            new.init_special(rdev);
        }
    }
}

/// Counts a lookup that the server counted.
pub(crate) fn count_lookup(inode: &INode) {
    let mut state = inode.info().state.lock();
    state.nlookup = state.nlookup.saturating_add(1);
}

/// The inode goes: gives back its lookups.
pub(crate) fn evict(inode: Evicted<'_, Fuse>) {
    let (nlookup, slot) = {
        let mut state = inode.info().state.lock();
        (state.nlookup, state.forget.take())
    };
    // The root is never looked up, and so never given back.
    if let (1.., Some(slot), false) = (nlookup, slot, nodeid(&inode) == ROOT_ID) {
        conn(&inode)
            .chan()
            .queue_forget(slot, nodeid(&inode), nlookup);
    }
    // What is gone for good is not found again.
    if inode.nlink() > 0 {
        conn(&inode).count_eviction();
    }
}

/// Runs `op`, which sends LOOKUP or READDIR for a directory, alone if the server wants it so.
/// Sleeps.
pub(crate) fn with_dirops<R>(dir: &INode, op: impl FnOnce() -> R) -> R {
    let _guard = (!conn(dir)
        .features()
        .contains(fuse_abi::InitFlags::PARALLEL_DIROPS))
    .then(|| dir.info().dirops.lock());
    op()
}
