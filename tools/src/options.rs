// SPDX-License-Identifier: GPL-2.0

//! Mount options as daemons pass them to fusermount3.

use crate::error::{Error, Result};
use rustix::mount::MountAttrFlags;

/// What is asked for by `-o`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `nosuid`, `nodev` and other attributes of the mount.
    pub attributes: MountAttributes,
    /// Flags of the filesystem: `ro`, `sync`, `dirsync`.
    pub flags: Vec<&'static str>,
    /// Options with a value for the client, by name.
    pub values: Vec<(&'static str, String)>,
    /// `allow_other`.
    pub allow_other: bool,
    /// `default_permissions`.
    pub default_permissions: bool,
    /// What the list of mounts shows as source.
    pub fsname: Option<String>,
    /// What it shows after `fuse_rs.`.
    pub subtype: Option<String>,
    /// Unmount when the daemon is gone.
    pub auto_unmount: bool,
}

/// The attributes of a mount that can be switched by an option.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct MountAttributes(MountAttrFlags);

impl Default for MountAttributes {
    /// Neither set-user-ID programs nor devices, unless asked for.
    fn default() -> Self {
        Self(MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
    }
}

impl MountAttributes {
    /// For fsmount(2).
    pub fn bits(self) -> MountAttrFlags {
        self.0
    }
}

/// The bits that an option sets and clears.
fn attribute(name: &str) -> Option<(MountAttrFlags, MountAttrFlags)> {
    use MountAttrFlags as F;
    let none = F::empty();
    Some(match name {
        "suid" => (none, F::MOUNT_ATTR_NOSUID),
        "nosuid" => (F::MOUNT_ATTR_NOSUID, none),
        "dev" => (none, F::MOUNT_ATTR_NODEV),
        "nodev" => (F::MOUNT_ATTR_NODEV, none),
        "exec" => (none, F::MOUNT_ATTR_NOEXEC),
        "noexec" => (F::MOUNT_ATTR_NOEXEC, none),
        "atime" | "relatime" => (none, F::MOUNT_ATTR__ATIME),
        "noatime" => (F::MOUNT_ATTR_NOATIME, F::MOUNT_ATTR__ATIME),
        "strictatime" => (F::MOUNT_ATTR_STRICTATIME, F::MOUNT_ATTR__ATIME),
        "diratime" => (none, F::MOUNT_ATTR_NODIRATIME),
        "nodiratime" => (F::MOUNT_ATTR_NODIRATIME, none),
        _ => return None,
    })
}

/// Splits at commas but those after a backslash. The words keep their backslashes.
pub fn raw_words(list: &str) -> Vec<&str> {
    let mut escaped = false;
    let at_comma = |c: char| {
        let split = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        split
    };
    list.split(at_comma)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Splits at commas; a backslash takes the character after it as it is.
pub fn split(list: &str) -> Vec<String> {
    let unescape = |word: &str| {
        let mut chars = word.chars();
        let next = || match chars.next()? {
            '\\' => chars.next(),
            c => Some(c),
        };
        std::iter::from_fn(next).collect()
    };
    raw_words(list).into_iter().map(unescape).collect()
}

impl Options {
    /// Takes in one list of options.
    ///
    /// # Errors
    ///
    /// One of them is not known, or cannot be had.
    pub fn add(&mut self, list: &str) -> Result {
        split(list)
            .iter()
            .try_for_each(|option| self.add_one(option))
    }

    fn flag(&mut self, name: &'static str, on: bool) {
        self.flags.retain(|&flag| flag != name);
        if on {
            self.flags.push(name);
        }
    }

    fn add_one(&mut self, option: &str) -> Result {
        if let Some((set, clear)) = attribute(option) {
            self.attributes.0 = (self.attributes.0 - clear) | set;
            return Ok(());
        }
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        match (name, value) {
            ("rw", None) => self.flag("ro", false),
            ("ro", None) => self.flag("ro", true),
            ("async", None) => self.flag("sync", false),
            ("sync", None) => self.flag("sync", true),
            ("dirsync", None) => self.flag("dirsync", true),
            ("allow_other", None) => self.allow_other = true,
            ("default_permissions", None) => self.default_permissions = true,
            ("auto_unmount", None) => self.auto_unmount = true,
            ("max_read", Some(value)) => self.values.push(("max_read", value.into())),
            ("fsname", Some(value)) => self.fsname = Some(value.into()),
            ("subtype", Some(value)) => self.subtype = Some(value.into()),
            ("blkdev", _) => {
                return Err(Error::new("option blkdev", "fuse_rs has no fuseblk yet")
                    .hint("give the daemon an image file, or use the in-tree client"))
            }
            // What only this program knows, whatever the daemon thinks.
            ("fd" | "rootmode" | "user_id" | "group_id", Some(_)) => {}
            // libfuse 2 asks here not to look; this program never looked.
            ("nonempty", None) => {}
            // For other programs that read the list of mounts.
            _ if name.starts_with("x-") => {}
            _ => {
                return Err(Error::new(format!("option {option}"), "not known")
                    .hint("known are those of fusermount3(1) and mount.fuse3(8)"))
            }
        }
        Ok(())
    }

    /// What is shown as source.
    pub fn source(&self) -> &str {
        self.fsname
            .as_deref()
            .or(self.subtype.as_deref())
            .unwrap_or(crate::DEVICE)
    }

    /// What an ordinary user gets whatever he asks for.
    pub fn restrict(&mut self) {
        self.attributes.0 |= MountAttributes::default().0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(list: &str) -> Options {
        let mut options = Options::default();
        options.add(list).expect("known options");
        options
    }

    #[test]
    fn splitting() {
        assert_eq!(split("a,b=c\\,d\\\\e,,f"), ["a", "b=c,d\\e", "f"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn usual() {
        let o = options("rw,nosuid,nodev,fsname=a\\,b,subtype=sshfs,max_read=4096,allow_other");
        assert_eq!(o.source(), "a,b");
        assert_eq!(o.subtype.as_deref(), Some("sshfs"));
        assert_eq!(o.values, [("max_read", "4096".to_owned())]);
        assert!(o.allow_other && !o.default_permissions && o.flags.is_empty());
    }

    #[test]
    fn the_last_one_counts() {
        let o = options("ro,rw,sync,async,suid,dev,noatime,strictatime");
        assert!(o.flags.is_empty());
        assert_eq!(o.attributes.bits(), MountAttrFlags::MOUNT_ATTR_STRICTATIME);
        assert_eq!(options("rw,ro,ro").flags, ["ro"]);
    }

    #[test]
    fn users_are_restricted() {
        let mut o = options("suid,dev,noexec");
        o.restrict();
        assert_eq!(
            o.attributes.bits(),
            MountAttributes::default().bits() | MountAttrFlags::MOUNT_ATTR_NOEXEC
        );
    }

    #[test]
    fn refused() {
        for list in ["nonsense", "max_read", "ro=1", "blkdev", "allow_other=1"] {
            assert!(Options::default().add(list).is_err(), "{list}");
        }
        assert_eq!(options("fd=5,user_id=0,x-gvfs-hide"), Options::default());
    }
}
