// SPDX-License-Identifier: GPL-2.0

//! Mount options.

use crate::{
    chan::Chan,
    conn::{self, Conn},
    control,
    dev::{self, Dev},
    names::names,
    notify::Notifications,
    super_block::{self, Fuse},
};
use kernel::{fs::File, prelude::*, str::CString, sync::aref::ARef, sync::Arc};
use vfs::{
    attr::FileType,
    cred::{Kgid, Kuid, UserNamespace},
    dentry::Root,
    fs_context::{FsContext, Param, Tree},
    sb_flags,
    super_block::{NewSuperBlock, SuperBlock},
};

/// Mount options as they come in. All but the first four are optional.
pub(crate) struct Context {
    /// With the file, so that it stays open until the mount is made: its end would go unnoticed.
    dev: Option<(ARef<File>, Arc<Dev>)>,
    rootmode: Option<u32>,
    user_id: Option<Kuid>,
    group_id: Option<Kgid>,
    default_permissions: bool,
    allow_other: bool,
    max_read: u32,
    subtype: Option<CString>,
}

impl Context {
    /// The device the server has open. It must have been opened in the user namespace of the mount,
    /// or a server could be made to answer for a namespace whose IDs it does not know.
    fn set_fd(&mut self, fc: &FsContext<Fuse>, file: ARef<File>) -> Result {
        if self.dev.is_some() {
            return fc.invalfc(c"fd: given twice");
        }
        let Some(dev) = dev::dev_from_file(&file) else {
            return fc.invalfc(names().not_the_device);
        };
        if UserNamespace::of_opener(&file) != fc.user_ns() {
            return fc.invalfc(c"fd: opened in another user namespace");
        }
        self.dev = Some((file, dev));
        Ok(())
    }

    fn set_rootmode(&mut self, fc: &FsContext<Fuse>, mode: u32) -> Result {
        if !u16::try_from(mode).is_ok_and(|mode| FileType::from_mode(mode).is_some()) {
            return fc.invalfc(c"rootmode: no type of file");
        }
        self.rootmode = Some(mode);
        Ok(())
    }

    fn set_user_id(&mut self, fc: &FsContext<Fuse>, uid: Kuid) -> Result {
        if fc.user_ns().from_kuid(uid).is_none() {
            return fc.invalfc(c"user_id: not in the user namespace of the mount");
        }
        self.user_id = Some(uid);
        Ok(())
    }

    fn set_group_id(&mut self, fc: &FsContext<Fuse>, gid: Kgid) -> Result {
        if fc.user_ns().from_kgid(gid).is_none() {
            return fc.invalfc(c"group_id: not in the user namespace of the mount");
        }
        self.group_id = Some(gid);
        Ok(())
    }

    /// Servers can rely on READs of 4096 bytes.
    fn set_max_read(&mut self, _fc: &FsContext<Fuse>, bytes: u32) -> Result {
        self.max_read = bytes.max(4096);
        Ok(())
    }

    fn set_subtype(&mut self, fc: &FsContext<Fuse>, subtype: &CStr) -> Result {
        if self.subtype.is_some() {
            return fc.invalfc(c"subtype: given twice");
        }
        self.subtype = Some(subtype.try_into()?);
        Ok(())
    }
}

/// The mount that the server of `chan` has; it can have no other.
fn mounted(fc: &FsContext<Fuse>, chan: &Arc<Chan>) -> Result<Tree<Fuse>> {
    match fc.find_super(|conn| Arc::ptr_eq(conn.chan(), chan))? {
        Some(sb) => Ok(Tree::Existing(sb)),
        None => {
            fc.errorfc(c"fd: its mount is gone");
            Err(ENOTCONN)
        }
    }
}

impl vfs::fs_context::Context<Fuse> for Context {
    const PARAMS: &'static [Param<Fuse>] = &[
        Param::fd(c"fd", Self::set_fd),
        Param::u32oct(c"rootmode", Self::set_rootmode),
        Param::uid(c"user_id", Self::set_user_id),
        Param::gid(c"group_id", Self::set_group_id),
        Param::flag(c"default_permissions", |this: &mut Self| {
            this.default_permissions = true
        }),
        Param::flag(c"allow_other", |this: &mut Self| this.allow_other = true),
        Param::u32(c"max_read", Self::set_max_read),
        Param::string(c"subtype", Self::set_subtype),
    ];

    fn new(_fc: &FsContext<Fuse>) -> Result<Self> {
        Ok(Self {
            dev: None,
            rootmode: None,
            user_id: None,
            group_id: None,
            default_permissions: false,
            allow_other: false,
            max_read: u32::MAX,
            subtype: None,
        })
    }

    fn get_tree(&mut self, fc: &FsContext<Fuse>) -> Result<Tree<Fuse>> {
        if let Some((_, dev)) = &self.dev {
            if let Some(chan) = dev.chan() {
                return mounted(fc, chan);
            }
        }
        let (Some(user_id), Some(group_id), true) = (
            self.user_id,
            self.group_id,
            self.dev.is_some() && self.rootmode.is_some(),
        ) else {
            return fc.invalfc(c"the options fd, rootmode, user_id and group_id are needed");
        };
        if fc.sb_flags() & sb_flags::MANDLOCK != 0 {
            return fc.invalfc(c"there are no mandatory locks");
        }
        // Nothing that changes a file is implemented, nor are ACLs.
        fc.set_sb_flags((fc.sb_flags() | sb_flags::RDONLY) & !sb_flags::POSIXACL);

        let conn = Conn::new(
            conn::Options {
                user_id,
                group_id,
                default_permissions: self.default_permissions,
                allow_other: self.allow_other,
                max_read: self.max_read,
            },
            fc.user_ns().into(),
        )?;
        Ok(Tree::New(conn))
    }

    fn fill_super(
        &mut self,
        fc: &FsContext<Fuse>,
        sb: NewSuperBlock<'_, Fuse>,
    ) -> Result<Root<Fuse>> {
        let (Some((file, dev)), Some(rootmode)) = (self.dev.take(), self.rootmode) else {
            return Err(EINVAL);
        };
        if let Some(subtype) = &self.subtype {
            sb.set_subtype(subtype)?;
        }
        let root = super_block::fill(&sb, fc.user_ns(), rootmode)?;
        let conn: Arc<Conn> = sb.info().into();
        conn.chan().set_connection(sb.dev());
        conn.chan()
            .set_notified(Arc::new(Notifications::new(sb.link()?), GFP_KERNEL)?);
        let init = conn::init::prepare(&conn, sb.bdi().into(), dev.is_sync_init())?;
        let entry = control::add(fc.type_info(), &conn, sb.dev())?;
        if let Err(e) = dev.install(conn.chan().clone()) {
            fc.errorfc(c"fd: has a mount already");
            return Err(e);
        }
        conn.show(entry);
        // While INIT is waited for, the server's end is to be noticed.
        drop(file);
        if let Err(e) = init.send(&conn) {
            fc.errorfc(c"fd: the server has not answered INIT as it should");
            conn.hide();
            return Err(e);
        }
        Ok(root)
    }

    fn reconfigure(&mut self, fc: &FsContext<Fuse>, _sb: &SuperBlock<Fuse>) -> Result {
        if fc.sb_flags() & sb_flags::MANDLOCK != 0 {
            return fc.invalfc(c"there are no mandatory locks");
        }
        if fc.sb_flags_mask() & sb_flags::RDONLY != 0 && fc.sb_flags() & sb_flags::RDONLY == 0 {
            fc.errorfc(c"writing is not implemented");
            return Err(EROFS);
        }
        Ok(())
    }
}
