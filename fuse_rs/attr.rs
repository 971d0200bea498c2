// SPDX-License-Identifier: GPL-2.0

//! Attributes: GETATTR and STATX, how long the answers hold, which of two is the newer, and what
//! they mean for cached data.
//!
//! A connection counts every take-over of attributes. A request notes the count when it starts; if
//! those of the inode were taken over since, the answer may be older than they are, and is dropped.

use crate::{
    conn::Known,
    file::OpenFile,
    inode::{
        self,
        conn,
        nodeid,
        INode, //
    },
    req::{
        Args,
        Sink, //
    },
    super_block::Fuse, //
};
use fuse_abi::{
    Attr,
    AttrOut,
    EntryOut,
    GetattrFlags,
    GetattrIn,
    InitFlags,
    Opcode,
    Reply as _,
    Statx,
    StatxIn,
    StatxOut,
    SxTime, //
};
use kernel::prelude::*;
use vfs::{
    attr::{
        fields,
        FileType,
        Stat, //
    },
    inode::Attributes,
    time::{
        self,
        Timespec, //
    }, //
};

/// `AT_STATX_FORCE_SYNC` and `AT_STATX_DONT_SYNC` of statx(2).
const FORCE_SYNC: u32 = 0x2000;
const DONT_SYNC: u32 = 0x4000;

/// The sticky bit of a mode.
const S_ISVTX: u16 = 0o1000;

/// What is known of an inode's attributes, beside their values in the VFS's inode.
pub(crate) struct AttrState {
    /// Tick until which they hold.
    deadline: u64,
    /// The connection's count when they were taken over.
    version: u64,
    /// Those of [`fields`] that do not hold, whatever the time.
    invalid: u32,
    /// The mode as the server has it: the VFS's may lack the sticky bit.
    mode: u16,
    /// Logarithm of the bytes that are good to read at a time; none if the server does not say.
    blkbits: Option<u8>,
    /// When the file was made, if the server says.
    btime: Option<Timespec>,
}

impl AttrState {
    /// Nothing is known.
    pub(crate) const fn new() -> Self {
        Self {
            deadline: 0,
            version: 0,
            invalid: !0,
            mode: 0,
            blkbits: None,
            btime: None,
        }
    }

    fn holds(&self, wanted: u32) -> bool {
        self.invalid & wanted == 0 && !time::is_over(self.deadline)
    }
}

/// What the server said of a node, and when.
pub(crate) struct Reported {
    attr: Attr,
    /// Those of [`fields`] that it said.
    mask: u32,
    /// What it said of the time of creation, if it was asked.
    btime: Option<Option<Timespec>>,
    /// Tick until which it holds.
    deadline: u64,
    /// What was known before it was asked.
    known: Known,
}

impl Reported {
    /// All of `attr`, for `sec` and `nsec` from now.
    fn new(attr: Attr, sec: u64, nsec: u32, known: Known) -> Self {
        Self {
            attr,
            mask: fields::BASIC,
            btime: None,
            deadline: time::deadline(sec, nsec),
            known,
        }
    }

    pub(crate) fn of_entry(entry: &EntryOut, known: Known) -> Self {
        Self::new(entry.attr, entry.attr_valid, entry.attr_valid_nsec, known)
    }

    /// Attributes that hold only until somebody asks.
    pub(crate) fn provisional(attr: Attr, known: Known) -> Self {
        Self::new(attr, 0, 0, known)
    }

    fn of_statx(out: &StatxOut, known: Known) -> Self {
        let stat = &out.stat;
        let mask = stat.mask & fields::BASIC;
        let btime = (stat.mask & fields::BTIME != 0).then(|| timespec(&stat.btime));
        // Without one of the others, the next to ask asks the server.
        let deadline = if mask == fields::BASIC {
            time::deadline(out.attr_valid, out.attr_valid_nsec)
        } else {
            0
        };
        Self {
            attr: attr_of_statx(stat),
            mask,
            btime: Some(btime),
            deadline,
            known,
        }
    }

    pub(crate) fn attr(&self) -> &Attr {
        &self.attr
    }

    /// Whether an inode was evicted since the server was asked.
    fn is_evicted(&self, now: Known) -> bool {
        self.known.evictions != now.evictions
    }
}

fn timespec(time: &SxTime) -> Timespec {
    Timespec::new(time.tv_sec as u64, time.tv_nsec)
}

/// The fields that both have.
fn attr_of_statx(stat: &Statx) -> Attr {
    Attr {
        ino: stat.ino,
        size: stat.size,
        blocks: stat.blocks,
        atime: stat.atime.tv_sec as u64,
        mtime: stat.mtime.tv_sec as u64,
        ctime: stat.ctime.tv_sec as u64,
        atimensec: stat.atime.tv_nsec,
        mtimensec: stat.mtime.tv_nsec,
        ctimensec: stat.ctime.tv_nsec,
        mode: stat.mode.into(),
        nlink: stat.nlink,
        uid: stat.uid,
        gid: stat.gid,
        blksize: stat.blksize,
        ..Attr::default()
    }
}

/// Takes over the attributes of a new inode, which nobody else sees yet.
///
/// While one inode of a node is evicted, the server may change the node, and answer a look-up from
/// before in any order: what it said is shown to nobody if an eviction came between.
pub(crate) fn init(inode: &INode, reported: &Reported) {
    take_over(inode, reported);
    if reported.is_evicted(conn(inode).known()) {
        inode.info().lock().attr.invalid = !0;
    }
}

/// Takes over attributes from the server, unless what is known is newer. Drops cached data that is
/// older. Sleeps.
pub(crate) fn change(inode: &INode, reported: &Reported) {
    let Some(old) = take_over(inode, reported) else {
        return;
    };
    if inode.file_type() != Some(FileType::Regular) {
        return;
    }
    let features = conn(inode).features();
    let size = inode.size();
    // A page that can't be dropped is in use by a mapping, which sees the old data until it lets go
    // of it.
    if old.size != size {
        inode.truncate_pagecache(size);
        if features.contains(InitFlags::EXPLICIT_INVAL_DATA) {
            // The server says itself what else to drop. But what was cached behind the old end may
            // be no more than the zeros that fill a folio.
            if old.size < size {
                let _ = inode.mapping().invalidate_pages2_from(old.size);
            }
            return;
        }
    } else if !features.contains(InitFlags::AUTO_INVAL_DATA) || old.mtime == inode.mtime() {
        return;
    }
    let _ = inode.mapping().invalidate_pages2();
}

/// What attributes were before they were taken over.
struct Old {
    size: i64,
    mtime: Timespec,
}

/// Stores attributes from the server, unless what is known is newer. Does not sleep.
fn take_over(inode: &INode, reported: &Reported) -> Option<Old> {
    let conn = conn(inode);
    let Reported { attr, mask, .. } = reported;
    let mut info = inode.info().lock();
    let state = &mut info.attr;
    if state.version > reported.known.attr_version {
        return None;
    }
    let old = Old {
        size: inode.size(),
        mtime: inode.mtime(),
    };
    state.version = conn.next_attr_version();
    state.deadline = reported.deadline;
    state.invalid &= !mask;
    if mask & fields::MODE != 0 {
        state.mode = attr.mode as u16;
    }
    state.blkbits = attr.blksize.checked_ilog2().map(|bits| bits as u8);
    if let Some(btime) = reported.btime {
        state.btime = btime;
        state.invalid &= !fields::BTIME;
    }
    // Who may remove what from a directory is checked by the server, unless it leaves permissions
    // to the VFS.
    let hidden = if conn.default_permissions() {
        0
    } else {
        S_ISVTX
    };
    let attributes = Attributes {
        ino: attr.ino,
        mode: attr.mode as u16 & !hidden,
        uid: attr.uid,
        gid: attr.gid,
        nlink: attr.nlink,
        blocks: attr.blocks,
        atime: Timespec::new(attr.atime, attr.atimensec),
        mtime: Timespec::new(attr.mtime, attr.mtimensec),
        ctime: Timespec::new(attr.ctime, attr.ctimensec),
    };
    inode.set_attributes(&attributes, *mask);
    if mask & fields::SIZE != 0 {
        // Not larger: it was validated.
        inode.set_size(i64::try_from(attr.size).unwrap_or(i64::MAX));
    }
    Some(old)
}

/// A READ that was sent when `version` was the connection's count got less than it asked for: the
/// file ends at `size`, if it still is longer here and nothing newer is known.
pub(crate) fn shrink(inode: &INode, size: u64, version: u64) {
    let Ok(size) = i64::try_from(size) else {
        return;
    };
    let mut info = inode.info().lock();
    if version >= info.attr.version && size < inode.size() {
        info.attr.version = conn(inode).next_attr_version();
        inode.set_size(size);
    }
}

/// Those of [`fields`] in `gone` do not hold any more. Does not sleep.
pub(crate) fn invalidate(inode: &INode, gone: u32) {
    inode.info().lock().attr.invalid |= gone;
}

/// The server says that nothing that it said before holds: neither what is known, nor answers that
/// are under way. Does not sleep.
pub(crate) fn outdate(inode: &INode) {
    let mut info = inode.info().lock();
    info.attr.version = conn(inode).next_attr_version();
    info.attr.invalid = !0;
}

/// Data were stored that end at `end`: so does the file, if it was shorter. Does not sleep.
pub(crate) fn grow(inode: &INode, end: i64) {
    let mut info = inode.info().lock();
    info.attr.version = conn(inode).next_attr_version();
    if end > inode.size() {
        inode.set_size(end);
    }
}

/// Whether those of [`fields`] in `wanted` are to be asked for. Does not sleep.
pub(crate) fn is_over(inode: &INode, wanted: u32) -> bool {
    !inode.info().lock().attr.holds(wanted)
}

/// Asks the server for the attributes, of the open file if there is one. Sleeps.
///
/// # Errors
///
/// What the server answers, and those of the transport. `EIO` if the answer can't be: the inode is
/// bad then.
pub(crate) fn getattr(inode: &INode, open: Option<&OpenFile>) -> Result {
    let conn = conn(inode);
    let creds = conn.creds()?;
    let minor = conn.minor();
    let known = conn.known();
    let mut arg = GetattrIn::default();
    // Handles of directories are another kind.
    if let (Some(open), Some(FileType::Regular)) = (open, inode.file_type()) {
        arg.getattr_flags = GetattrFlags::FH;
        arg.fh = open.fh();
    }
    let args = Args::new(Opcode::Getattr, nodeid(inode), creds)
        .arg(&arg)?
        .sink(Sink::exactly(AttrOut::wire_size(minor)));
    let reply = conn.chan().send(args)?;
    let out = AttrOut::parse(reply.bytes(), minor).map_err(|_| EIO)?;
    if out.attr.validate().is_err() || !is_same_type(inode, out.attr.mode as u16) {
        inode::make_bad(inode);
        return Err(EIO);
    }
    let reported = Reported::new(out.attr, out.attr_valid, out.attr_valid_nsec, known);
    change(inode, &reported);
    Ok(())
}

fn is_same_type(inode: &INode, mode: u16) -> bool {
    inode.file_type() == FileType::from_mode(mode)
}

/// Asks the server for the attributes and the time of creation. Returns those of [`fields`] that it
/// said. Sleeps.
///
/// # Errors
///
/// As [`getattr`].
fn statx(inode: &INode) -> Result<u32> {
    let conn = conn(inode);
    let creds = conn.creds()?;
    let minor = conn.minor();
    let known = conn.known();
    let args = Args::new(Opcode::Statx, nodeid(inode), creds)
        .arg(&StatxIn {
            sx_mask: fields::BASIC | fields::BTIME,
            ..StatxIn::default()
        })?
        .sink(Sink::buffer(StatxOut::wire_size(minor))?);
    let reply = conn.chan().send(args)?;
    let out = StatxOut::parse(reply.bytes(), minor).map_err(|_| EIO)?;
    let stat = &out.stat;
    if stat.validate().is_err()
        || (stat.mask & fields::TYPE != 0 && !is_same_type(inode, stat.mode))
    {
        inode::make_bad(inode);
        return Err(EIO);
    }
    change(inode, &Reported::of_statx(&out, known));
    Ok(stat.mask | fields::TYPE)
}

/// Asks the server for the attributes if those in `wanted`, of [`fields`], do not hold. Sleeps.
///
/// # Errors
///
/// As [`getattr`].
pub(crate) fn refresh(inode: &INode, open: Option<&OpenFile>, wanted: u32) -> Result {
    if is_over(inode, wanted) {
        getattr(inode, open)?;
    }
    Ok(())
}

/// As [`refresh`] for statx(2), whose flags are in `query`. Returns those of [`fields`] that are
/// known then.
fn refresh_for_stat(inode: &INode, request_mask: u32, query: u32) -> Result<u32> {
    let conn = conn(inode);
    loop {
        let no_statx = conn.no_statx.get();
        let known = fields::BASIC | if no_statx { 0 } else { fields::BTIME };
        let wanted = request_mask & known;
        let ask = wanted != 0
            && query & DONT_SYNC == 0
            && (query & FORCE_SYNC != 0 || is_over(inode, wanted));
        if !ask {
            return Ok(fields::BASIC);
        }
        if wanted & fields::BTIME == 0 {
            return getattr(inode, None).map(|()| fields::BASIC);
        }
        match statx(inode) {
            Err(err) if err == ENOSYS => conn.no_statx.set(),
            result => return result,
        }
    }
}

/// Fills in what `stat` shows. `query` has the `AT_STATX_*` flags. Sleeps.
pub(crate) fn stat(
    inode: &INode,
    stat: &mut Stat<'_, Fuse>,
    request_mask: u32,
    query: u32,
) -> Result {
    inode::check_good(inode)?;
    if !conn(inode).allow_current_process() {
        // Whoever asks for nothing may know on which device it is nothing.
        if request_mask != 0 {
            return Err(EACCES);
        }
        stat.set_dev(inode.super_block().dev());
        return Ok(());
    }
    let known = refresh_for_stat(inode, request_mask, query)?;
    stat.fill(inode, request_mask);
    stat.limit(known);
    let (mode, blkbits, btime) = {
        let info = inode.info().lock();
        (info.attr.mode, info.attr.blkbits, info.attr.btime)
    };
    stat.set_mode(mode);
    let blkbits = blkbits.map_or(inode.blkbits(), u32::from);
    stat.set_blksize(1u32.wrapping_shl(blkbits));
    if let Some(btime) = btime {
        stat.set_btime(btime);
    }
    Ok(())
}
