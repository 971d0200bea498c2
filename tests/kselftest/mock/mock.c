// SPDX-License-Identifier: GPL-2.0
/* Life of a mock: memory, mount, daemon process, callers. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"

_Thread_local int mock_dev = -1;

struct mock *mock_new(void)
{
	struct mock *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return NULL;
	/* A namespace of its own: what a killed test leaves mounted goes with it. */
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		goto fail;
	strcpy(m->dir, "/tmp/fuse_mock.XXXXXX");
	if (!mkdtemp(m->dir))
		goto fail;
	if (pipe2(m->ctl, O_CLOEXEC)) {
		rmdir(m->dir);
		goto fail;
	}
	m->entry_valid = 3600;
	m->attr_valid = 3600;
	m->init.size = sizeof(m->init.out);
	m->init.echo_readahead = true;
	m->init.out = (struct fuse_init_out){
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.flags = FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES,
		.max_background = 16,
		.congestion_threshold = 12,
		.max_write = 1 << 20,
		.time_gran = 1,
		.max_pages = 256,
	};
	mock_add(m, 0, "", S_IFDIR | 0755, 0);
	return m;
fail:
	munmap(m, sizeof(*m));
	return NULL;
}

int mock_mount(struct mock *m, const char *opts)
{
	size_t max_write = m->init.out.max_write < MOCK_PAGE ? MOCK_PAGE : m->init.out.max_write;

	m->buf_size = max_write + 2 * MOCK_PAGE;
	m->buf = mmap(NULL, m->buf_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mock_dev = mock_open_device();
	if (m->buf == MAP_FAILED || mock_dev < 0)
		return -1;
	/* The mock polls before it reads; a request may be withdrawn in between. */
	fcntl(mock_dev, F_SETFL, O_NONBLOCK);
	if (mock_mount_fd(mock_dev, m->dir, mock_node(m, FUSE_ROOT_ID)->mode & S_IFMT, opts))
		return -1;
	m->mounted = true;
	return 0;
}

int mock_start(struct mock *m)
{
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		mock_daemon(m);
	}
	m->daemon = pid;
	close(mock_dev);
	mock_dev = -1;
	return 0;
}

void mock_kill(struct mock *m)
{
	if (m->daemon <= 0)
		return;
	kill(m->daemon, SIGKILL);
	waitpid(m->daemon, NULL, 0);
	m->daemon = 0;
}

void mock_release(struct mock *m)
{
	if (write(m->ctl[1], "", 1) != 1)
		perror("mock_release");
}

int mock_umount(struct mock *m)
{
	if (umount2(m->dir, 0))
		return -1;
	m->mounted = false;
	return 0;
}

void mock_destroy(struct mock *m)
{
	if (!m)
		return;
	mock_kill(m);
	if (mock_dev >= 0)
		close(mock_dev);
	for (uint32_t i = 0; i < m->call_count; i++)
		if (m->call[i].pid > 0)
			kill(m->call[i].pid, SIGKILL);
	if (m->mounted)
		umount2(m->dir, MNT_DETACH);
	for (uint32_t i = 0; i < m->call_count; i++)
		if (m->call[i].pid > 0)
			waitpid(m->call[i].pid, NULL, 0);
	if (rmdir(m->dir))
		unlink(m->dir);	/* a test may have made it a file */
	close(m->ctl[0]);
	close(m->ctl[1]);
	munmap(m->buf, m->buf_size);
	munmap(m, sizeof(*m));
}

const char *mock_path(struct mock *m, const char *name)
{
	static char path[8][512];
	static unsigned int next;

	next = (next + 1) % 8;
	snprintf(path[next], sizeof(path[next]), "%s/%s", m->dir, name);
	return path[next];
}

struct mock_call *mock_call(struct mock *m, long (*fn)(struct mock *m, const void *arg), const void *arg)
{
	struct mock_call *call = &m->call[m->call_count++];
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mock_dev >= 0)
			close(mock_dev);
		errno = 0;
		call->ret = fn(m, arg);
		call->error = call->ret == -1 ? errno : 0;
		__atomic_store_n(&call->done, true, __ATOMIC_RELEASE);
		_exit(0);
	}
	call->pid = pid;
	return call;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

bool mock_wait(bool (*cond)(struct mock *m, uint64_t arg), struct mock *m, uint64_t arg)
{
	uint64_t end = now_ms() + MOCK_WAIT_MS;

	while (!cond(m, arg)) {
		if (now_ms() > end)
			return false;
		usleep(500);
	}
	return true;
}

bool mock_call_done(struct mock_call *call)
{
	uint64_t end = now_ms() + MOCK_WAIT_MS;

	while (waitpid(call->pid, NULL, WNOHANG) != call->pid) {
		if (now_ms() > end)
			return false;
		usleep(500);
	}
	call->pid = 0;
	return __atomic_load_n(&call->done, __ATOMIC_ACQUIRE);
}

long mock_call_stat(struct mock *m, const void *path)
{
	struct stat st;

	return stat(path, &st);
}

long mock_call_open_read(struct mock *m, const void *path)
{
	char buf[65536];
	long total = 0, n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		total += n;
	return n < 0 ? -1 : total;
}

static bool seen(struct mock *m, uint64_t arg)
{
	return mock_count(m, arg >> 32) >= (uint32_t)arg;
}

bool mock_wait_seen(struct mock *m, uint32_t opcode, uint32_t count)
{
	return mock_wait(seen, m, (uint64_t)opcode << 32 | count);
}

static bool is_held(struct mock *m, uint64_t arg)
{
	return __atomic_load_n(&m->held, __ATOMIC_ACQUIRE) == arg;
}

bool mock_wait_held(struct mock *m, uint32_t count)
{
	return mock_wait(is_held, m, count);
}

static bool answered(struct mock *m, uint64_t arg)
{
	struct mock_record *record = mock_last(m, arg);

	return record && __atomic_load_n(&record->answered, __ATOMIC_ACQUIRE);
}

/* Whoever waited for a reply may be back before the daemon has seen its own write end. */
int mock_wait_answered(struct mock *m, uint32_t opcode)
{
	return mock_wait(answered, m, opcode) ? mock_last(m, opcode)->write_error : -1;
}

bool mock_wait_readable(int fd)
{
	struct pollfd pfd = { fd, POLLIN, 0 };
	int n;

	do
		n = poll(&pfd, 1, MOCK_WAIT_MS);
	while (n < 0 && errno == EINTR);
	return n == 1;
}
