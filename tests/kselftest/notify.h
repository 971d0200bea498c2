/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Notifications: the test sends them itself, through a descriptor of its own for the device, while a daemon process
 * serves requests. Each returns 0 or an errno.
 */
#ifndef FUSE_NOTIFY_H
#define FUSE_NOTIFY_H

#include <stdio.h>

#include "fuse_test.h"

/* The test's descriptor: set by START_NOTIFIED. */
static int notify_dev = -1;

#define START_NOTIFIED(mock, opts)					\
	do {								\
		struct stat st_;					\
									\
		ASSERT_EQ(0, mock_mount(mock, opts)) {			\
			TH_LOG("mount: %s", strerror(errno));		\
		}							\
		notify_dev = dup(mock_dev);				\
		ASSERT_EQ(0, mock_start(mock));				\
		/* INIT is answered. */					\
		ASSERT_EQ(0, stat((mock)->dir, &st_));			\
	} while (0)

/* A message of which the header says @len. */
static inline int notify_raw(int code, uint32_t len, const void *payload, size_t payload_len)
{
	return mock_write_raw(notify_dev, 0, len, code, payload, payload_len) < 0 ? errno : 0;
}

static inline int notify(int code, const void *payload, size_t len)
{
	return notify_raw(code, sizeof(struct fuse_out_header) + len, payload, len);
}

static inline int inval_inode(uint64_t ino, int64_t off, int64_t len)
{
	struct fuse_notify_inval_inode_out out = { .ino = ino, .off = off, .len = len };

	return notify(FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out));
}

/* @namelen bytes of @name, and its NUL. */
static inline int inval_entry_bytes(uint64_t parent, const char *name, size_t namelen, uint32_t flags)
{
	char message[8192];
	struct fuse_notify_inval_entry_out out = { .parent = parent, .namelen = namelen, .flags = flags };

	memcpy(message, &out, sizeof(out));
	memcpy(message + sizeof(out), name, namelen + 1);
	return notify(FUSE_NOTIFY_INVAL_ENTRY, message, sizeof(out) + namelen + 1);
}

static inline int inval_entry(uint64_t parent, const char *name, uint32_t flags)
{
	return inval_entry_bytes(parent, name, strlen(name), flags);
}

static inline int notify_delete(uint64_t parent, uint64_t child, const char *name)
{
	char message[512];
	struct fuse_notify_delete_out out = { .parent = parent, .child = child, .namelen = strlen(name) };

	memcpy(message, &out, sizeof(out));
	strcpy(message + sizeof(out), name);
	return notify(FUSE_NOTIFY_DELETE, message, sizeof(out) + strlen(name) + 1);
}

static inline int prune(const uint64_t *ids, uint32_t count)
{
	static char message[sizeof(struct fuse_notify_prune_out) + 8 * MOCK_NODES];
	struct fuse_notify_prune_out out = { .count = count };

	memcpy(message, &out, sizeof(out));
	memcpy(message + sizeof(out), ids, count * sizeof(*ids));
	return notify(FUSE_NOTIFY_PRUNE, message, sizeof(out) + count * sizeof(*ids));
}

#endif
