// SPDX-License-Identifier: GPL-2.0

#include <linux/dcache.h>

struct dentry *fuse_rs_helper_dget(struct dentry *dentry)
{
	return dget(dentry);
}

/* For RCU walk, where the dentry may turn negative at any moment. */
struct inode *fuse_rs_helper_d_inode_rcu(const struct dentry *dentry)
{
	return d_inode_rcu(dentry);
}
