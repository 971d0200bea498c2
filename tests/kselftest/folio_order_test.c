// SPDX-License-Identifier: GPL-2.0
/*
 * The order of cached folios: ilog2(min(min(max_read, max_write) / 4096, max_pages)), never above, and reached where
 * readahead allows. The kernel's own tracepoint counts.
 */
#include <sys/mman.h>

#include "fuse_test.h"

#define FILE_SIZE	(6U << 20)
#define LARGE_FILE_SIZE	(16U << 20)	/* readahead takes this long to come to orders above 6 */
#define READAHEAD_KB	4096
#define HUGE		(2U << 20)

FIXTURE(order) {
	struct mock *m;
	uint64_t file, size;
	int old_limit;
};

FIXTURE_VARIANT(order) {
	const char *opts;
	uint32_t max_write;
	uint32_t max_pages;	/* 0: without FUSE_MAX_PAGES, which means 32 */
	unsigned int expected;
};

#define ORDER_VARIANT(name, opts_, max_write_, max_pages_, expected_)	\
	FIXTURE_VARIANT_ADD(order, name) {				\
		.opts = opts_, .max_write = max_write_, .max_pages = max_pages_, .expected = expected_ }

ORDER_VARIANT(max_pages_1, "", 8 << 20, 1, 0);
ORDER_VARIANT(max_pages_7, "", 8 << 20, 7, 2);
ORDER_VARIANT(max_pages_32, "", 8 << 20, 32, 5);
ORDER_VARIANT(max_pages_256, "", 8 << 20, 256, 8);
ORDER_VARIANT(max_pages_1024, "", 8 << 20, 1024, 10);
ORDER_VARIANT(max_pages_absent, "", 8 << 20, 0, 5);
ORDER_VARIANT(max_read_floor, ",max_read=4096", 8 << 20, 256, 0);
ORDER_VARIANT(max_read_below_floor, ",max_read=1", 8 << 20, 256, 0);
ORDER_VARIANT(max_read_odd, ",max_read=20000", 8 << 20, 256, 2);
ORDER_VARIANT(max_read_128k, ",max_read=131072", 8 << 20, 256, 5);
ORDER_VARIANT(max_write_floor, "", 4096, 256, 0);
ORDER_VARIANT(max_write_zero, "", 0, 256, 0);
ORDER_VARIANT(max_write_odd, "", 70000, 256, 4);
ORDER_VARIANT(smallest_of_three, ",max_read=262144", 65536, 64, 4);

FIXTURE_SETUP(order)
{
	struct fuse_init_out *out;

	self->old_limit = -1;
	SETUP_MOCK(self->m);
	self->size = variant->expected > 5 ? LARGE_FILE_SIZE : FILE_SIZE;
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, self->size);
	out = &self->m->init.out;
	out->max_write = variant->max_write;
	out->max_pages = variant->max_pages;
	/* A congested client gives up readahead pages and adds them again later: keep the counts exact. */
	out->max_background = UINT16_MAX;
	out->congestion_threshold = UINT16_MAX;
	if (!variant->max_pages)
		out->flags &= ~FUSE_MAX_PAGES;
	if (variant->max_pages > 256) {
		self->old_limit = mock_set_max_pages_limit(variant->max_pages);
		if (self->old_limit < 0)
			SKIP(return, "no max_pages_limit to raise above 256");
	}
}

FIXTURE_TEARDOWN(order)
{
	if (self->old_limit > 0)
		mock_set_max_pages_limit(self->old_limit);
	mock_destroy(self->m);
}

static unsigned int expected_order(unsigned int expected)
{
	unsigned int highest = mock_max_folio_order();

	if (KNOWN_DIFFERENCE("no large folios: order 0 only"))
		return 0;
	return expected < highest ? expected : highest;
}

#define TRACE_START(mock)						\
	do {								\
		const char *why_ = mock_trace_start(mock);		\
									\
		if (why_)						\
			SKIP(return, "%s", why_);			\
	} while (0)

/* Reads with read(2) from start to end, as cat does. */
TEST_F_TIMEOUT(order, sequential_read, TEST_BOUND)
{
	unsigned int expected = expected_order(variant->expected);
	struct mock_orders orders;
	char *buf = malloc(65536);
	uint64_t offset = 0;
	ssize_t n;
	int fd;

	START(self->m, variant->opts);
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, READAHEAD_KB));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	TRACE_START(self->m);
	while ((n = read(fd, buf, 65536)) > 0) {
		ASSERT_EQ(-1, mock_mismatch(self->file, offset, buf, n));
		offset += n;
	}
	ASSERT_EQ(0, mock_trace_stop(self->m, &orders));
	EXPECT_EQ(self->size, offset);
	EXPECT_EQ(expected, orders.highest);
	close(fd);
	free(buf);
}

/* A mapping that asks for huge pages: fault-time readahead takes the largest folio that it is let have. */
TEST_F_TIMEOUT(order, huge_page_mapping, TEST_BOUND)
{
	unsigned int expected = expected_order(variant->expected);
	struct mock_orders orders;
	char *map;
	int fd;

	START(self->m, variant->opts);
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	map = mmap(NULL, self->size, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	if (madvise(map, self->size, MADV_HUGEPAGE))
		SKIP(return, "MADV_HUGEPAGE: %s", strerror(errno));
	TRACE_START(self->m);
	for (uint64_t offset = 0; offset < self->size; offset += HUGE)
		ASSERT_EQ(-1, mock_mismatch(self->file, offset + 5000, map + offset + 5000, 100));
	ASSERT_EQ(0, mock_trace_stop(self->m, &orders));
	EXPECT_EQ(expected, orders.highest);
	munmap(map, self->size);
	close(fd);
}

/* The sum over orders is the file, up to the page that holds its odd end: nothing is cached twice, nothing beyond. */
TEST_F_TIMEOUT(order, every_page_once, TEST_BOUND)
{
	unsigned int expected = expected_order(variant->expected);
	struct mock_orders orders;
	unsigned long pages = 0;
	int fd;

	mock_node(self->m, self->file)->size = self->size - 12345;
	START(self->m, variant->opts);
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, READAHEAD_KB));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	TRACE_START(self->m);
	EXPECT_CONTENT(fd, self->file, 0, self->size - 12345);
	ASSERT_EQ(0, mock_trace_stop(self->m, &orders));
	for (int order = 0; order < 16; order++)
		pages += orders.folios[order] << order;
	EXPECT_EQ((self->size - 12345 + MOCK_PAGE - 1) / MOCK_PAGE, pages);
	EXPECT_GE(expected, orders.highest);
	close(fd);
}

/* Roots that are regular files are made before INIT is answered, when no limit is known: order 0. */
FIXTURE(order_root) {
	struct mock *m;
};

FIXTURE_SETUP(order_root)
{
	struct mock_node *root;

	SETUP_MOCK(self->m);
	root = mock_node(self->m, FUSE_ROOT_ID);
	root->mode = S_IFREG | 0644;
	root->size = FILE_SIZE;
	/* A regular file can be mounted on a regular file only. */
	rmdir(self->m->dir);
	close(open(self->m->dir, O_CREAT | O_WRONLY, 0600));
}

FIXTURE_TEARDOWN(order_root)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(order_root, regular_file, TEST_BOUND)
{
	struct mock_orders orders;
	int fd;

	START(self->m, "");
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, READAHEAD_KB));
	fd = open(self->m->dir, O_RDONLY);
	ASSERT_LE(0, fd);
	TRACE_START(self->m);
	EXPECT_CONTENT(fd, FUSE_ROOT_ID, 0, FILE_SIZE);
	ASSERT_EQ(0, mock_trace_stop(self->m, &orders));
	EXPECT_EQ(0, orders.highest);
	EXPECT_EQ(FILE_SIZE / MOCK_PAGE, orders.folios[0]);
	close(fd);
}

TEST_HARNESS_MAIN
