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

unsigned int fuse_rs_helper_folio_order(const struct folio *folio)
{
	return folio_order(folio);
}

unsigned long fuse_rs_helper_folio_nr_pages(const struct folio *folio)
{
	return folio_nr_pages(folio);
}

loff_t fuse_rs_helper_folio_pos(const struct folio *folio)
{
	return folio_pos(folio);
}

void fuse_rs_helper_folio_lock(struct folio *folio)
{
	folio_lock(folio);
}

bool fuse_rs_helper_folio_trylock(struct folio *folio)
{
	return folio_trylock(folio);
}

bool fuse_rs_helper_folio_test_large(const struct folio *folio)
{
	return folio_test_large(folio);
}

bool fuse_rs_helper_folio_test_uptodate(const struct folio *folio)
{
	return folio_test_uptodate(folio);
}

void fuse_rs_helper_folio_mark_uptodate(struct folio *folio)
{
	folio_mark_uptodate(folio);
}

/* Undone by kunmap_local(), in the reverse order of several mappings. */
void *fuse_rs_helper_kmap_local_folio(struct folio *folio, size_t off)
{
	return kmap_local_folio(folio, off);
}
