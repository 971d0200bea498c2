// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros of the kernel headers as real functions, for
 * Rust. `fuse_rs_helper_x` is known to Rust as `fuse_bindings::x`. What the
 * `kernel` crate has as a helper of its own is not repeated here.
 *
 * Sorted alphabetically.
 */

#include "backing_dev.c"
#include "copy.c"
#include "cred.c"
#include "dcache.c"
#include "file.c"
#include "filelock.c"
#include "folio.c"
#include "fs_context.c"
#include "inode.c"
#include "libfs.c"
#include "mm.c"
#include "pagemap.c"
#include "params.c"
#include "pid.c"
#include "pipe.c"
#include "ratelimit.c"
#include "super.c"
#include "time.c"
#include "trace.c"
#include "uio.c"
#include "wait.c"
