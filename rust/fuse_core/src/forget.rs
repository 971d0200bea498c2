// SPDX-License-Identifier: GPL-2.0

//! FORGET and BATCH_FORGET: how many lookup counts one read of the device gives back, and when it
//! is their turn.
//!
//! C header: `include/uapi/linux/fuse.h` (`struct fuse_forget_in`, `fuse_batch_forget_in`,
//! `fuse_forget_one`).

use core::mem::size_of;
use fuse_abi::{BatchForgetIn, ForgetIn, ForgetOne, InHeader};

/// The first minor version with BATCH_FORGET.
const BATCH_MINOR: u32 = 16;

/// How many of `queued` waiting inodes a read of `buf_len` bytes by a server of version 7.`minor`
/// gives back: 0 is none, because nothing waits or the buffer holds no FORGET; 1 is a FORGET; more
/// is a BATCH_FORGET of so many.
pub fn per_read(minor: u32, queued: u32, buf_len: usize) -> u32 {
    const FORGET: usize = size_of::<InHeader>() + size_of::<ForgetIn>();
    const EMPTY_BATCH: usize = size_of::<InHeader>() + size_of::<BatchForgetIn>();
    let fit = buf_len
        .saturating_sub(EMPTY_BATCH)
        .checked_div(size_of::<ForgetOne>());
    let batch = queued.min(u32::try_from(fit.unwrap_or(0)).unwrap_or(u32::MAX));
    if minor >= BATCH_MINOR && batch > 1 {
        batch
    } else {
        u32::from(queued > 0 && buf_len >= FORGET)
    }
}

/// Reads of the device that forgets may have before it is the others' turn, where both wait.
const FORGETS: u8 = 16;
/// Reads that the others have then.
const OTHERS: u8 = 8;

/// Whose turn it is at the device while both forgets and other requests wait: a flood of forgets
/// must not starve requests, nor requests the forgets. Kept under the queue lock.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgetTurn {
    /// Turns taken of the present round.
    taken: u8,
}

impl ForgetTurn {
    /// A round that begins with forgets.
    pub const fn new() -> Self {
        Self { taken: 0 }
    }

    /// Whether the next read takes a forget. `forgets` and `others` say what waits. A read for
    /// which only one kind waits does not count.
    pub fn is_forget(&mut self, forgets: bool, others: bool) -> bool {
        if !(forgets && others) {
            return forgets;
        }
        let forget = self.taken < FORGETS;
        self.taken = self.taken.saturating_add(1);
        if self.taken >= const { FORGETS + OTHERS } {
            self.taken = 0;
        }
        forget
    }
}
