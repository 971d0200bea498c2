// SPDX-License-Identifier: GPL-2.0

//! The operations of inodes.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h) (`struct inode_operations`)

use crate::{
    attr::Stat,
    dentry::{DEntry, Lookup, LookupFlags, Spliced},
    inode::INode,
    xattr::{self, Buffer},
    FileSystem, //
};
use core::marker::PhantomData;
use fuse_bindings as bindings;
use kernel::{
    error::{from_result, to_result},
    prelude::*, //
};

/// What a caller wants to do to an inode, and through which idmap.
pub struct Access<'a> {
    idmap: *mut bindings::mnt_idmap,
    mask: i32,
    _mount: PhantomData<&'a ()>,
}

impl Access<'_> {
    fn has(&self, bit: u32) -> bool {
        self.mask & bit as i32 != 0
    }

    /// The `MAY_READ`, `MAY_WRITE` and `MAY_EXEC` bits.
    pub fn rwx(&self) -> u32 {
        self.mask as u32 & (bindings::MAY_READ | bindings::MAY_WRITE | bindings::MAY_EXEC)
    }

    /// Whether the caller wants to execute, or to search a directory.
    pub fn is_exec(&self) -> bool {
        self.has(bindings::MAY_EXEC)
    }

    /// Whether it comes from `access`, `chdir` or `chroot`, which nothing checks later.
    pub fn is_ask(&self) -> bool {
        self.has(bindings::MAY_ACCESS | bindings::MAY_CHDIR)
    }

    /// Whether the caller is in a path walk under RCU: the check must not sleep and answers
    /// `ECHILD` if it would have to.
    pub fn is_rcu(&self) -> bool {
        self.has(bindings::MAY_NOT_BLOCK)
    }

    /// The classic check by owner, group and mode (`generic_permission`).
    pub fn generic_permission<T: FileSystem>(&self, inode: &INode<T>) -> Result {
        // SAFETY: The idmap is that of the mount, during the call of `permission`.
        to_result(unsafe { bindings::generic_permission(self.idmap, inode.as_ptr(), self.mask) })
    }
}

/// The target of a symbolic link.
///
/// # Invariants
///
/// Ends with NUL.
pub struct Link(KVec<u8>);

impl Link {
    /// The target `bytes`, up to the first NUL if there is one. May sleep.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let target = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        let mut buf = KVec::with_capacity(target.len().saturating_add(1), GFP_KERNEL)?;
        buf.extend_from_slice(target, GFP_KERNEL)?;
        // INVARIANT: This is the end.
        buf.push(0, GFP_KERNEL)?;
        Ok(Self(buf))
    }
}

/// The operations that all types of files have in common, `struct inode_operations`. Those that
/// there are none of fail as the VFS documents.
pub trait Operations {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// Checks whether the caller may do `access`. May sleep unless [`Access::is_rcu`].
    fn permission(inode: &INode<Self::FileSystem>, access: Access<'_>) -> Result;

    /// Fills in `stat` as `request_mask` ([`fields`](crate::attr::fields)) and `query`
    /// (`AT_STATX_*`) ask. May sleep.
    fn getattr(
        inode: &INode<Self::FileSystem>,
        stat: &mut Stat<'_, Self::FileSystem>,
        request_mask: u32,
        query: u32,
    ) -> Result;

    /// Lists the names of the extended attributes, each ended by NUL, into `list` if it has room;
    /// returns the size of the list. May sleep.
    fn listxattr(inode: &INode<Self::FileSystem>, list: Buffer<'_>) -> Result<usize>;
}

/// The operations of directories besides.
pub trait Directory: Operations {
    /// Finds a name in the directory. May sleep; the directory is locked, shared at least.
    fn lookup<'a>(
        dir: &INode<Self::FileSystem>,
        dentry: Lookup<'a, Self::FileSystem>,
        flags: LookupFlags,
    ) -> Result<Spliced<'a, Self::FileSystem>>;
}

/// The operations of symbolic links besides. Nobody needs permission to follow one.
pub trait Symlink: Operations {
    /// Reads the symbolic link. May sleep.
    fn get_link(inode: &INode<Self::FileSystem>) -> Result<Link>;
}

/// A table of inode operations for the filesystem `T`. The VFS tells directories and symbolic links
/// from other files by it, so there is one for each.
pub struct Ops<T: FileSystem>(pub(crate) *const bindings::inode_operations, PhantomData<T>);

impl<T: FileSystem> Ops<T> {
    /// The table for directories.
    pub const fn directory<O: Directory<FileSystem = T>>() -> Self {
        Self(&Table::<O>::DIRECTORY, PhantomData)
    }

    /// The table for symbolic links.
    pub const fn symlink<O: Symlink<FileSystem = T>>() -> Self {
        Self(&Table::<O>::SYMLINK, PhantomData)
    }

    /// The table for all other files.
    pub const fn other<O: Operations<FileSystem = T>>() -> Self {
        Self(&Table::<O>::OTHER, PhantomData)
    }
}

struct Table<O: Operations>(PhantomData<O>);

impl<O: Directory> Table<O> {
    const DIRECTORY: bindings::inode_operations = bindings::inode_operations {
        lookup: Some(Self::lookup),
        ..Self::OTHER
    };

    /// # Safety
    ///
    /// `dir` must be a directory of the filesystem and `dentry` a dentry in it that is being looked
    /// up.
    unsafe extern "C" fn lookup(
        dir: *mut bindings::inode,
        dentry: *mut bindings::dentry,
        flags: kernel::ffi::c_uint,
    ) -> *mut bindings::dentry {
        // SAFETY: By the function's contract.
        let dir = unsafe { INode::from_raw(dir) };
        // SAFETY: By the function's contract.
        let dentry = unsafe { DEntry::from_raw(dentry) };
        // SAFETY: This is the dentry's `lookup`.
        let lookup = unsafe { Lookup::new(dentry) };
        match O::lookup(dir, lookup, LookupFlags::new(flags)) {
            Ok(spliced) => spliced.into_raw(),
            Err(err) => err.to_ptr(),
        }
    }
}

impl<O: Symlink> Table<O> {
    const SYMLINK: bindings::inode_operations = bindings::inode_operations {
        get_link: Some(Self::get_link),
        permission: None,
        ..Self::OTHER
    };

    /// # Safety
    ///
    /// `inode` must be a symbolic link of the filesystem, `done` valid; without `dentry` the caller
    /// is in an RCU read-side critical section.
    unsafe extern "C" fn get_link(
        dentry: *mut bindings::dentry,
        inode: *mut bindings::inode,
        done: *mut bindings::delayed_call,
    ) -> *const kernel::ffi::c_char {
        if dentry.is_null() {
            return ECHILD.to_ptr();
        }
        // SAFETY: By the function's contract.
        let link = O::get_link(unsafe { INode::from_raw(inode) })
            .and_then(|link| Ok(KBox::new(link, GFP_KERNEL)?));
        match link {
            Ok(link) => {
                let chars = link.0.as_ptr();
                // SAFETY: By the function's contract.
                let done = unsafe { &mut *done };
                done.fn_ = Some(Self::put_link);
                done.arg = KBox::into_raw(link).cast();
                chars
            }
            Err(err) => err.to_ptr(),
        }
    }

    /// # Safety
    ///
    /// `link` must come from [`get_link`](Self::get_link).
    unsafe extern "C" fn put_link(link: *mut kernel::ffi::c_void) {
        // SAFETY: By the function's contract.
        drop(unsafe { KBox::<Link>::from_raw(link.cast()) });
    }
}

impl<O: Operations> Table<O> {
    const OTHER: bindings::inode_operations = bindings::inode_operations {
        permission: Some(Self::permission),
        getattr: Some(Self::getattr),
        listxattr: Some(Self::listxattr),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// `inode` must be of the filesystem and `idmap` that of the mount.
    unsafe extern "C" fn permission(
        idmap: *mut bindings::mnt_idmap,
        inode: *mut bindings::inode,
        mask: kernel::ffi::c_int,
    ) -> kernel::ffi::c_int {
        let access = Access {
            idmap,
            mask,
            _mount: PhantomData,
        };
        from_result(|| {
            // SAFETY: By the function's contract.
            O::permission(unsafe { INode::from_raw(inode) }, access)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `dentry` must be one of the filesystem with an inode, and `list` have `size` bytes or be
    /// null.
    unsafe extern "C" fn listxattr(
        dentry: *mut bindings::dentry,
        list: *mut kernel::ffi::c_char,
        size: usize,
    ) -> isize {
        // SAFETY: By the function's contract.
        let dentry = unsafe { DEntry::from_raw(dentry) };
        // SAFETY: By the function's contract.
        let list = unsafe { Buffer::new(list.cast(), size) };
        let result = dentry
            .inode()
            .ok_or(ENOENT)
            .and_then(|inode| O::listxattr(inode, list));
        match result {
            Ok(size) => size.min(xattr::SIZE_MAX) as isize,
            Err(err) => err.to_errno() as isize,
        }
    }

    /// # Safety
    ///
    /// `path` must be on the filesystem, `idmap` that of its mount, and `stat` valid.
    unsafe extern "C" fn getattr(
        idmap: *mut bindings::mnt_idmap,
        path: *const bindings::path,
        stat: *mut bindings::kstat,
        request_mask: u32,
        query: kernel::ffi::c_uint,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let dentry = unsafe { DEntry::from_raw((*path).dentry) };
        // SAFETY: By the function's contract; nobody else uses it during the call.
        let stat = unsafe { &mut *stat };
        // SAFETY: By the function's contract.
        let mut stat = unsafe { Stat::new(stat, idmap) };
        from_result(|| {
            let inode = dentry.inode().ok_or(ENOENT)?;
            O::getattr(inode, &mut stat, request_mask, query)?;
            Ok(0)
        })
    }
}
