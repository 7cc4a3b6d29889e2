/*
 * tests/unit/test_analyzer_recurrence.c: how often what is found comes back while a program works: what is done at the start, at the
 * end or once is a note, what comes again is a problem. And the working phase behind long waits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

#define STEPS 200
#define COPY_NS 2000000

static struct log log_; /* in the making */
static uint64_t now;

static void begin(void)
{
	log_.used = 0;
	now = 1000;
	add(&log_,
	    "trace app.100 pid=100 program=\"app\"\nslot 7 tid=7\n1us thread tid=7 name=\"app\"\n");
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
	add(&log_, "%lluns %s duration=%lluns\n", (unsigned long long)now, text,
	    (unsigned long long)ns);
}

/* Of 2 ms, staged: its place is the same wherever it is made. */
static void copies(unsigned int n)
{
	while (n--)
		call(1000, COPY_NS,
		     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=65536 "
		     "stream=8 caller=0x40");
}

/* Of 10 ms: three launches, two of them of one place, and a wait. */
static void step(void)
{
	call(3 * MS, 4000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
	call(3 * MS, 4000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
	call(3 * MS, 4000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x11");
	call(1000, 900000, "op cudaStreamSynchronize stream=8 caller=0x20");
}

struct when {
	const char *about;
	unsigned int before, behind; /* copies */
	unsigned int first, every, last; /* steps that copy, before they end */
	unsigned int each; /* so many */
	uint64_t pause_ns; /* of such a step */
	/* what is right: */
	const char *recurrence, *words, *severity;
	unsigned int occasions, every_steps;
};

static json_t *report_when(const struct when *w)
{
	unsigned int i;

	begin();
	call(0, 300 * MS, "op cudaSetDevice device=0 caller=0x1");
	call(0, 4000, "launch cudaLaunchKernel kernel=3 stream=8 caller=0x12");
	call(0, 4000, "op cudaStreamSynchronize stream=8 caller=0x22");
	copies(w->before);
	now += 500 * MS;
	for (i = 0; i < STEPS; i++) {
		step();
		if (!w->every || i < w->first || i > w->last || (i - w->first) % w->every)
			continue;
		copies(w->each);
		now += w->pause_ns;
	}
	now += 500 * MS;
	copies(w->behind);
	call(MS, MS, "op cudaDeviceReset caller=0x2");
	return report_on(log_.text);
}

static const struct when cases[] = {
	{"start", .before = 100, .recurrence = "start", .words = "once, at the start",
	 .severity = "note"},
	{"end", .behind = 100, .recurrence = "end", .words = "once, at the end",
	 .severity = "note"},
	{"both", .before = 50, .behind = 50, .recurrence = "outside",
	 .words = "once, at the start and at the end", .severity = "note"},
	{"once", .first = 100, .last = 100, .every = 1, .each = 40, .recurrence = "once",
	 .words = "once, at t = ", .severity = "note", .occasions = 1},
	{"once, with a long pause", .first = 100, .last = 100, .every = 1, .each = 40,
	 .pause_ns = 1000 * MS, .recurrence = "once", .words = "once, at t = ", .severity = "note",
	 .occasions = 1},
	{"some steps, once", .first = 100, .last = 109, .every = 1, .each = 3, .recurrence = "once",
	 .words = "once, at t = ", .severity = "note", .occasions = 1},
	{"each", .last = STEPS, .every = 1, .each = 1, .recurrence = "steps",
	 .words = "in each step", .severity = "problem", .occasions = 1, .every_steps = 1},
	{"half of them", .first = 100, .last = STEPS, .every = 1, .each = 1, .recurrence = "steps",
	 .words = "in most steps", .severity = "problem", .occasions = 1, .every_steps = 1},
	{"each second", .last = STEPS, .every = 2, .each = 1, .recurrence = "again",
	 .words = "every few steps", .severity = "problem", .occasions = 100, .every_steps = 2},
	{"each tenth", .last = STEPS, .every = 10, .each = 3, .recurrence = "again",
	 .words = "20 times, about every 10th step", .severity = "problem", .occasions = 20,
	 .every_steps = 10},
	{"each fortieth", .first = 30, .last = STEPS, .every = 40, .each = 12,
	 .recurrence = "again", .words = "5 times, about every 40th step", .severity = "problem",
	 .occasions = 5, .every_steps = 40},
	{"each fortieth, with pauses", .first = 30, .last = STEPS, .every = 40, .each = 12,
	 .pause_ns = 700 * MS, .recurrence = "again", .words = "5 times, about every 40th step",
	 .severity = "problem", .occasions = 5, .every_steps = 40},
	{"start, and each", .before = 100, .last = STEPS, .every = 1, .each = 1,
	 .recurrence = "steps", .words = "in each step; 202.0 ms of the cost at the start",
	 .severity = "problem", .occasions = 1, .every_steps = 1},
	{"start, and once", .before = 100, .first = 50, .last = 50, .every = 1, .each = 30,
	 .recurrence = "once", .words = "; 200.0 ms of the cost at the start", .severity = "note",
	 .occasions = 1},
	{"start, and too little", .before = 100, .first = 20, .last = 120, .every = 100, .each = 1,
	 .recurrence = "again", .words = "2 times, about every 100th step", .severity = "note",
	 .occasions = 2, .every_steps = 100},
};

static void check_times(const struct when *w, const json_t *finding)
{
	unsigned int within = 0, i;

	for (i = 0; w->every && i < STEPS; i++)
		if (i >= w->first && i <= w->last && (i - w->first) % w->every == 0)
			within += w->each;
	assert_int_equal(number(finding, "count"), w->before + w->behind + within);
	assert_in_range(number(finding, "cost_ns"), (w->before + w->behind + within) * 1950000ull,
			(w->before + w->behind + within) * (uint64_t)COPY_NS);
	/* As much of the cost as of the copies. */
	assert_in_range(number(finding, "working_ns"), within * 1950000ull,
			within * (uint64_t)COPY_NS);
	assert_int_equal(number(finding, "occasions"), w->occasions);
	assert_int_equal(number(finding, "every_steps"), w->every_steps);
}

static void test_when(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *root = report_when(&cases[i]);
		const json_t *finding = find(root, "pageable-copy");

		print_message("%s: %s\n", cases[i].about, text(finding, "recurs"));
		says(finding, "recurrence", cases[i].recurrence);
		says(finding, "recurs", cases[i].words);
		says(finding, "severity", cases[i].severity);
		check_times(&cases[i], finding);
		json_decref(root);
	}
}

/* What is done in the loop comes first, though the start cost more. */
static void test_order(void **state)
{
	json_t *root;
	unsigned int i;

	(void)state;
	begin();
	copies(200);
	now += 500 * MS;
	for (i = 0; i < STEPS; i++) {
		step();
		call(1000, 200000,
		     "memory cudaMalloc op=alloc kind=device bytes=4096 address=%#x caller=0x50",
		     0x9000 + i);
		call(1000, 200000, "memory cudaFree op=free kind=device address=%#x caller=0x51",
		     0x9000 + i);
	}
	root = report_on(log_.text);
	says(json_array_get(json_object_get(root, "findings"), 0), "id", "steady-state");
	says(json_array_get(json_object_get(root, "findings"), 0), "recurs", "in each step");
	says(find(root, "pageable-copy"), "severity", "note");
	assert_int_equal(number(json_object_get(root, "summary"), "problems"),
			 2); /* malloc, free */
	json_decref(root);
}

static void small_copies(unsigned int n)
{
	while (n--)
		call(1000, 20000,
		     "copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=64 "
		     "stream=8 caller=0x40");
}

/* A library's copy loads the model, in the phase, and then moves a few bytes in each step: only the latter come again. Where steps
 * go on meanwhile, it is a part of them. */
static void test_burst(void **state)
{
	json_t *root;

	(void)state;
	for (unsigned int beside = 0; beside < 2; beside++) {
		begin();
		for (unsigned int i = 0; i < STEPS; i++) {
			step();
			small_copies(1);
			if (i >= 28 && i < 60 && (beside || i == 28))
				copies(beside ? 3 : 120);
		}
		root = report_on(log_.text);
		says(find(root, "pageable-copy"), "severity", beside ? "problem" : "note");
		says(find(root, "pageable-copy"), "recurs",
		     beside ? "in each step" : "in each step; 2");
		assert_in_range(number(find(root, "pageable-copy"), "working_ns"),
				beside ? 190 * MS : 0, beside ? 200 * MS : 10 * MS);
		json_decref(root);
	}
}

/* Seven steps are too few to say that something came once. */
static void test_few_steps(void **state)
{
	json_t *root;
	unsigned int i;

	(void)state;
	begin();
	for (i = 0; i < 7; i++) {
		step();
		copies(i == 3 ? 10 : 0);
	}
	root = report_on(log_.text);
	assert_true(json_is_null(json_object_get(find(root, "pageable-copy"), "recurrence")));
	says(find(root, "pageable-copy"), "severity", "problem");
	json_decref(root);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static const char *works_behind(uint64_t wait_s, uint64_t behind_s, bool in_call)
{
	static char found[8];
	json_t *root;
	unsigned int i;

	begin();
	call(0, 300 * MS, "op cudaSetDevice device=0 caller=0x1");
	if (in_call)
		call(0, wait_s * 1000 * MS, "op cudaStreamSynchronize stream=8 caller=0x22");
	else
		now += wait_s * 1000 * MS;
	for (i = 0; i < 283; i++) {
		call(990 * MS, 4000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
		call(1000, 9 * MS, "op cudaStreamSynchronize stream=8 caller=0x20");
	}
	now += behind_s * 1000 * MS;
	call(0, MS, "op cudaDeviceReset caller=0x2");
	root = report_on(log_.text);
	snprintf(found, sizeof(found), "%s",
		 text(json_array_get(json_object_get(root, "phases"), 0), "found"));
	json_decref(root);
	return found;
}

static void test_waits(void **state)
{
	(void)state;
	assert_string_equal(works_behind(7222, 0, false), "yes");
	assert_string_equal(works_behind(10800, 0, false), "yes");
	assert_string_equal(works_behind(1000000, 0, false), "yes");
	assert_string_equal(works_behind(10800, 10800, false), "yes");
	/* That is no wait for the work: the process is in a call, which may be what it is for. */
	assert_string_equal(works_behind(10800, 0, true), "no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_when),  cmocka_unit_test(test_order),
		cmocka_unit_test(test_burst), cmocka_unit_test(test_few_steps),
		cmocka_unit_test(test_waits),
	};

	return RUN_WITH_FINDINGS(tests);
}
