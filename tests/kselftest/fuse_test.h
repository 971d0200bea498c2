/* SPDX-License-Identifier: GPL-2.0 */
/* What every test file starts from: the harness, the mock, and the fixture of a mounted mock. */
#ifndef FUSE_TEST_H
#define FUSE_TEST_H

#include <fcntl.h>
#include <kselftest_harness.h>
#include <poll.h>
#include <sys/stat.h>

#include "mock/mock.h"

/* Seconds that one test may take: emulated guests are slow. */
#define TEST_BOUND 240

/*
 * Announces where the in-tree client behaves in another way on purpose, and tells whether it is the one under test;
 * the test then asserts that other way. The report reads the line from the log.
 */
#define KNOWN_DIFFERENCE(reason)	\
	(dprintf(STDOUT_FILENO, "# in-tree: %s\n", reason), mock_in_tree())

/* In FIXTURE_SETUP: a mock with nothing mounted yet, or the whole test is skipped. */
#define SETUP_MOCK(mock)						\
	do {								\
		const char *missing = mock_missing();			\
									\
		if (missing)						\
			SKIP(return, "%s", missing);			\
		(mock) = mock_new();					\
		ASSERT_NE(NULL, (mock));				\
	} while (0)

#define START(mock, opts)						\
	do {								\
		ASSERT_EQ(0, mock_mount(mock, opts)) {			\
			TH_LOG("mount: %s", strerror(errno));		\
		}							\
		ASSERT_EQ(0, mock_start(mock));				\
	} while (0)

/* A system call that must fail with this errno. */
#define EXPECT_ERRNO(expected, expression)				\
	do {								\
		errno = 0;						\
		EXPECT_EQ(-1, (long)(expression));			\
		EXPECT_EQ(expected, errno) {				\
			TH_LOG(#expression ": %s", strerror(errno));	\
		}							\
	} while (0)

/* The same by another process, so that a hang fails the test and does not stop it; 0 for success. */
#define EXPECT_CALL(expected, mock, fn, path)				\
	do {								\
		struct mock_call *call_ = mock_call(mock, fn, path);	\
									\
		ASSERT_TRUE(mock_call_done(call_)) {			\
			TH_LOG(#fn " hangs");				\
		}							\
		EXPECT_EQ(expected, call_->error) {			\
			TH_LOG(#fn ": %s", strerror(call_->error));	\
		}							\
	} while (0)

/* The bytes at @offset of the open file are what the mock serves for node @id. */
#define EXPECT_CONTENT(fd, id, offset, len)				\
	do {								\
		size_t want_ = (len);					\
		char *buf_ = malloc(want_);				\
									\
		ASSERT_NE(NULL, buf_);					\
		EXPECT_EQ((ssize_t)want_, pread(fd, buf_, want_, offset)); \
		EXPECT_EQ(-1, mock_mismatch(id, offset, buf_, want_));	\
		free(buf_);						\
	} while (0)

/* For tests that are the daemon themselves, while whoever calls into the mount is another process. */

/* Mounts and answers INIT. */
static inline void mount_ready(struct __test_metadata *_metadata, struct mock *m)
{
	struct mock_request req;

	ASSERT_EQ(0, mock_mount(m, ""));
	ASSERT_EQ(0, mock_take(m, &req));
	ASSERT_EQ(FUSE_INIT, (int)req.in->opcode);
	mock_serve(m, &req);
	ASSERT_EQ(0, req.record->write_error);
}

/* Serves by the tree until the call is done; its errno. */
static inline int served(struct __test_metadata *_metadata, struct mock *m, struct mock_call *call)
{
	struct mock_request req;

	while (!call->done) {
		struct pollfd pfd = { mock_dev, POLLIN, 0 };

		if (poll(&pfd, 1, 10) == 1 && !mock_take(m, &req))
			mock_serve(m, &req);
	}
	EXPECT_TRUE(mock_call_done(call));
	return call->error;
}

#endif
