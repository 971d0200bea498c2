// SPDX-License-Identifier: GPL-2.0

//! The names of the in-tree client and those of fuse_rs.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString},
    sync::{Mutex, PoisonError},
};

/// The device, if `path` is that of the in-tree client.
pub(crate) fn device(path: &[u8]) -> Option<&'static CStr> {
    (path == b"/dev/fuse").then_some(c"/dev/fuse_rs")
}

/// The filesystem type, if `name` is one of the in-tree client.
pub(crate) fn fs_type(name: &[u8]) -> Option<&'static CStr> {
    match name {
        b"fuse" => return Some(c"fuse_rs"),
        b"fuseblk" => return Some(c"fuseblk_rs"),
        _ => {}
    }
    let (base, subtype) = if let Some(subtype) = name.strip_prefix(b"fuse.") {
        (&b"fuse_rs."[..], subtype)
    } else {
        (&b"fuseblk_rs."[..], name.strip_prefix(b"fuseblk.")?)
    };
    // A daemon mounts one type, maybe in several tries: what is made here is kept.
    static MADE: Mutex<BTreeMap<Vec<u8>, &'static CStr>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made.get(name) {
        return Some(known);
    }
    let new = CString::new([base, subtype].concat()).ok()?;
    let new: &'static CStr = Box::leak(new.into_boxed_c_str());
    made.insert(name.to_owned(), new);
    Some(new)
}

/// Is it the program by which libraries mount and unmount?
pub(crate) fn is_fusermount(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    matches!(
        name,
        b"fusermount" | b"fusermount3" | b"mergerfs-fusermount"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        assert_eq!(device(b"/dev/fuse"), Some(c"/dev/fuse_rs"));
        for other in [&b"/dev/fuse_rs"[..], b"/dev/fuse2", b"dev/fuse", b""] {
            assert_eq!(device(other), None);
        }
    }

    #[test]
    fn types() {
        assert_eq!(fs_type(b"fuse"), Some(c"fuse_rs"));
        assert_eq!(fs_type(b"fuse.sshfs"), Some(c"fuse_rs.sshfs"));
        assert_eq!(fs_type(b"fuseblk.ntfs"), Some(c"fuseblk_rs.ntfs"));
        assert_eq!(fs_type(b"fuseblk"), Some(c"fuseblk_rs"));
        for other in [&b"ext4"[..], b"fuse_rs", b"fusectl", b"fuse_rs.x", b""] {
            assert_eq!(fs_type(other), None);
        }
        let twice = [fs_type(b"fuse.x"), fs_type(b"fuse.x")].map(|name| name.map(CStr::as_ptr));
        assert_eq!(twice[0], twice[1]);
    }

    #[test]
    fn programs() {
        for path in [
            "/usr/bin/fusermount3",
            "fusermount",
            "/bin/fusermount",
            "/usr/bin/mergerfs-fusermount",
        ] {
            assert!(is_fusermount(path.as_bytes()));
        }
        for path in ["/usr/bin/fusermount3/x", "fusermount4", "xfusermount", ""] {
            assert!(!is_fusermount(path.as_bytes()));
        }
    }
}
