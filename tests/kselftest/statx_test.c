// SPDX-License-Identifier: GPL-2.0
/* statx(2): the time of creation, masks, and when the server is asked. */
#include <sys/sysmacros.h>

#include "fuse_test.h"

#define BTIME_SEC	1600000000

FIXTURE(statx) {
	struct mock *m;
	uint64_t file, dir;
};

FIXTURE_SETUP(statx)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10000);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 01755, 0);
}

FIXTURE_TEARDOWN(statx)
{
	mock_destroy(self->m);
}

/* What the script says with: knobs. */
enum { MASK, ANSWER, SIZE, MODE, BTIME_NSEC };

static int answer_statx(struct mock *m, struct mock_request *req)
{
	struct fuse_statx_out out = { .attr_valid = m->attr_valid };
	struct fuse_attr attr;

	if (m->knob[ANSWER])
		return -(int)m->knob[ANSWER];
	mock_attr(m, req->in->nodeid, &attr);
	out.stat = (struct fuse_statx){
		.mask = m->knob[MASK],
		.blksize = attr.blksize,
		.attributes = ~0ULL,
		.attributes_mask = ~0ULL,
		.nlink = attr.nlink,
		.uid = attr.uid,
		.gid = attr.gid,
		.mode = m->knob[MODE] ? m->knob[MODE] : attr.mode,
		.ino = attr.ino,
		.size = m->knob[SIZE] ? m->knob[SIZE] : attr.size,
		.blocks = attr.blocks,
		.atime = { .tv_sec = attr.atime },
		.btime = { .tv_sec = BTIME_SEC, .tv_nsec = m->knob[BTIME_NSEC] },
		.ctime = { .tv_sec = attr.ctime },
		.mtime = { .tv_sec = attr.mtime, .tv_nsec = attr.mtimensec },
	};
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

static void statx_server(struct mock *m)
{
	m->handler[FUSE_STATX] = answer_statx;
	m->knob[MASK] = STATX_BASIC_STATS | STATX_BTIME;
}

static int ask(struct mock *m, const char *name, int flags, unsigned int mask, struct statx *stx)
{
	memset(stx, 0, sizeof(*stx));
	return statx(AT_FDCWD, mock_path(m, name), flags, mask, stx);
}

/* STATX is for who wants to know when the file was made; the answer holds for all. */
TEST_F_TIMEOUT(statx, btime, TEST_BOUND)
{
	const struct fuse_statx_in *in;
	struct statx stx;

	statx_server(self->m);
	self->m->knob[BTIME_NSEC] = 7;
	START(self->m, "");
	ASSERT_EQ(0, ask(self->m, "file", 0, STATX_BASIC_STATS, &stx));
	EXPECT_EQ(STATX_BASIC_STATS, stx.stx_mask & (STATX_BASIC_STATS | STATX_BTIME));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_STATX));
	ASSERT_EQ(0, ask(self->m, "file", 0, STATX_BTIME, &stx));
	EXPECT_EQ(STATX_BASIC_STATS | STATX_BTIME, stx.stx_mask & (STATX_BASIC_STATS | STATX_BTIME));
	EXPECT_EQ(BTIME_SEC, stx.stx_btime.tv_sec);
	EXPECT_EQ(7U, stx.stx_btime.tv_nsec);
	EXPECT_EQ(10000U, stx.stx_size);
	EXPECT_EQ(S_IFREG | 0644, stx.stx_mode);
	EXPECT_EQ(self->file, stx.stx_ino);
	EXPECT_EQ(MOCK_PAGE, stx.stx_blksize);
	EXPECT_EQ(123456789U, stx.stx_mtime.tv_nsec);
	/* The server's attributes are its own. */
	EXPECT_EQ(0U, stx.stx_attributes & STATX_ATTR_IMMUTABLE);
	EXPECT_EQ(0U, stx.stx_attributes_mask & STATX_ATTR_IMMUTABLE);
	ASSERT_EQ(1U, mock_count(self->m, FUSE_STATX));
	in = (void *)(mock_last(self->m, FUSE_STATX)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(sizeof(struct fuse_in_header) + sizeof(*in), mock_last(self->m, FUSE_STATX)->in.len);
	EXPECT_EQ(STATX_BASIC_STATS | STATX_BTIME, in->sx_mask);
	EXPECT_EQ(0U, in->sx_flags);
	EXPECT_EQ(0U, in->getattr_flags);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, ask(self->m, "file", 0, STATX_BASIC_STATS | STATX_BTIME, &stx));
		EXPECT_TRUE(stx.stx_mask & STATX_BTIME);
		EXPECT_EQ(BTIME_SEC, stx.stx_btime.tv_sec);
	}
	EXPECT_EQ(1U, mock_count(self->m, FUSE_STATX));
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->file));
}

/* A server that does not know it says so by the mask, and is not asked again while that holds. */
TEST_F_TIMEOUT(statx, btime_unknown, TEST_BOUND)
{
	struct statx stx;

	statx_server(self->m);
	self->m->knob[MASK] = STATX_BASIC_STATS;
	START(self->m, "");
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, ask(self->m, "file", 0, STATX_BASIC_STATS | STATX_BTIME, &stx));
		EXPECT_EQ(STATX_BASIC_STATS, stx.stx_mask & (STATX_BASIC_STATS | STATX_BTIME));
	}
	EXPECT_EQ(1U, mock_count(self->m, FUSE_STATX));
}

TEST_F_TIMEOUT(statx, btime_nsec, TEST_BOUND)
{
	struct statx stx;

	statx_server(self->m);
	self->m->knob[BTIME_NSEC] = UINT32_MAX;
	START(self->m, "");
	ASSERT_EQ(0, ask(self->m, "file", 0, STATX_BTIME, &stx));
	EXPECT_EQ(999999999U, stx.stx_btime.tv_nsec);
	EXPECT_EQ(0, ask(self->m, "file", 0, STATX_BTIME, &stx));
	EXPECT_EQ(999999999U, stx.stx_btime.tv_nsec);
}

/* A server without STATX is asked for it once; GETATTR does, where anything is to be asked at all. */
TEST_F_TIMEOUT(statx, not_implemented, TEST_BOUND)
{
	struct statx stx;

	START(self->m, "");
	ASSERT_EQ(0, ask(self->m, "file", 0, STATX_BASIC_STATS | STATX_BTIME, &stx));
	EXPECT_EQ(STATX_BASIC_STATS, stx.stx_mask & (STATX_BASIC_STATS | STATX_BTIME));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_STATX));
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->file));
	ASSERT_EQ(0, ask(self->m, "dir", AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME, &stx));
	EXPECT_EQ(1U, mock_count_node(self->m, FUSE_GETATTR, self->dir));
	ASSERT_EQ(0, ask(self->m, "dir", 0, STATX_BTIME, &stx));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_STATX));
	EXPECT_EQ(1U, mock_count_node(self->m, FUSE_GETATTR, self->dir));
}

TEST_F_TIMEOUT(statx, error, TEST_BOUND)
{
	struct statx stx;

	statx_server(self->m);
	self->m->knob[ANSWER] = EOWNERDEAD;
	START(self->m, "");
	EXPECT_ERRNO(EOWNERDEAD, ask(self->m, "file", 0, STATX_BTIME, &stx));
	EXPECT_EQ(0, ask(self->m, "file", 0, STATX_BASIC_STATS, &stx));
}

/* AT_STATX_FORCE_SYNC asks though all holds, AT_STATX_DONT_SYNC does not though nothing does. */
TEST_F_TIMEOUT(statx, sync_flags, TEST_BOUND)
{
	struct statx stx;

	START(self->m, "");
	ASSERT_EQ(0, ask(self->m, "file", 0, STATX_SIZE, &stx));
	mock_node(self->m, self->file)->size = 333;
	ASSERT_EQ(0, ask(self->m, "file", 0, STATX_SIZE, &stx));
	EXPECT_EQ(10000U, stx.stx_size);
	for (uint32_t i = 1; i <= 2; i++) {
		ASSERT_EQ(0, ask(self->m, "file", AT_STATX_FORCE_SYNC, STATX_SIZE, &stx));
		EXPECT_EQ(333U, stx.stx_size);
		EXPECT_EQ(i, mock_count_node(self->m, FUSE_GETATTR, self->file));
	}
	self->m->attr_valid = 0;
	ASSERT_EQ(0, ask(self->m, "dir", AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &stx));
	EXPECT_EQ(S_IFDIR | 01755, stx.stx_mode);
	ASSERT_EQ(0, ask(self->m, "dir", AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &stx));
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->dir));
	ASSERT_EQ(0, ask(self->m, "dir", 0, STATX_MODE, &stx));
	EXPECT_EQ(1U, mock_count_node(self->m, FUSE_GETATTR, self->dir));
}

/* Who wants nothing, or nothing that a server could know, is told what is at hand. */
TEST_F_TIMEOUT(statx, nothing_asked, TEST_BOUND)
{
	struct statx stx;

	self->m->attr_valid = 0;
	START(self->m, "");
	ASSERT_EQ(0, ask(self->m, "file", 0, 0, &stx));
	ASSERT_EQ(0, ask(self->m, "file", AT_STATX_FORCE_SYNC, STATX_MNT_ID, &stx));
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->file));
	EXPECT_EQ(self->file, stx.stx_ino);
}

/* An answer without some field: what it has is shown, nothing of it is kept for later. */
TEST_F_TIMEOUT(statx, partial_answer, TEST_BOUND)
{
	struct statx stx;

	statx_server(self->m);
	self->m->knob[MASK] = STATX_TYPE | STATX_MODE | STATX_SIZE | STATX_BTIME;
	START(self->m, "");
	mock_node(self->m, self->file)->size = 10000;
	for (uint32_t i = 1; i <= 2; i++) {
		mock_node(self->m, self->file)->size += 100;
		ASSERT_EQ(0, ask(self->m, "file", AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME, &stx));
		EXPECT_EQ(self->m->knob[MASK], stx.stx_mask & (STATX_BASIC_STATS | STATX_BTIME));
		EXPECT_EQ(10000 + 100 * i, stx.stx_size);
		EXPECT_EQ(BTIME_SEC, stx.stx_btime.tv_sec);
		EXPECT_EQ(i, mock_count(self->m, FUSE_STATX));
	}
}

/* Another type, no type, or a size that can't be: the inode is bad. */
TEST_F_TIMEOUT(statx, bad_type, TEST_BOUND)
{
	struct statx stx;

	statx_server(self->m);
	self->m->knob[MODE] = S_IFDIR | 0755;
	START(self->m, "");
	EXPECT_ERRNO(EIO, ask(self->m, "file", 0, STATX_BTIME, &stx));
	self->m->knob[MODE] = 0644;
	EXPECT_ERRNO(EIO, ask(self->m, "dir", 0, STATX_BTIME, &stx));
}

TEST_F_TIMEOUT(statx, bad_size, TEST_BOUND)
{
	struct statx stx;
	int fd;

	statx_server(self->m);
	self->m->knob[SIZE] = 1ULL << 63;
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EIO, ask(self->m, "file", 0, STATX_BTIME, &stx));
	EXPECT_ERRNO(EIO, statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx));
	close(fd);
}

/* Others than the mounter learn on which device nothing is. */
static long stranger(struct mock *m, const void *mask)
{
	struct statx stx;

	if (setgid(4321) || setuid(1234))
		return 2;
	if (statx(AT_FDCWD, m->dir, AT_STATX_DONT_SYNC, *(const unsigned int *)mask, &stx))
		return -1;
	if (!stx.stx_dev_major && !stx.stx_dev_minor)
		return 3;
	return stx.stx_ino || stx.stx_mode || (stx.stx_mask & STATX_BASIC_STATS) ? 4 : 0;
}

TEST_F_TIMEOUT(statx, stranger, TEST_BOUND)
{
	static const unsigned int nothing, basic = STATX_BASIC_STATS, mount_id = STATX_MNT_ID;
	struct mock_call *call;

	START(self->m, "");
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	call = mock_call(self->m, stranger, &nothing);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->ret) {
		TH_LOG("%ld %s", call->ret, strerror(call->error));
	}
	EXPECT_CALL(EACCES, self->m, stranger, &basic);
	EXPECT_CALL(EACCES, self->m, stranger, &mount_id);
}

TEST_HARNESS_MAIN
