// SPDX-License-Identifier: GPL-2.0

//! Registration of filesystem types.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/slab.h`](srctree/include/linux/slab.h)

use crate::{
    fs_context,
    inode::WithInfo,
    super_block::{self, SuperBlock},
    supers::Supers,
    FileSystem, //
};
use core::{
    marker::PhantomData,
    mem::{align_of, offset_of, size_of},
    ptr::{addr_of, NonNull}, //
};
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    module::this_module,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// Properties of a filesystem type, for [`FileSystem::FLAGS`].
pub mod flags {
    use fuse_bindings as bindings;
    use kernel::ffi::c_int;

    /// `mount -t NAME.SUBTYPE` is understood: SUBTYPE comes as the parameter `subtype`.
    pub const HAS_SUBTYPE: c_int = bindings::FS_HAS_SUBTYPE as c_int;

    /// The root of a user namespace may mount it.
    pub const USERNS_MOUNT: c_int = bindings::FS_USERNS_MOUNT as c_int;
}

/// The slab cache of the inodes of `T`.
///
/// # Invariants
///
/// Objects of the cache are `WithInfo<T>`, made by its constructor.
struct InodeCache<T>(NonNull<bindings::kmem_cache>, PhantomData<fn() -> T>);

impl<T: FileSystem> InodeCache<T> {
    fn new() -> Result<Self> {
        const {
            assert!(size_of::<WithInfo<T>>() <= c_uint::MAX as usize);
        }
        // Never merged with a cache of the same size: that it is empty when the module goes proves
        // that nothing leaks.
        let flags = bindings::SLAB_RECLAIM_ACCOUNT
            | bindings::SLAB_ACCOUNT
            | bindings::SLAB_HWCACHE_ALIGN
            | bindings::SLAB_NO_MERGE;
        // SAFETY: The name is static, and the constructor is that of the objects.
        let cache = unsafe {
            bindings::kmem_cache_create(
                T::INODE_CACHE.as_char_ptr(),
                size_of::<WithInfo<T>>() as c_uint,
                align_of::<WithInfo<T>>() as c_uint,
                flags,
                Some(WithInfo::<T>::init_once),
            )
        };
        // INVARIANT: Just made so.
        Ok(Self(NonNull::new(cache).ok_or(ENOMEM)?, PhantomData))
    }
}

impl<T> Drop for InodeCache<T> {
    fn drop(&mut self) {
        // The last inodes of the last mount may still wait for their grace period.
        //
        // SAFETY: The context may sleep, as modules come and go in one that may.
        unsafe { bindings::rcu_barrier() };
        // SAFETY: Nobody allocates from the cache any more, and all objects are back.
        unsafe { bindings::kmem_cache_destroy(self.0.as_ptr()) };
    }
}

/// A filesystem type that is registered, so that it can be mounted; and the slab cache of its
/// inodes.
///
/// Belongs into the module's own structure: lockdep wants the lock classes in it to be static.
///
/// # Invariants
///
/// `fs_type` is registered, with the operations of `T`. `inode_cache` and `info` are there from
/// before until after it is.
#[pin_data(PinnedDrop)]
pub struct Registration<T: FileSystem> {
    #[pin]
    fs_type: Opaque<bindings::file_system_type>,
    inode_cache: InodeCache<T>,
    supers: Arc<Supers<T>>,
    info: T::TypeInfo,
}

// SAFETY: A filesystem type can be unregistered on any thread.
unsafe impl<T: FileSystem> Send for Registration<T> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<T: FileSystem> Sync for Registration<T> {}

impl<T: FileSystem> Registration<T> {
    const FS_TYPE: bindings::file_system_type = bindings::file_system_type {
        fs_flags: T::FLAGS,
        init_fs_context: Some(fs_context::Table::<T>::init_fs_context),
        // The kernel crate only knows the name of the type.
        parameters: fs_context::Table::<T>::PARAMETERS.as_ptr().cast(),
        kill_sb: Some(super_block::kill_sb::<T>),
        owner: this_module::<T::OwnerModule>().as_ptr(),
        ..pin_init::zeroed()
    };

    /// Registers the type under `name`. May sleep. It can be mounted at once: what mounts need must
    /// be there before. Its superblocks are those of `supers`, which has none of another type.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a type of that name, `ENOMEM`.
    pub fn new(
        name: &'static CStr,
        info: T::TypeInfo,
        supers: Arc<Supers<T>>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            inode_cache: InodeCache::new()?,
            supers,
            info,
            fs_type <- Opaque::try_ffi_init(move |slot: *mut bindings::file_system_type| {
                let fs_type = bindings::file_system_type {
                    name: name.as_char_ptr(),
                    ..Self::FS_TYPE
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(fs_type) };
                // SAFETY: The type is pinned, and unregistered before its memory goes. The cache and
                // the information, on which the callbacks rely, are there already.
                to_result(unsafe { bindings::register_filesystem(slot) })
            }),
        })
    }

    /// What the type was registered with.
    ///
    /// # Safety
    ///
    /// `fs_type` must be that of a `Registration<T>` that outlives `'a`.
    pub(crate) unsafe fn info<'a>(fs_type: *mut bindings::file_system_type) -> &'a T::TypeInfo {
        // SAFETY: By the function's contract the result stays within the same allocation.
        let this: *const Self = unsafe { fs_type.byte_sub(offset_of!(Self, fs_type)).cast() };
        // SAFETY: The information is made before the type is registered, and not changed.
        unsafe { &(*this).info }
    }

    /// The cache of the inodes of a filesystem type.
    ///
    /// # Safety
    ///
    /// `fs_type` must be that of a `Registration<T>`.
    pub(crate) unsafe fn inode_cache(
        fs_type: *mut bindings::file_system_type,
    ) -> *mut bindings::kmem_cache {
        // SAFETY: By the function's contract the result stays within the same allocation.
        let this: *const Self = unsafe { fs_type.byte_sub(offset_of!(Self, fs_type)).cast() };
        // SAFETY: The cache is made before the type is registered, and not changed.
        unsafe { addr_of!((*this).inode_cache.0).read() }.as_ptr()
    }

    /// The registration of the type of `sb`.
    fn of(sb: &SuperBlock<T>) -> &Self {
        // SAFETY: `s_type` does not change.
        let fs_type = unsafe { (*sb.as_ptr()).s_type };
        // SAFETY: By the invariant of `SuperBlock` it is that of a `Registration<T>`, so that the
        // result stays within the same allocation.
        let this: *const Self = unsafe { fs_type.byte_sub(offset_of!(Self, fs_type)).cast() };
        // SAFETY: It was filled in before the first superblock, and outlives the last.
        unsafe { &*this }
    }

    /// The superblocks of the type of `sb`.
    pub(crate) fn supers(sb: &SuperBlock<T>) -> &Supers<T> {
        &Self::of(sb).supers
    }
}

#[pinned_drop]
impl<T: FileSystem> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // Mounts hold the module, so there are none. It only fails for a type that is not
        // registered.
        //
        // SAFETY: By the type invariant.
        let _ = unsafe { bindings::unregister_filesystem(self.fs_type.get()) };
    }
}
