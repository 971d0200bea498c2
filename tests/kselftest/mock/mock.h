/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A FUSE daemon for tests: scripts its replies, records every request.
 *
 * Everything that test and daemon share lives in one struct mock in shared memory, so that the daemon can be a process
 * of its own: killing it is a real daemon death, and a test that gets stuck in the kernel never waits for itself.
 *
 * Two ways to use it:
 *   mock_mount() + mock_start()   a daemon process serves the tree; handlers override single opcodes
 *   mock_mount() + mock_take()    the test itself is the daemon, one request at a time
 */
#ifndef FUSE_MOCK_H
#define FUSE_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/fuse.h>

#define MOCK_PAGE	4096U
#define MOCK_NODES	4096
#define MOCK_RECORDS	65536
#define MOCK_OPCODES	64
#define MOCK_HEAD	128	/* bytes of each request kept in its record */
#define MOCK_HELD	64
#define MOCK_CALLS	32
#define MOCK_KNOBS	16
#define MOCK_WAIT_MS	60000	/* bound of every wait: long, because emulated guests are slow */

/* One file of the tree. A node's id is its place in the array plus one, so the root is FUSE_ROOT_ID. */
struct mock_node {
	uint64_t parent;
	uint64_t alias;		/* hard link: the node id that lookups answer with; 0 for none */
	uint64_t size;
	uint64_t lookups;	/* entry replies that the kernel accepted: what it owes us in forgets */
	uint64_t forgotten;
	uint64_t generation;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	char name[256];
	char target[256];	/* of a symlink */
};

/* One request as it was read from the device. */
struct mock_record {
	struct fuse_in_header in;
	uint64_t fh;		/* READ, READDIR, RELEASE, FLUSH */
	uint64_t offset;	/* READ, READDIR */
	uint32_t size;		/* READ, READDIR */
	uint32_t flags;		/* OPEN, READ, RELEASE */
	bool answered;
	int32_t error;		/* that the reply carried: 0 or negative */
	uint32_t payload;	/* bytes of payload in the reply */
	int32_t write_error;	/* errno of the reply's write(2), 0 for success */
	unsigned char head[MOCK_HEAD];
};

/* A request in the daemon's hands. */
struct mock_request {
	struct mock_record *record;
	const struct fuse_in_header *in;
	const void *arg;	/* behind the header */
	size_t arg_len;
};

/* What the daemon answers to INIT. */
struct mock_init {
	struct fuse_init_out out;
	bool echo_readahead;	/* answer max_readahead as it was offered, as libfuse does */
	int error;		/* negative errno to answer with instead */
	size_t size;		/* bytes of @out (or of zeros behind it) to send */
};

struct mock;

/* What a handler wants done; any negative errno is sent as an error reply. */
#define MOCK_DEFAULT	0	/* what the tree says */
#define MOCK_DONE	1	/* the handler answered, or nobody shall */
#define MOCK_HOLD	2	/* keep the request until mock_release(); then ask again, and take this as DEFAULT */

typedef int (*mock_handler)(struct mock *m, struct mock_request *req);

/* A system call made by another process. */
struct mock_call {
	pid_t pid;
	bool done;
	long ret;
	int error;		/* errno, 0 if ret is not -1 */
};

/*
 * This thread's device descriptor, -1 for none: the one thing that test and daemon do not share. mock_reply() and
 * mock_serve_tree() may be called by several threads of a daemon, each with a descriptor and a record of its own.
 */
extern _Thread_local int mock_dev;

struct mock {
	/* Script: set before mock_start() or while the daemon runs. */
	struct mock_init init;
	mock_handler handler[MOCK_OPCODES];
	uint64_t knob[MOCK_KNOBS];	/* for handlers, meaning is the test's */
	uint64_t entry_valid;	/* seconds */
	uint64_t attr_valid;
	uint64_t negative_valid;	/* of names that are not there; 0: ENOENT */
	void (*attr_hook)(struct mock *m, uint64_t id, struct fuse_attr *attr);	/* changes what mock_attr() says */
	uint32_t open_flags;	/* FOPEN_* */
	uint32_t nodes;
	struct mock_node node[MOCK_NODES];

	/* Results. */
	uint32_t records;
	bool records_lost;
	struct mock_record record[MOCK_RECORDS];
	struct fuse_init_in offered;	/* the kernel's INIT */
	uint32_t held;
	bool released;		/* the daemon is answering what it held: nothing is held again */
	uint32_t faults;	/* in the fault buffer */
	bool resolve_faults;
	int daemon_error;	/* errno of a device read that ended the daemon; 0 while it runs */

	/* Plumbing. */
	char dir[64];
	bool mounted;
	int ctl[2];		/* pipe that tells the daemon to release held requests */
	pid_t daemon;
	uint64_t next_fh;
	uint32_t call_count;
	struct mock_call call[MOCK_CALLS];
	void *buf;		/* request buffer of this process */
	size_t buf_size;
};

/* client.c: which client, its device, mount and limits */

const char *mock_client(void);		/* "fuse_rs" or "fuse": the filesystem type, from $CLIENT */
bool mock_in_tree(void);
const char *mock_device(void);		/* "/dev/fuse_rs" or "/dev/fuse" */
const char *mock_missing(void);		/* why tests cannot run here, or NULL */
int mock_open_device(void);
int mock_mount_fd(int fd, const char *dir, uint32_t rootmode, const char *opts);
int mock_set_max_pages_limit(unsigned int limit);	/* old limit, or -1: this client has no such knob */
unsigned int mock_max_folio_order(void);	/* MAX_PAGECACHE_ORDER of the running kernel */
int mock_set_readahead_kb(struct mock *m, unsigned int kb);	/* 0 or -1 */
long mock_readahead_kb(struct mock *m);	/* or -1 */
int mock_write_file(const char *path, const char *text);
long mock_read_number(const char *path);
void mock_drop_caches(void);

/* mock.c: life of a mock */

struct mock *mock_new(void);		/* private mount namespace, default script, empty tree */
void mock_destroy(struct mock *m);	/* ends every process, detaches the mount */
int mock_mount(struct mock *m, const char *opts);	/* opts: "" or ",max_read=…"; -1 with errno */
int mock_start(struct mock *m);		/* daemon process; the test's descriptor is closed */
void mock_kill(struct mock *m);		/* SIGKILL to the daemon, and reap it */
void mock_release(struct mock *m);	/* answer what is held */
int mock_umount(struct mock *m);
const char *mock_path(struct mock *m, const char *name);	/* static buffers, eight in turn */

struct mock_call *mock_call(struct mock *m, long (*fn)(struct mock *m, const void *arg), const void *arg);
bool mock_call_done(struct mock_call *call);	/* waits for it, bounded */
long mock_call_stat(struct mock *m, const void *path);
long mock_call_open_read(struct mock *m, const void *path);	/* whole file; number of bytes */

bool mock_wait(bool (*cond)(struct mock *m, uint64_t arg), struct mock *m, uint64_t arg);
bool mock_wait_seen(struct mock *m, uint32_t opcode, uint32_t count);
bool mock_wait_held(struct mock *m, uint32_t count);
bool mock_wait_readable(int fd);
int mock_wait_answered(struct mock *m, uint32_t opcode);	/* errno of the last such reply's write(2); -1: no reply */

/* tree.c: what the daemon serves */

uint64_t mock_add(struct mock *m, uint64_t parent, const char *name, uint32_t mode, uint64_t size);
uint64_t mock_add_symlink(struct mock *m, uint64_t parent, const char *name, const char *target);
uint64_t mock_add_hardlink(struct mock *m, uint64_t parent, const char *name, uint64_t id);
struct mock_node *mock_node(struct mock *m, uint64_t id);
uint64_t mock_find(struct mock *m, uint64_t parent, const char *name);	/* 0 for none */
void mock_attr(struct mock *m, uint64_t id, struct fuse_attr *attr);
void mock_entry(struct mock *m, uint64_t id, struct fuse_entry_out *out);
void mock_fill(uint64_t id, uint64_t offset, void *buf, size_t len);	/* the pattern of node @id */
ssize_t mock_mismatch(uint64_t id, uint64_t offset, const void *buf, size_t len);	/* first wrong byte, or -1 */

/* serve.c: requests and replies */

int mock_read(int fd, void *buf, size_t size);	/* one device read: bytes or -1 */
int mock_take_now(struct mock *m, struct mock_request *req);	/* -1 with EAGAIN when there is none */
int mock_take(struct mock *m, struct mock_request *req);	/* read and record one, bounded; 0 or -1 */
int mock_take_until(struct mock *m, uint32_t opcode, struct mock_request *req);	/* serve others by the tree */
void mock_serve(struct mock *m, struct mock_request *req);	/* handler, then tree */
void mock_serve_tree(struct mock *m, struct mock_request *req);
int mock_reply(struct mock *m, struct mock_request *req, int error, const void *payload, size_t len);
int mock_reply_attr(struct mock *m, struct mock_request *req, const struct fuse_attr_out *out);
int mock_reply_entry(struct mock *m, struct mock_request *req, const struct fuse_entry_out *out);	/* counts the lookup */
/* Set by a daemon that does not want its replies sent as they are: called instead of mock_write_raw(), returns as it. */
extern int (*mock_sender)(struct mock *m, struct mock_request *req, int error, const void *payload, size_t len);
int mock_write_raw(int fd, uint64_t unique, uint32_t len, int32_t error, const void *payload, size_t payload_len);
void mock_daemon(struct mock *m);	/* loop of the daemon process */

/* log.c: questions to the record */

uint32_t mock_count(struct mock *m, uint32_t opcode);
uint32_t mock_count_node(struct mock *m, uint32_t opcode, uint64_t id);
uint32_t mock_max_size(struct mock *m, uint32_t opcode, uint64_t id);	/* largest size asked */
uint64_t mock_sum_size(struct mock *m, uint32_t opcode, uint64_t id);
uint32_t mock_covering(struct mock *m, uint64_t id, uint64_t offset);	/* READs whose range holds @offset */
struct mock_record *mock_last(struct mock *m, uint32_t opcode);
uint64_t mock_owed(struct mock *m);	/* lookups not forgotten, all nodes */

/* fault.c: a buffer whose pages behind the first @head bytes are missing until mock_resolve_faults() */

void *mock_fault_buffer(struct mock *m, size_t head, size_t len);	/* NULL with errno: no userfaultfd */
bool mock_wait_fault(struct mock *m);	/* someone stands at a missing page */
void mock_resolve_faults(struct mock *m);

/* trace.c: folio orders, by the tracepoint filemap:mm_filemap_add_to_page_cache */

struct mock_orders {
	unsigned long folios[16];	/* by order */
	int highest;			/* -1: none seen */
};
const char *mock_trace_start(struct mock *m);	/* NULL, or why it cannot */
int mock_trace_stop(struct mock *m, struct mock_orders *orders);

#endif
