// SPDX-License-Identifier: GPL-2.0
/* Reads past the page cache: O_DIRECT, and files that the server opens with FOPEN_DIRECT_IO. */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "fuse_test.h"

#define FILE_SIZE (1U << 20)
#define MAX_READ 65536U

#define ARG(record, type) ((const type *)((record)->head + sizeof(struct fuse_in_header)))

FIXTURE(direct) {
	struct mock *m;
	uint64_t file;
	char *buf;
};

FIXTURE_VARIANT(direct) {
	uint32_t init;		/* INIT flags of the daemon */
	uint32_t open;		/* FOPEN_* */
	int flags;		/* of open(2) */
};

/* The three ways: O_DIRECT with READs one by one and all at once, and a file that nobody may cache. */
FIXTURE_VARIANT_ADD(direct, one_by_one) { .flags = O_DIRECT };
FIXTURE_VARIANT_ADD(direct, at_once) { .flags = O_DIRECT, .init = FUSE_ASYNC_DIO };
FIXTURE_VARIANT_ADD(direct, by_server) { .open = FOPEN_DIRECT_IO, .init = FUSE_ASYNC_DIO };

FIXTURE_SETUP(direct)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->m->init.out.flags |= variant->init;
	self->m->open_flags = variant->open;
	self->buf = mmap(NULL, 2 * FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
}

FIXTURE_TEARDOWN(direct)
{
	mock_destroy(self->m);
}

#define OPEN()								\
	({								\
		int fd_;						\
									\
		START(self->m, ",max_read=65536");			\
		fd_ = open(mock_path(self->m, "file"), O_RDONLY | variant->flags); \
		ASSERT_LE(0, fd_);					\
		fd_;							\
	})

/* Offsets, lengths and buffers need no alignment, and nothing is cached. */
TEST_F_TIMEOUT(direct, any_alignment, TEST_BOUND)
{
	static const struct { size_t offset, len, align; } piece[] = {
		{ 0, 4096, 0 }, { 0, 1, 3 }, { 4095, 2, 4095 }, { 12345, 54321, 17 }, { 0, FILE_SIZE, 0 },
		{ 1, FILE_SIZE - 1, 1 }, { 65536, 65536, 4093 }, { FILE_SIZE - 7, 7, 9 },
	};
	int fd = OPEN();

	for (size_t i = 0; i < ARRAY_SIZE(piece); i++) {
		char *to = self->buf + piece[i].align;

		memset(self->buf, 0xee, 2 * FILE_SIZE);
		ASSERT_EQ(piece[i].len, pread(fd, to, piece[i].len, piece[i].offset));
		EXPECT_EQ(-1, mock_mismatch(self->file, piece[i].offset, to, piece[i].len));
		/* Not a byte beside it. */
		EXPECT_EQ((char)0xee, to[piece[i].len]);
		if (piece[i].align)
			EXPECT_EQ((char)0xee, to[-1]);
	}
	EXPECT_GE(MAX_READ, mock_max_size(self->m, FUSE_READ, self->file));
	close(fd);
}

/* Each read asks the server, and moves the position as any read. */
TEST_F_TIMEOUT(direct, asks_each_time, TEST_BOUND)
{
	struct mock_record *last;
	int fd = OPEN();

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(10000, read(fd, self->buf, 10000));
		EXPECT_EQ(-1, mock_mismatch(self->file, i * 10000, self->buf, 10000));
		EXPECT_EQ(i + 1U, mock_count(self->m, FUSE_READ));
	}
	EXPECT_EQ(30000, lseek(fd, 0, SEEK_CUR));
	last = mock_last(self->m, FUSE_READ);
	EXPECT_EQ(20000U, last->offset);
	EXPECT_EQ(10000U, last->size);
	EXPECT_EQ(variant->flags, (int)last->flags & O_DIRECT);
	/* Mandatory locks are looked at, so the reader is named, as at FLUSH. */
	EXPECT_EQ((uint32_t)FUSE_READ_LOCKOWNER, ARG(last, struct fuse_read_in)->read_flags);
	close(fd);
	EXPECT_EQ(ARG(mock_last(self->m, FUSE_FLUSH), struct fuse_flush_in)->lock_owner,
		  ARG(last, struct fuse_read_in)->lock_owner);
}

TEST_F_TIMEOUT(direct, end_of_file, TEST_BOUND)
{
	int fd = OPEN();

	EXPECT_EQ(100, pread(fd, self->buf, FILE_SIZE, FILE_SIZE - 100));
	EXPECT_EQ(-1, mock_mismatch(self->file, FILE_SIZE - 100, self->buf, 100));
	EXPECT_EQ(FILE_SIZE, pread(fd, self->buf, 2 * FILE_SIZE, 0));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->buf, FILE_SIZE));
	EXPECT_EQ(0, pread(fd, self->buf, 100, FILE_SIZE));
	EXPECT_EQ(0, pread(fd, self->buf, 100, 3ULL * FILE_SIZE));
	EXPECT_EQ(0, pread(fd, self->buf, 0, 0));
	close(fd);
}

/* The file has grown since its attributes came: a read beyond the known end finds that out. */
TEST_F_TIMEOUT(direct, file_grows, TEST_BOUND)
{
	int fd;

	self->m->attr_valid = 0;
	fd = OPEN();
	mock_node(self->m, self->file)->size = 2 * FILE_SIZE;
	EXPECT_EQ(50000, pread(fd, self->buf, 50000, FILE_SIZE + 12345));
	EXPECT_EQ(-1, mock_mismatch(self->file, FILE_SIZE + 12345, self->buf, 50000));
	close(fd);
}

TEST_F_TIMEOUT(direct, many_buffers, TEST_BOUND)
{
	struct iovec iov[40];
	size_t total = 0, at = 777;
	int fd = OPEN();

	for (size_t i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = self->buf + i * 20000 + i * 31;
		iov[i].iov_len = 1 + i * 499;
		total += iov[i].iov_len;
	}
	ASSERT_EQ(total, preadv(fd, iov, ARRAY_SIZE(iov), at));
	for (size_t i = 0; i < ARRAY_SIZE(iov); i++) {
		EXPECT_EQ(-1, mock_mismatch(self->file, at, iov[i].iov_base, iov[i].iov_len));
		at += iov[i].iov_len;
	}
	close(fd);
}

TEST_F_TIMEOUT(direct, bad_buffer, TEST_BOUND)
{
	char *hole = self->buf + FILE_SIZE;
	int fd = OPEN();

	ASSERT_EQ(0, munmap(hole, FILE_SIZE));
	EXPECT_ERRNO(EFAULT, pread(fd, hole, 4096, 0));
	/* Up to where there is memory. */
	EXPECT_EQ(8192, pread(fd, hole - 8192, FILE_SIZE / 2, 4096));
	EXPECT_EQ(-1, mock_mismatch(self->file, 4096, hole - 8192, 8192));
	ASSERT_EQ(0, mprotect(self->buf, 4096, PROT_READ));
	EXPECT_ERRNO(EFAULT, pread(fd, self->buf, 4096, 0));
	close(fd);
}

/* Knobs: the READ at AT gets so many bytes, once, or an error. */
enum { AT, KEEP, ERRNO };

static int spoil(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	char *data;

	if (in->offset != m->knob[AT] || (!m->knob[ERRNO] && !m->knob[KEEP]))
		return MOCK_DEFAULT;
	if (m->knob[ERRNO])
		return -(int)m->knob[ERRNO];
	data = malloc(in->size);
	mock_fill(req->in->nodeid, in->offset, data, in->size);
	mock_reply(m, req, 0, data, m->knob[KEEP]);
	m->knob[KEEP] = 0;
	free(data);
	return MOCK_DONE;
}

/*
 * A short answer ends what the server's own way of reading gives. O_DIRECT knows that the file is longer: the rest
 * comes through the page cache.
 */
TEST_F_TIMEOUT(direct, short_answer, TEST_BOUND)
{
	size_t got = variant->open ? 2 * MAX_READ + 1234 : FILE_SIZE;
	int fd;

	self->m->handler[FUSE_READ] = spoil;
	self->m->knob[AT] = 2 * MAX_READ;
	self->m->knob[KEEP] = 1234;
	fd = OPEN();
	EXPECT_EQ(got, pread(fd, self->buf, FILE_SIZE, 0));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->buf, got));
	close(fd);
}

TEST_F_TIMEOUT(direct, error, TEST_BOUND)
{
	int fd;

	self->m->handler[FUSE_READ] = spoil;
	self->m->knob[ERRNO] = EILSEQ;
	fd = OPEN();
	EXPECT_ERRNO(EILSEQ, pread(fd, self->buf, 1000, 0));
	/* Behind data: all or nothing where READs go at once. */
	self->m->knob[AT] = 2 * MAX_READ;
	if (variant->flags && variant->init)
		EXPECT_ERRNO(EILSEQ, pread(fd, self->buf, 4 * MAX_READ, 0));
	else
		EXPECT_EQ(2 * MAX_READ, pread(fd, self->buf, 4 * MAX_READ, 0));
	close(fd);
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

static long read_megabyte(struct mock *m, const void *flags)
{
	char *buf = malloc(FILE_SIZE);
	int fd = open(mock_path(m, "file"), O_RDONLY | (int)(uintptr_t)flags);
	ssize_t n = pread(fd, buf, FILE_SIZE, 0);

	if (n == FILE_SIZE && mock_mismatch(mock_find(m, FUSE_ROOT_ID, "file"), 0, buf, FILE_SIZE) >= 0)
		return -2;
	free(buf);
	return n;
}

static uint32_t held_at_once(struct mock *m)
{
	uint32_t held;

	for (held = 0; !held || held != m->held; usleep(200000))
		held = m->held;
	return held;
}

TEST_F_TIMEOUT(direct, how_many_at_once, TEST_BOUND)
{
	bool at_once = variant->flags && variant->init;
	struct mock_call *call;

	self->m->handler[FUSE_READ] = hold;
	self->m->init.out.max_background = self->m->init.out.congestion_threshold = 50;
	START(self->m, ",max_read=65536");
	call = mock_call(self->m, read_megabyte, (void *)(uintptr_t)variant->flags);
	EXPECT_EQ(at_once ? FILE_SIZE / MAX_READ : 1, held_at_once(self->m));
	self->m->handler[FUSE_READ] = NULL;
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(FILE_SIZE, call->ret);
}

/* A reader that is killed while the server has its READs leaves; what the server answers then harms nobody. */
TEST_F_TIMEOUT(direct, killed_reader, TEST_BOUND)
{
	struct mock_call *call;
	uint32_t held;

	self->m->handler[FUSE_READ] = hold;
	self->m->init.out.max_background = self->m->init.out.congestion_threshold = 50;
	START(self->m, ",max_read=65536");
	call = mock_call(self->m, read_megabyte, (void *)(uintptr_t)variant->flags);
	held = held_at_once(self->m);
	kill(call->pid, SIGKILL);
	usleep(200000);
	self->m->handler[FUSE_READ] = NULL;
	mock_release(self->m);
	mock_call_done(call);
	EXPECT_LE(1U, held);
	EXPECT_EQ(FILE_SIZE, read_megabyte(self->m, (void *)(uintptr_t)variant->flags));
}

/* The daemon dies with READs in its hands. */
TEST_F_TIMEOUT(direct, daemon_dies, TEST_BOUND)
{
	struct mock_call *call;

	self->m->handler[FUSE_READ] = hold;
	START(self->m, ",max_read=65536");
	call = mock_call(self->m, read_megabyte, (void *)(uintptr_t)variant->flags);
	held_at_once(self->m);
	mock_kill(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(-1, call->ret);
	EXPECT_EQ(ECONNABORTED, call->error);
}

/* Into a mapped file: what was read is that file's data from then on. */
TEST_F_TIMEOUT(direct, into_mapped_file, TEST_BOUND)
{
	int fd = OPEN(), other = memfd_create("other", 0);
	char *map, *copy = malloc(FILE_SIZE);

	ASSERT_EQ(0, ftruncate(other, FILE_SIZE));
	map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(FILE_SIZE - 100, pread(fd, map + 100, FILE_SIZE - 100, 100));
	munmap(map, FILE_SIZE);
	EXPECT_EQ(FILE_SIZE, pread(other, copy, FILE_SIZE, 0));
	EXPECT_EQ(-1, mock_mismatch(self->file, 100, copy + 100, FILE_SIZE - 100));
	close(other);
	close(fd);
}

/* Several reads of one task at once (io_submit(2)), their ends told later. */
TEST_F_TIMEOUT(direct, aio, TEST_BOUND)
{
	struct iocb cb[8] = {}, *list[8];
	struct io_event event[8];
	aio_context_t ctx = 0;
	int fd = OPEN();

	ASSERT_EQ(0, syscall(SYS_io_setup, 8, &ctx));
	for (int i = 0; i < 8; i++) {
		cb[i] = (struct iocb){
			.aio_fildes = fd,
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_buf = (uintptr_t)self->buf + i * 200000,
			.aio_nbytes = 150001,
			.aio_offset = i == 7 ? FILE_SIZE - 1000 : i * 100003,
			.aio_data = i,
		};
		list[i] = &cb[i];
	}
	ASSERT_EQ(8, syscall(SYS_io_submit, ctx, 8, list));
	ASSERT_EQ(8, syscall(SYS_io_getevents, ctx, 8, 8, event, NULL));
	for (int i = 0; i < 8; i++) {
		int n = event[i].data;

		EXPECT_EQ(n == 7 ? 1000 : 150001, event[i].res);
		EXPECT_EQ(-1, mock_mismatch(self->file, cb[n].aio_offset, self->buf + n * 200000, event[i].res));
	}
	/* A file that shrank, a bad buffer. */
	cb[0].aio_offset = FILE_SIZE + 5;
	ASSERT_EQ(1, syscall(SYS_io_submit, ctx, 1, list));
	ASSERT_EQ(1, syscall(SYS_io_getevents, ctx, 1, 1, event, NULL));
	EXPECT_EQ(0, event[0].res);
	cb[0].aio_offset = 0;
	cb[0].aio_buf = 0;
	ASSERT_EQ(1, syscall(SYS_io_submit, ctx, 1, list));
	ASSERT_EQ(1, syscall(SYS_io_getevents, ctx, 1, 1, event, NULL));
	EXPECT_EQ(-EFAULT, event[0].res);
	syscall(SYS_io_destroy, ctx);
	close(fd);
}

/* All of several submitted reads are at the server before any is answered; it dies: all are told. */
TEST_F_TIMEOUT(direct, aio_daemon_dies, TEST_BOUND)
{
	struct iocb cb[3] = {}, *list[3];
	struct io_event event[3];
	aio_context_t ctx = 0;
	int fd;

	if (!variant->flags || !variant->init)
		SKIP(return, "READs one by one: io_submit(2) waits");
	fd = OPEN();
	self->m->handler[FUSE_READ] = hold;
	ASSERT_EQ(0, syscall(SYS_io_setup, 3, &ctx));
	for (int i = 0; i < 3; i++) {
		cb[i] = (struct iocb){
			.aio_fildes = fd, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_nbytes = 100000,
			.aio_buf = (uintptr_t)self->buf + i * 200000, .aio_offset = i * 200000,
		};
		list[i] = &cb[i];
	}
	ASSERT_EQ(3, syscall(SYS_io_submit, ctx, 3, list));
	EXPECT_EQ(6U, held_at_once(self->m));
	mock_kill(self->m);
	ASSERT_EQ(3, syscall(SYS_io_getevents, ctx, 3, 3, event, NULL));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(-ECONNABORTED, event[i].res);
	syscall(SYS_io_destroy, ctx);
	close(fd);
}

static bool has_forked(struct mock *m, uint64_t arg)
{
	return __atomic_load_n(&m->knob[AT], __ATOMIC_ACQUIRE);
}

static long release_after_fork(struct mock *m, const void *arg)
{
	bool forked = mock_wait(has_forked, m, 0);

	m->handler[FUSE_READ] = NULL;
	mock_release(m);
	return !forked;
}

/* A fork while the server has the READs: what comes is the parent's (recipe 91). */
struct fork_arg {
	struct mock *m;
	char *buf;
	pid_t child;
};

static void *fork_thread(void *arg)
{
	struct fork_arg *fork_arg = arg;

	while (!fork_arg->m->held)
		usleep(10000);
	fork_arg->child = fork();
	if (!fork_arg->child) {
		sleep(2);
		_exit(0);
	}
	/* The parent's next store would be the one to copy a page that it shares with the child. */
	for (size_t i = 0; i < FILE_SIZE; i += MOCK_PAGE)
		fork_arg->buf[i] = 0x33;
	__atomic_store_n(&fork_arg->m->knob[AT], 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F_TIMEOUT(direct, fork_meanwhile, TEST_BOUND)
{
	struct fork_arg arg = { .m = self->m, .buf = self->buf };
	struct mock_call *call;
	pthread_t thread;
	int fd = OPEN();

	memset(self->buf, 0xee, FILE_SIZE);
	self->m->handler[FUSE_READ] = hold;
	call = mock_call(self->m, release_after_fork, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, fork_thread, &arg));
	EXPECT_EQ(FILE_SIZE, pread(fd, self->buf, FILE_SIZE, 0));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->buf, FILE_SIZE));
	pthread_join(thread, NULL);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->ret);
	waitpid(arg.child, NULL, 0);
	close(fd);
}

static ssize_t through_pipe(int fd, char *buf, size_t len)
{
	int pipe_fd[2];
	ssize_t n, got;

	if (pipe(pipe_fd))
		return -1;
	n = splice(fd, NULL, pipe_fd[1], NULL, len, 0);
	got = n > 0 ? read(pipe_fd[0], buf, n) : n;
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return got;
}

/* splice(2) and sendfile(2) have the bytes that read(2) has. */
TEST_F_TIMEOUT(direct, splice, TEST_BOUND)
{
	int fd = OPEN(), out = memfd_create("out", 0);

	EXPECT_EQ(50000, through_pipe(fd, self->buf, 50000));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->buf, 50000));
	EXPECT_EQ(50000, lseek(fd, 0, SEEK_CUR));
	for (size_t done = 50000; done < FILE_SIZE; ) {
		ssize_t n = sendfile(out, fd, NULL, FILE_SIZE);

		ASSERT_LT(0, n);
		done += n;
	}
	ASSERT_EQ(FILE_SIZE - 50000, pread(out, self->buf, FILE_SIZE, 0));
	EXPECT_EQ(-1, mock_mismatch(self->file, 50000, self->buf, FILE_SIZE - 50000));
	close(out);
	close(fd);
}

/* A file of no known size, as in /proc, whose content is what the server says (recipe 81). */
static int eleven_bytes(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;

	mock_reply(m, req, 0, "hello world" + (in->offset < 11 ? in->offset : 11), in->offset < 11 ? 11 - in->offset : 0);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(direct, splice_without_size, TEST_BOUND)
{
	ssize_t spliced = 11;
	char buf[100];
	int fd, out;

	if (!variant->open)
		SKIP(return, "O_DIRECT goes by the size");
	mock_node(self->m, self->file)->size = 0;
	self->m->handler[FUSE_READ] = eleven_bytes;
	fd = OPEN();
	EXPECT_EQ(11, read(fd, buf, sizeof(buf)));
	EXPECT_EQ(0, memcmp(buf, "hello world", 11));
	EXPECT_EQ(0, read(fd, buf, sizeof(buf)));
	if (KNOWN_DIFFERENCE("splices files of FOPEN_DIRECT_IO by the page cache: nothing of what has no size"))
		spliced = 0;
	lseek(fd, 0, SEEK_SET);
	EXPECT_EQ(spliced, through_pipe(fd, buf, sizeof(buf)));
	lseek(fd, 0, SEEK_SET);
	out = memfd_create("out", 0);
	EXPECT_EQ(spliced, sendfile(out, fd, NULL, 100));
	close(out);
	close(fd);
}

TEST_HARNESS_MAIN
