/* links: shim/record/retire.c shim/record/part.c shim/process/folder.c shim/process/ranks.c shim/lib/disk.c */
/*
 * tests/unit/test_retire.c: finished parts of a recording are deleted, the oldest first: by size, by age, for there are more
 * than are known; a few files at a time, and none that are not the recorder's; what is then said of what is no more.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "process/folder.h"
#include "process/options.h"
#include "record/part.h"
#include "scratch.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define AT_A_TIME 16 /* retire.c */
#define SECOND 1000000000ull

struct spy_part *spy_finished_parts;
static struct spy_part finished[SPY_PARTS_MOST];
static char *dir;
static uint64_t keep_bytes;
static struct spy_part_options wanted;

uint64_t spy_options_keep_bytes(void)
{
	return keep_bytes;
}

bool spy_options_parts(struct spy_part_options *parts)
{
	*parts = wanted;
	return wanted.ns || wanted.bytes || wanted.keep_ns;
}

gid_t spy_options_group(void)
{
	return SPY_NO_GROUP;
}

uint64_t spy_options_floor_bytes(uint64_t file_system)
{
	(void)file_system;
	return 0;
}

static struct spy_parts *parts(void)
{
	return &session.parts;
}

static void make_file_in(const char *folder, const char *name, size_t bytes);

static int begin(void **state)
{
	(void)state;
	begin_session();
	memset(finished, 0, sizeof(finished[0]) * 64);
	spy_finished_parts = finished;
	dir = scratch_make();
	session.part = 1;
	session.begun.clock = now;
	parts()->oldest = parts()->next = 1;
	keep_bytes = 0;
	wanted = (struct spy_part_options){0};
	assert_int_equal(spy_folder_create(session.directory, sizeof(session.directory), dir, 7),
			 0);
	make_file_in(session.directory, ".board", 0); /* which goes on from part to part */
	return 0;
}

static int end(void **state)
{
	(void)state;
	spy_folder_forget();
	scratch_remove(dir);
	return 0;
}

/* ---- a recording of parts ---- */

static void make_file_in(const char *folder, const char *name, size_t bytes)
{
	char path[SPY_PATH_MAX + 512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
	session.used += (bytes + 4095) / 4096 * 4096;
}

/* A file of so many bytes in the folder of the part that is being written. */
static void make_file(const char *name, size_t bytes)
{
	make_file_in(session.directory, name, bytes);
}

/* It ends, with so many calls so far. */
static void end_part(uint64_t calls)
{
	uint32_t number = session.part, suffix;
	uint64_t bytes = session.used - parts()->finished_bytes;

	assert_int_equal(spy_folder_begin_part(number + 1, &suffix), 0);
	assert_int_equal(suffix, 0);
	assert_int_equal(spy_folder_exchange(number + 1, suffix), 0);
	finished[number % SPY_PARTS_MOST] = (struct spy_part){.number = number,
							      .folder = spy_folder_id(number),
							      .bytes = bytes,
							      .so_far = {calls, calls / 10},
							      .end = now};
	parts()->finished_bytes += bytes;
	parts()->next = number + 1;
	session.part = number + 1;
}

static void path_of(char *path, size_t size, uint32_t number, bool hidden, const char *name)
{
	char folder[SPY_PART_NAME_BYTES];

	spy_folder_part_name(folder, number, 0, hidden);
	snprintf(path, size, "%s/%s%s%s", dir, folder, *name ? "/" : "", name);
}

static bool exists(uint32_t number, bool hidden, const char *name)
{
	char path[SPY_PATH_MAX + 512];

	path_of(path, sizeof(path), number, hidden, name);
	return access(path, F_OK) == 0;
}

static void expect_removed(uint32_t number, uint64_t calls)
{
	assert_int_equal(parts()->removed, number);
	assert_int_equal(parts()->oldest, number + 1);
	assert_int_equal(board.parts_removed, number);
	assert_int_equal(board.removed_calls, calls);
	assert_int_equal(board.removed_lost, calls / 10);
	assert_int_equal(board.removed_cycles, finished[number].end - session.begun.clock);
	for (uint32_t part = 0; part <= number + 1; part++)
		assert_int_equal(spy_parts_are_deleted(part), part <= number);
	assert_false(parts()->removing);
}

/* ---- which parts ---- */

/* By size: as many as there are too many, with some room for what is written meanwhile. */
static void test_size(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		make_file("stream_0001", 100 << 10);
		now += SECOND;
		end_part(10 * ((uint64_t)i + 1));
	}
	make_file("stream_0001", 40 << 10);
	spy_parts_bound(); /* no bound is asked for */
	assert_int_equal(parts()->removed, 0);
	keep_bytes = 480 << 10;
	assert_int_equal(session.used, 440 << 10);
	spy_parts_bound();
	assert_int_equal(parts()->removed, 0);
	keep_bytes = 469 << 10; /* 15/16 of it are less than there are */
	assert_true(spy_parts_are_kept_too_long(0));
	spy_parts_bound();
	expect_removed(1, 10);
	assert_int_equal(session.used, 340 << 10);
	assert_int_equal(parts()->finished_bytes, 300 << 10);
	assert_false(exists(1, false, "") || exists(1, true, ""));
	assert_true(exists(2, false, "stream_0001"));
	keep_bytes = 200 << 10; /* two more */
	spy_parts_bound();
	expect_removed(3, 30);
	assert_int_equal(session.used, 140 << 10);
	/* The one that is being written is none of them. */
	keep_bytes = 1;
	spy_parts_bound();
	expect_removed(4, 40);
	assert_int_equal(session.used, 40 << 10);
	assert_int_equal(parts()->finished_bytes, 0);
	assert_false(spy_parts_are_kept_too_long(0));
	session.state = SPY_SESSION_FAILED;
	end_part(50);
	spy_parts_bound();
	assert_int_equal(parts()->removed, 4);
}

static void test_age(void **state)
{
	uint64_t ends[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		make_file("stream_0001", 4096);
		ends[i] = now;
		end_part(10 * ((uint64_t)i + 1));
		now += 10 * SECOND;
	}
	wanted.keep_ns = 60 * SECOND;
	now = ends[0] + 60 * SECOND;
	assert_false(spy_parts_are_kept_too_long(now));
	spy_parts_expire(now);
	assert_int_equal(parts()->removed, 0);
	now += 1000;
	assert_true(spy_parts_are_kept_too_long(now));
	spy_parts_bound(); /* where the time is not known, by size alone */
	assert_int_equal(parts()->removed, 0);
	spy_parts_expire(now);
	expect_removed(1, 10);
	now = ends[2] + 60 * SECOND + 1000;
	spy_parts_expire(now);
	expect_removed(3, 30);
	assert_int_equal(session.used, 0);
	/* Another option asks for parts, and keeps all. */
	end_part(40);
	now += 1000 * SECOND;
	wanted = (struct spy_part_options){.bytes = 1};
	assert_false(spy_parts_are_kept_too_long(now));
}

/* A thread is in the folder of the last finished one still. */
static void test_in_use(void **state)
{
	uint32_t first = spy_parts_enter(), second;

	(void)state;
	assert_int_equal(first, 1);
	end_part(1);
	keep_bytes = 1;
	session.used = 100;
	spy_parts_bound();
	assert_int_equal(parts()->removed, 0);
	second = spy_parts_enter();
	assert_int_equal(second, 2);
	assert_int_equal(parts()->inside[0] + parts()->inside[1], 2);
	spy_parts_bound();
	assert_int_equal(parts()->removed, 0);
	spy_parts_leave(first);
	assert_int_equal(parts()->inside[1], 0);
	spy_parts_bound(); /* of the one that is being written, that does not matter */
	assert_int_equal(parts()->removed, 1);
	spy_parts_leave(second);
	/* Nor of one before. */
	end_part(2);
	end_part(3);
	parts()->inside[0] = 1;
	session.used = 1000;
	spy_parts_bound();
	assert_int_equal(parts()->removed, 3);
}

/* Only so many can be known: the oldest go, where some are to be deleted at all. */
static void test_many(void **state)
{
	(void)state;
	end_part(1);
	parts()->next = parts()->oldest + SPY_PARTS_MOST - 1;
	spy_parts_bound();
	assert_int_equal(parts()->removed, 0);
	keep_bytes = 1 << 30;
	parts()->next--;
	spy_parts_bound();
	assert_int_equal(parts()->removed, 0);
	parts()->next++;
	spy_parts_bound();
	assert_int_equal(parts()->removed, 1);
}

/* Another thread is at it. */
static void test_once(void **state)
{
	(void)state;
	end_part(1);
	keep_bytes = 1;
	session.used = 100;
	parts()->removing = true;
	spy_parts_bound();
	assert_int_equal(parts()->removed, 0);
	assert_true(parts()->removing);
}

/* ---- which files ---- */

static const struct {
	const char *name;
	bool ours;
} files[] = {{"metadata", true},       {".metadata.new", true},      {".board", true},
	     {"stream_0001", true},    {"stream_0001_tail", true},   {"stream_12345_7", true},
	     {"stream_", false},       {"stream_x", false},          {"stream_1x", false},
	     {"stream_0001_", false},  {"stream_0001_tails", false}, {"stream_0001_x", false},
	     {"stream__tail", false},  {"metadata.old", false},      {"board", false},
	     {"a stream_0001", false}, {"stream_0001_7x", false}};

static void test_files(void **state)
{
	char path[SPY_PATH_MAX + 512];

	(void)state;
	end_part(1);
	path_of(path, sizeof(path), 1, false, "");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		make_file_in(path, files[i].name, 1);
	make_file_in(path, SPY_STREAM_PREPARED, 1);
	keep_bytes = 1;
	spy_parts_bound();
	expect_removed(1, 1);
	/* What others have put there stays, under the hidden name. */
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_int_equal(exists(1, true, files[i].name), !files[i].ours);
	assert_false(exists(1, true, SPY_STREAM_PREPARED));
}

/* A few at a time: the time that it takes is the program's. What has been deleted is counted off at once. */
static void test_at_a_time(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < 2 * AT_A_TIME + 3; i++) {
		snprintf(name, sizeof(name), "stream_%04d", i);
		make_file(name, 4097);
	}
	session.used += 500; /* that are in no file */
	end_part(70);
	make_file("stream_0001", 4096);
	end_part(80);
	keep_bytes = 1;
	for (int i = 1; i <= 2; i++) {
		spy_parts_bound();
		expect_removed(1, 70);
		assert_int_equal(parts()->going, 1);
		assert_int_equal(session.used,
				 500 + 4096 + 8192 * (2 * AT_A_TIME + 3 - i * AT_A_TIME));
		assert_true(exists(1, true, ""));
		assert_true(spy_parts_are_kept_too_long(0));
	}
	/* The rest of it, and the next one. */
	spy_parts_bound();
	assert_int_equal(parts()->going, 0);
	expect_removed(2, 80);
	assert_false(exists(1, true, "") || exists(2, true, ""));
	assert_int_equal(session.used, 0);
	assert_int_equal(parts()->finished_bytes, 0);
}

/* More than the part was said to have is not counted off. */
static void test_more_than_known(void **state)
{
	(void)state;
	make_file("stream_0001", 4096);
	make_file("stream_0002", 8192);
	session.used = 5000;
	end_part(1);
	session.used = 5100;
	keep_bytes = 1;
	spy_parts_bound();
	expect_removed(1, 1);
	assert_int_equal(session.used, 100);
	assert_int_equal(parts()->finished_bytes, 0);
}

/* A folder that has its name and is another one, or none, is left alone. */
static void test_another_folder(void **state)
{
	char path[SPY_PATH_MAX + 512], moved[SPY_PATH_MAX + 512];

	(void)state;
	make_file("stream_0001", 4096);
	end_part(1);
	path_of(path, sizeof(path), 1, false, "");
	snprintf(moved, sizeof(moved), "%s/moved", dir);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	keep_bytes = 1;
	spy_parts_bound();
	expect_removed(1, 1);
	assert_int_equal(access(path, F_OK), 0);
	strcat(moved, "/stream_0001");
	assert_int_equal(access(moved, F_OK), 0);
	assert_int_equal(session.used, 0); /* what it takes is its new owner's matter */
}

/* ---- sizes of finished parts ---- */

static void test_shrink(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		make_file("stream_0001", 8192);
		end_part(1);
	}
	make_file("stream_0001", 4096);
	parts()->oldest = 2;
	spy_parts_shrink(1, 100); /* deleted already */
	spy_parts_shrink(4, 100); /* not finished */
	spy_parts_shrink(2, 8193); /* more than it has */
	finished[3].number = 3 + SPY_PARTS_MOST; /* its place has another one */
	spy_parts_shrink(3, 100);
	finished[3].number = 3;
	assert_int_equal(session.used, 28672);
	assert_int_equal(parts()->finished_bytes, 24576);
	spy_parts_shrink(2, 8192);
	spy_parts_shrink(3, 100);
	assert_int_equal(session.used, 28672 - 8292);
	assert_int_equal(parts()->finished_bytes, 24576 - 8292);
	assert_int_equal(finished[2].bytes, 0);
	assert_int_equal(finished[3].bytes, 8092);
	parts()->begun_at[0] = 20;
	parts()->begun_at[1] = 30;
	assert_int_equal(spy_parts_begun_at(3), 30);
	assert_int_equal(spy_parts_begun_at(4), 20);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_size),           TEST(test_age),
		TEST(test_in_use),         TEST(test_many),
		TEST(test_once),           TEST(test_files),
		TEST(test_at_a_time),      TEST(test_more_than_known),
		TEST(test_another_folder), TEST(test_shrink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
