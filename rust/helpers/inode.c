// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/kdev_t.h>

/* Members of anonymous unions, whose Rust names differ between configurations. */

void fuse_rs_helper_inode_set_fop(struct inode *inode, const struct file_operations *fop)
{
	inode->i_fop = fop;
}

unsigned int fuse_rs_helper_inode_nlink(const struct inode *inode)
{
	return inode->i_nlink;
}

loff_t fuse_rs_helper_i_size_read(const struct inode *inode)
{
	return i_size_read(inode);
}

void fuse_rs_helper_i_size_write(struct inode *inode, loff_t size)
{
	i_size_write(inode, size);
}

enum inode_state_flags_enum fuse_rs_helper_inode_state_read_once(struct inode *inode)
{
	return inode_state_read_once(inode);
}

void fuse_rs_helper_inode_lock(struct inode *inode)
{
	inode_lock(inode);
}

int fuse_rs_helper_inode_lock_killable(struct inode *inode)
{
	return inode_lock_killable(inode);
}

bool fuse_rs_helper_inode_trylock(struct inode *inode)
{
	return inode_trylock(inode);
}

void fuse_rs_helper_inode_unlock(struct inode *inode)
{
	inode_unlock(inode);
}

void fuse_rs_helper_inode_lock_shared(struct inode *inode)
{
	inode_lock_shared(inode);
}

void fuse_rs_helper_inode_unlock_shared(struct inode *inode)
{
	inode_unlock_shared(inode);
}

struct timespec64 fuse_rs_helper_inode_get_atime(const struct inode *inode)
{
	return inode_get_atime(inode);
}

struct timespec64 fuse_rs_helper_inode_get_mtime(const struct inode *inode)
{
	return inode_get_mtime(inode);
}

struct timespec64 fuse_rs_helper_inode_get_ctime(const struct inode *inode)
{
	return inode_get_ctime(inode);
}

struct timespec64 fuse_rs_helper_inode_set_atime(struct inode *inode, time64_t sec, long nsec)
{
	return inode_set_atime(inode, sec, nsec);
}

struct timespec64 fuse_rs_helper_inode_set_mtime(struct inode *inode, time64_t sec, long nsec)
{
	return inode_set_mtime(inode, sec, nsec);
}

struct timespec64 fuse_rs_helper_inode_set_ctime(struct inode *inode, time64_t sec, long nsec)
{
	return inode_set_ctime(inode, sec, nsec);
}

uid_t fuse_rs_helper_i_uid_read(const struct inode *inode)
{
	return i_uid_read(inode);
}

gid_t fuse_rs_helper_i_gid_read(const struct inode *inode)
{
	return i_gid_read(inode);
}

void fuse_rs_helper_i_uid_write(struct inode *inode, uid_t uid)
{
	i_uid_write(inode, uid);
}

void fuse_rs_helper_i_gid_write(struct inode *inode, gid_t gid)
{
	i_gid_write(inode, gid);
}

u32 fuse_rs_helper_new_encode_dev(dev_t dev)
{
	return new_encode_dev(dev);
}

dev_t fuse_rs_helper_new_decode_dev(u32 dev)
{
	return new_decode_dev(dev);
}
