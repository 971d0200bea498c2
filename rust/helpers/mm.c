// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

/* With the positional arguments of C's older form. The name must outlive the cache. */
struct kmem_cache *fuse_rs_helper_kmem_cache_create(const char *name, unsigned int size,
						    unsigned int align, slab_flags_t flags,
						    void (*ctor)(void *))
{
	return kmem_cache_create(name, size, align, flags, ctor);
}

void *fuse_rs_helper_alloc_inode_sb(struct super_block *sb, struct kmem_cache *cache, gfp_t gfp)
{
	return alloc_inode_sb(sb, cache, gfp);
}
