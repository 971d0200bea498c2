// SPDX-License-Identifier: GPL-2.0

//! Extensions: what may follow the last argument of a request that makes a node. Kernel to server.
//!
//! Each is filled up to a multiple of 8 bytes; [`crate::InHeader::total_extlen`] counts them all.

/// Security contexts in one extension at most. An [`ExtHeader::type_`] up to this is such a number,
/// above it a type.
pub const MAX_NR_SECCTX: u32 = 31;

/// [`ExtHeader::type_`] of supplementary groups.
pub const EXT_GROUPS: u32 = 32;

wire! {
    /// Start of an extension.
    pub struct ExtHeader {
        /// Bytes of the extension, this header included.
        pub size: u32,
        /// What it is.
        pub type_: u32,
    }

    /// Start of the extension with security contexts: an [`ExtHeader`] whose type is how many there
    /// are.
    pub struct SecctxHeader {
        /// Bytes of the extension, this header included.
        pub size: u32,
        /// How many [`Secctx`] follow.
        pub nr_secctx: u32,
    }

    /// One security context; the attribute's name with NUL and the value follow.
    pub struct Secctx {
        /// Bytes of the value.
        pub size: u32,
        /// Zero.
        pub padding: u32,
    }

    /// Start of what follows an [`ExtHeader`] of type [`EXT_GROUPS`]; the group IDs, of 4 bytes
    /// each, follow.
    pub struct SuppGroups {
        /// How many groups.
        pub nr_groups: u32,
    }
}
