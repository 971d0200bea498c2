// SPDX-License-Identifier: GPL-2.0

//! The directory or file that is mounted on.

use crate::{
    error::{Error, Result, Step},
    mountinfo::{self, Mount},
    privileges::Caller,
};
use rustix::fs::{
    accessat, fstat, fstatfs, open, openat, Access, AtFlags, FileType, Mode, OFlags, Stat, CWD,
};
use std::{
    ffi::{OsStr, OsString},
    fs,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

/// Filesystems that ordinary users may mount on: those with files of users. On others, such as
/// `/proc`, a mount could make other programs believe what the user likes.
const USERS_FILESYSTEMS: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xca45_1a4e, // bcachefs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0x3153_464a, // jfs
    0x5265_4973, // reiserfs
    0x3434,      // nilfs2
    0x7461_636f, // ocfs2
    0x0116_1970, // gfs2
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0xf15f,      // ecryptfs
    0x6573_5546, // fuse, and this client
    0x6969,      // nfs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb
    0x5346_414f, // afs
    0x00c3_6400, // ceph
    0x0102_1997, // 9p
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x7366_746e, // ntfs
    0x786f_4256, // vboxsf
];

/// A place to mount on, held open: what happens to its path after that does not matter.
#[derive(Debug)]
pub struct Mountpoint {
    fd: OwnedFd,
    stat: Stat,
}

/// A path that is the open file itself, whatever has become of the one it was opened by.
fn link_to(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// Where an open file is now.
fn path_of(fd: impl AsFd) -> Result<PathBuf> {
    let link = link_to(fd);
    fs::read_link(&link).step(|| format!("reading {link}"))
}

impl Mountpoint {
    /// Opens `path` with the caller's privileges, and checks whether he may mount on it.
    ///
    /// # Errors
    ///
    /// He may not.
    pub fn open(path: &Path, caller: &Caller) -> Result<Self> {
        let step = || format!("mountpoint {}", path.display());
        let fd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).step(step)?;
        let this = Self {
            stat: fstat(&fd)
                .map_err(|error| not_connected(Error::new(step(), error), path, error))?,
            fd,
        };
        this.check(caller)
            .map_err(|(why, hint)| Error::new(step(), why).hint(hint))?;
        Ok(this)
    }

    fn check(&self, caller: &Caller) -> std::result::Result<(), (&'static str, &'static str)> {
        let file_type = FileType::from_raw_mode(self.stat.st_mode);
        if !matches!(file_type, FileType::Directory | FileType::RegularFile) {
            return Err((
                "neither a directory nor a regular file",
                "take one of those",
            ));
        }
        if caller.is_root() {
            return Ok(());
        }
        let sticky = Mode::from_raw_mode(self.stat.st_mode).contains(Mode::SVTX);
        if sticky && self.stat.st_uid != caller.uid.as_raw() {
            return Err((
                "not yours",
                "make a directory of your own and mount on that",
            ));
        }
        // Asked about the effective user, who is the caller.
        if accessat(CWD, link_to(&self.fd), Access::WRITE_OK, AtFlags::EACCESS).is_err() {
            return Err((
                "you may not write there",
                "mount on a directory of your own",
            ));
        }
        let magic = fstatfs(&self.fd).map(|stat| stat.f_type as u32);
        if !magic.is_ok_and(|magic| USERS_FILESYSTEMS.contains(&magic)) {
            return Err((
                "users may not mount on this type of filesystem",
                "mount on a directory below your home",
            ));
        }
        Ok(())
    }

    /// To mount on it.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The type of the root that a mount there must have, for the option `rootmode`.
    pub fn root_mode(&self) -> u32 {
        FileType::from_raw_mode(self.stat.st_mode).as_raw_mode()
    }
}

/// Says what to do about the mount of a daemon that is gone.
fn not_connected(error: Error, path: &Path, errno: rustix::io::Errno) -> Error {
    match errno {
        rustix::io::Errno::NOTCONN => error.hint(format!(
            "a daemon died and left its mount there: umount {}",
            path.display()
        )),
        _ => error,
    }
}

/// A mount, and the directory that holds the name it is mounted on: no part of the way there can
/// be exchanged any more.
#[derive(Debug)]
pub struct Mounted {
    parent: OwnedFd,
    name: OsString,
    /// What is mounted there.
    pub mount: Mount,
}

impl Mounted {
    /// Finds the mount on `path`, walking with the caller's privileges.
    ///
    /// # Errors
    ///
    /// Nothing is mounted there; the caller may not go there.
    pub fn find(path: &Path) -> Result<Self> {
        let step = || format!("finding what is mounted on {}", path.display());
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // Nothing here asks the daemon, which may be dead or may not answer.
        let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (parent, name) = match (canonical.parent(), canonical.file_name()) {
            (Some(parent), Some(name)) => (parent, name),
            _ => return Err(Error::new(step(), "not a path of a mountpoint")),
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let parent = open(parent, flags | OFlags::DIRECTORY, Mode::empty()).step(step)?;
        let fd = openat(&parent, name, flags | OFlags::NOFOLLOW, Mode::empty()).step(step)?;
        let id = mount_id(&fd)?;
        let full = path_of(&parent)?.join(name);
        let mount = mountinfo::read()?
            .into_iter()
            .find(|mount| mount.id == id && mount.mountpoint == full)
            .ok_or_else(|| Error::new(step(), "nothing is mounted there"))?;
        let name = name.to_owned();
        Ok(Self {
            parent,
            name,
            mount,
        })
    }

    /// The directory above and the name in it, for umount(2).
    pub fn place(&self) -> (&OwnedFd, &OsStr) {
        (&self.parent, &self.name)
    }
}

/// The mount that an open file is in. The filesystem is not asked.
fn mount_id(fd: &OwnedFd) -> Result<u64> {
    let path = format!("/proc/self/fdinfo/{}", fd.as_raw_fd());
    let text = fs::read_to_string(&path).step(|| format!("reading {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
        .ok_or_else(|| Error::new(format!("reading {path}"), "no mnt_id"))
}
