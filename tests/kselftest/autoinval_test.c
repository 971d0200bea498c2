// SPDX-License-Identifier: GPL-2.0
/* When cached data is dropped because of what the server says of a file: AUTO_INVAL_DATA, EXPLICIT_INVAL_DATA, neither. */
#include <sys/mman.h>

#include "fuse_test.h"

#define SIZE		(300 << 10)

FIXTURE(inval) {
	struct mock *m;
	uint64_t file;
};

/* knob[0]: seconds that are added to the time of the last change. */
static void changed(struct mock *m, uint64_t id, struct fuse_attr *attr)
{
	attr->mtime += m->knob[0];
}

FIXTURE_SETUP(inval)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, SIZE);
	self->m->attr_hook = changed;
	self->m->attr_valid = 0;
	self->m->open_flags = FOPEN_KEEP_CACHE;
}

FIXTURE_TEARDOWN(inval)
{
	mock_destroy(self->m);
}

/* Opens the file and reads @len bytes at @offset, which must be the mock's. */
static void read_again(struct __test_metadata *_metadata, struct mock *m, uint64_t file, off_t offset, size_t len)
{
	int fd = open(mock_path(m, "file"), O_RDONLY);

	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, file, offset, len);
	close(fd);
}

#define READ_AGAIN(offset, len)	read_again(_metadata, self->m, self->file, offset, len)
#define READS()			mock_count(self->m, FUSE_READ)
#define READ_BYTES()		mock_sum_size(self->m, FUSE_READ, self->file)

/* The cache is kept from open to open while time and size are the same, and filled once more after they changed. */
TEST_F_TIMEOUT(inval, auto_keeps_cache, TEST_BOUND)
{
	uint32_t reads;
	uint64_t bytes;

	self->m->init.out.flags |= FUSE_AUTO_INVAL_DATA;
	START(self->m, "");
	READ_AGAIN(0, SIZE);
	EXPECT_TRUE(self->m->offered.flags & FUSE_AUTO_INVAL_DATA);
	reads = READS();
	bytes = READ_BYTES();
	EXPECT_LE(SIZE, bytes);
	for (int i = 0; i < 3; i++)
		READ_AGAIN(0, SIZE);
	EXPECT_EQ(reads, READS());
	for (int i = 1; i <= 2; i++) {
		self->m->knob[0]++;
		READ_AGAIN(0, SIZE);
		READ_AGAIN(0, SIZE);
		EXPECT_EQ(i, self->m->knob[0]);
		EXPECT_EQ(bytes * (i + 1), READ_BYTES());
	}
}

/* Each cached read asks first, by the handle, if what is known does not hold; without the flag only a read at the end. */
TEST_F_TIMEOUT(inval, auto_asks, TEST_BOUND)
{
	const struct fuse_getattr_in *in;
	uint32_t before;
	int fd;

	self->m->init.out.flags |= FUSE_AUTO_INVAL_DATA;
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, 5000);
	before = mock_count(self->m, FUSE_GETATTR);
	for (int i = 1; i <= 3; i++) {
		EXPECT_CONTENT(fd, self->file, 100, 50);
		EXPECT_EQ(before + i, mock_count(self->m, FUSE_GETATTR));
	}
	in = (void *)(mock_last(self->m, FUSE_GETATTR)->head + sizeof(struct fuse_in_header));
	EXPECT_EQ(FUSE_GETATTR_FH, (int)in->getattr_flags);
	/* While they hold nothing is asked. */
	self->m->attr_valid = 3600;
	EXPECT_CONTENT(fd, self->file, 100, 50);
	before = mock_count(self->m, FUSE_GETATTR);
	for (int i = 0; i < 3; i++)
		EXPECT_CONTENT(fd, self->file, 100, 50);
	EXPECT_EQ(before, mock_count(self->m, FUSE_GETATTR));
	close(fd);
}

TEST_F_TIMEOUT(inval, neither_asks, TEST_BOUND)
{
	uint32_t before;
	int fd;

	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, 5000);
	before = mock_count(self->m, FUSE_GETATTR);
	for (int i = 0; i < 3; i++)
		EXPECT_CONTENT(fd, self->file, 100, 50);
	EXPECT_EQ(before, mock_count(self->m, FUSE_GETATTR));
	close(fd);
}

/* Without the flag another time of change drops nothing, another size drops all. */
TEST_F_TIMEOUT(inval, neither, TEST_BOUND)
{
	struct stat st;
	uint32_t reads;
	uint64_t bytes;

	START(self->m, "");
	READ_AGAIN(0, SIZE);
	reads = READS();
	bytes = READ_BYTES();
	self->m->knob[0]++;
	READ_AGAIN(0, SIZE);
	EXPECT_EQ(reads, READS());
	mock_node(self->m, self->file)->size = SIZE - 1;
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	READ_AGAIN(0, SIZE - 1);
	EXPECT_LE(bytes + SIZE - 1, READ_BYTES());
}

TEST_F_TIMEOUT(inval, auto_size, TEST_BOUND)
{
	uint64_t bytes;

	self->m->init.out.flags |= FUSE_AUTO_INVAL_DATA;
	START(self->m, "");
	READ_AGAIN(0, SIZE);
	bytes = READ_BYTES();
	mock_node(self->m, self->file)->size = SIZE + 12345;
	READ_AGAIN(0, SIZE + 12345);
	EXPECT_LE(bytes + SIZE, READ_BYTES());
}

/* EXPLICIT_INVAL_DATA: neither time nor size drop what is cached; but nothing is cached beyond the end. */
TEST_F_TIMEOUT(inval, explicit_shrinks, TEST_BOUND)
{
	struct stat st;
	uint32_t reads;
	char buf[100];
	int fd;

	self->m->init.out.flags |= FUSE_EXPLICIT_INVAL_DATA;
	START(self->m, "");
	READ_AGAIN(0, SIZE);
	EXPECT_TRUE(self->m->offered.flags & FUSE_EXPLICIT_INVAL_DATA);
	reads = READS();
	self->m->knob[0]++;
	READ_AGAIN(0, SIZE);
	mock_node(self->m, self->file)->size = SIZE / 2;
	ASSERT_EQ(0, stat(mock_path(self->m, "file"), &st));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(50, pread(fd, buf, 100, SIZE / 2 - 50));
	EXPECT_EQ(0, pread(fd, buf, 100, SIZE / 2));
	EXPECT_CONTENT(fd, self->file, 0, SIZE / 2);
	EXPECT_EQ(reads, READS());
	close(fd);
}

/* A file that grows: what was cached stays, and where its end was no zeros show. */
TEST_F_TIMEOUT(inval, explicit_grows, TEST_BOUND)
{
	bool in_tree = KNOWN_DIFFERENCE("zeros where the last page ended, until the server says to drop it");
	char buf[2000];
	int fd;

	self->m->init.out.flags |= FUSE_EXPLICIT_INVAL_DATA;
	mock_node(self->m, self->file)->size = 128 * 1024 + 1000;
	START(self->m, "");
	READ_AGAIN(0, 128 * 1024 + 1000);
	mock_node(self->m, self->file)->size = SIZE;
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	/* To the new end, so that it is asked for. */
	EXPECT_CONTENT(fd, self->file, 200 * 1024, SIZE - 200 * 1024);
	EXPECT_EQ(2000, pread(fd, buf, 2000, 128 * 1024));
	EXPECT_EQ(in_tree ? 1000 : -1, mock_mismatch(self->file, 128 * 1024, buf, 2000));
	/* The first page is as it was. */
	EXPECT_CONTENT(fd, self->file, 0, MOCK_PAGE);
	EXPECT_EQ(1U, mock_covering(self->m, self->file, 0));
	close(fd);
}

/* Both flags: the first one counts. */
TEST_F_TIMEOUT(inval, both, TEST_BOUND)
{
	uint64_t bytes;

	self->m->init.out.flags |= FUSE_AUTO_INVAL_DATA | FUSE_EXPLICIT_INVAL_DATA;
	START(self->m, "");
	READ_AGAIN(0, SIZE);
	bytes = READ_BYTES();
	self->m->knob[0]++;
	READ_AGAIN(0, SIZE);
	EXPECT_EQ(2 * bytes, READ_BYTES());
}

/* Large folios go whole: a change at the server leaves nothing of one. */
TEST_F_TIMEOUT(inval, auto_large_folios, TEST_BOUND)
{
	char *map;
	int fd;

	self->m->init.out.flags |= FUSE_AUTO_INVAL_DATA;
	mock_node(self->m, self->file)->size = 4 << 20;
	START(self->m, "");
	ASSERT_EQ(0, mock_set_readahead_kb(self->m, 1024));
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->file, 0, 4 << 20);
	map = mmap(NULL, 4 << 20, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, map, 4 << 20));
	EXPECT_EQ(4 << 20, READ_BYTES());
	self->m->knob[0]++;
	EXPECT_CONTENT(fd, self->file, 1 << 20, 10);
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, map, 4 << 20));
	EXPECT_LE(8 << 20, READ_BYTES());
	munmap(map, 4 << 20);
	close(fd);
}

TEST_HARNESS_MAIN
