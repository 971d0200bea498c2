// SPDX-License-Identifier: GPL-2.0
/* ioctl(2) of files and directories: IOCTL; FIBMAP. */
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "fuse_test.h"

#define ARG(record, type) ((const type *)((record)->head + sizeof(struct fuse_in_header)))

struct big { char bytes[8000]; };

#define IOC_NONE	_IO('x', 1)
#define IOC_GIVE	_IOW('x', 2, uint64_t)
#define IOC_GET		_IOR('x', 3, uint64_t)
#define IOC_BOTH	_IOWR('x', 4, uint64_t)
#define IOC_BIG		_IOWR('x', 5, struct big)

FIXTURE(ioctl) {
	struct mock *m;
	uint64_t file;
	int fd;
};

FIXTURE_SETUP(ioctl)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 100000);
	mock_add(self->m, FUSE_ROOT_ID, "dir", S_IFDIR | 0755, 0);
}

FIXTURE_TEARDOWN(ioctl)
{
	mock_destroy(self->m);
}

#define OPEN()								\
	do {								\
		START(self->m, "");					\
		self->fd = open(mock_path(self->m, "file"), O_RDONLY);	\
		ASSERT_LE(0, self->fd);					\
	} while (0)

/* Knobs: errno, result, flags of the answer; bytes of data in it beyond those that were asked for. */
enum { ERRNO, RESULT, FLAGS, EXTRA, GIVEN };

/* The answer's data: what was given plus one, byte by byte. */
static int answer(struct mock *m, struct mock_request *req)
{
	const struct fuse_ioctl_in *in = req->arg;
	const unsigned char *given = (const void *)(in + 1);
	struct fuse_ioctl_out *out = calloc(1, sizeof(*out) + 10000);
	unsigned char *data = (void *)(out + 1);

	if (m->knob[ERRNO])
		return -(int)m->knob[ERRNO];
	m->knob[GIVEN] = req->arg_len - sizeof(*in);
	out->result = m->knob[RESULT];
	out->flags = m->knob[FLAGS];
	for (uint32_t i = 0; i < in->out_size; i++)
		data[i] = (i < in->in_size ? given[i] : 0) + 1;
	mock_reply(m, req, 0, out, sizeof(*out) + in->out_size + m->knob[EXTRA]);
	free(out);
	return MOCK_DONE;
}

TEST_F_TIMEOUT(ioctl, arguments, TEST_BOUND)
{
	const struct fuse_ioctl_in *in;
	uint64_t value = 0x1122334455667788;
	struct mock *m = self->m;

	m->handler[FUSE_IOCTL] = answer;
	m->knob[RESULT] = 42;
	OPEN();
	EXPECT_EQ(42, ioctl(self->fd, IOC_NONE, 17UL));
	in = ARG(mock_last(m, FUSE_IOCTL), struct fuse_ioctl_in);
	EXPECT_EQ((uint32_t)IOC_NONE, in->cmd);
	EXPECT_EQ(17U, in->arg);
	EXPECT_EQ(1U, in->fh);
	EXPECT_EQ(0U, in->flags);
	EXPECT_EQ(0U, in->in_size + in->out_size);
	EXPECT_EQ(42, ioctl(self->fd, IOC_GIVE, &value));
	in = ARG(mock_last(m, FUSE_IOCTL), struct fuse_ioctl_in);
	EXPECT_EQ(8U, in->in_size);
	EXPECT_EQ(0U, in->out_size);
	EXPECT_EQ((uintptr_t)&value, in->arg);
	EXPECT_EQ(0, memcmp(in + 1, &value, 8));
	EXPECT_EQ(0x1122334455667788U, value);
	EXPECT_EQ(42, ioctl(self->fd, IOC_BOTH, &value));
	EXPECT_EQ(0x1223344556677889U, value);
	EXPECT_EQ(42, ioctl(self->fd, IOC_GET, &value));
	EXPECT_EQ(0U, ARG(mock_last(m, FUSE_IOCTL), struct fuse_ioctl_in)->in_size);
	EXPECT_EQ(0x0101010101010101U, value);
}

TEST_F_TIMEOUT(ioctl, big, TEST_BOUND)
{
	struct big *big = malloc(sizeof(*big));

	self->m->handler[FUSE_IOCTL] = answer;
	OPEN();
	for (size_t i = 0; i < sizeof(*big); i++)
		big->bytes[i] = i * 7;
	EXPECT_EQ(0, ioctl(self->fd, IOC_BIG, big));
	EXPECT_EQ(sizeof(*big), self->m->knob[GIVEN]);
	for (size_t i = 0; i < sizeof(*big); i++)
		ASSERT_EQ((char)(i * 7 + 1), big->bytes[i]);
	free(big);
}

TEST_F_TIMEOUT(ioctl, errors, TEST_BOUND)
{
	struct mock *m = self->m;
	uint64_t value = 1;

	/* Nobody knows it. */
	OPEN();
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, IOC_BOTH, &value));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, IOC_BOTH, &value));
	EXPECT_EQ(2U, mock_count(m, FUSE_IOCTL));
	m->handler[FUSE_IOCTL] = answer;
	EXPECT_ERRNO(EFAULT, ioctl(self->fd, IOC_GIVE, 8UL));
	EXPECT_EQ(2U, mock_count(m, FUSE_IOCTL));
	EXPECT_ERRNO(EFAULT, ioctl(self->fd, IOC_GET, 8UL));
	EXPECT_EQ(3U, mock_count(m, FUSE_IOCTL));
	m->knob[ERRNO] = EDOM;
	EXPECT_ERRNO(EDOM, ioctl(self->fd, IOC_BOTH, &value));
	m->knob[ERRNO] = 0;
	m->knob[RESULT] = (uint32_t)-EXDEV;
	EXPECT_ERRNO(EXDEV, ioctl(self->fd, IOC_BOTH, &value));
	/* The server may not look at other memory. */
	m->knob[RESULT] = 0;
	m->knob[FLAGS] = FUSE_IOCTL_RETRY;
	EXPECT_ERRNO(EIO, ioctl(self->fd, IOC_BOTH, &value));
	m->knob[FLAGS] = 0;
	m->knob[EXTRA] = 1;
	EXPECT_ERRNO(EIO, ioctl(self->fd, IOC_BOTH, &value));
}

TEST_F_TIMEOUT(ioctl, directory, TEST_BOUND)
{
	uint64_t value = 0;
	int fd;

	self->m->handler[FUSE_IOCTL] = answer;
	OPEN();
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	EXPECT_EQ(0, ioctl(fd, IOC_GET, &value));
	EXPECT_EQ((uint32_t)FUSE_IOCTL_DIR, ARG(mock_last(self->m, FUSE_IOCTL), struct fuse_ioctl_in)->flags);
	EXPECT_EQ(0x0101010101010101U, value);
	close(fd);
}

TEST_F_TIMEOUT(ioctl, old_server_directory, TEST_BOUND)
{
	int fd;

	self->m->handler[FUSE_IOCTL] = answer;
	self->m->init.out.minor = 17;
	self->m->init.size = 24;
	OPEN();
	fd = open(mock_path(self->m, "dir"), O_RDONLY | O_DIRECTORY);
	EXPECT_ERRNO(ENOTTY, ioctl(fd, IOC_NONE, 0));
	EXPECT_EQ(0, ioctl(self->fd, IOC_NONE, 0));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_IOCTL));
	close(fd);
}

/* Where a block is on a device: nowhere. */
TEST_F_TIMEOUT(ioctl, bmap, TEST_BOUND)
{
	int block = 1;

	OPEN();
	EXPECT_EQ(0, ioctl(self->fd, FIBMAP, &block));
	EXPECT_EQ(0, block);
	EXPECT_EQ(0U, mock_count(self->m, FUSE_BMAP));
	EXPECT_EQ(0, ioctl(self->fd, FIGETBSZ, &block));
	EXPECT_EQ(4096, block);
}

TEST_HARNESS_MAIN
