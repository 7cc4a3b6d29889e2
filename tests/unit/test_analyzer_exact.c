/*
 * tests/unit/test_analyzer_exact.c: times of GPUs, put in order and charged (model/gpu_ops.h, idle/exact.c): an
 * operation that is late because of its thread, on its way, or waiting on the device; records that come late, in no order
 * and with times that cannot be; times that are known for a part only.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

#define STEPS 40
#define US 1000
#define AHEAD 7000000000ull /* CUPTI's clock of the trace's */

/* A GPU's records, which are written behind the story's. */
struct gpu_log {
	struct story *s;
	FILE *out;
	char *text;
	size_t size;
	unsigned int correlation, tid; /* tid: that submits; 0: the story's */
	uint64_t brought; /* no record came before */
};

static json_t *gpu(const struct story *s)
{
	return json_array_get(json_object_get(s->root, "gpus"), 0);
}

static uint64_t of(const struct story *s, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(gpu(s), key));
}

static uint64_t charged(const struct story *s, const char *cause)
{
	const json_t *one;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(
		json_object_get(gpu(s), "idle_causes"), i,
		one) if (!cause || !strcmp(json_string_value(json_object_get(one, "cause")), cause))
		sum += (uint64_t)json_integer_value(json_object_get(one, "ns"));
	return sum;
}

static bool is_known(const struct story *s, const char *how)
{
	return !strcmp(json_string_value(json_object_get(gpu(s), "busy_known")), how);
}

static void open_log(struct gpu_log *g, struct story *s)
{
	*g = (struct gpu_log){.s = s};
	begin_with(s, "probes=1");
	g->out = open_memstream(&g->text, &g->size);
	fprintf(g->out,
		"slot 2 gpu=1\n2us gpu_clock clock=2000 gpu=%llu\n"
		"2us gpu_state state=on\n",
		2000 + AHEAD);
}

static void bring(struct gpu_log *g, uint64_t at)
{
	g->brought = g->brought > at ? g->brought : at;
	fprintf(g->out, "%lluns ", (unsigned long long)g->brought);
}

/* An operation of so long that began so long after the call which handed it over, the story's last one, had ended. */
static void ran(struct gpu_log *g, uint64_t after_ns, uint64_t ns)
{
	uint64_t begin = g->s->ns + after_ns;

	g->correlation++;
	bring(g, g->s->ns);
	fprintf(g->out, "gpu_submit correlation=%u begin=%llu end=%llu tid=%u\n", g->correlation,
		(unsigned long long)(g->s->ns - 3 * US + AHEAD),
		(unsigned long long)(g->s->ns - 1 * US + AHEAD), g->tid ?: 7);
	bring(g, begin + ns);
	fprintf(g->out, "gpu_op kind=kernel correlation=%u begin=%llu end=%llu amount=1000\n",
		g->correlation, (unsigned long long)(begin + AHEAD),
		(unsigned long long)(begin + ns + AHEAD));
}

static void end(struct gpu_log *g)
{
	bring(g, g->s->ns);
	fprintf(g->out, "gpu_clock gpu=%llu\n", (unsigned long long)(g->brought + AHEAD));
	bring(g, g->s->ns);
	fprintf(g->out, "gpu_state state=off text=\"the process ends\"\n");
	fclose(g->out);
	fputs(g->text, g->s->log);
	free(g->text);
	conclude(g->s);
}

static void sleeps(struct story *s, uint64_t ns)
{
	s->ns += ns;
	fprintf(s->log, "%lluns outside kind=sleep caller=0x30 duration=%lluns\n",
		(unsigned long long)s->ns, (unsigned long long)ns);
}

/* Steps: a launch of 4 us, whose kernel begins 2 us later and takes 1 ms; a wait for it; and 2 ms of sleep. */
static void tell_steps(struct gpu_log *g)
{
	unsigned int i;

	for (i = 0; i < STEPS; i++) {
		launch(g->s, 0, 4 * US);
		ran(g, 2 * US, MS);
		wait_for_stream(g->s, MS + 10 * US, 0x20);
		sleeps(g->s, 2 * MS);
	}
}

static void test_late_because_of_its_thread(void **state)
{
	struct story *s = *state;
	struct gpu_log g;

	open_log(&g, s);
	tell_steps(&g);
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_int_equal(of(s, "busy_ns") + of(s, "idle_ns"), of(s, "known_ns"));
	assert_int_equal(of(s, "idle_ns"), of(s, "idle_max_ns"));
	assert_int_equal(charged(s, NULL), of(s, "idle_ns"));
	assert_int_equal(of(s, "operations"), STEPS);
	assert_in_range(of(s, "busy_ns"), (STEPS - 1) * MS, STEPS * MS);
	assert_in_range(charged(s, "sleep"), (STEPS - 1) * 2 * MS - 100 * US, STEPS * 2 * MS);
	/* What passes until the GPU has what was launched, and until the host knows that it is done. */
	assert_in_range(charged(s, "launch"), (STEPS - 1) * 5 * US, STEPS * 7 * US);
	assert_in_range(charged(s, "cuda-wait"), (STEPS - 1) * 8 * US, STEPS * 10 * US);
	assert_in_range(charged(s, "dependency"), 0, 2 * US); /* the way of the first one */
	assert_true(of(s, "certain_ns") <= of(s, "idle_ns"));
	assert_true(is_said(s, "worked 34 %, idle 66 % of") ||
		    is_said(s, "worked 33 %, idle 67 % of"));
}

/* Handed over in time: it had to wait for something else on the device. */
static void test_waits_on_the_device(void **state)
{
	struct story *s = *state;
	struct gpu_log g;
	unsigned int i;

	open_log(&g, s);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4 * US);
		ran(&g, 500 * US, MS);
		wait_for_stream(s, 1510 * US, 0x20);
	}
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_in_range(charged(s, "dependency"), (STEPS - 1) * 499 * US, STEPS * 502 * US);
	assert_int_equal(charged(s, NULL), of(s, "idle_ns"));
	assert_in_range(charged(s, "launch"), (STEPS - 1) * 2 * US, STEPS * 6 * US);
}

/* What the submitting call waited for is that. */
static void test_waits_in_the_submission(void **state)
{
	struct story *s = *state;
	struct gpu_log g;
	unsigned int i;

	open_log(&g, s);
	for (i = 0; i < STEPS; i++) {
		s->ns += 900 * US;
		fprintf(s->log,
			"%lluns wait duration=800us kind=mutex object=0x1000 holder=9 "
			"fn=cuLaunchKernel outer_fn=cudaLaunchKernel depth=1\n",
			(unsigned long long)s->ns - 50 * US);
		s->ns -= 900 * US;
		launch(s, 0, 900 * US);
		ran(&g, 2 * US, MS);
		wait_for_stream(s, MS + 10 * US, 0x20);
	}
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_in_range(charged(s, "cuda-lock"), (STEPS - 2) * 790 * US, STEPS * 801 * US);
	assert_int_equal(charged(s, NULL), of(s, "idle_ns"));
}

/* Records come in any order, and long after. */
static void test_order(void **state)
{
	struct story *s = *state;
	uint64_t busy, idle, sleep;
	struct gpu_log g;
	char *line, *lines[4 * STEPS];
	unsigned int n = 0, i;

	open_log(&g, s);
	tell_steps(&g);
	end(&g);
	busy = of(s, "busy_ns");
	idle = of(s, "idle_ns");
	sleep = charged(s, "sleep");
	open_log(&g, s);
	tell_steps(&g);
	/* The last ones first, behind everything. */
	fclose(g.out);
	line = strtok(g.text, "\n");
	for (i = 0; line; line = strtok(NULL, "\n"), i++)
		if (i < 3)
			fprintf(s->log, "%s\n", line);
		else
			lines[n++] = strchr(line, ' ') + 1;
	while (n--)
		fprintf(s->log, "%lluns %s\n", (unsigned long long)s->ns, lines[n]);
	fprintf(s->log, "%lluns gpu_state state=off\n", (unsigned long long)s->ns);
	free(g.text);
	conclude(s);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_int_equal(of(s, "busy_ns"), busy);
	assert_int_equal(of(s, "idle_ns"), idle);
	assert_int_equal(charged(s, "sleep"), sleep);
}

/* Nothing is called exact of which something is missing. */
static void test_not_exact(void **state)
{
	static const char *const wrong[] = {
		"gpu_op kind=kernel correlation=1 begin=0 end=100",
		"gpu_op kind=kernel correlation=1 begin=7000900000 end=7000800000",
		"gpu_op kind=copy correlation=1 begin=9007000900000 end=9007000900100",
		"gpu_clock dropped=1 gpu=7090000000 clock=90000000",
	};
	struct story *s = *state;
	struct gpu_log g;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		open_log(&g, s);
		tell_steps(&g);
		bring(&g, s->ns);
		fprintf(g.out, "%s\n", wrong[i]);
		end(&g);
		assert_true(is_known(s, "bounds"));
		assert_true(is_said(s, "GPU times are not complete"));
		assert_true(of(s, "idle_ns") > STEPS * MS);
	}
}

/* A window ended while an operation was going on: CUPTI knows no end of it, and of the next one nothing. */
static void test_unfinished(void **state)
{
	struct story *s = *state;
	struct gpu_log g;

	open_log(&g, s);
	tell_steps(&g);
	launch(s, 0, 4 * US);
	bring(&g, s->ns + MS);
	fprintf(g.out, "gpu_op kind=kernel correlation=999 begin=%llu end=0\n",
		(unsigned long long)(s->ns + AHEAD));
	bring(&g, s->ns + MS);
	fprintf(g.out, "gpu_op kind=kernel correlation=1000 begin=0 end=0\n");
	wait_for_stream(s, MS + 10 * US, 0x20);
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_in_range(of(s, "busy_ns"), STEPS * MS, (STEPS + 1) * MS + 10 * US);
}

/* Of an operation whose submission is not known nobody is to blame. */
static void test_unknown_submission(void **state)
{
	struct story *s = *state;
	struct gpu_log g;
	unsigned int i;

	open_log(&g, s);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4 * US);
		bring(&g, s->ns + MS);
		fprintf(g.out, "gpu_op kind=kernel begin=%llu end=%llu\n",
			(unsigned long long)(s->ns + AHEAD),
			(unsigned long long)(s->ns + MS + AHEAD));
		wait_for_stream(s, MS + 10 * US, 0x20);
		sleeps(s, 2 * MS);
	}
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_in_range(charged(s, "unexplained"), (STEPS - 2) * 2 * MS, STEPS * 3 * MS);
	assert_int_equal(charged(s, NULL), of(s, "idle_ns"));
}

/* Of a thread that made no call: when it submitted is known, and what it did before is not. */
static void test_unknown_thread(void **state)
{
	struct story *s = *state;
	struct gpu_log g;

	open_log(&g, s);
	g.tid = 99;
	tell_steps(&g);
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	/* 2 us for the submission, and 3 to the GPU. */
	assert_in_range(charged(s, "launch"), (STEPS - 1) * 5 * US, STEPS * 5 * US);
	assert_in_range(charged(s, "unexplained"), (STEPS - 1) * 2 * MS,
			STEPS * (2 * MS + 12 * US));
	assert_int_equal(charged(s, "sleep"), 0);
	assert_int_equal(charged(s, NULL), of(s, "idle_ns"));
}

/* Windows: outside of them nothing is known. */
static void test_windows(void **state)
{
	struct story *s = *state;
	struct gpu_log g;
	unsigned int i;

	open_log(&g, s);
	tell_steps(&g);
	bring(&g, s->ns);
	fprintf(g.out, "gpu_state state=off text=\"a window\"\n");
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4 * US);
		wait_for_stream(s, MS + 10 * US, 0x20);
		sleeps(s, 2 * MS);
	}
	bring(&g, s->ns);
	fprintf(g.out, "gpu_state state=on\n");
	tell_steps(&g);
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_in_range(of(s, "known_ns"), (2 * STEPS - 1) * 3 * MS,
			2 * STEPS * (3 * MS + 16 * US));
	assert_true(of(s, "work_ns") > (3 * STEPS - 1) * (uint64_t)(3 * MS));
	assert_int_equal(of(s, "busy_ns") + of(s, "idle_ns"), of(s, "known_ns"));
	assert_int_equal(charged(s, NULL), of(s, "idle_ns"));
}

/* What is left of a stream begins with operations whose clock is not known: they say nothing, and spoil nothing. */
static void test_begin_is_gone(void **state)
{
	struct story *s = *state;
	struct gpu_log g;

	open_log(&g, s);
	rewind(g.out);
	fprintf(g.out,
		"slot 2 gpu=1\n1us gpu_op kind=kernel begin=%llu end=%llu\n"
		"2us gpu_clock clock=2000 gpu=%llu\n2us gpu_state state=on\n",
		100 + AHEAD, 200 + AHEAD, 2000 + AHEAD);
	tell_steps(&g);
	end(&g);
	if (!is_known(s, "exact"))
		fail_msg("%s", s->shown);
	assert_int_equal(of(s, "operations"), STEPS + 1);
	assert_in_range(of(s, "busy_ns"), (STEPS - 1) * MS, STEPS * MS);
}

/* Another tool took CUPTI: what there is before it is the beginning alone. */
static void test_gave_way(void **state)
{
	struct story *s = *state;
	struct gpu_log g;
	unsigned int i;

	open_log(&g, s);
	tell_steps(&g);
	bring(&g, s->ns);
	fprintf(g.out, "gpu_state state=gave_way text=\"libprofiler.so\"\n");
	for (i = 0; i < 3 * STEPS; i++) {
		launch(s, 0, 4 * US);
		wait_for_stream(s, MS + 10 * US, 0x20);
		sleeps(s, 2 * MS);
	}
	end(&g);
	assert_true(is_known(s, "bounds"));
	assert_true(is_said(s, "until another tool began to use CUPTI: libprofiler.so"));
}

/* Submissions of which no operation came, and a clock that jumps from one end to the other. */
static void test_submissions_alone(void **state)
{
	struct story *s = *state;

	begin_with(s, "probes=1");
	launch(s, 0, 4 * US);
	wait_for_stream(s, MS, 0x20);
	fprintf(s->log,
		"slot 2 gpu=1\n2us gpu_clock clock=2000 gpu=%llu\n"
		"20us gpu_submit correlation=1 begin=%llu end=%llu tid=7\n"
		"30us gpu_clock clock=30000 gpu=%llu\n",
		2000 + AHEAD, 3000 + AHEAD, 4000 + AHEAD, 1ull << 63);
	conclude(s);
	assert_true(is_known(s, "bounds"));
	assert_int_equal(of(s, "operations"), 0);
}

/* Of a program without a working phase, times at either end of the trace count as far as it was traced. */
static void test_ends(void **state)
{
	struct story *s = *state;

	s->log = open_memstream(&s->text, &s->size);
	s->told = 1;
	fprintf(s->log,
		"trace a.1 pid=1 program=\"a\" boot_id=b clock_source=tsc probes=1\n"
		"slot 1 tid=7\n50ms thread tid=7 name=\"a\"\n"
		"100ms launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 duration=4us\n"
		"102ms op cudaStreamSynchronize stream=8 caller=0x20 duration=1ms\n"
		"slot 2 gpu=1\n1us gpu_clock clock=1000 gpu=%llu\n2us gpu_state state=on\n"
		"101ms gpu_op kind=kernel begin=%llu end=%llu\n102ms gpu_state state=off\n",
		1000 + AHEAD, 100 * MS + 1000 + AHEAD, 901 * MS + AHEAD);
	conclude(s); /* report_agrees */
	assert_true(is_known(s, "exact"));
	assert_in_range(of(s, "known_ns"), MS, of(s, "work_ns"));
}

#define UUID "slot 0\n2us gpu device=0 name=\"G\" uuid=\"GPU-1\" pci=\"1\"\n"

/* From then on another process uses the GPU of whose operations nothing is known. */
static void test_another_process(void **state)
{
	struct story *s = *state;
	uint64_t joined, until, k;
	struct report_options options = {.renderer = renderer_find("json")};
	const char *dirs[2];
	char paths[2][512], *text = NULL;
	json_t *root, *row;
	struct gpu_log g;
	size_t size;
	FILE *out;

	open_log(&g, s);
	tell_steps(&g);
	joined = s->ns;
	sleeps(s, 500 * MS);
	until = s->ns;
	tell_steps(&g);
	fprintf(g.out, "%lluns gpu_state state=off text=\"the process ends\"\n" UUID,
		(unsigned long long)s->ns);
	fclose(g.out);
	fputs(g.text, s->log);
	free(g.text);
	fprintf(s->log, "trace b pid=2 program=\"b\" boot_id=b clock_source=tsc\n" UUID
			"slot 1 tid=8\n2us thread tid=8 name=\"b\"\n");
	for (k = joined + MS; k < until; k += MS)
		fprintf(s->log,
			"%lluns launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 "
			"duration=4us\n",
			(unsigned long long)k);
	conclude(s);
	snprintf(paths[0], sizeof(paths[0]), "%s/a.%u", s->dir, s->told);
	snprintf(paths[1], sizeof(paths[1]), "%s/b", s->dir);
	dirs[0] = paths[0];
	dirs[1] = paths[1];
	out = open_memstream(&text, &size);
	assert_int_equal(report_show(dirs, 2, NULL, &options, out), 0);
	fclose(out);
	root = json_loads(text, 0, NULL);
	row = json_array_get(json_object_get(root, "gpus"), 0);
	assert_int_equal(json_array_size(json_object_get(root, "gpus")), 1);
	assert_string_equal(json_string_value(json_object_get(row, "busy_known")), "exact");
	assert_in_range(number(row, "known_ns"), (STEPS - 1) * 3 * MS, STEPS * (3 * MS + 20 * US));
	assert_int_equal(number(row, "busy_ns") + number(row, "idle_ns"), number(row, "known_ns"));
	json_decref(root);
	free(text);
}

/* Steps: a kernel, a function on the host and a kernel behind it in the same stream, or the function in another one. */
static void tell_host_functions(struct gpu_log *g, unsigned int stream)
{
	unsigned int i;

	for (i = 0; i < STEPS; i++) {
		launch(g->s, 0, 4 * US);
		ran(g, 2 * US, 500 * US);
		call(g->s, 1 * US, 2 * US, "op cudaLaunchHostFunc stream=%u caller=0x15", stream);
		launch(g->s, 1 * US, 4 * US);
		ran(g, 4500 * US, 500 * US);
		wait_for_stream(g->s, 5010 * US, 0x20);
	}
}

/* The GPU stands still while a function runs in its stream on the host: that, and where it was handed over. */
static void test_behind_a_host_function(void **state)
{
	struct story *s = *state;
	struct gpu_log g;
	json_t *finding;

	open_log(&g, s);
	tell_host_functions(&g, 8);
	end(&g);
	assert_in_range(charged(s, "host-function"), (STEPS - 1) * 3900 * US, STEPS * 4100 * US);
	assert_in_range(charged(s, "dependency"), 0, STEPS * 4 * US);
	finding = found(s, "stalled-on-device");
	assert_non_null(finding);
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cudaLaunchHostFunc");
	assert_true(rs_is(finding, "severity", "problem"));

	open_log(&g, s);
	tell_host_functions(&g, 9);
	end(&g);
	assert_int_equal(charged(s, "host-function"), 0);
	assert_in_range(charged(s, "dependency"), (STEPS - 1) * 3900 * US, STEPS * 4100 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_behind_a_host_function),
		STORY_TEST(test_late_because_of_its_thread),
		STORY_TEST(test_waits_on_the_device),
		STORY_TEST(test_waits_in_the_submission),
		STORY_TEST(test_order),
		STORY_TEST(test_not_exact),
		STORY_TEST(test_unfinished),
		STORY_TEST(test_unknown_submission),
		STORY_TEST(test_unknown_thread),
		STORY_TEST(test_windows),
		STORY_TEST(test_gave_way),
		STORY_TEST(test_begin_is_gone),
		STORY_TEST(test_submissions_alone),
		STORY_TEST(test_ends),
		STORY_TEST(test_another_process),
	};

	return RUN_WITH_FINDINGS(tests);
}
