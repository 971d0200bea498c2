// SPDX-License-Identifier: GPL-2.0

//! Replies. Server to kernel.
//!
//! A reply stands behind the [`crate::OutHeader`]. The structs are as the server sent them; where a
//! value can be out of range, a method checks it.

use crate::{
    attr::file_size,
    flags::{IoctlFlags, OpenFlags},
    Attr, FileLock, Kstatfs, Malformed, Reply, Statx, ROOT_ID,
};

wire! {
    /// LOOKUP, and all requests that make a node.
    pub struct EntryOut {
        /// The node; 0: there is none (LOOKUP only). A reply with a node adds one to its lookup
        /// count.
        pub nodeid: u64,
        /// Tells apart the files that had this node ID one after the other.
        pub generation: u64,
        /// Seconds for which the name is valid.
        pub entry_valid: u64,
        /// Seconds for which the attributes are valid.
        pub attr_valid: u64,
        /// Nanoseconds beside `entry_valid`.
        pub entry_valid_nsec: u32,
        /// Nanoseconds beside `attr_valid`.
        pub attr_valid_nsec: u32,
        /// Attributes of the node.
        pub attr: Attr,
    }

    /// GETATTR and SETATTR.
    pub struct AttrOut {
        /// Seconds for which the attributes are valid.
        pub attr_valid: u64,
        /// Nanoseconds beside `attr_valid`.
        pub attr_valid_nsec: u32,
        /// Unused.
        pub dummy: u32,
        /// Attributes of the node.
        pub attr: Attr,
    }

    /// STATX.
    pub struct StatxOut {
        /// Seconds for which the attributes are valid.
        pub attr_valid: u64,
        /// Nanoseconds beside `attr_valid`.
        pub attr_valid_nsec: u32,
        /// Unused.
        pub flags: u32,
        /// Unused.
        pub spare: [u64; 2],
        /// Attributes of the node.
        pub stat: Statx,
    }

    /// OPEN and OPENDIR; in CREATE and TMPFILE behind an [`EntryOut`].
    pub struct OpenOut {
        /// Handle that later requests name.
        pub fh: u64,
        /// How the open file behaves.
        pub open_flags: OpenFlags,
        /// Backing file, with [`OpenFlags::PASSTHROUGH`].
        pub backing_id: i32,
    }

    /// WRITE, and COPY_FILE_RANGE.
    pub struct WriteOut {
        /// Bytes written.
        pub size: u32,
        /// Unused.
        pub padding: u32,
    }

    /// STATFS.
    pub struct StatfsOut {
        /// The numbers.
        pub st: Kstatfs,
    }

    /// GETXATTR and LISTXATTR, when the size was asked for.
    pub struct GetxattrOut {
        /// Bytes.
        pub size: u32,
        /// Unused.
        pub padding: u32,
    }

    /// GETLK.
    pub struct LkOut {
        /// The lock in the way; of type `F_UNLCK` if there is none.
        pub lk: FileLock,
    }

    /// BMAP.
    pub struct BmapOut {
        /// Block of the device, in units of [`crate::BmapIn::blocksize`].
        pub block: u64,
    }

    /// One piece of the caller's memory, in an IOCTL reply that asks for a retry.
    pub struct IoctlIovec {
        /// Address in the caller.
        pub base: u64,
        /// Bytes.
        pub len: u64,
    }

    /// IOCTL; output data follow, or with [`IoctlFlags::RETRY`] the iovecs.
    pub struct IoctlOut {
        /// What ioctl(2) returns.
        pub result: i32,
        /// Whether to retry.
        pub flags: IoctlFlags,
        /// How many iovecs of input.
        pub in_iovs: u32,
        /// How many iovecs of output, after those of input.
        pub out_iovs: u32,
    }

    /// POLL.
    pub struct PollOut {
        /// `POLL*` that have happened.
        pub revents: u32,
        /// Unused.
        pub padding: u32,
    }

    /// LSEEK.
    pub struct LseekOut {
        /// Bytes into the file.
        pub offset: u64,
    }

    /// COPY_FILE_RANGE_64.
    pub struct CopyFileRangeOut {
        /// Bytes copied.
        pub bytes_copied: u64,
    }
}

/// Most iovecs, input and output together, that an IOCTL reply may ask for.
pub const IOCTL_MAX_IOV: usize = 256;

/// CREATE and TMPFILE: the new node and the open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOut {
    /// The node.
    pub entry: EntryOut,
    /// The open file.
    pub open: OpenOut,
}

impl EntryOut {
    /// Whether LOOKUP says that there is no such name.
    pub const fn is_negative(&self) -> bool {
        self.nodeid == 0
    }

    /// Checks a reply that must name a node below a directory: not 0, not the root, and with
    /// attributes that a client can use. Looking up ".." may lead to the root: check only
    /// [`EntryOut::attr`] there.
    pub fn validate(&self) -> Result<(), Malformed> {
        if self.nodeid == 0 || self.nodeid == ROOT_ID {
            return Err(Malformed::NodeId(self.nodeid));
        }
        self.attr.validate()
    }
}

impl WriteOut {
    /// Bytes written, of `wanted`.
    pub fn written(&self, wanted: u32) -> Result<u32, Malformed> {
        at_most(u64::from(self.size), u64::from(wanted))?;
        Ok(self.size)
    }
}

impl CopyFileRangeOut {
    /// Bytes copied, of `wanted`.
    pub fn copied(&self, wanted: u64) -> Result<u64, Malformed> {
        at_most(self.bytes_copied, wanted)?;
        Ok(self.bytes_copied)
    }
}

impl LseekOut {
    /// The offset found, which fits the VFS's loff_t.
    pub fn offset(&self) -> Result<i64, Malformed> {
        file_size(self.offset)?;
        Ok(self.offset as i64)
    }
}

/// Names of a LISTXATTR reply.
///
/// Fails unless the list is made of names that are not empty and each end with NUL.
pub fn xattr_names(list: &[u8]) -> Result<impl Iterator<Item = &[u8]> + Clone, Malformed> {
    let names = match list.split_last() {
        None => None,
        Some((0, names)) => Some(names.split(|&byte| byte == 0)),
        Some(_) => return Err(Malformed::NameUnterminated),
    };
    let names = names.into_iter().flatten();
    if names.clone().any(<[u8]>::is_empty) {
        return Err(Malformed::NameEmpty);
    }
    Ok(names)
}

fn at_most(got: u64, want: u64) -> Result<(), Malformed> {
    if got > want {
        return Err(Malformed::Count { got, want });
    }
    Ok(())
}

impl Reply for CreateOut {
    fn wire_size(minor: u32) -> usize {
        EntryOut::wire_size(minor).saturating_add(OpenOut::wire_size(minor))
    }

    fn parse(payload: &[u8], minor: u32) -> Result<Self, Malformed> {
        let Some((entry, open)) = payload.split_at_checked(EntryOut::wire_size(minor)) else {
            return Err(Malformed::TooShort {
                got: payload.len(),
                want: Self::wire_size(minor),
            });
        };
        Ok(Self {
            entry: EntryOut::parse(entry, minor)?,
            open: OpenOut::parse(open, minor)?,
        })
    }
}
