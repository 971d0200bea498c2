// SPDX-License-Identifier: GPL-2.0
/* The module parameter inval_wq: names that do not hold any more leave the cache by themselves. */
#include <sys/mount.h>

#include "notify.h"

FIXTURE(expire) {
	struct mock *m;
	char path[128];
	long before;
};

FIXTURE_SETUP(expire)
{
	SETUP_MOCK(self->m);
	snprintf(self->path, sizeof(self->path), "/sys/module/%s/parameters/inval_wq", mock_client());
	self->before = mock_read_number(self->path);
}

FIXTURE_TEARDOWN(expire)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", self->before);
	mock_write_file(self->path, text);
	umount2(self->m->dir, MNT_FORCE);
	if (notify_dev >= 0)
		close(notify_dev);
	mock_destroy(self->m);
}

static bool forgotten(struct mock *m, uint64_t id)
{
	return mock_node(m, id)->lookups == mock_node(m, id)->forgotten;
}

/* Looks a new file up, whose name then holds for @valid seconds. */
static uint64_t look_up(struct mock *m, uint64_t parent, const char *path, uint64_t valid)
{
	const char *name = strrchr(path, '/');
	uint64_t id = mock_add(m, parent, name ? name + 1 : path, S_IFREG | 0644, 100);
	struct stat st;

	m->entry_valid = valid;
	return stat(mock_path(m, path), &st) ? 0 : id;
}

TEST_F_TIMEOUT(expire, parameter, TEST_BOUND)
{
	static const char *const good[] = { "65535", "5", "0x10", "0" };
	static const char *const bad[] = { "1", "4", "65536", "-1", "4294967295", "often" };
	struct stat st;

	ASSERT_EQ(0, stat(self->path, &st));
	EXPECT_EQ(S_IFREG | 0644, st.st_mode);
	EXPECT_EQ(0, self->before);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_EQ(0, mock_write_file(self->path, good[i]));
		EXPECT_EQ(strtol(good[i], NULL, 0), mock_read_number(self->path));
	}
	ASSERT_EQ(0, mock_write_file(self->path, "7"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_ERRNO(EINVAL, mock_write_file(self->path, bad[i]));
	EXPECT_ERRNO(ERANGE, mock_write_file(self->path, "4294967296"));
	EXPECT_EQ(7, mock_read_number(self->path));
}

/* What is over and idle goes; what is in use goes when it is not any more; the rest stays. */
TEST_F_TIMEOUT(expire, over, TEST_BOUND)
{
	uint64_t kept, used, idle, dir, inner, lookups;
	struct stat st;
	int fd;

	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, mock_write_file(self->path, "5"));
	kept = look_up(self->m, FUSE_ROOT_ID, "kept", 3600);
	used = look_up(self->m, FUSE_ROOT_ID, "used", 0);
	dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	ASSERT_NE(0, kept);
	ASSERT_NE(0, used);
	fd = open(mock_path(self->m, "used"), O_RDONLY);
	ASSERT_LE(0, fd);
	inner = look_up(self->m, dir, "dir/inner", 0);
	idle = look_up(self->m, FUSE_ROOT_ID, "idle", 0);
	ASSERT_NE(0, inner);
	ASSERT_NE(0, idle);

	EXPECT_TRUE(mock_wait(forgotten, self->m, inner));
	EXPECT_TRUE(mock_wait(forgotten, self->m, dir));
	EXPECT_TRUE(mock_wait(forgotten, self->m, idle));
	EXPECT_FALSE(forgotten(self->m, kept));
	EXPECT_FALSE(forgotten(self->m, used));
	lookups = mock_count(self->m, FUSE_LOOKUP);
	EXPECT_EQ(0, stat(mock_path(self->m, "kept"), &st));
	EXPECT_EQ(lookups, mock_count(self->m, FUSE_LOOKUP));

	close(fd);
	EXPECT_TRUE(mock_wait(forgotten, self->m, used));
	EXPECT_FALSE(forgotten(self->m, kept));
}

/* A mount that is made while the worker is on. */
TEST_F_TIMEOUT(expire, new_mount, TEST_BOUND)
{
	uint64_t idle;

	ASSERT_EQ(0, mock_write_file(self->path, "5"));
	START_NOTIFIED(self->m, "");
	idle = look_up(self->m, FUSE_ROOT_ID, "idle", 0);
	ASSERT_NE(0, idle);
	EXPECT_TRUE(mock_wait(forgotten, self->m, idle));
}

/* A name that was looked up before the worker was switched on. */
TEST_F_TIMEOUT(expire, known_before, TEST_BOUND)
{
	uint64_t before, since;

	START_NOTIFIED(self->m, "");
	before = look_up(self->m, FUSE_ROOT_ID, "before", 0);
	ASSERT_NE(0, before);
	ASSERT_EQ(0, mock_write_file(self->path, "5"));
	since = look_up(self->m, FUSE_ROOT_ID, "since", 0);
	ASSERT_NE(0, since);
	EXPECT_TRUE(mock_wait(forgotten, self->m, since));
	if (KNOWN_DIFFERENCE("names that were looked up while inval_wq was 0 stay")) {
		EXPECT_FALSE(forgotten(self->m, before));
		return;
	}
	EXPECT_TRUE(mock_wait(forgotten, self->m, before));
}

/* More than are looked at in a row: those that are over come behind those that are not. */
TEST_F_TIMEOUT(expire, many, TEST_BOUND)
{
	static uint64_t kept[1200], over[50];
	char name[32];

	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, mock_write_file(self->path, "5"));
	for (int i = 0; i < ARRAY_SIZE(kept); i++) {
		snprintf(name, sizeof(name), "kept%d", i);
		kept[i] = look_up(self->m, FUSE_ROOT_ID, name, 3600);
		ASSERT_NE(0, kept[i]);
	}
	for (int i = 0; i < ARRAY_SIZE(over); i++) {
		snprintf(name, sizeof(name), "over%d", i);
		over[i] = look_up(self->m, FUSE_ROOT_ID, name, 0);
		ASSERT_NE(0, over[i]);
	}
	for (int i = 0; i < ARRAY_SIZE(over); i++)
		ASSERT_TRUE(mock_wait(forgotten, self->m, over[i]));
	for (int i = 0; i < ARRAY_SIZE(kept); i++)
		ASSERT_FALSE(forgotten(self->m, kept[i]));
}

/* Switched off, it does nothing: for longer than it would have waited. */
TEST_F_TIMEOUT(expire, off, TEST_BOUND)
{
	uint64_t id;

	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, mock_write_file(self->path, "5"));
	id = look_up(self->m, FUSE_ROOT_ID, "file", 0);
	ASSERT_NE(0, id);
	ASSERT_EQ(0, mock_write_file(self->path, "0"));
	/* Maybe it was at it just then. */
	id = look_up(self->m, FUSE_ROOT_ID, "other", 0);
	ASSERT_NE(0, id);
	sleep(7);
	EXPECT_FALSE(forgotten(self->m, id));
	EXPECT_EQ(0, notify(FUSE_NOTIFY_INC_EPOCH, NULL, 0));
	sleep(1);
	EXPECT_FALSE(forgotten(self->m, id));
}

/* With the worker on, a new epoch drops all names that are idle. */
TEST_F_TIMEOUT(expire, epoch, TEST_BOUND)
{
	uint64_t dir, inner, used, file;
	int fd;

	START_NOTIFIED(self->m, "");
	ASSERT_EQ(0, mock_write_file(self->path, "65535"));
	dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	inner = look_up(self->m, dir, "dir/inner", 3600);
	file = look_up(self->m, FUSE_ROOT_ID, "file", 3600);
	used = look_up(self->m, FUSE_ROOT_ID, "used", 3600);
	ASSERT_NE(0, inner);
	ASSERT_NE(0, file);
	fd = open(mock_path(self->m, "used"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, notify(FUSE_NOTIFY_INC_EPOCH, NULL, 0));
	EXPECT_TRUE(mock_wait(forgotten, self->m, inner));
	EXPECT_TRUE(mock_wait(forgotten, self->m, dir));
	EXPECT_TRUE(mock_wait(forgotten, self->m, file));
	EXPECT_FALSE(forgotten(self->m, used));
	close(fd);
}

TEST_HARNESS_MAIN
