// SPDX-License-Identifier: GPL-2.0

//! The unsafe pieces that carry FUSE names.

pub mod params;
pub mod trace;

/// Compares `fuse_abi` with the header of the kernel that this is built for, at compile time.
mod layout_check {
    use fuse_abi as abi;
    use fuse_bindings as uapi;

    include!("../fuse_abi/layout_check.rs");
}
