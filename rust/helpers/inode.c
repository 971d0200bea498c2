// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/kdev_t.h>

/* Members of anonymous unions, whose Rust names differ between configurations. */

void fuse_rs_helper_inode_set_fop(struct inode *inode, const struct file_operations *fop)
{
	inode->i_fop = fop;
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

unsigned int fuse_rs_helper_inode_nlink(const struct inode *inode)
{
	return READ_ONCE(inode->i_nlink);
}

struct timespec64 fuse_rs_helper_inode_get_mtime(const struct inode *inode)
{
	return inode_get_mtime(inode);
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

u32 fuse_rs_helper_new_encode_dev(dev_t dev)
{
	return new_encode_dev(dev);
}

dev_t fuse_rs_helper_new_decode_dev(u32 dev)
{
	return new_decode_dev(dev);
}

int fuse_rs_helper_inode_lock_killable(struct inode *inode)
{
	return inode_lock_killable(inode);
}

/* Of a directory, when something in it will be locked too. */
int fuse_rs_helper_inode_lock_killable_parent(struct inode *inode)
{
	return down_write_killable_nested(&inode->i_rwsem, I_MUTEX_PARENT);
}

void fuse_rs_helper_inode_unlock(struct inode *inode)
{
	inode_unlock(inode);
}
