// SPDX-License-Identifier: GPL-2.0

#include <linux/jiffies.h>
#include <linux/sched.h>

/* Inline only where jiffies are 64 bits wide. */
u64 fuse_rs_helper_get_jiffies_64(void)
{
	return get_jiffies_64();
}
