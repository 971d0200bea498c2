// SPDX-License-Identifier: GPL-2.0

//! Names of lock owners.

use fuse_core::lock_owner::LockOwners;
use proptest::prelude::*;

/// Deciphers a name: if that works for every owner, no two owners have one name.
fn owner(key: [u32; 4], name: u64) -> u64 {
    const DELTA: u32 = 0x9e37_79b9;
    let mix = |half: u32| ((half << 4) ^ (half >> 5)).wrapping_add(half);
    let (mut low, mut high) = (name as u32, (name >> 32) as u32);
    for cycle in (0..32u32).rev() {
        let before = DELTA.wrapping_mul(cycle);
        let after = before.wrapping_add(DELTA);
        let word = key[((after >> 11) & 3) as usize];
        high = high.wrapping_sub(mix(low) ^ after.wrapping_add(word));
        let word = key[(before & 3) as usize];
        low = low.wrapping_sub(mix(high) ^ before.wrapping_add(word));
    }
    u64::from(low) | (u64::from(high) << 32)
}

/// The published vector of the cipher; its first word is our low one.
#[test]
fn is_xtea() {
    let owners = LockOwners::new([0x0001_0203, 0x0405_0607, 0x0809_0a0b, 0x0c0d_0e0f]);
    assert_eq!(owners.name(0x4546_4748_4142_4344), 0x7261_2cb5_497d_f3d0);
}

proptest! {
    #[test]
    fn owners_stay_apart(key: [u32; 4], address: u64) {
        prop_assert_eq!(owner(key, LockOwners::new(key).name(address)), address);
    }

    #[test]
    fn connections_differ(a: [u32; 4], b: [u32; 4], address: u64) {
        prop_assume!(a != b);
        prop_assert_ne!(LockOwners::new(a).name(address), LockOwners::new(b).name(address));
    }
}
