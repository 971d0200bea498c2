// SPDX-License-Identifier: GPL-2.0

//! The device through which the server serves: one open file each [`Dev`].

use crate::{
    chan::Chan,
    pqueue::Pqueue, //
};
use fuse_abi::{
    DEV_IOC_BACKING_CLOSE,
    DEV_IOC_BACKING_OPEN,
    DEV_IOC_CLONE,
    DEV_IOC_SYNC_INIT, //
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
    seq_file::{
        seq_print,
        SeqFile, //
    },
    static_lock_class,
    sync::{
        atomic::{
            ordering::Relaxed,
            AtomicFlag, //
        },
        new_mutex,
        Arc,
        Mutex,
        SetOnce, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};
use vfs::{
    cdev,
    fasync::FasyncList,
    iov,
    splice::{
        PipeDest,
        PipeSource, //
    },
    wait::{
        PollTable,
        WaitQueue,
        EPOLLERR,
        EPOLLIN,
        EPOLLOUT,
        EPOLLRDNORM,
        EPOLLWRNORM, //
    }, //
};

mod read;
mod write;

/// How often in a row something may be prepared for a copy, such as pages faulted in, for nothing:
/// something undoes it each time.
const MAX_FRUITLESS: u32 = 16;

/// Counts attempts in a row that copied nothing.
pub(crate) struct Fruitless(u32);

impl Fruitless {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(0)
    }

    /// An attempt has copied so many bytes. Returns whether to give up.
    pub(crate) fn too_many(&mut self, copied: usize) -> bool {
        self.0 = if copied == 0 {
            self.0.saturating_add(1)
        } else {
            0
        };
        self.0 > MAX_FRUITLESS
    }
}

/// An open device. It serves nothing until a mount is made with it, or it becomes one more device of
/// a connection.
#[pin_data]
pub(crate) struct Dev {
    chan: SetOnce<Arc<Chan>>,
    pqueue: Arc<Pqueue>,
    /// INIT is waited for by the mount, and the mount by whoever uses the device.
    sync_init: AtomicFlag,
    /// Held while `chan` or `sync_init` is set.
    #[pin]
    setup: Mutex<()>,
    /// Woken when `chan` is set.
    #[pin]
    connected: WaitQueue,
}

impl Dev {
    /// Makes this a device of the server of `chan`. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it serves a mount. `ENOMEM`: not for the first device of a connection.
    pub(crate) fn install(&self, chan: Arc<Chan>) -> Result {
        let setup = self.setup.lock();
        if self.chan().is_some() {
            return Err(EINVAL);
        }
        chan.attach(self.pqueue.clone())?;
        self.chan.populate(chan);
        drop(setup);
        self.connected.wake_all();
        Ok(())
    }

    /// The connection that it serves.
    pub(crate) fn chan(&self) -> Option<&Arc<Chan>> {
        self.chan.as_ref()
    }

    /// Whether the mount is to wait for the answer to INIT.
    pub(crate) fn is_sync_init(&self) -> bool {
        self.sync_init.load(Relaxed)
    }

    /// The connection that it serves; waits for it, if the mount waits for INIT: the server then
    /// reads before it mounts. Sleeps.
    ///
    /// # Errors
    ///
    /// `EPERM`: none. `ERESTARTSYS`: a signal.
    fn connected(&self) -> Result<&Arc<Chan>> {
        if let Some(chan) = self.chan() {
            return Ok(chan);
        }
        if !self.is_sync_init() {
            return Err(EPERM);
        }
        self.connected.wait_interruptible(|| self.chan())
    }

    /// `FUSE_DEV_IOC_CLONE`: becomes one more device of the connection of another one, whose file
    /// descriptor is at `arg`.
    fn clone_from(&self, arg: usize) -> Result {
        let arg = UserSlice::new(UserPtr::from_addr(arg), size_of::<u32>());
        let fd = arg.reader().read::<u32>()?;
        let other = LocalFile::fget(fd).map_err(|_| EINVAL)?;
        let other = dev_from_file(&other).ok_or(EINVAL)?;
        self.install(other.connected()?.clone())
    }

    /// `FUSE_DEV_IOC_SYNC_INIT`.
    fn set_sync_init(&self) -> Result {
        let _setup = self.setup.lock();
        if self.chan().is_some() {
            return Err(EINVAL);
        }
        self.sync_init.store(true, Relaxed);
        Ok(())
    }
}

/// The open device that `file` is, if it is one.
pub(crate) fn dev_from_file(file: &LocalFile) -> Option<Arc<Dev>> {
    cdev::data(file)
}

#[vtable]
impl cdev::Operations for Dev {
    fn open() -> Result<Arc<Self>> {
        let pqueue = Pqueue::new()?;
        Arc::pin_init(
            pin_init!(Self {
                chan: SetOnce::new(),
                pqueue,
                sync_init: AtomicFlag::new(false),
                setup <- new_mutex!((), "fuse_rs_dev"),
                connected <- WaitQueue::new(c"fuse_rs_connected", static_lock_class!()),
            }),
            GFP_KERNEL,
        )
    }

    fn read_iter(&self, file: &LocalFile, to: &mut IovIterDest<'_>) -> Result<usize> {
        let chan = self.connected()?;
        if !iov::is_user_dest(to) {
            return Err(EINVAL);
        }
        let nonblock = file.flags() & O_NONBLOCK != 0;
        read::read(chan, &self.pqueue, nonblock, to)
    }

    fn splice_read(&self, file: &LocalFile, to: &mut PipeDest<'_>) -> Result {
        let chan = self.connected()?;
        let nonblock = file.flags() & O_NONBLOCK != 0;
        read::read(chan, &self.pqueue, nonblock, to)?;
        Ok(())
    }

    fn write_iter(&self, _file: &LocalFile, from: &mut IovIterSource<'_>) -> Result<usize> {
        let chan = self.connected()?;
        if !iov::is_user_source(from) {
            return Err(EINVAL);
        }
        write::write(chan, &self.pqueue, from)
    }

    /// Pages are copied, whether or not they could be moved (`SPLICE_F_MOVE`): the page cache has
    /// larger folios than a pipe has pages.
    fn splice_write(&self, _file: &LocalFile, from: PipeSource<'_>) -> Result<usize> {
        let chan = self.connected()?;
        from.take(|from| write::write(chan, &self.pqueue, from))
    }

    fn poll<'file>(&'file self, table: &PollTable<'file>) -> u32 {
        match self.chan().and_then(|chan| chan.poll(table)) {
            None => EPOLLERR,
            Some(false) => EPOLLOUT | EPOLLWRNORM,
            Some(true) => EPOLLOUT | EPOLLWRNORM | EPOLLIN | EPOLLRDNORM,
        }
    }

    fn ioctl(&self, _file: &LocalFile, cmd: u32, arg: usize) -> Result {
        match cmd {
            DEV_IOC_CLONE => self.clone_from(arg),
            DEV_IOC_SYNC_INIT => self.set_sync_init(),
            // As for any server with which no passthrough was agreed on.
            DEV_IOC_BACKING_OPEN | DEV_IOC_BACKING_CLOSE => Err(EPERM),
            _ => Err(ENOTTY),
        }
    }

    fn fasync(&self) -> Option<&FasyncList> {
        Some(self.chan()?.fasync())
    }

    fn show_fdinfo(&self, seq: &SeqFile) {
        if let Some(chan) = self.chan() {
            seq_print!(seq, "fuse_connection:\t{}\n", chan.connection());
        }
    }

    fn release(&self) {
        if let Some(chan) = self.chan() {
            chan.detach(&self.pqueue);
        }
    }
}
