// SPDX-License-Identifier: GPL-2.0
/*
 * The control filesystem: a directory for each connection, its files and what they do. The test itself is the daemon
 * where requests must stay unanswered.
 */
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "fuse_test.h"

#define OWNER	1000
#define GROUP	1001

static const char *control_type(void)
{
	return mock_in_tree() ? "fusectl" : "fusectl_rs";
}

static const char *control_root(void)
{
	return mock_in_tree() ? "/sys/fs/fuse/connections" : "/sys/fs/fuse_rs/connections";
}

/* There, be it by us or before. */
static int control_mount(void)
{
	return mount("none", control_root(), control_type(), 0, NULL) && errno != EBUSY ? -1 : 0;
}

/* The directory of a mounted mock, by the number of the kernel's dev_t: 12 bits of major and 20 of minor. */
static unsigned int connection(struct mock *m)
{
	unsigned int major = 0, minor = 0;
	char line[1024], point[256];
	FILE *file = fopen("/proc/self/mountinfo", "re");

	snprintf(point, sizeof(point), " %s ", m->dir);
	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, point))
			sscanf(line, "%*d %*d %u:%u", &major, &minor);
	if (file)
		fclose(file);
	return major << 20 | minor;
}

static const char *control_path(struct mock *m, const char *name)
{
	static char path[8][128];
	static unsigned int next;

	next = (next + 1) % 8;
	snprintf(path[next], sizeof(path[next]), "%s/%u%s%s", control_root(), connection(m), *name ? "/" : "", name);
	return path[next];
}

/* Names in a directory, but the dots. */
static int entries(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	int count = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

FIXTURE(control) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_SETUP(control)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 100000);
	ASSERT_EQ(0, control_mount()) {
		TH_LOG("%s: %s", control_root(), strerror(errno));
	}
}

FIXTURE_TEARDOWN(control)
{
	mock_destroy(self->m);
}

static int mount_for(struct mock *m, unsigned int uid, unsigned int gid, const char *opts)
{
	char data[256];

	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=%u,group_id=%u%s", mock_dev, uid, gid, opts);
	return mount("mock", m->dir, mock_client(), MS_RDONLY, data);
}

/* What is there, whose it is, and that it goes with the mount. */
TEST_F_TIMEOUT(control, tree, TEST_BOUND)
{
	static const struct {
		const char *name;
		mode_t mode;
	} row[] = {
		{ "", S_IFDIR | 0500 },
		{ "waiting", S_IFREG | 0400 },
		{ "abort", S_IFREG | 0200 },
		{ "max_background", S_IFREG | 0600 },
		{ "congestion_threshold", S_IFREG | 0600 },
	};
	char data[64];
	int before = entries(control_root());
	struct statfs fs;
	struct stat st;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	EXPECT_EQ(before + 1, entries(control_root()));
	EXPECT_EQ(4, entries(control_path(self->m, "")));
	ASSERT_EQ(0, stat(control_root(), &st));
	EXPECT_EQ(S_IFDIR | 0755, st.st_mode);
	EXPECT_EQ(before + 3, st.st_nlink);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		ASSERT_EQ(0, stat(control_path(self->m, row[i].name), &st)) {
			TH_LOG("%s: %s", control_path(self->m, row[i].name), strerror(errno));
		}
		EXPECT_EQ(row[i].mode, st.st_mode) {
			TH_LOG("%s", row[i].name);
		}
		EXPECT_EQ(0, st.st_uid);
		EXPECT_EQ(0, st.st_gid);
		EXPECT_EQ(S_ISDIR(row[i].mode) ? 2 : 1, st.st_nlink);
	}
	ASSERT_EQ(0, statfs(control_root(), &fs));
	EXPECT_EQ(0x65735543, fs.f_type);
	EXPECT_EQ(MOCK_PAGE, fs.f_bsize);
	snprintf(data, sizeof(data), "%s", control_path(self->m, ""));
	ASSERT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(before, entries(control_root()));
	EXPECT_ERRNO(ENOENT, stat(data, &st));
}

/* The owner of the mount owns the directory and the files, and nobody else gets in. */
TEST_F_TIMEOUT(control, owner, TEST_BOUND)
{
	static const char * const name[] = { "", "waiting", "abort", "max_background", "congestion_threshold" };
	struct stat st;
	pid_t child;
	int status;

	mock_dev = mock_open_device();
	ASSERT_EQ(0, mount_for(self->m, OWNER, GROUP, ""));
	self->m->mounted = true;
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		ASSERT_EQ(0, stat(control_path(self->m, name[i]), &st));
		EXPECT_EQ(OWNER, st.st_uid);
		EXPECT_EQ(GROUP, st.st_gid);
	}
	child = fork();
	if (!child) {
		if (setresgid(GROUP, GROUP, GROUP) || setresuid(OWNER, OWNER, OWNER))
			_exit(1);
		_exit(mock_read_number(control_path(self->m, "waiting")) < 0 ? 2 : 0);
	}
	waitpid(child, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
	child = fork();
	if (!child) {
		if (setresgid(GROUP, GROUP, GROUP) || setresuid(OWNER + 1, OWNER + 1, OWNER + 1))
			_exit(1);
		_exit(mock_read_number(control_path(self->m, "waiting")) < 0 && errno == EACCES ? 0 : 2);
	}
	waitpid(child, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* Nothing can be made, removed or renamed in it. */
TEST_F_TIMEOUT(control, fixed, TEST_BOUND)
{
	ASSERT_EQ(0, mock_mount(self->m, ""));
	EXPECT_ERRNO(EPERM, mkdir(control_path(self->m, "new"), 0755));
	EXPECT_ERRNO(EACCES, open(control_path(self->m, "new"), O_CREAT | O_WRONLY, 0644));
	EXPECT_ERRNO(EPERM, unlink(control_path(self->m, "waiting")));
	EXPECT_ERRNO(EPERM, rmdir(control_path(self->m, "")));
	EXPECT_ERRNO(EPERM, rename(control_path(self->m, "waiting"), control_path(self->m, "abort")));
	EXPECT_ERRNO(ENOENT, open(control_path(self->m, "nothing"), O_RDONLY));
	EXPECT_ERRNO(EINVAL, mount("none", control_root(), control_type(), 0, "option"));
}

/* Requests that wait are counted: read by the daemon or not, before INIT too. */
TEST_F_TIMEOUT(control, waiting, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	EXPECT_EQ(1, mock_read_number(control_path(self->m, "waiting")));	/* INIT */
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(1, mock_read_number(control_path(self->m, "waiting")));
	mock_serve(self->m, &req);
	EXPECT_EQ(0, mock_read_number(control_path(self->m, "waiting")));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_LOOKUP, &req));
	EXPECT_EQ(1, mock_read_number(control_path(self->m, "waiting")));
	mock_serve(self->m, &req);
	EXPECT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, mock_read_number(control_path(self->m, "waiting")));
}

/* Any write ends the connection, whatever is written. */
TEST_F_TIMEOUT(control, abort, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;
	struct stat st;
	int fd;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_LOOKUP, &req));
	fd = open(control_path(self->m, "abort"), O_WRONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(3, write(fd, "yes", 3));
	EXPECT_TRUE(mock_call_done(call));
	EXPECT_EQ(ECONNABORTED, call->error);
	EXPECT_EQ(1, write(fd, "1", 1));
	close(fd);
	EXPECT_ERRNO(ENOTCONN, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(-1, mock_read(mock_dev, self->m->buf, self->m->buf_size));
	EXPECT_EQ(ENODEV, errno);
	/* The mount is still there, and so is its directory. */
	EXPECT_EQ(0, mock_read_number(control_path(self->m, "waiting")));
	fd = open(control_path(self->m, "abort"), O_RDONLY);
	EXPECT_ERRNO(EINVAL, read(fd, &st, 1));
	close(fd);
	fd = open(control_path(self->m, "waiting"), O_WRONLY);
	EXPECT_ERRNO(EINVAL, write(fd, "1", 1));
	close(fd);
}

/* Connections are known whether or not the filesystem is mounted. */
TEST_F_TIMEOUT(control, not_mounted, TEST_BOUND)
{
	char directory[128];
	struct stat st;

	ASSERT_EQ(0, umount2(control_root(), 0));
	ASSERT_EQ(0, mock_mount(self->m, ""));
	snprintf(directory, sizeof(directory), "%s", control_path(self->m, ""));
	EXPECT_ERRNO(ENOENT, stat(directory, &st));
	ASSERT_EQ(0, control_mount());
	EXPECT_EQ(1, mock_read_number(control_path(self->m, "waiting")));
	ASSERT_EQ(0, umount2(control_root(), 0));
	ASSERT_EQ(0, mock_umount(self->m));
	ASSERT_EQ(0, control_mount());
	EXPECT_ERRNO(ENOENT, stat(directory, &st));
}

/* Wherever it is mounted, it is the same; it is no user's to mount. */
TEST_F_TIMEOUT(control, one_instance, TEST_BOUND)
{
	char second[] = "/tmp/fuse_control.XXXXXX";
	struct stat a, b;
	int status;
	pid_t child;

	ASSERT_NE(NULL, mkdtemp(second));
	ASSERT_EQ(0, mount("other", second, control_type(), 0, NULL));
	ASSERT_EQ(0, stat(second, &a));
	ASSERT_EQ(0, stat(control_root(), &b));
	EXPECT_EQ(a.st_dev, b.st_dev);
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			_exit(2);
		_exit(mount("none", second, control_type(), 0, NULL) && errno == EPERM ? 0 : 1);
	}
	waitpid(child, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(0, umount2(second, 0));
	rmdir(second);
}

/* A second mount of a device has the directory of the first, until both are gone. */
TEST_F_TIMEOUT(control, two_mounts, TEST_BOUND)
{
	char second[] = "/tmp/fuse_second.XXXXXX", directory[128];
	int before = entries(control_root());
	struct stat st;

	ASSERT_NE(NULL, mkdtemp(second));
	ASSERT_EQ(0, mock_mount(self->m, ""));
	snprintf(directory, sizeof(directory), "%s", control_path(self->m, ""));
	ASSERT_EQ(0, mock_mount_fd(mock_dev, second, S_IFDIR, ""));
	EXPECT_EQ(before + 1, entries(control_root()));
	ASSERT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(0, stat(directory, &st));
	ASSERT_EQ(0, umount2(second, 0));
	EXPECT_ERRNO(ENOENT, stat(directory, &st));
	rmdir(second);
}

/* A mount that fails leaves nothing behind. */
TEST_F_TIMEOUT(control, failed_mount, TEST_BOUND)
{
	int before = entries(control_root());

	EXPECT_NE(0, mock_mount(self->m, ",nonsense"));
	EXPECT_EQ(before, entries(control_root()));
}

/* Whoever is in a directory when it goes keeps nothing but an empty place. */
TEST_F_TIMEOUT(control, directory_held, TEST_BOUND)
{
	char text[8];
	int dir, waiting;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	dir = open(control_path(self->m, ""), O_RDONLY | O_DIRECTORY);
	ASSERT_LE(0, dir);
	waiting = openat(dir, "waiting", O_RDONLY);
	ASSERT_LE(0, waiting);
	ASSERT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(0, read(waiting, text, sizeof(text)));
	EXPECT_ERRNO(ENOENT, openat(dir, "waiting", O_RDONLY));
	close(waiting);
	close(dir);
}

/* Limits */

FIXTURE(limit) {
	struct mock *m;
};

FIXTURE_VARIANT(limit) {
	const char *name;
	const char *parameter;	/* what binds users */
	long before;		/* INIT is answered */
	long agreed;		/* as in the answer */
};

FIXTURE_VARIANT_ADD(limit, max_background) { "max_background", "max_user_bgreq", 12, 16 };
FIXTURE_VARIANT_ADD(limit, congestion_threshold) { "congestion_threshold", "max_user_congthresh", 9, 12 };

FIXTURE_SETUP(limit)
{
	SETUP_MOCK(self->m);
	ASSERT_EQ(0, control_mount());
}

FIXTURE_TEARDOWN(limit)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(limit, agreed, TEST_BOUND)
{
	struct mock_request req;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	EXPECT_EQ(variant->before, mock_read_number(control_path(self->m, variant->name)));
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	EXPECT_EQ(variant->agreed, mock_read_number(control_path(self->m, variant->name)));
}

TEST_F_TIMEOUT(limit, bounds, TEST_BOUND)
{
	const char *path;

	START(self->m, "");
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_INIT, 1));
	ASSERT_EQ(0, mock_wait_answered(self->m, FUSE_INIT));
	path = control_path(self->m, variant->name);
	EXPECT_EQ(0, mock_write_file(path, "65535\n"));
	EXPECT_EQ(65535, mock_read_number(path));
	EXPECT_EQ(0, mock_write_file(path, "0x10"));
	EXPECT_EQ(16, mock_read_number(path));
	EXPECT_EQ(0, mock_write_file(path, "1"));
	EXPECT_EQ(1, mock_read_number(path));
	EXPECT_EQ(0, mock_write_file(path, "7"));
	EXPECT_ERRNO(EINVAL, mock_write_file(path, "65536"));
	EXPECT_ERRNO(EINVAL, mock_write_file(path, "-1"));
	EXPECT_ERRNO(EINVAL, mock_write_file(path, "many"));
	EXPECT_ERRNO(EINVAL, mock_write_file(path, "5 6"));
	EXPECT_EQ(7, mock_read_number(path));
	EXPECT_EQ(0, mock_write_file(path, "0"));
	EXPECT_EQ(0, mock_read_number(path));
}

/* A number is written at the beginning, and there is no way back there. */
TEST_F_TIMEOUT(limit, offset, TEST_BOUND)
{
	char text[16] = "";
	int fd;

	START(self->m, "");
	ASSERT_EQ(0, mock_wait_answered(self->m, FUSE_INIT));
	fd = open(control_path(self->m, variant->name), O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_EQ(2, write(fd, "21", 2));
	EXPECT_EQ(2, write(fd, "22", 2));
	EXPECT_ERRNO(ESPIPE, pwrite(fd, "23", 2, 0));
	EXPECT_ERRNO(ESPIPE, pread(fd, text, 2, 0));
	EXPECT_ERRNO(ESPIPE, lseek(fd, 0, SEEK_SET));
	EXPECT_EQ(1, read(fd, text, 1));
	EXPECT_EQ(2, read(fd, text + 1, 14));
	EXPECT_STREQ("22\n", text);
	EXPECT_EQ(0, read(fd, text, 15));
	EXPECT_ERRNO(EINVAL, write(fd, "24", 2));
	close(fd);
}

/* An open file outlives the connection. */
TEST_F_TIMEOUT(limit, after_umount, TEST_BOUND)
{
	char text[16];
	int fd;

	ASSERT_EQ(0, mock_mount(self->m, ""));
	fd = open(control_path(self->m, variant->name), O_RDWR);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(0, read(fd, text, 15));
	EXPECT_EQ(2, write(fd, "22", 2));
	EXPECT_ERRNO(EINVAL, write(fd, "x", 1));
	close(fd);
}

/* A parameter that is set for a test. */
struct parameter {
	char path[128];
	long before;
};

static int parameter_set(struct parameter *parameter, const char *name, const char *value)
{
	snprintf(parameter->path, sizeof(parameter->path), "/sys/module/%s/parameters/%s", mock_client(), name);
	parameter->before = mock_read_number(parameter->path);
	return mock_write_file(parameter->path, value);
}

static void parameter_put_back(struct parameter *parameter)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", parameter->before);
	mock_write_file(parameter->path, text);
}

/* Who is no administrator can set no more than the parameter says. */
TEST_F_TIMEOUT(limit, user, TEST_BOUND)
{
	struct parameter parameter;
	const char *path;
	pid_t child;
	int status;

	ASSERT_EQ(0, parameter_set(&parameter, variant->parameter, "50"));
	mock_dev = mock_open_device();
	ASSERT_EQ(0, mount_for(self->m, OWNER, GROUP, ""));
	self->m->mounted = true;
	path = control_path(self->m, variant->name);
	child = fork();
	if (!child) {
		if (setresgid(GROUP, GROUP, GROUP) || setresuid(OWNER, OWNER, OWNER))
			_exit(1);
		if (mock_write_file(path, "50"))
			_exit(2);
		_exit(mock_write_file(path, "51") && errno == EINVAL ? 0 : 3);
	}
	waitpid(child, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(50, mock_read_number(path));
	EXPECT_EQ(0, mock_write_file(path, "51"));
	EXPECT_EQ(51, mock_read_number(path));
	parameter_put_back(&parameter);
}

/* Nor can a server that is none by its answer to INIT; one that is can. */
TEST_F_TIMEOUT(limit, user_init, TEST_BOUND)
{
	struct parameter parameter;
	struct mock_request req;
	pid_t child;
	int status;

	ASSERT_EQ(0, parameter_set(&parameter, variant->parameter, "50"));
	self->m->init.out.max_background = 60;
	self->m->init.out.congestion_threshold = 60;
	ASSERT_EQ(0, mock_mount(self->m, ""));
	child = fork();
	if (!child) {
		if (setresuid(OWNER, OWNER, OWNER) || mock_take(self->m, &req))
			_exit(1);
		mock_serve(self->m, &req);
		_exit(0);
	}
	waitpid(child, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(50, mock_read_number(control_path(self->m, variant->name)));
	ASSERT_EQ(0, mock_umount(self->m));
	close(mock_dev);
	ASSERT_EQ(0, mock_mount(self->m, ""));
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	EXPECT_EQ(60, mock_read_number(control_path(self->m, variant->name)));
	parameter_put_back(&parameter);
}

TEST_HARNESS_MAIN
