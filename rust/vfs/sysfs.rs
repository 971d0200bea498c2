// SPDX-License-Identifier: GPL-2.0

//! Directories under `/sys/fs`.
//!
//! C header: [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h)

use core::ptr::NonNull;
use fuse_bindings as bindings;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// A directory `/sys/fs/PARENT/NAME` to mount something on, which goes when it is dropped, and
/// `PARENT` with it.
///
/// # Invariants
///
/// `parent` is a kobject with a reference that is ours, and the mount point `name` is in it.
pub struct MountPoint {
    parent: NonNull<bindings::kobject>,
    name: &'static CStr,
}

// SAFETY: It may be dropped on any thread, and there is nothing else to do with it.
unsafe impl Send for MountPoint {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl Sync for MountPoint {}

impl MountPoint {
    /// Makes both directories. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if there is a `parent` already: C does not tell which it was.
    pub fn new(parent: &'static CStr, name: &'static CStr) -> Result<Self> {
        // SAFETY: `/sys/fs` is made while the kernel boots, and stays.
        let fs = unsafe { bindings::fs_kobj };
        // SAFETY: The name ends with NUL.
        let parent = unsafe { bindings::kobject_create_and_add(parent.as_char_ptr(), fs) };
        let parent = NonNull::new(parent).ok_or(ENOMEM)?;
        let c_name = name.as_char_ptr();
        // SAFETY: We have just been given the kobject.
        let ret = unsafe { bindings::sysfs_create_mount_point(parent.as_ptr(), c_name) };
        if let Err(error) = to_result(ret) {
            // SAFETY: The reference is ours, and not used again.
            unsafe { bindings::kobject_put(parent.as_ptr()) };
            return Err(error);
        }
        // INVARIANT: Just made.
        Ok(Self { parent, name })
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe {
            bindings::sysfs_remove_mount_point(self.parent.as_ptr(), self.name.as_char_ptr())
        };
        // SAFETY: The reference is ours, and not used again.
        unsafe { bindings::kobject_put(self.parent.as_ptr()) };
    }
}
