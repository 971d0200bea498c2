// SPDX-License-Identifier: GPL-2.0
/* Servers that take too long for an answer. */
#include <sys/mman.h>
#include <time.h>

#include "fuse_test.h"

/* Seconds: the least there is, as timeouts are looked for this often. */
#define TIMEOUT 15

FIXTURE(timeout) {
	struct mock *m;
	char path[128];
	long old;
};

FIXTURE_SETUP(timeout)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 10);
	mock_add(self->m, FUSE_ROOT_ID, "other", S_IFREG | 0644, 10);
	snprintf(self->path, sizeof(self->path), "/proc/sys/fs/%s/max_request_timeout", mock_client());
	self->old = mock_read_number(self->path);
	ASSERT_LE(0, self->old);
	self->m->init.out.flags |= FUSE_INIT_EXT;
	self->m->init.out.flags2 |= FUSE_REQUEST_TIMEOUT >> 32;
}

FIXTURE_TEARDOWN(timeout)
{
	char text[16];

	snprintf(text, sizeof(text), "%ld", self->old);
	mock_write_file(self->path, text);
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(timeout, bounds, TEST_BOUND)
{
	EXPECT_EQ(0, mock_write_file(self->path, "65535"));
	EXPECT_EQ(65535, mock_read_number(self->path));
	EXPECT_EQ(-1, mock_write_file(self->path, "65536"));
	EXPECT_EQ(-1, mock_write_file(self->path, "-1"));
	EXPECT_EQ(65535, mock_read_number(self->path));
	EXPECT_EQ(0, mock_write_file(self->path, "0"));
}

static int hold_victim(struct mock *m, struct mock_request *req)
{
	return strcmp(req->arg, "victim") ? MOCK_DEFAULT : MOCK_HOLD;
}

static long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/*
 * One request that is not answered ends the connection, whatever others are answered meanwhile: not before its time,
 * and at most as long after it as the client takes from one look to the next. The daemon would have more time; the
 * administrator allows less.
 */
TEST_F_TIMEOUT(timeout, expired, TEST_BOUND)
{
	struct mock_call *call;
	long begin;

	ASSERT_EQ(0, mock_write_file(self->path, "1"));
	self->m->init.out.request_timeout = 3600;
	self->m->handler[FUSE_LOOKUP] = hold_victim;
	self->m->entry_valid = 0;
	START(self->m, "");
	ASSERT_EQ(0, mock_call_stat(self->m, mock_path(self->m, "other")));
	EXPECT_NE(0, self->m->offered.flags2 & (FUSE_REQUEST_TIMEOUT >> 32));
	begin = now();
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	while (now() < begin + TIMEOUT - 1) {
		ASSERT_EQ(0, mock_call_stat(self->m, mock_path(self->m, "other")));
		usleep(500000);
	}
	ASSERT_TRUE(mock_call_done(call)) {
		TH_LOG("no timeout");
	}
	EXPECT_EQ(ECONNABORTED, call->error);
	EXPECT_LE(begin + TIMEOUT, now());
	EXPECT_CALL(ENOTCONN, self->m, mock_call_stat, mock_path(self->m, "other"));
	EXPECT_EQ(0, mock_umount(self->m));
}

/* An unmount does not leave the clock behind. */
TEST_F_TIMEOUT(timeout, umount, TEST_BOUND)
{
	self->m->init.out.request_timeout = TIMEOUT;
	for (int i = 0; i < 5; i++) {
		START(self->m, "");
		ASSERT_EQ(0, mock_call_stat(self->m, mock_path(self->m, "other")));
		ASSERT_EQ(0, mock_umount(self->m));
		mock_kill(self->m);
		munmap(self->m->buf, self->m->buf_size);
	}
}

TEST_HARNESS_MAIN
