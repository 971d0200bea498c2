// SPDX-License-Identifier: GPL-2.0

//! Tracepoints `fuse_rs:*`. They cost next to nothing while nobody traces; any context.
//!
//! C header: `fuse_rs_trace.h`.

use fuse_abi::Opcode;
use fuse_bindings as bindings;

/// A request was queued for the server of `connection`; it has `len` bytes, its header included.
pub fn request_send(connection: u32, unique: u64, opcode: Opcode, len: u32) {
    // SAFETY: Takes plain values.
    unsafe { bindings::trace_request_send(connection, unique, opcode as u32, len) };
}

/// A request was ended: with an answer of `len` bytes, its header included, or with `error`, a
/// negative errno.
pub fn request_end(connection: u32, unique: u64, len: u32, error: i32) {
    // SAFETY: Takes plain values.
    unsafe { bindings::trace_request_end(connection, unique, len, error) };
}
