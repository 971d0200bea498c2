// SPDX-License-Identifier: GPL-2.0

//! The module's parameters, as they are now: most may be changed at any time. Any context.
//!
//! `rust/helpers/params.c` makes them; its descriptions are what `modinfo` shows.

use fuse_bindings as bindings;

/// Most background requests of a server without `CAP_SYS_ADMIN`, at most 65535.
pub fn max_user_bgreq() -> u32 {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_max_user_bgreq() }
}

/// Highest congestion threshold of a server without `CAP_SYS_ADMIN`, at most 65535.
pub fn max_user_congthresh() -> u32 {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_max_user_congthresh() }
}

/// Whether `CAP_SYS_ADMIN` in the first user namespace is enough to use any mount.
pub fn allow_sys_admin_access() -> bool {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_allow_sys_admin_access() }
}

/// Whether the names of the in-tree client are taken. Does not change.
pub fn dropin() -> bool {
    // SAFETY: Reads a variable.
    unsafe { bindings::param_dropin() }
}
