// SPDX-License-Identifier: GPL-2.0
/* The little tree that the mock daemon serves, and the contents of its files. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mock.h"

struct mock_node *mock_node(struct mock *m, uint64_t id)
{
	if (id < FUSE_ROOT_ID || id > m->nodes)
		return NULL;
	return &m->node[id - 1];
}

uint64_t mock_add(struct mock *m, uint64_t parent, const char *name, uint32_t mode, uint64_t size)
{
	struct mock_node *node;

	if (m->nodes == MOCK_NODES)
		return 0;
	node = &m->node[m->nodes++];
	node->parent = parent;
	node->mode = mode;
	node->size = size;
	strncpy(node->name, name, sizeof(node->name) - 1);
	return m->nodes;
}

uint64_t mock_add_symlink(struct mock *m, uint64_t parent, const char *name, const char *target)
{
	uint64_t id = mock_add(m, parent, name, S_IFLNK | 0777, strlen(target));

	strncpy(mock_node(m, id)->target, target, sizeof(m->node[0].target) - 1);
	return id;
}

uint64_t mock_add_hardlink(struct mock *m, uint64_t parent, const char *name, uint64_t id)
{
	uint64_t link = mock_add(m, parent, name, mock_node(m, id)->mode, 0);

	mock_node(m, link)->alias = id;
	return id;
}

uint64_t mock_find(struct mock *m, uint64_t parent, const char *name)
{
	for (uint32_t i = 0; i < m->nodes; i++) {
		struct mock_node *node = &m->node[i];

		if (node->parent == parent && !strcmp(node->name, name))
			return node->alias ? node->alias : i + 1;
	}
	return 0;
}

void mock_attr(struct mock *m, uint64_t id, struct fuse_attr *attr)
{
	struct mock_node *node = mock_node(m, id);

	memset(attr, 0, sizeof(*attr));
	attr->ino = id;
	attr->size = node->size;
	attr->blocks = (node->size + 511) / 512;
	attr->atime = 1700000001;
	attr->mtime = 1700000002;
	attr->ctime = 1700000003;
	attr->mtimensec = 123456789;
	attr->mode = node->mode;
	attr->nlink = S_ISDIR(node->mode) ? 2 : 1;
	attr->uid = node->uid;
	attr->gid = node->gid;
	attr->blksize = MOCK_PAGE;
	if (m->attr_hook)
		m->attr_hook(m, id, attr);
}

void mock_entry(struct mock *m, uint64_t id, struct fuse_entry_out *out)
{
	memset(out, 0, sizeof(*out));
	out->nodeid = id;
	out->generation = mock_node(m, id)->generation;
	out->entry_valid = m->entry_valid;
	out->attr_valid = m->attr_valid;
	mock_attr(m, id, &out->attr);
}

/* Eight bytes of node @id: they differ between neighbours, pages, folios and files, and none is zero. */
static uint64_t pattern(uint64_t id, uint64_t offset)
{
	uint64_t word = (offset / 8 + 1) * 0x9e3779b97f4a7c15ULL + id * 0xc2b2ae3d27d4eb4fULL;

	return (word ^ word >> 29) | 0x0101010101010101ULL;
}

/* Bytes from @offset to the end of its word, at most @len; the word, shifted so that they come first. */
static size_t piece(uint64_t id, uint64_t offset, size_t len, uint64_t *word)
{
	size_t n = 8 - offset % 8;

	*word = pattern(id, offset) >> (offset % 8 * 8);
	return n < len ? n : len;
}

void mock_fill(uint64_t id, uint64_t offset, void *buf, size_t len)
{
	uint64_t word;

	for (size_t done = 0, n; done < len; done += n) {
		n = piece(id, offset + done, len - done, &word);
		memcpy((char *)buf + done, &word, n);
	}
}

ssize_t mock_mismatch(uint64_t id, uint64_t offset, const void *buf, size_t len)
{
	uint64_t word;

	for (size_t done = 0, n; done < len; done += n) {
		n = piece(id, offset + done, len - done, &word);
		if (!memcmp((const char *)buf + done, &word, n))
			continue;
		while (((const unsigned char *)buf)[done] == (word & 0xff)) {
			word >>= 8;
			done++;
		}
		return done;
	}
	return -1;
}
