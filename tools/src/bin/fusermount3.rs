// SPDX-License-Identifier: GPL-2.0

//! fusermount3 of fuse_rs: what libfuse's does for daemons and users, for fuse_rs.
//!
//! Installed set-user-ID root it lets ordinary users mount and unmount.

#![forbid(unsafe_code)]

use clap::Parser;
use fuse_rs_tools::{
    error::{Result, Step},
    fusermount::Comm,
    mount::{mount, unmount_for},
    mountpoint::Mounted,
    options::Options,
    privileges::Caller,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::{
    env,
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Mount and unmount on fuse_rs, for daemons and ordinary users.
#[derive(Parser)]
#[command(
    name = "fusermount3",
    disable_version_flag = true,
    disable_help_flag = true
)]
struct Cli {
    /// Show this help.
    #[arg(short, long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Show the version.
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// Options of the mount.
    #[arg(short, value_name = "OPTION[,OPTION…]")]
    options: Vec<String>,
    /// Unmount.
    #[arg(short)]
    unmount: bool,
    /// Say nothing if unmounting fails.
    #[arg(short)]
    quiet: bool,
    /// Unmount even if it is in use: those who use it keep it.
    #[arg(short = 'z')]
    lazy: bool,
    /// Unmount when the daemon at the other end of the socket is gone.
    #[arg(short = 'U', long, conflicts_with = "unmount")]
    auto_unmount: bool,
    /// Where.
    mountpoint: PathBuf,
}

fn run(cli: &Cli) -> Result {
    let caller = Caller::assume()?;
    if cli.unmount {
        return unmount_for(&cli.mountpoint, cli.lazy, None, &caller);
    }
    let comm = Comm::from_env()?;
    let mut options = Options::default();
    cli.options.iter().try_for_each(|list| options.add(list))?;
    let auto_unmount = options.auto_unmount || cli.auto_unmount;
    // While this process waits, others come and go; the path must mean the same at the end.
    let mountpoint = cli
        .mountpoint
        .canonicalize()
        .step(|| format!("mountpoint {}", cli.mountpoint.display()))?;
    if !cli.auto_unmount {
        let device = mount(&mountpoint, options, &caller)?;
        comm.send(&device)?;
    }
    if auto_unmount {
        return unmount_at_end(&comm, &mountpoint, &caller);
    }
    Ok(())
}

/// Stays until the daemon is gone, and unmounts what it may have left.
fn unmount_at_end(comm: &Comm, mountpoint: &Path, caller: &Caller) -> Result {
    let id = Mounted::find(mountpoint)?.mount.id;
    // Not hit by what is sent to the daemon's process group, and holding no directory and no pipe
    // of those who wait for the daemon's output.
    let _ = rustix::process::setsid();
    env::set_current_dir("/").step(|| "going to /")?;
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .step(|| "opening /dev/null")?;
    dup2_stdin(&null)
        .and_then(|()| dup2_stdout(&null))
        .and_then(|()| dup2_stderr(&null))
        .step(|| "leaving the terminal")?;
    comm.wait_end()?;
    // Most daemons have unmounted by themselves.
    let _ = unmount_for(mountpoint, true, Some(id), caller);
    Ok(())
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !(cli.unmount && cli.quiet) {
                eprintln!("fusermount3: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
