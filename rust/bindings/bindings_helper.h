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

/* Macros with casts or computed values, which bindgen does not evaluate. */
const gfp_t RUST_CONST_HELPER_GFP_NOFS = GFP_NOFS;
const gfp_t RUST_CONST_HELPER_GFP_HIGHUSER = GFP_HIGHUSER;
const gfp_t RUST_CONST_HELPER_GFP_HIGHUSER_MOVABLE = GFP_HIGHUSER_MOVABLE;
const gfp_t RUST_CONST_HELPER___GFP_NOFAIL = __GFP_NOFAIL;
const gfp_t RUST_CONST_HELPER___GFP_NORETRY = __GFP_NORETRY;
const gfp_t RUST_CONST_HELPER___GFP_ACCOUNT = __GFP_ACCOUNT;
const slab_flags_t RUST_CONST_HELPER_SLAB_ACCOUNT = SLAB_ACCOUNT;
const slab_flags_t RUST_CONST_HELPER_SLAB_HWCACHE_ALIGN = SLAB_HWCACHE_ALIGN;
const slab_flags_t RUST_CONST_HELPER_SLAB_NO_MERGE = SLAB_NO_MERGE;
const slab_flags_t RUST_CONST_HELPER_SLAB_RECLAIM_ACCOUNT = SLAB_RECLAIM_ACCOUNT;
const u64 RUST_CONST_HELPER_IOMAP_NULL_ADDR = IOMAP_NULL_ADDR;
const fmode_t RUST_CONST_HELPER_FMODE_READ = FMODE_READ;
const fmode_t RUST_CONST_HELPER_FMODE_WRITE = FMODE_WRITE;
const fmode_t RUST_CONST_HELPER_FMODE_EXEC = FMODE_EXEC;
const fmode_t RUST_CONST_HELPER_FMODE_NOWAIT = FMODE_NOWAIT;
const fmode_t RUST_CONST_HELPER_FMODE_STREAM = FMODE_STREAM;
const __poll_t RUST_CONST_HELPER_EPOLLIN = EPOLLIN;
const __poll_t RUST_CONST_HELPER_EPOLLOUT = EPOLLOUT;
const __poll_t RUST_CONST_HELPER_EPOLLERR = EPOLLERR;
const __poll_t RUST_CONST_HELPER_EPOLLHUP = EPOLLHUP;
const __poll_t RUST_CONST_HELPER_EPOLLRDNORM = EPOLLRDNORM;
const __poll_t RUST_CONST_HELPER_EPOLLWRNORM = EPOLLWRNORM;
