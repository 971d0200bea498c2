// SPDX-License-Identifier: GPL-2.0
/* Folio orders as the kernel's own tracepoint filemap:mm_filemap_add_to_page_cache reports them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mock.h"

#define EVENT "events/filemap/mm_filemap_add_to_page_cache"

static char instance[160];

static int put(const char *file, const char *text)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	return mock_write_file(path, text);
}

const char *mock_trace_start(struct mock *m)
{
	static const char *root = "/sys/kernel/tracing";
	static char why[160];
	struct stat st;
	char text[64];

	/* The mount stays in the test's private namespace. */
	if (access("/sys/kernel/tracing/instances", F_OK) && mount("tracefs", root, "tracefs", 0, NULL)) {
		snprintf(why, sizeof(why), "tracefs: %s", strerror(errno));
		return why;
	}
	snprintf(instance, sizeof(instance), "%s/instances/fuse_mock_%d", root, getpid());
	if (mkdir(instance, 0700) || stat(m->dir, &st))
		goto fail;
	snprintf(text, sizeof(text), "s_dev == %u", major(st.st_dev) << 20 | minor(st.st_dev));
	if (put("buffer_size_kb", "8192") || put(EVENT "/filter", text) || put(EVENT "/enable", "1"))
		goto fail;
	return NULL;
fail:
	snprintf(why, sizeof(why), "tracing instance with " EVENT ": %s", strerror(errno));
	rmdir(instance);
	return why;
}

int mock_trace_stop(struct mock *m, struct mock_orders *orders)
{
	char line[512], path[200];
	FILE *trace;

	memset(orders, 0, sizeof(*orders));
	orders->highest = -1;
	put(EVENT "/enable", "0");
	snprintf(path, sizeof(path), "%s/trace", instance);
	trace = fopen(path, "re");
	if (!trace)
		return -1;
	while (fgets(line, sizeof(line), trace)) {
		char *at = strstr(line, " order=");
		int order;

		if (!at || sscanf(at, " order=%d", &order) != 1 || order < 0 || order > 15)
			continue;
		orders->folios[order]++;
		if (order > orders->highest)
			orders->highest = order;
	}
	fclose(trace);
	rmdir(instance);
	return 0;
}
