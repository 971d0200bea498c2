// SPDX-License-Identifier: GPL-2.0

//! The knobs `fs.fuse_rs.*`.

use kernel::prelude::*;
use vfs::sysctl::{Registration, Uint};

/// Most pages of data in a request, for mounts that are made from now on. A server gets as many
/// only if it asks for them.
pub(crate) static MAX_PAGES_LIMIT: Uint = Uint::new(c"max_pages_limit", 256, 1, 65535);

/// Makes the knobs.
pub(crate) fn register() -> Result<Registration> {
    Registration::new(c"fs/fuse_rs", &[&MAX_PAGES_LIMIT])
}
