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
