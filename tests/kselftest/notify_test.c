// SPDX-License-Identifier: GPL-2.0
/* Notifications about inodes and names: what they drop, what they leave, and which are refused. */
#include <limits.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "notify.h"

#define FILE_SIZE (16U * MOCK_PAGE)

FIXTURE(notified) {
	struct mock *m;
	uint64_t file, dir, inner;
};

FIXTURE_SETUP(notified)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	self->inner = mock_add(self->m, self->dir, "inner", S_IFREG | 0644, 100);
}

FIXTURE_TEARDOWN(notified)
{
	/* Ends whatever hangs in a notification, and with it holds the device open. */
	umount2(self->m->dir, MNT_FORCE);
	if (notify_dev >= 0)
		close(notify_dev);
	mock_destroy(self->m);
}

/* How many requests of a kind a stat of the path costs. */
static uint32_t stat_costs(struct mock *m, const char *path, uint32_t opcode)
{
	uint32_t before = mock_count(m, opcode);
	struct stat st;

	if (stat(mock_path(m, path), &st))
		return UINT_MAX;
	return mock_count(m, opcode) - before;
}

static bool forgotten(struct mock *m, uint64_t id)
{
	return mock_node(m, id)->lookups == mock_node(m, id)->forgotten;
}

static int hold(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

TEST_F_TIMEOUT(notified, before_init, TEST_BOUND)
{
	ASSERT_EQ(0, mock_mount(self->m, ""));
	notify_dev = dup(mock_dev);
	EXPECT_EQ(EINVAL, inval_inode(FUSE_ROOT_ID, -1, 0));
	EXPECT_EQ(EINVAL, inval_entry(FUSE_ROOT_ID, "file", 0));
}

TEST_F_TIMEOUT(notified, after_abort, TEST_BOUND)
{
	int keep;

	START_NOTIFIED(self->m, "");
	keep = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(keep, 0);
	umount2(self->m->dir, MNT_FORCE);
	EXPECT_EQ(EINVAL, inval_inode(self->file, -1, 0));
	EXPECT_EQ(EINVAL, inval_entry(FUSE_ROOT_ID, "file", 0));
	close(keep);
}

TEST_F_TIMEOUT(notified, after_umount, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(EINVAL, inval_inode(FUSE_ROOT_ID, -1, 0));
	EXPECT_EQ(EINVAL, inval_entry(FUSE_ROOT_ID, "file", 0));
}

TEST_F_TIMEOUT(notified, unknown_codes, TEST_BOUND)
{
	static const int codes[] = { 0, FUSE_NOTIFY_PRUNE + 1, 1000, INT_MAX, INT_MIN, -1, -2 };
	char payload[64] = {};

	START_NOTIFIED(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		EXPECT_EQ(EINVAL, notify(codes[i], NULL, 0)) {
			TH_LOG("code %d", codes[i]);
		}
		EXPECT_EQ(EINVAL, notify(codes[i], payload, sizeof(payload)));
	}
}

/* The header's length is that of the write, or nothing is done. */
TEST_F_TIMEOUT(notified, lengths_of_the_header, TEST_BOUND)
{
	struct fuse_notify_inval_inode_out out = { .ino = FUSE_ROOT_ID, .off = -1 };
	uint32_t right = sizeof(struct fuse_out_header) + sizeof(out);

	START_NOTIFIED(self->m, "");
	EXPECT_EQ(0, notify_raw(FUSE_NOTIFY_INVAL_INODE, right, &out, sizeof(out)));
	EXPECT_EQ(EINVAL, notify_raw(FUSE_NOTIFY_INVAL_INODE, right - 1, &out, sizeof(out)));
	EXPECT_EQ(EINVAL, notify_raw(FUSE_NOTIFY_INVAL_INODE, right + 1, &out, sizeof(out)));
	EXPECT_EQ(EINVAL, notify_raw(FUSE_NOTIFY_INVAL_INODE, 0, &out, sizeof(out)));
	EXPECT_EQ(EINVAL, notify_raw(FUSE_NOTIFY_INVAL_INODE, UINT_MAX, &out, sizeof(out)));
}

/* Each fixed part, a byte short and a byte long. */
TEST_F_TIMEOUT(notified, lengths, TEST_BOUND)
{
	static const struct { int code; size_t size; } sizes[] = {
		{ FUSE_NOTIFY_INVAL_INODE, sizeof(struct fuse_notify_inval_inode_out) },
		{ FUSE_NOTIFY_INVAL_ENTRY, sizeof(struct fuse_notify_inval_entry_out) },
		{ FUSE_NOTIFY_DELETE, sizeof(struct fuse_notify_delete_out) },
		{ FUSE_NOTIFY_PRUNE, sizeof(struct fuse_notify_prune_out) },
	};
	char payload[128] = {};

	START_NOTIFIED(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		EXPECT_EQ(EINVAL, notify(sizes[i].code, payload, 0)) {
			TH_LOG("code %d", sizes[i].code);
		}
		EXPECT_EQ(EINVAL, notify(sizes[i].code, payload, sizes[i].size - 1)) {
			TH_LOG("code %d", sizes[i].code);
		}
		/* The name that follows has one byte at least, node IDs have eight. */
		EXPECT_EQ(EINVAL, notify(sizes[i].code, payload, sizes[i].size + 2)) {
			TH_LOG("code %d", sizes[i].code);
		}
	}
}

/* Memory that can't be read: nothing happens. */
TEST_F_TIMEOUT(notified, bad_memory, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	EXPECT_EQ(EFAULT, notify(FUSE_NOTIFY_INVAL_INODE, (void *)8, sizeof(struct fuse_notify_inval_inode_out)));
	EXPECT_EQ(EFAULT, notify(FUSE_NOTIFY_PRUNE, (void *)8, sizeof(struct fuse_notify_prune_out)));
}

TEST_F_TIMEOUT(notified, inode_attributes, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_GETATTR));
	EXPECT_EQ(0, inval_inode(self->file, -1, 0));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_GETATTR));
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_GETATTR));
	/* The name is still known. */
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(ENOENT, inval_inode(self->inner, -1, 0));
	EXPECT_EQ(ENOENT, inval_inode(0, -1, 0));
	EXPECT_EQ(ENOENT, inval_inode(UINT64_MAX, 0, 0));
	EXPECT_EQ(0, inval_inode(FUSE_ROOT_ID, 0, 0));
}

/* Answers that were under way when the server said that they do not hold are not kept. */
TEST_F_TIMEOUT(notified, inode_attributes_under_way, TEST_BOUND)
{
	struct mock_call *call;

	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	EXPECT_EQ(0, inval_inode(self->file, -1, 0));
	self->m->handler[FUSE_GETATTR] = hold;
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	EXPECT_EQ(0, inval_inode(self->file, -1, 0));
	self->m->handler[FUSE_GETATTR] = NULL;
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_GETATTR));
}

static bool page_costs_read(struct mock *m, int fd, uint64_t page)
{
	uint32_t before = mock_count(m, FUSE_READ);
	char byte;

	return pread(fd, &byte, 1, page * MOCK_PAGE) == 1 && mock_count(m, FUSE_READ) > before;
}

/* Data of the asked range goes, and is read again; the rest may go with it, as folios go whole, but stays right. */
TEST_F_TIMEOUT(notified, inode_data, TEST_BOUND)
{
	static const struct { int64_t off, len; int first, last; } ranges[] = {
		{ 3 * MOCK_PAGE, MOCK_PAGE, 3, 3 },
		{ 3 * MOCK_PAGE + 5, 1, 3, 3 },
		{ 3 * MOCK_PAGE - 1, 2, 2, 3 },
		{ 0, 0, 0, 15 },
		{ 14 * MOCK_PAGE, -1, 14, 15 },
		{ 14 * MOCK_PAGE, INT64_MIN, 14, 15 },
		{ 15 * MOCK_PAGE, INT64_MAX, 15, 15 },
		{ 1, INT64_MAX, 0, 15 },
	};
	int fd;

	self->m->open_flags = FOPEN_KEEP_CACHE;
	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		for (int page = ranges[i].first; page <= ranges[i].last; page++) {
			EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
			EXPECT_FALSE(page_costs_read(self->m, fd, page));
			EXPECT_EQ(0, inval_inode(self->file, ranges[i].off, ranges[i].len));
			EXPECT_TRUE(page_costs_read(self->m, fd, page)) {
				TH_LOG("range %zu, page %d", i, page);
			}
			EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
		}
	}
	/* Behind the end of the file, and of all files. */
	EXPECT_EQ(0, inval_inode(self->file, FILE_SIZE, 1));
	EXPECT_EQ(0, inval_inode(self->file, INT64_MAX, INT64_MAX));
	EXPECT_FALSE(page_costs_read(self->m, fd, 15));
	/* Only the attributes. */
	EXPECT_EQ(0, inval_inode(self->file, INT64_MIN, INT64_MAX));
	EXPECT_FALSE(page_costs_read(self->m, fd, 0));
	close(fd);
}

/* A page that a mapping shows is dropped, and read anew by the next access. */
TEST_F_TIMEOUT(notified, inode_data_mapped, TEST_BOUND)
{
	const volatile char *map;
	uint32_t reads;
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, (const void *)map, FILE_SIZE));
	reads = mock_count(self->m, FUSE_READ);
	EXPECT_EQ(0, inval_inode(self->file, 0, MOCK_PAGE));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, (const void *)map, FILE_SIZE));
	EXPECT_LT(reads, mock_count(self->m, FUSE_READ));
	close(fd);
}

TEST_F_TIMEOUT(notified, entry, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", 0));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", FUSE_EXPIRE_ONLY));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
	/* Flags that mean nothing yet. */
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", ~FUSE_EXPIRE_ONLY));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
	/* The directory is another one now. */
	stat_costs(self->m, "", FUSE_GETATTR);
	EXPECT_EQ(0, stat_costs(self->m, "", FUSE_GETATTR));
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", 0));
	EXPECT_EQ(1, stat_costs(self->m, "", FUSE_GETATTR));
}

/* A name that is known not to be there is a name, too. */
TEST_F_TIMEOUT(notified, entry_negative, TEST_BOUND)
{
	uint64_t late;

	self->m->handler[FUSE_LOOKUP] = NULL;
	START_NOTIFIED(self->m, "");
	EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "late"), F_OK));
	late = mock_add(self->m, FUSE_ROOT_ID, "late", S_IFREG | 0644, 1);
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "late", 0));
	EXPECT_EQ(1, stat_costs(self->m, "late", FUSE_LOOKUP));
	EXPECT_NE(0, late);
}

TEST_F_TIMEOUT(notified, entry_names, TEST_BOUND)
{
	char name[5000];

	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	stat_costs(self->m, "dir/inner", FUSE_LOOKUP);
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, "unknown", 0));
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, "", 0));
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, ".", 0));
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, "..", 0));
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, "/", 0));
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, "dir/inner", 0));
	EXPECT_EQ(ENOENT, inval_entry(FUSE_ROOT_ID, "file/", 0));
	EXPECT_EQ(ENOENT, inval_entry_bytes(FUSE_ROOT_ID, "file\0", 5, 0));
	/* Not a directory, not known, not there. */
	EXPECT_EQ(ENOTDIR, inval_entry(self->file, "file", 0));
	EXPECT_EQ(ENOENT, inval_entry(self->inner + 1, "file", 0));
	EXPECT_EQ(ENOENT, inval_entry(0, "file", 0));
	/* What follows the name need not be a NUL. */
	EXPECT_EQ(0, inval_entry_bytes(FUSE_ROOT_ID, "file!", 4, 0));

	memset(name, 'x', sizeof(name));
	EXPECT_EQ(ENOENT, inval_entry_bytes(FUSE_ROOT_ID, name, 4095, 0));
	EXPECT_EQ(ENAMETOOLONG, inval_entry_bytes(FUSE_ROOT_ID, name, 4096, 0));
	EXPECT_EQ(0, stat_costs(self->m, "dir/inner", FUSE_LOOKUP));
}

/* The length of a name says another thing than the length of the message. */
TEST_F_TIMEOUT(notified, entry_lengths, TEST_BOUND)
{
	static const struct { uint32_t namelen; int error; } lens[] = {
		{ 3, EINVAL }, { 5, EINVAL }, { 4095, EINVAL }, { 4096, ENAMETOOLONG }, { INT_MAX, ENAMETOOLONG },
		{ UINT_MAX, ENAMETOOLONG }, { UINT_MAX - sizeof(struct fuse_notify_inval_entry_out), ENAMETOOLONG },
	};
	struct {
		struct fuse_notify_inval_entry_out out;
		char name[5];
	} entry = { { .parent = FUSE_ROOT_ID, .namelen = 4 }, "file" };
	struct {
		struct fuse_notify_delete_out out;
		char name[5];
	} del = { { .parent = FUSE_ROOT_ID, .child = self->file, .namelen = 4 }, "file" };

	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		entry.out.namelen = lens[i].namelen;
		del.out.namelen = lens[i].namelen;
		EXPECT_EQ(lens[i].error, notify(FUSE_NOTIFY_INVAL_ENTRY, &entry, sizeof(entry.out) + 5)) {
			TH_LOG("namelen %u", lens[i].namelen);
		}
		EXPECT_EQ(lens[i].error, notify(FUSE_NOTIFY_DELETE, &del, sizeof(del.out) + 5)) {
			TH_LOG("namelen %u", lens[i].namelen);
		}
	}
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
}

/* A server of few pages has shorter names. */
TEST_F_TIMEOUT(notified, entry_short_names, TEST_BOUND)
{
	char name[2000];

	self->m->init.out.max_pages = 1;
	START_NOTIFIED(self->m, "");
	memset(name, 'x', sizeof(name));
	EXPECT_EQ(ENOENT, inval_entry_bytes(FUSE_ROOT_ID, name, 1024, 0));
	EXPECT_EQ(ENAMETOOLONG, inval_entry_bytes(FUSE_ROOT_ID, name, 1025, 0));
}

/* Whether the working directory of this process still has a path. */
static bool cwd_has_path(void)
{
	char path[PATH_MAX];

	return getcwd(path, sizeof(path)) && path[0] == '/';
}

/* What is in use: expired, it stays in place and is looked up; invalidated, it is out of the tree. */
TEST_F_TIMEOUT(notified, entry_in_use, TEST_BOUND)
{
	uint32_t lookups;

	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, chdir(mock_path(self->m, "dir")));
	EXPECT_EQ(0, access("inner", F_OK));
	lookups = mock_count_node(self->m, FUSE_LOOKUP, self->dir);
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "dir", FUSE_EXPIRE_ONLY));
	EXPECT_TRUE(cwd_has_path());
	EXPECT_EQ(1, stat_costs(self->m, "dir", FUSE_LOOKUP));
	EXPECT_EQ(0, stat_costs(self->m, "dir/inner", FUSE_LOOKUP));
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "dir", 0));
	EXPECT_FALSE(cwd_has_path());
	/* What was below it and not in use went with it. */
	EXPECT_EQ(0, access("inner", F_OK));
	EXPECT_EQ(lookups + 1, mock_count_node(self->m, FUSE_LOOKUP, self->dir));
	ASSERT_EQ(0, chdir("/"));
}

static void unlink_node(struct mock *m, uint64_t id)
{
	mock_node(m, id)->name[0] = 0;
	mock_node(m, id)->parent = 0;
}

/* Names of the events that a watch of the directory has, each behind its mask. */
static size_t events(int inotify, char *text, size_t size)
{
	char buf[4096] __attribute__((aligned(8)));
	ssize_t len = read(inotify, buf, sizeof(buf));
	size_t used = 0;

	text[0] = 0;
	for (ssize_t at = 0; at < len;) {
		struct inotify_event *event = (void *)(buf + at);

		used += snprintf(text + used, size - used, "%s%s %s\n", event->mask & IN_DELETE ? "delete" : "other",
				 event->mask & IN_ISDIR ? " dir" : "", event->len ? event->name : "");
		at += sizeof(*event) + event->len;
	}
	return used;
}

/* Recipe 42: who watches the directory is told. */
TEST_F_TIMEOUT(notified, delete, TEST_BOUND)
{
	char text[512], want[64] = "delete file\ndelete dir dir\n";
	struct stat st;
	int watch, fd;

	START_NOTIFIED(self->m, "");
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ASSERT_GE(watch, 0);
	ASSERT_GE(inotify_add_watch(watch, self->m->dir, IN_DELETE), 0);
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	stat_costs(self->m, "dir/inner", FUSE_LOOKUP);

	unlink_node(self->m, self->file);
	EXPECT_EQ(0, notify_delete(FUSE_ROOT_ID, self->file, "file"));
	EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "file"), &st));
	/* Like any removed file, it is there for who has it open. */
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	unlink_node(self->m, self->dir);
	EXPECT_EQ(0, notify_delete(FUSE_ROOT_ID, self->dir, "dir"));
	EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "dir"), &st));
	if (KNOWN_DIFFERENCE("DELETE raises no event on the directory"))
		want[0] = 0;
	events(watch, text, sizeof(text));
	EXPECT_STREQ(want, text);
	close(fd);
	EXPECT_TRUE(mock_wait(forgotten, self->m, self->file));
	close(watch);
}

TEST_F_TIMEOUT(notified, delete_refused, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	EXPECT_EQ(ENOENT, notify_delete(FUSE_ROOT_ID, self->file, "unknown"));
	EXPECT_EQ(ENOTDIR, notify_delete(self->file, self->file, "file"));
	EXPECT_EQ(ENOENT, notify_delete(FUSE_ROOT_ID, self->file, "file/"));
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
	/* Another file has the name: it is asked for. */
	EXPECT_EQ(ENOENT, notify_delete(FUSE_ROOT_ID, self->inner, "file"));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
}

/* A directory with names in use is not empty for this client, whatever the server says. */
TEST_F_TIMEOUT(notified, delete_not_empty, TEST_BOUND)
{
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "dir/inner"), O_RDONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(ENOTEMPTY, notify_delete(FUSE_ROOT_ID, self->dir, "dir"));
	EXPECT_EQ(1, stat_costs(self->m, "dir", FUSE_LOOKUP));
	close(fd);
	EXPECT_EQ(0, notify_delete(FUSE_ROOT_ID, self->dir, "dir"));
}

/* A mount is not torn away by a server. */
TEST_F_TIMEOUT(notified, delete_mountpoint, TEST_BOUND)
{
	bool torn = KNOWN_DIFFERENCE("DELETE of a mountpoint detaches the mount");
	struct stat st;

	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, mount("tmpfs", mock_path(self->m, "dir"), "tmpfs", 0, NULL));
	EXPECT_EQ(torn ? 0 : EBUSY, notify_delete(FUSE_ROOT_ID, self->dir, "dir"));
	EXPECT_EQ(0, stat(mock_path(self->m, "dir"), &st));
	EXPECT_EQ(torn, st.st_ino == self->dir);
	if (!torn)
		EXPECT_EQ(0, umount(mock_path(self->m, "dir")));
}

/* Recipe 42 once more: a name that goes is in the cache until it is told, or its time is over. */
TEST_F_TIMEOUT(notified, ghost_names, TEST_BOUND)
{
	struct stat st;

	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	unlink_node(self->m, self->file);
	EXPECT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", 0));
	EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "file"), &st));
}

TEST_F_TIMEOUT(notified, prune, TEST_BOUND)
{
	uint64_t ids[] = { self->file, self->inner, self->dir, 0, UINT64_MAX, 77777 };
	int fd;

	START_NOTIFIED(self->m, "");
	EXPECT_EQ(0, prune(ids, 0));
	stat_costs(self->m, "file", FUSE_LOOKUP);
	stat_costs(self->m, "dir/inner", FUSE_LOOKUP);
	EXPECT_EQ(0, prune(ids, ARRAY_SIZE(ids)));
	EXPECT_TRUE(mock_wait(forgotten, self->m, self->file));
	EXPECT_TRUE(mock_wait(forgotten, self->m, self->inner));
	EXPECT_TRUE(mock_wait(forgotten, self->m, self->dir));
	/* What is in use stays. */
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, prune(ids, 1));
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
	close(fd);
}

/* More than are handled at a time; and counts that are not those of the message. */
TEST_F_TIMEOUT(notified, prune_many, TEST_BOUND)
{
	static const uint32_t counts[] = { 0, 1, 3, INT_MAX, UINT_MAX, 1 << 29 };
	struct {
		struct fuse_notify_prune_out out;
		uint64_t ids[2];
	} message = { .ids = { self->file, self->file } };
	static uint64_t ids[1500];
	uint32_t files = ARRAY_SIZE(ids);
	char name[32];

	for (uint32_t i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "many%u", i);
		ids[i] = mock_add(self->m, FUSE_ROOT_ID, name, S_IFREG | 0644, 1);
	}
	START_NOTIFIED(self->m, "");
	for (uint32_t i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "many%u", i);
		stat_costs(self->m, name, FUSE_LOOKUP);
	}
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		message.out.count = counts[i];
		EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_PRUNE, &message, sizeof(message)));
	}
	EXPECT_EQ(0, prune(ids, files));
	EXPECT_TRUE(mock_wait(forgotten, self->m, ids[0]));
	EXPECT_TRUE(mock_wait(forgotten, self->m, ids[files / 2]));
	EXPECT_TRUE(mock_wait(forgotten, self->m, ids[files - 1]));
}

/* All names at once: those that are known, and those that were on their way. */
TEST_F_TIMEOUT(notified, epoch, TEST_BOUND)
{
	struct mock_call *call;
	uint32_t lookups;

	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	stat_costs(self->m, "dir/inner", FUSE_LOOKUP);
	EXPECT_EQ(0, stat_costs(self->m, "dir/inner", FUSE_LOOKUP));
	EXPECT_EQ(0, notify(FUSE_NOTIFY_INC_EPOCH, NULL, 0));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(2, stat_costs(self->m, "dir/inner", FUSE_LOOKUP));
	EXPECT_EQ(0, stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(0, stat_costs(self->m, "dir/inner", FUSE_LOOKUP));

	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", 0));
	self->m->handler[FUSE_LOOKUP] = hold;
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	EXPECT_EQ(0, notify(FUSE_NOTIFY_INC_EPOCH, NULL, 0));
	self->m->handler[FUSE_LOOKUP] = NULL;
	lookups = mock_count(self->m, FUSE_LOOKUP);
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
	EXPECT_EQ(lookups, mock_count(self->m, FUSE_LOOKUP));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
}

static int hold_victim(struct mock *m, struct mock_request *req)
{
	return strcmp(req->arg, "victim") ? MOCK_DEFAULT : MOCK_HOLD;
}

static long send_inval_entry(struct mock *m, const void *name)
{
	errno = inval_entry(FUSE_ROOT_ID, name, 0);
	return errno ? -1 : 0;
}

static long send_delete(struct mock *m, const void *name)
{
	errno = notify_delete(FUSE_ROOT_ID, mock_find(m, FUSE_ROOT_ID, name), name);
	return errno ? -1 : 0;
}

static long send_inval_inode(struct mock *m, const void *node)
{
	errno = inval_inode(*(const uint64_t *)node, 0, 0);
	return errno ? -1 : 0;
}

static bool sleeps(struct mock *m, uint64_t pid)
{
	char path[64], text[256] = {};
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strstr(text, ") D ");
}

/* A notification that stands where it waits for a request of which the server still owes the answer. */
static void killed(struct __test_metadata *_metadata, struct mock *m, struct mock_call *call)
{
	ASSERT_TRUE(mock_wait(sleeps, m, call->pid));
	kill(call->pid, SIGKILL);
	/* There it waits, whatever comes, for the answer. */
	if (KNOWN_DIFFERENCE("a server that waits in a notification can't be killed"))
		mock_release(m);
	EXPECT_FALSE(mock_call_done(call));
	EXPECT_EQ(0, call->pid) {
		TH_LOG("the notification hangs");
	}
}

/* Recipe 78: from another thread than the one that should answer, or with nobody to answer. */
TEST_F_TIMEOUT(notified, killed_at_a_name, TEST_BOUND)
{
	struct mock_call *lookup;

	mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 1);
	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	self->m->handler[FUSE_LOOKUP] = hold_victim;
	lookup = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	killed(_metadata, self->m, mock_call(self->m, send_inval_entry, "file"));
	if (!mock_in_tree()) {
		killed(_metadata, self->m, mock_call(self->m, send_delete, "file"));
		mock_release(self->m);
	}
	ASSERT_TRUE(mock_call_done(lookup));
	EXPECT_EQ(0, lookup->error);
	/* The one that was killed did nothing. */
	EXPECT_EQ(mock_in_tree(), stat_costs(self->m, "file", FUSE_LOOKUP));
	EXPECT_EQ(0, inval_entry(FUSE_ROOT_ID, "file", 0));
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
}

TEST_F_TIMEOUT(notified, killed_at_a_folio, TEST_BOUND)
{
	struct mock_call *read;

	self->m->handler[FUSE_READ] = hold;
	START_NOTIFIED(self->m, "");
	read = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	/* What is dropped before its reader has copied it is read anew. */
	self->m->handler[FUSE_READ] = NULL;
	killed(_metadata, self->m, mock_call(self->m, send_inval_inode, &self->file));
	if (!mock_in_tree())
		mock_release(self->m);
	ASSERT_TRUE(mock_call_done(read));
	EXPECT_EQ(FILE_SIZE, read->ret);
}

/* The same, and it goes on when the answer is there. */
TEST_F_TIMEOUT(notified, waits_for_answers, TEST_BOUND)
{
	struct mock_call *call[3];

	mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 1);
	START_NOTIFIED(self->m, "");
	stat_costs(self->m, "file", FUSE_LOOKUP);
	self->m->handler[FUSE_LOOKUP] = hold_victim;
	call[0] = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	call[1] = mock_call(self->m, send_inval_entry, "file");
	call[2] = mock_call(self->m, send_inval_inode, &self->file);
	ASSERT_TRUE(mock_wait(sleeps, self->m, call[1]->pid));
	/* Once the name is dropped, there is no inode to be found. */
	ASSERT_TRUE(mock_call_done(call[2]));
	mock_release(self->m);
	ASSERT_TRUE(mock_call_done(call[0]));
	ASSERT_TRUE(mock_call_done(call[1]));
	for (size_t i = 0; i < ARRAY_SIZE(call); i++)
		EXPECT_EQ(0, call[i]->error);
	EXPECT_EQ(1, stat_costs(self->m, "file", FUSE_LOOKUP));
}

/* An unmount ends what a notification waits for, and waits for the notification. */
TEST_F_TIMEOUT(notified, umount_meanwhile, TEST_BOUND)
{
	struct mock_call *call;
	int fd;

	self->m->handler[FUSE_READ] = hold;
	START_NOTIFIED(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_GE(fd, 0);
	/* Reads ahead; nobody waits for it. */
	EXPECT_EQ(0, posix_fadvise(fd, 0, FILE_SIZE, POSIX_FADV_WILLNEED));
	close(fd);
	ASSERT_TRUE(mock_wait_held(self->m, 1));
	call = mock_call(self->m, send_inval_inode, &self->file);
	ASSERT_TRUE(mock_wait(sleeps, self->m, call->pid));
	/* There both hang, for ever if the server waits in the notification. */
	if (KNOWN_DIFFERENCE("an unmount waits for a notification before it ends what that waits for"))
		mock_release(self->m);
	EXPECT_EQ(0, mock_umount(self->m));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
	EXPECT_EQ(EINVAL, inval_inode(self->file, -1, 0));
}

/* Many notifications against mounts that come and go. */
TEST_F_TIMEOUT(notified, umount_race, TEST_BOUND)
{
	struct mock *m = self->m;

	START_NOTIFIED(m, "");
	for (int round = 0; round < 20; round++) {
		pid_t pid;

		stat_costs(m, "dir/inner", FUSE_LOOKUP);
		pid = fork();
		if (!pid) {
			/* Ends when the connection has. */
			while (inval_inode(FUSE_ROOT_ID, 0, 0) != EINVAL && inval_entry(FUSE_ROOT_ID, "dir", 0) != EINVAL)
				;
			_exit(0);
		}
		ASSERT_GT(pid, 0);
		usleep(round * 200);
		ASSERT_EQ(0, mock_umount(m));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		mock_kill(m);
		close(notify_dev);
		START_NOTIFIED(m, "");
	}
}

TEST_HARNESS_MAIN
