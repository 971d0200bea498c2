// SPDX-License-Identifier: GPL-2.0

//! The control filesystem, `fusectl_rs`: a directory for each connection, by which whoever mounted
//! it, or the administrator, looks at it, ends it and sets its limits.

use crate::{
    chan::Chan,
    conn::Conn, //
};
use fuse_sys::params;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use vfs::{
    cred,
    small_fs::{Entry, File, Set, SmallFs, Subject}, //
};

/// INIT has 16 bits for limits; they are not made larger later.
const MAX_LIMIT: u32 = 65535;

/// The filesystem.
pub(crate) type ControlFs = SmallFs<Chan>;

impl Subject for Chan {
    type OwnerModule = crate::LocalModule;

    /// That of in-tree's `fusectl`.
    const MAGIC: usize = 0x65735543;
    const FILES: &'static [File<Self>] = &[
        File {
            name: c"waiting",
            mode: 0o400,
            get: Some(Chan::waiting),
            set: None,
        },
        File {
            name: c"abort",
            mode: 0o200,
            get: None,
            set: Some(Set::Trigger(Chan::abort_by_user)),
        },
        File {
            name: c"max_background",
            mode: 0o600,
            get: Some(|chan| chan.max_background() as usize),
            set: Some(Set::Number(|chan, max| {
                check(max, params::max_user_bgreq())?;
                chan.set_max_background(max);
                Ok(())
            })),
        },
        File {
            name: c"congestion_threshold",
            mode: 0o600,
            get: Some(|chan| chan.congestion_threshold() as usize),
            set: Some(Set::Number(|chan, threshold| {
                check(threshold, params::max_user_congthresh())?;
                chan.set_congestion_threshold(threshold);
                Ok(())
            })),
        },
    ];
}

/// Whether the caller may set a limit to this number.
fn check(number: u32, user_limit: u32) -> Result {
    if number > MAX_LIMIT || number > user_limit && !cred::is_sys_admin() {
        return Err(EINVAL);
    }
    Ok(())
}

/// Makes the directory of a connection, whose mount has the device number `dev`. Sleeps.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn add(control: &Arc<ControlFs>, conn: &Conn, dev: u32) -> Result<Entry<Chan>> {
    control.add(
        dev,
        conn.options().user_id,
        conn.options().group_id,
        conn.chan().clone(),
    )
}
