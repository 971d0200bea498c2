// SPDX-License-Identifier: GPL-2.0
/* READ: sizes within the limits, short and failed replies, odd sizes and file ends. */
#include <sys/mman.h>

#include "fuse_test.h"

#define FILE_SIZE (6U << 20)

FIXTURE(read) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_SETUP(read)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
}

FIXTURE_TEARDOWN(read)
{
	mock_destroy(self->m);
}

#define OPEN(self)							\
	({								\
		int fd_ = open(mock_path((self)->m, "file"), O_RDONLY);	\
									\
		ASSERT_LE(0, fd_);					\
		fd_;							\
	})

/* Read(2) until the end or an error, in pieces of 64 KiB; the number of bytes. */
static uint64_t read_on(int fd)
{
	char *buf = malloc(65536);
	uint64_t total = 0;
	ssize_t n;

	while ((n = read(fd, buf, 65536)) > 0)
		total += n;
	free(buf);
	return total;
}

TEST_F_TIMEOUT(read, odd_offsets_and_sizes, TEST_BOUND)
{
	static const struct { uint64_t offset; size_t len; } piece[] = {
		{ 0, 1 }, { 1, 1 }, { 4095, 2 }, { 4096, 4096 }, { 4097, 4095 }, { 12345, 54321 },
		{ 131071, 131074 }, { 1048575, 3 }, { FILE_SIZE - 1, 1 }, { FILE_SIZE - 70001, 70001 },
		{ 3, 1 << 20 }, { 2097151, 1048577 }, { 5000001, 7 },
	};
	char buf[1000];
	int fd;

	START(self->m, "");
	fd = OPEN(self);
	for (size_t i = 0; i < ARRAY_SIZE(piece); i++)
		EXPECT_CONTENT(fd, self->file, piece[i].offset, piece[i].len);
	EXPECT_EQ(0, pread(fd, buf, 1, FILE_SIZE));
	EXPECT_EQ(0, pread(fd, buf, 1, FILE_SIZE + 1234567));
	EXPECT_EQ(0, pread(fd, buf, 0, 0));
	/* From before the end to behind it: what there is. */
	EXPECT_EQ(10, pread(fd, buf, sizeof(buf), FILE_SIZE - 10));
	EXPECT_EQ(-1, mock_mismatch(self->file, FILE_SIZE - 10, buf, 10));
	close(fd);
}

/* Whole files whose ends lie at, before and behind page borders. */
TEST_F_TIMEOUT(read, file_ends, TEST_BOUND)
{
	static const uint64_t size[] = { 0, 1, 7, 4095, 4096, 4097, 65535, 65537, 131072, 200001, 1048575, 1048577, 3333333 };
	uint64_t id[ARRAY_SIZE(size)];
	char name[32];

	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		snprintf(name, sizeof(name), "size%zu", i);
		id[i] = mock_add(self->m, FUSE_ROOT_ID, name, S_IFREG | 0644, size[i]);
	}
	START(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		char *buf = malloc(size[i] + 5000);
		int fd;

		snprintf(name, sizeof(name), "size%zu", i);
		fd = open(mock_path(self->m, name), O_RDONLY);
		ASSERT_LE(0, fd);
		EXPECT_EQ(size[i], pread(fd, buf, size[i] + 5000, 0));
		EXPECT_EQ(-1, mock_mismatch(id[i], 0, buf, size[i]));
		close(fd);
		free(buf);
	}
}

/* A mapping shows zeros from the file's end to the page's end, and pages behind are no part of the file. */
TEST_F_TIMEOUT(read, mapping_end_is_zero, TEST_BOUND)
{
	size_t size = 100000, end = 102400;
	uint64_t id = mock_add(self->m, FUSE_ROOT_ID, "odd", S_IFREG | 0644, size);
	char *map;
	int fd;

	START(self->m, "");
	fd = open(mock_path(self->m, "odd"), O_RDONLY);
	ASSERT_LE(0, fd);
	map = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mock_mismatch(id, 0, map, size));
	for (size_t i = size; i < end; i++)
		ASSERT_EQ(0, map[i]);
	/* A private store stays private. */
	map[10] ^= 0x55;
	EXPECT_EQ(0, mock_mismatch(id, 10, map + 10, 1));
	EXPECT_CONTENT(fd, id, 0, size);
	EXPECT_EQ(0U, mock_count(self->m, FUSE_WRITE));
	munmap(map, end);
	close(fd);
}

/* Offsets above 4 GiB reach the daemon whole. */
TEST_F_TIMEOUT(read, large_offset, TEST_BOUND)
{
	uint64_t size = (5ULL << 40) + 12345;
	int fd;

	mock_node(self->m, self->file)->size = size;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, (4ULL << 30) - 5, 10);
	EXPECT_CONTENT(fd, self->file, (4ULL << 40) + 1, 100000);
	EXPECT_CONTENT(fd, self->file, size - 4097, 4097);
	EXPECT_LE(1U, mock_covering(self->m, self->file, (4ULL << 40) + 1));
	close(fd);
}

/* Cached data is not asked for again, by this handle or another one that the daemon lets keep the cache. */
TEST_F_TIMEOUT(read, cached_once, TEST_BOUND)
{
	uint32_t reads;
	int fd;

	self->m->open_flags = FOPEN_KEEP_CACHE;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_EQ(FILE_SIZE, read_on(fd));
	reads = mock_count(self->m, FUSE_READ);
	EXPECT_EQ(FILE_SIZE, mock_sum_size(self->m, FUSE_READ, self->file));
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	EXPECT_EQ(reads, mock_count(self->m, FUSE_READ));
	close(fd);
	/* Without FOPEN_KEEP_CACHE an open drops it. */
	self->m->open_flags = 0;
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	EXPECT_LT(reads, mock_count(self->m, FUSE_READ));
	close(fd);
}

/* READ names the handle that OPEN gave. */
TEST_F_TIMEOUT(read, file_handle, TEST_BOUND)
{
	int fd;

	START(self->m, "");
	close(OPEN(self));
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, 0, 100);
	ASSERT_NE(NULL, mock_last(self->m, FUSE_READ));
	EXPECT_EQ(2U, mock_last(self->m, FUSE_READ)->fh);
	EXPECT_EQ(O_RDONLY, (int)mock_last(self->m, FUSE_READ)->flags & O_ACCMODE);
	close(fd);
}

/* Several readers of one file at once, each from another place, all get their bytes. */
static long read_all_from(struct mock *m, const void *arg)
{
	size_t start = (uintptr_t)arg, len = FILE_SIZE;
	char *buf = malloc(len);
	int fd = open(mock_path(m, "file"), O_RDONLY);
	uint64_t id = mock_find(m, FUSE_ROOT_ID, "file");

	for (size_t done = 0; done < len; done += 50000) {
		size_t offset = (start + done) % len, want = len - offset < 50000 ? len - offset : 50000;

		if (pread(fd, buf, want, offset) != (ssize_t)want || mock_mismatch(id, offset, buf, want) >= 0)
			return 1;
	}
	close(fd);
	return 0;
}

TEST_F_TIMEOUT(read, concurrent_readers, TEST_BOUND)
{
	struct mock_call *call[6];

	START(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(call); i++)
		call[i] = mock_call(self->m, read_all_from, (void *)(i * 1234567));
	for (size_t i = 0; i < ARRAY_SIZE(call); i++) {
		ASSERT_TRUE(mock_call_done(call[i]));
		EXPECT_EQ(0, call[i]->ret);
	}
}

/* Knobs of the handlers that spoil one READ: which, how, and what it was. */
enum { AT, KEEP, OFFSET, SIZE };

/*
 * READs at or behind AT wait until the test lets them go. Then the first of them gets a short answer: KEEP bytes, or
 * that many less than it asked for if KEEP is negative.
 */
static int short_once(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	char *data;

	if (in->offset < m->knob[AT] || (!m->released && m->knob[SIZE]))
		return MOCK_DEFAULT;
	if (!m->released)
		return MOCK_HOLD;
	if (m->knob[SIZE])
		return MOCK_DEFAULT;
	m->knob[OFFSET] = in->offset;
	m->knob[SIZE] = in->size;
	if ((int64_t)m->knob[KEEP] < 0)
		m->knob[KEEP] += in->size;
	data = malloc(in->size);
	mock_fill(req->in->nodeid, in->offset, data, in->size);
	mock_reply(m, req, 0, data, m->knob[KEEP]);
	free(data);
	return MOCK_DONE;
}

/*
 * A short reply stands for the file's end: zeros follow it, up to the end of its own request and no further. The
 * neighbours, before it in the same folio and behind it, keep their data. All READs of a readahead window are under
 * way when the short answer comes, so that none is cut by the file's seeming end. EXPLICIT_INVAL_DATA keeps the cache
 * when the size is found to be the old one after all, so that what was cached is what the test sees.
 */
static void short_read(struct __test_metadata *_metadata, FIXTURE_DATA(read) *self, const char *opts, int64_t keep)
{
	struct mock *m = self->m;
	uint64_t from, end, step;
	struct mock_call *call;
	struct stat st;
	char *buf = malloc(FILE_SIZE);
	int fd;

	m->init.out.flags |= FUSE_EXPLICIT_INVAL_DATA;
	m->open_flags = FOPEN_KEEP_CACHE;
	m->attr_valid = 0;
	m->handler[FUSE_READ] = short_once;
	m->knob[AT] = 3 << 20;
	m->knob[KEEP] = keep;
	START(m, opts);
	ASSERT_EQ(0, mock_set_readahead_kb(m, 1024));
	fd = OPEN(self);
	call = mock_call(m, mock_call_open_read, mock_path(m, "file"));
	for (uint32_t held = 0; !held || held != m->held; usleep(300000))
		held = m->held;
	mock_release(m);
	ASSERT_TRUE(mock_call_done(call));
	ASSERT_NE(0, m->knob[SIZE]);
	ASSERT_EQ(0, fstat(fd, &st));
	EXPECT_EQ(FILE_SIZE, st.st_size);
	ASSERT_EQ(FILE_SIZE, pread(fd, buf, FILE_SIZE, 0));
	from = m->knob[OFFSET] + m->knob[KEEP];
	end = m->knob[OFFSET] + m->knob[SIZE];
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, buf, from));
	EXPECT_EQ(-1, mock_mismatch(self->file, end, buf + end, FILE_SIZE - end));
	/* Its own range: zeros, or the data where it was dropped and asked for again. */
	for (uint64_t at = from; at < end; at += step) {
		step = MOCK_PAGE - at % MOCK_PAGE;
		if (mock_covering(m, self->file, at) > 1) {
			EXPECT_EQ(-1, mock_mismatch(self->file, at, buf + at, step));
			continue;
		}
		for (uint64_t i = at; i < at + step; i++)
			ASSERT_EQ(0, buf[i]);
	}
	free(buf);
	close(fd);
}

TEST_F_TIMEOUT(read, short_inside_folio, TEST_BOUND)
{
	short_read(_metadata, self, "", 20000 + 123);
}

TEST_F_TIMEOUT(read, short_at_page_border, TEST_BOUND)
{
	short_read(_metadata, self, "", 5 * MOCK_PAGE);
}

TEST_F_TIMEOUT(read, short_to_nothing, TEST_BOUND)
{
	short_read(_metadata, self, "", 0);
}

TEST_F_TIMEOUT(read, short_by_a_byte, TEST_BOUND)
{
	short_read(_metadata, self, "", -1);
}

TEST_F_TIMEOUT(read, short_by_pages, TEST_BOUND)
{
	short_read(_metadata, self, "", -(int64_t)(2 * MOCK_PAGE + 5));
}

/* Smaller requests: many neighbours, each its own READ. */
TEST_F_TIMEOUT(read, short_among_many, TEST_BOUND)
{
	short_read(_metadata, self, ",max_read=65536", 12345);
}

/* The first READ at or behind AT fails, once. */
static int fail_once(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;

	if (m->knob[SIZE] || in->offset < m->knob[AT])
		return MOCK_DEFAULT;
	m->knob[OFFSET] = in->offset;
	m->knob[SIZE] = in->size;
	return -EIO;
}

/* A failed READ spoils nothing: what it did not bring is asked for again, the neighbours have their data. */
TEST_F_TIMEOUT(read, failed_then_again, TEST_BOUND)
{
	int fd;

	self->m->handler[FUSE_READ] = fail_once;
	self->m->knob[AT] = 1 << 20;
	START(self->m, "");
	fd = OPEN(self);
	read_on(fd);
	ASSERT_NE(0, self->m->knob[SIZE]);
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
}

static int fail_always(struct mock *m, struct mock_request *req)
{
	return ((const struct fuse_read_in *)req->arg)->offset < m->knob[AT] ? MOCK_DEFAULT : -EIO;
}

TEST_F_TIMEOUT(read, error_reaches_reader, TEST_BOUND)
{
	char byte;
	int fd;

	self->m->handler[FUSE_READ] = fail_always;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_ERRNO(EIO, pread(fd, &byte, 1, 0));
	EXPECT_ERRNO(EIO, pread(fd, &byte, 1, 5000000));
	self->m->handler[FUSE_READ] = NULL;
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
}

/* More data than was asked for: the daemon's write is refused, the reader gets EIO. */
static int too_long(struct mock *m, struct mock_request *req)
{
	size_t len = ((const struct fuse_read_in *)req->arg)->size + 1;
	char *data = calloc(1, len);

	mock_reply(m, req, 0, data, len);
	free(data);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(read, too_long_reply, TEST_BOUND)
{
	char byte;
	int fd;

	self->m->handler[FUSE_READ] = too_long;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_ERRNO(EIO, pread(fd, &byte, 1, 0));
	EXPECT_EQ(EINVAL, mock_wait_answered(self->m, FUSE_READ));
	self->m->handler[FUSE_READ] = NULL;
	EXPECT_CONTENT(fd, self->file, 0, FILE_SIZE);
	close(fd);
}

/* Limits: no READ above them, and READs as large as they allow. */
FIXTURE(read_limits) {
	struct mock *m;
	uint64_t file;
};

FIXTURE_VARIANT(read_limits) {
	const char *opts;
	uint32_t max_write;
	uint16_t max_pages;
	uint32_t largest;	/* bytes */
};

#define LIMITS_VARIANT(name, opts_, max_write_, max_pages_, largest_)	\
	FIXTURE_VARIANT_ADD(read_limits, name) {			\
		.opts = opts_, .max_write = max_write_, .max_pages = max_pages_, .largest = largest_ }

LIMITS_VARIANT(pages_1, "", 1 << 20, 1, 4096);
LIMITS_VARIANT(pages_3, "", 1 << 20, 3, 3 * 4096);
LIMITS_VARIANT(pages_7, "", 1 << 20, 7, 7 * 4096);
LIMITS_VARIANT(pages_32, "", 1 << 20, 32, 32 * 4096);
LIMITS_VARIANT(pages_100, "", 1 << 20, 100, 100 * 4096);
LIMITS_VARIANT(pages_256, "", 1 << 20, 256, 1 << 20);
LIMITS_VARIANT(read_4k, ",max_read=4096", 1 << 20, 256, 4096);
LIMITS_VARIANT(read_20000, ",max_read=20000", 1 << 20, 256, 16384);
LIMITS_VARIANT(read_64k, ",max_read=65536", 1 << 20, 256, 65536);
LIMITS_VARIANT(read_64k_pages_7, ",max_read=65536", 1 << 20, 7, 7 * 4096);
LIMITS_VARIANT(write_4k, "", 4096, 256, 1 << 20);
LIMITS_VARIANT(write_4k_read_128k, ",max_read=131072", 4096, 256, 131072);
LIMITS_VARIANT(write_64k_pages_64, "", 65536, 64, 64 * 4096);

FIXTURE_SETUP(read_limits)
{
	struct fuse_init_out *out;

	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	out = &self->m->init.out;
	out->max_write = variant->max_write;
	out->max_pages = variant->max_pages;
	out->max_background = UINT16_MAX;
	out->congestion_threshold = UINT16_MAX;
}

FIXTURE_TEARDOWN(read_limits)
{
	mock_destroy(self->m);
}

static void within_limits(struct __test_metadata *_metadata, struct mock *m,
			  const FIXTURE_VARIANT(read_limits) *variant)
{
	for (uint32_t i = 0; i < m->records; i++) {
		struct mock_record *record = &m->record[i];

		if (record->in.opcode != FUSE_READ)
			continue;
		ASSERT_GE(variant->largest, record->size);
		/* Pages touched, not only bytes. */
		ASSERT_GE(variant->max_pages, (record->offset + record->size + 4095) / 4096 - record->offset / 4096);
	}
}

TEST_F_TIMEOUT(read_limits, sequential, TEST_BOUND)
{
	uint32_t least = variant->largest;
	int fd;

	/* Where folios are larger than a page, a request may end at a folio border rather than fill an odd limit. */
	if (!mock_in_tree())
		least = 1U << (31 - __builtin_clz(least));
	START(self->m, variant->opts);
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, 2048));
	fd = OPEN(self);
	EXPECT_EQ(FILE_SIZE, read_on(fd));
	within_limits(_metadata, self->m, variant);
	EXPECT_LE(least, mock_max_size(self->m, FUSE_READ, self->file));
	/* Every byte was asked for once: no overlap, no gap. */
	EXPECT_EQ(FILE_SIZE, mock_sum_size(self->m, FUSE_READ, self->file));
	for (uint64_t offset = 0; offset < FILE_SIZE; offset += 524288 + 4096)
		EXPECT_EQ(1U, mock_covering(self->m, self->file, offset));
	close(fd);
}

/* Random reads of all sizes, then a mapping with huge pages advised: the limits hold for any way of asking. */
TEST_F_TIMEOUT(read_limits, any_access, TEST_BOUND)
{
	uint64_t seed = 88172645463325252ULL;
	char *map;
	int fd;

	START(self->m, variant->opts);
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, 2048));
	fd = OPEN(self);
	for (int i = 0; i < 25; i++) {
		uint64_t offset, len;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		offset = seed % FILE_SIZE;
		len = 1 + (seed >> 40) % 150000;
		if (len > FILE_SIZE - offset)
			len = FILE_SIZE - offset;
		EXPECT_CONTENT(fd, self->file, offset, len);
	}
	close(fd);
	fd = OPEN(self);	/* drops the cache */
	map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	madvise(map, FILE_SIZE, MADV_HUGEPAGE);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, map, FILE_SIZE));
	within_limits(_metadata, self->m, variant);
	munmap(map, FILE_SIZE);
	close(fd);
}

/* With no knob turned, a daemon that takes what the kernel offers gets READs of 1 MiB. */
TEST_F_TIMEOUT(read, default_window, TEST_BOUND)
{
	uint32_t expected = 1 << 20;
	int fd;

	if (KNOWN_DIFFERENCE("readahead window of 128 KiB, whatever max_pages is"))
		expected = 128 << 10;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_EQ(FILE_SIZE, read_on(fd));
	EXPECT_EQ(expected, mock_max_size(self->m, FUSE_READ, self->file));
	close(fd);
}

/* max_readahead 0 from the daemon: no readahead, so no READ beyond what was asked for. */
TEST_F_TIMEOUT(read, no_readahead, TEST_BOUND)
{
	int fd;

	self->m->init.echo_readahead = false;
	self->m->init.out.max_readahead = 0;
	START(self->m, "");
	fd = OPEN(self);
	EXPECT_CONTENT(fd, self->file, 4096, 4096);
	EXPECT_EQ(4096U, mock_sum_size(self->m, FUSE_READ, self->file));
	close(fd);
}

TEST_HARNESS_MAIN
