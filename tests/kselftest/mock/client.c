// SPDX-License-Identifier: GPL-2.0
/* Which client is under test, where its device and knobs are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mock.h"

const char *mock_client(void)
{
	const char *client = getenv("CLIENT");

	return client && *client ? client : "fuse_rs";
}

bool mock_in_tree(void)
{
	return !strcmp(mock_client(), "fuse");
}

const char *mock_device(void)
{
	return mock_in_tree() ? "/dev/fuse" : "/dev/fuse_rs";
}

const char *mock_missing(void)
{
	static char why[128];
	int fd;

	if (strcmp(mock_client(), "fuse") && strcmp(mock_client(), "fuse_rs")) {
		snprintf(why, sizeof(why), "CLIENT=%s is neither fuse nor fuse_rs", mock_client());
		return why;
	}
	if (geteuid() != 0)
		return "needs root";
	fd = mock_open_device();
	if (fd < 0) {
		snprintf(why, sizeof(why), "%s: %s", mock_device(), strerror(errno));
		return why;
	}
	close(fd);
	return NULL;
}

int mock_open_device(void)
{
	return open(mock_device(), O_RDWR | O_CLOEXEC);
}

int mock_mount_fd(int fd, const char *dir, uint32_t rootmode, const char *opts)
{
	char data[256];

	snprintf(data, sizeof(data), "fd=%d,rootmode=%o,user_id=0,group_id=0%s", fd, rootmode, opts);
	return mount("mock", dir, mock_client(), MS_NOSUID | MS_NODEV, data);
}

int mock_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return ret;
}

long mock_read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

int mock_set_max_pages_limit(unsigned int limit)
{
	char path[2][128], text[16];

	snprintf(path[0], sizeof(path[0]), "/proc/sys/fs/%s/max_pages_limit", mock_client());
	snprintf(path[1], sizeof(path[1]), "/sys/module/%s/parameters/max_pages_limit", mock_client());
	snprintf(text, sizeof(text), "%u", limit);
	for (int i = 0; i < 2; i++) {
		long old = mock_read_number(path[i]);

		if (old > 0 && !mock_write_file(path[i], text))
			return old;
	}
	return -1;
}

unsigned int mock_max_folio_order(void)
{
	long size = mock_read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");

	return size > 0 ? __builtin_ctzl(size / MOCK_PAGE) : 0;
}

/*
 * The mount's backing device is listed by its device number, or as filesystem type and a running number
 * (super_setup_bdi() does that): then it is the youngest of this type.
 */
static int bdi_path(struct mock *m, char *path, size_t size)
{
	unsigned long youngest = 0;
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (stat(m->dir, &st))
		return -1;
	snprintf(path, size, "/sys/class/bdi/%u:%u", major(st.st_dev), minor(st.st_dev));
	if (!access(path, F_OK))
		return 0;
	dir = opendir("/sys/class/bdi");
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		size_t len = strlen(mock_client());
		unsigned long number;

		if (strncmp(entry->d_name, mock_client(), len) || entry->d_name[len] != '-')
			continue;
		number = strtoul(entry->d_name + len + 1, NULL, 10);
		if (number > youngest)
			youngest = number;
	}
	closedir(dir);
	snprintf(path, size, "/sys/class/bdi/%s-%lu", mock_client(), youngest);
	return youngest ? 0 : -1;
}

static int readahead_path(struct mock *m, char *path, size_t size)
{
	if (bdi_path(m, path, size - 20))
		return -1;
	strcat(path, "/read_ahead_kb");
	return 0;
}

int mock_set_readahead_kb(struct mock *m, unsigned int kb)
{
	char path[300], text[16];

	snprintf(text, sizeof(text), "%u", kb);
	return readahead_path(m, path, sizeof(path)) ? -1 : mock_write_file(path, text);
}

long mock_readahead_kb(struct mock *m)
{
	char path[300];

	return readahead_path(m, path, sizeof(path)) ? -1 : mock_read_number(path);
}

void mock_drop_caches(void)
{
	sync();
	mock_write_file("/proc/sys/vm/drop_caches", "3");
}
