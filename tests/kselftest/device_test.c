// SPDX-License-Identifier: GPL-2.0
/*
 * The device: what read(2), write(2), poll(2) and mount(2) accept and refuse. The test itself is the daemon; whoever
 * calls into the mount is another process.
 */
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/uio.h>

#include "fuse_test.h"

FIXTURE(device) {
	struct mock *m;
	uint64_t file, link;
};

FIXTURE_SETUP(device)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 300000);
	self->link = mock_add_symlink(self->m, FUSE_ROOT_ID, "link", "target");
}

FIXTURE_TEARDOWN(device)
{
	mock_destroy(self->m);
}

/* Mounts, answers INIT, and takes the request of a stat() of "file". */
static struct mock_call *stat_taken(struct __test_metadata *_metadata, struct mock *m, struct mock_request *req)
{
	struct mock_call *call;

	mount_ready(_metadata, m);
	call = mock_call(m, mock_call_stat, mock_path(m, "file"));
	ASSERT_EQ(0, mock_take_until(m, FUSE_LOOKUP, req));
	return call;
}

/* Opening and mounting */

TEST_F_TIMEOUT(device, before_mount, TEST_BOUND)
{
	struct fuse_out_header out = { .len = sizeof(out) };
	char buf[FUSE_MIN_READ_BUFFER];
	struct pollfd pfd;
	int fd = mock_open_device();

	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EPERM, read(fd, buf, sizeof(buf)));
	EXPECT_ERRNO(EPERM, write(fd, &out, sizeof(out)));
	pfd = (struct pollfd){ fd, POLLIN | POLLOUT, 0 };
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLERR, pfd.revents);
	close(fd);
}

/* Anyone may open it. */
TEST_F_TIMEOUT(device, mode, TEST_BOUND)
{
	struct stat st;

	ASSERT_EQ(0, stat(mock_device(), &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	if (!mock_in_tree())
		EXPECT_EQ(0666U, st.st_mode & 07777);
}

TEST_F_TIMEOUT(device, mount_options, TEST_BOUND)
{
	static const char * const bad[] = {
		"rootmode=40000,user_id=0,group_id=0",
		"fd=%d,user_id=0,group_id=0",
		"fd=%d,rootmode=40000,group_id=0",
		"fd=%d,rootmode=40000,user_id=0",
		"fd=%d,rootmode=0,user_id=0,group_id=0",
		"fd=%d,rootmode=170000,user_id=0,group_id=0",
		"fd=%d,rootmode=4000x,user_id=0,group_id=0",
		"fd=%d,rootmode=40000,user_id=x,group_id=0",
		"fd=%d,rootmode=40000,user_id=-1,group_id=0",
		"fd=%d,rootmode=40000,user_id=0,group_id=0,no_such_option",
		"fd=x,rootmode=40000,user_id=0,group_id=0",
	};
	int fd = mock_open_device(), null = open("/dev/null", O_RDWR);
	char data[128];

	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EINVAL, mount("mock", self->m->dir, mock_client(), 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(data, sizeof(data), bad[i], fd);
		errno = 0;
		EXPECT_EQ(-1, mount("mock", self->m->dir, mock_client(), 0, data));
		EXPECT_EQ(EINVAL, errno) {
			TH_LOG("%s: %s", data, strerror(errno));
		}
	}
	EXPECT_ERRNO(EINVAL, mock_mount_fd(null, self->m->dir, S_IFDIR, ""));
	EXPECT_EQ(-1, mock_mount_fd(999, self->m->dir, S_IFDIR, ""));
	EXPECT_TRUE(errno == EBADF || errno == EINVAL);		/* before 7.3 the latter */
	/* None of these spent the descriptor. */
	EXPECT_EQ(0, mock_mount_fd(fd, self->m->dir, S_IFDIR, ""));
	EXPECT_EQ(0, umount2(self->m->dir, 0));
	close(fd);
	close(null);
}

/* One descriptor, one mount: it is connected once and for all. */
TEST_F_TIMEOUT(device, second_mount, TEST_BOUND)
{
	char dir[] = "/tmp/fuse_mock.XXXXXX";
	int copy;

	mount_ready(_metadata, self->m);
	ASSERT_NE(NULL, mkdtemp(dir));
	copy = dup(mock_dev);
	/* The same superblock again: never a second filesystem on one queue. */
	EXPECT_EQ(0, mock_mount_fd(copy, dir, S_IFDIR, ""));
	EXPECT_EQ(0, umount2(dir, MNT_DETACH));
	rmdir(dir);
	close(copy);
	EXPECT_EQ(0, served(_metadata, self->m, mock_call(self->m, mock_call_stat, mock_path(self->m, "file"))));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_INIT));
}

/* After the umount the descriptor is done: no reads, no second mount. */
TEST_F_TIMEOUT(device, after_umount, TEST_BOUND)
{
	struct pollfd pfd;

	mount_ready(_metadata, self->m);
	EXPECT_EQ(0, mock_umount(self->m));
	EXPECT_EQ(-1, mock_read(mock_dev, self->m->buf, self->m->buf_size));
	EXPECT_EQ(ENODEV, errno);
	pfd = (struct pollfd){ mock_dev, POLLIN, 0 };
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLERR, pfd.revents & POLLERR);
	EXPECT_NE(0, mock_mount_fd(mock_dev, self->m->dir, S_IFDIR, ""));
}

/* A descriptor's copy is the same connection, and it lives as long as one of them. */
TEST_F_TIMEOUT(device, duplicate, TEST_BOUND)
{
	struct mock_call *call;
	int copy;

	mount_ready(_metadata, self->m);
	copy = dup(mock_dev);
	close(mock_dev);
	mock_dev = copy;
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	EXPECT_EQ(0, served(_metadata, self->m, call));
}

/* Another open of the device has nothing to do with the mount. */
TEST_F_TIMEOUT(device, stranger, TEST_BOUND)
{
	struct mock_request req;
	char buf[FUSE_MIN_READ_BUFFER];
	struct mock_call *call = stat_taken(_metadata, self->m, &req);
	int fd = mock_open_device();

	EXPECT_ERRNO(EPERM, read(fd, buf, sizeof(buf)));
	EXPECT_ERRNO(EPERM, mock_write_raw(fd, req.in->unique, 16, -ENOENT, NULL, 0));
	close(fd);
	EXPECT_EQ(0, mock_reply(self->m, &req, -ENOENT, NULL, 0));
	EXPECT_EQ(ENOENT, served(_metadata, self->m, call));
}

/* Reading */

/* The least buffer: 8192, or a header and a whole WRITE. INIT must fit into 8192 whatever comes later. */
TEST_F_TIMEOUT(device, least_buffer, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;
	size_t least = sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in) + (1 << 20);

	ASSERT_EQ(0, mock_mount(self->m, ""));
	EXPECT_ERRNO(EINVAL, mock_read(mock_dev, self->m->buf, FUSE_MIN_READ_BUFFER - 1));
	EXPECT_ERRNO(EINVAL, mock_read(mock_dev, self->m->buf, 0));
	EXPECT_EQ(104, mock_read(mock_dev, self->m->buf, FUSE_MIN_READ_BUFFER));
	req = (struct mock_request){ &self->m->record[0], self->m->buf, self->m->buf + 40, 64 };
	mock_serve(self->m, &req);
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	EXPECT_ERRNO(EINVAL, mock_read(mock_dev, self->m->buf, FUSE_MIN_READ_BUFFER));
	EXPECT_ERRNO(EINVAL, mock_read(mock_dev, self->m->buf, least - 1));
	EXPECT_EQ(sizeof(struct fuse_in_header) + 5, mock_read(mock_dev, self->m->buf, least));
	req.in = self->m->buf;
	EXPECT_EQ(0, mock_reply(self->m, &req, -ENOENT, NULL, 0));
	EXPECT_EQ(ENOENT, served(_metadata, self->m, call));
}

/* With max_write at its floor, 8192 stays enough. */
TEST_F_TIMEOUT(device, least_buffer_floor, TEST_BOUND)
{
	self->m->init.out.max_write = 1;
	mount_ready(_metadata, self->m);
	EXPECT_ERRNO(EINVAL, mock_read(mock_dev, self->m->buf, FUSE_MIN_READ_BUFFER - 1));
	EXPECT_EQ(-1, mock_read(mock_dev, self->m->buf, FUSE_MIN_READ_BUFFER));
	EXPECT_EQ(EAGAIN, errno);
}

/* A request too large for the buffer fails by itself, and the read goes on to the next. */
static long call_setxattr(struct mock *m, const void *path)
{
	static char value[60000];

	return syscall(__NR_setxattr, path, "user.x", value, sizeof(value), 0);
}

TEST_F_TIMEOUT(device, request_too_large, TEST_BOUND)
{
	bool in_tree = KNOWN_DIFFERENCE("SETXATTR larger than the buffer is E2BIG; fuse_rs has no SETXATTR so far");
	struct mock_call *call;

	self->m->init.out.max_write = 4096;
	mount_ready(_metadata, self->m);
	ASSERT_GT(60000, self->m->buf_size);
	call = mock_call(self->m, call_setxattr, mock_path(self->m, "file"));
	EXPECT_EQ(in_tree ? E2BIG : EROFS, served(_metadata, self->m, call));
	EXPECT_EQ(0U, mock_count(self->m, FUSE_SETXATTR));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	EXPECT_EQ(0, served(_metadata, self->m, call));
}

TEST_F_TIMEOUT(device, poll, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;
	struct pollfd pfd;

	mount_ready(_metadata, self->m);
	pfd = (struct pollfd){ mock_dev, POLLIN | POLLOUT, 0 };
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLOUT, pfd.revents);	/* always writable, nothing to read */
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLIN | POLLOUT, pfd.revents);
	ASSERT_EQ(0, mock_take(self->m, &req));
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLOUT, pfd.revents);
	mock_serve(self->m, &req);
	EXPECT_EQ(0, served(_metadata, self->m, call));
	umount2(self->m->dir, MNT_FORCE);
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLERR, pfd.revents & POLLERR);
}

/* A blocking read waits for a request, and gives up for a signal. */
static long read_device(struct mock *m, const void *fd)
{
	return read((intptr_t)fd, m->buf, m->buf_size);
}

TEST_F_TIMEOUT(device, blocking_read, TEST_BOUND)
{
	struct mock_call *reader, *call;
	int copy;

	mount_ready(_metadata, self->m);
	EXPECT_EQ(-1, mock_read(mock_dev, self->m->buf, self->m->buf_size));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, fcntl(mock_dev, F_SETFL, 0));
	copy = dup(mock_dev);
	reader = mock_call(self->m, read_device, (void *)(intptr_t)copy);
	usleep(50000);
	EXPECT_FALSE(reader->done);
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_call_done(reader));
	EXPECT_EQ(sizeof(struct fuse_in_header) + 5, reader->ret);
	/* The reader took the request and is gone; the umount ends it. */
	umount2(self->m->dir, MNT_FORCE);
	ASSERT_TRUE(mock_call_done(call));
	reader = mock_call(self->m, read_device, (void *)(intptr_t)copy);
	ASSERT_TRUE(mock_call_done(reader));
	EXPECT_EQ(ENODEV, reader->error);
	close(copy);
}

/* Each request goes to one reader only, and comes whole. */
TEST_F_TIMEOUT(device, two_readers, TEST_BOUND)
{
	struct mock_call *reader[2], *call[2];
	int copy;

	mount_ready(_metadata, self->m);
	ASSERT_EQ(0, fcntl(mock_dev, F_SETFL, 0));
	copy = dup(mock_dev);
	for (int i = 0; i < 2; i++)
		reader[i] = mock_call(self->m, read_device, (void *)(intptr_t)copy);
	call[0] = mock_call(self->m, mock_call_stat, mock_path(self->m, "one"));
	call[1] = mock_call(self->m, mock_call_stat, mock_path(self->m, "second"));
	for (int i = 0; i < 2; i++)
		ASSERT_TRUE(mock_call_done(reader[i]));
	EXPECT_EQ(2 * sizeof(struct fuse_in_header) + 4 + 7, reader[0]->ret + reader[1]->ret);
	umount2(self->m->dir, MNT_FORCE);
	for (int i = 0; i < 2; i++)
		ASSERT_TRUE(mock_call_done(call[i]));
	close(copy);
}

/* Buffers of all kinds get the same bytes. */
FIXTURE(buffer) {
	struct mock *m;
	uint64_t file;
};

enum kind { FRESH, STRADDLING, PIECES, FILE_MAPPING, HUGE_PAGE };

FIXTURE_VARIANT(buffer) {
	enum kind kind;
};

FIXTURE_VARIANT_ADD(buffer, fresh) { .kind = FRESH };
FIXTURE_VARIANT_ADD(buffer, straddling_pages) { .kind = STRADDLING };
FIXTURE_VARIANT_ADD(buffer, odd_pieces) { .kind = PIECES };
FIXTURE_VARIANT_ADD(buffer, file_mapping) { .kind = FILE_MAPPING };
FIXTURE_VARIANT_ADD(buffer, huge_page) { .kind = HUGE_PAGE };

FIXTURE_SETUP(buffer)
{
	SETUP_MOCK(self->m);
	self->file = mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 2000000);
	self->m->init.out.max_write = 131072;
}

FIXTURE_TEARDOWN(buffer)
{
	mock_destroy(self->m);
}

#define BUFFER_SIZE (2U << 20)

/* A fresh buffer, none of its pages touched yet. */
static char *new_buffer(enum kind kind)
{
	char *map;

	if (kind == FILE_MAPPING) {
		FILE *file = tmpfile();

		if (!file || ftruncate(fileno(file), BUFFER_SIZE))
			return MAP_FAILED;
		map = mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
		fclose(file);
		return map;
	}
	if (kind == HUGE_PAGE) {
		map = mmap(NULL, 2 * BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (map == MAP_FAILED)
			return map;
		map += BUFFER_SIZE - (uintptr_t)map % BUFFER_SIZE;
		madvise(map, BUFFER_SIZE, MADV_HUGEPAGE);
		return map;
	}
	map = mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return kind == STRADDLING && map != MAP_FAILED ? map + 4096 - 37 : map;
}

/* [map, map + len) cut into pieces of 1, 2, 3, … bytes and one long rest. */
static int pieces(struct iovec *iov, int max, char *map, size_t len)
{
	int n = 0;

	for (size_t piece = 1; n < max - 1 && len > piece; piece++) {
		iov[n++] = (struct iovec){ map, piece };
		map += piece;
		len -= piece;
	}
	iov[n++] = (struct iovec){ map, len };
	return n;
}

static ssize_t transfer(bool out, enum kind kind, char *map, size_t len)
{
	struct iovec iov[40];
	int n = kind == PIECES ? pieces(iov, ARRAY_SIZE(iov), map, len) : 1;

	if (n == 1)
		iov[0] = (struct iovec){ map, len };
	return out ? writev(mock_dev, iov, n) : readv(mock_dev, iov, n);
}

/* Serves one request: it is read into a fresh buffer and, if it is a READ, answered from another. */
static void serve_by(struct __test_metadata *_metadata, struct mock *m, enum kind kind)
{
	struct mock_request req = { .record = &m->record[MOCK_RECORDS - 1] };	/* a spare one */
	const struct fuse_read_in *in;
	struct fuse_out_header *out;
	char *request = new_buffer(kind), *reply = new_buffer(kind);
	ssize_t len;

	ASSERT_NE(MAP_FAILED, request);
	ASSERT_NE(MAP_FAILED, reply);
	len = transfer(false, kind, request, 200000);
	ASSERT_LT(0, len);
	req.in = (void *)request;
	ASSERT_EQ(len, req.in->len);
	req.arg = request + sizeof(*req.in);
	req.arg_len = len - sizeof(*req.in);
	if (req.in->opcode != FUSE_READ) {
		mock_serve_tree(m, &req);
		return;
	}
	in = req.arg;
	out = (void *)reply;
	out->unique = req.in->unique;
	out->len = sizeof(*out);
	if (in->offset < 2000000) {
		size_t n = 2000000 - in->offset < in->size ? 2000000 - in->offset : in->size;

		mock_fill(req.in->nodeid, in->offset, out + 1, n);
		out->len += n;
	}
	EXPECT_EQ(out->len, transfer(true, kind, reply, out->len));
	m->knob[0]++;
	munmap((void *)((uintptr_t)request & -4096), BUFFER_SIZE - 4096);
	munmap((void *)((uintptr_t)reply & -4096), BUFFER_SIZE - 4096);
}

static long read_and_compare(struct mock *m, const void *path)
{
	char *buf = malloc(2000000);
	int fd = open(path, O_RDONLY);
	uint64_t id = mock_find(m, FUSE_ROOT_ID, "file");
	long n;

	if (fd < 0)
		return -1;
	for (n = 0; n < 2000000;) {
		ssize_t ret = read(fd, buf + n, 2000000 - n);

		if (ret <= 0)
			return -1;
		n += ret;
	}
	close(fd);
	return mock_mismatch(id, 0, buf, 2000000) < 0 ? 0 : 1;
}

TEST_F_TIMEOUT(buffer, whole_file, TEST_BOUND)
{
	struct mock_call *call;

	mount_ready(_metadata, self->m);
	call = mock_call(self->m, read_and_compare, mock_path(self->m, "file"));
	while (!call->done) {
		struct pollfd pfd = { mock_dev, POLLIN, 0 };

		if (poll(&pfd, 1, 10) == 1)
			serve_by(_metadata, self->m, variant->kind);
	}
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->ret);
	EXPECT_LE(2000000 / (256 * 4096), self->m->knob[0]);
}

/*
 * A daemon's buffer may lie in a file of its own mount: to fill it or to read it, the device must let go of the
 * request, for another thread of the daemon has to answer the page fault.
 */
struct own_mount {
	int dev;
	uint64_t unique;
	const char *path;
	size_t len;
};

static char *map_own_file(const struct own_mount *own)
{
	int fd = open(own->path, O_RDONLY);
	char *map = mmap(NULL, own->len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	close(fd);
	return map;
}

static long reply_from_own_file(struct mock *m, const void *arg)
{
	const struct own_mount *own = arg;

	return mock_write_raw(own->dev, own->unique, sizeof(struct fuse_out_header) + own->len, 0, map_own_file(own),
			      own->len);
}

TEST_F_TIMEOUT(device, reply_in_own_mount, TEST_BOUND)
{
	struct mock_call *reader, *writer;
	struct mock_request req;
	struct own_mount own;
	uint64_t source;

	mock_node(self->m, self->file)->size = 2000000;
	source = mock_add(self->m, FUSE_ROOT_ID, "source", S_IFREG | 0644, 1 << 20);
	mount_ready(_metadata, self->m);
	reader = mock_call(self->m, read_and_compare, mock_path(self->m, "file"));
	ASSERT_EQ(0, mock_take_until(self->m, FUSE_READ, &req));
	own = (struct own_mount){ dup(mock_dev), req.in->unique, mock_path(self->m, "source"),
				  ((const struct fuse_read_in *)req.arg)->size };
	writer = mock_call(self->m, reply_from_own_file, &own);
	EXPECT_EQ(0, served(_metadata, self->m, writer));
	EXPECT_EQ(sizeof(struct fuse_out_header) + own.len, writer->ret);
	EXPECT_LE(1U, mock_count_node(self->m, FUSE_READ, source));
	served(_metadata, self->m, reader);
	EXPECT_EQ(1, reader->ret);	/* the file's first bytes are now those of the source */
	close(own.dev);
}

/* Memory that is not there: EFAULT or EIO at the device, an error for the caller, and the connection goes on. */
TEST_F_TIMEOUT(device, bad_read_buffer, TEST_BOUND)
{
	struct mock_call *call;
	char *map = mmap(NULL, 1 << 22, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mount_ready(_metadata, self->m);
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	ASSERT_TRUE(mock_wait_readable(mock_dev));
	EXPECT_ERRNO(EFAULT, mock_read(mock_dev, map, self->m->buf_size));
	EXPECT_EQ(EIO, served(_metadata, self->m, call));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	EXPECT_EQ(0, served(_metadata, self->m, call));
	munmap(map, 1 << 22);
}

TEST_F_TIMEOUT(device, bad_write_buffer, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call;
	char *map = mmap(NULL, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	call = stat_taken(_metadata, self->m, &req);
	EXPECT_ERRNO(EFAULT, write(mock_dev, map, 100));
	/* A good header, a payload that is not there: the request fails. */
	EXPECT_ERRNO(EFAULT, mock_write_raw(mock_dev, req.in->unique,
					    sizeof(struct fuse_out_header) + sizeof(struct fuse_entry_out), 0,
					    map, sizeof(struct fuse_entry_out)));
	EXPECT_EQ(EIO, served(_metadata, self->m, call));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	EXPECT_EQ(0, served(_metadata, self->m, call));
	munmap(map, 2 << 20);
}

/* Writing */

TEST_F_TIMEOUT(device, malformed_headers, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = stat_taken(_metadata, self->m, &req);
	uint64_t unique = req.in->unique;
	struct fuse_out_header out = { .len = sizeof(out), .error = -ENOENT, .unique = unique };
	char more[sizeof(out) + 8] = {};

	for (size_t len = 0; len < sizeof(out); len++) {
		EXPECT_ERRNO(EINVAL, write(mock_dev, &out, len));
	}
	out.len = sizeof(out) + 1;		/* says more than there is */
	EXPECT_ERRNO(EINVAL, write(mock_dev, &out, sizeof(out)));
	out.len = sizeof(out) - 1;
	EXPECT_ERRNO(EINVAL, write(mock_dev, &out, sizeof(out)));
	out.len = UINT32_MAX;
	EXPECT_ERRNO(EINVAL, write(mock_dev, &out, sizeof(out)));
	out.len = sizeof(out);			/* says less than there is */
	memcpy(more, &out, sizeof(out));
	EXPECT_ERRNO(EINVAL, write(mock_dev, more, sizeof(more)));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, unique, sizeof(out), 1, NULL, 0));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, unique, sizeof(out), -512, NULL, 0));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, unique, sizeof(out), INT32_MIN, NULL, 0));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, unique, sizeof(out), INT32_MAX, NULL, 0));
	EXPECT_ERRNO(ENOENT, mock_write_raw(mock_dev, unique + 2, sizeof(out), 0, NULL, 0));
	EXPECT_ERRNO(ENOENT, mock_write_raw(mock_dev, UINT64_MAX & ~1ULL, sizeof(out), 0, NULL, 0));
	/* None of it ended the request. */
	EXPECT_FALSE(call->done);
	EXPECT_EQ(0, mock_reply(self->m, &req, -EXDEV, NULL, 0));
	EXPECT_EQ(EXDEV, served(_metadata, self->m, call));
	/* Its answer counts once. */
	EXPECT_ERRNO(ENOENT, mock_write_raw(mock_dev, unique, sizeof(out), 0, NULL, 0));
}

/* Errors at the edges of what is allowed reach the caller as they are. */
TEST_F_TIMEOUT(device, error_range, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = stat_taken(_metadata, self->m, &req);

	EXPECT_EQ(0, mock_reply(self->m, &req, -511, NULL, 0));
	EXPECT_EQ(511, served(_metadata, self->m, call));
}

/* Notifications have unique 0: codes that nobody knows are refused, without harm. */
TEST_F_TIMEOUT(device, unknown_notification, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = stat_taken(_metadata, self->m, &req);
	char payload[64] = {};

	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, 0, 16 + 64, 999, payload, 64));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, 0, 16, 0, NULL, 0));
	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, 0, 16, INT32_MIN, NULL, 0));
	mock_serve(self->m, &req);
	EXPECT_EQ(0, served(_metadata, self->m, call));
}

/* Replies of the wrong length end the request with EIO, and the write is refused. */
FIXTURE(reply_size) {
	struct mock *m;
};

FIXTURE_VARIANT(reply_size) {
	int error;
	int extra;	/* bytes more, or less, than the answer has */
};

FIXTURE_VARIANT_ADD(reply_size, one_short) { .extra = -1 };
FIXTURE_VARIANT_ADD(reply_size, one_long) { .extra = 1 };
FIXTURE_VARIANT_ADD(reply_size, header_only) { .extra = -(int)sizeof(struct fuse_entry_out) };
FIXTURE_VARIANT_ADD(reply_size, twice) { .extra = sizeof(struct fuse_entry_out) };
FIXTURE_VARIANT_ADD(reply_size, compat_for_new_minor) {
	.extra = FUSE_COMPAT_ENTRY_OUT_SIZE - (int)sizeof(struct fuse_entry_out) };
FIXTURE_VARIANT_ADD(reply_size, error_with_payload) { .error = -ENOENT, .extra = 0 };

FIXTURE_SETUP(reply_size)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "file", S_IFREG | 0644, 10);
}

FIXTURE_TEARDOWN(reply_size)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(reply_size, lookup, TEST_BOUND)
{
	struct mock_request req;
	struct mock_call *call = stat_taken(_metadata, self->m, &req);
	char payload[2 * sizeof(struct fuse_entry_out)] = {};
	size_t len = sizeof(struct fuse_entry_out) + variant->extra;

	EXPECT_ERRNO(EINVAL, mock_write_raw(mock_dev, req.in->unique, 16 + len, variant->error, payload, len));
	EXPECT_EQ(EIO, served(_metadata, self->m, call));
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "file"));
	EXPECT_EQ(0, served(_metadata, self->m, call));
}

TEST_HARNESS_MAIN
