/* links: shim/describe/metadata.c shim/process/text.c */
/*
 * tests/unit/test_describe_metadata.c: what the metadata of a trace says: this process, its variables and options, its rank,
 * and a clock that leads to real time; what is left out; and that a second writing says the same of the environment.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include "cudaspy/metadata_layout.h"
#include "describe/describe.h"
#include "process/folder.h"
#include "process/heap.h"
#include "process/options.h"
#include "process/ranks.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- the rest of the shim ---- */

extern char **environ;
struct spy_options spy_options;
static struct spy_rank rank;
static bool keeps, no_memory;
static char written[1 << 18];
static uint32_t written_part;
static int folder_error;

bool spy_options_keeps_packets(void)
{
	return keeps;
}

uint64_t spy_options_keep_bytes(void)
{
	return 33ull << 20 | 5;
}

void spy_rank_read(struct spy_rank *of)
{
	*of = rank;
}

void *spy_heap_take(size_t bytes)
{
	return no_memory ? NULL : calloc(1, bytes);
}

void spy_heap_give(void *memory, size_t bytes)
{
	(void)bytes;
	free(memory);
}

int spy_folder_replace(uint32_t part, const char *name, const struct iovec *pieces, size_t n)
{
	size_t at = 0;

	assert_string_equal(name, "metadata");
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		assert_true(at + pieces[i].iov_len < sizeof(written));
		memcpy(written + at, pieces[i].iov_base, pieces[i].iov_len);
		at += pieces[i].iov_len;
	}
	written[at] = '\0';
	written_part = part;
	return folder_error;
}

static char **real_environ;

static int begin(void **state)
{
	static char *none[] = {NULL};

	(void)state;
	begin_session();
	session.pid = 4242;
	spy_options = (struct spy_options){0};
	rank = (struct spy_rank){0};
	keeps = no_memory = false;
	folder_error = 0;
	written[0] = '\0';
	environ = none;
	session.frequency = FREQUENCY;
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(session.environment.chars);
	environ = real_environ;
	return 0;
}

static void write_it(uint32_t part)
{
	assert_int_equal(spy_metadata_write(&session, part), 0);
	assert_int_equal(written_part, part);
}

#define HAS(text) assert_non_null(strstr(written, text))
#define HAS_NOT(text) assert_null(strstr(written, text))

static void test_process(void **state)
{
	char line[5000], path[4096];
	ssize_t length;

	(void)state;
	for (int i = 0; i < 16; i++)
		session.uuid[i] = (uint8_t)(0xf0 - i);
	write_it(3);
	assert_memory_equal(written, SPY_TSDL_HEAD, strlen(SPY_TSDL_HEAD));
	HAS("\tuuid = \"f0efeeed-eceb-eae9-e8e7-e6e5e4e3e2e1\";\n");
	HAS("\ttracer_name = \"cudaspy\";\n");
	HAS("\tpid = 4242;\n");
	snprintf(line, sizeof(line), "\tppid = %d;\n", (int)getppid());
	HAS(line);
	HAS("\tprogram = \"test_describe_metadata\";\n");
	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(length > 0);
	path[length] = '\0';
	snprintf(line, sizeof(line), "\texecutable = \"%s\";\n", path);
	HAS(line);
	assert_non_null(getcwd(path, sizeof(path)));
	snprintf(line, sizeof(line), "\tcwd = \"%s\";\n", path);
	HAS(line);
	HAS("\tcommand_line = \"");
	HAS("\tpart = 3;\n};\n");
	HAS("\tprobes = 1;\n\tkeep_mib = 0;\n\tredacted = 0;\n\tstacks = 1;\n");
	HAS("\tcapture_range = \"\";\n");
	HAS("\tclock_source = \"monotonic\";\n");
	HAS_NOT("rank = ");
	HAS_NOT("rank_from");
	HAS_NOT("job = ");
	HAS_NOT("env_");
	/* Types before, and streams behind. */
	assert_true(strstr(written, spy_tsdl_types) < strstr(written, "env {"));
	assert_true(strstr(written, "clock {\n") < strstr(written, spy_tsdl_stream));
}

static void test_options(void **state)
{
	(void)state;
	spy_options.noprobes = spy_options.nostacks = "1";
	spy_options.run = "a \"run\" \\ \n\x7f\xc3";
	spy_options.capture_range = "r";
	spy_options.steps = "2-5";
	spy_options.delay = "7s";
	spy_options.duration = "8s";
	spy_clock_is_counter = keeps = true;
	write_it(1);
	spy_clock_is_counter = false;
	HAS("\tcudaspy_run = \"a \\\"run\\\" \\\\ \\012\\177\\303\";\n");
	HAS("\tprobes = 0;\n\tkeep_mib = 33;\n\tredacted = 0;\n\tstacks = 0;\n");
	HAS("\tcapture_range = \"r\";\n\tsteps = \"2-5\";\n\tdelay = \"7s\";\n"
	    "\tduration = \"8s\";\n\tclock_source = \"tsc\";\n");
}

static void test_variables(void **state)
{
	static char *variables[] = {"CUDA_X=1",    "CUDA_NONE", "NCCL_a.b=c=\"d\"",
				    "NCCL=no",     "CUD=no",    "PATH=no",
				    "CUDASPY_Z9=", "XCUDA=no",  NULL};

	(void)state;
	environ = variables;
	write_it(1);
	HAS("\tenv_CUDA_X = \"1\";\n\tenv_NCCL_a_b = \"c=\\\"d\\\"\";\n\tenv_CUDASPY_Z9 = \"\";\n\tcpus");
}

static void test_redacted(void **state)
{
	static char *variables[] = {"CUDA_X=1", NULL};

	(void)state;
	environ = variables;
	strcpy(rank.job, "secret");
	spy_options.redact = "1";
	write_it(1);
	HAS("\tredacted = 1;\n");
	HAS_NOT("env_");
	HAS_NOT("command_line");
	HAS_NOT("secret");
}

static void test_rank(void **state)
{
	(void)state;
	rank = (struct spy_rank){.from = "RANK", .rank = 0, .job = "77"};
	write_it(1);
	HAS("\trank = 0;\n\trank_from = \"RANK\";\n\tjob = \"77\";\n");
	end(state);
	begin(state);
	rank = (struct spy_rank){.has_local_rank = true,
				 .has_world_size = true,
				 .has_restarts = true,
				 .local_rank = 1,
				 .world_size = 2,
				 .restarts = 3};
	write_it(1);
	HAS("\tlocal_rank = 1;\n\tworld_size = 2;\n\trestarts = 3;\n");
	HAS_NOT("\trank = ");
}

/* What was known when the session began stays; the clock and the part are the new ones. */
static void test_second(void **state)
{
	static char *variables[] = {"CUDA_X=1", NULL};
	char before[SPY_TEXT_MAX];

	(void)state;
	session.begun.realtime_ns = 5000000000000000123; /* with more bits than a double has */
	session.begun.clock = 777000000000;
	write_it(1);
	HAS("\tstart_realtime_ns = 5000000000000000123;\n");
	HAS("\tfreq = 1000000000;\n\toffset_s = 4999999223;\n\toffset = 123;\n");
	environ = variables;
	session.frequency = 2500000000;
	snprintf(before, sizeof(before), "%s", strstr(written, "env {"));
	*strstr(before, "\tcpus") = '\0';
	write_it(2);
	HAS_NOT("env_CUDA_X");
	HAS(before);
	HAS("\tpart = 2;\n");
	HAS("\tfreq = 2500000000;\n\toffset_s = 4999999689;\n\toffset = 500000307;\n");
}

static void test_cpus(void **state)
{
	const char *at;
	cpu_set_t all, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	write_it(1);
	at = strstr(written, "\tcpus = ");
	assert_non_null(at);
	assert_true(strtol(at + 8, NULL, 10) >= 1); /* a quota may make it fewer */
	assert_true(strtol(at + 8, NULL, 10) <= CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	write_it(1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	HAS("\tcpus = 1;\n");
}

static void test_fails(void **state)
{
	(void)state;
	folder_error = -ENOSPC;
	assert_int_equal(spy_metadata_write(&session, 1), -ENOSPC);
	written[0] = '\0';
	no_memory = true;
	assert_int_equal(spy_metadata_write(&session, 1), -ENOMEM);
	assert_string_equal(written, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_process), TEST(test_options), TEST(test_variables), TEST(test_redacted),
		TEST(test_rank),    TEST(test_second),  TEST(test_cpus),      TEST(test_fails),
	};

	real_environ = environ;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
