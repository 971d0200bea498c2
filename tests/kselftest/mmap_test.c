// SPDX-License-Identifier: GPL-2.0
/* Mappings and the page cache under them: shared, private, programs, advice, migration, death; what a read-only file refuses. */
#define _GNU_SOURCE
#include <linux/fs.h>
#include <setjmp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fuse_test.h"

#define FILE_SIZE (4U << 20)
#define HUGE (2U << 20)

FIXTURE(mmap) {
	struct mock *m;
	uint64_t file;
	int fd;
	char *map;
};

FIXTURE_SETUP(mmap)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0755, FILE_SIZE);
}

FIXTURE_TEARDOWN(mmap)
{
	mock_destroy(self->m);
}

#define OPEN()								\
	do {								\
		START(self->m, "");					\
		ASSERT_EQ(0, mock_set_readahead_kb(self->m, 1024));	\
		self->fd = open(mock_path(self->m, "file"), O_RDONLY);	\
		ASSERT_LE(0, self->fd);					\
	} while (0)

#define MAP(flags_)							\
	do {								\
		OPEN();							\
		self->map = mmap(NULL, FILE_SIZE, PROT_READ, flags_, self->fd, 0); \
		ASSERT_NE(MAP_FAILED, self->map);			\
	} while (0)

/* Pages of the mapping whose folios are in memory. */
static size_t resident(const char *map)
{
	static unsigned char vec[FILE_SIZE / MOCK_PAGE];
	size_t pages = 0;

	if (mincore((void *)map, FILE_SIZE, vec))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(vec); i++)
		pages += vec[i] & 1;
	return pages;
}

TEST_F_TIMEOUT(mmap, shared, TEST_BOUND)
{
	int fd;

	MAP(MAP_SHARED);
	EXPECT_EQ(-1, mock_mismatch(self->file, 3000000, self->map + 3000000, 1));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, FILE_SIZE));
	EXPECT_EQ(FILE_SIZE, mock_sum_size(self->m, FUSE_READ, self->file));
	/* The same pages as read(2) has. */
	EXPECT_CONTENT(self->fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(FILE_SIZE, mock_sum_size(self->m, FUSE_READ, self->file));
	EXPECT_ERRNO(EACCES, mprotect(self->map, MOCK_PAGE, PROT_READ | PROT_WRITE));
	/* It outlives the descriptor, and the open file is released after it. */
	close(self->fd);
	EXPECT_EQ(-1, mock_mismatch(self->file, 12345, self->map + 12345, 1000));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_RELEASE));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	close(fd);
	munmap(self->map, FILE_SIZE);
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 2));
}

TEST_F_TIMEOUT(mmap, private_copy, TEST_BOUND)
{
	OPEN();
	self->map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->map);
	for (size_t i = 0; i < FILE_SIZE; i += 70000)
		self->map[i] ^= 0x55;
	for (size_t i = 0; i < FILE_SIZE; i += 70000)
		ASSERT_EQ(0, mock_mismatch(self->file, i, self->map + i, 1));
	EXPECT_CONTENT(self->fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(0U, mock_count(self->m, FUSE_WRITE));
}

/* A file that nobody may cache is not mapped shared; a private mapping has what was read once (recipe 82). */
TEST_F_TIMEOUT(mmap, of_direct_io, TEST_BOUND)
{
	self->m->open_flags = FOPEN_DIRECT_IO;
	OPEN();
	EXPECT_EQ(MAP_FAILED, mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(ENODEV, errno);
	self->map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->map);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, FILE_SIZE));
}

/* Programs run from the mount: this one. */
static char *program;
static size_t program_size;

static int serve_program(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	size_t len = in->offset >= program_size ? 0 : program_size - in->offset;

	mock_reply(m, req, 0, program + in->offset, len < in->size ? len : in->size);
	return MOCK_DONE;
}

static int run_program(struct mock *m)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* It lists its tests. */
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		open("/dev/null", O_WRONLY);
		open("/dev/null", O_WRONLY);
		execl(mock_path(m, "file"), "file", "-l", NULL);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void load_program(struct mock *m, uint64_t file)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat st;

	fstat(fd, &st);
	program_size = st.st_size;
	program = malloc(program_size);
	if (read(fd, program, program_size) != (ssize_t)program_size)
		program_size = 0;
	close(fd);
	mock_node(m, file)->size = program_size;
	m->handler[FUSE_READ] = serve_program;
}

TEST_F_TIMEOUT(mmap, exec, TEST_BOUND)
{
	load_program(self->m, self->file);
	START(self->m, "");
	EXPECT_EQ(KSFT_SKIP, run_program(self->m));
	EXPECT_LT(0U, mock_count(self->m, FUSE_READ));
	mock_node(self->m, self->file)->mode = S_IFREG | 0644;
	self->m->attr_valid = 0;
	mock_drop_caches();
	EXPECT_EQ(EACCES, run_program(self->m));
}

TEST_F_TIMEOUT(mmap, exec_of_direct_io, TEST_BOUND)
{
	self->m->open_flags = FOPEN_DIRECT_IO;
	load_program(self->m, self->file);
	START(self->m, "");
	EXPECT_EQ(KSFT_SKIP, run_program(self->m));
}

/* A large mapping can be mapped by huge pages: its address is as far from a border as its place in the file. */
TEST_F_TIMEOUT(mmap, huge_alignment, TEST_BOUND)
{
	OPEN();
	self->map = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->map);
	EXPECT_EQ(0U, (uintptr_t)self->map % HUGE);
	self->map = mmap(NULL, FILE_SIZE - 8 * MOCK_PAGE, PROT_READ, MAP_SHARED, self->fd, 8 * MOCK_PAGE);
	ASSERT_NE(MAP_FAILED, self->map);
	EXPECT_EQ(8U * MOCK_PAGE, (uintptr_t)self->map % HUGE);
	EXPECT_EQ(-1, mock_mismatch(self->file, 8 * MOCK_PAGE, self->map, 100000));
}

/* Waits until so many bytes of the file are in memory. */
static bool wait_resident(const char *map, size_t bytes)
{
	for (int i = 0; i < 100 && resident(map) * MOCK_PAGE < bytes; i++)
		usleep(100000);
	return resident(map) * MOCK_PAGE == bytes;
}

/* Advice: what will be needed comes, as much as one readahead takes; what is not needed goes, also large folios. */
TEST_F_TIMEOUT(mmap, advice, TEST_BOUND)
{
	MAP(MAP_SHARED);
	EXPECT_EQ(0U, resident(self->map));
	ASSERT_EQ(0, posix_fadvise(self->fd, 0, FILE_SIZE, POSIX_FADV_WILLNEED));
	EXPECT_TRUE(wait_resident(self->map, 1 << 20));
	EXPECT_EQ(1U << 20, mock_sum_size(self->m, FUSE_READ, self->file));
	ASSERT_EQ(0, posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED));
	EXPECT_EQ(0U, resident(self->map));
	ASSERT_EQ(0, readahead(self->fd, 0, 1 << 19));
	EXPECT_TRUE(wait_resident(self->map, 1 << 19));
	EXPECT_CONTENT(self->fd, self->file, 0, FILE_SIZE);
	/* Of a mapping: MADV_DONTNEED leaves the cache alone. */
	EXPECT_EQ(0, madvise(self->map, FILE_SIZE, MADV_DONTNEED));
	EXPECT_EQ(FILE_SIZE / MOCK_PAGE, resident(self->map));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, FILE_SIZE));
	EXPECT_EQ(FILE_SIZE + (1 << 20), mock_sum_size(self->m, FUSE_READ, self->file));
}

TEST_F_TIMEOUT(mmap, drop_caches, TEST_BOUND)
{
	MAP(MAP_SHARED);
	EXPECT_CONTENT(self->fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(FILE_SIZE / MOCK_PAGE, resident(self->map));
	mock_drop_caches();
	EXPECT_EQ(0U, resident(self->map));
	EXPECT_CONTENT(self->fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(2 * FILE_SIZE, mock_sum_size(self->m, FUSE_READ, self->file));
}

/* An open that keeps nothing drops folios whole, also where a mapping has part of one; what comes then is new. */
TEST_F_TIMEOUT(mmap, open_drops_mapped, TEST_BOUND)
{
	int fd;

	MAP(MAP_SHARED);
	EXPECT_CONTENT(self->fd, self->file, 0, FILE_SIZE);
	for (size_t i = 0; i < FILE_SIZE; i += 300000)
		EXPECT_EQ(-1, mock_mismatch(self->file, i, self->map + i, 1));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	EXPECT_EQ(0U, resident(self->map));
	for (size_t i = 0; i < FILE_SIZE; i += 300000)
		EXPECT_EQ(-1, mock_mismatch(self->file, i, self->map + i, 1));
	close(fd);
	EXPECT_LE(2U, mock_covering(self->m, self->file, 0));
}

/* Folios move in memory while they are mapped and read. */
TEST_F_TIMEOUT(mmap, migrate, TEST_BOUND)
{
	MAP(MAP_SHARED);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, FILE_SIZE));
		if (mock_write_file("/proc/sys/vm/compact_memory", "1"))
			SKIP(return, "no memory compaction here");
	}
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, FILE_SIZE));
	/* What had moved was not asked for again. */
	EXPECT_EQ(FILE_SIZE, mock_sum_size(self->m, FUSE_READ, self->file));
}

static sigjmp_buf bus;

static void on_bus(int signal)
{
	siglongjmp(bus, 1);
}

/* A page that can't be had is SIGBUS: the server fails it, is dead, or the file ends before. */
static bool gets_bus(const char *at)
{
	bool got = true;

	signal(SIGBUS, on_bus);
	if (!sigsetjmp(bus, 1)) {
		*(volatile const char *)at;
		got = false;
	}
	signal(SIGBUS, SIG_DFL);
	return got;
}

static int fail(struct mock *m, struct mock_request *req)
{
	return -EIO;
}

TEST_F_TIMEOUT(mmap, bus_errors, TEST_BOUND)
{
	MAP(MAP_SHARED);
	self->m->handler[FUSE_READ] = fail;
	EXPECT_TRUE(gets_bus(self->map + 5000));
	self->m->handler[FUSE_READ] = NULL;
	EXPECT_FALSE(gets_bus(self->map + 5000));
	EXPECT_EQ(-1, mock_mismatch(self->file, 5000, self->map + 5000, 10));
	self->map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, self->fd, FILE_SIZE - MOCK_PAGE);
	EXPECT_FALSE(gets_bus(self->map + 4095));
	EXPECT_TRUE(gets_bus(self->map + 4096));
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

static long touch(struct mock *m, const void *map)
{
	return gets_bus((const char *)map + 3000000);
}

TEST_F_TIMEOUT(mmap, daemon_dies, TEST_BOUND)
{
	struct mock_call *call;

	MAP(MAP_SHARED);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, 1));
	self->m->handler[FUSE_READ] = hold;
	call = mock_call(self->m, touch, self->map);
	while (!self->m->held)
		usleep(100000);
	mock_kill(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(1, call->ret);
	/* What was there stays. */
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, self->map, 1));
	EXPECT_TRUE(gets_bus(self->map + FILE_SIZE - 1));
}

/* The last page that a file can have. */
static int zeros(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	uint64_t room = mock_node(m, req->in->nodeid)->size - in->offset;
	char *data = calloc(1, in->size);

	if (in->offset + in->size > INT64_MAX)
		m->knob[0] = 1;
	mock_reply(m, req, 0, data, in->size < room ? in->size : room);
	free(data);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(mmap, last_position, TEST_BOUND)
{
	char buf[100];

	mock_node(self->m, self->file)->size = INT64_MAX;
	self->m->handler[FUSE_READ] = zeros;
	OPEN();
	EXPECT_EQ(7, pread(self->fd, buf, 7, INT64_MAX - 7));
	EXPECT_EQ(0, pread(self->fd, buf, 0, INT64_MAX));
	EXPECT_LT(0U, mock_count(self->m, FUSE_READ));
	/* No READ went beyond it. */
	EXPECT_EQ(0U, self->m->knob[0]);
}

/* What needs a file that can be written to. */
TEST_F_TIMEOUT(mmap, refused, TEST_BOUND)
{
	struct file_clone_range clone = {};
	int out, rw;

	OPEN();
	out = memfd_create("out", 0);
	rw = open(mock_path(self->m, "file"), O_RDWR);
	if (KNOWN_DIFFERENCE("mounts are writable")) {
		EXPECT_LE(0, rw);
	} else {
		EXPECT_EQ(-1, rw);
		EXPECT_EQ(EROFS, errno);
	}
	EXPECT_EQ(MAP_FAILED, mmap(NULL, FILE_SIZE, PROT_WRITE, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_ERRNO(EBADF, copy_file_range(out, NULL, self->fd, NULL, 100, 0));
	EXPECT_ERRNO(EBADF, copy_file_range(self->fd, NULL, self->fd, NULL, 100, 0));
	EXPECT_ERRNO(EBADF, write(self->fd, "x", 1));
	EXPECT_ERRNO(EBADF, fallocate(self->fd, 0, 0, 100));
	EXPECT_ERRNO(EINVAL, ftruncate(self->fd, 0));
	clone.src_fd = out;
	EXPECT_ERRNO(EXDEV, ioctl(self->fd, FICLONE, out));
	EXPECT_ERRNO(EXDEV, ioctl(self->fd, FICLONERANGE, &clone));
	close(out);
}

TEST_HARNESS_MAIN
