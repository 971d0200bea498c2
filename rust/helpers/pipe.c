// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/pipe_fs_i.h>
#include <linux/poll.h>
#include <linux/signal.h>

/*
 * With the pipe locked, except for what is said of single functions. bindgen
 * does not see the pipe's head and tail, which are in an unnamed union.
 */

/* The buffers in use. */
unsigned int fuse_rs_helper_pipe_buf_usage(const struct pipe_inode_info *pipe)
{
	return pipe_buf_usage(pipe);
}

bool fuse_rs_helper_pipe_is_full(const struct pipe_inode_info *pipe)
{
	return pipe_is_full(pipe);
}

/* The @n'th buffer in use, counted from 0, the oldest. */
struct pipe_buffer *fuse_rs_helper_pipe_nth_buf(const struct pipe_inode_info *pipe, unsigned int n)
{
	return pipe_buf(pipe, pipe->tail + n);
}

/*
 * The pipe is not empty; the oldest buffer is not released, a copy of it becomes
 * the caller's. Without operations the end of the pipe finds nothing to release.
 */
void fuse_rs_helper_pipe_remove_first_buf(struct pipe_inode_info *pipe)
{
	pipe_buf(pipe, pipe->tail)->ops = NULL;
	pipe->tail++;
}

bool fuse_rs_helper_pipe_buf_get(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	return pipe_buf_get(pipe, buf);
}

/* Without the lock; @buf was taken out of the pipe. */
int fuse_rs_helper_pipe_buf_confirm(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	return pipe_buf_confirm(pipe, buf);
}

void fuse_rs_helper_pipe_buf_release(struct pipe_inode_info *pipe, struct pipe_buffer *buf)
{
	pipe_buf_release(pipe, buf);
}

/* There is room in the pipe. Without the lock. */
void fuse_rs_helper_wake_pipe_writers(struct pipe_inode_info *pipe)
{
	wake_up_interruptible_poll(&pipe->wr_wait, EPOLLOUT | EPOLLWRNORM);
	kill_fasync(&pipe->fasync_writers, SIGIO, POLL_OUT);
}
