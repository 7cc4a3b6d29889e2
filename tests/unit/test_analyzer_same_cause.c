/*
 * tests/unit/test_analyzer_same_cause.c: which findings are in the cost of another one, or the same cause as it (findings/same_cause.c), pair
 * by pair: and what of a pair has to be the same.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "findings/detector.h"
#include "findings/same_cause.h"
#include "findings/site.h"

#define MS 1000000ull

static struct process processes[2];
static struct site site;

/* Of that detector, in that function, of so many ms: more than minor. */
static struct finding make(const char *id, const char *function, uint64_t ms)
{
	struct finding f = {.detector = detectors_find(id), .what = "bad", .fix = "mend it"};

	assert_non_null(f.detector);
	f.origin.process = &processes[0];
	f.origin.processes = 1;
	f.place.function = function;
	f.place.module = "app";
	f.place.offset = 0x10;
	f.place.file = "a.c";
	f.place.line = 7;
	f.site = f.detector->judge ? &site : NULL;
	finding_set_cost(&f, ms * MS);
	f.cost.cost_share.share = 0.5;
	return f;
}

enum relation {
	NONE,
	FIRST_HAS, /* the second one's cost */
	SECOND_HAS,
	PAIR,
};

/* Does the finding say that of one with the other's id, and of no other? */
static void says(const struct finding *f, const char *words, const struct finding *other)
{
	char text[128];

	if (!words) {
		assert_string_equal(f->what, "bad");
		return;
	}
	snprintf(text, sizeof(text), "bad; %s %s", words, other->detector->id);
	if (strncmp(f->what, text, strlen(text)))
		fail_msg("'%s', not '%s'", f->what, text);
}

static void are(struct finding x, struct finding y, enum relation relation)
{
	struct finding both[2] = {x, y};
	struct arena texts = {0};

	findings_name_causes(both, 2, &texts);
	says(&both[0],
	     relation == SECOND_HAS ? "these waits are in the cost of"
	     : relation == PAIR     ? "the same cause as"
				    : NULL,
	     &both[1]);
	says(&both[1],
	     relation == FIRST_HAS ? "these waits are in the cost of"
	     : relation == PAIR    ? "the same cause as"
				   : NULL,
	     &both[0]);
	assert_int_equal(both[0].remarks.counted, relation == SECOND_HAS);
	assert_int_equal(both[0].cost.overlaps, relation == SECOND_HAS);
	assert_int_equal(both[1].remarks.counted, relation == FIRST_HAS);
	assert_int_equal(both[1].cost.overlaps, relation == FIRST_HAS);
	arena_release(&texts);
}

/* What a rank is late by, at one line: the rank's, unless it costs the rank alone more than twice of that. */
static void test_late(void **state)
{
	struct finding rank = make("straggler-rank", "cudaFree", 100);
	struct finding alone = make("starved-by-host", "cudaFree", 200);

	(void)state;
	are(rank, alone, FIRST_HAS);
	are(alone, rank, SECOND_HAS);
	are(make("straggler-rank", "cudaFree", 99), alone, SECOND_HAS);
	are(rank, make("steady-state", "cudaFree", 200), FIRST_HAS);
	are(rank, make("exposed-collective", "cudaFree", 200), NONE);
	alone.place.line = 8;
	are(rank, alone, NONE);
	alone.place.line = rank.place.line = 0;
	are(rank, alone, NONE);
	alone.place.line = rank.place.line = 7;
	alone.place.file = "b.c";
	are(rank, alone, NONE);
	alone.place.file = "a.c";
	alone.origin.process = &processes[1];
	are(rank, alone, NONE);
	alone.origin.process = &processes[0];
	rank.remarks.maybe_harmless = true;
	are(rank, alone, NONE);
	rank.cost.own_ns = 99 * MS;
	are(rank, alone, SECOND_HAS);
}

/* Where lines of Python are known of both, these count: of the costliest of each. */
static void test_late_in_python(void **state)
{
	static char train[] = "train.py", other_file[] = "other.py", in_step[] = "step",
		    in_save[] = "save";
	static struct python_code step = {.file = train, .function = in_step};
	static struct python_code again = {.file = train, .function = in_step};
	static struct python_code save = {.file = train, .function = in_save};
	static struct python_code other = {.file = other_file, .function = in_step};
	static const struct stack stack;
	static const struct site_stack costliest = {.stack = &stack};
	static const struct {
		struct python_line at;
		enum relation relation;
	} cases[] = {{{&again, 9}, FIRST_HAS},
		     {{&step, 8}, NONE},
		     {{&save, 9}, NONE},
		     {{&other, 9}, NONE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct costly_line of_rank = {.at = {&step, 9}, .costliest = &costliest};
		struct costly_line of_it = {.at = cases[i].at, .costliest = &costliest};
		struct finding rank = make("straggler-rank", "cudaFree", 100);
		struct finding alone = make("starved-by-host", "cudaFree", 200);

		rank.stacks.python = &of_rank;
		alone.stacks.python = &of_it;
		rank.stacks.n_python = alone.stacks.n_python = 1;
		are(rank, alone, cases[i].relation);
	}
}

static void test_slow_gpu(void **state)
{
	struct finding slicing = make("time-slicing", NULL, 300);

	(void)state;
	are(make("slow-gpu", NULL, 100), slicing, FIRST_HAS);
	are(slicing, make("slow-gpu", NULL, 100), SECOND_HAS);
	slicing.origin.process = &processes[1];
	are(make("slow-gpu", NULL, 100), slicing, NONE);
	slicing.origin.process = NULL;
	are(make("slow-gpu", NULL, 100), slicing, FIRST_HAS);
}

/* A thread that is passed over waits for the call that has the lock: a finding of that, or the stall. */
static void test_starvation(void **state)
{
	struct finding starved = make("lock-starvation", "cudaMalloc", 100);

	(void)state;
	starved.site = NULL;
	are(make("hidden-sync", "cudaMalloc", 50), starved, FIRST_HAS);
	are(make("same-device-stall", "cudaMalloc", 50), starved, FIRST_HAS);
	are(make("cross-device-stall", "cudaMalloc", 50), starved, FIRST_HAS);
	are(make("hidden-sync", "cudaMallocHost", 50), starved, NONE);
	are(make("hidden-sync", NULL, 50), starved, NONE);
	are(make("starved-by-host", "cudaMalloc", 50), starved, NONE);
	starved.origin.process = &processes[1];
	are(make("hidden-sync", "cudaMalloc", 50), starved, NONE);
}

/* A wait that blocks an event loop; what may be harmless for its thread is in the cost of the loop. */
static void test_loop(void **state)
{
	const struct finding loop = make("blocked-loop", "cudaFree", 50);
	struct finding calls = make("early-sync", "cudaFree", 100);

	(void)state;
	are(loop, calls, PAIR);
	calls.remarks.maybe_harmless = true;
	are(loop, calls, FIRST_HAS);
	are(calls, loop, SECOND_HAS);
	calls.remarks.maybe_harmless = false;
	calls.place.offset = 0x20;
	are(loop, calls, NONE);
	calls.place.offset = 0x10;
	calls.place.module = "libx.so";
	are(loop, calls, NONE);
	calls.place.module = "app";
	calls.origin.process = &processes[1];
	are(loop, calls, NONE);
	calls.origin.processes = 2;
	are(loop, calls, PAIR);
}

/* What is allocated in each step is freed in each step. */
static void test_memory(void **state)
{
	static const struct {
		const char *id, *one, *other_id, *other;
		enum relation relation;
	} cases[] = {
		{"steady-state", "cudaMalloc", "steady-state", "cudaFree", PAIR},
		{"hidden-sync", "cudaFree", "steady-state", "cudaMalloc", PAIR},
		{"steady-state", "cudaMallocHost", "steady-state", "cudaFreeHost", PAIR},
		{"steady-state", "cudaMallocHost", "steady-state", "cudaFree", NONE},
		{"steady-state", "cudaMalloc", "steady-state", "cudaMalloc", NONE},
		{"steady-state", "cudaFree", "steady-state", "cudaFree", NONE},
		{"steady-state", "cudaMallocAsync", "steady-state", "cudaFree", NONE},
		{"steady-state", "cudaStreamCreate", "steady-state", "cudaFree", NONE},
		{"early-sync", "cudaMalloc", "steady-state", "cudaFree", NONE},
	};
	struct finding other;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		are(make(cases[i].id, cases[i].one, 100),
		    make(cases[i].other_id, cases[i].other, 90), cases[i].relation);
	other = make("steady-state", "cudaFree", 90);
	other.origin.process = &processes[1];
	are(make("steady-state", "cudaMalloc", 100), other, NONE);
}

/* Of several the costliest; none that is minor names another, or is named. */
static void test_costliest(void **state)
{
	struct finding all[] = {
		make("steady-state", "cudaMalloc", 100), make("hidden-sync", "cudaFree", 50),
		make("steady-state", "cudaFree", 60), make("hidden-sync", "cudaFree", 59)};
	struct arena texts = {0};

	(void)state;
	all[3].cost.cost_share.share = 0.0001;
	findings_name_causes(all, ARRAY_SIZE(all), &texts);
	says(&all[0], "the same cause as", &all[2]);
	says(&all[1], "the same cause as", &all[0]);
	says(&all[2], "the same cause as", &all[0]);
	says(&all[3], NULL, NULL);
	arena_release(&texts);
}

/* What is in the cost of another one is no cause of its own. */
static void test_in_a_cost(void **state)
{
	struct finding all[] = {make("straggler-rank", "cudaFree", 100),
				make("steady-state", "cudaFree", 100),
				make("steady-state", "cudaMalloc", 100)};
	struct arena texts = {0};

	(void)state;
	all[2].place.line = 9;
	findings_name_causes(all, ARRAY_SIZE(all), &texts);
	says(&all[1], "these waits are in the cost of", &all[0]);
	assert_null(strstr(all[1].what, "the same cause"));
	says(&all[2], "the same cause as", &all[1]);
	arena_release(&texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),       cmocka_unit_test(test_slow_gpu),
		cmocka_unit_test(test_starvation), cmocka_unit_test(test_loop),
		cmocka_unit_test(test_in_a_cost),  cmocka_unit_test(test_late_in_python),
		cmocka_unit_test(test_memory),     cmocka_unit_test(test_costliest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
