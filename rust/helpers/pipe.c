// SPDX-License-Identifier: GPL-2.0

#include <linux/pipe_fs_i.h>

/* The buffers in use. With the pipe locked. */
unsigned int fuse_rs_helper_pipe_buf_usage(const struct pipe_inode_info *pipe)
{
	return pipe_buf_usage(pipe);
}
