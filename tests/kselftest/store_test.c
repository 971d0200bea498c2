// SPDX-License-Identifier: GPL-2.0
/* STORE and RETRIEVE: data that the server puts into the page cache and gets back, byte by byte. */
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/uio.h>

#include "notify.h"

#define FILE_SIZE	((4U << 20) + 1808)	/* ends within a page */
#define MAX_DATA	(2U << 20)
#define OTHER		7777			/* no node: its pattern is what is stored */

/* The payload of the last NOTIFY_REPLY, for test and daemon. */
struct reply {
	uint32_t count;
	uint64_t unique;
	uint64_t nodeid;
	struct fuse_notify_retrieve_in in;
	size_t len;
	char data[MAX_DATA];
};

static struct reply *reply;

FIXTURE(store) {
	struct mock *m;
	uint64_t file, small, dir;
};

static int keep_reply(struct mock *m, struct mock_request *req)
{
	reply->unique = req->in->unique;
	reply->nodeid = req->in->nodeid;
	memcpy(&reply->in, req->arg, sizeof(reply->in));
	reply->len = req->arg_len - sizeof(reply->in);
	memcpy(reply->data, (const char *)req->arg + sizeof(reply->in), reply->len);
	__atomic_add_fetch(&reply->count, 1, __ATOMIC_RELEASE);
	return MOCK_DONE;
}

FIXTURE_SETUP(store)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->small = mock_add(self->m, FUSE_ROOT_ID, "small", S_IFREG | 0644, 100);
	self->dir = mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
	self->m->open_flags = FOPEN_KEEP_CACHE;
	self->m->handler[FUSE_NOTIFY_REPLY] = keep_reply;
	reply = mmap(NULL, sizeof(*reply), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, reply);
}

FIXTURE_TEARDOWN(store)
{
	umount2(self->m->dir, MNT_FORCE);
	if (notify_dev >= 0)
		close(notify_dev);
	mock_destroy(self->m);
}

static int store_from(uint64_t nodeid, uint64_t offset, const void *data, uint32_t len)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + sizeof(struct fuse_notify_store_out) + len, .error = FUSE_NOTIFY_STORE,
	};
	struct fuse_notify_store_out arg = { .nodeid = nodeid, .offset = offset, .size = len };
	struct iovec iov[] = { { &out, sizeof(out) }, { &arg, sizeof(arg) }, { (void *)data, len } };

	return writev(notify_dev, iov, ARRAY_SIZE(iov)) < 0 ? errno : 0;
}

/* Stores the other pattern's bytes of the same place. */
static int store(uint64_t nodeid, uint64_t offset, uint32_t len)
{
	char *data = malloc(len + 1);
	int ret;

	mock_fill(OTHER, offset, data, len);
	ret = store_from(nodeid, offset, data, len);
	free(data);
	return ret;
}

static int retrieve(uint64_t unique, uint64_t nodeid, uint64_t offset, uint32_t size)
{
	struct fuse_notify_retrieve_out out = {
		.notify_unique = unique, .nodeid = nodeid, .offset = offset, .size = size,
	};

	return notify(FUSE_NOTIFY_RETRIEVE, &out, sizeof(out));
}

static bool replied(struct mock *m, uint64_t count)
{
	return __atomic_load_n(&reply->count, __ATOMIC_ACQUIRE) >= count;
}

static int open_node(struct mock *m, const char *name)
{
	return open(mock_path(m, name), O_RDONLY);
}

/* Each byte of the file is the server's, except those of the stored range. */
#define EXPECT_STORED(fd, id, size, at, stored)						\
	do {										\
		char *all_ = malloc(size);						\
											\
		ASSERT_EQ((ssize_t)(size), pread(fd, all_, size, 0));			\
		EXPECT_EQ(-1, mock_mismatch(id, 0, all_, at));				\
		EXPECT_EQ(-1, mock_mismatch(OTHER, at, all_ + (at), stored));		\
		EXPECT_EQ(-1, mock_mismatch(id, (at) + (stored), all_ + (at) + (stored),	\
					    (size) - (at) - (stored)));			\
		free(all_);								\
	} while (0)

/* Into a cached file of large folios: only the asked bytes change, and nothing is read again. */
TEST_F_TIMEOUT(store, into_cached, TEST_BOUND)
{
	static const struct { uint64_t at; uint32_t len; } ranges[] = {
		{ 1234567, 3 }, { 0, 1 }, { MOCK_PAGE - 1, 2 }, { (1 << 20) - 3, 7 }, { 2 << 20, 1 << 20 },
		{ (2 << 20) + 1, (1 << 20) - 2 }, { FILE_SIZE - 1, 1 }, { FILE_SIZE - 5000, 5000 },
	};
	uint32_t reads;
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		EXPECT_EQ(0, inval_inode(self->file, 0, 0));
		EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
		reads = mock_count(self->m, FUSE_READ);
		EXPECT_EQ(0, store(self->file, ranges[i].at, ranges[i].len));
		EXPECT_STORED(fd, self->file, FILE_SIZE, ranges[i].at, ranges[i].len);
		EXPECT_EQ(reads, mock_count(self->m, FUSE_READ));
	}
	close(fd);
}

/* Recipe 80: then a page within is invalidated, and what the server has there comes back. */
TEST_F_TIMEOUT(store, then_invalidate, TEST_BOUND)
{
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(0, store(self->file, (2 << 20) + 5000, 3));
	EXPECT_EQ(0, inval_inode(self->file, (2 << 20) + MOCK_PAGE, 1));
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
}

/* A mapping shows what is stored. */
TEST_F_TIMEOUT(store, into_mapped, TEST_BOUND)
{
	const char *map;
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, map, FILE_SIZE));
	EXPECT_EQ(0, store(self->file, 100001, 70001));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, map, 100001));
	EXPECT_EQ(-1, mock_mismatch(OTHER, 100001, map + 100001, 70001));
	EXPECT_EQ(-1, mock_mismatch(self->file, 170002, map + 170002, FILE_SIZE - 170002));
	close(fd);
}

/* From a mapping of the very pages that are stored to. */
TEST_F_TIMEOUT(store, from_itself, TEST_BOUND)
{
	const char *map;
	int fd;

	if (KNOWN_DIFFERENCE("STORE from a mapping of the same pages never ends, nor does a kill end it"))
		return;
	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(0, store_from(self->file, 0, map, 3 * MOCK_PAGE));
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
}

/* Into a cold file: whole pages, and the page where the file ends from its start on, are valid without a READ. */
TEST_F_TIMEOUT(store, into_cold, TEST_BOUND)
{
	int fd;

	START_NOTIFIED(self->m, "");
	mock_set_readahead_kb(self->m, 0);
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	for (uint64_t at = 0; at < FILE_SIZE; at += 1 << 20)
		EXPECT_EQ(0, store(self->file, at, FILE_SIZE - at < 1 << 20 ? FILE_SIZE - at : 1 << 20));
	EXPECT_CONTENT(fd, OTHER, 0, FILE_SIZE);
	EXPECT_EQ(0, mock_count(self->m, FUSE_READ));
	close(fd);
}

/* What does not fill a page of a cold file is what the server still has. */
TEST_F_TIMEOUT(store, part_of_cold, TEST_BOUND)
{
	uint64_t first = 3 * MOCK_PAGE - 100;
	char *all = malloc(8 * MOCK_PAGE);
	int fd;

	START_NOTIFIED(self->m, "");
	mock_set_readahead_kb(self->m, 0);
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	/* Its end is within a page, too. */
	EXPECT_EQ(0, store(self->file, first, 100 + 2 * MOCK_PAGE + 1));
	EXPECT_EQ(0, store(self->file, FILE_SIZE - 1, 1));
	/* Page by page: not more than tells it. */
	ASSERT_EQ(8 * MOCK_PAGE, pread(fd, all, 8 * MOCK_PAGE, 0));
	EXPECT_CONTENT(fd, self->file, FILE_SIZE - 100, 100);
	EXPECT_EQ(0, mock_covering(self->m, self->file, 3 * MOCK_PAGE));
	EXPECT_EQ(0, mock_covering(self->m, self->file, 5 * MOCK_PAGE - 1));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, all, 3 * MOCK_PAGE));
	EXPECT_EQ(-1, mock_mismatch(OTHER, 3 * MOCK_PAGE, all + 3 * MOCK_PAGE, 2 * MOCK_PAGE));
	EXPECT_EQ(-1, mock_mismatch(self->file, 5 * MOCK_PAGE, all + 5 * MOCK_PAGE, 3 * MOCK_PAGE));
	free(all);
	close(fd);
}

static int fail_read(struct mock *m, struct mock_request *req)
{
	return -EIO;
}

/* Folios that could not be read are no obstacle. */
TEST_F_TIMEOUT(store, into_failed, TEST_BOUND)
{
	char byte;
	int fd;

	self->m->handler[FUSE_READ] = fail_read;
	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, posix_fadvise(fd, 0, FILE_SIZE, POSIX_FADV_WILLNEED));
	EXPECT_ERRNO(EIO, pread(fd, &byte, 1, 0));
	EXPECT_EQ(0, store(self->file, MOCK_PAGE, 2 * MOCK_PAGE));
	EXPECT_CONTENT(fd, OTHER, MOCK_PAGE, 2 * MOCK_PAGE);
	self->m->handler[FUSE_READ] = NULL;
	EXPECT_STORED(fd, self->file, FILE_SIZE, MOCK_PAGE, 2 * MOCK_PAGE);
	close(fd);
}

/* A file grows by what is stored behind its end. */
TEST_F_TIMEOUT(store, grows, TEST_BOUND)
{
	char byte = 1;
	struct stat st;
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "small");
	ASSERT_GE(fd, 0);
	EXPECT_CONTENT(fd, self->small, 0, 100);
	mock_node(self->m, self->small)->size = 5000;
	EXPECT_EQ(0, store(self->small, 100, 4900));
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(5000, st.st_size);
	EXPECT_STORED(fd, self->small, 5000, 100, 4900);
	/* With a gap, which is the server's. */
	mock_node(self->m, self->small)->size = 4 * MOCK_PAGE;
	EXPECT_EQ(0, store(self->small, 3 * MOCK_PAGE, MOCK_PAGE));
	EXPECT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(4 * MOCK_PAGE, st.st_size);
	EXPECT_CONTENT(fd, OTHER, 3 * MOCK_PAGE, MOCK_PAGE);
	EXPECT_CONTENT(fd, self->small, 2 * MOCK_PAGE, MOCK_PAGE);
	EXPECT_EQ(0, pread(fd, &byte, 1, 4 * MOCK_PAGE));
	close(fd);
}

TEST_F_TIMEOUT(store, hostile, TEST_BOUND)
{
	struct fuse_notify_store_out arg = { .nodeid = self->file, .size = 8 };
	static const uint32_t sizes[] = { 0, 7, 9, INT_MAX, UINT_MAX, UINT_MAX - sizeof(arg) + 1 };
	struct {
		struct fuse_notify_store_out arg;
		char data[8];
	} message = { .arg = arg };
	char *half;
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		message.arg.size = sizes[i];
		EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_STORE, &message, sizeof(message))) {
			TH_LOG("size %u", sizes[i]);
		}
	}
	EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_STORE, &arg, sizeof(arg) - 1));
	EXPECT_EQ(0, store(self->file, 0, 0));
	EXPECT_EQ(ENOENT, store(self->dir + 5, 0, 8));
	EXPECT_EQ(EINVAL, store(self->file, UINT64_MAX, 8));
	EXPECT_EQ(EINVAL, store(self->file, UINT64_MAX - 7, 8));
	EXPECT_EQ(EINVAL, store(self->file, INT64_MAX, 8));
	EXPECT_EQ(EINVAL, store(self->file, 1ULL << 63, 8));
	EXPECT_EQ(EINVAL, store(FUSE_ROOT_ID, 0, 8));
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);

	/* Memory that ends early. */
	half = mmap(NULL, 2 * MOCK_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, half);
	mock_fill(OTHER, 0, half, MOCK_PAGE);
	ASSERT_EQ(0, munmap(half + MOCK_PAGE, MOCK_PAGE));
	EXPECT_EQ(EFAULT, store_from(self->file, 0, half, 2 * MOCK_PAGE));
	EXPECT_EQ(0, inval_inode(self->file, 0, 0));
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(0, inval_inode(self->file, 0, 0));
	EXPECT_EQ(EFAULT, store_from(self->file, 0, half, 2 * MOCK_PAGE));
	EXPECT_CONTENT(fd, self->file, MOCK_PAGE, FILE_SIZE - MOCK_PAGE);
	close(fd);
}

/* Memory that is not there yet when it is stored. */
TEST_F_TIMEOUT(store, absent_memory, TEST_BOUND)
{
	char path[] = "/tmp/store.XXXXXX";
	char *data = malloc(1 << 20), *map;
	int fd, file;

	START_NOTIFIED(self->m, "");
	file = mkstemp(path);
	ASSERT_GE(file, 0);
	unlink(path);
	mock_fill(OTHER, 0, data, 1 << 20);
	ASSERT_EQ(1 << 20, write(file, data, 1 << 20));
	map = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, file, 0);
	ASSERT_NE(MAP_FAILED, map);
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, store_from(self->file, 0, map, 1 << 20));
	EXPECT_CONTENT(fd, OTHER, 0, 1 << 20);
	EXPECT_EQ(0, mock_covering(self->m, self->file, 0));
	close(fd);
	close(file);
	free(data);
}

static void expect_reply(struct __test_metadata *_metadata, struct mock *m, uint32_t count, uint64_t id,
			 uint64_t offset, uint32_t len)
{
	ASSERT_TRUE(mock_wait(replied, m, count));
	EXPECT_EQ(0xfeedULL + count, reply->unique);
	EXPECT_EQ(offset, reply->in.offset);
	EXPECT_EQ(len, reply->in.size);
	ASSERT_EQ(len, reply->len);
	EXPECT_EQ(-1, mock_mismatch(id, offset, reply->data, len));
}

TEST_F_TIMEOUT(store, retrieve, TEST_BOUND)
{
	static const struct { uint64_t offset; uint32_t size, got; } ranges[] = {
		{ 0, 1, 1 }, { 0, 1 << 20, 1 << 20 }, { 0, (1 << 20) + 1, 1 << 20 }, { 0, UINT_MAX, 1 << 20 },
		{ 5, 3, 3 }, { MOCK_PAGE - 1, 2, 2 }, { (1 << 20) - 5, 10, 10 }, { 100, 500000, 500000 },
		{ FILE_SIZE - 10, 100, 10 }, { FILE_SIZE - 1, UINT_MAX, 1 }, { FILE_SIZE, 10, 0 },
		{ 1ULL << 62, 10, 0 }, { 12345, 0, 0 },
		/* Pages are what is limited. */
		{ 100, 1 << 20, (1 << 20) - 100 },
	};
	int fd;

	START_NOTIFIED(self->m, "");
	fd = open_node(self->m, "file");
	ASSERT_GE(fd, 0);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		ASSERT_EQ(0, retrieve(0xfeedULL + i + 1, self->file, ranges[i].offset, ranges[i].size)) {
			TH_LOG("range %zu", i);
		}
		expect_reply(_metadata, self->m, i + 1, self->file, ranges[i].offset, ranges[i].got);
		EXPECT_EQ(self->file, reply->nodeid);
	}
	EXPECT_EQ(EINVAL, retrieve(1, self->file, UINT64_MAX, UINT_MAX));
	EXPECT_EQ(EINVAL, retrieve(1, self->file, 1ULL << 63, 1));
	EXPECT_EQ(EINVAL, retrieve(1, FUSE_ROOT_ID, 0, 1));
	EXPECT_EQ(EINVAL, notify(FUSE_NOTIFY_RETRIEVE, &(struct fuse_notify_retrieve_out){ .nodeid = self->file },
				 sizeof(struct fuse_notify_retrieve_out) - 1));
	close(fd);
}

/* Up to the first byte that is not there. */
TEST_F_TIMEOUT(store, retrieve_gaps, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	EXPECT_EQ(ENOENT, retrieve(1, self->file, 0, 100));
	EXPECT_EQ(0, access(mock_path(self->m, "file"), F_OK));
	ASSERT_EQ(0, retrieve(0xfeedULL + 1, self->file, 0, 3 * MOCK_PAGE));
	expect_reply(_metadata, self->m, 1, self->file, 0, 0);
	EXPECT_EQ(0, store(self->file, 0, MOCK_PAGE));
	EXPECT_EQ(0, store(self->file, 2 * MOCK_PAGE, MOCK_PAGE));
	ASSERT_EQ(0, retrieve(0xfeedULL + 2, self->file, 10, 3 * MOCK_PAGE - 10));
	expect_reply(_metadata, self->m, 2, OTHER, 10, MOCK_PAGE - 10);
	EXPECT_EQ(0, store(self->file, MOCK_PAGE, MOCK_PAGE));
	ASSERT_EQ(0, retrieve(0xfeedULL + 3, self->file, 10, 3 * MOCK_PAGE - 10));
	expect_reply(_metadata, self->m, 3, OTHER, 10, 3 * MOCK_PAGE - 10);
}

/* The limits of a small server. */
TEST_F_TIMEOUT(store, retrieve_small, TEST_BOUND)
{
	self->m->init.out.max_pages = 2;
	self->m->init.out.max_write = MOCK_PAGE;
	START_NOTIFIED(self->m, "");
	EXPECT_EQ(0, access(mock_path(self->m, "file"), F_OK));
	EXPECT_EQ(0, store(self->file, 0, 8 * MOCK_PAGE));
	ASSERT_EQ(0, retrieve(0xfeedULL + 1, self->file, 100, 8 * MOCK_PAGE));
	expect_reply(_metadata, self->m, 1, OTHER, 100, MOCK_PAGE);
}

/* IDs are the server's, whatever they are. */
TEST_F_TIMEOUT(store, retrieve_ids, TEST_BOUND)
{
	static const uint64_t ids[] = { 0, 1, 2, 3, 4, UINT64_MAX, 1ULL << 63 };
	struct mock_call *call;

	START_NOTIFIED(self->m, "");
	EXPECT_EQ(0, access(mock_path(self->m, "file"), F_OK));
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, retrieve(ids[i], self->file, 0, 100));
		ASSERT_TRUE(mock_wait(replied, self->m, i + 1));
		EXPECT_EQ(ids[i], reply->unique);
	}
	/* Requests are what they were. */
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(FILE_SIZE, call->ret);
}

/* Replies that nobody reads end with the connection, and give their folios back. */
TEST_F_TIMEOUT(store, retrieve_unread, TEST_BOUND)
{
	START_NOTIFIED(self->m, "");
	EXPECT_EQ(0, access(mock_path(self->m, "file"), F_OK));
	EXPECT_EQ(0, store(self->file, 0, 1 << 20));
	kill(self->m->daemon, SIGSTOP);
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, retrieve(i, self->file, 0, 1 << 20));
	}
	EXPECT_EQ(0, mock_umount(self->m));
}

TEST_HARNESS_MAIN
