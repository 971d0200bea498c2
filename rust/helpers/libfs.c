// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/sprintf.h>

/* @name: 11 bytes, as many as the largest number and its NUL take. */
void fuse_rs_helper_format_u32(char *name, u32 number)
{
	snprintf(name, 11, "%u", number);
}

/* For a read(2) of a file that shows @number. */
ssize_t fuse_rs_helper_simple_read_number(char __user *to, size_t count, loff_t *ppos,
					  unsigned long number)
{
	char text[24];
	int len = scnprintf(text, sizeof(text), "%lu\n", number);

	return simple_read_from_buffer(to, count, ppos, text, len);
}
