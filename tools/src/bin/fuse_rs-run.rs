// SPDX-License-Identifier: GPL-2.0

//! `fuse_rs-run DAEMON ARGS…`: run a FUSE daemon as it is on fuse_rs.

#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use fuse_rs_tools::{daemon::Way, launch::Launch};
use std::{ffi::OsString, path::PathBuf, process::ExitCode};

#[derive(Clone, Copy, ValueEnum)]
enum WayName {
    /// Preload, or fd for programs that no library can be put into.
    Auto,
    /// Mount first and give the daemon /dev/fd/N for a mountpoint.
    Fd,
    /// Let the daemon mount; a library in it and fusermount3 of fuse_rs change the names.
    Preload,
}

/// Run a FUSE daemon as it is on fuse_rs, beside the in-tree client.
///
/// The arguments are those that the daemon has on the in-tree client.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// How the daemon is led to fuse_rs.
    #[arg(long, value_enum, default_value = "auto")]
    way: WayName,
    /// Which of the arguments is the mountpoint, for `--way fd`; by default the last that is a path.
    #[arg(long, value_name = "DIR")]
    mountpoint: Option<PathBuf>,
    /// The daemon's name or path.
    daemon: OsString,
    /// The daemon's arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let launch = Launch {
        daemon: cli.daemon,
        args: cli.args,
        mountpoint: cli.mountpoint,
        way: match cli.way {
            WayName::Auto => None,
            WayName::Fd => Some(Way::Fd),
            WayName::Preload => Some(Way::Preload),
        },
    };
    let Err(error) = launch.run();
    eprintln!("fuse_rs-run: {error}");
    ExitCode::from(127)
}
