// SPDX-License-Identifier: GPL-2.0
/* poll(2), select(2) and epoll of files on the mount: POLL, and the notification that wakes who waits. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mount.h>

#include "notify.h"

enum { ANSWER, ERROR };	/* knobs: the events to answer with, the error instead */

FIXTURE(poll) {
	struct mock *m;
	uint64_t file;
};

/* In shared memory: what the last POLL asked. */
static struct fuse_poll_in *asked;

static int serve_poll(struct mock *m, struct mock_request *req)
{
	struct fuse_poll_out out = { .revents = m->knob[ANSWER] };

	memcpy(asked, req->arg, sizeof(*asked));
	if (m->knob[ERROR])
		return -(int)m->knob[ERROR];
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

FIXTURE_SETUP(poll)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 100);
	self->m->handler[FUSE_POLL] = serve_poll;
	asked = (void *)&self->m->knob[8];
}

FIXTURE_TEARDOWN(poll)
{
	umount2(self->m->dir, MNT_FORCE);
	if (notify_dev >= 0)
		close(notify_dev);
	mock_destroy(self->m);
}

static int wake(uint64_t kh)
{
	struct fuse_notify_poll_wakeup_out out = { .kh = kh };

	return notify(FUSE_NOTIFY_POLL, &out, sizeof(out));
}

static short poll_now(int fd, short events)
{
	struct pollfd pfd = { fd, events, 0 };

	return poll(&pfd, 1, 0) < 0 ? -1 : pfd.revents;
}

TEST_F_TIMEOUT(poll, asks, TEST_BOUND)
{
	static const short masks[] = { POLLIN, POLLOUT, POLLIN | POLLOUT, POLLPRI, POLLRDHUP, POLLRDNORM | POLLWRBAND };
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		self->m->knob[ANSWER] = masks[i];
		EXPECT_EQ(masks[i], poll_now(fd, masks[i]));
		/* Errors are always asked for. */
		EXPECT_EQ(masks[i] | POLLERR | POLLHUP, asked->events);
		EXPECT_EQ(self->m->next_fh, asked->fh);
		/* Nobody waits. */
		EXPECT_EQ(0, asked->flags);
	}
	EXPECT_EQ(ARRAY_SIZE(masks), mock_count(self->m, FUSE_POLL));
	/* What was not asked for is not told. */
	self->m->knob[ANSWER] = POLLOUT | POLLHUP;
	EXPECT_EQ(POLLHUP, poll_now(fd, POLLIN));
	self->m->knob[ANSWER] = 0xffff0000;
	EXPECT_EQ(0, poll_now(fd, POLLIN));
	close(fd);
}

TEST_F_TIMEOUT(poll, errors, TEST_BOUND)
{
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	self->m->knob[ERROR] = EIO;
	EXPECT_EQ(POLLERR, poll_now(fd, POLLIN));
	EXPECT_EQ(1, mock_count(self->m, FUSE_POLL));
	self->m->knob[ERROR] = ENOSYS;
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(fd, POLLIN | POLLOUT));
	/* It is not asked again. */
	self->m->knob[ERROR] = 0;
	EXPECT_EQ(POLLIN | POLLRDNORM, poll_now(fd, POLLIN | POLLRDNORM));
	EXPECT_EQ(2, mock_count(self->m, FUSE_POLL));
	close(fd);
}

static long wait_for_file(struct mock *m, const void *fd)
{
	struct pollfd pfd = { *(const int *)fd, POLLIN, 0 };

	return poll(&pfd, 1, MOCK_WAIT_MS) < 0 ? -1 : pfd.revents;
}

static bool asked_to_notify(struct mock *m, uint64_t count)
{
	return mock_count(m, FUSE_POLL) >= count && __atomic_load_n(&asked->flags, __ATOMIC_ACQUIRE);
}

/* Who waits is woken by the notification, and asks again: then it may wait on. */
TEST_F_TIMEOUT(poll, wakes, TEST_BOUND)
{
	struct mock_call *call;
	uint64_t kh;
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	call = mock_call(self->m, wait_for_file, &fd);
	ASSERT_TRUE(mock_wait(asked_to_notify, self->m, 1));
	kh = asked->kh;
	asked->flags = 0;
	EXPECT_EQ(0, wake(kh));
	/* Nothing has happened, it still waits. */
	ASSERT_TRUE(mock_wait(asked_to_notify, self->m, 2));
	EXPECT_EQ(kh, asked->kh);
	self->m->knob[ANSWER] = POLLIN;
	EXPECT_EQ(0, wake(kh));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(POLLIN, call->ret);
	close(fd);
	EXPECT_EQ(0, wake(kh));
}

TEST_F_TIMEOUT(poll, epoll, TEST_BOUND)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int fd[2], epoll = epoll_create1(0);
	uint64_t kh[2];

	START_NOTIFIED(self->m, "");
	for (int i = 0; i < 2; i++) {
		fd[i] = open(mock_path(self->m, "file"), O_RDONLY);
		ASSERT_GE(fd[i], 0);
		event.data.fd = i;
		ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd[i], &event));
		ASSERT_TRUE(mock_wait(asked_to_notify, self->m, i + 1));
		kh[i] = asked->kh;
		asked->flags = 0;
	}
	EXPECT_NE(kh[0], kh[1]);
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	self->m->knob[ANSWER] = POLLIN;
	EXPECT_EQ(0, wake(kh[1]));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, MOCK_WAIT_MS));
	EXPECT_EQ(1, event.data.fd);
	/* Closed while it is watched. */
	close(fd[1]);
	EXPECT_EQ(0, wake(kh[1]));
	EXPECT_EQ(0, wake(kh[0]));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, MOCK_WAIT_MS));
	EXPECT_EQ(0, event.data.fd);
	close(fd[0]);
	close(epoll);
}

/* Handles that mean nothing, and messages of another length. */
TEST_F_TIMEOUT(poll, hostile, TEST_BOUND)
{
	uint64_t kh = 1;

	START_NOTIFIED(self->m, "");
	EXPECT_EQ(0, wake(0));
	EXPECT_EQ(0, wake(UINT64_MAX));
	EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_POLL, &kh, 7));
	EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_POLL, &kh, 0));
	EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_POLL, (uint64_t[]){ 1, 2 }, 16));
}

/* The connection ends: who waits asks no more, and sees an error. */
TEST_F_TIMEOUT(poll, after_abort, TEST_BOUND)
{
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, poll_now(fd, POLLIN));
	umount2(self->m->dir, MNT_FORCE);
	EXPECT_EQ(POLLERR, poll_now(fd, POLLIN));
	close(fd);
}

TEST_HARNESS_MAIN
