// SPDX-License-Identifier: GPL-2.0

#include <linux/bvec.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

/*
 * The span copies. They run with page faults disabled: they never sleep for
 * user memory and return the number of bytes copied, by which @i has moved on.
 * Less than asked means that user memory was not present; the caller faults it
 * in and goes on from there.
 *
 * A folio is one piece of the direct map, copied in one go, except where
 * highmem can map only a page at a time. The caller keeps [off, off + len)
 * within the folio and holds a reference to it.
 */

static size_t fuse_rs_folio_span(struct folio *folio, size_t off, size_t len)
{
	if (folio_test_partial_kmap(folio))
		return min(len, PAGE_SIZE - offset_in_page(off));
	return len;
}

/* To or from @i, as its direction says. */
size_t fuse_rs_helper_copy_folio_iter_nofault(struct folio *folio, size_t off, size_t len,
					      struct iov_iter *i)
{
	size_t done = 0;

	pagefault_disable();
	while (done < len) {
		size_t span = fuse_rs_folio_span(folio, off + done, len - done), copied;
		char *addr = kmap_local_folio(folio, off + done);

		if (iov_iter_rw(i) == WRITE)
			copied = _copy_from_iter(addr, span, i);
		else
			copied = _copy_to_iter(addr, span, i);
		kunmap_local(addr);
		done += copied;
		if (copied < span)
			break;
	}
	pagefault_enable();
	return done;
}

void fuse_rs_helper_memcpy_from_folio(char *to, struct folio *folio, size_t off, size_t len)
{
	memcpy_from_folio(to, folio, off, len);
}

void fuse_rs_helper_folio_zero_range(struct folio *folio, size_t off, size_t len)
{
	folio_zero_range(folio, off, len);
}

/* From @i to what of a run of pages in one folio is behind its first @at bytes. */
size_t fuse_rs_helper_copy_bvec_from_iter_nofault(const struct bio_vec *bv, size_t at,
						  struct iov_iter *i)
{
	struct folio *folio = page_folio(bv->bv_page);
	size_t off = folio_page_idx(folio, bv->bv_page) * PAGE_SIZE + bv->bv_offset + at;

	return fuse_rs_helper_copy_folio_iter_nofault(folio, off, bv->bv_len - at, i);
}

/* A run that was pinned is about to be written to. May sleep. */
void fuse_rs_helper_bvec_set_dirty(const struct bio_vec *bv)
{
	struct folio *folio = page_folio(bv->bv_page);

	if (!folio_test_dirty(folio))
		folio_mark_dirty_lock(folio);
}

/*
 * The end of a run that was pinned, set dirty, and written to. Sleeps only if the
 * run was cleaned meanwhile.
 */
void fuse_rs_helper_bvec_unpin_dirty(const struct bio_vec *bv)
{
	struct folio *folio = page_folio(bv->bv_page);

	fuse_rs_helper_bvec_set_dirty(bv);
	unpin_user_folio(folio, DIV_ROUND_UP(bv->bv_offset + bv->bv_len, PAGE_SIZE));
}
