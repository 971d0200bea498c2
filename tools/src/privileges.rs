// SPDX-License-Identifier: GPL-2.0

//! The privileges of a program that is installed set-user-ID root.

use crate::error::{Result, Step};
use rustix::{
    process::{getgid, getuid, Gid, Uid},
    thread::set_thread_res_uid,
};

/// For whom the program works. It does so with that user's privileges but where it says otherwise.
///
/// The process has one thread.
#[derive(Debug)]
pub struct Caller {
    /// The user who called it.
    pub uid: Uid,
    /// The user's group.
    pub gid: Gid,
    privileged: bool,
}

impl Caller {
    /// Takes on the caller's privileges.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn assume() -> Result<Self> {
        let this = Self {
            uid: getuid(),
            gid: getgid(),
            privileged: rustix::process::geteuid().is_root(),
        };
        this.act_as(this.uid)?;
        Ok(this)
    }

    /// Is it root himself?
    pub fn is_root(&self) -> bool {
        self.uid.is_root()
    }

    /// May the program do what only root may?
    pub fn privileged(&self) -> bool {
        self.privileged
    }

    fn act_as(&self, euid: Uid) -> Result {
        if !self.privileged {
            return Ok(());
        }
        set_thread_res_uid(None, Some(euid), None).step(|| "changing the effective user ID")
    }

    /// Does `work` as root.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn as_root<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.act_as(Uid::ROOT)?;
        let done = work();
        self.act_as(self.uid)?;
        done
    }
}
