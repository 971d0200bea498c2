// SPDX-License-Identifier: GPL-2.0

//! `/proc/self/mountinfo`.

use crate::{
    error::{Result, Step},
    BLK_TYPE, FS_TYPE,
};
use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// A mount.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its number, unique among the mounts there are.
    pub id: u64,
    /// `major:minor` of the filesystem.
    pub dev: String,
    /// Where it is.
    pub mountpoint: PathBuf,
    /// The type, with the subtype.
    pub fs_type: String,
    /// The filesystem's options.
    pub options: String,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let mut fields = line.split(|&byte| byte == b' ');
        let id = text(fields.next()?).parse().ok()?;
        let dev = text(fields.nth(1)?);
        let mountpoint = PathBuf::from(OsString::from_vec(unescape(fields.nth(1)?)));
        // The end of the optional fields.
        fields.find(|&field| field == b"-")?;
        let fs_type = text(&unescape(fields.next()?));
        let options = text(fields.nth(1)?);
        Some(Self {
            id,
            dev,
            mountpoint,
            fs_type,
            options,
        })
    }

    /// Is it one of fuse_rs?
    pub fn is_ours(&self) -> bool {
        matches!(self.fs_type.split('.').next(), Some(FS_TYPE | BLK_TYPE))
    }

    /// Is it one of any FUSE client?
    pub fn is_fuse(&self) -> bool {
        self.is_ours() || matches!(self.fs_type.split('.').next(), Some("fuse" | "fuseblk"))
    }

    /// The user who mounted it, of a FUSE mount.
    pub fn user_id(&self) -> Option<u32> {
        let value = |option: &str| option.strip_prefix("user_id=")?.parse().ok();
        self.options.split(',').find_map(value)
    }
}

/// Undoes `\040` and its kind.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            _ => out.push(*first),
        }
    }
    out
}

/// All mounts in `text`, in its order: of those in one place, the last is on top.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n')
        .filter_map(Mount::parse)
        .collect()
}

/// The mounts that this process sees.
///
/// # Errors
///
/// `/proc` is not there.
pub fn read() -> Result<Vec<Mount>> {
    const PATH: &str = "/proc/self/mountinfo";
    Ok(parse(&fs::read(PATH).step(|| format!("reading {PATH}"))?))
}

/// What is mounted on `mountpoint`, the topmost.
pub fn on<'m>(mounts: &'m [Mount], mountpoint: &Path) -> Option<&'m Mount> {
    mounts
        .iter()
        .rev()
        .find(|mount| mount.mountpoint == mountpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 1 254:0 / / rw,noatime - ext4 /dev/root rw
40 22 0:41 / /mnt/a\\040b rw,nosuid shared:3 - fuse_rs.sshfs host:/x\\040y ro,user_id=1000,group_id=1000
41 22 0:42 / /mnt rw master:1 shared:2 - fuse.bindfs /src rw,user_id=0,group_id=0
43 22 0:43 / /mnt rw - fuse_rs /src ro,group_id=0
broken
";

    #[test]
    fn fields() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[1].mountpoint, Path::new("/mnt/a b"));
        assert_eq!(mounts[1].fs_type, "fuse_rs.sshfs");
        assert_eq!(mounts[1].user_id(), Some(1000));
        assert_eq!((mounts[1].id, mounts[1].dev.as_str()), (40, "0:41"));
    }

    #[test]
    fn kinds() {
        let mounts = parse(TEXT);
        let is = |f: fn(&Mount) -> bool| mounts.iter().map(f).collect::<Vec<_>>();
        assert_eq!(is(Mount::is_ours), [false, true, false, true]);
        assert_eq!(is(Mount::is_fuse), [false, true, true, true]);
        assert_eq!(mounts[3].user_id(), None);
    }

    #[test]
    fn topmost() {
        let mounts = parse(TEXT);
        assert_eq!(
            on(&mounts, Path::new("/mnt")).map(|mount| mount.id),
            Some(43)
        );
        assert_eq!(on(&mounts, Path::new("/mnt/a")), None);
    }
}
