// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile daemon: it mutates its replies, sends notifications nobody can mean, answers twice, late, the wrong one, out
 * of memory that is not there, while clients make every read-only system call. Each call must end, with whatever result,
 * and the kernel's log stays clean.
 *
 * HOSTILE_REPLIES says how many mutated replies, HOSTILE_SEED which; both are printed.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "fuse_test.h"
#include "mock/workload.h"

#define CLIENTS		6
#define SERVERS		3
#define STEPS		60		/* of each client in one connection */
#define PER_CONNECTION	150		/* mutated replies, then it ends */
#define STUCK_MS	60000		/* in one system call: the daemon answers each in the end */
#define HOSTILE_BOUND	36000		/* seconds; each connection has bounds of its own */
#define SCRATCH		(4U << 20)	/* the largest reply */
#define WITHHELD	8
#define EVENTS		64

/* A message of the daemon, told when a call is stuck. */
struct event {
	uint64_t unique;	/* of the request */
	uint32_t opcode;	/* 0: the error that ends it for sure */
	int32_t mutation;	/* case of send_mutated(); -1: sound; -2: a read of the device that failed */
	int32_t result;		/* bytes that the device took, or negative errno; -1000: withheld */
};

struct hostile {
	struct client client[CLIENTS];
	struct client server[SERVERS + 1];	/* calls: to find their stacks */
	struct event event[EVENTS];
	uint32_t events;
	uint64_t seed;		/* of this connection */
	uint32_t percent;	/* of its replies that are mutated */
	bool stop;		/* the clients shall */
	uint64_t mutated;	/* of this connection */
	/* of all connections */
	uint64_t all_mutated, honest, refused, notified, calls, connections, spliced;
};

FIXTURE(hostile) {
	struct mock *m;
	struct hostile *h;
	pid_t clients[CLIENTS];
};

FIXTURE_SETUP(hostile)
{
	SETUP_MOCK(self->m);
	self->h = mmap(NULL, sizeof(*self->h), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->h);
	workload_tree(self->m);
}

FIXTURE_TEARDOWN(hostile)
{
	for (int i = 0; i < CLIENTS; i++)
		if (self->clients[i] > 0)
			kill(self->clients[i], SIGKILL);
	mock_destroy(self->m);
}

/* What threads of one process share. */
static struct mock *mock;
static struct hostile *hostile;

/* A server thread's own. */
static _Thread_local struct dice dice;
static _Thread_local char *scratch;	/* SCRATCH bytes, and behind them nothing */
static _Thread_local int pipes[2];
static _Thread_local uint64_t withheld[WITHHELD];

static void add(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static void note(uint64_t unique, uint32_t opcode, int mutation, int result)
{
	uint32_t at = __atomic_fetch_add(&hostile->events, 1, __ATOMIC_RELAXED) % EVENTS;

	hostile->event[at] = (struct event){ unique, opcode, mutation, result == -1 ? -errno : result };
}

/* The last of what happened, and where everybody is. */
static void describe(struct hostile *h, struct client *stuck)
{
	uint32_t first = h->events > EVENTS ? h->events - EVENTS : 0;

	fprintf(stderr, "# HOSTILE_SEED=%llu\n", (unsigned long long)h->seed);
	for (uint32_t i = first; i < h->events; i++) {
		struct event *e = &h->event[i % EVENTS];

		fprintf(stderr, "# unique %llu opcode %u mutation %d: %d\n", (unsigned long long)e->unique, e->opcode,
			e->mutation, e->result);
	}
	for (int i = 0; i <= SERVERS; i++)
		workload_describe(&h->server[i]);
	workload_describe(stuck);
}

static void enter_server(int index)
{
	struct client *self = &hostile->server[index];

	*self = (struct client){ .pid = getpid(), .tid = syscall(__NR_gettid) };
	dice_seed(&dice, hostile->seed * (SERVERS + 1) + index);
	scratch = mmap(NULL, SCRATCH + MOCK_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (scratch == MAP_FAILED || mprotect(scratch + SCRATCH, MOCK_PAGE, PROT_NONE) ||
	    pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		_exit(1);
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
}

/* Header and payload through a pipe; -1 if they don't fit, or the device takes none. */
static int splice_out(const struct iovec *iov, int count)
{
	ssize_t len = dice_one_in(&dice, 2) ? writev(pipes[1], iov, count) :
					      vmsplice(pipes[1], iov, count, dice_below(&dice, 2) * SPLICE_F_GIFT);
	int ret = -1;
	char byte[4096];

	if (len > 0)
		ret = splice(pipes[0], NULL, mock_dev, NULL, dice_one_in(&dice, 8) ? dice_below(&dice, len) : len,
			     dice_below(&dice, 2) * SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (read(pipes[0], byte, sizeof(byte)) > 0)
		;
	if (ret > 0)
		add(&hostile->spliced);
	return ret;
}

/* Sends what is in scratch at @at, one way or another. */
static int transmit(const struct fuse_out_header *head, size_t at, size_t len)
{
	size_t first = dice_one_in(&dice, 4) ? dice_below(&dice, len) : 0;
	struct iovec iov[3] = {
		{ (void *)head, sizeof(*head) }, { scratch + at, first }, { scratch + at + first, len - first },
	};

	if (dice_one_in(&dice, 8))
		return splice_out(iov, 3);
	return writev(mock_dev, iov, 3);
}

/* Some of the words are something else. */
static void mutate_words(char *data, size_t len)
{
	for (uint32_t i = 0; i <= dice_below(&dice, 4) && len >= 8; i++) {
		uint64_t odd = dice_odd_u64(&dice);
		size_t width = dice_one_in(&dice, 2) ? 4 : 8;
		/* Most structures are short, and most of what matters in lists is at their begin. */
		size_t reach = dice_one_in(&dice, 2) && len > 160 ? 160 : len;

		memcpy(data + dice_below(&dice, reach / width) * width, &odd, width);
	}
}

static void mutate_bytes(char *data, size_t len)
{
	for (uint32_t i = 0; i <= dice_below(&dice, 4) && len; i++)
		data[dice_below(&dice, len)] = "/.\0\xff"[dice_below(&dice, 4)];
}

/* What only makes sense for this operation. */
static size_t mutate_meaning(uint32_t opcode, char *data, size_t len)
{
	struct fuse_entry_out *entry = (void *)data;
	struct fuse_attr *attr = opcode == FUSE_LOOKUP ? &entry->attr : &((struct fuse_attr_out *)data)->attr;

	switch (opcode) {
	case FUSE_LOOKUP:
		/* Another node that exists: links to directories, loops, other types, the root. */
		if (dice_one_in(&dice, 2)) {
			entry->nodeid = FUSE_ROOT_ID + dice_below(&dice, mock->nodes);
			if (dice_one_in(&dice, 2))
				mock_attr(mock, entry->nodeid, attr);
			return len;
		}
		entry->generation = dice_below(&dice, 3);
		/* fallthrough */
	case FUSE_GETATTR:
		switch (dice_below(&dice, 4)) {
		case 0:
			attr->mode = dice_below(&dice, 16) << 12 | 0755;
			break;
		case 1:
			attr->size = dice_odd_u64(&dice);
			break;
		case 2:
			attr->blksize = dice_odd_u64(&dice);
			break;
		default:
			attr->mtimensec = dice_odd_u64(&dice);
			attr->nlink = dice_below(&dice, 2);
		}
		return len;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		((struct fuse_open_out *)data)->open_flags = dice_u64(&dice);
		return len;
	case FUSE_READ:
		return dice_one_in(&dice, 2) ? 0 : len + 1 + dice_below(&dice, 8192);
	case FUSE_READLINK:
		len = dice_below(&dice, 5000);
		for (size_t i = 0; i < len; i++)
			data[i] = "/.fdl"[dice_below(&dice, 5)];
		return len;
	default:
		mutate_words(data, len);
		return len;
	}
}

/* The caller must get an answer in the end, or its call could not. */
static void rescue(uint64_t unique)
{
	int ret = mock_write_raw(mock_dev, unique, sizeof(struct fuse_out_header), -EIO, NULL, 0);

	note(unique, 0, -1, ret);
}

static void rescue_withheld(void)
{
	for (int i = 0; i < WITHHELD; i++) {
		if (withheld[i])
			rescue(withheld[i]);
		withheld[i] = 0;
	}
}

static int odd_error(void)
{
	static const int error[] = {
		-ENOENT, -EIO, -EINTR, -ENOMEM, -ESTALE, -ECHILD, -EAGAIN, -EACCES, -ELOOP, -ENOTCONN, -EEXIST,
		-EINPROGRESS, -511, -512, -513, -516, -529, -1000, -1001, -4095, 1, 5, INT32_MIN, INT32_MAX,
	};

	/* ENOSYS says a lot: no OPEN, no FLUSH, no ACCESS from now on. */
	if (dice_one_in(&dice, 20))
		return -ENOSYS;
	return error[dice_below(&dice, ARRAY_SIZE(error))];
}

/* A reply, honest in scratch, as a hostile daemon sends it. */
static int send_mutated(uint32_t opcode, struct fuse_out_header *head, size_t len, int mutation)
{
	uint64_t *slot = &withheld[dice_below(&dice, WITHHELD)], unique = head->unique;
	size_t at = 0;

	switch (mutation) {
	case 0:
		head->error = odd_error();
		len = dice_one_in(&dice, 4) ? len : 0;
		break;
	case 1:
		len = dice_below(&dice, len + 1);
		break;
	case 2:
		len += dice_below(&dice, dice_one_in(&dice, 2) ? 16 : 16384);
		break;
	case 3:
		head->len += dice_one_in(&dice, 2) ? dice_below(&dice, 9) - 4 : dice_odd_u64(&dice);
		return transmit(head, 0, len);
	case 4:
		head->unique = dice_one_in(&dice, 2) ? unique + 2 * dice_below(&dice, 20) - 20 : dice_odd_u64(&dice);
		break;
	case 5:
		/* Half of it is not there. */
		at = SCRATCH - len / 2;
		memmove(scratch + at, scratch, len / 2);
		break;
	case 6:
		if (!*slot) {
			*slot = unique;
			return -1000;
		}
		/* fallthrough */
	case 7:
		mutate_bytes(scratch, len);
		break;
	case 8:
	case 9:
		len = mutate_meaning(opcode, scratch, len);
		break;
	default:
		mutate_words(scratch, len);
	}
	if (len > SCRATCH)
		len = SCRATCH;
	head->len = sizeof(*head) + len;
	return transmit(head, at, len);
}

static int send_reply(struct mock *m, struct mock_request *req, int error, const void *payload, size_t len)
{
	struct fuse_out_header head = { sizeof(head) + len, error, req->in->unique };
	bool mutate = dice_below(&dice, 100) < hostile->percent;
	int mutation = dice_below(&dice, 12), ret;

	/* Without a mount there is nothing to break. */
	if (req->in->opcode == FUSE_INIT)
		mutate = dice_one_in(&dice, 3);
	if (!mutate || len > SCRATCH) {
		add(&hostile->honest);
		ret = mock_write_raw(mock_dev, head.unique, head.len, error, payload, len);
		note(head.unique, req->in->opcode, -1, ret);
		return ret;
	}
	memset(scratch, 0, len < 256 ? 256 : len);
	memcpy(scratch, payload, len);
	add(&hostile->mutated);
	ret = send_mutated(req->in->opcode, &head, len, mutation);
	note(req->in->unique, req->in->opcode, mutation, ret);
	if (ret == -1000)
		return ret;
	if (ret < 0)
		add(&hostile->refused);
	if (dice_one_in(&dice, 10))
		transmit(&head, 0, len);
	rescue(req->in->unique);
	return ret;
}

/* Reads one request, now and then in a way that can't work. */
static int read_request(char *buf)
{
	int ret;

	/* Most requests don't fit before the end of memory. */
	if (dice_one_in(&dice, 200)) {
		char *at = scratch + SCRATCH - dice_below(&dice, 200);

		ret = mock_read(mock_dev, at, mock->buf_size);
		if (ret > 0)
			memcpy(buf, at, ret);
		return ret;
	}
	if (dice_one_in(&dice, 100))
		return mock_read(mock_dev, buf, dice_below(&dice, 9000));
	ret = mock_read(mock_dev, buf, mock->buf_size);
	/* It has agreed to larger requests than it can read: nobody will be served any more. */
	if (ret < 0 && errno == EINVAL)
		_exit(0);
	return ret;
}

/* Node IDs come back that were never given out. */
static void make_known(struct fuse_in_header *in)
{
	if (!mock_node(mock, in->nodeid))
		in->nodeid = FUSE_ROOT_ID + in->nodeid % mock->nodes;
}

struct server {
	pthread_t thread;
	int index;
	int dev;
};

static void *serve(void *arg)
{
	const struct server *server = arg;
	char *buf = malloc(mock->buf_size);
	struct mock_record record;

	mock_dev = server->dev;
	enter_server(server->index);
	for (;;) {
		struct pollfd pfd = { mock_dev, POLLIN, 0 };
		struct fuse_in_header *in = (void *)buf;
		struct mock_request req = { &record, in, in + 1, 0 };
		int len;

		if (poll(&pfd, 1, 20) == 0 || dice_one_in(&dice, 10))
			rescue_withheld();
		len = read_request(buf);
		if (len < 0) {
			if (errno == ENODEV)
				return NULL;
			if (errno != EAGAIN)
				note(0, 0, -2, -1);
			if (errno != EAGAIN)
				usleep(100);
			continue;
		}
		req.arg_len = len - sizeof(*in);
		if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT ||
		    in->opcode == FUSE_NOTIFY_REPLY) {
			if (dice_one_in(&dice, 20))
				mock_write_raw(mock_dev, in->unique, sizeof(struct fuse_out_header), odd_error(),
					       NULL, 0);
			continue;
		}
		make_known(in);
		mock_serve_tree(mock, &req);
	}
}

/* Notifications of every code, and of codes that are none; some are sound. */
static void *notify(void *arg)
{
	const struct server *server = arg;

	mock_dev = server->dev;
	enter_server(server->index);
	for (;;) {
		uint32_t code = dice_below(&dice, FUSE_NOTIFY_PRUNE + 3);
		struct fuse_out_header head = { .error = code };
		size_t len;

		if (workload_hangs_in_tree(code)) {
			usleep(1000);
			continue;
		}
		memset(scratch, 0, 2 * MOCK_PAGE);
		len = workload_notification(mock, &dice, code, scratch);
		if (dice_one_in(&dice, 2))
			mutate_words(scratch, len);
		if (dice_one_in(&dice, 6))
			mutate_bytes(scratch, len);
		if (dice_one_in(&dice, 6))
			len = dice_below(&dice, len + 300);
		if (dice_one_in(&dice, 40))
			head.error = dice_odd_u64(&dice);
		head.len = sizeof(head) + len;
		transmit(&head, 0, len);
		add(&hostile->notified);
		usleep(dice_below(&dice, 4000));
	}
	return NULL;
}

static void run_daemon(int dev)
{
	struct server server[SERVERS + 1];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mock_sender = send_reply;
	for (int i = 0; i <= SERVERS; i++) {
		server[i] = (struct server){ .index = i, .dev = dev };
		if (pthread_create(&server[i].thread, NULL, i < SERVERS ? serve : notify, &server[i]))
			_exit(1);
	}
	for (int i = 0; i < SERVERS; i++)
		pthread_join(server[i].thread, NULL);
	_exit(0);
}

static void run_client(struct client *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	workload_process();
	workload_enter(c);
	for (int i = 0; i < STEPS && !__atomic_load_n(&hostile->stop, __ATOMIC_RELAXED); i++)
		workload_step(mock, c, false);
	_exit(0);
}

static uint32_t reap_clients(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self)
{
	uint32_t left = 0;
	int status;

	for (int i = 0; i < CLIENTS; i++) {
		if (self->clients[i] <= 0)
			continue;
		if (waitpid(self->clients[i], &status, WNOHANG) != self->clients[i]) {
			left++;
			continue;
		}
		self->clients[i] = 0;
		EXPECT_EQ(0, status) {
			TH_LOG("client %d ended with status %x", i, status);
		}
	}
	return left;
}

/* Until all have ended, or the daemon has done its part; false if one is stuck. */
static bool wait_for_clients(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self, uint64_t until)
{
	while (reap_clients(_metadata, self) && __atomic_load_n(&self->h->mutated, __ATOMIC_RELAXED) < until) {
		struct client *stuck = workload_stuck(self->h->client, CLIENTS, STUCK_MS);

		if (stuck) {
			describe(self->h, stuck);
			return false;
		}
		usleep(500);
	}
	return true;
}

static long call_umount(struct mock *m, const void *flags)
{
	return umount2(m->dir, *(const int *)flags);
}

/* A call of its own process, so that it can be found stuck. */
static bool off(struct mock *m, int flags)
{
	uint64_t end = workload_now() + MOCK_WAIT_MS;
	struct mock_call *call;

	do {
		m->call_count = 0;
		call = mock_call(m, call_umount, &flags);
		if (!mock_call_done(call))
			return false;
		m->mounted = call->ret != 0 && call->error != EINVAL;
	} while (m->mounted && call->error == EBUSY && workload_now() < end);
	return !m->mounted;
}

static void draw(struct mock *m, struct hostile *h, uint64_t seed)
{
	static const uint32_t percent[] = { 5, 20, 60, 100 };
	struct dice d;

	dice_seed(&d, seed);
	memset(h->client, 0, sizeof(h->client));
	for (int i = 0; i < CLIENTS; i++)
		dice_seed(&h->client[i].dice, seed * CLIENTS + i);
	h->seed = seed;
	h->percent = percent[dice_below(&d, ARRAY_SIZE(percent))];
	h->stop = false;
	h->events = 0;
	h->mutated = 0;
	m->entry_valid = m->attr_valid = dice_one_in(&d, 2) ? 3600 : 0;
	m->init.out.max_pages = 1 << dice_below(&d, 9);
	m->init.out.flags = m->offered.flags ? m->offered.flags : m->init.out.flags;
	m->init.out.flags2 = m->offered.flags2;
	if (dice_one_in(&d, 2))
		m->init.out.flags &= ~(FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS);
}

static void connection(struct __test_metadata *_metadata, FIXTURE_DATA(hostile) *self, uint64_t seed)
{
	struct hostile *h = self->h;
	struct mock *m = self->m;
	pid_t pid;

	draw(m, h, seed);
	mock = m;
	hostile = h;
	ASSERT_EQ(0, mock_mount(m, seed % 2 ? ",allow_other" : ",default_permissions"));
	pid = fork();
	if (!pid)
		run_daemon(mock_dev);
	m->daemon = pid;
	close(mock_dev);
	mock_dev = -1;
	for (int i = 0; i < CLIENTS; i++) {
		pid = fork();
		if (!pid)
			run_client(&h->client[i]);
		self->clients[i] = pid;
	}
	ASSERT_TRUE(wait_for_clients(_metadata, self, PER_CONNECTION));
	h->stop = true;
	/* The daemon goes before, while, or after the clients and the mount do. */
	if (seed % 3 == 0)
		ASSERT_TRUE(workload_kill_daemon(m));
	ASSERT_TRUE(wait_for_clients(_metadata, self, UINT64_MAX)) {
		TH_LOG("after the daemon had done its part");
	}
	ASSERT_TRUE(off(m, seed % 3 == 1 ? MNT_FORCE : 0)) {
		TH_LOG("umount: %s", strerror(m->call[0].error));
	}
	ASSERT_TRUE(workload_kill_daemon(m));
	munmap(m->buf, m->buf_size);
	m->buf = NULL;
	h->all_mutated += h->mutated;
	h->connections++;
	for (int i = 0; i < CLIENTS; i++)
		h->calls += h->client[i].calls;
}

TEST_F_TIMEOUT(hostile, replies, HOSTILE_BOUND)
{
	uint64_t replies = workload_setting("HOSTILE_REPLIES", 1000), seed = workload_setting("HOSTILE_SEED", 1);
	uint64_t began = workload_now();
	struct hostile *h = self->h;

	KNOWN_DIFFERENCE("a daemon that is killed while it invalidates hangs with its clients: it sends none of that");
	while (h->all_mutated < replies) {
		connection(_metadata, self, seed + h->connections);
		ASSERT_EQ(KSFT_PASS, _metadata->exit_code) {
			TH_LOG("in the connection of HOSTILE_SEED=%llu", (unsigned long long)(seed + h->connections));
		}
	}
	TH_LOG("HOSTILE_SEED=%llu: %llu connections, %llu s, %llu system calls, %llu mutated replies (%llu refused), "
	       "%llu sound ones, %llu notifications, %llu messages spliced", (unsigned long long)seed,
	       (unsigned long long)h->connections, (unsigned long long)(workload_now() - began) / 1000,
	       (unsigned long long)h->calls, (unsigned long long)h->all_mutated, (unsigned long long)h->refused,
	       (unsigned long long)h->honest, (unsigned long long)h->notified, (unsigned long long)h->spliced);
}

TEST_HARNESS_MAIN
