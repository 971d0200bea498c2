// SPDX-License-Identifier: GPL-2.0

//! Extended attributes: GETXATTR and LISTXATTR.

use crate::{
    conn::Sticky,
    inode::{
        self,
        conn,
        nodeid,
        INode, //
    },
    req::{
        Args,
        Sink, //
    },
    super_block::Fuse, //
};
use fuse_abi::{
    xattr_names,
    GetxattrIn,
    GetxattrOut,
    Opcode,
    Reply as _, //
};
use kernel::prelude::*;
use vfs::xattr::{
    self,
    Buffer, //
};

/// The operations of extended attributes.
pub(crate) struct Xattrs;

impl xattr::Operations for Xattrs {
    type FileSystem = Fuse;

    fn get(inode: &INode, name: &CStr, value: Buffer<'_>) -> Result<usize> {
        inode::check_good(inode)?;
        let unsupported = &conn(inode).no_getxattr;
        ask(
            inode,
            Opcode::Getxattr,
            Some(name),
            value,
            unsupported,
            |_| Ok(()),
        )
    }
}

/// Lists the names of the extended attributes, or finds out the size of the list. Sleeps.
pub(crate) fn list(inode: &INode, list: Buffer<'_>) -> Result<usize> {
    inode::check_good(inode)?;
    let conn = conn(inode);
    if !conn.allow_current_process() {
        return Err(EACCES);
    }
    let unsupported = &conn.no_listxattr;
    ask(inode, Opcode::Listxattr, None, list, unsupported, |list| {
        xattr_names(list).map(|_| ()).map_err(|_| EIO)
    })
}

/// Asks the server for a value or a list, which must pass `check`; for its size if there is no room
/// for any of it.
///
/// # Errors
///
/// `EOPNOTSUPP`: the server has no extended attributes. What it answers, among it `ENODATA` and
/// `ERANGE` as of getxattr(2), and those of the transport.
fn ask(
    inode: &INode,
    opcode: Opcode,
    name: Option<&CStr>,
    to: Buffer<'_>,
    unsupported: &Sticky,
    check: impl FnOnce(&[u8]) -> Result,
) -> Result<usize> {
    let conn = conn(inode);
    let room = to.len().min(xattr::SIZE_MAX);
    let reply = unsupported.unless(|| {
        let mut args = Args::new(opcode, nodeid(inode), conn.creds()?).arg(&GetxattrIn {
            // At most SIZE_MAX.
            size: room as u32,
            ..GetxattrIn::default()
        })?;
        if let Some(name) = name {
            args = args.arg(name.to_bytes_with_nul())?;
        }
        let sink = if room > 0 {
            Sink::buffer(room)?
        } else {
            Sink::exactly(GetxattrOut::wire_size(conn.minor()))
        };
        conn.chan().send(args.sink(sink))
    })?;
    let reply = reply.ok_or(EOPNOTSUPP)?;
    if room == 0 {
        let out = GetxattrOut::parse(reply.bytes(), conn.minor()).map_err(|_| EIO)?;
        return Ok((out.size as usize).min(xattr::SIZE_MAX));
    }
    check(reply.bytes())?;
    to.put(reply.bytes())
}
