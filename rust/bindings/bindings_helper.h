/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers whose declarations the `kernel` crate's bindings lack. The
 * generated bindings hold what these files themselves declare, not what they
 * include: bindgen_parameters has the same list, as an allowlist.
 *
 * Sorted alphabetically.
 */

#include <linux/backing-dev.h>
#include <linux/backing-file.h>
#include <linux/dax.h>
#include <linux/exportfs.h>
#include <linux/fileattr.h>
#include <linux/filelock.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/fs_stack.h>
#include <linux/io_uring/cmd.h>
#include <linux/io_uring_types.h>
#include <linux/iomap.h>
#include <linux/iversion.h>
#include <linux/namei.h>
#include <linux/pagemap.h>
#include <linux/pipe_fs_i.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/splice.h>
#include <linux/statfs.h>
#include <linux/vmalloc.h>
#include <uapi/linux/falloc.h>
#include <uapi/linux/fiemap.h>
#include <uapi/linux/fuse.h>
#include <uapi/linux/io_uring.h>
#include <uapi/linux/magic.h>

/* For the constants below alone. */
#include <linux/gfp.h>
#include <linux/poll.h>
#include <linux/slab.h>

/*
 * Macros with casts or computed values, which bindgen does not evaluate: as
 * variables of the type of the field that they are stored in.
 */
#define RUST_CONST(type, name) const type RUST_CONST_HELPER_##name = name

RUST_CONST(gfp_t, __GFP_NOFAIL);

RUST_CONST(slab_flags_t, SLAB_ACCOUNT);
RUST_CONST(slab_flags_t, SLAB_HWCACHE_ALIGN);
RUST_CONST(slab_flags_t, SLAB_NO_MERGE);
RUST_CONST(slab_flags_t, SLAB_RECLAIM_ACCOUNT);

RUST_CONST(unsigned long, SB_MANDLOCK);
RUST_CONST(unsigned long, SB_POSIXACL);
RUST_CONST(unsigned long, SB_RDONLY);
RUST_CONST(loff_t, MAX_LFS_FILESIZE);

RUST_CONST(unsigned int, LOOKUP_EXCL);
RUST_CONST(unsigned int, LOOKUP_RCU);
RUST_CONST(unsigned int, LOOKUP_RENAME_TARGET);
RUST_CONST(unsigned int, LOOKUP_REVAL);

RUST_CONST(fgf_t, FGP_ACCESSED);
RUST_CONST(fgf_t, FGP_CREAT);
RUST_CONST(fgf_t, FGP_FOR_MMAP);

RUST_CONST(int, SEEK_DATA);
RUST_CONST(int, SEEK_END);
RUST_CONST(int, SEEK_HOLE);

RUST_CONST(__poll_t, EPOLLERR);
RUST_CONST(__poll_t, EPOLLIN);
RUST_CONST(__poll_t, EPOLLOUT);
RUST_CONST(__poll_t, EPOLLRDNORM);
RUST_CONST(__poll_t, EPOLLWRNORM);
