// SPDX-License-Identifier: GPL-2.0

//! How the owner of a lock is named to the server.
//!
//! The kernel's own name of an owner is an address, which no server may learn. What is sent is the
//! address, enciphered by XTEA (Needham and Wheeler, 1997) with a key of the connection: owners
//! that differ stay different, and one owner is the same at every call.

const DELTA: u32 = 0x9e37_79b9;
const CYCLES: u32 = 32;

/// The secret of a connection that its owners are named with.
#[derive(Clone, Copy)]
pub struct LockOwners {
    key: [u32; 4],
}

impl LockOwners {
    /// Names owners by `key`, which nobody else should be able to guess.
    pub const fn new(key: [u32; 4]) -> Self {
        Self { key }
    }

    /// What the server is told of the owner that the kernel calls `owner`.
    pub fn name(&self, owner: u64) -> u64 {
        // The halves of the address.
        let (mut low, mut high) = (owner as u32, (owner >> 32) as u32);
        let mut sum = 0u32;
        for _ in 0..CYCLES {
            low = low.wrapping_add(mix(high) ^ sum.wrapping_add(self.word(sum)));
            sum = sum.wrapping_add(DELTA);
            high = high.wrapping_add(mix(low) ^ sum.wrapping_add(self.word(sum >> 11)));
        }
        u64::from(low) | (u64::from(high) << 32)
    }

    /// The word of the key that the lowest two bits of `at` choose.
    fn word(&self, at: u32) -> u32 {
        let [a, b, c, d] = self.key;
        match at & 3 {
            0 => a,
            1 => b,
            2 => c,
            _ => d,
        }
    }
}

fn mix(half: u32) -> u32 {
    ((half << 4) ^ (half >> 5)).wrapping_add(half)
}
