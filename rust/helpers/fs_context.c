// SPDX-License-Identifier: GPL-2.0

#include <linux/fs_context.h>
#include <linux/fs_parser.h>

/* The message goes into the log of the mount, which the mounter can read, and to dmesg. */

void fuse_rs_helper_errorf_str(struct fs_context *fc, const char *msg)
{
	errorf(fc, "%s", msg);
}

void fuse_rs_helper_warnf_str(struct fs_context *fc, const char *msg)
{
	warnf(fc, "%s", msg);
}

int fuse_rs_helper_fs_parse(struct fs_context *fc, const struct fs_parameter_spec *desc,
			    struct fs_parameter *param, struct fs_parse_result *result)
{
	return fs_parse(fc, desc, param, result);
}
