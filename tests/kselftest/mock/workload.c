// SPDX-License-Identifier: GPL-2.0
/* The system calls of workload.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

#define BUFFER	(256U << 10)

static _Thread_local char *buffer;
static _Thread_local int pipes[2];
static _Thread_local sigjmp_buf bus;

void dice_seed(struct dice *dice, uint64_t seed)
{
	dice->state = (seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
	for (int i = 0; i < 8; i++)
		dice_u64(dice);
}

uint64_t dice_u64(struct dice *dice)
{
	uint64_t x = dice->state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	dice->state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

uint32_t dice_below(struct dice *dice, uint32_t bound)
{
	return bound ? (dice_u64(dice) >> 32) % bound : 0;
}

bool dice_one_in(struct dice *dice, uint32_t n)
{
	return dice_below(dice, n) == 0;
}

uint64_t dice_odd_u64(struct dice *dice)
{
	static const uint64_t edge[] = {
		0, 1, 2, 7, 8, 4095, 4096, 4097, 1 << 16, 1 << 20, (1 << 20) + 1, INT32_MAX, 1ULL << 31, UINT32_MAX,
		1ULL << 32, 1ULL << 62, INT64_MAX - 4096, INT64_MAX - 4095, INT64_MAX, 1ULL << 63, UINT64_MAX - 4095,
		UINT64_MAX - 1, UINT64_MAX,
	};

	switch (dice_below(dice, 4)) {
	case 0:
		return dice_u64(dice);
	case 1:
		return 1ULL << dice_below(dice, 64);
	default:
		return edge[dice_below(dice, sizeof(edge) / sizeof(edge[0]))];
	}
}

uint64_t workload_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t workload_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

void workload_tree(struct mock *m)
{
	static const uint64_t size[] = { 0, 1, 4095, 4097, 65539, (1 << 20) + 7 };
	uint64_t dir = FUSE_ROOT_ID;
	char name[32];

	for (int d = 0; d < 4; d++) {
		for (size_t f = 0; f < sizeof(size) / sizeof(size[0]); f++) {
			snprintf(name, sizeof(name), "file%zu", f);
			mock_add(m, dir, name, S_IFREG | 0755, size[f]);
		}
		mock_add_symlink(m, dir, "link", "file3");
		mock_add_symlink(m, dir, "dangling", "nowhere");
		mock_add_symlink(m, dir, "loop", "loop");
		dir = mock_add(m, dir, "dir", S_IFDIR | 0755, 0);
	}
}

static void on_bus(int signal)
{
	siglongjmp(bus, 1);
}

void workload_process(void)
{
	/* The mask is put back by siglongjmp(). */
	struct sigaction action = { .sa_handler = on_bus };

	sigaction(SIGBUS, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void workload_enter(struct client *c)
{
	buffer = malloc(BUFFER);
	if (!buffer || pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		abort();
	c->pid = getpid();
	c->tid = syscall(SYS_gettid);
}

/* A system call that whoever watches can name. */
#define CALL(c, expression) ({				\
	begin(c, #expression);				\
	long ret_ = (long)(expression);			\
	finish(c);					\
	ret_;						\
})

static void begin(struct client *c, const char *call)
{
	c->since = workload_now();
	__atomic_store_n(&c->call, call, __ATOMIC_RELEASE);
}

static void finish(struct client *c)
{
	int saved = errno;

	__atomic_store_n(&c->call, NULL, __ATOMIC_RELEASE);
	c->calls++;
	errno = saved;
}

/* Path of a node; sometimes of something that is not there. */
static void path_of(struct mock *m, struct client *c, uint64_t id, char *path, size_t size)
{
	const char *names[16];
	int depth = 0, used;

	for (uint64_t at = id; at != FUSE_ROOT_ID && depth < 16; at = mock_node(m, at)->parent)
		names[depth++] = mock_node(m, at)->name;
	used = snprintf(path, size, "%s", m->dir);
	while (depth)
		used += snprintf(path + used, size - used, "/%s", names[--depth]);
	if (dice_one_in(&c->dice, 12))
		snprintf(path + used, size - used, "/missing%u", dice_below(&c->dice, 8));
}

static int execute(const char *path)
{
	char *argv[] = { (char *)path, NULL };
	pid_t pid;
	int err = posix_spawn(&pid, path, NULL, NULL, argv, argv);

	if (!err)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return err;
}

static void by_path(struct client *c, const char *path)
{
	struct {
		struct file_handle head;
		char rest[MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };
	struct statx stx;
	struct statfs sfs;
	struct stat st;
	int mount_id, fd;

	switch (dice_below(&c->dice, 11)) {
	case 0:
		CALL(c, stat(path, &st));
		break;
	case 1:
		CALL(c, lstat(path, &st));
		break;
	case 2:
		CALL(c, statx(AT_FDCWD, path, dice_one_in(&c->dice, 2) ? AT_STATX_FORCE_SYNC : AT_STATX_DONT_SYNC,
			      dice_u64(&c->dice) & 0x7fffffff, &stx));
		break;
	case 3:
		CALL(c, access(path, dice_below(&c->dice, 8)));
		break;
	case 4:
		CALL(c, readlink(path, buffer, 1 + dice_below(&c->dice, 4096)));
		break;
	case 5:
		CALL(c, statfs(path, &sfs));
		break;
	case 6:
		CALL(c, lgetxattr(path, "user.name", buffer, dice_below(&c->dice, 4096)));
		break;
	case 7:
		CALL(c, llistxattr(path, buffer, dice_below(&c->dice, 4096)));
		break;
	case 8:
		CALL(c, name_to_handle_at(AT_FDCWD, path, &handle.head, &mount_id, 0));
		break;
	case 9:
		/* A process more is dear. */
		if (dice_one_in(&c->dice, 8))
			CALL(c, execute(path));
		break;
	case 10:
		fd = CALL(c, open(path, O_PATH | O_CLOEXEC));
		if (fd < 0)
			break;
		CALL(c, fstat(fd, &st));
		CALL(c, close(fd));
		break;
	}
}

static void check(struct client *c, bool honest, uint64_t id, uint64_t offset, const void *data, ssize_t len)
{
	if (honest && len > 0 && mock_mismatch(id, offset, data, len) != -1)
		__atomic_add_fetch(&c->wrong, 1, __ATOMIC_RELAXED);
}

/* Some bytes of a mapping; 0 if there are none: the page could not be had. */
static ssize_t touch(const char *map, size_t offset)
{
	size_t n = MOCK_PAGE - offset % MOCK_PAGE < 64 ? MOCK_PAGE - offset % MOCK_PAGE : 64;

	if (sigsetjmp(bus, 1))
		return 0;
	memcpy(buffer, map + offset, n);
	return n;
}

static void mapped(struct client *c, int fd, bool honest, uint64_t id, uint64_t size)
{
	size_t len = (1 + dice_below(&c->dice, 300)) * MOCK_PAGE;
	uint64_t from = honest || dice_one_in(&c->dice, 2) ? dice_below(&c->dice, 16) * MOCK_PAGE :
			dice_odd_u64(&c->dice) & ~4095ULL;
	char *map = (char *)CALL(c, mmap(NULL, len, PROT_READ | (dice_one_in(&c->dice, 4) ? PROT_EXEC : 0),
					 dice_one_in(&c->dice, 2) ? MAP_PRIVATE : MAP_SHARED, fd, from));

	if (map == MAP_FAILED)
		return;
	if (dice_one_in(&c->dice, 4))
		CALL(c, madvise(map, len, dice_one_in(&c->dice, 2) ? MADV_POPULATE_READ : MADV_WILLNEED));
	for (int i = 0; i < 3; i++) {
		size_t offset = dice_below(&c->dice, len);
		ssize_t n = CALL(c, touch(map, offset));
		uint64_t at = from + offset;

		/* Behind the end there are zeros. */
		if (honest && at < size)
			check(c, honest, id, at, buffer, size - at < (uint64_t)n ? (ssize_t)(size - at) : n);
	}
	CALL(c, munmap(map, len));
}

static void drain(void)
{
	while (read(pipes[0], buffer, BUFFER) > 0)
		;
}

static void one_of_file(struct client *c, int fd, bool honest, uint64_t id, uint64_t size)
{
	uint64_t offset = honest || dice_one_in(&c->dice, 2) ? dice_below(&c->dice, size + 5000) :
			  dice_odd_u64(&c->dice);
	size_t len = dice_below(&c->dice, dice_one_in(&c->dice, 2) ? BUFFER : 9000);
	struct iovec iov[2] = { { buffer, len / 3 }, { buffer + len / 3, len - len / 3 } };
	struct flock lock = { .l_type = F_RDLCK, .l_start = dice_below(&c->dice, 100), .l_len = 10 };
	struct pollfd pfd = { fd, POLLIN, 0 };
	struct stat st;

	switch (dice_below(&c->dice, 14)) {
	case 0:
		CALL(c, read(fd, buffer, len));
		break;
	case 1:
	case 2:
		check(c, honest, id, offset, buffer, CALL(c, pread(fd, buffer, len, offset)));
		break;
	case 3:
		check(c, honest, id, offset, buffer,
		      CALL(c, preadv2(fd, iov, 2, offset, dice_one_in(&c->dice, 3) ? RWF_NOWAIT : 0)));
		break;
	case 4:
	case 5:
		mapped(c, fd, honest, id, size);
		break;
	case 6:
		CALL(c, posix_fadvise(fd, offset, len, dice_below(&c->dice, 6)));
		break;
	case 7:
		CALL(c, readahead(fd, offset, len));
		break;
	case 8:
		CALL(c, splice(fd, (loff_t *)&offset, pipes[1], NULL, len, SPLICE_F_NONBLOCK));
		drain();
		break;
	case 9:
		CALL(c, sendfile(pipes[1], fd, (off_t *)&offset, len));
		drain();
		break;
	case 10:
		CALL(c, lseek(fd, offset, dice_below(&c->dice, 5)));
		break;
	case 11:
		CALL(c, poll(&pfd, 1, 0));
		CALL(c, ioctl(fd, dice_one_in(&c->dice, 2) ? FIONREAD : (unsigned int)dice_u64(&c->dice), buffer));
		break;
	case 12:
		CALL(c, flock(fd, LOCK_SH | LOCK_NB));
		CALL(c, fcntl(fd, F_GETLK, &lock));
		break;
	case 13:
		CALL(c, fstat(fd, &st));
		CALL(c, fdatasync(fd));
		break;
	}
}

static void directory(struct client *c, const char *path)
{
	static const unsigned int size[] = { 1, 24, 25, 100, 4096, 32768, BUFFER };
	int fd = CALL(c, open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));

	if (fd < 0)
		return;
	for (int i = 0; i < 4; i++) {
		if (dice_one_in(&c->dice, 4))
			CALL(c, lseek(fd, dice_odd_u64(&c->dice), SEEK_SET));
		CALL(c, syscall(SYS_getdents64, fd, buffer, size[dice_below(&c->dice, 7)]));
	}
	CALL(c, close(fd));
}

void workload_step(struct mock *m, struct client *c, bool honest)
{
	uint64_t id = FUSE_ROOT_ID + dice_below(&c->dice, m->nodes);
	struct mock_node *node = mock_node(m, id);
	char path[1024];
	int fd;

	path_of(m, c, id, path, sizeof(path));
	if (dice_one_in(&c->dice, 3)) {
		by_path(c, path);
		return;
	}
	if (S_ISDIR(node->mode)) {
		directory(c, path);
		return;
	}
	/* What a link leads to has other contents than the link's node. */
	fd = CALL(c, open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (dice_one_in(&c->dice, 10) ? O_DIRECT : 0)));
	if (fd < 0)
		return;
	for (uint32_t i = 0; i <= dice_below(&c->dice, 3); i++)
		one_of_file(c, fd, honest && S_ISREG(node->mode), id, node->size);
	CALL(c, close(fd));
}

struct client *workload_stuck(struct client *clients, size_t count, uint64_t ms)
{
	for (size_t i = 0; i < count; i++) {
		const char *call = __atomic_load_n(&clients[i].call, __ATOMIC_ACQUIRE);
		uint64_t since = clients[i].since;

		if (call && call == __atomic_load_n(&clients[i].call, __ATOMIC_ACQUIRE) && since + ms < workload_now())
			return &clients[i];
	}
	return NULL;
}

bool workload_kill_daemon(struct mock *m)
{
	uint64_t end = workload_now() + MOCK_WAIT_MS;

	if (m->daemon <= 0)
		return true;
	kill(m->daemon, SIGKILL);
	if (mock_in_tree())
		umount2(m->dir, MNT_FORCE);
	while (waitpid(m->daemon, NULL, WNOHANG) != m->daemon) {
		if (workload_now() > end)
			return false;
		usleep(500);
	}
	m->daemon = 0;
	return true;
}

void workload_describe(struct client *c)
{
	const char *call = __atomic_load_n(&c->call, __ATOMIC_ACQUIRE);
	char path[64], stack[4096];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stack", c->pid, c->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, stack, sizeof(stack));
		close(fd);
	}
	fprintf(stderr, "# thread %d, after %llu calls, is in %s\n%.*s", c->tid, (unsigned long long)c->calls,
		call ? call : "none", n > 0 ? (int)n : 0, stack);
}
