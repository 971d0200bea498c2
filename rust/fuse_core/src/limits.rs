// SPDX-License-Identifier: GPL-2.0

//! How large a READ or WRITE and a folio may be.
//!
//! `PAGE_SHIFT` is the kernel's (12 on x86). Positions and lengths are bytes of the file; a
//! request's pages are the pages of the file that its bytes touch, so a request of two bytes may
//! have two pages.

/// The limits of a connection, fixed once INIT is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a READ.
    pub max_read: u32,
    /// Most bytes of a WRITE.
    pub max_write: u32,
    /// Most pages of either.
    pub max_pages: u32,
}

impl Limits {
    /// The limit of one READ.
    pub const fn read<const PAGE_SHIFT: u32>(self) -> RequestLimit<PAGE_SHIFT> {
        RequestLimit::new(self.max_read, self.max_pages)
    }

    /// The limit of one WRITE.
    pub const fn write<const PAGE_SHIFT: u32>(self) -> RequestLimit<PAGE_SHIFT> {
        RequestLimit::new(self.max_write, self.max_pages)
    }

    /// The largest order of a folio that one READ and one WRITE can move whole, at most `max_order`
    /// (the kernel's MAX_PAGECACHE_ORDER). 0 where not even a page fits.
    pub fn mapping_order<const PAGE_SHIFT: u32>(self, max_order: u32) -> u32 {
        let pages =
            (u64::from(self.max_read.min(self.max_write)) >> PAGE_SHIFT).min(self.max_pages.into());
        pages.checked_ilog2().unwrap_or(0).min(max_order)
    }
}

/// The limit of one request. It lets at least one byte through, or nothing could ever be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit<const PAGE_SHIFT: u32> {
    bytes: u32,
    pages: u32,
}

impl<const PAGE_SHIFT: u32> RequestLimit<PAGE_SHIFT> {
    const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
    const PAGE_MASK: u64 = !(Self::PAGE_SIZE - 1);

    /// At most `bytes` bytes and `pages` pages; 0 counts as 1.
    pub const fn new(bytes: u32, pages: u32) -> Self {
        Self {
            bytes: if bytes == 0 { 1 } else { bytes },
            pages: if pages == 0 { 1 } else { pages },
        }
    }

    /// How many of the `len` bytes at `pos` go into one request that begins with them. 0 only for
    /// `len` 0, or where
    /// `pos` is the last position there is. A request that does not take all ends on a page
    /// boundary, if it reaches one.
    pub fn fit(self, pos: u64, len: u64) -> u32 {
        self.room(pos, 0, len)
    }

    /// Cuts the `len` bytes at `pos` into requests, in ascending order. Positions end at
    /// `u64::MAX`.
    pub fn split(self, pos: u64, len: u64) -> Split<PAGE_SHIFT> {
        Split {
            limit: self,
            pos,
            len,
        }
    }

    /// Begins to gather a request.
    pub const fn gather(self) -> Gather<PAGE_SHIFT> {
        Gather {
            limit: self,
            pos: 0,
            len: 0,
        }
    }

    /// How many of `len` more bytes go into a request that begins at `start` and has `have` bytes.
    fn room(self, start: u64, have: u32, len: u64) -> u32 {
        let by_pages =
            (u64::from(self.pages) << PAGE_SHIFT).saturating_sub(start & !Self::PAGE_MASK);
        let most = u64::from(self.bytes).min(by_pages);
        let free = most.saturating_sub(have.into());
        let len = len.min(u64::MAX.saturating_sub(start).saturating_sub(have.into()));
        let room = if len <= free {
            len
        } else {
            let end = start.saturating_add(most) & Self::PAGE_MASK;
            match end.saturating_sub(start.saturating_add(have.into())) {
                // No boundary within reach. A request that has something is full; an empty one ends
                // anywhere.
                0 if have > 0 => 0,
                0 => free,
                room => room,
            }
        };
        // At most `bytes`.
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// A request's part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins, bytes.
    pub pos: u64,
    /// How long it is, bytes; not 0.
    pub len: u32,
}

/// The requests that a range is cut into, see [`RequestLimit::split`].
#[derive(Clone, Debug)]
pub struct Split<const PAGE_SHIFT: u32> {
    limit: RequestLimit<PAGE_SHIFT>,
    pos: u64,
    len: u64,
}

impl<const PAGE_SHIFT: u32> Iterator for Split<PAGE_SHIFT> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let chunk = Chunk {
            pos: self.pos,
            len: self.limit.fit(self.pos, self.len),
        };
        if chunk.len == 0 {
            return None;
        }
        self.pos = self.pos.saturating_add(chunk.len.into());
        self.len = self.len.saturating_sub(chunk.len.into());
        Some(chunk)
    }
}

/// A request that is being gathered from ranges that follow each other, as readahead and writeback
/// hand them out.
#[derive(Clone, Debug)]
pub struct Gather<const PAGE_SHIFT: u32> {
    limit: RequestLimit<PAGE_SHIFT>,
    pos: u64,
    len: u32,
}

impl<const PAGE_SHIFT: u32> Gather<PAGE_SHIFT> {
    /// How many of the `len` bytes at `pos` may be added. 0 where the request is full or the range
    /// does not follow it: send it, and gather the next from here. A caller that would rather not
    /// cut the range asks first whether all of it fits.
    pub fn room(&self, pos: u64, len: u64) -> u32 {
        if self.len == 0 {
            self.limit.fit(pos, len)
        } else if self.pos.checked_add(self.len.into()) == Some(pos) {
            self.limit.room(self.pos, self.len, len)
        } else {
            0
        }
    }

    /// Adds as many of the `len` bytes at `pos` as [`room`](Self::room) says, and returns how many.
    pub fn add(&mut self, pos: u64, len: u64) -> u32 {
        let added = self.room(pos, len);
        if self.len == 0 {
            self.pos = pos;
        }
        // The sum is within the limit.
        self.len = self.len.saturating_add(added);
        added
    }

    /// What was gathered, if anything. Gathering begins anew.
    pub fn finish(&mut self) -> Option<Chunk> {
        let Self { pos, len, .. } = *self;
        self.len = 0;
        (len > 0).then_some(Chunk { pos, len })
    }
}
