// SPDX-License-Identifier: GPL-2.0
/*
 * Mounting: every option by mount(2) and by fsopen(2), what is refused and how that is said, remounts, and mounts of a
 * descriptor that has one already.
 */
#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fuse_test.h"

/* <sys/mount.h> and <linux/mount.h> do not go together. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);
#define MNT_DETACH 2

static int fs_open(const char *type)
{
	return syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static int fs_config(int fs, unsigned int cmd, const char *key, const void *value, int aux)
{
	return syscall(SYS_fsconfig, fs, cmd, key, value, aux);
}

static int fs_string(int fs, const char *key, const char *value)
{
	return fs_config(fs, FSCONFIG_SET_STRING, key, value, 0);
}

static int fs_number(int fs, const char *key, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	return fs_string(fs, key, text);
}

static int fs_flag(int fs, const char *key)
{
	return fs_config(fs, FSCONFIG_SET_FLAG, key, NULL, 0);
}

static int fs_create(int fs)
{
	return fs_config(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

static int fs_mount(int fs, const char *dir)
{
	int mnt = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	int ret;

	if (mnt < 0)
		return -1;
	ret = syscall(SYS_move_mount, mnt, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH);
	close(mnt);
	return ret;
}

/* A context with all that a mount needs. */
static int fs_ready(int dev)
{
	int fs = fs_open(mock_client());

	if (fs < 0 || fs_number(fs, "fd", dev) || fs_string(fs, "rootmode", "40000") ||
	    fs_string(fs, "user_id", "0") || fs_string(fs, "group_id", "0"))
		return -1;
	return fs;
}

/* What the context's log says that was not read yet, lines without their newlines one after another. */
static const char *fs_log(int fs)
{
	static char log[4096];
	size_t used = 0;
	ssize_t n;

	while (used < sizeof(log) - 1 && (n = read(fs, log + used, sizeof(log) - 1 - used)) > 0)
		used += n;
	log[used] = 0;
	return log;
}

/* The line of /proc/self/mountinfo for @dir from the separator on: "TYPE SOURCE OPTIONS"; "" if there is none. */
static const char *mount_line(const char *dir)
{
	static char line[1024];
	char *separator, point[512];
	FILE *file = fopen("/proc/self/mountinfo", "re");

	snprintf(point, sizeof(point), " %s ", dir);
	while (file && fgets(line, sizeof(line), file)) {
		separator = strstr(line, " - ");
		if (!separator || !strstr(line, point))
			continue;
		fclose(file);
		line[strcspn(line, "\n")] = 0;
		return separator + 3;
	}
	if (file)
		fclose(file);
	return "";
}

/* What the line is for the client under test; read-only. @subtype with its dot. */
#define EXPECT_MOUNT_LINE(dir, subtype, source, options)				\
	do {										\
		char want_[256];							\
											\
		snprintf(want_, sizeof(want_), "%s%s %s ro,%s", mock_client(), subtype, source, options); \
		EXPECT_STREQ(want_, mount_line(dir));					\
	} while (0)

FIXTURE(mount) {
	struct mock *m;
	int dev;
};

FIXTURE_SETUP(mount)
{
	SETUP_MOCK(self->m);
	self->dev = mock_open_device();
}

FIXTURE_TEARDOWN(mount)
{
	if (self->m)
		umount2(self->m->dir, MNT_DETACH);
	mock_destroy(self->m);
}

/* mount(2) */

static const struct {
	const char *options;	/* %d is the device */
	int error;
} old_api[] = {
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0", 0 },
	{ "fd=%d,rootmode=0040000,user_id=0,group_id=0", 0 },
	{ "fd=%d,rootmode=40755,user_id=0,group_id=0", 0 },
	{ "fd=%d,rootmode=040000,user_id=1,group_id=4294967294,max_read=0", 0 },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,user_id=3,rootmode=40000", 0 },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other,max_read=0x10000,subtype=a", 0 },
	/* something is missing */
	{ "", EINVAL },
	{ "rootmode=40000,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0", EINVAL },
	/* once only */
	{ "fd=%d,fd=%d,rootmode=40000,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,subtype=a,subtype=b", EINVAL },
	{ "source=a,fd=%d,rootmode=40000,user_id=0,group_id=0", EINVAL },
	/* values */
	{ "fd=,rootmode=40000,user_id=0,group_id=0", EINVAL },
	{ "fd=-1,rootmode=40000,user_id=0,group_id=0", EINVAL },
	{ "fd=x,rootmode=40000,user_id=0,group_id=0", EINVAL },
	{ "fd=999,rootmode=40000,user_id=0,group_id=0", EBADF },
	{ "fd=4294967295,rootmode=40000,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=0,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=80000,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=30000,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=170000,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=,user_id=0,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=-1,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=4294967295,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=root,group_id=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=4294967295", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,max_read=-1", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,max_read=4294967296", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,max_read", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other=1", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions=0", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,subtype=", EINVAL },
	/* options of other types, and of none */
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,blksize=1024", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,dax", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_root", EINVAL },
	{ "fd=%d,rootmode=40000,user_id=0,group_id=0,FD=3", EINVAL },
};

TEST_F_TIMEOUT(mount, old_api, TEST_BOUND)
{
	for (size_t i = 0; i < ARRAY_SIZE(old_api); i++) {
		int dev = mock_open_device(), ret;
		char data[256];

		snprintf(data, sizeof(data), old_api[i].options, dev, dev);
		errno = 0;
		ret = mount("mock", self->m->dir, mock_client(), MS_RDONLY, data);
		EXPECT_EQ(old_api[i].error ? -1 : 0, ret) {
			TH_LOG("%s", data);
		}
		EXPECT_EQ(old_api[i].error, errno) {
			TH_LOG("%s: %s", data, strerror(errno));
		}
		if (!ret)
			ASSERT_EQ(0, umount2(self->m->dir, 0));
		close(dev);
	}
}

/* The root has one of the seven types, and the point of the mount one that goes with it. */
TEST_F_TIMEOUT(mount, rootmode, TEST_BOUND)
{
	static const uint32_t type[] = { S_IFREG, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK };
	const char *file = "/tmp/fuse_mount_test";

	close(open(file, O_CREAT | O_WRONLY, 0644));
	for (size_t i = 0; i < ARRAY_SIZE(type); i++) {
		int dev = mock_open_device();

		EXPECT_ERRNO(type[i] == S_IFLNK ? EINVAL : ENOTDIR, mock_mount_fd(dev, self->m->dir, type[i], ""));
		close(dev);
		dev = mock_open_device();
		EXPECT_EQ(type[i] == S_IFLNK ? -1 : 0, mock_mount_fd(dev, file, type[i], "")) {
			TH_LOG("%o: %s", type[i], strerror(errno));
		}
		umount2(file, MNT_DETACH);
		close(dev);
	}
	unlink(file);
}

/* A file that is not the device, another client's device among them. */
TEST_F_TIMEOUT(mount, not_the_device, TEST_BOUND)
{
	static const char * const path[] = { "/dev/null", "/", "/proc/self/mounts", "/dev/fuse" };
	int pipes[2];

	for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
		int fd = open(path[i], O_RDONLY);

		if (fd < 0 || (mock_in_tree() && !strcmp(path[i], "/dev/fuse")))
			continue;
		EXPECT_ERRNO(EINVAL, mock_mount_fd(fd, self->m->dir, S_IFDIR, ""));
		close(fd);
	}
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_ERRNO(EINVAL, mock_mount_fd(pipes[0], self->m->dir, S_IFDIR, ""));
	close(pipes[0]);
	close(pipes[1]);
	/* A path only: nothing was opened. */
	pipes[0] = open(mock_device(), O_PATH);
	EXPECT_ERRNO(EBADF, mock_mount_fd(pipes[0], self->m->dir, S_IFDIR, ""));
	close(pipes[0]);
}

/* What is shown, of owner, permissions, limits, type and source. */
TEST_F_TIMEOUT(mount, shown, TEST_BOUND)
{
	static const struct {
		const char *type;	/* behind the client's name */
		const char *options;
		const char *shown_type;
		const char *shown;
	} row[] = {
		{ "", "user_id=0,group_id=0", "", "user_id=0,group_id=0" },
		{ "", "user_id=7,group_id=070", "", "user_id=7,group_id=56" },
		{ "", "user_id=0,group_id=0,max_read=131072,allow_other,default_permissions", "",
		  "user_id=0,group_id=0,default_permissions,allow_other,max_read=131072" },
		{ "", "user_id=0,group_id=0,max_read=1", "", "user_id=0,group_id=0,max_read=4096" },
		{ "", "user_id=0,group_id=0,max_read=0", "", "user_id=0,group_id=0,max_read=4096" },
		{ "", "user_id=0,group_id=0,max_read=4294967295", "", "user_id=0,group_id=0" },
		{ "", "user_id=0,group_id=0,subtype=some", ".some", "user_id=0,group_id=0" },
		{ ".other", "user_id=0,group_id=0", ".other", "user_id=0,group_id=0" },
		{ ".a.b", "user_id=0,group_id=0", ".a.b", "user_id=0,group_id=0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		char type[64], data[256];
		int dev = mock_open_device();

		snprintf(type, sizeof(type), "%s%s", mock_client(), row[i].type);
		snprintf(data, sizeof(data), "fd=%d,rootmode=40000,%s", dev, row[i].options);
		ASSERT_EQ(0, mount("some/source", self->m->dir, type, MS_RDONLY, data)) {
			TH_LOG("%s: %s", data, strerror(errno));
		}
		EXPECT_MOUNT_LINE(self->m->dir, row[i].shown_type, "some/source", row[i].shown);
		ASSERT_EQ(0, umount2(self->m->dir, 0));
		close(dev);
	}
	/* Twice: by the type and by the option. A type may not end in the dot. */
	{
		char type[64], data[128];

		snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0,subtype=b", self->dev);
		snprintf(type, sizeof(type), "%s.a", mock_client());
		EXPECT_ERRNO(EINVAL, mount("mock", self->m->dir, type, 0, data));
		snprintf(type, sizeof(type), "%s.", mock_client());
		data[strlen(data) - strlen(",subtype=b")] = 0;
		EXPECT_ERRNO(EINVAL, mount("mock", self->m->dir, type, 0, data));
	}
}

/* A mount without a source is one of "none". */
TEST_F_TIMEOUT(mount, no_source, TEST_BOUND)
{
	char data[128];

	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0", self->dev);
	ASSERT_EQ(0, mount(NULL, self->m->dir, mock_client(), MS_RDONLY, data));
	EXPECT_MOUNT_LINE(self->m->dir, "", "none", "user_id=0,group_id=0");
}

/* Asking for ACLs, a silent mount or sync is not wrong. */
TEST_F_TIMEOUT(mount, flags, TEST_BOUND)
{
	static const struct {
		unsigned long flag;
		int error;
	} row[] = {
		{ MS_POSIXACL, 0 },
		{ MS_SILENT, 0 },
		{ MS_SYNCHRONOUS | MS_DIRSYNC | MS_LAZYTIME | MS_NOATIME | MS_STRICTATIME, 0 },
	};
	char data[128];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		int dev = mock_open_device(), ret;

		snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0", dev);
		errno = 0;
		ret = mount("mock", self->m->dir, mock_client(), MS_RDONLY | row[i].flag, data);
		EXPECT_EQ(row[i].error, errno) {
			TH_LOG("flag %#lx: %s", row[i].flag, strerror(errno));
		}
		if (!ret)
			umount2(self->m->dir, 0);
		close(dev);
	}
}

/* There are no mandatory locks. */
TEST_F_TIMEOUT(mount, mandatory_locks, TEST_BOUND)
{
	int fs = fs_ready(self->dev);

	ASSERT_LE(0, fs);
	EXPECT_EQ(0, fs_flag(fs, "mand"));
	EXPECT_ERRNO(EINVAL, fs_create(fs));
	close(fs);
	ASSERT_EQ(0, mock_mount(self->m, ""));
	fs = syscall(SYS_fspick, AT_FDCWD, self->m->dir, FSPICK_CLOEXEC);
	ASSERT_LE(0, fs);
	EXPECT_EQ(0, fs_flag(fs, "mand"));
	EXPECT_ERRNO(EINVAL, fs_config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
	close(fs);
}

/* fsopen(2) */

TEST_F_TIMEOUT(mount, new_api, TEST_BOUND)
{
	int fs = fs_open(mock_client());

	ASSERT_LE(0, fs);
	EXPECT_EQ(0, fs_string(fs, "source", "the source"));
	EXPECT_EQ(0, fs_config(fs, FSCONFIG_SET_FD, "fd", NULL, self->dev));
	/* What it holds is the file, not the number. */
	mock_dev = dup(self->dev);
	close(self->dev);
	EXPECT_EQ(0, fs_string(fs, "rootmode", "40000"));
	EXPECT_EQ(0, fs_string(fs, "user_id", "5"));
	EXPECT_EQ(0, fs_string(fs, "group_id", "6"));
	EXPECT_EQ(0, fs_flag(fs, "default_permissions"));
	EXPECT_EQ(0, fs_flag(fs, "allow_other"));
	EXPECT_EQ(0, fs_string(fs, "max_read", "65536"));
	EXPECT_EQ(0, fs_string(fs, "subtype", "new"));
	EXPECT_EQ(0, fs_flag(fs, "ro"));
	EXPECT_STREQ("", fs_log(fs));
	ASSERT_EQ(0, fs_create(fs)) {
		TH_LOG("%s", fs_log(fs));
	}
	ASSERT_EQ(0, fs_mount(fs, self->m->dir));
	EXPECT_MOUNT_LINE(self->m->dir, ".new", "the\\040source",
			  "user_id=5,group_id=6,default_permissions,allow_other,max_read=65536");
	close(fs);
}

/* A server starts to serve when the superblock is made, before that is mounted anywhere; it ends with the context. */
TEST_F_TIMEOUT(mount, never_mounted, TEST_BOUND)
{
	static char page[2 * MOCK_PAGE];
	int fs = fs_ready(self->dev);

	ASSERT_LE(0, fs);
	ASSERT_EQ(0, fs_create(fs));
	EXPECT_TRUE(mock_wait_readable(self->dev));
	EXPECT_LT(0, read(self->dev, page, sizeof(page)));
	close(fs);
	EXPECT_ERRNO(ENODEV, read(self->dev, page, sizeof(page)));
}

/* One step that fails, its errno, and a word of what ours says of it in the log. */
static const struct {
	unsigned int cmd;
	const char *key;
	const char *value;
	int error;
	const char *word;
} refused[] = {
	{ FSCONFIG_SET_STRING, "fd", "x", EINVAL, "fd" },
	{ FSCONFIG_SET_STRING, "fd", "999", EBADF, "open" },
	{ FSCONFIG_SET_STRING, "fd", "0", EINVAL, "fd" },
	{ FSCONFIG_SET_FLAG, "fd", NULL, EINVAL, "fd" },
	{ FSCONFIG_SET_STRING, "rootmode", "90000", EINVAL, "rootmode" },
	{ FSCONFIG_SET_STRING, "rootmode", "30000", EINVAL, "rootmode" },
	{ FSCONFIG_SET_FLAG, "rootmode", NULL, EINVAL, "rootmode" },
	{ FSCONFIG_SET_STRING, "user_id", "4294967295", EINVAL, "uid" },
	{ FSCONFIG_SET_STRING, "user_id", "", EINVAL, "user_id" },
	{ FSCONFIG_SET_STRING, "group_id", "4294967295", EINVAL, "gid" },
	{ FSCONFIG_SET_STRING, "group_id", "wheel", EINVAL, "group_id" },
	{ FSCONFIG_SET_STRING, "max_read", "all", EINVAL, "max_read" },
	{ FSCONFIG_SET_STRING, "allow_other", "1", EINVAL, "allow_other" },
	{ FSCONFIG_SET_STRING, "default_permissions", "", EINVAL, "default_permissions" },
	{ FSCONFIG_SET_FLAG, "subtype", NULL, EINVAL, "subtype" },
	{ FSCONFIG_SET_STRING, "subtype", "", EINVAL, "subtype" },
	{ FSCONFIG_SET_FLAG, "source", NULL, EINVAL, "source" },
	{ FSCONFIG_SET_STRING, "blksize", "512", EINVAL, "blksize" },
	{ FSCONFIG_SET_FLAG, "dax", NULL, EINVAL, "dax" },
	{ FSCONFIG_SET_FLAG, "frobnicate", NULL, EINVAL, "frobnicate" },
	{ FSCONFIG_CMD_CREATE, NULL, NULL, EINVAL, "needed" },
};

TEST_F_TIMEOUT(mount, refused, TEST_BOUND)
{
	int null = open("/dev/null", O_RDONLY);

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		int fs = fs_open(mock_client());
		const char *log, *value = refused[i].value;
		char number[16];

		if (value && !strcmp(refused[i].key, "fd") && !strcmp(value, "0")) {
			snprintf(number, sizeof(number), "%d", null);
			value = number;
		}
		errno = 0;
		EXPECT_EQ(-1, fs_config(fs, refused[i].cmd, refused[i].key, value, 0));
		EXPECT_EQ(refused[i].error, errno) {
			TH_LOG("%s=%s: %s", refused[i].key, value, strerror(errno));
		}
		log = fs_log(fs);
		if (!mock_in_tree()) {
			EXPECT_EQ('e', log[0]);
			EXPECT_NE(NULL, strstr(log, refused[i].word)) {
				TH_LOG("%s=%s: log: %s", refused[i].key, value, log);
			}
		}
		close(fs);
	}
	close(null);
}

/* Options that are given twice. */
TEST_F_TIMEOUT(mount, twice, TEST_BOUND)
{
	int fs = fs_ready(self->dev);

	ASSERT_LE(0, fs);
	EXPECT_ERRNO(EINVAL, fs_number(fs, "fd", self->dev));
	EXPECT_ERRNO(EINVAL, fs_config(fs, FSCONFIG_SET_FD, "fd", NULL, self->dev));
	EXPECT_EQ(0, fs_string(fs, "source", "a"));
	EXPECT_ERRNO(EINVAL, fs_string(fs, "source", "b"));
	EXPECT_EQ(0, fs_string(fs, "subtype", "a"));
	EXPECT_ERRNO(EINVAL, fs_string(fs, "subtype", "b"));
	EXPECT_EQ(0, fs_string(fs, "user_id", "1"));
	EXPECT_EQ(0, fs_string(fs, "user_id", "0"));
	EXPECT_EQ(0, fs_create(fs));
	close(fs);
}

/* Remounts */

TEST_F_TIMEOUT(mount, remount_old_api, TEST_BOUND)
{
	ASSERT_EQ(0, mock_mount(self->m, ",max_read=8192"));
	/* mount(8) repeats the options: none is looked at. */
	EXPECT_EQ(0, mount(NULL, self->m->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL));
	EXPECT_EQ(0, mount("else", self->m->dir, "no type", MS_REMOUNT | MS_RDONLY,
			   "fd=99,user_id=5,max_read=x,allow_other,nonsense"));
	EXPECT_MOUNT_LINE(self->m->dir, "", "mock", "user_id=0,group_id=0,max_read=8192");
	if (KNOWN_DIFFERENCE("mounts can be written to")) {
		EXPECT_EQ(0, mount(NULL, self->m->dir, NULL, MS_REMOUNT, NULL));
	} else {
		EXPECT_ERRNO(EROFS, mount(NULL, self->m->dir, NULL, MS_REMOUNT, NULL));
	}
	/* Of the mount, not of the superblock. */
	EXPECT_EQ(0, mount(NULL, self->m->dir, NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL));
}

TEST_F_TIMEOUT(mount, remount_new_api, TEST_BOUND)
{
	static const char * const key[] = { "max_read", "fd", "rootmode", "user_id", "group_id", "subtype", "nonsense" };
	int fs;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	for (size_t i = 0; i < ARRAY_SIZE(key); i++) {
		fs = syscall(SYS_fspick, AT_FDCWD, self->m->dir, FSPICK_CLOEXEC);
		ASSERT_LE(0, fs);
		EXPECT_ERRNO(EINVAL, fs_string(fs, key[i], "1"));
		EXPECT_EQ('e', fs_log(fs)[0]);
		close(fs);
	}
	fs = syscall(SYS_fspick, AT_FDCWD, self->m->dir, FSPICK_CLOEXEC);
	ASSERT_LE(0, fs);
	EXPECT_ERRNO(EINVAL, fs_flag(fs, "allow_other"));
	EXPECT_EQ(0, fs_flag(fs, "ro"));
	EXPECT_EQ(0, fs_config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
	EXPECT_EQ(0, fs_flag(fs, "rw"));
	if (KNOWN_DIFFERENCE("mounts can be written to")) {
		EXPECT_EQ(0, fs_config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
	} else {
		fs_log(fs);
		EXPECT_ERRNO(EROFS, fs_config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
		EXPECT_EQ('e', fs_log(fs)[0]);
	}
	close(fs);
}

/* A descriptor that serves a mount already */

/* A second mount of the device finds the superblock of the first, and goes on when that one is unmounted. */
TEST_F_TIMEOUT(mount, same_device_twice, TEST_BOUND)
{
	char second[] = "/tmp/fuse_second.XXXXXX";
	struct stat a, b;
	int copy;

	ASSERT_NE(NULL, mkdtemp(second));
	mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 1000);
	ASSERT_EQ(0, mock_mount(self->m, ",ro"));
	copy = fcntl(mock_dev, F_DUPFD_CLOEXEC, 0);
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &a));

	/* By another number, with other options: they are the first mount's. */
	ASSERT_EQ(0, mock_mount_fd(copy, second, S_IFDIR, ",max_read=4096,allow_other")) {
		TH_LOG("%s", strerror(errno));
	}
	EXPECT_MOUNT_LINE(second, "", "mock", "user_id=0,group_id=0");
	strcat(second, "/file");
	ASSERT_EQ(0, stat(second, &b));
	EXPECT_EQ(a.st_dev, b.st_dev);
	EXPECT_EQ(a.st_ino, b.st_ino);
	EXPECT_EQ(1, mock_count(self->m, FUSE_INIT));

	ASSERT_EQ(0, mock_umount(self->m));
	EXPECT_CALL(0, self->m, mock_call_open_read, second);
	*strrchr(second, '/') = 0;
	ASSERT_EQ(0, umount2(second, 0));
	/* Now it is gone. */
	EXPECT_ERRNO(ENOTCONN, mock_mount_fd(copy, second, S_IFDIR, ""));
	close(copy);
	rmdir(second);
}

/* An aborted connection still has its superblock, as long as that is mounted. */
TEST_F_TIMEOUT(mount, same_device_aborted, TEST_BOUND)
{
	char second[] = "/tmp/fuse_second.XXXXXX";
	struct stat st;

	ASSERT_NE(NULL, mkdtemp(second));
	ASSERT_EQ(0, mock_mount(self->m, ""));
	umount2(self->m->dir, 1 /* MNT_FORCE */);
	self->m->mounted = stat(self->m->dir, &st) && errno == ENOTCONN;
	if (self->m->mounted) {
		EXPECT_EQ(0, mock_mount_fd(mock_dev, second, S_IFDIR, ""));
		EXPECT_ERRNO(ENOTCONN, stat(second, &st));
		EXPECT_EQ(0, umount2(second, 0));
	} else {
		EXPECT_ERRNO(ENOTCONN, mock_mount_fd(mock_dev, second, S_IFDIR, ""));
	}
	rmdir(second);
}

/* The options are none of its own, but must be options; and a mount that must be new is refused. */
TEST_F_TIMEOUT(mount, same_device_options, TEST_BOUND)
{
	char second[] = "/tmp/fuse_second.XXXXXX", data[128];
	int fs;

	ASSERT_NE(NULL, mkdtemp(second));
	ASSERT_EQ(0, mock_mount(self->m, ""));
	EXPECT_ERRNO(EINVAL, mock_mount_fd(mock_dev, second, S_IFDIR, ",max_read=x"));
	EXPECT_EQ(0, mock_mount_fd(mock_dev, second, S_IFREG, ""));
	EXPECT_EQ(0, umount2(second, 0));
	snprintf(data, sizeof(data), "fd=%d", mock_dev);
	EXPECT_EQ(0, mount("mock", second, mock_client(), 0, data));
	EXPECT_EQ(0, umount2(second, 0));
	fs = fs_ready(mock_dev);
	ASSERT_LE(0, fs);
	EXPECT_ERRNO(EBUSY, fs_config(fs, FSCONFIG_CMD_CREATE_EXCL, NULL, NULL, 0));
	close(fs);
	fs = fs_ready(mock_dev);
	ASSERT_LE(0, fs);
	EXPECT_EQ(0, fs_create(fs));
	EXPECT_EQ(0, fs_mount(fs, second));
	close(fs);
	EXPECT_EQ(0, umount2(second, 0));
	rmdir(second);
}

/* Owners cannot be mapped before the server says that it knows of it (ALLOW_IDMAP). */
TEST_F_TIMEOUT(mount, idmapped, TEST_BOUND)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	int tree, ready[2];
	char path[64], byte;
	pid_t child;

	ASSERT_EQ(0, pipe(ready));
	child = fork();
	if (!child) {
		if (!unshare(CLONE_NEWUSER) && write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	EXPECT_EQ(0, mock_write_file(path, "0 1000 1"));
	snprintf(path, sizeof(path), "/proc/%d/gid_map", child);
	EXPECT_EQ(0, mock_write_file(path, "0 1000 1"));
	snprintf(path, sizeof(path), "/proc/%d/ns/user", child);
	attr.userns_fd = open(path, O_RDONLY);

	ASSERT_EQ(0, mock_mount(self->m, ",default_permissions"));
	tree = syscall(SYS_open_tree, AT_FDCWD, self->m->dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	ASSERT_LE(0, tree);
	EXPECT_ERRNO(EINVAL, syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
	close(tree);
	close(attr.userns_fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

TEST_HARNESS_MAIN
