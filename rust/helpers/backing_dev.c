// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>

struct backing_dev_info *fuse_rs_helper_bdi_get(struct backing_dev_info *bdi)
{
	return bdi_get(bdi);
}
