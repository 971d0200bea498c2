// SPDX-License-Identifier: GPL-2.0

//! Inodes and the inode cache.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::{
    address_space::AddressSpace,
    attr::{fields, FileType},
    super_block::SuperBlock,
    time::Timespec,
    FileSystem, //
};
use core::{
    marker::PhantomData,
    mem::{offset_of, ManuallyDrop, MaybeUninit},
    ops::Deref,
    ptr::{addr_of, addr_of_mut, NonNull}, //
};
use fuse_bindings as bindings;
use kernel::{
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque, //
};

/// An inode of the filesystem `T`, wrapping `struct inode`.
///
/// # Invariants
///
/// The inode was allocated by the [`Registration`](crate::fs_type::Registration) of `T`: it is
/// embedded in a [`WithInfo<T>`] whose `info` is initialised.
#[repr(transparent)]
pub struct INode<T: FileSystem>(Opaque<bindings::inode>, PhantomData<fn() -> T>);

// SAFETY: The VFS shares inodes between threads; the methods here either use its locks or access
// single fields as it does itself.
unsafe impl<T: FileSystem> Send for INode<T> {}
// SAFETY: As above.
unsafe impl<T: FileSystem> Sync for INode<T> {}

// SAFETY: `ihold` and `iput` count references.
unsafe impl<T: FileSystem> AlwaysRefCounted for INode<T> {
    fn inc_ref(&self) {
        // SAFETY: A shared reference means that the inode is referenced already, as `ihold` asks.
        unsafe { bindings::ihold(self.0.get()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference, which passes to `iput`.
        unsafe { bindings::iput(obj.as_ref().0.get()) };
    }
}

/// The slab object of an inode: the filesystem's own part and the VFS's.
#[repr(C)]
pub(crate) struct WithInfo<T: FileSystem> {
    info: MaybeUninit<T::InodeInfo>,
    inode: Opaque<bindings::inode>,
}

impl<T: FileSystem> WithInfo<T> {
    /// The object that `inode` is embedded in.
    ///
    /// # Safety
    ///
    /// `inode` must be embedded in a `WithInfo<T>`.
    unsafe fn of(inode: *mut bindings::inode) -> *mut Self {
        // SAFETY: By the function's contract the result stays within the same allocation.
        unsafe { inode.byte_sub(offset_of!(Self, inode)).cast() }
    }

    /// Slab constructor: makes `inode` what `inode_init_once` wants it to be between uses.
    ///
    /// # Safety
    ///
    /// `object` must be a fresh object of the inode cache of `T`.
    pub(crate) unsafe extern "C" fn init_once(object: *mut kernel::ffi::c_void) {
        let object = object.cast::<Self>();
        // SAFETY: The slab cache has objects of this size.
        let inode = unsafe { addr_of!((*object).inode) };
        // SAFETY: The memory is the caller's own and not in use yet.
        unsafe { bindings::inode_init_once(Opaque::cast_into(inode)) };
    }

    /// Initialises the filesystem's part of a fresh object and returns its inode.
    ///
    /// # Safety
    ///
    /// `object` must be an unused object of the inode cache of `T`.
    pub(crate) unsafe fn init(object: *mut Self) -> Result<*mut bindings::inode> {
        // SAFETY: `object` is a valid allocation.
        let info = unsafe { addr_of_mut!((*object).info) };
        // SAFETY: The object is unused, so `info` is free to be initialised, and slab objects do
        // not move. On an error nothing is left initialised.
        unsafe { pin_init::PinInit::__init(T::new_inode_info(), info.cast()) }?;
        // SAFETY: `object` is a valid allocation.
        Ok(Opaque::cast_into(unsafe { addr_of!((*object).inode) }))
    }

    /// `super_operations::free_inode`, called after a grace period.
    ///
    /// # Safety
    ///
    /// `inode` must be an inode of `T` that nobody can reach any more.
    pub(crate) unsafe extern "C" fn free_inode(inode: *mut bindings::inode) {
        // SAFETY: By the function's contract.
        let object = unsafe { Self::of(inode) };
        // SAFETY: The information was initialised when the inode was allocated, and nobody uses it.
        unsafe { (*object).info.assume_init_drop() };
        // The superblock, and with it the way to the cache, may be gone by now: let the allocator
        // find it.
        //
        // SAFETY: The object came from a slab cache, whose objects `kfree` takes too.
        unsafe { bindings::kfree(object.cast()) };
    }
}

impl<T: FileSystem> INode<T> {
    /// Borrows an inode.
    ///
    /// # Safety
    ///
    /// `ptr` must be an inode of the filesystem `T` that outlives `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::inode) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::inode {
        self.0.get()
    }

    /// The filesystem's own part of the inode.
    pub fn info(&self) -> &T::InodeInfo {
        // SAFETY: By the type invariant.
        let object = unsafe { WithInfo::<T>::of(self.as_ptr()) };
        // SAFETY: By the type invariant the information is initialised; it lives as long as the
        // inode.
        unsafe { (*object).info.assume_init_ref() }
    }

    /// The superblock of the inode.
    pub fn super_block(&self) -> &SuperBlock<T> {
        // SAFETY: `i_sb` does not change while the inode is in use.
        let sb = unsafe { (*self.as_ptr()).i_sb };
        // SAFETY: The superblock of an inode of `T` is one of `T`, and outlives it.
        unsafe { SuperBlock::from_raw(sb) }
    }

    /// The page cache of the inode.
    pub fn mapping(&self) -> &AddressSpace<T> {
        // SAFETY: `i_mapping` does not change while the inode is in use.
        let mapping = unsafe { (*self.as_ptr()).i_mapping };
        // SAFETY: The filesystem never points an inode's mapping at another inode's.
        unsafe { AddressSpace::from_raw(mapping) }
    }

    /// The inode number, as `stat` shows it.
    pub fn ino(&self) -> u64 {
        // SAFETY: The field is read whole; see `store`.
        unsafe { addr_of!((*self.as_ptr()).i_ino).read_volatile() }
    }

    /// The generation, which tells apart two files that had the same number one after the other.
    pub fn generation(&self) -> u32 {
        // SAFETY: The field is read whole; see `store`.
        unsafe { addr_of!((*self.as_ptr()).i_generation).read_volatile() }
    }

    /// Type and permission bits.
    pub fn mode(&self) -> u16 {
        // SAFETY: The field is read whole; see `store`.
        unsafe { addr_of!((*self.as_ptr()).i_mode).read_volatile() }
    }

    /// The type of the file.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::from_mode(self.mode())
    }

    /// The size in bytes.
    pub fn size(&self) -> i64 {
        // SAFETY: The inode is valid.
        unsafe { bindings::i_size_read(self.as_ptr()) }
    }

    /// Sets the size in bytes.
    ///
    /// Callers exclude each other, as `i_size_write` asks.
    pub fn set_size(&self, size: i64) {
        // SAFETY: The inode is valid.
        unsafe { bindings::i_size_write(self.as_ptr(), size) };
    }

    /// The number of hard links.
    pub fn nlink(&self) -> u32 {
        // SAFETY: The inode is valid.
        unsafe { bindings::inode_nlink(self.as_ptr()) }
    }

    /// The time of the last change of the contents.
    pub fn mtime(&self) -> Timespec {
        // SAFETY: The inode is valid.
        let mtime = unsafe { bindings::inode_get_mtime(self.as_ptr()) };
        Timespec {
            sec: mtime.tv_sec,
            // Less than a second.
            nsec: mtime.tv_nsec as u32,
        }
    }

    /// Overwrites the attributes that a path walk or a `stat` may read meanwhile without a lock:
    /// those in `mask`, of [`fields`].
    ///
    /// Callers exclude each other. The file type does not change.
    pub fn set_attributes(&self, attr: &Attributes, mask: u32) {
        let inode = self.as_ptr();
        let user_ns = self.super_block().user_ns();

        if mask & fields::INO != 0 {
            // SAFETY: The inode is valid.
            unsafe { store(addr_of_mut!((*inode).i_ino), attr.ino) };
        }
        if mask & fields::MODE != 0 {
            let file_type = bindings::S_IFMT as u16;
            let mode = (self.mode() & file_type) | (attr.mode & !file_type);
            // SAFETY: As above.
            unsafe { store(addr_of_mut!((*inode).i_mode), mode) };
        }
        if mask & fields::UID != 0 {
            // SAFETY: As above.
            unsafe { store(addr_of_mut!((*inode).i_uid), user_ns.make_kuid(attr.uid).0) };
        }
        if mask & fields::GID != 0 {
            // SAFETY: As above.
            unsafe { store(addr_of_mut!((*inode).i_gid), user_ns.make_kgid(attr.gid).0) };
        }
        if mask & fields::BLOCKS != 0 {
            // SAFETY: As above.
            unsafe { store(addr_of_mut!((*inode).i_blocks), attr.blocks) };
        }
        if mask & fields::NLINK != 0 {
            // SAFETY: As above.
            unsafe { bindings::set_nlink(inode, attr.nlink) };
        }
        if mask & fields::ATIME != 0 {
            // SAFETY: As above.
            unsafe { bindings::inode_set_atime(inode, attr.atime.sec, attr.atime.nsec as isize) };
        }
        if mask & fields::MTIME != 0 {
            // SAFETY: As above.
            unsafe { bindings::inode_set_mtime(inode, attr.mtime.sec, attr.mtime.nsec as isize) };
        }
        if mask & fields::CTIME != 0 {
            // SAFETY: As above.
            unsafe { bindings::inode_set_ctime(inode, attr.ctime.sec, attr.ctime.nsec as isize) };
        }
    }

    /// Logarithm of the block size of the page cache.
    pub fn blkbits(&self) -> u32 {
        // SAFETY: Fixed before the inode is visible to others.
        unsafe { (*self.as_ptr()).i_blkbits }.into()
    }

    /// Drops the dentries of the inode that nobody uses (`d_prune_aliases`). Sleeps.
    pub fn prune_aliases(&self) {
        // SAFETY: The inode is referenced.
        unsafe { bindings::d_prune_aliases(self.as_ptr()) };
    }

    /// Takes the inode out of the cache, so that the next look-up of its number makes a new one.
    pub fn unhash(&self) {
        // SAFETY: The inode is valid; unhashing one that is not hashed does nothing.
        unsafe { bindings::__remove_inode_hash(self.as_ptr()) };
    }
}

/// Stores a field that others read without a lock, without tearing.
///
/// # Safety
///
/// `field` must be valid for writes, and all other concurrent accesses to it must be whole too.
unsafe fn store<F>(field: *mut F, value: F) {
    // SAFETY: By the function's contract.
    unsafe { field.write_volatile(value) };
}

/// The attributes that [`INode::set_attributes`] sets.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// The inode number.
    pub ino: u64,
    /// Permission bits; the type is ignored.
    pub mode: u16,
    /// Owner, in the user namespace of the mount.
    pub uid: u32,
    /// Group, in the user namespace of the mount.
    pub gid: u32,
    /// Number of hard links.
    pub nlink: u32,
    /// Blocks of 512 bytes.
    pub blocks: u64,
    /// Time of the last access.
    pub atime: Timespec,
    /// Time of the last change of the contents.
    pub mtime: Timespec,
    /// Time of the last change of the inode.
    pub ctime: Timespec,
}

/// What [`SuperBlock::iget5_locked`] finds.
pub enum Iget<T: FileSystem> {
    /// The inode was cached.
    Cached(ARef<INode<T>>),
    /// The inode is new: fill it in, then [`NewINode::unlock`] it.
    New(NewINode<T>),
}

/// An inode that is not yet visible to others: whoever looks it up waits for it.
///
/// # Invariants
///
/// Owns a reference to an inode that is hashed and has `I_NEW` set.
pub struct NewINode<T: FileSystem>(ManuallyDrop<ARef<INode<T>>>);

impl<T: FileSystem> NewINode<T> {
    /// Makes the inode visible (`unlock_new_inode`).
    pub fn unlock(self) -> ARef<INode<T>> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: By the type invariant `I_NEW` is set.
        unsafe { bindings::unlock_new_inode(this.as_ptr()) };
        // SAFETY: `this` is not dropped, so the reference is taken once.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Sets type and generation.
    pub fn set_identity(&self, file_type: FileType, generation: u32) {
        let inode = self.as_ptr();
        // SAFETY: The inode is not visible to others yet.
        unsafe { (*inode).i_mode = file_type.to_mode() };
        // SAFETY: As above.
        unsafe { (*inode).i_generation = generation };
    }

    /// Sets the `S_*` flags of the inode.
    pub fn set_flags(&self, flags: u32) {
        // SAFETY: The inode is not visible to others yet.
        unsafe { (*self.as_ptr()).i_flags |= flags };
    }

    /// Attaches the inode operations.
    pub fn set_iops(&self, ops: crate::inode_ops::Ops<T>) {
        // SAFETY: The inode is not visible to others yet.
        unsafe { (*self.as_ptr()).i_op = ops.0 };
    }

    /// Attaches the file operations.
    pub fn set_fops(&self, ops: crate::file::Ops<T>) {
        // SAFETY: The inode is not visible to others yet.
        unsafe { bindings::inode_set_fop(self.as_ptr(), ops.0) };
    }

    /// Attaches the operations of the page cache.
    pub fn set_aops(&self, ops: crate::address_space::Ops<T>) {
        // SAFETY: The inode is not visible to others yet, nor its mapping.
        unsafe { (*self.mapping().as_ptr()).a_ops = ops.0 };
    }

    /// Lets the page cache use folios of the orders `0..=max`.
    pub fn set_folio_order_range(&self, max: u32) {
        // SAFETY: The mapping is empty and not visible to others yet.
        unsafe { bindings::mapping_set_folio_order_range(self.mapping().as_ptr(), 0, max) };
    }

    /// Makes it a device, FIFO or socket: the VFS brings the file operations.
    pub fn init_special(&self, rdev: u32) {
        // SAFETY: The inode is not visible to others yet.
        let mode = unsafe { (*self.as_ptr()).i_mode };
        // SAFETY: As above.
        unsafe {
            bindings::init_special_inode(self.as_ptr(), mode, bindings::new_decode_dev(rdev))
        };
    }
}

impl<T: FileSystem> Deref for NewINode<T> {
    type Target = INode<T>;

    fn deref(&self) -> &INode<T> {
        &self.0
    }
}

impl<T: FileSystem> Drop for NewINode<T> {
    fn drop(&mut self) {
        // SAFETY: `self` is being dropped, so the reference is taken once.
        let inode = ARef::into_raw(unsafe { ManuallyDrop::take(&mut self.0) });
        // SAFETY: By the type invariant; wakes those that wait for the inode, and drops the
        // reference.
        unsafe { bindings::iget_failed(inode.as_ptr().cast()) };
    }
}

/// What the inode cache compares: the filesystem's way to find an inode among those of one hash.
pub trait Key<T: FileSystem> {
    /// Whether `info` is that of the inode looked for. Called with a spinlock held: must not sleep.
    fn matches(&self, inode: &INode<T>) -> bool;

    /// Makes `info`, of an inode that is about to be hashed, match. Must not sleep.
    fn set(&self, inode: &INode<T>);
}

/// # Safety
///
/// `inode` must be an inode of `T`, `key` what `iget5_locked` was given, a `&K`.
pub(crate) unsafe extern "C" fn key_test<T: FileSystem, K: Key<T>>(
    inode: *mut bindings::inode,
    key: *mut kernel::ffi::c_void,
) -> kernel::ffi::c_int {
    // SAFETY: By the function's contract.
    let inode = unsafe { INode::from_raw(inode) };
    // SAFETY: By the function's contract.
    let key = unsafe { &*key.cast::<K>() };
    key.matches(inode).into()
}

/// # Safety
///
/// As for [`key_test`].
pub(crate) unsafe extern "C" fn key_set<T: FileSystem, K: Key<T>>(
    inode: *mut bindings::inode,
    key: *mut kernel::ffi::c_void,
) -> kernel::ffi::c_int {
    // SAFETY: By the function's contract.
    let inode = unsafe { INode::from_raw(inode) };
    // SAFETY: By the function's contract.
    let key = unsafe { &*key.cast::<K>() };
    key.set(inode);
    0
}

impl<T: FileSystem> SuperBlock<T> {
    /// Finds the inode that `key` matches in the cache. Sleeps while it is being set up, or going.
    pub fn ilookup5<K: Key<T>>(&self, hash: u64, key: &K) -> Option<ARef<INode<T>>> {
        let key = core::ptr::from_ref(key).cast_mut().cast();
        // SAFETY: The callback gets inodes of this superblock and `key`, which outlives the call.
        let inode = unsafe { bindings::ilookup5(self.as_ptr(), hash, Some(key_test::<T, K>), key) };
        // SAFETY: `ilookup5` returns a reference to an inode of this superblock.
        NonNull::new(inode).map(|inode| unsafe { ARef::from_raw(inode.cast()) })
    }

    /// Finds the inode that `key` matches in the cache, or makes a new one for it. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn iget5_locked<K: Key<T>>(&self, hash: u64, key: &K) -> Result<Iget<T>> {
        let key = core::ptr::from_ref(key).cast_mut().cast();
        // SAFETY: The callbacks get inodes of this superblock and `key`, which outlives the call.
        let inode = unsafe {
            bindings::iget5_locked(
                self.as_ptr(),
                hash,
                Some(key_test::<T, K>),
                Some(key_set::<T, K>),
                key,
            )
        };
        let inode = NonNull::new(inode).ok_or(ENOMEM)?;
        // SAFETY: `iget5_locked` returns a reference to an inode of this superblock.
        let inode: ARef<INode<T>> = unsafe { ARef::from_raw(inode.cast()) };
        // SAFETY: The inode is valid.
        let state = unsafe { bindings::inode_state_read_once(inode.as_ptr()) };
        if state & bindings::inode_state_flags_enum_I_NEW != 0 {
            // INVARIANT: `iget5_locked` hashed the inode, and `I_NEW` is set.
            Ok(Iget::New(NewINode(ManuallyDrop::new(inode))))
        } else {
            Ok(Iget::Cached(inode))
        }
    }
}
