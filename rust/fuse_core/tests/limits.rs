// SPDX-License-Identifier: GPL-2.0

//! Requests cut and gathered under all limits.

use fuse_core::limits::{Chunk, Limits, RequestLimit};
use proptest::prelude::*;

const SHIFT: u32 = 12;
const PAGE: u64 = 1 << SHIFT;

/// A limit of bytes or pages: often one of the interesting ones.
fn limit() -> impl Strategy<Value = u32> {
    prop_oneof![
        prop::sample::select(vec![
            0,
            1,
            2,
            7,
            32,
            256,
            4095,
            4096,
            4097,
            8191,
            65536,
            1 << 20,
            u32::MAX
        ]),
        any::<u32>(),
        0..100_000u32,
    ]
}

fn request_limit() -> impl Strategy<Value = (u32, u32, RequestLimit<SHIFT>)> {
    (limit(), limit()).prop_map(|(bytes, pages)| (bytes, pages, RequestLimit::new(bytes, pages)))
}

/// A file position: near a page boundary, anywhere, or near the end of all positions.
fn pos() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..1000u64, 0..3u64).prop_map(|(page, off)| (page * PAGE + off).saturating_sub(1)),
        0..u64::MAX,
        u64::MAX - 10_000..=u64::MAX,
    ]
}

/// The pages of the file that `len` bytes at `pos` touch.
fn pages(pos: u64, len: u64) -> u64 {
    pos.saturating_add(len - 1) / PAGE - pos / PAGE + 1
}

fn assert_within(chunk: Chunk, bytes: u32, max_pages: u32) -> Result<(), TestCaseError> {
    let pages = pages(chunk.pos, chunk.len.into());
    prop_assert!(chunk.len <= bytes.max(1), "{chunk:?} has too many bytes");
    prop_assert!(
        pages <= max_pages.max(1).into(),
        "{chunk:?} has too many pages"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn split_covers_the_range_within_the_limits(
        (bytes, max_pages, limit) in request_limit(),
        pos in pos(),
        len in prop_oneof![0..3_000_000u64, any::<u64>()],
    ) {
        let end = pos.saturating_add(len);
        let mut at = pos;
        let mut chunks = limit.split(pos, len).peekable();
        // A long range under a small limit has too many requests to look at all.
        for _ in 0..2000 {
            let Some(chunk) = chunks.next() else {
                prop_assert_eq!(at, end);
                break;
            };
            prop_assert_eq!(chunk.pos, at);
            assert_within(chunk, bytes, max_pages)?;
            at += u64::from(chunk.len);
            prop_assert!(at <= end);
            if chunks.peek().is_some() {
                // A cut is on a page boundary, or the request lies within one page and is full.
                let len = u64::from(chunk.len);
                let full = pages(chunk.pos, len) == 1 && chunk.len == bytes.max(1);
                prop_assert!(at % PAGE == 0 || full, "{chunk:?} ends inside a page");
                // Another page would be too much.
                let longer = len + PAGE;
                let above = longer > bytes.into() || pages(chunk.pos, longer) > max_pages.max(1).into();
                prop_assert!(above, "{chunk:?} is too short");
            }
        }
    }

    #[test]
    fn gathered_requests_cover_the_ranges_within_the_limits(
        (bytes, max_pages, limit) in request_limit(),
        start in 0..1u64 << 40,
        ranges in prop::collection::vec((0..4u64, 1..2_000_000u64), 1..12),
    ) {
        let mut gather = limit.gather();
        let mut open: Option<Chunk> = None;
        let mut pos = start;
        let mut requests = 0;
        for (gap, len) in ranges {
            // Mostly each range follows the one before.
            if gap == 0 {
                pos += 1;
            }
            let end = pos + len;
            while pos < end && requests < 2000 {
                let before = open;
                prop_assert_eq!(gather.room(pos, end - pos), gather.clone().add(pos, end - pos));
                let added = gather.add(pos, end - pos);
                if added == 0 {
                    prop_assert!(before.is_some(), "an empty request takes nothing");
                    prop_assert_eq!(gather.finish(), before);
                    prop_assert_eq!(gather.finish(), None);
                    open = None;
                    requests += 1;
                    continue;
                }
                open = Some(match before {
                    Some(Chunk { pos: first, len }) => {
                        prop_assert_eq!(first + u64::from(len), pos, "not adjacent");
                        Chunk { pos: first, len: len + added }
                    }
                    None => Chunk { pos, len: added },
                });
                assert_within(open.unwrap(), bytes, max_pages)?;
                pos += u64::from(added);
                prop_assert!(pos <= end);
            }
            pos = end;
            if requests >= 2000 {
                break;
            }
        }
    }

    #[test]
    fn a_folio_of_the_order_is_one_request(
        (max_read, max_write, max_pages) in (limit(), limit(), limit()),
        index in 0..1u64 << 20,
    ) {
        let limits = Limits { max_read, max_write, max_pages };
        let order = limits.mapping_order::<SHIFT>(9);
        prop_assert!(order <= 9);
        let size = PAGE << order;
        let pos = index * size;
        let fits = |limit: RequestLimit<SHIFT>, size| u64::from(limit.fit(pos * 2, size)) == size;
        let both = |size| fits(limits.read(), size) && fits(limits.write(), size);
        prop_assert!(order == 0 || both(size));
        prop_assert!(order == 9 || !both(size * 2));
    }
}

#[test]
fn orders() {
    let order = |max_read, max_write, max_pages| {
        Limits {
            max_read,
            max_write,
            max_pages,
        }
        .mapping_order::<SHIFT>(9)
    };
    let mib = 1 << 20;
    assert_eq!(
        [1, 7, 32, 256, 1024].map(|pages| order(u32::MAX, 4 * mib, pages)),
        [0, 2, 5, 8, 9]
    );
    assert_eq!(order(4096, mib, 256), 0);
    assert_eq!(order(mib, 4096, 256), 0);
    assert_eq!(order(0, mib, 256), 0);
    assert_eq!(order(mib, mib, 0), 0);
    let limits = Limits {
        max_read: mib,
        max_write: mib,
        max_pages: 256,
    };
    assert_eq!(limits.mapping_order::<16>(13), 4, "pages of 64 KiB");
}

#[test]
fn cuts_prefer_page_boundaries() {
    let chunks = |limit: RequestLimit<SHIFT>, pos, len| {
        limit
            .split(pos, len)
            .map(|chunk| (chunk.pos, chunk.len))
            .collect::<Vec<_>>()
    };
    // Two pages by bytes, but the first begins in the middle of one.
    assert_eq!(
        chunks(RequestLimit::new(8192, 32), 100, 10_000),
        [(100, 8092), (8192, 1908)]
    );
    // Two pages by count.
    assert_eq!(
        chunks(RequestLimit::new(u32::MAX, 2), 4095, 4098),
        [(4095, 4097), (8192, 1)]
    );
    // A limit below a page.
    assert_eq!(
        chunks(RequestLimit::new(7, 1), 4090, 10),
        [(4090, 6), (4096, 4)]
    );
    assert_eq!(chunks(RequestLimit::new(0, 0), 8, 2), [(8, 1), (9, 1)]);
    assert_eq!(chunks(RequestLimit::new(7, 1), 0, 0), []);
}
