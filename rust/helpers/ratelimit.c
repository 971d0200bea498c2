// SPDX-License-Identifier: GPL-2.0

#include <linux/ratelimit.h>

/* With one state for the module, which prints what was left out. */
bool fuse_rs_helper_may_print(void)
{
	static DEFINE_RATELIMIT_STATE(state, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);

	return __ratelimit(&state);
}
