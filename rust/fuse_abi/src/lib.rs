// SPDX-License-Identifier: GPL-2.0

//! The FUSE wire protocol, version 7.46.
//!
//! Everything that goes between the kernel and a FUSE server: structs, numbers, flags, and the
//! rules for what a message may look like. It is the only place that reads bytes which a server
//! wrote: any bytes give a value or a [`Malformed`], never a panic. Nothing here allocates, sleeps
//! or keeps state.
//!
//! Names are those of `include/uapi/linux/fuse.h` without `fuse_`; `layout_check.rs` beside this
//! crate compares sizes, offsets and numbers with that header at compile time. Integers are in the
//! byte order of the machine.

#![no_std]
#![forbid(unsafe_code)]
// A panic in the kernel is a BUG, and the overflow checks are on.
#![warn(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

#[macro_use]
mod macros;

mod attr;
mod compat;
mod device;
mod dirent;
mod ext;
mod flags;
mod header;
mod init;
mod malformed;
mod notify;
mod opcode;
mod reply;
mod request;
mod uring;

pub use attr::*;
pub use compat::{Argument, Reply};
pub use device::*;
pub use dirent::*;
pub use ext::*;
pub use flags::*;
pub use header::*;
pub use init::*;
pub use malformed::Malformed;
pub use notify::*;
pub use opcode::Opcode;
pub use reply::*;
pub use request::*;
pub use uring::*;

/// Major version.
pub const VERSION: u32 = 7;

/// Minor version.
pub const MINOR_VERSION: u32 = 46;

/// Node ID of a mount's root.
pub const ROOT_ID: u64 = 1;
