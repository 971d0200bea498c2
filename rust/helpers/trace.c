// SPDX-License-Identifier: GPL-2.0

#include "../fuse_sys/fuse_rs_trace.h"

void fuse_rs_helper_trace_request_send(u32 connection, u64 unique, u32 opcode, u32 len)
{
	trace_fuse_rs_request_send(connection, unique, opcode, len);
}

void fuse_rs_helper_trace_request_end(u32 connection, u64 unique, u32 len, int error)
{
	trace_fuse_rs_request_end(connection, unique, len, error);
}
