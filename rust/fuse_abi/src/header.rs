// SPDX-License-Identifier: GPL-2.0

//! The headers that start each message on the device, and how request IDs are formed.

use zerocopy::FromBytes;

use crate::{malformed::exact, Malformed, NotifyCode, Opcode, WriteIn};

/// Request IDs are multiples of this; the bits below are free for [`UNIQUE_INTERRUPT`].
pub const UNIQUE_STEP: u64 = 2;

/// Bit of a request ID that makes it the ID of the INTERRUPT for that request.
pub const UNIQUE_INTERRUPT: u64 = 1;

/// Bit of a request ID that marks a request which is sent again.
pub const UNIQUE_RESEND: u64 = 1 << 63;

/// Stands for a user or group ID that has no mapping, on an idmapped mount.
pub const INVALID_UIDGID: u32 = u32::MAX;

/// Bytes that a server's buffer must have at least, whatever was negotiated.
pub const MIN_READ_BUFFER: usize = 8192;

/// First errno value that a reply must not carry: those from here on are internal to the kernel.
const FIRST_INTERNAL_ERRNO: i32 = 512;

wire! {
    /// Start of each request. Kernel to server.
    pub struct InHeader {
        /// Bytes of the whole request, this header included.
        pub len: u32,
        /// An [`Opcode`].
        pub opcode: u32,
        /// The request's ID; the reply has the same.
        pub unique: u64,
        /// The node that the request is about, 0 if none.
        pub nodeid: u64,
        /// User ID of the caller in the server's user namespace, or [`INVALID_UIDGID`].
        pub uid: u32,
        /// Group ID of the caller in the server's user namespace, or [`INVALID_UIDGID`].
        pub gid: u32,
        /// Thread ID of the caller in the server's pid namespace, 0 if it has none there.
        pub pid: u32,
        /// Length of the extensions at the request's end, in units of 8 bytes.
        pub total_extlen: u16,
        /// Zero.
        pub padding: u16,
    }

    /// Start of each reply and notification. Server to kernel.
    pub struct OutHeader {
        /// Bytes of the whole message, this header included.
        pub len: u32,
        /// 0 or a negative errno; in a notification its [`NotifyCode`].
        pub error: i32,
        /// ID of the request that is answered; 0 in a notification.
        pub unique: u64,
    }
}

/// What the header of a message from the server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Not an answer: the server has something to tell.
    Notify {
        /// What it is about.
        code: NotifyCode,
        /// Bytes that follow the header.
        payload: usize,
    },
    /// The answer to an INTERRUPT.
    InterruptReply {
        /// ID of the request that was interrupted, not of the INTERRUPT.
        unique: u64,
        /// Negative errno, or 0.
        error: i32,
    },
    /// A request succeeded.
    Reply {
        /// ID of the request.
        unique: u64,
        /// Bytes that follow the header.
        payload: usize,
    },
    /// A request failed.
    ErrorReply {
        /// ID of the request.
        unique: u64,
        /// Negative errno, in `-511..=-1`.
        error: i32,
        /// Bytes that follow the header: there must be none.
        payload: usize,
    },
}

impl InHeader {
    /// A header without extensions. `len` counts the whole request in bytes; the caller's IDs are
    /// the server's view.
    pub const fn new(
        opcode: Opcode,
        unique: u64,
        nodeid: u64,
        len: u32,
        uid: u32,
        gid: u32,
        pid: u32,
    ) -> Self {
        Self {
            len,
            opcode: opcode as u32,
            unique,
            nodeid,
            uid,
            gid,
            pid,
            total_extlen: 0,
            padding: 0,
        }
    }
}

impl OutHeader {
    /// Reads the header at the start of a message. What follows it is not looked at.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        match Self::read_from_prefix(message) {
            Ok((header, _)) => Ok(header),
            Err(_) => Err(Malformed::TooShort {
                got: message.len(),
                want: size_of::<Self>(),
            }),
        }
    }

    /// Checks the header of a message of which the server wrote `written` bytes in all.
    ///
    /// Whether the ID is that of a request that waits for an answer, and whether the payload fits
    /// it, is for the caller to find out.
    pub fn check(&self, written: usize) -> Result<Message, Malformed> {
        let Some(payload) = written.checked_sub(size_of::<Self>()) else {
            return Err(Malformed::TooShort {
                got: written,
                want: size_of::<Self>(),
            });
        };
        exact(written, self.len as usize)?;

        if self.unique == 0 {
            // A negative number is no code either.
            let code = NotifyCode::try_from(self.error as u32)?;
            return Ok(Message::Notify { code, payload });
        }
        if self.error > 0 || self.error <= -FIRST_INTERNAL_ERRNO {
            return Err(Malformed::Error(self.error));
        }
        if self.unique & UNIQUE_INTERRUPT != 0 {
            exact(written, size_of::<Self>())?;
            return Ok(Message::InterruptReply {
                unique: self.unique & !UNIQUE_INTERRUPT,
                error: self.error,
            });
        }
        if self.error != 0 {
            return Ok(Message::ErrorReply {
                unique: self.unique,
                error: self.error,
                payload,
            });
        }
        Ok(Message::Reply {
            unique: self.unique,
            payload,
        })
    }
}

/// Bytes that a server's buffer must have to take any request, given the negotiated `max_write` in
/// bytes.
pub const fn min_read_buffer(max_write: u32) -> usize {
    let write = size_of::<InHeader>()
        .saturating_add(size_of::<WriteIn>())
        .saturating_add(max_write as usize);
    if write > MIN_READ_BUFFER {
        write
    } else {
        MIN_READ_BUFFER
    }
}
