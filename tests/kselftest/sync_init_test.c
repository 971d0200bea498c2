// SPDX-License-Identifier: GPL-2.0
/*
 * FUSE_DEV_IOC_SYNC_INIT: the server reads before the mount is made, and the mount waits for its answer to INIT. The
 * test itself is the daemon; whoever mounts, and whoever reads too early, is another process.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "fuse_test.h"

/* What mock_mount() does before it mounts. */
static void open_device(struct __test_metadata *_metadata, struct mock *m)
{
	m->buf_size = m->init.out.max_write + 2 * MOCK_PAGE;
	m->buf = mmap(NULL, m->buf_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, m->buf);
	mock_dev = mock_open_device();
	ASSERT_LE(0, mock_dev);
}

FIXTURE(sync_init) {
	struct mock *m;
	int fd;		/* another descriptor of the device, for the mounter: mock_dev is not inherited */
};

FIXTURE_SETUP(sync_init)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10);
	open_device(_metadata, self->m);
	ASSERT_EQ(0, fcntl(mock_dev, F_SETFL, 0));
	self->fd = dup(mock_dev);
}

FIXTURE_TEARDOWN(sync_init)
{
	umount2(self->m->dir, MNT_DETACH);
	close(self->fd);
	mock_destroy(self->m);
}

static long call_mount(struct mock *m, const void *fd)
{
	return mock_mount_fd((intptr_t)fd, m->dir, S_IFDIR, "");
}

/* The same by fsopen(2). The mounter lets go of the device before it waits: only the daemon has it open then. */
static long call_create(struct mock *m, const void *fd)
{
	int fs = syscall(SYS_fsopen, mock_client(), 0);

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, "fd", NULL, (intptr_t)fd) ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "rootmode", "40000", 0) ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "user_id", "0", 0) ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "group_id", "0", 0))
		return -1;
	close((intptr_t)fd);
	return syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

static long call_read(struct mock *m, const void *fd)
{
	return read((intptr_t)fd, m->buf, m->buf_size);
}

/* Takes INIT, for which the mounter waits. */
static struct mock_request init_taken(struct __test_metadata *_metadata, struct mock *m)
{
	struct mock_request req = { &m->record[m->records++], m->buf, m->buf + sizeof(struct fuse_in_header),
				    sizeof(struct fuse_init_in) };

	EXPECT_EQ(sizeof(struct fuse_in_header) + sizeof(struct fuse_init_in), call_read(m, (void *)(intptr_t)mock_dev));
	EXPECT_EQ(FUSE_INIT, req.in->opcode);
	return req;
}

static bool is_mounted(struct mock *m)
{
	struct statx stx, parent;

	return !statx(AT_FDCWD, m->dir, AT_STATX_DONT_SYNC, 0, &stx) &&
	       !statx(AT_FDCWD, "/tmp", AT_STATX_DONT_SYNC, 0, &parent) &&
	       (stx.stx_dev_minor != parent.stx_dev_minor || stx.stx_dev_major != parent.stx_dev_major);
}

#define SYNC_INIT(fd) ASSERT_EQ(0, ioctl(fd, FUSE_DEV_IOC_SYNC_INIT))

TEST_F_TIMEOUT(sync_init, mount_waits, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *mounter;

	SYNC_INIT(mock_dev);
	SYNC_INIT(mock_dev);
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	req = init_taken(_metadata, self->m);
	usleep(50000);
	EXPECT_FALSE(mounter->done);
	EXPECT_FALSE(is_mounted(self->m));
	EXPECT_ERRNO(EINVAL, ioctl(mock_dev, FUSE_DEV_IOC_SYNC_INIT));
	mock_serve_tree(self->m, &req);
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(0, mounter->error);
	EXPECT_TRUE(is_mounted(self->m));
	EXPECT_EQ(0, served(_metadata, self->m, mock_call(self->m, mock_call_stat, mock_path(self->m, "file"))));
}

/* Without it the mount is there before INIT is answered, and a device without mount refuses. */
TEST_F_TIMEOUT(sync_init, without, TEST_BOUND)
{
	struct mock_call *mounter;

	EXPECT_ERRNO(EPERM, call_read(self->m, (void *)(intptr_t)mock_dev));
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(0, mounter->error);
	EXPECT_ERRNO(EINVAL, ioctl(mock_dev, FUSE_DEV_IOC_SYNC_INIT));
}

/* Whoever uses the device before the mount waits for it, and gives up for a signal. */
TEST_F_TIMEOUT(sync_init, early_read, TEST_BOUND)
{
	struct mock_request req = {};
	struct mock_call *reader, *killed, *mounter;

	SYNC_INIT(mock_dev);
	killed = mock_call(self->m, call_read, (void *)(intptr_t)self->fd);
	usleep(50000);
	EXPECT_FALSE(killed->done);
	kill(killed->pid, SIGTERM);
	EXPECT_FALSE(mock_call_done(killed));
	EXPECT_EQ(0, killed->pid);
	reader = mock_call(self->m, call_read, (void *)(intptr_t)self->fd);
	usleep(50000);
	EXPECT_FALSE(reader->done);
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	ASSERT_TRUE(mock_call_done(reader));
	EXPECT_EQ(sizeof(struct fuse_in_header) + sizeof(struct fuse_init_in), reader->ret);
	req = (struct mock_request){ &self->m->record[self->m->records++], self->m->buf,
				     self->m->buf + sizeof(struct fuse_in_header), sizeof(struct fuse_init_in) };
	mock_serve_tree(self->m, &req);
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(0, mounter->error);
}

/* A clone made too early waits as well. */
static long call_clone(struct mock *m, const void *fd)
{
	uint32_t old = (intptr_t)fd;
	int new = mock_open_device();

	return ioctl(new, FUSE_DEV_IOC_CLONE, &old);
}

TEST_F_TIMEOUT(sync_init, early_clone, TEST_BOUND)
{
	struct mock_call *clone, *mounter;
	struct mock_request req;

	SYNC_INIT(mock_dev);
	clone = mock_call(self->m, call_clone, (void *)(intptr_t)self->fd);
	usleep(50000);
	EXPECT_FALSE(clone->done);
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	ASSERT_TRUE(mock_call_done(clone));
	EXPECT_EQ(0, clone->error);
	req = init_taken(_metadata, self->m);
	mock_serve_tree(self->m, &req);
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(0, mounter->error);
}

TEST_F_TIMEOUT(sync_init, error_answer, TEST_BOUND)
{
	struct mock_call *mounter;
	struct mock_request req;

	SYNC_INIT(mock_dev);
	self->m->init.error = -EIO;
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	req = init_taken(_metadata, self->m);
	mock_serve_tree(self->m, &req);
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(ENOTCONN, mounter->error);
	EXPECT_FALSE(is_mounted(self->m));
	EXPECT_ERRNO(ENODEV, call_read(self->m, (void *)(intptr_t)mock_dev));
}

TEST_F_TIMEOUT(sync_init, unusable_answer, TEST_BOUND)
{
	struct mock_call *mounter;
	struct mock_request req;

	SYNC_INIT(mock_dev);
	self->m->init.out.major = 3;
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	req = init_taken(_metadata, self->m);
	mock_serve_tree(self->m, &req);
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(ENOTCONN, mounter->error);
	EXPECT_FALSE(is_mounted(self->m));
}

/* The mounter can be killed at any time, and takes the connection along. */
TEST_F_TIMEOUT(sync_init, mounter_killed, TEST_BOUND)
{
	struct mock_call *mounter;
	struct mock_request req;

	SYNC_INIT(mock_dev);
	mounter = mock_call(self->m, call_mount, (void *)(intptr_t)self->fd);
	req = init_taken(_metadata, self->m);
	kill(mounter->pid, SIGKILL);
	EXPECT_FALSE(mock_call_done(mounter));
	EXPECT_EQ(0, mounter->pid);
	EXPECT_FALSE(is_mounted(self->m));
	mock_serve_tree(self->m, &req);
	EXPECT_EQ(ENOENT, req.record->write_error);
	EXPECT_ERRNO(ENODEV, call_read(self->m, (void *)(intptr_t)mock_dev));
}

/* The daemon dies while the mounter waits, before and after it has read INIT. */
FIXTURE(sync_death) {
	struct mock *m;
	int fd;
};

FIXTURE_VARIANT(sync_death) {
	bool read;
};

FIXTURE_VARIANT_ADD(sync_death, unread) { .read = false };
FIXTURE_VARIANT_ADD(sync_death, read) { .read = true };

FIXTURE_SETUP(sync_death)
{
	SETUP_MOCK(self->m);
	open_device(_metadata, self->m);
	self->fd = dup(mock_dev);
}

FIXTURE_TEARDOWN(sync_death)
{
	mock_destroy(self->m);
}

static bool connected(struct mock *m, uint64_t fd)
{
	struct pollfd pfd = { fd, POLLIN, 0 };

	return poll(&pfd, 1, 0) == 1 && !(pfd.revents & POLLERR);
}

TEST_F_TIMEOUT(sync_death, closed, TEST_BOUND)
{
	struct mock_call *mounter;

	SYNC_INIT(mock_dev);
	mounter = mock_call(self->m, call_create, (void *)(intptr_t)self->fd);
	close(self->fd);
	ASSERT_TRUE(mock_wait(connected, self->m, mock_dev));
	if (variant->read)
		init_taken(_metadata, self->m);
	usleep(50000);
	EXPECT_FALSE(mounter->done);
	close(mock_dev);
	mock_dev = -1;
	ASSERT_TRUE(mock_call_done(mounter));
	EXPECT_EQ(ENOTCONN, mounter->error);
}

TEST_HARNESS_MAIN
