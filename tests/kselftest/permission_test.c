// SPDX-License-Identifier: GPL-2.0
/*
 * Who may use a mount, and as whom callers are known to the server: the owner's six IDs, allow_other and user
 * namespaces, the administrator's exemption, IDs without a mapping, process IDs, mounts inside a user namespace.
 */
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fuse_test.h"

#define OWNER		1000
#define GROUP		1001
#define OTHER		2000
#define OVERFLOW_ID	65534

FIXTURE(permission) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_SETUP(permission)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 5000);
	self->m->attr_valid = 0;
	self->m->entry_valid = 0;
}

FIXTURE_TEARDOWN(permission)
{
	if (self->m)
		umount2(self->m->dir, MNT_DETACH);
	mock_destroy(self->m);
}

static int mount_for(struct mock *m, unsigned int uid, unsigned int gid, const char *opts)
{
	char data[256];

	m->buf_size = (1 << 20) + 2 * MOCK_PAGE;
	m->buf = mmap(NULL, m->buf_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mock_dev = mock_open_device();
	fcntl(mock_dev, F_SETFL, O_NONBLOCK);
	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=%u,group_id=%u%s", mock_dev, uid, gid, opts);
	if (mount("mock", m->dir, mock_client(), 0, data))
		return -1;
	m->mounted = true;
	return 0;
}

#define START_FOR(m, uid, gid, opts)					\
	do {								\
		ASSERT_EQ(0, mount_for(m, uid, gid, opts)) {		\
			TH_LOG("mount: %s", strerror(errno));		\
		}							\
		ASSERT_EQ(0, mock_start(m));				\
	} while (0)

/* Whom a call is made by. */
struct who {
	uid_t uid[3];	/* real, effective, saved */
	gid_t gid[3];
	uid_t fsuid;	/* -1: as the effective one */
	bool user_ns;	/* in a user namespace of its own, after all that */
};

#define WHO(u, g) { .uid = { u, u, u }, .gid = { g, g, g }, .fsuid = -1 }

static int become(const struct who *who)
{
	if (syscall(SYS_setresgid, who->gid[0], who->gid[1], who->gid[2]) ||
	    syscall(SYS_setresuid, who->uid[0], who->uid[1], who->uid[2]))
		return -1;
	if (who->fsuid != (uid_t)-1)
		setfsuid(who->fsuid);
	return who->user_ns ? unshare(CLONE_NEWUSER) : 0;
}

struct call {
	struct who who;
	const char *path;
};

static long stat_as(struct mock *m, const void *arg)
{
	const struct call *call = arg;

	if (become(&call->who)) {
		errno = ENOSYS;
		return -1;
	}
	return mock_call_stat(m, call->path);
}

#define EXPECT_STAT_AS(expected, m, ...)					\
	do {									\
		const struct call as_ = { __VA_ARGS__, mock_path(m, "file") };	\
										\
		EXPECT_CALL(expected, m, stat_as, &as_);			\
	} while (0)

/* Without allow_other all of the caller's IDs are the owner's, or it has no access: root has none. */
TEST_F_TIMEOUT(permission, six_ids, TEST_BOUND)
{
	START_FOR(self->m, OWNER, GROUP, "");
	EXPECT_STAT_AS(0, self->m, WHO(OWNER, GROUP));
	EXPECT_STAT_AS(EACCES, self->m, WHO(0, 0));
	EXPECT_STAT_AS(EACCES, self->m, WHO(OTHER, OTHER));
	for (int i = 0; i < 3; i++) {
		struct call call = { WHO(OWNER, GROUP), mock_path(self->m, "file") };

		call.who.uid[i] = OTHER;
		EXPECT_CALL(EACCES, self->m, stat_as, &call);
		call.who.uid[i] = OWNER;
		call.who.gid[i] = OTHER;
		EXPECT_CALL(EACCES, self->m, stat_as, &call);
	}
	EXPECT_EQ(1, mock_count(self->m, FUSE_LOOKUP));
}

/* The user of the file system is none of the six, but the one that the server is told. */
TEST_F_TIMEOUT(permission, fsuid, TEST_BOUND)
{
	struct call call = { WHO(0, 0), mock_path(self->m, "file") };

	call.who.fsuid = OTHER;
	START_FOR(self->m, 0, 0, "");
	EXPECT_CALL(0, self->m, stat_as, &call);
	ASSERT_NE(NULL, mock_last(self->m, FUSE_LOOKUP));
	EXPECT_EQ(OTHER, mock_last(self->m, FUSE_LOOKUP)->in.uid);
	EXPECT_EQ(0, mock_last(self->m, FUSE_LOOKUP)->in.gid);
}

/* With it anybody in the mount's user namespace or one below it. */
TEST_F_TIMEOUT(permission, allow_other, TEST_BOUND)
{
	struct call call = { WHO(OTHER, OTHER), mock_path(self->m, "file") };

	START_FOR(self->m, OWNER, GROUP, ",allow_other");
	EXPECT_STAT_AS(0, self->m, WHO(OTHER, OTHER));
	EXPECT_EQ(OTHER, mock_last(self->m, FUSE_LOOKUP)->in.uid);
	EXPECT_STAT_AS(0, self->m, WHO(0, 0));
	call.who.user_ns = true;
	EXPECT_CALL(0, self->m, stat_as, &call);
	EXPECT_EQ(OTHER, mock_last(self->m, FUSE_LOOKUP)->in.uid);
}

static int set_admin_access(const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/allow_sys_admin_access", mock_client());
	return mock_write_file(path, value);
}

/* The administrator of the system may exempt himself; root of a user namespace below is none. */
TEST_F_TIMEOUT(permission, sys_admin, TEST_BOUND)
{
	struct call call = { WHO(0, 0), mock_path(self->m, "file") };

	START_FOR(self->m, OWNER, GROUP, "");
	EXPECT_CALL(EACCES, self->m, stat_as, &call);
	ASSERT_EQ(0, set_admin_access("1"));
	EXPECT_CALL(0, self->m, stat_as, &call);
	EXPECT_STAT_AS(EACCES, self->m, WHO(OTHER, OTHER));
	call.who.user_ns = true;
	EXPECT_CALL(EACCES, self->m, stat_as, &call);
	ASSERT_EQ(0, set_admin_access("0"));
	call.who.user_ns = false;
	EXPECT_CALL(EACCES, self->m, stat_as, &call);
}

/* A stranger's statfs says what the mount is, and nothing of what is in it. */
TEST_F_TIMEOUT(permission, statfs, TEST_BOUND)
{
	struct statfs fs;

	START_FOR(self->m, OWNER, GROUP, "");
	ASSERT_EQ(0, statfs(self->m->dir, &fs));
	EXPECT_EQ(0x65735546, fs.f_type);
	EXPECT_EQ(0, fs.f_blocks);
	EXPECT_EQ(0, fs.f_bsize);
	EXPECT_EQ(0, fs.f_namelen);
	EXPECT_EQ(0, mock_count(self->m, FUSE_STATFS));
}

/* What a file is opened for is good for whoever has the descriptor; the server is told who reads. */
static long read_as_other(struct mock *m, const void *arg)
{
	static const struct who who = WHO(OTHER, OTHER);
	struct stat st;
	char byte;

	if (become(&who))
		return -1;
	if (!fstat(*(const int *)arg, &st) || errno != EACCES) {
		errno = ENOSYS;
		return -1;
	}
	return pread(*(const int *)arg, &byte, 1, 0);
}

TEST_F_TIMEOUT(permission, descriptor, TEST_BOUND)
{
	static const uint32_t flags[] = { 0, FOPEN_DIRECT_IO };

	START_FOR(self->m, 0, 0, "");
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		int fd;

		self->m->open_flags = flags[i];
		fd = open(mock_path(self->m, "file"), O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_CALL(0, self->m, read_as_other, &fd);
		ASSERT_EQ(i + 1, mock_count(self->m, FUSE_READ));
		EXPECT_EQ(OTHER, mock_last(self->m, FUSE_READ)->in.uid);
		EXPECT_EQ(OTHER, mock_last(self->m, FUSE_READ)->in.gid);
		/* By its end its descriptor was closed. */
		EXPECT_EQ(OTHER, mock_last(self->m, FUSE_FLUSH)->in.uid);
		close(fd);
	}
}

static long open_as(struct mock *m, const void *arg)
{
	const struct call *call = arg;

	if (become(&call->who)) {
		errno = ENOSYS;
		return -1;
	}
	return open(call->path, O_RDONLY);
}

/* With default_permissions the mode decides, by the owner that the server names; without, the server does. */
TEST_F_TIMEOUT(permission, by_mode, TEST_BOUND)
{
	static const struct {
		struct who who;
		int error;
	} row[] = {
		{ WHO(OTHER, OTHER), 0 },
		{ WHO(OWNER, GROUP), EACCES },
		{ WHO(0, 0), 0 },	/* CAP_DAC_OVERRIDE */
	};
	struct mock_node *node = mock_node(self->m, self->file);

	node->mode = S_IFREG | 0600;
	node->uid = OTHER;
	for (int by_mode = 1; by_mode >= 0; by_mode--) {
		START_FOR(self->m, OWNER, GROUP, by_mode ? ",allow_other,default_permissions" : ",allow_other");
		for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
			struct call call = { row[i].who, mock_path(self->m, "file") };

			EXPECT_CALL(by_mode ? row[i].error : 0, self->m, open_as, &call);
		}
		ASSERT_EQ(0, mock_umount(self->m));
		mock_kill(self->m);
	}
	EXPECT_EQ(0, mock_count(self->m, FUSE_ACCESS));
	EXPECT_EQ(5, mock_count(self->m, FUSE_OPEN));
}

/* Process IDs */

static long pid_of_caller(struct mock *m, const void *arg)
{
	struct stat st;
	pid_t child;
	int status;

	/* Process 1 of its own namespace. */
	if (unshare(CLONE_NEWPID))
		return -1;
	child = fork();
	if (!child)
		_exit(stat(arg, &st) ? 1 : 0);
	m->knob[0] = child;
	waitpid(child, &status, 0);
	return status ? -1 : 0;
}

/* A caller in a namespace below has the ID that the mounter knows it by. */
TEST_F_TIMEOUT(permission, pid_below, TEST_BOUND)
{
	struct stat st;

	START_FOR(self->m, 0, 0, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(getpid(), mock_last(self->m, FUSE_LOOKUP)->in.pid);
	EXPECT_CALL(0, self->m, pid_of_caller, mock_path(self->m, "file"));
	EXPECT_EQ(self->m->knob[0], mock_last(self->m, FUSE_LOOKUP)->in.pid);
}

/* One outside of the mounter's namespace has none. */
TEST_F_TIMEOUT(permission, pid_outside, TEST_BOUND)
{
	struct stat st;
	pid_t child;
	int status;

	mock_dev = mock_open_device();
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWPID))
			_exit(1);
		child = fork();
		if (!child)
			_exit(mock_mount_fd(mock_dev, self->m->dir, S_IFDIR, "") ? 1 : 0);
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	waitpid(child, &status, 0);
	ASSERT_EQ(0, status);
	self->m->buf_size = (1 << 20) + 2 * MOCK_PAGE;
	self->m->buf = mmap(NULL, self->m->buf_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	fcntl(mock_dev, F_SETFL, O_NONBLOCK);
	ASSERT_EQ(0, mock_start(self->m));
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	EXPECT_EQ(0, mock_last(self->m, FUSE_LOOKUP)->in.pid);
}

/* Mounts inside a user namespace. A process of the owner's enters one, where it is root, and mounts and serves. */

FIXTURE(user_ns) {
	struct mock *m;
	uint64_t file;
	int ready[2];
	pid_t server;
	mode_t device_mode;
};

/* In the child: 0 once it serves. */
static int serve_inside(struct mock *m, const char *opts, int init_device)
{
	static const struct who who = WHO(OWNER, GROUP);
	char data[256];

	if (become(&who) || prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return 1;
	if (mock_write_file("/proc/self/setgroups", "deny") ||
	    mock_write_file("/proc/self/uid_map", "0 1000 1") ||
	    mock_write_file("/proc/self/gid_map", "0 1001 1"))
		return 2;
	if (setresgid(0, 0, 0) || setresuid(0, 0, 0))
		return 3;
	/* A device that was opened outside serves no one inside. */
	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0%s", init_device, opts);
	if (!mount("mock", m->dir, mock_client(), 0, data) || errno != EINVAL)
		return 4;
	mock_dev = mock_open_device();
	/* Nor is anyone an owner who is nobody there. */
	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=5,group_id=0%s", mock_dev, opts);
	if (!mount("mock", m->dir, mock_client(), 0, data) || errno != EINVAL)
		return 5;
	fcntl(mock_dev, F_SETFL, O_NONBLOCK);
	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0%s", mock_dev, opts);
	if (mount("mock", m->dir, mock_client(), 0, data))
		return 6;
	return mock_start(m) ? 7 : 0;
}

/* In the child, with the mount: the server's numbers are its own. */
static int use_inside(struct mock *m)
{
	struct stat st;
	int fd;

	if (stat(mock_path(m, "file"), &st))
		return 10;
	if (st.st_uid != 0 || st.st_gid != 0)
		return 11;
	if (mock_last(m, FUSE_LOOKUP)->in.uid != 0 || mock_last(m, FUSE_LOOKUP)->in.gid != 0)
		return 12;
	if (stat(mock_path(m, "foreign"), &st))
		return 13;
	if (st.st_uid != OVERFLOW_ID)
		return 14;
	fd = open(mock_path(m, "file"), O_RDONLY);
	if (fd < 0)
		return 15;
	m->knob[0] = fd;
	if (mock_call_open_read(m, mock_path(m, "file")) != 5000)
		return 16;
	/* No devices, whatever the server says. */
	if (open(mock_path(m, "null"), O_RDONLY) >= 0 || errno != EACCES)
		return 17;
	return 0;
}

FIXTURE_SETUP(user_ns)
{
	struct stat st;

	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 5000);
	mock_node(self->m, mock_add(self->m, FUSE_ROOT_ID, "foreign", S_IFREG | 0644, 0))->uid = OTHER;
	mock_add(self->m, FUSE_ROOT_ID, "null", S_IFCHR | 0666, 0);
	self->m->attr_valid = 0;
	self->m->entry_valid = 0;
	chmod(self->m->dir, 0755);
	self->m->buf_size = (1 << 20) + 2 * MOCK_PAGE;
	self->m->buf = mmap(NULL, self->m->buf_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_EQ(0, pipe(self->ready));
	/* It is up to udev to let users have it. */
	ASSERT_EQ(0, stat(mock_device(), &st));
	self->device_mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(mock_device(), 0666));
}

FIXTURE_TEARDOWN(user_ns)
{
	if (self->server > 0) {
		kill(self->server, SIGKILL);
		waitpid(self->server, NULL, 0);
	}
	if (self->m)
		chmod(mock_device(), self->device_mode);
	mock_destroy(self->m);
}

/* Lets the child serve, use the mount and stay; its report is the byte that comes. */
static int start_inside(FIXTURE_DATA(user_ns) *self, const char *opts)
{
	int device = mock_open_device();
	char report;

	self->server = fork();
	if (!self->server) {
		report = serve_inside(self->m, opts, device);
		/* It does not outlive a change of credentials. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!report)
			report = use_inside(self->m);
		if (write(self->ready[1], &report, 1) == 1)
			pause();
		_exit(0);
	}
	close(device);
	return read(self->ready[0], &report, 1) == 1 ? report : -1;
}

TEST_F_TIMEOUT(user_ns, works, TEST_BOUND)
{
	ASSERT_EQ(0, start_inside(self, ""));
}

/* From outside, by way of the server's root: what the mount is called there. */
struct outside {
	pid_t server;
	const char *name;
	bool enter;	/* the user namespace, as a user who is nobody in it */
};

static long stat_outside(struct mock *m, const void *arg)
{
	const struct outside *outside = arg;
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", outside->server);
	if (outside->enter && setns(open(path, O_RDONLY), CLONE_NEWUSER)) {
		errno = ENOSYS;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%d/root%s/%s", outside->server, m->dir, outside->name);
	return stat(path, &st);
}

/* Even with allow_other it is no danger to those outside of its user namespace, root included. */
TEST_F_TIMEOUT(user_ns, outside, TEST_BOUND)
{
	struct outside outside = { .name = "file" };

	ASSERT_EQ(0, start_inside(self, ",allow_other"));
	outside.server = self->server;
	EXPECT_CALL(EACCES, self->m, stat_outside, &outside);
	ASSERT_EQ(0, set_admin_access("1"));
	EXPECT_CALL(EOVERFLOW, self->m, stat_outside, &outside);
	ASSERT_EQ(0, set_admin_access("0"));
	/* Inside, but without a number there. */
	outside.enter = true;
	EXPECT_CALL(EOVERFLOW, self->m, stat_outside, &outside);
}

/* Who has no number there reads no file, but a request that must be sent names him by the overflow ID. */
TEST_F_TIMEOUT(user_ns, forced, TEST_BOUND)
{
	uint32_t flushes;
	int pidfd, fd;
	char byte;

	self->m->open_flags = FOPEN_DIRECT_IO;
	ASSERT_EQ(0, start_inside(self, ""));
	pidfd = syscall(SYS_pidfd_open, self->server, 0);
	ASSERT_LE(0, pidfd);
	fd = syscall(SYS_pidfd_getfd, pidfd, self->m->knob[0], 0);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EOVERFLOW, pread(fd, &byte, 1, 0));
	flushes = mock_count(self->m, FUSE_FLUSH);
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(flushes + 1, mock_count(self->m, FUSE_FLUSH));
	EXPECT_EQ(OVERFLOW_ID, mock_last(self->m, FUSE_FLUSH)->in.uid);
	EXPECT_EQ(OVERFLOW_ID, mock_last(self->m, FUSE_FLUSH)->in.gid);
	close(pidfd);
}

TEST_HARNESS_MAIN
