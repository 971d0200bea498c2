// SPDX-License-Identifier: GPL-2.0

//! What the programs that run FUSE daemons on fuse_rs beside an in-tree client have in common.
//!
//! A daemon knows the in-tree client by its names: `/dev/fuse`, the filesystem type `fuse`, the
//! program `fusermount3`. These programs lead it to those of fuse_rs.

#![forbid(unsafe_code)]

pub mod conf;
pub mod daemon;
pub mod error;
pub mod fusermount;
pub mod helper;
pub mod launch;
pub mod mount;
pub mod mountinfo;
pub mod mountpoint;
pub mod options;
pub mod privileges;

/// The device that daemons open. `make` puts no other name into the module.
pub const DEVICE: &str = "/dev/fuse_rs";

/// The filesystem type; followed by a dot and the subtype in the list of mounts.
pub const FS_TYPE: &str = "fuse_rs";

/// The filesystem type of mounts that stand for a block device.
pub const BLK_TYPE: &str = "fuseblk_rs";
