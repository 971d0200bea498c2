// SPDX-License-Identifier: GPL-2.0

//! What bindgen makes of `include/uapi/linux/fuse.h`, to compare `fuse_abi` with.

#![no_std]
#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]
#![allow(clippy::all)]

include!(concat!(env!("OUT_DIR"), "/fuse.rs"));

/// The text of the header.
pub const HEADER: &str = include_str!(env!("FUSE_UAPI_HEADER"));
