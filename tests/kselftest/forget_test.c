// SPDX-License-Identifier: GPL-2.0
/* FORGET: the kernel gives back exactly as many lookups as the daemon's replies gave it. */
#include <dirent.h>

#include "fuse_test.h"

#define FILES 300

FIXTURE(forget) {
	struct mock *m;
	uint64_t first;
};

FIXTURE_SETUP(forget)
{
	char name[32];

	SETUP_MOCK(self->m);
	for (int i = 0; i < FILES; i++) {
		uint64_t id;

		snprintf(name, sizeof(name), "file%d", i);
		id = mock_add(self->m, FUSE_ROOT_ID, name, S_IFREG | 0644, 5000);
		if (!i)
			self->first = id;
	}
}

FIXTURE_TEARDOWN(forget)
{
	mock_destroy(self->m);
}

static bool all_forgotten(struct mock *m, uint64_t arg)
{
	static int tries;

	/* The first pass only takes the reference bits off. */
	if (tries++ % 100 == 0)
		mock_drop_caches();
	return mock_owed(m) == arg;
}

/* Every count matches, node by node; the root was never looked up and never forgotten. */
static void balanced(struct __test_metadata *_metadata, struct mock *m)
{
	EXPECT_TRUE(mock_wait(all_forgotten, m, 0));
	for (uint64_t id = FUSE_ROOT_ID; id <= m->nodes; id++) {
		ASSERT_EQ(mock_node(m, id)->lookups, mock_node(m, id)->forgotten) {
			TH_LOG("node %llu", (unsigned long long)id);
		}
	}
	EXPECT_EQ(0, mock_node(m, FUSE_ROOT_ID)->forgotten);
	EXPECT_FALSE(m->records_lost);
}

static void stat_all(struct __test_metadata *_metadata, struct mock *m)
{
	char name[32];
	struct stat st;

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		ASSERT_EQ(0, stat(mock_path(m, name), &st));
	}
}

TEST_F_TIMEOUT(forget, each_once, TEST_BOUND)
{
	START(self->m, "");
	stat_all(_metadata, self->m);
	EXPECT_EQ(FILES, mock_owed(self->m));
	EXPECT_EQ(FILES, mock_count(self->m, FUSE_LOOKUP));
	balanced(_metadata, self->m);
}

/* Entries that time out at once are looked up again, and each lookup counts. */
TEST_F_TIMEOUT(forget, looked_up_again, TEST_BOUND)
{
	self->m->entry_valid = 0;
	START(self->m, "");
	for (int i = 0; i < 3; i++)
		stat_all(_metadata, self->m);
	EXPECT_EQ(3 * FILES, mock_owed(self->m));
	balanced(_metadata, self->m);
}

/* Two names of one node: lookups by either go back to the one node. */
TEST_F_TIMEOUT(forget, hard_links, TEST_BOUND)
{
	struct stat st;

	mock_add_hardlink(self->m, FUSE_ROOT_ID, "other", self->first);
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, "file0"), &st));
	ASSERT_EQ(0, stat(mock_path(self->m, "other"), &st));
	EXPECT_EQ(self->first, st.st_ino);
	EXPECT_EQ(2, mock_node(self->m, self->first)->lookups);
	balanced(_metadata, self->m);
}

/* Nodes that are in use stay, and go when they are let go. */
TEST_F_TIMEOUT(forget, open_file_stays, TEST_BOUND)
{
	int fd;

	START(self->m, "");
	stat_all(_metadata, self->m);
	fd = open(mock_path(self->m, "file7"), O_RDONLY);
	ASSERT_LE(0, fd);
	EXPECT_CONTENT(fd, self->first + 7, 0, 5000);
	EXPECT_TRUE(mock_wait(all_forgotten, self->m, 1));
	EXPECT_EQ(0, mock_node(self->m, self->first + 7)->forgotten);
	EXPECT_CONTENT(fd, self->first + 7, 0, 5000);
	close(fd);
	balanced(_metadata, self->m);
}

/* Deep directories: parents go after their children. */
TEST_F_TIMEOUT(forget, directories, TEST_BOUND)
{
	uint64_t parent = FUSE_ROOT_ID;
	char path[512] = "";
	struct stat st;

	for (int i = 0; i < 20; i++) {
		parent = mock_add(self->m, parent, "sub", S_IFDIR | 0755, 0);
		strcat(path, "sub/");
	}
	mock_add(self->m, parent, "leaf", S_IFREG | 0644, 10);
	strcat(path, "leaf");
	START(self->m, "");
	ASSERT_EQ(0, stat(mock_path(self->m, path), &st));
	EXPECT_EQ(21, mock_owed(self->m));
	balanced(_metadata, self->m);
}

/* Failed lookups give nothing to forget. */
TEST_F_TIMEOUT(forget, failed_lookup, TEST_BOUND)
{
	struct stat st;

	START(self->m, "");
	EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "absent"), &st));
	stat_all(_metadata, self->m);
	balanced(_metadata, self->m);
}

/* A good reply with node id 0 is a negative entry with a timeout: no second lookup, nothing to forget. */
static int negative(struct mock *m, struct mock_request *req)
{
	struct fuse_entry_out out = { .entry_valid = 3600 };

	if (strcmp(req->arg, "absent"))
		return MOCK_DEFAULT;
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

TEST_F_TIMEOUT(forget, negative_entry, TEST_BOUND)
{
	struct stat st;

	self->m->handler[FUSE_LOOKUP] = negative;
	START(self->m, "");
	for (int i = 0; i < 3; i++)
		EXPECT_ERRNO(ENOENT, stat(mock_path(self->m, "absent"), &st));
	EXPECT_EQ(1U, mock_count(self->m, FUSE_LOOKUP));
	stat_all(_metadata, self->m);
	balanced(_metadata, self->m);
}

/* Many at once come in batches for daemons of minor 16 and later, one by one for older ones. */
TEST_F_TIMEOUT(forget, batched, TEST_BOUND)
{
	START(self->m, "");
	stat_all(_metadata, self->m);
	/* A daemon that is busy lets them pile up. */
	ASSERT_EQ(0, kill(self->m->daemon, SIGSTOP));
	for (int i = 0; i < 3; i++)
		mock_drop_caches();
	ASSERT_EQ(0, kill(self->m->daemon, SIGCONT));
	balanced(_metadata, self->m);
	EXPECT_LT(0U, mock_count(self->m, FUSE_BATCH_FORGET));
	EXPECT_GT(FILES, mock_count(self->m, FUSE_BATCH_FORGET) + mock_count(self->m, FUSE_FORGET));
}

TEST_F_TIMEOUT(forget, single_before_minor_16, TEST_BOUND)
{
	self->m->init.out.minor = 15;
	self->m->init.size = FUSE_COMPAT_22_INIT_OUT_SIZE;
	START(self->m, "");
	stat_all(_metadata, self->m);
	balanced(_metadata, self->m);
	EXPECT_EQ(0U, mock_count(self->m, FUSE_BATCH_FORGET));
	EXPECT_EQ(FILES, mock_count(self->m, FUSE_FORGET));
}

/* Forgets neither wait for other requests nor stop them: both come through in bounded numbers. */
TEST_F_TIMEOUT(forget, beside_requests, TEST_BOUND)
{
	self->m->entry_valid = 0;
	START(self->m, "");
	for (int i = 0; i < 5; i++) {
		stat_all(_metadata, self->m);
		mock_drop_caches();
	}
	EXPECT_EQ(5 * FILES, mock_count(self->m, FUSE_LOOKUP));
	balanced(_metadata, self->m);
}

static int entry_of(struct mock *m, struct mock_request *req)
{
	struct fuse_entry_out out = { .nodeid = m->knob[0], .generation = m->knob[3], .entry_valid = 3600 };

	if (strcmp(req->arg, "odd"))
		return MOCK_DEFAULT;
	mock_attr(m, m->knob[0], &out.attr);
	out.attr.mode = m->knob[1];
	out.attr.size = m->knob[2];
	mock_node(m, m->knob[0])->lookups++;
	mock_reply(m, req, 0, &out, sizeof(out));
	return MOCK_DONE;
}

/* Entries that the kernel cannot use: EIO. In-tree gives nothing back for them; never may it be more than one. */
FIXTURE(forget_bad_entry) {
	struct mock *m;
	uint64_t id;
};

FIXTURE_VARIANT(forget_bad_entry) {
	uint32_t mode;
	uint64_t size;
};

FIXTURE_VARIANT_ADD(forget_bad_entry, no_type) { .mode = 0644, .size = 10 };
FIXTURE_VARIANT_ADD(forget_bad_entry, unknown_type) { .mode = S_IFMT | 0644, .size = 10 };
FIXTURE_VARIANT_ADD(forget_bad_entry, size_negative) { .mode = S_IFREG | 0644, .size = 1ULL << 63 };

FIXTURE_SETUP(forget_bad_entry)
{
	SETUP_MOCK(self->m);
	self->id = mock_add(self->m, FUSE_ROOT_ID, "odd", S_IFREG | 0644, 10);
	self->m->handler[FUSE_LOOKUP] = entry_of;
	self->m->knob[0] = self->id;
	self->m->knob[1] = variant->mode;
	self->m->knob[2] = variant->size;
}

FIXTURE_TEARDOWN(forget_bad_entry)
{
	mock_destroy(self->m);
}

TEST_F_TIMEOUT(forget_bad_entry, refused, TEST_BOUND)
{
	struct stat st;

	START(self->m, "");
	EXPECT_ERRNO(EIO, stat(mock_path(self->m, "odd"), &st));
	for (int i = 0; i < 3; i++)
		mock_drop_caches();
	EXPECT_EQ(1, mock_node(self->m, self->id)->lookups);
	EXPECT_GE(1, mock_node(self->m, self->id)->forgotten);
	/* A good answer under the same id works. */
	self->m->knob[1] = S_IFREG | 0644;
	self->m->knob[2] = 10;
	EXPECT_EQ(0, stat(mock_path(self->m, "odd"), &st));
}

/* A name that answers with the root's node id is no good entry, and the root is not forgotten for it. */
TEST_F_TIMEOUT(forget, entry_is_root, TEST_BOUND)
{
	struct stat st;

	self->m->handler[FUSE_LOOKUP] = entry_of;
	self->m->knob[0] = FUSE_ROOT_ID;
	self->m->knob[1] = S_IFDIR | 0755;
	START(self->m, "");
	EXPECT_ERRNO(EIO, stat(mock_path(self->m, "odd"), &st));
	mock_node(self->m, FUSE_ROOT_ID)->lookups = 0;
	stat_all(_metadata, self->m);
	balanced(_metadata, self->m);
}

/* Node ids are reused by the daemon under a new generation: old and new are told apart, all is given back. */
TEST_F_TIMEOUT(forget, new_generation, TEST_BOUND)
{
	struct stat st;
	int fd;

	self->m->handler[FUSE_LOOKUP] = entry_of;
	self->m->knob[0] = mock_add(self->m, FUSE_ROOT_ID, "odd", S_IFREG | 0644, 10);
	self->m->knob[1] = S_IFREG | 0644;
	self->m->knob[2] = 10;
	self->m->knob[3] = 1;
	START(self->m, "");
	fd = open(mock_path(self->m, "odd"), O_RDONLY);
	ASSERT_LE(0, fd);
	self->m->knob[3] = 2;
	for (int i = 0; i < 3; i++)
		mock_drop_caches();
	ASSERT_EQ(0, stat(mock_path(self->m, "odd"), &st));
	close(fd);
	balanced(_metadata, self->m);
}

/* READDIRPLUS entries count as lookups. */
TEST_F_TIMEOUT(forget, readdirplus, TEST_BOUND)
{
	DIR *dir;
	int entries = 0;

	self->m->init.out.flags |= FUSE_DO_READDIRPLUS;
	START(self->m, "");
	dir = opendir(self->m->dir);
	ASSERT_NE(NULL, dir);
	while (readdir(dir))
		entries++;
	closedir(dir);
	EXPECT_EQ(FILES + 2, entries);
	if (!(self->m->offered.flags & FUSE_DO_READDIRPLUS))
		SKIP(return, "READDIRPLUS is not offered");
	EXPECT_LT(0U, mock_count(self->m, FUSE_READDIRPLUS));
	EXPECT_LE(FILES, mock_owed(self->m));
	balanced(_metadata, self->m);
}

/* Unmounting with lookups still counted is clean; the daemon sees the device end. */
TEST_F_TIMEOUT(forget, umount, TEST_BOUND)
{
	START(self->m, "");
	stat_all(_metadata, self->m);
	EXPECT_EQ(0, mock_umount(self->m));
	for (int i = 0; i < MOCK_WAIT_MS && !self->m->daemon_error; i++)
		usleep(1000);
	EXPECT_EQ(ENODEV, self->m->daemon_error);
	for (uint64_t id = FUSE_ROOT_ID; id <= self->m->nodes; id++)
		ASSERT_GE(mock_node(self->m, id)->lookups, mock_node(self->m, id)->forgotten);
}

/* Many more forgets than the daemon reads at a time: what else there is to read comes in between. */
#define FLOOD		5000U
#define FLOOD_NODE	1000000U

FIXTURE(forget_flood) {
	struct mock *m;
};

FIXTURE_VARIANT(forget_flood) {
	uint32_t minor;
	size_t init_size;
};

FIXTURE_VARIANT_ADD(forget_flood, batches) {
	.minor = FUSE_KERNEL_MINOR_VERSION, .init_size = sizeof(struct fuse_init_out) };
FIXTURE_VARIANT_ADD(forget_flood, singles) { .minor = 15, .init_size = FUSE_COMPAT_22_INIT_OUT_SIZE };

FIXTURE_SETUP(forget_flood)
{
	SETUP_MOCK(self->m);
	mock_add(self->m, FUSE_ROOT_ID, "victim", S_IFREG | 0644, 10);
	self->m->init.out.max_write = MOCK_PAGE;
	self->m->init.out.minor = variant->minor;
	self->m->init.size = variant->init_size;
}

FIXTURE_TEARDOWN(forget_flood)
{
	mock_destroy(self->m);
}

/* Names that are numbers are files. */
static int flood_lookup(struct mock *m, struct mock_request *req)
{
	struct fuse_entry_out out = { .entry_valid = 3600, .attr_valid = 3600 };

	if (!strcmp(req->arg, "victim"))
		return MOCK_DEFAULT;
	mock_attr(m, FUSE_ROOT_ID, &out.attr);
	out.nodeid = FLOOD_NODE + atoi(req->arg);
	out.attr.ino = out.nodeid;
	out.attr.mode = S_IFREG | 0644;
	m->records--;	/* there is no room for them all */
	mock_write_raw(mock_dev, req->in->unique, sizeof(struct fuse_out_header) + sizeof(out), 0, &out, sizeof(out));
	return MOCK_DONE;
}

static int flood_forget(struct mock *m, struct mock_request *req)
{
	m->knob[0] += ((const struct fuse_forget_in *)req->arg)->nlookup;
	return MOCK_DONE;
}

static int flood_batch_forget(struct mock *m, struct mock_request *req)
{
	const struct fuse_batch_forget_in *in = req->arg;
	const struct fuse_forget_one *one = (const void *)(in + 1);

	for (uint32_t i = 0; i < in->count; i++)
		m->knob[0] += one[i].nlookup;
	return MOCK_DONE;
}

static bool flood_is_over(struct mock *m, uint64_t arg)
{
	return __atomic_load_n(&m->knob[0], __ATOMIC_ACQUIRE) >= arg;
}

TEST_F_TIMEOUT(forget_flood, fair, TEST_BOUND)
{
	struct mock_call *call;
	struct mock_record *record;
	char name[16];
	struct stat st;

	self->m->handler[FUSE_LOOKUP] = flood_lookup;
	self->m->handler[FUSE_FORGET] = flood_forget;
	self->m->handler[FUSE_BATCH_FORGET] = flood_batch_forget;
	START(self->m, "");
	for (unsigned int i = 0; i < FLOOD; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ASSERT_EQ(0, stat(mock_path(self->m, name), &st));
	}
	ASSERT_EQ(0, kill(self->m->daemon, SIGSTOP));
	self->m->records = 0;
	for (int i = 0; i < 3; i++)
		mock_drop_caches();
	call = mock_call(self->m, mock_call_stat, mock_path(self->m, "victim"));
	usleep(200000);
	ASSERT_EQ(0, kill(self->m->daemon, SIGCONT));
	ASSERT_TRUE(mock_call_done(call));
	EXPECT_EQ(0, call->error);
	record = mock_last(self->m, FUSE_LOOKUP);
	ASSERT_NE(NULL, record);
	TH_LOG("%td requests before the LOOKUP", record - self->m->record);
	EXPECT_GE(24, record - self->m->record);
	EXPECT_TRUE(mock_wait(flood_is_over, self->m, FLOOD));
	EXPECT_EQ(FLOOD, self->m->knob[0]);
}

TEST_HARNESS_MAIN
