/*
 * tests/unit/test_analyzer_samples.c: times between calls are divided by samples, to the nanosecond, and what NVML proves of a GPU
 * beyond the calls is charged to what its thread did.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "story.h"

#define STEPS 20

static json_t *gpu(const struct story *s)
{
	return json_array_get(json_object_get(s->root, "gpus"), 0);
}

static uint64_t ns_of(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* Of the GPU's idle time what is charged to that cause (NULL: any) at a place with that text in it (NULL: anywhere). */
static uint64_t charged(const struct story *s, const char *cause, const char *place)
{
	json_t *one;
	uint64_t ns = 0;
	size_t i;

	json_array_foreach(json_object_get(gpu(s), "idle_causes"), i, one)
	{
		const char *site = json_string_value(json_object_get(one, "site"));

		if ((!cause || !strcmp(json_string_value(json_object_get(one, "cause")), cause)) &&
		    (!place || (site && strstr(site, place))))
			ns += ns_of(one, "ns");
	}
	return ns;
}

/* Records of the sampler, which are in a stream of their own: kept until the thread's are written. */
struct samples {
	char *text;
	size_t size;
	FILE *log;
};

static void begin_samples(struct samples *m)
{
	m->log = open_memstream(&m->text, &m->size);
	fputs("slot 2 tid=0\n"
	      "1us python_code code=1 first_line=1 file=\"/home/user/train.py\" function=\"load\"\n"
	      "1us python_code code=2 first_line=1 file=\"/home/user/train.py\" function=\"save\"\n"
	      "1us python_code code=3 first_line=1 file=\"/usr/lib/python3/site-packages/torch/serialization.py\" function=\"save\"\n"
	      "1us python_code code=4 first_line=1 file=\"/usr/lib/python3/site-packages/torch/serialization.py\" function=\"load\"\n"
	      "1us python_code code=5 first_line=1 file=\"/usr/lib/python3/site-packages/torch/_dynamo/convert_frame.py\" function=\"_compile\"\n"
	      "1us python_code code=6 first_line=1 file=\"/home/user/train.py\" function=\"load.<locals>.<genexpr>\"\n"
	      "1us python_code code=7 first_line=1 file=\"/usr/lib/python3/site-packages/numpy/core.py\" function=\"sort\"\n"
	      "2us place place=1 lines=1:11\n2us place place=2 lines=2:22\n"
	      "2us place place=7 lines=1:15\n2us place place=8 lines=6:16,1:15\n2us place place=9 lines=7:9,1:11\n"
	      /* In C: zlib, by itself and in memcpy; the interpreter; unknown; NumPy. The interpreter at another line, and in memcpy. */
	      "2us module base=0x7f00000000 begin=0x7f00001000 end=0x7f00009000 span_pages=32 path=\"/opt/torch/lib/python3/site-packages/z/libz.so.1\"\n"
	      "2us module base=0x7f01000000 begin=0x7f01001000 end=0x7f01009000 span_pages=32 path=\"/usr/lib/libc.so.6\"\n"
	      "2us module base=0x7f02000000 begin=0x7f02001000 end=0x7f02009000 span_pages=32 path=\"/usr/bin/python3\"\n"
	      "2us module base=0x7f03000000 begin=0x7f03001000 end=0x7f03009000 span_pages=32 path=\"/usr/lib/python3/site-packages/numpy/_umath.so\"\n"
	      "2us module base=0x7f04000000 begin=0x7f04001000 end=0x7f04009000 span_pages=32 path=\"/usr/lib/python3/site-packages/torch/lib/libgomp.so.1\"\n"
	      "2us module base=0x7f05000000 begin=0x7f05001000 end=0x7f05009000 span_pages=32 path=\"/usr/lib/python3/site-packages/torch/lib/libtorch_cpu.so\"\n"
	      "2us place place=17 lines=1:11 frames=0x7f04001001 function=0x7f02001000\n"
	      "2us place place=18 lines=1:11 frames=0x7f05001001 function=0x7f02001000\n"
	      /* A loop of PyTorch's that the cores share: in it, and waiting for the others. */
	      "2us place place=22 lines=1:11 frames=0x7f05001001,0x7f04001001,0x7f05002001 function=0x7f02001000\n"
	      "2us place place=23 lines=1:11 frames=0x7f04001001,0x7f05002001 function=0x7f02001000\n"
	      "2us place place=10 lines=1:11 frames=0x7f00001001 function=0x7f02001000\n"
	      "2us place place=11 lines=1:11 frames=0x7f01001001,0x7f00001001 function=0x7f02001000\n"
	      "2us place place=19 lines=1:11 frames=0x7f00002001 function=0x7f02001000\n"
	      "2us place place=12 lines=1:11 function=0x7f02001000\n"
	      "2us place place=13 lines=1:11 function=0\n"
	      "2us place place=14 lines=1:11 frames=0x7f03001001 function=0x7f02001000\n"
	      "2us place place=15 lines=1:15 function=0x7f02001000\n"
	      "2us place place=16 lines=1:11 frames=0x7f01001001 function=0x7f02001000\n"
	      /* What the program calls; what it does not call; and what has called it. */
	      "2us place place=3 lines=3:900,1:11\n2us place place=4 lines=4:900,1:11\n"
	      "2us place place=5 lines=1:11,5:900\n2us place place=6 lines=4:901,5:900,1:11\n",
	      m->log);
}

/* A story that NVML has a part in. */
static void begin_on_gpu(struct story *s, struct samples *m)
{
	begin_with(s, "probes=1");
	begin_samples(m);
	fputs("2us gpu device=0 name=\"A\" uuid=\"GPU-1\" pci=\"0\"\n", m->log);
}

static void sampled(const struct samples *m, uint64_t ns, const char *what)
{
	fprintf(m->log, "%lluns sample of=7 %s\n", (unsigned long long)ns, what);
}

static void conclude_with(struct story *s, struct samples *m)
{
	fclose(m->log);
	fputs(m->text, s->log);
	free(m->text);
	conclude(s);
}

/* Steps of work, each waited for, with so much time between them. at: what samples find in the middle of each, by its number. */
static void steps(struct story *s, uint64_t between_ns, const char *(*at)(unsigned int i))
{
	struct samples m;
	unsigned int i;

	begin_with(s, "probes=1");
	begin_samples(&m);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		if (at(i))
			sampled(&m, s->ns + between_ns / 2, at(i));
		s->ns += between_ns;
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude_with(s, &m);
}

/* In the first three gaps; none in the others. */
static const char *in_three(unsigned int i)
{
	return i > 2 ? NULL : i == 1 ? "place=2 state=1" : "place=1 state=1";
}

/* Two of five at one line of load, one at another and one in a generator of its; one in save, or where load calls NumPy. */
static const char *in_lines(unsigned int i)
{
	static const char *const at[] = {"place=1 state=1", "place=7 state=1", "place=8 state=1",
					 "place=1 state=1", "place=2 state=1"};

	return at[i % 5];
}

static const char *in_library(unsigned int i)
{
	return i % 5 ? "place=9 state=1" : "place=7 state=1";
}

/* A function's lines are one row, its comprehensions among them; what it calls of a library is another. */
static void test_lines_of_a_function(void **state)
{
	struct story *s = *state;

	steps(s, 60 * MS, in_lines);
	assert_int_equal(charged(s, "python", "train.py:11 in load"), STEPS / 5 * 4 * 60 * MS);
	assert_int_equal(charged(s, "python", "train.py:22 in save"), STEPS / 5 * 60 * MS);
	assert_true(is_said(s, "train.py:11 in load (and 2 more lines of the function)"));
	says(found(s, "starved-by-host"), "most of it at train.py:11 and other lines of load");
	steps(s, 60 * MS, in_library);
	assert_int_equal(charged(s, "python", "train.py:15 in load"), STEPS / 5 * 60 * MS);
	assert_int_equal(charged(s, "python", "train.py:11 in load: numpy.sort"),
			 STEPS / 5 * 4 * 60 * MS);
	assert_non_null(
		strstr(json_string_value(json_object_get(found(s, "starved-by-host"), "fix")),
		       "Do it on the GPU"));
}

/* Short gaps are divided as all the samples in them are, those without one, too. */
static void test_short(void **state)
{
	struct story *s = *state;

	steps(s, 6 * MS, in_three);
	assert_int_equal(ns_of(gpu(s), "idle_ns"), STEPS * 6 * MS);
	assert_in_range(charged(s, "python", "train.py:11 in load"), STEPS * 4 * MS - 2,
			STEPS * 4 * MS + 2);
	assert_in_range(charged(s, "python", "train.py:22 in save"), STEPS * 2 * MS - 2,
			STEPS * 2 * MS + 2);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 6 * MS);
	assert_true(is_said(s, "(places by 3 samples alone)"));
	assert_non_null(found(s, "starved-by-host"));
	assert_string_equal(
		json_string_value(json_object_get(found(s, "starved-by-host"), "python_function")),
		"load");
}

/* Samples in these places, and no others; nothing is lost, whatever is rounded. */
static void divided_among(struct story *s, const char *const places[4])
{
	struct samples m;

	begin_with(s, "probes=1");
	begin_samples(&m);
	fputs("2us place place=20 frames=0x401040 function=0x401001\n"
	      "2us place place=21 frames=0x402040 function=0x402001\n"
	      "2us place place=24 frames=0x403040 function=0x403001\n",
	      m.log);
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		if (i < 4)
			sampled(&m, s->ns + 3 * MS, places[i]);
		s->ns += 6 * MS;
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude_with(s, &m);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 6 * MS);
}

/* A sample each in two functions, and one without a place, which they share: rounded, they have more than there is. The rest
 * is a line's. Three functions that share one have less than there is. */
static void test_rounded(void **state)
{
	struct story *s = *state;

	divided_among(s, (const char *[]){"place=20 state=1 weight=2001",
					  "place=21 state=1 weight=2001", "state=1 weight=2001",
					  "place=1 state=1 weight=20010"});
	assert_in_range(charged(s, "python", "train.py:11 in load"), STEPS * 4 * MS,
			STEPS * 5 * MS);
	divided_among(s, (const char *[]){"place=20 state=1 weight=10000",
					  "place=21 state=1 weight=10000",
					  "place=24 state=1 weight=10000", "state=1 weight=10000"});
	assert_int_equal(charged(s, "cpu", "between"), STEPS * 6 * MS / 40000);
}

static const char *in_few(unsigned int i)
{
	return i > 2    ? NULL
	       : i == 1 ? "place=2 state=1 weight=1000"
			: "place=1 state=1 weight=1000";
}

/* Where most looks have failed, the others may have found what is seldom done: where the thread was is unknown. */
static void test_too_few(void **state)
{
	struct story *s = *state;

	steps(s, 6 * MS, in_few);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 6 * MS);
	assert_int_equal(charged(s, "python", "train.py:11 in load"), 0);
	assert_int_equal(charged(s, "python", "train.py:22 in save"), 0);
	assert_null(strstr(json_string_value(json_object_get(found(s, "starved-by-host"), "what")),
			   "train.py"));
}

/* Long ones are divided by their own, and what has none is as without samples. */
static void test_long(void **state)
{
	struct story *s = *state;

	steps(s, 40 * MS, in_three);
	assert_int_equal(charged(s, "python", "train.py:11 in load"), 2 * 40 * MS);
	assert_int_equal(charged(s, "python", "train.py:22 in save"), 40 * MS);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 40 * MS);
}

static const char *in_calls(unsigned int i)
{
	(void)i;
	return "place=1 state=1 ago=2500000"; /* a millisecond and a half before the gap's begin: in the wait before it */
}

/* The twin: samples that fell into calls say nothing of the time between them. */
static void test_in_calls(void **state)
{
	struct story *s = *state;

	steps(s, 4 * MS, in_calls);
	assert_int_equal(charged(s, NULL, "train.py"), 0);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 4 * MS);
}

static const char *collecting(unsigned int i)
{
	return i % 2 ? "place=1 state=9" : "place=1 state=1";
}

static void test_collector(void **state)
{
	struct story *s = *state;

	steps(s, 4 * MS, collecting);
	assert_in_range(charged(s, "python-gc", "train.py:11 in load"), STEPS * 2 * MS - 2,
			STEPS * 2 * MS + 2);
	assert_in_range(charged(s, "python", "train.py:11 in load"), STEPS * 2 * MS - 2,
			STEPS * 2 * MS + 2);
}

static const char *by_library(unsigned int i)
{
	static const char *const places[] = {"place=3 state=1", "place=4 state=1",
					     "place=5 state=1", "place=6 state=1"};

	return places[i % 4];
}

/* By the library that the program's line has called, in long gaps and in short ones; what has called the program is no reason. */
static void test_libraries(void **state)
{
	static const uint64_t lengths[] = {4 * MS, 40 * MS};
	struct story *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t quarter_ns = STEPS * lengths[i] / 4;

		steps(s, lengths[i], by_library);
		assert_in_range(charged(s, "save", "train.py:11 in load: torch.save"),
				quarter_ns - 2, quarter_ns + 2);
		assert_in_range(charged(s, "compile", "train.py:11 in load"), quarter_ns - 2,
				quarter_ns + 2);
		assert_in_range(charged(s, "python", "train.py:11 in load"), 2 * quarter_ns - 2,
				2 * quarter_ns + 2);
		assert_true(is_said(s, "saving (torch.save)"));
		assert_int_equal(charged(s, NULL, NULL), STEPS * lengths[i]);
	}
}

/* Of all steps; or of the first ten, or of those with a number of one kind. */
static const char *const *in_c_places;

static const char *in_c(unsigned int i)
{
	return in_c_places[i % 5];
}

static const char *in_c_of_half(unsigned int i)
{
	return i % 2 ? in_c(i) : NULL;
}

static const char *in_c_of_few(unsigned int i)
{
	return i < 9 ? in_c(i) : NULL;
}

/* One line is in C whenever that is known; the other takes as long, is in the interpreter, and that is known of it once. */
static const char *in_c_of_lines(unsigned int i)
{
	return i % 2 ? "place=10 state=1" : i ? "place=7 state=1" : "place=15 state=1";
}

static const char *fix(const struct story *s)
{
	return json_string_value(json_object_get(found(s, "starved-by-host"), "fix"));
}

/* What is said of the line in C; NULL: nothing. */
static const char *said_in_c(const struct story *s)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(gpu(s), "idle_causes"), 0), "in_c"));
}

static bool is_silent(const struct story *s)
{
	return !is_said(s, "of it in ") && !is_said(s, "of the time was in") &&
	       strstr(fix(s), "what these lines call in C");
}

#define RAN(place) "place=" #place " state=1"

/* A line of Python, whose time was in a library: of its own (the environment is called like a package); NumPy; a framework's loops on the host, and
 * what it does to hand work to the GPU. */
static void test_in_c(void **state)
{
	static const char *const zlib[] = {RAN(10), RAN(11), RAN(12), RAN(10), RAN(10)};
	static const char *const functions[] = {RAN(10), RAN(19), RAN(12), RAN(10), RAN(19)};
	static const char *const one_of_them[] = {RAN(12), RAN(19), RAN(19), RAN(19), RAN(19)};
	static const char *const numpy[] = {RAN(14), RAN(14), RAN(14), RAN(14), RAN(14)};
	static const char *const loops[] = {RAN(17), RAN(17), RAN(17), RAN(17), RAN(17)};
	static const char *const tensors[] = {RAN(22), RAN(23), RAN(22), RAN(23), RAN(22)};
	static const char *const some[] = {RAN(22), RAN(18), RAN(22), RAN(23), RAN(18)};
	static const char *const torch[] = {RAN(18), RAN(18), RAN(18), RAN(18), RAN(18)};
	static const uint64_t lengths[] = {4 * MS, 40 * MS};
	struct story *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		in_c_places = zlib;
		steps(s, lengths[i], in_c);
		assert_true(is_said(s, "train.py:11 in load, 80 % of it in libz.so.1"));
		says(found(s, "starved-by-host"),
		     "at train.py:11 in load; in load 80 % of the time was in libz.so.1");
		assert_non_null(strstr(fix(s), "That is C code"));
		assert_string_equal(said_in_c(s), "libz.so.1");
		assert_int_equal(charged(s, "python", "train.py:11 in load"), STEPS * lengths[i]);
		in_c_places = functions; /* of one library: none has most of it */
		steps(s, lengths[i], in_c);
		assert_true(is_said(s, "train.py:11 in load, 80 % of it in libz.so.1"));
		assert_string_equal(said_in_c(s), "libz.so.1");
		in_c_places = one_of_them;
		steps(s, lengths[i], in_c);
		assert_true(is_said(s, "train.py:11 in load, 80 % of it in libz.so.1"));
		in_c_places = numpy;
		steps(s, lengths[i], in_c);
		assert_true(is_said(s, "100 % of it in _umath.so"));
		assert_non_null(strstr(fix(s), "Do it on the GPU (CuPy"));
		in_c_places = loops;
		steps(s, lengths[i], in_c);
		assert_non_null(strstr(fix(s), "Do it on the GPU (CuPy"));
		in_c_places = tensors;
		steps(s, lengths[i], in_c);
		assert_non_null(strstr(fix(s), "Do it on the GPU (CuPy"));
		says(found(s, "starved-by-host"),
		     "; in load 100 % of the time was in parallel loops on the CPU (OpenMP)");
		/* The twin: three of five of few samples are not certainly most of them. */
		in_c_places = some;
		steps(s, lengths[i], in_c);
		assert_null(strstr(fix(s), "Do it on the GPU (CuPy"));
		in_c_places = torch;
		steps(s, lengths[i], in_c);
		assert_non_null(strstr(fix(s), "torch.compile the step"));
	}
}

/* The near twins: the interpreter has it, and what it calls of the C library; it is known of too little of the time, or of samples, or of one line alone; or, in older
 * traces, of nothing. */
static void test_not_in_c(void **state)
{
	static const char *const interpreter[] = {RAN(12), RAN(16), RAN(10), RAN(12), RAN(16)};
	static const char *const both[] = {RAN(12), RAN(10), RAN(12), RAN(10), RAN(10)};
	static const char *const unknown[] = {RAN(13), RAN(10), RAN(13), RAN(10), RAN(13)};
	static const char *const zlib[] = {RAN(10), RAN(10), RAN(10), RAN(10), RAN(10)};
	static const char *const older[] = {RAN(1), RAN(1), RAN(1), RAN(1), RAN(1)};
	struct story *s = *state;

	in_c_places = interpreter;
	steps(s, 4 * MS, in_c);
	assert_false(is_said(s, "of it in ") || is_said(s, "of the time was in"));
	assert_non_null(strstr(fix(s), "threads share the interpreter"));
	assert_string_equal(said_in_c(s), "the interpreter");
	in_c_places = both;
	steps(s, 4 * MS, in_c);
	assert_true(is_silent(s));
	in_c_places = unknown;
	steps(s, 4 * MS, in_c);
	assert_true(is_silent(s));
	in_c_places = zlib;
	steps(s, 4 * MS, in_c_of_few);
	assert_true(is_silent(s));
	steps(s, 4 * MS, in_c_of_half); /* (and ten are enough) */
	assert_true(is_said(s, "100 % of it in libz.so.1"));
	steps(s, 4 * MS, in_c_of_lines);
	assert_true(is_silent(s));
	in_c_places = older;
	steps(s, 4 * MS, in_c);
	assert_true(is_silent(s));
	assert_null(said_in_c(s));
}

/* Blocked in a wait that a probe saw: its time is measured already, and has the sample's line. */
static void test_in_a_wait(void **state)
{
	struct story *s = *state;
	struct samples m;
	unsigned int i;

	begin_with(s, "probes=1");
	begin_samples(&m);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		sampled(&m, s->ns + MS, "place=2 state=2");
		s->ns += 2 * MS;
		fprintf(s->log, "%lluns outside kind=sleep caller=0x30 duration=2ms\n",
			(unsigned long long)s->ns);
		s->ns += MS;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
	assert_int_equal(charged(s, "sleep", "train.py:22 in save"), STEPS * 2 * MS);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 3 * MS);
	assert_int_equal(charged(s, "cpu", "train.py"), 0);
}

/* Waits for the GIL: who had it most often, and where. */
static void test_holder(void **state)
{
	struct story *s = *state;
	struct samples m;
	unsigned int i;

	begin_with(s, "probes=1");
	begin_samples(&m);
	fputs("2us non_cuda_thread tid=9 name=\"pt_loader\"\n", m.log);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		fprintf(m.log, "%lluns sample of=9 place=%u state=32 weight=1\n",
			(unsigned long long)s->ns + MS, i ? 2 : 1);
		sampled(&m, s->ns + MS, "place=1 state=18 holder=9");
		s->ns += 4 * MS;
		fprintf(s->log,
			"%lluns outside kind=condition object=0x1000 caller=0x30 flags=32 duration=4ms\n",
			(unsigned long long)s->ns);
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
	assert_int_equal(charged(s, "gil", "held by"), STEPS * 4 * MS);
	assert_true(is_said(s, "pt_loader (9) at train.py:22 in save"));
	assert_non_null(
		strstr(json_string_value(json_object_get(found(s, "gil-contention"), "what")),
		       "train.py:22 in save"));
}

/* What is done once is no case, at however many places samples found it; again and again it is one. */
static void busy_for(struct story *s, unsigned int every)
{
	struct samples m;
	unsigned int i, j;

	begin_with(s, "probes=1");
	begin_samples(&m);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, 5 * MS, 0x20);
		s->ns += MS / 10;
		if (i % every != every - 1)
			continue;
		for (j = 1; j < 10; j++)
			sampled(&m, s->ns + j * 30 * MS,
				j % 2 ? "place=1 state=1" : "place=2 state=1");
		s->ns += 300 * MS;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
}

static void test_once(void **state)
{
	struct story *s = *state;

	busy_for(s, STEPS / 2 + 1);
	assert_true(charged(s, "python", "train.py:11 in load") > 100 * MS);
	assert_true(charged(s, "python", "train.py:22 in save") > 100 * MS);
	assert_null(found(s, "starved-by-host"));
	busy_for(s, STEPS / 4);
	assert_non_null(found(s, "starved-by-host"));
}

/* Of a semaphore: what another thread did meanwhile, in most of the waits. Not one that was blocked itself. */
static void while_others(struct story *s, unsigned int state)
{
	struct samples m;
	unsigned int i;

	begin_with(s, "probes=1");
	begin_samples(&m);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		fprintf(m.log, "%lluns sample of=9 place=%u state=%u weight=10000\n",
			(unsigned long long)s->ns + 10 * MS, i % 4 ? 2 : 1, state);
		s->ns += 20 * MS;
		fprintf(s->log,
			"%lluns outside kind=semaphore object=0x1000 caller=0x30 duration=19ms\n",
			(unsigned long long)s->ns);
	}
	launch(s, 0, 4000);
	fputs("slot 3 tid=9\n1us thread tid=9 name=\"decoder\"\n", m.log);
	conclude_with(s, &m);
}

static void test_meanwhile(void **state)
{
	struct story *s = *state;

	while_others(s, 1);
	assert_true(is_said(s, " ran train.py:22 in save"));
	says(found(s, "starved-by-host"),
	     "most of it while thread 9 'decoder' ran train.py:22 in save");
	assert_string_equal(
		json_string_value(json_object_get(found(s, "starved-by-host"), "python_function")),
		"save");
	while_others(s, 2);
	assert_false(is_said(s, " ran train.py"));
	assert_null(strstr(json_string_value(json_object_get(found(s, "starved-by-host"), "what")),
			   "most of it"));
}

/* Places without a number: each is that of the sample right behind it. */
static void test_without_number(void **state)
{
	struct story *s = *state;
	struct samples m;
	unsigned int i;

	begin_with(s, "probes=1");
	begin_samples(&m);
	for (i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		if (i % 2)
			fprintf(m.log, "%lluns place place=0 lines=%u:33\n",
				(unsigned long long)s->ns + MS, 1 + i / 2 % 2);
		sampled(&m, s->ns + MS, "place=0 state=1");
		s->ns += 40 * MS;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
	assert_int_equal(charged(s, "python", "train.py:33 in load"), STEPS / 4 * 40 * MS);
	assert_int_equal(charged(s, "python", "train.py:33 in save"), STEPS / 4 * 40 * MS);
	assert_int_equal(charged(s, NULL, NULL), STEPS * 40 * MS);
}

#define LONG_STEPS 60 /* of 100 ms, none of them waited for: the calls prove nothing */
#define SHORT_STEPS 14
#define SHORTEST_STEPS 8
#define LAYERS 8

/* NVML looks five times a second; first, then: the utilisation in the first second, and behind it. copies: in each step, of so many
 * nanoseconds. */
static void looked_at_copies(struct story *s, unsigned int steps, unsigned int first,
			     unsigned int then, const char *copies, uint64_t copy_ns)
{
	struct samples m;
	unsigned int i;

	begin_on_gpu(s, &m);
	for (i = 0; i < steps; i++) {
		launch(s, 0, 4000);
		if (copies)
			call(s, 1000, copy_ns, copies);
		sampled(&m, s->ns + MS, "place=1 state=1");
		if (i % 2)
			fprintf(m.log,
				"%lluns gpu_look device=0 busy=%u clock=990 clock_most=1980 reasons=4 others=1 "
				"other_pid=99 power=312600 power_limit=700000 temperature=%u\n",
				(unsigned long long)s->ns + 2 * MS,
				s->ns < 1000 * MS ? first : then, 60 + i % 4);
		s->ns += 100 * MS - copy_ns;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
}

static void looked_at(struct story *s, unsigned int steps, unsigned int first, unsigned int then)
{
	looked_at_copies(s, steps, first, then, NULL, 0);
}

static void test_nvml(void **state)
{
	struct story *s = *state;
	uint64_t work_ns;

	looked_at(s, LONG_STEPS, 10, 10);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 88 / 100, work_ns * 90 / 100);
	assert_int_equal(ns_of(gpu(s), "certain_ns"), 0);
	assert_true(charged(s, "python", "train.py:11 in load") > work_ns * 85 / 100);
	assert_non_null(found(s, "starved-by-host"));
	assert_true(is_said(
		s,
		"slowed by its power limit for 100 % of the time; power 313 of 700 W, 63 degrees C at "
		"most; another process is on it (99)"));
}

/* A process that was not recorded runs kernels for so many per cent of the time; this one waits for the GPU so long in each 100 ms. */
static void beside_another(struct story *s, unsigned int others, uint64_t waited_ns)
{
	struct samples m;
	unsigned int i;

	begin_on_gpu(s, &m);
	for (i = 0; i < LONG_STEPS; i++) {
		launch(s, 0, 4000);
		call(s, 1000, waited_ns, "op cudaStreamSynchronize stream=9 caller=0x30");
		if (i % 2)
			fprintf(m.log,
				"%lluns gpu_look device=0 busy=100 clock=1980 clock_most=1980 others=1 "
				"other_pid=99 own_busy=%u others_busy=%u\n",
				(unsigned long long)s->ns + 2 * MS, 100 - others, others);
		s->ns += 100 * MS - waited_ns;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
}

static void test_unrecorded(void **state)
{
	struct story *s = *state;
	json_t *finding;

	beside_another(s, 48, 90 * MS);
	finding = found(s, "time-slicing");
	says(finding, "another process (99) has work on GPU 0, too");
	says(finding, "its kernels ran for 48 % of the time, this program's for 52 %");
	assert_true(is_said(s, "kernels that are not this program's ran for 48 % of the time"));
	/* No more than the program waits, nor than the others' part. */
	assert_in_range(ns_of(finding, "gain_high_ns"), 2700ull * MS, 2950ull * MS);
	beside_another(s, 48, 20 * MS);
	assert_in_range(ns_of(found(s, "time-slicing"), "gain_high_ns"), 1100 * MS, 1250 * MS);
	/* The twins: it is there, and does next to nothing; of its share nothing is known. */
	beside_another(s, 3, 90 * MS);
	assert_null(found(s, "time-slicing"));
	beside_another(s, 0, 90 * MS);
	assert_null(found(s, "time-slicing"));
}

/* The twins: a GPU that works, and one that works since its first second, of which NVML says late. */
static void test_nvml_busy(void **state)
{
	struct story *s = *state;

	looked_at(s, LONG_STEPS, 99, 99);
	assert_int_equal(ns_of(gpu(s), "estimated_ns"), 0);
	assert_null(found(s, "starved-by-host"));
	looked_at(s, LONG_STEPS, 0, 99);
	assert_int_equal(ns_of(gpu(s), "estimated_ns"), 0);
	assert_null(found(s, "starved-by-host"));
}

/* A second and a half: few looks, of which the largest counts, that of the first second, too. */
static void test_nvml_of_a_short_run(void **state)
{
	struct story *s = *state;
	uint64_t work_ns;

	looked_at(s, SHORT_STEPS, 10, 10);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 88 / 100, work_ns * 90 / 100);
	assert_non_null(found(s, "starved-by-host"));
	looked_at(s, SHORT_STEPS, 60, 10);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 38 / 100, work_ns * 40 / 100);
	looked_at(s, SHORT_STEPS, 99, 10);
	assert_int_equal(ns_of(gpu(s), "estimated_ns"), 0);
}

/* A second: the looks may tell of as much time before it, and of none behind the last one. */
static void test_nvml_of_a_second(void **state)
{
	struct story *s = *state;
	uint64_t work_ns;

	looked_at(s, SHORTEST_STEPS, 10, 10);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 60 / 100, work_ns * 78 / 100);
	assert_non_null(found(s, "starved-by-host"));
	looked_at(s, SHORTEST_STEPS, 50, 50);
	assert_int_equal(ns_of(gpu(s), "estimated_ns"), 0);
	assert_null(found(s, "starved-by-host"));
}

/* As looked_at, beside a thread that waits for a pipe between its calls. */
static void looked_at_beside(struct story *s, const char *its_call)
{
	struct samples m;
	unsigned int i;

	begin_on_gpu(s, &m);
	for (i = 0; i < LONG_STEPS; i++) {
		launch(s, 0, 4000);
		sampled(&m, s->ns + MS, "place=1 state=1");
		fprintf(m.log, "%lluns gpu_look device=0 busy=10\n",
			(unsigned long long)s->ns + 2 * MS);
		s->ns += 100 * MS;
	}
	launch(s, 0, 4000);
	fputs("slot 3 tid=9\n1us thread tid=9 name=\"pt_data_pin\"\n", s->log);
	for (i = 1; i < LONG_STEPS; i++)
		fprintf(s->log,
			"%uus %s duration=4us\n%uus outside kind=transfer file=pipe object=3 caller=0x30 duration=99ms\n",
			i * 100000, its_call, i * 100000 + 99500);
	conclude_with(s, &m);
}

/* One that pins memory feeds no GPU. */
static void test_pinning_thread(void **state)
{
	struct story *s = *state;

	looked_at_beside(s, "launch cudaLaunchKernel kernel=2 stream=9 caller=0x20");
	assert_true(charged(s, "pipe", NULL) > 0);
	looked_at_beside(s, "op cudaMallocHost caller=0x20");
	assert_int_equal(charged(s, "pipe", NULL), 0);
	assert_true(charged(s, "python", "train.py:11 in load") > 0);
}

/* Steps of 100 ms. Thread 7 asks for so many of these whether a GPU is done, and runs Python; thread 9, if there is one, waits for a lock,
 * and computes. NVML saw the GPU at work for a tenth of the time. */
static void fed_by_two(struct story *s, unsigned int asks_ms, unsigned int waits_ms)
{
	struct samples m;
	unsigned int i;

	begin_on_gpu(s, &m);
	for (i = 1; i <= LONG_STEPS; i++) {
		s->ns = i * 100ull * MS;
		launch(s, 0, 4000);
		fprintf(s->log, "%lluns outside kind=query object=0x70 caller=0x30 duration=%ums\n",
			(unsigned long long)s->ns + asks_ms * MS, asks_ms);
		sampled(&m, s->ns + (asks_ms + 1) * MS, "place=1 state=1");
		fprintf(m.log, "%lluns gpu_look device=0 busy=10\n",
			(unsigned long long)s->ns + (asks_ms + 2) * MS);
	}
	s->ns = i * 100ull * MS;
	launch(s, 0, 4000);
	if (waits_ms)
		fputs("slot 3 tid=9\n1us thread tid=9 name=\"feeder\"\n", s->log);
	for (i = 1; waits_ms && i <= LONG_STEPS + 1; i++)
		fprintf(s->log,
			"%u010us launch cudaLaunchKernel kernel=2 stream=9 caller=0x20 duration=4us\n"
			"%ums outside kind=mutex object=0x1000 caller=0x40 duration=%ums\n",
			i * 100, i * 100 + waits_ms + 1, waits_ms);
	conclude_with(s, &m);
}

static void is_nearly(uint64_t ns, double part, uint64_t whole_ns)
{
	uint64_t wanted = (uint64_t)(part * (double)whole_ns);

	assert_in_range(ns, wanted - min_u64(wanted, whole_ns / 50), wanted + whole_ns / 50);
}

/* What all feeders did counts, but for asking; of a wait for another thread what no feeder worked meanwhile. What is left they waited for a GPU. */
static void test_nvml_of_feeders(void **state)
{
	static const struct {
		unsigned int asks_ms, waits_ms;
		double python, cpu, lock, waited; /* of the work's time */
	} cases[] = {
		{50, 0, 0.5, 0, 0, 0.39},
		{5, 0, 0.89, 0, 0, 0},
		/* 50 + 40 + 10 of 60 */
		{50, 60, 0.89 * 50 / 100, 0.89 * 40 / 100, 0.89 * 10 / 100, 0},
		{30, 60, 0.89 * 70 / 110, 0.89 * 40 / 110, 0, 0},
		{90, 80, 0.89 * 10 / 100, 0.89 * 20 / 100, 0.89 * 70 / 100, 0},
	};
	struct story *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t work_ns;

		fed_by_two(s, cases[i].asks_ms, cases[i].waits_ms);
		work_ns = ns_of(gpu(s), "work_ns");
		is_nearly(ns_of(gpu(s), "estimated_ns"), 0.89, work_ns);
		is_nearly(charged(s, "python", "train.py:11"), cases[i].python, work_ns);
		is_nearly(charged(s, "cpu", NULL), cases[i].cpu, work_ns);
		is_nearly(charged(s, "lock", NULL), cases[i].lock, work_ns);
		is_nearly(charged(s, "cuda-wait", NULL), cases[i].waited, work_ns);
		assert_int_equal(charged(s, "gpu-query", NULL), 0);
	}
}

/* A GPU that copies runs no kernel, and is not idle: each step copies 90 MB, which may take 30 ms of 100. */
static void test_nvml_beside_copies(void **state)
{
	static const char copies[] =
		"copy cudaMemcpyAsync stream=0x11 direction=h2d src=pageable dst=device "
		"bytes=90000000 caller=0x20";
	static const char within[] =
		"copy cudaMemcpyAsync stream=0x11 direction=d2d src=device dst=device "
		"bytes=90000000 caller=0x20";
	struct story *s = *state;
	uint64_t work_ns;

	looked_at_copies(s, LONG_STEPS, 10, 10, copies, 40 * MS);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 56 / 100, work_ns * 61 / 100);
	/* A faster one is over, but for what is staged. */
	looked_at_copies(s, LONG_STEPS, 10, 10, copies, 9 * MS);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 76 / 100, work_ns * 80 / 100);
	looked_at_copies(s, LONG_STEPS, 10, 10, within, 20000);
	work_ns = ns_of(gpu(s), "work_ns");
	assert_in_range(ns_of(gpu(s), "estimated_ns"), work_ns * 87 / 100, work_ns * 90 / 100);
}

/* In each step a call of 40 ms of 100: where it loads code, that is what it does, and not handing over work. */
static void test_nvml_beside_loads(void **state)
{
	struct story *s = *state;
	uint64_t loading_ns;

	looked_at_copies(s, LONG_STEPS, 10, 10, "op cuLibraryLoadData caller=0x20 object=0x100",
			 40 * MS);
	loading_ns = charged(s, "code-loading", NULL);
	assert_in_range(loading_ns, 1900ull * MS, 2400ull * MS);
	assert_true(charged(s, "launch", NULL) < 2 * MS);
	looked_at_copies(s, LONG_STEPS, 10, 10, "op cudaHostRegister caller=0x20", 40 * MS);
	assert_int_equal(charged(s, "code-loading", NULL), 0);
	assert_in_range(charged(s, "launch", NULL), loading_ns - MS, loading_ns + 2 * MS);
}

/* Steps of 100 ms; at these three it compiles for 200 ms more. NVML saw the GPU at work for a tenth of the time. Beside it a thread
 * without Python makes so many launches, 3 ms apart, from the third step on. */
static json_t *compiling_beside(struct story *s, const unsigned int at[3], unsigned int launches)
{
	struct samples m;

	begin_on_gpu(s, &m);
	for (unsigned int i = 0; i < LONG_STEPS; i++) {
		bool compiles = i == at[0] || i == at[1] || i == at[2];

		launch(s, 0, 4000);
		sampled(&m, s->ns + MS, compiles ? "place=6 state=1" : "place=1 state=1");
		fprintf(m.log, "%lluns gpu_look device=0 busy=10 clock=990 clock_most=1980\n",
			(unsigned long long)s->ns + 2 * MS);
		s->ns += compiles ? 200 * MS : 100 * MS;
	}
	launch(s, 0, 4000);
	if (launches)
		fputs("slot 3 tid=9\n1us thread tid=9 name=\"tf_xla\"\n", s->log);
	for (unsigned int i = 0; i < launches; i++)
		fprintf(s->log,
			"%uus launch cudaLaunchKernel kernel=2 stream=9 caller=0x30 duration=4us\n",
			205000 + 3000 * i);
	conclude_with(s, &m);
	return found(s, "starved-by-host");
}

static json_t *compiling_at(struct story *s, const unsigned int at[3])
{
	return compiling_beside(s, at, 0);
}

/* What is compiled for the sizes that come first is no loss of the loop; for new sizes again and again it is. */
static void test_compiled_once(void **state)
{
	static const unsigned int first[] = {2, 3, 4}, late[] = {2, 3, LONG_STEPS - 4},
				  always[] = {2, LONG_STEPS / 2, LONG_STEPS - 4};
	struct story *s = *state;
	json_t *finding = compiling_at(s, first);
	uint64_t work_ns = ns_of(gpu(s), "work_ns");

	says(finding, "; compiling took 5");
	says(finding, "ms more, in the first quarter of the work alone");
	assert_in_range(number(finding, "cost_ns"), work_ns * 88 / 100 - 600 * MS,
			work_ns * 90 / 100 - 500 * MS);
	for (unsigned int i = 0; i < 2; i++) {
		finding = compiling_at(s, i ? late : always);
		assert_in_range(number(finding, "cost_ns"), work_ns * 88 / 100, work_ns * 90 / 100);
		assert_null(strstr(what(finding), "first quarter"));
	}
}

/* A compiler's threads try what it made, with more launches than there are in all the work: what they do meanwhile is compiling, too,
 * and the work has hardly begun. The twin: a thread that goes on to the end. */
static void test_tried_once(void **state)
{
	static const unsigned int first[] = {2, 3, 4};
	struct story *s = *state;
	json_t *finding = compiling_beside(s, first, 180);

	says(finding, "; compiling, computing on a CPU took ");
	says(finding, "more, in the first quarter of the work alone");
	says(finding, "was running Python, most of it at train.py:11 in load");
	finding = compiling_beside(s, first, 2000);
	assert_non_null(strstr(what(finding), "computing on a CPU for "));
	assert_null(strstr(what(finding), "computing on a CPU took"));
}

static const char *severity(json_t *finding)
{
	return json_string_value(json_object_get(finding, "severity"));
}

static void is_cure(json_t *finding, const char *words)
{
	const char *fix = json_string_value(json_object_get(finding, "fix"));

	if (!strstr(fix, words))
		fail_msg("the cure is '%s', not '%s'", fix, words);
}

/* Steps of 100 ms in the program's function at line 11, which that function of JAX calls; a step's result is copied for it in that
 * range. NVML saw the GPU at work for a tenth of the time. */
static void called_back(struct story *s, const char *function, const char *range)
{
	struct samples m;

	begin_on_gpu(s, &m);
	fprintf(m.log,
		"2us python_code code=9 first_line=1 file=\"/usr/lib/python3/site-packages/jax/_src/callback.py\" function=\"%s\"\n"
		"2us place place=30 lines=1:11,9:93,2:22\n",
		function);
	fprintf(s->log, "2us range_name number=1 domain=\"TSL\" name=\"%s\"\n", range);
	for (unsigned int i = 0; i < LONG_STEPS; i++) {
		launch(s, 0, 4000);
		fprintf(s->log, "%lluns range what=push name=1\n", (unsigned long long)s->ns + 100);
		call(s, 1000, 10 * MS,
		     "copy cudaMemcpyAsync stream=8 direction=d2h src=device dst=pageable "
		     "bytes=8000000 caller=0x20");
		fprintf(s->log, "%lluns range what=pop name=1\n", (unsigned long long)s->ns + 100);
		sampled(&m, s->ns + MS, "place=30 state=1");
		fprintf(m.log, "%lluns gpu_look device=0 busy=10\n",
			(unsigned long long)s->ns + 2 * MS);
		s->ns += 90 * MS;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
}

/* What JAX runs on the host, and copies for it, has one cause. The twins: another function of the same file; another range. */
static void test_callback(void **state)
{
	static const char callback[] = "Thunk:#name=jit(step)/pure_callback,hlo_op=pure_callback.1",
			  dot[] = "Thunk:#name=jit(step)/dot_general,hlo_op=dot.1";
	struct story *s = *state;
	json_t *finding;

	called_back(s, "pure_callback_impl", callback);
	finding = found(s, "starved-by-host");
	assert_non_null(finding);
	says(finding,
	     "; for 5.400 s of it jax.pure_callback ran functions of the program on the host");
	says(finding, "; with 1 more finding that the same cure mends");
	is_cure(finding, "Write the function in jax.numpy");
	assert_int_equal(number(finding, "python_line"), 11);
	assert_string_equal(severity(found(s, "pageable-copy")), "minor");

	called_back(s, "_prepare", callback);
	assert_string_equal(severity(found(s, "starved-by-host")), "problem");
	assert_null(strstr(what(found(s, "starved-by-host")), "pure_callback"));
	is_cure(found(s, "starved-by-host"), "Do it with fewer lines of Python");
	is_cure(found(s, "pageable-copy"), "jax.pure_callback, jax.io_callback");

	called_back(s, "pure_callback_impl", dot);
	assert_null(strstr(what(found(s, "starved-by-host")), "more finding"));
	is_cure(found(s, "pageable-copy"), "Pin the buffer");
}

/* A free in each step waits for the step's kernels; NVML saw the GPU at work for so much of the time. */
static json_t *freeing(struct story *s, unsigned int busy_percent, const char *more)
{
	struct samples m;
	unsigned int i;

	begin_on_gpu(s, &m);
	for (i = 0; i < 8; i++) /* what it takes on an idle GPU */
		call(s, 1000, 5000,
		     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x50");
	for (i = 0; i < LONG_STEPS; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 90 * MS,
		     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x51");
		fprintf(m.log, "%lluns gpu_look device=0 busy=%u clock=990 clock_most=1980 %s\n",
			(unsigned long long)s->ns, busy_percent, more);
		s->ns += 10 * MS;
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude_with(s, &m);
	return found(s, "hidden-sync");
}

/* Where a GPU has no time to spare, its host's losses may cost nothing. Others on it would be the ones that work. */
static void test_nothing_to_spare(void **state)
{
	struct story *s = *state;
	json_t *finding = freeing(s, 100, "");

	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	says(finding, "in all its work the GPU had");
	assert_true(is_said(s, "a note (perhaps free)"));
	assert_string_equal(json_string_value(json_object_get(freeing(s, 50, ""), "severity")),
			    "problem");
	assert_string_equal(json_string_value(json_object_get(
				    freeing(s, 100, "others=1 other_pid=99"), "severity")),
			    "problem");
}

#define COPY_BACK \
	"copy cudaMemcpyAsync stream=8 direction=d2h src=device dst=pageable bytes=4000000 caller=0x40"

/* In each step of 100 ms a copy back takes 60 ms, which took 1 on an idle GPU; the thread waits right behind it. */
static json_t *copying_back(struct story *s, unsigned int busy_percent, const char *beside)
{
	struct samples m;
	unsigned int i;

	begin_on_gpu(s, &m);
	for (i = 0; i < 20; i++) {
		call(s, 1000, MS, COPY_BACK);
		wait_for_stream(s, 2000, 0x20);
	}
	for (i = 0; i < LONG_STEPS; i++) {
		launch(s, 1000, 4000);
		if (beside)
			call(s, 1000, 4000, "%s", beside);
		call(s, 1000, 60 * MS, COPY_BACK);
		wait_for_stream(s, 2000, 0x20);
		fprintf(m.log, "%lluns gpu_look device=0 busy=%u clock=990 clock_most=1980\n",
			(unsigned long long)s->ns, busy_percent);
		s->ns += 40 * MS;
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude_with(s, &m);
	return found(s, "pageable-copy");
}

/* What is taken for waits would come back behind the copies, but for what cannot have been a wait for a GPU that hardly worked. */
static void test_no_waits(void **state)
{
	struct story *s = *state;
	json_t *finding = copying_back(s, 10, NULL);
	int64_t high_ns = number(finding, "gain_high_ns");

	says(finding, "so that most of it is the copy itself");
	assert_in_range(high_ns, LONG_STEPS * 45ll * MS, LONG_STEPS * 50ll * MS);
	finding = copying_back(s, 70, NULL);
	assert_null(strstr(what(finding), "copy itself"));
	assert_true(number(finding, "gain_high_ns") < high_ns / 4);
	/* The copies may wait for a function on the host, which is no work of the GPU's. */
	finding = copying_back(s, 10, "op cudaLaunchHostFunc stream=8 caller=0x50");
	assert_null(strstr(what(finding), "copy itself"));
}

/* Layers on two GPUs: each step hands work to both, and waits for the second one. NVML says how much each worked. in_order: by
 * events what each is given comes behind what the other one has, but for `beside` operations of each step. */
static void layers_in_order(struct story *s, unsigned int first, unsigned int second,
			    uint64_t waited_ns, bool in_order, unsigned int beside)
{
	struct samples m;
	unsigned int i, j;

	begin_with(s, "probes=1");
	begin_samples(&m);
	fputs("2us gpu device=0 name=\"A\" uuid=\"GPU-1\" pci=\"0\"\n"
	      "2us gpu device=1 name=\"A\" uuid=\"GPU-2\" pci=\"1\"\n",
	      m.log);
	for (i = 0; i < LONG_STEPS; i++) {
		for (j = 0; j < LAYERS; j++)
			launch(s, 0, 4000);
		if (in_order) {
			call(s, 1000, 1000, "op cudaEventRecord stream=8 object=0x51 caller=0x21");
			call(s, 1000, 1000,
			     "op cudaStreamWaitEvent stream=9 object=0x51 caller=0x22 device=1");
		}
		for (j = 0; j < LAYERS; j++)
			call(s, 1000, 4000,
			     "launch cudaLaunchKernel kernel=2 stream=9 caller=0x20 device=1");
		for (j = 0; j < beside; j++)
			launch(s, 0, 4000);
		call(s, 1000, waited_ns, "op cudaStreamSynchronize stream=9 caller=0x30 device=1");
		if (i % 2)
			fprintf(m.log,
				"%lluns gpu_look device=0 busy=%u clock=990 clock_most=1980\n"
				"%lluns gpu_look device=1 busy=%u clock=990 clock_most=1980\n",
				(unsigned long long)s->ns + 2 * MS, first,
				(unsigned long long)s->ns + 2 * MS, second);
		s->ns += 100 * MS - waited_ns;
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
}

static void layers(struct story *s, unsigned int first, unsigned int second, uint64_t waited_ns)
{
	layers_in_order(s, first, second, waited_ns, false, 0);
}

static void test_turns(void **state)
{
	struct story *s = *state;

	layers(s, 50, 44, 95 * MS);
	says(found(s, "serial-gpus"), "estimated: GPUs 0 and 1 work in turn: as NVML says");
	assert_null(found(s, "starved-by-calls"));
}

/* The twins: both work at once for a good part of the time, or may, because no thread waits for them. */
static void test_no_turns(void **state)
{
	struct story *s = *state;

	layers(s, 80, 60, 95 * MS);
	assert_null(found(s, "serial-gpus"));
	layers(s, 50, 44, 50 * MS);
	assert_null(found(s, "serial-gpus"));
	layers(s, 88, 8, 95 * MS); /* one of them does next to nothing */
	assert_null(found(s, "serial-gpus"));
}

/* What NVML and the waits leave open the events do not; and the twins: half of it may be done beside the other's, or the host
 * keeps both waiting. */
static void test_turns_by_events(void **state)
{
	struct story *s = *state;

	layers_in_order(s, 50, 50, 55 * MS, true, 0);
	says(found(s, "serial-gpus"), "what one is given comes behind what another has");
	layers_in_order(s, 50, 50, 55 * MS, false, 0);
	assert_null(found(s, "serial-gpus"));
	layers_in_order(s, 50, 50, 55 * MS, true, LAYERS / 2);
	assert_null(found(s, "serial-gpus"));
	layers_in_order(s, 50, 50, 20 * MS, true, 0);
	assert_null(found(s, "serial-gpus"));
}

/* Steps of 100 ms: one time of that length between calls, in which samples find the thread at `place` (0: there are none), and
 * then so many launches, with a little between them. NVML says 10 %. */
static void many_behind(struct story *s, uint64_t long_ns, unsigned int place,
			unsigned int launches, unsigned int waits)
{
	struct samples m;
	unsigned int i, j;

	begin_on_gpu(s, &m);
	for (i = 0; i < LONG_STEPS; i++) {
		for (j = 1; place && j < 10; j++)
			sampled(&m, s->ns + j * long_ns / 10,
				place == 1 ? "place=1 state=1" : "place=2 state=1");
		s->ns += long_ns;
		for (j = 0; j < launches; j++)
			launch(s, (100 * MS - long_ns) / launches - 10000, 8000);
		for (j = 0; j < waits; j++)
			wait_for_stream(s, 1000, 0x20);
		fprintf(m.log, "%lluns gpu_look device=0 busy=10 clock=990 clock_most=1980\n",
			(unsigned long long)s->ns);
	}
	launch(s, 0, 4000);
	conclude_with(s, &m);
}

static void many(struct story *s, uint64_t long_ns, unsigned int launches, unsigned int waits)
{
	many_behind(s, long_ns, 0, launches, waits);
}

/* A function of the program's own between steps is no launch; less than a fifth of the work is not told apart. */
static void test_own_work(void **state)
{
	struct story *s = *state;

	many_behind(s, 32 * MS, 1, 2000, 1);
	says(found(s, "launch-bound"), "estimated: GPU 0 had nothing to do, as NVML says");
	says(found(s, "starved-by-host"), "train.py:11 in load");
	many_behind(s, 10 * MS, 1, 2000, 1);
	assert_non_null(found(s, "launch-bound"));
	assert_null(found(s, "starved-by-host"));
}

static void test_launches(void **state)
{
	struct story *s = *state;

	many(s, 0, 2000, 1);
	says(found(s, "launch-bound"), "estimated: GPU 0 had nothing to do, as NVML says");
	assert_null(found(s, "starved-by-host"));
}

/* A rank that launches all the time, on a GPU of its own. */
/* A rank's part of a story, which goes on in the log of samples. */
static void begin_rank(struct story *s, struct samples *m, unsigned int rank, const char *program)
{
	s->ns = 1000;
	fprintf(s->log,
		"trace a.%u/%u pid=%u program=\"%s\" boot_id=b clock_source=tsc probes=1 "
		"rank=%u world_size=2 rank_from=RANK\nslot 1 tid=7\n1us thread tid=7 name=\"a\"\n"
		"1us kernel kernel=1 name=\"first\"\n",
		s->told, rank, rank + 1, program, rank);
	begin_samples(m);
	fprintf(m->log, "2us gpu device=0 name=\"A\" uuid=\"GPU-%u\" pci=\"%u\"\n", rank, rank);
}

static void end_rank(struct story *s, struct samples *m)
{
	launch(s, 0, 4000);
	fclose(m->log);
	fputs(m->text, s->log);
	free(m->text);
}

static void rank_launches(struct story *s, unsigned int rank, const char *program)
{
	struct samples m;
	unsigned int i, j;

	begin_rank(s, &m, rank, program);
	for (i = 0; i < LONG_STEPS; i++) {
		for (j = 0; j < 2000; j++)
			launch(s, 40000, 8000);
		wait_for_stream(s, 1000, 0x20);
		fprintf(m.log, "%lluns gpu_look device=0 busy=%u clock=990 clock_most=1980\n",
			(unsigned long long)s->ns, 10 + 20 * rank);
	}
	end_rank(s, &m);
}

static void begin_ranks(struct story *s)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/a.%u", s->dir, ++s->told);
	assert_int_equal(mkdir(path, 0777), 0);
	s->log = open_memstream(&s->text, &s->size);
}

static size_t count_findings(const struct story *s, const char *id)
{
	json_t *finding;
	size_t i, n = 0;

	json_array_foreach(s->findings, i, finding) n +=
		!strcmp(json_string_value(json_object_get(finding, "id")), id);
	return n;
}

static size_t launch_bound_ranks(struct story *s, const char *other_program)
{
	begin_ranks(s);
	rank_launches(s, 0, "a");
	rank_launches(s, 1, other_program);
	conclude(s);
	return count_findings(s, "launch-bound");
}

/* Steps, between which the rank was found at that place. */
static void rank_steps(struct story *s, unsigned int rank, uint64_t between_ns, const char *place)
{
	struct samples m;

	begin_rank(s, &m, rank, "a");
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		sampled(&m, s->ns + between_ns / 2, place);
		s->ns += between_ns;
	}
	end_rank(s, &m);
}

static size_t starved_ranks(struct story *s, const char *place)
{
	begin_ranks(s);
	rank_steps(s, 0, 6 * MS, "place=1 state=1");
	rank_steps(s, 1, 9 * MS, place);
	conclude(s);
	return count_findings(s, "starved-by-host");
}

/* In the same function, at one line or another: one fault. In another function it is another one. */
static void test_steps_of_ranks(void **state)
{
	struct story *s = *state;
	uint64_t turns_ns;
	json_t *finding;

	assert_int_equal(starved_ranks(s, "place=1 state=1"), 1);
	finding = found(s, "starved-by-host");
	says(finding, "GPU 0 waiting: ");
	says(finding, "; the same of rank 0: 100.0 ms");
	/* The turns of host and GPU are the waits' price, as long as these. */
	turns_ns = number(found(s, "early-sync"), "own_ns");
	assert_in_range(turns_ns, 2 * STEPS * (MS - MS / 100), 2 * STEPS * MS);
	assert_int_equal(number(found(s, "early-sync"), "idle_gpu_ns"), turns_ns);
	assert_int_equal(number(finding, "cost_ns"), STEPS * 9 * MS - turns_ns / 2);
	assert_int_equal(number(finding, "idle_gpu_ns"), STEPS * (6 + 9) * MS - turns_ns);
	assert_int_equal(starved_ranks(s, "place=7 state=1"), 1);
	assert_int_equal(starved_ranks(s, "place=2 state=1"), 2);
}

/* Ranks of a job run one program, which is at fault once: it costs the job what it costs the one that it costs most. */
static void test_launches_of_ranks(void **state)
{
	struct story *s = *state;
	json_t *finding;

	assert_int_equal(launch_bound_ranks(s, "a"), 1);
	finding = found(s, "launch-bound");
	says(finding, "; the same of rank 1: ");
	says(finding, "estimated: GPU 0 had nothing to do");
	assert_int_equal(number(finding, "processes"), 2);
	assert_true(number(finding, "idle_gpu_ns") > number(finding, "cost_ns") * 3 / 2);
	assert_int_equal(launch_bound_ranks(s, "b"), 2);
}

/* The twins: most of the time passes in one piece; each second launch is waited for; each comes behind 250 us of something. */
static void test_no_launches(void **state)
{
	struct story *s = *state;

	many(s, 60 * MS, 2000, 1);
	assert_null(found(s, "launch-bound"));
	assert_non_null(found(s, "starved-by-host"));
	many(s, 0, 2000, 1000);
	assert_null(found(s, "launch-bound"));
	many(s, 0, 400, 1);
	assert_null(found(s, "launch-bound"));
	assert_non_null(found(s, "starved-by-host"));
}

/* ---- profilers, and what lies around the work ------------------------------------------------------ */

#define BEGINS "place=30 state=1"
#define ENDS "place=31 state=1"
#define OTHER \
	"place=32 state=1" /* a method of another class, which PyTorch's optimizers call in each step */

/* Steps as above; in two of them samples find the thread at other places. */
static json_t *profiled(struct story *s, unsigned int first, const char *at_first,
			unsigned int last, const char *at_last)
{
	struct samples m;

	begin_with(s, "probes=1");
	begin_samples(&m);
	fputs("2us python_code code=10 first_line=1 file=\"/opt/lib/python3.12/site-packages/torch/profiler/profiler.py\" function=\"_KinetoProfile.start_trace\"\n"
	      "2us python_code code=11 first_line=1 file=\"/opt/lib/python3.12/site-packages/torch/profiler/profiler.py\" function=\"_KinetoProfile.stop_trace\"\n"
	      "2us python_code code=12 first_line=1 file=\"/opt/lib/python3.12/site-packages/torch/autograd/profiler.py\" function=\"record_function.__exit__\"\n"
	      "2us place place=30 lines=10:229,1:11\n2us place place=31 lines=11:283,1:11\n"
	      "2us place place=32 lines=12:860,1:11\n",
	      m.log);
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		sampled(&m, s->ns + 30 * MS,
			i == first  ? at_first
			: i == last ? at_last
				    : "place=1 state=1");
		s->ns += 60 * MS;
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	conclude_with(s, &m);
	return found(s, "starved-by-host");
}

static const char *cell(json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "";
}

static void test_profiler(void **state)
{
	struct story *s = *state;
	json_t *finding = profiled(s, 1, BEGINS, STEPS - 2, ENDS);

	says(finding, "; torch.profiler was recording for 8");
	assert_non_null(strstr(cell(finding, "fix"), "Take torch.profiler out"));
	assert_non_null(strstr(cell(finding, "otherwise"), "Do it with fewer lines of Python"));
}

/* The twins: for a few steps, as a schedule has it; it does not end, or did not begin; another method. */
static void test_no_profiler(void **state)
{
	static const char *const usual = "place=1 state=1";
	static const struct {
		unsigned int first;
		const char *at_first, *at_last;
	} twins[] = {{STEPS / 2 + 1, BEGINS, ENDS},
		     {1, BEGINS, usual},
		     {1, usual, ENDS},
		     {1, BEGINS, OTHER},
		     {1, OTHER, OTHER}};
	struct story *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(twins); i++) {
		json_t *finding =
			profiled(s, twins[i].first, twins[i].at_first, STEPS - 2, twins[i].at_last);

		assert_non_null(finding);
		assert_null(strstr(what(finding), "profiler was recording"));
		assert_null(strstr(cell(finding, "fix"), "profiler"));
	}
}

/* Steps, and behind them so long, in which samples find the thread each 100 ms there. What the report says of it. */
static const char *ends_with(struct story *s, unsigned int pid, uint64_t ns, const char *at)
{
	struct samples m;

	begin_process(s, pid, "probes=1");
	begin_samples(&m);
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		s->ns += 60 * MS;
	}
	for (uint64_t i = 1; at && i * 100 * MS < ns; i++)
		sampled(&m, s->ns + i * 100 * MS, at);
	sampled(&m, s->ns + ns, "state=1");
	conclude_with(s, &m);
	return cell(json_object_get(s->root, "summary"), "besides");
}

static void test_behind_the_work(void **state)
{
	struct story *s = *state;
	const char *said = ends_with(s, 1, 2000 * MS, "place=2 state=1 weight=100000");

	assert_non_null(strstr(said, "after the work, 2.0"));
	assert_non_null(strstr(said, " of the time: thread 7 was running Python, train.py:22 in "
				     "save, for 9"));
	assert_true(is_said(s, said));
	/* Without samples, only how long; blocked, where the first thread is; another may have nothing to do. */
	said = ends_with(s, 1, 2000 * MS, NULL);
	assert_non_null(strstr(said, "after the work, 2.0"));
	assert_null(strstr(said, "thread 7"));
	said = ends_with(s, 1, 2000 * MS, "place=2 state=2 weight=100000");
	assert_null(strstr(said, "thread 7"));
	said = ends_with(s, 7, 2000 * MS, "place=2 state=2 weight=100000");
	assert_non_null(strstr(said, "thread 7 was waiting, train.py:22 in save, for 9"));
	/* The twin: less than a second. */
	assert_string_equal(ends_with(s, 1, 900 * MS, "place=2 state=1 weight=100000"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_few, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_collector, setup, teardown),
		cmocka_unit_test_setup_teardown(test_libraries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_c, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_in_c, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_a_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holder, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_number, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unrecorded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml, setup, teardown),
		cmocka_unit_test_setup_teardown(test_profiler, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_profiler, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_the_work, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml_of_a_short_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml_of_a_second, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_of_a_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pinning_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml_of_feeders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml_beside_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_to_spare, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvml_beside_loads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compiled_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tried_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_callback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_launches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_launches_of_ranks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_steps_of_ranks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_launches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_work, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns_by_events, setup, teardown),
	};

	return RUN_WITH_FINDINGS(tests);
}
