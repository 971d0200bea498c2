/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The events have the names and fields that tools know from the fuse event
 * group, with a prefix of their own: two event groups cannot share a name.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fuse_rs

#if !defined(_FUSE_RS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _FUSE_RS_TRACE_H

#include <linux/tracepoint.h>

/* A request was queued for the server. @len: bytes of the request, headers included. */
TRACE_EVENT(fuse_rs_request_send,
	TP_PROTO(u32 connection, u64 unique, u32 opcode, u32 len),
	TP_ARGS(connection, unique, opcode, len),

	TP_STRUCT__entry(
		__field(u64,	unique)
		__field(u32,	connection)
		__field(u32,	opcode)
		__field(u32,	len)
	),

	TP_fast_assign(
		__entry->unique = unique;
		__entry->connection = connection;
		__entry->opcode = opcode;
		__entry->len = len;
	),

	TP_printk("connection %u req %llu opcode %u len %u",
		  __entry->connection, __entry->unique, __entry->opcode, __entry->len)
);

/* A request was ended. @len: bytes of the answer, headers included. @error: 0 or a negative errno. */
TRACE_EVENT(fuse_rs_request_end,
	TP_PROTO(u32 connection, u64 unique, u32 len, int error),
	TP_ARGS(connection, unique, len, error),

	TP_STRUCT__entry(
		__field(u64,	unique)
		__field(u32,	connection)
		__field(u32,	len)
		__field(int,	error)
	),

	TP_fast_assign(
		__entry->unique = unique;
		__entry->connection = connection;
		__entry->len = len;
		__entry->error = error;
	),

	TP_printk("connection %u req %llu len %u error %d",
		  __entry->connection, __entry->unique, __entry->len, __entry->error)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE fuse_rs_trace
#include <trace/define_trace.h>
