// SPDX-License-Identifier: GPL-2.0
/*
 * Copies between the daemon's memory and requests, wherever that memory is, and an end of the connection in the middle
 * of one: nobody hangs, and nothing is copied to memory that has another owner by then.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "fuse_test.h"

#define FILE_SIZE	(1U << 20)
#define HUGE		(2U << 20)

/* Where the daemon has the data that it answers with. */
enum place { SMALL_PAGES, HUGE_PAGES, HUGETLB, FILE_MAPPING, OWN_MOUNT };

enum { KNOB_PLACE, KNOB_ERRNO, KNOB_SOURCE, KNOB_FILE };

static int data_mapping(struct mock *m)
{
	char path[] = "/tmp/abort_test.XXXXXX";
	char *data = malloc(FILE_SIZE);
	int fd = mkstemp(path);

	unlink(path);
	mock_fill(m->knob[KNOB_SOURCE], 0, data, FILE_SIZE);
	if (write(fd, data, FILE_SIZE) != FILE_SIZE)
		fd = -1;
	free(data);
	return fd;
}

/* The content of the node "source", at that place; NULL with errno. */
static char *place_data(struct mock *m)
{
	enum place place = m->knob[KNOB_PLACE];
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place == HUGETLB ? MAP_HUGETLB : 0), fd;
	char *data;

	switch (place) {
	case FILE_MAPPING:
	case OWN_MOUNT:
		fd = place == OWN_MOUNT ? open(mock_path(m, "source"), O_RDONLY) : data_mapping(m);
		if (fd < 0)
			return NULL;
		/* Nothing of it is in the page tables: the copy faults. */
		data = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
		/* A killed daemon would wait for its own answer to FLUSH. */
		close(fd);
		return data == MAP_FAILED ? NULL : data;
	default:
		data = mmap(NULL, place == HUGETLB ? HUGE : 2 * HUGE, PROT_READ | PROT_WRITE, flags, -1, 0);
		if (data == MAP_FAILED)
			return NULL;
		if (place == HUGE_PAGES) {
			data = (char *)(((uintptr_t)data + HUGE - 1) / HUGE * HUGE);
			madvise(data, HUGE, MADV_HUGEPAGE);
		}
		mock_fill(m->knob[KNOB_SOURCE], 0, data, FILE_SIZE);
		return data;
	}
}

/* In the daemon. */
static char *source;

/* READs of "file" are answered with what "source" has. */
static int serve_read(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	size_t len = in->size < FILE_SIZE - in->offset ? in->size : FILE_SIZE - in->offset;

	if (req->in->nodeid != m->knob[KNOB_FILE])
		return MOCK_DEFAULT;
	if (!source)
		source = place_data(m);
	if (!source) {
		m->knob[KNOB_ERRNO] = errno;
		return -EIO;
	}
	mock_reply(m, req, 0, source + in->offset, len);
	return MOCK_DONE;
}

/* Memory of other kinds. */
FIXTURE(place) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_VARIANT(place) {
	enum place place;
};

FIXTURE_VARIANT_ADD(place, small_pages) { .place = SMALL_PAGES };
FIXTURE_VARIANT_ADD(place, huge_pages) { .place = HUGE_PAGES };
FIXTURE_VARIANT_ADD(place, hugetlb) { .place = HUGETLB };
FIXTURE_VARIANT_ADD(place, file_mapping) { .place = FILE_MAPPING };

FIXTURE_SETUP(place)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->m->knob[KNOB_FILE] = self->file;
	self->m->knob[KNOB_SOURCE] = mock_add(self->m, FUSE_ROOT_ID, "source", S_IFREG | 0644, FILE_SIZE);
	self->m->knob[KNOB_PLACE] = variant->place;
	self->m->handler[FUSE_READ] = serve_read;
}

FIXTURE_TEARDOWN(place)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(place, answers, TEST_BOUND)
{
	int fd;

	if (variant->place == HUGETLB && mock_write_file("/proc/sys/vm/nr_hugepages", "2"))
		SKIP(return, "no hugetlb pages: %s", strerror(errno));
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->m->knob[KNOB_SOURCE], 0, FILE_SIZE);
	EXPECT_EQ(0, self->m->knob[KNOB_ERRNO]);
	close(fd);
	mock_kill(self->m);
	if (variant->place == HUGETLB)
		mock_write_file("/proc/sys/vm/nr_hugepages", "0");
}

/* Memory that is a file of the daemon's own mount. */
FIXTURE(own_mount) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_SETUP(own_mount)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->m->knob[KNOB_FILE] = self->file;
	self->m->knob[KNOB_SOURCE] = mock_add(self->m, FUSE_ROOT_ID, "source", S_IFREG | 0644, FILE_SIZE);
	self->m->knob[KNOB_PLACE] = OWN_MOUNT;
}

FIXTURE_TEARDOWN(own_mount)
{
	mock_destroy(self->m);
}

static void *map_own(void *m)
{
	source = place_data(m);
	__atomic_store_n(&((struct mock *)m)->knob[KNOB_ERRNO], source ? 1000 : errno, __ATOMIC_RELEASE);
	return NULL;
}

/* A LOOKUP of "map" makes the daemon map "source", in a thread. */
static int serve_lookup(struct mock *m, struct mock_request *req)
{
	pthread_t thread;

	if (!strcmp(req->arg, "map"))
		pthread_create(&thread, NULL, map_own, m);
	return MOCK_DEFAULT;
}

static bool knob_is(struct mock *m, uint64_t arg)
{
	return __atomic_load_n(&m->knob[KNOB_ERRNO], __ATOMIC_ACQUIRE) == arg;
}

static void begin(struct __test_metadata *_metadata, struct mock *m)
{
	m->handler[FUSE_LOOKUP] = serve_lookup;
	m->handler[FUSE_READ] = serve_read;
	START(m, "");
	EXPECT_CALL(ENOENT, m, mock_call_stat, mock_path(m, "map"));
	ASSERT_TRUE(mock_wait(knob_is, m, 1000));
}

/* The daemon waits for itself: it can be killed, and takes all with it. */
TEST_F_TIMEOUT(own_mount, killed, TEST_BOUND)
{
	struct mock_call *call;

	begin(_metadata, self->m);
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_READ, 1));
	usleep(200000);
	EXPECT_EQ(0, mock_count_node(self->m, FUSE_READ, self->m->knob[KNOB_SOURCE]));
	mock_kill(self->m);
	ASSERT_TRUE(mock_call_done(call)) {
		TH_LOG("the reader hangs");
	}
	EXPECT_EQ(-1, call->ret);
	EXPECT_EQ(0, mock_umount(self->m));
}

/* The same, freed by a forced umount: the copy that waits for a page of the mount fails with it. */
TEST_F_TIMEOUT(own_mount, forced_umount, TEST_BOUND)
{
	struct mock_call *call;

	begin(_metadata, self->m);
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_seen(self->m, FUSE_READ, 1));
	usleep(200000);
	umount2(self->m->dir, MNT_FORCE);
	ASSERT_TRUE(mock_call_done(call)) {
		TH_LOG("the reader hangs");
	}
	EXPECT_EQ(-1, call->ret);
	EXPECT_LT(0, mock_wait_answered(self->m, FUSE_READ));
}

/* The end of the connection while a copy stands at a page fault. */
FIXTURE(copy) {
	struct mock *m;
};

FIXTURE_SETUP(copy)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
}

FIXTURE_TEARDOWN(copy)
{
	mock_destroy(self->m);
}

static int trap(struct mock *m, struct mock_request *req)
{
	size_t len = ((const struct fuse_read_in *)req->arg)->size;
	char *payload = mock_fault_buffer(m, 5000, len);

	if (!payload)
		m->knob[KNOB_ERRNO] = errno;
	mock_reply(m, req, 0, payload, len);
	return MOCK_DONE;
}

/*
 * The reader comes back at once, though the daemon stands in its copy; and when that goes on, the memory of the page
 * cache that it was copying to, which is other memory by then, stays as it is.
 */
TEST_F_TIMEOUT(copy, aborted, TEST_BOUND)
{
	struct mock_call *call;
	size_t size, bad = 0;
	unsigned char *memory;
	int dir;

	self->m->handler[FUSE_READ] = trap;
	START(self->m, "");
	call = mock_call(self->m, mock_call_open_read, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_fault(self->m));
	/* In use, the mount stays when the reader has gone. */
	dir = open(self->m->dir, O_PATH);
	ASSERT_LE(0, dir);
	EXPECT_ERRNO(EBUSY, umount2(self->m->dir, MNT_FORCE));
	close(dir);
	ASSERT_TRUE(mock_call_done(call)) {
		TH_LOG("the reader waits for the copy");
	}
	EXPECT_EQ(-1, call->ret);
	if (!KNOWN_DIFFERENCE("an unmount waits for the daemon's copy")) {
		EXPECT_EQ(0, umount2(self->m->dir, MNT_DETACH));
		self->m->mounted = false;
	}

	/* Most of what is free. */
	mock_drop_caches();
	size = sysconf(_SC_AVPHYS_PAGES) / 4 * 3 * MOCK_PAGE;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, memory);
	memset(memory, 0xa5, size);
	mock_resolve_faults(self->m);
	EXPECT_EQ(ENOENT, mock_wait_answered(self->m, FUSE_READ));
	for (size_t i = 0; i < size; i += 64)
		bad += memory[i] != 0xa5;
	EXPECT_EQ(0, bad);
}

/* FUSE_ABORT_ERROR: the daemon learns from its device that it was aborted. */
TEST_F_TIMEOUT(copy, abort_error, TEST_BOUND)
{
	const char *type = mock_in_tree() ? "fusectl" : "fusectl_rs";
	char dir[64], path[128];
	struct mock_request req;
	struct mock_call *call;
	struct stat st;

	snprintf(dir, sizeof(dir), "/sys/fs/%s/connections", mock_client());
	if (mount(type, dir, type, 0, NULL) && errno != EBUSY)
		SKIP(return, "no control filesystem");
	self->m->init.out.flags |= FUSE_ABORT_ERROR;
	ASSERT_EQ(0, mock_mount(self->m, ""));
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	EXPECT_NE(0, self->m->offered.flags & FUSE_ABORT_ERROR);
	call = mock_call(self->m, mock_call_stat, self->m->dir);
	ASSERT_EQ(0, mock_take(self->m, &req));
	mock_serve(self->m, &req);
	ASSERT_TRUE(mock_call_done(call));
	ASSERT_EQ(0, stat(self->m->dir, &st));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take(self->m, &req));
	snprintf(path, sizeof(path), "%s/%u/abort", dir, minor(st.st_dev));
	ASSERT_EQ(0, mock_write_file(path, "1"));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(ECONNABORTED, call->error);
	EXPECT_ERRNO(ECONNABORTED, mock_read(mock_dev, self->m->buf, self->m->buf_size));
	EXPECT_ERRNO(ENOENT, mock_write_raw(mock_dev, req.in->unique, sizeof(struct fuse_out_header), -EIO, NULL, 0));
}

TEST_HARNESS_MAIN
