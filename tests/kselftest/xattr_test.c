// SPDX-License-Identifier: GPL-2.0
/* Extended attributes: GETXATTR, LISTXATTR, sizes, hostile answers, servers without them. */
#include <sys/xattr.h>

#include "fuse_test.h"

#define XATTR_SIZE 65536
#define ARG(record, type) ((const type *)((record)->head + sizeof(struct fuse_in_header)))

FIXTURE(xattr) {
	struct mock *m;
	uint64_t file;
	const char *path;
};

FIXTURE_SETUP(xattr)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 1);
	mock_add_symlink(self->m, FUSE_ROOT_ID, "link", "file");
	self->path = mock_path(self->m, "file");
}

FIXTURE_TEARDOWN(xattr)
{
	mock_destroy(self->m);
}

/* Knobs: errno; bytes of the answer, or the size that is told; bytes of the answer that are made up. */
enum { ERRNO, SIZE, EXTRA };

/* The content of what has SIZE bytes: names of four letters for a list, counting bytes for a value. */
static void fill(struct mock *m, char *data, bool list)
{
	for (uint64_t i = 0; i < m->knob[SIZE]; i++)
		data[i] = list ? (i % 5 == 4 ? 0 : 'a' + i % 26) : i;
}

static int answer(struct mock *m, struct mock_request *req)
{
	const struct fuse_getxattr_in *in = req->arg;
	struct fuse_getxattr_out out = { .size = m->knob[SIZE] };
	char *data;

	if (m->knob[ERRNO])
		return -(int)m->knob[ERRNO];
	if (!in->size) {
		mock_reply(m, req, 0, &out, sizeof(out));
		return MOCK_DONE;
	}
	if (in->size < m->knob[SIZE] && !m->knob[EXTRA])
		return -ERANGE;
	data = calloc(1, m->knob[SIZE] + m->knob[EXTRA] + 1);
	fill(m, data, req->in->opcode == FUSE_LISTXATTR);
	mock_reply(m, req, 0, data, m->knob[SIZE] + m->knob[EXTRA]);
	free(data);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(xattr, value, TEST_BOUND)
{
	struct mock *m = self->m;
	char value[100], want[100];
	struct mock_record *last;

	m->handler[FUSE_GETXATTR] = answer;
	m->knob[SIZE] = 50;
	START(m, "");
	fill(m, want, false);
	EXPECT_EQ(50, getxattr(self->path, "user.name", NULL, 0));
	last = mock_last(m, FUSE_GETXATTR);
	EXPECT_EQ(0U, ARG(last, struct fuse_getxattr_in)->size);
	EXPECT_EQ(0, strcmp("user.name", (char *)(ARG(last, struct fuse_getxattr_in) + 1)));
	EXPECT_EQ(sizeof(struct fuse_in_header) + 8 + 10, last->in.len);
	EXPECT_EQ(50, getxattr(self->path, "user.name", value, sizeof(value)));
	EXPECT_EQ(sizeof(value), ARG(mock_last(m, FUSE_GETXATTR), struct fuse_getxattr_in)->size);
	EXPECT_EQ(0, memcmp(value, want, 50));
	EXPECT_EQ(50, getxattr(self->path, "user.name", value, 50));
	EXPECT_ERRNO(ERANGE, getxattr(self->path, "user.name", value, 49));
	m->knob[SIZE] = 0;
	EXPECT_EQ(0, getxattr(self->path, "user.empty", value, 50));
	m->knob[ERRNO] = ENODATA;
	EXPECT_ERRNO(ENODATA, getxattr(self->path, "user.none", value, 50));
	EXPECT_EQ(6U, mock_count(m, FUSE_GETXATTR));
	/* Of any kind of name, of links too. */
	m->knob[ERRNO] = 0;
	m->knob[SIZE] = 3;
	EXPECT_EQ(3, getxattr(self->path, "trusted.t", value, 50));
	EXPECT_EQ(3, getxattr(self->path, "security.s", value, 50));
	EXPECT_EQ(3, getxattr(self->path, "odd", value, 50));
	EXPECT_EQ(3, lgetxattr(mock_path(m, "link"), "trusted.t", value, 50));
	EXPECT_EQ(10U, mock_count(m, FUSE_GETXATTR));
}

TEST_F_TIMEOUT(xattr, list, TEST_BOUND)
{
	struct mock *m = self->m;
	char list[100], want[100];

	m->handler[FUSE_LISTXATTR] = answer;
	m->knob[SIZE] = 50;
	START(m, "");
	fill(m, want, true);
	EXPECT_EQ(50, listxattr(self->path, NULL, 0));
	EXPECT_EQ(50, listxattr(self->path, list, sizeof(list)));
	EXPECT_EQ(0, memcmp(list, want, 50));
	EXPECT_ERRNO(ERANGE, listxattr(self->path, list, 49));
	EXPECT_EQ(50, llistxattr(mock_path(m, "link"), list, sizeof(list)));
	m->knob[SIZE] = 0;
	EXPECT_EQ(0, listxattr(self->path, list, sizeof(list)));
	m->knob[ERRNO] = EPERM;
	EXPECT_ERRNO(EPERM, listxattr(self->path, list, sizeof(list)));
}

/* A list that is none: the last name has no end, or one is empty. */
TEST_F_TIMEOUT(xattr, bad_list, TEST_BOUND)
{
	struct mock *m = self->m;
	char list[100];

	m->handler[FUSE_LISTXATTR] = answer;
	START(m, "");
	m->knob[SIZE] = 49;
	EXPECT_ERRNO(EIO, listxattr(self->path, list, sizeof(list)));
	m->knob[SIZE] = 50;
	m->knob[EXTRA] = 1;
	EXPECT_ERRNO(EIO, listxattr(self->path, list, sizeof(list)));
}

/* More than was asked for. */
TEST_F_TIMEOUT(xattr, too_long, TEST_BOUND)
{
	struct mock *m = self->m;
	char value[100];

	m->handler[FUSE_GETXATTR] = answer;
	m->handler[FUSE_LISTXATTR] = answer;
	m->knob[SIZE] = 100;
	m->knob[EXTRA] = 1;
	START(m, "");
	EXPECT_ERRNO(EIO, getxattr(self->path, "user.name", value, sizeof(value)));
	EXPECT_EQ(EINVAL, mock_wait_answered(m, FUSE_GETXATTR));
	EXPECT_ERRNO(EIO, listxattr(self->path, value, sizeof(value)));
}

/* What the server says of sizes stays within what there can be; the largest value comes whole. */
TEST_F_TIMEOUT(xattr, largest, TEST_BOUND)
{
	struct mock *m = self->m;
	char *value = malloc(XATTR_SIZE), *want = malloc(XATTR_SIZE);

	m->handler[FUSE_GETXATTR] = answer;
	m->handler[FUSE_LISTXATTR] = answer;
	m->knob[SIZE] = XATTR_SIZE;
	START(m, "");
	fill(m, want, false);
	EXPECT_EQ(XATTR_SIZE, getxattr(self->path, "user.name", value, XATTR_SIZE));
	EXPECT_EQ(0, memcmp(value, want, XATTR_SIZE));
	m->knob[SIZE] = 0xffffffff;
	EXPECT_EQ(XATTR_SIZE, getxattr(self->path, "user.name", NULL, 0));
	EXPECT_EQ(XATTR_SIZE, listxattr(self->path, NULL, 0));
	free(value);
	free(want);
}

TEST_F_TIMEOUT(xattr, without, TEST_BOUND)
{
	struct mock *m = self->m;
	char value[100];

	START(m, "");
	for (int i = 0; i < 3; i++) {
		EXPECT_ERRNO(EOPNOTSUPP, getxattr(self->path, "user.name", value, sizeof(value)));
		EXPECT_ERRNO(EOPNOTSUPP, listxattr(self->path, value, sizeof(value)));
	}
	EXPECT_EQ(1U, mock_count(m, FUSE_GETXATTR));
	EXPECT_EQ(1U, mock_count(m, FUSE_LISTXATTR));
}

TEST_HARNESS_MAIN
