// SPDX-License-Identifier: GPL-2.0

//! Directory entries.
//!
//! C header: [`include/linux/dcache.h`](srctree/include/linux/dcache.h)

mod names;
mod prune;

pub use names::{Child, Names};

use crate::{inode::INode, super_block::SuperBlock, FileSystem};
use core::{
    marker::PhantomData,
    ptr::{addr_of, addr_of_mut, NonNull},
    slice, //
};
use fuse_bindings as bindings;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque, //
};

/// A directory entry of the filesystem `T`, wrapping `struct dentry`.
///
/// # Invariants
///
/// `d_sb` is a superblock of `T`.
#[repr(transparent)]
pub struct DEntry<T: FileSystem>(Opaque<bindings::dentry>, PhantomData<fn() -> T>);

// SAFETY: The VFS shares dentries between threads; the methods access what is fixed or read whole.
unsafe impl<T: FileSystem> Send for DEntry<T> {}
// SAFETY: As above.
unsafe impl<T: FileSystem> Sync for DEntry<T> {}

// SAFETY: `dget` and `dput` count references.
unsafe impl<T: FileSystem> AlwaysRefCounted for DEntry<T> {
    fn inc_ref(&self) {
        // SAFETY: A shared reference means that the dentry is referenced already.
        unsafe { bindings::dget(self.as_ptr()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference, which passes to `dput`.
        unsafe { bindings::dput(obj.cast().as_ptr()) };
    }
}

impl<T: FileSystem> DEntry<T> {
    /// Borrows a dentry.
    ///
    /// # Safety
    ///
    /// `ptr` must be a dentry of the filesystem `T` that outlives `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::dentry) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::dentry {
        self.0.get()
    }

    /// The superblock of the dentry.
    pub fn super_block(&self) -> &SuperBlock<T> {
        // SAFETY: `d_sb` does not change.
        let sb = unsafe { (*self.as_ptr()).d_sb };
        // SAFETY: By the type invariant; the dentry keeps the superblock.
        unsafe { SuperBlock::from_raw(sb) }
    }

    /// The inode that the name belongs to; none if the name is known not to exist.
    ///
    /// A dentry that somebody else holds too does not lose its inode.
    pub fn inode(&self) -> Option<&INode<T>> {
        // SAFETY: The dentry is valid.
        let inode = unsafe { bindings::d_inode_rcu(self.as_ptr()) };
        // SAFETY: The inode of a dentry of `T` is of `T`; path walks under RCU find it there until
        // a grace period after it left the dentry, others hold the dentry.
        (!inode.is_null()).then(|| unsafe { INode::from_raw(inode) })
    }

    /// The filesystem's own number on the dentry (`d_time`), which `revalidate` goes by.
    pub fn time(&self) -> u64 {
        // SAFETY: The field is only ever read and written whole.
        unsafe { addr_of!((*self.as_ptr()).d_time).read_volatile() as u64 }
    }

    /// Another number of the filesystem's own (`d_fsdata`), 0 until it is set.
    pub fn epoch(&self) -> usize {
        // SAFETY: The field is only ever read and written whole.
        unsafe { addr_of!((*self.as_ptr()).d_fsdata).read_volatile() as usize }
    }

    /// Sets what [`epoch`](Self::epoch) returns.
    pub fn set_epoch(&self, epoch: usize) {
        // SAFETY: The field is the filesystem's, and only ever read and written whole.
        unsafe { addr_of_mut!((*self.as_ptr()).d_fsdata).write_volatile(epoch as *mut _) };
    }

    /// Sets what [`time`](Self::time) returns.
    pub fn set_time(&self, time: u64) {
        // SAFETY: The field is only ever read and written whole.
        unsafe { addr_of_mut!((*self.as_ptr()).d_time).write_volatile(time as usize) };
    }
}

/// The root dentry of a new superblock.
pub struct Root<T: FileSystem>(ARef<DEntry<T>>);

impl<T: FileSystem> Root<T> {
    pub(crate) fn new(inode: ARef<INode<T>>) -> Result<Self> {
        let inode = ARef::into_raw(inode);
        // SAFETY: `d_make_root` takes over the reference, also when it fails.
        let dentry = unsafe { bindings::d_make_root(inode.cast().as_ptr()) };
        let dentry = NonNull::new(dentry).ok_or(ENOMEM)?;
        // SAFETY: The reference is ours, and the dentry of the superblock of `inode`.
        Ok(Self(unsafe { ARef::from_raw(dentry.cast()) }))
    }

    pub(crate) fn into_raw(self) -> *mut bindings::dentry {
        ARef::into_raw(self.0).cast().as_ptr()
    }
}

/// A dentry that is being looked up, in `lookup`: its name and parent do not change meanwhile
/// (locking.rst: the parent is locked, shared at least).
pub struct Lookup<'a, T: FileSystem>(&'a DEntry<T>);

/// What `lookup` ends with: the dentry, or another one that stands for the same directory.
pub struct Spliced<'a, T: FileSystem> {
    dentry: &'a DEntry<T>,
    alias: Option<ARef<DEntry<T>>>,
}

impl<'a, T: FileSystem> Lookup<'a, T> {
    /// # Safety
    ///
    /// `dentry` must be in its `lookup`.
    pub(crate) unsafe fn new(dentry: &'a DEntry<T>) -> Self {
        Self(dentry)
    }

    /// The name that is looked up.
    pub fn name(&self) -> &[u8] {
        // SAFETY: The name does not change, by the type's documentation.
        unsafe { name_of(addr_of!((*self.0.as_ptr()).__bindgen_anon_1).cast()) }
    }

    /// Sets the filesystem's number on the dentry before anybody else sees it: a new dentry has
    /// whatever was in its memory.
    pub fn set_time(&self, time: u64) {
        self.0.set_time(time);
    }

    /// As [`set_time`](Self::set_time), for the other number.
    pub fn set_epoch(&self, epoch: usize) {
        self.0.set_epoch(epoch);
    }

    /// Ends the look-up: `inode` is what the name stands for, none makes a negative dentry
    /// (`d_splice_alias`).
    ///
    /// # Errors
    ///
    /// Those of `d_splice_alias`, e.g. `ELOOP` when a directory would be its own ancestor. The
    /// inode's reference is gone then too.
    pub fn splice_alias(self, inode: Option<ARef<INode<T>>>) -> Result<Spliced<'a, T>> {
        let inode = inode.map_or(core::ptr::null_mut(), |inode| {
            ARef::into_raw(inode).cast().as_ptr()
        });
        // SAFETY: The dentry is in its `lookup`; the inode's reference is taken over in any case.
        let alias = from_err_ptr(unsafe { bindings::d_splice_alias(inode, self.0.as_ptr()) })?;
        // SAFETY: A dentry that is returned is of this superblock and comes with a reference.
        let alias = NonNull::new(alias).map(|alias| unsafe { ARef::from_raw(alias.cast()) });
        Ok(Spliced {
            dentry: self.0,
            alias,
        })
    }
}

impl<T: FileSystem> Spliced<'_, T> {
    /// The dentry that the name resolves to now.
    pub fn dentry(&self) -> &DEntry<T> {
        self.alias.as_deref().unwrap_or(self.dentry)
    }

    pub(crate) fn into_raw(self) -> *mut bindings::dentry {
        self.alias.map_or(core::ptr::null_mut(), |alias| {
            ARef::into_raw(alias).cast().as_ptr()
        })
    }
}

/// The bytes of a name.
///
/// # Safety
///
/// `name` must be valid and not change during `'a`.
unsafe fn name_of<'a>(name: *const bindings::qstr) -> &'a [u8] {
    // SAFETY: By the function's contract.
    let name = unsafe { &*name };
    // SAFETY: `name` is followed by `len` bytes.
    unsafe { slice::from_raw_parts(name.name, qstr_len(name)) }
}

fn qstr_len(name: &bindings::qstr) -> usize {
    // SAFETY: Both members of the union are numbers: hash and length, or both in one.
    unsafe { name.__bindgen_anon_1.__bindgen_anon_1.len as usize }
}

fn set_qstr_len(name: &mut bindings::qstr, len: u32) {
    name.__bindgen_anon_1.__bindgen_anon_1.len = len;
}

/// How a path walk looks at a name, `LOOKUP_*`.
#[derive(Clone, Copy, Debug)]
pub struct LookupFlags(u32);

impl LookupFlags {
    pub(crate) fn new(flags: u32) -> Self {
        Self(flags)
    }

    /// Whether the walk asks for the truth: nothing cached will do.
    ///
    /// It does after `ESTALE`, and where the name is about to be made or replaced.
    pub fn no_cache(self) -> bool {
        self.0 & (bindings::LOOKUP_REVAL | bindings::LOOKUP_EXCL | bindings::LOOKUP_RENAME_TARGET)
            != 0
    }
}

/// The operations of dentries, `struct dentry_operations`.
pub trait Operations {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// Whether the dentry still says the truth. `name` is the name that was walked, in `dir`. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// End the path walk.
    fn revalidate(
        dir: &INode<Self::FileSystem>,
        name: &[u8],
        dentry: &DEntry<Self::FileSystem>,
        flags: LookupFlags,
    ) -> Result<bool>;

    /// As [`revalidate`](Self::revalidate), in a walk under RCU: must not sleep. `false` makes the
    /// walk ask again by [`revalidate`](Self::revalidate).
    fn revalidate_rcu(dentry: &DEntry<Self::FileSystem>, flags: LookupFlags) -> bool;
}

/// A table of dentry operations for the filesystem `T`.
pub struct Ops<T: FileSystem>(
    pub(crate) *const bindings::dentry_operations,
    PhantomData<T>,
);

impl<T: FileSystem> Ops<T> {
    /// The table of `O`.
    pub const fn new<O: Operations<FileSystem = T>>() -> Self {
        Self(&Table::<O>::OPS, PhantomData)
    }
}

struct Table<O: Operations>(PhantomData<O>);

impl<O: Operations> Table<O> {
    const OPS: bindings::dentry_operations = bindings::dentry_operations {
        d_revalidate: Some(Self::d_revalidate),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// `dir` and `dentry` must be of the filesystem; without `LOOKUP_RCU` in `flags` they must be
    /// referenced, with it the caller must be in an RCU read-side critical section.
    unsafe extern "C" fn d_revalidate(
        dir: *mut bindings::inode,
        name: *const bindings::qstr,
        dentry: *mut bindings::dentry,
        flags: kernel::ffi::c_uint,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let dentry = unsafe { DEntry::from_raw(dentry) };
        let lookup = LookupFlags::new(flags);
        if flags & bindings::LOOKUP_RCU != 0 {
            return if O::revalidate_rcu(dentry, lookup) {
                1
            } else {
                ECHILD.to_errno()
            };
        }
        // SAFETY: By the function's contract.
        let dir = unsafe { INode::from_raw(dir) };
        // SAFETY: The walk's name does not change.
        match O::revalidate(dir, unsafe { name_of(name) }, dentry, lookup) {
            Ok(valid) => valid.into(),
            Err(err) => err.to_errno(),
        }
    }
}
