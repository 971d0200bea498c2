// SPDX-License-Identifier: GPL-2.0
/* FUSE_NOTIFY_RESEND: a daemon that has forgotten what it was asked gets it again. The test itself is the daemon. */
#include <signal.h>

#include "fuse_test.h"

#define UNIQUE_RESEND (1ULL << 63)

FIXTURE(resend) {
	struct mock *m;
	uint64_t file;
};

static void handler(int signal)
{
}

FIXTURE_SETUP(resend)
{
	struct sigaction action = { .sa_handler = handler };

	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 300000);
	mock_add(self->m, FUSE_ROOT_ID, "first", S_IFREG | 0644, 10);
	mock_add(self->m, FUSE_ROOT_ID, "second", S_IFREG | 0644, 10);
	mock_add(self->m, FUSE_ROOT_ID, "third", S_IFREG | 0644, 10);
	/* Callers have it, too. */
	sigaction(SIGUSR1, &action, NULL);
}

FIXTURE_TEARDOWN(resend)
{
	mock_destroy(self->m);
}

static int resend(void)
{
	return mock_write_raw(mock_dev, 0, sizeof(struct fuse_out_header), FUSE_NOTIFY_RESEND, NULL, 0);
}

static int answer(uint64_t unique, int error)
{
	return mock_write_raw(mock_dev, unique, sizeof(struct fuse_out_header), error, NULL, 0);
}

static void take(struct __test_metadata *_metadata, struct mock *m, uint32_t opcode, struct mock_request *req)
{
	ASSERT_EQ(0, mock_take(m, req));
	ASSERT_EQ(opcode, req->in->opcode);
}

/* INIT is answered. */
static void begin(struct __test_metadata *_metadata, struct mock *m)
{
	struct mock_request req;

	m->init.out.flags |= FUSE_INIT_EXT;
	m->init.out.flags2 |= FUSE_HAS_RESEND >> 32;
	ASSERT_EQ(0, mock_mount(m, ""));
	take(_metadata, m, FUSE_INIT, &req);
	EXPECT_ERRNO(EINVAL, resend());
	mock_serve(m, &req);
	EXPECT_NE(0, m->offered.flags2 & (FUSE_HAS_RESEND >> 32));
}

/* A caller of stat whose LOOKUP the daemon has. */
static struct mock_call *sent(struct __test_metadata *_metadata, struct mock *m, const char *name, uint64_t *unique)
{
	struct mock_call *call = mock_call(m, mock_call_stat, mock_path(m, name));
	struct mock_request req;

	take(_metadata, m, FUSE_LOOKUP, &req);
	*unique = req.in->unique;
	return call;
}

static void nothing_waits(struct __test_metadata *_metadata, struct mock *m)
{
	EXPECT_ERRNO(EAGAIN, mock_read(mock_dev, m->buf, m->buf_size));
}

#define ANY_ORDER KNOWN_DIFFERENCE("what is sent again comes in the order of a hash table")

TEST_F_TIMEOUT(resend, oldest_first, TEST_BOUND)
{
	bool any_order = ANY_ORDER;
	struct mock_call *call[3];
	struct mock_request req;
	uint64_t unique[2];

	begin(_metadata, self->m);
	EXPECT_EQ(sizeof(struct fuse_out_header), resend());
	nothing_waits(_metadata, self->m);
	call[0] = sent(_metadata, self->m, "first", &unique[0]);
	call[1] = sent(_metadata, self->m, "second", &unique[1]);
	call[2] = mock_call(self->m, mock_call_stat, mock_path(self->m, "third"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	EXPECT_EQ(sizeof(struct fuse_out_header), resend());
	/* They are not with the daemon now. */
	EXPECT_ERRNO(ENOENT, answer(unique[0], -EIO));
	EXPECT_ERRNO(ENOENT, answer(unique[0] | UNIQUE_RESEND, -EIO));
	for (int i = 0; i < 2; i++) {
		int n;

		take(_metadata, self->m, FUSE_LOOKUP, &req);
		n = !strcmp("second", req.arg);
		if (!any_order)
			EXPECT_EQ(i, n);
		EXPECT_EQ(unique[n] | UNIQUE_RESEND, req.in->unique);
		EXPECT_ERRNO(ENOENT, answer(unique[n], -EIO));
		mock_serve(self->m, &req);
		ASSERT_TRUE(mock_call_done(call[n]));
		EXPECT_EQ(0, call[n]->error);
		EXPECT_ERRNO(ENOENT, answer(unique[n] | UNIQUE_RESEND, -EIO));
	}
	take(_metadata, self->m, FUSE_LOOKUP, &req);
	EXPECT_STREQ("third", req.arg);
	EXPECT_EQ(0, req.in->unique & UNIQUE_RESEND);
	mock_serve(self->m, &req);
	ASSERT_TRUE(mock_call_done(call[2]));
	EXPECT_EQ(0, call[2]->error);
	nothing_waits(_metadata, self->m);
}

/* As often as the daemon wants. */
TEST_F_TIMEOUT(resend, again, TEST_BOUND)
{
	struct mock_call *call;
	struct mock_request req;
	uint64_t unique;

	begin(_metadata, self->m);
	call = sent(_metadata, self->m, "first", &unique);
	for (int i = 0; i < 3; i++) {
		EXPECT_LT(0, resend());
		EXPECT_LT(0, resend());
		take(_metadata, self->m, FUSE_LOOKUP, &req);
		EXPECT_EQ(unique | UNIQUE_RESEND, req.in->unique);
		nothing_waits(_metadata, self->m);
	}
	EXPECT_LT(0, answer(req.in->unique, -ENOENT));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(ENOENT, call->error);
}

/* The daemon is told again of the signal that it was told of, or was about to be. */
TEST_F_TIMEOUT(resend, interrupted, TEST_BOUND)
{
	struct mock_call *call;
	struct mock_request req;
	uint64_t unique;

	begin(_metadata, self->m);
	call = sent(_metadata, self->m, "first", &unique);
	kill(call->pid, SIGUSR1);
	take(_metadata, self->m, FUSE_INTERRUPT, &req);
	EXPECT_EQ(unique | 1, req.in->unique);
	for (int i = 0; i < 2; i++) {
		EXPECT_LT(0, resend());
		EXPECT_ERRNO(ENOENT, answer(unique | 1, -EAGAIN));
		take(_metadata, self->m, FUSE_LOOKUP, &req);
		EXPECT_EQ(unique | UNIQUE_RESEND, req.in->unique);
		if (i) {
			take(_metadata, self->m, FUSE_INTERRUPT, &req);
			EXPECT_EQ(unique | UNIQUE_RESEND | 1, req.in->unique);
		} else {
			ASSERT_TRUE(mock_wait_readable(mock_dev));
		}
	}
	EXPECT_LT(0, answer(unique | UNIQUE_RESEND, -EINTR));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(EINTR, call->error);
	nothing_waits(_metadata, self->m);
}

/* A caller that is killed takes its request back, now that the daemon has it no more. */
TEST_F_TIMEOUT(resend, killed, TEST_BOUND)
{
	struct mock_call *call;
	uint64_t unique;

	begin(_metadata, self->m);
	call = sent(_metadata, self->m, "first", &unique);
	EXPECT_LT(0, resend());
	kill(call->pid, SIGKILL);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid) {
		TH_LOG("the killed caller hangs");
	}
	nothing_waits(_metadata, self->m);
	EXPECT_ERRNO(ENOENT, answer(unique | UNIQUE_RESEND, -EIO));
}

static long read_all(struct mock *m, const void *path)
{
	static char data[300000];
	int fd = open(path, O_RDONLY);
	size_t done = 0;
	ssize_t n;

	while (done < sizeof(data) && (n = read(fd, data + done, sizeof(data) - done)) > 0)
		done += n;
	close(fd);
	return mock_mismatch(m->knob[0], 0, data, sizeof(data)) == -1 && done == sizeof(data) ? 0 : 1;
}

/* Data for the page cache, twice asked for. */
TEST_F_TIMEOUT(resend, reads, TEST_BOUND)
{
	bool any_order = ANY_ORDER;
	struct mock_call *call;
	struct mock_request req;
	uint64_t unique[16];
	int reads = 0;

	self->m->knob[0] = self->file;
	self->m->init.out.max_pages = 8;
	begin(_metadata, self->m);
	call = mock_call(self->m, read_all, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_READ, &req));
	unique[reads++] = req.in->unique;
	usleep(50000);
	while (reads < 16 && mock_read(mock_dev, self->m->buf, self->m->buf_size) > 0)
		unique[reads++] = ((struct fuse_in_header *)self->m->buf)->unique;
	EXPECT_LT(1, reads);
	EXPECT_LT(0, resend());
	for (int i = 0; i < reads; i++) {
		take(_metadata, self->m, FUSE_READ, &req);
		if (!any_order)
			EXPECT_EQ(unique[i] | UNIQUE_RESEND, req.in->unique);
		EXPECT_NE(0, req.in->unique & UNIQUE_RESEND);
		mock_serve(self->m, &req);
	}
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->ret);
}

/* Whatever way a request is on, an end of the connection finds it. */
TEST_F_TIMEOUT(resend, then_death, TEST_BOUND)
{
	struct mock_call *call[2];
	struct mock_request req;
	uint64_t unique;

	begin(_metadata, self->m);
	call[0] = sent(_metadata, self->m, "first", &unique);
	call[1] = sent(_metadata, self->m, "second", &unique);
	EXPECT_LT(0, resend());
	take(_metadata, self->m, FUSE_LOOKUP, &req);
	close(mock_dev);
	mock_dev = -1;
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(mock_call_done(call[i]));
		EXPECT_TRUE(call[i]->error == ECONNABORTED || call[i]->error == ENOTCONN);
	}
}

TEST_HARNESS_MAIN
