// SPDX-License-Identifier: GPL-2.0

//! Runs bindgen, the program that the kernel's build uses too, on the header of the kernel under
//! build/.

use std::{env, path::Path, process::Command};

fn main() {
    let include =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../build/kernel/src/include/uapi");
    let header = include.join("linux/fuse.h");
    println!("cargo::rerun-if-changed=uapi.h");
    println!("cargo::rerun-if-changed={}", header.display());
    println!("cargo::rustc-env=FUSE_UAPI_HEADER={}", header.display());
    assert!(
        header.exists(),
        "{} is missing: it comes with the kernel source that `make` unpacks",
        header.display()
    );

    let out = Path::new(&env::var_os("OUT_DIR").unwrap()).join("fuse.rs");
    let status = Command::new("bindgen")
        .args([
            "uapi.h",
            "--use-core",
            "--no-doc-comments",
            "--with-derive-default",
        ])
        .args([
            "--allowlist-file",
            r".*/linux/fuse\.h",
            "--allowlist-var",
            "VALUE_OF_.*",
        ])
        .arg("--output")
        .arg(out)
        .arg("--")
        .arg("-I")
        .arg(include)
        .status()
        .expect("bindgen cannot be run; it is in the toolchain root");
    assert!(status.success(), "bindgen: {status}");
}
