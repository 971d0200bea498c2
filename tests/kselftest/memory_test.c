// SPDX-License-Identifier: GPL-2.0
/*
 * What cached inodes and requests in flight take of the kernel's slab, measured on both clients one after the other:
 * fuse_rs must not take more. docs/memory.md has the figures.
 */
#include "fuse_test.h"

/* INODES in the environment asks for another number. */
#define INODES	5000
#define READS	1000
#define CACHES	512

struct cache {
	char name[64];
	long objects;
	long size;
};

struct slabs {
	int count;
	struct cache cache[CACHES];
};

static bool read_slabs(struct slabs *slabs)
{
	FILE *file = fopen("/proc/slabinfo", "re");
	char line[512];

	slabs->count = 0;
	while (file && slabs->count < CACHES && fgets(line, sizeof(line), file)) {
		struct cache *cache = &slabs->cache[slabs->count];

		if (sscanf(line, "%63s %ld %*d %ld", cache->name, &cache->objects, &cache->size) == 3)
			slabs->count++;
	}
	if (file)
		fclose(file);
	return slabs->count > 0;
}

static const struct cache *find_cache(const struct slabs *slabs, const char *name)
{
	for (int i = 0; i < slabs->count; i++)
		if (!strcmp(slabs->cache[i].name, name))
			return &slabs->cache[i];
	return NULL;
}

/* Bytes of slab for each of @n things that came between; names the caches that grew with them. */
static double bytes_each(const struct slabs *before, const struct slabs *after, int n, const char *what)
{
	double bytes = 0;

	for (int i = 0; i < after->count; i++) {
		const struct cache *cache = &after->cache[i], *old = find_cache(before, cache->name);
		long grown = cache->objects - (old ? old->objects : 0);

		bytes += (double)grown * cache->size;
		if (grown > n / 20)
			printf("# %s: %s: %.2f objects of %ld bytes\n", what, cache->name, (double)grown / n, cache->size);
	}
	printf("# %s: %s: %.0f bytes of slab\n", mock_client(), what, bytes / n);
	fflush(stdout);
	return bytes / n;
}

/* Any name is there; its number is the node's. */
static int any_name(struct mock *m, struct mock_request *req)
{
	struct fuse_entry_out out;

	mock_entry(m, FUSE_ROOT_ID, &out);
	out.nodeid = 1000 + atoi(req->arg);
	out.attr.ino = out.nodeid;
	out.attr.mode = S_IFREG | 0644;
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

static double inode_bytes(struct __test_metadata *_metadata, const char *client)
{
	int inodes = getenv("INODES") ? atoi(getenv("INODES")) : INODES;
	static struct slabs before, after;
	struct mock *m;
	struct stat st;
	char name[16];
	double bytes;

	setenv("CLIENT", client, 1);
	m = mock_new();
	ASSERT_NE(NULL, m);
	m->handler[FUSE_LOOKUP] = any_name;
	START(m, "");
	EXPECT_CALL(0, m, mock_call_stat, m->dir);
	mock_drop_caches();
	ASSERT_TRUE(read_slabs(&before));
	for (int i = 0; i < inodes; i++) {
		snprintf(name, sizeof(name), "%06d", i);
		ASSERT_EQ(0, stat(mock_path(m, name), &st));
	}
	ASSERT_TRUE(read_slabs(&after));
	bytes = bytes_each(&before, &after, inodes, "a cached file");
	mock_destroy(m);
	mock_drop_caches();
	return bytes;
}

/* Has pages read ahead one by one, by a daemon that takes no READ. */
static long read_ahead(struct mock *m, const void *path)
{
	int fd;

	if (mock_set_readahead_kb(m, READS * 4))
		return -1;
	fd = open(path, O_RDONLY);
	if (fd < 0 || readahead(fd, 0, READS * MOCK_PAGE))
		return -1;
	__atomic_store_n(&m->knob[0], 1, __ATOMIC_RELEASE);
	return pause();
}

static bool queued(struct mock *m, uint64_t unused)
{
	return __atomic_load_n(&m->knob[0], __ATOMIC_ACQUIRE);
}

static double read_bytes(struct __test_metadata *_metadata, const char *client)
{
	static struct slabs before, after;
	struct mock_request req;
	struct mock *m;
	double bytes;

	setenv("CLIENT", client, 1);
	m = mock_new();
	ASSERT_NE(NULL, m);
	mock_add(m, FUSE_ROOT_ID, "file", S_IFREG | 0644, READS * MOCK_PAGE);
	m->init.out.max_background = UINT16_MAX;
	m->init.out.congestion_threshold = UINT16_MAX;
	ASSERT_EQ(0, mock_mount(m, ",max_read=4096"));
	ASSERT_EQ(0, mock_take_until(m, FUSE_INIT, &req));
	mock_serve(m, &req);
	mock_call(m, read_ahead, mock_path(m, "file"));
	ASSERT_EQ(0, mock_take_until(m, FUSE_OPEN, &req));
	ASSERT_TRUE(read_slabs(&before));
	mock_serve(m, &req);
	ASSERT_TRUE(mock_wait(queued, m, 0));
	ASSERT_TRUE(read_slabs(&after));
	bytes = bytes_each(&before, &after, READS, "a READ in flight");
	/* They all were there. */
	for (int i = 0; i < READS; i++) {
		ASSERT_EQ(0, mock_take(m, &req));
		ASSERT_EQ(FUSE_READ, (int)req.in->opcode);
		mock_serve(m, &req);
	}
	mock_destroy(m);
	return bytes;
}

static void compare(struct __test_metadata *_metadata,
		    double (*measure)(struct __test_metadata *_metadata, const char *client))
{
	double ours, in_tree;

	if (mock_in_tree())
		SKIP(return, "one run measures both clients");
	if (!access("/proc/lockdep", F_OK))
		SKIP(return, "locks of a debug kernel are no measure");
	in_tree = measure(_metadata, "fuse");
	ours = measure(_metadata, "fuse_rs");
	EXPECT_LE(ours, in_tree);
}

FIXTURE(memory) {
};

FIXTURE_SETUP(memory)
{
	if (mock_missing())
		SKIP(return, "%s", mock_missing());
}

FIXTURE_TEARDOWN(memory)
{
}

TEST_F_TIMEOUT(memory, inodes, 4 * TEST_BOUND)
{
	compare(_metadata, inode_bytes);
}

TEST_F_TIMEOUT(memory, reads, TEST_BOUND)
{
	compare(_metadata, read_bytes);
}

TEST_HARNESS_MAIN
