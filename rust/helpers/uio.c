// SPDX-License-Identifier: GPL-2.0

#include <linux/uio.h>

size_t fuse_rs_helper_iov_iter_count(const struct iov_iter *i)
{
	return iov_iter_count(i);
}

/* Whether the memory is the user's, thus can fault. */
bool fuse_rs_helper_user_backed_iter(const struct iov_iter *i)
{
	return user_backed_iter(i);
}

void fuse_rs_helper_iov_iter_truncate(struct iov_iter *i, u64 count)
{
	iov_iter_truncate(i, count);
}
