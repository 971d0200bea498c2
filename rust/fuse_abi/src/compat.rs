// SPDX-License-Identifier: GPL-2.0

//! How arguments and replies go over the wire to a server of which minor version.
//!
//! Structs only ever grew at their end, so an older server's form is a prefix of today's.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{malformed::exact, *};

/// The argument of a request.
pub trait Argument: IntoBytes + Immutable + Sized {
    /// The bytes that a server of this minor version expects.
    fn as_wire(&self, minor: u32) -> &[u8];
}

/// What a server sends, of a size that only depends on its minor version: a reply, or the fixed
/// part of a longer reply or of a notification.
pub trait Reply: Sized {
    /// Bytes that a server of this minor version sends.
    fn wire_size(minor: u32) -> usize;

    /// Reads the bytes behind the [`OutHeader`]. Fields that the server's version does not have are
    /// zero.
    ///
    /// Fails unless there are exactly as many as [`Reply::wire_size`] says.
    fn parse(payload: &[u8], minor: u32) -> Result<Self, Malformed>;
}

/// A reply without content.
impl Reply for () {
    fn wire_size(_minor: u32) -> usize {
        0
    }

    fn parse(payload: &[u8], _minor: u32) -> Result<Self, Malformed> {
        exact(payload.len(), 0)
    }
}

/// Implements [`Argument`], with the size that servers below some minor version expect.
macro_rules! arguments {
    ($($name:ident $(: $size:literal below $minor:literal)?;)*) => {$(
        impl Argument for $name {
            fn as_wire(&self, _minor: u32) -> &[u8] {
                let bytes = self.as_bytes();
                $(
                    const { assert!($size <= size_of::<$name>()) };
                    if _minor < $minor {
                        return bytes.get(..$size).unwrap_or(bytes);
                    }
                )?
                bytes
            }
        }
    )*};
}

/// Implements [`Reply`], with the size that servers below some minor version send.
macro_rules! replies {
    ($($name:ident $(: $size:literal below $minor:literal)?;)*) => {$(
        impl Reply for $name {
            fn wire_size(_minor: u32) -> usize {
                $(
                    const { assert!($size <= size_of::<$name>()) };
                    if _minor < $minor {
                        return $size;
                    }
                )?
                size_of::<Self>()
            }

            fn parse(payload: &[u8], minor: u32) -> Result<Self, Malformed> {
                exact(payload.len(), Self::wire_size(minor))?;
                Ok(read_padded(payload))
            }
        }
    )*};
}

/// Reads a struct of which only a prefix may be there; the rest is zero.
pub(crate) fn read_padded<T: FromBytes + IntoBytes>(bytes: &[u8]) -> T {
    let mut value = T::new_zeroed();
    for (to, from) in value.as_mut_bytes().iter_mut().zip(bytes) {
        *to = *from;
    }
    value
}

arguments! {
    AccessIn;
    BatchForgetIn;
    BmapIn;
    CopyFileRangeIn;
    CreateIn: 8 below 12;
    CuseInitIn;
    FallocateIn;
    FlushIn;
    ForgetIn;
    ForgetOne;
    FsyncIn;
    GetattrIn;
    GetxattrIn;
    InHeader;
    InitIn;
    InterruptIn;
    IoctlIn;
    LinkIn;
    LkIn;
    LseekIn;
    MkdirIn;
    MknodIn: 8 below 12;
    NotifyRetrieveIn;
    OpenIn;
    PollIn;
    ReadIn;
    ReleaseIn;
    RemovemappingIn;
    RemovemappingOne;
    Rename2In;
    RenameIn;
    SetattrIn;
    SetupmappingIn;
    StatxIn;
    SyncfsIn;
    WriteIn: 24 below 9;
}

replies! {
    AttrOut: 96 below 9;
    BmapOut;
    CopyFileRangeOut;
    CuseInitOut;
    EntryOut: 120 below 9;
    GetxattrOut;
    IoctlOut;
    LkOut;
    LseekOut;
    NotifyDeleteOut;
    NotifyInvalEntryOut;
    NotifyInvalInodeOut;
    NotifyPollWakeupOut;
    NotifyPruneOut;
    NotifyRetrieveOut;
    NotifyStoreOut;
    OpenOut;
    PollOut;
    StatfsOut: 48 below 4;
    StatxOut;
    WriteOut;
}

impl SetxattrIn {
    /// The bytes that a server with these features expects.
    pub fn as_wire(&self, features: InitFlags) -> &[u8] {
        let bytes = self.as_bytes();
        if features.contains(InitFlags::SETXATTR_EXT) {
            return bytes;
        }
        bytes.get(..8).unwrap_or(bytes)
    }
}
