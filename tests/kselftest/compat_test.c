// SPDX-License-Identifier: GPL-2.0
/* Servers of older minor versions: the sizes of what they send and get, which of the limits in INIT count; useless INITs. */
#include <dirent.h>
#include <sys/statvfs.h>

#include "fuse_test.h"

#define SIZE	(600 << 10)

FIXTURE(compat) {
	struct mock *m;
	uint64_t file, dir;
};

FIXTURE_VARIANT(compat) {
	uint32_t minor;
};

#define MINOR(n)	FIXTURE_VARIANT_ADD(compat, minor_##n) { .minor = n }

MINOR(1);
MINOR(3);
MINOR(4);
MINOR(5);
MINOR(6);
MINOR(8);
MINOR(9);
MINOR(11);
MINOR(12);
MINOR(13);
MINOR(15);
MINOR(16);
MINOR(17);
MINOR(18);
MINOR(22);
MINOR(23);
MINOR(31);
MINOR(38);
MINOR(45);

FIXTURE_SETUP(compat)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, SIZE);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	mock_add(self->m, self->dir, "one", S_IFREG | 0644, 1);
	mock_add(self->m, self->dir, "two", S_IFREG | 0644, 2);
	mock_add_symlink(self->m, FUSE_ROOT_ID, "link", "file");
	self->m->init.out.minor = variant->minor;
	self->m->init.size = variant->minor < 5 ? FUSE_COMPAT_INIT_OUT_SIZE :
			     variant->minor < 23 ? FUSE_COMPAT_22_INIT_OUT_SIZE : sizeof(struct fuse_init_out);
}

FIXTURE_TEARDOWN(compat)
{
	mock_destroy(self->m);
}

/* Bytes of the last request of an opcode, behind its header. */
static uint32_t arg_size(struct mock *m, uint32_t opcode)
{
	struct mock_record *record = mock_last(m, opcode);

	return record ? record->in.len - sizeof(record->in) : 0;
}

static bool all_forgotten(struct mock *m, uint64_t unused)
{
	mock_drop_caches();
	return !mock_owed(m);
}

/* All that is read works, and each request has the size that it had in every version there was. */
TEST_F_TIMEOUT(compat, reading, TEST_BOUND)
{
	struct mock *m = self->m;
	struct dirent *entry;
	struct statvfs vfs;
	char target[16];
	struct stat st;
	int fd, count = 0;
	DIR *dir;

	m->attr_valid = 0;
	START(m, "");
	EXPECT_CALL(0, m, mock_call_stat, m->dir);
	EXPECT_EQ(0, mock_wait_answered(m, FUSE_INIT));
	ASSERT_EQ(0, stat(mock_path(m, "link"), &st));
	EXPECT_EQ(SIZE, st.st_size);
	EXPECT_EQ(self->file, st.st_ino);
	EXPECT_EQ(sizeof("file"), arg_size(m, FUSE_LOOKUP));
	EXPECT_EQ(sizeof(struct fuse_getattr_in), arg_size(m, FUSE_GETATTR));
	/* Older attributes end before the block size. */
	EXPECT_EQ(MOCK_PAGE, st.st_blksize);
	EXPECT_EQ(4, readlink(mock_path(m, "link"), target, sizeof(target)));
	EXPECT_EQ(0U, arg_size(m, FUSE_READLINK));
	ASSERT_EQ(0, statvfs(m->dir, &vfs));
	EXPECT_EQ(1000003U, vfs.f_blocks);
	EXPECT_EQ(255U, vfs.f_namemax);
	EXPECT_EQ(0U, arg_size(m, FUSE_STATFS));
	EXPECT_EQ(0, access(mock_path(m, "file"), R_OK));
	EXPECT_EQ(sizeof(struct fuse_access_in), arg_size(m, FUSE_ACCESS));
	fd = open(mock_path(m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, SIZE);
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(sizeof(struct fuse_open_in), arg_size(m, FUSE_OPEN));
	EXPECT_EQ(sizeof(struct fuse_read_in), arg_size(m, FUSE_READ));
	EXPECT_EQ(sizeof(struct fuse_flush_in), arg_size(m, FUSE_FLUSH));
	ASSERT_TRUE(mock_wait_seen(m, FUSE_RELEASE, 1));
	EXPECT_EQ(sizeof(struct fuse_release_in), arg_size(m, FUSE_RELEASE));
	dir = opendir(mock_path(m, "dir"));
	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir)))
		count++;
	closedir(dir);
	EXPECT_EQ(4, count);
	EXPECT_EQ(sizeof(struct fuse_read_in), arg_size(m, FUSE_READDIR));
	EXPECT_EQ(0, access(mock_path(m, "dir/one"), F_OK));
	EXPECT_EQ(0, access(mock_path(m, "dir/two"), F_OK));
	for (uint32_t i = 0; i < m->records; i++)
		EXPECT_EQ(0, m->record[i].write_error);
	EXPECT_TRUE(mock_wait(all_forgotten, m, 0));
	if (variant->minor < 16)
		EXPECT_EQ(0U, mock_count(m, FUSE_BATCH_FORGET));
}

/* The device takes a reader's buffer that holds any WRITE: of 4096 bytes before servers could say more. */
TEST_F_TIMEOUT(compat, max_write, TEST_BOUND)
{
	struct mock *m = self->m;
	bool large = variant->minor >= 5;
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(m, ""));
	ASSERT_EQ(0, mock_take(m, &req));
	mock_serve(m, &req);
	call = mock_call(m, mock_call_stat, m->dir);
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	if (large) {
		EXPECT_ERRNO(EINVAL, mock_read(mock_dev, m->buf, FUSE_MIN_READ_BUFFER));
		ASSERT_EQ(0, mock_take(m, &req));
	} else {
		EXPECT_LT(0, mock_read(mock_dev, m->buf, FUSE_MIN_READ_BUFFER));
		close(mock_dev);
		mock_dev = -1;
		ASSERT_TRUE(mock_call_done(call));
		return;
	}
	mock_serve(m, &req);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
}

/* The window of readahead: before 7.6 as large as a READ, since then what the server says. */
TEST_F_TIMEOUT(compat, readahead, TEST_BOUND)
{
	self->m->init.echo_readahead = false;
	self->m->init.out.max_readahead = 5 * MOCK_PAGE;
	START(self->m, ",max_read=16384");
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	EXPECT_EQ(variant->minor < 6 ? 16 : 20, mock_readahead_kb(self->m));
}

/* A struct of another version's size is no answer. */
static int wrong_size(struct mock *m, struct mock_request *req)
{
	struct fuse_entry_out out;
	uint64_t id = mock_find(m, req->in->nodeid, req->arg);

	mock_entry(m, id, &out);
	mock_reply(m, req, 0, &out, m->init.out.minor < 9 ? sizeof(out) : FUSE_COMPAT_ENTRY_OUT_SIZE);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(compat, wrong_size, TEST_BOUND)
{
	self->m->handler[FUSE_LOOKUP] = wrong_size;
	START(self->m, "");
	EXPECT_CALL(EIO, self->m, mock_call_stat, mock_path(self->m, "file"));
	EXPECT_EQ(EINVAL, mock_wait_answered(self->m, FUSE_LOOKUP));
}

/* max_background counts since 7.13: that many READs are under way at once. */
FIXTURE(background) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_VARIANT(background) {
	uint32_t minor;
	uint32_t expected;
};

FIXTURE_VARIANT_ADD(background, minor_12) { .minor = 12, .expected = 12 };
FIXTURE_VARIANT_ADD(background, minor_13) { .minor = 13, .expected = 3 };

FIXTURE_SETUP(background)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, SIZE);
}

FIXTURE_TEARDOWN(background)
{
	mock_destroy(self->m);
}

static int hold_read(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

TEST_F_TIMEOUT(background, limit, TEST_BOUND)
{
	struct mock_call *call;

	self->m->init.out.minor = variant->minor;
	self->m->init.size = FUSE_COMPAT_22_INIT_OUT_SIZE;
	self->m->init.out.max_background = 3;
	self->m->init.out.congestion_threshold = 3;
	self->m->handler[FUSE_READ] = hold_read;
	START(self->m, ",max_read=4096");
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, 512));
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	for (uint32_t held = 0; !held || held != self->m->held; usleep(300000))
		held = self->m->held;
	EXPECT_EQ(variant->expected, self->m->held);
	self->m->handler[FUSE_READ] = NULL;
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(SIZE, call->ret);
}

/* An INIT that nothing can be made of: every request fails, and one line in the kernel's log says why. */
FIXTURE(useless) {
	struct mock *m;
	int log;
};

FIXTURE_SETUP(useless)
{
	SETUP_MOCK(self->m);
	self->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, self->log);
	lseek(self->log, 0, SEEK_END);
}

FIXTURE_TEARDOWN(useless)
{
	close(self->log);
	mock_destroy(self->m);
}

static void useless(struct __test_metadata *_metadata, struct mock *m, int log, const char *why)
{
	bool silent = KNOWN_DIFFERENCE("nothing in the kernel's log says why a mount is useless");
	int lines = 0, right = 0;
	char line[8192];
	ssize_t len;

	START(m, "");
	ASSERT_LE(0, mock_wait_answered(m, FUSE_INIT));
	for (int i = 0; i < 3; i++)
		EXPECT_CALL(ECONNREFUSED, m, mock_call_stat, m->dir);
	while ((len = read(log, line, sizeof(line) - 1)) > 0) {
		line[len] = 0;
		if (!strstr(line, "fuse"))
			continue;
		lines += strstr(line, "unusable") != NULL;
		right += strstr(line, why) != NULL;
	}
	EXPECT_EQ(!silent, lines);
	EXPECT_EQ(!silent, right);
}

TEST_F_TIMEOUT(useless, error, TEST_BOUND)
{
	self->m->init.error = -EPROTO;
	useless(_metadata, self->m, self->log, "answered INIT with error 71");
}

TEST_F_TIMEOUT(useless, major, TEST_BOUND)
{
	self->m->init.out.major = 8;
	useless(_metadata, self->m, self->log, "version 8 of the protocol, not 7");
}

TEST_F_TIMEOUT(useless, empty, TEST_BOUND)
{
	self->m->init.size = 0;
	useless(_metadata, self->m, self->log, "the server");
}

TEST_HARNESS_MAIN
