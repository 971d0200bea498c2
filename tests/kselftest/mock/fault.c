// SPDX-License-Identifier: GPL-2.0
/* Memory that makes the device stop in the middle of a copy, at a page fault that waits for the test. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mock.h"

static struct {
	struct mock *m;
	int fd;
	struct uffdio_range range;
} area;

/* Counts the faults, and ends them with zeros once the test says so. */
static void *serve_faults(void *unused)
{
	struct uffdio_zeropage zero = { .range = area.range };
	struct uffd_msg msg;

	while (read(area.fd, &msg, sizeof(msg)) == sizeof(msg)) {
		__atomic_add_fetch(&area.m->faults, 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&area.m->resolve_faults, __ATOMIC_ACQUIRE))
			usleep(500);
		ioctl(area.fd, UFFDIO_ZEROPAGE, &zero);
	}
	return NULL;
}

void *mock_fault_buffer(struct mock *m, size_t head, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	size_t size = (len + MOCK_PAGE - 1) / MOCK_PAGE * MOCK_PAGE;
	pthread_t thread;
	char *map = mmap(NULL, size + MOCK_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	area.m = m;
	area.fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (map == MAP_FAILED || area.fd < 0 || ioctl(area.fd, UFFDIO_API, &api))
		return NULL;
	memset(map, 0, MOCK_PAGE);
	area.range.start = (uintptr_t)map + MOCK_PAGE;
	area.range.len = size;
	reg.range = area.range;
	if (ioctl(area.fd, UFFDIO_REGISTER, &reg) || pthread_create(&thread, NULL, serve_faults, NULL))
		return NULL;
	return map + MOCK_PAGE - head;
}

static bool faulted(struct mock *m, uint64_t arg)
{
	return __atomic_load_n(&m->faults, __ATOMIC_ACQUIRE) >= arg;
}

bool mock_wait_fault(struct mock *m)
{
	return mock_wait(faulted, m, 1);
}

void mock_resolve_faults(struct mock *m)
{
	__atomic_store_n(&m->resolve_faults, true, __ATOMIC_RELEASE);
}
