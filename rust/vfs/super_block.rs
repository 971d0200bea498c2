// SPDX-License-Identifier: GPL-2.0

//! Superblocks and their operations.
//!
//! C header: [`include/linux/fs/super_types.h`](srctree/include/linux/fs/super_types.h)

use crate::{
    bdi::Bdi,
    cred::UserNamespace,
    dentry::{DEntry, Root},
    fs_type::Registration,
    inode::{INode, WithInfo},
    link::Link,
    FileSystem, //
};
use core::{marker::PhantomData, ptr::addr_of};
use fuse_bindings as bindings;
use kernel::{
    error::{from_result, to_result},
    prelude::*,
    seq_file::SeqFile,
    sync::Arc,
    types::{ForeignOwnable, Opaque}, //
};

/// A superblock of the filesystem `T`, wrapping `struct super_block`.
///
/// # Invariants
///
/// `s_type` is that of a [`Registration<T>`], and `s_fs_info` was made by
/// `T::SuperBlockInfo::into_foreign`.
#[repr(transparent)]
pub struct SuperBlock<T: FileSystem>(Opaque<bindings::super_block>, PhantomData<fn() -> T>);

// SAFETY: The VFS shares superblocks between threads; the fields used here are fixed once it is set
// up.
unsafe impl<T: FileSystem> Send for SuperBlock<T> {}
// SAFETY: As above.
unsafe impl<T: FileSystem> Sync for SuperBlock<T> {}

impl<T: FileSystem> SuperBlock<T> {
    /// Borrows a superblock.
    ///
    /// # Safety
    ///
    /// `ptr` must be a superblock of the filesystem `T` that outlives `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::super_block) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::super_block {
        self.0.get()
    }

    /// The filesystem's own part of the superblock.
    pub fn info(&self) -> <T::SuperBlockInfo as ForeignOwnable>::Borrowed<'_> {
        // SAFETY: The field does not change while the superblock is in use.
        let info = unsafe { (*self.as_ptr()).s_fs_info };
        // SAFETY: By the type invariant; it is taken back when the superblock is gone.
        unsafe { T::SuperBlockInfo::borrow(info) }
    }

    /// The device number that `stat` shows for files of this superblock.
    pub fn dev(&self) -> u32 {
        // SAFETY: The field does not change while the superblock is in use.
        unsafe { (*self.as_ptr()).s_dev }
    }

    /// The user namespace in which owners on this superblock are understood.
    pub fn user_ns(&self) -> &UserNamespace {
        // SAFETY: The field does not change while the superblock is in use.
        let ns = unsafe { (*self.as_ptr()).s_user_ns };
        // SAFETY: The superblock holds a reference to the namespace.
        unsafe { UserNamespace::from_raw(ns) }
    }

    /// Has [`Operations::maintain`] called at once, by a kernel thread. Does nothing for a superblock
    /// without a [link](NewSuperBlock::link). Sleeps.
    pub fn maintain(&self) {
        Registration::supers(self).maintain(self);
    }

    /// What the page cache knows of the server; shared with others unless
    /// [`NewSuperBlock::setup_bdi`] was called.
    pub fn bdi(&self) -> &Bdi {
        // SAFETY: The field does not change while the superblock is in use.
        let bdi = unsafe { (*self.as_ptr()).s_bdi };
        // SAFETY: The superblock holds a reference to it.
        unsafe { Bdi::from_raw(bdi) }
    }
}

/// A superblock that `fill_super` sets up and that nobody else can reach yet.
pub struct NewSuperBlock<'a, T: FileSystem>(&'a SuperBlock<T>);

impl<T: FileSystem> core::ops::Deref for NewSuperBlock<'_, T> {
    type Target = SuperBlock<T>;

    fn deref(&self) -> &SuperBlock<T> {
        self.0
    }
}

impl<T: FileSystem> NewSuperBlock<'_, T> {
    /// # Safety
    ///
    /// `sb` must be in its `fill_super`.
    pub(crate) unsafe fn new(sb: &SuperBlock<T>) -> NewSuperBlock<'_, T> {
        NewSuperBlock(sb)
    }

    /// Sets what all superblocks need, and attaches the operations.
    pub fn set_params(&self, params: &Params) {
        let sb = self.as_ptr();
        // SAFETY: The superblock is not visible to others yet.
        let sb = unsafe { &mut *sb };
        sb.s_blocksize = 1 << params.blocksize_bits;
        sb.s_blocksize_bits = params.blocksize_bits;
        sb.s_maxbytes = params.maxbytes;
        sb.s_magic = params.magic;
        sb.s_time_gran = 1;
        sb.s_flags |= params.flags;
        sb.s_iflags |= params.iflags;
        sb.s_op = &Table::<T::SuperOps>::OPS;
    }

    /// Gives all dentries of the superblock their operations.
    pub fn set_default_dops(&self, ops: crate::dentry::Ops<T>) {
        // SAFETY: The superblock has no dentries yet.
        unsafe { bindings::set_default_d_op(self.as_ptr(), ops.0) };
    }

    /// Makes a backing device of the superblock's own, which gives it readahead:
    /// `/sys/class/bdi/MAJOR:MINOR`. Sleeps.
    pub fn setup_bdi(&self) -> Result {
        // SAFETY: The superblock is valid and not yet visible to others.
        to_result(unsafe { bindings::super_setup_bdi_dev(self.as_ptr()) })
    }

    /// Sets what `mount` shows behind the type, as in `TYPE.SUBTYPE`; at most once. May sleep.
    pub fn set_subtype(&self, subtype: &CStr) -> Result {
        // SAFETY: The string ends with NUL.
        let copy = unsafe { bindings::kstrdup(subtype.as_char_ptr(), bindings::GFP_KERNEL) };
        if copy.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: The superblock is not visible to others yet, and frees the string in the end.
        unsafe { (*self.as_ptr()).s_subtype = copy };
        Ok(())
    }

    /// A way to the superblock for those whom nothing keeps alive that is mounted. It also begins to
    /// be [maintained](Operations::maintain). Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn link(&self) -> Result<Arc<Link<T>>> {
        Registration::supers(self).add(self)
    }

    /// Makes the root dentry.
    pub fn make_root(&self, inode: kernel::sync::aref::ARef<INode<T>>) -> Result<Root<T>> {
        Root::new(inode)
    }
}

/// Fields of a superblock that its filesystem chooses.
pub struct Params {
    /// Logarithm of the block size.
    pub blocksize_bits: u8,
    /// The largest size of a file, in bytes.
    pub maxbytes: i64,
    /// What `statfs` shows as `f_type`.
    pub magic: usize,
    /// `SB_*` flags to be set beside those of the mount.
    pub flags: usize,
    /// `SB_I_*` flags to be set.
    pub iflags: usize,
}

/// `struct kstatfs`: what `statfs` shows.
pub struct StatFs<'a>(&'a mut bindings::kstatfs);

impl StatFs<'_> {
    /// Sets all fields but the type, which is the superblock's magic.
    #[allow(clippy::too_many_arguments)]
    pub fn set(
        &mut self,
        bsize: u32,
        frsize: u32,
        blocks: u64,
        bfree: u64,
        bavail: u64,
        files: u64,
        ffree: u64,
        namelen: u32,
    ) {
        self.0.f_bsize = bsize as isize;
        self.0.f_frsize = frsize as isize;
        self.0.f_blocks = blocks;
        self.0.f_bfree = bfree;
        self.0.f_bavail = bavail;
        self.0.f_files = files;
        self.0.f_ffree = ffree;
        self.0.f_namelen = namelen as isize;
    }
}

/// An inode whose last user is gone, in `evict_inode`: its pages are gone and nobody else can find
/// it.
pub struct Evicted<'a, T: FileSystem>(&'a INode<T>);

impl<T: FileSystem> core::ops::Deref for Evicted<'_, T> {
    type Target = INode<T>;

    fn deref(&self) -> &INode<T> {
        self.0
    }
}

/// The operations of a superblock, `struct super_operations`.
#[vtable]
pub trait Operations {
    /// The filesystem that they are for.
    type FileSystem: FileSystem;

    /// Called when the inode goes, after its pages went. May sleep.
    fn evict_inode(_inode: Evicted<'_, Self::FileSystem>) {}

    /// Tells about the filesystem that `dentry` is on. May sleep.
    fn statfs(dentry: &DEntry<Self::FileSystem>, stat: &mut StatFs<'_>) -> Result;

    /// `umount -f` began: nothing may wait for the server any more.
    fn umount_begin(_sb: &SuperBlock<Self::FileSystem>) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Prints the mount options.
    fn show_options(_sb: &SuperBlock<Self::FileSystem>, _seq: &SeqFile) -> Result {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Does what is to be done from time to time; returns the milliseconds until the next time, if
    /// there is one. Called by a kernel thread for a superblock that has a
    /// [link](NewSuperBlock::link), at first when that is made: maybe before there is a root. Ends
    /// before the superblock goes: must wait for nothing that unmounting does not end. May sleep.
    fn maintain(_sb: &SuperBlock<Self::FileSystem>) -> Option<u32> {
        None
    }

    /// The superblock is about to go; its files are still there.
    fn kill_begin(_sb: &SuperBlock<Self::FileSystem>) {}
}

struct Table<O: Operations>(PhantomData<O>);

impl<O: Operations> Table<O> {
    const OPS: bindings::super_operations = bindings::super_operations {
        alloc_inode: Some(Self::alloc_inode),
        free_inode: Some(WithInfo::<O::FileSystem>::free_inode),
        evict_inode: Some(Self::evict_inode),
        drop_inode: Some(bindings::inode_just_drop),
        statfs: Some(Self::statfs),
        umount_begin: if O::HAS_UMOUNT_BEGIN {
            Some(Self::umount_begin)
        } else {
            None
        },
        show_options: if O::HAS_SHOW_OPTIONS {
            Some(Self::show_options)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// `sb` must be a superblock of the filesystem.
    unsafe extern "C" fn alloc_inode(sb: *mut bindings::super_block) -> *mut bindings::inode {
        // SAFETY: `s_type` of a live superblock is valid.
        let fs_type = unsafe { (*sb).s_type };
        // SAFETY: By the invariant of `SuperBlock`.
        let cache = unsafe { Registration::<O::FileSystem>::inode_cache(fs_type) };
        // SAFETY: The cache lives as long as the filesystem type is registered.
        let object = unsafe { bindings::alloc_inode_sb(sb, cache, bindings::GFP_KERNEL) };
        if object.is_null() {
            return core::ptr::null_mut();
        }
        // SAFETY: `object` is fresh from the inode cache.
        match unsafe { WithInfo::<O::FileSystem>::init(object.cast()) } {
            Ok(inode) => inode,
            Err(_) => {
                // SAFETY: The object is from the cache and was not initialised.
                unsafe { bindings::kmem_cache_free(cache, object) };
                core::ptr::null_mut()
            }
        }
    }

    /// # Safety
    ///
    /// `inode` must be an inode of the filesystem in its last moments.
    unsafe extern "C" fn evict_inode(inode: *mut bindings::inode) {
        // SAFETY: vfs.rst: the callback removes the pages and calls `clear_inode`.
        unsafe { bindings::truncate_inode_pages_final(addr_of!((*inode).i_data).cast_mut()) };
        // SAFETY: As above.
        unsafe { bindings::clear_inode(inode) };
        // SAFETY: By the function's contract.
        O::evict_inode(Evicted(unsafe { INode::from_raw(inode) }));
    }

    /// # Safety
    ///
    /// `dentry` must be a dentry of the filesystem, and `stat` valid.
    unsafe extern "C" fn statfs(
        dentry: *mut bindings::dentry,
        stat: *mut kernel::bindings::kstatfs,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let dentry = unsafe { DEntry::from_raw(dentry) };
        // SAFETY: By the function's contract; nobody else uses it during the call.
        let stat = unsafe { &mut *stat.cast::<bindings::kstatfs>() };
        from_result(|| {
            // SAFETY: The superblock is valid.
            let magic = unsafe { (*dentry.super_block().as_ptr()).s_magic };
            stat.f_type = magic as isize;
            O::statfs(dentry, &mut StatFs(stat))?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `sb` must be a superblock of the filesystem.
    unsafe extern "C" fn umount_begin(sb: *mut bindings::super_block) {
        // SAFETY: By the function's contract.
        O::umount_begin(unsafe { SuperBlock::from_raw(sb) });
    }

    /// # Safety
    ///
    /// `root` must be a dentry of the filesystem and `seq` open for output.
    unsafe extern "C" fn show_options(
        seq: *mut bindings::seq_file,
        root: *mut bindings::dentry,
    ) -> kernel::ffi::c_int {
        // SAFETY: By the function's contract.
        let root = unsafe { DEntry::<O::FileSystem>::from_raw(root) };
        // SAFETY: By the function's contract.
        let seq = unsafe { SeqFile::from_raw(seq) };
        from_result(|| {
            O::show_options(root.super_block(), seq)?;
            Ok(0)
        })
    }
}

/// `file_system_type::kill_sb`.
///
/// # Safety
///
/// `sb` must be a superblock of `T` that is to go.
pub(crate) unsafe extern "C" fn kill_sb<T: FileSystem>(sb: *mut bindings::super_block) {
    // SAFETY: By the function's contract.
    let this = unsafe { SuperBlock::<T>::from_raw(sb) };
    // SAFETY: The field does not change any more.
    let info = unsafe { (*this.as_ptr()).s_fs_info };
    // Without a root nothing was set up that could need ending.
    //
    // SAFETY: As above.
    if !unsafe { (*sb).s_root }.is_null() {
        T::SuperOps::kill_begin(this);
    }
    Registration::supers(this).remove(this);
    // SAFETY: The superblock was made by `get_tree_nodev`.
    unsafe { bindings::kill_anon_super(sb) };
    if !info.is_null() {
        // A path walk under RCU that came here before may still be in `permission` or `revalidate`,
        // with nothing but the grace period to hold the superblock.
        //
        // SAFETY: The context may sleep.
        unsafe { bindings::synchronize_rcu_expedited() };
        // SAFETY: By the invariant of `SuperBlock`; nobody uses the superblock any more.
        drop(unsafe { T::SuperBlockInfo::from_foreign(info) });
    }
}
