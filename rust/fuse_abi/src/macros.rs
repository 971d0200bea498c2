// SPDX-License-Identifier: GPL-2.0

//! The three shapes that wire types come in.

/// Declares structs that are laid out as on the wire.
///
/// Every bit pattern is a valid value, so that bytes from a server can be read into them without a
/// check.
macro_rules! wire {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq,
            ::zerocopy_derive::FromBytes, ::zerocopy_derive::IntoBytes,
            ::zerocopy_derive::Immutable, ::zerocopy_derive::KnownLayout,
        )]
        pub struct $name { $($fields)* }
    )*};
}

/// Declares a word of flags.
///
/// All bits count as known to bitflags (`const _ = !0`): the other side may be newer, and `!` or
/// `-` must not drop the bits that it set.
macro_rules! flag_word {
    ($(#[$meta:meta])* pub struct $name:ident: $bits:ty { $($body:tt)* }) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, Hash,
            ::zerocopy_derive::FromBytes, ::zerocopy_derive::IntoBytes,
            ::zerocopy_derive::Immutable, ::zerocopy_derive::KnownLayout,
        )]
        pub struct $name($bits);

        ::bitflags::bitflags! {
            impl $name: $bits {
                $($body)*
                const _ = !0;
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(concat!(stringify!($name), "("))?;
                ::bitflags::parser::to_writer(self, &mut *f)?;
                f.write_str(")")
            }
        }
    };
}

/// Declares an enumeration whose numbers stand on the wire, with the name that the protocol gives
/// to each.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])* pub enum $name:ident {
            $($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant = $value,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The protocol's name, without the `FUSE_` that they all start with.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl TryFrom<u32> for $name {
            type Error = $crate::Malformed;

            fn try_from(code: u32) -> ::core::result::Result<Self, Self::Error> {
                match code {
                    $($value => Ok(Self::$variant),)*
                    _ => Err($crate::Malformed::Code(code)),
                }
            }
        }
    };
}
