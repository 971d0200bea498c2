// SPDX-License-Identifier: GPL-2.0
/* Names: how long the server's word holds, what is made of another word, and what can be no name or node. */
#include "fuse_test.h"

FIXTURE(lookup) {
	struct mock *m;
	uint64_t file, other, a, b, c, deep;
};

FIXTURE_SETUP(lookup)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10000);
	self->other = mock_add(self->m, FUSE_ROOT_ID, "other", S_IFREG | 0644, 222);
	self->a = mock_add(self->m, FUSE_ROOT_ID, "a", S_IFDIR | 0755, 0);
	self->b = mock_add(self->m, self->a, "b", S_IFDIR | 0755, 0);
	self->c = mock_add(self->m, self->b, "c", S_IFDIR | 0755, 0);
	self->deep = mock_add(self->m, self->c, "deep", S_IFREG | 0644, 3333);
}

FIXTURE_TEARDOWN(lookup)
{
	mock_destroy(self->m);
}

#define LOOKUPS()	mock_count(self->m, FUSE_LOOKUP)

/* The node that a name stands for. */
static uint64_t node_of(struct mock *m, const char *name)
{
	struct stat st;

	return stat(mock_path(m, name), &st) ? 0 : st.st_ino;
}

static void swap_names(struct mock *m, uint64_t a, uint64_t b)
{
	char name[sizeof(m->node[0].name)];

	memcpy(name, mock_node(m, a)->name, sizeof(name));
	memcpy(mock_node(m, a)->name, mock_node(m, b)->name, sizeof(name));
	memcpy(mock_node(m, b)->name, name, sizeof(name));
}

static bool all_forgotten(struct mock *m, uint64_t unused)
{
	mock_drop_caches();
	return !mock_owed(m);
}

/* Each lookup that the server counted is given back, once nothing is in use any more. */
static void expect_forgotten(struct __test_metadata *_metadata, struct mock *m)
{
	EXPECT_TRUE(mock_wait(all_forgotten, m, 0)) {
		TH_LOG("%llu lookups are owed", (unsigned long long)mock_owed(m));
	}
}

/* That a name is not there: ENOENT says nothing of for how long, an entry without node does. */
TEST_F_TIMEOUT(lookup, negative, TEST_BOUND)
{
	START(self->m, "");
	for (int i = 1; i <= 3; i++) {
		EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "absent"), F_OK));
		EXPECT_EQ(i, LOOKUPS());
	}
	self->m->negative_valid = 3600;
	for (int i = 0; i < 5; i++)
		EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "missing"), F_OK));
	EXPECT_EQ(4U, LOOKUPS());
	/* Someone makes it meanwhile: not seen. */
	mock_add(self->m, FUSE_ROOT_ID, "missing", S_IFREG | 0644, 0);
	EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "missing"), F_OK));
	EXPECT_EQ(4U, LOOKUPS());
	/* Over: looked up as if for the first time. */
	self->m->negative_valid = 1;
	EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "late"), F_OK));
	mock_add(self->m, FUSE_ROOT_ID, "late", S_IFREG | 0644, 0);
	usleep(1300000);
	EXPECT_LT(0, node_of(self->m, "late"));
	EXPECT_EQ(6U, LOOKUPS());
	EXPECT_LT(0, node_of(self->m, "late"));
	EXPECT_EQ(6U, LOOKUPS());
}

/* No validity: each walk asks, finds the same inode, and owes one lookup more. */
TEST_F_TIMEOUT(lookup, no_validity, TEST_BOUND)
{
	self->m->entry_valid = 0;
	START(self->m, "");
	for (uint64_t i = 1; i <= 5; i++) {
		EXPECT_EQ(self->file, node_of(self->m, "file"));
		EXPECT_EQ(i, LOOKUPS());
		EXPECT_EQ(i, mock_owed(self->m));
	}
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->file));
	expect_forgotten(_metadata, self->m);
}

/* Name and attributes have times of their own; a lookup brings both. */
TEST_F_TIMEOUT(lookup, separate_validity, TEST_BOUND)
{
	self->m->attr_valid = 0;
	START(self->m, "");
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(1U, LOOKUPS());
	EXPECT_EQ(3U, mock_count_node(self->m, FUSE_GETATTR, self->file));
	self->m->entry_valid = 1;
	self->m->attr_valid = 3600;
	EXPECT_EQ(self->other, node_of(self->m, "other"));
	EXPECT_EQ(2U, LOOKUPS());
	mock_node(self->m, self->other)->size = 223;
	usleep(1300000);
	EXPECT_EQ(self->other, node_of(self->m, "other"));
	EXPECT_EQ(3U, LOOKUPS());
	EXPECT_EQ(0U, mock_count_node(self->m, FUSE_GETATTR, self->other));
	expect_forgotten(_metadata, self->m);
}

/* A long way that is known costs nothing; where one step does not hold, that one is asked for. */
static int lookup_in_the_middle(struct mock *m, struct mock_request *req)
{
	m->entry_valid = strcmp(req->arg, "b") ? 3600 : m->knob[0];
	return MOCK_DEFAULT;
}

TEST_F_TIMEOUT(lookup, long_way, TEST_BOUND)
{
	self->m->handler[FUSE_LOOKUP] = lookup_in_the_middle;
	self->m->knob[0] = 3600;
	START(self->m, "");
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(self->deep, node_of(self->m, "a/b/c/deep"));
	EXPECT_EQ(4U, LOOKUPS());
	mock_drop_caches();
	ASSERT_TRUE(mock_wait(all_forgotten, self->m, 0));
	self->m->knob[0] = 0;
	ASSERT_EQ(self->deep, node_of(self->m, "a/b/c/deep"));
	EXPECT_EQ(8U, LOOKUPS());
	for (int i = 1; i <= 5; i++) {
		ASSERT_EQ(self->deep, node_of(self->m, "a/b/c/deep"));
		EXPECT_EQ(8 + i, LOOKUPS());
	}
	EXPECT_EQ(self->a, mock_last(self->m, FUSE_LOOKUP)->in.nodeid);
}

/* The server says nothing when it gives a name to another node: the old one is seen until its time is over. */
TEST_F_TIMEOUT(lookup, stale_until_over, TEST_BOUND)
{
	START(self->m, "");
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	swap_names(self->m, self->file, self->other);
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(1U, LOOKUPS());
}

/* Another node by the same name: the old one stays for who has it open. Both lookups of it are given back. */
TEST_F_TIMEOUT(lookup, other_node, TEST_BOUND)
{
	int fd;

	self->m->entry_valid = 0;
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	swap_names(self->m, self->file, self->other);
	EXPECT_EQ(self->other, node_of(self->m, "file"));
	/* One to find that it changed, one to look it up. */
	EXPECT_EQ(3U, LOOKUPS());
	EXPECT_EQ(2U, mock_node(self->m, self->other)->lookups);
	EXPECT_CONTENT(fd, self->file, 0, 10000);
	EXPECT_EQ(self->file, node_of(self->m, "other"));
	close(fd);
	expect_forgotten(_metadata, self->m);
}

/* A node ID that is used again for another file: the old inode is bad, the new one is not. */
static void reused(struct __test_metadata *_metadata, struct mock *m, uint64_t file)
{
	char buf[10];
	struct stat st;
	int fd = open(mock_path(m, "file"), O_RDONLY);

	ASSERT_LE(0, fd);
	if (m->knob[0])
		mock_node(m, file)->mode = m->knob[0];
	else
		mock_node(m, file)->generation++;
	ASSERT_EQ(0, lstat(mock_path(m, "file"), &st));
	EXPECT_EQ(mock_node(m, file)->mode, st.st_mode);
	EXPECT_ERRNO(EIO, fstat(fd, &st));
	EXPECT_ERRNO(EIO, read(fd, buf, sizeof(buf)));
	EXPECT_ERRNO(EIO, close(fd));
	ASSERT_EQ(0, lstat(mock_path(m, "file"), &st));
	expect_forgotten(_metadata, m);
}

TEST_F_TIMEOUT(lookup, generation_changes, TEST_BOUND)
{
	self->m->entry_valid = 0;
	START(self->m, "");
	reused(_metadata, self->m, self->file);
}

TEST_F_TIMEOUT(lookup, type_changes, TEST_BOUND)
{
	self->m->entry_valid = 0;
	self->m->knob[0] = S_IFDIR | 0755;
	START(self->m, "");
	reused(_metadata, self->m, self->file);
}

/* Generations are told apart by their low half, as inodes keep no more. */
TEST_F_TIMEOUT(lookup, generation_high_half, TEST_BOUND)
{
	struct stat st;
	int fd;

	self->m->entry_valid = 0;
	START(self->m, "");
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd);
	mock_node(self->m, self->file)->generation += 1ULL << 32;
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(0, fstat(fd, &st));
	close(fd);
}

/* What the server answers when it is asked again: an error of memory or a signal ends the walk, others start it anew. */
static int fail_again(struct mock *m, struct mock_request *req)
{
	return m->knob[0] ? -(int)m->knob[0] : MOCK_DEFAULT;
}

TEST_F_TIMEOUT(lookup, revalidate_error, TEST_BOUND)
{
	static const struct { int error; uint32_t asked; } answer[] = {
		{ ENOMEM, 1 }, { EINTR, 1 }, { ENOENT, 2 }, { EIO, 2 }, { EACCES, 2 }, { EXDEV, 2 },
	};

	self->m->handler[FUSE_LOOKUP] = fail_again;
	self->m->entry_valid = 0;
	START(self->m, "");
	for (size_t i = 0; i < ARRAY_SIZE(answer); i++) {
		uint32_t before;

		self->m->knob[0] = 0;
		EXPECT_EQ(self->file, node_of(self->m, "file"));
		before = LOOKUPS();
		self->m->knob[0] = answer[i].error;
		EXPECT_ERRNO(answer[i].error, access(mock_path(self->m, "file"), F_OK));
		EXPECT_EQ(before + answer[i].asked, LOOKUPS());
	}
	self->m->knob[0] = 0;
	expect_forgotten(_metadata, self->m);
}

/* An entry without a node, where there was one: the name is gone. */
TEST_F_TIMEOUT(lookup, revalidate_negative, TEST_BOUND)
{
	self->m->entry_valid = 0;
	self->m->negative_valid = 3600;
	START(self->m, "");
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	mock_node(self->m, self->file)->name[0] = 'g';
	EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "file"), F_OK));
	EXPECT_EQ(3U, LOOKUPS());
	EXPECT_ERRNO(ENOENT, access(mock_path(self->m, "file"), F_OK));
	EXPECT_EQ(3U, LOOKUPS());
	EXPECT_EQ(self->file, node_of(self->m, "gile"));
}

/* Entries that can't be. */
enum { NODE = 1, MODE, SIZE };

static int bad_entry(struct mock *m, struct mock_request *req)
{
	uint64_t id = mock_find(m, req->in->nodeid, req->arg);
	struct fuse_entry_out out;

	if (!m->knob[NODE] && !m->knob[MODE] && !m->knob[SIZE])
		return MOCK_DEFAULT;
	mock_entry(m, id, &out);
	if (m->knob[NODE])
		out.nodeid = m->knob[NODE];
	if (m->knob[MODE])
		out.attr.mode = m->knob[MODE];
	if (m->knob[SIZE])
		out.attr.size = m->knob[SIZE];
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

TEST_F_TIMEOUT(lookup, bad_entries, TEST_BOUND)
{
	static const struct { int what; uint64_t value; } bad[] = {
		{ NODE, FUSE_ROOT_ID }, { MODE, 0644 }, { MODE, 0170644 }, { MODE, 0030644 }, { SIZE, 1ULL << 63 },
		{ SIZE, UINT64_MAX },
	};

	self->m->handler[FUSE_LOOKUP] = bad_entry;
	self->m->entry_valid = 0;
	START(self->m, "");
	/* New names, and those that were good before. */
	for (size_t i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
		if (i >= ARRAY_SIZE(bad))
			EXPECT_EQ(self->a, node_of(self->m, "a"));
		self->m->knob[bad[i % ARRAY_SIZE(bad)].what] = bad[i % ARRAY_SIZE(bad)].value;
		EXPECT_ERRNO(EIO, access(mock_path(self->m, "a"), F_OK));
		memset(self->m->knob, 0, sizeof(self->m->knob));
	}
	/* The root is well. */
	EXPECT_CALL(0, self->m, mock_call_stat, self->m->dir);
	EXPECT_EQ(self->file, node_of(self->m, "file"));
}

/* The longest name that goes to the server depends on what a request can carry. */
static void long_name(struct __test_metadata *_metadata, struct mock *m, size_t longest)
{
	static char name[4096];

	START(m, "");
	EXPECT_CALL(0, m, mock_call_stat, m->dir);
	ASSERT_EQ(0, chdir(m->dir));
	memset(name, 'n', longest);
	EXPECT_ERRNO(ENOENT, access(name, F_OK));
	EXPECT_EQ(1U, mock_count(m, FUSE_LOOKUP));
	EXPECT_EQ(sizeof(struct fuse_in_header) + longest + 1, mock_last(m, FUSE_LOOKUP)->in.len);
	if (longest < 4095) {
		name[longest] = 'n';
		EXPECT_ERRNO(ENAMETOOLONG, access(name, F_OK));
		EXPECT_EQ(1U, mock_count(m, FUSE_LOOKUP));
	}
	ASSERT_EQ(0, chdir("/"));
}

TEST_F_TIMEOUT(lookup, long_name_one_page, TEST_BOUND)
{
	self->m->init.out.flags &= ~FUSE_MAX_PAGES;
	long_name(_metadata, self->m, 1024);
}

TEST_F_TIMEOUT(lookup, long_name_pages, TEST_BOUND)
{
	long_name(_metadata, self->m, 4095);
}

/* A server that has lost a node says ESTALE: the walk is done once more, with every name looked up. */
static int stale_answer(struct mock *m, struct mock_request *req)
{
	return req->in->nodeid == m->knob[0] ? -ESTALE : MOCK_DEFAULT;
}

TEST_F_TIMEOUT(lookup, stale_open, TEST_BOUND)
{
	int fd;

	self->m->handler[FUSE_OPEN] = stale_answer;
	START(self->m, "");
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	swap_names(self->m, self->file, self->other);
	self->m->knob[0] = self->file;
	fd = open(mock_path(self->m, "file"), O_RDONLY);
	ASSERT_LE(0, fd) {
		TH_LOG("%s", strerror(errno));
	}
	EXPECT_CONTENT(fd, self->other, 0, 222);
	EXPECT_EQ(2U, mock_count(self->m, FUSE_OPEN));
	EXPECT_EQ(3U, LOOKUPS());
	close(fd);
	/* Once, not for ever. */
	self->m->knob[0] = self->other;
	EXPECT_ERRNO(ESTALE, open(mock_path(self->m, "file"), O_RDONLY));
	EXPECT_EQ(4U, mock_count(self->m, FUSE_OPEN));
}

TEST_F_TIMEOUT(lookup, stale_stat, TEST_BOUND)
{
	self->m->handler[FUSE_GETATTR] = stale_answer;
	self->m->attr_valid = 0;
	START(self->m, "");
	EXPECT_EQ(self->deep, node_of(self->m, "a/b/c/deep"));
	EXPECT_EQ(4U, LOOKUPS());
	self->m->knob[0] = self->deep;
	mock_node(self->m, self->deep)->name[0] = 'x';
	self->deep = mock_add(self->m, self->c, "deep", S_IFREG | 0600, 5);
	EXPECT_EQ(self->deep, node_of(self->m, "a/b/c/deep"));
	EXPECT_EQ(9U, LOOKUPS());
}

/* Where a name is about to be made, no cached word will do. */
TEST_F_TIMEOUT(lookup, exclusive, TEST_BOUND)
{
	START(self->m, "");
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(-1, mkdir(mock_path(self->m, "file"), 0755));
	EXPECT_TRUE(errno == EEXIST || errno == EROFS);
	EXPECT_EQ(2U, LOOKUPS());
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(2U, LOOKUPS());
}

/* The GETATTR of a node that is gone: the error is the caller's, the name stays until its time is over. */
TEST_F_TIMEOUT(lookup, node_gone, TEST_BOUND)
{
	self->m->handler[FUSE_GETATTR] = fail_again;
	self->m->attr_valid = 0;
	START(self->m, "");
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	self->m->knob[0] = ENOENT;
	EXPECT_EQ(0, node_of(self->m, "file"));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(1U, LOOKUPS());
	self->m->knob[0] = 0;
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(1U, LOOKUPS());
}

/* One LOOKUP at a time in a folder, unless the server takes more; the same name is asked for once either way. */
static int hold_lookup(struct mock *m, struct mock_request *req)
{
	return MOCK_HOLD;
}

static void parallel(struct __test_metadata *_metadata, struct mock *m, uint32_t expected)
{
	struct mock_call *call[3];

	m->handler[FUSE_LOOKUP] = hold_lookup;
	START(m, "");
	EXPECT_CALL(0, m, mock_call_stat, m->dir);
	call[0] = mock_call(m, mock_call_stat, mock_path(m, "file"));
	call[1] = mock_call(m, mock_call_stat, mock_path(m, "other"));
	call[2] = mock_call(m, mock_call_stat, mock_path(m, "file"));
	ASSERT_TRUE(mock_wait_held(m, expected));
	usleep(200000);		/* for one more to come that must not */
	EXPECT_EQ(expected, mock_count(m, FUSE_LOOKUP));
	m->handler[FUSE_LOOKUP] = NULL;
	mock_release(m);
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(mock_call_done(call[i]));
		EXPECT_EQ(0, call[i]->error);
	}
	EXPECT_EQ(2U, mock_count(m, FUSE_LOOKUP));
}

TEST_F_TIMEOUT(lookup, parallel, TEST_BOUND)
{
	parallel(_metadata, self->m, 2);
}

TEST_F_TIMEOUT(lookup, one_by_one, TEST_BOUND)
{
	self->m->init.out.flags &= ~FUSE_PARALLEL_DIROPS;
	parallel(_metadata, self->m, 1);
}

/* That a name still holds is asked for in parallel whatever the server takes. */
TEST_F_TIMEOUT(lookup, revalidate_in_parallel, TEST_BOUND)
{
	struct mock_call *call[2];

	self->m->init.out.flags &= ~FUSE_PARALLEL_DIROPS;
	self->m->entry_valid = 0;
	START(self->m, "");
	EXPECT_EQ(self->file, node_of(self->m, "file"));
	EXPECT_EQ(self->other, node_of(self->m, "other"));
	self->m->handler[FUSE_LOOKUP] = hold_lookup;
	call[0] = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	call[1] = mock_call(self->m, mock_call_stat, mock_path(self->m, "other"));
	ASSERT_TRUE(mock_wait_held(self->m, 2));
	self->m->handler[FUSE_LOOKUP] = NULL;
	mock_release(self->m);
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(mock_call_done(call[i]));
		EXPECT_EQ(0, call[i]->error);
	}
}

TEST_HARNESS_MAIN
