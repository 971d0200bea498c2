// SPDX-License-Identifier: GPL-2.0
/* Reading requests, recording them, answering them from the tree. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mock.h"

int mock_read(int fd, void *buf, size_t size)
{
	return read(fd, buf, size);
}

int mock_write_raw(int fd, uint64_t unique, uint32_t len, int32_t error, const void *payload, size_t payload_len)
{
	struct fuse_out_header out = { .len = len, .error = error, .unique = unique };
	struct iovec iov[2] = { { &out, sizeof(out) }, { (void *)payload, payload_len } };

	return writev(fd, iov, payload_len ? 2 : 1);
}

int (*mock_sender)(struct mock *m, struct mock_request *req, int error, const void *payload, size_t len);

int mock_reply(struct mock *m, struct mock_request *req, int error, const void *payload, size_t len)
{
	struct mock_record *record = req->record;
	int ret = mock_sender ? mock_sender(m, req, error, payload, len) :
		  mock_write_raw(mock_dev, req->in->unique, sizeof(struct fuse_out_header) + len, error, payload, len);

	record->error = error;
	record->payload = len;
	record->write_error = ret < 0 ? errno : 0;
	__atomic_store_n(&record->answered, true, __ATOMIC_RELEASE);
	return ret < 0 ? -1 : 0;
}

/* Copies what the tests ask about out of the argument structs. */
static void record_args(struct mock_record *record, const struct mock_request *req)
{
	switch (req->in->opcode) {
	case FUSE_READ:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS: {
		const struct fuse_read_in *in = req->arg;

		record->fh = in->fh;
		record->offset = in->offset;
		record->size = in->size;
		record->flags = in->flags;
		break;
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		record->flags = ((const struct fuse_open_in *)req->arg)->flags;
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		record->fh = ((const struct fuse_release_in *)req->arg)->fh;
		record->flags = ((const struct fuse_release_in *)req->arg)->flags;
		break;
	case FUSE_FLUSH:
		record->fh = ((const struct fuse_flush_in *)req->arg)->fh;
		break;
	}
}

int mock_take_now(struct mock *m, struct mock_request *req)
{
	int len = mock_read(mock_dev, m->buf, m->buf_size);
	struct mock_record *record;
	uint32_t n = m->records;

	if (len < 0)
		return -1;
	if (n == MOCK_RECORDS) {
		m->records_lost = true;
		n--;
	}
	record = &m->record[n];
	memset(record, 0, sizeof(*record));
	memcpy(record->head, m->buf, (size_t)len < sizeof(record->head) ? (size_t)len : sizeof(record->head));
	memcpy(&record->in, m->buf, sizeof(record->in));
	req->record = record;
	req->in = m->buf;
	req->arg = req->in + 1;
	req->arg_len = len - sizeof(*req->in);
	record_args(record, req);
	__atomic_store_n(&m->records, n + 1, __ATOMIC_RELEASE);
	return 0;
}

int mock_take(struct mock *m, struct mock_request *req)
{
	for (;;) {
		if (!mock_wait_readable(mock_dev)) {
			errno = ETIMEDOUT;
			return -1;
		}
		if (!mock_take_now(m, req))
			return 0;
		if (errno != EAGAIN && errno != EINTR && errno != ENOENT)
			return -1;
	}
}

int mock_take_until(struct mock *m, uint32_t opcode, struct mock_request *req)
{
	for (;;) {
		if (mock_take(m, req))
			return -1;
		if (req->in->opcode == opcode)
			return 0;
		mock_serve_tree(m, req);
	}
}

static void serve_init(struct mock *m, struct mock_request *req)
{
	unsigned char reply[256] = {};
	struct fuse_init_out out = m->init.out;

	memcpy(&m->offered, req->arg, req->arg_len < sizeof(m->offered) ? req->arg_len : sizeof(m->offered));
	if (m->init.error) {
		mock_reply(m, req, m->init.error, NULL, 0);
		return;
	}
	if (m->init.echo_readahead)
		out.max_readahead = m->offered.max_readahead;
	memcpy(reply, &out, sizeof(out));
	mock_reply(m, req, 0, reply, m->init.size);
}

/* Sizes that an older protocol minor gives to attributes and entries. */
static size_t attr_out_size(struct mock *m)
{
	return m->init.out.minor < 9 ? FUSE_COMPAT_ATTR_OUT_SIZE : sizeof(struct fuse_attr_out);
}

static size_t entry_out_size(struct mock *m)
{
	return m->init.out.minor < 9 ? FUSE_COMPAT_ENTRY_OUT_SIZE : sizeof(struct fuse_entry_out);
}

/* A daemon may have several threads. */
static void count(uint64_t *counter, uint64_t n)
{
	__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

int mock_reply_attr(struct mock *m, struct mock_request *req, const struct fuse_attr_out *out)
{
	return mock_reply(m, req, 0, out, attr_out_size(m));
}

int mock_reply_entry(struct mock *m, struct mock_request *req, const struct fuse_entry_out *out)
{
	struct mock_node *node = mock_node(m, out->nodeid);
	int ret;

	/* Counted before the reply is out, so that whoever waited for it sees the count. */
	if (node)
		count(&node->lookups, 1);
	ret = mock_reply(m, req, 0, out, entry_out_size(m));
	if (ret && node)
		count(&node->lookups, -1);
	return ret;
}

static void serve_lookup(struct mock *m, struct mock_request *req)
{
	uint64_t id = mock_find(m, req->in->nodeid, req->arg);
	struct fuse_entry_out out = { .entry_valid = m->negative_valid };

	if (!id && !m->negative_valid) {
		mock_reply(m, req, -ENOENT, NULL, 0);
		return;
	}
	if (id)
		mock_entry(m, id, &out);
	mock_reply_entry(m, req, &out);
}

static void serve_getattr(struct mock *m, struct mock_request *req)
{
	struct fuse_attr_out out = { .attr_valid = m->attr_valid };

	mock_attr(m, req->in->nodeid, &out.attr);
	mock_reply_attr(m, req, &out);
}

static void serve_open(struct mock *m, struct mock_request *req)
{
	struct fuse_open_out out = { .open_flags = m->open_flags };

	out.fh = __atomic_add_fetch(&m->next_fh, 1, __ATOMIC_RELAXED);
	mock_reply(m, req, 0, &out, sizeof(out));
}

static void serve_read(struct mock *m, struct mock_request *req)
{
	struct mock_node *node = mock_node(m, req->in->nodeid);
	const struct fuse_read_in *in = req->arg;
	uint64_t offset = in->offset;
	size_t len = in->size;
	char *data;

	if (offset >= node->size)
		len = 0;
	else if (len > node->size - offset)
		len = node->size - offset;
	data = malloc(len + 1);
	mock_fill(req->in->nodeid, offset, data, len);
	mock_reply(m, req, 0, data, len);
	free(data);
}

/* Directory position n stands before the n-th entry: ".", "..", then the children in the order of the array. */
static void serve_readdir(struct mock *m, struct mock_request *req, bool plus)
{
	const struct fuse_read_in *in = req->arg;
	uint64_t dir = req->in->nodeid, position = 0;
	size_t used = 0;
	char *reply = calloc(1, in->size + 1);
	uint64_t *entered = calloc(m->nodes, sizeof(*entered));
	uint32_t entries = 0;

	for (uint64_t i = 0; i < m->nodes + 2; i++) {
		bool dot = i < 2;
		uint64_t id = i == 0 ? dir : i == 1 ? mock_node(m, dir)->parent : i - 1;
		const char *name = i == 0 ? "." : i == 1 ? ".." : mock_node(m, id)->name;
		size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
		size_t size = FUSE_DIRENT_ALIGN(head + strlen(name));
		struct fuse_dirent *dirent = (void *)(reply + used + (plus ? sizeof(struct fuse_entry_out) : 0));

		if (!dot && mock_node(m, id)->parent != dir)
			continue;
		if (position++ < in->offset)
			continue;
		if (used + size > in->size)
			break;
		if (!dot && mock_node(m, id)->alias)
			id = mock_node(m, id)->alias;
		if (plus && !dot) {
			mock_entry(m, id, (void *)(reply + used));
			entered[entries++] = id;
			count(&mock_node(m, id)->lookups, 1);
		}
		dirent->ino = id ? id : FUSE_ROOT_ID;
		dirent->off = position;
		dirent->namelen = strlen(name);
		dirent->type = dot ? S_IFDIR >> 12 : mock_node(m, id)->mode >> 12;
		memcpy(dirent->name, name, dirent->namelen);
		used += size;
	}
	if (mock_reply(m, req, 0, reply, used))
		while (entries)
			count(&mock_node(m, entered[--entries])->lookups, -1);
	free(entered);
	free(reply);
}

static void serve_forget(struct mock *m, struct mock_request *req)
{
	struct mock_node *node = mock_node(m, req->in->nodeid);

	if (node)
		count(&node->forgotten, ((const struct fuse_forget_in *)req->arg)->nlookup);
}

static void serve_batch_forget(struct mock *m, struct mock_request *req)
{
	const struct fuse_batch_forget_in *in = req->arg;
	const struct fuse_forget_one *one = (const void *)(in + 1);

	for (uint32_t i = 0; i < in->count; i++, one++)
		if (mock_node(m, one->nodeid))
			count(&mock_node(m, one->nodeid)->forgotten, one->nlookup);
}

static void serve_statfs(struct mock *m, struct mock_request *req)
{
	struct fuse_statfs_out out = { .st = {
		.blocks = 1000003, .bfree = 700001, .bavail = 600011, .files = 50021, .ffree = 40009,
		.bsize = 4096, .namelen = 255, .frsize = 4096,
	} };

	mock_reply(m, req, 0, &out, m->init.out.minor < 4 ? FUSE_COMPAT_STATFS_SIZE : sizeof(out));
}

void mock_serve_tree(struct mock *m, struct mock_request *req)
{
	switch (req->in->opcode) {
	case FUSE_INIT:
		serve_init(m, req);
		break;
	case FUSE_LOOKUP:
		serve_lookup(m, req);
		break;
	case FUSE_FORGET:
		serve_forget(m, req);
		break;
	case FUSE_BATCH_FORGET:
		serve_batch_forget(m, req);
		break;
	case FUSE_GETATTR:
		serve_getattr(m, req);
		break;
	case FUSE_READLINK: {
		const char *target = mock_node(m, req->in->nodeid)->target;

		mock_reply(m, req, 0, target, strlen(target));
		break;
	}
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		serve_open(m, req);
		break;
	case FUSE_READ:
		serve_read(m, req);
		break;
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
		serve_readdir(m, req, req->in->opcode == FUSE_READDIRPLUS);
		break;
	case FUSE_STATFS:
		serve_statfs(m, req);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_ACCESS:
	case FUSE_DESTROY:
		mock_reply(m, req, 0, NULL, 0);
		break;
	case FUSE_INTERRUPT:
		break;	/* takes no reply */
	default:
		mock_reply(m, req, -ENOSYS, NULL, 0);
	}
}

/* Requests that handlers asked to hold, with bodies of their own: the daemon's buffer is reused. */
static struct mock_request held[MOCK_HELD];

static void hold(struct mock *m, struct mock_request *req)
{
	size_t len = sizeof(*req->in) + req->arg_len;
	struct mock_request *slot = &held[m->held];
	void *body = malloc(len);

	memcpy(body, req->in, len);
	*slot = (struct mock_request){ req->record, body, (const struct fuse_in_header *)body + 1, req->arg_len };
	__atomic_store_n(&m->held, m->held + 1, __ATOMIC_RELEASE);
}

void mock_serve(struct mock *m, struct mock_request *req)
{
	uint32_t opcode = req->in->opcode;
	mock_handler handler = opcode < MOCK_OPCODES ? m->handler[opcode] : NULL;
	int verdict = handler ? handler(m, req) : MOCK_DEFAULT;

	if (verdict < 0)
		mock_reply(m, req, verdict, NULL, 0);
	else if (verdict == MOCK_HOLD && !m->released && m->held < MOCK_HELD)
		hold(m, req);
	else if (verdict != MOCK_DONE)
		mock_serve_tree(m, req);
}

/* What is held goes through its handler once more, in the order of its coming. */
static void release(struct mock *m)
{
	m->released = true;
	for (uint32_t i = 0; i < m->held; i++) {
		mock_serve(m, &held[i]);
		free((void *)held[i].in);
	}
	m->released = false;
	__atomic_store_n(&m->held, 0, __ATOMIC_RELEASE);
}

void mock_daemon(struct mock *m)
{
	struct pollfd fds[2] = { { mock_dev, POLLIN, 0 }, { m->ctl[0], POLLIN, 0 } };
	struct mock_request req;
	char byte;

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents && read(m->ctl[0], &byte, 1) == 1)
			release(m);
		if (!fds[0].revents)
			continue;
		if (!mock_take_now(m, &req)) {
			mock_serve(m, &req);
		} else if (errno != EAGAIN && errno != EINTR && errno != ENOENT) {
			m->daemon_error = errno;
			_exit(0);
		}
	}
}
