/*
 * tests/unit/test_analyzer_rank_names.c: processes that a launcher gave a rank are shown by it: in sentences, in tables
 * and of several hosts. Where there are no ranks, nothing is said of them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

/* A process that calls, waits for its GPU at length, and copies pageable memory. */
static void add_process(struct log *log, unsigned int pid, const char *env)
{
	unsigned int i;

	add(log,
	    "trace train.%u pid=%u program=\"/usr/bin/train\" probes=1 clock_source=tsc %s\n"
	    "slot 1 tid=%u\n1us thread tid=%u name=\"train\"\n"
	    "1us gpu device=%u name=\"H200\" uuid=\"GPU-%u\"\n",
	    pid, pid, env, pid, pid, pid % 2, pid);
	for (i = 1; i <= 40; i++)
		add(log,
		    "%ums launch cudaLaunchKernel duration=4us device=%u stream=0x10 caller=0x10\n"
		    "%ums copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=4096 "
		    "device=%u stream=0x10 caller=0x20 duration=9ms\n",
		    10 * i - 9, pid % 2, 10 * i, pid % 2);
}

static const json_t *row_of(const json_t *root, const char *table, const char *key,
			    const char *words)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, table), i,
			   row) if (strstr(text(row, key), words)) return row;
	fail_msg("%s has no row with a %s of '%s'", table, key, words);
	return NULL;
}

static void shows(const char *log, const char *words, bool so)
{
	char *shown = report_in("text", log);

	if (!strstr(shown, words) == so)
		fail_msg("'%s' is %s in:\n%s", words, so ? "not" : "", shown);
	free(shown);
}

static void test_one_host(void **state)
{
	static struct log log;
	json_t *root;

	(void)state;
	log.used = 0;
	add_process(&log, 100, "boot_id=b1 hostname=\"node1\" rank=0 local_rank=0 world_size=2");
	add_process(&log, 101, "boot_id=b1 hostname=\"node1\" rank=1 local_rank=1 world_size=2");
	root = report_on(log.text);
	assert_string_equal(text(row_of(root, "threads", "process", "rank 0"), "process"),
			    "rank 0, train.100");
	row_of(root, "gpus", "process", "rank 1, train.101");
	says(json_object_get(root, "summary"), "program", "train.");
	json_decref(root);
	shows(log.text, "GPU 0 (rank 0)", true);
	shows(log.text, "GPU 1 (rank 1)", true);
	shows(log.text, "of rank 1 (GPU 1)", true);
	shows(log.text, "node1", false);
}

static void test_several_hosts(void **state)
{
	static struct log log;

	(void)state;
	log.used = 0;
	add_process(&log, 100, "boot_id=b1 hostname=\"node1\" rank=0");
	add_process(&log, 101, "boot_id=b2 hostname=\"node2\" rank=13");
	shows(log.text, "GPU 0 (rank 0, node1)", true);
	shows(log.text, "of rank 13 (node2, GPU 1)", true);
}

/* The same rank, started again. */
static void test_restarted(void **state)
{
	static const struct {
		unsigned int restarts;
		const char *name;
	} cases[] = {{0, "rank 5, train"},        {1, "rank 5, 2nd start"},
		     {2, "rank 5, 3rd start"},    {3, "rank 5, 4th start"},
		     {10, "rank 5, 11th start"},  {11, "rank 5, 12th start"},
		     {20, "rank 5, 21st start"},  {111, "rank 5, 112th start"},
		     {101, "rank 5, 102nd start"}};
	static struct log log;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char env[64];
		json_t *root;

		snprintf(env, sizeof(env), "rank=5 restarts=%u", cases[i].restarts);
		log.used = 0;
		add_process(&log, 100, env);
		root = report_on(log.text);
		row_of(root, "threads", "process", cases[i].name);
		json_decref(root);
	}
}

static void test_no_ranks(void **state)
{
	static struct log log;

	(void)state;
	log.used = 0;
	add_process(&log, 100, "boot_id=b1");
	add_process(&log, 101, "boot_id=b1 rank=-1");
	shows(log.text, "rank", false);
	shows(log.text, "GPU 0 (train.100)", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_host),
		cmocka_unit_test(test_several_hosts),
		cmocka_unit_test(test_restarted),
		cmocka_unit_test(test_no_ranks),
	};

	return RUN_WITH_FINDINGS(tests);
}
