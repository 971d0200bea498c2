// SPDX-License-Identifier: GPL-2.0

//! How many forgets a read takes, and whose turn it is.

use fuse_core::forget::{per_read, ForgetTurn};
use proptest::prelude::*;

const HEADER: usize = 40;

#[test]
fn one_or_a_batch() {
    assert_eq!(per_read(46, 0, 8192), 0);
    assert_eq!(per_read(46, 1, 8192), 1);
    assert_eq!(per_read(46, 2, 8192), 2);
    assert_eq!(per_read(46, 100_000, 8192), (8192 - 48) / 16);
    assert_eq!(per_read(16, 2, 8192), 2);
    assert_eq!(per_read(15, 2, 8192), 1, "no BATCH_FORGET before 7.16");
    assert_eq!(per_read(46, 2, 79), 1, "a batch of one is a FORGET");
    assert_eq!(per_read(46, 2, 47), 0);
    assert_eq!(per_read(46, u32::MAX, usize::MAX), u32::MAX);
}

proptest! {
    #[test]
    fn fits_the_buffer(minor in 0..50u32, queued in any::<u32>(), buf_len in prop_oneof![0..10_000usize, any::<usize>()]) {
        let count = per_read(minor, queued, buf_len);
        prop_assert!(count <= queued);
        let len = match count {
            0 => 0,
            1 => HEADER + 8,
            n => HEADER + 8 + 16 * n as usize,
        };
        prop_assert!(len <= buf_len);
        prop_assert!(count > 0 || queued == 0 || buf_len < HEADER + 8);
    }
}

#[test]
fn turns() {
    let mut turn = ForgetTurn::new();
    for _ in 0..3 {
        // Reads for which one kind waits do not count.
        assert!((0..100).all(|_| turn.is_forget(true, false) && !turn.is_forget(false, true)));
        assert!(!turn.is_forget(false, false));
        assert!((0..16).all(|_| turn.is_forget(true, true)));
        assert!((0..8).all(|_| !turn.is_forget(true, true)));
    }
}
