// SPDX-License-Identifier: GPL-2.0

//! What the server tells unasked.

use super::Chan;
use fuse_abi::NotifyCode;
use kernel::{
    iov::IovIterSource,
    prelude::*,
    sync::Arc, //
};

/// Carries out notifications about files, of which the transport knows nothing.
pub(crate) trait Notified: Send + Sync {
    /// Carries out a notification, of whose `len` bytes none is taken from `from` yet. No locks
    /// held; sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it is malformed. `EFAULT`: the server's memory can't be read. `EINTR`: a fatal
    /// signal. Others: what the server's write(2) returns.
    fn notify(&self, code: NotifyCode, len: usize, from: &mut IovIterSource<'_>) -> Result;
}

impl Chan {
    /// Says who takes notifications; at most once, before INIT is sent.
    pub(crate) fn set_notified(&self, notified: Arc<dyn Notified>) {
        self.notified.populate(notified);
    }

    /// Takes a notification, of whose `len` bytes none is taken from `from` yet. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: INIT is not answered, or the connection has ended. Those of [`Notified::notify`].
    pub(crate) fn notify(
        &self,
        code: NotifyCode,
        len: usize,
        from: &mut IovIterSource<'_>,
    ) -> Result {
        if !matches!(self.iqueue.lock().admits(false), Some(Ok(()))) {
            return Err(EINVAL);
        }
        match code {
            NotifyCode::Resend => self.resend(),
            _ => {
                let notified = self.notified.as_ref().ok_or(EINVAL)?;
                notified.notify(code, len, from)
            }
        }
    }
}
