// SPDX-License-Identifier: GPL-2.0

#include <linux/fs_context.h>
#include <linux/fs_parser.h>

/*
 * The message goes into the log of the context, which the mounter can read, or
 * to the kernel's if it came by mount(2); with the name of the type before it.
 */
void fuse_rs_helper_errorfc_str(struct fs_context *fc, const char *msg)
{
	errorfc(fc, "%s", msg);
}

int fuse_rs_helper_fs_parse(struct fs_context *fc, const struct fs_parameter_spec *desc,
			    struct fs_parameter *param, struct fs_parse_result *result)
{
	return fs_parse(fc, desc, param, result);
}
