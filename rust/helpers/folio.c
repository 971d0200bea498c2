// SPDX-License-Identifier: GPL-2.0

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

void fuse_rs_helper_folio_get(struct folio *folio)
{
	folio_get(folio);
}

void fuse_rs_helper_folio_put(struct folio *folio)
{
	folio_put(folio);
}

size_t fuse_rs_helper_folio_size(const struct folio *folio)
{
	return folio_size(folio);
}

loff_t fuse_rs_helper_folio_pos(const struct folio *folio)
{
	return folio_pos(folio);
}

int fuse_rs_helper_folio_lock_killable(struct folio *folio)
{
	return folio_lock_killable(folio);
}

bool fuse_rs_helper_folio_test_uptodate(const struct folio *folio)
{
	return folio_test_uptodate(folio);
}
