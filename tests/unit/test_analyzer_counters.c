/*
 * tests/unit/test_analyzer_counters.c: in a timeline, how many threads wait for a lock is at each moment as many as waited.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <string.h>
#include "cmd/command.h"
#include "scratch.h"
#include "trace_text.h"

#define THREADS 8
#define LENGTH 400 /* milliseconds */

/* Who waits in which of them: pauses, waits of some length, now for one lock and now for the other, all in whole milliseconds, so
 * that many begin when others end. Waits become known when their calls end: a long one after many that came later. */
struct truth {
	unsigned int waiting[2][LENGTH + 1];
};

static void tell(struct truth *truth, FILE *out)
{
	unsigned int chance = 1, i, ms, at, length, lock, each;

	fputs("trace a.1 pid=1 program=\"a\" probes=1\n", out);
	for (i = 1; i <= THREADS; i++) {
		fprintf(out, "slot %u tid=%u\n1us thread tid=%u name=\"a\"\n", i, 100 + i, 100 + i);
		for (ms = 2; ms < LENGTH - 70; ms = at + length) {
			chance = chance * 1103515245 + 12345;
			at = ms + (chance >> 16) % 8;
			length = 1 + (i == 1 ? 60 : (chance >> 20) % 9);
			lock = chance >> 27 & 1;
			fprintf(out,
				"%ums wait kind=mutex fn=cudaMalloc duration=%ums object=%#x "
				"device=0\n%ums memory cudaMalloc duration=%ums op=alloc "
				"kind=device\n",
				at + length, length, 0x1000 * (lock + 1), at + length, length);
			for (each = at; each < at + length; each++)
				truth->waiting[lock][each]++;
		}
	}
}

/* The counter's value, which is told when it changes: in each millisecond what is true, and when it changes nothing beside. */
static void check(json_t *events, const char *name, const unsigned int *waiting)
{
	unsigned int now = 0, ms = 0, value;
	json_t *event;
	size_t i, told = 0;

	json_array_foreach(events, i, event)
	{
		const char *its = json_string_value(json_object_get(event, "name"));
		json_t *values = json_object_get(event, "args");
		/* since the first record */
		double us = json_number_value(json_object_get(event, "ts")) + 1;

		if (!its || strcmp(json_string_value(json_object_get(event, "ph")), "C") != 0 ||
		    strncmp(its, name, strlen(name)) != 0)
			continue;
		value = (unsigned int)json_integer_value(
			json_object_iter_value(json_object_iter(values)));
		for (; 1000.0 * (ms + 1) <= us; ms++)
			if (now != waiting[ms])
				fail_msg("%s: %u in %u ms, not %u", its, now, ms, waiting[ms]);
		if (ms && value > waiting[ms] && value > waiting[ms - 1])
			fail_msg("%s: %u at %g us: %u, then %u", its, value, us, waiting[ms - 1],
				 waiting[ms]);
		now = value;
		told++;
	}
	assert_in_range(told, 50, 2 * LENGTH);
}

static void test_waits(void **state)
{
	char *dir = scratch_make(), path[300], log[300], to[300], *text = NULL;
	char *argv[] = {(char *)"export", (char *)"--format=chrome", to, path, NULL};
	static struct truth truth;
	unsigned int all[LENGTH + 1], i, sum[2] = {0};
	json_t *root, *events;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	tell(&truth, out);
	fclose(out);
	snprintf(log, sizeof(log), "%s/log", dir);
	scratch_write(log, text, size);
	free(text);
	tt_make(log, dir);
	snprintf(path, sizeof(path), "%s/a.1", dir);
	snprintf(to, sizeof(to), "--output=%s/json", dir);
	assert_int_equal(command_export.run(&command_export, 4, argv), 0);
	snprintf(path, sizeof(path), "%s/json", dir);
	root = json_load_file(path, 0, NULL);
	assert_non_null(root);
	events = json_object_get(root, "traceEvents") ?: root;
	for (i = 0; i <= LENGTH; i++) {
		all[i] = truth.waiting[0][i] + truth.waiting[1][i];
		sum[0] += truth.waiting[0][i];
		sum[1] += truth.waiting[1][i];
	}
	check(events, "threads that wait for locks", all);
	/* Locks are numbered by how long was waited for them. */
	check(events, "threads that wait for L1", truth.waiting[sum[1] > sum[0]]);
	check(events, "threads that wait for L2", truth.waiting[sum[1] <= sum[0]]);
	json_decref(root);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
