// SPDX-License-Identifier: GPL-2.0

//! Locks of files.
//!
//! C header: [`include/linux/filelock.h`](srctree/include/linux/filelock.h)

use crate::{
    cred,
    file::File,
    FileSystem, //
};
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    pid_namespace::PidNamespace,
    prelude::*, //
};

/// `F_UNLCK`: the kind of a lock that is none.
pub const UNLOCKED: u32 = bindings::F_UNLCK;

/// Whom a lock belongs to: the open files of a process, or one open file. Wraps `fl_owner_t`.
///
/// The number is an address of the kernel: not for anyone outside.
#[derive(Clone, Copy)]
pub struct LockOwner(bindings::fl_owner_t);

impl LockOwner {
    pub(crate) fn from_raw(owner: bindings::fl_owner_t) -> Self {
        Self(owner)
    }

    /// The open files of the caller.
    pub fn current() -> Self {
        // SAFETY: There are no requirements.
        Self(unsafe { bindings::current_files() })
    }

    /// One open file.
    pub fn of<T: FileSystem>(file: &File<T>) -> Self {
        Self(file.as_ptr().cast())
    }

    /// The number.
    pub fn addr(self) -> u64 {
        self.0 as u64
    }
}

/// What is to be done about a lock.
pub enum Command {
    /// Find the lock that is in the way, if there is one: [`Lock::set`] it.
    Test,
    /// Take it, or give it up.
    Set,
    /// No longer wait for it.
    Cancel,
}

impl Command {
    pub(crate) fn from_raw(command: kernel::ffi::c_int) -> Self {
        match u32::try_from(command) {
            Ok(bindings::F_GETLK) => Self::Test,
            Ok(bindings::F_CANCELLK) => Self::Cancel,
            _ => Self::Set,
        }
    }
}

/// How taking a lock ended: what [`Lock`] returns, for the VFS.
pub struct Taken(pub(crate) kernel::ffi::c_int);

impl Taken {
    /// The lock was taken, given up, or tested.
    pub const DONE: Self = Self(0);
}

/// A lock that is asked for, wrapping `struct file_lock`: of fcntl(2), or of flock(2).
pub struct Lock<'a>(&'a mut bindings::file_lock);

impl<'a> Lock<'a> {
    /// Borrows a lock.
    ///
    /// # Safety
    ///
    /// `ptr` must be valid, and nobody else's during `'a`.
    pub(crate) unsafe fn from_raw(ptr: *mut bindings::file_lock) -> Self {
        // SAFETY: By the function's contract.
        Self(unsafe { &mut *ptr })
    }

    /// Whose it is.
    pub fn owner(&self) -> LockOwner {
        LockOwner(self.0.c.flc_owner)
    }

    /// The first byte.
    pub fn start(&self) -> i64 {
        self.0.fl_start
    }

    /// The last byte; `i64::MAX` for no end.
    pub fn end(&self) -> i64 {
        self.0.fl_end
    }

    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub fn kind(&self) -> u32 {
        self.0.c.flc_type.into()
    }

    /// Whether the lock is given up.
    pub fn is_unlock(&self) -> bool {
        self.kind() == UNLOCKED
    }

    /// Whether the caller waits for the lock.
    pub fn is_waiting(&self) -> bool {
        // SAFETY: The lock is valid.
        unsafe { bindings::lock_is_waiting(self.0) }
    }

    /// Whether a process gives up all its locks of the file, as it closes a descriptor.
    pub fn is_close(&self) -> bool {
        // SAFETY: The lock is valid.
        unsafe { bindings::lock_is_close(self.0) }
    }

    /// Whether a lock manager wants to be told by a call that the lock was granted.
    pub fn is_async(&self) -> bool {
        // SAFETY: The lock is valid.
        unsafe { bindings::lock_is_async(self.0) }
    }

    /// Makes it the lock that is in the way: of the process `pid` of `ns`, 0 if it is not known.
    pub fn set(&mut self, kind: u32, start: i64, end: i64, pid: u32, ns: &PidNamespace) {
        self.0.c.flc_type = kind as u8;
        self.0.fl_start = start;
        self.0.fl_end = end;
        self.0.c.flc_pid = cred::pid_from_ns(pid, ns);
    }

    /// Makes it no lock at all: nothing is in the way.
    pub fn set_free(&mut self) {
        self.0.c.flc_type = UNLOCKED as u8;
    }

    /// Does `command` among the callers on this machine (`posix_test_lock`, `posix_lock_file`); for
    /// locks of fcntl(2). May sleep.
    ///
    /// # Errors
    ///
    /// As of fcntl(2).
    pub fn posix<T: FileSystem>(&mut self, file: &File<T>, command: &Command) -> Result<Taken> {
        if matches!(command, Command::Test) {
            // SAFETY: Both are valid.
            unsafe { bindings::posix_test_lock(file.as_ptr().cast(), self.0) };
            return Ok(Taken::DONE);
        }
        // SAFETY: Both are valid, and no conflicting lock is asked for.
        let ret = unsafe {
            bindings::posix_lock_file(file.as_ptr().cast(), self.0, core::ptr::null_mut())
        };
        if ret < 0 {
            return Err(Error::from_errno(ret));
        }
        // Taken, or the VFS waits for it.
        Ok(Taken(ret))
    }

    /// Takes or gives up the lock among the callers on this machine (`locks_lock_file_wait`); for
    /// locks of flock(2). Sleeps, if the caller waits for it.
    ///
    /// # Errors
    ///
    /// As of flock(2).
    pub fn flock<T: FileSystem>(&mut self, file: &File<T>) -> Result {
        // SAFETY: Both are valid.
        to_result(unsafe { bindings::locks_lock_inode_wait(file.inode().as_ptr(), self.0) })
    }
}
