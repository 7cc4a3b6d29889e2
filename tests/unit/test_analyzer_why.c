/*
 * tests/unit/test_analyzer_why.c: what a word means that `cudaspy why` is asked about, and that its answer is about that,
 * however much worse the rest of the program is.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include "cmd/command.h"
#include "scratch.h"
#include "trace_text.h"

#define MANY 60 /* calls: more than those that are shown one by one */

struct fixture {
	char *dir, log[300], out[300];
};

/* Thread 101 waits long and often for the lock L1, in cudaMalloc, on GPU 0, for thread 102. Once and for a short
 * time thread 103 (GPU 1) waits for L2, in cudaEventCreate, for thread 104; and 105, whose name is that of a function,
 * in cudaStreamCreate. Both are on GPU 1. The names of 106 and 107 are equal; those of 108 and 109 look like
 * numbers of threads. */
static void tell(struct fixture *f)
{
	char *text = NULL;
	size_t size;
	unsigned int i;
	FILE *out = open_memstream(&text, &size);

	fputs("trace a.1 pid=1 program=\"a\" probes=1\n"
	      "slot 1 tid=101\n1us thread tid=101 name=\"loud\"\n"
	      "1ms memory cudaMalloc duration=9us op=alloc kind=device\n",
	      out);
	for (i = 1; i <= MANY; i++)
		fprintf(out,
			"%u0ms wait kind=mutex fn=cudaMalloc duration=5ms object=0x1000 device=0 "
			"holder=102 holder_fn=cudaFree holder_device=0\n"
			"%u0001us memory cudaMalloc duration=5010us op=alloc kind=device\n",
			i, i);
	fputs("slot 2 tid=102\n1us thread tid=102 name=\"other\"\n"
	      "900ms memory cudaFree duration=899ms op=free kind=device address=0x1\n"
	      "slot 3 tid=103\n1us thread tid=103 name=\"quiet\"\n"
	      "1ms op cudaEventCreate duration=5us device=1\n"
	      "50ms wait kind=mutex fn=cudaEventCreate duration=200us object=0x2000 device=1 "
	      "holder=104 holder_fn=cudaHostRegister holder_device=1\n"
	      "50001us op cudaEventCreate duration=210us device=1\n"
	      "slot 4 tid=104\n1us thread tid=104 name=\"holder\"\n"
	      "60ms memory cudaHostRegister duration=20ms op=register kind=pinned device=1\n"
	      "slot 5 tid=105\n1us thread tid=105 name=\"cudaMalloc\"\n"
	      "1ms op cudaStreamCreate duration=5us device=1\n"
	      "50ms wait kind=mutex fn=cudaStreamCreate duration=300us object=0x3000 device=1 "
	      "holder=104 holder_fn=cudaHostRegister holder_device=1\n"
	      "50001us op cudaStreamCreate duration=310us device=1\n"
	      "slot 6 tid=106\n1us thread tid=106 name=\"twin\"\n"
	      "1ms call cudaSetDevice duration=1us\n"
	      "slot 7 tid=107\n1us thread tid=107 name=\"twin\"\n"
	      "1ms call cudaSetDevice duration=1us\n"
	      "slot 8 tid=108\n1us thread tid=108 name=\"thread-103\"\n"
	      "1ms call cudaSetDevice duration=1us\n"
	      "slot 9 tid=109\n1us thread tid=109 name=\"thread0\"\n"
	      "1ms call cudaSetDevice duration=1us\n",
	      out);
	fclose(out);
	scratch_write(f->log, text, size);
	free(text);
	tt_make(f->log, f->dir);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = scratch_make();
	snprintf(f->log, sizeof(f->log), "%s/log", f->dir);
	snprintf(f->out, sizeof(f->out), "%s/out", f->dir);
	tell(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->dir);
	free(f);
	return 0;
}

/* The answer; NULL: there is none, and the status is 2. */
static json_t *why(const struct fixture *f, const char *word)
{
	char trace[400], *argv[] = {(char *)"why", (char *)"--format=json", (char *)(uintptr_t)word,
				    trace, NULL};
	int status, saved = dup(STDOUT_FILENO),
		    fd = open(f->out, O_CREAT | O_TRUNC | O_WRONLY, 0666);
	json_t *root;
	char *text;

	snprintf(trace, sizeof(trace), "%s/a.1", f->dir);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	status = command_why.run(&command_why, 4, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	text = scratch_read(f->out, NULL);
	if (status) {
		assert_int_equal(status, 2);
		assert_string_equal(text, "");
		free(text);
		return NULL;
	}
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

/* In words, on however long lines. */
static void says(const struct fixture *f, const char *log, const char *word, const char *words)
{
	char trace[400], output[320],
		*argv[] = {(char *)"why", output, (char *)(uintptr_t)word, trace, NULL}, *text;

	scratch_write(f->log, log, strlen(log));
	tt_make(f->log, f->dir);
	snprintf(trace, sizeof(trace), "%s/b.2", f->dir);
	snprintf(output, sizeof(output), "--output=%s", f->out);
	assert_int_equal(command_why.run(&command_why, 4, argv), 0);
	text = scratch_squeeze(scratch_read(f->out, NULL));
	if (!strstr(text, words))
		fail_msg("'%s' is not in: %s", words, text);
	free(text);
}

/* The calls that the answer shows: how many, and the only function and lock of theirs. */
static void expect(const struct fixture *f, const char *word, size_t calls, const char *function,
		   const char *lock)
{
	json_t *root = why(f, word), *worst, *one;
	size_t i;

	if (!root)
		fail_msg("%s: no answer", word);
	worst = json_object_get(root, "worst_calls");
	if (json_array_size(worst) != calls && !(calls == MANY && json_array_size(worst) >= 5))
		fail_msg("%s: %zu calls", word, json_array_size(worst));
	json_array_foreach(worst, i, one)
	{
		const char *its = json_string_value(json_object_get(one, "function"));

		if (!strstr(function, its))
			fail_msg("%s: a call of %s", word, its);
		its = json_string_value(json_object_get(one, "lock")) ?: "";
		if (!strstr(lock, its))
			fail_msg("%s: a call that waited for %s", word, its);
	}
	json_decref(root);
}

/* However it is written. */
static void test_words(void **state)
{
	static const char *const quiet[] = {"103",        "thread103", "thread:103",
					    "THREAD=103", "quiet",     "L3",
					    "l3",         "L:3",       "cudaEventCreate"};
	static const char *const nothing[] = {
		"L0",         "L4",   "gpu7",       "gpu255",     "gpu4294967297", "999",
		"thread 103", "103x", "L3x",        "4294967399", "cudaFree_",     "quie",
		"quieter",    "-103", "thread-104", "L-3"};
	const struct fixture *f = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(quiet); i++)
		expect(f, quiet[i], 1, "cudaEventCreate", "L3");
	for (i = 0; i < ARRAY_SIZE(nothing); i++)
		if (why(f, nothing[i]))
			fail_msg("%s means something", nothing[i]);
}

static void test_subjects(void **state)
{
	const struct fixture *f = *state;

	expect(f, "gpu1", 2, "cudaEventCreate cudaStreamCreate", "L2 L3");
	expect(f, "device:1", 2, "cudaEventCreate cudaStreamCreate", "L2 L3");
	expect(f, "gpu0", MANY, "cudaMalloc", "L1");
	expect(f, "L1", MANY, "cudaMalloc", "L1");
	expect(f, "L2", 1, "cudaStreamCreate", "L2");
	/* A thread of a function's name is meant before the function. */
	expect(f, "cudaMalloc", 1, "cudaStreamCreate", "L2");
	/* A holder, whose call is the reason of others' waits. */
	expect(f, "104", 2, "cudaEventCreate cudaStreamCreate", "L2 L3");
	expect(f, "holder", 2, "cudaEventCreate cudaStreamCreate", "L2 L3");
	expect(f, "cudaHostRegister", 2, "cudaEventCreate cudaStreamCreate", "L2 L3");
}

/* So many calls, of this sum of threads' numbers: of these threads, and no others. */
static void expect_threads(const struct fixture *f, const char *word, const char *subject,
			   int calls, int tids)
{
	json_t *root = why(f, word), *about, *account;
	size_t i;

	if (!root)
		fail_msg("%s: no answer", word);
	about = json_object_get(root, "why");
	assert_string_equal(json_string_value(json_object_get(about, "subject")), subject);
	assert_int_equal(json_integer_value(json_object_get(about, "calls")), calls);
	json_array_foreach(json_object_get(root, "accounts"), i, account) tids -=
		(int)json_integer_value(json_object_get(account, "thread"));
	assert_int_equal(tids, 0);
	json_decref(root);
}

/* Several threads of one name: all of them, and which. */
static void test_names(void **state)
{
	const struct fixture *f = *state;

	expect_threads(f, "twin", "2 threads: twin (106), twin (107)", 2, 106 + 107);
	expect_threads(f, "106", "thread 106", 1, 106);
	expect_threads(f, "quiet", "thread 103", 2, 103);
	expect_threads(f, "thread-103", "thread 108", 1, 108);
	expect_threads(f, "thread0", "thread 109", 1, 109);
}

#define OTHER "trace b.2 pid=2 program=\"b\" probes=1\nslot 1 tid=7\n1us thread tid=7 name=\"a\"\n"

/* Of functions of whose calls there are no records, how often they were called. */
static void test_only_counted(void **state)
{
	static const char log[] = OTHER "1ms call cuInit duration=9us\n"
					"2ms nested cuMemAlloc_v2 duration=5us depth=1\n"
					"2ms nested cuMemAlloc_v2 duration=3us depth=1\n"
					"2ms memory cudaMalloc duration=9us op=alloc kind=device\n"
					"counter cudaGetDevice 12\ncounter cuFuncGetAttribute 1\n";
	const struct fixture *f = *state;

	says(f, log, "cudaGetDevice",
	     "called 12 times, and only counted: it never waits, so there are no records of its calls");
	says(f, log, "cuFuncGetAttribute",
	     "called 1 time, and only counted: inside other calls, which contain its waits, or because "
	     "CUDASPY_COUNT names it (CUDASPY_TRACE=cuFuncGetAttribute records each)");
	says(f, log, "cuMemAlloc_v2",
	     "called 2 times, only inside other calls, which contain its waits: report --verbose --nested "
	     "has both");
}

/* Of threads of one name eight are named. */
static void test_many_threads(void **state)
{
	char log[2048] = "trace b.2 pid=2 program=\"b\"\n";
	const struct fixture *f = *state;
	size_t used = strlen(log);

	for (unsigned int i = 1; i <= 9; i++) {
		used += (size_t)snprintf(
			log + used, sizeof(log) - used,
			"slot %u tid=%u\n%uus thread tid=%u name=\"twin\"\n1ms call cuInit duration=9us\n",
			i, 100 + i, i, 100 + i);
		if (i == 8)
			says(f, log, "twin",
			     "8 threads: twin (101), twin (102), twin (103), twin (104), twin (105), twin (106), "
			     "twin (107), twin (108) waited");
	}
	says(f, log, "twin",
	     "9 threads: twin (101), twin (102), twin (103), twin (104), twin (105), twin (106), twin (107), "
	     "twin (108), ... waited");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_words), TEST(test_subjects), TEST(test_names),
					   TEST(test_only_counted), TEST(test_many_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
