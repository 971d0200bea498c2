// SPDX-License-Identifier: GPL-2.0
/* Module parameters and sysctls: their files, and what may be written to them. */
#include <sys/sysinfo.h>

#include "fuse_test.h"

/* The value that a file has before a test, to be put back after it. */
struct knob {
	char path[128];
	long before;
};

static void knob_put_back(struct knob *knob)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", knob->before);
	mock_write_file(knob->path, text);
}

FIXTURE(knob) {
	struct knob knob;
};

FIXTURE_VARIANT(knob) {
	const char *path;	/* of the client's name */
	bool user_limit;	/* 0 is by size of memory, too much is cut */
	long value;		/* while nobody has set it, but for user_limit */
	long min;
	long max;
};

#define MODULE_KNOB(name_)								\
	FIXTURE_VARIANT_ADD(knob, name_) {						\
		.path = "/sys/module/%s/parameters/" #name_, .user_limit = true,	\
		.min = 0, .max = 65535 }
MODULE_KNOB(max_user_bgreq);
MODULE_KNOB(max_user_congthresh);

#define SYSCTL(name_, value_, min_)							\
	FIXTURE_VARIANT_ADD(knob, name_) {						\
		.path = "/proc/sys/fs/%s/" #name_, .value = value_, .min = min_, .max = 65535 }
SYSCTL(max_pages_limit, 256, 1);
SYSCTL(default_request_timeout, 0, 0);
SYSCTL(max_request_timeout, 0, 0);

FIXTURE_SETUP(knob)
{
	const char *missing = mock_missing();

	if (missing)
		SKIP(return, "%s", missing);
	snprintf(self->knob.path, sizeof(self->knob.path), variant->path, mock_client());
	self->knob.before = mock_read_number(self->knob.path);
}

FIXTURE_TEARDOWN(knob)
{
	if (self->knob.path[0])
		knob_put_back(&self->knob);
}

/* One request takes 392 bytes in this reckoning, and requests may take an 8192nd of the memory. */
static long user_limit(void)
{
	struct sysinfo info;
	long limit;

	sysinfo(&info);
	limit = info.totalram * info.mem_unit / 8192 / 392;
	return limit < 65535 ? limit : 65535;
}

TEST_F_TIMEOUT(knob, file, TEST_BOUND)
{
	struct stat st;

	ASSERT_EQ(0, stat(self->knob.path, &st));
	EXPECT_EQ(S_IFREG | 0644, st.st_mode);
	EXPECT_EQ(0, st.st_uid);
	if (!variant->user_limit) {
		EXPECT_EQ(variant->value, self->knob.before);
		return;
	}
	/* in-tree has computed it while the kernel booted, with less memory */
	EXPECT_LE(user_limit() * 9 / 10, self->knob.before);
	EXPECT_GE(user_limit(), self->knob.before);
}

TEST_F_TIMEOUT(knob, bounds, TEST_BOUND)
{
	char text[32];

	for (long value = variant->max; value > 0; value = value / 3) {
		snprintf(text, sizeof(text), "%ld\n", value);
		ASSERT_EQ(0, mock_write_file(self->knob.path, text));
		EXPECT_EQ(value, mock_read_number(self->knob.path));
	}
	if (variant->user_limit) {
		EXPECT_EQ(0, mock_write_file(self->knob.path, "70000"));
		EXPECT_EQ(65535, mock_read_number(self->knob.path));
		EXPECT_EQ(0, mock_write_file(self->knob.path, "0x20"));
		EXPECT_EQ(32, mock_read_number(self->knob.path));
		EXPECT_EQ(0, mock_write_file(self->knob.path, "0"));
		EXPECT_EQ(user_limit(), mock_read_number(self->knob.path));
		return;
	}
	snprintf(text, sizeof(text), "%ld", variant->min);
	EXPECT_EQ(0, mock_write_file(self->knob.path, text));
	EXPECT_EQ(variant->min, mock_read_number(self->knob.path));
	snprintf(text, sizeof(text), "%ld", variant->min - 1);
	EXPECT_ERRNO(EINVAL, mock_write_file(self->knob.path, text));
	snprintf(text, sizeof(text), "%ld", variant->max + 1);
	EXPECT_ERRNO(EINVAL, mock_write_file(self->knob.path, text));
	EXPECT_EQ(variant->min, mock_read_number(self->knob.path));
}

TEST_F_TIMEOUT(knob, no_number, TEST_BOUND)
{
	EXPECT_ERRNO(EINVAL, mock_write_file(self->knob.path, "many"));
	EXPECT_ERRNO(EINVAL, mock_write_file(self->knob.path, "-1"));
	EXPECT_ERRNO(variant->user_limit ? ERANGE : EINVAL,
		     mock_write_file(self->knob.path, "4294967296"));
	EXPECT_EQ(self->knob.before, mock_read_number(self->knob.path));
}

/* A switch: 0644, Y or N. What it does is in permission_test. */
TEST(allow_sys_admin_access)
{
	struct stat st;
	char path[128], now[8] = "";
	int fd;

	if (mock_missing())
		SKIP(return, "%s", mock_missing());
	snprintf(path, sizeof(path), "/sys/module/%s/parameters/allow_sys_admin_access", mock_client());
	ASSERT_EQ(0, stat(path, &st));
	EXPECT_EQ(S_IFREG | 0644, st.st_mode);
	fd = open(path, O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_EQ(2, pread(fd, now, sizeof(now), 0));
	EXPECT_STREQ("N\n", now);
	EXPECT_EQ(1, pwrite(fd, "1", 1, 0));
	EXPECT_EQ(2, pread(fd, now, sizeof(now), 0));
	EXPECT_STREQ("Y\n", now);
	EXPECT_ERRNO(EINVAL, pwrite(fd, "maybe", 5, 0));
	EXPECT_EQ(1, pwrite(fd, "n", 1, 0));
	close(fd);
}

TEST_HARNESS_MAIN
