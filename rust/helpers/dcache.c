// SPDX-License-Identifier: GPL-2.0

#include <linux/dcache.h>
#include <linux/fsnotify.h>

struct dentry *fuse_rs_helper_dget(struct dentry *dentry)
{
	return dget(dentry);
}

/* For RCU walk, where the dentry may turn negative at any moment. */
struct inode *fuse_rs_helper_d_inode_rcu(const struct dentry *dentry)
{
	return d_inode_rcu(dentry);
}

bool fuse_rs_helper_d_mountpoint(const struct dentry *dentry)
{
	return d_mountpoint(dentry);
}

void fuse_rs_helper_dont_mount(struct dentry *dentry)
{
	dont_mount(dentry);
}

void fuse_rs_helper_d_delete_notify(struct inode *dir, struct dentry *dentry)
{
	d_delete_notify(dir, dentry);
}

void fuse_rs_helper_d_lock(struct dentry *dentry)
{
	spin_lock(&dentry->d_lock);
}

void fuse_rs_helper_d_unlock(struct dentry *dentry)
{
	spin_unlock(&dentry->d_lock);
}

int fuse_rs_helper_d_count(const struct dentry *dentry)
{
	return d_count(dentry);
}
