// SPDX-License-Identifier: GPL-2.0

//! The crate against the kernel header that defines the protocol.

mod layout {
    use fuse_abi as abi;
    use fuse_uapi as uapi;

    include!("../layout_check.rs");

    // Macros that bindgen evaluates only for the host test.
    same_constants! {
        DEV_IOC_BACKING_CLOSE = VALUE_OF_FUSE_DEV_IOC_BACKING_CLOSE;
        DEV_IOC_BACKING_OPEN = VALUE_OF_FUSE_DEV_IOC_BACKING_OPEN;
        DEV_IOC_CLONE = VALUE_OF_FUSE_DEV_IOC_CLONE;
        DEV_IOC_SYNC_INIT = VALUE_OF_FUSE_DEV_IOC_SYNC_INIT;
        INVALID_UIDGID = VALUE_OF_FUSE_INVALID_UIDGID;
    }
}

use std::collections::BTreeSet;

use fuse_abi::*;

/// Names of the header that are not in the lists.
const ELSEWHERE: &[&str] = &[
    "_LINUX_FUSE_H",
    // Aliases that the header calls obsolete.
    "FUSE_DIRECT_IO_RELAX",
    "FUSE_WRITE_KILL_PRIV",
    // Sizes and alignment of directory entries: the iterators.
    "FUSE_DIRENTPLUS_SIZE",
    "FUSE_DIRENT_ALIGN",
    "FUSE_DIRENT_SIZE",
    "FUSE_NAME_OFFSET",
    "FUSE_NAME_OFFSET_DIRENTPLUS",
    "FUSE_REC_ALIGN",
    // Depends on the page size.
    "FUSE_REMOVEMAPPING_MAX_ENTRY",
    // InitOut takes any prefix.
    "FUSE_COMPAT_22_INIT_OUT_SIZE",
    "FUSE_COMPAT_INIT_OUT_SIZE",
    // Compared in this file.
    "FUSE_COMPAT_ATTR_OUT_SIZE",
    "FUSE_COMPAT_ENTRY_OUT_SIZE",
    "FUSE_COMPAT_MKNOD_IN_SIZE",
    "FUSE_COMPAT_SETXATTR_IN_SIZE",
    "FUSE_COMPAT_STATFS_SIZE",
    "FUSE_COMPAT_WRITE_IN_SIZE",
    "FUSE_DEV_IOC_BACKING_CLOSE",
    "FUSE_DEV_IOC_BACKING_OPEN",
    "FUSE_DEV_IOC_CLONE",
    "FUSE_DEV_IOC_SYNC_INIT",
    "FUSE_INVALID_UIDGID",
];

/// The words of a C or Rust text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// Every struct, enumerator and macro of the header stands in one of the lists that are compared
/// with it.
#[test]
fn nothing_of_the_header_is_left_out() {
    let mut listed: BTreeSet<_> = ELSEWHERE.iter().copied().collect();
    for word in words(include_str!("../layout_check.rs")) {
        listed.insert(word);
        // bindgen puts the enum's name before the enumerator's.
        listed.extend(
            [
                "fuse_ext_type_",
                "fuse_notify_code_",
                "fuse_opcode_",
                "fuse_uring_cmd_",
            ]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix)),
        );
    }

    let mut seen = 0;
    for line in fuse_uapi::HEADER.lines() {
        let mut words = words(line);
        let name = match words.next() {
            Some("struct") if line.starts_with("struct ") => words.next(),
            Some("define") if line.starts_with("#define") => words.next(),
            Some(word)
                if line.contains('=')
                    && (word.starts_with("FUSE_") || word.starts_with("CUSE_")) =>
            {
                Some(word)
            }
            _ => None,
        };
        let Some(name) = name else { continue };
        seen += 1;
        assert!(
            listed.contains(name),
            "{name} of the header is not compared"
        );
    }
    assert!(
        seen > 250,
        "only {seen} names found: the header is not read right"
    );
}

#[test]
fn old_servers_have_the_sizes_of_the_header() {
    assert_eq!(
        AttrOut::wire_size(8),
        fuse_uapi::FUSE_COMPAT_ATTR_OUT_SIZE as usize
    );
    assert_eq!(
        EntryOut::wire_size(8),
        fuse_uapi::FUSE_COMPAT_ENTRY_OUT_SIZE as usize
    );
    assert_eq!(
        StatfsOut::wire_size(3),
        fuse_uapi::FUSE_COMPAT_STATFS_SIZE as usize
    );
    assert_eq!(
        MknodIn::default().as_wire(11).len(),
        fuse_uapi::FUSE_COMPAT_MKNOD_IN_SIZE as usize
    );
    assert_eq!(
        WriteIn::default().as_wire(8).len(),
        fuse_uapi::FUSE_COMPAT_WRITE_IN_SIZE as usize
    );
    assert_eq!(
        SetxattrIn::default().as_wire(InitFlags::empty()).len(),
        fuse_uapi::FUSE_COMPAT_SETXATTR_IN_SIZE as usize
    );
}
