// SPDX-License-Identifier: GPL-2.0

//! Locks of files, at the server: GETLK, SETLK, SETLKW. Those that it does not take are kept among
//! the callers on this machine.

use super::{
    open_file,
    File, //
};
use crate::{
    inode::{
        conn,
        nodeid, //
    },
    req::{
        Args,
        Sink, //
    }, //
};
use fuse_abi::{
    FileLock,
    InitFlags,
    LkFlags,
    LkIn,
    LkOut,
    Opcode,
    Reply as _, //
};
use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};
use vfs::lock::{
    Command,
    Lock,
    Taken,
    UNLOCKED, //
};

/// A lock of fcntl(2). Sleeps.
pub(super) fn posix(file: &File, command: Command, mut lock: Lock<'_>) -> Result<Taken> {
    if matches!(command, Command::Cancel) {
        // A request that waits is interrupted by the signal that comes with it.
        return Ok(Taken::DONE);
    }
    if !conn(file.inode())
        .features()
        .contains(InitFlags::POSIX_LOCKS)
    {
        return lock.posix(file, &command);
    }
    match command {
        Command::Test => test(file, &mut lock)?,
        _ => set(file, &lock, LkFlags::empty())?,
    }
    Ok(Taken::DONE)
}

/// A lock of flock(2). Sleeps.
pub(super) fn flock(file: &File, mut lock: Lock<'_>) -> Result {
    if !conn(file.inode())
        .features()
        .contains(InitFlags::FLOCK_LOCKS)
    {
        return lock.flock(file);
    }
    open_file(file)?.flock.store(true, Relaxed);
    set(file, &lock, LkFlags::FLOCK)
}

/// Asks for the lock that is in the way of `lock`.
fn test(file: &File, lock: &mut Lock<'_>) -> Result {
    let conn = conn(file.inode());
    let args = args(file, Opcode::Getlk, lock, 0, LkFlags::empty())?
        .sink(Sink::exactly(LkOut::wire_size(conn.minor())));
    let reply = conn.chan().send(args)?;
    let found = LkOut::parse(reply.bytes(), conn.minor())
        .map_err(|_| EIO)?
        .lk;
    found.validate().map_err(|_| EIO)?;
    let FileLock {
        start,
        end,
        type_,
        pid,
    } = found;
    if type_ == UNLOCKED {
        lock.set_free();
    } else {
        // Neither is larger than the largest position.
        lock.set(type_, start as i64, end as i64, pid, conn.pid_ns());
    }
    Ok(())
}

/// Takes or gives up `lock`.
fn set(file: &File, lock: &Lock<'_>, flags: LkFlags) -> Result {
    if lock.is_async() {
        // The server can't tell later that it has granted a lock.
        return Err(ENOLCK);
    }
    // FLUSH does it.
    if lock.is_close() {
        return Ok(());
    }
    let conn = conn(file.inode());
    let opcode = if lock.is_waiting() {
        Opcode::Setlkw
    } else {
        Opcode::Setlk
    };
    let pid = if lock.is_unlock() {
        0
    } else {
        conn.current_process()
    };
    match conn.chan().send(args(file, opcode, lock, pid, flags)?) {
        // A lock that was waited for is asked for again after a signal.
        Err(err) if err == EINTR => Err(ERESTARTSYS),
        result => result.map(|_| ()),
    }
}

fn args(file: &File, opcode: Opcode, lock: &Lock<'_>, pid: u32, lk_flags: LkFlags) -> Result<Args> {
    let inode = file.inode();
    let conn = conn(inode);
    Ok(Args::new(opcode, nodeid(inode), conn.creds()?).arg(&LkIn {
        fh: open_file(file)?.fh,
        owner: conn.lock_owner(lock.owner()),
        lk: FileLock {
            start: lock.start() as u64,
            end: lock.end() as u64,
            type_: lock.kind(),
            pid,
        },
        lk_flags,
        ..LkIn::default()
    })?)
}
