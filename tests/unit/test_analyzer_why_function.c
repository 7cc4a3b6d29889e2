/*
 * tests/unit/test_analyzer_why_function.c: `cudaspy why` of a function of the program: which names mean it, and that the answer has
 * the time, the waits and the calls of that function and of what it called, and no others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include "base/function_name.h"
#include "cmd/command.h"
#include "story.h"

#define STEPS 20

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	static const struct {
		const char *function, *fits, *not ; /* with blanks between */
	} rows[] = {
		{"save", "save", "sav ave saves Save"},
		{"Net.forward", "forward Net.forward", "Net net.forward t.forward"},
		{"train.<locals>.step", "step train.step train.<locals>.step",
		 "train locals <locals>"},
		{"<lambda>", "<lambda>", "lambda"},
		{"scale(int, float*)", "scale scale(int,_float*)", "int float scale(int)"},
		{"void ns::Field<float, 4>::scale<int>(ns::Field<int>) const",
		 "scale Field::scale ns::Field::scale Field<float,_4>::scale scale<int>",
		 "Field ns void Field<int>::scale Field<int> const"},
		{"(anonymous namespace)::load(std::string)", "load load(std::string)",
		 "string std::string namespace"},
		{"app::(anonymous namespace)::load()", "load app::load app::load()", "app"},
		{"main::{lambda(int)#1}::operator()(int) const", "operator()", "main lambda"},
		{"Pool::Pool(int)", "Pool Pool::Pool", "ool"},
		{"work.constprop.0", "work", "constprop 0"},
		{"f(int) [clone .cold]", "f f(int)", "clone cold"},
		{"broken(", "broken(", ""},
		{"", "", "x"},
	};
	char words[200], *rest, *word;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int fits = 0; fits < 2; fits++) {
			snprintf(words, sizeof(words), "%s", fits ? rows[i].fits : rows[i].not );
			for (rest = words; (word = strsep(&rest, " "));) {
				for (char *at = word; *at; at++)
					*at = *at == '_' ? ' ' : *at;
				if (*word && function_name_fits(rows[i].function, word) != fits)
					fail_msg("'%s' %s '%s'", word, fits ? "is not" : "is",
						 rows[i].function);
			}
		}
	assert_false(function_name_fits("save", ""));
}

static void test_short_names(void **state)
{
	static const char *const rows[][2] = {
		{"save", "save"},
		{"Net.forward", "forward"},
		{"void ns::Field<float>::scale<int>(int) const", "scale"},
		{"(anonymous namespace)::load(std::string)", "load"},
		{"work.constprop.0", "work"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *name = function_name_short(rows[i][0]);

		assert_string_equal(name, rows[i][1]);
		free(name);
	}
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Runs `cudaspy why`; what it writes to that stream. status: what is expected. */
static char *asked(const struct story *s, const char *word, const char *format, int stream,
		   int status)
{
	char trace[400], out[300], option[40],
		*argv[] = {(char *)"why", option, (char *)(uintptr_t)word, trace, NULL};
	int saved = dup(stream), fd, got;

	snprintf(trace, sizeof(trace), "%s/a.%u", s->dir, s->told);
	snprintf(out, sizeof(out), "%s/out", s->dir);
	snprintf(option, sizeof(option), "--format=%s", format);
	fd = open(out, O_CREAT | O_TRUNC | O_WRONLY, 0666);
	fflush(NULL);
	dup2(fd, stream);
	close(fd);
	got = command_why.run(&command_why, 4, argv);
	fflush(NULL);
	dup2(saved, stream);
	close(saved);
	if (got != status)
		fail_msg("why %s: status %d", word, got);
	return scratch_read(out, NULL);
}

static json_t *answer(const struct story *s, const char *word)
{
	char *text = asked(s, word, "json", STDOUT_FILENO, 0);
	json_t *root = json_loads(text, 0, NULL);

	free(text);
	assert_non_null(root);
	return root;
}

/* "-": nothing was found. */
static const char *first_id(const json_t *root)
{
	const json_t *row = json_array_get(json_object_get(root, "findings"), 0);

	return row ? json_string_value(json_object_get(row, "id")) : "-";
}

static int64_t number_of(const json_t *root, const char *table, const char *key)
{
	const json_t *row = json_array_get(json_object_get(root, table), 0);

	return row ? json_integer_value(json_object_get(row, key)) : -1;
}

static void expect_said(const struct story *s, const char *word, const char *words)
{
	char *text = asked(s, word, "text", STDERR_FILENO, 2);

	if (!strstr(text, words))
		fail_msg("why %s says: %s", word, text);
	free(text);
}

/* Python's: two functions of the program, of which one is a method; and a library's of one's name. */
static void tell_samples(FILE *log, const char *what)
{
	fprintf(log,
		"slot 2 tid=0\n"
		"1us python_code code=1 first_line=1 file=\"/home/user/train.py\" function=\"load\"\n"
		"1us python_code code=2 first_line=1 file=\"/home/user/train.py\" function=\"Trainer.save\"\n"
		"1us python_code code=3 first_line=1 file=\"/usr/lib/python3/site-packages/torch/serialization.py\" function=\"load\"\n"
		"1us python_code code=4 first_line=1 file=\"/home/user/train.py\" function=\"fit\"\n"
		"2us place place=1 lines=1:11,4:40\n"
		"2us place place=2 lines=3:900,2:22,4:41\n"
		"%s",
		what);
}

/* Each step has 6 ms between two calls: samples find load in two of three, Trainer.save in one, which calls torch's load. The thread's
 * name is "a"; that of another is "fit". */
static void tell_python(struct story *s)
{
	char *text = NULL;
	size_t size;
	FILE *samples = open_memstream(&text, &size);

	begin_with(s, "probes=1");
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		if (i < 3)
			fprintf(samples, "%lluns sample of=7 place=%d state=1\n",
				(unsigned long long)s->ns + 3 * MS, i == 1 ? 2 : 1);
		s->ns += 6 * MS;
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	fputs("slot 3 tid=9\n1us thread tid=9 name=\"fit\"\n1ms call cudaSetDevice duration=1us\n",
	      s->log);
	fclose(samples);
	tell_samples(s->log, text);
	free(text);
	conclude(s);
}

static void expect_time(const struct story *s, const char *word, int64_t parts, const char *subject)
{
	json_t *root = answer(s, word);
	int64_t ns = number_of(root, "place_threads", "ns");

	assert_in_range(ns, STEPS * 2 * MS * parts - 2, STEPS * 2 * MS * parts + 2);
	assert_in_range(number_of(root, "place_threads", "outside_ns"), STEPS * 6 * MS,
			STEPS * 6 * MS + 2 * MS);
	assert_int_equal(number_of(root, "place_threads", "thread"), 7);
	assert_int_equal(number_of(root, "place_threads", "device"), 0);
	/* All of it was idle time of the GPU that the thread feeds. */
	assert_int_equal(number_of(root, "place_gpus", "ns"), ns);
	assert_int_equal(number_of(root, "place_gpus", "idle_ns"), STEPS * 6 * MS);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "why"), "subject")),
		subject);
	json_decref(root);
}

static void test_python(void **state)
{
	struct story *s = *state;
	json_t *root;

	tell_python(s);
	expect_time(s, "load", 2, "function load (train.py), and what it called");
	expect_time(s, "save", 1, "function Trainer.save (train.py), and what it called");
	expect_time(s, "Trainer.save", 1, "function Trainer.save (train.py), and what it called");
	expect_time(s, "function:fit", 3, "function fit (train.py), and what it called");
	expect_time(s, "train.py:22", 1, "place train.py:22");
	/* The finding's lines are in both. */
	root = answer(s, "Trainer.save");
	assert_string_equal(first_id(root), "starved-by-host");
	json_decref(root);
	/* It leads there, and has no line of its own. */
	root = answer(s, "function:fit");
	assert_int_equal(json_array_size(json_object_get(root, "findings")), 0);
	json_decref(root);
}

/* A thread keeps its name; which else there is, is said. */
static void test_also(void **state)
{
	struct story *s = *state;
	const char *also;
	json_t *root;

	tell_python(s);
	root = answer(s, "fit");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "why"), "subject")),
		"thread 9");
	also = json_string_value(json_object_get(json_object_get(root, "why"), "also"));
	assert_string_equal(also, "a function of the program: cudaspy why function:fit");
	json_decref(root);
	root = answer(s, "a");
	assert_true(json_is_null(json_object_get(json_object_get(root, "why"), "also")));
	json_decref(root);
	root = answer(s, "cudaSetDevice");
	assert_true(json_is_null(json_object_get(json_object_get(root, "why"), "also")));
	json_decref(root);
}

static void test_unknown(void **state)
{
	struct story *s = *state;

	tell_python(s);
	expect_said(s, "lod", "did you mean 'load'?");
	expect_said(s, "function:Trainer.sav", "did you mean 'Trainer.save'?");
	expect_said(s, "function:a", "no function of the program");
	expect_said(s, "Tester.save", "nothing was found there");
	expect_said(s, "train.py:23", "nothing was found there");
}

/* Who had the GIL while the thread waited for it. */
static void test_holders(void **state)
{
	struct story *s = *state;
	char *text = NULL;
	size_t size;
	FILE *samples = open_memstream(&text, &size);
	json_t *root;

	begin_with(s, "probes=1");
	for (unsigned int i = 0; i < STEPS; i++) {
		launch(s, 0, 4000);
		wait_for_stream(s, MS, 0x20);
		fprintf(samples,
			"%lluns sample of=9 place=2 state=32 weight=1\n"
			"%lluns sample of=7 place=1 state=18 holder=9\n",
			(unsigned long long)s->ns + MS, (unsigned long long)s->ns + MS);
		s->ns += 4 * MS;
		fprintf(s->log,
			"%lluns outside kind=condition object=0x1000 caller=0x30 flags=32 duration=4ms\n",
			(unsigned long long)s->ns);
	}
	launch(s, 0, 4000);
	wait_for_stream(s, MS, 0x20);
	fclose(samples);
	tell_samples(s->log, text);
	free(text);
	conclude(s);
	root = answer(s, "save");
	assert_int_equal(number_of(root, "place_waiters", "waiter"), 7);
	assert_in_range(number_of(root, "place_waiters", "ns"), STEPS * 4 * MS - 2,
			STEPS * 4 * MS + 2);
	assert_int_equal(json_array_size(json_object_get(root, "place_threads")), 0);
	json_decref(root);
	/* The line that waited is not where it was held. */
	root = answer(s, "load");
	assert_int_equal(json_array_size(json_object_get(root, "place_waiters")), 0);
	assert_in_range(number_of(root, "place_threads", "ns"), STEPS * 4 * MS - 2,
			STEPS * 4 * MS + 2);
	json_decref(root);
}

/* A lock of the program's own: thread 7 has it in `serve`, where it waits for the GPU, and thread 9 waits for it in `answer`. `rest`
 * has to do with neither. */
static void test_own_lock(void **state)
{
	struct story *s = *state;
	json_t *root;

	begin_with(s, "probes=1");
	fputs("2us python_code code=1 first_line=1 file=\"/home/user/serve.py\" function=\"serve\"\n"
	      "2us python_code code=2 first_line=1 file=\"/home/user/serve.py\" function=\"answer\"\n"
	      "2us python_code code=3 first_line=1 file=\"/home/user/serve.py\" function=\"rest\"\n",
	      s->log);
	for (unsigned int i = 1; i <= STEPS; i++) {
		unsigned int us = 10000 * i, done = us + 4002;

		fprintf(s->log,
			"%uus stack fn=cudaLaunchKernel why=32 frames=0x50\n"
			"%uus python_stack fn=cudaLaunchKernel lines=3:33\n"
			"%uus launch cudaLaunchKernel duration=2us stream=16 caller=0x50\n"
			"%uus stack fn=cudaStreamSynchronize why=32 frames=0x60\n"
			"%uus python_stack fn=cudaStreamSynchronize lines=1:11\n"
			"%uus op cudaStreamSynchronize duration=4000us stream=16 caller=0x60\n",
			us, us, us, done, done, done);
	}
	fputs("slot 2 tid=9\n1us thread tid=9 name=\"b\"\n", s->log);
	for (unsigned int i = 1; i <= STEPS; i++) {
		unsigned int us = 10000 * i + 4000;

		fprintf(s->log,
			"%uus stack fn=- why=32 frames=0x70\n%uus python_stack fn=- lines=2:22\n"
			"%uus outside kind=mutex object=0x7000 holder=7 caller=0x70 duration=3990us\n"
			"%uus launch cudaLaunchKernel duration=2us stream=32 caller=0x80\n",
			us, us, us, us + 10);
	}
	conclude(s);
	for (const char *const *word = (const char *const[]){"serve", "answer", NULL}; *word;
	     word++) {
		root = answer(s, *word);
		assert_int_equal(number_of(root, "own_lock_blame", "waiter"), 9);
		assert_int_equal(number_of(root, "own_lock_blame", "holder"), 7);
		/* Those before both threads work do not count. */
		assert_in_range(number_of(root, "own_lock_blame", "waits"), STEPS - 2, STEPS);
		json_decref(root);
	}
	/* The finding is of both: by function, and by line. */
	for (const char *const *word =
		     (const char *const[]){"serve", "answer", "serve.py:11", "serve.py:22", NULL};
	     *word; word++) {
		root = answer(s, *word);
		if (strcmp(first_id(root), "held-lock"))
			fail_msg("why %s: %s", *word, first_id(root));
		json_decref(root);
	}
	root = answer(s, "rest");
	assert_string_equal(first_id(root), "-");
	assert_int_equal(number_of(root, "place_calls", "calls"), STEPS);
	assert_int_equal(json_array_size(json_object_get(root, "own_lock_blame")), 0);
	json_decref(root);
}

/* ---- several threads ------------------------------------------------------------------------- */

struct samples {
	struct sample {
		unsigned int us, of, place;
	} all[3 * STEPS];
	size_t n;
};

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return x->us < y->us ? -1 : x->us > y->us;
}

/* All threads work for as long. */
static unsigned int steps_of(unsigned int ms)
{
	return STEPS * 5 / (ms + 1);
}

/* Its steps on a GPU of its own: `ms` between two calls, of which a sample tells where, or what it waited for there. */
static void tell_steps(const struct story *s, struct samples *samples, unsigned int tid,
		       unsigned int ms, unsigned int place, const char *waits)
{
	unsigned int device = tid - 7, us = 1000;

	if (tid != 7)
		fprintf(s->log, "slot %u tid=%u\n1us thread tid=%u name=\"t%u\"\n", tid - 5, tid,
			tid, tid);
	for (unsigned int i = 0; i <= steps_of(ms); i++, us += 1000 * ms + 1010) {
		fprintf(s->log,
			"%uus launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 duration=4us device=%u\n"
			"%uus op cudaStreamSynchronize stream=8 caller=0x2%u duration=1ms device=%u\n",
			us, device, us + 1002, device, device);
		if (i == steps_of(ms))
			break;
		if (place)
			samples->all[samples->n++] =
				(struct sample){us + 1002 + 500 * ms, tid, place};
		if (*waits)
			fprintf(s->log, "%uus outside %s caller=%#x duration=%uus\n",
				us + 1002 + 1000 * ms, waits, 0x30 + tid, 1000 * ms);
	}
}

static void conclude_samples(struct story *s, struct samples *samples)
{
	char *text = NULL;
	size_t size;
	FILE *told = open_memstream(&text, &size);

	qsort(samples->all, samples->n, sizeof(samples->all[0]), by_time);
	for (size_t i = 0; i < samples->n; i++)
		fprintf(told, "%uus sample of=%u place=%u state=1 weight=5000\n",
			samples->all[i].us, samples->all[i].of, samples->all[i].place);
	fclose(told);
	tell_samples(s->log, text);
	free(text);
	conclude(s);
}

static int64_t in_row(const json_t *root, const char *table, size_t i, const char *key)
{
	const json_t *row = json_array_get(json_object_get(root, table), i);

	return row ? json_integer_value(json_object_get(row, key)) : -1;
}

/* Findings of calls, of threads and GPUs of which one is asked for. */
static void expect_calls_at(const struct story *s, const char *word, int64_t offset)
{
	json_t *root = answer(s, word), *rows = json_object_get(root, "findings"), *row;
	size_t i;

	assert_int_equal(json_array_size(rows), 1);
	json_array_foreach(rows, i, row)
		assert_int_equal(json_integer_value(json_object_get(row, "offset")), offset);
	json_decref(root);
}

/* Who was longest there comes first; so do the GPUs, which they feed. */
static void test_longest_first(void **state)
{
	static const unsigned int order[] = {8, 9, 7}, ms[] = {4, 9, 6};
	struct samples samples = {.n = 0};
	struct story *s = *state;
	json_t *root;

	begin_with(s, "probes=1");
	for (unsigned int tid = 7; tid <= 9; tid++)
		tell_steps(s, &samples, tid, ms[tid - 7], 1, "");
	conclude_samples(s, &samples);
	root = answer(s, "load");
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		int64_t ns = (int64_t)steps_of(ms[order[i] - 7]) * ms[order[i] - 7] * MS;

		assert_int_equal(in_row(root, "place_threads", i, "thread"), order[i]);
		assert_int_equal(in_row(root, "place_threads", i, "device"), order[i] - 7);
		assert_in_range(in_row(root, "place_threads", i, "ns"), ns - ns / 50, ns + ns / 50);
		assert_int_equal(in_row(root, "place_gpus", i, "device"), order[i] - 7);
		assert_in_range(in_row(root, "place_gpus", i, "ns"), ns - ns / 50, ns + ns / 50);
	}
	assert_int_equal(json_array_size(json_object_get(root, "place_threads")), 3);
	assert_int_equal(json_array_size(json_object_get(root, "place_gpus")), 3);
	json_decref(root);
	for (unsigned int i = 0; i < 3; i++) {
		const char words[][8] = {{'g', 'p', 'u', (char)('0' + i)}, {(char)('7' + i)}};

		expect_calls_at(s, words[0], 0x20 + i);
		expect_calls_at(s, words[1], 0x20 + i);
	}
}

/* It is unknown who held what they waited for: another thread ran there, as its samples say. */
static void test_ran_meanwhile(void **state)
{
	static const char wait[] = "kind=mutex object=0x1000";
	struct samples samples = {.n = 0};
	struct story *s = *state;
	json_t *root;

	begin_with(s, "probes=1");
	tell_steps(s, &samples, 7, 4, 0, wait);
	tell_steps(s, &samples, 8, 9, 0, wait);
	tell_steps(s, &samples, 9, 4, 1, "");
	conclude_samples(s, &samples);
	root = answer(s, "load");
	assert_int_equal(json_array_size(json_object_get(root, "place_waiters")), 2);
	for (size_t i = 0; i < 2; i++) {
		int64_t ns = (int64_t)(i ? 20 * 4 : 10 * 9) * MS;

		assert_int_equal(in_row(root, "place_waiters", i, "waiter"), i ? 7 : 8);
		assert_in_range(in_row(root, "place_waiters", i, "ns"), ns - ns / 50, ns + ns / 50);
		assert_string_equal(
			json_string_value(json_object_get(
				json_array_get(json_object_get(root, "place_waiters"), i), "how")),
			"ran there, most often");
	}
	json_decref(root);
	/* No sample shows it: nothing else has a name like this one. */
	expect_said(s, "save", "no place (file.cu:17)\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
					   cmocka_unit_test(test_short_names),
					   TEST(test_python),
					   TEST(test_also),
					   TEST(test_unknown),
					   TEST(test_holders),
					   TEST(test_own_lock),
					   TEST(test_longest_first),
					   TEST(test_ran_meanwhile)};

	return RUN_WITH_FINDINGS(tests);
}
