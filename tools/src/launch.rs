// SPDX-License-Identifier: GPL-2.0

//! Running a daemon so that it serves fuse_rs.

use crate::{
    daemon::{self, Kind, Way},
    error::{Error, Result, Step},
    fusermount::COMM_FD,
    mount, options,
};
use rustix::{
    io::{fcntl_setfd, FdFlags},
    net::{
        recvmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags,
        SocketFlags, SocketType,
    },
    process::geteuid,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::{
    env,
    ffi::{OsStr, OsString},
    io::IoSliceMut,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{fs::MetadataExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::Command,
};

/// A daemon to run.
#[derive(Debug)]
pub struct Launch {
    /// Its name or path.
    pub daemon: OsString,
    /// Its arguments, as for the in-tree client.
    pub args: Vec<OsString>,
    /// The mountpoint, where it is known; else it is looked for among the arguments if needed.
    pub mountpoint: Option<PathBuf>,
    /// How, if the user says so.
    pub way: Option<Way>,
}

/// The files that are installed for these programs only.
#[derive(Debug)]
struct Helpers {
    dir: PathBuf,
}

impl Helpers {
    /// Those installed along with this program: `PREFIX/libexec/fuse_rs`.
    fn find() -> Result<Self> {
        let program = env::current_exe().step(|| "finding out where this program is")?;
        let prefix = program
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new("/"));
        let this = Self {
            dir: prefix.join("libexec/fuse_rs"),
        };
        for file in [this.fusermount(), this.library()] {
            file.metadata().map_err(|error| {
                Error::new(format!("finding {}", file.display()), error)
                    .hint("install the tools as a whole: make tools_install")
            })?;
        }
        Ok(this)
    }

    fn fusermount(&self) -> PathBuf {
        self.dir.join("fusermount3")
    }

    fn library(&self) -> PathBuf {
        self.dir.join("libfuse_rs_preload.so")
    }

    /// An ordinary user mounts by fusermount3 alone.
    fn check_for_user(&self) -> Result {
        let file = self.fusermount();
        let data = file
            .metadata()
            .step(|| format!("looking at {}", file.display()))?;
        if geteuid().is_root() || (data.uid() == 0 && data.mode() & 0o4000 != 0) {
            return Ok(());
        }
        Err(Error::new(
            "mounting as an ordinary user",
            format!("{} is not set-user-ID root", file.display()),
        )
        .hint(format!(
            "as root: chown root {0}; chmod 4755 {0}",
            file.display()
        )))
    }
}

impl Launch {
    /// Becomes the daemon. Returns only if that fails.
    ///
    /// # Errors
    ///
    /// The step that failed.
    pub fn run(self) -> Result<std::convert::Infallible> {
        drop(mount::open_device()?);
        let program = daemon::find(&self.daemon)?;
        let helpers = Helpers::find()?;
        helpers.check_for_user()?;
        let kind = daemon::kind(&program);
        let mut command = match (self.way, kind) {
            (Some(Way::Preload), Ok(Kind::Closed(why))) => {
                return Err(Error::new(
                    format!("preparing {}", program.display()),
                    format!("no library can be put into it: {why}"),
                )
                .hint("try --way fd"))
            }
            // A program that cannot be read can still be linked as most are.
            (way, kind) => match way.unwrap_or(kind.as_ref().map_or(Way::Preload, Kind::way)) {
                Way::Preload => {
                    if kind.is_ok_and(|kind| kind == Kind::Go) && geteuid().is_root() {
                        forbid_mount()?;
                    }
                    self.preloaded(&program, &helpers)
                }
                Way::Fd => self.mounted(&program, &helpers)?,
            },
        };
        Err(Error::new(
            format!("running {}", program.display()),
            command.exec(),
        ))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // As a shell does: programs tell by it what they are.
        command.arg0(&self.daemon);
        command
    }

    /// With the library in it, and fusermount3 of fuse_rs before others in PATH.
    fn preloaded(&self, program: &Path, helpers: &Helpers) -> Command {
        let join = |first: &OsStr, name: &str, default: &str| {
            let mut list = first.to_owned();
            let rest = env::var_os(name).unwrap_or_else(|| default.into());
            if !rest.is_empty() {
                list.push(":");
                list.push(rest);
            }
            list
        };
        let mut command = self.command(program);
        command
            .args(&self.args)
            .env(
                "LD_PRELOAD",
                join(helpers.library().as_os_str(), "LD_PRELOAD", ""),
            )
            .env(
                "PATH",
                join(helpers.dir.as_os_str(), "PATH", daemon::DEFAULT_PATH),
            );
        command
    }

    /// With the mountpoint mounted before, and named `/dev/fd/N` to the daemon.
    ///
    /// The daemon also inherits a socket to fusermount3. When the last process that has it is gone,
    /// however it went, fusermount3 unmounts.
    fn mounted(&self, program: &Path, helpers: &Helpers) -> Result<Command> {
        let index = self.mountpoint_index()?;
        let mountpoint = &self.args[index];
        let list = kernel_options(&self.args, &self.daemon);
        let (device, socket) = ask_for_mount(&helpers.fusermount(), &list, mountpoint)?;
        for fd in [&device, &socket] {
            fcntl_setfd(fd, FdFlags::empty()).step(|| "passing the device to the daemon")?;
        }
        let mut args = self.args.clone();
        args[index] = format!("/dev/fd/{}", device.as_raw_fd()).into();
        let mut command = self.command(program);
        command.args(args);
        // They stay open, for the daemon.
        std::mem::forget((device, socket));
        Ok(command)
    }

    /// Which of the arguments is the mountpoint.
    fn mountpoint_index(&self) -> Result<usize> {
        let found = match &self.mountpoint {
            Some(path) => self.args.iter().rposition(|arg| arg == path.as_os_str()),
            None => last_path(&self.args, |path| path.exists()),
        };
        found.ok_or_else(|| {
            Error::new(
                "finding the mountpoint among the arguments",
                "none of them is it",
            )
            .hint("say --mountpoint DIR, as it stands among the arguments")
        })
    }
}

/// Has mount(2) fail from here on, in this process and in what it runs. A daemon that would mount
/// on the in-tree client by itself, out of the library's reach, then has fusermount3 do it, which
/// uses the newer system calls.
fn forbid_mount() -> Result {
    let step = || "keeping the daemon from mounting by itself";
    let arch = env::consts::ARCH.try_into().step(step)?;
    let filter = SeccompFilter::new(
        [(libc::SYS_mount, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        arch,
    )
    .step(step)?;
    let program: BpfProgram = filter.try_into().step(step)?;
    seccompiler::apply_filter(&program).step(step)
}

/// The last argument that is neither an option nor belongs to `-o`, and is the path of something.
fn last_path(args: &[OsString], exists: impl Fn(&Path) -> bool) -> Option<usize> {
    (0..args.len()).rev().find(|&index| {
        let after_o = index > 0 && args[index - 1] == "-o";
        let arg = args[index].to_string_lossy();
        !after_o && !arg.starts_with('-') && exists(Path::new(&args[index]))
    })
}

/// The options among the daemon's that are for the kernel, with a subtype if they name none.
fn kernel_options(args: &[OsString], daemon: &OsStr) -> String {
    let mut list = Vec::new();
    let mut args = args.iter().map(|arg| arg.to_string_lossy());
    while let Some(arg) = args.next() {
        let Some(attached) = arg.strip_prefix("-o") else {
            continue;
        };
        let words = if attached.is_empty() {
            args.next().unwrap_or_default()
        } else {
            attached.into()
        };
        list.extend(options::split(&words).into_iter().filter(|word| {
            // What fusermount3 does not know is the daemon's own.
            !word.starts_with("x-") && options::Options::default().add(&escape(word)).is_ok()
        }));
    }
    if !list.iter().any(|word| word.starts_with("subtype=")) {
        let name = Path::new(daemon).file_name().unwrap_or(daemon);
        list.push(format!("subtype={}", name.to_string_lossy()));
    }
    list.push("auto_unmount".into());
    list.iter()
        .map(|word| escape(word))
        .collect::<Vec<_>>()
        .join(",")
}

fn escape(word: &str) -> String {
    word.replace('\\', "\\\\").replace(',', "\\,")
}

/// Has fusermount3 mount and gives the device, and the socket whose end unmounts.
fn ask_for_mount(
    fusermount: &Path,
    options: &str,
    mountpoint: &OsStr,
) -> Result<(OwnedFd, OwnedFd)> {
    let step = || format!("mounting by {}", fusermount.display());
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .step(step)?;
    fcntl_setfd(&theirs, FdFlags::empty()).step(step)?;
    Command::new(fusermount)
        .args(["-o", options, "--"])
        .arg(mountpoint)
        .env(COMM_FD, theirs.as_raw_fd().to_string())
        .spawn()
        .step(step)?;
    drop(theirs);
    match receive(&ours).step(step)? {
        Some(device) => Ok((device, ours)),
        None => Err(Error::new(step(), "it failed, for the reason above")),
    }
}

/// The device that comes over the socket; nothing if its other end closes.
fn receive(socket: &OwnedFd) -> rustix::io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8];
    rustix::io::retry_on_intr(|| {
        recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut byte)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let mut messages = ancillary.drain();
    Ok(messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn mountpoint_among_arguments() {
        let is_dir = |path: &Path| path.starts_with("/mnt") || path.starts_with("/src");
        let last = |line: &str| last_path(&words(line), is_dir);
        assert_eq!(last("host:/x /mnt"), Some(1));
        assert_eq!(last("/src /mnt -o /mnt"), Some(1));
        assert_eq!(last("-f -o source=/src /mnt"), Some(3));
        assert_eq!(last("-f -d"), None);
    }

    #[test]
    fn options_for_the_kernel() {
        let list = |line: &str| kernel_options(&words(line), OsStr::new("/usr/bin/sshfs"));
        assert_eq!(
            list("h: /mnt -o reconnect,allow_other,ro -oIdentityFile=/k,max_read=4096"),
            "allow_other,ro,max_read=4096,subtype=sshfs,auto_unmount"
        );
        assert_eq!(
            list("-o subtype=x,fsname=a\\,b /mnt"),
            "subtype=x,fsname=a\\,b,auto_unmount"
        );
    }
}
