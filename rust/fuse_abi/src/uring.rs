// SPDX-License-Identifier: GPL-2.0

//! Requests over io_uring.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::flags::{UringEntFlags, UringQueueFlags};

/// Bytes kept for [`crate::InHeader`] or [`crate::OutHeader`] in [`UringReqHeader`].
pub const URING_IN_OUT_HEADER_SZ: usize = 128;

/// Bytes kept for the first argument in [`UringReqHeader`].
pub const URING_OP_IN_OUT_SZ: usize = 128;

wire_enum! {
    /// What a `IORING_OP_URING_CMD` of the server asks for.
    pub enum UringCmd {
        /// Nothing; never sent.
        Invalid = 0, "IO_URING_CMD_INVALID";
        /// Make an entry known and wait for a request.
        Register = 1, "IO_URING_CMD_REGISTER";
        /// Answer a request and wait for the next.
        CommitAndFetch = 2, "IO_URING_CMD_COMMIT_AND_FETCH";
        /// Make a queue.
        AddQueue = 3, "IO_URING_CMD_ADD_QUEUE";
        /// Give a buffer pool to a queue.
        AddBufpool = 4, "IO_URING_CMD_ADD_BUFPOOL";
    }
}

wire! {
    /// What the ring itself needs to know of a request.
    pub struct UringEntInOut {
        /// How the payload is handed over.
        pub flags: UringEntFlags,
        /// ID with which the server answers, in [`UringCmdReq::commit_id`].
        pub commit_id: u64,
        /// Bytes of payload, in both directions.
        pub payload_sz: u32,
        /// Bytes into the buffer pool, if there is one.
        pub offset: u32,
        /// Unused.
        pub reserved: u64,
    }

    /// Memory of the server from which payload buffers are taken.
    pub struct UringBufpool {
        /// Address in the server.
        pub uaddr: u64,
        /// Bytes.
        pub len: u32,
        /// Zero.
        pub reserved: u32,
    }

    /// The command area, of 80 bytes, of a submission queue entry. Server to kernel.
    pub struct UringCmdReq {
        /// For [`UringCmd::AddQueue`].
        pub flags: UringQueueFlags,
        /// Which request is answered.
        pub commit_id: u64,
        /// Queue, by the number of its CPU.
        pub qid: u16,
        /// Zero.
        pub padding: [u8; 6],
        /// For [`UringCmd::AddBufpool`]; the same place holds
        /// [`UringCmdReq::ent_zero_copy_buf_index`].
        pub bufpool: UringBufpool,
    }
}

/// Header of a request on the ring, in the server's memory; in both directions.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct UringReqHeader {
    /// [`crate::InHeader`], overwritten by the [`crate::OutHeader`] of the reply.
    pub in_out: [u8; URING_IN_OUT_HEADER_SZ],
    /// The request's first argument.
    pub op_in: [u8; URING_OP_IN_OUT_SZ],
    /// The ring's own.
    pub ring_ent_in_out: UringEntInOut,
}

impl Default for UringReqHeader {
    fn default() -> Self {
        zerocopy::FromZeros::new_zeroed()
    }
}

impl UringCmdReq {
    /// For [`UringCmd::Register`] on a zero-copy queue: slot of the server's table of registered
    /// buffers in which the entry's pages are put. Must be 0 on other queues.
    pub const fn ent_zero_copy_buf_index(&self) -> u16 {
        let [a, b, ..] = self.bufpool.uaddr.to_ne_bytes();
        u16::from_ne_bytes([a, b])
    }
}
