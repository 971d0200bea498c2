// SPDX-License-Identifier: GPL-2.0

//! The unsafe pieces that carry FUSE names.

pub mod trace;
