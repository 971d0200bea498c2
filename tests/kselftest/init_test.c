// SPDX-License-Identifier: GPL-2.0
/* INIT: what the kernel offers, what it makes of good, old, odd and bad replies. */
#include <sys/statvfs.h>

#include "fuse_test.h"

FIXTURE(init) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_SETUP(init)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 300000);
}

FIXTURE_TEARDOWN(init)
{
	mock_destroy(self->m);
}

/* The mount works: attributes, statistics and data are those of the mock. */
static void works(struct __test_metadata *_metadata, struct mock *m, uint64_t file)
{
	const char *path = mock_path(m, "file");
	struct statvfs vfs;
	struct stat st;
	int fd;

	EXPECT_CALL(0, m, mock_call_stat, path);
	ASSERT_EQ(0, stat(path, &st));
	EXPECT_EQ(300000, st.st_size);
	EXPECT_EQ(file, st.st_ino);
	EXPECT_EQ(S_IFREG | 0644U, st.st_mode);
	EXPECT_EQ(1700000002, st.st_mtime);
	ASSERT_EQ(0, statvfs(m->dir, &vfs));
	EXPECT_EQ(1000003U, vfs.f_blocks);
	EXPECT_EQ(40009U, vfs.f_ffree);
	fd = open(path, O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, file, 0, 300000);
	close(fd);
}

/* The connection is refused for good: nothing but INIT was ever sent. */
static void refused(struct __test_metadata *_metadata, struct mock *m)
{
	ASSERT_LE(0, mock_wait_answered(m, FUSE_INIT));
	EXPECT_CALL(ECONNREFUSED, m, mock_call_stat, mock_path(m, "file"));
	EXPECT_CALL(ECONNREFUSED, m, mock_call_stat, m->dir);
	EXPECT_EQ(1U, mock_count(m, FUSE_INIT));
	EXPECT_EQ(0U, mock_count(m, FUSE_LOOKUP));
	EXPECT_EQ(0, mock_umount(m));
}

TEST_F_TIMEOUT(init, offer, TEST_BOUND)
{
	struct mock_record *record;

	START(self->m, "");
	works(_metadata, self->m, self->file);
	ASSERT_EQ(1U, mock_count(self->m, FUSE_INIT));
	record = mock_last(self->m, FUSE_INIT);
	EXPECT_EQ(record, &self->m->record[0]) {
		TH_LOG("INIT is not the first request");
	}
	EXPECT_EQ(sizeof(struct fuse_in_header) + sizeof(struct fuse_init_in), record->in.len);
	EXPECT_EQ(0U, record->in.unique & 1);
	EXPECT_EQ(0U, record->in.total_extlen);
	EXPECT_EQ(FUSE_KERNEL_VERSION, self->m->offered.major);
	EXPECT_LE(mock_in_tree() ? 31 : FUSE_KERNEL_MINOR_VERSION, self->m->offered.minor);
	EXPECT_LT(0U, self->m->offered.max_readahead);
	EXPECT_EQ(0U, self->m->offered.max_readahead % MOCK_PAGE);
	EXPECT_EQ(FUSE_MAX_PAGES | FUSE_INIT_EXT, self->m->offered.flags & (FUSE_MAX_PAGES | FUSE_INIT_EXT));
	for (size_t i = 0; i < ARRAY_SIZE(self->m->offered.unused); i++)
		EXPECT_EQ(0U, self->m->offered.unused[i]);
}

/* Nothing goes out before INIT is answered, and what waited goes out then. */
TEST_F_TIMEOUT(init, others_wait, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take(self->m, &req));
	ASSERT_EQ(FUSE_INIT, (int)req.in->opcode);
	usleep(200000);		/* time for the call to send something that it must not send */
	EXPECT_EQ(-1, mock_read(mock_dev, self->m->buf + sizeof(struct fuse_in_header) +
				sizeof(struct fuse_init_in), FUSE_MIN_READ_BUFFER));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_FALSE(call->done);
	mock_serve(self->m, &req);
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
}

TEST_F_TIMEOUT(init, dies_before_reply, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take(self->m, &req));
	close(mock_dev);
	mock_dev = -1;
	ASSERT_TRUE(mock_call_done(call));
	/* In-tree: ECONNREFUSED since INIT failed; before 7.3 ENOTCONN. */
	EXPECT_TRUE(call->error == ENOTCONN || call->error == ECONNREFUSED) {
		TH_LOG("%s", strerror(call->error));
	}
	EXPECT_EQ(0, mock_umount(self->m));
}

TEST_F_TIMEOUT(init, umount_before_reply, TEST_BOUND)
{
	struct mock_request req;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(0, mock_umount(self->m));
	EXPECT_ERRNO(ENOENT, mock_reply(self->m, &req, 0, &self->m->init.out, sizeof(self->m->init.out)));
}

/* Who waited for INIT learns of its failure too. The mock's answer has a size that a failed INIT did not agree on. */
static void waiter_refused(struct __test_metadata *_metadata, struct mock *m)
{
	bool sent = KNOWN_DIFFERENCE("a call that waited for INIT may be sent although INIT failed (seen on 7.3)");
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(m, ""));
	call = mock_call(m, mock_call_stat, mock_path(m, "file"));
	ASSERT_EQ(0, mock_take(m, &req));
	usleep(100000);		/* for the call to come to wait */
	mock_serve(m, &req);
	ASSERT_EQ(0, mock_start(m));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_TRUE(call->error == ECONNREFUSED || (sent && call->error == EIO)) {
		TH_LOG("%s", strerror(call->error));
	}
}

TEST_F_TIMEOUT(init, waiter_error_reply, TEST_BOUND)
{
	self->m->init.error = -EPROTO;
	waiter_refused(_metadata, self->m);
}

TEST_F_TIMEOUT(init, waiter_major_newer, TEST_BOUND)
{
	self->m->init.out.major = 8;
	waiter_refused(_metadata, self->m);
}

TEST_F_TIMEOUT(init, error_reply, TEST_BOUND)
{
	self->m->init.error = -EPROTO;
	START(self->m, "");
	refused(_metadata, self->m);
}

TEST_F_TIMEOUT(init, major_older, TEST_BOUND)
{
	self->m->init.out.major = 6;
	START(self->m, "");
	refused(_metadata, self->m);
}

TEST_F_TIMEOUT(init, major_newer, TEST_BOUND)
{
	self->m->init.out.major = 8;
	START(self->m, "");
	refused(_metadata, self->m);
}

TEST_F_TIMEOUT(init, empty_reply, TEST_BOUND)
{
	self->m->init.size = 0;
	START(self->m, "");
	refused(_metadata, self->m);
}

/* More bytes than the struct has: the write is refused, and so is the connection. */
TEST_F_TIMEOUT(init, oversized_reply, TEST_BOUND)
{
	self->m->init.size = sizeof(struct fuse_init_out) + 1;
	START(self->m, "");
	refused(_metadata, self->m);
	EXPECT_EQ(EINVAL, mock_wait_answered(self->m, FUSE_INIT));
}

/* A minor newer than ours is taken as ours. */
TEST_F_TIMEOUT(init, minor_newer, TEST_BOUND)
{
	self->m->init.out.minor = 99;
	START(self->m, "");
	works(_metadata, self->m, self->file);
}

/* Bits nobody has defined are ignored. */
TEST_F_TIMEOUT(init, unknown_flags, TEST_BOUND)
{
	self->m->init.out.flags |= FUSE_INIT_EXT;
	self->m->init.out.flags2 = 0xfff00000;
	START(self->m, "");
	works(_metadata, self->m, self->file);
}

/* flags2 counts only with FUSE_INIT_EXT: without it, garbage there is harmless. */
TEST_F_TIMEOUT(init, flags2_without_ext, TEST_BOUND)
{
	self->m->init.out.flags2 = 0xffffffff;
	START(self->m, "");
	works(_metadata, self->m, self->file);
}

TEST_F_TIMEOUT(init, limits_zero, TEST_BOUND)
{
	struct fuse_init_out *out = &self->m->init.out;

	self->m->init.echo_readahead = false;
	out->max_readahead = 0;
	out->max_background = 0;
	out->congestion_threshold = 0;
	out->max_write = 0;
	out->max_pages = 0;
	out->time_gran = 0;
	START(self->m, "");
	works(_metadata, self->m, self->file);
	EXPECT_GE(MOCK_PAGE, mock_max_size(self->m, FUSE_READ, self->file));
}

TEST_F_TIMEOUT(init, limits_huge, TEST_BOUND)
{
	struct fuse_init_out *out = &self->m->init.out;

	self->m->init.echo_readahead = false;
	out->max_readahead = UINT32_MAX;
	out->max_background = UINT16_MAX;
	out->congestion_threshold = UINT16_MAX;
	out->max_write = 64 << 20;
	out->max_pages = UINT16_MAX;
	out->time_gran = UINT32_MAX;
	START(self->m, "");
	works(_metadata, self->m, self->file);
	EXPECT_GE(256 * MOCK_PAGE, mock_max_size(self->m, FUSE_READ, self->file));
}

/* Three bytes hold the major (little endian) and no minor: the oldest protocol there is. */
TEST_F_TIMEOUT(init, cut_in_major, TEST_BOUND)
{
	self->m->init.out.minor = 0;
	self->m->init.size = 3;
	START(self->m, "");
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	EXPECT_EQ(0, mock_umount(self->m));
}

/* Replies as short as an older minor made them, and cut at odd places. */
FIXTURE(init_size) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_VARIANT(init_size) {
	uint32_t minor;
	size_t size;
};

#define SIZE_VARIANT(name, minor_, size_)				\
	FIXTURE_VARIANT_ADD(init_size, name) { .minor = minor_, .size = size_ }

SIZE_VARIANT(minor_3, 3, FUSE_COMPAT_INIT_OUT_SIZE);
SIZE_VARIANT(minor_4, 4, FUSE_COMPAT_INIT_OUT_SIZE);
SIZE_VARIANT(minor_8, 8, FUSE_COMPAT_22_INIT_OUT_SIZE);
SIZE_VARIANT(minor_12, 12, FUSE_COMPAT_22_INIT_OUT_SIZE);
SIZE_VARIANT(minor_15, 15, FUSE_COMPAT_22_INIT_OUT_SIZE);
SIZE_VARIANT(minor_22, 22, FUSE_COMPAT_22_INIT_OUT_SIZE);
SIZE_VARIANT(minor_23, 23, sizeof(struct fuse_init_out));
SIZE_VARIANT(minor_31, 31, sizeof(struct fuse_init_out));
SIZE_VARIANT(cut_9, FUSE_KERNEL_MINOR_VERSION, 9);
SIZE_VARIANT(cut_23, FUSE_KERNEL_MINOR_VERSION, 23);
SIZE_VARIANT(cut_29, FUSE_KERNEL_MINOR_VERSION, 29);
SIZE_VARIANT(cut_63, FUSE_KERNEL_MINOR_VERSION, 63);

FIXTURE_SETUP(init_size)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 300000);
	self->m->init.out.minor = variant->minor;
	self->m->init.size = variant->size;
}

FIXTURE_TEARDOWN(init_size)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(init_size, works, TEST_BOUND)
{
	START(self->m, "");
	works(_metadata, self->m, self->file);
	EXPECT_EQ(0, mock_wait_answered(self->m, FUSE_INIT));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_INIT));
}

/* max_pages as READ shows it: a large read is cut to it. */
FIXTURE(init_pages) {
	struct mock *m;
	uint64_t file;
	int old_limit;
};

FIXTURE_VARIANT(init_pages) {
	uint32_t flags;
	uint16_t max_pages;
	uint32_t expected;	/* pages */
};

FIXTURE_VARIANT_ADD(init_pages, flag_absent) { .flags = 0, .max_pages = 200, .expected = 32 };
FIXTURE_VARIANT_ADD(init_pages, zero) { .flags = FUSE_MAX_PAGES, .max_pages = 0, .expected = 1 };
FIXTURE_VARIANT_ADD(init_pages, one) { .flags = FUSE_MAX_PAGES, .max_pages = 1, .expected = 1 };
FIXTURE_VARIANT_ADD(init_pages, sixty_four) { .flags = FUSE_MAX_PAGES, .max_pages = 64, .expected = 64 };
FIXTURE_VARIANT_ADD(init_pages, above_limit) { .flags = FUSE_MAX_PAGES, .max_pages = 65535, .expected = 256 };

FIXTURE_SETUP(init_pages)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 16 << 20);
	self->m->init.out.flags = FUSE_ASYNC_READ | variant->flags;
	self->m->init.out.max_pages = variant->max_pages;
	self->old_limit = mock_set_max_pages_limit(256);
}

FIXTURE_TEARDOWN(init_pages)
{
	if (self->old_limit > 0)
		mock_set_max_pages_limit(self->old_limit);
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(init_pages, largest_read, TEST_BOUND)
{
	int fd;

	START(self->m, "");
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, 2048));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, 16 << 20);
	EXPECT_EQ(variant->expected * MOCK_PAGE, mock_max_size(self->m, FUSE_READ, self->file));
	close(fd);
}

TEST_HARNESS_MAIN
