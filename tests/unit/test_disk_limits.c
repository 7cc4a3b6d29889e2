/* links: shim/lib/disk.c shim/process/folder.c shim/lib/clock.c shim/process/ranks.c */
/*
 * tests/unit/test_disk_limits.c: space on a disk is asked for before it is used, and file-size limits bind wherever in the
 * file it lies; a file that is replaced is there whole or as it was; a file of the folder is opened again only if it is
 * the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/disk.h"
#include "process/folder.h"
#include "process/options.h"
#include "scratch.h"
#include "state/session.h"

#define LIMIT 65536

static char *dir, path[SPY_PATH_MAX];
static struct spy_session session;
struct spy_session *spy_session = &session;
static uint64_t floor_bytes;

static gid_t group = SPY_NO_GROUP;

gid_t spy_options_group(void)
{
	return group;
}

uint64_t spy_options_floor_bytes(uint64_t file_system)
{
	assert_true(file_system > 0);
	return floor_bytes;
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int begin(void **state)
{
	(void)state;
	signal(SIGXFSZ, SIG_DFL); /* which would end us, as it would a program */
	dir = scratch_make();
	session.part = 1;
	assert_int_equal(spy_folder_create(session.directory, sizeof(session.directory), dir, 7),
			 0);
	snprintf(path, sizeof(path), "%s/file", session.directory);
	return 0;
}

static int end(void **state)
{
	(void)state;
	limit_files(RLIM_INFINITY);
	spy_folder_forget();
	scratch_remove(dir);
	return 0;
}

static void test_limit(void **state)
{
	struct spy_file_id id;
	struct stat file;
	int fd;

	(void)state;
	limit_files(LIMIT);
	assert_int_equal(spy_disk_allows(0, LIMIT), 0);
	assert_int_equal(spy_disk_allows(0, LIMIT + 1), -EFBIG);
	assert_int_equal(spy_disk_allows(LIMIT - 4096, 4096), 0);
	assert_int_equal(spy_disk_allows(LIMIT - 4096, 4097), -EFBIG);
	assert_int_equal(spy_disk_allows(LIMIT, 1), -EFBIG);
	fd = spy_folder_make(1, "file", &id);
	assert_true(fd > STDERR_FILENO);
	assert_int_equal(spy_disk_reserve(fd, 0, 4096), 0);
	assert_int_equal(spy_disk_reserve(fd, LIMIT - 4096, 8192), -EFBIG);
	fstat(fd, &file);
	assert_int_equal(file.st_size, 4096);
	assert_true(file.st_blocks * 512 >= 4096); /* the space is there */
	assert_int_equal(spy_disk_reserve(fd, 8192, 4096), 0);
	fstat(fd, &file);
	assert_int_equal(file.st_size, 12288);
	limit_files(RLIM_INFINITY);
	assert_int_equal(spy_disk_allows((off_t)1 << 40, (size_t)1 << 40), 0);
	close(fd);
}

/* What a file holds now; bytes, -1 if there is none. */
static long contents(char *text, size_t bytes)
{
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file)
		return -1;
	n = fread(text, 1, bytes, file);
	fclose(file);
	return (long)n;
}

/* In two pieces. */
static int replace(const char *text, size_t bytes)
{
	const struct iovec pieces[] = {{(char *)text, bytes / 2},
				       {(char *)text + bytes / 2, bytes - bytes / 2}};

	return spy_folder_replace(1, "file", pieces, 2);
}

static void test_replace(void **state)
{
	static char text[LIMIT + 1], found[LIMIT + 1];
	char temporary[SPY_PATH_MAX + 16];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(replace(text, LIMIT), 0);
	assert_int_equal(contents(found, sizeof(found)), LIMIT);
	assert_memory_equal(found, text, LIMIT);
	assert_int_equal(replace("shorter", 7), 0);
	assert_int_equal(contents(found, sizeof(found)), 7);
	limit_files(LIMIT);
	assert_int_equal(replace(text, LIMIT + 1), -EFBIG);
	assert_int_equal(contents(found, sizeof(found)), 7); /* as it was */
	assert_memory_equal(found, "shorter", 7);
	snprintf(temporary, sizeof(temporary), "%s/.file.new", session.directory);
	assert_int_equal(access(temporary, F_OK), -1);
	assert_int_equal(symlink("/etc/passwd", temporary), 0);
	assert_int_equal(replace("x", 1), -EEXIST);
}

/* A file never has a number that a program takes for standard input, output or error. */
static void test_numbers(void **state)
{
	struct spy_file_id id;
	int saved = dup(STDIN_FILENO), fd;

	(void)state;
	close(STDIN_FILENO);
	fd = spy_folder_make(1, "file", &id);
	assert_true(fd > STDERR_FILENO);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* nothing is left there */
	close(fd);
	dup2(saved, STDIN_FILENO);
	close(saved);
	fd = spy_folder_open(1, "file", &id);
	assert_true(fd > STDERR_FILENO);
	close(fd);
}

/* Whatever has taken its name is not the file. */
static void test_same_file(void **state)
{
	struct spy_file_id id, other;
	char aside[SPY_PATH_MAX + 16];

	(void)state;
	close(spy_folder_make(1, "file", &id));
	assert_int_equal(spy_folder_make(1, "file", &other), -EEXIST);
	assert_int_equal(spy_folder_check(1, "file", &id, 0), 0);
	assert_int_equal(spy_folder_check(1, "file", &id, 1), -ESTALE);
	snprintf(aside, sizeof(aside), "%s.1", path);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(spy_folder_open(1, "file", &id), -ENOENT);
	assert_int_equal(symlink(aside, path), 0); /* the file itself, by a link */
	assert_int_equal(spy_folder_open(1, "file", &id), -ESTALE);
	assert_int_equal(spy_folder_make(1, "file", &other), -EEXIST);
	spy_folder_remove(1, "file", &id);
	assert_int_equal(unlink(path), 0); /* it was there still */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(spy_folder_open(1, "file", &id), -ESTALE);
	assert_int_equal(unlink(path), 0);
	close(spy_folder_make(1, "file", &other));
	assert_int_equal(spy_folder_open(1, "file", &id), -ESTALE);
	spy_folder_remove(1, "file", &other);
	assert_int_equal(spy_folder_check(1, "file", &other, 0), -ENOENT);
}

/* Somebody closes our descriptor, and uses its number. */
static void test_descriptor(void **state)
{
	struct spy_file_id id;
	struct stat before, after;

	(void)state;
	closefrom(1000);
	close(spy_folder_make(1, "file", &id));
	for (int fd = 1000; fd < 1030; fd++)
		dup2(STDERR_FILENO, fd);
	fstat(STDERR_FILENO, &before);
	assert_int_equal(spy_folder_check(1, "file", &id, 0), 0);
	spy_folder_forget();
	for (int fd = 1000; fd < 1020; fd++) {
		assert_int_equal(fstat(fd, &after), 0);
		assert_int_equal(after.st_ino, before.st_ino);
	}
	closefrom(1000);
}

static void test_floor(void **state)
{
	(void)state;
	floor_bytes = 0;
	assert_true(spy_folder_has_room(1));
	floor_bytes = (uint64_t)1 << 60;
	assert_false(spy_folder_has_room(1));
	floor_bytes = 0;
}

/* Of the file system; 0: as it is. */
static bool without_fallocate;
static unsigned int interruptions;

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	if (without_fallocate) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (interruptions) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	if (interruptions) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, from, bytes, offset);
}

/* Then zeros take the space, all of it, whatever interrupts them. */
static void test_without_fallocate(void **state)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)state;
	without_fallocate = true;
	interruptions = 2;
	errno = 0;
	assert_int_equal(spy_disk_reserve(fd, 4096, 10000), 0);
	without_fallocate = false;
	assert_int_equal(interruptions, 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, 14096);
	close(fd);
}

/* A part of a file's space is had, and given back, whatever interrupts it. */
static void test_release(void **state)
{
	static char text[16384], found[sizeof(text)];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct stat before, after;

	(void)state;
	interruptions = 2;
	assert_int_equal(spy_disk_reserve(fd, 0, sizeof(text)), 0);
	assert_int_equal(interruptions, 0);
	memset(text, 'x', sizeof(text));
	assert_int_equal(pwrite(fd, text, sizeof(text), 0), sizeof(text));
	fsync(fd);
	fstat(fd, &before);
	interruptions = 2;
	spy_disk_release(fd, 4096, 8192);
	assert_int_equal(interruptions, 0);
	fstat(fd, &after);
	assert_int_equal(after.st_size, sizeof(text));
	assert_int_equal(before.st_blocks - after.st_blocks, 8192 / 512);
	memset(text + 4096, 0, 8192);
	assert_int_equal(contents(found, sizeof(found)), sizeof(text));
	assert_memory_equal(found, text, sizeof(text));
	close(fd);
}

static mode_t mode_of(const char *of)
{
	struct stat status;

	assert_int_equal(lstat(of, &status), 0);
	return status.st_mode & 07777;
}

/* For their owner, and for a group that may read, whatever the umask is. */
static void test_modes(void **state)
{
	static const mode_t masks[] = {0, 0022, 0077, 0777};
	struct spy_file_id id;
	uid_t self = geteuid();

	(void)state;
	/* As a user for whom modes hold. */
	assert_int_equal(chmod(dir, 0777), 0);
	if (!self && seteuid(65534))
		printf("no other user is to be had: as root\n");
	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++)
		for (int shared = 0; shared < 2; shared++) {
			char folder[SPY_PATH_MAX];
			mode_t before = umask(masks[i]);

			spy_folder_forget();
			group = shared ? getegid() : SPY_NO_GROUP;
			assert_int_equal(spy_folder_create(folder, sizeof(folder), dir, 8), 0);
			close(spy_folder_make(1, "file", &id));
			umask(before);
			group = SPY_NO_GROUP;
			assert_int_equal(mode_of(folder), shared ? 0750 : 0700);
			strcat(folder, "/file");
			assert_int_equal(mode_of(folder), shared ? 0640 : 0600);
		}
	assert_int_equal(spy_folder_group_error(), 0);
	assert_int_equal(seteuid(self), 0);
}

/* The last part of a new folder's path, of a program of that name. */
static const char *named(const char *program, int pid)
{
	static char folder[SPY_PATH_MAX];
	char *before = program_invocation_short_name, copy[256];

	snprintf(copy, sizeof(copy), "%s", program);
	program_invocation_short_name = copy;
	spy_folder_forget();
	assert_int_equal(spy_folder_create(folder, sizeof(folder), dir, pid), 0);
	program_invocation_short_name = before;
	assert_int_equal(mode_of(folder), 0700);
	assert_memory_equal(folder, dir, strlen(dir));
	return folder + strlen(dir) + 1;
}

/* Nothing in them that a terminal obeys, nor a name that is taken. */
static void test_names(void **state)
{
	char long_name[200], folder[SPY_PATH_MAX];
	int i;

	(void)state;
	assert_string_equal(named("train.py", 31), "train.py-31.cudaspy");
	assert_string_equal(named("train.py", 31), "train.py-31-2.cudaspy");
	assert_string_equal(named("train.py", 31), "train.py-31-3.cudaspy");
	assert_string_equal(named("train.py", 32), "train.py-32.cudaspy");
	assert_string_equal(named("", 1), "program-1.cudaspy");
	assert_string_equal(named("a b/c\td\x7f\x1b[0me~", 1), "a_b_c_d__[0me~-1.cudaspy");
	assert_string_equal(named("\xc2\x9b\xc2\xa0\xc3\x9b\xc2", 1),
			    "\xc2_\xc2\xa0\xc3\x9b\xc2-1.cudaspy");
	setenv("RANK", "12", 1);
	assert_string_equal(named("train.py", 33), "train.py.rank12-33.cudaspy");
	unsetenv("RANK");
	memset(long_name, 'x', sizeof(long_name));
	long_name[199] = '\0';
	assert_int_equal(strlen(named(long_name, 1)), 63 + strlen("-1.cudaspy"));
	for (i = 0; i < 120; i++) /* beyond some numbers, any */
		named("again", 7);
	assert_true(strlen(named("again", 7)) == strlen("again-7-0123456789abcdef.cudaspy"));
	/* The folders above are made, too; for a path that is too long there is none. */
	snprintf(long_name, sizeof(long_name), "%s/a/b//c", dir);
	spy_folder_forget();
	assert_int_equal(spy_folder_create(folder, sizeof(folder), long_name, 5), 0);
	assert_int_equal(mode_of(long_name), 0700);
	spy_folder_forget();
	assert_int_equal(spy_folder_create(folder, strlen(long_name) + 64 + 63, long_name, 5),
			 -ENAMETOOLONG);
	assert_int_equal(spy_folder_create(folder, sizeof(folder), "/dev/null/x", 5), -ENOTDIR);
}

/* To another user: what it is, and nothing else. */
static void test_give(void **state)
{
	struct spy_file_id id, other = {.device = 1, .inode = 1};

	(void)state;
	close(spy_folder_make(1, "file", &id));
	assert_int_equal(spy_folder_give(1, "file", &id, geteuid()), 0);
	assert_int_equal(spy_folder_give(1, "", NULL, geteuid()), 0);
	assert_int_equal(spy_folder_give(1, "file", &other, geteuid()), -ESTALE);
	assert_int_equal(spy_folder_give(1, "none", &id, geteuid()), -ENOENT);
	if (geteuid())
		assert_int_equal(spy_folder_give(1, "file", &id, 0), -EPERM);
}

/* How long it was; a folder of the name is not the file. */
static void test_delete(void **state)
{
	struct spy_file_id id;
	int fd = spy_folder_make(1, "file", &id);

	(void)state;
	assert_int_equal(ftruncate(fd, 12345), 0);
	close(fd);
	assert_int_equal(spy_folder_check(1, "file", &id, 12345), 0);
	assert_int_equal(spy_folder_check(1, "file", &id, 12346), -ESTALE);
	assert_int_equal(spy_folder_delete(1, "file"), 12345);
	assert_int_equal(spy_folder_delete(1, "file"), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(spy_folder_open(1, "file", &id), -ESTALE);
	spy_folder_remove(1, "file", &id);
	assert_int_equal(rmdir(path), 0);
}

/* Nothing that was opened is left open, whatever was asked for. */
static void test_left_open(void **state)
{
	static char text[100];
	struct spy_file_id id, other = {.device = 1, .inode = 1};
	int before = 0, after = 0, fd;

	(void)state;
	close(spy_folder_make(1, "file", &id));
	for (fd = 0; fd < 4096; fd++)
		before += fcntl(fd, F_GETFD) >= 0;
	assert_int_equal(spy_folder_make(1, "file", &other), -EEXIST);
	assert_int_equal(spy_folder_open(1, "file", &(struct spy_file_id){0}), -ESTALE);
	assert_int_equal(spy_folder_open(1, "none", &id), -ENOENT);
	assert_int_equal(spy_folder_check(1, "none", &id, 0), -ENOENT);
	assert_int_equal(spy_folder_give(1, "file", &other, geteuid()), -ESTALE);
	assert_int_equal(replace(text, sizeof(text)), 0);
	assert_true(spy_folder_has_room(1));
	spy_folder_remove(1, "file", &id);
	assert_int_equal(spy_folder_delete(1, "file"), sizeof(text));
	for (fd = 0; fd < 4096; fd++)
		after += fcntl(fd, F_GETFD) >= 0;
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limit, begin, end),
		cmocka_unit_test_setup_teardown(test_replace, begin, end),
		cmocka_unit_test_setup_teardown(test_numbers, begin, end),
		cmocka_unit_test_setup_teardown(test_same_file, begin, end),
		cmocka_unit_test_setup_teardown(test_descriptor, begin, end),
		cmocka_unit_test_setup_teardown(test_floor, begin, end),
		cmocka_unit_test_setup_teardown(test_without_fallocate, begin, end),
		cmocka_unit_test_setup_teardown(test_release, begin, end),
		cmocka_unit_test_setup_teardown(test_modes, begin, end),
		cmocka_unit_test_setup_teardown(test_names, begin, end),
		cmocka_unit_test_setup_teardown(test_give, begin, end),
		cmocka_unit_test_setup_teardown(test_delete, begin, end),
		cmocka_unit_test_setup_teardown(test_left_open, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
