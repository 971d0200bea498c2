// SPDX-License-Identifier: GPL-2.0

#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

void fuse_rs_helper_wake_up_all(struct wait_queue_head *wq)
{
	wake_up_all(wq);
}

void fuse_rs_helper_wake_up_nr(struct wait_queue_head *wq, int nr)
{
	wake_up_nr(wq, nr);
}

/* @events: EPOLL*, the ready events; pollers of others are not woken. */
void fuse_rs_helper_wake_up_poll(struct wait_queue_head *wq, __poll_t events)
{
	wake_up_poll(wq, events);
}

bool fuse_rs_helper_waitqueue_active(struct wait_queue_head *wq)
{
	return waitqueue_active(wq);
}

__poll_t fuse_rs_helper_poll_requested_events(const poll_table *table)
{
	return poll_requested_events(table);
}

__u16 fuse_rs_helper_mangle_poll(__poll_t events)
{
	return mangle_poll(events);
}

__poll_t fuse_rs_helper_demangle_poll(__u16 events)
{
	return demangle_poll(events);
}

void fuse_rs_helper_cond_resched(void)
{
	cond_resched();
}
