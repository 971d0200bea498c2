// SPDX-License-Identifier: GPL-2.0

//! The talk between a daemon and fusermount3: the device goes over the socket that
//! `_FUSE_COMMFD` names; with `auto_unmount` the socket's end is the daemon's end.

use crate::error::{Error, Result, Step};
use rustix::{
    io::Errno,
    net::{recv, sendmsg, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags},
    process::{getpid, pidfd_getfd, pidfd_open, PidfdFlags, PidfdGetfdFlags},
};
use std::{
    env,
    io::IoSlice,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

/// The environment variable with the number of the socket.
pub const COMM_FD: &str = "_FUSE_COMMFD";

/// The socket to the daemon.
#[derive(Debug)]
pub struct Comm(OwnedFd);

impl Comm {
    /// The one that the environment names.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn from_env() -> Result<Self> {
        let step = || format!("socket of the daemon ({COMM_FD})");
        let number = env::var(COMM_FD)
            .step(step)
            .map_err(|error| error.hint("to mount is for daemons to ask; users run fuse_rs-run"))?;
        let number = number.parse().step(step)?;
        // A number that others chose is no OwnedFd; what this gives is.
        let this = pidfd_open(getpid(), PidfdFlags::empty()).step(step)?;
        Ok(Self(
            pidfd_getfd(this, number, PidfdGetfdFlags::empty()).step(step)?,
        ))
    }

    /// Hands over the device.
    ///
    /// # Errors
    ///
    /// The daemon is gone, or the socket is none.
    pub fn send(&self, device: impl AsFd) -> Result {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [device.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        // One byte, as a message without any carries nothing.
        sendmsg(
            &self.0,
            &[IoSlice::new(&[0])],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )
        .step(|| "sending the device to the daemon")?;
        Ok(())
    }

    /// Waits until the daemon and all who have its end of the socket are gone.
    ///
    /// # Errors
    ///
    /// The socket is none.
    pub fn wait_end(&self) -> Result {
        let mut byte = [0u8];
        loop {
            match recv(&self.0, &mut byte, RecvFlags::empty()) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::new("waiting for the daemon's end", errno)),
            }
        }
    }
}
