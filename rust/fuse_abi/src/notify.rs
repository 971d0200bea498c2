// SPDX-License-Identifier: GPL-2.0

//! Notifications: messages from the server that answer no request. They have the unique ID 0.

use crate::{flags::InvalEntryFlags, malformed::exact, Malformed};

wire_enum! {
    /// What a notification is about; stands in [`crate::OutHeader::error`].
    pub enum NotifyCode {
        /// Wake those who poll a file.
        Poll = 1, "NOTIFY_POLL";
        /// Forget cached attributes and data of a node.
        InvalInode = 2, "NOTIFY_INVAL_INODE";
        /// Forget a name.
        InvalEntry = 3, "NOTIFY_INVAL_ENTRY";
        /// Put data into the page cache.
        Store = 4, "NOTIFY_STORE";
        /// Read data from the page cache; answered by a NOTIFY_REPLY request.
        Retrieve = 5, "NOTIFY_RETRIEVE";
        /// A name was removed.
        Delete = 6, "NOTIFY_DELETE";
        /// Send all unanswered requests again.
        Resend = 7, "NOTIFY_RESEND";
        /// All cached names are stale.
        IncEpoch = 8, "NOTIFY_INC_EPOCH";
        /// Drop unused cached names of some nodes.
        Prune = 9, "NOTIFY_PRUNE";
    }
}

impl NotifyCode {
    /// Bytes of the fixed part that follows the [`crate::OutHeader`].
    pub const fn fixed_size(self) -> usize {
        match self {
            Self::Poll => size_of::<NotifyPollWakeupOut>(),
            Self::InvalInode => size_of::<NotifyInvalInodeOut>(),
            Self::InvalEntry => size_of::<NotifyInvalEntryOut>(),
            Self::Store => size_of::<NotifyStoreOut>(),
            Self::Retrieve => size_of::<NotifyRetrieveOut>(),
            Self::Delete => size_of::<NotifyDeleteOut>(),
            Self::Prune => size_of::<NotifyPruneOut>(),
            Self::Resend | Self::IncEpoch => 0,
        }
    }
}

wire! {
    /// POLL.
    pub struct NotifyPollWakeupOut {
        /// The kernel's handle of the file, from [`crate::PollIn::kh`].
        pub kh: u64,
    }

    /// INVAL_INODE.
    pub struct NotifyInvalInodeOut {
        /// Node ID.
        pub ino: u64,
        /// Start of the data to drop, in bytes; negative: only the attributes.
        pub off: i64,
        /// Length of the data to drop, in bytes; 0 or less: up to the end.
        pub len: i64,
    }

    /// INVAL_ENTRY; the name and a NUL follow.
    pub struct NotifyInvalEntryOut {
        /// Node ID of the directory.
        pub parent: u64,
        /// Bytes of the name, without the NUL.
        pub namelen: u32,
        /// How to forget it.
        pub flags: InvalEntryFlags,
    }

    /// DELETE; the name and a NUL follow.
    pub struct NotifyDeleteOut {
        /// Node ID of the directory.
        pub parent: u64,
        /// Node ID that the name had.
        pub child: u64,
        /// Bytes of the name, without the NUL.
        pub namelen: u32,
        /// Unused.
        pub padding: u32,
    }

    /// STORE; the data follow.
    pub struct NotifyStoreOut {
        /// Node ID.
        pub nodeid: u64,
        /// Where the data go, in bytes.
        pub offset: u64,
        /// Bytes of data.
        pub size: u32,
        /// Unused.
        pub padding: u32,
    }

    /// RETRIEVE.
    pub struct NotifyRetrieveOut {
        /// ID that the server gives to the NOTIFY_REPLY request.
        pub notify_unique: u64,
        /// Node ID.
        pub nodeid: u64,
        /// Where the data are, in bytes.
        pub offset: u64,
        /// Bytes wanted at most.
        pub size: u32,
        /// Unused.
        pub padding: u32,
    }

    /// Argument of NOTIFY_REPLY; the data follow. Kernel to server. As large as [`crate::WriteIn`].
    pub struct NotifyRetrieveIn {
        /// Zero.
        pub dummy1: u64,
        /// Where the data are, in bytes.
        pub offset: u64,
        /// Bytes of data.
        pub size: u32,
        /// Zero.
        pub dummy2: u32,
        /// Zero.
        pub dummy3: u64,
        /// Zero.
        pub dummy4: u64,
    }

    /// PRUNE; that many node IDs of 8 bytes follow.
    pub struct NotifyPruneOut {
        /// How many node IDs.
        pub count: u32,
        /// Unused.
        pub padding: u32,
        /// Unused.
        pub spare: u64,
    }
}

impl NotifyInvalEntryOut {
    /// Checks a notification with `payload` bytes after the [`crate::OutHeader`]; gives the bytes
    /// of the name, which follow this struct. `name_max` is the longest name in bytes that the
    /// mount allows.
    pub fn name_len(&self, payload: usize, name_max: usize) -> Result<usize, Malformed> {
        name_len::<Self>(self.namelen, payload, name_max)
    }
}

impl NotifyDeleteOut {
    /// As [`NotifyInvalEntryOut::name_len`].
    pub fn name_len(&self, payload: usize, name_max: usize) -> Result<usize, Malformed> {
        name_len::<Self>(self.namelen, payload, name_max)
    }
}

fn name_len<T>(namelen: u32, payload: usize, name_max: usize) -> Result<usize, Malformed> {
    let len = namelen as usize;
    if len > name_max {
        return Err(Malformed::NameTooLong(namelen));
    }
    exact(
        payload,
        size_of::<T>().saturating_add(len).saturating_add(1),
    )?;
    Ok(len)
}

impl NotifyStoreOut {
    /// Checks a notification with `payload` bytes after the [`crate::OutHeader`]; gives the bytes
    /// of data, which follow this struct.
    pub fn data_len(&self, payload: usize) -> Result<usize, Malformed> {
        let len = self.size as usize;
        exact(payload, size_of::<Self>().saturating_add(len))?;
        Ok(len)
    }
}

impl NotifyPruneOut {
    /// Checks a notification with `payload` bytes after the [`crate::OutHeader`]; gives the number
    /// of node IDs, of 8 bytes each, which follow this struct.
    pub fn nodeids(&self, payload: usize) -> Result<usize, Malformed> {
        let count = self.count as usize;
        exact(
            payload,
            count
                .saturating_mul(size_of::<u64>())
                .saturating_add(size_of::<Self>()),
        )?;
        Ok(count)
    }
}
