// SPDX-License-Identifier: GPL-2.0

//! The words of flags, one file each.
//!
//! Bits that have no name are kept: `from_bits_retain` or reading from the wire never fail.

mod attr;
mod cuse_init;
mod fsync;
mod getattr;
mod init;
mod inval_entry;
mod ioctl;
mod lk;
mod open;
mod open_in;
mod poll;
mod read;
mod release;
mod setattr;
mod setupmapping;
mod setxattr;
mod uring_ent;
mod uring_queue;
mod write;

pub use attr::AttrFlags;
pub use cuse_init::CuseInitFlags;
pub use fsync::FsyncFlags;
pub use getattr::GetattrFlags;
pub use init::InitFlags;
pub use inval_entry::InvalEntryFlags;
pub use ioctl::IoctlFlags;
pub use lk::LkFlags;
pub use open::OpenFlags;
pub use open_in::OpenInFlags;
pub use poll::PollFlags;
pub use read::ReadFlags;
pub use release::ReleaseFlags;
pub use setattr::SetattrValid;
pub use setupmapping::SetupmappingFlags;
pub use setxattr::SetxattrFlags;
pub use uring_ent::UringEntFlags;
pub use uring_queue::UringQueueFlags;
pub use write::WriteFlags;
