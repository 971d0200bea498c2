// SPDX-License-Identifier: GPL-2.0

//! What is negotiated with servers of all ages, and with nonsense.

use fuse_abi::{InitFlags, InitIn, InitOut};
use fuse_core::init::{negotiate, InitError, Negotiated, Policy};
use proptest::prelude::*;

const SHIFT: u32 = 12;
const READAHEAD: u32 = 1 << 20;

const POLICY: Policy = Policy {
    max_read: u32::MAX,
    max_pages_limit: 256,
    default_permissions: false,
    privileged: false,
    max_user_bgreq: 50,
    max_user_congthresh: 40,
    default_request_timeout: 0,
    max_request_timeout: 0,
};

/// Offers `flags` to a server that answers `reply`.
fn with(flags: InitFlags, policy: Policy, reply: InitOut) -> Result<Negotiated, InitError> {
    negotiate::<SHIFT>(&InitIn::new(READAHEAD, flags), &policy, &reply)
}

/// Offers everything to a server that takes `flags` in `reply`.
fn taken(flags: InitFlags, policy: Policy, reply: InitOut) -> Result<Negotiated, InitError> {
    let (flags, flags2) = (flags | InitFlags::INIT_EXT).split();
    with(
        InitFlags::all(),
        policy,
        InitOut {
            flags,
            flags2,
            ..reply
        },
    )
}

fn reply(minor: u32) -> InitOut {
    InitOut {
        major: 7,
        minor,
        max_readahead: 128 << 10,
        max_write: 1 << 20,
        ..InitOut::default()
    }
}

#[test]
fn a_modern_server() {
    let flags = InitFlags::INIT_EXT
        | InitFlags::MAX_PAGES
        | InitFlags::ASYNC_READ
        | InitFlags::DO_READDIRPLUS
        | InitFlags::READDIRPLUS_AUTO
        | InitFlags::HAS_RESEND;
    let server = InitOut {
        max_pages: 256,
        max_readahead: READAHEAD,
        max_background: 30,
        congestion_threshold: 20,
        time_gran: 100,
        ..reply(46)
    };
    let got = taken(flags, POLICY, server).unwrap();
    assert_eq!(got.flags, flags);
    assert_eq!((got.minor, got.ra_pages, got.io_pages), (46, 256, 256));
    assert_eq!(
        (
            got.limits.max_read,
            got.limits.max_write,
            got.limits.max_pages
        ),
        (u32::MAX, 1 << 20, 256)
    );
    assert_eq!((got.max_background, got.congestion_threshold), (30, 20));
    assert_eq!(
        (got.time_gran, got.name_max, got.request_timeout),
        (100, 4095, 0)
    );
    assert_eq!(
        (
            got.max_stack_depth,
            got.map_alignment,
            got.default_permissions
        ),
        (0, 0, false)
    );
    let newer = taken(
        flags,
        POLICY,
        InitOut {
            minor: 99,
            ..server
        },
    )
    .unwrap();
    assert_eq!(newer, got, "a newer server speaks our version");
}

#[test]
fn what_was_not_offered_does_not_count() {
    let offer = InitFlags::ASYNC_READ | InitFlags::INIT_EXT;
    let (flags, flags2) = InitFlags::all().split();
    let server = InitOut {
        flags,
        flags2,
        max_pages: 256,
        map_alignment: 30,
        max_stack_depth: 1,
        request_timeout: 100,
        ..reply(46)
    };
    let got = with(offer, POLICY, server).unwrap();
    assert_eq!(got.flags, offer);
    assert_eq!((got.limits.max_pages, got.name_max), (32, 1024));
    assert_eq!(
        (got.max_stack_depth, got.map_alignment, got.request_timeout),
        (0, 0, 0)
    );
    assert!(!got.default_permissions);

    let high = InitOut {
        flags: InitFlags::ASYNC_READ.split().0,
        flags2,
        ..reply(46)
    };
    let got = with(InitFlags::all(), POLICY, high).unwrap();
    assert_eq!(got.flags, InitFlags::ASYNC_READ, "flags2 without INIT_EXT");
}

#[test]
fn old_servers() {
    let all = InitFlags::ASYNC_READ | InitFlags::POSIX_LOCKS | InitFlags::EXPORT_SUPPORT;
    let at = |minor, policy| {
        taken(
            all,
            policy,
            InitOut {
                time_gran: 100,
                max_background: 9,
                ..reply(minor)
            },
        )
        .unwrap()
    };
    let max_read = Policy {
        max_read: 64 << 10,
        ..POLICY
    };
    assert_eq!(at(4, POLICY).limits.max_write, 4096);
    assert_eq!(at(5, POLICY).limits.max_write, 1 << 20);
    assert_eq!(at(5, max_read).flags, InitFlags::empty());
    assert_eq!(
        (at(5, max_read).ra_pages, at(5, max_read).time_gran),
        (16, 1)
    );
    assert_eq!(
        (at(6, max_read).ra_pages, at(6, max_read).time_gran),
        (32, 100)
    );
    assert!(!at(8, POLICY).flags.contains(InitFlags::EXPORT_SUPPORT));
    assert!(at(9, POLICY).flags.contains(InitFlags::EXPORT_SUPPORT));
    assert_eq!(
        (at(12, POLICY).max_background, at(13, POLICY).max_background),
        (12, 9)
    );
    assert!(
        at(16, POLICY).flags.contains(InitFlags::FLOCK_LOCKS),
        "BSD locks go with POSIX locks"
    );
    assert!(!at(17, POLICY).flags.contains(InitFlags::FLOCK_LOCKS));
    let flock = taken(InitFlags::FLOCK_LOCKS, POLICY, reply(16)).unwrap();
    assert!(!flock.flags.contains(InitFlags::FLOCK_LOCKS));
}

#[test]
fn limits_of_reading_and_writing() {
    let pages = |max_pages, limit| {
        let policy = Policy {
            max_pages_limit: limit,
            ..POLICY
        };
        let got = taken(
            InitFlags::MAX_PAGES,
            policy,
            InitOut {
                max_pages,
                ..reply(46)
            },
        )
        .unwrap();
        (got.limits.max_pages, got.io_pages, got.name_max)
    };
    assert_eq!(pages(0, 256), (1, 1, 1024));
    assert_eq!(pages(1, 256), (1, 1, 1024));
    assert_eq!(pages(2, 256), (2, 2, 4095));
    assert_eq!(pages(1024, 256), (256, 256, 4095));
    assert_eq!(pages(1024, 65535), (1024, 1024, 4095));

    let floor = taken(
        InitFlags::MAX_PAGES,
        Policy {
            max_read: 0,
            ..POLICY
        },
        InitOut {
            max_write: 1,
            ..reply(46)
        },
    );
    let floor = floor.unwrap().limits;
    assert_eq!((floor.max_read, floor.max_write), (4096, 4096));
    let small = Policy {
        max_read: 8192,
        ..POLICY
    };
    assert_eq!(
        taken(InitFlags::empty(), small, reply(46))
            .unwrap()
            .io_pages,
        2
    );
    let narrow = Policy {
        max_pages_limit: 7,
        ..POLICY
    };
    assert_eq!(
        taken(InitFlags::empty(), narrow, reply(46))
            .unwrap()
            .limits
            .max_pages,
        7
    );
}

#[test]
fn background_limits() {
    let at = |policy, max_background, congestion_threshold| {
        let server = InitOut {
            max_background,
            congestion_threshold,
            ..reply(46)
        };
        let got = taken(InitFlags::empty(), policy, server).unwrap();
        (got.max_background, got.congestion_threshold)
    };
    let root = Policy {
        privileged: true,
        ..POLICY
    };
    assert_eq!(at(POLICY, 0, 0), (12, 9));
    assert_eq!(at(POLICY, 49, 39), (49, 39));
    assert_eq!(at(POLICY, 51, 41), (50, 40));
    assert_eq!(at(root, 65535, 65535), (65535, 65535));
}

#[test]
fn request_timeouts() {
    let at = |server, default, max| {
        let policy = Policy {
            default_request_timeout: default,
            max_request_timeout: max,
            ..POLICY
        };
        let reply = InitOut {
            request_timeout: server,
            ..reply(46)
        };
        taken(InitFlags::REQUEST_TIMEOUT, policy, reply)
            .unwrap()
            .request_timeout
    };
    assert_eq!(
        [at(0, 0, 0), at(100, 0, 0), at(0, 60, 0), at(100, 60, 0)],
        [0, 100, 60, 100]
    );
    assert_eq!(
        [at(0, 0, 50), at(100, 0, 50), at(20, 0, 50), at(0, 60, 50)],
        [50, 50, 20, 50]
    );
    assert_eq!([at(1, 0, 0), at(15, 0, 0), at(100, 0, 3)], [15, 15, 15]);
}

#[test]
fn flags_that_depend_on_others() {
    let flags = |flags, stack| {
        let reply = InitOut {
            max_stack_depth: stack,
            ..reply(46)
        };
        let got = taken(flags, POLICY, reply).unwrap();
        (got.flags - InitFlags::INIT_EXT, got.max_stack_depth)
    };
    let none = InitFlags::empty();
    assert_eq!(flags(InitFlags::READDIRPLUS_AUTO, 0).0, none);
    let auto = InitFlags::AUTO_INVAL_DATA;
    assert_eq!(flags(auto | InitFlags::EXPLICIT_INVAL_DATA, 0).0, auto);
    assert_eq!(
        flags(InitFlags::EXPLICIT_INVAL_DATA, 0).0,
        InitFlags::EXPLICIT_INVAL_DATA
    );
    let passthrough = InitFlags::PASSTHROUGH;
    assert_eq!(
        [0, 1, 2, 3].map(|stack| flags(passthrough, stack)),
        [(none, 0), (passthrough, 1), (passthrough, 2), (none, 0)]
    );
    let writeback = InitFlags::WRITEBACK_CACHE;
    assert_eq!(flags(passthrough | writeback, 1), (writeback, 0));
}

#[test]
fn errors() {
    let with =
        |flags, policy, reply| taken(flags, policy, reply).map(|got| got.default_permissions);
    let none = InitFlags::empty();
    assert_eq!(
        with(
            none,
            POLICY,
            InitOut {
                major: 8,
                ..reply(0)
            }
        ),
        Err(InitError::Major(8))
    );
    assert_eq!(
        with(none, POLICY, InitOut::default()),
        Err(InitError::Major(0))
    );
    let align = |map_alignment| {
        with(
            InitFlags::MAP_ALIGNMENT,
            POLICY,
            InitOut {
                map_alignment,
                ..reply(46)
            },
        )
    };
    assert_eq!(
        (align(21), align(22)),
        (Ok(false), Err(InitError::MapAlignment(22)))
    );
    let idmap = InitFlags::ALLOW_IDMAP;
    let checked = Policy {
        default_permissions: true,
        ..POLICY
    };
    assert_eq!(
        with(idmap, POLICY, reply(46)),
        Err(InitError::IdmapNeedsDefaultPermissions)
    );
    assert_eq!(with(idmap, checked, reply(46)), Ok(true));
    assert_eq!(
        with(idmap | InitFlags::POSIX_ACL, POLICY, reply(46)),
        Ok(true)
    );
    assert_eq!(
        InitError::Major(8).to_string(),
        "the server speaks version 8 of the protocol, not 7"
    );
}

proptest! {
    #[test]
    fn any_answer(bytes in prop::collection::vec(any::<u8>(), 0..=64), offered in any::<u64>(), valid in any::<bool>(),
        max_read in any::<u32>(), max_pages_limit in 1..65536u32, max_readahead in any::<u32>()) {
        let mut reply = InitOut::parse(&bytes).unwrap();
        if valid {
            reply.major = 7;
            reply.minor %= 50;
        }
        let offer = InitIn::new(max_readahead, InitFlags::from_bits_retain(offered));
        let policy = Policy { max_read, max_pages_limit, default_permissions: true, ..POLICY };
        if let Ok(got) = negotiate::<SHIFT>(&offer, &policy, &reply) {
            prop_assert_eq!(got.flags.bits() & !offered, 0);
            prop_assert!((1..=max_pages_limit).contains(&got.limits.max_pages));
            prop_assert!(got.limits.max_read >= 4096 && got.limits.max_write >= 4096);
            prop_assert!(got.limits.max_read <= max_read.max(4096));
            prop_assert!(got.ra_pages <= max_readahead >> SHIFT);
            prop_assert!((1..=got.limits.max_pages).contains(&got.io_pages));
            prop_assert!((1..=50).contains(&got.max_background));
            prop_assert!((1..=40).contains(&got.congestion_threshold));
            prop_assert!((1..=1_000_000_000).contains(&got.time_gran));
            prop_assert!(got.map_alignment <= 21 && got.max_stack_depth <= 2);
        }
    }
}
