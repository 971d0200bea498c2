// SPDX-License-Identifier: GPL-2.0

flag_word! {
    /// Flags of a node; [`crate::Attr::flags`]. Server to kernel.
    pub struct AttrFlags: u32 {
        /// The node is the root of a mount inside the server.
        const SUBMOUNT = 1 << 0;
        /// Use DAX for this file, if the mount has DAX per inode.
        const DAX = 1 << 1;
    }
}
