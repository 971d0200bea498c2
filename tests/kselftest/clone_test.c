// SPDX-License-Identifier: GPL-2.0
/*
 * Several open devices for one connection (FUSE_DEV_IOC_CLONE), and what else the open device has beside read and
 * write: other ioctls, signals, epoll, fdinfo. The test itself is the daemon.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "fuse_test.h"

FIXTURE(clone) {
	struct mock *m;
};

FIXTURE_SETUP(clone)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10);
}

FIXTURE_TEARDOWN(clone)
{
	mock_destroy(self->m);
}

static int clone_of(int fd)
{
	uint32_t old = fd;
	int new = mock_open_device();

	if (new >= 0 && ioctl(new, FUSE_DEV_IOC_CLONE, &old)) {
		int error = errno;

		close(new);
		errno = error;
		return -1;
	}
	return new;
}

/* By a process that holds no device open. */
static long call_stat(struct mock *m, const void *path)
{
	close_range(3, ~0U, 0);
	return mock_call_stat(m, path);
}

static struct mock_call *stat_none(struct mock *m)
{
	return mock_call(m, call_stat, mock_path(m, "none"));
}

/* Takes the LOOKUP of such a call from @fd. Its ID. */
static uint64_t take_from(struct __test_metadata *_metadata, struct mock *m, int fd)
{
	struct fuse_in_header *in = m->buf;

	EXPECT_TRUE(mock_wait_readable(fd));
	EXPECT_LT(0, mock_read(fd, m->buf, m->buf_size));
	EXPECT_EQ(FUSE_LOOKUP, in->opcode);
	return in->unique;
}

static int answer_none(int fd, uint64_t unique)
{
	return mock_write_raw(fd, unique, sizeof(struct fuse_out_header), -ENOENT, NULL, 0) < 0 ? -errno : 0;
}

TEST_F_TIMEOUT(clone, refused, TEST_BOUND)
{
	int fresh = mock_open_device(), other = mock_open_device(), null = open("/dev/null", O_RDWR);
	uint32_t fd;

	mount_ready(_metadata, self->m);
	EXPECT_ERRNO(EFAULT, ioctl(fresh, FUSE_DEV_IOC_CLONE, NULL));
	fd = 999;
	EXPECT_ERRNO(EINVAL, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	fd = -1;
	EXPECT_ERRNO(EINVAL, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	fd = null;
	EXPECT_ERRNO(EINVAL, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	fd = other;
	EXPECT_ERRNO(EPERM, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	fd = fresh;
	EXPECT_ERRNO(EPERM, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	fd = mock_dev;
	EXPECT_ERRNO(EINVAL, ioctl(mock_dev, FUSE_DEV_IOC_CLONE, &fd));
	/* None of these spent the descriptor. */
	EXPECT_EQ(0, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	EXPECT_ERRNO(EINVAL, ioctl(fresh, FUSE_DEV_IOC_CLONE, &fd));
	close(fresh);
	close(other);
	close(null);
}

/* Any device gets any request, and it alone can answer what it got. */
TEST_F_TIMEOUT(clone, answers_its_own, TEST_BOUND)
{
	struct mock_call *call[2];
	uint64_t unique[2];
	int fd;

	mount_ready(_metadata, self->m);
	fd = clone_of(mock_dev);
	ASSERT_LE(0, fd);
	call[0] = stat_none(self->m);
	unique[0] = take_from(_metadata, self->m, fd);
	call[1] = mock_call(self->m, call_stat, mock_path(self->m, "nor this"));
	unique[1] = take_from(_metadata, self->m, mock_dev);
	EXPECT_EQ(-ENOENT, answer_none(mock_dev, unique[0]));
	EXPECT_EQ(-ENOENT, answer_none(fd, unique[1]));
	EXPECT_EQ(0, answer_none(fd, unique[0]));
	EXPECT_EQ(0, answer_none(mock_dev, unique[1]));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(mock_call_done(call[i]));
		EXPECT_EQ(ENOENT, call[i]->error);
	}
	close(fd);
}

/* A device that is closed takes with it what it got, nothing else. */
TEST_F_TIMEOUT(clone, closed, TEST_BOUND)
{
	struct mock_call *lost, *kept;
	uint64_t unique;
	int fd;

	mount_ready(_metadata, self->m);
	fd = clone_of(mock_dev);
	ASSERT_LE(0, fd);
	lost = stat_none(self->m);
	take_from(_metadata, self->m, fd);
	kept = mock_call(self->m, call_stat, mock_path(self->m, "nor this"));
	unique = take_from(_metadata, self->m, mock_dev);
	close(fd);
	ASSERT_TRUE(mock_call_done(lost));
	EXPECT_EQ(ECONNABORTED, lost->error);
	EXPECT_FALSE(kept->done);
	EXPECT_EQ(0, answer_none(mock_dev, unique));
	ASSERT_TRUE(mock_call_done(kept));
	EXPECT_EQ(ENOENT, kept->error);
	EXPECT_EQ(0, served(_metadata, self->m, mock_call(self->m, call_stat, mock_path(self->m, "file"))));
}

/* The device of the mount is not special: the last one ends the connection. */
TEST_F_TIMEOUT(clone, last_close, TEST_BOUND)
{
	struct mock_call *call;
	int first, second;

	mount_ready(_metadata, self->m);
	first = clone_of(mock_dev);
	second = clone_of(first);
	ASSERT_LE(0, second);
	close(mock_dev);
	close(first);
	mock_dev = second;
	EXPECT_EQ(0, served(_metadata, self->m, mock_call(self->m, call_stat, mock_path(self->m, "file"))));
	call = stat_none(self->m);
	take_from(_metadata, self->m, second);
	close(second);
	mock_dev = -1;
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(ECONNABORTED, call->error);
	EXPECT_CALL(ENOTCONN, self->m, mock_call_stat, mock_path(self->m, "later"));
}

/* A connection that has ended can have devices still; there is nothing to read. */
TEST_F_TIMEOUT(clone, after_umount, TEST_BOUND)
{
	int fd;

	mount_ready(_metadata, self->m);
	EXPECT_EQ(0, mock_umount(self->m));
	fd = clone_of(mock_dev);
	EXPECT_LE(0, fd);
	EXPECT_ERRNO(ENODEV, mock_read(fd, self->m->buf, self->m->buf_size));
	close(fd);
}

/* Other ioctls */

TEST_F_TIMEOUT(clone, other_ioctls, TEST_BOUND)
{
	struct fuse_backing_map map = {};
	int fd = mock_open_device();
	uint32_t id = 1;

	EXPECT_ERRNO(ENOTTY, ioctl(fd, _IO(229, 77)));
	EXPECT_ERRNO(EPERM, ioctl(fd, FUSE_DEV_IOC_BACKING_OPEN, &map));
	EXPECT_ERRNO(EPERM, ioctl(fd, FUSE_DEV_IOC_BACKING_CLOSE, &id));
	mount_ready(_metadata, self->m);
	EXPECT_ERRNO(ENOTTY, ioctl(mock_dev, _IO(229, 77)));
	/* No passthrough was agreed on. */
	EXPECT_ERRNO(EPERM, ioctl(mock_dev, FUSE_DEV_IOC_BACKING_OPEN, &map));
	EXPECT_ERRNO(EPERM, ioctl(mock_dev, FUSE_DEV_IOC_BACKING_CLOSE, &id));
	close(fd);
}

#ifdef __x86_64__
/* From a 32-bit process, which this system call makes us. */
TEST_F_TIMEOUT(clone, compat, TEST_BOUND)
{
	uint32_t *arg = mmap(NULL, MOCK_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = mock_open_device();
	long ret;

	ASSERT_NE(MAP_FAILED, arg);
	/* There with the system calls of 32-bit programs; without those the call is a fault. */
	if (access("/proc/sys/abi/vsyscall32", F_OK))
		SKIP(return, "a kernel without IA32_EMULATION");
	mount_ready(_metadata, self->m);
	*arg = mock_dev;
	__asm__ volatile("int $0x80" : "=a"(ret)
			 : "a"(54), "b"(fd), "c"(FUSE_DEV_IOC_CLONE), "d"((uint32_t)(uintptr_t)arg) : "memory");
	EXPECT_EQ(0, (int)ret);
	close(mock_dev);
	mock_dev = fd;
	EXPECT_EQ(0, served(_metadata, self->m, mock_call(self->m, call_stat, mock_path(self->m, "file"))));
}
#endif

/* Signals, epoll, fdinfo */

static bool signalled(int sig, int ms)
{
	struct timespec bound = { ms / 1000, ms % 1000 * 1000000L };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return sigtimedwait(&set, NULL, &bound) == sig;
}

TEST_F_TIMEOUT(clone, async, TEST_BOUND)
{
	struct mock_call *call;
	sigset_t set;
	int fd = mock_open_device();

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	EXPECT_ERRNO(EPERM, fcntl(fd, F_SETFL, O_ASYNC));
	close(fd);

	mount_ready(_metadata, self->m);
	ASSERT_EQ(0, fcntl(mock_dev, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(mock_dev, F_SETFL, O_NONBLOCK | O_ASYNC));
	EXPECT_FALSE(signalled(SIGIO, 0));
	call = stat_none(self->m);
	EXPECT_TRUE(signalled(SIGIO, MOCK_WAIT_MS));
	EXPECT_EQ(ENOENT, served(_metadata, self->m, call));
	while (signalled(SIGIO, 0))
		;
	ASSERT_EQ(0, fcntl(mock_dev, F_SETFL, O_NONBLOCK));
	call = stat_none(self->m);
	EXPECT_EQ(ENOENT, served(_metadata, self->m, call));
	EXPECT_FALSE(signalled(SIGIO, 0));
	ASSERT_EQ(0, fcntl(mock_dev, F_SETFL, O_NONBLOCK | O_ASYNC));
	umount2(self->m->dir, MNT_FORCE);
	EXPECT_TRUE(signalled(SIGIO, MOCK_WAIT_MS));
	/* Closed with the flag on: the list forgets it. */
	fd = mock_open_device();
	close(mock_dev);
	mock_dev = fd;
}

/* A device without a mount never holds up who waits for it, nor the lock of the epoll file. */
static long epoll_ctl_other(struct mock *m, const void *ep)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl((intptr_t)ep, EPOLL_CTL_ADD, m->ctl[0], &event);
}

TEST_F_TIMEOUT(clone, epoll_before_mount, TEST_BOUND)
{
	int fd = mock_open_device(), ep = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	struct mock_call *call;

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	EXPECT_EQ(1, epoll_wait(ep, &event, 1, 100));
	EXPECT_EQ(EPOLLERR, (int)event.events);
	call = mock_call(self->m, epoll_ctl_other, (void *)(intptr_t)ep);
	EXPECT_EQ(1, epoll_wait(ep, &event, 1, 100));
	EXPECT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->ret);
	close(ep);
	close(fd);
}

/* The number that names the connection elsewhere, or -1. */
static long fdinfo(int fd)
{
	char path[64], line[256];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "fuse_connection:\t%ld", &number);
	if (file)
		fclose(file);
	return number;
}

TEST_F_TIMEOUT(clone, fdinfo, TEST_BOUND)
{
	struct statx stx;
	int fd = mock_open_device();

	EXPECT_EQ(-1, fdinfo(fd));
	mount_ready(_metadata, self->m);
	/* No request: the mount's own number is known without one. */
	ASSERT_EQ(0, statx(AT_FDCWD, self->m->dir, AT_STATX_DONT_SYNC, 0, &stx));
	EXPECT_EQ((long)stx.stx_dev_minor, fdinfo(mock_dev));
	close(fd);
	fd = clone_of(mock_dev);
	EXPECT_EQ((long)stx.stx_dev_minor, fdinfo(fd));
	close(fd);
}

TEST_HARNESS_MAIN
