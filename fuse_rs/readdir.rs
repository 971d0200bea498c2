// SPDX-License-Identifier: GPL-2.0

//! Directories: OPENDIR, READDIR, RELEASEDIR.

use crate::{
    file::{
        self,
        open_file,
        File,
        OpenFile, //
    },
    inode::{
        self,
        conn,
        INode,
        PAGE_SHIFT, //
    },
    req::Sink,
    super_block::Fuse, //
};
use fuse_abi::{
    Dirents,
    Opcode, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};
use vfs::{
    attr::FileType,
    file::{
        DirContext,
        Operations, //
    }, //
};

/// Longest name in a directory, in bytes, whatever the server said of names it takes: that of a
/// whole path.
const NAME_MAX: u32 = 4095;

/// The bits of a `DT_*`.
const DT_MASK: u32 = 0xf;

/// The operations of open directories.
pub(crate) struct DirFile;

#[vtable]
impl Operations for DirFile {
    type FileSystem = Fuse;

    const FILE_TYPE: FileType = FileType::Directory;

    fn open(inode: &INode, file: &File) -> Result<Arc<OpenFile>> {
        file::open(inode, file, true)
    }

    fn release(open: Arc<OpenFile>, _inode: &INode, file: &File) {
        open.release(file);
    }

    fn fsync(file: &File, datasync: bool) -> Result {
        file::fsync(file, datasync, true)
    }

    fn ioctl(file: &File, cmd: u32, arg: usize, compat: bool) -> Result<isize> {
        file::ioctl(file, cmd, arg, compat, true)
    }

    fn iterate_shared(file: &File, ctx: &mut DirContext<'_>) -> Result {
        let inode = file.inode();
        inode::check_good(inode)?;
        let conn = conn(inode);
        let limits = conn.limits();
        // As much as the caller has room for, within what a request may carry.
        let max = (limits.max_pages as usize)
            .saturating_mul(PAGE_SIZE)
            .min(limits.max_read as usize)
            .max(PAGE_SIZE);
        let size = ctx.count().clamp(PAGE_SIZE, max);
        let open = open_file(file)?;
        // A position is the server's own number: all 64 bits of it are its own.
        let pos = ctx.pos() as u64;
        let args = file::read_args(
            inode,
            Opcode::Readdir,
            &open,
            file.flags(),
            pos,
            size as u32,
        )?
        .sink(Sink::buffer(size)?);
        let reply = inode::with_dirops(inode, || conn.chan().send(args))?;
        for entry in Dirents::new(reply.bytes(), NAME_MAX) {
            let entry = entry.map_err(|_| EIO)?;
            if !ctx.emit(entry.name, entry.ino, entry.type_ & DT_MASK) {
                break;
            }
            ctx.set_pos(entry.off as i64);
        }
        Ok(())
    }
}

const _: () = assert!(PAGE_SIZE == 1 << PAGE_SHIFT);
