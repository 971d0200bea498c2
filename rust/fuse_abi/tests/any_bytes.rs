// SPDX-License-Identifier: GPL-2.0

//! Whatever bytes a server sends, the parsers give a value or an error, and no iterator runs for
//! ever.

use fuse_abi::*;
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

const MAX_SIZE: u64 = i64::MAX as u64;

fn minor() -> impl Strategy<Value = u32> {
    prop_oneof![0..=MINOR_VERSION, any::<u32>()]
}

/// Bytes of which many are small, so that lengths are often in range.
fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..max),
        proptest::collection::vec(
            prop_oneof![4 => Just(0u8), 1 => any::<u8>(), 1 => 0..32u8],
            0..max
        ),
    ]
}

/// A reply is read if and only if its length is right; then its bytes are those sent, and zero
/// where the server is old.
fn reply<T: Reply + IntoBytes + zerocopy::Immutable>(bytes: &[u8], minor: u32) {
    let size = T::wire_size(minor);
    assert!(size <= size_of::<T>());
    match T::parse(bytes, minor) {
        Ok(value) => {
            assert_eq!(bytes.len(), size);
            let (sent, missing) = value.as_bytes().split_at(size);
            assert_eq!(sent, bytes);
            assert!(missing.iter().all(|&byte| byte == 0));
        }
        Err(Malformed::TooShort { got, want }) => {
            assert!(got == bytes.len() && got < want && want == size)
        }
        Err(Malformed::TooLong { got, want }) => {
            assert!(got == bytes.len() && got > want && want == size)
        }
        Err(other) => panic!("{other}"),
    }
}

macro_rules! each_reply {
    ($bytes:expr, $minor:expr, $($name:ident)*) => {$(
        reply::<$name>($bytes, $minor);
        // The same bytes cut or filled to the right length.
        let mut fitting = $bytes.to_vec();
        fitting.resize($name::wire_size($minor), 0x5a);
        reply::<$name>(&fitting, $minor);
    )*};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn replies(bytes in bytes(400), minor in minor()) {
        each_reply!(
            &bytes, minor,
            AttrOut BmapOut CopyFileRangeOut CuseInitOut EntryOut GetxattrOut IoctlOut LkOut
            LseekOut NotifyDeleteOut NotifyInvalEntryOut NotifyInvalInodeOut NotifyPollWakeupOut
            NotifyPruneOut NotifyRetrieveOut NotifyStoreOut OpenOut PollOut StatfsOut StatxOut
            WriteOut
        );
        prop_assert_eq!(<()>::parse(&bytes, minor).is_ok(), bytes.is_empty());
        let created = CreateOut::parse(&bytes, minor);
        prop_assert_eq!(created.is_ok(), bytes.len() == CreateOut::wire_size(minor));
    }

    #[test]
    fn created(mut bytes in bytes(160), minor in minor()) {
        bytes.resize(CreateOut::wire_size(minor), 0x5a);
        let (entry, open) = bytes.split_at(EntryOut::wire_size(minor));
        let created = CreateOut::parse(&bytes, minor).unwrap();
        prop_assert_eq!(created.entry, EntryOut::parse(entry, minor).unwrap());
        prop_assert_eq!(created.open, OpenOut::parse(open, minor).unwrap());
    }

    #[test]
    fn validation(bytes in bytes(400), wanted in any::<u64>()) {
        fn read<T: FromBytes>(bytes: &[u8]) -> Option<T> {
            T::read_from_prefix(bytes).ok().map(|(value, _)| value)
        }
        if let Some(attr) = read::<Attr>(&bytes) {
            let typed = attr.mode & 0o170_000 != 0;
            prop_assert!(attr.validate().is_err() || typed && attr.size <= MAX_SIZE);
        }
        if let Some(entry) = read::<EntryOut>(&bytes) {
            let child = entry.nodeid > ROOT_ID;
            prop_assert!(entry.validate().is_err() || child && entry.attr.validate().is_ok());
        }
        if let Some(statx) = read::<Statx>(&bytes) {
            let sized = statx.mask & 0x200 != 0;
            prop_assert!(statx.validate().is_err() || !sized || statx.size <= MAX_SIZE);
        }
        if let Some(lock) = read::<FileLock>(&bytes) {
            prop_assert!(lock.validate().is_err() || lock.type_ == 2 || lock.start <= lock.end);
        }
        if let Some(out) = read::<WriteOut>(&bytes) {
            prop_assert_eq!(out.written(wanted as u32).is_ok(), out.size <= wanted as u32);
        }
        if let Some(out) = read::<CopyFileRangeOut>(&bytes) {
            prop_assert_eq!(out.copied(wanted).is_ok(), out.bytes_copied <= wanted);
        }
        if let Some(out) = read::<LseekOut>(&bytes) {
            prop_assert_eq!(out.offset().ok(), i64::try_from(out.offset).ok());
        }
        if let Some(request) = read::<UringCmdReq>(&bytes) {
            let index = request.ent_zero_copy_buf_index().to_ne_bytes();
            prop_assert_eq!(&index, &request.bufpool.as_bytes()[..2]);
        }
    }

    #[test]
    fn headers(bytes in bytes(40), written in prop_oneof![0..64usize, any::<usize>()]) {
        let header = OutHeader::parse(&bytes);
        prop_assert_eq!(header.is_ok(), bytes.len() >= 16);
        let Ok(header) = header else { return Ok(()) };
        match header.check(written) {
            Ok(Message::Notify { payload, .. }) => {
                prop_assert!(header.unique == 0 && payload == written - 16);
            }
            Ok(Message::InterruptReply { unique, error }) => {
                prop_assert!(written == 16 && (-511..=0).contains(&error));
                prop_assert_eq!(unique, header.unique - 1);
            }
            Ok(Message::Reply { unique, payload }) => {
                prop_assert!(unique != 0 && header.error == 0 && payload == written - 16);
            }
            Ok(Message::ErrorReply { unique, error, payload }) => {
                prop_assert!(unique != 0 && (-511..0).contains(&error) && payload == written - 16);
            }
            Err(_) => {}
        }
    }

    #[test]
    fn notifications(
        bytes in bytes(40),
        payload in prop_oneof![0..80usize, any::<usize>()],
        name_max in 0..64usize,
    ) {
        if let Ok((entry, _)) = NotifyInvalEntryOut::read_from_prefix(&bytes) {
            if let Ok(len) = entry.name_len(payload, name_max) {
                prop_assert!(len <= name_max && payload == 16 + len + 1);
            }
        }
        if let Ok((delete, _)) = NotifyDeleteOut::read_from_prefix(&bytes) {
            if let Ok(len) = delete.name_len(payload, name_max) {
                prop_assert!(len <= name_max && payload == 24 + len + 1);
            }
        }
        if let Ok((store, _)) = NotifyStoreOut::read_from_prefix(&bytes) {
            if let Ok(len) = store.data_len(payload) {
                prop_assert_eq!(payload, 24 + len);
            }
        }
        if let Ok((prune, _)) = NotifyPruneOut::read_from_prefix(&bytes) {
            if let Ok(count) = prune.nodeids(payload) {
                prop_assert_eq!(payload, 16 + 8 * count);
            }
        }
    }

    #[test]
    fn init(bytes in bytes(100)) {
        let init = InitOut::parse(&bytes);
        prop_assert_eq!(init.is_ok(), bytes.len() <= 64);
        let Ok(init) = init else { return Ok(()) };
        let (sent, missing) = init.as_bytes().split_at(bytes.len());
        prop_assert_eq!(sent, &bytes);
        prop_assert!(missing.iter().all(|&byte| byte == 0));

        let (flags, flags2) = init.features().split();
        prop_assert_eq!(flags, if init.minor < 6 { 0 } else { init.flags });
        prop_assert_eq!(flags2, if flags & (1 << 30) == 0 { 0 } else { init.flags2 });
    }

    #[test]
    fn directories(bytes in bytes(800), name_max in prop_oneof![Just(4095u32), any::<u32>()]) {
        let most = bytes.len() / 24 + 1;
        let entries: Vec<_> = Dirents::new(&bytes, name_max).take(most + 1).collect();
        prop_assert!(entries.len() <= most);
        names(entries.iter().map(|entry| entry.as_ref().map(|entry| entry.name)), name_max);

        let most = bytes.len() / 152 + 1;
        let entries: Vec<_> = DirentsPlus::new(&bytes, name_max).take(most + 1).collect();
        prop_assert!(entries.len() <= most);
        names(entries.iter().map(|entry| entry.as_ref().map(|entry| entry.dirent.name)), name_max);
    }

    #[test]
    fn attribute_names(bytes in bytes(60)) {
        let empty_name = bytes.starts_with(&[0]) || bytes.windows(2).any(|pair| pair == [0, 0]);
        let valid = bytes.is_empty() || bytes.ends_with(&[0]) && !empty_name;
        match xattr_names(&bytes) {
            Ok(names) => {
                prop_assert!(valid);
                let joined: Vec<u8> = names.flat_map(|name| [name, &[0]].concat()).collect();
                prop_assert_eq!(&joined, &bytes);
            }
            Err(_) => prop_assert!(!valid),
        };
    }

    #[test]
    fn codes(code in prop_oneof![0..100u32, any::<u32>()]) {
        prop_assert_eq!(
            Opcode::try_from(code).ok(),
            Opcode::ALL.iter().copied().find(|&opcode| opcode as u32 == code)
        );
        prop_assert_eq!(
            NotifyCode::try_from(code).ok(),
            NotifyCode::ALL.iter().copied().find(|&notify| notify as u32 == code)
        );
    }
}

/// Only the last item may be an error; the others have names as promised.
fn names<'a>(
    entries: impl ExactSizeIterator<Item = Result<&'a [u8], &'a Malformed>>,
    name_max: u32,
) {
    let last = entries.len().saturating_sub(1);
    for (i, entry) in entries.enumerate() {
        match entry {
            Ok(name) => {
                assert!(
                    !name.is_empty() && name.len() <= name_max as usize && !name.contains(&b'/')
                );
            }
            Err(_) => assert_eq!(i, last),
        }
    }
}
