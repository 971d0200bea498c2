// SPDX-License-Identifier: GPL-2.0

//! The operations of inodes.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h) (`struct inode_operations`)

use crate::{
    attr::Stat,
    dentry::{DEntry, Lookup, LookupFlags, Spliced},
    inode::INode,
    FileSystem, //
};
use core::marker::PhantomData;
use fuse_bindings as bindings;
use kernel::{
    error::{from_result, to_result, VTABLE_DEFAULT_ERROR},
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

/// The operations of an inode, `struct inode_operations`. Those left out fail as the VFS documents.
#[vtable]
pub trait Operations {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// Finds a name in the directory. May sleep; the directory is locked, shared at least.
    fn lookup<'a>(
        _dir: &INode<Self::FileSystem>,
        _dentry: Lookup<'a, Self::FileSystem>,
        _flags: LookupFlags,
    ) -> Result<Spliced<'a, Self::FileSystem>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reads the symbolic link. May sleep.
    fn get_link(_inode: &INode<Self::FileSystem>) -> Result<Link> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Checks whether the caller may do `access`. May sleep unless [`Access::is_rcu`].
    fn permission(_inode: &INode<Self::FileSystem>, _access: Access<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Fills in `stat` as `request_mask` (`STATX_*`) and `query` (`AT_STATX_*`) ask. May sleep.
    fn getattr(
        _inode: &INode<Self::FileSystem>,
        _stat: &mut Stat<'_, Self::FileSystem>,
        _request_mask: u32,
        _query: u32,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// A table of inode operations for the filesystem `T`.
pub struct Ops<T: FileSystem>(pub(crate) *const bindings::inode_operations, PhantomData<T>);

impl<T: FileSystem> Ops<T> {
    /// The table of `O`.
    pub const fn new<O: Operations<FileSystem = T>>() -> Self {
        Self(&Table::<O>::OPS, PhantomData)
    }
}

struct Table<O: Operations>(PhantomData<O>);

impl<O: Operations> Table<O> {
    const OPS: bindings::inode_operations = bindings::inode_operations {
        lookup: if O::HAS_LOOKUP {
            Some(Self::lookup)
        } else {
            None
        },
        get_link: if O::HAS_GET_LINK {
            Some(Self::get_link)
        } else {
            None
        },
        permission: if O::HAS_PERMISSION {
            Some(Self::permission)
        } else {
            None
        },
        getattr: if O::HAS_GETATTR {
            Some(Self::getattr)
        } else {
            None
        },
        ..pin_init::zeroed()
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
