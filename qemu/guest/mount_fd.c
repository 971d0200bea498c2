// SPDX-License-Identifier: GPL-2.0
/*
 * mount_fd TYPE DEVICE MOUNTPOINT DAEMON ARGS...
 *
 * Mount MOUNTPOINT with a fresh file description of DEVICE and run DAEMON with
 * /dev/fd/N in place of the argument "{}". An unmodified libfuse daemon takes
 * that for a mountpoint which is mounted already, and so serves any client of
 * the protocol, not only /dev/fuse.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char path[32], options[128];
	int fd;

	if (argc < 5)
		errx(2, "usage: mount_fd TYPE DEVICE MOUNTPOINT DAEMON ARGS...");
	fd = open(argv[2], O_RDWR);
	if (fd < 0)
		err(1, "%s", argv[2]);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
		 fd);
	/* Returns before the daemon answers INIT: nothing waits for it here. */
	if (mount(argv[2], argv[3], argv[1], MS_NOSUID | MS_NODEV, options))
		err(1, "mount -t %s %s", argv[1], argv[3]);
	for (int i = 5; i < argc; i++)
		if (!strcmp(argv[i], "{}"))
			argv[i] = path;
	execv(argv[4], argv + 4);
	err(127, "%s", argv[4]);
}
