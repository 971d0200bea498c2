// SPDX-License-Identifier: GPL-2.0

//! The rules of messages, by examples, and what is built is read back.

use fuse_abi::*;
use proptest::prelude::*;
use zerocopy::IntoBytes;

fn check(len: u32, error: i32, unique: u64, written: usize) -> Result<Message, Malformed> {
    OutHeader { len, error, unique }.check(written)
}

#[test]
fn a_message_is_a_reply_an_error_or_a_notification() {
    assert_eq!(
        check(20, 0, 6, 20),
        Ok(Message::Reply {
            unique: 6,
            payload: 4
        })
    );
    assert_eq!(
        check(16, -2, 6, 16),
        Ok(Message::ErrorReply {
            unique: 6,
            error: -2,
            payload: 0
        })
    );
    assert_eq!(
        check(20, -511, 6, 20),
        Ok(Message::ErrorReply {
            unique: 6,
            error: -511,
            payload: 4
        })
    );
    assert_eq!(
        check(16, -11, 7, 16),
        Ok(Message::InterruptReply {
            unique: 6,
            error: -11
        })
    );
    let code = NotifyCode::IncEpoch;
    assert_eq!(
        check(16, 8, 0, 16),
        Ok(Message::Notify { code, payload: 0 })
    );
    let unique = 6 | UNIQUE_RESEND;
    assert_eq!(
        check(16, 0, unique, 16),
        Ok(Message::Reply { unique, payload: 0 })
    );
}

#[test]
fn a_message_with_a_wrong_header_is_refused() {
    for (len, error, unique, written) in [
        (16, 0, 6, 15),        // Too short for a header.
        (20, 0, 6, 16),        // Longer than it is.
        (16, 0, 6, 20),        // Shorter than it is.
        (16, 1, 6, 16),        // A positive error.
        (16, -512, 6, 16),     // An error of the kernel's own.
        (16, i32::MIN, 6, 16), // One that has no negative.
        (20, 0, 7, 20),        // An interrupt's answer with a payload.
        (16, 0, 0, 16),        // A notification about nothing.
        (16, 10, 0, 16),       // A notification that is not known.
        (16, -1, 0, 16),       // A notification with an error.
    ] {
        assert!(
            check(len, error, unique, written).is_err(),
            "{len} {error} {unique} {written}"
        );
    }
}

#[test]
fn entries_and_attributes() {
    let attr = Attr {
        mode: 0o100_644,
        ..Attr::default()
    };
    let entry = EntryOut {
        nodeid: 2,
        attr,
        ..EntryOut::default()
    };
    assert_eq!(entry.validate(), Ok(()));
    assert!(EntryOut { nodeid: 0, ..entry }.is_negative());
    for nodeid in [0, ROOT_ID] {
        assert_eq!(
            EntryOut { nodeid, ..entry }.validate(),
            Err(Malformed::NodeId(nodeid))
        );
    }

    for file_type in 0..16 {
        let attr = Attr {
            mode: (file_type << 12) | 0o644,
            ..attr
        };
        assert_eq!(
            attr.validate().is_ok(),
            [1, 2, 4, 6, 8, 10, 12].contains(&file_type),
            "{file_type}"
        );
        let entry = EntryOut { attr, ..entry };
        assert_eq!(entry.validate(), attr.validate());
        let statx = Statx {
            mask: 1,
            mode: (file_type << 12) as u16,
            ..Statx::default()
        };
        assert_eq!(statx.validate().is_ok(), attr.validate().is_ok());
        assert_eq!(Statx { mask: 0, ..statx }.validate(), Ok(()));
    }
    for (size, valid) in [
        (0, true),
        (i64::MAX as u64, true),
        (1 << 63, false),
        (u64::MAX, false),
    ] {
        assert_eq!(Attr { size, ..attr }.validate().is_ok(), valid);
        assert_eq!(
            Statx {
                mask: 0x200,
                size,
                ..Statx::default()
            }
            .validate()
            .is_ok(),
            valid
        );
        assert_eq!(LseekOut { offset: size }.offset().is_ok(), valid);
    }
}

#[test]
fn locks() {
    let lock = |type_, start, end| {
        FileLock {
            start,
            end,
            type_,
            pid: 1,
        }
        .validate()
        .is_ok()
    };
    assert!(lock(0, 0, i64::MAX as u64) && lock(1, 5, 5) && lock(2, 9, 0));
    assert!(!lock(1, 6, 5) && !lock(0, 0, 1 << 63) && !lock(3, 0, 0));
}

#[test]
fn requests_without_reply() {
    let silent: Vec<_> = Opcode::ALL
        .iter()
        .filter(|opcode| !opcode.has_reply())
        .collect();
    assert_eq!(
        silent,
        [
            &Opcode::Forget,
            &Opcode::Interrupt,
            &Opcode::NotifyReply,
            &Opcode::BatchForget
        ]
    );
    assert_eq!(Opcode::CopyFileRange64.name(), "COPY_FILE_RANGE_64");
}

#[test]
fn arguments_by_minor_version() {
    let len = |wire: &[u8]| wire.len();
    for (minor, write, mknod, create) in [
        (8, 24, 8, 8),
        (9, 40, 8, 8),
        (11, 40, 8, 8),
        (12, 40, 16, 16),
        (46, 40, 16, 16),
    ] {
        assert_eq!(len(WriteIn::default().as_wire(minor)), write);
        assert_eq!(len(MknodIn::default().as_wire(minor)), mknod);
        assert_eq!(len(CreateIn::default().as_wire(minor)), create);
    }
    let write = WriteIn {
        fh: 1,
        offset: 2,
        size: 3,
        lock_owner: 4,
        ..WriteIn::default()
    };
    assert_eq!(write.as_wire(8), &write.as_bytes()[..24]);

    let setxattr = SetxattrIn::default();
    assert_eq!(
        len(setxattr.as_wire(InitFlags::SETXATTR_EXT | InitFlags::POSIX_ACL)),
        16
    );
    assert_eq!(len(setxattr.as_wire(!InitFlags::SETXATTR_EXT)), 8);
}

#[test]
fn replies_by_minor_version() {
    for (minor, statfs, attr, entry) in [
        (3, 48, 96, 120),
        (4, 80, 96, 120),
        (8, 80, 96, 120),
        (9, 80, 104, 128),
        (46, 80, 104, 128),
    ] {
        assert_eq!(StatfsOut::wire_size(minor), statfs);
        assert_eq!(AttrOut::wire_size(minor), attr);
        assert_eq!(EntryOut::wire_size(minor), entry);
        assert_eq!(CreateOut::wire_size(minor), entry + 16);
    }
}

#[test]
fn the_smallest_buffer_takes_the_largest_write() {
    assert_eq!(min_read_buffer(4096), 8192);
    assert_eq!(min_read_buffer(8192 - 80), 8192);
    assert_eq!(min_read_buffer(8192 - 79), 8193);
    assert_eq!(min_read_buffer(1 << 20), 80 + (1 << 20));
}

#[test]
fn notification_sizes() {
    let sizes: Vec<_> = NotifyCode::ALL
        .iter()
        .map(|code| code.fixed_size())
        .collect();
    assert_eq!(sizes, [8, 24, 16, 24, 32, 24, 0, 0, 16]);

    let entry = NotifyInvalEntryOut {
        namelen: 3,
        ..NotifyInvalEntryOut::default()
    };
    assert_eq!(entry.name_len(20, 255), Ok(3));
    assert_eq!(entry.name_len(20, 2), Err(Malformed::NameTooLong(3)));
    assert!(entry.name_len(19, 255).is_err() && entry.name_len(21, 255).is_err());
}

#[test]
fn init_of_old_servers() {
    let init = InitOut::parse(&[7, 0, 0, 0, 4, 0, 0, 0]).unwrap();
    assert_eq!((init.major, init.minor, init.max_write), (7, 4, 0));

    let full = InitOut {
        major: 7,
        minor: 46,
        flags: 1,
        flags2: 1 << 10,
        ..InitOut::default()
    };
    assert_eq!(full.features(), InitFlags::ASYNC_READ);
    let ext = InitOut {
        flags: 1 | (1 << 30),
        ..full
    };
    assert_eq!(
        ext.features(),
        InitFlags::ASYNC_READ | InitFlags::INIT_EXT | InitFlags::REQUEST_TIMEOUT
    );
    assert_eq!(InitOut { minor: 5, ..ext }.features(), InitFlags::empty());
}

#[test]
fn flags_are_shown_by_name_and_unknown_bits_are_kept() {
    let flags = OpenFlags::from_bits_retain((1 << 1) | (1 << 30));
    assert_eq!(format!("{flags:?}"), "OpenFlags(KEEP_CACHE | 0x40000000)");
    assert_eq!((flags - OpenFlags::KEEP_CACHE).bits(), 1 << 30);
    assert_eq!((flags & !OpenFlags::DIRECT_IO).bits(), flags.bits());
}

proptest! {
    #[test]
    fn request_headers(
        opcode in proptest::sample::select(Opcode::ALL),
        (unique, nodeid) in any::<(u64, u64)>(),
        (len, uid, gid, pid) in any::<(u32, u32, u32, u32)>(),
    ) {
        let header = InHeader::new(opcode, unique, nodeid, len, uid, gid, pid);
        let wire = header.as_wire(MINOR_VERSION);
        prop_assert_eq!(wire.len(), 40);
        let word = |at: usize| u32::from_ne_bytes(wire[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(wire[at..at + 8].try_into().unwrap());
        prop_assert_eq!((word(0), word(4)), (len, opcode as u32));
        prop_assert_eq!((long(8), long(16)), (unique, nodeid));
        prop_assert_eq!((word(24), word(28), word(32), word(36)), (uid, gid, pid, 0));
    }

    #[test]
    fn features_on_offer(bits: u64, max_readahead: u32) {
        let offer = InitFlags::from_bits_retain(bits);
        let init = InitIn::new(max_readahead, offer);
        prop_assert_eq!((init.major, init.minor, init.max_readahead), (7, 46, max_readahead));
        prop_assert_eq!(InitFlags::join(init.flags, init.flags2), offer);
        prop_assert_eq!(init.as_wire(MINOR_VERSION).len(), 64);
    }

    #[test]
    fn arguments_are_prefixes(bytes in proptest::array::uniform32(any::<u8>()), minor in 0..50u32) {
        let mknod: MknodIn = zerocopy::FromBytes::read_from_bytes(&bytes[..16]).unwrap();
        prop_assert!(bytes.starts_with(mknod.as_wire(minor)));
    }
}
