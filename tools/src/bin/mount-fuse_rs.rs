// SPDX-License-Identifier: GPL-2.0

//! mount.fuse_rs, by which mount(8) and fstab run a daemon on fuse_rs.

#![forbid(unsafe_code)]

use clap::Parser;
use fuse_rs_tools::{error::Result, helper, launch::Launch, FS_TYPE};
use std::{ffi::OsString, process::ExitCode};

/// Helper of mount(8) for filesystems of type fuse_rs and fuse_rs.DAEMON.
#[derive(Parser)]
#[command(name = "mount.fuse_rs", version)]
struct Cli {
    /// What the daemon serves; DAEMON#SOURCE if the type does not name the daemon.
    source: String,
    /// The mountpoint.
    target: OsString,
    /// Options of fstab; the daemon gets those that are not for mount(8).
    #[arg(short, value_name = "OPTION[,OPTION…]")]
    options: Vec<String>,
    /// fuse_rs or fuse_rs.DAEMON.
    #[arg(short, default_value = FS_TYPE)]
    r#type: String,
    /// Do all but mount.
    #[arg(short)]
    fake: bool,
    /// Say what is run.
    #[arg(short)]
    verbose: bool,
    /// Sloppy options are the daemon's affair.
    #[arg(short)]
    sloppy: bool,
    /// There is no /etc/mtab to write.
    #[arg(short)]
    no_mtab: bool,
}

fn run(cli: Cli) -> Result {
    let call = helper::call(
        &cli.r#type,
        &cli.source,
        &cli.target,
        &cli.options.join(","),
    )?;
    if cli.verbose {
        let args: Vec<_> = call.args.iter().map(|arg| arg.to_string_lossy()).collect();
        eprintln!(
            "mount.fuse_rs: fuse_rs-run {} {}",
            call.daemon,
            args.join(" ")
        );
    }
    if cli.fake {
        return Ok(());
    }
    let launch = Launch {
        daemon: call.daemon.into(),
        args: call.args,
        mountpoint: Some(cli.target.into()),
        way: None,
    };
    match launch.run()? {}
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mount.fuse_rs: {error}");
            // What mount(8) calls a failed mount.
            ExitCode::from(32)
        }
    }
}
