// SPDX-License-Identifier: GPL-2.0

//! The device through which the server serves: one open file each [`Dev`].

use crate::{
    chan::Chan,
    pqueue::Pqueue, //
};
use kernel::{
    fs::{
        file::flags::O_NONBLOCK,
        LocalFile, //
    },
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};
use vfs::{
    cdev,
    iov,
    splice::{
        PipeDest,
        PipeSource, //
    },
    wait::{
        PollTable,
        EPOLLERR,
        EPOLLIN,
        EPOLLOUT,
        EPOLLRDNORM,
        EPOLLWRNORM, //
    }, //
};

mod read;
mod write;

/// How often pages may be faulted in in a row without a byte being copied after it: something takes
/// them away each time.
const MAX_FRUITLESS_FAULTS: u32 = 16;

/// An open device. It serves nothing until a mount is made with it.
pub(crate) struct Dev {
    chan: SetOnce<Arc<Chan>>,
    pqueue: Arc<Pqueue>,
}

impl Dev {
    /// Makes this the device of the server of `chan`. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it serves another mount. `ENOMEM`: not for the first device of a connection.
    pub(crate) fn install(&self, chan: Arc<Chan>) -> Result {
        if !self.chan.populate(chan.clone()) {
            return Err(EINVAL);
        }
        chan.attach(self.pqueue.clone())
    }

    /// The connection that it serves.
    pub(crate) fn chan(&self) -> Option<&Arc<Chan>> {
        self.chan.as_ref()
    }
}

/// The open device that `file` is, if it is one.
pub(crate) fn dev_from_file(file: &LocalFile) -> Option<Arc<Dev>> {
    cdev::data(file)
}

#[vtable]
impl cdev::Operations for Dev {
    fn open() -> Result<Arc<Self>> {
        let dev = Self {
            chan: SetOnce::new(),
            pqueue: Pqueue::new()?,
        };
        Ok(Arc::new(dev, GFP_KERNEL)?)
    }

    fn read_iter(&self, file: &LocalFile, to: &mut IovIterDest<'_>) -> Result<usize> {
        let chan = self.chan().ok_or(EPERM)?;
        if !iov::is_user_dest(to) {
            return Err(EINVAL);
        }
        let nonblock = file.flags() & O_NONBLOCK != 0;
        read::read(chan, &self.pqueue, nonblock, to)
    }

    fn splice_read(&self, file: &LocalFile, to: &mut PipeDest<'_>) -> Result {
        let chan = self.chan().ok_or(EPERM)?;
        let nonblock = file.flags() & O_NONBLOCK != 0;
        read::read(chan, &self.pqueue, nonblock, to)?;
        Ok(())
    }

    fn write_iter(&self, _file: &LocalFile, from: &mut IovIterSource<'_>) -> Result<usize> {
        let chan = self.chan().ok_or(EPERM)?;
        if !iov::is_user_source(from) {
            return Err(EINVAL);
        }
        write::write(chan, &self.pqueue, from)
    }

    /// Pages are copied, whether or not they could be moved (`SPLICE_F_MOVE`): the page cache has
    /// larger folios than a pipe has pages.
    fn splice_write(&self, _file: &LocalFile, from: PipeSource<'_>) -> Result<usize> {
        let chan = self.chan().ok_or(EPERM)?;
        from.take(|from| write::write(chan, &self.pqueue, from))
    }

    fn poll<'file>(&'file self, table: &PollTable<'file>) -> u32 {
        match self.chan().and_then(|chan| chan.poll(table)) {
            None => EPOLLERR,
            Some(false) => EPOLLOUT | EPOLLWRNORM,
            Some(true) => EPOLLOUT | EPOLLWRNORM | EPOLLIN | EPOLLRDNORM,
        }
    }

    fn release(&self) {
        if let Some(chan) = self.chan() {
            chan.detach(&self.pqueue);
        }
    }
}
