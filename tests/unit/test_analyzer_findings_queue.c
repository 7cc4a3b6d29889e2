/*
 * tests/unit/test_analyzer_findings_queue.c: a full launch queue, and what looks like one. For each
 * detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* ---- a full queue ---------------------------------------------------------------------------- */

static void tell_queue(struct story *s, unsigned int ahead)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < 20; i++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	for (i = 0; i < ahead; i++)
		launch(s, 1000, 4000);
	for (i = 0; i < 5; i++)
		launch(s, 1000, 2 * MS);
	wait_for_stream(s, 40 * MS, 0x20);
	conclude(s);
}

static void test_queue_full(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_queue(s, 1000);
	finding = only(s, "queue-full", "5 calls waited for room");
	assert_in_range(number(finding, "cost_ns"), 9 * MS, 10 * MS);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	tell_queue(s, 10); /* not for want of room */
	nothing(s);
}

struct late_story {
	unsigned int ahead; /* launches; then one that takes long, alone */
	bool tells; /* a function on the host behind every tenth; late ones come together */
};

static void tell_late(struct story *s, const struct late_story *t)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < t->ahead; i++) {
		launch(s, 1000, 4000);
		if (t->tells && i % 10 == 9)
			call(s, 1000, 4000, "op cudaLaunchHostFunc stream=8 caller=0x72");
	}
	for (i = 0; i < (t->tells ? 3 : 1); i++)
		launch(s, 1000, 4 * MS);
	for (i = 0; i < 20; i++)
		launch(s, 1000, 4000);
	wait_for_stream(s, 40 * MS, 0x20);
	conclude(s);
}

/* A late launch is no full queue where there was room, or where nobody knows how much. */
static void test_queue_not_full(void **state)
{
	static const struct late_story silent[] = {
		{.ahead = 400},
		{.ahead = 5000}, /* more than there is room for: much of it was done long ago */
		{.ahead = 1000, .tells = true},
	};
	struct story *s = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_late(s, &silent[i]);
		nothing(s);
	}
	tell_late(s, &(struct late_story){.ahead = 1000});
	only(s, "queue-full", "1 call waited for room");
}

/* It is one cause, wherever in the program the launches are. */
static void test_queue_full_everywhere(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	begin(s);
	for (i = 0; i < 1000; i++)
		launch(s, 1000, 4000);
	for (i = 0; i < 9; i++)
		call(s, 1000, (i % 3 + 1) * MS,
		     "launch cudaLaunchKernel kernel=1 stream=8 caller=%#x", 0x10 + i % 3);
	wait_for_stream(s, 40 * MS, 0x20);
	conclude(s);
	finding = only(s, "queue-full", "9 calls at 3 places, here most,");
	assert_in_range(number(finding, "cost_ns"), 17 * MS, 18 * MS);
	assert_int_equal(number(finding, "count"), 9);
	assert_int_equal(number(finding, "offset"), 0x12); /* 9 ms; the others 3 and 6 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_queue_full),
		STORY_TEST(test_queue_not_full),
		STORY_TEST(test_queue_full_everywhere),
	};

	return RUN_WITH_FINDINGS(tests);
}
