/*
 * tests/unit/test_analyzer_causes.c: what time was charged to, as a table and in a sentence (analyzer/sections/idle_causes.c): sums
 * that are made by hand.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "analysis.h"
#include "idle/host.h"
#include "scratch.h"
#include "sections/sections.h"
#include "trace_text.h"

static const char told[] =
	"trace a.1 pid=1 program=\"a\"\n"
	"slot 1 tid=7\n1us thread tid=7 name=\"a\"\n"
	"1us python_code code=1 first_line=1 file=\"/home/user/train.py\" function=\"step\"\n"
	"1us python_code code=2 first_line=1 file=\"/home/user/data.py\" function=\"load\"\n"
	"10us op cudaStreamSynchronize stream=8 duration=5us\n";

#define OWNER 7000 /* of nothing else */

struct sums {
	char *dir;
	struct trace_set set;
	struct analysis a;
	struct symbolizer *symbols;
	struct arena texts;
	struct stack stacks[400];
	size_t n_stacks;
};

static int setup(void **state)
{
	struct sums *s = calloc(1, sizeof(*s));
	const struct analysis_options options = {.profile = NULL};
	char path[300];

	s->dir = scratch_make();
	snprintf(path, sizeof(path), "%s/log", s->dir);
	scratch_write(path, told, sizeof(told) - 1);
	tt_make(path, s->dir);
	assert_int_equal(trace_set_open(&s->set, (const char *[]){s->dir}, 1, NULL), 0);
	assert_int_equal(analysis_run(&s->a, &s->set, &options), 0);
	s->symbols = symbolizer_new();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct sums *s = *state;

	symbolizer_free(s->symbols);
	analysis_release(&s->a);
	trace_set_release(&s->set);
	arena_release(&s->texts);
	scratch_remove(s->dir);
	free(s);
	return 0;
}

/* At an address, and a line of Python, if code is not 0. */
static void charge(struct sums *s, uint64_t owner, enum idle_cause cause, uint64_t address,
		   uint32_t code, uint32_t line, uint64_t ns)
{
	const struct process *process = &s->a.model.processes[0];
	struct stack *stack = code ? &s->stacks[s->n_stacks++] : NULL;

	if (stack)
		*stack =
			(struct stack){.process = process, .n_python = 1, .python = {{code, line}}};
	idle_sums_add(&s->a.idle.sums, owner, process,
		      &(struct idle_part){.cause = cause,
					  .fn = NO_FUNCTION,
					  .fn_before = NO_FUNCTION,
					  .address = address,
					  .stack = stack},
		      ns);
}

/* whole_ns of it is charged to these. words: of all, and of the largest; or NULL. */
static void are(struct sums *s, uint64_t whole_ns, const char *expected, const char *words,
		const char *largest)
{
	struct idle_writer w;
	const struct table *causes;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	idle_writer_init(&w, &s->texts, &s->a.idle, s->symbols);
	causes = idle_causes(&w, &rank_causes_kind, OWNER, NULL, whole_ns);
	for (size_t i = 0; i < causes->n_rows; i++)
		fprintf(out, "%s | %s | %llu\n", table_text_at(causes, i, "cause"),
			table_text_at(causes, i, "site") ?: "-",
			(unsigned long long)table_number_at(causes, i, "ns"));
	fclose(out);
	assert_string_equal(text, expected);
	if (words)
		assert_string_equal(
			idle_causes_words(&w, causes, whole_ns ?: idle_causes_ns(causes)), words);
	if (largest)
		assert_string_equal(
			idle_causes_largest(&w, causes, whole_ns ?: idle_causes_ns(causes)),
			largest);
	idle_writer_release(&w);
	free(text);
}

/* Of a place of which some have a line those without are taken for these, in proportion; rounding goes to the last. */
static void test_without_a_line(void **state)
{
	struct sums *s = *state;

	charge(s, OWNER, IDLE_SLEEP, 0x500, 0, 0, 100);
	charge(s, OWNER, IDLE_SLEEP, 0x500, 1, 11, 30);
	charge(s, OWNER, IDLE_SLEEP, 0x500, 1, 12, 60);
	charge(s, OWNER, IDLE_SLEEP, 0x600, 0, 0, 40); /* another place */
	charge(s, OWNER, IDLE_LOCK, 0x500, 0, 0, 20); /* another cause */
	charge(s, OWNER + 1, IDLE_SLEEP, 0x500, 1, 11, 1000);
	charge(s, OWNER - 1, IDLE_SLEEP, 0x500, 1, 11, 1000);
	are(s, 0,
	    "sleep | train.py:12 in step | 127\nsleep | train.py:11 in step | 63\nsleep | - | 40\n"
	    "lock | - | 20\n",
	    "asleep 92 %, waiting for another thread 8.0 %", "asleep: train.py:12 in step (51 %)");
	/* What is not charged goes to the largest. */
	are(s, 300,
	    "sleep | train.py:12 in step | 177\nsleep | train.py:11 in step | 63\nsleep | - | 40\n"
	    "lock | - | 20\n",
	    NULL, "asleep: train.py:12 in step (59 %)");
}

/* What reads alike is one row; where it is Python, all lines of a function that samples have found, at that of the longest. */
static void test_alike(void **state)
{
	struct sums *s = *state;

	charge(s, OWNER, IDLE_SLEEP, 0x500, 1, 11, 30);
	charge(s, OWNER, IDLE_SLEEP, 0x501, 1, 11, 50);
	charge(s, OWNER, IDLE_PYTHON, 0x502, 2, 21, 100);
	charge(s, OWNER, IDLE_PYTHON, 0x503, 2, 22, 150);
	charge(s, OWNER, IDLE_PYTHON, 0x504, 2, 23, 50);
	charge(s, OWNER, IDLE_PYTHON, 0x505, 2, 23, 60);
	charge(s, OWNER, IDLE_PYTHON, 0x506, 1, 23, 70);
	are(s, 0,
	    "python | data.py:22 in load | 360\nsleep | train.py:11 in step | 80\npython | train.py:23 in step | 70\n",
	    "running Python (data.py:22 in load) 84 %, asleep 16 %",
	    "running Python: data.py:22 in load (71 %)");
}

/* A part that is all of it has no share; next to nothing is not said. */
static void test_words(void **state)
{
	struct sums *s = *state;

	charge(s, OWNER, IDLE_PYTHON, 0x500, 1, 11, 1000);
	are(s, 0, "python | train.py:11 in step | 1000\n",
	    "running Python (train.py:11 in step) 100 %", "running Python: train.py:11 in step");
	charge(s, OWNER, IDLE_PYTHON, 0x500, 2, 11, 1200);
	charge(s, OWNER, IDLE_SLEEP, 0x500, 0, 0, 12);
	charge(s, OWNER, IDLE_LOCK, 0x500, 0, 0, 11);
	/* 2223 in all, of which 11 are less than one of 200 */
	are(s, 0,
	    "python | data.py:11 in load | 1200\npython | train.py:11 in step | 1000\nsleep | - | 12\nlock | - | 11\n",
	    "running Python (data.py:11 in load) 99 %, asleep 0.5 %",
	    "running Python: data.py:11 in load (54 %)");
}

/* Of 300 places 255 are told apart. */
static void test_many(void **state)
{
	struct sums *s = *state;
	struct idle_writer w;
	const struct table *causes;

	for (unsigned int i = 0; i < 300; i++)
		charge(s, OWNER, IDLE_SLEEP, 0x500 + i, 1, 100 + i, 1000 + i);
	idle_writer_init(&w, &s->texts, &s->a.idle, s->symbols);
	causes = idle_causes(&w, &rank_causes_kind, OWNER, NULL, 0);
	assert_int_equal(causes->n_rows, 256);
	assert_int_equal(idle_causes_ns(causes), 300 * 1000 + 300 * 299 / 2);
	/* The 45 smallest together are the largest. */
	assert_string_equal(table_text_at(causes, 0, "cause"), "unexplained");
	assert_null(table_text_at(causes, 0, "site"));
	assert_int_equal(table_number_at(causes, 0, "ns"), 45 * 1000 + 45 * 44 / 2);
	assert_string_equal(table_text_at(causes, 1, "site"), "train.py:399 in step");
	assert_string_equal(table_text_at(causes, 255, "site"), "train.py:145 in step");
	idle_writer_release(&w);
}

#define CAUSES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAUSES_TEST(test_without_a_line),
		CAUSES_TEST(test_alike),
		CAUSES_TEST(test_words),
		CAUSES_TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
