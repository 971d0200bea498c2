/* SPDX-License-Identifier: GPL-2.0 */

#include <sys/ioctl.h>
#include <linux/fuse.h>

/* Macros that bindgen does not evaluate by itself. */
const unsigned int VALUE_OF_FUSE_INVALID_UIDGID = FUSE_INVALID_UIDGID;
const unsigned int VALUE_OF_FUSE_DEV_IOC_CLONE = FUSE_DEV_IOC_CLONE;
const unsigned int VALUE_OF_FUSE_DEV_IOC_BACKING_OPEN = FUSE_DEV_IOC_BACKING_OPEN;
const unsigned int VALUE_OF_FUSE_DEV_IOC_BACKING_CLOSE = FUSE_DEV_IOC_BACKING_CLOSE;
const unsigned int VALUE_OF_FUSE_DEV_IOC_SYNC_INIT = FUSE_DEV_IOC_SYNC_INIT;
