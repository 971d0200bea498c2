// SPDX-License-Identifier: GPL-2.0

#include <linux/dcache.h>

struct dentry *fuse_rs_helper_dget(struct dentry *dentry)
{
	return dget(dentry);
}

struct inode *fuse_rs_helper_d_inode(const struct dentry *dentry)
{
	return d_inode(dentry);
}

/* For RCU walk, where the dentry may turn negative at any moment. */
struct inode *fuse_rs_helper_d_inode_rcu(const struct dentry *dentry)
{
	return d_inode_rcu(dentry);
}

bool fuse_rs_helper_d_in_lookup(const struct dentry *dentry)
{
	return d_in_lookup(dentry);
}

bool fuse_rs_helper_d_unhashed(const struct dentry *dentry)
{
	return d_unhashed(dentry);
}

bool fuse_rs_helper_d_really_is_positive(const struct dentry *dentry)
{
	return d_really_is_positive(dentry);
}
