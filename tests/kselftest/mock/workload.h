/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients that make every read-only system call on a mock's tree, at random, and that can be watched from outside:
 * which call each of them is in, and since when.
 */
#ifndef FUSE_WORKLOAD_H
#define FUSE_WORKLOAD_H

#include "mock.h"

/* Pseudo-random numbers: the same for the same seed. */
struct dice {
	uint64_t state;
};

void dice_seed(struct dice *dice, uint64_t seed);
uint64_t dice_u64(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t bound);	/* 0 if @bound is */
bool dice_one_in(struct dice *dice, uint32_t n);
uint64_t dice_odd_u64(struct dice *dice);	/* what breaks arithmetic: zero, edges, powers of two, anything */

/* One thread or process that makes calls; in memory that whoever watches it shares. */
struct client {
	struct dice dice;
	pid_t pid;
	pid_t tid;
	const char *call;	/* that it is in, as the source has it; NULL between two */
	uint64_t since;		/* workload_now() at its begin */
	uint64_t calls;		/* made so far */
	uint64_t wrong;		/* answers with other bytes than the tree's */
};

uint64_t workload_now(void);	/* monotonic milliseconds */
void workload_tree(struct mock *m);	/* about forty nodes: directories, files of odd sizes, links good and bad */
void workload_process(void);	/* signal handlers of a process that has clients */
void workload_enter(struct client *client);	/* by the client's own thread, before its first step */
/* A few system calls on one node; @honest: what is read must be the tree's. */
void workload_step(struct mock *m, struct client *client, bool honest);
struct client *workload_stuck(struct client *clients, size_t count, uint64_t ms);	/* longer in one call; NULL: none */
/*
 * Kills and reaps the daemon, bounded. In-tree's may stand in a notification, unkillable, with its clients waiting for it:
 * that connection is aborted as well, by a forced umount.
 */
bool workload_kill_daemon(struct mock *m);
void workload_describe(struct client *client);	/* its call and its stack in the kernel, to stderr */

/* notification.c */

/*
 * Writes to @out, MOCK_PAGE bytes, the body of a notification that does not lie about the tree; returns its length. @code
 * is FUSE_NOTIFY_*.
 */
size_t workload_notification(struct mock *m, struct dice *dice, uint32_t code, void *out);

/*
 * Whether a daemon that ends while it sends this may hang the client for ever, and hung tasks fail the run: the in-tree
 * client waits for locks and folios, whose holders wait for the daemon, and can't be killed.
 */
bool workload_hangs_in_tree(uint32_t code);
uint64_t workload_setting(const char *name, uint64_t otherwise);	/* number in the environment */
#endif
