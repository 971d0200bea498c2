// SPDX-License-Identifier: GPL-2.0
/*
 * A storm, one connection after the other: sixteen clients under a thousand signals a second, a daemon of eight threads
 * that answers at once, late, or with EINTR, and sends notifications; it ends at a random moment, in every way that a
 * connection can end. What must hold: every system call ends, what is read is right, no lookup is lost or forgotten
 * twice.
 *
 * STORM_CONNECTIONS and STORM_SEED change how many, and which.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "fuse_test.h"
#include "mock/workload.h"

#define CLIENTS		16
#define SERVERS		8
#define STEPS		10	/* of each client */
#define STUCK_MS	30000	/* in one system call, while the daemon lives or after it */
#define STORM_BOUND	36000	/* seconds; each connection has bounds of its own */

/* How a connection ends. */
enum ending { QUIET, CLIENTS_KILLED, DAEMON_KILLED, DAEMON_STOPPED, FORCED, CONTROL, ENDINGS };

static const char * const ending_name[] = {
	"quiet", "clients killed", "daemon killed", "daemon stopped, then killed", "umount -f", "control file",
};

/* A request that a server keeps for a while. */
struct kept {
	pthread_mutex_t lock;
	struct mock_request req;	/* .in is NULL for none */
	struct mock_record record;
	int dev;
};

struct storm {
	struct client client[CLIENTS];
	struct client server[SERVERS];
	uint64_t seed;			/* of this connection */
	uint64_t served;		/* requests, this connection's */
	uint64_t trigger;		/* after so many the ending comes */
	bool restart;			/* signals restart system calls */
	bool no_interrupts;		/* the daemon says so when the first comes */
	bool no_clones;
	/* of all connections */
	uint64_t requests, interrupts, interrupted, notified, calls, ended[ENDINGS];
};

FIXTURE(storm) {
	struct mock *m;
	struct storm *s;
	pid_t clients;
};

FIXTURE_SETUP(storm)
{
	SETUP_MOCK(self->m);
	self->s = mmap(NULL, sizeof(*self->s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->s);
	workload_tree(self->m);
	/* In this test's namespace, if it is not there. */
	if (mock_in_tree())
		mount("none", "/sys/fs/fuse/connections", "fusectl", 0, NULL);
	else
		mount("none", "/sys/fs/fuse_rs/connections", "fusectl_rs", 0, NULL);
}

FIXTURE_TEARDOWN(storm)
{
	if (self->clients > 0)
		kill(self->clients, SIGKILL);
	mock_destroy(self->m);
}

/* What threads of one process share. */
static struct mock *mock;
static struct storm *storm;
static struct kept kept[SERVERS];

static void add(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Takes what is kept, if it is this one; any if @unique is 0. */
static bool take_kept(struct kept *k, uint64_t unique, struct mock_request *req)
{
	bool taken;

	pthread_mutex_lock(&k->lock);
	taken = k->req.in && (!unique || k->req.in->unique == unique);
	if (taken) {
		*req = k->req;
		k->req.in = NULL;
	}
	pthread_mutex_unlock(&k->lock);
	return taken;
}

static void keep(struct kept *k, const struct mock_request *req)
{
	size_t len = sizeof(*req->in) + req->arg_len;
	struct fuse_in_header *body = malloc(len);

	memcpy(body, req->in, len);
	pthread_mutex_lock(&k->lock);
	k->req = (struct mock_request){ &k->record, body, body + 1, req->arg_len };
	pthread_mutex_unlock(&k->lock);
}

static void answer_kept(struct kept *k)
{
	struct mock_request req;

	if (take_kept(k, 0, &req)) {
		mock_serve_tree(mock, &req);
		free((void *)req.in);
	}
}

/* Ends the request that is meant, if somebody keeps it; else asks for the interrupt once more, or is silent. */
static void interrupt(struct dice *dice, struct mock_request *req)
{
	uint64_t unique = ((const struct fuse_interrupt_in *)req->arg)->unique;
	struct mock_request meant;
	int own = mock_dev;

	add(&storm->interrupts);
	if (storm->no_interrupts) {
		mock_reply(mock, req, -ENOSYS, NULL, 0);
		return;
	}
	for (int i = 0; i < SERVERS; i++) {
		if (!take_kept(&kept[i], unique, &meant))
			continue;
		mock_dev = kept[i].dev;
		mock_reply(mock, &meant, -EINTR, NULL, 0);
		mock_dev = own;
		free((void *)meant.in);
		add(&storm->interrupted);
		return;
	}
	if (dice_one_in(dice, 4))
		mock_reply(mock, req, -EAGAIN, NULL, 0);
}

static bool may_be_kept(uint32_t opcode)
{
	return opcode == FUSE_LOOKUP || opcode == FUSE_GETATTR || opcode == FUSE_OPEN || opcode == FUSE_READ ||
	       opcode == FUSE_READDIR || opcode == FUSE_READLINK || opcode == FUSE_STATFS || opcode == FUSE_FLUSH;
}

/* A descriptor of the connection for this thread: a clone with a processing queue of its own, if there are such. */
static int clone_device(int dev)
{
	uint32_t source = dev;
	int clone = mock_open_device();

	if (clone >= 0 && !ioctl(clone, FUSE_DEV_IOC_CLONE, &source)) {
		fcntl(clone, F_SETFL, O_NONBLOCK);
		return clone;
	}
	if (clone >= 0)
		close(clone);
	storm->no_clones = true;
	return dev;
}

struct server {
	pthread_t thread;
	int index;
	int dev;	/* the process's */
};

static void *serve(void *arg)
{
	const struct server *server = arg;
	struct kept *own = &kept[server->index];
	struct mock_record record;
	struct dice dice;
	char *buf = malloc(mock->buf_size);

	dice_seed(&dice, storm->seed * SERVERS + server->index);
	mock_dev = server->index ? clone_device(server->dev) : server->dev;
	own->dev = mock_dev;
	for (;;) {
		struct pollfd pfd = { mock_dev, POLLIN, 0 };
		struct mock_request req = { &record, (void *)buf, buf + sizeof(*req.in), 0 };
		int len;

		if (poll(&pfd, 1, 20) == 0) {
			answer_kept(own);
			continue;
		}
		len = mock_read(mock_dev, buf, mock->buf_size);
		if (len < 0) {
			if (errno == EAGAIN || errno == EINTR || errno == ENOENT)
				continue;
			return NULL;
		}
		req.arg_len = len - sizeof(*req.in);
		add(&storm->served);
		if (req.in->opcode == FUSE_INTERRUPT) {
			interrupt(&dice, &req);
			continue;
		}
		answer_kept(own);
		if (may_be_kept(req.in->opcode) && dice_one_in(&dice, 6))
			keep(own, &req);
		else
			mock_serve_tree(mock, &req);
	}
}

static int notify_once(struct dice *dice, int dev)
{
	uint32_t code = FUSE_NOTIFY_INVAL_INODE + dice_below(dice, FUSE_NOTIFY_PRUNE - 1);
	char out[MOCK_PAGE];
	size_t len;

	if (workload_hangs_in_tree(code))
		return 0;
	len = workload_notification(mock, dice, code, out);
	return mock_write_raw(dev, 0, sizeof(struct fuse_out_header) + len, code, out, len);
}

/* A thread of its own: a notification may wait for what the others answer. */
static void *notify(void *arg)
{
	struct dice dice;

	dice_seed(&dice, storm->seed);
	for (;;) {
		if (notify_once(&dice, *(int *)arg) > 0)
			add(&storm->notified);
		usleep(dice_below(&dice, 4000));
	}
	return NULL;
}

static void run_daemon(int dev)
{
	struct server server[SERVERS];
	pthread_t notifier;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < SERVERS; i++) {
		pthread_mutex_init(&kept[i].lock, NULL);
		server[i] = (struct server){ .index = i, .dev = dev };
		if (pthread_create(&server[i].thread, NULL, serve, &server[i]))
			_exit(1);
	}
	if (pthread_create(&notifier, NULL, notify, &dev))
		_exit(1);
	for (int i = 0; i < SERVERS; i++)
		pthread_join(server[i].thread, NULL);
	_exit(0);
}

static void on_signal(int signal)
{
}

static void *run_client(void *arg)
{
	struct client *c = arg;

	workload_enter(c);
	for (int i = 0; i < STEPS; i++)
		workload_step(mock, c, true);
	c->tid = 0;
	return NULL;
}

static void *send_signals(void *arg)
{
	struct dice dice;

	dice_seed(&dice, storm->seed);
	for (;;) {
		struct client *c = &storm->client[dice_below(&dice, CLIENTS)];

		if (c->tid > 0)
			syscall(SYS_tgkill, getpid(), c->tid, SIGUSR1);
		usleep(1000);
	}
	return NULL;
}

static void run_clients(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = storm->restart ? SA_RESTART : 0 };
	pthread_t thread[CLIENTS], sender;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	workload_process();
	sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&sender, NULL, send_signals, NULL))
		_exit(1);
	for (int i = 0; i < CLIENTS; i++)
		if (pthread_create(&thread[i], NULL, run_client, &storm->client[i]))
			_exit(1);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

static bool ended(pid_t *pid, int *status)
{
	if (*pid > 0 && waitpid(*pid, status, WNOHANG) == *pid)
		*pid = 0;
	return *pid <= 0;
}

/* The connection number in the control filesystem is the mount's device number. */
static int abort_by_control_file(struct mock *m)
{
	char line[1024], path[128], dir[256];
	unsigned int minor = 0, number;
	FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*d %*d %*u:%u %*s %255s", &number, dir) == 2 && !strcmp(dir, m->dir))
			minor = number;
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/sys/fs/%s/connections/%u/abort", mock_client(), minor);
	return mock_write_file(path, "1");
}

/* False if the daemon does not end. */
static bool bring(struct mock *m, enum ending ending, pid_t clients)
{
	switch (ending) {
	case CLIENTS_KILLED:
		if (clients > 0)
			kill(clients, SIGKILL);
		break;
	case DAEMON_STOPPED:
		kill(m->daemon, SIGSTOP);
		usleep(20000);
		/* fallthrough */
	case DAEMON_KILLED:
		return workload_kill_daemon(m);
	case CONTROL:
		if (!abort_by_control_file(m))
			break;
		/* fallthrough */ /* no such filesystem */
	case FORCED:
		umount2(m->dir, MNT_FORCE);
		break;
	default:
		break;
	}
	return true;
}

static bool off(struct mock *m, uint64_t arg)
{
	/* Somebody's last descriptor may be closed a moment after its process ended. */
	return !umount2(m->dir, 0) || errno != EBUSY;
}

static bool all_forgotten(struct mock *m, uint64_t arg)
{
	return mock_owed(m) == 0;
}

/* Draws what this connection is like. */
static enum ending draw(struct mock *m, struct storm *s, uint64_t seed)
{
	struct dice dice;

	dice_seed(&dice, seed);
	memset(s->client, 0, sizeof(s->client));
	s->seed = seed;
	s->served = 0;
	s->trigger = dice_below(&dice, 300);
	s->restart = dice_one_in(&dice, 2);
	s->no_interrupts = dice_one_in(&dice, 16);
	for (int i = 0; i < CLIENTS; i++)
		dice_seed(&s->client[i].dice, seed * CLIENTS + i);
	for (uint32_t i = 0; i < m->nodes; i++)
		m->node[i].lookups = m->node[i].forgotten = 0;
	m->entry_valid = m->attr_valid = dice_one_in(&dice, 2) ? 3600 : 0;
	m->open_flags = dice_one_in(&dice, 4) ? FOPEN_KEEP_CACHE : 0;
	m->init.out.max_background = 1 + dice_below(&dice, 16);
	m->init.out.congestion_threshold = m->init.out.max_background;
	m->init.out.max_pages = 1 << dice_below(&dice, 9);
	m->init.out.flags = FUSE_MAX_PAGES | (dice_one_in(&dice, 4) ? 0 : FUSE_PARALLEL_DIROPS) |
			    (dice_one_in(&dice, 4) ? 0 : FUSE_ASYNC_READ);
	return dice_below(&dice, ENDINGS);
}

/* Nothing lost, nothing forgotten twice; where nobody was cut off, everything given back. */
static void check_forgets(struct __test_metadata *_metadata, struct mock *m, bool all)
{
	if (all) {
		mock_drop_caches();
		EXPECT_TRUE(mock_wait(all_forgotten, m, 0));
	}
	for (uint32_t i = 0; i < m->nodes; i++) {
		struct mock_node *node = &m->node[i];

		EXPECT_LE(node->forgotten, node->lookups) {
			TH_LOG("node %u", i + 1);
		}
		if (all)
			EXPECT_EQ(node->forgotten, node->lookups) {
				TH_LOG("node %u", i + 1);
			}
	}
}

static bool wait_for_clients(FIXTURE_DATA(storm) *self, bool until_trigger)
{
	struct client *stuck;
	int status;

	while (!ended(&self->clients, &status)) {
		if (until_trigger && __atomic_load_n(&self->s->served, __ATOMIC_RELAXED) >= self->s->trigger)
			return true;
		stuck = workload_stuck(self->s->client, CLIENTS, STUCK_MS);
		if (stuck) {
			workload_describe(stuck);
			return false;
		}
		usleep(500);
	}
	return true;
}

static void connection(struct __test_metadata *_metadata, FIXTURE_DATA(storm) *self, uint64_t seed)
{
	enum ending ending = draw(self->m, self->s, seed);
	bool whole = ending == QUIET || ending == CLIENTS_KILLED;
	struct mock *m = self->m;
	int status = 0;
	pid_t pid;

	mock = m;
	storm = self->s;
	ASSERT_EQ(0, mock_mount(m, seed % 3 ? ",allow_other" : ",default_permissions"));
	pid = fork();
	if (!pid)
		run_daemon(mock_dev);
	m->daemon = pid;
	close(mock_dev);
	mock_dev = -1;
	self->clients = fork();
	if (!self->clients)
		run_clients();
	ASSERT_TRUE(wait_for_clients(self, true));
	ASSERT_TRUE(bring(m, ending, self->clients)) {
		TH_LOG("%s: it does not end", ending_name[ending]);
	}
	ASSERT_TRUE(wait_for_clients(self, false)) {
		TH_LOG("after: %s", ending_name[ending]);
	}
	if (whole)
		check_forgets(_metadata, m, true);
	ASSERT_TRUE(mock_wait(off, m, 0)) {
		TH_LOG("umount after %s: %s", ending_name[ending], strerror(errno));
	}
	m->mounted = false;
	if (whole) {
		uint64_t end = workload_now() + MOCK_WAIT_MS;

		while (!ended(&m->daemon, &status) && workload_now() < end)
			usleep(500);
		ASSERT_EQ(0, m->daemon) {
			TH_LOG("the daemon outlives the mount");
		}
		EXPECT_EQ(0, status);
	}
	ASSERT_TRUE(workload_kill_daemon(m));
	check_forgets(_metadata, m, false);
	munmap(m->buf, m->buf_size);
	m->buf = NULL;
	self->s->requests += self->s->served;
	self->s->ended[ending]++;
	for (int i = 0; i < CLIENTS; i++) {
		self->s->calls += self->s->client[i].calls;
		EXPECT_EQ(0, self->s->client[i].wrong) {
			TH_LOG("a client read what is not in the file");
		}
	}
}

TEST_F_TIMEOUT(storm, connections, STORM_BOUND)
{
	uint64_t count = workload_setting("STORM_CONNECTIONS", 40), seed = workload_setting("STORM_SEED", 1);
	struct storm *s = self->s;
	uint64_t began = workload_now();

	KNOWN_DIFFERENCE("a daemon that is killed while it invalidates hangs with its clients: it sends none of that");
	for (uint64_t i = 0; i < count; i++) {
		connection(_metadata, self, seed + i);
		ASSERT_EQ(1, _metadata->exit_code == KSFT_PASS) {
			TH_LOG("in the connection of STORM_SEED=%llu", (unsigned long long)(seed + i));
		}
	}
	TH_LOG("STORM_SEED=%llu: %llu connections, %llu s, %llu system calls, %llu requests, %llu interrupts "
	       "(%llu requests ended by them), %llu notifications, %s", (unsigned long long)seed,
	       (unsigned long long)count, (unsigned long long)(workload_now() - began) / 1000,
	       (unsigned long long)s->calls, (unsigned long long)s->requests, (unsigned long long)s->interrupts,
	       (unsigned long long)s->interrupted, (unsigned long long)s->notified,
	       s->no_clones ? "one device descriptor" : "cloned descriptors");
	for (int i = 0; i < ENDINGS; i++)
		TH_LOG("%llu ended: %s", (unsigned long long)s->ended[i], ending_name[i]);
}

TEST_HARNESS_MAIN
