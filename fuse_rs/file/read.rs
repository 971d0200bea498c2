// SPDX-License-Identifier: GPL-2.0

//! Reading data into the page cache, by iomap: as many folios a READ as the limits allow.

use super::{
    direct,
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
    iomap::{
        ReadOps,
        ReadRange, //
    },
    kiocb::{
        Kiocb,
        Transferred, //
    }, //
};

/// Gathers the ranges that iomap wants read into READs.
pub(super) struct Reader;

/// A READ that is being gathered.
pub(super) struct Batch {
    gather: Gather<PAGE_SHIFT>,
    ranges: KVec<ReadRange<Fuse>>,
    open: Arc<OpenFile>,
    /// `O_*` of the open file.
    flags: u32,
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
        let Some((file, Ok(open))) = file.map(|file| (file, open_file(file))) else {
            return;
        };
        let mut range = range;
        loop {
            let inode = range.inode();
            let current = batch.get_or_insert_with(|| Batch {
                gather: conn(inode).limits().read::<PAGE_SHIFT>().gather(),
                ranges: KVec::new(),
                open: open.into(),
                flags: file.flags(),
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

    fn direct_read<'a>(kiocb: Kiocb<'a, Fuse>, iov: &mut IovIterDest<'_>) -> Transferred<'a> {
        direct::read(kiocb, iov)
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
    let len = last_page(chunk);
    let args = read_args(
        inode,
        Opcode::Read,
        &batch.open,
        batch.flags,
        chunk.pos,
        len,
    )?
    .sink(Sink::Folios(sink));
    if conn.features().contains(InitFlags::ASYNC_READ) {
        let prepared = conn.chan().prepare_background(args, None)?;
        conn.chan().send_background(prepared);
        Ok(())
    } else {
        conn.chan().send(args).map(|_| ())
    }
}

/// How much of `chunk` to ask for: the last page there can be ends one byte behind the last position.
fn last_page(chunk: Chunk) -> u32 {
    let room = (i64::MAX as u64).saturating_sub(chunk.pos);
    u32::try_from(room).map_or(chunk.len, |room| chunk.len.min(room))
}

/// A READ or READDIR of `len` bytes at `pos`, of a file that is open with the `O_*` flags `flags`.
pub(crate) fn read_args(
    inode: &INode,
    opcode: Opcode,
    open: &OpenFile,
    flags: u32,
    pos: u64,
    len: u32,
) -> Result<Args> {
    Ok(
        Args::new(opcode, nodeid(inode), conn(inode).creds()?).arg(&ReadIn {
            fh: open.fh(),
            offset: pos,
            size: len,
            flags,
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
