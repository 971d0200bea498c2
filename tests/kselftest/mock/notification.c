// SPDX-License-Identifier: GPL-2.0
/* Notifications about a mock's tree. */
#include <string.h>
#include <sys/stat.h>

#include "workload.h"

#define STORED	1000	/* bytes */

/* The name behind a struct of @head bytes; the length of both. */
static size_t named(void *out, size_t head, const char *name)
{
	size_t len = strlen(name) + 1;

	memcpy((char *)out + head, name, len);
	return head + len;
}

bool workload_hangs_in_tree(uint32_t code)
{
	switch (code) {
	case FUSE_NOTIFY_INVAL_INODE:
	case FUSE_NOTIFY_INVAL_ENTRY:
	case FUSE_NOTIFY_DELETE:
	case FUSE_NOTIFY_STORE:
		return mock_in_tree();
	default:
		return false;
	}
}

size_t workload_notification(struct mock *m, struct dice *dice, uint32_t code, void *out)
{
	uint64_t id = FUSE_ROOT_ID + dice_below(dice, m->nodes);
	struct mock_node *node = mock_node(m, id);

	switch (code) {
	case FUSE_NOTIFY_POLL:
		*(struct fuse_notify_poll_wakeup_out *)out =
			(struct fuse_notify_poll_wakeup_out){ 1 + dice_below(dice, 100) };
		return sizeof(struct fuse_notify_poll_wakeup_out);
	case FUSE_NOTIFY_INVAL_INODE:
		*(struct fuse_notify_inval_inode_out *)out =
			(struct fuse_notify_inval_inode_out){ id, dice_below(dice, 1 << 20), 0 };
		return sizeof(struct fuse_notify_inval_inode_out);
	case FUSE_NOTIFY_INVAL_ENTRY:
		*(struct fuse_notify_inval_entry_out *)out = (struct fuse_notify_inval_entry_out){
			node->parent, strlen(node->name), dice_one_in(dice, 2) ? FUSE_EXPIRE_ONLY : 0,
		};
		return named(out, sizeof(struct fuse_notify_inval_entry_out), node->name);
	case FUSE_NOTIFY_DELETE:
		*(struct fuse_notify_delete_out *)out =
			(struct fuse_notify_delete_out){ node->parent, id, strlen(node->name), 0 };
		return named(out, sizeof(struct fuse_notify_delete_out), node->name);
	case FUSE_NOTIFY_STORE: {
		struct fuse_notify_store_out *store = out;
		uint32_t size = S_ISREG(node->mode) && node->size >= STORED ? STORED : 0;

		*store = (struct fuse_notify_store_out){ id, size ? dice_below(dice, node->size - size) : 0, size, 0 };
		mock_fill(id, store->offset, store + 1, size);
		return sizeof(*store) + size;
	}
	case FUSE_NOTIFY_RETRIEVE:
		*(struct fuse_notify_retrieve_out *)out =
			(struct fuse_notify_retrieve_out){ dice_u64(dice), id, dice_below(dice, 1 << 16), 1 << 16, 0 };
		return sizeof(struct fuse_notify_retrieve_out);
	case FUSE_NOTIFY_PRUNE:
		*(struct fuse_notify_prune_out *)out = (struct fuse_notify_prune_out){ .count = 1 };
		memcpy((struct fuse_notify_prune_out *)out + 1, &id, sizeof(id));
		return sizeof(struct fuse_notify_prune_out) + sizeof(id);
	default:
		return 0;	/* RESEND, INC_EPOCH: no body */
	}
}
