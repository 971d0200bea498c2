// SPDX-License-Identifier: GPL-2.0

//! A library that is put into FUSE daemons by `LD_PRELOAD`. It changes the names by which they
//! know the in-tree client to those of fuse_rs, in the calls of libc that take them, and leaves
//! everything else to libc.
//!
//! | the daemon asks for | it gets |
//! |---|---|
//! | /dev/fuse | /dev/fuse_rs |
//! | type fuse, fuse.X, fuseblk, fuseblk.X in mount(2), fsopen(2) | fuse_rs, fuse_rs.X, fuseblk_rs, fuseblk_rs.X |
//! | any fusermount, fusermount3 in exec(3), posix_spawn(3) | the one beside this library |
//!
//! Unmounting names no type. libc's own calls among these functions do not come by here, which is
//! why each member of a family is listed; execl() and its kind are not, as stable Rust cannot
//! define functions with `...` at their end. open(), openat() and syscall() end so too, but on the
//! machines that this is built for a callee may take such arguments as if they were named.

use libc::{c_char, c_int, c_long, c_uint, c_ulong, c_void, mode_t, pid_t};
use std::{
    ffi::{CStr, CString, OsStr},
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{
        atomic::{AtomicPtr, Ordering},
        OnceLock,
    },
};

mod names;

/// A function of libc, looked up at its first call.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The function after ours of the same name. A libc without it ends the process, which has
    /// called it.
    fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: The name ends with a null.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            std::process::abort();
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Gives what replaces a string, if anything does.
type Replace = fn(&[u8]) -> Option<&'static CStr>;

/// `string`, or what replaces it.
///
/// # Safety
///
/// `string` is null or a valid string, for as long as the result is used.
unsafe fn replaced(string: *const c_char, replace: Replace) -> *const c_char {
    if string.is_null() {
        return string;
    }
    // SAFETY: By the safety requirements.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    replace(bytes).map_or(string, CStr::as_ptr)
}

/// The fusermount3 beside this library.
fn fusermount() -> Option<&'static CStr> {
    static FUSERMOUNT: OnceLock<Option<CString>> = OnceLock::new();
    let find = || {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let here: *const c_void = std::ptr::addr_of!(FUSERMOUNT).cast();
        // SAFETY: `info` is valid for writes.
        if unsafe { libc::dladdr(here, info.as_mut_ptr()) } == 0 {
            return None;
        }
        // SAFETY: dladdr() has filled it in, and zeros are valid in it too.
        let info = unsafe { info.assume_init() };
        if info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: The loader's name of this library, which stays as long as it is loaded.
        let library = unsafe { CStr::from_ptr(info.dli_fname) };
        let dir = Path::new(OsStr::from_bytes(library.to_bytes())).parent()?;
        CString::new(dir.join("fusermount3").into_os_string().as_bytes()).ok()
    };
    FUSERMOUNT.get_or_init(find).as_deref()
}

fn program(path: &[u8]) -> Option<&'static CStr> {
    names::is_fusermount(path).then(fusermount)?
}

/// Defines functions that are libc's but for one argument.
macro_rules! interpose {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $ret:ty { $changed:ident by $replace:path })*) => {$(
        /// As libc's, with one name changed.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[no_mangle]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $ret {
            static NEXT: Next = Next::new({
                const NAME: &str = concat!(stringify!($name), "\0");
                match CStr::from_bytes_with_nul(NAME.as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                }
            });
            // SAFETY: libc's function of this name has this type.
            let next: unsafe extern "C" fn($($type),*) -> $ret = unsafe { std::mem::transmute(NEXT.address()) };
            // SAFETY: The caller passes a string or null, as libc's function wants it.
            let $changed = unsafe { replaced($changed, $replace) };
            // SAFETY: The caller's arguments, but for a string that stays.
            unsafe { next($($arg),*) }
        }
    )*};
}

/// The arguments of a new program, or its environment.
type Strings = *const *const c_char;

interpose! {
    fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int { path by names::device }
    fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int { path by names::device }
    fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int { path by names::device }
    fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int { path by names::device }
    // What open() is with _FORTIFY_SOURCE.
    fn __open_2(path: *const c_char, flags: c_int) -> c_int { path by names::device }
    fn __open64_2(path: *const c_char, flags: c_int) -> c_int { path by names::device }
    fn __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int { path by names::device }
    fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int { path by names::device }

    fn mount(source: *const c_char, target: *const c_char, fs_type: *const c_char, flags: c_ulong, data: *const c_void) -> c_int { fs_type by names::fs_type }
    fn fsopen(fs_type: *const c_char, flags: c_uint) -> c_int { fs_type by names::fs_type }

    fn execv(path: *const c_char, argv: Strings) -> c_int { path by program }
    fn execvp(path: *const c_char, argv: Strings) -> c_int { path by program }
    fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int { path by program }
    fn execvpe(path: *const c_char, argv: Strings, envp: Strings) -> c_int { path by program }
    fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int { path by program }
    fn posix_spawnp(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, envp: Strings) -> c_int { path by program }
}

/// As libc's, with the names changed in the system calls that daemons make this way because their
/// libc may be older.
///
/// # Safety
///
/// As for libc's.
#[no_mangle]
pub unsafe extern "C" fn syscall(
    number: c_long,
    mut a: c_long,
    mut b: c_long,
    mut c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    static NEXT: Next = Next::new(c"syscall");
    type Syscall =
        unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;
    // SAFETY: libc's function takes six arguments of the size of a register.
    let next: Syscall = unsafe { std::mem::transmute(NEXT.address()) };
    let (string, replace): (&mut c_long, Replace) = match number {
        libc::SYS_fsopen => (&mut a, names::fs_type),
        libc::SYS_mount => (&mut c, names::fs_type),
        libc::SYS_openat => (&mut b, names::device),
        // SAFETY: The caller's arguments.
        _ => return unsafe { next(number, a, b, c, d, e, f) },
    };
    // SAFETY: This argument of these calls is a string or null.
    *string = unsafe { replaced(*string as *const c_char, replace) } as c_long;
    // SAFETY: The caller's arguments, but for a string that stays.
    unsafe { next(number, a, b, c, d, e, f) }
}
