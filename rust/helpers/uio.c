// SPDX-License-Identifier: GPL-2.0

#include <linux/uio.h>

/* Whether the memory is the user's, thus can fault. */
bool fuse_rs_helper_user_backed_iter(const struct iov_iter *i)
{
	return user_backed_iter(i);
}
