// SPDX-License-Identifier: GPL-2.0

//! `/etc/fuse.conf`: what the administrator allows ordinary users.

use crate::error::{Error, Result};
use std::{fs, io};

/// Where it is, for the in-tree client as for this one.
pub const PATH: &str = "/etc/fuse.conf";

/// The settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Conf {
    /// How many FUSE mounts there may be before an ordinary user is refused another one.
    pub mount_max: usize,
    /// Ordinary users may let others use their mounts.
    pub user_allow_other: bool,
}

impl Default for Conf {
    fn default() -> Self {
        Self {
            mount_max: 1000,
            user_allow_other: false,
        }
    }
}

impl Conf {
    /// The settings in `text`; what is no setting is left to the caller as a list of complaints.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let mut conf = Self::default();
        let mut complaints = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let value = line
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()));
            match (line, value) {
                ("", _) => {}
                ("user_allow_other", _) => conf.user_allow_other = true,
                (_, Some(("mount_max", value))) if value.parse::<usize>().is_ok() => {
                    conf.mount_max = value.parse().unwrap_or(conf.mount_max);
                }
                _ => complaints.push(format!("{PATH}: line {}: not known: {line}", number + 1)),
            }
        }
        (conf, complaints)
    }

    /// Reads the file. None at all is the defaults.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
    pub fn read() -> Result<(Self, Vec<String>)> {
        match fs::read_to_string(PATH) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Default::default()),
            Err(error) => Err(Error::new(format!("reading {PATH}"), error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        let (conf, complaints) =
            Conf::parse("# comment\n\nmount_max = 3 # few\n  user_allow_other\n");
        assert_eq!((conf.mount_max, conf.user_allow_other), (3, true));
        assert!(complaints.is_empty());
    }

    #[test]
    fn defaults_and_complaints() {
        let (conf, complaints) = Conf::parse("#user_allow_other\nmount_max=many\nnonsense\n");
        assert_eq!(conf, Conf::default());
        assert_eq!(complaints.len(), 2);
        assert!(complaints[1].contains("line 3"));
    }
}
