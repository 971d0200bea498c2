// SPDX-License-Identifier: GPL-2.0
/* Open files: OPEN, FLUSH, RELEASE, FSYNC, LSEEK, what FOPEN_* flags and ENOSYS make of them, how READs are let out. */
#include <sys/syscall.h>

#include "fuse_test.h"

#define FILE_SIZE (1U << 20)

/* The argument of a recorded request. */
#define ARG(record, type) ((const type *)((record)->head + sizeof(struct fuse_in_header)))

FIXTURE(open) {
	struct mock *m;
	uint64_t file;
	uint64_t dir;
};

FIXTURE_SETUP(open)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	mock_add(self->m, self->dir, "child", S_IFREG | 0644, 1);
}

FIXTURE_TEARDOWN(open)
{
	mock_destroy(self->m);
}

static int open_at(struct mock *m, const char *name, int flags)
{
	return open(mock_path(m, name), flags);
}

#define OPEN(self)							\
	({								\
		int fd_ = open_at((self)->m, "file", O_RDONLY);		\
									\
		ASSERT_LE(0, fd_);					\
		fd_;							\
	})

/* What handlers answer in place of the tree. */
enum { ERRNO, OFFSET };

static int fail(struct mock *m, struct mock_request *req)
{
	if (m->knob[ERRNO])
		return -(int)m->knob[ERRNO];
	mock_reply(m, req, 0, NULL, 0);
	return MOCK_DONE;
}

static long open_close(struct mock *m, const void *path)
{
	return close(open(path, O_RDONLY));
}

/* FLUSH names its process's files: one name for all of them, another for another process, and no address. */
TEST_F_TIMEOUT(open, flush_names_owner, TEST_BOUND)
{
	struct mock *m = self->m;
	uint64_t owner;
	int fd;

	START(m, "");
	fd = OPEN(self);
	close(fd);
	owner = ARG(mock_last(m, FUSE_FLUSH), struct fuse_flush_in)->lock_owner;
	EXPECT_NE(0, owner);
	EXPECT_NE(0xffff, owner >> 48);
	EXPECT_EQ(1U, ARG(mock_last(m, FUSE_FLUSH), struct fuse_flush_in)->fh);
	close(OPEN(self));
	EXPECT_EQ(2U, mock_count(m, FUSE_FLUSH));
	EXPECT_EQ(owner, ARG(mock_last(m, FUSE_FLUSH), struct fuse_flush_in)->lock_owner);
	EXPECT_CALL(0, m, open_close, mock_path(m, "file"));
	EXPECT_EQ(3U, mock_count(m, FUSE_FLUSH));
	EXPECT_NE(owner, ARG(mock_last(m, FUSE_FLUSH), struct fuse_flush_in)->lock_owner);
}

/* Each descriptor that is closed is a FLUSH, the last one a RELEASE besides, which has no owner. */
TEST_F_TIMEOUT(open, flush_each_release_last, TEST_BOUND)
{
	struct mock *m = self->m;
	int fd, copy;

	START(m, "");
	fd = OPEN(self);
	copy = dup(fd);
	close(copy);
	EXPECT_EQ(1U, mock_count(m, FUSE_FLUSH));
	EXPECT_EQ(0U, mock_count(m, FUSE_RELEASE));
	close(fd);
	EXPECT_EQ(2U, mock_count(m, FUSE_FLUSH));
	ASSERT_TRUE(mock_wait_seen(m, FUSE_RELEASE, 1));
	EXPECT_EQ(0U, ARG(mock_last(m, FUSE_RELEASE), struct fuse_release_in)->lock_owner);
	EXPECT_EQ(0U, ARG(mock_last(m, FUSE_RELEASE), struct fuse_release_in)->release_flags);
	EXPECT_EQ(1U, mock_last(m, FUSE_RELEASE)->fh);
}

/* The answer to FLUSH is what close(2) returns; ENOSYS is remembered. */
TEST_F_TIMEOUT(open, flush_result, TEST_BOUND)
{
	struct mock *m = self->m;

	m->handler[FUSE_FLUSH] = fail;
	m->knob[ERRNO] = ENOSPC;
	START(m, "");
	EXPECT_ERRNO(ENOSPC, close(OPEN(self)));
	m->knob[ERRNO] = ENOSYS;
	EXPECT_EQ(0, close(OPEN(self)));
	EXPECT_EQ(0, close(OPEN(self)));
	EXPECT_EQ(2U, mock_count(m, FUSE_FLUSH));
}

TEST_F_TIMEOUT(open, noflush, TEST_BOUND)
{
	self->m->open_flags = FOPEN_NOFLUSH;
	START(self->m, "");
	EXPECT_EQ(0, close(OPEN(self)));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_FLUSH));
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 1));
}

/* A descriptor that is open for reading can be synced, too: others may have written. */
TEST_F_TIMEOUT(open, fsync, TEST_BOUND)
{
	struct mock *m = self->m;
	int fd;

	m->handler[FUSE_FSYNC] = fail;
	START(m, "");
	fd = OPEN(self);
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(0U, ARG(mock_last(m, FUSE_FSYNC), struct fuse_fsync_in)->fsync_flags);
	EXPECT_EQ(1U, ARG(mock_last(m, FUSE_FSYNC), struct fuse_fsync_in)->fh);
	EXPECT_EQ(self->file, mock_last(m, FUSE_FSYNC)->in.nodeid);
	EXPECT_EQ(0, fdatasync(fd));
	EXPECT_EQ((uint32_t)FUSE_FSYNC_FDATASYNC, ARG(mock_last(m, FUSE_FSYNC), struct fuse_fsync_in)->fsync_flags);
	EXPECT_EQ(2U, mock_count(m, FUSE_FSYNC));
	m->knob[ERRNO] = EDQUOT;
	EXPECT_ERRNO(EDQUOT, fsync(fd));
	m->knob[ERRNO] = ENOSYS;
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(4U, mock_count(m, FUSE_FSYNC));
	close(fd);
}

TEST_F_TIMEOUT(open, fsyncdir, TEST_BOUND)
{
	struct mock *m = self->m;
	int fd;

	m->handler[FUSE_FSYNCDIR] = fail;
	START(m, "");
	fd = open_at(m, "dir", O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(self->dir, mock_last(m, FUSE_FSYNCDIR)->in.nodeid);
	m->knob[ERRNO] = EIO;
	EXPECT_ERRNO(EIO, fdatasync(fd));
	EXPECT_EQ((uint32_t)FUSE_FSYNC_FDATASYNC,
		  ARG(mock_last(m, FUSE_FSYNCDIR), struct fuse_fsync_in)->fsync_flags);
	m->knob[ERRNO] = ENOSYS;
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(0, fsync(fd));
	EXPECT_EQ(3U, mock_count(m, FUSE_FSYNCDIR));
	/* Files have a memory of their own. */
	EXPECT_EQ(0U, mock_count(m, FUSE_FSYNC));
	close(fd);
}

static int answer_lseek(struct mock *m, struct mock_request *req)
{
	struct fuse_lseek_out out = { .offset = m->knob[OFFSET] };

	if (m->knob[ERRNO])
		return -(int)m->knob[ERRNO];
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

/* Where data and holes are, the server knows. */
TEST_F_TIMEOUT(open, lseek_asks_server, TEST_BOUND)
{
	const struct fuse_lseek_in *in;
	struct mock *m = self->m;
	int fd;

	m->handler[FUSE_LSEEK] = answer_lseek;
	m->knob[OFFSET] = 8192;
	START(m, "");
	fd = OPEN(self);
	EXPECT_EQ(8192, lseek(fd, 100, SEEK_DATA));
	in = ARG(mock_last(m, FUSE_LSEEK), struct fuse_lseek_in);
	EXPECT_EQ(100U, in->offset);
	EXPECT_EQ((uint32_t)SEEK_DATA, in->whence);
	EXPECT_EQ(1U, in->fh);
	EXPECT_EQ(8192, lseek(fd, 0, SEEK_CUR));
	m->knob[OFFSET] = 5;
	EXPECT_EQ(5, lseek(fd, 0, SEEK_HOLE));
	EXPECT_EQ((uint32_t)SEEK_HOLE, ARG(mock_last(m, FUSE_LSEEK), struct fuse_lseek_in)->whence);
	/* What it says is not checked against the size, */
	m->knob[OFFSET] = FILE_SIZE + 12345;
	EXPECT_EQ(FILE_SIZE + 12345, lseek(fd, 0, SEEK_HOLE));
	/* but must be a position. */
	m->knob[OFFSET] = 1ULL << 63;
	EXPECT_ERRNO(EINVAL, lseek(fd, 0, SEEK_DATA));
	m->knob[ERRNO] = ENXIO;
	EXPECT_ERRNO(ENXIO, lseek(fd, 0, SEEK_DATA));
	EXPECT_EQ(FILE_SIZE + 12345, lseek(fd, 0, SEEK_CUR));
	EXPECT_EQ(5U, mock_count(m, FUSE_LSEEK));
	/* Other seeks are nobody's business. */
	EXPECT_EQ(77, lseek(fd, 77, SEEK_SET));
	EXPECT_EQ(78, lseek(fd, 1, SEEK_CUR));
	EXPECT_ERRNO(EINVAL, lseek(fd, -1, SEEK_SET));
	EXPECT_ERRNO(EINVAL, lseek(fd, 0, 17));
	EXPECT_EQ(5U, mock_count(m, FUSE_LSEEK));
	close(fd);
}

/* A server that knows of no holes: all is data, up to the end (recipe 89). */
TEST_F_TIMEOUT(open, lseek_without_server, TEST_BOUND)
{
	struct mock *m = self->m;
	int fd;

	m->handler[FUSE_LSEEK] = answer_lseek;
	m->knob[ERRNO] = ENOSYS;
	m->attr_valid = 0;
	START(m, "");
	fd = OPEN(self);
	EXPECT_EQ(100, lseek(fd, 100, SEEK_DATA));
	EXPECT_EQ(FILE_SIZE, lseek(fd, 100, SEEK_HOLE));
	EXPECT_ERRNO(ENXIO, lseek(fd, FILE_SIZE, SEEK_DATA));
	EXPECT_ERRNO(ENXIO, lseek(fd, FILE_SIZE + 1, SEEK_HOLE));
	EXPECT_EQ(1U, mock_count(m, FUSE_LSEEK));
	/* The end is where it is now. */
	mock_node(m, self->file)->size = 3 * FILE_SIZE;
	EXPECT_EQ(3 * FILE_SIZE - 1, lseek(fd, -1, SEEK_END));
	mock_node(m, self->file)->size = 2 * FILE_SIZE;
	EXPECT_EQ(2 * FILE_SIZE, lseek(fd, 0, SEEK_HOLE));
	close(fd);
}

/* ENOSYS to OPEN: files need none, nor a RELEASE, and what is cached stays. */
TEST_F_TIMEOUT(open, no_open, TEST_BOUND)
{
	struct mock *m = self->m;
	uint32_t reads;
	int fd;

	m->handler[FUSE_OPEN] = fail;
	m->knob[ERRNO] = ENOSYS;
	START(m, "");
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(0U, mock_last(m, FUSE_READ)->fh);
	close(fd);
	reads = mock_count(m, FUSE_READ);
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
	EXPECT_EQ(1U, mock_count(m, FUSE_OPEN));
	EXPECT_EQ(reads, mock_count(m, FUSE_READ));
	EXPECT_EQ(2U, mock_count(m, FUSE_FLUSH));
	ASSERT_EQ(0, mock_umount(m));
	EXPECT_EQ(0U, mock_count(m, FUSE_RELEASE));
}

/* Other errors are the caller's, and not remembered. */
TEST_F_TIMEOUT(open, open_fails, TEST_BOUND)
{
	struct mock *m = self->m;

	m->handler[FUSE_OPEN] = fail;
	m->knob[ERRNO] = ETXTBSY;
	START(m, "");
	EXPECT_ERRNO(ETXTBSY, open_at(m, "file", O_RDONLY));
	EXPECT_ERRNO(ETXTBSY, open_at(m, "file", O_RDONLY));
	EXPECT_EQ(2U, mock_count(m, FUSE_OPEN));
	m->handler[FUSE_OPEN] = NULL;
	close(OPEN(self));
	ASSERT_TRUE(mock_wait_seen(m, FUSE_RELEASE, 1));
}

static long list(struct mock *m, const void *path)
{
	char buf[4096];
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	long n = syscall(SYS_getdents64, fd, buf, sizeof(buf));

	close(fd);
	return n;
}

TEST_F_TIMEOUT(open, no_opendir, TEST_BOUND)
{
	struct mock *m = self->m;

	m->handler[FUSE_OPENDIR] = fail;
	m->knob[ERRNO] = ENOSYS;
	START(m, "");
	EXPECT_LT(0, list(m, mock_path(m, "dir")));
	EXPECT_LT(0, list(m, mock_path(m, "dir")));
	EXPECT_EQ(1U, mock_count(m, FUSE_OPENDIR));
	/* Files still need OPEN. */
	close(OPEN(self));
	EXPECT_EQ(1U, mock_count(m, FUSE_OPEN));
	ASSERT_TRUE(mock_wait_seen(m, FUSE_RELEASE, 1));
	ASSERT_EQ(0, mock_umount(m));
	EXPECT_EQ(0U, mock_count(m, FUSE_RELEASEDIR));
}

TEST_F_TIMEOUT(open, nonseekable, TEST_BOUND)
{
	char byte;
	int fd;

	self->m->open_flags = FOPEN_NONSEEKABLE;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_ERRNO(ESPIPE, lseek(fd, 0, SEEK_CUR));
	EXPECT_ERRNO(ESPIPE, pread(fd, &byte, 1, 1));
	EXPECT_EQ(1, read(fd, &byte, 1));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, &byte, 1));
	EXPECT_EQ(1, read(fd, &byte, 1));
	EXPECT_EQ(-1, mock_mismatch(self->file, 1, &byte, 1));
	close(fd);
}

/* A stream has no position at all: each read begins at 0. */
TEST_F_TIMEOUT(open, stream, TEST_BOUND)
{
	char byte;
	int fd;

	self->m->open_flags = FOPEN_STREAM | FOPEN_DIRECT_IO;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_ERRNO(ESPIPE, lseek(fd, 0, SEEK_CUR));
	EXPECT_ERRNO(ESPIPE, pread(fd, &byte, 1, 1));
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(1, read(fd, &byte, 1));
		EXPECT_EQ(-1, mock_mismatch(self->file, 0, &byte, 1));
		EXPECT_EQ(0U, mock_last(self->m, FUSE_READ)->offset);
	}
	close(fd);
}

/* A directory that is called a stream is one without lseek(2), and has its position. */
TEST_F_TIMEOUT(open, stream_directory, TEST_BOUND)
{
	char buf[4096];
	int fd;

	self->m->open_flags = FOPEN_STREAM;
	START(self->m, "");
	fd = open_at(self->m, "dir", O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(ESPIPE, lseek(fd, 0, SEEK_SET));
	EXPECT_LT(0, syscall(SYS_getdents64, fd, buf, sizeof(buf)));
	EXPECT_EQ(0, syscall(SYS_getdents64, fd, buf, sizeof(buf)));
	close(fd);
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

/* All READs wait at the daemon; how many came before it answered any. */
static uint32_t held_at_once(struct __test_metadata *_metadata, FIXTURE_DATA(open) *self)
{
	struct mock *m = self->m;
	struct mock_call *call;
	uint32_t held;

	m->handler[FUSE_READ] = hold;
	m->init.out.max_write = 16384;
	START(m, ",max_read=16384");
	EXPECT_EQ(0, mock_set_readahead_kb(m, 512));
	call = mock_call(m, mock_call_open_read, mock_path(m, "file"));
	for (held = 0; !held || held != m->held; usleep(500000))
		held = m->held;
	m->handler[FUSE_READ] = NULL;
	mock_release(m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(FILE_SIZE, call->ret);
	return held;
}

/* READs of one readahead are under way together, up to the limit of background requests. */
TEST_F_TIMEOUT(open, reads_in_background, TEST_BOUND)
{
	self->m->init.out.flags |= FUSE_ASYNC_READ;
	self->m->init.out.max_background = 5;
	self->m->init.out.congestion_threshold = 5;
	EXPECT_EQ(5U, held_at_once(_metadata, self));
}

TEST_F_TIMEOUT(open, reads_one_by_one, TEST_BOUND)
{
	self->m->init.out.flags &= ~FUSE_ASYNC_READ;
	EXPECT_EQ(1U, held_at_once(_metadata, self));
}

TEST_HARNESS_MAIN
