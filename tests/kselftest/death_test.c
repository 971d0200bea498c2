// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon's death, and a forced umount, in each state of a request: pending, being read, sent, being answered,
 * finished. Every caller comes back, later calls get ENOTCONN, the umount works.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "fuse_test.h"

#define FILE_SIZE (4U << 20)

FIXTURE(death) {
	struct mock *m;
	uint64_t file, victim;
};

/* How the connection ends. */
FIXTURE_VARIANT(death) {
	bool force;	/* umount2(MNT_FORCE) with a living daemon, instead of killing it */
};

FIXTURE_VARIANT_ADD(death, killed) { .force = false };
FIXTURE_VARIANT_ADD(death, forced_umount) { .force = true };

FIXTURE_SETUP(death)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->victim = mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 10);
}

FIXTURE_TEARDOWN(death)
{
	mock_destroy(self->m);
}

static void end(struct mock *m, bool force)
{
	if (force)
		umount2(m->dir, MNT_FORCE);	/* aborts; the umount itself may find it busy */
	else
		mock_kill(m);
}

/* Nothing goes through the connection any more, and the mount comes off. */
static void dead(struct __test_metadata *_metadata, struct mock *m)
{
	struct stat st;

	/* A forced umount that was not busy took the mount with it. */
	if (stat(m->dir, &st) == 0 && st.st_ino != FUSE_ROOT_ID) {
		m->mounted = false;
		return;
	}
	EXPECT_CALL(ENOTCONN, m, mock_call_stat, mock_path(m, "later"));
	EXPECT_EQ(0, mock_umount(m));
}

/*
 * What a caller gets whose request was under way: in-tree says ECONNABORTED. ENOTCONN, as later calls get, is as good.
 * A copy that the daemon's end cuts off, and data by way of iomap, may be EIO.
 */
static void aborted(struct __test_metadata *_metadata, struct mock_call *call, int other)
{
	ASSERT_TRUE(mock_call_done(call)) {
		TH_LOG("the caller hangs");
	}
	EXPECT_EQ(-1, call->ret);
	EXPECT_TRUE(call->error == ECONNABORTED || call->error == ENOTCONN || call->error == other) {
		TH_LOG("%s", strerror(call->error));
	}
}

static int hold_victim(struct mock *m, struct mock_request *req)
{
	return strcmp(req->arg, "victim") ? MOCK_DEFAULT : MOCK_HOLD;
}

TEST_F_TIMEOUT(death, sent, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	START(self->m, "");
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	end(self->m, variant->force);
	aborted(_metadata, call, ENOTCONN);
	dead(_metadata, self->m);
}

/* Nobody reads: the request stays in the queue. The test itself is the daemon. */
TEST_F_TIMEOUT(death, pending, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	if (variant->force) {
		umount2(self->m->dir, MNT_FORCE);
	} else {
		close(mock_dev);
		mock_dev = -1;
	}
	aborted(_metadata, call, ENOTCONN);
	dead(_metadata, self->m);
}

/* The next read of the device goes to memory that is missing behind its first bytes. */
static int trap_read(struct mock *m, struct mock_request *req)
{
	if (strcmp(req->arg, "trap"))
		return MOCK_DEFAULT;
	m->buf = mock_fault_buffer(m, m->knob[0], m->buf_size);
	if (!m->buf)
		m->knob[1] = errno;
	return -ENOENT;
}

/* The daemon stands in read(2), between two halves of the header. */
static void being_read(struct __test_metadata *_metadata, FIXTURE_DATA(death) *self, size_t head,
		       struct mock_call **call)
{
	self->m->handler[FUSE_LOOKUP] = trap_read;
	self->m->knob[0] = head;
	START(self->m, "");
	EXPECT_CALL(ENOENT, self->m, mock_call_stat, mock_path(self->m, "trap"));
	ASSERT_EQ(0, self->m->knob[1]);
	*call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_fault(self->m));
}

TEST_F_TIMEOUT(death, being_read, TEST_BOUND)
{
	struct mock_call *call;

	being_read(_metadata, self, 20, &call);
	end(self->m, variant->force);
	aborted(_metadata, call, variant->force ? ENOTCONN : EIO);
	mock_resolve_faults(self->m);
	dead(_metadata, self->m);
}

TEST_F_TIMEOUT(death, being_read_first_byte, TEST_BOUND)
{
	struct mock_call *call;

	being_read(_metadata, self, 0, &call);
	end(self->m, variant->force);
	aborted(_metadata, call, variant->force ? ENOTCONN : EIO);
	mock_resolve_faults(self->m);
	dead(_metadata, self->m);
}

/* The answer's payload comes from missing memory: the daemon stands in write(2). */
static int trap_write(struct mock *m, struct mock_request *req)
{
	size_t head = m->knob[0], len = req->in->opcode == FUSE_READ ?
		((const struct fuse_read_in *)req->arg)->size : sizeof(struct fuse_entry_out);
	char *payload;

	if (req->in->opcode == FUSE_LOOKUP && strcmp(req->arg, "victim"))
		return MOCK_DEFAULT;
	payload = mock_fault_buffer(m, head, len);
	if (!payload)
		m->knob[1] = errno;
	mock_reply(m, req, 0, payload, len);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(death, being_answered, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = trap_write;
	self->m->knob[0] = 40;
	START(self->m, "");
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_fault(self->m));
	end(self->m, variant->force);
	aborted(_metadata, call, variant->force ? ENOTCONN : EIO);
	mock_resolve_faults(self->m);
	dead(_metadata, self->m);
}

/* The same with data for the page cache. */
TEST_F_TIMEOUT(death, being_answered_data, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_READ] = trap_write;
	self->m->knob[0] = 1000;
	START(self->m, "");
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_fault(self->m));
	end(self->m, variant->force);
	aborted(_metadata, call, EIO);
	mock_resolve_faults(self->m);
	/* The rest of the answer is not taken: its folios may be somebody else's by now. */
	if (variant->force)
		EXPECT_LT(0, mock_wait_answered(self->m, FUSE_READ));
	dead(_metadata, self->m);
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

/* Several READs in flight, readahead among them. */
TEST_F_TIMEOUT(death, reading, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_READ] = hold;
	START(self->m, "");
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_READ, 1));
	end(self->m, variant->force);
	aborted(_metadata, call, EIO);
	dead(_metadata, self->m);
}

/* Many callers at once, in every state that a stopped daemon leaves. */
TEST_F_TIMEOUT(death, many, TEST_BOUND)
{
	struct mock_call *call[16];
	char name[32];

	self->m->handler[FUSE_LOOKUP] = hold;
	START(self->m, "");
	/* Until INIT is answered, lookups in one directory come one by one. */
	ASSERT_EQ(0, mock_call_stat(self->m, self->m->dir));
	for (size_t i = 0; i < ARRAY_SIZE(call); i++) {
		snprintf(name, sizeof(name), "victim%zu", i);
		if (i == ARRAY_SIZE(call) / 2) {
			ASSERT_TRUE(mock_wait_held(self->m, i));
			kill(self->m->daemon, SIGSTOP);
		}
		call[i] = mock_call(self->m, mock_call_stat, mock_path(self->m, name));
	}
	usleep(100000);		/* for the second half to queue up */
	end(self->m, variant->force);
	for (size_t i = 0; i < ARRAY_SIZE(call); i++)
		aborted(_metadata, call[i], ENOTCONN);
	dead(_metadata, self->m);
}

/* What is finished stays: cached data is read without the daemon, closing works as far as it can. */
TEST_F_TIMEOUT(death, finished, TEST_BOUND)
{
	char byte;
	int fd;

	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, 100000);
	end(self->m, variant->force);
	EXPECT_CONTENT(fd, self->file, 0, 100000);
	EXPECT_EQ(-1, pread(fd, &byte, 1, FILE_SIZE - 1));
	EXPECT_TRUE(errno == EIO || errno == ENOTCONN);
	EXPECT_ERRNO(ENOTCONN, close(fd));
	dead(_metadata, self->m);
}

/* A page that cannot come any more is SIGBUS for who maps it. */
static long touch(struct mock *m, const void *map)
{
	return *(const volatile char *)map;
}

TEST_F_TIMEOUT(death, mapping, TEST_BOUND)
{
	struct mock_call *call;
	char *map;
	int fd, status;

	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, map, 100));
	end(self->m, variant->force);
	call = mock_call(self->m, touch, map + FILE_SIZE - 1);
	ASSERT_EQ(call->pid, waitpid(call->pid, &status, 0));
	call->pid = 0;
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	munmap(map, FILE_SIZE);
	close(fd);
	dead(_metadata, self->m);
}

/* Directory handles. */
TEST_F_TIMEOUT(death, directory, TEST_BOUND)
{
	char buf[1024];
	int fd;

	START(self->m, "");
	fd = open(self->m->dir, O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	end(self->m, variant->force);
	EXPECT_ERRNO(ENOTCONN, syscall(__NR_getdents64, fd, buf, sizeof(buf)));
	EXPECT_EQ(0, close(fd));
	dead(_metadata, self->m);
}

/* The other side's death. */
FIXTURE(caller) {
	struct mock *m;
};

FIXTURE_SETUP(caller)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 10);
}

FIXTURE_TEARDOWN(caller)
{
	mock_destroy(self->m);
}

/* A caller that is killed while its request is pending takes the request with it. */
TEST_F_TIMEOUT(caller, killed_pending, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	kill(call->pid, SIGKILL);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid) {
		TH_LOG("the killed caller hangs");
	}
	EXPECT_EQ(-1, mock_read(mock_dev, self->m->buf, self->m->buf_size));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, mock_start(self->m));
	EXPECT_CALL(0, self->m, mock_call_stat, mock_path(self->m, "victim"));
}

/* A caller that is killed while the daemon has the request goes when the daemon answers; the answer is good. */
TEST_F_TIMEOUT(caller, killed_sent, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	START(self->m, "");
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	kill(call->pid, SIGKILL);
	mock_release(self->m);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid);
	ASSERT_TRUE(mock_wait_held(self->m, 0));
	EXPECT_EQ(0, mock_wait_answered(self->m, FUSE_LOOKUP));
	self->m->handler[FUSE_LOOKUP] = NULL;
	EXPECT_CALL(0, self->m, mock_call_stat, mock_path(self->m, "victim"));
}

/* A caller that is killed does not outlive the daemon either. */
TEST_F_TIMEOUT(caller, killed_then_death, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_LOOKUP] = hold_victim;
	START(self->m, "");
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	kill(call->pid, SIGKILL);
	mock_kill(self->m);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid);
	EXPECT_EQ(0, mock_umount(self->m));
}

/* Many mounts whose daemons die under load, one after the other. */
TEST_F_TIMEOUT(caller, again_and_again, TEST_BOUND)
{
	mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 4 << 20);
	for (int i = 0; i < 20; i++) {
		struct mock_call *call[3];

		self->m->call_count = 0;
		self->m->records = 0;
		START(self->m, "");
		for (size_t n = 0; n < ARRAY_SIZE(call); n++)
			call[n] = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
		ASSERT_TRUE(mock_wait_seen(self->m, FUSE_READ, 1 + i % 7));
		mock_kill(self->m);
		for (size_t n = 0; n < ARRAY_SIZE(call); n++)
			ASSERT_TRUE(mock_call_done(call[n]));
		ASSERT_EQ(0, mock_umount(self->m));
		munmap(self->m->buf, self->m->buf_size);
	}
}

TEST_HARNESS_MAIN
