// SPDX-License-Identifier: GPL-2.0
/* Locks of fcntl(2) and flock(2): at the server, or among the callers where it takes none; leases. */
#define _GNU_SOURCE
#include <sys/file.h>
#include <sys/wait.h>

#include "fuse_test.h"

#define ARG(record, type) ((const type *)((record)->head + sizeof(struct fuse_in_header)))

FIXTURE(lock) {
	struct mock *m;
	uint64_t file;
	int fd;
};

FIXTURE_SETUP(lock)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 1000);
}

FIXTURE_TEARDOWN(lock)
{
	mock_destroy(self->m);
}

#define START_LOCKS(flags_)						\
	do {								\
		self->m->init.out.flags |= (flags_);			\
		START(self->m, "");					\
		self->fd = open(mock_path(self->m, "file"), O_RDONLY);	\
		ASSERT_LE(0, self->fd);					\
	} while (0)

/* Knobs: errno, or the lock in the way that GETLK is told of. */
enum { ERRNO, TYPE, FROM, TO, PID };

static int answer(struct mock *m, struct mock_request *req)
{
	struct fuse_lk_out out = { .lk = {
		.start = m->knob[FROM], .end = m->knob[TO], .type = m->knob[TYPE], .pid = m->knob[PID],
	} };

	if (m->knob[ERRNO])
		return -(int)m->knob[ERRNO];
	mock_reply(m, req, 0, &out, req->in->opcode == FUSE_GETLK ? sizeof(out) : 0);
	return MOCK_DONE;
}

#define ANSWER(m)							\
	((m)->handler[FUSE_GETLK] = (m)->handler[FUSE_SETLK] = (m)->handler[FUSE_SETLKW] = answer)

static long lock(int fd, int cmd, int type, off_t start, off_t len)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	return fcntl(fd, cmd, &fl);
}

TEST_F_TIMEOUT(lock, posix_at_server, TEST_BOUND)
{
	const struct fuse_lk_in *in;
	struct mock *m = self->m;
	uint64_t owner;

	ANSWER(m);
	START_LOCKS(FUSE_POSIX_LOCKS);
	EXPECT_EQ(0, lock(self->fd, F_SETLK, F_RDLCK, 10, 20));
	in = ARG(mock_last(m, FUSE_SETLK), struct fuse_lk_in);
	EXPECT_EQ(1U, in->fh);
	EXPECT_EQ(10U, in->lk.start);
	EXPECT_EQ(29U, in->lk.end);
	EXPECT_EQ((uint32_t)F_RDLCK, in->lk.type);
	EXPECT_EQ((uint32_t)getpid(), in->lk.pid);
	EXPECT_EQ(0U, in->lk_flags);
	owner = in->owner;
	EXPECT_EQ(0, lock(self->fd, F_SETLKW, F_RDLCK, 0, 0));
	in = ARG(mock_last(m, FUSE_SETLKW), struct fuse_lk_in);
	EXPECT_EQ(owner, in->owner);
	EXPECT_EQ((uint64_t)INT64_MAX, in->lk.end);
	EXPECT_EQ(0, lock(self->fd, F_SETLK, F_UNLCK, 10, 20));
	in = ARG(mock_last(m, FUSE_SETLK), struct fuse_lk_in);
	EXPECT_EQ((uint32_t)F_UNLCK, in->lk.type);
	EXPECT_EQ(0U, in->lk.pid);
	m->knob[ERRNO] = EAGAIN;
	EXPECT_ERRNO(EAGAIN, lock(self->fd, F_SETLK, F_RDLCK, 10, 20));
	m->knob[ERRNO] = EDEADLK;
	EXPECT_ERRNO(EDEADLK, lock(self->fd, F_SETLKW, F_RDLCK, 10, 20));
	/* No lock for writing without such a descriptor. */
	EXPECT_ERRNO(EBADF, lock(self->fd, F_SETLK, F_WRLCK, 10, 20));
	/* The owner is the one that FLUSH names, so the server knows whose locks go. */
	m->knob[ERRNO] = 0;
	close(self->fd);
	EXPECT_EQ(owner, ARG(mock_last(m, FUSE_FLUSH), struct fuse_flush_in)->lock_owner);
}

TEST_F_TIMEOUT(lock, posix_test, TEST_BOUND)
{
	struct flock fl = { .l_type = F_RDLCK, .l_start = 5, .l_len = 10 };
	struct mock *m = self->m;

	ANSWER(m);
	m->knob[TYPE] = F_UNLCK;
	START_LOCKS(FUSE_POSIX_LOCKS);
	EXPECT_EQ(0, fcntl(self->fd, F_GETLK, &fl));
	EXPECT_EQ(F_UNLCK, fl.l_type);
	m->knob[TYPE] = F_WRLCK;
	m->knob[FROM] = 7;
	m->knob[TO] = 8;
	m->knob[PID] = getpid();
	fl.l_type = F_RDLCK;
	EXPECT_EQ(0, fcntl(self->fd, F_GETLK, &fl));
	EXPECT_EQ(F_WRLCK, fl.l_type);
	EXPECT_EQ(7, fl.l_start);
	EXPECT_EQ(2, fl.l_len);
	EXPECT_EQ(getpid(), fl.l_pid);
	/* To the end of the file, whoever it is. */
	m->knob[TO] = INT64_MAX;
	m->knob[PID] = 4000000;
	fl.l_type = F_RDLCK;
	EXPECT_EQ(0, fcntl(self->fd, F_GETLK, &fl));
	EXPECT_EQ(0, fl.l_len);
	EXPECT_EQ(0, fl.l_pid);
	m->knob[ERRNO] = ENOLCK;
	fl.l_type = F_RDLCK;
	EXPECT_ERRNO(ENOLCK, fcntl(self->fd, F_GETLK, &fl));
}

/* Locks that can't be. */
TEST_F_TIMEOUT(lock, posix_test_hostile, TEST_BOUND)
{
	static const uint64_t bad[][3] = {
		{ 3, 0, 0 }, { 77, 0, 0 }, { F_RDLCK, 8, 7 }, { F_WRLCK, 0, 1ULL << 63 }, { F_RDLCK, 1ULL << 63, UINT64_MAX },
	};
	struct mock *m = self->m;

	ANSWER(m);
	START_LOCKS(FUSE_POSIX_LOCKS);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		m->knob[TYPE] = bad[i][0];
		m->knob[FROM] = bad[i][1];
		m->knob[TO] = bad[i][2];
		EXPECT_ERRNO(EIO, lock(self->fd, F_GETLK, F_RDLCK, 5, 10));
	}
}

/* One open file has a lock, not a process. */
TEST_F_TIMEOUT(lock, open_file, TEST_BOUND)
{
	struct mock *m = self->m;
	uint64_t owner;
	int fd;

	ANSWER(m);
	START_LOCKS(FUSE_POSIX_LOCKS);
	fd = open(mock_path(m, "file"), O_RDONLY);
	EXPECT_EQ(0, lock(self->fd, F_OFD_SETLK, F_RDLCK, 0, 1));
	owner = ARG(mock_last(m, FUSE_SETLK), struct fuse_lk_in)->owner;
	EXPECT_EQ(0, lock(fd, F_OFD_SETLK, F_RDLCK, 0, 1));
	EXPECT_NE(owner, ARG(mock_last(m, FUSE_SETLK), struct fuse_lk_in)->owner);
	close(fd);
}

TEST_F_TIMEOUT(lock, flock_at_server, TEST_BOUND)
{
	const struct fuse_lk_in *in;
	struct mock *m = self->m;
	uint64_t owner;

	ANSWER(m);
	START_LOCKS(FUSE_FLOCK_LOCKS);
	EXPECT_EQ(0, flock(self->fd, LOCK_EX | LOCK_NB));
	in = ARG(mock_last(m, FUSE_SETLK), struct fuse_lk_in);
	EXPECT_EQ((uint32_t)FUSE_LK_FLOCK, in->lk_flags);
	EXPECT_EQ((uint32_t)F_WRLCK, in->lk.type);
	EXPECT_EQ(0U, in->lk.start);
	EXPECT_EQ((uint64_t)INT64_MAX, in->lk.end);
	owner = in->owner;
	EXPECT_EQ(0, flock(self->fd, LOCK_SH));
	in = ARG(mock_last(m, FUSE_SETLKW), struct fuse_lk_in);
	EXPECT_EQ((uint32_t)F_RDLCK, in->lk.type);
	EXPECT_EQ(owner, in->owner);
	m->knob[ERRNO] = EAGAIN;
	EXPECT_ERRNO(EAGAIN, flock(self->fd, LOCK_EX | LOCK_NB));
	/* The end of the open file gives it up. */
	close(self->fd);
	ASSERT_TRUE(mock_wait_seen(m, FUSE_RELEASE, 1));
	EXPECT_EQ((uint32_t)FUSE_RELEASE_FLOCK_UNLOCK,
		  ARG(mock_last(m, FUSE_RELEASE), struct fuse_release_in)->release_flags);
	EXPECT_EQ(owner, ARG(mock_last(m, FUSE_RELEASE), struct fuse_release_in)->lock_owner);
	/* Locks of fcntl(2) are another matter. */
	self->fd = open(mock_path(m, "file"), O_RDONLY);
	EXPECT_EQ(0, lock(self->fd, F_SETLK, F_RDLCK, 0, 1));
	EXPECT_EQ(2U, mock_count(m, FUSE_SETLK));
}

/* The server takes none: they hold among the callers. */
TEST_F_TIMEOUT(lock, local, TEST_BOUND)
{
	struct mock *m = self->m;
	int fd, status;
	pid_t pid;

	START_LOCKS(0);
	EXPECT_EQ(0, flock(self->fd, LOCK_EX));
	EXPECT_EQ(0, lock(self->fd, F_SETLK, F_RDLCK, 0, 10));
	pid = fork();
	if (!pid) {
		struct flock fl = { .l_type = F_WRLCK, .l_len = 5 };

		fd = open(mock_path(m, "file"), O_RDONLY);
		if (flock(fd, LOCK_SH | LOCK_NB) != -1 || errno != EWOULDBLOCK)
			_exit(1);
		if (fcntl(fd, F_GETLK, &fl) || fl.l_type != F_RDLCK || fl.l_pid != getppid())
			_exit(2);
		/* Waits until it is free. */
		_exit(flock(fd, LOCK_SH) ? 3 : 0);
	}
	usleep(1000000);
	EXPECT_EQ(0, flock(self->fd, LOCK_UN));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0U, mock_count(m, FUSE_SETLK) + mock_count(m, FUSE_SETLKW) + mock_count(m, FUSE_GETLK));
	close(self->fd);
	ASSERT_TRUE(mock_wait_seen(m, FUSE_RELEASE, 1));
	EXPECT_EQ(0U, ARG(mock_last(m, FUSE_RELEASE), struct fuse_release_in)->release_flags);
}

/* Before 7.17 one flag stands for both. */
TEST_F_TIMEOUT(lock, old_server, TEST_BOUND)
{
	ANSWER(self->m);
	self->m->init.out.minor = 16;
	self->m->init.size = 24;
	START_LOCKS(FUSE_POSIX_LOCKS);
	EXPECT_EQ(0, flock(self->fd, LOCK_SH));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_SETLKW));
}

/* A lease is between the callers. */
TEST_F_TIMEOUT(lock, lease, TEST_BOUND)
{
	START_LOCKS(0);
	EXPECT_EQ(F_UNLCK, fcntl(self->fd, F_GETLEASE));
	EXPECT_EQ(0, fcntl(self->fd, F_SETLEASE, F_RDLCK));
	EXPECT_EQ(F_RDLCK, fcntl(self->fd, F_GETLEASE));
	EXPECT_EQ(0, fcntl(self->fd, F_SETLEASE, F_UNLCK));
}

TEST_HARNESS_MAIN
