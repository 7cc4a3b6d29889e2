/*
 * tests/unit/test_analyzer_phase.c: the phase in which a process works, and what matters in it: a finding is judged by the
 * thread that it costs most, and by what its cure gives back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include "log_findings.h"
#include "analysis.h"
#include "expect/cold.h"
#include "expect/phase.h"
#include "findings/gate.h"
#include "as_record.h"

#define SECOND 1000000000ull

static struct log log_; /* in the making */
static uint64_t now;
static uint64_t up_ns; /* so long the machine had been up by then */

static void tell(const char *head)
{
	log_.used = 0;
	add(&log_, "trace app.100 pid=100 program=\"app\" %s\n", head);
}

static void thread(unsigned int tid)
{
	now = 1000;
	add(&log_, "slot %u tid=%u\n%lluns thread tid=%u name=\"app\"\n", tid, tid,
	    (unsigned long long)(now + up_ns), tid);
}

__attribute__((format(printf, 3, 4))) static void call(uint64_t pause_ns, uint64_t ns,
						       const char *format, ...)
{
	char text[256];
	va_list args;

	now += pause_ns + ns;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add(&log_, "%lluns %s duration=%lluns\n", (unsigned long long)(now + up_ns), text,
	    (unsigned long long)ns);
}

static void launch(uint64_t pause_ns)
{
	call(pause_ns, 4000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
}

static void pageable(uint64_t pause_ns, uint64_t ns)
{
	call(pause_ns, ns,
	     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=65536 stream=8 "
	     "caller=0x40");
}

static void synchronise(uint64_t ns)
{
	call(1000, ns, "op cudaStreamSynchronize stream=8 caller=0x20");
}

static const json_t *phase(const json_t *root)
{
	return json_array_get(json_object_get(root, "phases"), 0);
}

static void works(const json_t *root, double from_s, double until_s)
{
	const json_t *row = phase(root);
	double from = (double)number(row, "begin_ns") / SECOND;
	double until = (double)number(row, "end_ns") / SECOND;

	if (strcmp(text(row, "found"), "yes") || fabs(from - from_s) > 0.03 ||
	    fabs(until - until_s) > 0.03)
		fail_msg("works from %.3f to %.3f s (found: %s), not from %.3f to %.3f", from,
			 until, text(row, "found"), from_s, until_s);
}

/*
 * Twelve seconds: ten of start-up, in which weights are copied from the place that copies batches later; a loop of 1.8 s,
 * of which pageable copies take a tenth; and a shut-down. Ten more threads are there all the time.
 */
static void training(void)
{
	unsigned int i;

	tell("");
	thread(7);
	call(0, 300 * MS, "op cudaSetDevice device=0 caller=0x1");
	for (i = 0; i < 12; i++) /* weights */
		pageable(100000, 30000);
	for (i = 0; i < 40; i++) /* code */
		call(MS, MS, "op cudaFuncGetAttributes caller=%#x", 0x1000 + 16 * i);
	now = 10 * SECOND;
	for (i = 0; i < 100; i++) {
		launch(10 * MS);
		pageable(1000, 1800000);
		now += 5 * MS;
		synchronise(1100000);
	}
	call(200 * MS, MS, "op cudaDeviceReset caller=0x2");
	for (i = 0; i < 10; i++) {
		thread(20 + i);
		call(0, 1000, "call cudaGetDevice caller=0x3");
		now = 12 * SECOND;
		call(0, 1000, "call cudaGetDevice caller=0x3");
	}
}

static void test_training(void **state)
{
	json_t *root;
	const json_t *finding;

	(void)state;
	training();
	root = report_on(log_.text);
	works(root, 10, 11.79);
	finding = find(root, "pageable-copy");
	assert_non_null(finding);
	says(finding, "severity", "problem");
	says(finding, "share_of", "working");
	says(finding, "share", "% of thread 7's working time");
	assert_int_equal(number(finding, "share_thread"), 7);
	assert_in_range(number(finding, "share_ppm"), 95000, 105000);
	assert_in_range(number(finding, "share_of_ns"), 1760 * MS, 1830 * MS);
	json_decref(root);
}

/* Whenever it began. */
static void test_training_later(void **state)
{
	json_t *root;

	(void)state;
	up_ns = 100000 * SECOND;
	training();
	up_ns = 0;
	root = report_on(log_.text);
	works(root, 10, 11.79);
	json_decref(root);
}

/* The same, and calls at two places all through the start-up: if there are enough, they say that it is work, too. */
static void starting_up(unsigned int calls)
{
	training();
	add(&log_, "slot 40 tid=40\n1us thread tid=40 name=\"app\"\n");
	for (unsigned int i = 0; i < calls; i++)
		add(&log_,
		    "%ums op cudaMemsetAsync duration=4us stream=8 caller=0x70\n"
		    "%ums op cudaMemsetAsync duration=4us stream=8 caller=0x80\n",
		    10 + 9900 * i / (calls - 1), 11 + 9900 * i / (calls - 1));
}

static void test_repeated(void **state)
{
	json_t *root;

	(void)state;
	starting_up(7);
	root = report_on(log_.text);
	works(root, 10, 11.79);
	json_decref(root);
	starting_up(8);
	root = report_on(log_.text);
	works(root, 0.01, 11.79);
	json_decref(root);
}

/* With a budget: a gate's answer. */
static bool passes(const char *budget)
{
	struct report_options options = {.renderer = renderer_find("json")};
	char *dir = scratch_make(), path[256], *out_text = NULL;
	const char *dirs[] = {dir};
	struct gate gate;
	bool failed;
	size_t size;
	FILE *out = open_memstream(&out_text, &size);

	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, log_.text, log_.used);
	tt_make(path, dir);
	assert_int_equal(gate_init(&gate, NULL, budget, NULL, 0), 0);
	options.gate = &gate;
	assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
	failed = gate_failed(&gate);
	gate_release(&gate);
	fclose(out);
	free(out_text);
	scratch_remove(dir);
	return !failed;
}

/* A share is one of the working time of the thread that pays most. */
static void test_budget(void **state)
{
	(void)state;
	training();
	assert_true(passes("all:40%"));
	assert_true(passes("pageable-copy:10.5%"));
	assert_false(passes("all:9.5%"));
	assert_false(passes("pageable-copy:2%"));
	assert_true(passes("pageable-copy:190ms"));
	assert_false(passes("pageable-copy:170ms"));
}

/* Nothing recurs: the whole is all there is. */
static void test_no_loop(void **state)
{
	json_t *root;
	unsigned int i;

	(void)state;
	tell("");
	thread(7);
	for (i = 0; i < 40; i++)
		call(10 * MS, 1000, "op cudaFuncGetAttributes caller=%#x", 0x1000 + 16 * i);
	pageable(MS, 20 * MS);
	launch(MS);
	root = report_on(log_.text);
	assert_string_equal(text(phase(root), "found"), "no");
	assert_int_equal(number(phase(root), "begin_ns"), 0);
	assert_in_range(number(phase(root), "end_ns"), 400 * MS, 480 * MS);
	says(find(root, "pageable-copy"), "share", "% of thread 7's time");
	json_decref(root);
}

/* A burst at the beginning of a long life is no phase. */
static void test_burst(void **state)
{
	json_t *root;
	unsigned int i;

	(void)state;
	tell("");
	thread(7);
	for (i = 0; i < 20; i++)
		pageable(1000, 100000);
	now = 60 * SECOND;
	launch(MS);
	root = report_on(log_.text);
	assert_string_equal(text(phase(root), "found"), "no");
	says(find(root, "pageable-copy"), "severity", "minor");
	json_decref(root);
}

/* A loop made of two that take turns, with pauses, and a heart-beat all the time. */
static void test_two_loops(void **state)
{
	json_t *root;
	unsigned int i, j;

	(void)state;
	tell("");
	thread(7);
	now = 2 * SECOND;
	for (i = 0; i < 4; i++) {
		for (j = 0; j < 50; j++) {
			launch(10 * MS);
			synchronise(100000);
		}
		for (j = 0; j < 20; j++)
			launch(10 * MS);
		now += 300 * MS;
	}
	thread(8);
	for (i = 0; i < 12; i++)
		call(SECOND, 1000, "op cudaEventRecord stream=9 caller=0x31");
	root = report_on(log_.text);
	works(root, 2, 5.75);
	json_decref(root);
}

/* Threads that each live for one request: their calls recur all the same. */
static void test_thread_for_each_request(void **state)
{
	json_t *root;
	unsigned int i;

	(void)state;
	tell("");
	thread(7);
	call(0, 300 * MS, "op cudaSetDevice device=0 caller=0x1");
	add(&log_, "slot 8 tid=100\n"); /* one behind the other */
	for (i = 0; i < 50; i++) {
		now = 4 * SECOND + i * 20 * MS;
		add(&log_, "%lluns thread tid=%u name=\"app\"\n", (unsigned long long)now, 100 + i);
		launch(1000);
		pageable(1000, 4 * MS);
		now += 5 * MS;
		synchronise(1100000);
	}
	root = report_on(log_.text);
	works(root, 4, 5);
	says(find(root, "pageable-copy"), "severity", "problem");
	json_decref(root);
}

/* What one thread does once that lives for a moment is no matter, however large a part of its life it is. */
static void test_short_lived(void **state)
{
	json_t *root;
	unsigned int i;

	(void)state;
	tell("");
	thread(7);
	for (i = 0; i < 500; i++) {
		launch(20 * MS);
		synchronise(100000);
	}
	thread(8);
	now = SECOND;
	launch(2 * MS);
	pageable(1000, 1200000);
	now += 2 * MS;
	launch(1000);
	add(&log_, "1100ms thread tid=9 name=\"app\"\n"); /* the slot is another's */
	root = report_on(log_.text);
	assert_int_equal(number(find(root, "pageable-copy"), "cost_ns"), 1200000);
	says(find(root, "pageable-copy"), "severity", "minor");
	json_decref(root);
}

/* First what the cure gives back, not what was spent; and what gives back next to nothing is a note. */
static void test_gain(void **state)
{
	unsigned int i, between_us;

	(void)state;
	for (between_us = 180; between_us; between_us = between_us > 9 ? 9 : 0) {
		json_t *root, *first, *second;

		tell("");
		thread(7);
		for (i = 0; i < 100; i++) {
			launch(1000);
			call(1000, 3600000,
			     "memory cudaFree op=free kind=device address=%#x caller=0x50",
			     0x9000 + i);
			call(between_us * 1000, 2000, "op cudaDeviceSynchronize caller=0x21");
			pageable(1000, 300000);
			now += 9 * MS;
		}
		launch(MS);
		root = report_on(log_.text);
		first = json_array_get(json_object_get(root, "findings"), 0);
		second = json_array_get(json_object_get(root, "findings"), 1);
		assert_string_equal(text(first, "id"), "pageable-copy");
		says(first, "severity", "problem");
		says(second, "function", "cudaFree");
		assert_true(number(second, "cost_ns") > 10 * number(first, "cost_ns"));
		assert_true(number(second, "gain_high_ns") < number(first, "gain_high_ns"));
		says(second, "severity", between_us == 180 ? "problem" : "note");
		json_decref(root);
		assert_true(passes("hidden-sync:20ms,steady-state:20ms"));
	}
}

/* ---- windows --------------------------------------------------------------------------------- */

static void see(struct phase_windows *w, uint64_t time, enum spy_event event,
		enum spy_window_state state, uint32_t number)
{
	union spy_any raw = {.window = {.state = (uint16_t)state, .number = number}};

	raw.other.time = time;
	raw.other.event = (uint16_t)event;
	phase_see_window(w, AS_RECORD(&raw));
}

/* Was CUDA up when recording came to the program? And does it end before the program does? */
static void test_windows(void **state)
{
	struct phase_windows w = {0};
	struct cold_marks marks = {0};
	union spy_any copy = {.copy = {.head = {.event = SPY_EV_COPY}}};
	uint32_t value;

	(void)state;
	see(&w, 10, SPY_EV_GPU, 0, 0); /* never dormant */
	assert_false(phase_joined(&w));

	w = (struct phase_windows){0};
	see(&w, 5, SPY_EV_WINDOW, SPY_WINDOW_CLOSED, 0);
	see(&w, 10, SPY_EV_GPU, 0, 0);
	assert_false(phase_joined(&w)); /* no window yet */
	see(&w, 20, SPY_EV_WINDOW, SPY_WINDOW_OPEN, 1);
	assert_true(phase_joined(&w));
	see(&w, 30, SPY_EV_WINDOW, SPY_WINDOW_CLOSED, 1);
	see(&w, 40, SPY_EV_WINDOW, SPY_WINDOW_OPEN, 2);
	assert_int_equal(w.opened, 20);
	assert_int_equal(w.closed, 0);
	see(&w, 50, SPY_EV_WINDOW, SPY_WINDOW_CLOSED, 2);
	assert_int_equal(w.closed, 50);

	w = (struct phase_windows){0}; /* the window has the program's start in it */
	see(&w, 5, SPY_EV_WINDOW, SPY_WINDOW_CLOSED, 0);
	see(&w, 6, SPY_EV_WINDOW, SPY_WINDOW_OPEN, 1);
	see(&w, 10, SPY_EV_GPU, 0, 0);
	assert_false(phase_joined(&w));

	assert_int_equal(cold_first(&marks, AS_RECORD(&copy), 7, SPY_CONTRACT_COPY_ASYNC, &value),
			 COLD_CONTRACT);
	assert_int_equal(cold_first(&marks, AS_RECORD(&copy), 8, SPY_CONTRACT_INIT, &value),
			 COLD_START);
	cold_marks_forget(&marks);
	cold_marks_join(&marks);
	assert_int_equal(cold_first(&marks, AS_RECORD(&copy), 7, SPY_CONTRACT_COPY_ASYNC, &value),
			 COLD_NOT);
	assert_int_equal(cold_first(&marks, AS_RECORD(&copy), 8, SPY_CONTRACT_INIT, &value),
			 COLD_NOT);
	cold_marks_release(&marks);
}

/* ---- runs of streams ------------------------------------------------------------------------- */

static void see_calls(struct phases *p, uint64_t from, uint64_t n)
{
	union spy_any raw = {.call = {.head = {.event = SPY_EV_CALL}, .caller = 0x10}};
	uint64_t i;

	for (i = from; i < from + n; i++) {
		raw.other.time = i;
		phases_see(p, AS_RECORD(&raw), 1);
	}
}

static const struct phase_site *only_site(const struct phases *p)
{
	size_t i = 0;

	assert_int_equal(p->n_sites, 1);
	while (!p->sites[i].key)
		i++;
	return &p->sites[i];
}

/* Calls of one site in two runs, so many in each: as if they were of one, but for samples between which calls of the second
 * run were not kept. */
static void join_two(uint64_t n, uint64_t more)
{
	struct phases one = {0}, first = {0}, second = {0};
	const struct phase_site *joined, *whole;
	uint32_t i;

	see_calls(&one, 1, n + more);
	see_calls(&second, n + 1, more);
	see_calls(&first, 1, n);
	phases_join(&first, &second);
	joined = only_site(&first);
	whole = only_site(&one);
	assert_int_equal(joined->count, n + more);
	assert_int_equal(joined->first, 1);
	assert_int_equal(joined->last, n + more);
	assert_int_equal(joined->stride, whole->stride);
	assert_in_range(joined->n_samples, whole->n_samples - 1, whole->n_samples);
	for (i = 0; i < joined->n_samples; i++) {
		if (more <= PHASE_SAMPLES) /* all were kept */
			assert_int_equal(joined->samples[i], whole->samples[i]);
		else
			assert_in_range(joined->samples[i], whole->samples[i],
					whole->samples[i] + whole->stride);
	}
	phases_release(&one);
	phases_release(&first);
	phases_release(&second);
}

static void test_join(void **state)
{
	(void)state;
	join_two(0, 9);
	join_two(3, 4);
	join_two(15, 2);
	join_two(100, 16);
	join_two(100, 300);
	join_two(300, 100);
	join_two(5, 1000);
	join_two(997, 1003);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training),    cmocka_unit_test(test_training_later),
		cmocka_unit_test(test_repeated),    cmocka_unit_test(test_budget),
		cmocka_unit_test(test_no_loop),     cmocka_unit_test(test_burst),
		cmocka_unit_test(test_two_loops),   cmocka_unit_test(test_thread_for_each_request),
		cmocka_unit_test(test_short_lived), cmocka_unit_test(test_gain),
		cmocka_unit_test(test_windows),     cmocka_unit_test(test_join),
	};

	return RUN_WITH_FINDINGS(tests);
}
