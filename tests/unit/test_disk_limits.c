/* links: shim/disk.c */
/*
 * tests/unit/test_disk_limits.c: space on a disk is asked for before it is used, and file-size limits bind wherever in the
 * file it lies; a file that is replaced is there whole or as it was.
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
#include <unistd.h>
#include <cmocka.h>
#include "disk.h"
#include "scratch.h"

#define LIMIT 65536

static char *dir, path[256];

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
	snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int end(void **state)
{
	(void)state;
	limit_files(RLIM_INFINITY);
	scratch_remove(dir);
	return 0;
}

static void test_limit(void **state)
{
	struct stat file;
	int fd;

	(void)state;
	limit_files(LIMIT);
	assert_int_equal(spy_disk_allows(0, LIMIT), 0);
	assert_int_equal(spy_disk_allows(0, LIMIT + 1), -EFBIG);
	assert_int_equal(spy_disk_allows(LIMIT - 4096, 4096), 0);
	assert_int_equal(spy_disk_allows(LIMIT - 4096, 4097), -EFBIG);
	assert_int_equal(spy_disk_allows(LIMIT, 1), -EFBIG);
	fd = spy_disk_open(path, O_RDWR | O_CREAT | O_TRUNC);
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

static void test_replace(void **state)
{
	static char text[LIMIT + 1], found[LIMIT + 1];
	char temporary[300];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(spy_disk_replace(path, text, LIMIT), 0);
	assert_int_equal(contents(found, sizeof(found)), LIMIT);
	assert_memory_equal(found, text, LIMIT);
	assert_int_equal(spy_disk_replace(path, "shorter", 7), 0);
	assert_int_equal(contents(found, sizeof(found)), 7);
	limit_files(LIMIT);
	assert_int_equal(spy_disk_replace(path, text, LIMIT + 1), -EFBIG);
	assert_int_equal(contents(found, sizeof(found)), 7); /* as it was */
	assert_memory_equal(found, "shorter", 7);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	assert_int_equal(access(temporary, F_OK), -1);
	snprintf(path, sizeof(path), "%s/no/such/file", dir);
	assert_int_equal(spy_disk_replace(path, "x", 1), -ENOENT);
}

/* A file never has a number that a program takes for standard input, output or error. */
static void test_numbers(void **state)
{
	int saved = dup(STDIN_FILENO), fd;

	(void)state;
	close(STDIN_FILENO);
	fd = spy_disk_open(path, O_RDWR | O_CREAT | O_TRUNC);
	assert_true(fd > STDERR_FILENO);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* nothing is left there */
	close(fd);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(spy_disk_open(dir, O_RDWR), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limit, begin, end),
		cmocka_unit_test_setup_teardown(test_replace, begin, end),
		cmocka_unit_test_setup_teardown(test_numbers, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
