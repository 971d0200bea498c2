// SPDX-License-Identifier: GPL-2.0

//! Directory entries: what a server packs is read back, and what it packs wrongly is refused.

use fuse_abi::*;
use proptest::{collection::vec, prelude::*, sample::Index};
use zerocopy::{FromBytes, IntoBytes};

const NAME_MAX: u32 = 1024;

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    ino: u64,
    off: u64,
    type_: u32,
    name: Vec<u8>,
}

fn entry() -> impl Strategy<Value = Entry> {
    let name = vec(
        any::<u8>().prop_filter("no slash", |&byte| byte != b'/'),
        1..40,
    );
    (any::<u64>(), any::<u64>(), any::<u32>(), name).prop_map(|(ino, off, type_, name)| Entry {
        ino,
        off,
        type_,
        name,
    })
}

fn entry_plus() -> impl Strategy<Value = (EntryOut, Entry)> {
    let entry_out = vec(any::<u8>(), size_of::<EntryOut>())
        .prop_map(|bytes| EntryOut::read_from_bytes(&bytes).unwrap());
    (entry_out, entry())
}

fn header(entry: &Entry) -> DirentHeader {
    DirentHeader {
        ino: entry.ino,
        off: entry.off,
        namelen: entry.name.len() as u32,
        type_: entry.type_,
    }
}

/// A record as the protocol wants it.
fn record(entry_out: Option<EntryOut>, entry: &Entry) -> Vec<u8> {
    let mut record = Vec::new();
    if let Some(entry_out) = entry_out {
        record.extend_from_slice(entry_out.as_bytes());
    }
    record.extend_from_slice(header(entry).as_bytes());
    record.extend_from_slice(&entry.name);
    record.resize(record.len().div_ceil(8) * 8, 0);
    record
}

fn read(dirent: Dirent<'_>) -> Entry {
    Entry {
        ino: dirent.ino,
        off: dirent.off,
        type_: dirent.type_,
        name: dirent.name.to_vec(),
    }
}

fn one(name: &[u8]) -> Vec<u8> {
    record(
        None,
        &Entry {
            ino: 5,
            off: 1,
            type_: 8,
            name: name.to_vec(),
        },
    )
}

fn read_all(bytes: &[u8]) -> Result<Vec<Entry>, Malformed> {
    Dirents::new(bytes, NAME_MAX)
        .map(|entry| entry.map(read))
        .collect()
}

fn read_all_plus(bytes: &[u8]) -> Result<Vec<(EntryOut, Entry)>, Malformed> {
    DirentsPlus::new(bytes, NAME_MAX)
        .map(|entry| entry.map(|plus| (plus.entry, read(plus.dirent))))
        .collect()
}

/// How many of the records lie wholly before `end`.
fn whole(records: &[Vec<u8>], end: usize) -> usize {
    (0..=records.len())
        .rfind(|&n| records[..n].concat().len() <= end)
        .unwrap()
}

proptest! {
    // Cut anywhere, those that are whole are read, and the rest is no error.
    #[test]
    fn readdir(entries in vec(entry(), 0..20), cut: Index) {
        let records: Vec<_> = entries.iter().map(|entry| record(None, entry)).collect();
        let all = records.concat();
        for end in [all.len(), cut.index(all.len() + 1)] {
            let whole = whole(&records, end);
            prop_assert_eq!(read_all(&all[..end]), Ok(entries[..whole].to_vec()));
        }
    }

    #[test]
    fn readdirplus(entries in vec(entry_plus(), 0..10), cut: Index) {
        let records: Vec<_> = entries
            .iter()
            .map(|(entry_out, entry)| record(Some(*entry_out), entry))
            .collect();
        let all = records.concat();
        for end in [all.len(), cut.index(all.len() + 1)] {
            let whole = whole(&records, end);
            prop_assert_eq!(read_all_plus(&all[..end]), Ok(entries[..whole].to_vec()));
        }
    }
}

#[test]
fn names() {
    for (name, fault) in [
        (&b""[..], Malformed::NameEmpty),
        (b"a/b", Malformed::NameSlash),
        (b"/", Malformed::NameSlash),
        (&[b'a'; 1025], Malformed::NameTooLong(1025)),
    ] {
        // Good ones around it: the first is seen, the error follows, then nothing.
        let bytes = [one(b"good"), one(name), one(b"never seen")].concat();
        let mut entries = Dirents::new(&bytes, NAME_MAX);
        assert_eq!(entries.next().unwrap().unwrap().name, b"good");
        assert_eq!(entries.next(), Some(Err(fault)));
        assert_eq!(entries.next(), None);

        let entry = Entry {
            ino: 5,
            off: 1,
            type_: 8,
            name: name.to_vec(),
        };
        let bytes = record(Some(EntryOut::default()), &entry);
        let mut entries = DirentsPlus::new(&bytes, NAME_MAX);
        assert_eq!(entries.next(), Some(Err(fault)));
        assert_eq!(entries.next(), None);
    }
    assert_eq!(Dirents::new(&one(&[b'a'; 1024]), NAME_MAX).count(), 1);
}

#[test]
fn a_huge_name_length_is_no_arithmetic() {
    let mut bytes = one(b"abc");
    bytes[16..20].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert_eq!(Dirents::new(&bytes, u32::MAX).next(), None);
    assert_eq!(
        Dirents::new(&bytes, NAME_MAX).next(),
        Some(Err(Malformed::NameTooLong(u32::MAX)))
    );
}

#[test]
fn record_lengths() {
    for (len, aligned) in [(0, 0), (1, 8), (7, 8), (8, 8), (9, 16), (25, 32)] {
        assert_eq!(record_align(len), aligned);
    }
}
