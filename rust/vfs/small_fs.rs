// SPDX-License-Identifier: GPL-2.0

//! A filesystem of small files that the kernel makes: a directory for each of some subjects, and in
//! each the same files, which show and set numbers of the subject.
//!
//! It has one superblock, however often it is mounted. Subjects come and go whether or not there is
//! one. An open file outlives its directory: it is empty then, and takes writes without effect.
//!
//! # Lock order
//!
//! `s_umount` of the superblock, `SmallFs::state`, the directories' `i_rwsem`. `Dir::subject` is
//! taken alone.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::cred::{Kgid, Kuid};
use core::{
    marker::PhantomData,
    mem::offset_of,
    ptr::{addr_of, null, null_mut, NonNull}, //
};
use fuse_bindings as bindings;
use kernel::{
    error::{from_err_ptr, from_result, to_result},
    module::this_module,
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{Arc, Mutex},
    types::Opaque, //
};

/// What directories are about.
pub trait Subject: Send + Sync + Sized + 'static {
    /// The module that implements it; it stays loaded while the filesystem is mounted.
    type OwnerModule: kernel::ModuleMetadata;

    /// What `statfs` shows as the type.
    const MAGIC: usize;

    /// The files of each directory.
    const FILES: &'static [File<Self>];
}

/// A file in each directory. Its functions may sleep, and several tasks may call them at a time.
pub struct File<D> {
    /// Its name.
    pub name: &'static CStr,
    /// Its permissions.
    pub mode: u16,
    /// The number that is read from it; without this reading fails with `EINVAL`.
    pub get: Option<fn(&D) -> usize>,
    /// What a write does; without this it fails with `EINVAL`.
    pub set: Option<Set<D>>,
}

/// What a write to a file does.
pub enum Set<D> {
    /// Whatever is written.
    Trigger(fn(&D)),
    /// What is written is a number, in C's notation, and written at the beginning of the file; else
    /// the write fails with `EINVAL`.
    Number(fn(&D, u32) -> Result),
}

/// Bytes of the largest number and a NUL.
const NAME_SIZE: usize = 11;

/// The directory of a subject.
#[pin_data]
struct Dir<D> {
    number: u32,
    /// The number in decimal, with a NUL.
    name: [c_char; NAME_SIZE],
    uid: Kuid,
    gid: Kgid,
    /// [`None`] once it is removed.
    #[pin]
    subject: Mutex<Option<Arc<D>>>,
}

/// What there is to see in the filesystem.
struct State<D> {
    /// By number.
    dirs: RBTree<u32, Arc<Dir<D>>>,
    root: Option<NonNull<bindings::dentry>>,
}

// SAFETY: The dentry may be used on any thread.
unsafe impl<D: Send + Sync> Send for State<D> {}

/// A filesystem of small files, mounted or not.
///
/// # Invariants
///
/// `root` is the root of the superblock, from when that is set up until it begins to go, and has the
/// directories `dirs`.
#[pin_data]
pub struct SmallFs<D> {
    #[pin]
    state: Mutex<State<D>>,
}

impl<D: Subject> SmallFs<D> {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(State { dirs: RBTree::new(), root: None }),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes the directory `number`, which there must not be yet. It and its files are owned by `uid`
    /// and `gid`. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn add(
        self: &Arc<Self>,
        number: u32,
        uid: Kuid,
        gid: Kgid,
        subject: Arc<D>,
    ) -> Result<Entry<D>> {
        let mut name = [0; NAME_SIZE];
        // SAFETY: The buffer is as large as it must be.
        unsafe { bindings::format_u32(name.as_mut_ptr(), number) };
        let dir = Arc::pin_init(
            pin_init!(Dir {
                number,
                name,
                uid,
                gid,
                subject <- new_mutex!(Some(subject)),
            }),
            GFP_KERNEL,
        )?;
        let mut state = self.state.lock();
        state
            .dirs
            .try_create_and_insert(number, dir.clone(), GFP_KERNEL)?;
        if let Some(root) = state.root {
            // SAFETY: By the type invariant; the lock keeps it there.
            if let Err(error) = unsafe { populate(root.as_ptr(), &dir) } {
                state.dirs.remove(&number);
                return Err(error);
            }
        }
        drop(state);
        Ok(Entry {
            fs: self.clone(),
            dir,
        })
    }
}

/// A subject's place in the filesystem. The directory goes when this is dropped, at the latest.
pub struct Entry<D: Subject> {
    fs: Arc<SmallFs<D>>,
    dir: Arc<Dir<D>>,
}

impl<D: Subject> Entry<D> {
    /// Removes the directory, unless that is done already. After it the files do not use the subject
    /// any more, but for calls that are under way. Sleeps.
    pub fn remove(&self) {
        let mut state = self.fs.state.lock();
        let Dir { number, name, .. } = &*self.dir;
        // Once it is removed, another one may have the number.
        let here = |dir| Arc::ptr_eq(dir, &self.dir);
        if !state.dirs.get(number).is_some_and(here) {
            return;
        }
        state.dirs.remove(number);
        if let Some(root) = state.root {
            // SAFETY: By the invariant of `SmallFs`; the lock keeps it there.
            unsafe { bindings::simple_remove_by_name(root.as_ptr(), name.as_ptr(), None) };
        }
        drop(state);
        let subject = self.dir.subject.lock().take();
        drop(subject);
    }
}

impl<D: Subject> Drop for Entry<D> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// What `i_private` of a file's inode points at.
struct Node<D: 'static> {
    dir: Arc<Dir<D>>,
    file: &'static File<D>,
}

/// Makes the directory `dir` and its files.
///
/// # Safety
///
/// `root` must be the root of a superblock of `D`, and stay.
unsafe fn populate<D: Subject>(root: *mut bindings::dentry, dir: &Arc<Dir<D>>) -> Result {
    let mode = bindings::S_IFDIR as u16 | 0o500;
    // SAFETY: By the function's contract; a directory needs no node.
    let dentry = unsafe { make::<D>(root, dir.name.as_ptr(), mode, dir, null_mut()) }?;
    for file in D::FILES {
        let mode = bindings::S_IFREG as u16 | file.mode;
        let made = KBox::new(
            Node {
                dir: dir.clone(),
                file,
            },
            GFP_KERNEL,
        )
        .map_err(Error::from)
        // SAFETY: The new directory stays, as nobody else may remove it yet. The node is a file's.
        .and_then(|node| unsafe {
            make::<D>(
                dentry,
                file.name.as_char_ptr(),
                mode,
                dir,
                KBox::into_raw(node),
            )
        });
        if let Err(error) = made {
            // SAFETY: By the function's contract.
            unsafe { bindings::simple_remove_by_name(root, dir.name.as_ptr(), None) };
            return Err(error);
        }
    }
    Ok(())
}

/// Makes a directory or file, which is visible at once. Takes over `node`, if there is one.
///
/// # Safety
///
/// `parent` must be a directory of a superblock of `D`, and stay. `name` must end with NUL. `node`
/// must be null for a directory, else come from `KBox::into_raw`.
unsafe fn make<D: Subject>(
    parent: *mut bindings::dentry,
    name: *const c_char,
    mode: u16,
    dir: &Dir<D>,
    node: *mut Node<D>,
) -> Result<*mut bindings::dentry> {
    // SAFETY: `parent` is valid.
    let sb = unsafe { (*parent).d_sb };
    // SAFETY: The superblock is valid.
    let inode = unsafe { bindings::new_inode(sb) };
    if inode.is_null() {
        if !node.is_null() {
            // SAFETY: By the function's contract.
            drop(unsafe { KBox::from_raw(node) });
        }
        return Err(ENOMEM);
    }
    // SAFETY: The inode is new, and ours alone. It takes over the node, which `evict_inode` drops.
    unsafe { (*inode).i_private = node.cast() };
    // SAFETY: As above.
    unsafe { (*inode).i_ino = bindings::get_next_ino().into() };
    // SAFETY: As above.
    unsafe { (*inode).i_mode = mode };
    // SAFETY: As above.
    unsafe { (*inode).i_uid = dir.uid.0 };
    // SAFETY: As above.
    unsafe { (*inode).i_gid = dir.gid.0 };
    // SAFETY: As above.
    unsafe { bindings::simple_inode_init_ts(inode) };
    if node.is_null() {
        // SAFETY: As above.
        unsafe { (*inode).i_op = &raw const bindings::simple_dir_inode_operations };
        // SAFETY: As above.
        unsafe { bindings::inode_set_fop(inode, &raw const bindings::simple_dir_operations) };
        // SAFETY: As above.
        unsafe { bindings::set_nlink(inode, 2) };
    } else {
        // SAFETY: As above.
        unsafe { bindings::inode_set_fop(inode, Table::<D>::FILE) };
    }
    // SAFETY: `parent` is a directory; the name ends with NUL.
    let dentry = unsafe { bindings::simple_start_creating(parent, name) };
    let dentry = match from_err_ptr(dentry) {
        Ok(dentry) => dentry,
        Err(error) => {
            // SAFETY: The reference is ours.
            unsafe { bindings::iput(inode) };
            return Err(error);
        }
    };
    // SAFETY: The dentry is negative, and its parent locked. It takes over the inode.
    unsafe { bindings::d_make_persistent(dentry, inode) };
    if node.is_null() {
        // SAFETY: The parent has an inode, and is locked.
        unsafe { bindings::inc_nlink((*parent).d_inode) };
    }
    // SAFETY: Ends what was started above. The dentry stays, as it is persistent.
    unsafe { bindings::simple_done_creating(dentry) };
    Ok(dentry)
}

/// The tables of operations of a filesystem of small files.
struct Table<D>(PhantomData<fn() -> D>);

impl<D: Subject> Table<D> {
    const CONTEXT: &'static bindings::fs_context_operations = &bindings::fs_context_operations {
        get_tree: Some(Self::get_tree),
        ..pin_init::zeroed()
    };

    const SUPER: &'static bindings::super_operations = &bindings::super_operations {
        statfs: Some(bindings::simple_statfs),
        evict_inode: Some(Self::evict_inode),
        ..pin_init::zeroed()
    };

    const FILE: &'static bindings::file_operations = &bindings::file_operations {
        owner: this_module::<D::OwnerModule>().as_ptr(),
        open: Some(bindings::nonseekable_open),
        read: Some(Self::read),
        write: Some(Self::write),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// `fc` must be a context of the type.
    unsafe extern "C" fn init_fs_context(fc: *mut kernel::bindings::fs_context) -> c_int {
        // The kernel crate only knows the name of the type.
        let fc: *mut bindings::fs_context = fc.cast();
        // SAFETY: By the function's contract.
        unsafe { (*fc).ops = Self::CONTEXT };
        0
    }

    /// # Safety
    ///
    /// `fc` must be a context of the type.
    unsafe extern "C" fn get_tree(fc: *mut bindings::fs_context) -> c_int {
        // SAFETY: By the function's contract, and the callback is for the type.
        unsafe { bindings::get_tree_single(fc, Some(Self::fill_super)) }
    }

    /// # Safety
    ///
    /// `sb` must be a new superblock of the type.
    unsafe extern "C" fn fill_super(
        sb: *mut bindings::super_block,
        _fc: *mut bindings::fs_context,
    ) -> c_int {
        from_result(|| {
            let none = [bindings::tree_descr {
                name: c"".as_char_ptr(),
                ops: null(),
                mode: 0,
            }];
            // SAFETY: By the function's contract; an empty name ends the table.
            to_result(unsafe { bindings::simple_fill_super(sb, D::MAGIC, none.as_ptr()) })?;
            // SAFETY: The superblock is not visible to others yet.
            unsafe { (*sb).s_op = Self::SUPER };
            // SAFETY: It has just been given a root.
            let root = unsafe { (*sb).s_root };
            // SAFETY: By the function's contract.
            let mut state = unsafe { Registration::<D>::shown(sb) }.state.lock();
            for dir in state.dirs.values() {
                // SAFETY: The superblock is locked.
                unsafe { populate(root, dir) }?;
            }
            // INVARIANT: It has all directories, and `kill_sb` takes it away.
            state.root = NonNull::new(root);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `sb` must be a superblock of the type that is to go.
    unsafe extern "C" fn kill_sb(sb: *mut bindings::super_block) {
        // There is no other superblock, and there can't be before this one is gone.
        //
        // SAFETY: By the function's contract.
        unsafe { Registration::<D>::shown(sb) }.state.lock().root = None;
        // SAFETY: It was made by `get_tree_single`, which gave it an anonymous device.
        unsafe { bindings::kill_anon_super(sb) };
    }

    /// # Safety
    ///
    /// `inode` must be an inode of the type in its last moments.
    unsafe extern "C" fn evict_inode(inode: *mut bindings::inode) {
        // SAFETY: vfs.rst: the callback removes the pages and calls `clear_inode`.
        unsafe { bindings::truncate_inode_pages_final(addr_of!((*inode).i_data).cast_mut()) };
        // SAFETY: As above.
        unsafe { bindings::clear_inode(inode) };
        // SAFETY: Nobody else has the inode.
        let node = unsafe { (*inode).i_private }.cast::<Node<D>>();
        if !node.is_null() {
            // SAFETY: It comes from `KBox::into_raw` in `populate`, and is not used again.
            drop(unsafe { KBox::from_raw(node) });
        }
    }

    /// # Safety
    ///
    /// `file` must be an open file of the type, as long as `'a`.
    unsafe fn node<'a>(file: *mut bindings::file) -> &'a Node<D> {
        // SAFETY: By the function's contract. Files, unlike directories, have a node, which stays
        // as long as their inode.
        unsafe { &*(*(*file).f_inode).i_private.cast() }
    }

    /// # Safety
    ///
    /// `file` must be an open file of the type, `ppos` valid.
    unsafe extern "C" fn read(
        file: *mut bindings::file,
        buffer: *mut c_char,
        count: usize,
        ppos: *mut bindings::loff_t,
    ) -> isize {
        let read = || {
            // SAFETY: By the function's contract.
            let node = unsafe { Self::node(file) };
            let get = node.file.get.ok_or(EINVAL)?;
            let Some(subject) = node.dir.subject.lock().clone() else {
                return Ok(0);
            };
            let number = get(&subject);
            // SAFETY: By the function's contract; it is the user's memory that is written.
            Ok(unsafe { bindings::simple_read_number(buffer, count, ppos, number) })
        };
        read().unwrap_or_else(|error: Error| error.to_errno() as isize)
    }

    /// # Safety
    ///
    /// `file` must be an open file of the type, `ppos` valid.
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buffer: *const c_char,
        count: usize,
        ppos: *mut bindings::loff_t,
    ) -> isize {
        let write = || {
            // SAFETY: By the function's contract.
            let node = unsafe { Self::node(file) };
            let subject = || node.dir.subject.lock().clone();
            match node.file.set.as_ref().ok_or(EINVAL)? {
                Set::Trigger(trigger) => {
                    if let Some(subject) = subject() {
                        trigger(&subject);
                    }
                }
                Set::Number(set) => {
                    // SAFETY: By the function's contract.
                    if unsafe { *ppos } != 0 {
                        return Err(EINVAL);
                    }
                    let mut number = 0;
                    // SAFETY: It is the user's memory that is read, and `number` that is written.
                    to_result(unsafe {
                        bindings::kstrtouint_from_user(buffer, count, 0, &mut number)
                    })?;
                    if let Some(subject) = subject() {
                        set(&subject, number)?;
                    }
                }
            }
            Ok(count as isize)
        };
        write().unwrap_or_else(|error: Error| error.to_errno() as isize)
    }
}

/// A filesystem type that is registered, so that the filesystem can be mounted.
///
/// Belongs into the module's own structure: lockdep wants the lock classes in it to be static.
///
/// # Invariants
///
/// `fs_type` is registered, with the operations of `D`.
#[pin_data(PinnedDrop)]
pub struct Registration<D: Subject> {
    #[pin]
    fs_type: Opaque<bindings::file_system_type>,
    fs: Arc<SmallFs<D>>,
}

// SAFETY: A filesystem type can be unregistered on any thread.
unsafe impl<D: Subject> Send for Registration<D> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<D: Subject> Sync for Registration<D> {}

impl<D: Subject> Registration<D> {
    const FS_TYPE: bindings::file_system_type = bindings::file_system_type {
        init_fs_context: Some(Table::<D>::init_fs_context),
        kill_sb: Some(Table::<D>::kill_sb),
        owner: this_module::<D::OwnerModule>().as_ptr(),
        ..pin_init::zeroed()
    };

    /// Makes a filesystem without directories, and registers its type under `name`. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is a type of that name, `ENOMEM`.
    pub fn new(name: &'static CStr) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            fs: SmallFs::new()?,
            fs_type <- Opaque::try_ffi_init(move |slot: *mut bindings::file_system_type| {
                let fs_type = bindings::file_system_type {
                    name: name.as_char_ptr(),
                    ..Self::FS_TYPE
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(fs_type) };
                // SAFETY: The type is pinned, and unregistered before its memory goes. The
                // filesystem, on which the callbacks rely, is there already.
                to_result(unsafe { bindings::register_filesystem(slot) })
            }),
        })
    }

    /// The filesystem, mounted or not.
    pub fn fs(&self) -> &Arc<SmallFs<D>> {
        &self.fs
    }

    /// The filesystem that `sb` shows.
    ///
    /// # Safety
    ///
    /// `sb` must be a superblock of the type, as long as `'a`.
    unsafe fn shown<'a>(sb: *mut bindings::super_block) -> &'a SmallFs<D> {
        // SAFETY: By the function's contract.
        let fs_type = unsafe { (*sb).s_type };
        // SAFETY: The type is embedded in a registration.
        let this: *const Self = unsafe { fs_type.byte_sub(offset_of!(Self, fs_type)).cast() };
        // SAFETY: The registration outlives its superblocks, and the field does not change.
        unsafe { &(*this).fs }
    }
}

#[pinned_drop]
impl<D: Subject> PinnedDrop for Registration<D> {
    fn drop(self: Pin<&mut Self>) {
        // Mounts hold the module, so there are none. It only fails for a type that is not
        // registered.
        //
        // SAFETY: By the type invariant.
        let _ = unsafe { bindings::unregister_filesystem(self.fs_type.get()) };
    }
}
