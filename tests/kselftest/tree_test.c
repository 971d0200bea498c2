// SPDX-License-Identifier: GPL-2.0
/* The tree as programs see it: attributes, directories, links, handles, permissions, and what is refused. */
#include <dirent.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <linux/magic.h>

#include "fuse_test.h"

FIXTURE(tree) {
	struct mock *m;
	uint64_t file, dir, nested;
};

FIXTURE_SETUP(tree)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10000);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	self->nested = mock_add(self->m, self->dir, "nested", S_IFREG | 0600, 77);
	mock_add_symlink(self->m, FUSE_ROOT_ID, "link", "dir/nested");
	mock_add_symlink(self->m, FUSE_ROOT_ID, "dangling", "nowhere");
}

FIXTURE_TEARDOWN(tree)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(tree, stat, TEST_BOUND)
{
	struct mock_node *node = mock_node(self->m, self->file);
	struct stat st, root;

	node->uid = 1234;
	node->gid = 5678;
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(self->file, st.st_ino);
	EXPECT_EQ(S_IFREG | 0644U, st.st_mode);
	EXPECT_EQ(1, st.st_nlink);
	EXPECT_EQ(1234, st.st_uid);
	EXPECT_EQ(5678, st.st_gid);
	EXPECT_EQ(10000, st.st_size);
	EXPECT_EQ(20, st.st_blocks);
	EXPECT_EQ(MOCK_PAGE, st.st_blksize);
	EXPECT_EQ(1700000001, st.st_atim.tv_sec);
	EXPECT_EQ(1700000002, st.st_mtim.tv_sec);
	EXPECT_EQ(123456789, st.st_mtim.tv_nsec);
	EXPECT_EQ(1700000003, st.st_ctim.tv_sec);
	ASSERT_EQ(0, stat(self->m->dir, &root));
	EXPECT_EQ(S_IFDIR | 0755U, root.st_mode);
	EXPECT_EQ(FUSE_ROOT_ID, root.st_ino);
	EXPECT_EQ(st.st_dev, root.st_dev);
	EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "absent"), &st));
	EXPECT_ERRNO(ENOTDIR, stat(mock_path(self->m, "file/x"), &st));
}

/* Special files show their type and device. */
TEST_F_TIMEOUT(tree, special_files, TEST_BOUND)
{
	static const uint32_t type[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };
	struct stat st;
	char name[16];

	for (size_t i = 0; i < ARRAY_SIZE(type); i++) {
		snprintf(name, sizeof(name), "special%zu", i);
		mock_add(self->m, FUSE_ROOT_ID, name, type[i] | 0640, 0);
	}
	START(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(type); i++) {
		snprintf(name, sizeof(name), "special%zu", i);
		ASSERT_EQ(0, lstat(mock_path(self->m, name), &st));
		EXPECT_EQ(type[i] | 0640, st.st_mode);
	}
}

/* Attributes are asked for again when their time is over, and not before. */
TEST_F_TIMEOUT(tree, attribute_timeout, TEST_BOUND)
{
	struct stat st;
	int fd;

	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	for (int i = 0; i < 5; i++)
		ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_LOOKUP));
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->file));
	self->m->attr_valid = 0;
	ASSERT_EQ(0, stat(mock_path(self->m, "dir"), &st));
	mock_node(self->m, self->dir)->mode = S_IFDIR | 0700;
	ASSERT_EQ(0, stat(mock_path(self->m, "dir"), &st));
	EXPECT_EQ(S_IFDIR | 0700U, st.st_mode);
	EXPECT_LT(0U, mock_count_node(self->m, FUSE_GETATTR, self->dir));
	/* An open file's attributes too; the change is seen by fstat. */
	fd = open(mock_path(self->m, "dir/nested"), O_RDONLY);
	ASSERT_LE(0, fd);
	mock_node(self->m, self->nested)->size = 99;
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(99, st.st_size);
	close(fd);
}

/* The end of a file that has grown at the server, when what is known of it does not hold. */
TEST_F_TIMEOUT(tree, seek_end, TEST_BOUND)
{
	int fd;

	START(self->m, "");
	self->m->attr_valid = 0;
	fd = open(mock_path(self->m, "dir/nested"), O_RDONLY);
	ASSERT_LE(0, fd);
	mock_node(self->m, self->nested)->size = 12345;
	EXPECT_EQ(12345, lseek(fd, 0, SEEK_END));
	close(fd);
}

/* A type that changes under the same id makes the inode bad: EIO, no crash. */
TEST_F_TIMEOUT(tree, type_changes, TEST_BOUND)
{
	struct stat st;

	self->m->attr_valid = 0;
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	mock_node(self->m, self->file)->mode = S_IFDIR | 0755;
	EXPECT_ERRNO(EIO, stat(mock_path(self->m, "file"), &st));
}

TEST_F_TIMEOUT(tree, statfs, TEST_BOUND)
{
	struct statfs fs;
	struct statvfs vfs;

	START(self->m, "");
	ASSERT_EQ(0, statfs(self->m->dir, &fs));
	EXPECT_EQ(FUSE_SUPER_MAGIC, fs.f_type);
	EXPECT_EQ(1000003, fs.f_blocks);
	EXPECT_EQ(700001, fs.f_bfree);
	EXPECT_EQ(600011, fs.f_bavail);
	EXPECT_EQ(50021, fs.f_files);
	EXPECT_EQ(40009, fs.f_ffree);
	EXPECT_EQ(4096, fs.f_bsize);
	EXPECT_EQ(255, fs.f_namelen);
	ASSERT_EQ(0, statvfs(mock_path(self->m, "file"), &vfs));
	EXPECT_EQ(ST_NOSUID | ST_NODEV, (int)vfs.f_flag & (ST_NOSUID | ST_NODEV));
}

TEST_F_TIMEOUT(tree, readlink, TEST_BOUND)
{
	char target[300];
	struct stat st;

	START(self->m, "");
	EXPECT_EQ(10, readlink(mock_path(self->m, "link"), target, sizeof(target)));
	EXPECT_EQ(0, memcmp(target, "dir/nested", 10));
	EXPECT_EQ(3, readlink(mock_path(self->m, "link"), target, 3));
	ASSERT_EQ(0, stat(mock_path(self->m, "link"), &st));
	EXPECT_EQ(self->nested, st.st_ino);
	ASSERT_EQ(0, lstat(mock_path(self->m, "link"), &st));
	EXPECT_EQ(S_IFLNK | 0777U, st.st_mode);
	EXPECT_EQ(10, st.st_size);
	EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "dangling"), &st));
	EXPECT_ERRNO(EINVAL, readlink(mock_path(self->m, "file"), target, sizeof(target)));
}

static int readlink_of(struct mock *m, struct mock_request *req)
{
	static char target[2 * MOCK_PAGE];

	memset(target, 'x', sizeof(target));
	mock_reply(m, req, 0, target, m->knob[0]);
	return MOCK_DONE;
}

/* Targets of no length, of the longest and of one byte more than can be. */
TEST_F_TIMEOUT(tree, readlink_lengths, TEST_BOUND)
{
	char target[2 * MOCK_PAGE];

	self->m->handler[FUSE_READLINK] = readlink_of;
	START(self->m, "");
	self->m->knob[0] = MOCK_PAGE - 1;
	EXPECT_EQ(MOCK_PAGE - 1, readlink(mock_path(self->m, "link"), target, sizeof(target)));
	self->m->knob[0] = MOCK_PAGE;
	EXPECT_ERRNO(EIO, readlink(mock_path(self->m, "link"), target, sizeof(target)));
}

/* A directory that takes many READDIRs comes whole, in order, once. */
#define ENTRIES 1500

static void fill_directory(struct mock *m, uint64_t dir)
{
	char name[64];

	for (int i = 0; i < ENTRIES; i++) {
		snprintf(name, sizeof(name), "entry-%04d-%.*s", i, i % 40, "abcdefghijklmnopqrstuvwxyzabcdefghijklmn");
		mock_add(m, dir, name, S_IFREG | 0644, i);
	}
}

TEST_F_TIMEOUT(tree, readdir_large, TEST_BOUND)
{
	struct dirent *entry;
	int count = 0, number;
	DIR *dir;

	fill_directory(self->m, self->dir);
	START(self->m, "");
	dir = opendir(mock_path(self->m, "dir"));
	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (count < 2) {
			EXPECT_STREQ(count ? ".." : ".", entry->d_name);
			EXPECT_EQ(DT_DIR, entry->d_type);
		} else if (count == 2) {
			EXPECT_STREQ("nested", entry->d_name);
			EXPECT_EQ(self->nested, entry->d_ino);
		} else {
			ASSERT_EQ(1, sscanf(entry->d_name, "entry-%d", &number));
			ASSERT_EQ(count - 3, number);
			ASSERT_EQ(DT_REG, entry->d_type);
			ASSERT_EQ(mock_find(self->m, self->dir, entry->d_name), entry->d_ino);
		}
		count++;
	}
	EXPECT_EQ(ENTRIES + 3, count);
	closedir(dir);
	EXPECT_LT(2U, mock_count_node(self->m, FUSE_READDIR, self->dir));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_OPENDIR));
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASEDIR, 1));
	EXPECT_EQ(mock_last(self->m, FUSE_READDIR)->fh, mock_last(self->m, FUSE_RELEASEDIR)->fh);
	EXPECT_EQ(0U, mock_count(self->m, FUSE_FLUSH));
}

/* telldir and seekdir: any place that was told can be gone to again. */
TEST_F_TIMEOUT(tree, seekdir, TEST_BOUND)
{
	long place[ENTRIES + 3];
	char name[ENTRIES + 3][256];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	fill_directory(self->m, self->dir);
	START(self->m, "");
	dir = opendir(mock_path(self->m, "dir"));
	ASSERT_NE(NULL, dir);
	for (;;) {
		long here = telldir(dir);

		entry = readdir(dir);
		if (!entry)
			break;
		ASSERT_GT(ENTRIES + 3, count);
		place[count] = here;
		strcpy(name[count++], entry->d_name);
	}
	ASSERT_EQ(ENTRIES + 3, count);
	for (int i = 0, at = 1; i < 100; i++, at = (at * 7 + 3) % count) {
		seekdir(dir, place[at]);
		entry = readdir(dir);
		ASSERT_NE(NULL, entry);
		ASSERT_STREQ(name[at], entry->d_name);
	}
	rewinddir(dir);
	entry = readdir(dir);
	ASSERT_NE(NULL, entry);
	EXPECT_STREQ(".", entry->d_name);
	closedir(dir);
}

static int readdir_of(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	struct { struct fuse_dirent head; char name[24]; } entry = { .head = { .ino = 5, .off = 1, .type = DT_REG } };

	entry.head.namelen = m->knob[0];
	memcpy(entry.name, m->knob[1] ? "sla/sh" : "normal", 6);
	mock_reply(m, req, 0, &entry, in->offset ? 0 : m->knob[2]);
	return MOCK_DONE;
}

/* Directory records that are no good: EIO where they lie, nothing where the end cuts them. */
#define READDIR_CASE(test, namelen_, slash_, size_, errno_)		\
TEST_F_TIMEOUT(tree, readdir_##test, TEST_BOUND)			\
{									\
	struct dirent *entry;						\
	DIR *dir;							\
									\
	self->m->handler[FUSE_READDIR] = readdir_of;			\
	self->m->knob[0] = namelen_;					\
	self->m->knob[1] = slash_;					\
	self->m->knob[2] = size_;					\
	START(self->m, "");						\
	dir = opendir(mock_path(self->m, "dir"));			\
	ASSERT_NE(NULL, dir);						\
	errno = 0;							\
	entry = readdir(dir);						\
	EXPECT_EQ(NULL, entry);						\
	EXPECT_EQ(errno_, errno);					\
	closedir(dir);							\
}

READDIR_CASE(empty_name, 0, 0, 24, EIO)
READDIR_CASE(slash_in_name, 6, 1, 32, EIO)
READDIR_CASE(name_too_long, 5000, 0, 48, EIO)
READDIR_CASE(cut_record, 20, 0, 32, 0)
READDIR_CASE(cut_head, 6, 0, 20, 0)

/* OPEN, FLUSH and RELEASE: one OPEN a handle, one FLUSH a close, one RELEASE at the last, with handle and flags. */
TEST_F_TIMEOUT(tree, handles, TEST_BOUND)
{
	int fd, copy;

	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(1U, mock_count(self->m, FUSE_OPEN));
	EXPECT_EQ(O_RDONLY, (int)mock_last(self->m, FUSE_OPEN)->flags & O_ACCMODE);
	EXPECT_EQ(0U, mock_last(self->m, FUSE_OPEN)->flags & (O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC));
	copy = dup(fd);
	close(copy);
	EXPECT_EQ(1U, mock_count(self->m, FUSE_FLUSH));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_RELEASE));
	close(fd);
	EXPECT_EQ(2U, mock_count(self->m, FUSE_FLUSH));
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 1));
	EXPECT_EQ(1U, mock_last(self->m, FUSE_FLUSH)->fh);
	EXPECT_EQ(1U, mock_last(self->m, FUSE_RELEASE)->fh);
	EXPECT_EQ(self->file, mock_last(self->m, FUSE_RELEASE)->in.nodeid);
	EXPECT_EQ(O_RDONLY, (int)mock_last(self->m, FUSE_RELEASE)->flags & O_ACCMODE);
}

/* Answers that a daemon may give to FLUSH and OPEN: an error is the caller's, ENOSYS means "not needed". */
static int answer(struct mock *m, struct mock_request *req)
{
	return -(int)m->knob[req->in->opcode == FUSE_FLUSH];
}

TEST_F_TIMEOUT(tree, open_error, TEST_BOUND)
{
	self->m->handler[FUSE_OPEN] = answer;
	self->m->knob[0] = EACCES;
	START(self->m, "");
	EXPECT_ERRNO(EACCES, open(mock_path(self->m, "file"), O_RDONLY));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_RELEASE));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_FLUSH));
}

TEST_F_TIMEOUT(tree, flush_error, TEST_BOUND)
{
	self->m->handler[FUSE_FLUSH] = answer;
	self->m->knob[1] = EDQUOT;
	START(self->m, "");
	EXPECT_ERRNO(EDQUOT, close(open(mock_path(self->m, "file"), O_RDONLY)));
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASE, 1));
	self->m->knob[1] = ENOSYS;
	EXPECT_EQ(0, close(open(mock_path(self->m, "file"), O_RDONLY)));
	EXPECT_EQ(0, close(open(mock_path(self->m, "file"), O_RDONLY)));
	EXPECT_EQ(2U, mock_count(self->m, FUSE_FLUSH));
}

TEST_F_TIMEOUT(tree, open_not_needed, TEST_BOUND)
{
	int fd;

	self->m->handler[FUSE_OPEN] = answer;
	self->m->knob[0] = ENOSYS;
	START(self->m, "");
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	if (!(self->m->offered.flags & FUSE_NO_OPEN_SUPPORT))
		SKIP(return, "FUSE_NO_OPEN_SUPPORT is not offered");
	for (int i = 0; i < 3; i++) {
		fd = open(mock_path(self->m, "file"), O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_CONTENT(fd, self->file, 0, 10000);
		close(fd);
	}
	EXPECT_EQ(1U, mock_count(self->m, FUSE_OPEN));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_RELEASE));
}

/* A name as long as can be reaches the daemon; one byte more does not. */
TEST_F_TIMEOUT(tree, long_names, TEST_BOUND)
{
	char name[257] = {};
	struct stat st;

	memset(name, 'n', 255);
	mock_add(self->m, FUSE_ROOT_ID, name, S_IFREG | 0644, 3);
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, name), &st));
	EXPECT_EQ(3, st.st_size);
	EXPECT_EQ(sizeof(struct fuse_in_header) + 256, mock_last(self->m, FUSE_LOOKUP)->in.len);
}

/* Who asks: the header carries the caller's ids. */
static long stat_as(struct mock *m, const void *path)
{
	struct stat st;

	if (setgid(4321) || setuid(1234))
		return 2;
	return stat(path, &st);
}

TEST_F_TIMEOUT(tree, caller_ids, TEST_BOUND)
{
	struct mock_call *call;
	pid_t pid;

	START(self->m, ",allow_other");
	call = mock_call(self->m, stat_as, mock_path(self->m, "file"));
	pid = call->pid;
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->ret);
	ASSERT_NE(NULL, mock_last(self->m, FUSE_LOOKUP));
	EXPECT_EQ(1234U, mock_last(self->m, FUSE_LOOKUP)->in.uid);
	EXPECT_EQ(4321U, mock_last(self->m, FUSE_LOOKUP)->in.gid);
	EXPECT_EQ(pid, mock_last(self->m, FUSE_LOOKUP)->in.pid);
}

/* Without allow_other, the mount is the mounter's alone: others are refused before the daemon hears of it. */
TEST_F_TIMEOUT(tree, others_refused, TEST_BOUND)
{
	struct mock_call *call;

	START(self->m, "");
	call = mock_call(self->m, stat_as, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(EACCES, call->error);
	EXPECT_EQ(0U, mock_count(self->m, FUSE_LOOKUP));
}

/* default_permissions: the kernel checks modes itself; without it the daemon is asked. */
static long open_as(struct mock *m, const void *path)
{
	int fd;

	if (setgid(4321) || setuid(1234))
		return 2;
	fd = open(path, O_RDONLY);
	return fd < 0 ? -1 : close(fd);
}

TEST_F_TIMEOUT(tree, default_permissions, TEST_BOUND)
{
	START(self->m, ",allow_other,default_permissions");
	EXPECT_CALL(0, self->m, open_as, mock_path(self->m, "file"));
	EXPECT_CALL(EACCES, self->m, open_as, mock_path(self->m, "dir/nested"));
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_OPEN, self->nested));
}

TEST_F_TIMEOUT(tree, daemon_permissions, TEST_BOUND)
{
	START(self->m, ",allow_other");
	EXPECT_CALL(0, self->m, open_as, mock_path(self->m, "dir/nested"));
	EXPECT_EQ(1U, mock_count_node(self->m, FUSE_OPEN, self->nested));
}

/* What changes the tree never succeeds without the daemon's word. */
TEST_F_TIMEOUT(tree, changes, TEST_BOUND)
{
	bool in_tree = KNOWN_DIFFERENCE("changes are sent to the daemon; fuse_rs is read-only so far");
	struct mock *m = self->m;
	const char *file = mock_path(m, "file"), *new = mock_path(m, "new");
	struct {
		const char *what;
		long ret;
		int error;
	} change[12];
	int n = 0;

#define CHANGE(expression)						\
	do {								\
		errno = 0;						\
		change[n].what = #expression;				\
		change[n].ret = (expression);				\
		change[n++].error = errno;				\
	} while (0)

	START(m, "");
	CHANGE(mkdir(new, 0755));
	CHANGE(mknod(new, S_IFIFO | 0644, 0));
	CHANGE(open(new, O_CREAT | O_WRONLY, 0644));
	CHANGE(unlink(file));
	CHANGE(rmdir(mock_path(m, "dir")));
	CHANGE(rename(file, new));
	CHANGE(link(file, new));
	CHANGE(symlink("x", new));
	CHANGE(chmod(file, 0600));
	CHANGE(truncate(file, 5));
	CHANGE(setxattr(file, "user.x", "y", 1, 0));
#undef CHANGE
	for (int i = 0; i < n; i++) {
		EXPECT_EQ(-1, change[i].ret) {
			TH_LOG("%s", change[i].what);
		}
		if (in_tree)
			EXPECT_TRUE(change[i].error == ENOSYS || change[i].error == EPERM ||
				    change[i].error == EOPNOTSUPP) {
				TH_LOG("%s: %s", change[i].what, strerror(change[i].error));
			}
		if (!in_tree)
			EXPECT_TRUE(change[i].error == EROFS || change[i].error == EOPNOTSUPP ||
				    change[i].error == EPERM) {
				TH_LOG("%s: %s", change[i].what, strerror(change[i].error));
			}
	}
	EXPECT_EQ(in_tree, mock_count(m, FUSE_UNLINK) == 1);
	EXPECT_EQ(in_tree, mock_count(m, FUSE_SETATTR) == 2);
}

/* Opening for writing: in-tree hands it to the daemon. */
TEST_F_TIMEOUT(tree, open_for_writing, TEST_BOUND)
{
	int fd;

	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDWR);
	if (KNOWN_DIFFERENCE("files open for writing; fuse_rs is read-only so far")) {
		EXPECT_LE(0, fd);
		EXPECT_ERRNO(ENOSYS, write(fd, "x", 1));
		EXPECT_EQ(1U, mock_count(self->m, FUSE_WRITE));
		close(fd);
	} else {
		EXPECT_EQ(-1, fd);
		EXPECT_TRUE(errno == EROFS || errno == EOPNOTSUPP);
	}
}

/* Extended attributes are read from the daemon in-tree, and not there yet in fuse_rs. */
TEST_F_TIMEOUT(tree, no_xattr, TEST_BOUND)
{
	char value[10];

	START(self->m, "");
	EXPECT_ERRNO(EOPNOTSUPP, getxattr(mock_path(self->m, "file"), "user.x", value, sizeof(value)));
}

TEST_HARNESS_MAIN
