// SPDX-License-Identifier: GPL-2.0
/*
 * splice(2) to and from the device: requests through a pipe, answers whose payload is in pages of a file or of the
 * daemon. The test itself is the daemon, except where many read at a time.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "fuse_test.h"

#define FILE_SIZE	300000		/* ends within a page */
#define PIPE_SIZE	(2 << 20)	/* holds the largest answer, a page a buffer */

/* Where the pages of a payload come from. */
enum source {
	COPIED,		/* write(2) */
	USER,		/* vmsplice(2) */
	GIFT,		/* vmsplice(2) with SPLICE_F_GIFT */
	PAGE_CACHE,	/* splice(2) from a file */
	TEED,		/* the same, and a second pipe has them too */
};

FIXTURE(splice) {
	struct mock *m;
	uint64_t file;
	int pipe[2];
};

FIXTURE_SETUP(splice)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->m->knob[0] = self->file;
	ASSERT_EQ(0, pipe(self->pipe));
	ASSERT_LE(PIPE_SIZE, fcntl(self->pipe[0], F_SETPIPE_SZ, PIPE_SIZE));
}

FIXTURE_TEARDOWN(splice)
{
	close(self->pipe[0]);
	close(self->pipe[1]);
	mock_destroy(self->m);
}

static int waiting(int pipe)
{
	int bytes = -1;

	ioctl(pipe, FIONREAD, &bytes);
	return bytes;
}

/* A file of its own with what the mock serves of @id, behind @shift bytes. */
static int backing_file(uint64_t id, size_t size, size_t shift)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	char *data = malloc(size);

	mock_fill(id, 0, data, size);
	if (fd >= 0 && (pwrite(fd, data, size, shift) != (ssize_t)size || fsync(fd)))
		return -1;
	free(data);
	return fd;
}

/* Whoever calls into the mount: reads the file, and compares. */
static long call_verify(struct mock *m, const void *path)
{
	static char buf[1 << 20];
	long total = 0, n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (mock_mismatch(m->knob[0], total, buf, n) >= 0)
			break;
		total += n;
	}
	if (n > 0)
		errno = EBADMSG;
	close(fd);
	return n ? -1 : total;
}

/* Puts an answer of @len bytes from @offset of the file into the pipe. Daemon processes have copies of these. */
static int pipe_end[2], tee_end[2], backing = -1;
static unsigned int splice_flags;
static size_t shift;	/* the data begins so far behind the begin of a page */
static enum source source;

static int fill_pipe(uint64_t unique, uint64_t id, loff_t offset, size_t len)
{
	static char *page;
	struct fuse_out_header out = { .len = sizeof(out) + len, .unique = unique };
	struct iovec iov;
	size_t done = 0;
	ssize_t n = 0;

	if (write(pipe_end[1], &out, sizeof(out)) != sizeof(out))
		return -1;
	if (source <= GIFT) {
		/* What was spliced before may still be in use: each time other memory. */
		page = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + shift;
		mock_fill(id, offset, page, len);
	}
	offset += shift;
	for (; done < len; done += n) {
		iov = (struct iovec){ page + done, len - done };
		if (source == COPIED)
			n = write(pipe_end[1], iov.iov_base, iov.iov_len);
		else if (source <= GIFT)
			n = vmsplice(pipe_end[1], &iov, 1, source == GIFT ? SPLICE_F_GIFT : 0);
		else
			n = splice(backing, &offset, pipe_end[1], NULL, len - done, splice_flags);
		if (n <= 0)
			return -1;
	}
	if (source == TEED && tee(pipe_end[0], tee_end[1], PIPE_SIZE, SPLICE_F_NONBLOCK) < 0)
		return -1;
	return 0;
}

/* Moves what @fill_pipe() has put there to the device. */
static int answer(struct mock_request *req, size_t len)
{
	struct mock_record *record = req->record;
	ssize_t n = splice(pipe_end[0], NULL, mock_dev, NULL, sizeof(struct fuse_out_header) + len, splice_flags);

	record->payload = len;
	record->write_error = n < 0 ? errno : 0;
	__atomic_store_n(&record->answered, true, __ATOMIC_RELEASE);
	return n == (ssize_t)(sizeof(struct fuse_out_header) + len) ? 0 : -1;
}

static size_t read_len(struct mock *m, const struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	uint64_t size = mock_node(m, req->in->nodeid)->size;

	return in->offset >= size ? 0 : in->offset + in->size > size ? size - in->offset : in->size;
}

static int spliced_read(struct mock *m, struct mock_request *req)
{
	const struct fuse_read_in *in = req->arg;
	size_t len = read_len(m, req);
	char drain[65536];

	if (fill_pipe(req->in->unique, req->in->nodeid, in->offset, len))
		return -EIO;
	answer(req, len);
	while (tee_end[0] > 0 && waiting(tee_end[0]) > 0 && read(tee_end[0], drain, sizeof(drain)) > 0)
		;
	return MOCK_DONE;
}

/* Mounts, and takes the READ of somebody who reads the file. */
static struct mock_call *read_taken(struct __test_metadata *_metadata, struct mock *m, struct mock_request *req)
{
	struct mock_call *call;

	mount_ready(_metadata, m);
	call = mock_call(m, call_verify, mock_path(m, "file"));
	ASSERT_EQ(0, mock_take_until(m, FUSE_READ, req));
	return call;
}

static void use_pipe(int *fd, enum source from, unsigned int flags)
{
	pipe_end[0] = fd[0];
	pipe_end[1] = fd[1];
	source = from;
	splice_flags = flags;
}

/* INIT says so, and libfuse splices only then. */
TEST_F_TIMEOUT(splice, offered, TEST_BOUND)
{
	uint32_t flags = FUSE_SPLICE_READ | FUSE_SPLICE_WRITE | FUSE_SPLICE_MOVE;

	mount_ready(_metadata, self->m);
	EXPECT_EQ(flags, self->m->offered.flags & flags);
}

/* Requests */

TEST_F_TIMEOUT(splice, request, TEST_BOUND)
{
	struct fuse_in_header *in;
	struct mock_call *call;
	int n;

	mount_ready(_metadata, self->m);
	in = self->m->buf;
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "none"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	EXPECT_ERRNO(EINVAL, splice(mock_dev, NULL, self->pipe[1], NULL, FUSE_MIN_READ_BUFFER, 0));
	n = splice(mock_dev, NULL, self->pipe[1], NULL, self->m->buf_size, 0);
	EXPECT_EQ(sizeof(*in) + 5, n);
	EXPECT_EQ(n, waiting(self->pipe[0]));
	ASSERT_EQ(n, read(self->pipe[0], in, self->m->buf_size));
	EXPECT_EQ(n, in->len);
	EXPECT_EQ(FUSE_LOOKUP, in->opcode);
	EXPECT_STREQ("none", (char *)(in + 1));
	EXPECT_EQ(16, mock_write_raw(mock_dev, in->unique, 16, -ENOENT, NULL, 0));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(ENOENT, call->error);
	EXPECT_ERRNO(EAGAIN, splice(mock_dev, NULL, self->pipe[1], NULL, self->m->buf_size, 0));
	umount2(self->m->dir, MNT_FORCE);
	EXPECT_ERRNO(ENODEV, splice(mock_dev, NULL, self->pipe[1], NULL, self->m->buf_size, 0));
	EXPECT_EQ(0, waiting(self->pipe[0]));
}

/* A pipe that does not hold the largest request is as bad as such a buffer. */
TEST_F_TIMEOUT(splice, small_pipe, TEST_BOUND)
{
	mount_ready(_metadata, self->m);
	ASSERT_EQ((int)MOCK_PAGE, fcntl(self->pipe[0], F_SETPIPE_SZ, MOCK_PAGE));
	EXPECT_ERRNO(EINVAL, splice(mock_dev, NULL, self->pipe[1], NULL, self->m->buf_size, 0));
}

/* Answers */

TEST_F_TIMEOUT(splice, before_mount, TEST_BOUND)
{
	int fd = mock_open_device();

	ASSERT_LE(0, fd);
	ASSERT_EQ(16, write(self->pipe[1], "0123456789abcdef", 16));
	EXPECT_ERRNO(EPERM, splice(self->pipe[0], NULL, fd, NULL, 16, 0));
	EXPECT_EQ(16, waiting(self->pipe[0]));
	EXPECT_ERRNO(EPERM, splice(fd, NULL, self->pipe[1], NULL, 1 << 20, 0));
	close(fd);
}

/* With fewer bytes in the pipe than asked for nothing happens, also to the pipe. */
TEST_F_TIMEOUT(splice, short_pipe, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = read_taken(_metadata, self->m, &req);
	size_t len = read_len(self->m, &req);

	use_pipe(self->pipe, USER, 0);
	EXPECT_ERRNO(EINVAL, splice(self->pipe[0], NULL, mock_dev, NULL, 16, 0));
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, len));
	EXPECT_ERRNO(EINVAL, splice(self->pipe[0], NULL, mock_dev, NULL, 16 + len + 1, 0));
	EXPECT_EQ(16 + len, waiting(self->pipe[0]));
	EXPECT_EQ(0, answer(&req, len));
	EXPECT_EQ(0, waiting(self->pipe[0]));
	self->m->handler[FUSE_READ] = spliced_read;
	EXPECT_EQ(0, served(_metadata, self->m, call));
	EXPECT_EQ(FILE_SIZE, call->ret);
}

/* What follows the answer stays in the pipe, though it is in the same page. */
TEST_F_TIMEOUT(splice, part_of_buffer, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;
	char tail[4];

	mock_node(self->m, self->file)->size = 1000;
	call = read_taken(_metadata, self->m, &req);
	use_pipe(self->pipe, COPIED, 0);
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, 1000));
	ASSERT_EQ(4, write(self->pipe[1], "tail", 4));
	EXPECT_EQ(0, answer(&req, 1000));
	ASSERT_EQ(4, waiting(self->pipe[0]));
	ASSERT_EQ(4, read(self->pipe[0], tail, 4));
	EXPECT_EQ(0, memcmp(tail, "tail", 4));
	EXPECT_EQ(0, served(_metadata, self->m, call));
	EXPECT_EQ(1000, call->ret);
}

/* The header names another length than is spliced: refused, and the request waits on. The bytes are gone. */
TEST_F_TIMEOUT(splice, wrong_length, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = read_taken(_metadata, self->m, &req);
	size_t len = read_len(self->m, &req);

	use_pipe(self->pipe, USER, SPLICE_F_MOVE);
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, len));
	EXPECT_ERRNO(EINVAL, splice(self->pipe[0], NULL, mock_dev, NULL, 16 + len - 1, SPLICE_F_MOVE));
	EXPECT_EQ(1, waiting(self->pipe[0]));
	ASSERT_EQ(1, read(self->pipe[0], self->m->buf, 1));
	EXPECT_EQ(0, spliced_read(self->m, &req) != MOCK_DONE);
	EXPECT_EQ(0, req.record->write_error);
	self->m->handler[FUSE_READ] = spliced_read;
	EXPECT_EQ(0, served(_metadata, self->m, call));
	EXPECT_EQ(FILE_SIZE, call->ret);
}

/* More than was asked for: the request fails, and what was read ahead in vain is asked for anew. */
TEST_F_TIMEOUT(splice, payload_too_long, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = read_taken(_metadata, self->m, &req);
	size_t len = ((const struct fuse_read_in *)req.arg)->size + 1;

	use_pipe(self->pipe, USER, SPLICE_F_MOVE);
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, len));
	EXPECT_EQ(-1, answer(&req, len));
	EXPECT_EQ(EINVAL, req.record->write_error);
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, 1));
	EXPECT_EQ(-1, answer(&req, 1));
	EXPECT_EQ(ENOENT, req.record->write_error);
	EXPECT_EQ(0, served(_metadata, self->m, call));
	EXPECT_EQ(FILE_SIZE, call->ret);
}

TEST_F_TIMEOUT(splice, header_too_short, TEST_BOUND)
{
	mount_ready(_metadata, self->m);
	ASSERT_EQ(15, write(self->pipe[1], "0123456789abcdef", 15));
	EXPECT_ERRNO(EINVAL, splice(self->pipe[0], NULL, mock_dev, NULL, 15, 0));
}

/* The request was aborted meanwhile. */
TEST_F_TIMEOUT(splice, aborted, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = read_taken(_metadata, self->m, &req);
	size_t len = read_len(self->m, &req);

	use_pipe(self->pipe, USER, SPLICE_F_MOVE);
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, len));
	umount2(self->m->dir, MNT_FORCE);
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(-1, call->ret);
	EXPECT_EQ(-1, answer(&req, len));
	EXPECT_EQ(ENOENT, req.record->write_error);
}

static long write_pipe(struct mock *m, const void *fd)
{
	return write((intptr_t)fd, "x", 1);
}

/* Whoever waits for room in the pipe goes on. */
TEST_F_TIMEOUT(splice, pipe_writer, TEST_BOUND)
{
	bool in_tree = KNOWN_DIFFERENCE("splice to the device does not wake who waits for room in the pipe");
	struct mock_call *call, *writer;
	struct mock_request req;
	size_t len = 15 * MOCK_PAGE;

	mock_node(self->m, self->file)->size = len;
	call = read_taken(_metadata, self->m, &req);
	use_pipe(self->pipe, USER, 0);
	ASSERT_EQ(16 * (int)MOCK_PAGE, fcntl(self->pipe[0], F_SETPIPE_SZ, 16 * MOCK_PAGE));
	ASSERT_EQ(0, fill_pipe(req.in->unique, self->file, 0, len));	/* 16 buffers: all */
	writer = mock_call(self->m, write_pipe, (void *)(intptr_t)self->pipe[1]);
	usleep(50000);
	EXPECT_FALSE(writer->done);
	EXPECT_EQ(0, answer(&req, len));
	if (in_tree) {
		usleep(200000);
		EXPECT_FALSE(writer->done);
	} else {
		EXPECT_TRUE(mock_call_done(writer));
		EXPECT_EQ(1, waiting(self->pipe[0]));
	}
	EXPECT_EQ(0, served(_metadata, self->m, call));
	EXPECT_EQ((long)len, call->ret);
}

/* Data from everywhere, with and without the wish to move pages. */

FIXTURE(splice_data) {
	struct mock *m;
	uint64_t file;
	int pipe[2], tee[2];
};

FIXTURE_VARIANT(splice_data) {
	enum source source;
	unsigned int flags;
	size_t shift;
};

FIXTURE_VARIANT_ADD(splice_data, copied) { COPIED, 0, 0 };
FIXTURE_VARIANT_ADD(splice_data, copied_move) { COPIED, SPLICE_F_MOVE, 0 };
FIXTURE_VARIANT_ADD(splice_data, user) { USER, 0, 0 };
FIXTURE_VARIANT_ADD(splice_data, user_move) { USER, SPLICE_F_MOVE, 0 };
FIXTURE_VARIANT_ADD(splice_data, gift) { GIFT, 0, 0 };
FIXTURE_VARIANT_ADD(splice_data, gift_move) { GIFT, SPLICE_F_MOVE, 0 };
FIXTURE_VARIANT_ADD(splice_data, page_cache) { PAGE_CACHE, 0, 0 };
FIXTURE_VARIANT_ADD(splice_data, page_cache_move) { PAGE_CACHE, SPLICE_F_MOVE, 0 };
FIXTURE_VARIANT_ADD(splice_data, teed_move) { TEED, SPLICE_F_MOVE, 0 };
FIXTURE_VARIANT_ADD(splice_data, odd_user_move) { USER, SPLICE_F_MOVE, 123 };
FIXTURE_VARIANT_ADD(splice_data, odd_page_cache_move) { PAGE_CACHE, SPLICE_F_MOVE, 123 };

FIXTURE_SETUP(splice_data)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, FILE_SIZE);
	self->m->knob[0] = self->file;
	ASSERT_EQ(0, pipe(self->pipe));
	ASSERT_LE(PIPE_SIZE, fcntl(self->pipe[0], F_SETPIPE_SZ, PIPE_SIZE));
	ASSERT_EQ(0, pipe(self->tee));
	ASSERT_LE(PIPE_SIZE, fcntl(self->tee[0], F_SETPIPE_SZ, PIPE_SIZE));
	memcpy(tee_end, self->tee, sizeof(tee_end));
	shift = variant->shift;
	backing = backing_file(self->file, FILE_SIZE, shift);
	ASSERT_LE(0, backing);
	use_pipe(self->pipe, variant->source, variant->flags);
	self->m->handler[FUSE_READ] = spliced_read;
}

FIXTURE_TEARDOWN(splice_data)
{
	memset(tee_end, 0, sizeof(tee_end));
	for (int i = 0; i < 2; i++) {
		close(self->pipe[i]);
		close(self->tee[i]);
	}
	close(backing);
	mock_destroy(self->m);
}

/* The caller gets the bytes, the source keeps its own, and so does the cache when the source is changed. */
TEST_F_TIMEOUT(splice_data, whole_file, TEST_BOUND)
{
	struct mock *m = self->m;
	char *data = malloc(FILE_SIZE);
	struct mock_call *call;

	mount_ready(_metadata, m);
	call = mock_call(m, call_verify, mock_path(m, "file"));
	EXPECT_EQ(0, served(_metadata, m, call));
	EXPECT_EQ(FILE_SIZE, call->ret);
	for (uint32_t i = 0; i < m->records; i++)
		EXPECT_EQ(0, m->record[i].write_error);
	EXPECT_EQ(0, waiting(self->pipe[0]));

	EXPECT_EQ(FILE_SIZE, pread(backing, data, FILE_SIZE, shift));
	EXPECT_EQ(-1, mock_mismatch(self->file, 0, data, FILE_SIZE));
	memset(data, 0xaa, FILE_SIZE);
	EXPECT_EQ(FILE_SIZE, pwrite(backing, data, FILE_SIZE, shift));
	self->m->open_flags = FOPEN_KEEP_CACHE;
	call = mock_call(m, call_verify, mock_path(m, "file"));
	EXPECT_EQ(0, served(_metadata, m, call));
	EXPECT_EQ(FILE_SIZE, call->ret);
	free(data);
}

/* Four readers, while the cache is dropped all the time: who moves pages must get their state right. */
#define ROUNDS 4

static long call_verify_often(struct mock *m, const void *path)
{
	long total = 0;

	for (int i = 0; i < ROUNDS; i++) {
		long n = call_verify(m, path);

		if (n < 0)
			return -1;
		total += n;
	}
	return total;
}

static long call_drop_caches(struct mock *m, const void *none)
{
	for (int i = 0; i < ROUNDS; i++)
		mock_drop_caches();
	return 0;
}

TEST_F_TIMEOUT(splice_data, under_reclaim, TEST_BOUND)
{
	struct mock_call *reader[4], *dropper;

	START(self->m, "");
	for (int i = 0; i < 4; i++)
		reader[i] = mock_call(self->m, call_verify_often, mock_path(self->m, "file"));
	dropper = mock_call(self->m, call_drop_caches, NULL);
	for (int i = 0; i < 4; i++) {
		ASSERT_TRUE(mock_call_done(reader[i]));
		EXPECT_EQ(ROUNDS * FILE_SIZE, reader[i]->ret) {
			TH_LOG("%s", strerror(reader[i]->error));
		}
	}
	EXPECT_TRUE(mock_call_done(dropper));
	for (uint32_t i = 0; i < self->m->records; i++)
		EXPECT_EQ(0, self->m->record[i].write_error);
}

TEST_HARNESS_MAIN
