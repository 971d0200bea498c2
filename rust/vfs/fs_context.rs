// SPDX-License-Identifier: GPL-2.0

//! From mount options to a superblock.
//!
//! All callbacks run in the context of the mounting task, may sleep, and exclude each other. See
//! `Documentation/filesystems/mount_api.rst`.
//!
//! C headers: [`include/linux/fs_context.h`](srctree/include/linux/fs_context.h),
//! [`include/linux/fs_parser.h`](srctree/include/linux/fs_parser.h)

use crate::{
    cred::{Kgid, Kuid, UserNamespace},
    dentry::Root,
    fs_type::Registration,
    super_block::{NewSuperBlock, SuperBlock},
    FileSystem, //
};
use core::{
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
    ptr::{null_mut, NonNull}, //
};
use fuse_bindings as bindings;
use kernel::{
    error::{from_err_ptr, from_result, to_result},
    fs::{File, LocalFile},
    prelude::*,
    str::as_char_ptr_in_const_context,
    sync::aref::ARef,
    types::{ForeignOwnable, Opaque}, //
};

/// An attempt to mount or remount the filesystem `T`, wrapping `struct fs_context`.
///
/// # Invariants
///
/// The context is one of `T`, and nobody else uses it while it is borrowed.
#[repr(transparent)]
pub struct FsContext<T: FileSystem>(Opaque<bindings::fs_context>, PhantomData<fn() -> T>);

impl<T: FileSystem> FsContext<T> {
    /// Borrows a context.
    ///
    /// # Safety
    ///
    /// `ptr` must be a context of the filesystem `T` that is the caller's during `'a`.
    unsafe fn from_raw<'a>(ptr: *mut bindings::fs_context) -> &'a Self {
        // SAFETY: The type is transparent, the rest is the caller's promise.
        unsafe { &*ptr.cast() }
    }

    fn as_ptr(&self) -> *mut bindings::fs_context {
        self.0.get()
    }

    /// The user namespace in which owners on the new superblock are understood.
    pub fn user_ns(&self) -> &UserNamespace {
        // SAFETY: By the type invariant.
        let ns = unsafe { (*self.as_ptr()).user_ns };
        // SAFETY: The context holds a reference to the namespace.
        unsafe { UserNamespace::from_raw(ns) }
    }

    /// What the filesystem type was registered with.
    pub fn type_info(&self) -> &T::TypeInfo {
        // SAFETY: By the type invariant.
        let fs_type = unsafe { (*self.as_ptr()).fs_type };
        // SAFETY: By the type invariant it is the type of `T`, which a context keeps registered.
        unsafe { Registration::<T>::info(fs_type) }
    }

    /// The `SB_*` flags asked for.
    pub fn sb_flags(&self) -> usize {
        // SAFETY: By the type invariant.
        (unsafe { (*self.as_ptr()).sb_flags }) as usize
    }

    /// Asks for these `SB_*` flags instead.
    pub fn set_sb_flags(&self, flags: usize) {
        // All that C keeps here is within 32 bits.
        //
        // SAFETY: By the type invariant.
        unsafe { (*self.as_ptr()).sb_flags = flags as c_uint };
    }

    /// The `SB_*` flags that a remount is about; the others stay as they are.
    pub fn sb_flags_mask(&self) -> usize {
        // SAFETY: By the type invariant.
        (unsafe { (*self.as_ptr()).sb_flags_mask }) as usize
    }

    /// Whether this is a remount.
    fn is_reconfigure(&self) -> bool {
        // SAFETY: By the type invariant.
        let purpose = unsafe { (*self.as_ptr()).purpose() };
        purpose == bindings::fs_context_purpose_FS_CONTEXT_FOR_RECONFIGURE
    }

    /// Whether it comes from mount(2), not fsconfig(2).
    fn is_oldapi(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.as_ptr()).oldapi() }
    }

    /// Says why the attempt fails: in the log of the context, which the mounter can read, or of the
    /// kernel.
    pub fn errorfc(&self, message: &CStr) {
        // SAFETY: By the type invariant; the message is copied.
        unsafe { bindings::errorfc_str(self.as_ptr(), message.as_char_ptr()) };
    }

    /// Finds a superblock of the filesystem for which `test` holds, so that it is mounted once more:
    /// [`Tree::Existing`]. `test` is called with a spinlock held, also for superblocks that are
    /// being set up or going. Those are waited for; sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY`: it is another user namespace's, or the mounter insists on a new one. `ENOMEM`.
    pub fn find_super<F>(&self, test: F) -> Result<Option<Existing<T>>>
    where
        F: Fn(<T::SuperBlockInfo as ForeignOwnable>::Borrowed<'_>) -> bool,
    {
        /// # Safety
        ///
        /// `sb` must be a superblock of `T` whose information is there, `fc` the context of a
        /// `find_super` that searches with an `F`.
        unsafe extern "C" fn test_super<T: FileSystem, F>(
            sb: *mut bindings::super_block,
            fc: *mut kernel::bindings::fs_context,
        ) -> c_int
        where
            F: Fn(<T::SuperBlockInfo as ForeignOwnable>::Borrowed<'_>) -> bool,
        {
            let fc: *mut bindings::fs_context = fc.cast();
            // SAFETY: `find_super` has the context to itself.
            let test = unsafe { (*fc).sget_key };
            // SAFETY: By the function's contract.
            let test = unsafe { &*test.cast::<F>() };
            // SAFETY: By the function's contract.
            let sb = unsafe { SuperBlock::<T>::from_raw(sb) };
            test(sb.info()).into()
        }

        /// Fails, as no new superblock is wanted.
        ///
        /// # Safety
        ///
        /// There are no requirements.
        unsafe extern "C" fn set_none(
            _sb: *mut bindings::super_block,
            _fc: *mut kernel::bindings::fs_context,
        ) -> c_int {
            ENOENT.to_errno()
        }

        let fc = self.as_ptr();
        // SAFETY: By the type invariant.
        unsafe { (*fc).sget_key = (&raw const test).cast_mut().cast() };
        // Superblocks of the type are found from when they have their information until `kill_sb`
        // has called `kill_anon_super`, after which it drops that.
        //
        // SAFETY: The context is valid, and the callbacks are for its type.
        let sb = unsafe { bindings::sget_fc(fc.cast(), Some(test_super::<T, F>), Some(set_none)) };
        // SAFETY: By the type invariant.
        unsafe { (*fc).sget_key = null_mut() };
        match from_err_ptr(sb) {
            // INVARIANT: What `sget_fc` returns is active and locked, and complete as it is not new.
            Ok(sb) => Ok(NonNull::new(sb).map(|sb| Existing(sb, PhantomData))),
            Err(error) if error == ENOENT => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails with `EINVAL`, after [`Self::errorfc`].
    pub fn invalfc<R>(&self, message: &CStr) -> Result<R> {
        self.errorfc(message);
        Err(EINVAL)
    }
}

/// A superblock found by [`FsContext::find_super`]. It does not go while it is held.
///
/// # Invariants
///
/// It is a complete superblock of `T`, with an active reference that is ours, and `s_umount` is held
/// for writing.
pub struct Existing<T>(NonNull<bindings::super_block>, PhantomData<fn() -> T>);

impl<T> Existing<T> {
    /// Its root, with a reference; the active reference and the lock pass to the caller.
    fn into_root(self) -> *mut bindings::dentry {
        let sb = ManuallyDrop::new(self).0.as_ptr();
        // SAFETY: A complete superblock has a root.
        let root = unsafe { (*sb).s_root };
        // SAFETY: As above.
        unsafe { bindings::dget(root) }
    }
}

impl<T> Drop for Existing<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::deactivate_locked_super(self.0.as_ptr()) };
    }
}

/// What is mounted.
pub enum Tree<T: FileSystem> {
    /// A new superblock that carries this.
    New(T::SuperBlockInfo),
    /// A superblock that exists, and stays as it is.
    Existing(Existing<T>),
}

/// What mount options are gathered in, from the first option to the superblock.
pub trait Context<T: FileSystem<Context = Self>>: Sized + Send + 'static {
    /// The options of a mount. `source` is not among them: it is understood everywhere. A remount
    /// changes none of them: mount(2), which repeats them, passes over them, fsconfig(2) fails with
    /// `EINVAL`.
    const PARAMS: &'static [Param<T>];

    /// Begins to mount or remount.
    fn new(fc: &FsContext<T>) -> Result<Self>;

    /// All options are there: checks them, and finds the superblock or makes what a new one carries.
    fn get_tree(&mut self, fc: &FsContext<T>) -> Result<Tree<T>>;

    /// Sets up the superblock, which is not visible to others yet, and makes its root. On an error
    /// all that was done to the superblock is undone, without a call of
    /// [`kill_begin`](crate::super_block::Operations::kill_begin).
    fn fill_super(&mut self, fc: &FsContext<T>, sb: NewSuperBlock<'_, T>) -> Result<Root<T>>;

    /// Remounts. If it succeeds, the flags of the superblock become [`FsContext::sb_flags`], as far
    /// as [`FsContext::sb_flags_mask`] says. `s_umount` is held for writing.
    fn reconfigure(&mut self, fc: &FsContext<T>, sb: &SuperBlock<T>) -> Result;
}

/// A mount option: its name, the kind of its value, and what takes the value.
pub struct Param<T: FileSystem> {
    name: &'static CStr,
    kind: Kind<T>,
}

/// What takes a value into the context. Fails with `EINVAL` if it is not acceptable, after saying
/// why.
type Setter<T, V> = fn(&mut <T as FileSystem>::Context, &FsContext<T>, V) -> Result;

/// As [`Setter`], for a value that is borrowed.
type StrSetter<T> = fn(&mut <T as FileSystem>::Context, &FsContext<T>, &CStr) -> Result;

enum Kind<T: FileSystem> {
    Flag(fn(&mut T::Context)),
    U32(Setter<T, u32>),
    Octal(Setter<T, u32>),
    Str(StrSetter<T>),
    File(Setter<T, ARef<File>>),
    Uid(Setter<T, Kuid>),
    Gid(Setter<T, Kgid>),
}

impl<T: FileSystem> Param<T> {
    /// An option without a value (`fsparam_flag`).
    pub const fn flag(name: &'static CStr, set: fn(&mut T::Context)) -> Self {
        Self {
            name,
            kind: Kind::Flag(set),
        }
    }

    /// A number, decimal or with a C prefix (`fsparam_u32`).
    pub const fn u32(name: &'static CStr, set: Setter<T, u32>) -> Self {
        Self {
            name,
            kind: Kind::U32(set),
        }
    }

    /// An octal number (`fsparam_u32oct`).
    pub const fn u32oct(name: &'static CStr, set: Setter<T, u32>) -> Self {
        Self {
            name,
            kind: Kind::Octal(set),
        }
    }

    /// A string that is not empty (`fsparam_string`).
    pub const fn string(name: &'static CStr, set: StrSetter<T>) -> Self {
        Self {
            name,
            kind: Kind::Str(set),
        }
    }

    /// An open file, by the caller's number of it or by itself (`fsparam_fd`, `FSCONFIG_SET_FD`).
    pub const fn fd(name: &'static CStr, set: Setter<T, ARef<File>>) -> Self {
        Self {
            name,
            kind: Kind::File(set),
        }
    }

    /// A user, in the user namespace of the caller (`fsparam_uid`).
    pub const fn uid(name: &'static CStr, set: Setter<T, Kuid>) -> Self {
        Self {
            name,
            kind: Kind::Uid(set),
        }
    }

    /// A group, in the user namespace of the caller (`fsparam_gid`).
    pub const fn gid(name: &'static CStr, set: Setter<T, Kgid>) -> Self {
        Self {
            name,
            kind: Kind::Gid(set),
        }
    }

    /// The description that C's parser goes by; `opt` is what the parser returns for it.
    const fn spec(&self, opt: u8) -> bindings::fs_parameter_spec {
        let mut spec: bindings::fs_parameter_spec = pin_init::zeroed();
        spec.name = as_char_ptr_in_const_context(self.name);
        spec.opt = opt;
        spec.type_ = match self.kind {
            Kind::Flag(_) => None,
            Kind::U32(_) | Kind::Octal(_) => Some(bindings::fs_param_is_u32),
            Kind::Str(_) => Some(bindings::fs_param_is_string),
            Kind::File(_) => Some(bindings::fs_param_is_fd),
            Kind::Uid(_) => Some(bindings::fs_param_is_uid),
            Kind::Gid(_) => Some(bindings::fs_param_is_gid),
        };
        if let Kind::Octal(_) = self.kind {
            // The base, where other kinds have a pointer.
            spec.data = core::ptr::without_provenance(8);
        }
        spec
    }

    /// Hands a value to the setter.
    ///
    /// # Safety
    ///
    /// `result` must be what C's parser made of `param` by [`Self::spec`].
    unsafe fn set(
        &self,
        context: &mut T::Context,
        fc: &FsContext<T>,
        param: &bindings::fs_parameter,
        result: &bindings::fs_parse_result,
    ) -> Result {
        // All that the parser returns begins at the same place.
        let value = &raw const result.__bindgen_anon_1;
        match self.kind {
            Kind::Flag(set) => {
                set(context);
                Ok(())
            }
            Kind::U32(set) | Kind::Octal(set) => {
                // SAFETY: By the function's contract the value is of this kind.
                set(context, fc, unsafe { value.cast::<u32>().read() })
            }
            Kind::Str(set) => {
                // SAFETY: As above.
                let string = unsafe { param.__bindgen_anon_1.string };
                // SAFETY: The string ends with NUL, and is the parameter's.
                set(context, fc, unsafe { CStr::from_char_ptr(string) })
            }
            Kind::File(set) => {
                let file = if param.type_() == bindings::fs_value_type_fs_value_is_file {
                    // SAFETY: As above.
                    let file = unsafe { param.__bindgen_anon_1.file };
                    // SAFETY: The parameter holds a reference.
                    unsafe { LocalFile::from_raw_file(file) }.into()
                } else {
                    // SAFETY: As above.
                    LocalFile::fget(unsafe { value.cast::<u32>().read() })
                        .inspect_err(|_| fc.errorfc(c"no file is open by this number"))?
                };
                // SAFETY: Neither fsconfig(2) nor mount(2) uses a file position.
                let file = unsafe { LocalFile::assume_no_fdget_pos(file) };
                set(context, fc, file)
            }
            Kind::Uid(set) => {
                // SAFETY: As above.
                let uid = unsafe { value.cast::<bindings::kuid_t>().read() };
                set(context, fc, Kuid(uid))
            }
            Kind::Gid(set) => {
                // SAFETY: As above.
                let gid = unsafe { value.cast::<bindings::kgid_t>().read() };
                set(context, fc, Kgid(gid))
            }
        }
    }
}

/// Most options of a filesystem.
const MAX_PARAMS: usize = 31;

/// The operations of a context, `struct fs_context_operations`, and the parameter descriptions.
pub(crate) struct Table<T: FileSystem>(PhantomData<fn() -> T>);

impl<T: FileSystem> Table<T> {
    const OPS: bindings::fs_context_operations = bindings::fs_context_operations {
        free: Some(Self::free),
        parse_param: Some(Self::parse_param),
        get_tree: Some(Self::get_tree),
        reconfigure: Some(Self::reconfigure),
        ..pin_init::zeroed()
    };

    /// `file_system_type::parameters`: one for each option, then those that have no name, which end
    /// the table.
    pub(crate) const PARAMETERS: &'static [bindings::fs_parameter_spec; MAX_PARAMS + 1] = &{
        let params = T::Context::PARAMS;
        assert!(params.len() <= MAX_PARAMS);
        let mut specs = [const { pin_init::zeroed() }; MAX_PARAMS + 1];
        let mut i = 0;
        while i < params.len() {
            specs[i] = params[i].spec(i as u8);
            i += 1;
        }
        specs
    };

    /// `file_system_type::init_fs_context`.
    ///
    /// # Safety
    ///
    /// `fc` must be a context of `T` that has no private data yet.
    pub(crate) unsafe extern "C" fn init_fs_context(
        fc: *mut kernel::bindings::fs_context,
    ) -> c_int {
        // The kernel crate only knows the name of the type.
        let fc: *mut bindings::fs_context = fc.cast();
        from_result(|| {
            // SAFETY: By the function's contract.
            let context = T::Context::new(unsafe { FsContext::from_raw(fc) })?;
            let context = KBox::new(context, GFP_KERNEL)?;
            // SAFETY: `fc` is valid, and nobody else uses it.
            unsafe { (*fc).fs_private = KBox::into_raw(context).cast() };
            // SAFETY: As above.
            unsafe { (*fc).ops = &Self::OPS };
            Ok(0)
        })
    }

    /// The private data of a context, to which there must be no other reference.
    ///
    /// # Safety
    ///
    /// `fc` must be a context of `T` after its `init_fs_context`.
    unsafe fn context<'a>(fc: *mut bindings::fs_context) -> &'a mut T::Context {
        // SAFETY: `init_fs_context` made the data, `free` drops them, and no callback overlaps
        // another's use of them.
        unsafe { &mut *(*fc).fs_private.cast() }
    }

    /// # Safety
    ///
    /// `fc` must be a context of `T` whose end has come.
    unsafe extern "C" fn free(fc: *mut bindings::fs_context) {
        // SAFETY: `fc` is valid; without private data it has no operations, thus does not come
        // here.
        let context = unsafe { (*fc).fs_private };
        // SAFETY: The data were made by `KBox::into_raw` in `init_fs_context`, and are not used
        // again.
        drop(unsafe { KBox::<T::Context>::from_raw(context.cast()) });
    }

    /// # Safety
    ///
    /// `fc` must be a context of `T`, `param` valid.
    unsafe extern "C" fn parse_param(
        fc: *mut bindings::fs_context,
        param: *mut bindings::fs_parameter,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the function's contract.
            let context = unsafe { Self::context(fc) };
            // SAFETY: By the function's contract.
            let this = unsafe { FsContext::<T>::from_raw(fc) };
            if this.is_reconfigure() {
                if this.is_oldapi() {
                    return Ok(0);
                }
                return this.invalfc(c"a remount cannot change options");
            }
            let mut result = MaybeUninit::zeroed();
            // SAFETY: All are valid; the table ends with an entry without a name.
            let opt = unsafe {
                bindings::fs_parse(fc, Self::PARAMETERS.as_ptr(), param, result.as_mut_ptr())
            };
            // ENOPARAM, for one that is not in the table, is the VFS's business.
            to_result(opt)?;
            let spec = usize::try_from(opt)
                .ok()
                .and_then(|i| T::Context::PARAMS.get(i));
            let spec = spec.ok_or(EINVAL)?;
            // SAFETY: It is made of integers, which are valid whatever the parser left out.
            let result = unsafe { result.assume_init_ref() };
            // SAFETY: The parser has just filled in `result`, by the description at this index.
            unsafe { spec.set(context, this, &*param, result) }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `fc` must be a context of `T` whose options are complete.
    unsafe extern "C" fn get_tree(fc: *mut bindings::fs_context) -> c_int {
        from_result(|| {
            // SAFETY: By the function's contract.
            let context = unsafe { Self::context(fc) };
            // SAFETY: By the function's contract.
            let this = unsafe { FsContext::from_raw(fc) };
            let info = match context.get_tree(this)? {
                Tree::New(info) => info.into_foreign(),
                Tree::Existing(sb) => {
                    // SAFETY: `fc` is valid, and nobody else uses it. It takes over what holds the
                    // superblock.
                    unsafe { (*fc).root = sb.into_root() };
                    return Ok(0);
                }
            };
            // SAFETY: `fc` is valid, and nobody else uses it.
            unsafe { (*fc).s_fs_info = info };
            // SAFETY: The callback is the one for this type.
            let ret = unsafe { bindings::get_tree_nodev(fc, Some(Self::fill_super)) };
            // A superblock that was made has taken the information, and drops it in `kill_sb`, be
            // it at once because `fill_super` failed. Otherwise it is still ours.
            //
            // SAFETY: `fc` is valid, and nobody else uses it.
            let info = unsafe { core::mem::replace(&mut (*fc).s_fs_info, null_mut()) };
            // SAFETY: If there is one, it came from `into_foreign` above, and nobody else has it.
            drop(unsafe { T::SuperBlockInfo::try_from_foreign(info) });
            to_result(ret)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `sb` must be a new superblock of `T` that has taken over `s_fs_info`, `fc` the context it is
    /// made from.
    unsafe extern "C" fn fill_super(
        sb: *mut bindings::super_block,
        fc: *mut bindings::fs_context,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the function's contract; `get_tree` is done with its reference.
            let context = unsafe { Self::context(fc) };
            // SAFETY: By the function's contract.
            let this = unsafe { FsContext::from_raw(fc) };
            // SAFETY: By the function's contract.
            let new = unsafe { SuperBlock::from_raw(sb) };
            // SAFETY: We are in its `fill_super`.
            let root = context.fill_super(this, unsafe { NewSuperBlock::new(new) })?;
            // SAFETY: `sb` is valid, and locked by our caller. From here on it is complete.
            unsafe { (*sb).s_root = root.into_raw() };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// `fc` must be a context of `T` for a superblock that exists.
    unsafe extern "C" fn reconfigure(fc: *mut bindings::fs_context) -> c_int {
        from_result(|| {
            // SAFETY: By the function's contract.
            let context = unsafe { Self::context(fc) };
            // SAFETY: A context for a remount holds the root of the superblock.
            let sb = unsafe { (*(*fc).root).d_sb };
            // SAFETY: The superblock is one of `T`, as its context is.
            let sb = unsafe { SuperBlock::from_raw(sb) };
            // SAFETY: By the function's contract.
            context.reconfigure(unsafe { FsContext::from_raw(fc) }, sb)?;
            Ok(0)
        })
    }
}
