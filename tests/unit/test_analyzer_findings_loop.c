/*
 * tests/unit/test_analyzer_findings_loop.c: event loops that wait for a GPU between two polls: a log in which that is found, and
 * near twins in which it is not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"

#define TURN_US 10000
#define TURNS 40

/* A thread that polls once in each turn of 10 ms, and waits for a GPU in it. */
struct server {
	unsigned int wait_us; /* in a synchronisation */
	unsigned int ready; /* descriptors, when it polls again */
	unsigned int times; /* of 40 with that many; then none */
	unsigned int flags; /* of the records of polls */
	unsigned int second_us; /* in another call; 0: none */
	bool copies; /* pageable memory, which waits, instead of synchronising */
	bool asks; /* its polls are not to wait */
	const char *file, *function; /* of Python, that polls; NULL: it is none of Python's */
};

static const struct server usual = {
	.wait_us = 4000, .ready = 3, .times = TURNS, .flags = SPY_WAIT_LATE};

static void serve(struct log *log, const struct server *server)
{
	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n"
		 "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n");
	if (server->file)
		add(log,
		    "2us python_code code=1 first_line=1 file=\"%s\" function=\"%s\"\n"
		    "2us python_code code=2 first_line=1 file=\"/u/serve.py\" function=\"main\"\n",
		    server->file, server->function);
	for (unsigned int i = 1; i <= TURNS; i++) {
		unsigned int at = TURN_US * i;

		add(log,
		    "%uus launch cudaLaunchKernel duration=2us device=0 stream=0x10 caller=0x50\n"
		    "%uus %s duration=%uus device=0 stream=0x10 caller=0x60\n",
		    at, at + 2 + server->wait_us,
		    server->copies ? "copy cudaMemcpyAsync direction=d2h src=device dst=pageable "
				     "bytes=1048576"
				   : "op cudaStreamSynchronize",
		    server->wait_us);
		at += 10 + server->wait_us;
		if (server->second_us)
			add(log,
			    "%uus launch cudaLaunchKernel duration=2us device=0 stream=0x10 caller=0x50\n"
			    "%uus op cudaDeviceSynchronize duration=%uus device=0 caller=0x70\n",
			    at, at + 2 + server->second_us, server->second_us);
		at += 10 + server->second_us;
		if (server->file)
			add(log,
			    "%uus stack fn=- frames=0x90\n%uus python_stack fn=- lines=1:7,2:9\n",
			    at, at);
		add(log,
		    "%uus outside kind=epoll object=0x5 caller=0x90 duration=2us flags=%u ready=%u "
		    "at_once=%u\n",
		    at, server->flags, i <= server->times ? server->ready : 0, server->asks);
		if (!server->asks)
			add(log, "%uus outside kind=epoll object=0x5 caller=0x90 duration=100us\n",
			    at + 200);
	}
}

static void is_silent(const struct server *server)
{
	static struct log log;

	serve(&log, server);
	silent(log.text, "blocked-loop");
}

static void test_blocked(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	serve(&log, &usual);
	root = report_on(log.text);
	finding = find(root, "blocked-loop");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 140 * MS, 160 * MS);
	assert_in_range(number(finding, "count"), TURNS - 2, TURNS);
	says(finding, "severity", "problem");
	says(finding, "function", "cudaStreamSynchronize");
	says(finding, "what", "the event loop of thread 101");
	says(finding, "what",
	     " times other descriptors were ready when it polled again, up to 3 at one "
	     "time; they had waited for up to 1");
	says(finding, "what", "up to 4.000 ms at one time");
	says(finding, "fix", "cudaLaunchHostFunc");
	json_decref(root);
}

/* Only the times count behind which something was ready, and the place is the call with most of them. */
static void test_cost(void **state)
{
	static struct log log;
	struct server server = usual;
	json_t *root, *finding;

	(void)state;
	server.times = 20;
	serve(&log, &server);
	root = report_on(log.text);
	finding = find(root, "blocked-loop");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 70 * MS, 80 * MS);
	json_decref(root);

	server.second_us = 5000;
	serve(&log, &server);
	root = report_on(log.text);
	finding = find(root, "blocked-loop");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 160 * MS, 180 * MS);
	says(finding, "function", "cudaDeviceSynchronize");
	says(finding, "what", "up to 9.000 ms at one time");
	json_decref(root);
}

static void test_python(void **state)
{
	static struct log log;
	struct server server = usual;
	json_t *root, *finding;

	(void)state;
	server.file = "/usr/lib/python3.12/selectors.py";
	server.function = "EpollSelector.select";
	serve(&log, &server);
	root = report_on(log.text);
	finding = find(root, "blocked-loop");
	assert_non_null(finding);
	says(finding, "what", "; it polls at serve.py:9 in main");
	json_decref(root);
	/* Who waits for replies of its own, and a notebook. */
	server.file = "/usr/lib/python3.12/multiprocessing/connection.py";
	server.function = "wait";
	is_silent(&server);
	server.file = "/usr/lib/python3.12/subprocess.py";
	server.function = "Popen._communicate";
	is_silent(&server);
	server.file = "/usr/lib/python3/dist-packages/ipykernel/kernelapp.py";
	server.function = "start";
	is_silent(&server);
}

/* The wait is one finding's: another one of the same calls, which may be harmless, is a note that names it. */
static void test_counted_once(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	serve(&log, &usual);
	root = report_on(log.text);
	finding = find(root, "early-sync");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what",
	     "; these waits are in the cost of blocked-loop (cudaStreamSynchronize");
	says(finding, "overlaps", "yes");
	finding = find(root, "blocked-loop");
	says(finding, "severity", "problem");
	says(finding, "overlaps", "no");
	json_decref(root);
}

/* A finding with a cure of its own stays what it is, and what that gives back does not count twice. */
static void test_copy(void **state)
{
	static struct log log;
	struct server server = usual;
	json_t *root, *finding;

	(void)state;
	server.copies = true;
	serve(&log, &server);
	root = report_on(log.text);
	finding = find(root, "pageable-copy");
	assert_non_null(finding);
	says(finding, "severity", "problem");
	says(finding, "what", "; the same cause as blocked-loop");
	finding = find(root, "blocked-loop");
	assert_non_null(finding);
	says(finding, "what", "; the same cause as pageable-copy (cudaMemcpyAsync");
	says(finding, "overlaps", "yes");
	json_decref(root);
}

static void test_silent(void **state)
{
	struct server server = usual;

	(void)state;
	server.ready = 0; /* one client */
	is_silent(&server);
	server = usual;
	server.times = 9; /* too rarely */
	is_silent(&server);
	server = usual;
	server.asks = true; /* for progress, and never waits */
	is_silent(&server);
	server = usual;
	server.flags = 0; /* a trace that does not say what was ready */
	is_silent(&server);
	server = usual;
	server.wait_us = 200; /* no call that took long */
	is_silent(&server);
	server = usual;
	server.wait_us = 900; /* less than a tenth of the time */
	is_silent(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked), cmocka_unit_test(test_cost),
		cmocka_unit_test(test_python),  cmocka_unit_test(test_counted_once),
		cmocka_unit_test(test_copy),    cmocka_unit_test(test_silent),
	};

	return RUN_WITH_FINDINGS(tests);
}
