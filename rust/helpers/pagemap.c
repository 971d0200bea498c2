// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/pagemap.h>

/* Before the inode is visible to others: it is not atomic. Too large a maximum is cut. */
void fuse_rs_helper_mapping_set_folio_order_range(struct address_space *mapping,
						  unsigned int min, unsigned int max)
{
	mapping_set_folio_order_range(mapping, min, max);
}

/* MAX_PAGECACHE_ORDER, a statement expression in C. */
unsigned int fuse_rs_helper_max_pagecache_order(void)
{
	return MAX_PAGECACHE_ORDER;
}

fgf_t fuse_rs_helper_fgf_set_order(size_t size)
{
	return fgf_set_order(size);
}

gfp_t fuse_rs_helper_mapping_gfp_mask(const struct address_space *mapping)
{
	return mapping_gfp_mask(mapping);
}

struct folio *fuse_rs_helper___filemap_get_folio(struct address_space *mapping, pgoff_t index,
						 fgf_t flags, gfp_t gfp)
{
	return __filemap_get_folio(mapping, index, flags, gfp);
}
