// SPDX-License-Identifier: GPL-2.0

//! Mounting and unmounting.

use crate::{
    conf::{self, Conf},
    error::{Error, Result, Step},
    mountinfo,
    mountpoint::{Mounted, Mountpoint},
    options::Options,
    privileges::Caller,
    DEVICE, FS_TYPE,
};
use rustix::{
    fs::{flock, open, FlockOperation, Mode, OFlags},
    io::Errno,
    mount::{
        fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount,
        unmount, FsMountFlags, FsOpenFlags, MoveMountFlags, UnmountFlags,
    },
    process::fchdir,
};
use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};

/// Opens the device that a daemon is to have.
///
/// # Errors
///
/// The module is not there.
pub fn open_device() -> Result<OwnedFd> {
    open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
        let error = Error::new(format!("opening {DEVICE}"), errno);
        match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => error
                .hint("load the module: insmod fuse_rs.ko; with dropin=1 daemons need no helper"),
            Errno::ACCESS => error.hint(format!("chmod 666 {DEVICE}")),
            _ => error,
        }
    })
}

/// What fuse.conf says about a mount of an ordinary user. `mounts` is how many there are.
///
/// # Errors
///
/// It is not allowed.
fn permit(options: &Options, conf: &Conf, mounts: usize) -> Result {
    if options.allow_other && !conf.user_allow_other {
        return Err(Error::new(
            "option allow_other",
            "only allowed if 'user_allow_other' is set in /etc/fuse.conf",
        ));
    }
    if mounts >= conf.mount_max {
        return Err(Error::new(
            "mounting",
            format!(
                "there are {mounts} FUSE mounts, and users are allowed {}",
                conf.mount_max
            ),
        )
        .hint(format!("unmount one, or set mount_max in {}", conf::PATH)));
    }
    Ok(())
}

/// What the kernel has to say about a mount that failed.
fn kernel_log(context: &OwnedFd) -> String {
    let mut lines = Vec::new();
    let mut buffer = [0; 512];
    while let Ok(len) = rustix::io::read(context, &mut buffer) {
        let line = String::from_utf8_lossy(&buffer[..len]);
        // "e " is an error, "w " a warning.
        lines.push(line.trim_end().get(2..).unwrap_or_default().to_owned());
    }
    lines.join("; ")
}

/// Only one of these programs at a time counts and unmounts what ordinary users have, so that
/// what it found out is still true when it acts. Held until the file is closed.
fn lock(caller: &Caller) -> Result<Option<OwnedFd>> {
    const PATH: &str = "/run/fuse_rs.lock";
    if caller.is_root() || !caller.privileged() {
        return Ok(None);
    }
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = caller.as_root(|| {
        open(PATH, flags, Mode::RUSR | Mode::WUSR).step(|| format!("opening {PATH}"))
    })?;
    flock(&file, FlockOperation::LockExclusive).step(|| format!("locking {PATH}"))?;
    Ok(Some(file))
}

/// Mounts on `path` for `caller` and returns the device that the daemon serves it by.
///
/// # Errors
///
/// The module is not loaded; the caller may not do that; the kernel refuses.
pub fn mount(path: &Path, mut options: Options, caller: &Caller) -> Result<OwnedFd> {
    let mountpoint = Mountpoint::open(path, caller)?;
    let _lock = lock(caller)?;
    if !caller.is_root() {
        let (conf, complaints) = Conf::read()?;
        complaints
            .iter()
            .for_each(|complaint| eprintln!("{complaint}"));
        let mounts = mountinfo::read()?
            .iter()
            .filter(|mount| mount.is_fuse())
            .count();
        permit(&options, &conf, mounts)?;
        options.restrict();
    }
    let device = open_device()?;
    caller.as_root(|| attach(&mountpoint, &options, &device, caller))?;
    Ok(device)
}

/// The system calls that only root may do.
fn attach(mountpoint: &Mountpoint, options: &Options, device: &OwnedFd, caller: &Caller) -> Result {
    let failed = |what: &str, errno: Errno, why: &str| {
        let why = if why.is_empty() {
            errno.to_string()
        } else {
            format!("{why}: {errno}")
        };
        let error = Error::new(what, why);
        match errno {
            Errno::PERM => error.hint("fusermount3 of fuse_rs must be installed set-user-ID root"),
            Errno::NODEV => error.hint("load the module: insmod fuse_rs.ko"),
            _ => error,
        }
    };
    let context = fsopen(FS_TYPE, FsOpenFlags::FSOPEN_CLOEXEC)
        .map_err(|errno| failed("opening a filesystem of type fuse_rs", errno, ""))?;
    let mut values = vec![
        ("source", options.source().to_owned()),
        ("fd", device.as_fd().as_raw_fd().to_string()),
        ("rootmode", format!("{:o}", mountpoint.root_mode())),
        ("user_id", caller.uid.as_raw().to_string()),
        ("group_id", caller.gid.as_raw().to_string()),
    ];
    values.extend(
        options
            .subtype
            .iter()
            .map(|subtype| ("subtype", subtype.clone())),
    );
    values.extend(options.values.iter().cloned());
    for (key, value) in &values {
        fsconfig_set_string(&context, *key, value).map_err(|errno| {
            failed(
                &format!("option {key}={value}"),
                errno,
                &kernel_log(&context),
            )
        })?;
    }
    let mut flags = options.flags.clone();
    flags.extend(options.allow_other.then_some("allow_other"));
    flags.extend(options.default_permissions.then_some("default_permissions"));
    for flag in flags {
        fsconfig_set_flag(&context, flag)
            .map_err(|errno| failed(&format!("option {flag}"), errno, &kernel_log(&context)))?;
    }
    fsconfig_create(&context)
        .map_err(|errno| failed("making the filesystem", errno, &kernel_log(&context)))?;
    let mount = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        options.attributes.bits(),
    )
    .map_err(|errno| failed("mounting", errno, &kernel_log(&context)))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&mount, "", mountpoint.fd(), "", flags)
        .map_err(|errno| failed("attaching the mount", errno, ""))
}

/// Unmounts what is on `path`, if `caller` may: an ordinary user only his own mounts of fuse_rs.
/// If it must be a certain mount, `only` is its number.
///
/// # Errors
///
/// It is none of his; it is in use and not to be left to its users (`lazy`).
pub fn unmount_for(path: &Path, lazy: bool, only: Option<u64>, caller: &Caller) -> Result {
    let _lock = lock(caller)?;
    let mounted = Mounted::find(path)?;
    let step = || format!("unmounting {}", path.display());
    if only.is_some_and(|id| id != mounted.mount.id) {
        return Err(Error::new(step(), "something else is mounted there by now"));
    }
    if !mounted.mount.is_ours() {
        return Err(Error::new(
            step(),
            format!("a mount of type {}, not of fuse_rs", mounted.mount.fs_type),
        )
        .hint("umount or fusermount3 -u of libfuse do that"));
    }
    if !caller.is_root() && mounted.mount.user_id() != Some(caller.uid.as_raw()) {
        return Err(Error::new(step(), "mounted by another user"));
    }
    let (parent, name) = mounted.place();
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazy);
    caller.as_root(|| {
        fchdir(parent).step(step)?;
        unmount(name, flags).map_err(|errno| {
            let error = Error::new(step(), errno);
            match errno {
                Errno::BUSY => error.hint("somebody uses it; -z leaves it to them and hides it"),
                Errno::PERM => {
                    error.hint("fusermount3 of fuse_rs must be installed set-user-ID root")
                }
                _ => error,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(list: &str, conf: &Conf, mounts: usize) -> bool {
        let mut options = Options::default();
        options.add(list).expect("known options");
        permit(&options, conf, mounts).is_ok()
    }

    #[test]
    fn fuse_conf() {
        let strict = Conf {
            mount_max: 2,
            user_allow_other: false,
        };
        assert!(allowed("ro", &strict, 1));
        assert!(!allowed("ro", &strict, 2));
        assert!(!allowed("allow_other", &strict, 0));
        let lenient = Conf {
            user_allow_other: true,
            ..Conf::default()
        };
        assert!(allowed("allow_other", &lenient, 999));
        assert!(!allowed("allow_other", &lenient, 1000));
    }
}
