// SPDX-License-Identifier: GPL-2.0

//! The cached names of a directory, for who learns that they have changed behind the cache's back.
//!
//! # Lock order
//!
//! `i_rwsem` of a directory ([`Names`]), that of what it contains ([`Child::remove`]).

use super::DEntry;
use crate::{
    attr::FileType,
    inode::INode,
    FileSystem, //
};
use core::{
    ptr::{
        addr_of_mut,
        NonNull, //
    }, //
};
use fuse_bindings as bindings;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::aref::ARef,
    types::NotThreadSafe, //
};

/// `i_rwsem` of an inode, held for writing.
///
/// # Invariants
///
/// This task holds the lock.
struct Locked<'a, T: FileSystem> {
    inode: &'a INode<T>,
    _not_send: NotThreadSafe,
}

impl<T: FileSystem> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::inode_unlock(self.inode.as_ptr()) };
    }
}

/// A locked directory: its names do not change, and none is being looked up.
pub struct Names<'a, T: FileSystem>(Locked<'a, T>);

impl<T: FileSystem> INode<T> {
    /// Locks the directory. Sleeps until nobody is at its names, look-ups included.
    ///
    /// # Errors
    ///
    /// `ENOTDIR`. `EINTR`: a fatal signal came first.
    pub fn lock_names_killable(&self) -> Result<Names<'_, T>> {
        if self.file_type() != Some(FileType::Directory) {
            return Err(ENOTDIR);
        }
        // SAFETY: The inode is valid.
        to_result(unsafe { bindings::inode_lock_killable_parent(self.as_ptr()) })?;
        // INVARIANT: Just locked.
        Ok(Names(Locked {
            inode: self,
            _not_send: NotThreadSafe,
        }))
    }
}

impl<'a, T: FileSystem> Names<'a, T> {
    /// What is cached of a name; none if it is nothing, and for what is no name.
    pub fn get(&self, name: &[u8]) -> Option<Child<'_, T>> {
        let mut qstr = bindings::qstr {
            name: name.as_ptr(),
            ..pin_init::zeroed()
        };
        super::set_qstr_len(&mut qstr, u32::try_from(name.len()).ok()?);
        // SAFETY: The inode is valid.
        let dir = NonNull::new(unsafe { bindings::d_find_alias(self.0.inode.as_ptr()) })?;
        // SAFETY: A dentry of an inode of `T` is of `T`, and the reference is ours.
        let dir: ARef<DEntry<T>> = unsafe { ARef::from_raw(dir.cast()) };
        // SAFETY: The name has as many bytes as `qstr` says, and `dir` is referenced.
        let child = unsafe { bindings::try_lookup_noperm(&mut qstr, dir.as_ptr()) };
        // An error means that there can be no such name.
        let child = NonNull::new(from_err_ptr(child).ok()?)?;
        Some(Child {
            dir: self,
            // SAFETY: A child of a dentry of `T` is of `T`, and the reference is ours.
            dentry: unsafe { ARef::from_raw(child.cast()) },
        })
    }
}

/// A cached name of a locked directory.
///
/// # Invariants
///
/// `dentry` is a child of `dir`, referenced.
pub struct Child<'a, T: FileSystem> {
    dir: &'a Names<'a, T>,
    dentry: ARef<DEntry<T>>,
}

impl<T: FileSystem> core::ops::Deref for Child<'_, T> {
    type Target = DEntry<T>;

    fn deref(&self) -> &DEntry<T> {
        &self.dentry
    }
}

impl<T: FileSystem> Child<'_, T> {
    /// Takes the name out of the cache, and what is cached and not used below it; mounts below it
    /// are detached (`d_invalidate`). Whoever uses it goes on. Sleeps.
    pub fn invalidate(&self) {
        // SAFETY: The dentry is referenced.
        unsafe { bindings::d_invalidate(self.as_ptr()) };
    }

    /// The file that the name belongs to was removed: as after `unlink` or `rmdir`, and whoever
    /// watches the directory is told. Nothing is done for a name without a file. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY`: something is mounted on it. `ENOTEMPTY`: a directory of which names are in use.
    /// `EINTR`: a fatal signal came first.
    pub fn remove(self) -> Result {
        let Some(inode) = self.dentry.inode() else {
            return Ok(());
        };
        let inode: ARef<INode<T>> = inode.into();
        // SAFETY: The inode is valid.
        to_result(unsafe { bindings::inode_lock_killable(inode.as_ptr()) })?;
        // INVARIANT: Just locked.
        let locked = Locked {
            inode: &*inode,
            _not_send: NotThreadSafe,
        };
        // SAFETY: The dentry is referenced.
        if unsafe { bindings::d_mountpoint(self.as_ptr()) } {
            return Err(EBUSY);
        }
        if inode.file_type() == Some(FileType::Directory) {
            // SAFETY: The dentry is referenced.
            unsafe { bindings::shrink_dcache_parent(self.as_ptr()) };
            // SAFETY: The dentry is referenced.
            if unsafe { bindings::simple_empty(self.as_ptr()) } == 0 {
                return Err(ENOTEMPTY);
            }
            // SAFETY: The inode is valid, and the lock makes us the only one to change its flags.
            let flags = unsafe { addr_of_mut!((*inode.as_ptr()).i_flags) };
            // SAFETY: As above; the field is only ever read and written whole.
            unsafe { flags.write_volatile(flags.read_volatile() | bindings::S_DEAD) };
        }
        // SAFETY: The dentry is referenced.
        unsafe { bindings::dont_mount(self.as_ptr()) };
        // SAFETY: The inode is valid and locked.
        unsafe { bindings::clear_nlink(inode.as_ptr()) };
        drop(locked);

        // SAFETY: By the type invariant and the lock of `dir` the dentry is and stays a child of
        // `dir`; that lock also keeps it positive.
        unsafe { bindings::d_delete_notify(self.dir.0.inode.as_ptr(), self.as_ptr()) };
        Ok(())
    }
}
