// SPDX-License-Identifier: GPL-2.0

//! The names under which the rest of the system knows the client.

use fuse_sys::params;
use kernel::prelude::*;

/// What can be had in two ways: beside the in-tree client, or in its place.
pub(crate) struct Names {
    /// The filesystem type.
    pub(crate) fs_type: &'static CStr,
    /// The device, below `/dev`.
    pub(crate) device: &'static CStr,
    /// Its minor number, if it matters.
    pub(crate) minor: Option<u8>,
    /// The directory of the knobs, below `/proc/sys`.
    pub(crate) sysctl: &'static CStr,
    /// The type of the control filesystem.
    pub(crate) control: &'static CStr,
    /// Where it is mounted: `/sys/fs/<this>/connections`.
    pub(crate) control_dir: &'static CStr,
    /// What to say of another file where the device is wanted.
    pub(crate) not_the_device: &'static CStr,
}

static BESIDE: Names = Names {
    fs_type: c"fuse_rs",
    device: c"fuse_rs",
    minor: None,
    sysctl: c"fs/fuse_rs",
    control: c"fusectl_rs",
    control_dir: c"fuse_rs",
    not_the_device: c"fd: not /dev/fuse_rs",
};

static IN_PLACE: Names = Names {
    fs_type: c"fuse",
    device: c"fuse",
    // FUSE_MINOR: device nodes may be there that no udev has made.
    minor: Some(229),
    sysctl: c"fs/fuse",
    control: c"fusectl",
    control_dir: c"fuse",
    not_the_device: c"fd: not /dev/fuse",
};

/// The names that the parameter `dropin` chose. Any context.
pub(crate) fn names() -> &'static Names {
    if params::dropin() {
        &IN_PLACE
    } else {
        &BESIDE
    }
}

/// Says what to do if names are taken already.
pub(crate) fn explain(&error: &Error) {
    if params::dropin() && (error == EBUSY || error == EEXIST) {
        pr_err!(
            "dropin=1: the in-tree client has its names: it is built in, or loaded (then rmmod it)\n"
        );
    }
}
