// SPDX-License-Identifier: GPL-2.0
/*
 * Signals to callers that wait: the daemon gets an INTERRUPT, may answer it, and no signal loses an answer or a lookup.
 */
#include <signal.h>
#include <sys/wait.h>

#include "fuse_test.h"

FIXTURE(interrupt) {
	struct mock *m;
	uint64_t victim;
};

FIXTURE_SETUP(interrupt)
{
	SETUP_MOCK(self->m);
	self->victim = mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 10);
	mock_add(self->m, FUSE_ROOT_ID, "other", S_IFREG | 0644, 10);
}

FIXTURE_TEARDOWN(interrupt)
{
	mock_destroy(self->m);
}

static void handler(int signal)
{
}

/* Callers with a handler for SIGUSR1 that does not restart. */
static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGUSR1, &action, NULL);
}

static long handled_stat(struct mock *m, const void *path)
{
	struct stat st;

	handle_signals();
	return stat(path, &st);
}

static int hold_victim(struct mock *m, struct mock_request *req)
{
	return strcmp(req->arg, "victim") ? MOCK_DEFAULT : MOCK_HOLD;
}

/* What an INTERRUPT says of the last request of @opcode. */
static void names(struct __test_metadata *_metadata, struct mock *m, uint32_t opcode)
{
	struct mock_record *record = mock_last(m, FUSE_INTERRUPT), *of = mock_last(m, opcode);
	struct fuse_interrupt_in arg;

	ASSERT_NE(NULL, record);
	memcpy(&arg, record->head + sizeof(record->in), sizeof(arg));
	EXPECT_EQ(of->in.unique, arg.unique);
	EXPECT_EQ(of->in.unique | 1, record->in.unique);
	EXPECT_EQ(sizeof(record->in) + sizeof(arg), record->in.len);
	EXPECT_EQ(0, record->in.nodeid);
	EXPECT_EQ(0, record->in.uid);
	EXPECT_EQ(0, record->in.gid);
	EXPECT_EQ(0, record->in.pid);
}

/* Signals, however many, are one INTERRUPT; it may be ignored, the answer is good. */
TEST_F_TIMEOUT(interrupt, ignored, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	START(self->m, "");
	call = mock_call(self->m, handled_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	for (int i = 0; i < 3; i++)
		kill(call->pid, SIGUSR1);
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_INTERRUPT, 1));
	names(_metadata, self->m, FUSE_LOOKUP);
	kill(call->pid, SIGUSR1);
	usleep(50000);
	EXPECT_EQ(1, mock_count(self->m, FUSE_INTERRUPT));
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
}

/* The daemon answers the request that was interrupted. */
static int answer_eintr(struct mock *m, struct mock_request *req)
{
	const struct fuse_interrupt_in *in = req->arg;

	if (mock_write_raw(mock_dev, in->unique, sizeof(struct fuse_out_header), -EINTR, NULL, 0) < 0)
		m->knob[0] = errno;
	return MOCK_DONE;
}

TEST_F_TIMEOUT(interrupt, answered, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	self->m->handler[FUSE_INTERRUPT] = answer_eintr;
	START(self->m, "");
	call = mock_call(self->m, handled_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	kill(call->pid, SIGUSR1);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(EINTR, call->error);
	EXPECT_EQ(0, self->m->knob[0]);
}

/* A fatal signal is one INTERRUPT, too, and the caller goes when the answer has come. */
TEST_F_TIMEOUT(interrupt, killed, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	self->m->handler[FUSE_INTERRUPT] = answer_eintr;
	START(self->m, "");
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	kill(call->pid, SIGKILL);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid) {
		TH_LOG("the killed caller hangs");
	}
	EXPECT_EQ(1, mock_count(self->m, FUSE_INTERRUPT));
	EXPECT_EQ(0, self->m->knob[0]);
	self->m->handler[FUSE_LOOKUP] = NULL;
	EXPECT_CALL(0, self->m, mock_call_stat, mock_path(self->m, "victim"));
}

/* The test is the daemon: INIT is answered, the LOOKUP of "victim" taken or left in the queue. */
static struct mock_call *pending(struct __test_metadata *_metadata, struct mock *m, struct mock_request *req, bool take)
{
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(m, ""));
	ASSERT_EQ(0, mock_take(m, req));
	mock_serve(m, req);
	call = mock_call(m, handled_stat, mock_path(m, "victim"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	if (take) {
		ASSERT_EQ(0, mock_take(m, req));
		EXPECT_EQ(FUSE_LOOKUP, req->in->opcode);
	}
	return call;
}

/* A signal that comes first: the daemon hears of it when it has the request. */
TEST_F_TIMEOUT(interrupt, before_the_request, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = pending(_metadata, self->m, &req, false);

	kill(call->pid, SIGUSR1);
	usleep(50000);
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(FUSE_LOOKUP, req.in->opcode);
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(FUSE_INTERRUPT, req.in->opcode);
	names(_metadata, self->m, FUSE_LOOKUP);
	mock_write_raw(mock_dev, mock_last(self->m, FUSE_LOOKUP)->in.unique, sizeof(struct fuse_out_header), -EINTR,
		       NULL, 0);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(EINTR, call->error);
}

/* It comes before anything else that waits. */
TEST_F_TIMEOUT(interrupt, comes_first, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = pending(_metadata, self->m, &req, true), *other;
	uint64_t unique = req.in->unique;

	other = mock_call(self->m, mock_call_stat, mock_path(self->m, "other"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	kill(call->pid, SIGUSR1);
	usleep(50000);
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(FUSE_INTERRUPT, req.in->opcode);
	mock_write_raw(mock_dev, unique, sizeof(struct fuse_out_header), -ENOENT, NULL, 0);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(ENOENT, call->error);
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_TRUE(mock_call_done(other));
	EXPECT_EQ(0, other->error);
}

/* Nobody is told of a signal when the request is answered already. */
TEST_F_TIMEOUT(interrupt, too_late, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = pending(_metadata, self->m, &req, true);

	kill(call->pid, SIGUSR1);
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	mock_write_raw(mock_dev, req.in->unique, sizeof(struct fuse_out_header), -ENOENT, NULL, 0);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_ERRNO(EAGAIN, mock_read(mock_dev, self->m->buf, self->m->buf_size));
}

/* Answers to the INTERRUPT itself. EAGAIN is for a request that the daemon has not seen yet: it is told again. */
TEST_F_TIMEOUT(interrupt, again, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = pending(_metadata, self->m, &req, true);
	uint64_t unique = req.in->unique;
	const size_t len = sizeof(struct fuse_out_header);

	/* There was none yet. */
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, unique | 1, len, -EAGAIN, NULL, 0));
	kill(call->pid, SIGUSR1);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, mock_take(self->m, &req));
		EXPECT_EQ(FUSE_INTERRUPT, req.in->opcode);
		EXPECT_EQ(unique | 1, req.in->unique);
		EXPECT_EQ(len, mock_write_raw(mock_dev, unique | 1, len, -EAGAIN, NULL, 0));
	}
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(FUSE_INTERRUPT, req.in->opcode);
	/* Any other answer says nothing. */
	EXPECT_EQ(len, mock_write_raw(mock_dev, unique | 1, len, 0, NULL, 0));
	EXPECT_EQ(len, mock_write_raw(mock_dev, unique | 1, len, -EIO, NULL, 0));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, unique | 1, len + 8, 0, "payload", 8));
	EXPECT_ERRNO(EAGAIN, mock_read(mock_dev, self->m->buf, self->m->buf_size));
	EXPECT_EQ(len, mock_write_raw(mock_dev, unique, len, -ENOENT, NULL, 0));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(ENOENT, call->error);
	EXPECT_ERRNO(ENOENT, mock_write_raw(mock_dev, unique | 1, len, -EAGAIN, NULL, 0));
}

/* ENOSYS is for ever. */
TEST_F_TIMEOUT(interrupt, unknown, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = pending(_metadata, self->m, &req, true);
	uint64_t unique = req.in->unique;
	const size_t len = sizeof(struct fuse_out_header);

	kill(call->pid, SIGUSR1);
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(FUSE_INTERRUPT, req.in->opcode);
	EXPECT_EQ(len, mock_write_raw(mock_dev, unique | 1, len, -ENOSYS, NULL, 0));
	EXPECT_EQ(len, mock_write_raw(mock_dev, unique, len, -ENOENT, NULL, 0));
	ASSERT_TRUE(mock_call_done(call));

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	ASSERT_EQ(0, mock_start(self->m));
	call = mock_call(self->m, handled_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	kill(call->pid, SIGUSR1);
	usleep(50000);
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
	EXPECT_EQ(1, mock_count(self->m, FUSE_INTERRUPT));
}

static long open_and_wait(struct mock *m, const void *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	__atomic_store_n(&m->knob[1], 1, __ATOMIC_RELEASE);
	pause();
	return 0;
}

static bool knob_set(struct mock *m, uint64_t knob)
{
	return __atomic_load_n(&m->knob[knob], __ATOMIC_ACQUIRE);
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

/* What must reach the daemon does, though its sender was killed: FLUSH, and RELEASE after it. */
TEST_F_TIMEOUT(interrupt, forced, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_FLUSH] = hold;
	START(self->m, "");
	call = mock_call(self->m, open_and_wait, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait(knob_set, self->m, 1));
	/* A daemon that does not read: the killed caller's FLUSH waits for it. */
	ASSERT_EQ(0, kill(self->m->daemon, SIGSTOP));
	kill(call->pid, SIGKILL);
	usleep(50000);
	EXPECT_EQ(0, waitpid(call->pid, NULL, WNOHANG));
	ASSERT_EQ(0, kill(self->m->daemon, SIGCONT));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	EXPECT_EQ(0, mock_count(self->m, FUSE_RELEASE));
	mock_release(self->m);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid);
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 1));
	EXPECT_EQ(1, mock_count(self->m, FUSE_FLUSH));
}

static bool all_forgotten(struct mock *m, uint64_t arg)
{
	static int tries;

	if (tries++ % 100 == 0)
		mock_drop_caches();
	return mock_owed(m) == 0;
}

static void balanced(struct __test_metadata *_metadata, struct mock *m)
{
	EXPECT_TRUE(mock_wait(all_forgotten, m, 0));
	for (uint64_t id = FUSE_ROOT_ID + 1; id <= m->nodes; id++)
		EXPECT_EQ(mock_node(m, id)->lookups, mock_node(m, id)->forgotten);
	EXPECT_FALSE(m->records_lost);
}

static int leave(struct mock *m, struct mock_request *req)
{
	return MOCK_DONE;
}

/* A LOOKUP is answered when its caller is interrupted, every second one with EINTR. */
static int answer_lookup(struct mock *m, struct mock_request *req)
{
	const struct fuse_interrupt_in *in = req->arg;
	struct fuse_entry_out out = { .attr_valid = 3600 };
	struct mock_record *record = &m->record[m->records - 1];

	if (m->knob[2]++ % 2)
		return answer_eintr(m, req);
	while (record->in.unique != in->unique)
		record--;
	out.nodeid = mock_find(m, FUSE_ROOT_ID, (const char *)record->head + sizeof(record->in));
	mock_attr(m, out.nodeid, &out.attr);
	mock_node(m, out.nodeid)->lookups++;
	if (mock_write_raw(mock_dev, in->unique, sizeof(struct fuse_out_header) + sizeof(out), 0, &out, sizeof(out)) < 0)
		m->knob[0] = errno;
	return MOCK_DONE;
}

static int slow_lookup(struct mock *m, struct mock_request *req)
{
	usleep(200);
	return MOCK_DEFAULT;
}

static long stat_often(struct mock *m, const void *path)
{
	struct stat st;

	for (int i = 0; i < 200; i++)
		if (stat(path, &st) && errno != EINTR)
			return -1;
	return 0;
}

/* Signals in a row lose neither an answer nor a lookup that the daemon has counted. */
TEST_F_TIMEOUT(interrupt, storm, TEST_BOUND)
{
	struct mock_call *call[4];
	bool alive = true;

	self->m->entry_valid = 0;
	self->m->handler[FUSE_LOOKUP] = leave;
	self->m->handler[FUSE_INTERRUPT] = answer_lookup;
	handle_signals();
	START(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(call); i++)
		call[i] = mock_call(self->m, stat_often, mock_path(self->m, i % 2 ? "victim" : "other"));
	for (int i = 0; alive && i < MOCK_WAIT_MS; i++) {
		alive = false;
		for (size_t n = 0; n < ARRAY_SIZE(call); n++) {
			if (__atomic_load_n(&call[n]->done, __ATOMIC_ACQUIRE))
				continue;
			alive = true;
			kill(call[n]->pid, SIGUSR1);
		}
		usleep(300);
	}
	for (size_t i = 0; i < ARRAY_SIZE(call); i++) {
		ASSERT_TRUE(mock_call_done(call[i]));
		EXPECT_EQ(0, call[i]->error);
	}
	EXPECT_EQ(0, self->m->knob[0]);
	EXPECT_EQ(mock_count(self->m, FUSE_LOOKUP), mock_count(self->m, FUSE_INTERRUPT));
	balanced(_metadata, self->m);
}

/* The same with callers that are killed, in whatever state their request is. */
TEST_F_TIMEOUT(interrupt, kills, TEST_BOUND)
{
	self->m->entry_valid = 0;
	self->m->handler[FUSE_LOOKUP] = slow_lookup;
	START(self->m, "");
	for (int i = 0; i < 30; i++) {
		struct mock_call *call[3];

		self->m->call_count = 0;
		for (size_t n = 0; n < ARRAY_SIZE(call); n++)
			call[n] = mock_call(self->m, stat_often, mock_path(self->m, n % 2 ? "victim" : "other"));
		usleep(500 + i * 100);
		for (size_t n = 0; n < ARRAY_SIZE(call); n++)
			kill(call[n]->pid, SIGKILL);
		for (size_t n = 0; n < ARRAY_SIZE(call); n++) {
			mock_call_done(call[n]);
			ASSERT_EQ(0, call[n]->pid);
		}
	}
	balanced(_metadata, self->m);
}

TEST_HARNESS_MAIN
