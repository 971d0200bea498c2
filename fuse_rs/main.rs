// SPDX-License-Identifier: GPL-2.0

//! The kernel side of FUSE, which filesystem servers in user space are mounted by.
//!
//! Two halves, and a seam between them. The transport ([`chan`], [`req`], [`dev`]) takes requests
//! to the server and replies back, and knows nothing of files. The filesystem ([`params`],
//! [`conn`], [`super_block`], [`inode`], …) turns calls of the VFS into requests. A request goes
//! over the seam by [`chan::Chan`].
//!
//! The crate has no unsafe code; `vfs` has. What a server sends is only read by the parsers of
//! `fuse_abi`.

#![forbid(unsafe_code)]

mod attr;
mod chan;
mod conn;
mod control;
mod dev;
mod dir;
mod file;
mod inode;
mod iqueue;
mod names;
mod notify;
mod params;
mod poll;
mod pqueue;
mod readdir;
mod req;
mod super_block;
mod sysctl;
mod xattr;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use vfs::supers::Supers;

module! {
    type: FuseRs,
    name: "fuse_rs",
    authors: ["The fuse_rs developers"],
    description: "Filesystems in user space (FUSE), kernel side in Rust",
    license: "GPL",
    alias: ["fs-fuse_rs", "fs-fusectl_rs"],
}

/// What is there while the module is loaded. It goes in the order of the fields: no new mount, then
/// no new server, then the knobs that mounts read, and how connections are looked at.
#[pin_data]
struct FuseRs {
    #[pin]
    fs_type: vfs::fs_type::Registration<super_block::Fuse>,
    inval_wq: fuse_sys::params::OnInvalWq<Mounts>,
    dev: Pin<KBox<vfs::cdev::Registration<dev::Dev>>>,
    sysctl: vfs::sysctl::Registration,
    #[pin]
    control: vfs::small_fs::Registration<chan::Chan>,
    mount_point: vfs::sysfs::MountPoint,
}

/// All mounts.
struct Mounts(Arc<Supers<super_block::Fuse>>);

impl fuse_sys::params::Changed for Mounts {
    fn changed(&self) {
        self.0.maintain_all();
    }
}

impl kernel::InPlaceModule for FuseRs {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        let names = names::names();
        let supers = Supers::new();
        // The device first: that its minor number is taken tells that there is another client.
        try_pin_init!(Self {
            dev: KBox::pin_init(
                vfs::cdev::Registration::new(names.device, names.minor, 0o666),
                GFP_KERNEL
            )
            .inspect_err(names::explain)?,
            mount_point: vfs::sysfs::MountPoint::new(names.control_dir, c"connections")?,
            control <- vfs::small_fs::Registration::new(names.control),
            sysctl: sysctl::register()?,
            inval_wq: fuse_sys::params::OnInvalWq::new(Arc::new(
                Mounts(supers.clone()?),
                GFP_KERNEL
            )?),
            fs_type <- vfs::fs_type::Registration::new(
                names.fs_type,
                control.fs().clone(),
                supers?
            ),
        })
    }
}
