// SPDX-License-Identifier: GPL-2.0

//! What kind of program a daemon is, as that decides how it can be led to fuse_rs.

use crate::error::{Error, Result, Step};
use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Read,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

/// How a daemon is led to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It gets what is mounted already, as `/dev/fd/N`.
    Fd,
    /// It mounts by itself; a library in its process and fusermount3 of fuse_rs change the names.
    Preload,
}

/// A program, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Linked to glibc: a library can be put into it.
    Dynamic,
    /// Of Go, whose programs make system calls without libc. Its FUSE libraries mount by the
    /// fusermount3 that is first in PATH, at least when they fail to do it by themselves.
    Go,
    /// Nothing can be put into it, for the reason given.
    Closed(&'static str),
}

impl Kind {
    /// How such a daemon is run.
    pub fn way(&self) -> Way {
        match self {
            Self::Dynamic | Self::Go => Way::Preload,
            Self::Closed(_) => Way::Fd,
        }
    }
}

/// Finds a program as a shell does.
///
/// # Errors
///
/// There is none of that name.
pub fn find(name: &OsStr) -> Result<PathBuf> {
    let step = || format!("finding the daemon {}", name.to_string_lossy());
    let is_program = |path: &Path| {
        path.metadata()
            .is_ok_and(|data| data.is_file() && data.mode() & 0o111 != 0)
    };
    let found = if name.as_bytes().contains(&b'/') {
        Some(PathBuf::from(name)).filter(|path| is_program(path))
    } else {
        // mount(8) runs its helpers with an empty environment.
        let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|path| is_program(path))
    };
    found.ok_or_else(|| {
        Error::new(step(), "no such program").hint("install it, or give its full path")
    })
}

/// Where programs are looked for if nobody says.
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Looks into a program.
///
/// # Errors
///
/// It cannot be read.
pub fn kind(path: &Path) -> Result<Kind> {
    let step = || format!("looking into {}", path.display());
    let data = fs::metadata(path).step(step)?;
    let others = data.mode() & 0o6000 != 0 && data.uid() != rustix::process::getuid().as_raw();
    let mut capability = [0u8; 64];
    if others || rustix::fs::getxattr(path, "security.capability", &mut capability).is_ok() {
        return Ok(Kind::Closed("it is set-user-ID or has capabilities"));
    }
    let file = File::open(path).step(step)?;
    if let Some(interpreter) = script(&file).step(step)? {
        return kind(&interpreter);
    }
    elf(&|offset, buffer| file.read_exact_at(buffer, offset).ok())
        .ok_or_else(|| Error::new(step(), "neither an ELF program nor a script"))
}

/// The interpreter of a script.
fn script(file: &File) -> std::io::Result<Option<PathBuf>> {
    let mut head = Vec::new();
    file.take(256).read_to_end(&mut head)?;
    Ok(shebang(&head).map(PathBuf::from))
}

fn shebang(head: &[u8]) -> Option<OsString> {
    let line = head
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    Some(OsStr::from_bytes(word).to_owned())
}

/// Fills a buffer from an offset.
type ReadAt<'a> = &'a dyn Fn(u64, &mut [u8]) -> Option<()>;

const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;

/// The kind of an ELF program of 64 bits, little endian. Of others only that they are no such.
fn elf(read: ReadAt<'_>) -> Option<Kind> {
    let mut header = [0u8; 64];
    read(0, &mut header)?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    // Class and byte order.
    if header[4..6] != [2, 1] {
        return Some(Kind::Closed("it is not a 64-bit program of this machine"));
    }
    let at = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let size = u64::from(u16::from_le_bytes(header[54..56].try_into().ok()?));
    let count = u64::from(u16::from_le_bytes(header[56..58].try_into().ok()?));
    let mut kind = Kind::Closed("it is linked statically");
    for index in 0..count {
        let mut segment = [0u8; 56];
        read(at.checked_add(index * size)?, &mut segment)?;
        let offset = u64::from_le_bytes(segment[8..16].try_into().ok()?);
        let len = u64::from_le_bytes(segment[32..40].try_into().ok()?).min(4096);
        let mut content = vec![0; usize::try_from(len).ok()?];
        let segment_type = u32::from_le_bytes(segment[0..4].try_into().ok()?);
        if !matches!(segment_type, PT_INTERP | PT_NOTE) {
            continue;
        }
        read(offset, &mut content)?;
        let contains = |words: &[u8]| content.windows(words.len()).any(|part| part == words);
        // A note of the owner "Go" is its build ID.
        if segment_type == PT_NOTE && contains(b"Go\0\0") {
            return Some(Kind::Go);
        }
        if segment_type == PT_INTERP {
            kind = match contains(b"ld-musl") {
                true => Kind::Closed("it is linked to musl"),
                false => Kind::Dynamic,
            };
        }
    }
    Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with these segments.
    fn image(segments: &[(u32, &[u8])]) -> Vec<u8> {
        let mut image = b"\x7fELF\x02\x01".to_vec();
        image.resize(64, 0);
        image[32..40].copy_from_slice(&64u64.to_le_bytes());
        image[54..56].copy_from_slice(&56u16.to_le_bytes());
        image[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
        let mut content: Vec<u8> = Vec::new();
        for (kind, bytes) in segments {
            let mut segment = [0u8; 56];
            segment[..4].copy_from_slice(&kind.to_le_bytes());
            let offset = 64 + 56 * segments.len() + content.len();
            segment[8..16].copy_from_slice(&(offset as u64).to_le_bytes());
            segment[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            image.extend(segment);
            content.extend(*bytes);
        }
        image.extend(content);
        image
    }

    fn kind_of(image: &[u8]) -> Option<Kind> {
        elf(&|offset, buffer| {
            let start = usize::try_from(offset).ok()?;
            buffer.copy_from_slice(image.get(start..start.checked_add(buffer.len())?)?);
            Some(())
        })
    }

    #[test]
    fn kinds() {
        let glibc = image(&[(6, b""), (PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0")]);
        assert_eq!(kind_of(&glibc), Some(Kind::Dynamic));
        let musl = image(&[(PT_INTERP, b"/lib/ld-musl-x86_64.so.1\0")]);
        assert_eq!(kind_of(&musl).map(|kind| kind.way()), Some(Way::Fd));
        let note = b"\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0id";
        assert_eq!(kind_of(&image(&[(PT_NOTE, note)])), Some(Kind::Go));
        let linked = image(&[
            (PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0"),
            (PT_NOTE, note),
        ]);
        assert_eq!(kind_of(&linked), Some(Kind::Go));
        let gnu = image(&[(PT_NOTE, b"\x04\0\0\0\x10\0\0\0\x01\0\0\0GNU\0")]);
        assert_eq!(kind_of(&gnu), Some(Kind::Closed("it is linked statically")));
    }

    #[test]
    fn broken_programs() {
        assert_eq!(kind_of(b"#!/bin/sh\n"), None);
        assert_eq!(kind_of(&[0; 100]), None);
        let whole = image(&[(PT_INTERP, b"/lib64/ld-linux-x86-64.so.2\0")]);
        for len in 0..whole.len() {
            assert_eq!(kind_of(&whole[..len]), None, "cut at {len}");
        }
    }

    #[test]
    fn scripts() {
        assert_eq!(
            shebang(b"#! /usr/bin/env python3\nx"),
            Some("/usr/bin/env".into())
        );
        assert_eq!(shebang(b"#!/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(shebang(b"\x7fELF"), None);
    }

    #[test]
    fn this_program_is_found_and_dynamic() {
        let this = env::current_exe().expect("its path");
        assert_eq!(kind(&this).expect("readable"), Kind::Dynamic);
        assert_eq!(find(this.as_os_str()).expect("there"), this);
        assert!(find(OsStr::new("no such program")).is_err());
    }
}
