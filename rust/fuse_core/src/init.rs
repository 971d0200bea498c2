// SPDX-License-Identifier: GPL-2.0

//! What client and server agree on by INIT.
//!
//! The client offers an [`InitIn`], whose flags are what it implements and no more: the server may
//! take any of it. The server's [`InitOut`] makes it [`Negotiated`], under the client's [`Policy`].
//!
//! C header: `include/uapi/linux/fuse.h` (`struct fuse_init_in`, `struct fuse_init_out`).

use crate::limits::Limits;
use core::fmt;
use fuse_abi::{InitFlags, InitIn, InitOut, Malformed, MINOR_VERSION, VERSION};

/// A READ or WRITE of this many bytes is always allowed.
const MIN_IO: u32 = 4096;
const DEFAULT_MAX_PAGES: u32 = 32;
const DEFAULT_MAX_BACKGROUND: u32 = 12;
const DEFAULT_CONGESTION_THRESHOLD: u32 = 9;
const NAME_MAX: u32 = 1024;
/// With more than one page a request holds a name of PATH_MAX - 1 bytes.
const NAME_MAX_PAGES: u32 = 4095;
/// log2 of the unit in which DAX maps files.
const MAX_MAP_ALIGNMENT: u16 = 21;
/// The kernel's FILESYSTEM_MAX_STACK_DEPTH.
const MAX_STACK_DEPTH: u32 = 2;
/// How often timeouts are looked for, seconds; a shorter one has no meaning.
const MIN_REQUEST_TIMEOUT: u32 = 15;

/// What the client's side allows, whatever the server says.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Most bytes of a READ: the mount option `max_read`, `u32::MAX` without it.
    pub max_read: u32,
    /// Most pages of a request: the sysctl `max_pages_limit`.
    pub max_pages_limit: u32,
    /// Whether the mount option `default_permissions` is set.
    pub default_permissions: bool,
    /// Whether the task that handles the answer has CAP_SYS_ADMIN: the next two do not bind it
    /// then.
    pub privileged: bool,
    /// Most background requests: the module parameter `max_user_bgreq`.
    pub max_user_bgreq: u32,
    /// Highest congestion threshold: the module parameter `max_user_congthresh`.
    pub max_user_congthresh: u32,
    /// Seconds for an answer where the server names none: the sysctl `default_request_timeout`; 0
    /// is no limit.
    pub default_request_timeout: u32,
    /// Most seconds for an answer: the sysctl `max_request_timeout`; 0 is no limit.
    pub max_request_timeout: u32,
}

/// What holds for a connection once INIT is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The minor version both speak; it decides the sizes of older structs.
    pub minor: u32,
    /// What both implement. A flag that needs another one, or excludes it, is decided already.
    pub flags: InitFlags,
    /// Limits of READ and WRITE.
    pub limits: Limits,
    /// Readahead window of the bdi, pages.
    pub ra_pages: u32,
    /// The bdi's hint of the best request, pages.
    pub io_pages: u32,
    /// How many background requests may be under way.
    pub max_background: u32,
    /// From how many background requests on the connection is congested.
    pub congestion_threshold: u32,
    /// Granularity of time stamps, nanoseconds.
    pub time_gran: u32,
    /// Longest name, bytes.
    pub name_max: u32,
    /// Whether the client checks permissions by mode and ACL.
    pub default_permissions: bool,
    /// Seconds until an unanswered request aborts the connection; 0 is never.
    pub request_timeout: u32,
    /// Stack depth of the superblock for passthrough; 0 without it.
    pub max_stack_depth: u32,
    /// log2 of the alignment of DAX mappings; 0 without it.
    pub map_alignment: u16,
}

/// Why a connection cannot be used: every later request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitError {
    /// The server answered INIT with this error (an errno, positive).
    Errno(i32),
    /// The answer is none.
    Malformed(Malformed),
    /// The server speaks this major version.
    Major(u32),
    /// The server wants DAX mappings aligned to a larger power of two than they have.
    MapAlignment(u16),
    /// The server takes ALLOW_IDMAP, but checks permissions itself, by ids it would not be told.
    IdmapNeedsDefaultPermissions,
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errno(errno) => write!(f, "the server answered INIT with error {errno}"),
            Self::Malformed(malformed) => write!(f, "the server's answer to INIT: {malformed}"),
            Self::Major(major) => write!(f, "the server speaks version {major} of the protocol, not {VERSION}"),
            Self::MapAlignment(shift) => write!(
                f,
                "the server wants DAX mappings aligned to 2^{shift} bytes, at most 2^{MAX_MAP_ALIGNMENT} is possible"
            ),
            Self::IdmapNeedsDefaultPermissions => {
                f.write_str("the server takes ALLOW_IDMAP without default_permissions or POSIX_ACL")
            }
        }
    }
}

/// Works out what holds after the server's answer `reply` to `offer`. `PAGE_SHIFT` is the kernel's.
///
/// # Errors
///
/// What is wrong with the answer. [`InitError::Errno`] and [`InitError::Malformed`] are for those
/// who got none.
pub fn negotiate<const PAGE_SHIFT: u32>(
    offer: &InitIn,
    policy: &Policy,
    reply: &InitOut,
) -> Result<Negotiated, InitError> {
    if reply.major != VERSION {
        return Err(InitError::Major(reply.major));
    }
    let minor = reply.minor.min(MINOR_VERSION);
    let flags = common_flags(offer, minor, reply);
    let default_permissions = policy.default_permissions || flags.contains(InitFlags::POSIX_ACL);
    if flags.contains(InitFlags::ALLOW_IDMAP) && !default_permissions {
        return Err(InitError::IdmapNeedsDefaultPermissions);
    }
    let map_alignment = if flags.contains(InitFlags::MAP_ALIGNMENT) {
        reply.map_alignment
    } else {
        0
    };
    if map_alignment > MAX_MAP_ALIGNMENT {
        return Err(InitError::MapAlignment(map_alignment));
    }

    let limits = limits(policy, minor, flags, reply);
    let readahead = if minor < 6 {
        limits.max_read
    } else {
        reply.max_readahead
    };
    let (max_background, congestion_threshold) = background(policy, minor, reply);
    Ok(Negotiated {
        minor,
        flags,
        limits,
        ra_pages: offer.max_readahead.min(readahead) >> PAGE_SHIFT,
        io_pages: limits.max_pages.min(limits.max_read >> PAGE_SHIFT).max(1),
        max_background,
        congestion_threshold,
        time_gran: match reply.time_gran {
            nsec @ 1..=1_000_000_000 if minor >= 6 => nsec,
            _ => 1,
        },
        name_max: if flags.contains(InitFlags::MAX_PAGES) && limits.max_pages > 1 {
            NAME_MAX_PAGES
        } else {
            NAME_MAX
        },
        default_permissions,
        request_timeout: request_timeout(policy, flags, reply),
        max_stack_depth: if flags.contains(InitFlags::PASSTHROUGH) {
            reply.max_stack_depth
        } else {
            0
        },
        map_alignment,
    })
}

/// The flags that were offered, taken and do not contradict each other.
fn common_flags(offer: &InitIn, minor: u32, reply: &InitOut) -> InitFlags {
    let offered = InitFlags::join(offer.flags, offer.flags2);
    let mut flags = offered & reply.features();

    if minor < 9 {
        flags.remove(InitFlags::EXPORT_SUPPORT);
    }
    if minor < 17 {
        // BSD locks had no flag of their own.
        let locks = flags.contains(InitFlags::POSIX_LOCKS);
        flags.set(InitFlags::FLOCK_LOCKS, locks);
        flags &= offered;
    }
    if !flags.contains(InitFlags::DO_READDIRPLUS) {
        flags.remove(InitFlags::READDIRPLUS_AUTO);
    }
    if flags.contains(InitFlags::AUTO_INVAL_DATA) {
        flags.remove(InitFlags::EXPLICIT_INVAL_DATA);
    }
    // Data that another file system caches cannot be in our writeback cache too.
    if flags.contains(InitFlags::WRITEBACK_CACHE)
        || !(1..=MAX_STACK_DEPTH).contains(&reply.max_stack_depth)
    {
        flags.remove(InitFlags::PASSTHROUGH);
    }
    flags
}

fn limits(policy: &Policy, minor: u32, flags: InitFlags, reply: &InitOut) -> Limits {
    let max_pages = if flags.contains(InitFlags::MAX_PAGES) {
        u32::from(reply.max_pages)
    } else {
        DEFAULT_MAX_PAGES
    };
    Limits {
        max_read: policy.max_read.max(MIN_IO),
        max_write: if minor < 5 {
            MIN_IO
        } else {
            reply.max_write.max(MIN_IO)
        },
        max_pages: max_pages.min(policy.max_pages_limit).max(1),
    }
}

/// `max_background` and `congestion_threshold`.
fn background(policy: &Policy, minor: u32, reply: &InitOut) -> (u32, u32) {
    let choose = |reply: u16, cap: u32, default: u32| match u32::from(reply) {
        0 => default,
        _ if minor < 13 => default,
        n if policy.privileged => n,
        n => n.min(cap),
    };
    (
        choose(
            reply.max_background,
            policy.max_user_bgreq,
            DEFAULT_MAX_BACKGROUND,
        ),
        choose(
            reply.congestion_threshold,
            policy.max_user_congthresh,
            DEFAULT_CONGESTION_THRESHOLD,
        ),
    )
}

fn request_timeout(policy: &Policy, flags: InitFlags, reply: &InitOut) -> u32 {
    let server = if flags.contains(InitFlags::REQUEST_TIMEOUT) {
        u32::from(reply.request_timeout)
    } else {
        0
    };
    let wanted = if server == 0 {
        policy.default_request_timeout
    } else {
        server
    };
    let timeout = match policy.max_request_timeout {
        0 => wanted,
        max if wanted == 0 => max,
        max => wanted.min(max),
    };
    if timeout == 0 {
        0
    } else {
        timeout.max(MIN_REQUEST_TIMEOUT)
    }
}
