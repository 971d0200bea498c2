// SPDX-License-Identifier: GPL-2.0

#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

/*
 * wait_event_*() are macros around a condition. Rust writes the loop itself:
 * init_wait_entry(), then prepare_to_wait_event(), test, schedule(), at last
 * finish_wait(), all of which are functions.
 */

bool fuse_rs_helper_fatal_signal_pending(struct task_struct *task)
{
	return fatal_signal_pending(task);
}

void fuse_rs_helper_wake_up(struct wait_queue_head *wq)
{
	wake_up(wq);
}

void fuse_rs_helper_wake_up_all(struct wait_queue_head *wq)
{
	wake_up_all(wq);
}

void fuse_rs_helper_wake_up_interruptible(struct wait_queue_head *wq)
{
	wake_up_interruptible(wq);
}

/* @events: EPOLL*, the ready events; pollers of others are not woken. */
void fuse_rs_helper_wake_up_poll(struct wait_queue_head *wq, __poll_t events)
{
	wake_up_poll(wq, events);
}

void fuse_rs_helper_wake_up_interruptible_poll(struct wait_queue_head *wq, __poll_t events)
{
	wake_up_interruptible_poll(wq, events);
}

bool fuse_rs_helper_waitqueue_active(struct wait_queue_head *wq)
{
	return waitqueue_active(wq);
}
