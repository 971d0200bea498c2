// SPDX-License-Identifier: GPL-2.0

//! Points in time, and the kernel's tick count.
//!
//! C headers: [`include/linux/time64.h`](srctree/include/linux/time64.h),
//! [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h)

use fuse_bindings as bindings;

/// Nanoseconds in a second.
pub const NSEC_PER_SEC: u32 = 1_000_000_000;

/// Seconds and nanoseconds since the epoch (`struct timespec64`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timespec {
    /// Seconds.
    pub sec: i64,
    /// Nanoseconds, less than [`NSEC_PER_SEC`].
    pub nsec: u32,
}

impl Timespec {
    /// A time of a server's, whose nanoseconds may be out of range: they are cut to the largest.
    pub fn new(sec: u64, nsec: u32) -> Self {
        Self {
            sec: sec as i64,
            nsec: nsec.min(NSEC_PER_SEC - 1),
        }
    }
}

/// The time now, in ticks since boot. Never goes back.
pub fn jiffies64() -> u64 {
    // SAFETY: Reads a counter.
    unsafe { bindings::get_jiffies_64() }
}

/// The tick at which a validity that a server gave, counted from now, is over.
///
/// Saturates at the end of time. No validity at all gives 0, which has passed already.
pub fn deadline(sec: u64, nsec: u32) -> u64 {
    if sec == 0 && nsec == 0 {
        return 0;
    }
    let ts = bindings::timespec64 {
        tv_sec: i64::try_from(sec).unwrap_or(i64::MAX),
        tv_nsec: nsec.min(NSEC_PER_SEC - 1) as isize,
    };
    // SAFETY: `ts` is a valid time; the function saturates.
    let ticks = unsafe { bindings::timespec64_to_jiffies(&ts) };
    jiffies64().saturating_add(ticks as u64)
}

/// Whether the tick `deadline` has passed.
pub fn is_over(deadline: u64) -> bool {
    deadline < jiffies64()
}
