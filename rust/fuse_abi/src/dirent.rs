// SPDX-License-Identifier: GPL-2.0

//! The entries of READDIR and READDIRPLUS replies.
//!
//! A reply is a row of records, each a header and a name without NUL, filled up to a multiple of 8
//! bytes. An entry that does not fit as a whole ends the row: its start may be there, and is not an
//! error.

use zerocopy::FromBytes;

use crate::{EntryOut, Malformed};

wire! {
    /// Start of a record of READDIR; the name follows. Server to kernel.
    pub struct DirentHeader {
        /// Inode number.
        pub ino: u64,
        /// Where a later READDIR goes on behind this entry.
        pub off: u64,
        /// Bytes of the name.
        pub namelen: u32,
        /// File type, `DT_*` of readdir(3).
        pub type_: u32,
    }

    /// Start of a record of READDIRPLUS; the name follows. Server to kernel.
    pub struct DirentPlusHeader {
        /// What LOOKUP of the name would say. If it has a node, that node's lookup count is one
        /// higher.
        pub entry_out: EntryOut,
        /// As in READDIR.
        pub dirent: DirentHeader,
    }
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirent<'a> {
    /// Inode number.
    pub ino: u64,
    /// Where a later READDIR goes on behind this entry.
    pub off: u64,
    /// File type, `DT_*` of readdir(3).
    pub type_: u32,
    /// The name: not empty, without slashes, no longer than the iterator was told.
    pub name: &'a [u8],
}

/// An entry of a directory and what LOOKUP of it would say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirentPlus<'a> {
    /// The reply to a LOOKUP; not yet validated. If it has a node, that node's lookup count is one
    /// higher.
    pub entry: EntryOut,
    /// As in READDIR.
    pub dirent: Dirent<'a>,
}

/// Iterates over a READDIR reply. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Dirents<'a> {
    rest: &'a [u8],
    name_max: u32,
}

/// Iterates over a READDIRPLUS reply. Ends after the first error.
#[derive(Clone, Debug)]
pub struct DirentsPlus<'a> {
    rest: &'a [u8],
    name_max: u32,
}

/// Length of a record of `len` bytes with its filling.
pub const fn record_align(len: usize) -> usize {
    len.saturating_add(7) & !7
}

impl<'a> Dirents<'a> {
    /// `payload` is what stands behind the [`crate::OutHeader`], `name_max` the longest name in
    /// bytes to accept.
    pub const fn new(payload: &'a [u8], name_max: u32) -> Self {
        Self {
            rest: payload,
            name_max,
        }
    }
}

impl<'a> DirentsPlus<'a> {
    /// `payload` is what stands behind the [`crate::OutHeader`], `name_max` the longest name in
    /// bytes to accept.
    pub const fn new(payload: &'a [u8], name_max: u32) -> Self {
        Self {
            rest: payload,
            name_max,
        }
    }
}

impl<'a> Iterator for Dirents<'a> {
    type Item = Result<Dirent<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (header, after) = take::<DirentHeader>(&mut self.rest)?;
        take_name(
            &mut self.rest,
            header,
            size_of::<DirentHeader>(),
            after,
            self.name_max,
        )
        .transpose()
    }
}

impl<'a> Iterator for DirentsPlus<'a> {
    type Item = Result<DirentPlus<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (header, after) = take::<DirentPlusHeader>(&mut self.rest)?;
        let fixed = size_of::<DirentPlusHeader>();
        let dirent =
            take_name(&mut self.rest, header.dirent, fixed, after, self.name_max).transpose()?;
        Some(dirent.map(|dirent| DirentPlus {
            entry: header.entry_out,
            dirent,
        }))
    }
}

impl core::iter::FusedIterator for Dirents<'_> {}
impl core::iter::FusedIterator for DirentsPlus<'_> {}

/// The header at the start of `rest` and what follows it.
fn take<'a, T: FromBytes>(rest: &mut &'a [u8]) -> Option<(T, &'a [u8])> {
    T::read_from_prefix(rest).ok()
}

/// The entry whose header, of `fixed` bytes, stands at the start of `rest`, with the name at the
/// start of `after`.
///
/// Moves `rest` to the next record, or to nothing at the end and after an error.
fn take_name<'a>(
    rest: &mut &'a [u8],
    header: DirentHeader,
    fixed: usize,
    after: &'a [u8],
    name_max: u32,
) -> Result<Option<Dirent<'a>>, Malformed> {
    let record = core::mem::take(rest);
    if header.namelen == 0 {
        return Err(Malformed::NameEmpty);
    }
    if header.namelen > name_max {
        return Err(Malformed::NameTooLong(header.namelen));
    }
    let namelen = header.namelen as usize;
    let len = record_align(fixed.saturating_add(namelen));
    let (Some(name), Some(next)) = (after.get(..namelen), record.get(len..)) else {
        return Ok(None);
    };
    if name.contains(&b'/') {
        return Err(Malformed::NameSlash);
    }
    *rest = next;
    Ok(Some(Dirent {
        ino: header.ino,
        off: header.off,
        type_: header.type_,
        name,
    }))
}
