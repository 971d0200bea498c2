// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>

bool fuse_rs_helper_sb_rdonly(const struct super_block *sb)
{
	return sb_rdonly(sb);
}
