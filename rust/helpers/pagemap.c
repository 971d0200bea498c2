// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/pagemap.h>

/* Before the inode is visible to others: it is not atomic. Too large a maximum is cut. */
void fuse_rs_helper_mapping_set_folio_order_range(struct address_space *mapping,
						  unsigned int min, unsigned int max)
{
	mapping_set_folio_order_range(mapping, min, max);
}

unsigned int fuse_rs_helper_mapping_max_folio_order(const struct address_space *mapping)
{
	return mapping_max_folio_order(mapping);
}

/* MAX_PAGECACHE_ORDER, a statement expression in C. */
unsigned int fuse_rs_helper_max_pagecache_order(void)
{
	return MAX_PAGECACHE_ORDER;
}

void fuse_rs_helper_mapping_set_gfp_mask(struct address_space *mapping, gfp_t mask)
{
	mapping_set_gfp_mask(mapping, mask);
}

gfp_t fuse_rs_helper_mapping_gfp_mask(const struct address_space *mapping)
{
	return mapping_gfp_mask(mapping);
}

void fuse_rs_helper_mapping_set_error(struct address_space *mapping, int error)
{
	mapping_set_error(mapping, error);
}

void fuse_rs_helper_filemap_invalidate_lock(struct address_space *mapping)
{
	filemap_invalidate_lock(mapping);
}

void fuse_rs_helper_filemap_invalidate_unlock(struct address_space *mapping)
{
	filemap_invalidate_unlock(mapping);
}

void fuse_rs_helper_filemap_invalidate_lock_shared(struct address_space *mapping)
{
	filemap_invalidate_lock_shared(mapping);
}

void fuse_rs_helper_filemap_invalidate_unlock_shared(struct address_space *mapping)
{
	filemap_invalidate_unlock_shared(mapping);
}

loff_t fuse_rs_helper_readahead_pos(const struct readahead_control *rac)
{
	return readahead_pos(rac);
}

size_t fuse_rs_helper_readahead_length(const struct readahead_control *rac)
{
	return readahead_length(rac);
}

unsigned int fuse_rs_helper_readahead_count(const struct readahead_control *rac)
{
	return readahead_count(rac);
}
