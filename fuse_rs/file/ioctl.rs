// SPDX-License-Identifier: GPL-2.0

//! ioctl(2) of files and directories, as far as the number of the ioctl tells the size of its
//! argument: IOCTL.

use super::{
    open_file,
    File, //
};
use crate::{
    inode::{
        self,
        conn,
        nodeid, //
    },
    req::{
        Args,
        Sink, //
    }, //
};
use fuse_abi::{
    IoctlFlags,
    IoctlIn,
    IoctlOut,
    Opcode,
    Reply as _, //
};
use kernel::{
    ioctl::{
        _IOC_DIR,
        _IOC_SIZE,
        _IOR, //
    },
    page::PAGE_SIZE,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// The caller gives data (`_IOC_WRITE`), the caller gets data (`_IOC_READ`).
const GIVES: u32 = kernel::uapi::_IOC_WRITE;
const GETS: u32 = kernel::uapi::_IOC_READ;

/// `FS_IOC_GETFLAGS`, `FS_IOC32_GETFLAGS`, `FS_IOC_FSGETXATTR`: the first has an argument of
/// another size than its number says.
const FILE_FLAGS: [u32; 3] = [
    _IOR::<c_long>(b'f' as u32, 1),
    _IOR::<c_int>(b'f' as u32, 1),
    _IOR::<[u8; FSXATTR_SIZE]>(b'X' as u32, 31),
];

/// Bytes of a `struct fsxattr`.
const FSXATTR_SIZE: usize = 28;

/// Passes an ioctl on to the server; `compat` if the caller is a 32-bit one. Sleeps. Returns what
/// the server says.
pub(crate) fn ioctl(
    file: &File,
    cmd: u32,
    arg: usize,
    compat: bool,
    is_dir: bool,
) -> Result<isize> {
    let inode = file.inode();
    let conn = conn(inode);
    if !conn.allow_current_process() {
        return Err(EACCES);
    }
    inode::check_good(inode)?;
    if is_dir && conn.minor() < 18 || FILE_FLAGS.contains(&cmd) {
        return Err(ENOTTY);
    }
    let size = _IOC_SIZE(cmd);
    let given = if _IOC_DIR(cmd) & GIVES != 0 { size } else { 0 };
    let wanted = if _IOC_DIR(cmd) & GETS != 0 { size } else { 0 };
    let most = (conn.limits().max_pages as usize).saturating_mul(PAGE_SIZE);
    if given > most || wanted > most {
        return Err(ENOMEM);
    }

    let mut data = KVec::with_capacity(given, GFP_KERNEL)?;
    UserSlice::new(UserPtr::from_addr(arg), given).read_all(&mut data, GFP_KERNEL)?;

    let mut flags = IoctlFlags::empty();
    flags.set(IoctlFlags::DIR, is_dir);
    flags.set(IoctlFlags::COMPAT, compat);
    flags.set(IoctlFlags::IS_32BIT, compat || cfg!(not(CONFIG_64BIT)));
    let args = Args::new(Opcode::Ioctl, nodeid(inode), conn.creds()?)
        .arg(&IoctlIn {
            fh: open_file(file)?.fh,
            flags,
            cmd,
            arg: arg as u64,
            // Sizes are 14 bits.
            in_size: given as u32,
            out_size: wanted as u32,
        })?
        .arg(data.as_slice())?;
    let header = IoctlOut::wire_size(conn.minor());
    let sink = Sink::buffer(header.saturating_add(wanted))?;
    let reply = match conn.chan().send(args.sink(sink)) {
        Err(err) if err == ENOSYS => return Err(ENOTTY),
        result => result?,
    };
    let (out, data) = reply.bytes().split_at_checked(header).ok_or(EIO)?;
    let out = IoctlOut::parse(out, conn.minor()).map_err(|_| EIO)?;
    // Only the number says what the server may look at.
    if out.flags.contains(IoctlFlags::RETRY) {
        return Err(EIO);
    }
    UserSlice::new(UserPtr::from_addr(arg), data.len())
        .writer()
        .write_slice(data)?;
    Ok(out.result as isize)
}
