// SPDX-License-Identifier: GPL-2.0

//! The first request of a connection.

use crate::{
    compat::read_padded,
    flags::{CuseInitFlags, InitFlags},
    Malformed, MINOR_VERSION, VERSION,
};

wire! {
    /// INIT. Kernel to server.
    pub struct InitIn {
        /// The kernel's major version.
        pub major: u32,
        /// The kernel's minor version.
        pub minor: u32,
        /// Bytes that the kernel reads ahead at most. Since 7.6.
        pub max_readahead: u32,
        /// Features on offer, low half. Since 7.6.
        pub flags: u32,
        /// Features on offer, high half. Since 7.36.
        pub flags2: u32,
        /// Zero.
        pub unused: [u32; 11],
    }

    /// INIT. Server to kernel. Servers send as much of it as they know.
    pub struct InitOut {
        /// The server's major version. If it is not the kernel's, nothing else counts.
        pub major: u32,
        /// The server's minor version; the smaller of both is spoken.
        pub minor: u32,
        /// Bytes to read ahead at most. Since 7.6.
        pub max_readahead: u32,
        /// Features wanted, low half. Since 7.5.
        pub flags: u32,
        /// Background requests at most; 0: as the kernel likes. Since 7.13.
        pub max_background: u16,
        /// Background requests from which on the filesystem counts as busy; 0: as the kernel likes.
        /// Since 7.13.
        pub congestion_threshold: u16,
        /// Bytes of data in a WRITE at most. Since 7.5.
        pub max_write: u32,
        /// Granularity of times in nanoseconds, up to a second. Since 7.23.
        pub time_gran: u32,
        /// Pages of data in a request at most. Since 7.28.
        pub max_pages: u16,
        /// Log2 of the alignment in bytes of ranges of the DAX window. Since 7.31.
        pub map_alignment: u16,
        /// Features wanted, high half. Since 7.36.
        pub flags2: u32,
        /// Filesystems on top of each other at most, with passthrough. Since 7.40.
        pub max_stack_depth: u32,
        /// Seconds after which an unanswered request ends the connection. Since 7.43.
        pub request_timeout: u16,
        /// Unused.
        pub unused: [u16; 11],
    }

    /// CUSE_INIT. Kernel to server.
    pub struct CuseInitIn {
        /// The kernel's major version.
        pub major: u32,
        /// The kernel's minor version.
        pub minor: u32,
        /// Zero.
        pub unused: u32,
        /// What the kernel can do.
        pub flags: CuseInitFlags,
    }

    /// CUSE_INIT. Server to kernel; lines of `KEY=value`, each ended by NUL, follow.
    pub struct CuseInitOut {
        /// The server's major version.
        pub major: u32,
        /// The server's minor version.
        pub minor: u32,
        /// Unused.
        pub unused: u32,
        /// What the server wants.
        pub flags: CuseInitFlags,
        /// Bytes of data in a READ at most.
        pub max_read: u32,
        /// Bytes of data in a WRITE at most.
        pub max_write: u32,
        /// Major number of the device; 0: any.
        pub dev_major: u32,
        /// Minor number of the device.
        pub dev_minor: u32,
        /// Unused.
        pub spare: [u32; 10],
    }
}

/// Bytes that follow [`CuseInitOut`] at most.
pub const CUSE_INIT_INFO_MAX: usize = 4096;

impl InitIn {
    /// What this version of the protocol sends. `max_readahead` in bytes.
    pub const fn new(max_readahead: u32, offer: InitFlags) -> Self {
        let (flags, flags2) = offer.split();
        Self {
            major: VERSION,
            minor: MINOR_VERSION,
            max_readahead,
            flags,
            flags2,
            unused: [0; 11],
        }
    }
}

impl InitOut {
    /// Reads the bytes behind the [`crate::OutHeader`]. They may end early; what is missing is
    /// zero.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        if payload.len() > size_of::<Self>() {
            return Err(Malformed::TooLong {
                got: payload.len(),
                want: size_of::<Self>(),
            });
        }
        Ok(read_padded(payload))
    }

    /// The features that the server picked: none before 7.6, the high half only if it says that it
    /// knows of it.
    pub const fn features(&self) -> InitFlags {
        if self.minor < 6 {
            return InitFlags::empty();
        }
        let low = InitFlags::join(self.flags, 0);
        if low.contains(InitFlags::INIT_EXT) {
            InitFlags::join(self.flags, self.flags2)
        } else {
            low
        }
    }
}
