// SPDX-License-Identifier: GPL-2.0

//! Reading data: into the page cache by iomap, as many folios a READ as the limits allow, and past
//! the page cache.

use super::{
    open_file,
    File,
    OpenFile, //
};
use crate::{
    attr,
    inode::{
        conn,
        nodeid,
        INode,
        PAGE_SHIFT, //
    },
    req::{
        Args,
        FolioSink,
        Sink, //
    },
    super_block::Fuse, //
};
use fuse_abi::{
    InitFlags,
    Opcode,
    ReadIn, //
};
use fuse_core::limits::{
    Chunk,
    Gather, //
};
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*,
    sync::Arc, //
};
use vfs::{
    file::Kiocb,
    iomap::{
        ReadOps,
        ReadRange, //
    }, //
};

/// Gathers the ranges that iomap wants read into READs.
pub(super) struct Reader;

/// A READ that is being gathered.
pub(super) struct Batch {
    gather: Gather<PAGE_SHIFT>,
    ranges: KVec<ReadRange<Fuse>>,
    open: Arc<OpenFile>,
}

impl Batch {
    /// Takes on the range, or as much of it as the READ has room for; returns the rest. Sleeps.
    ///
    /// A range that can't be noted, or is cut where its folio can't be, is dropped: an error for
    /// whoever waits for it.
    fn add(&mut self, mut range: ReadRange<Fuse>) -> Option<ReadRange<Fuse>> {
        let len = range.len() as u64;
        let room = self.gather.room(range.pos(), len);
        let rest = if u64::from(room) == len {
            None
        } else if !self.ranges.is_empty() {
            // A folio is cut only if a READ of its own can't hold it.
            return Some(range);
        } else {
            Some(range.split_off(room as usize)?)
        };
        let (pos, len) = (range.pos(), range.len() as u64);
        // What is not noted is not asked for: the next range does not follow then, and goes into
        // another READ.
        if self.ranges.push(range, GFP_KERNEL).is_ok() {
            self.gather.add(pos, len);
        }
        rest
    }
}

impl ReadOps for Reader {
    type FileSystem = Fuse;
    type Batch = Batch;

    fn read_range(batch: &mut Option<Batch>, file: Option<&File>, range: ReadRange<Fuse>) {
        let Some(Ok(open)) = file.map(open_file) else {
            return;
        };
        let mut range = range;
        loop {
            let inode = range.inode();
            let current = batch.get_or_insert_with(|| Batch {
                gather: conn(inode).limits().read::<PAGE_SHIFT>().gather(),
                ranges: KVec::new(),
                open: open.into(),
            });
            let Some(rest) = current.add(range) else {
                return;
            };
            range = rest;
            if let Some(full) = batch.take() {
                Self::submit(range.inode(), full);
            }
        }
    }

    fn is_congested(inode: &INode) -> bool {
        conn(inode).chan().is_congested()
    }

    fn submit(inode: &INode, mut batch: Batch) {
        let Some(chunk) = batch.gather.finish() else {
            return;
        };
        // The ranges of a READ that could not be sent are dropped by now: whoever waits for them
        // gets the error.
        let _ = send(inode, chunk, batch);
    }
}

/// Sends a READ for what was gathered; waits for the answer if the server wants READs of one file
/// one by one. Sleeps.
fn send(inode: &INode, chunk: Chunk, batch: Batch) -> Result {
    let conn = conn(inode);
    let sink = KBox::new(
        ReadSink {
            pos: chunk.pos,
            len: chunk.len as usize,
            version: conn.known().attr_version,
            ranges: batch.ranges,
            open: batch.open.clone(),
        },
        GFP_KERNEL,
    )?;
    let args =
        read_args(inode, Opcode::Read, &batch.open, chunk.pos, chunk.len)?.sink(Sink::Folios(sink));
    if conn.features().contains(InitFlags::ASYNC_READ) {
        let prepared = conn.chan().prepare_background(args, None)?;
        conn.chan().send_background(prepared);
        Ok(())
    } else {
        conn.chan().send(args).map(|_| ())
    }
}

/// A READ or READDIR of `len` bytes at `pos`.
pub(crate) fn read_args(
    inode: &INode,
    opcode: Opcode,
    open: &OpenFile,
    pos: u64,
    len: u32,
) -> Result<Args> {
    Ok(
        Args::new(opcode, nodeid(inode), conn(inode).creds()?).arg(&ReadIn {
            fh: open.fh(),
            offset: pos,
            size: len,
            flags: open.flags(),
            ..ReadIn::default()
        })?,
    )
}

/// Where the data of a READ goes.
struct ReadSink {
    pos: u64,
    len: usize,
    /// [`crate::conn::Known::attr_version`] before the READ was sent.
    version: u64,
    /// In ascending order, without gaps between them.
    ranges: KVec<ReadRange<Fuse>>,
    /// Not released before its reads are over.
    open: Arc<OpenFile>,
}

impl FolioSink for ReadSink {
    fn len(&self) -> usize {
        self.len
    }

    fn copy_from(&mut self, at: usize, from: &mut IovIterSource<'_>) -> usize {
        let mut start = 0usize;
        let mut copied = 0usize;
        for range in self.ranges.iter_mut() {
            let end = start.saturating_add(range.len());
            let now = at.saturating_add(copied);
            if now < end {
                let n = range.copy_from_iter_nofault(now.saturating_sub(start), from);
                copied = copied.saturating_add(n);
                if now.saturating_add(n) < end {
                    break;
                }
            }
            start = end;
        }
        copied
    }

    fn complete(self: KBox<Self>, result: Result<usize>) {
        let Self {
            pos,
            len,
            version,
            ranges,
            open,
        } = KBox::into_inner(self);
        // Dropping the ranges makes the error known.
        let Ok(copied) = result else {
            return;
        };
        if let (true, Some(range)) = (copied < len, ranges.first()) {
            attr::shrink(range.inode(), pos.saturating_add(copied as u64), version);
        }
        let mut start = 0usize;
        for mut range in ranges {
            let end = start.saturating_add(range.len());
            if copied < end {
                range.zero_from(copied.saturating_sub(start));
            }
            start = end;
            range.finish();
        }
        drop(open);
    }
}

/// Reads past the page cache, for files that the server does not want cached (`FOPEN_DIRECT_IO`).
/// Sleeps.
///
/// Ends at the first answer that is shorter than asked for.
pub(super) fn direct(kiocb: &mut Kiocb<'_, Fuse>, iov: &mut IovIterDest<'_>) -> Result<usize> {
    let mut done = 0usize;
    while !iov.is_empty() {
        match direct_once(kiocb, iov) {
            Ok((_, 0)) => break,
            Ok((want, got)) => {
                done = done.saturating_add(got);
                kiocb.advance(got);
                if got < want {
                    break;
                }
            }
            Err(err) if done == 0 => return Err(err),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Sends one READ; returns how many bytes it asked for and how many came. Sleeps.
fn direct_once(kiocb: &Kiocb<'_, Fuse>, iov: &mut IovIterDest<'_>) -> Result<(usize, usize)> {
    let file = kiocb.file();
    let inode = file.inode();
    let pos = u64::try_from(kiocb.pos()).map_err(|_| EINVAL)?;
    let want = conn(inode)
        .limits()
        .read::<PAGE_SHIFT>()
        .fit(pos, iov.len() as u64);
    let args = read_args(inode, Opcode::Read, &*open_file(file)?, pos, want)?
        .sink(Sink::buffer(want as usize)?);
    let reply = conn(inode).chan().send(args)?;
    let got = iov.copy_to_iter(reply.bytes());
    if got < reply.bytes().len() && got == 0 {
        return Err(EFAULT);
    }
    Ok((want as usize, got))
}
