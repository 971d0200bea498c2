// SPDX-License-Identifier: GPL-2.0

#include <linux/iomap.h>

/*
 * The body of an iomap_ops.iomap_next callback, which finishes the mapping at
 * hand by @end (may be NULL) and gets the next one from @begin.
 */
int fuse_rs_helper_iomap_iter_next(const struct iomap_iter *iter, struct iomap *iomap,
				   struct iomap *srcmap, iomap_iter_begin_fn begin,
				   iomap_iter_end_fn end)
{
	return iomap_iter_next(iter, iomap, srcmap, begin, end);
}
