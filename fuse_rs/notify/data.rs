// SPDX-License-Identifier: GPL-2.0

//! STORE and RETRIEVE: the server puts data into the page cache, and gets back what is there.

use super::{
    find,
    Notifications, //
};
use crate::{
    attr,
    dev::Fruitless,
    inode::{
        conn,
        INode, //
    },
    req::{
        Args,
        Prepared, //
    }, //
};
use fuse_abi::{
    NotifyRetrieveIn,
    NotifyRetrieveOut,
    NotifyStoreOut, //
};
use kernel::{
    iov::IovIterSource,
    page::PAGE_SIZE,
    prelude::*, //
};
use vfs::{
    attr::FileType,
    iov, //
};

/// What came of storing into one folio.
enum Stored {
    /// So many bytes are dealt with.
    Bytes(usize),
    /// So many bytes of the server's memory must be present.
    Absent(usize),
    /// A folio that is valid in part, if at all, must go: smaller ones can be filled wholly.
    InTheWay { first: u64, last: u64 },
}

impl Notifications {
    pub(super) fn store(
        &self,
        arg: &NotifyStoreOut,
        len: usize,
        from: &mut IovIterSource<'_>,
    ) -> Result {
        let end = arg.offset.checked_add(len as u64).ok_or(EINVAL)?;
        let end = i64::try_from(end).map_err(|_| EINVAL)?;
        {
            let sb = self.mount()?;
            let inode = find(&sb, arg.nodeid)?;
            check_regular(&inode)?;
            attr::grow(&inode, end);
        }
        let mut pos = arg.offset;
        let mut left = len;
        let mut fruitless = Fruitless::new();
        while left > 0 {
            let absent = {
                let sb = self.mount()?;
                let inode = find(&sb, arg.nodeid)?;
                match store_folio(&inode, pos, left, from)? {
                    Stored::Bytes(stored) => {
                        pos = pos.saturating_add(stored as u64);
                        left = left.saturating_sub(stored);
                        fruitless = Fruitless::new();
                        continue;
                    }
                    Stored::Absent(len) => len,
                    Stored::InTheWay { first, last } => {
                        inode.mapping().invalidate_range_killable(first, last)?;
                        0
                    }
                }
            };
            if fruitless.too_many(0) {
                return Err(if absent > 0 { EFAULT } else { EBUSY });
            }
            iov::fault_in_readable(from, absent)?;
        }
        Ok(())
    }

    pub(super) fn retrieve(&self, arg: &NotifyRetrieveOut) -> Result {
        let sb = self.mount()?;
        let inode = find(&sb, arg.nodeid)?;
        check_regular(&inode)?;
        if i64::try_from(arg.offset).is_err() {
            return Err(EINVAL);
        }
        let conn = conn(&inode);
        let limits = conn.limits();
        let size = inode.size() as u64;
        let len = u64::from(arg.size.min(limits.max_write)).min(size.saturating_sub(arg.offset));
        let ranges =
            inode
                .mapping()
                .cached_ranges(arg.offset, len as usize, limits.max_pages as usize)?;
        let found = ranges
            .iter()
            .fold(0usize, |sum, range| sum.saturating_add(range.len()));
        let args = Args::notify_reply(arg.nodeid, arg.notify_unique)
            .arg(&NotifyRetrieveIn {
                offset: arg.offset,
                // Not more than was asked for.
                size: found as u32,
                ..NotifyRetrieveIn::default()
            })?
            .folios(ranges);
        // Without a server, nobody misses it.
        let _ = conn.chan().send_now(Prepared::new(args, None)?);
        Ok(())
    }
}

/// # Errors
///
/// `EINVAL`: nothing but regular files has data that a server could store.
fn check_regular(inode: &INode) -> Result {
    match inode.file_type() {
        Some(FileType::Regular) => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Stores bytes from `pos` on, up to `left`, into the folio that has `pos`. Sleeps for the folio,
/// not for the server's memory.
///
/// A folio that is not valid becomes so if it is filled from its start to its end, or to that of the
/// file. Else bytes that were stored in it would be read from the server before anybody sees them:
/// they are left out.
fn store_folio(
    inode: &INode,
    pos: u64,
    left: usize,
    from: &mut IovIterSource<'_>,
) -> Result<Stored> {
    let mut folio = inode.mapping().lock_folio_killable(pos, left)?;
    let offset = pos.saturating_sub(folio.pos()) as usize;
    let len = folio.size().saturating_sub(offset).min(left);
    if folio.is_uptodate() {
        return Ok(match folio.copy_from_iter_nofault(offset, len, from) {
            0 => Stored::Absent(len),
            copied => Stored::Bytes(copied),
        });
    }
    let to_eof = pos.saturating_add(len as u64) >= inode.size() as u64;
    if offset == 0 && (len == folio.size() || to_eof) {
        return Ok(if folio.fill_from_iter_nofault(len, from) {
            Stored::Bytes(len)
        } else {
            Stored::Absent(len)
        });
    }
    if folio.size() > PAGE_SIZE {
        let first = folio.pos();
        let last = first.saturating_add(folio.size() as u64).saturating_sub(1);
        return Ok(Stored::InTheWay { first, last });
    }
    from.advance(len);
    Ok(Stored::Bytes(len))
}
