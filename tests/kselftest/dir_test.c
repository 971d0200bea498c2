// SPDX-License-Identifier: GPL-2.0
/* Directories as getdents(2) shows them: positions, inode numbers, types, handles, signals. */
#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "fuse_test.h"

#define ENTRIES	40

FIXTURE(dir) {
	struct mock *m;
	uint64_t dir;
};

FIXTURE_SETUP(dir)
{
	char name[16];

	SETUP_MOCK(self->m);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	for (int i = 0; i < ENTRIES; i++) {
		snprintf(name, sizeof(name), "entry%02d", i);
		mock_add(self->m, self->dir, name, S_IFREG | 0644, i);
	}
}

FIXTURE_TEARDOWN(dir)
{
	mock_destroy(self->m);
}

/* As the kernel writes it. */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static int getdents(int fd, void *buf, size_t size)
{
	return syscall(SYS_getdents64, fd, buf, size);
}

/* The position behind the n-th entry: any number that is no count, half of them beyond 32 bits. */
static uint64_t cookie(uint64_t n)
{
	return n ? (n * 0x9e3779b97f4a7c15ULL) >> (n % 2 ? 1 : 33) : 0;
}

static size_t put_dirent(char *reply, uint64_t ino, uint64_t off, uint32_t type, const char *name, size_t namelen)
{
	struct fuse_dirent *dirent = (void *)reply;

	*dirent = (struct fuse_dirent){ .ino = ino, .off = off, .namelen = namelen, .type = type };
	memcpy(dirent->name, name, namelen);
	return FUSE_DIRENT_SIZE(dirent);
}

/* Serves the entries at positions of its own making; EINVAL for any other position. knob[0]: inode number to give. */
static int cookie_readdir(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	char reply[MOCK_PAGE], name[16];
	size_t used = 0;
	uint64_t n;

	for (n = 0; n <= ENTRIES && cookie(n) != in->offset; n++)
		;
	if (n > ENTRIES)
		return -EINVAL;
	for (; n < ENTRIES && used + 64 < sizeof(reply); n++) {
		memset(reply + used, 0, 64);
		snprintf(name, sizeof(name), "entry%02d", (int)n);
		used += put_dirent(reply + used, m->knob[0] ? m->knob[0] : n + 2, cookie(n + 1), DT_REG, name,
				   strlen(name));
	}
	mock_reply(m, req, 0, reply, used);
	return MOCK_DONE;
}

/* Positions are the server's: each one asked for is 0 or one that it gave, however small the caller's buffer is. */
TEST_F_TIMEOUT(dir, cookies, TEST_BOUND)
{
	char buf[40], name[16];
	struct entry *entry = (void *)buf;
	int64_t place[ENTRIES + 1] = {};
	int fd, n;

	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	for (n = 0; ; n++) {
		int len = getdents(fd, buf, sizeof(buf));

		ASSERT_LE(0, len) {
			TH_LOG("%s", strerror(errno));
		}
		if (!len)
			break;
		ASSERT_GT(ENTRIES, n);
		snprintf(name, sizeof(name), "entry%02d", n);
		EXPECT_STREQ(name, entry->name);
		EXPECT_EQ(len, entry->reclen);
		place[n + 1] = entry->off;
		EXPECT_EQ((int64_t)cookie(n + 1), entry->off);
		EXPECT_EQ(entry->off, lseek(fd, 0, SEEK_CUR));
	}
	EXPECT_EQ(ENTRIES, n);
	for (int i = 0, at = 1; i < ENTRIES; i++, at = (at * 7 + 3) % ENTRIES) {
		EXPECT_EQ(place[at], lseek(fd, place[at], SEEK_SET));
		ASSERT_LT(0, getdents(fd, buf, sizeof(buf)));
		snprintf(name, sizeof(name), "entry%02d", at);
		EXPECT_STREQ(name, entry->name);
	}
	/* One that it did not give is its own to refuse. */
	EXPECT_EQ(12345, lseek(fd, 12345, SEEK_SET));
	EXPECT_ERRNO(EINVAL, getdents(fd, buf, sizeof(buf)));
	EXPECT_EQ(0, lseek(fd, 0, SEEK_SET));
	ASSERT_LT(0, getdents(fd, buf, sizeof(buf)));
	EXPECT_STREQ("entry00", entry->name);
	close(fd);
}

/* Too small for the first entry. */
TEST_F_TIMEOUT(dir, small_buffer, TEST_BOUND)
{
	char buf[40];
	int fd;

	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EINVAL, getdents(fd, buf, 20));
	EXPECT_LT(0, getdents(fd, buf, sizeof(buf)));
	close(fd);
}

/* Inode numbers of all 64 bits are shown as they come. */
TEST_F_TIMEOUT(dir, inode_numbers, TEST_BOUND)
{
	static const uint64_t numbers[] = {
		0x000d000000000000, 0xffffffff, 1ULL << 63, UINT64_MAX, 0xdeadbeefcafebabe, 1,
	};
	char buf[MOCK_PAGE];
	struct entry *entry;
	int fd;

	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int len, count = 0;

		self->m->knob[0] = numbers[i];
		lseek(fd, 0, SEEK_SET);
		len = getdents(fd, buf, sizeof(buf));
		ASSERT_LT(0, len);
		for (int at = 0; at < len; at += entry->reclen) {
			entry = (void *)(buf + at);
			EXPECT_EQ(numbers[i], entry->ino);
			count++;
		}
		EXPECT_EQ(ENTRIES, count);
	}
	close(fd);
}

/* knob: type, number, length of the name. */
static int one_entry(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	static char reply[3 * MOCK_PAGE], name[5000];

	memset(name, 'n', sizeof(name));
	memset(reply, 0, sizeof(reply));
	mock_reply(m, req, 0, reply, in->offset ? 0 :
		   put_dirent(reply, m->knob[1], 1, m->knob[0], name, m->knob[2]));
	return MOCK_DONE;
}

/* Of the type only the bits of a DT_* are shown; number 0 is shown as such; names up to the longest path. */
TEST_F_TIMEOUT(dir, odd_entries, TEST_BOUND)
{
	static char buf[2 * MOCK_PAGE];
	struct entry *entry = (void *)buf;
	int fd;

	self->m->handler[FUSE_READDIR] = one_entry;
	self->m->knob[2] = 4;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	self->m->knob[0] = 0xffffff04;
	ASSERT_LT(0, getdents(fd, buf, sizeof(buf)));
	EXPECT_EQ(DT_DIR, entry->type);
	EXPECT_EQ(0U, entry->ino);
	self->m->knob[1] = 5;
	for (self->m->knob[2] = 1000; self->m->knob[2] <= 4000; self->m->knob[2] += 1000) {
		lseek(fd, 0, SEEK_SET);
		EXPECT_LT(0, getdents(fd, buf, sizeof(buf))) {
			TH_LOG("%d bytes: %s", (int)self->m->knob[2], strerror(errno));
		}
		EXPECT_EQ(self->m->knob[2], strlen(entry->name));
	}
	self->m->knob[2] = 4096;
	lseek(fd, 0, SEEK_SET);
	EXPECT_ERRNO(EIO, getdents(fd, buf, sizeof(buf)));
	close(fd);
}

/* Each handle has its own position, and its own handle at the server; the listing of one is not disturbed by others. */
TEST_F_TIMEOUT(dir, handles, TEST_BOUND)
{
	char buf[40], name[16];
	struct entry *entry = (void *)buf;
	int fd[3];

	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	for (int i = 0; i < 3; i++) {
		fd[i] = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_EQ(3U, mock_count(self->m, FUSE_OPENDIR));
	for (int n = 0; n < ENTRIES; n++)
		for (int i = 0; i < 3; i++) {
			if (i == 2)
				lseek(fd[i], 0, SEEK_SET);
			ASSERT_LT(0, getdents(fd[i], buf, sizeof(buf)));
			snprintf(name, sizeof(name), "entry%02d", i == 2 ? 0 : n);
			ASSERT_STREQ(name, entry->name);
			EXPECT_EQ(i + 1, mock_last(self->m, FUSE_READDIR)->fh);
		}
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	EXPECT_TRUE(mock_wait_seen(self->m, FUSE_RELEASEDIR, 3));
}

/* What is asked for: as much as the caller has room for, a page at least, what a request may carry at most. */
TEST_F_TIMEOUT(dir, sizes, TEST_BOUND)
{
	static const struct { size_t room, asked; } size[] = {
		{ 64, MOCK_PAGE }, { MOCK_PAGE, MOCK_PAGE }, { 32768, 32768 }, { 1 << 20, 1 << 20 }, { 4 << 20, 1 << 20 },
	};
	char *buf = malloc(4 << 20);
	int fd;

	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		lseek(fd, 0, SEEK_SET);
		EXPECT_LT(0, getdents(fd, buf, size[i].room));
		EXPECT_EQ(size[i].asked, mock_last(self->m, FUSE_READDIR)->size);
	}
	close(fd);
	free(buf);
}

/* A server that does not know OPENDIR is not asked again, nor told of the end. */
static int not_known(struct mock *m, struct mock_request *req)
{
	return -ENOSYS;
}

TEST_F_TIMEOUT(dir, opendir_not_needed, TEST_BOUND)
{
	char buf[64];
	int fd;

	self->m->handler[FUSE_OPENDIR] = not_known;
	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	for (int i = 0; i < 3; i++) {
		fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
		ASSERT_LE(0, fd);
		EXPECT_LT(0, getdents(fd, buf, sizeof(buf)));
		EXPECT_EQ(0U, mock_last(self->m, FUSE_READDIR)->fh);
		EXPECT_EQ(0, close(fd));
	}
	EXPECT_TRUE(self->m->offered.flags & FUSE_NO_OPENDIR_SUPPORT);
	EXPECT_EQ(1U, mock_count(self->m, FUSE_OPENDIR));
	/* What is not sent can't be waited for: a request behind it is there. */
	EXPECT_CALL(0, self->m, mock_call_stat, mock_path(self->m, "dir/entry01"));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_RELEASEDIR));
}

/* An error comes through; what was read before it is not lost. */
static int late_error(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;

	return in->offset == cookie(ENTRIES) ? -EOWNERDEAD : cookie_readdir(m, req);
}

TEST_F_TIMEOUT(dir, error, TEST_BOUND)
{
	char buf[MOCK_PAGE];
	int fd;

	self->m->handler[FUSE_READDIR] = late_error;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	EXPECT_LT(0, getdents(fd, buf, sizeof(buf)));
	EXPECT_ERRNO(EOWNERDEAD, getdents(fd, buf, sizeof(buf)));
	EXPECT_ERRNO(EISDIR, read(fd, buf, sizeof(buf)));
	close(fd);
}

static void nothing(int signal)
{
}

/*
 * A directory that is listed while signals come is whole each time, in order, and no entry of an answer is asked for
 * twice because of one.
 */
TEST_F_TIMEOUT(dir, signals, TEST_BOUND)
{
	struct itimerval timer = { .it_interval.tv_usec = 1000, .it_value.tv_usec = 1000 };
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	char buf[MOCK_PAGE], name[16];
	struct entry *entry;
	int fd, len;

	self->m->handler[FUSE_READDIR] = cookie_readdir;
	START(self->m, "");
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, fd);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < 100; i++) {
		int count = 0;

		lseek(fd, 0, SEEK_SET);
		while ((len = getdents(fd, buf, sizeof(buf))) > 0 || (len < 0 && errno == EINTR))
			for (int at = 0; at < len; at += entry->reclen) {
				entry = (void *)(buf + at);
				snprintf(name, sizeof(name), "entry%02d", count++);
				ASSERT_STREQ(name, entry->name);
			}
		ASSERT_EQ(0, len);
		ASSERT_EQ(ENTRIES, count);
	}
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
	for (uint32_t i = 0; i < self->m->records; i++) {
		struct mock_record *record = &self->m->record[i];

		if (record->in.opcode == FUSE_READDIR)
			ASSERT_TRUE(!record->offset || record->offset == cookie(ENTRIES));
	}
	close(fd);
}

TEST_HARNESS_MAIN
