// SPDX-License-Identifier: GPL-2.0
/* Requests in the background: max_background, congestion_threshold, and who waits for whom. */
#include <signal.h>
#include <sys/mman.h>

#include "fuse_test.h"

#define PAGES_PER_READ	8
#define FILE_SIZE	(1U << 20)

FIXTURE(background) {
	struct mock *m;
};

FIXTURE_SETUP(background)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "one", S_IFREG | 0644, FILE_SIZE);
	mock_add(self->m, FUSE_ROOT_ID, "two", S_IFREG | 0644, FILE_SIZE);
	self->m->init.out.max_pages = PAGES_PER_READ;
}

FIXTURE_TEARDOWN(background)
{
	mock_destroy(self->m);
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

/* Mounts with a readahead window of 16 READs. */
static void begin(struct __test_metadata *_metadata, struct mock *m)
{
	m->handler[FUSE_READ] = hold;
	START(m, "");
	/* INIT is answered then. */
	ASSERT_EQ(0, mock_call_stat(m, mock_path(m, "one")));
	ASSERT_EQ(0, mock_set_readahead_kb(m, 16 * PAGES_PER_READ * MOCK_PAGE / 1024));
}

/* READs that the daemon gets until it gets no more. */
static uint32_t reads(struct mock *m)
{
	uint32_t seen = 0, before;

	mock_wait_seen(m, FUSE_READ, 1);
	do {
		before = seen;
		usleep(200000);
		seen = mock_count(m, FUSE_READ);
	} while (seen != before);
	return seen;
}

static void release(struct mock *m)
{
	m->handler[FUSE_READ] = NULL;
	mock_release(m);
}

TEST_F_TIMEOUT(background, limit, TEST_BOUND)
{
	struct mock_call *one, *two;

	self->m->init.out.max_background = 2;
	self->m->init.out.congestion_threshold = 100;
	begin(_metadata, self->m);
	one = mock_call(self->m, mock_call_open_read, mock_path(self->m, "one"));
	two = mock_call(self->m, mock_call_open_read, mock_path(self->m, "two"));
	EXPECT_EQ(2, reads(self->m));
	/* Others than these are not held up. */
	EXPECT_CALL(ENOENT, self->m, mock_call_stat, mock_path(self->m, "none"));
	release(self->m);
	ASSERT_TRUE(mock_call_done(one));
	ASSERT_TRUE(mock_call_done(two));
	EXPECT_EQ(FILE_SIZE, one->ret);
	EXPECT_EQ(FILE_SIZE, two->ret);
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 2));
}

/* One reader has the only place that there is, the other one waits for it. */
static void one_waits(struct __test_metadata *_metadata, struct mock *m, struct mock_call **one, struct mock_call **two)
{
	m->init.out.max_background = 1;
	m->init.out.congestion_threshold = 100;
	begin(_metadata, m);
	*one = mock_call(m, mock_call_open_read, mock_path(m, "one"));
	EXPECT_EQ(1, reads(m));
	*two = mock_call(m, mock_call_open_read, mock_path(m, "two"));
	ASSERT_TRUE(mock_wait_seen(m, FUSE_OPEN, 2));
	usleep(100000);
}

/* Who waits for his turn can be killed; the file that he closes then is released in its turn. */
TEST_F_TIMEOUT(background, killed_waiter, TEST_BOUND)
{
	struct mock_call *one, *two;

	one_waits(_metadata, self->m, &one, &two);
	kill(two->pid, SIGKILL);
	EXPECT_FALSE(mock_call_done(two));
	EXPECT_EQ(0, two->pid) {
		TH_LOG("the killed caller hangs");
	}
	EXPECT_EQ(1, mock_count(self->m, FUSE_READ));
	EXPECT_EQ(0, mock_count(self->m, FUSE_RELEASE));
	release(self->m);
	ASSERT_TRUE(mock_call_done(one));
	EXPECT_EQ(FILE_SIZE, one->ret);
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 2));
	EXPECT_CALL(0, self->m, mock_call_open_read, mock_path(self->m, "two"));
}

/* Waiters come back when the connection ends. */
TEST_F_TIMEOUT(background, death, TEST_BOUND)
{
	struct mock_call *one, *two;

	one_waits(_metadata, self->m, &one, &two);
	mock_kill(self->m);
	ASSERT_TRUE(mock_call_done(one));
	ASSERT_TRUE(mock_call_done(two));
	EXPECT_EQ(-1, one->ret);
	EXPECT_EQ(-1, two->ret);
	EXPECT_EQ(0, mock_umount(self->m));
}

/* With many under way, what nobody waits for is not read in advance. */
TEST_F_TIMEOUT(background, congested, TEST_BOUND)
{
	uint32_t advance[2];

	for (int i = 0; i < 2; i++) {
		struct mock_call *call;

		self->m->init.out.max_background = 100;
		self->m->init.out.congestion_threshold = i ? 1 : 100;
		self->m->call_count = 0;
		self->m->records = 0;
		begin(_metadata, self->m);
		call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "one"));
		advance[i] = reads(self->m);
		release(self->m);
		ASSERT_TRUE(mock_call_done(call));
		EXPECT_EQ(FILE_SIZE, call->ret);
		EXPECT_EQ(FILE_SIZE, mock_sum_size(self->m, FUSE_READ, mock_find(self->m, FUSE_ROOT_ID, "one")));
		mock_kill(self->m);
		ASSERT_EQ(0, mock_umount(self->m));
		munmap(self->m->buf, self->m->buf_size);
	}
	TH_LOG("%u READs in advance, %u congested", advance[0], advance[1]);
	EXPECT_LT(advance[1], advance[0]);
	EXPECT_LT(0, advance[1]);
}

TEST_HARNESS_MAIN
