// SPDX-License-Identifier: GPL-2.0

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched.h>

struct inode *fuse_rs_helper_file_inode(const struct file *file)
{
	return file_inode(file);
}

bool fuse_rs_helper_dir_emit(struct dir_context *ctx, const char *name, int namelen,
			     u64 ino, unsigned int type)
{
	return dir_emit(ctx, name, namelen, ino, type);
}

/* Whether a mapping that is being made is a shared one, as MAP_SHARED asked for it. */
bool fuse_rs_helper_vma_desc_is_shared(const struct vm_area_desc *desc)
{
	return vma_desc_test(desc, VMA_MAYSHARE_BIT);
}

/* Whose are the locks that the running task takes by fcntl(2). */
fl_owner_t fuse_rs_helper_current_files(void)
{
	return current->files;
}
