// SPDX-License-Identifier: GPL-2.0

//! Open files: OPEN, FLUSH, RELEASE, and which way their data is read.

mod direct;
mod ioctl;
mod lock;
mod read;

pub(crate) use ioctl::ioctl;
pub(crate) use read::read_args;

use crate::{
    attr,
    chan::Chan,
    inode::{
        self,
        conn,
        nodeid,
        INode, //
    },
    poll::{
        self,
        Polled, //
    },
    req::{
        Args,
        Completion,
        Creds,
        Prepared,
        Reply,
        Sink, //
    },
    super_block::Fuse, //
};
use fuse_abi::{
    FlushIn,
    FsyncFlags,
    FsyncIn,
    InitFlags,
    LseekIn,
    LseekOut,
    Opcode,
    OpenFlags,
    OpenIn,
    OpenOut,
    ReleaseFlags,
    ReleaseIn,
    Reply as _, //
};
use kernel::{
    fs::file::flags,
    iov::IovIterDest,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc,
        ArcBorrow,
        SetOnce, //
    }, //
};
use vfs::{
    address_space,
    attr::{
        fields,
        FileType, //
    },
    file::{
        self,
        Whence, //
    },
    kiocb::{
        Kiocb,
        Transferred, //
    },
    lock::{
        Command,
        Lock,
        LockOwner,
        Taken, //
    },
    wait::PollTable, //
};

pub(crate) type File = vfs::file::File<Fuse>;

pub(crate) const FOPS: file::Ops<Fuse> = file::Ops::new::<Regular>();
pub(crate) const AOPS: address_space::Ops<Fuse> = address_space::Ops::iomap_read::<read::Reader>();

/// A file or directory that is open at the server.
///
/// Shared by the VFS's open file and the reads in flight. RELEASE is sent when the last of them is
/// gone; the memory for it, and a reference to the inode, are held from the start, so that a read
/// that ends is never the last to hold the inode while other pages of it are being read.
pub(crate) struct OpenFile {
    chan: Arc<Chan>,
    fh: u64,
    /// `O_*` of the open file, as they were when it was closed.
    flags: Atomic<u32>,
    open_flags: OpenFlags,
    /// Whether locks of flock(2) were asked for.
    flock: Atomic<bool>,
    /// Their owner, as the server knows it, once the file is closed.
    flock_owner: Atomic<u64>,
    /// None if the server does not keep state for open files.
    release: Option<Prepared>,
    /// Since it was polled first.
    pub(crate) polled: SetOnce<Arc<Polled>>,
    inode: ARef<INode>,
}

impl OpenFile {
    /// The server's handle.
    pub(crate) fn fh(&self) -> u64 {
        self.fh
    }

    /// `file` is closed. RELEASE is sent once its reads are over.
    pub(crate) fn release(self: Arc<Self>, file: &File) {
        self.flags.store(file.flags(), Relaxed);
        if self.flock.load(Relaxed) {
            let owner = conn(&self.inode).lock_owner(LockOwner::of(file));
            self.flock_owner.store(owner, Relaxed);
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(mut release) = self.release.take() else {
            return;
        };
        let mut release_flags = ReleaseFlags::empty();
        release_flags.set(ReleaseFlags::FLOCK_UNLOCK, self.flock.load(Relaxed));
        let arg = ReleaseIn {
            release_flags,
            lock_owner: self.flock_owner.load(Relaxed),
            fh: self.fh,
            flags: self.flags.load(Relaxed),
        };
        // The argument has the length that it was prepared with.
        if release.set_arg(&arg).is_ok() {
            self.chan.send_background(release);
        }
    }
}

/// Keeps the inode until RELEASE is answered.
struct Released {
    _inode: ARef<INode>,
}

impl Completion for Released {
    fn complete(self: KBox<Self>, _result: Result<Reply>) {}
}

/// The open file behind `file`.
///
/// # Errors
///
/// `EBADF` if it is not open.
pub(crate) fn open_file(file: &File) -> Result<ArcBorrow<'_, OpenFile>> {
    file.info().ok_or(EBADF)
}

/// Opens a file or directory at the server. Sleeps.
pub(crate) fn open(inode: &INode, file: &File, is_dir: bool) -> Result<Arc<OpenFile>> {
    inode::check_good(inode)?;
    let conn = conn(inode);
    let (opcode, release, unsupported) = if is_dir {
        (Opcode::Opendir, Opcode::Releasedir, &conn.no_opendir)
    } else {
        (Opcode::Open, Opcode::Release, &conn.no_open)
    };
    let creds = conn.creds()?;
    let args = Args::forced(release, nodeid(inode), Creds::NONE).arg(&ReleaseIn::default())?;
    let done = KBox::new(
        Released {
            _inode: inode.into(),
        },
        GFP_KERNEL,
    )?;
    let release = conn.chan().prepare_background(args, Some(done))?;

    let flags = file.flags() & !(flags::O_CREAT | flags::O_EXCL | flags::O_NOCTTY | flags::O_TRUNC);
    let out = unsupported.unless(|| {
        let args = Args::new(opcode, nodeid(inode), creds)
            .arg(&OpenIn {
                flags,
                ..OpenIn::default()
            })?
            .sink(Sink::exactly(OpenOut::wire_size(conn.minor())));
        let reply = conn.chan().send(args)?;
        OpenOut::parse(reply.bytes(), conn.minor()).map_err(|_| EIO)
    })?;
    let open = OpenFile {
        chan: conn.chan().clone(),
        fh: out.map_or(0, |out| out.fh),
        flags: Atomic::new(flags),
        flock: Atomic::new(false),
        flock_owner: Atomic::new(0),
        open_flags: out.map_or(OpenFlags::KEEP_CACHE, |out| out.open_flags),
        release: out.map(|_| release),
        polled: SetOnce::new(),
        inode: inode.into(),
    };
    apply_open_flags(file, open.open_flags, is_dir);
    Ok(Arc::new(open, GFP_KERNEL)?)
}

/// Makes `file` seekable or not, as the server wants it. A directory always has a position, which
/// only a file that is no stream has locked during getdents(2).
fn apply_open_flags(file: &File, open_flags: OpenFlags, is_dir: bool) {
    if open_flags.contains(OpenFlags::STREAM) && !is_dir {
        file.set_stream();
    } else if open_flags.intersects(OpenFlags::NONSEEKABLE | OpenFlags::STREAM) {
        file.set_nonseekable();
    }
}

/// Asks the server to make a file or directory durable. Sleeps.
pub(crate) fn fsync(file: &File, datasync: bool, is_dir: bool) -> Result {
    let inode = file.inode();
    inode::check_good(inode)?;
    let conn = conn(inode);
    let (opcode, unsupported) = if is_dir {
        (Opcode::Fsyncdir, &conn.no_fsyncdir)
    } else {
        (Opcode::Fsync, &conn.no_fsync)
    };
    let mut arg = FsyncIn {
        fh: open_file(file)?.fh,
        ..FsyncIn::default()
    };
    arg.fsync_flags.set(FsyncFlags::FDATASYNC, datasync);
    unsupported.unless(|| {
        let args = Args::new(opcode, nodeid(inode), conn.creds()?).arg(&arg)?;
        conn.chan().send(args)
    })?;
    Ok(())
}

/// Asks the server where data or a hole begins, at or behind `offset`; none if it does not know of
/// holes. Sleeps.
fn seek_data(file: &File, offset: i64, whence: Whence) -> Result<Option<i64>> {
    let inode = file.inode();
    let conn = conn(inode);
    conn.no_lseek.unless(|| {
        let args = Args::new(Opcode::Lseek, nodeid(inode), conn.creds()?)
            .arg(&LseekIn {
                fh: open_file(file)?.fh,
                offset: offset as u64,
                whence: whence.as_raw(),
                ..LseekIn::default()
            })?
            .sink(Sink::exactly(LseekOut::wire_size(conn.minor())));
        let reply = conn.chan().send(args)?;
        let out = LseekOut::parse(reply.bytes(), conn.minor()).map_err(|_| EIO)?;
        // A position that no file has is refused as one.
        out.offset().map_err(|_| EINVAL)
    })
}

/// Before a read up to `end`: makes sure of the size, and returns whether it counts, as the file is
/// read through the page cache. Sleeps.
fn begin_read(file: &File, end: i64) -> Result<bool> {
    let inode = file.inode();
    inode::check_good(inode)?;
    let open = open_file(file)?;
    if open.open_flags.contains(OpenFlags::DIRECT_IO) {
        return Ok(false);
    }
    let auto_inval = conn(inode).features().contains(InitFlags::AUTO_INVAL_DATA);
    if auto_inval || end > inode.size() {
        attr::refresh(inode, Some(&*open), fields::SIZE)?;
    }
    Ok(true)
}

/// The operations of regular files.
struct Regular;

#[vtable]
impl file::Operations for Regular {
    type FileSystem = Fuse;

    const FILE_TYPE: FileType = FileType::Regular;

    fn open(inode: &INode, file: &File) -> Result<Arc<OpenFile>> {
        let open = open(inode, file, false)?;
        if !open
            .open_flags
            .intersects(OpenFlags::KEEP_CACHE | OpenFlags::DIRECT_IO)
        {
            // What another open file still maps stays.
            let _ = inode.mapping().invalidate_pages2();
        }
        Ok(open)
    }

    fn release(open: Arc<OpenFile>, inode: &INode, file: &File) {
        conn(inode).polls.remove(&open.polled);
        open.release(file);
    }

    fn poll<'file>(file: &'file File, table: &PollTable<'file>) -> u32 {
        poll::poll(file, table)
    }

    fn flush(file: &File, owner: LockOwner) -> Result {
        let inode = file.inode();
        inode::check_good(inode)?;
        let open = open_file(file)?;
        let conn = conn(inode);
        if open.open_flags.contains(OpenFlags::NOFLUSH) {
            return Ok(());
        }
        conn.no_flush.unless(|| {
            let args =
                Args::forced(Opcode::Flush, nodeid(inode), conn.forced_creds()).arg(&FlushIn {
                    fh: open.fh,
                    lock_owner: conn.lock_owner(owner),
                    ..FlushIn::default()
                })?;
            conn.chan().send(args)
        })?;
        Ok(())
    }

    fn llseek(file: &File, offset: i64, whence: Whence) -> Result<i64> {
        let inode = file.inode();
        if whence.is_data_or_hole() {
            inode::check_good(inode)?;
            if let Some(found) = seek_data(file, offset, whence)? {
                return file.set_pos(found);
            }
        }
        if whence.is_end() || whence.is_data_or_hole() {
            inode::check_good(inode)?;
            let open = open_file(file)?;
            attr::refresh(inode, Some(&*open), fields::SIZE)?;
        }
        file.generic_seek(offset, whence)
    }

    fn fsync(file: &File, datasync: bool) -> Result {
        fsync(file, datasync, false)
    }

    fn lock(file: &File, command: Command, lock: Lock<'_>) -> Result<Taken> {
        lock::posix(file, command, lock)
    }

    fn flock(file: &File, lock: Lock<'_>) -> Result {
        lock::flock(file, lock)
    }

    fn ioctl(file: &File, cmd: u32, arg: usize, compat: bool) -> Result<isize> {
        ioctl(file, cmd, arg, compat, false)
    }

    fn read_iter<'a>(mut kiocb: Kiocb<'a, Fuse>, iov: &mut IovIterDest<'_>) -> Transferred<'a> {
        let end = kiocb.pos().saturating_add_unsigned(iov.len() as u64);
        match begin_read(kiocb.file(), end) {
            Ok(true) => kiocb.generic_read(iov),
            Ok(false) => {
                let result = direct::one_by_one(&kiocb, iov);
                kiocb.advance(*result.as_ref().unwrap_or(&0));
                kiocb.done(result)
            }
            Err(err) => kiocb.done(Err(err)),
        }
    }

    fn is_cached(file: &File) -> bool {
        !open_file(file).is_ok_and(|open| open.open_flags.contains(OpenFlags::DIRECT_IO))
    }

    fn mmap(file: &File, shared: bool) -> Result {
        let inode = file.inode();
        inode::check_good(inode)?;
        if !Self::is_cached(file) {
            // A shared mapping would show what the server wants nobody to cache.
            if shared {
                return Err(ENODEV);
            }
            let _ = inode.mapping().invalidate_pages2();
        }
        Ok(())
    }
}
