/*
 * tests/unit/test_analyzer_findings_stalls.c: threads that wait for each other: locks that others keep, and locks that others take
 * again and again. For each detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "log_findings.h"
#include "detectors/stall.h"
#include "account/waits.h"

/* ---- stalls --------------------------------------------------------------------------------- */

/* Thread 101 calls a function, for 20 ms each time, with a lock in its hands that 102, on GPU `device`, wants
 * for a launch; it waits `waits` times, for `us` each. */
static void stalling_by(struct log *log, const char *record, const char *function,
			const char *details, unsigned int device, unsigned int waits,
			unsigned int us)
{
	unsigned int i;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n"
		 "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n");
	for (i = 1; i <= 10; i++)
		add(log, "%ums %s %s duration=20ms device=0 caller=0x4010%s\n", 25 * i, record,
		    function, details);
	add(log,
	    "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n"
	    "2us launch cudaLaunchKernel duration=1us device=%u stream=0x20\n",
	    device);
	for (i = 1; i <= waits; i++)
		add(log,
		    "%uus wait kind=mutex fn=cudaLaunchKernel duration=%uus object=0x700 device=%u "
		    "holder=101 holder_fn=%s holder_device=0\n"
		    "%uus launch cudaLaunchKernel duration=%uus device=%u stream=0x20\n",
		    25000 * i - 10, us, device, function, 25000 * i - 8, us + 3, device);
}

/* Thread 101 pins memory. */
static void stalling(struct log *log, unsigned int device, unsigned int waits, unsigned int us)
{
	stalling_by(log, "memory", "cudaMallocHost",
		    " op=alloc kind=pinned bytes=4096 address=0x9000", device, waits, us);
}

static void test_cross_device_stall(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	stalling(&log, 1, 9, 15000);
	root = report_on(log.text);
	finding = find(root, "cross-device-stall");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 134000000, 136000000);
	assert_int_equal(number(finding, "count"), 9);
	says(finding, "function", "cudaMallocHost");
	says(finding, "what", "2 threads that work on 2 GPUs");
	says(finding, "what", "while one of them was in cudaMallocHost (its own work)");
	says(finding, "what", "waited 135.0 ms for each other in 9 calls, for locks");
	says(finding, "fix", "Cure the finding of cudaMallocHost first");
	says(finding, "otherwise",
	     "a process for each GPU, which has locks of its own: that saves up to");
	says(finding, "severity", "problem");
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	assert_in_range(number(finding, "gain_high_ns"), 134000000, 136000000);
	assert_null(find(root, "same-device-stall"));
	json_decref(root);

	stalling(&log, 1, 9, 20); /* threads that meet now and then */
	silent(log.text, "cross-device-stall");
}

/* The same, but what keeps the lock is the first use of a kernel, each time another's. */
static void test_stall_by_loading(void **state)
{
	static struct log log;
	json_t *root, *finding;
	unsigned int i;

	(void)state;
	stalling_by(&log, "op", "cuKernelGetFunction", "", 1, 9, 15000);
	root = report_on(log.text);
	finding = find(root, "cross-device-stall");
	says(finding, "function", "cuKernelGetFunction");
	says(finding, "severity", "note");
	says(finding, "fix", "Code is loaded once");
	json_decref(root);

	/* a few waits besides, 7 % of them all, are next to nothing; a third is something */
	for (i = 0; i < 2; i++) {
		unsigned int us = i ? 8000 : 1200;

		stalling_by(&log, "op", "cuKernelGetFunction", "", 1, 9, 15000);
		add(&log, "slot 3 tid=103\n1us thread tid=103 name=\"app\"\n");
		for (unsigned int k = 11; k <= 19; k++)
			add(&log,
			    "%uus memory cudaMallocHost op=alloc kind=pinned bytes=4096 "
			    "address=0x9000 duration=%uus device=0 caller=0x4020\n",
			    25000 * k + 50, us + 100);
		add(&log, "slot 2\n");
		for (unsigned int k = 11; k <= 19; k++)
			add(&log,
			    "%uus wait kind=mutex fn=cudaLaunchKernel duration=%uus object=0x700 "
			    "device=1 holder=103 holder_fn=cudaMallocHost holder_device=0\n"
			    "%uus launch cudaLaunchKernel duration=%uus device=1 stream=0x20\n",
			    25000 * k, us, 25000 * k + 2, us + 3);
		root = report_on(log.text);
		says(find(root, "cross-device-stall"), "severity", i ? "problem" : "note");
		json_decref(root);
	}
	stalling_by(&log, "op", "cuKernelGetFunction", "", 1, 9, 15000);

	/* kernels of modules that are loaded in each round: so it goes on */
	add(&log, "slot 3 tid=103\n1us thread tid=103 name=\"app\"\n");
	for (i = 1; i <= 10; i++)
		add(&log, "%uus op cuModuleLoadData duration=100us device=0 caller=0x4020\n",
		    25000 * i - 21000);
	root = report_on(log.text);
	finding = find(root, "cross-device-stall");
	says(finding, "function", "cuKernelGetFunction");
	says(finding, "severity", "problem");
	says(finding, "fix", "Take cuKernelGetFunction out");
	json_decref(root);
}

/* Three long waits, as of a thread that begins beside others; the same all through the run are no beginning. */
static void test_stall_of_beginners(void **state)
{
	static const unsigned int at[][3] = {{1, 2, 3}, {1, 5, 9}};
	static const char *const severity[] = {"note", "problem"};
	static struct log log;
	json_t *root, *finding;
	unsigned int i, j;

	(void)state;
	for (i = 0; i < 2; i++) {
		stalling(&log, 1, 0, 0);
		for (j = 0; j < 3; j++)
			add(&log,
			    "%uus wait kind=mutex fn=cudaLaunchKernel duration=15ms object=0x700 "
			    "device=1 holder=101 holder_fn=cudaMallocHost holder_device=0\n"
			    "%uus launch cudaLaunchKernel duration=15003us device=1 stream=0x20\n",
			    25000 * at[i][j] - 10, 25000 * at[i][j] - 8);
		root = report_on(log.text);
		finding = find(root, "cross-device-stall");
		assert_int_equal(number(finding, "count"), 3);
		says(finding, "severity", severity[i]);
		json_decref(root);
	}
}

/* The pinning is a finding of its own, if there is work between its calls: what others waited is in both. */
static void test_stall_overlaps(void **state)
{
	static struct log log;
	json_t *root;
	unsigned int i;

	(void)state;
	stalling(&log, 1, 9, 15000);
	root = report_on(log.text);
	says(find(root, "cross-device-stall"), "overlaps", "yes");
	assert_non_null(find(root, "steady-state"));
	json_decref(root);

	/* Nobody works between the calls: no finding of theirs, nothing told twice. */
	stalling(&log, 1, 0, 0);
	for (i = 1; i <= 9; i++)
		add(&log,
		    "%uus wait kind=mutex fn=cudaEventCreate duration=15ms object=0x700 device=1 "
		    "holder=101 holder_fn=cudaMallocHost holder_device=0\n"
		    "%uus op cudaEventCreate duration=15003us device=1\n",
		    25000 * i - 10, 25000 * i - 8);
	root = report_on(log.text);
	assert_null(find(root, "steady-state"));
	says(find(root, "cross-device-stall"), "overlaps", "no");
	says(find(root, "cross-device-stall"), "fix", "Take cudaMallocHost out");
	json_decref(root);
}

/* Each call waits for two locks, and the first passes through two hands: a call all the same. What the cure of
 * the one that held them longest gains, and what processes would, are two numbers. */
static void test_stall_of_calls(void **state)
{
	static struct log log;
	json_t *root, *finding;
	unsigned int i;

	(void)state;
	log.used = 0;
	add(&log, "trace app.100 pid=100 program=\"app\" probes=1\n");
	for (i = 0; i < 3; i++)
		add(&log,
		    "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n"
		    "2us launch cudaLaunchKernel duration=1us device=%u stream=0x%u0\n",
		    i + 1, 101 + i, 101 + i, i == 2, i + 1);
	for (i = 1; i <= 5; i++)
		add(&log,
		    "slot 1\n%ums held kind=mutex fn=cudaMallocHost object=0x700 held=12ms\n"
		    "%ums memory cudaMallocHost duration=15ms device=0 op=alloc kind=pinned "
		    "bytes=4096 address=0x9000\n"
		    "slot 2\n%ums held kind=mutex fn=cudaHostRegister object=0x700 held=3ms\n"
		    "%ums held kind=mutex fn=cudaHostRegister object=0x800 held=9ms\n"
		    "%ums memory cudaHostRegister duration=18ms device=0 op=register kind=pinned "
		    "bytes=4096 address=0x8000\n"
		    "slot 3\n%uus wait kind=mutex fn=cudaEventCreate duration=14500us object=0x700 "
		    "device=1 holder=101 holder_fn=cudaMallocHost holder_device=0\n"
		    "%uus wait kind=mutex fn=cudaEventCreate duration=4ms object=0x800 device=1 "
		    "holder=102 holder_fn=cudaHostRegister holder_device=0\n"
		    "%uus op cudaEventCreate duration=19ms device=1\n",
		    100 * i, 100 * i, 100 * i + 3, 100 * i + 7, 100 * i + 9, 100000 * i + 3010,
		    100000 * i + 7100, 100000 * i + 7200);
	root = report_on(log.text);
	finding = find(root, "cross-device-stall");
	assert_non_null(finding);
	assert_int_equal(number(finding, "count"), 5);
	says(finding, "what", "in 5 calls");
	says(finding, "function", "cudaMallocHost");
	says(finding, "fix", "Take cudaMallocHost out of the threads' loops");
	assert_in_range(number(finding, "gain_high_ns"), 50 * MS, 65 * MS);
	assert_in_range(number(finding, "cost_ns"), 92 * MS, 93 * MS);
	says(finding, "otherwise", "that saves up to 92.");
	json_decref(root);
}

/* Threads 102 to 104 pin memory, `times` times each, and wait for 101, which does the same, for 5 ms each time.
 * Work is handed over at `launch_us`. */
static void pinning(struct log *log, unsigned int device, unsigned int times,
		    unsigned int launch_us)
{
	unsigned int i, thread;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n"
		 "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n");
	for (i = 1; i <= times; i++)
		add(log,
		    "%ums memory cudaMallocHost duration=6ms device=0 op=alloc kind=pinned "
		    "bytes=4096 address=0x9000 caller=0x4010\n",
		    20 * i);
	add(log, "%uus launch cudaLaunchKernel duration=1us device=0 stream=0x10\n",
	    launch_us > 20000 * times ? launch_us : 20000 * times + 5);
	for (thread = 2; thread <= 4; thread++) {
		add(log, "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n", thread, 100 + thread,
		    100 + thread);
		if (thread == 2 && launch_us < 10000)
			add(log,
			    "%uus launch cudaLaunchKernel duration=1us device=%u stream=0x20\n",
			    launch_us, device);
		for (i = 1; i <= times; i++)
			add(log,
			    "%uus wait kind=mutex fn=cudaMallocHost duration=5ms object=0x700 "
			    "device=%u holder=101 holder_fn=cudaMallocHost holder_device=0\n"
			    "%uus memory cudaMallocHost duration=11ms device=%u op=alloc "
			    "kind=pinned bytes=4096 address=0x%u000 caller=0x4010\n",
			    20000 * i + thread, device, 20000 * i + thread + 6000, device, thread);
	}
}

/* What is done once, before the work, is where it should be, whoever waits for whom; in a loop it is not, nor
 * when the work has begun. */
static void test_stall_at_start(void **state)
{
	static const char *const ids[] = {"same-device-stall", "cross-device-stall"};
	static struct log log;
	unsigned int device;

	(void)state;
	for (device = 0; device < 2; device++) {
		static const struct {
			unsigned int times, launch_us, calls;
		} told[] = {{1, 500, 3}, {4, 100000, 12}};
		size_t i;

		pinning(&log, device, 1, 100000);
		silent(log.text, ids[device]);
		pinning(&log, device, 3, 100000);
		silent(log.text, ids[device]);
		for (i = 0; i < ARRAY_SIZE(told); i++) {
			json_t *root, *finding;

			pinning(&log, device, told[i].times, told[i].launch_us);
			root = report_on(log.text);
			finding = find(root, ids[device]);
			assert_non_null(finding);
			assert_int_equal(number(finding, "count"), told[i].calls);
			assert_in_range(number(finding, "cost_ns"), told[i].calls * 49 * MS / 10,
					told[i].calls * 5 * MS);
			assert_true(number(finding, "gain_high_ns") <= number(finding, "cost_ns"));
			json_decref(root);
		}
	}
}

/* Few waits of the start, and as many when the work has begun: only those are told. */
static void test_stall_after_start(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	pinning(&log, 1, 2, 100000);
	add(&log, "slot 5 tid=105\n1us thread tid=105 name=\"app\"\n"
		  "27ms launch cudaLaunchKernel duration=1us device=0 stream=0x50\n");
	root = report_on(log.text);
	finding = find(root, "cross-device-stall");
	assert_non_null(finding);
	assert_int_equal(number(finding, "count"), 3);
	assert_in_range(number(finding, "cost_ns"), 14 * MS, 15 * MS);
	says(finding, "what", "4 threads that work on 2 GPUs waited");
	json_decref(root);
}

/* Threads that pin memory between others' work, and wait for each other meanwhile: each such wait is what the
 * one who is waited for costs, and is gained once. */
static void test_gain_of_waiters(void **state)
{
	static struct log log;
	json_t *root, *finding;
	unsigned int i;

	(void)state;
	pinning(&log, 1, 8, 200000);
	add(&log, "slot 5 tid=105\n1us thread tid=105 name=\"app\"\n");
	for (i = 1; i <= 8; i++)
		add(&log, "%ums launch cudaLaunchKernel duration=1us device=0 stream=0x50\n",
		    20 * i + 7);
	root = report_on(log.text);
	finding = find(root, "steady-state");
	assert_non_null(finding);
	assert_in_range(number(finding, "others_ns"), 100 * MS, 125 * MS);
	assert_in_range(number(finding, "cost_ns"), 275 * MS, 295 * MS);
	/* All but the first of them; and what others waited not for sure. */
	assert_in_range(number(finding, "gain_high_ns"), 265 * MS, number(finding, "cost_ns") - 1);
	assert_in_range(number(finding, "gain_low_ns"), 100 * MS, number(finding, "own_ns"));
	json_decref(root);
}

/* Do the words stand in the report, wherever its lines end? */
static bool tells(const char *format, const char *log, const char *words)
{
	char *shown = report_in(format, log), *from, *to;
	bool found;

	for (from = to = shown; *from; from++)
		if (!isspace((unsigned char)*from))
			*to++ = *from;
		else if (to > shown && to[-1] != ' ')
			*to++ = ' ';
	*to = '\0';
	found = strstr(shown, words);
	free(shown);
	return found;
}

/* The call that kept holders longest, and why: nearly all of that, most of it, or first of several reasons. */
static void test_mostly(void **state)
{
	static struct function function = {.name = "cudaFree"};
	static const struct {
		uint32_t fn;
		double cause_ns;
		const char *words;
	} cases[] = {
		{0, 9e6, "10.00 ms of it while one of them was in cudaFree (its own work)"},
		{0, 8999999,
		 "10.00 ms of it while one of them was in cudaFree (mostly its own work)"},
		{0, 5000001,
		 "10.00 ms of it while one of them was in cudaFree (mostly its own work)"},
		{0, 5e6,
		 "10.00 ms of it while one of them was in cudaFree (of several reasons first, for 5.000 ms: its own work)"},
		{NO_FUNCTION, 9e6, "10.00 ms of it for threads that were in no call"},
	};
	const struct trace_set set = {.functions = {.all = &function, .count = 1}};
	struct arena texts = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct stall stall = {.fn = cases[i].fn,
					    .fn_ns = 1e7,
					    .cause = CAUSE_OWN,
					    .cause_ns = cases[i].cause_ns};

		assert_string_equal(stall_mostly(&texts, &set, &stall), cases[i].words);
	}
	arena_release(&texts);
}

/* A millisecond, and a hundredth of the time that it is judged by. */
static void test_significant(void **state)
{
	static const struct {
		double ns, share;
		bool significant;
	} cases[] = {
		{1e6, 0.01, true}, {999999, 0.01, false}, {1e6, 0.0099, false}, {1e9, 1, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stall stall = {.waited_ns = cases[i].ns, .cost_share.share = cases[i].share};

		assert_int_equal(stall_is_significant(&stall), cases[i].significant);
	}
}

/* What others waited is told beside what the threads themselves lost, if it is not next to nothing. */
static void test_others_part(void **state)
{
	static const char *const formats[] = {"text", "junit"};
	static const char words[] = "of other threads that waited for it";
	static struct log log;
	json_t *root;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		stalling(&log, 1, 9, 15000);
		assert_true(tells(formats[i], log.text, words));
		stalling(&log, 1, 9, 20);
		assert_false(tells(formats[i], log.text, words));
	}
	root = report_on(log.text);
	assert_in_range(number(find(root, "steady-state"), "others_ns"), 1000, MS);
	json_decref(root);
}

static void test_same_device_stall(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	stalling(&log, 0, 9, 15000);
	root = report_on(log.text);
	finding = find(root, "same-device-stall");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 134000000, 136000000);
	says(finding, "what", "1 thread waited");
	says(finding, "fix", "Cure the finding of cudaMallocHost first (steady-state)");
	says(finding, "otherwise", "MPS");
	assert_null(find(root, "cross-device-stall"));
	json_decref(root);

	stalling(&log, 0, 9, 20);
	silent(log.text, "same-device-stall");
}

/* A holder that waits for the GPU: the cure is another one. */
static void test_stall_behind_gpu(void **state)
{
	json_t *root = report_on(
		"trace app.100 pid=100 program=\"app\" probes=1\n"
		"slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		"1ms memory cudaFree duration=10us device=0 op=free kind=device address=0x1\n"
		"2ms memory cudaFree duration=10us device=0 op=free kind=device address=0x2\n"
		"3ms launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		"103ms memory cudaFree duration=99ms device=0 op=free kind=device address=0x3\n"
		"slot 2 tid=102\n1us thread tid=102 name=\"app\"\n"
		"2us launch cudaLaunchKernel duration=1us device=0 stream=0x20\n"
		"103001us wait kind=write fn=cudaLaunchKernel duration=90ms object=0x700 device=0 "
		"holder=101 holder_fn=cudaFree holder_device=0\n"
		"103003us launch cudaLaunchKernel duration=90003us device=0 stream=0x20\n");
	const json_t *finding = find(root, "same-device-stall");

	(void)state;
	assert_non_null(finding);
	says(finding, "what", "in cudaFree (a wait for the GPU)");
	says(finding, "fix", "Cure the finding of cudaFree first (hidden-sync)");
	says(finding, "overlaps", "yes");
	json_decref(root);
}

/* ---- starvation ------------------------------------------------------------------------------ */

/* Thread 102 waits for 50 ms, while 101 takes the lock `times` times; for `lacked` ms of them it has no CPU. */
static void starving(struct log *log, unsigned int times, unsigned int lacked)
{
	unsigned int i;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n"
		 "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n");
	for (i = 0; i < times; i++)
		add(log,
		    "%uus taken kind=mutex fn=cudaEventRecord object=0x700\n"
		    "%uus released kind=mutex fn=cudaEventRecord object=0x700\n"
		    "%uus op cudaEventRecord duration=900us device=0 stream=0x10 object=0x5\n",
		    10000 + 1000 * i, 10800 + 1000 * i, 10850 + 1000 * i);
	add(log, "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n"
		 "2us launch cudaLaunchKernel duration=1us device=0 stream=0x20\n"
		 "60ms wait kind=mutex fn=cudaLaunchKernel duration=50ms object=0x700 device=0 "
		 "holder=101 holder_fn=cudaEventRecord holder_device=0\n");
	if (lacked)
		add(log, "60001us sched window=50003us not_running=%u000000 running=1000\n",
		    lacked);
	add(log, "60001us launch cudaLaunchKernel duration=50003us device=0 stream=0x20\n");
}

static void test_starvation(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	starving(&log, 45, 0);
	root = report_on(log.text);
	finding = find(root, "lock-starvation");
	assert_non_null(finding);
	assert_int_equal(number(finding, "cost_ns"), 50000000);
	says(finding, "what", "thread 102 waited 50.00 ms");
	says(finding, "what",
	     "others took 44 times meanwhile, 44 times by thread 101 in cudaEventRecord");
	says(finding, "fix", "Call cudaEventRecord less often");
	says(finding, "overlaps", "yes");
	assert_null(strstr(text(finding, "what"), "no CPU"));
	json_decref(root);

	starving(&log, 4, 0);
	silent(log.text, "lock-starvation");
}

/* Most of that time 101 has it in a single cudaFree: the cure is about that one, not about short calls that take it often, and
 * not about the call that waits. */
static void test_starved_by_a_long_call(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	starving(&log, 20, 0);
	add(&log,
	    "slot 1\n"
	    "31ms taken kind=mutex fn=cudaFree object=0x700\n"
	    "59900us released kind=mutex fn=cudaFree object=0x700\n"
	    "59950us memory cudaFree duration=28960us device=0 op=free kind=device bytes=4096 "
	    "address=0x9000\n");
	root = report_on(log.text);
	finding = find(root, "lock-starvation");
	assert_non_null(finding);
	says(finding, "function", "cudaFree");
	says(finding, "what", "19 times by thread 101 in cudaEventRecord");
	says(finding, "what", "they had it longest in cudaFree, for 28.90 ms");
	says(finding, "fix", "Take cudaFree out of the threads' work");
	assert_null(strstr(text(finding, "fix"), "cudaLaunchKernel"));
	assert_null(strstr(text(finding, "fix"), "cudaEventRecord"));
	/* One mistake is one problem: the stall of the lock has these waits. */
	says(find(root, "same-device-stall"), "function", "cudaFree");
	says(finding, "what", "these waits are in the cost of hidden-sync (cudaFree)");
	/* A note, if that one is a problem. */
	says(finding, "severity",
	     strcmp(text(find(root, "hidden-sync"), "severity"), "problem") ? "problem" : "note");
	json_decref(root);
}

/* The waiter is awake, and has no CPU: who took the lock meanwhile did not keep it from it. */
static void test_starving_without_cpu(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	starving(&log, 45, 20);
	root = report_on(log.text);
	finding = find(root, "lock-starvation");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 30000000, 30010000);
	says(finding, "what", "thread 102 waited 50.00 ms");
	says(finding, "what", "ms of that it was ready to go on and had no CPU");
	json_decref(root);

	starving(&log, 45, 42); /* what is left is noticed by nobody */
	silent(log.text, "lock-starvation");
	starving(&log, 45, 50);
	silent(log.text, "lock-starvation");
	starving(&log, 20,
		 20); /* how many were lost with a CPU nobody knows: too few, if they were even */
	silent(log.text, "lock-starvation");

	/* Another one's wait, which was lost less often, but with a CPU. */
	starving(&log, 45, 50);
	add(&log, "slot 3 tid=103\n1us thread tid=103 name=\"app\"\n"
		  "2us launch cudaLaunchKernel duration=1us device=0 stream=0x30\n"
		  "50ms wait kind=mutex fn=cudaLaunchKernel duration=30ms object=0x700 device=0 "
		  "holder=101 holder_fn=cudaEventRecord holder_device=0\n"
		  "50001us launch cudaLaunchKernel duration=30003us device=0 stream=0x30\n");
	root = report_on(log.text);
	finding = find(root, "lock-starvation");
	assert_non_null(finding);
	assert_int_equal(number(finding, "cost_ns"), 30000000);
	says(finding, "what", "thread 103 waited 30.00 ms");
	json_decref(root);
}

/* ---- the program's own locks ------------------------------------------------------------------ */

/*
 * Forty times thread 102 waits between its calls for `waited` microseconds for a mutex of the program's, which 101 has; that
 * one is in a synchronisation for `inside` of them, and then in such a wait (NULL: in none).
 */
static void standing_in_line(struct log *log, unsigned int waited, unsigned int inside,
			     const char *then)
{
	unsigned int i;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n"
		 "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n");
	for (i = 1; i <= 40; i++) {
		add(log,
		    "%uus launch cudaLaunchKernel duration=2us device=0 stream=0x10 caller=0x50\n"
		    "%uus op cudaStreamSynchronize duration=%uus device=0 stream=0x10 "
		    "caller=0x60\n",
		    10000 * i, 10000 * i + 2 + inside, inside);
		if (then)
			add(log, "%uus outside %s caller=0x90 duration=3900us\n", 10000 * i + 3990,
			    then);
	}
	add(log, "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n");
	for (i = 1; i <= 40; i++)
		add(log,
		    "%uus outside kind=mutex object=0x7000 holder=101 caller=0x70 duration=%uus\n"
		    "%uus launch cudaLaunchKernel duration=2us device=0 stream=0x20 caller=0x80\n",
		    10000 * i + waited, waited, 10000 * i + waited + 10);
}

static void test_held_lock(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	standing_in_line(&log, 4000, 4000, NULL);
	root = report_on(log.text);
	finding = find(root, "held-lock");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 150 * MS, 160 * MS);
	says(finding, "function", "cudaStreamSynchronize");
	says(finding, "what", "1 thread waited 1");
	says(finding, "what", "while thread 101");
	says(finding, "what", "inside CUDA calls: waiting inside CUDA for a GPU for 1");
	says(finding, "fix", "Release the lock before the wait for the GPU");
	says(finding, "severity", "problem");
	json_decref(root);

	standing_in_line(&log, 4000, 50, NULL); /* the holder is elsewhere */
	silent(log.text, "held-lock");
	standing_in_line(&log, 4000, 50, "kind=transfer file=file object=0x5");
	root = report_on(log.text);
	finding = find(root, "held-lock");
	assert_non_null(finding);
	says(finding, "what", "thread 101, which had it, was reading or writing files for 1");
	says(finding, "fix", "Release the lock before that wait");
	says(finding, "severity", "problem");
	json_decref(root);
	standing_in_line(&log, 4000, 50, "kind=read object=0x9000 holder=103");
	root = report_on(log.text);
	finding = find(root, "held-lock");
	assert_non_null(finding);
	says(finding, "what", "which had it, was waiting for another thread for 1");
	json_decref(root);
	standing_in_line(&log, 4000, 50, NULL); /* it computes */
	silent(log.text, "held-lock");
	standing_in_line(&log, 900, 900, NULL); /* less than a tenth of the time */
	silent(log.text, "held-lock");
}

/* Another thread that waits for the same lock for the last `us` of it. */
static void in_line_too(struct log *log, unsigned int slot, unsigned int waited, unsigned int us)
{
	add(log, "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n", slot, 100 + slot, 100 + slot);
	for (unsigned int i = 1; i <= 40; i++)
		add(log,
		    "%uus outside kind=mutex object=0x7000 holder=101 caller=0x70 duration=%uus\n"
		    "%uus launch cudaLaunchKernel duration=2us device=0 stream=0x%u0 caller=0x80\n",
		    10000 * i + waited, us, 10000 * i + waited + 10 + slot, slot);
}

/* Those that wait for a tenth of their time and more together, 38 times each while they work; the one that waits longest, whichever
 * it is, by name. */
static void test_held_lock_of_several(void **state)
{
	static const struct {
		unsigned int third_us, fourth_us;
		const char *threads, *longest;
		int64_t ms, waits;
	} cases[] = {
		{3000, 0, "2 threads waited 2", "thread 102 longest, 1", 266, 76},
		{0, 3900, "2 threads waited 3", "thread 102 longest, 1", 300, 76},
		{3000, 500, "2 threads waited 2", "thread 102 longest, 1", 266, 76},
		{500, 500, "1 thread waited 1", "thread 102 longest, 1", 152, 38},
		{3000, 3500, "3 threads waited 398.9 ms", "thread 102 longest, 1", 399, 114},
	};
	static struct log log;
	json_t *root;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const json_t *finding;

		standing_in_line(&log, 4000, 4000, NULL);
		if (cases[i].third_us)
			in_line_too(&log, 3, 4000, cases[i].third_us);
		if (cases[i].fourth_us)
			in_line_too(&log, 4, 4000, cases[i].fourth_us);
		root = report_on(log.text);
		finding = find(root, "held-lock");
		assert_non_null(finding);
		says(finding, "what", cases[i].threads);
		says(finding, "what", cases[i].longest);
		assert_in_range(number(finding, "cost_ns"), (cases[i].ms - 1) * MS,
				(cases[i].ms + 1) * MS);
		assert_int_equal(number(finding, "count"), cases[i].waits);
		json_decref(root);
	}
	/* The second one waits longer. */
	standing_in_line(&log, 3000, 4000, NULL);
	in_line_too(&log, 3, 4000, 3900);
	root = report_on(log.text);
	says(find(root, "held-lock"), "what", "thread 103 longest, 1");
	json_decref(root);
}

/* ---- cycles of locks ----------------------------------------------------------------------------- */

/* Two threads that launch until 200 ms; at 300 ms 101 begins to wait between calls for what 102 has, and at `closed` 102
 * inside a call for what `holder` has. more: records of 102's, behind. */
static void at_the_end(struct log *log, const char *board, const char *closed, unsigned int holder,
		       const char *more)
{
	unsigned int i, slot;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\nboard %s\n", board);
	for (slot = 1; slot <= 3; slot++) {
		add(log, "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n", slot, 100 + slot,
		    100 + slot);
		for (i = 1; i <= 20; i++)
			add(log,
			    "%ums launch cudaLaunchKernel duration=2us device=0 stream=0x10 "
			    "caller=0x50\n",
			    10 * i);
		if (slot == 1)
			add(log, "inflight tid=101 depth=0 since=300ms outside=mutex "
				 "object=0x7000 holder=102\n");
		if (slot == 2)
			add(log,
			    "%sinflight tid=102 function=cudaFree since=%s wait=mutex "
			    "object=0x8000 holder=%u\n",
			    more, closed, holder);
	}
}

static void test_lock_cycle(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	at_the_end(&log, "ended=0 looked=5s", "400ms", 101, "");
	root = report_on(log.text);
	finding = find(root, "lock-cycle");
	assert_non_null(finding);
	says(finding, "severity", "problem");
	says(finding, "function", "cudaFree");
	says(finding, "what", "at the end, for 4.600 s or longer, 2 threads stood in a cycle: ");
	says(finding, "what",
	     "thread 102 (GPU 0) waits inside cudaFree for the lock at 0x8000, on the heap, held by "
	     "thread 101 (GPU 0), which waits, between CUDA calls, for the lock at 0x7000, on the "
	     "heap, held by thread 102 (GPU 0)");
	json_decref(root);

	/* How long it lasted is not known, for nothing is recorded behind it. */
	at_the_end(&log, "ended=1", "400ms", 101, "");
	root = report_on(log.text);
	finding = find(root, "lock-cycle");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "for an unknown time");
	json_decref(root);

	/* A row of waits, which is long. */
	at_the_end(&log, "ended=0 looked=5s", "400ms", 103, "");
	silent(log.text, "lock-cycle");
	/* 101 may have got what it waited for, and not have woken up yet. */
	at_the_end(&log, "ended=0 looked=5s", "4990ms", 101, "");
	silent(log.text, "lock-cycle");
	/* 102 has let go of that since. */
	at_the_end(&log, "ended=0 looked=5s", "400ms", 101,
		   "350ms held kind=mutex fn=cudaMalloc object=0x7000 held=50ms\n"
		   "360ms memory cudaMalloc duration=60ms device=0 op=alloc kind=device "
		   "bytes=4096 address=0x9000\n");
	silent(log.text, "lock-cycle");
}

/* ---- streams that threads share ----------------------------------------------------------------- */

/* Two threads hand over five launches each and wait for 10 ms: in the same stream or not, half of the time at the same time or
 * one after the other. */
static void sharing(struct log *log, const char *second, bool beside, unsigned int alone)
{
	unsigned int thread, i, k;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n");
	for (thread = 0; thread < 2; thread++) {
		const char *stream = thread ? second : "0x10";

		add(log, "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n", thread + 1,
		    101 + thread, 101 + thread);
		for (i = 1; i <= 30; i++) {
			unsigned int at = 20200 * i + thread * (beside ? 5000 : 10100);

			at = beside ? at / 2 + (thread ? 2500 : 0) : at;
			for (k = 0; k < 5; k++)
				add(log,
				    "%uus launch cudaLaunchKernel duration=2us device=0 stream=%s "
				    "caller=0x50\n",
				    at + 4 * k, stream);
			if (i == 3) /* stacks are a sample */
				add(log,
				    "%uus python_code code=1 first_line=2 file=\"serve.py\" "
				    "function=\"answer\"\n"
				    "%uus stack fn=cudaStreamSynchronize why=32 frames=0x60\n"
				    "%uus python_stack fn=cudaStreamSynchronize lines=1:17\n",
				    at + 10030, at + 10030, at + 10030);
			add(log,
			    "%uus sched window=10000us not_running=0 running=1000\n"
			    "%uus op cudaStreamSynchronize duration=10000us device=0 stream=%s "
			    "caller=0x60\n",
			    at + 10030, at + 10030, stream);
		}
		/* and afterwards, for so long, each in a stream of its own */
		for (i = 0; i < alone; i++)
			add(log,
			    "%uus launch cudaLaunchKernel duration=2us device=0 stream=0x3%u\n"
			    "%uus op cudaStreamSynchronize duration=9000us device=0 stream=0x3%u\n",
			    1000000 + 10000 * i, thread, 1009500 + 10000 * i, thread);
	}
}

static void test_shared_stream(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	sharing(&log, "0x10", true, 0);
	root = report_on(log.text);
	finding = find(root, "shared-stream");
	assert_non_null(finding);
	says(finding, "what", "2 threads hand their work to one stream of GPU 0");
	assert_in_range(number(finding, "cost_ns"), 270 * MS, 310 * MS);
	says(finding, "function", "cudaStreamSynchronize");
	says(finding, "fix", "Give each thread a stream of its own");
	says(finding, "python", "from Python: serve.py:17 in answer");
	says(finding, "severity", "problem");
	says(finding, "what", "a stream for each gains nothing");
	json_decref(root);

	sharing(&log, "0x20", true, 0);
	silent(log.text, "shared-stream");
	sharing(&log, "0x10", false, 0); /* they take turns */
	silent(log.text, "shared-stream");
	sharing(&log, "0x10", true, 300); /* less than a tenth of the time */
	silent(log.text, "shared-stream");
}

/* Two threads copy, each for 10 ms, and what each copies is done 5 ms after the other's. */
static void copying(struct log *log, const char *second, const char *stream)
{
	unsigned int thread, i;

	log->used = 0;
	add(log, "trace app.100 pid=100 program=\"app\" probes=1\n");
	for (thread = 0; thread < 2; thread++) {
		add(log, "slot %u tid=%u\n1us thread tid=%u name=\"app\"\n", thread + 1,
		    101 + thread, 101 + thread);
		for (i = 1; i <= 60; i++)
			add(log,
			    "%uus copy cudaMemcpy duration=9900us device=0 stream=%s direction=%s "
			    "src=%s dst=%s bytes=100000000 caller=0x6%u\n",
			    10000 * i + 5000 * thread, thread ? stream : "1",
			    thread ? second : "h2d",
			    thread && !strcmp(second, "d2h") ? "device" : "pinned",
			    thread && !strcmp(second, "d2h") ? "pinned" : "device", thread);
	}
}

static void test_shared_by_copies(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	copying(&log, "d2h", "1");
	root = report_on(log.text);
	finding = find(root, "shared-stream");
	assert_non_null(finding);
	says(finding, "what", "2 threads copy in the default stream (stream 0) of GPU 0");
	assert_in_range(number(finding, "cost_ns"), 578 * MS, 588 * MS);
	says(finding, "function", "cudaMemcpy");
	says(finding, "fix", "copy with cudaMemcpyAsync in it, from and to pinned memory");
	says(finding, "severity", "problem");
	assert_null(strstr(json_string_value(json_object_get(finding, "what")), "gains nothing"));
	json_decref(root);

	copying(&log, "d2h", "0x20");
	silent(log.text, "shared-stream");
	copying(&log, "h2d", "1"); /* they take turns on the GPU in any case */
	silent(log.text, "shared-stream");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall_by_loading),
		cmocka_unit_test(test_cross_device_stall),
		cmocka_unit_test(test_stall_of_beginners),
		cmocka_unit_test(test_stall_overlaps),
		cmocka_unit_test(test_gain_of_waiters),
		cmocka_unit_test(test_mostly),
		cmocka_unit_test(test_significant),
		cmocka_unit_test(test_others_part),
		cmocka_unit_test(test_stall_at_start),
		cmocka_unit_test(test_stall_after_start),
		cmocka_unit_test(test_stall_of_calls),
		cmocka_unit_test(test_same_device_stall),
		cmocka_unit_test(test_stall_behind_gpu),
		cmocka_unit_test(test_starvation),
		cmocka_unit_test(test_starved_by_a_long_call),
		cmocka_unit_test(test_starving_without_cpu),
		cmocka_unit_test(test_held_lock),
		cmocka_unit_test(test_held_lock_of_several),
		cmocka_unit_test(test_lock_cycle),
		cmocka_unit_test(test_shared_stream),
		cmocka_unit_test(test_shared_by_copies),
	};

	return RUN_WITH_FINDINGS(tests);
}
