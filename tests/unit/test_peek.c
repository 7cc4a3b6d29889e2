/*
 * tests/unit/test_peek.c: the process's memory as the kernel copies it: all of it, as much as there is, or none.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/peek.h"

#define PAGE 4096

static void test_peek(void **state)
{
	char *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[16] = "", more[16] = "";
	struct iovec to[] = {{text, 4}, {more, 4}}, from[] = {{pages, 4}, {pages + 100, 4}};
	uintptr_t end = (uintptr_t)pages + PAGE;

	(void)state;
	assert_true(pages != MAP_FAILED);
	munmap(pages + PAGE, PAGE);
	memcpy(pages, "one", 4);
	memcpy(pages + 100, "two", 4);
	memcpy(pages + PAGE - 4, "end", 4);

	assert_true(spy_peek_all(getpid(), to, from, 2));
	assert_string_equal(text, "one");
	assert_string_equal(more, "two");
	from[1].iov_base = pages + PAGE - 2;
	assert_false(spy_peek_all(getpid(), to, from, 2));

	assert_true(spy_peek(getpid(), text, end - 4, 4));
	assert_string_equal(text, "end");
	assert_false(spy_peek(getpid(), text, end - 4, 8));
	assert_int_equal(spy_peek_some(getpid(), text, end - 4, 8), 4);
	assert_int_equal(spy_peek_some(getpid(), text, end, 8), 0);
	assert_true(spy_is_readable(end - 8));
	assert_false(spy_is_readable(end));
	munmap(pages, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_peek)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
