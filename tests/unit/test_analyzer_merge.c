/*
 * tests/unit/test_analyzer_merge.c: records of many streams and processes come in the order of
 * time, each once, and those of one stream in the order they were written.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "scratch.h"
#include "trace_writer.h"
#include "trace/merge.h"

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 33) % limit;
}

/* Beside its pace, a step of a stream takes less than so many seconds now and then. */
static uint64_t leap_s;

static uint64_t leap(void)
{
	return leap_s && !random_below(4) ? random_below(leap_s) * 1000000000 : 0;
}

/* A process whose streams have random paces; each record's caller is its number in its stream. */
static void write_process(const char *parent, const char *name, const char *env, uint64_t frequency,
			  unsigned int streams, unsigned int calls)
{
	static struct tw_trace w;
	char dir[512];
	unsigned int i, j;

	snprintf(dir, sizeof(dir), "%s/%s", parent, name);
	tw_open(&w, dir, 1024);
	tw_write_metadata(&w,
			  &(struct tw_metadata){.frequency = frequency, .offset_s = 1, .env = env});
	for (i = 1; i <= streams; i++) {
		uint64_t time = random_below(1000), pace = 1 + random_below(300);

		for (j = 0; j < calls; j++) {
			struct spy_rec_call call = {
				.head = {.time = time += random_below(pace) + leap(),
					 .event = SPY_EV_CALL},
				.caller = j};

			tw_record(&w, i, &call, sizeof(call));
		}
	}
	tw_close(&w);
}

/* ahead: for one in so many records the next one is found while it is in hand. */
static uint64_t merge_all(const char *dir, uint64_t *last_ns, uint64_t ahead)
{
	struct trace_set set;
	struct merge merge;
	struct record record;
	uint64_t n = 0, *next;

	*last_ns = 0;
	trace_set_open(&set, &dir, 1, NULL);
	next = xcalloc(set.n_streams, sizeof(*next));
	merge_init(&merge, &set, false);
	while (merge_next(&merge, &record)) {
		assert_true(record.ns >= *last_ns);
		*last_ns = record.ns;
		if (random_below(ahead) == 0)
			merge_look_ahead(&merge);
		assert_int_equal(record.raw->call.caller, next[record.stream->index]);
		next[record.stream->index]++;
		n++;
	}
	assert_false(merge_next(&merge, &record));
	merge_release(&merge);
	trace_set_release(&set);
	free(next);
	return n;
}

static void test_order(void **state)
{
	static const unsigned int shapes[][2] = {{1, 500}, {2, 500}, {3, 1}, {7, 300}, {100, 40}};
	char *dir = scratch_make(), name[32];
	unsigned int i, total = 0;
	uint64_t last_ns, ahead;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		snprintf(name, sizeof(name), "process.%u", i);
		write_process(dir, name, "\ttracer_name = \"cudaspy\";\n", 1000000000, shapes[i][0],
			      shapes[i][1]);
		total += shapes[i][0] * shapes[i][1];
		for (ahead = 1; ahead < 4; ahead++)
			assert_int_equal(merge_all(dir, &last_ns, ahead), total);
	}
	scratch_remove(dir);
}

/* Years lie between records: too far for a key. */
static void test_far(void **state)
{
	char *dir = scratch_make(), name[32];
	uint64_t last_ns;
	unsigned int i;

	(void)state;
	leap_s = 100000000;
	write_process(dir, "few", "\ttracer_name = \"cudaspy\";\n", 1000000000, 2, 40);
	for (i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "many.%u", i);
		write_process(dir, name, "\ttracer_name = \"cudaspy\";\n", 1000000000, 100, 20);
	}
	leap_s = 0;
	write_process(dir, "near", "\ttracer_name = \"cudaspy\";\n", 1000000000, 5, 1000);
	assert_int_equal(merge_all(dir, &last_ns, 2), 2 * 40 + 1000 * 20 + 5 * 1000);
	scratch_remove(dir);
}

static void test_nothing(void **state)
{
	char *dir = scratch_make();
	uint64_t last_ns;

	(void)state;
	assert_int_equal(merge_all(dir, &last_ns, 1), 0);
	write_process(dir, "p", "\ttracer_name = \"cudaspy\";\n", 1000000000, 0, 0);
	assert_int_equal(merge_all(dir, &last_ns, 1), 0);
	scratch_remove(dir);
}

/* Different counters are converted; the same counter of the same boot is compared as it is, however
 * the frequencies were measured. */
static void test_clocks(void **state)
{
	static const char one_boot[] = "\ttracer_name = \"cudaspy\";\n\tboot_id = \"b\";\n"
				       "\tclock_source = \"tsc\";\n";
	static const char other_boot[] = "\ttracer_name = \"cudaspy\";\n\tboot_id = \"c\";\n"
					 "\tclock_source = \"tsc\";\n";
	char *dir = scratch_make();
	const char *dirs[] = {dir};
	struct trace_set set;

	(void)state;
	write_process(dir, "a", one_boot, 2000000000, 1, 10);
	write_process(dir, "b", one_boot, 2000000500, 1, 10);
	write_process(dir, "c", other_boot, 1000000000, 1, 10);
	assert_int_equal(trace_set_open(&set, dirs, 1, NULL), 0);
	assert_int_equal(set.n_traces, 3);
	assert_memory_equal(&set.traces[0]->timeline, &set.traces[1]->timeline,
			    sizeof(struct timeline));
	assert_int_equal(timeline_ns(&set.traces[0]->timeline, 2000), 1000001000);
	assert_int_equal(timeline_ns(&set.traces[2]->timeline, 2000), 1000002000);
	trace_set_release(&set);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
