// SPDX-License-Identifier: GPL-2.0

//! What can be wrong with the bytes of the other side.

use core::{cmp::Ordering, fmt};

/// Why a message cannot be what it claims to be.
///
/// Which errno a caller makes of it depends on where the message came from; only
/// [`Malformed::NameTooLong`] has an errno of its own (`ENAMETOOLONG`) on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than the message needs.
    TooShort {
        /// Bytes there are.
        got: usize,
        /// Bytes there must be.
        want: usize,
    },
    /// More bytes than the message may have.
    TooLong {
        /// Bytes there are.
        got: usize,
        /// Bytes there may be.
        want: usize,
    },
    /// The error of a reply is not in `-511..=0`.
    Error(i32),
    /// An opcode, notification or command that the protocol does not have.
    Code(u32),
    /// The file mode has none of the seven file types.
    FileType(u32),
    /// A file size or offset above `i64::MAX`.
    FileSize(u64),
    /// A node ID that cannot be that of a new child: 0 or the root's.
    NodeId(u64),
    /// A name of no bytes.
    NameEmpty,
    /// A name of more bytes than the mount allows.
    NameTooLong(u32),
    /// A name with `/` in it.
    NameSlash,
    /// A list of names that does not end with NUL.
    NameUnterminated,
    /// A reply that claims more bytes done than were asked for.
    Count {
        /// Bytes that the server says it has done.
        got: u64,
        /// Bytes that it was asked to do.
        want: u64,
    },
    /// A lock with an unknown type, or a range that ends before it starts or above `i64::MAX`.
    Lock,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { got, want } => write!(f, "{got} bytes where {want} are needed"),
            Self::TooLong { got, want } => write!(f, "{got} bytes where {want} are allowed"),
            Self::Error(error) => write!(f, "error {error} out of range"),
            Self::Code(code) => write!(f, "unknown code {code}"),
            Self::FileType(mode) => write!(f, "mode {mode:#o} has no file type"),
            Self::FileSize(size) => write!(f, "file size or offset {size} out of range"),
            Self::NodeId(nodeid) => write!(f, "node ID {nodeid} for a child"),
            Self::NameEmpty => f.write_str("empty name"),
            Self::NameTooLong(len) => write!(f, "name of {len} bytes"),
            Self::NameSlash => f.write_str("name with a slash"),
            Self::NameUnterminated => f.write_str("list of names does not end with NUL"),
            Self::Count { got, want } => write!(f, "{got} bytes done where {want} were asked for"),
            Self::Lock => f.write_str("lock of unknown type or with a bad range"),
        }
    }
}

impl core::error::Error for Malformed {}

/// Checks a length that must be met exactly.
pub(crate) fn exact(got: usize, want: usize) -> Result<(), Malformed> {
    match got.cmp(&want) {
        Ordering::Less => Err(Malformed::TooShort { got, want }),
        Ordering::Greater => Err(Malformed::TooLong { got, want }),
        Ordering::Equal => Ok(()),
    }
}
