/*
 * tests/unit/test_nvtx_names.c: names of NVTX's ranges get numbers.
 */
/* links: shim/record/range_names.c shim/lib/handle_map.c shim/lib/lock.c */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "record/range_names.h"

static const char *text_of(uint32_t number)
{
	uint16_t domain;
	bool folded;

	return spy_range_text(number, &domain, &folded);
}

static void test_names(void **state)
{
	uint16_t domain = spy_domain_number("layers"), of;
	uint32_t plain = spy_range_number(0, "forward"),
		 other = spy_range_number(domain, "forward");
	char copy[] = "forward", longest[2 * SPY_RANGE_TEXT];
	bool folded;

	(void)state;
	assert_int_not_equal(plain, 0);
	assert_int_not_equal(plain, other);
	assert_int_equal(spy_range_number(0, copy), plain);
	copy[0] = 'F';
	assert_int_not_equal(spy_range_number(0, copy), plain);
	assert_string_equal(spy_range_text(other, &of, &folded), "forward");
	assert_int_equal(of, domain);
	assert_false(folded);
	assert_string_equal(spy_domain_text(domain), "layers");
	assert_string_equal(spy_domain_text(0), "");
	assert_int_equal(spy_domain_number(NULL), 0);
	assert_int_equal(spy_range_number(0, NULL), spy_range_number(0, ""));
	assert_string_equal(text_of(spy_range_number(0, "")), "");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(strlen(text_of(spy_range_number(0, longest))), SPY_RANGE_TEXT - 1);
	/* Of each length up to two words and a half. */
	for (size_t i = 1; i < 20; i++) {
		char name[32] = "abcdefghijklmnopqrstuvwxyz";

		name[i] = '\0';
		assert_string_equal(text_of(spy_range_number(0, name)), name);
	}
}

static void test_utf8(void **state)
{
	char text[64], small[6];

	(void)state;
	spy_utf8_from_wide(text, sizeof(text), L"a\u00e9\u2713\U0001f600");
	assert_string_equal(text, "a\xc3\xa9\xe2\x9c\x93\xf0\x9f\x98\x80");
	spy_utf8_from_wide(text, sizeof(text), (const wchar_t[]){0x110000, 0xd800, 0});
	assert_string_equal(text, "\xef\xbf\xbd\xef\xbf\xbd");
	spy_utf8_from_wide(small, sizeof(small), L"\u2713\u2713");
	assert_string_equal(small, "\xe2\x9c\x93");
	spy_utf8_from_wide(text, sizeof(text), NULL);
	assert_string_equal(text, "");
}

static void check_fold(const char *text, const char *wanted)
{
	char folded[SPY_RANGE_TEXT];

	assert_int_equal(spy_range_fold(folded, sizeof(folded), text), strcmp(text, wanted) != 0);
	assert_string_equal(folded, wanted);
}

static void test_fold(void **state)
{
	char small[4];

	(void)state;
	check_fold("step 17", "step #");
	check_fold("layers.12.attn.3", "layers.#.attn.#");
	check_fold("0x7f3aBC at 0x", "# at #x");
	check_fold("iter=0", "iter=#");
	check_fold("none", "none");
	check_fold("", "");
	spy_range_fold(small, sizeof(small), "a1b2c3");
	assert_string_equal(small, "a#b");
}

static void test_family(void **state)
{
	uint32_t numbers[3 * SPY_RANGE_FAMILY], last = 0;
	uint16_t domain;
	char name[32];
	bool folded;

	(void)state;
	for (uint32_t i = 0; i < 3 * SPY_RANGE_FAMILY; i++) {
		snprintf(name, sizeof(name), "request %u of 9", i);
		numbers[i] = spy_range_number(0, name);
		assert_int_not_equal(numbers[i], 0);
		if (i < SPY_RANGE_FAMILY)
			assert_string_equal(text_of(numbers[i]), name);
		else
			last = numbers[i];
	}
	assert_string_equal(spy_range_text(last, &domain, &folded), "request # of #");
	assert_true(folded);
	assert_int_equal(numbers[SPY_RANGE_FAMILY], last);
	/* Those that have one of their own keep it. */
	assert_int_equal(spy_range_number(0, "request 3 of 9"), numbers[3]);
	/* And one that is called so is none of them. */
	assert_int_not_equal(spy_range_number(0, "request # of #"), last);
}

static void test_handles(void **state)
{
	uint16_t domain = spy_domain_number("handles");
	uint32_t name = spy_range_number(domain, "string");
	int theirs[2];

	(void)state;
	assert_int_equal(spy_domain_of(spy_domain_handle(domain)), domain);
	assert_int_equal(spy_string_of(spy_string_handle(name)), name);
	assert_int_equal(spy_domain_of(NULL), 0);
	assert_string_equal(text_of(spy_string_of(NULL)), "");
	assert_int_equal(spy_domain_of(&theirs[0]), 0);
	assert_int_equal(spy_string_of(&theirs[1]), 0);
	spy_domain_learn(&theirs[0], domain);
	spy_string_learn(&theirs[1], name);
	assert_int_equal(spy_domain_of(&theirs[0]), domain);
	assert_int_equal(spy_string_of(&theirs[1]), name);
	spy_domain_learn(NULL, domain);
	assert_int_equal(spy_domain_of(NULL), 0);
}

/* Threads that meet the same names for the first time at the same time. */
static uint32_t met[4][500];

static void *meet(void *numbers)
{
	uint32_t *mine = numbers;
	char name[32];

	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "met %c%c%c", 'a' + i % 26, 'a' + i / 26, 'a' + i % 7);
		mine[i] = spy_range_number(0, name);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, meet, met[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 4; i++)
		assert_memory_equal(met[0], met[i], sizeof(met[0]));
}

/* Last: the tables are full then. */
static void test_full(void **state)
{
	uint32_t unnamed = spy_range_unnamed();
	char name[64];

	(void)state;
	for (int i = 0; i < 2 * SPY_RANGE_NAMES; i++) {
		snprintf(name, sizeof(name), "%c%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26,
			 'a' + i / 676 % 26, 'a' + i / 17576);
		spy_range_number(0, name);
	}
	assert_true(spy_range_unnamed() > unnamed);
	assert_true(spy_range_names() < SPY_RANGE_NAMES);
	for (int i = 0; i < 2 * SPY_DOMAINS; i++) {
		snprintf(name, sizeof(name), "domain %d", i);
		assert_true(spy_domain_number(name) < SPY_DOMAINS);
	}
	assert_string_equal(spy_domain_text(SPY_DOMAINS - 1), "(other domains)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),   cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_fold),    cmocka_unit_test(test_family),
		cmocka_unit_test(test_handles), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
