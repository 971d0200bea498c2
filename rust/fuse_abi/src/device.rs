// SPDX-License-Identifier: GPL-2.0

//! ioctls of the device.

wire! {
    /// Argument of [`DEV_IOC_BACKING_OPEN`].
    pub struct BackingMap {
        /// Open file of the server.
        pub fd: i32,
        /// Zero.
        pub flags: u32,
        /// Zero.
        pub padding: u64,
    }
}

/// Number that all the ioctls share.
pub const DEV_IOC_MAGIC: u32 = 229;

/// Makes a fresh device file one more of a connection; the argument is a `u32`, a file of that
/// connection.
pub const DEV_IOC_CLONE: u32 = ioc(IOC_READ, 0, size_of::<u32>());

/// Registers a backing file; the argument is a [`BackingMap`], the result its ID.
pub const DEV_IOC_BACKING_OPEN: u32 = ioc(IOC_WRITE, 1, size_of::<BackingMap>());

/// Removes a backing file; the argument is a `u32`, its ID.
pub const DEV_IOC_BACKING_CLOSE: u32 = ioc(IOC_WRITE, 2, size_of::<u32>());

/// INIT is sent and answered within mount(2); no argument.
pub const DEV_IOC_SYNC_INIT: u32 = ioc(IOC_NONE, 3, 0);

// The numbers of asm-generic/ioctl.h, which x86, arm64 and riscv use.
const IOC_NONE: u32 = 0;
const IOC_WRITE: u32 = 1;
const IOC_READ: u32 = 2;

const fn ioc(direction: u32, number: u32, size: usize) -> u32 {
    (direction << 30) | ((size as u32) << 16) | (DEV_IOC_MAGIC << 8) | number
}
