/*
 * tests/unit/test_analyzer_worst_calls.c: the calls that lost most: those of one kind are one line with their number and sum, and
 * what the host did to them is one line for all.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* An allocation that waits so long for the lock of another thread. */
static void waits(struct story *s, uint64_t ns)
{
	s->ns += ns;
	fprintf(s->log,
		"%lluns wait kind=mutex fn=cuMemAlloc_v2 outer_fn=cudaMalloc duration=%lluns "
		"object=0x10 holder=8 holder_fn=cudaFree device=0\n",
		(unsigned long long)s->ns + 1000, (unsigned long long)ns);
	s->ns -= ns;
	call(s, 0, ns + 2000, "memory cudaMalloc op=alloc kind=device bytes=64 caller=0x30");
}

/* A call in which the thread was ready to run, and had no CPU for so long. */
static void has_no_cpu(struct story *s, uint64_t ns)
{
	uint64_t end_ns = s->ns + ns + 10000;

	fprintf(s->log, "%lluns sched window=%lluns not_running=%llu running=9000\n",
		(unsigned long long)end_ns, (unsigned long long)ns + 9500, (unsigned long long)ns);
	call(s, 0, ns + 10000, "op cudaEventRecord stream=8 object=0x99 caller=0x40");
}

/* The row of that number. */
static json_t *worst(const struct story *s, size_t i)
{
	return json_array_get(json_object_get(s->root, "worst_calls"), i);
}

static void test_alike(void **state)
{
	struct story *s = *state;

	begin(s);
	for (int i = 0; i < 8; i++)
		call(s, 1000, 2000, "memory cudaMalloc op=alloc kind=device bytes=64 caller=0x30");
	waits(s, 3 * MS);
	waits(s, 5 * MS);
	waits(s, 2 * MS);
	conclude(s);
	assert_in_range(number(worst(s, 0), "lost_ns"), 5 * MS - 10000, 5 * MS);
	assert_int_equal(number(worst(s, 0), "alike"), 2);
	assert_int_equal(number(worst(s, 0), "alike_lost_ns"),
			 number(worst(s, 1), "lost_ns") + number(worst(s, 2), "lost_ns"));
	assert_in_range(number(worst(s, 1), "lost_ns"), 3 * MS - 10000, 3 * MS);
	assert_true(is_said(s, "2 more like it lost 5.0"));
}

static void test_noise(void **state)
{
	struct story *s = *state;

	begin(s);
	for (int i = 0; i < 8; i++)
		call(s, 1000, 9000, "op cudaEventRecord stream=8 object=0x99 caller=0x40");
	has_no_cpu(s, 20 * MS);
	has_no_cpu(s, 60 * MS);
	conclude(s);
	assert_true(is_said(s, "Host noise: 2 calls lost 80"));
	assert_true(is_said(s, "because their threads got no CPU; worst: 60"));
	/* A near twin: one call. */
	begin(s);
	for (int i = 0; i < 8; i++)
		call(s, 1000, 9000, "op cudaEventRecord stream=8 object=0x99 caller=0x40");
	has_no_cpu(s, 20 * MS);
	conclude(s);
	assert_true(is_said(s, "Host noise: 1 call lost 20"));
	assert_true(is_said(s, "because its thread got no CPU"));
}

/* What time was lost by: the most first; what is less than a thousandth of it is not said. */
static void test_lost_by(void **state)
{
	struct story *s = *state;

	for (unsigned int more = 0; more < 2; more++) {
		begin(s);
		for (int i = 0; i < 8; i++) {
			call(s, 1000, 2000,
			     "memory cudaMalloc op=alloc kind=device bytes=64 caller=0x30");
			call(s, 1000, 10000, "op cudaEventRecord stream=8 object=0x99 caller=0x40");
		}
		waits(s, 90 * MS);
		has_no_cpu(s, more ? 95000 : 85000);
		conclude(s);
		assert_true(is_said(s, more ? "by locks (90.00 ms), not running (95.00 us) not lost"
					    : "by locks (90.00 ms) not lost"));
	}
}

/* A call that is asleep in turns: in one sort of wait twice for 3 ms, in another in between for 5 ms. */
static void sleeps(struct story *s, const char *twice, const char *once)
{
	static const unsigned int ms[] = {3, 5, 3};

	for (size_t i = 0; i < ARRAY_SIZE(ms); i++) {
		s->ns += ms[i] * MS;
		fprintf(s->log, "%lluns wait kind=%s fn=cudaEventRecord duration=%ums device=0\n",
			(unsigned long long)s->ns, i == 1 ? once : twice, ms[i]);
		s->ns += 1000;
	}
	s->ns -= 11 * MS + 3000;
	call(s, 0, 11 * MS + 10000, "op cudaEventRecord stream=8 object=0x99 caller=0x40");
}

/* What it was asleep in that is no lock: the sort of which all together took longest; unless none took most of it. */
static void test_asleep(void **state)
{
	static const struct {
		const char *twice, *once, *said;
	} rows[] = {
		{"sleep", "semaphore", "polled and slept in between, for 6.000 ms, reason unknown"},
		{"yield", "semaphore", "polled and slept in between, for 6.000 ms, reason unknown"},
		{"semaphore", "sleep",
		 "waited in the C library (semaphore) for 6.000 ms, reason unknown"},
		{"poll", "semaphore",
		 "waited in the C library (poll) for 6.000 ms, reason unknown"},
	};
	struct story *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin_with(s, "probes=1");
		for (int j = 0; j < 8; j++)
			call(s, 1000, 9000, "op cudaEventRecord stream=8 object=0x99 caller=0x40");
		sleeps(s, rows[i].twice, rows[i].once);
		conclude(s);
		if (!strstr(scratch_squeeze(s->shown), rows[i].said))
			fail_msg("%zu: %s", i, s->shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {STORY_TEST(test_alike), STORY_TEST(test_noise),
					   STORY_TEST(test_lost_by), STORY_TEST(test_asleep)};

	return RUN_WITH_FINDINGS(tests);
}
