// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/kdev_t.h>

/* Variadic in C. The name is what Documentation/ABI/testing/sysfs-class-bdi says of FUSE. */
int fuse_rs_helper_super_setup_bdi_dev(struct super_block *sb)
{
	return super_setup_bdi_name(sb, "%u:%u", MAJOR(sb->s_dev), MINOR(sb->s_dev));
}
