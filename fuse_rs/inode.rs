// SPDX-License-Identifier: GPL-2.0

//! Inodes: identity, attributes and how long they hold, lookup counts.
//!
//! A node ID names an inode at the server. Each reply that hands one out adds to the count of
//! lookups that the client gives back by FORGET when it evicts the inode.

use crate::{
    conn::Conn,
    dir,
    file,
    iqueue::ForgetSlot,
    super_block::Fuse, //
};
use fuse_abi::{
    Attr,
    EntryOut,
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
        ArcBorrow,
        Mutex,
        SpinLock, //
    }, //
};
use vfs::{
    attr::FileType,
    folio::max_pagecache_order,
    inode::{
        Attributes,
        Iget,
        Key,
        NewINode, //
    },
    super_block::{
        Evicted,
        SuperBlock, //
    },
    time, //
};

pub(crate) type INode = vfs::inode::INode<Fuse>;

/// Pages of the kernel, as `fuse_core` counts in them.
pub(crate) const PAGE_SHIFT: u32 = kernel::page::PAGE_SHIFT as u32;

/// The sticky bit of a mode.
const S_ISVTX: u16 = 0o1000;

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
struct State {
    /// Lookups to give back.
    nlookup: u64,
    /// The memory to give them back with.
    forget: Option<ForgetSlot>,
    /// Tick until which the attributes hold.
    attr_deadline: u64,
    /// Newer than the answers to all requests that were sent before it was taken from the
    /// connection's counter.
    attr_version: u64,
    /// The mode as the server has it: the VFS's may lack the sticky bit.
    mode: u16,
    /// Bytes that are good to read at a time; 0 if the server does not say.
    blksize: u32,
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
                    attr_deadline: 0,
                    attr_version: 0,
                    mode: 0,
                    blksize: 0,
                },
                "fuse_rs_inode"
            ),
            dirops <- new_mutex!((), "fuse_rs_dirops"),
        })
    }
}

/// Finds inodes by node ID.
struct NodeId(u64);

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

/// What the server said of a node, and when.
pub(crate) struct Reported<'a> {
    pub(crate) attr: &'a Attr,
    /// Tick until which it holds.
    pub(crate) deadline: u64,
    /// [`Conn::attr_version`] before the request was sent; 0 lets the answer win over all that is
    /// known.
    pub(crate) version: u64,
}

impl<'a> Reported<'a> {
    pub(crate) fn of_entry(entry: &'a EntryOut, version: u64) -> Self {
        Self {
            attr: &entry.attr,
            deadline: time::deadline(entry.attr_valid, entry.attr_valid_nsec),
            version,
        }
    }
}

/// Finds or makes the inode of a node that a reply handed out, and counts the lookup. Sleeps.
///
/// # Errors
///
/// `ENOMEM`: the lookup is not counted. `EIO`: the file has no type.
pub(crate) fn iget(
    sb: &SuperBlock<Fuse>,
    nodeid: u64,
    generation: u64,
    reported: &Reported<'_>,
) -> Result<ARef<INode>> {
    let file_type = file_type(reported.attr).ok_or(EIO)?;
    let inode = loop {
        match sb.iget5_locked(nodeid, &NodeId(nodeid))? {
            Iget::New(new) => break set_up(new, file_type, generation as u32, reported.attr),
            Iget::Cached(inode) if !is_stale(&inode, generation, reported.attr) => break inode,
            Iget::Cached(inode) => {
                make_bad(&inode);
                if nodeid == ROOT_ID {
                    break inode;
                }
            }
        }
    };
    count_lookup(&inode);
    change_attributes(&inode, reported);
    Ok(inode)
}

/// Makes the root of a mount, whose type is all that is known of it before INIT.
pub(crate) fn root(sb: &SuperBlock<Fuse>, rootmode: u32) -> Result<ARef<INode>> {
    let attr = Attr {
        ino: ROOT_ID,
        mode: rootmode,
        nlink: 1,
        ..Attr::default()
    };
    let reported = Reported {
        attr: &attr,
        deadline: 0,
        version: 0,
    };
    iget(sb, ROOT_ID, 0, &reported)
}

/// Gives a new inode its type, and the operations that go with it.
fn set_up(new: NewINode<Fuse>, file_type: FileType, generation: u32, attr: &Attr) -> ARef<INode> {
    /// `S_NOATIME | S_NOCMTIME`: times are the server's.
    const FLAGS: u32 = 1 << 1 | 1 << 7;

    new.set_identity(file_type, generation);
    new.set_flags(FLAGS);
    match file_type {
        FileType::Regular => {
            new.set_iops(dir::FILE_IOPS);
            new.set_fops(file::FOPS);
            new.set_aops(file::AOPS);
            let limits = conn(&new).limits();
            new.set_folio_order_range(limits.mapping_order::<PAGE_SHIFT>(max_pagecache_order()));
        }
        FileType::Directory => {
            new.set_iops(dir::DIR_IOPS);
            new.set_fops(dir::FOPS);
        }
        FileType::Symlink => new.set_iops(dir::SYMLINK_IOPS),
        FileType::Fifo | FileType::CharDevice | FileType::BlockDevice | FileType::Socket => {
            new.set_iops(dir::FILE_IOPS);
            new.init_special(attr.rdev);
        }
    }
    new.unlock()
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
}

/// Takes over attributes from the server, unless what is known is newer. Drops cached data that is
/// older. Sleeps.
pub(crate) fn change_attributes(inode: &INode, reported: &Reported<'_>) {
    let conn = conn(inode);
    let attr = reported.attr;
    let Ok(size) = i64::try_from(attr.size) else {
        return;
    };
    let old_size = {
        let mut state = inode.info().state.lock();
        if reported.version != 0 && state.attr_version > reported.version {
            return;
        }
        state.attr_version = conn.next_attr_version();
        state.attr_deadline = reported.deadline;
        state.mode = attr.mode as u16;
        state.blksize = attr.blksize;
        // Who may remove what from a directory is checked by the server, unless it leaves
        // permissions to the VFS.
        let hidden = if conn.default_permissions() {
            0
        } else {
            S_ISVTX
        };
        inode.set_attributes(&Attributes {
            ino: attr.ino,
            mode: attr.mode as u16 & !hidden,
            uid: attr.uid,
            gid: attr.gid,
            nlink: attr.nlink,
            blocks: attr.blocks,
            atime: time::Timespec::new(attr.atime, attr.atimensec),
            mtime: time::Timespec::new(attr.mtime, attr.mtimensec),
            ctime: time::Timespec::new(attr.ctime, attr.ctimensec),
        });
        let old_size = inode.size();
        inode.set_size(size);
        old_size
    };
    if inode.file_type() == Some(FileType::Regular) && old_size != size {
        inode.truncate_pagecache(size);
        // What was cached under another size is not what the file holds now. A page that can't be
        // dropped is in use by a mapping, which sees the old data until it lets go of it.
        let _ = inode.mapping().invalidate_pages2();
    }
}

/// A READ that was sent at `version` got less than it asked for: the file ends at `size`, if it
/// still is longer here and nothing newer is known.
pub(crate) fn shrink(inode: &INode, size: u64, version: u64) {
    let Ok(size) = i64::try_from(size) else {
        return;
    };
    let mut state = inode.info().state.lock();
    if version >= state.attr_version && size < inode.size() {
        state.attr_version = conn(inode).next_attr_version();
        inode.set_size(size);
    }
}

/// Whether the attributes do not hold any more. Does not sleep.
pub(crate) fn attr_is_over(inode: &INode) -> bool {
    time::is_over(inode.info().state.lock().attr_deadline)
}

/// The mode as the server has it, and its block size.
pub(crate) fn mode_and_blksize(inode: &INode) -> (u16, u32) {
    let state = inode.info().state.lock();
    (state.mode, state.blksize)
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
