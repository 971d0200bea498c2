// SPDX-License-Identifier: GPL-2.0

//! The filesystem type and its superblocks.

use crate::{
    conn::Conn,
    control::ControlFs,
    dir,
    file::OpenFile,
    inode, params,
    req::{Args, Sink},
    xattr::Xattrs,
};
use fuse_abi::{Opcode, Reply as _, StatfsOut};
use kernel::{
    page::PAGE_SHIFT,
    prelude::*,
    seq_file::{seq_print, SeqFile},
    sync::Arc,
};
use vfs::{
    cred::UserNamespace,
    dentry::{DEntry, Root},
    fs_type::flags,
    sb_flags,
    super_block::{Evicted, NewSuperBlock, Operations, Params, StatFs, SuperBlock},
    FileSystem,
};

/// What `statfs` shows as the type of the filesystem: the number of FUSE, whoever implements it.
const FUSE_SUPER_MAGIC: usize = 0x65735546;

/// The filesystem.
pub(crate) struct Fuse;

impl FileSystem for Fuse {
    type OwnerModule = crate::LocalModule;
    type TypeInfo = Arc<ControlFs>;
    type SuperBlockInfo = Arc<Conn>;
    type InodeInfo = inode::InodeInfo;
    type FileInfo = Arc<OpenFile>;
    type Context = params::Context;
    type SuperOps = SuperOps;

    const INODE_CACHE: &'static CStr = c"fuse_rs_inode";
    const FLAGS: i32 = flags::HAS_SUBTYPE | flags::USERNS_MOUNT;

    fn new_inode_info() -> impl PinInit<inode::InodeInfo, Error> {
        inode::InodeInfo::new()
    }
}

/// Sets up a superblock and makes its root, of which no more than the type is known yet.
pub(crate) fn fill(
    sb: &NewSuperBlock<'_, Fuse>,
    user_ns: &UserNamespace,
    rootmode: u32,
) -> Result<Root<Fuse>> {
    let mut iflags = sb_flags::I_IMA_UNVERIFIABLE_SIGNATURE
        | sb_flags::I_NOIDMAP
        | sb_flags::I_NO_DATA_INTEGRITY;
    if !user_ns.is_init() {
        iflags |= sb_flags::I_UNTRUSTED_MOUNTER;
    }
    sb.set_params(&Params {
        blocksize_bits: PAGE_SHIFT as u8,
        maxbytes: sb_flags::MAX_LFS_FILESIZE,
        magic: FUSE_SUPER_MAGIC,
        flags: 0,
        iflags,
    });
    sb.set_default_dops(dir::DOPS);
    sb.set_xattrs::<Xattrs>();
    sb.setup_bdi()?;
    sb.make_root(inode::root(sb, rootmode)?)
}

/// The operations of superblocks.
pub(crate) struct SuperOps;

#[vtable]
impl Operations for SuperOps {
    type FileSystem = Fuse;

    fn evict_inode(inode: Evicted<'_, Fuse>) {
        inode::evict(inode);
    }

    fn statfs(dentry: &DEntry<Fuse>, stat: &mut StatFs<'_>) -> Result {
        let conn = dentry.super_block().info();
        if !conn.allow_current_process() {
            // Just what the mount is.
            return Ok(());
        }
        let nodeid = inode::nodeid(dentry.inode().ok_or(ENOENT)?);
        let args = Args::new(Opcode::Statfs, nodeid, conn.creds()?)
            .sink(Sink::exactly(StatfsOut::wire_size(conn.minor())));
        let reply = conn.chan().send(args)?;
        let st = StatfsOut::parse(reply.bytes(), conn.minor())
            .map_err(|_| EIO)?
            .st;
        stat.set(
            st.bsize, st.frsize, st.blocks, st.bfree, st.bavail, st.files, st.ffree, st.namelen,
        );
        Ok(())
    }

    fn umount_begin(sb: &SuperBlock<Fuse>) {
        sb.info().chan().abort();
    }

    fn show_options(sb: &SuperBlock<Fuse>, seq: &SeqFile) -> Result {
        let conn = sb.info();
        let options = conn.options();
        seq_print!(
            seq,
            ",user_id={},group_id={}",
            conn.user_ns().from_kuid_munged(options.user_id),
            conn.user_ns().from_kgid_munged(options.group_id)
        );
        if conn.default_permissions() {
            seq_print!(seq, ",default_permissions");
        }
        if options.allow_other {
            seq_print!(seq, ",allow_other");
        }
        if options.max_read != u32::MAX {
            seq_print!(seq, ",max_read={}", options.max_read);
        }
        Ok(())
    }

    fn maintain(sb: &SuperBlock<Fuse>) -> Option<u32> {
        let secs = fuse_sys::params::inval_wq();
        if secs == 0 {
            return None;
        }
        sb.prune_dentries(dir::is_over);
        Some(secs.saturating_mul(1000))
    }

    fn kill_begin(sb: &SuperBlock<Fuse>) {
        // Completions of background requests may still hold inodes, which must be let go before the
        // superblock goes.
        let conn = sb.info();
        conn.chan().abort();
        conn.chan().wait_aborted();
        conn.watchdog().stop();
        conn.hide();
    }
}
