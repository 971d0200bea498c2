// SPDX-License-Identifier: GPL-2.0

//! Who is calling: credentials, user and PID namespaces.
//!
//! A [`Kuid`] or [`Kgid`] is the kernel's own number, the same for everyone; a plain `u32` is one
//! only together with the [`UserNamespace`] it is understood in. Nothing here sleeps.
//!
//! C headers: [`include/linux/cred.h`](srctree/include/linux/cred.h),
//! [`include/linux/uidgid.h`](srctree/include/linux/uidgid.h),
//! [`include/linux/user_namespace.h`](srctree/include/linux/user_namespace.h),
//! [`include/linux/pid_namespace.h`](srctree/include/linux/pid_namespace.h)

use core::ptr::NonNull;
use fuse_bindings as bindings;
use kernel::{
    fs::LocalFile,
    pid_namespace::PidNamespace,
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque, //
};

/// What a `u32` is that stands for no ID (`INVALID_UID`, `INVALID_GID`).
const INVALID_ID: u32 = u32::MAX;

/// A user of the kernel's (`kuid_t`).
#[derive(Clone, Copy)]
pub struct Kuid(pub(crate) bindings::kuid_t);

impl PartialEq for Kuid {
    fn eq(&self, other: &Self) -> bool {
        self.0.val == other.0.val
    }
}

impl Eq for Kuid {}

/// A group of the kernel's (`kgid_t`).
#[derive(Clone, Copy)]
pub struct Kgid(pub(crate) bindings::kgid_t);

impl PartialEq for Kgid {
    fn eq(&self, other: &Self) -> bool {
        self.0.val == other.0.val
    }
}

impl Eq for Kgid {}

/// A mapping of user and group IDs, wrapping `struct user_namespace`.
///
/// # Invariants
///
/// The namespace is reference-counted, and has a reference as long as it is borrowed.
#[repr(transparent)]
pub struct UserNamespace(Opaque<bindings::user_namespace>);

// SAFETY: References can be dropped on any thread.
unsafe impl Send for UserNamespace {}
// SAFETY: The maps that the methods read are written once, before anyone uses the namespace by
// them.
unsafe impl Sync for UserNamespace {}

// SAFETY: `get_user_ns` and `put_user_ns` count references.
unsafe impl AlwaysRefCounted for UserNamespace {
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the namespace has a reference already.
        unsafe { bindings::get_user_ns(self.as_ptr()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference, which passes to `put_user_ns`.
        unsafe { bindings::put_user_ns(obj.cast().as_ptr()) };
    }
}

impl UserNamespace {
    /// Borrows a namespace.
    ///
    /// # Safety
    ///
    /// `ptr` must be valid, and keep a reference during `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *mut bindings::user_namespace) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    fn as_ptr(&self) -> *mut bindings::user_namespace {
        self.0.get()
    }

    /// The namespace of the task that opened `file`.
    pub fn of_opener(file: &LocalFile) -> &Self {
        let cred = file.cred().as_ptr();
        // SAFETY: Credentials are not changed once a file has them.
        let ns = unsafe { (*cred).user_ns };
        // SAFETY: Credentials hold a reference to their namespace, and the file holds the
        // credentials.
        unsafe { Self::from_raw(ns) }
    }

    /// Whether it is the one that the system booted with.
    pub fn is_init(&self) -> bool {
        core::ptr::eq(self.as_ptr(), &raw const bindings::init_user_ns)
    }

    /// Whether the caller is in this namespace or one below it.
    pub fn has_current(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::current_in_userns(self.as_ptr()) }
    }

    /// The user that `uid` is here; one that nobody is (`INVALID_UID`) if there is none.
    pub fn make_kuid(&self, uid: u32) -> Kuid {
        // SAFETY: By the type invariant.
        Kuid(unsafe { bindings::make_kuid(self.as_ptr(), uid) })
    }

    /// The group that `gid` is here; one that nobody is in (`INVALID_GID`) if there is none.
    pub fn make_kgid(&self, gid: u32) -> Kgid {
        // SAFETY: By the type invariant.
        Kgid(unsafe { bindings::make_kgid(self.as_ptr(), gid) })
    }

    /// What `uid` is called here, if it is known.
    pub fn from_kuid(&self, uid: Kuid) -> Option<u32> {
        // SAFETY: By the type invariant.
        match unsafe { bindings::from_kuid(self.as_ptr(), uid.0) } {
            INVALID_ID => None,
            uid => Some(uid),
        }
    }

    /// What `gid` is called here, if it is known.
    pub fn from_kgid(&self, gid: Kgid) -> Option<u32> {
        // SAFETY: By the type invariant.
        match unsafe { bindings::from_kgid(self.as_ptr(), gid.0) } {
            INVALID_ID => None,
            gid => Some(gid),
        }
    }

    /// What `uid` is called here, the overflow user (65534 by default) if it is not known.
    pub fn from_kuid_munged(&self, uid: Kuid) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { bindings::from_kuid_munged(self.as_ptr(), uid.0) }
    }

    /// What `gid` is called here, the overflow group (65534 by default) if it is not known.
    pub fn from_kgid_munged(&self, gid: Kgid) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { bindings::from_kgid_munged(self.as_ptr(), gid.0) }
    }
}

impl PartialEq for UserNamespace {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for UserNamespace {}

/// The IDs of a task.
pub struct Ids {
    /// Real user.
    pub uid: Kuid,
    /// Effective user.
    pub euid: Kuid,
    /// Saved user.
    pub suid: Kuid,
    /// User that the task accesses files as.
    pub fsuid: Kuid,
    /// Real group.
    pub gid: Kgid,
    /// Effective group.
    pub egid: Kgid,
    /// Saved group.
    pub sgid: Kgid,
    /// Group that the task accesses files as.
    pub fsgid: Kgid,
}

/// The IDs of the caller (`current_cred`).
pub fn current_ids() -> Ids {
    // SAFETY: A task has credentials, and only the task itself replaces them.
    let cred = unsafe { &*bindings::current_cred() };
    Ids {
        uid: Kuid(cred.uid),
        euid: Kuid(cred.euid),
        suid: Kuid(cred.suid),
        fsuid: Kuid(cred.fsuid),
        gid: Kgid(cred.gid),
        egid: Kgid(cred.egid),
        sgid: Kgid(cred.sgid),
        fsgid: Kgid(cred.fsgid),
    }
}

/// Whether the caller administers the system: has `CAP_SYS_ADMIN` in the first user namespace.
/// Using it is audited.
pub fn is_sys_admin() -> bool {
    // SAFETY: There are no requirements.
    unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as c_int) }
}

/// The PID namespace of the caller.
///
/// # Errors
///
/// `ESRCH` while the caller exits.
pub fn current_pid_ns() -> Result<ARef<PidNamespace>> {
    Ok(kernel::current!().active_pid_ns().ok_or(ESRCH)?.into())
}

/// The ID of the calling thread in `ns` (`pid_nr_ns`); 0 if it has none there.
pub fn current_pid(ns: &PidNamespace) -> u32 {
    // SAFETY: A task that runs has a PID, and keeps it.
    let pid = unsafe { bindings::task_pid(bindings::get_current()) };
    // SAFETY: `pid` is valid as above, and `ns` is borrowed.
    let nr = unsafe { bindings::pid_nr_ns(pid, ns.as_ptr()) };
    // Never negative.
    nr as u32
}

/// The ID of the calling process in `ns`; 0 if it has none there.
pub fn current_process(ns: &PidNamespace) -> u32 {
    // SAFETY: The caller is a task, and `ns` is borrowed.
    let nr = unsafe { bindings::task_tgid_nr_ns(bindings::get_current(), ns.as_ptr()) };
    // Never negative.
    nr as u32
}

/// What the process `pid` of `ns` is called in the first PID namespace; 0 if there is none.
pub(crate) fn pid_from_ns(pid: u32, ns: &PidNamespace) -> i32 {
    // SAFETY: The namespace is borrowed; a number that no process has is found to be none.
    unsafe { bindings::pid_from_ns(pid as i32, ns.as_ptr()) }
}
