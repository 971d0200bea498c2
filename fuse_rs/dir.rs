// SPDX-License-Identifier: GPL-2.0

//! Names: LOOKUP, how long its answers hold, and who may go where by ACCESS; READLINK.

use crate::{
    attr::{
        self,
        Reported, //
    },
    conn::Known,
    inode::{
        self,
        conn,
        nodeid,
        INode, //
    },
    iqueue::ForgetSlot,
    readdir,
    req::{
        Args,
        Sink, //
    },
    super_block::Fuse, //
    xattr,
};
use fuse_abi::{
    AccessIn,
    EntryOut,
    Opcode,
    Reply as _, //
};
use kernel::{
    prelude::*,
    sync::aref::ARef, //
};
use vfs::{
    attr::{
        fields,
        FileType,
        Stat, //
    },
    dentry::{
        self,
        Lookup,
        LookupFlags,
        Spliced, //
    },
    file,
    inode_ops::{
        self,
        Access,
        Link, //
    },
    super_block::SuperBlock,
    time, //
    xattr::Buffer,
};

type DEntry = vfs::dentry::DEntry<Fuse>;

pub(crate) const DIR_IOPS: inode_ops::Ops<Fuse> = inode_ops::Ops::directory::<Node>();
pub(crate) const FILE_IOPS: inode_ops::Ops<Fuse> = inode_ops::Ops::other::<Node>();
pub(crate) const SYMLINK_IOPS: inode_ops::Ops<Fuse> = inode_ops::Ops::symlink::<Node>();
pub(crate) const FOPS: file::Ops<Fuse> = file::Ops::new::<readdir::DirFile>();
pub(crate) const DOPS: dentry::Ops<Fuse> = dentry::Ops::new::<Dentries>();

/// The longest target of a symbolic link, in bytes.
const LINK_MAX: usize = kernel::page::PAGE_SIZE - 1;

/// Permission bits of which a program must have one to be executed.
const S_IXUGO: u16 = 0o111;

/// What the server says about a name.
struct Entry {
    entry: EntryOut,
    /// What was known before the server was asked.
    known: Known,
}

/// Asks the server for a name. Sleeps.
///
/// # Errors
///
/// `ENAMETOOLONG`, what the server answers, and those of the transport. `ENOENT` also stands for
/// the answer that there is no such file, of which the server does not say how long it holds.
fn lookup(dir: &INode, name: &[u8]) -> Result<Entry> {
    let conn = conn(dir);
    let creds = conn.creds()?;
    if name.len() > conn.name_max() {
        return Err(ENAMETOOLONG);
    }
    let known = conn.known();
    let minor = conn.minor();
    let args = Args::new(Opcode::Lookup, nodeid(dir), creds)
        .name(name)?
        .sink(Sink::exactly(EntryOut::wire_size(minor)));
    let reply = conn.chan().send(args)?;
    let entry = EntryOut::parse(reply.bytes(), minor).map_err(|_| EIO)?;
    Ok(Entry { entry, known })
}

/// Until when what the server said about a name holds.
fn entry_deadline(entry: &EntryOut) -> u64 {
    time::deadline(entry.entry_valid, entry.entry_valid_nsec)
}

/// The inode that an answer to LOOKUP hands out. Sleeps.
fn entry_inode(
    sb: &SuperBlock<Fuse>,
    entry: &Entry,
    slot: ForgetSlot,
) -> Result<Option<ARef<INode>>> {
    let Entry { entry, known } = entry;
    if entry.is_negative() {
        return Ok(None);
    }
    entry.validate().map_err(|_| EIO)?;
    let reported = Reported::of_entry(entry, *known);
    let inode = inode::iget(sb, entry.nodeid, entry.generation, &reported);
    if inode.is_err() {
        sb.info().chan().queue_forget(slot, entry.nodeid, 1);
    }
    inode.map(Some)
}

/// As [`attr::getattr`], unless the caller is in a path walk that must not sleep.
fn getattr_for(inode: &INode, access: &Access<'_>) -> Result {
    if access.is_rcu() {
        return Err(ECHILD);
    }
    attr::getattr(inode, None)
}

/// Checks whether the caller may do `access`.
fn permission(inode: &INode, access: &Access<'_>) -> Result {
    inode::check_good(inode)?;
    let conn = conn(inode);
    if !conn.allow_current_process() {
        return Err(EACCES);
    }
    let by_mode = conn.default_permissions();
    let exec = access.is_exec() && inode.file_type() == Some(FileType::Regular);
    let refreshed =
        (by_mode || exec) && attr::is_over(inode, fields::MODE | fields::UID | fields::GID);
    if refreshed {
        getattr_for(inode, access)?;
    }
    if by_mode {
        return match access.generic_permission(inode) {
            // The attributes at hand may be older than a chmod at the server.
            Err(err) if err == EACCES && !refreshed => {
                getattr_for(inode, access)?;
                access.generic_permission(inode)
            }
            result => result,
        };
    }
    if access.is_ask() {
        return ask(inode, access);
    }
    // Whatever the server allows, what nobody may execute is no program.
    if exec && inode.mode() & S_IXUGO == 0 {
        if !refreshed {
            getattr_for(inode, access)?;
        }
        if inode.mode() & S_IXUGO == 0 {
            return Err(EACCES);
        }
    }
    Ok(())
}

/// Asks the server whether the caller may read, write, execute.
fn ask(inode: &INode, access: &Access<'_>) -> Result {
    let conn = conn(inode);
    conn.no_access.unless(|| {
        if access.is_rcu() {
            return Err(ECHILD);
        }
        let args = Args::new(Opcode::Access, nodeid(inode), conn.creds()?).arg(&AccessIn {
            mask: access.rwx(),
            ..AccessIn::default()
        })?;
        conn.chan().send(args)
    })?;
    Ok(())
}

/// The operations of inodes.
struct Node;

impl inode_ops::Operations for Node {
    type FileSystem = Fuse;

    fn permission(inode: &INode, access: Access<'_>) -> Result {
        permission(inode, &access)
    }

    fn getattr(inode: &INode, stat: &mut Stat<'_, Fuse>, request_mask: u32, query: u32) -> Result {
        attr::stat(inode, stat, request_mask, query)
    }

    fn listxattr(inode: &INode, list: Buffer<'_>) -> Result<usize> {
        xattr::list(inode, list)
    }
}

impl inode_ops::Directory for Node {
    fn lookup<'a>(
        dir: &INode,
        dentry: Lookup<'a, Fuse>,
        _flags: LookupFlags,
    ) -> Result<Spliced<'a, Fuse>> {
        inode::check_good(dir)?;
        let slot = ForgetSlot::new()?;
        let (inode, deadline, epoch) = match inode::with_dirops(dir, || lookup(dir, dentry.name()))
        {
            Ok(entry) => (
                entry_inode(dir.super_block(), &entry, slot)?,
                entry_deadline(&entry.entry),
                entry.known.epoch,
            ),
            Err(err) if err == ENOENT => (None, 0, 0),
            Err(err) => return Err(err),
        };
        // Others can find the dentry as soon as it is spliced in.
        dentry.set_time(deadline);
        dentry.set_epoch(epoch);
        let spliced = dentry.splice_alias(inode)?;
        spliced.dentry().set_time(deadline);
        spliced.dentry().set_epoch(epoch);
        Ok(spliced)
    }
}

impl inode_ops::Symlink for Node {
    fn get_link(inode: &INode) -> Result<Link> {
        inode::check_good(inode)?;
        let conn = conn(inode);
        let args =
            Args::new(Opcode::Readlink, nodeid(inode), conn.creds()?).sink(Sink::buffer(LINK_MAX)?);
        let reply = conn.chan().send(args)?;
        Link::new(reply.bytes())
    }
}

/// Whether the server has said since that no name holds any more.
fn is_past(dentry: &DEntry) -> bool {
    dentry.epoch() != dentry.super_block().info().epoch()
}

/// Whether a name does not hold any more; asking the server may renew it. Any context.
pub(crate) fn is_over(dentry: &DEntry) -> bool {
    is_past(dentry) || time::is_over(dentry.time())
}

/// The operations of dentries, whose time is the tick until which they hold.
struct Dentries;

impl dentry::Operations for Dentries {
    type FileSystem = Fuse;

    fn revalidate(dir: &INode, name: &[u8], dentry: &DEntry, flags: LookupFlags) -> Result<bool> {
        let inode = dentry.inode();
        if inode.is_some_and(inode::is_bad) || is_past(dentry) {
            return Ok(false);
        }
        if !time::is_over(dentry.time()) && !flags.no_cache() {
            return Ok(true);
        }
        // That a name was not there is not renewed: it is looked up like one never seen.
        let Some(inode) = inode else {
            return Ok(false);
        };
        let slot = ForgetSlot::new()?;
        let Entry { entry, known } = match lookup(dir, name) {
            Ok(entry) => entry,
            Err(err) if err == ENOMEM || err == EINTR => return Err(err),
            Err(_) => return Ok(false),
        };
        if entry.is_negative() {
            return Ok(false);
        }
        if entry.nodeid != nodeid(inode) {
            conn(inode).chan().queue_forget(slot, entry.nodeid, 1);
            return Ok(false);
        }
        inode::count_lookup(inode);
        if entry.validate().is_err() || inode::is_stale(inode, entry.generation, &entry.attr) {
            return Ok(false);
        }
        attr::change(inode, &Reported::of_entry(&entry, known));
        dentry.set_time(entry_deadline(&entry));
        Ok(true)
    }

    fn revalidate_rcu(dentry: &DEntry, flags: LookupFlags) -> bool {
        !dentry.inode().is_some_and(inode::is_bad) && !is_over(dentry) && !flags.no_cache()
    }
}
