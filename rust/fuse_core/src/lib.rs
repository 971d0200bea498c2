// SPDX-License-Identifier: GPL-2.0

//! The logic of the FUSE client that needs no kernel, and is tested on the host.
//!
//! * [`request`]: who owns a request, from its sender to the server and back.
//! * [`init`]: what client and server agree on by INIT.
//! * [`limits`]: how large a READ or WRITE and a folio may be.
//! * [`forget`]: how many FORGETs go into one read of the device, and when.
//! * [`lock_owner`]: how the owner of a lock is named to the server.
//!
//! Nothing here allocates, sleeps, locks or panics, whatever a server sends.

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

#[cfg(test)]
extern crate std;

pub mod forget;
pub mod init;
pub mod limits;
pub mod lock_owner;
pub mod request;
