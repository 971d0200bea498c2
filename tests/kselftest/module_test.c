// SPDX-License-Identifier: GPL-2.0
/*
 * Loading and unloading of fuse_rs.ko, many times, with mounts in between. The file is $FUSE_RS_KO, or fuse_rs.ko
 * beside this program, or where `make modules_install` puts it.
 */
#include <dirent.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "fuse_test.h"

#define CYCLES 50

static const char *module_path(void)
{
	static char path[512];
	static const char * const folder[] = { "updates", "extra" };
	struct utsname uts;
	ssize_t len;

	if (getenv("FUSE_RS_KO"))
		return getenv("FUSE_RS_KO");
	len = readlink("/proc/self/exe", path, sizeof(path) - 32);
	if (len > 0) {
		path[len] = 0;
		strcpy(strrchr(path, '/') + 1, "fuse_rs.ko");
		if (!access(path, R_OK))
			return path;
	}
	uname(&uts);
	for (size_t i = 0; i < ARRAY_SIZE(folder); i++) {
		snprintf(path, sizeof(path), "/lib/modules/%s/%s/fuse_rs.ko", uts.release, folder[i]);
		if (!access(path, R_OK))
			return path;
	}
	return NULL;
}

static bool file_contains(const char *path, const char *text)
{
	char line[512];
	bool found = false;
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, text);
	fclose(file);
	return found;
}

static bool loaded(void)
{
	return !access("/sys/module/fuse_rs/refcnt", F_OK);
}

static int load_with(const char *params)
{
	int fd = open(module_path(), O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -1;
	ret = syscall(SYS_finit_module, fd, params, 0);
	close(fd);
	return ret;
}

static int load(void)
{
	return load_with("");
}

static int unload_once(void)
{
	return syscall(SYS_delete_module, "fuse_rs", O_NONBLOCK);
}

/* Requests that need no answer to anyone may hold the module a moment longer than the last close. */
static bool unloaded(struct mock *m, uint64_t arg)
{
	return !unload_once() || errno == ENOENT;
}

static int unload(void)
{
	return mock_wait(unloaded, NULL, 0) ? 0 : -1;
}

FIXTURE(module) {
	struct mock *m;
	bool was_loaded;
};

FIXTURE_SETUP(module)
{
	if (mock_in_tree())
		SKIP(return, "the in-tree client is not ours to unload");
	if (geteuid() != 0)
		SKIP(return, "needs root");
	if (!module_path())
		SKIP(return, "no fuse_rs.ko: set FUSE_RS_KO");
	self->was_loaded = loaded();
	if (self->was_loaded)
		ASSERT_EQ(0, unload()) {
			TH_LOG("fuse_rs is in use: %s", strerror(errno));
		}
}

FIXTURE_TEARDOWN(module)
{
	mock_destroy(self->m);
	if (!self->was_loaded)
		unload();
	else if (!loaded())
		load();
}

/* A mount with a tree, read once. */
static void mount_and_read(struct __test_metadata *_metadata, FIXTURE_DATA(module) *self)
{
	uint64_t id;
	int fd;

	self->m = mock_new();
	ASSERT_NE(NULL, self->m);
	id = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 3000000);
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, id, 0, 3000000);
	close(fd);
}

static void stop(FIXTURE_DATA(module) *self)
{
	mock_destroy(self->m);
	self->m = NULL;
}

/* The worker that drops names is on from the start, and must have ended with the mounts. */
TEST_F_TIMEOUT(module, inval_wq, TEST_BOUND)
{
	static const char path[] = "/sys/module/fuse_rs/parameters/inval_wq";

	EXPECT_ERRNO(EINVAL, load_with("inval_wq=4"));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, load_with("inval_wq=5"));
		EXPECT_EQ(5, mock_read_number(path));
		mount_and_read(_metadata, self);
		EXPECT_EQ(0, mock_write_file(path, "6"));
		stop(self);
		EXPECT_EQ(0, mock_write_file(path, "7"));
		ASSERT_EQ(0, unload());
	}
}

TEST_F_TIMEOUT(module, fifty_times, 600)
{
	for (int i = 0; i < CYCLES; i++) {
		ASSERT_EQ(0, load()) {
			TH_LOG("load %d: %s", i, strerror(errno));
		}
		ASSERT_EQ(0, access("/dev/fuse_rs", F_OK));
		ASSERT_TRUE(file_contains("/proc/filesystems", "\tfuse_rs\n"));
		if (i % 5 == 0) {
			mount_and_read(_metadata, self);
			if (i % 10 == 0)
				ASSERT_EQ(0, mock_umount(self->m));
			stop(self);
		}
		ASSERT_EQ(0, unload()) {
			TH_LOG("unload %d: %s", i, strerror(errno));
		}
		ASSERT_EQ(-1, access("/dev/fuse_rs", F_OK));
		ASSERT_FALSE(file_contains("/proc/filesystems", "fuse_rs"));
	}
}

TEST_F_TIMEOUT(module, loaded_twice, TEST_BOUND)
{
	ASSERT_EQ(0, load());
	EXPECT_ERRNO(EEXIST, load());
}

/* Whoever uses it holds it: a mount, an open device. */
TEST_F_TIMEOUT(module, busy, TEST_BOUND)
{
	int fd;

	ASSERT_EQ(0, load());
	fd = open("/dev/fuse_rs", O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EAGAIN, unload_once());
	close(fd);
	mount_and_read(_metadata, self);
	EXPECT_ERRNO(EAGAIN, unload_once());
	mock_kill(self->m);
	EXPECT_ERRNO(EAGAIN, unload_once());
	EXPECT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(0, unload());
}

/* So does a mount of the control filesystem, with connections or without. */
TEST_F_TIMEOUT(module, control, TEST_BOUND)
{
	const char *root = "/sys/fs/fuse_rs/connections";

	ASSERT_EQ(0, load());
	mount_and_read(_metadata, self);
	ASSERT_EQ(0, mount("none", root, "fusectl_rs", 0, NULL));
	stop(self);
	EXPECT_ERRNO(EAGAIN, unload_once());
	ASSERT_EQ(0, umount2(root, 0));
	EXPECT_EQ(0, unload());
	EXPECT_ERRNO(ENOENT, access("/sys/fs/fuse_rs", F_OK));
	EXPECT_FALSE(file_contains("/proc/filesystems", "fusectl_rs"));
}

/* A lazy umount with a file open and a dead daemon: the module goes when the file does. */
TEST_F_TIMEOUT(module, detached, TEST_BOUND)
{
	int fd;

	ASSERT_EQ(0, load());
	mount_and_read(_metadata, self);
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	mock_kill(self->m);
	ASSERT_EQ(0, umount2(self->m->dir, MNT_DETACH));
	self->m->mounted = false;
	EXPECT_ERRNO(EAGAIN, unload_once());
	close(fd);
	EXPECT_EQ(0, unload());
}

/* Slab caches carry the client's own names, beside in-tree's, and go with it. */
TEST_F_TIMEOUT(module, slab_names, TEST_BOUND)
{
	if (access("/proc/slabinfo", R_OK))
		SKIP(return, "no /proc/slabinfo");
	ASSERT_EQ(0, load());
	mount_and_read(_metadata, self);
	EXPECT_TRUE(file_contains("/proc/slabinfo", "fuse_rs_"));
	stop(self);
	EXPECT_EQ(0, unload());
	EXPECT_FALSE(file_contains("/proc/slabinfo", "fuse_rs_"));
}

TEST_HARNESS_MAIN
