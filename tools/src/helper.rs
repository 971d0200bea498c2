// SPDX-License-Identifier: GPL-2.0

//! What mount(8) says to its helpers, and what a daemon is told of it.

use crate::{
    error::{Error, Result},
    options, BLK_TYPE, FS_TYPE,
};
use std::ffi::OsString;

/// A daemon with its arguments, the mountpoint among them.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// The daemon's name.
    pub daemon: String,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Words of fstab that are for mount(8), systemd and others, and that daemons do not know.
fn for_others(option: &str) -> bool {
    const WORDS: &[&str] = &[
        "auto", "noauto", "user", "nouser", "users", "nousers", "owner", "noowner", "group",
        "nogroup", "nofail", "_netdev", "defaults", "silent", "loud",
    ];
    const PREFIXES: &[&str] = &["x-", "X-", "comment=", "helper=", "uhelper=", "user="];
    WORDS.contains(&option) || PREFIXES.iter().any(|prefix| option.starts_with(prefix))
}

/// The call that `source`, `target`, the options and the type (`fuse_rs.DAEMON`) ask for. Without
/// a subtype the source names the daemon: `DAEMON#SOURCE` or just `DAEMON`.
///
/// # Errors
///
/// There is no daemon's name.
pub fn call(fs_type: &str, source: &str, target: &OsString, options: &str) -> Result<Call> {
    let (base, subtype) = fs_type.split_once('.').unwrap_or((fs_type, ""));
    if base == BLK_TYPE {
        return Err(
            Error::new(format!("type {fs_type}"), "fuse_rs has no fuseblk yet").hint(format!(
                "write {FS_TYPE}.{subtype} and an image file, or use the in-tree client"
            )),
        );
    }
    let (daemon, source) = match (subtype, source.split_once('#')) {
        ("", Some((daemon, source))) => (daemon, source),
        ("", None) => (source, ""),
        (subtype, _) => (subtype, source),
    };
    if daemon.is_empty() || daemon == "none" {
        return Err(
            Error::new("finding out which daemon to run", "no name is given").hint(format!(
                "mount -t {FS_TYPE}.DAEMON SOURCE DIR, or -t {FS_TYPE} DAEMON#SOURCE DIR"
            )),
        );
    }
    let mut args: Vec<OsString> = Vec::new();
    if !source.is_empty() {
        args.push(source.into());
    }
    args.push(target.into());
    // As they are written: what is escaped stays so for the daemon.
    let options: Vec<_> = options::raw_words(options)
        .into_iter()
        .filter(|option| !for_others(option))
        .collect();
    if !options.is_empty() {
        args.extend(["-o".into(), options.join(",").into()]);
    }
    let daemon = daemon.to_owned();
    Ok(Call { daemon, args })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fs_type: &str, source: &str, options: &str) -> String {
        let call = call(fs_type, source, &"/mnt".into(), options).expect("a daemon");
        let args: Vec<_> = call.args.iter().map(|arg| arg.to_string_lossy()).collect();
        format!("{} {}", call.daemon, args.join(" "))
    }

    #[test]
    fn lines_of_fstab() {
        assert_eq!(
            line("fuse_rs.sshfs", "h:/a#b", "rw"),
            "sshfs h:/a#b /mnt -o rw"
        );
        assert_eq!(line("fuse_rs", "bindfs#/src", ""), "bindfs /src /mnt");
        assert_eq!(
            line("fuse_rs", "passthrough_ll#", "source=/src"),
            "passthrough_ll /mnt -o source=/src"
        );
        assert_eq!(
            line("fuse_rs", "gocryptfs#/c", "defaults,noauto"),
            "gocryptfs /c /mnt"
        );
    }

    #[test]
    fn options_of_others() {
        assert_eq!(
            line(
                "fuse_rs.x",
                "s",
                "user,nofail,x-systemd.automount,ro,fsname=a\\,b,_netdev,nosuid"
            ),
            "x s /mnt -o ro,fsname=a\\,b,nosuid"
        );
    }

    #[test]
    fn no_daemon() {
        for (fs_type, source) in [
            ("fuse_rs", ""),
            ("fuse_rs", "none"),
            ("fuseblk_rs.ntfs", "/d"),
        ] {
            assert!(call(fs_type, source, &"/mnt".into(), "").is_err());
        }
    }
}
