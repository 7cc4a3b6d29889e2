/*
 * tests/unit/test_analyzer_timeline.c: slices, arrows and counters of logs in which what records claim does not fit together
 * (analyzer/timeline/): what is cut, what lies in what, where arrows lead, how long queues are.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "account/locks.h"
#include "analysis.h"
#include "scratch.h"
#include "timeline/events.h"
#include "trace_text.h"

/* What is shown, a line each; times in microseconds, as the log has them: it begins with 1 us. */
struct shown {
	struct events *events;
	FILE *out;
	bool counters; /* these alone */
};

static unsigned long long us(uint64_t ns)
{
	return (unsigned long long)ns / 1000 + 1;
}

static void show_slice(void *data, const struct slice *slice)
{
	const struct shown *s = data;

	if (s->counters)
		return;
	fprintf(s->out, "%s %llu-%llu %s: %s", slice->track->name, us(slice->begin_ns),
		us(slice->end_ns), slice_categories[slice->category],
		events_name(s->events, slice->name));
	for (size_t i = 0; i < slice->n; i++) {
		const struct slice_argument *a = &slice->arguments[i];

		if (a->key == ARGUMENT_EXPECTED || a->key == ARGUMENT_GPU ||
		    a->key >= ARGUMENT_BUCKET || a->key == ARGUMENT_STREAM ||
		    a->key == ARGUMENT_DOES || a->key == ARGUMENT_MEMORY || a->key == ARGUMENT_COMM)
			continue;
		if (slice_argument_forms[a->key] == FORM_NAME)
			fprintf(s->out, " %s='%s'", slice_argument_keys[a->key],
				events_name(s->events, (uint32_t)a->value));
		else
			fprintf(s->out, " %s=%llu", slice_argument_keys[a->key],
				(unsigned long long)a->value);
	}
	if (slice->flow)
		fprintf(s->out, " arrow %llu", (unsigned long long)slice->flow);
	fputc('\n', s->out);
}

static void show_flow(void *data, const struct slice *point)
{
	const struct shown *s = data;

	if (!s->counters)
		fprintf(s->out, "arrow %llu %s %s at %llu\n", (unsigned long long)point->flow,
			point->flow_ends ? "to" : "from", point->track->name, us(point->begin_ns));
}

static void show_mark(void *data, const struct slice *slice)
{
	const struct shown *s = data;

	if (!s->counters)
		fprintf(s->out, "%s %llu mark: %s\n", slice->track->name, us(slice->begin_ns),
			events_name(s->events, slice->name));
}

static void show_counter(void *data, struct track *track, uint64_t ns, uint64_t value)
{
	const struct shown *s = data;

	if (s->counters)
		fprintf(s->out, "%s %llu: %llu\n", track->name, us(ns), (unsigned long long)value);
}

/* The log's lines of two threads of a process; a report without findings. */
static void shows(bool counters, const char *seven, const char *eight, const char *expected)
{
	struct shown s = {.counters = counters};
	struct sink sink = {.data = &s,
			    .slice = show_slice,
			    .flow = show_flow,
			    .mark = show_mark,
			    .counter = show_counter};
	char *dir = scratch_make(), path[300], log[8192], *text = NULL;
	struct symbolizer *symbols = symbolizer_new();
	struct analysis known, shown = {0};
	struct trace_set set;
	struct report report;
	size_t size;

	s.out = open_memstream(&text, &size);
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(
		log, sizeof(log),
		"trace a.1 pid=1 program=\"a\" probes=1\nslot 1 tid=7\n1us thread tid=7 name=\"a\"\n%s"
		"slot 2 tid=8\n1us thread tid=8 name=\"b\"\n%s",
		seven, eight);
	scratch_write(path, log, strlen(log));
	tt_make(path, dir);
	assert_int_equal(trace_set_open(&set, (const char *[]){dir}, 1, NULL), 0);
	assert_int_equal(analysis_run(&known, &set, &(struct analysis_options){.profile = NULL}),
			 0);
	free(locks_name(&known.accounts.locks, &size));
	report_init(&report, "test");
	s.events = events_new(&(struct timeline_source){&known, &shown, symbols, &report}, &sink);
	assert_int_equal(
		analysis_run(&shown, &set,
			     &(struct analysis_options){.listener = events_listener(s.events)}),
		0);
	events_finish(s.events);
	events_free(s.events);
	analysis_release(&shown);
	analysis_release(&known);
	report_release(&report);
	symbolizer_free(symbols);
	trace_set_release(&set);
	scratch_remove(dir);
	fclose(s.out);
	if (strcmp(text, expected))
		fail_msg("shown is\n%snot\n%s", text, expected);
	free(text);
}

/* ---- what is cut ------------------------------------------------------------------------------- */

#define SYNC "60us op cudaStreamSynchronize stream=8 duration=20us\n"

/* A wait before a call ends with the call's begin, whatever its record says. */
static void test_waits_before_calls(void **state)
{
	(void)state;
	shows(false, "50us outside kind=sleep duration=35us\n" SYNC, "",
	      "a (7) 15-40 outside: asleep waited_ns=35000\na (7) 40-60 call: cudaStreamSynchronize\n");
	shows(false, "30us outside kind=sleep duration=15us\n" SYNC, "",
	      "a (7) 15-30 outside: asleep waited_ns=15000\na (7) 40-60 call: cudaStreamSynchronize\n");
	/* Behind the last call. */
	shows(false, SYNC "90us outside kind=sleep duration=15us\n", "",
	      "a (7) 40-60 call: cudaStreamSynchronize\na (7) 75-90 outside: asleep waited_ns=15000\n");
}

#define MALLOC "60us memory cudaMalloc op=alloc kind=device bytes=9 duration=22us\n"

/* Calls inside lie in the call, the outer one outside; one whose call is not there is by itself. */
static void test_calls_in_calls(void **state)
{
	(void)state;
	shows(false,
	      "45us nested cuMemAlloc_v2 duration=5us depth=1\n"
	      "52us nested cuCtxGetDevice duration=4us depth=2\n"
	      "52us nested cuMemGetInfo_v2 duration=4us depth=1\n" MALLOC,
	      "",
	      "a (7) 38-60 call: cudaMalloc bytes=9\na (7) 40-45 nested call: cuMemAlloc_v2\n"
	      "a (7) 48-52 nested call: cuMemGetInfo_v2\na (7) 48-52 nested call: cuCtxGetDevice\n");
	shows(false,
	      "30us nested cuCtxGetDevice duration=10us depth=1\n"
	      "45us nested cuMemAlloc_v2 duration=15us depth=1\n" MALLOC,
	      "",
	      "a (7) 20-30 nested call: cuCtxGetDevice\na (7) 38-60 call: cudaMalloc bytes=9\n"
	      "a (7) 38-45 nested call: cuMemAlloc_v2\n");
}

/* ---- waits for locks --------------------------------------------------------------------------- */

#define WAIT(end, ns) \
	end "us wait kind=mutex fn=cuMemAlloc_v2 outer_fn=cudaMalloc duration=" ns \
	    "us object=0x10 device=0 depth=1"

/* A wait that runs into a call inside is where most of it was; of as much in both it is inside. */
static void test_waits_and_calls_inside(void **state)
{
	(void)state;
	shows(false, WAIT("53", "6") "\n58us nested cuMemAlloc_v2 duration=8us depth=1\n" MALLOC,
	      "",
	      "a (7) 38-60 call: cudaMalloc bytes=9\na (7) 50-58 nested call: cuMemAlloc_v2\n"
	      "a (7) 50-53 wait: wait for L1 (heap) lock='L1 (heap)'\n");
	shows(false, WAIT("53", "7") "\n58us nested cuMemAlloc_v2 duration=8us depth=1\n" MALLOC,
	      "",
	      "a (7) 38-60 call: cudaMalloc bytes=9\n"
	      "a (7) 46-50 wait: wait for L1 (heap) lock='L1 (heap)'\n"
	      "a (7) 50-58 nested call: cuMemAlloc_v2\n");
	/* Inside of it. */
	shows(false, WAIT("57", "6") "\n58us nested cuMemAlloc_v2 duration=8us depth=1\n" MALLOC,
	      "",
	      "a (7) 38-60 call: cudaMalloc bytes=9\na (7) 50-58 nested call: cuMemAlloc_v2\n"
	      "a (7) 51-57 wait: wait for L1 (heap) lock='L1 (heap)'\n");
}

#define HELD " holder=8 holder_fn=cudaFree holder_device=0 holder_since=30us\n"
#define WAITED \
	"a (7) 38-60 call: cudaMalloc bytes=9\na (7) 40-55 wait: wait for L1 (heap) lock='L1 (heap)' " \
	"holder='b (8)' holder_call='cudaFree'"

/* The arrow leads to the holder's call as the wait begins, whenever that call returns; to none of another function, or one that is over. */
static void test_arrows(void **state)
{
	(void)state;
	shows(false, WAIT("55", "15") HELD MALLOC, "57us memory cudaFree op=free duration=40us\n",
	      "b (8) 17-57 call: cudaFree\narrow 1 to b (8) at 40\n" WAITED " arrow 1\n");
	shows(false, WAIT("55", "15") HELD MALLOC, "70us memory cudaFree op=free duration=40us\n",
	      WAITED
	      "\nb (8) 30-70 call: cudaFree\narrow 1 from a (7) at 40\narrow 1 to b (8) at 40\n");
	shows(false, WAIT("55", "15") HELD MALLOC,
	      "70us memory cudaHostRegister op=register duration=40us\n",
	      WAITED "\nb (8) 30-70 call: cudaHostRegister\n");
	shows(false, WAIT("55", "15") HELD MALLOC, "70us memory cudaFree op=free duration=29us\n",
	      WAITED "\nb (8) 41-70 call: cudaFree\n");
}

/* ---- counters ---------------------------------------------------------------------------------- */

/* How many wait: the last value in 20 us; what takes no time does not count. */
static void test_queues(void **state)
{
	(void)state;
	shows(true,
	      "140us wait kind=mutex fn=cuMemAlloc_v2 outer_fn=cudaMalloc duration=40us object=0x10 device=0 depth=1\n"
	      "141us memory cudaMalloc op=alloc kind=device bytes=9 duration=50us\n"
	      "240us wait kind=mutex fn=cuMemAlloc_v2 outer_fn=cudaMalloc duration=0us object=0x10 device=0 depth=1\n"
	      "241us memory cudaMalloc op=alloc kind=device bytes=9 duration=50us\n",
	      "150us wait kind=mutex fn=cuMemFree_v2 outer_fn=cudaFree duration=30us object=0x20 device=0 depth=1\n"
	      "151us memory cudaFree op=free duration=50us\n"
	      "320us wait kind=mutex fn=cuMemFree_v2 outer_fn=cudaFree duration=5us object=0x10 device=0 depth=1\n"
	      "321us memory cudaFree op=free duration=50us\n",
	      "threads that wait for L1 (heap) 100: 1\n"
	      "threads that wait for locks 100: 1\n"
	      "threads that wait for L2 (heap) 120: 1\n"
	      "threads that wait for locks 120: 2\n"
	      "threads that wait for L1 (heap) 140: 0\n"
	      "threads that wait for locks 140: 1\n"
	      "threads that wait for L2 (heap) 150: 0\n"
	      "threads that wait for L1 (heap) 315: 1\n"
	      "threads that wait for locks 150: 0\n" /* known to be the last before 170 only now */
	      "threads that wait for locks 315: 1\n"
	      "threads that wait for L1 (heap) 320: 0\n"
	      "threads that wait for locks 320: 0\n");
}

/* Work that is not known to be done, by GPU and stream: which default stream it is. */
static void test_outstanding(void **state)
{
	(void)state;
	shows(true,
	      "100us launch cudaLaunchKernel stream=0x10 duration=2us\n"
	      "200us launch cudaLaunchKernel stream=1 duration=2us\n"
	      "300us launch cudaLaunchKernel stream=2 duration=2us\n"
	      "400us op cudaStreamSynchronize stream=0x10 duration=2us\n",
	      "",
	      "operations not known to be done, GPU 0 100: 1\n"
	      "operations not known to be done, stream 0x10 of GPU 0 100: 1\n"
	      "operations not known to be done, GPU 0 200: 2\n"
	      "operations not known to be done, legacy default stream of GPU 0 200: 1\n"
	      "operations not known to be done, GPU 0 300: 3\n"
	      "operations not known to be done, a thread's default stream of GPU 0 300: 1\n"
	      "operations not known to be done, GPU 0 400: 2\n"
	      "operations not known to be done, stream 0x10 of GPU 0 400: 0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_before_calls),
		cmocka_unit_test(test_calls_in_calls),
		cmocka_unit_test(test_waits_and_calls_inside),
		cmocka_unit_test(test_arrows),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_outstanding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
