// SPDX-License-Identifier: GPL-2.0

//! The knobs `fs.fuse_rs.*`; in drop-in mode `fs.fuse.*`.

use crate::names::names;
use kernel::prelude::*;
use vfs::sysctl::{Registration, Uint};

/// Most pages of data in a request, for mounts that are made from now on. A server gets as many
/// only if it asks for them.
pub(crate) static MAX_PAGES_LIMIT: Uint = Uint::new(c"max_pages_limit", 256, 1, 65535);

/// Seconds a server has for an answer if it names no limit in INIT itself; 0 for no limit.
pub(crate) static DEFAULT_REQUEST_TIMEOUT: Uint =
    Uint::new(c"default_request_timeout", 0, 0, 65535);

/// Most seconds any server has for an answer; 0 for no limit.
pub(crate) static MAX_REQUEST_TIMEOUT: Uint = Uint::new(c"max_request_timeout", 0, 0, 65535);

/// Makes the knobs.
pub(crate) fn register() -> Result<Registration> {
    Registration::new(
        names().sysctl,
        &[
            &MAX_PAGES_LIMIT,
            &DEFAULT_REQUEST_TIMEOUT,
            &MAX_REQUEST_TIMEOUT,
        ],
    )
}
