// SPDX-License-Identifier: GPL-2.0
/* Attributes: which of two answers counts, how long it holds, what of it is shown, and who may do what by it. */
#include <limits.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "fuse_test.h"

FIXTURE(attr) {
	struct mock *m;
	uint64_t file, dir, nested;
};

FIXTURE_SETUP(attr)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10000);
	mock_add_hardlink(self->m, FUSE_ROOT_ID, "alias", self->file);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	self->nested = mock_add(self->m, self->dir, "nested", S_IFREG | 0644, 77);
}

FIXTURE_TEARDOWN(attr)
{
	mock_destroy(self->m);
}

static uint32_t getattrs(struct mock *m, uint64_t id)
{
	return mock_count_node(m, FUSE_GETATTR, id);
}

/* A request whose reply comes later, after others were taken. */
static struct mock_request keep(struct mock_request *req)
{
	struct mock_request kept = *req;

	kept.in = &req->record->in;
	kept.arg = NULL;
	return kept;
}

/*
 * Two GETATTRs under way, answered in reverse order: the answer to the older one is old news, though it comes last and
 * claims to hold.
 */
TEST_F_TIMEOUT(attr, reverse_order, TEST_BOUND)
{
	struct fuse_attr_out out = { .attr_valid = 3600 };
	struct mock_request old, new;
	struct mock_call *call[2];
	struct stat st;

	self->m->attr_valid = 0;
	ASSERT_EQ(0, mock_mount(self->m, ""));
	call[0] = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_GETATTR, &old));
	old = keep(&old);
	call[1] = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_GETATTR, &new));
	new = keep(&new);
	mock_attr(self->m, self->file, &out.attr);
	out.attr.size = 20000;
	EXPECT_EQ(0, mock_reply_attr(self->m, &new, &out));
	ASSERT_TRUE(mock_call_done(call[1]));
	out.attr.size = 5000;
	EXPECT_EQ(0, mock_reply_attr(self->m, &old, &out));
	ASSERT_TRUE(mock_call_done(call[0]));
	EXPECT_EQ(0, call[0]->error);
	EXPECT_EQ(0, call[1]->error);
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(20000, st.st_size);
	EXPECT_EQ(2U, getattrs(self->m, self->file));
}

/* The same where the older answer is that of a LOOKUP, by another name of the file. */
TEST_F_TIMEOUT(attr, reverse_order_lookup, TEST_BOUND)
{
	struct fuse_attr_out out = { .attr_valid = 3600 };
	struct fuse_entry_out entry;
	struct mock_request old, new;
	struct mock_call *call[2];
	struct stat st;

	self->m->attr_valid = 0;
	ASSERT_EQ(0, mock_mount(self->m, ""));
	call[0] = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_GETATTR, &new));
	new = keep(&new);
	call[1] = mock_call(self->m, mock_call_stat, mock_path(self->m, "alias"));
	ASSERT_EQ(0, mock_take(self->m, &old));
	ASSERT_EQ(FUSE_LOOKUP, (int)old.in->opcode);
	old = keep(&old);
	mock_attr(self->m, self->file, &out.attr);
	out.attr.size = 20000;
	EXPECT_EQ(0, mock_reply_attr(self->m, &new, &out));
	ASSERT_TRUE(mock_call_done(call[0]));
	mock_entry(self->m, self->file, &entry);
	entry.attr.size = 5000;
	entry.attr_valid = 3600;
	EXPECT_EQ(0, mock_reply_entry(self->m, &old, &entry));
	ASSERT_TRUE(mock_call_done(call[1]));
	EXPECT_EQ(0, call[1]->error);
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_EQ(0, stat(mock_path(self->m, "alias"), &st));
	EXPECT_EQ(20000, st.st_size);
	EXPECT_EQ(1U, getattrs(self->m, self->file));
}

static int hold_alias(struct mock *m, struct mock_request *req)
{
	return strcmp(req->arg, "alias") ? MOCK_DEFAULT : MOCK_HOLD;
}

static bool forgotten(struct mock *m, uint64_t id)
{
	mock_drop_caches();
	return mock_node(m, id)->forgotten > 0;
}

/* A LOOKUP is answered after another inode of the node was evicted: its attributes may be older than that inode's were. */
TEST_F_TIMEOUT(attr, eviction_overtakes, TEST_BOUND)
{
	struct mock_call *call;
	struct stat st;

	self->m->handler[FUSE_LOOKUP] = hold_alias;
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "alias"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	ASSERT_TRUE(mock_wait(forgotten, self->m, self->file));
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
	EXPECT_EQ(1U, getattrs(self->m, self->file));
	/* Known again, they hold. */
	ASSERT_EQ(0, stat(mock_path(self->m, "alias"), &st));
	EXPECT_EQ(1U, getattrs(self->m, self->file));
}

/* Valid for ever, for a moment, and not at all. */
TEST_F_TIMEOUT(attr, timeouts, TEST_BOUND)
{
	struct stat st;

	self->m->attr_valid = UINT64_MAX;
	START(self->m, "");
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(0U, getattrs(self->m, self->file));
	self->m->attr_valid = 1;
	ASSERT_EQ(0, stat(mock_path(self->m, "dir"), &st));
	usleep(1300000);
	ASSERT_EQ(0, stat(mock_path(self->m, "dir"), &st));
	EXPECT_EQ(1U, getattrs(self->m, self->dir));
	self->m->attr_valid = 0;
	for (int i = 1; i <= 3; i++) {
		ASSERT_EQ(0, stat(mock_path(self->m, "dir/nested"), &st));
		EXPECT_EQ(i, getattrs(self->m, self->nested));
	}
}

/* What stat shows of odd values. */
static void odd_values(struct mock *m, uint64_t id, struct fuse_attr *attr)
{
	attr->ino = 0xdeadbeef00000000 + id;
	attr->atimensec = 1000000000;
	attr->mtimensec = UINT32_MAX;
	attr->ctimensec = 999999999;
	attr->mtime = -5;
	attr->blocks = 1ULL << 40;
	attr->nlink = 70000;
	attr->blksize = m->knob[0];
}

TEST_F_TIMEOUT(attr, odd_values, TEST_BOUND)
{
	static const struct { uint32_t told, shown; } blksize[] = {
		{ 0, MOCK_PAGE }, { 512, 512 }, { 1 << 20, 1 << 20 }, { 12345, 8192 }, { 1, 1 },
	};
	struct stat st;

	self->m->attr_hook = odd_values;
	self->m->attr_valid = 0;
	START(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(blksize); i++) {
		self->m->knob[0] = blksize[i].told;
		ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
		EXPECT_EQ(blksize[i].shown, st.st_blksize);
	}
	EXPECT_EQ(0xdeadbeef00000000 + self->file, st.st_ino);
	EXPECT_EQ(999999999, st.st_atim.tv_nsec);
	EXPECT_EQ(999999999, st.st_mtim.tv_nsec);
	EXPECT_EQ(999999999, st.st_ctim.tv_nsec);
	EXPECT_EQ(-5, st.st_mtim.tv_sec);
	EXPECT_EQ(1LL << 40, st.st_blocks);
	EXPECT_EQ(70000, st.st_nlink);
}

/* All bits of the mode are shown, whoever checks permissions; owners without a name here too. */
TEST_F_TIMEOUT(attr, mode_bits, TEST_BOUND)
{
	struct stat st;

	mock_node(self->m, self->dir)->mode = S_IFDIR | 07777;
	mock_node(self->m, self->file)->mode = S_IFREG | 06755;
	mock_node(self->m, self->file)->uid = -1;
	mock_node(self->m, self->file)->gid = -1;
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "dir"), &st));
	EXPECT_EQ(S_IFDIR | 07777U, st.st_mode);
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(S_IFREG | 06755U, st.st_mode);
	EXPECT_EQ(65534, st.st_uid);
	EXPECT_EQ(65534, st.st_gid);
}

static void sized(struct mock *m, uint64_t id, struct fuse_attr *attr)
{
	if (m->knob[0])
		attr->size = m->knob[0];
}

/* The largest size there is, and one more: that makes the inode bad, for those too who have it open. */
TEST_F_TIMEOUT(attr, size_limits, TEST_BOUND)
{
	char buf[10];
	struct stat st;
	int fd;

	self->m->attr_hook = sized;
	self->m->attr_valid = 0;
	START(self->m, "");
	self->m->knob[0] = LLONG_MAX;
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(LLONG_MAX, st.st_size);
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	self->m->knob[0] = LLONG_MAX + 1ULL;
	EXPECT_ERRNO(EIO, stat(mock_path(self->m, "file"), &st));
	EXPECT_ERRNO(EIO, fstat(fd, &st));
	EXPECT_ERRNO(EIO, read(fd, buf, sizeof(buf)));
	EXPECT_ERRNO(EIO, fstat(fd, &st));
	self->m->knob[0] = 0;
	if (KNOWN_DIFFERENCE("a bad inode is found by name again until it is evicted; in fuse_rs the next look-up makes a new one")) {
		EXPECT_ERRNO(EIO, stat(mock_path(self->m, "file"), &st));
	} else {
		EXPECT_EQ(0, stat(mock_path(self->m, "file"), &st));
		EXPECT_EQ(10000, st.st_size);
	}
	EXPECT_ERRNO(EIO, fstat(fd, &st));
	close(fd);
}

/* Which GETATTR names the open file: what reads it, not what shows it. */
TEST_F_TIMEOUT(attr, handle, TEST_BOUND)
{
	const struct fuse_getattr_in *in;
	char buf[100];
	struct stat st;
	int fd;

	self->m->attr_valid = 0;
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &st));
	in = (void *)(mock_last(self->m, FUSE_GETATTR)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(sizeof(struct fuse_in_header) + sizeof(*in), mock_last(self->m, FUSE_GETATTR)->in.len);
	EXPECT_EQ(0U, in->getattr_flags);
	EXPECT_EQ(10000, lseek(fd, 0, SEEK_END));
	in = (void *)(mock_last(self->m, FUSE_GETATTR)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(FUSE_GETATTR_FH, (int)in->getattr_flags);
	EXPECT_EQ(1U, in->fh);
	EXPECT_EQ(2U, getattrs(self->m, self->file));
	/* Past the end of what is known, and only there. */
	EXPECT_EQ(100, pread(fd, buf, 100, 0));
	EXPECT_EQ(2U, getattrs(self->m, self->file));
	EXPECT_EQ(50, pread(fd, buf, 100, 9950));
	EXPECT_EQ(3U, getattrs(self->m, self->file));
	in = (void *)(mock_last(self->m, FUSE_GETATTR)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(FUSE_GETATTR_FH, (int)in->getattr_flags);
	close(fd);
}

/* Reading changes the time of the last access at the server. Where nothing can change it is not asked for. */
TEST_F_TIMEOUT(attr, read_only_atime, TEST_BOUND)
{
	struct stat st;
	int fd;

	START(self->m, "");
	ASSERT_EQ(0, mount(NULL, self->m->dir, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, 10000);
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(0U, getattrs(self->m, self->file));
	close(fd);
}

/* Permissions */

static long become(struct mock *m)
{
	return setgid(4321) || setuid(1234);
}

static long open_as_other(struct mock *m, const void *path)
{
	int fd;

	if (become(m))
		return 2;
	fd = open(path, O_RDONLY);
	return fd < 0 ? -1 : close(fd);
}

static long access_as_other(struct mock *m, const void *path)
{
	return become(m) ? 2 : access(path, m->knob[0]);
}

static long chdir_as_other(struct mock *m, const void *path)
{
	return become(m) ? 2 : chdir(path);
}

static long exec_file(struct mock *m, const void *path)
{
	execl(path, path, NULL);
	return -1;
}

/* default_permissions: a mode that is out of date is asked for before, and once after it forbids. */
TEST_F_TIMEOUT(attr, permission_refresh, TEST_BOUND)
{
	struct stat st;

	mock_node(self->m, self->file)->mode = S_IFREG | 0600;
	START(self->m, ",allow_other,default_permissions");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_CALL(EACCES, self->m, open_as_other, mock_path(self->m, "file"));
	EXPECT_EQ(1U, getattrs(self->m, self->file));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_OPEN));
	mock_node(self->m, self->file)->mode = S_IFREG | 0644;
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "file"));
	EXPECT_EQ(2U, getattrs(self->m, self->file));
	/* What was allowed still is, for as long as the mode holds. */
	mock_node(self->m, self->file)->mode = S_IFREG | 0600;
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "file"));
	EXPECT_EQ(2U, getattrs(self->m, self->file));
}

TEST_F_TIMEOUT(attr, permission_timeout, TEST_BOUND)
{
	struct stat st;

	self->m->attr_valid = 0;
	START(self->m, ",allow_other,default_permissions");
	ASSERT_EQ(0, stat(mock_path(self->m, "dir/nested"), &st));
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "dir/nested"));
	/* A folder on the way is closed: at once. */
	mock_node(self->m, self->dir)->mode = S_IFDIR;
	EXPECT_CALL(EACCES, self->m, open_as_other, mock_path(self->m, "dir/nested"));
	mock_node(self->m, self->dir)->mode = S_IFDIR | 0711;
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "dir/nested"));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_ACCESS));
}

/* Without it the server alone checks: what is cached can be walked through, whatever a folder's mode has become. */
TEST_F_TIMEOUT(attr, cached_path, TEST_BOUND)
{
	START(self->m, ",allow_other");
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "dir/nested"));
	mock_node(self->m, self->dir)->mode = S_IFDIR;
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "dir/nested"));
	EXPECT_EQ(2U, mock_count(self->m, FUSE_OPEN));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_ACCESS));
}

static int access_answer(struct mock *m, struct mock_request *req)
{
	return m->knob[1] ? -(int)m->knob[1] : MOCK_DEFAULT;
}

/* access(2) and chdir(2) ask the server, nothing else does. */
TEST_F_TIMEOUT(attr, access, TEST_BOUND)
{
	const struct fuse_access_in *in;

	self->m->handler[FUSE_ACCESS] = access_answer;
	START(self->m, ",allow_other");
	self->m->knob[0] = R_OK | X_OK;
	EXPECT_CALL(0, self->m, access_as_other, mock_path(self->m, "dir"));
	ASSERT_EQ(1U, mock_count(self->m, FUSE_ACCESS));
	in = (void *)(mock_last(self->m, FUSE_ACCESS)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(R_OK | X_OK, (int)in->mask);
	EXPECT_EQ(1234U, mock_last(self->m, FUSE_ACCESS)->in.uid);
	EXPECT_EQ(self->dir, mock_last(self->m, FUSE_ACCESS)->in.nodeid);
	EXPECT_CALL(0, self->m, chdir_as_other, mock_path(self->m, "dir"));
	ASSERT_EQ(2U, mock_count(self->m, FUSE_ACCESS));
	in = (void *)(mock_last(self->m, FUSE_ACCESS)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(X_OK, (int)in->mask);
	EXPECT_CALL(0, self->m, open_as_other, mock_path(self->m, "dir/nested"));
	self->m->knob[0] = F_OK;
	EXPECT_CALL(0, self->m, access_as_other, mock_path(self->m, "file"));
	EXPECT_EQ(3U, mock_count(self->m, FUSE_ACCESS));
	in = (void *)(mock_last(self->m, FUSE_ACCESS)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(F_OK, (int)in->mask);
	self->m->knob[0] = R_OK;
	self->m->knob[1] = EACCES;
	EXPECT_CALL(EACCES, self->m, access_as_other, mock_path(self->m, "file"));
	EXPECT_CALL(EACCES, self->m, chdir_as_other, mock_path(self->m, "dir"));
	EXPECT_EQ(5U, mock_count(self->m, FUSE_ACCESS));
	/* A server that does not know the request is not asked again. */
	self->m->knob[1] = ENOSYS;
	EXPECT_CALL(0, self->m, access_as_other, mock_path(self->m, "file"));
	EXPECT_CALL(0, self->m, access_as_other, mock_path(self->m, "dir"));
	EXPECT_CALL(0, self->m, chdir_as_other, mock_path(self->m, "dir"));
	EXPECT_EQ(6U, mock_count(self->m, FUSE_ACCESS));
}

TEST_F_TIMEOUT(attr, access_by_mode, TEST_BOUND)
{
	START(self->m, ",allow_other,default_permissions");
	self->m->knob[0] = R_OK;
	EXPECT_CALL(0, self->m, access_as_other, mock_path(self->m, "file"));
	self->m->knob[0] = X_OK;
	EXPECT_CALL(EACCES, self->m, access_as_other, mock_path(self->m, "file"));
	EXPECT_CALL(0, self->m, chdir_as_other, mock_path(self->m, "dir"));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_ACCESS));
}

/* Whatever the server allows, what nobody may execute is not executed; its mode is asked for once more. */
TEST_F_TIMEOUT(attr, exec_bit, TEST_BOUND)
{
	struct stat st;

	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_CALL(EACCES, self->m, exec_file, mock_path(self->m, "file"));
	EXPECT_EQ(1U, getattrs(self->m, self->file));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_OPEN));
	mock_node(self->m, self->file)->mode = S_IFREG | 0755;
	EXPECT_CALL(ENOEXEC, self->m, exec_file, mock_path(self->m, "file"));
	EXPECT_EQ(2U, getattrs(self->m, self->file));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_OPEN));
}

TEST_HARNESS_MAIN
