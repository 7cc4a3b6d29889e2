/*
 * tests/unit/test_analyzer_findings_run.c: the findings of the whole run: for each a log in which it must
 * be told, and a near twin in which nothing may be said of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "report_json.h"

/* The one finding of that detector; NULL: none. */
static json_t *find(const json_t *root, const char *id)
{
	json_t *rows = json_object_get(root, "findings"), *row, *found = NULL;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "id")), id) != 0)
			continue;
		assert_null(found);
		found = row;
	}
	return found;
}

static const char *text(const json_t *finding, const char *key)
{
	const char *value = json_string_value(json_object_get(finding, key));

	return value ? value : "";
}

static int64_t number(const json_t *finding, const char *key)
{
	return json_integer_value(json_object_get(finding, key));
}

static void says(const json_t *finding, const char *key, const char *words)
{
	if (!strstr(text(finding, key), words))
		fail_msg("%s of %s is '%s', not '%s'", key, text(finding, "id"), text(finding, key),
			 words);
}

/* Nothing is said of it in that log. */
static void silent(const char *log, const char *id)
{
	json_t *root = report_on(log);
	const json_t *finding = find(root, id);

	if (finding)
		fail_msg("%s: %s", id, text(finding, "what"));
	json_decref(root);
}

/* A log in pieces. */
struct log {
	char text[1 << 17];
	size_t used;
};

static void add(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct log *log, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log->used += (size_t)vsnprintf(log->text + log->used, sizeof(log->text) - log->used, format,
				       args);
	va_end(args);
	assert_true(log->used < sizeof(log->text));
}

#define MS 1000000

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
	assert_in_range(number(finding, "cost_ns"), 80 * MS, 90 * MS);
	says(finding, "otherwise", "that saves up to 86.");
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

/* What others waited is told beside what the threads themselves lost, if it is not next to nothing. */
static void test_others_part(void **state)
{
	static const char *const formats[] = {"text", "junit"};
	static const char words[] = "and others, who waited for it,";
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

/* ---- one place in several processes ----------------------------------------------------------- */

/* Two processes free memory at one place while the GPU works, one behind all its work; the other one, too, or
 * with more to come. */
static void freeing(struct log *log, bool more)
{
	unsigned int i;

	log->used = 0;
	for (i = 0; i < 2; i++)
		add(log,
		    "trace app.%u pid=%u program=\"app\" probes=1\n"
		    "slot 1 tid=%u\n1us thread tid=%u name=\"app\"\n"
		    "1ms memory cudaFree duration=8us op=free kind=device bytes=9 caller=0x50\n"
		    "2ms launch cudaLaunchKernel duration=3us stream=0x10 caller=0x10\n"
		    "103ms memory cudaFree duration=100ms op=free kind=device bytes=9 caller=0x50\n"
		    "%s",
		    100 + i, 100 + i, 100 + i, 100 + i,
		    i && more
			    ? "104ms launch cudaLaunchKernel duration=3us stream=0x10 caller=0x10\n"
			    : "");
}

static void test_end_of_each_process(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	freeing(&log, true);
	root = report_on(log.text);
	finding = find(root, "hidden-sync");
	assert_non_null(finding);
	assert_int_equal(number(finding, "processes"), 2);
	json_decref(root);
	freeing(&log, false);
	root = report_on(log.text);
	assert_null(find(root, "hidden-sync"));
	json_decref(root);
}

/* ---- GPUs that processes share ---------------------------------------------------------------- */

/* Two processes of one user on a GPU each or on one, from `begin` ms to `begin` + 400 ms; of each half the
 * time is a wait for the GPU. `client`: both are clients of one server, with that share. */
static void sharing(struct log *log, const char *other_uuid, unsigned int begin, bool client,
		    const char *share)
{
	unsigned int i;

	log->used = 0;
	for (i = 0; i < 2; i++) {
		unsigned int from = i ? begin : 0;

		add(log,
		    "trace app.%u pid=%u program=\"app\" boot_id=b clock_source=tsc\n"
		    "slot 0\n"
		    "%ums gpu device=0 name=\"G\" uuid=\"%s\" pci=\"1\"\n"
		    "%ums share device=0 client=%s multiprocessors=132\n"
		    "%ums mps initialised=1 uid=1000%s%s\n"
		    "slot 1 tid=%u\n%ums thread tid=%u name=\"app\"\n"
		    "%ums launch cudaLaunchKernel duration=3us stream=0x10\n"
		    "%ums op cudaStreamSynchronize duration=10us stream=0x11\n"
		    "%ums op cudaStreamSynchronize duration=10us stream=0x11\n"
		    "%ums launch cudaLaunchKernel duration=3us stream=0x10\n"
		    "%ums op cudaStreamSynchronize duration=300ms stream=0x10\n",
		    100 + i, 100 + i, from + 1, i ? other_uuid : "GPU-a", from + 1,
		    client ? "yes" : "no", from + 2,
		    client ? " daemon=40 server=50 server_uid=1000 pipe_directory=\"/tmp/mps\""
			   : "",
		    share, 100 + i, from + 2, 100 + i, from + 10, from + 20, from + 30, from + 40,
		    from + 400);
	}
}

static void test_time_slicing(void **state)
{
	static struct log log;
	json_t *root, *finding;
	char *text;

	(void)state;
	sharing(&log, "GPU-a", 50, false, "");
	root = report_on(log.text);
	finding = find(root, "time-slicing");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "2 processes used one GPU at the same time");
	says(finding, "fix", "nvidia-cuda-mps-control -d");
	assert_int_equal(number(finding, "processes"), 2);
	assert_true(json_is_null(json_object_get(finding, "cost_ns")));
	assert_true(json_is_null(json_object_get(finding, "gain_high_ns")));
	assert_null(find(root, "mps-share"));
	json_decref(root);
	text = report_in("sarif", log.text);
	assert_non_null(strstr(text, "\"cost_ns\": null"));
	free(text);
	text = report_in("junit", log.text);
	assert_non_null(strstr(text, "name=\"time-slicing\">"));
	free(text);

	sharing(&log, "GPU-b", 50, false, ""); /* each its own */
	silent(log.text, "time-slicing");
	sharing(&log, "GPU-a", 395, false, ""); /* one after the other */
	silent(log.text, "time-slicing");
	sharing(&log, "GPU-a", 50, true, ""); /* with MPS */
	silent(log.text, "time-slicing");
	silent(log.text, "mps-share");
}

static void test_mps_share(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	sharing(&log, "GPU-a", 50, true, " active_thread_percentage=\"25\"");
	root = report_on(log.text);
	finding = find(root, "mps-share");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "app.100 (25 %), app.101 (25 %)");
	json_decref(root);
	sharing(&log, "GPU-a", 50, true, " active_thread_percentage=\"100\"");
	silent(log.text, "mps-share");
	sharing(&log, "GPU-a", 50, false, " active_thread_percentage=\"25\""); /* of no server */
	silent(log.text, "mps-share");
}

/* A process that calls cuInit while the daemon's server works for user 1000. */
#define MPS_USERS(uid) \
	"trace app.100 pid=100 program=\"app\"\n" \
	"slot 0\n" \
	"10ms mps initialised=0 uid=" uid " daemon=40 server=50 server_uid=1000 " \
	"pipe_directory=\"/tmp/mps\"\n" \
	"210ms mps initialised=1 uid=" uid " daemon=40 server=60 server_uid=" uid " " \
	"pipe_directory=\"/tmp/mps\"\n" \
	"slot 1 tid=100\n9ms thread tid=100 name=\"app\"\n" \
	"211ms call cuInit duration=201ms\n" \
	"220ms launch cudaLaunchKernel duration=3us stream=0x10\n"

static void test_mps_users(void **state)
{
	json_t *root = report_on(MPS_USERS("1001"));
	const json_t *finding = find(root, "mps-users");

	(void)state;
	assert_non_null(finding);
	assert_int_equal(number(finding, "cost_ns"), 200000000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	says(finding, "what", "1 process waited for 200.0 ms");
	json_decref(root);
	silent(MPS_USERS("1000"), "mps-users");
}

/* ---- CPUs ------------------------------------------------------------------------------------- */

/* Thread 101 lacks a CPU for `lacked` of 50 ms; 102 waits for the GPU for 90 ms, and was on a CPU for
 * `ran` ms of them. */
static void crowded(struct log *log, unsigned int cpus, unsigned int lacked, unsigned int ran)
{
	log->used = 0;
	add(log,
	    "trace app.100 pid=100 program=\"app\" probes=1 cpus=%u\n"
	    "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	    "1ms op cudaStreamSynchronize duration=5us device=0 stream=0x11\n"
	    "2ms op cudaStreamSynchronize duration=5us device=0 stream=0x11\n"
	    "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
	    "60ms sched window=50ms not_running=%u000000 running=1000000\n"
	    "60001us op cudaStreamSynchronize duration=50ms device=0 stream=0x10\n"
	    "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n"
	    "1ms op cudaStreamSynchronize duration=5us device=0 stream=0x21\n"
	    "2ms op cudaStreamSynchronize duration=5us device=0 stream=0x21\n"
	    "3ms launch cudaLaunchKernel duration=3us device=0 stream=0x20\n"
	    "100ms sched window=90ms not_running=0 running=%u000000\n"
	    "100001us op cudaStreamSynchronize duration=90ms device=0 stream=0x20\n",
	    cpus, lacked, ran);
}

static void test_oversubscribed(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	crowded(&log, 1, 40, 2); /* the other one sleeps */
	root = report_on(log.text);
	finding = find(root, "oversubscribed-host");
	assert_non_null(finding);
	assert_int_equal(number(finding, "cost_ns"), 40000000);
	says(finding, "what", "1 thread of 2, ready to go on, got no CPU for 40.00 ms");
	says(finding, "what", "they may use 1 CPU");
	assert_null(strstr(text(finding, "what"), "other processes"));
	says(finding, "severity", "problem");
	says(json_object_get(root, "waits"), "processes", "too few CPUs for these threads");
	assert_null(strstr(text(finding, "what"), "spin"));
	says(finding, "fix", "more CPUs");
	json_decref(root);

	crowded(&log, 1, 40, 88); /* the other one spins */
	root = report_on(log.text);
	finding = find(root, "oversubscribed-host");
	assert_non_null(finding);
	says(finding, "what", "in calls that spin");
	says(finding, "fix", "cudaDeviceScheduleBlockingSync");
	json_decref(root);

	crowded(&log, 1, 3, 88); /* who spins takes nothing from anybody */
	silent(log.text, "oversubscribed-host");
}

/* There is a CPU for each of the threads: that others had them is not the program's fault, however its own
 * threads wait. */
static void test_busy_host(void **state)
{
	static struct log log;
	unsigned int ran;

	(void)state;
	for (ran = 2; ran <= 88; ran += 86) {
		json_t *root, *finding;

		crowded(&log, 2, 40, ran);
		root = report_on(log.text);
		finding = find(root, "oversubscribed-host");
		assert_non_null(finding);
		says(finding, "what", "they may use 2 CPUs");
		says(finding, "what", "other processes on the host had the CPUs");
		assert_null(strstr(text(finding, "what"), "spin"));
		says(finding, "fix", "CPUs of its own");
		assert_null(strstr(text(finding, "fix"), "ewer threads"));
		says(finding, "severity", "note");
		says(json_object_get(root, "waits"), "processes", "somebody else had the CPUs");
		json_decref(root);
	}
}

/* Two threads that are there at different times are one at a time; a third one beside them has slept long. */
static void test_busy_host_in_turn(void **state)
{
	static struct log log;
	json_t *root;
	unsigned int i;

	(void)state;
	log.used = 0;
	add(&log, "trace app.100 pid=100 program=\"app\" probes=1 cpus=1\n"
		  "clock offset_s=1000000 frequency=1000000000\n"
		  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		  "2us op cudaSetDevice duration=1us device=0\n");
	for (i = 0; i < 2; i++)
		add(&log,
		    "slot %u tid=%u\n%ums thread tid=%u name=\"app\"\n"
		    "%ums launch cudaLaunchKernel duration=3us device=0 stream=0x10\n"
		    "%ums sched window=300ms not_running=290000000 running=1000000\n"
		    "%ums op cudaStreamSynchronize duration=300ms device=0 stream=0x10\n",
		    2 + i, 102 + i, 300 + 700 * i, 102 + i, 301 + 700 * i, 602 + 700 * i,
		    602 + 700 * i);
	root = report_on(log.text);
	says(find(root, "oversubscribed-host"), "severity", "note");
	json_decref(root);
}

/* ---- the legacy default stream ----------------------------------------------------------------- */

/* Thirty rounds of a kernel in a stream and one in the default stream; a call between them. */
static void default_stream(struct log *log, unsigned int flags, unsigned int stream,
			   const char *between)
{
	unsigned int i;

	log->used = 0;
	add(log,
	    "trace app.100 pid=100 program=\"app\"\n"
	    "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	    "10us op cudaStreamCreateWithFlags duration=5us device=0 flags=%u object=0x10\n",
	    flags);
	for (i = 1; i <= 30; i++)
		add(log,
		    "%u0us launch cudaLaunchKernel duration=3us device=0 stream=0x10 "
		    "caller=0x4010\n"
		    "%u5us %s duration=1us device=0\n"
		    "%u9us launch cudaLaunchKernel duration=3us device=0 stream=%u caller=0x4020\n",
		    10 + i, 10 + i, between, 10 + i, stream);
	add(log, "1ms op cudaDeviceSynchronize duration=10us device=0\n");
}

static void test_legacy_stream(void **state)
{
	static struct log log;
	json_t *root, *finding;

	(void)state;
	default_stream(&log, 0, 1, "call cudaGetLastError");
	root = report_on(log.text);
	finding = find(root, "legacy-stream");
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what",
	     "59 times work in the legacy default stream of GPU 0, mostly by "
	     "cudaLaunchKernel, and work in 1 other stream");
	assert_int_equal(number(finding, "count"), 59);
	assert_int_equal(number(finding, "offset"), 0x4020);
	says(finding, "fix", "cudaStreamNonBlocking");
	json_decref(root);

	default_stream(&log, 1, 1, "call cudaGetLastError"); /* non-blocking */
	silent(log.text, "legacy-stream");
	default_stream(&log, 0, 2, "call cudaGetLastError"); /* the thread's own default stream */
	silent(log.text, "legacy-stream");
	default_stream(&log, 0, 0x10, "call cudaGetLastError"); /* one stream only */
	silent(log.text, "legacy-stream");
	/* What is waited for in between is in nobody's way; half of the turns are left: the stream's
	 * behind the default stream's. */
	default_stream(&log, 0, 1, "op cudaStreamSynchronize stream=0x10");
	root = report_on(log.text);
	assert_int_equal(number(find(root, "legacy-stream"), "count"), 29);
	json_decref(root);
}

/* A runtime that was linked to the program makes all calls at one place: stacks of the last ones tell where they come
 * from. */
static void test_legacy_lines(void **state)
{
	static struct log log;
	unsigned int i;
	json_t *root;

	(void)state;
	log.used = 0;
	add(&log, "trace app.100 pid=100 program=\"app\"\n"
		  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
		  "2us python_code code=1 first_line=1 file=\"/u/warm.py\" function=\"warm\"\n"
		  "2us python_code code=2 first_line=1 file=\"/u/train.py\" function=\"step\"\n"
		  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
	for (i = 1; i <= 30; i++)
		add(&log,
		    "%u0us launch cuLaunchKernel duration=3us device=0 stream=0x10 caller=0x4010\n"
		    "%u9us stack fn=cuLaunchKernel why=16 frames=0x4020\n"
		    "%u9us python_stack fn=cuLaunchKernel lines=%s\n"
		    "%u9us launch cuLaunchKernel duration=3us device=0 stream=1 caller=0x4020\n",
		    10 + i, 10 + i, 10 + i,
		    i == 1       ? "1:11"
		    : i % 4 == 0 ? "2:13"
				 : "2:12",
		    10 + i);
	add(&log, "1ms op cudaDeviceSynchronize duration=10us device=0\n");
	root = report_on(log.text);
	says(find(root, "legacy-stream"), "python",
	     "from Python: train.py:12 in step; also train.py:13 in step");
	json_decref(root);
}

/* A copy that waits, behind the stream of its own thread, is what somebody wants; behind another
 * thread's it is not. */
static void test_legacy_copies(void **state)
{
	static struct log log;
	json_t *root;
	unsigned int other, i;

	(void)state;
	for (other = 0; other < 2; other++) {
		log.used = 0;
		add(&log, "trace app.100 pid=100 program=\"app\"\n"
			  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
			  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
		for (i = 1; i <= 30; i++)
			add(&log,
			    "%u0us launch cudaLaunchKernel duration=3us device=0 stream=0x10\n",
			    10 + i);
		if (other)
			add(&log, "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n");
		for (i = 1; i <= 30; i++)
			add(&log,
			    "%u5us copy cudaMemcpy duration=3us device=0 stream=1 direction=d2h "
			    "src=device dst=pinned bytes=64\n",
			    10 + i);
		if (!other) { /* in the order of time, in one slot */
			log.used = 0;
			add(&log, "trace app.100 pid=100 program=\"app\"\n"
				  "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
				  "10us op cudaStreamCreate duration=5us device=0 object=0x10\n");
			for (i = 1; i <= 30; i++)
				add(&log,
				    "%u0us launch cudaLaunchKernel duration=3us device=0 "
				    "stream=0x10\n"
				    "%u5us copy cudaMemcpy duration=3us device=0 stream=1 "
				    "direction=d2h src=device dst=pinned bytes=64\n",
				    10 + i, 10 + i);
		}
		root = report_on(log.text);
		if (other)
			assert_int_equal(number(find(root, "legacy-stream"), "count"), 30);
		else
			assert_null(find(root, "legacy-stream"));
		json_decref(root);
	}
}

/* ---- peer copies ------------------------------------------------------------------------------- */

#define PEER_COPIES(before, form, bytes) \
	"trace app.100 pid=100 program=\"app\"\n" \
	"slot 1 tid=101\n1us thread tid=101 name=\"app\"\n" before \
	"1ms copy cudaMemcpyPeerAsync duration=10us device=0 stream=0x10 direction=d2d " \
	"src=device " \
	"dst=device form=" form " src_device=0 dst_device=1 caller=0x4010 bytes=" bytes "\n" \
	"2ms copy cudaMemcpyPeerAsync duration=10us device=0 stream=0x10 direction=d2d " \
	"src=device " \
	"dst=device form=" form " src_device=0 dst_device=1 caller=0x4010 bytes=" bytes "\n"

static void test_staged_peer_copy(void **state)
{
	json_t *root = report_on(PEER_COPIES("", "peer", "16777216"));
	const json_t *finding = find(root, "staged-peer-copy");

	(void)state;
	assert_non_null(finding);
	says(finding, "severity", "note");
	says(finding, "what", "2 calls copied 32.0 MiB from GPU 0 to GPU 1");
	assert_int_equal(number(finding, "offset"), 0x4010);
	assert_int_equal(number(finding, "bytes"), 33554432);
	/* What the host spent is little; what the GPUs did, nobody knows. */
	assert_true(json_is_null(json_object_get(finding, "own_ns")));
	json_decref(root);
	/* of another pair, and taken back */
	root = report_on(
		PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=2\n"
			    "20us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1\n"
			    "30us op cudaDeviceDisablePeerAccess duration=9us device=0 object=1\n",
			    "peer", "16777216"));
	assert_non_null(find(root, "staged-peer-copy"));
	json_decref(root);

	silent(PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1\n",
			   "peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("10us op cuCtxEnablePeerAccess duration=9us device=1 object=0\n", "peer",
			   "16777216"),
	       "staged-peer-copy");
	/* enabled already; a recording that does not say for whom */
	silent(PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1 "
			   "result=704\n",
			   "peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("10us call cudaDeviceEnablePeerAccess duration=9us device=0\n", "peer",
			   "16777216"),
	       "staged-peer-copy");
	/* memory mapped for other GPUs, nobody knows which: an older recording */
	silent(PEER_COPIES("10us op cuMemSetAccess duration=9us device=0 object=0x7000000000\n",
			   "peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("10us op cuMemSetAccess duration=9us device=3 object=0x7000000000\n",
			   "peer src_access=mapped dst_access=peer", "16777216"),
	       "staged-peer-copy");
	silent(PEER_COPIES("", "peer", "4096"), "staged-peer-copy"); /* next to nothing */
}

/* Memory of GPU 1, or of one that is not known, given to these. */
#define GIVEN(whom) \
	"10us op cuMemSetAccess duration=9us device=2 flags=1 object=0x80000000000000" whom "\n"
#define POOL_GIVEN(whom) \
	"10us op cudaMemPoolSetAccess duration=9us device=2 flags=1 " \
	"object=0x80000000000000" whom "\n"
#define GIVEN_UNKNOWN(whom) \
	"10us op cuMemSetAccess duration=9us device=2 flags=255 object=0x80000000000000" whom "\n"

/* Who may reach which memory, by what. */
static void test_access(void **state)
{
	static const char *const denied[] = {
		PEER_COPIES("", "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("02"), "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("06"), "1d src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("03"), "peer src_access=peer dst_access=peer", "16777216"),
		PEER_COPIES(GIVEN("03"), "peer src_access=mapped dst_access=peer", "16777216"),
		PEER_COPIES(GIVEN_UNKNOWN("08"), "peer src_access=mapped dst_access=mapped",
			    "16777216"),
		PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=0 object=1\n",
			    "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("03"), "peer src_access=pool dst_access=pool", "16777216"),
		PEER_COPIES("10us memory cudaIpcOpenMemHandle duration=9us device=3 op=map "
			    "kind=device\n",
			    "peer src_access=peer dst_access=peer", "16777216"),
		PEER_COPIES(POOL_GIVEN("02"), "1d src_access=pool dst_access=pool", "16777216"),
		PEER_COPIES(POOL_GIVEN("01"), "peer src_access=pool dst_access=peer", "16777216"),
	};
	static const char *const granted[] = {
		PEER_COPIES(GIVEN("03"), "peer src_access=mapped dst_access=mapped", "16777216"),
		PEER_COPIES(GIVEN("01"), "1d src_access=peer dst_access=mapped", "16777216"),
		PEER_COPIES(POOL_GIVEN("01"), "1d src_access=pool dst_access=pool", "16777216"),
		PEER_COPIES("10us op cudaMemPoolSetAccess duration=9us device=0 object=0x91\n",
			    "peer", "16777216"), /* an older recording */
		PEER_COPIES(GIVEN("01"), "peer", "16777216"), /* nobody knows what memory */
		PEER_COPIES("10us memory cudaIpcOpenMemHandle duration=9us device=0 op=map "
			    "kind=device\n",
			    "peer src_access=peer dst_access=unknown", "16777216"),
		PEER_COPIES(GIVEN_UNKNOWN("01"), "peer src_access=mapped dst_access=mapped",
			    "16777216"),
		PEER_COPIES("10us op cudaDeviceEnablePeerAccess duration=9us device=1 object=0\n",
			    "peer src_access=peer dst_access=mapped", "16777216"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(denied); i++) {
		json_t *root = report_on(denied[i]);

		assert_non_null(find(root, "staged-peer-copy"));
		json_decref(root);
	}
	for (i = 0; i < ARRAY_SIZE(granted); i++)
		silent(granted[i], "staged-peer-copy");
}

#define ENABLED "10us op cudaDeviceEnablePeerAccess duration=9us device=0 context=1 object=1\n"
#define CTX_ENABLED \
	"10us op cuCtxEnablePeerAccess duration=9us device=0 context=1 object=1 flags=2\n"
#define OTHER_ENABLED \
	"11us op cuCtxEnablePeerAccess duration=9us device=0 context=4 object=1 flags=2\n"
#define ENDED(call) "20us op " call "\n"

/* How long access lasts. */
static void test_peer_access_ends(void **state)
{
	static const char *const ends[] = {
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=0"), "peer",
			    "16777216"),
		PEER_COPIES(
			ENABLED ENDED("cuDevicePrimaryCtxReset_v2 duration=9us device=0 object=1"),
			"peer", "16777216"),
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy_v2 duration=9us object=0xc1 flags=1"),
			    "peer", "16777216"),
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy duration=9us object=0xc2 flags=2"),
			    "peer", "16777216"),
	};
	static const char *const lasts[] = {
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=2"), "peer",
			    "16777216"),
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=0 result=46"),
			    "peer", "16777216"),
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy_v2 duration=9us object=0xc3 flags=3"),
			    "peer", "16777216"),
		PEER_COPIES(CTX_ENABLED OTHER_ENABLED ENDED(
				    "cuCtxDestroy_v2 duration=9us object=0xc1 flags=1"),
			    "peer", "16777216"),
		/* a recording that does not tell which context or GPU */
		PEER_COPIES(CTX_ENABLED ENDED("cuCtxDestroy_v2 duration=9us object=0xc1"), "peer",
			    "16777216"),
		PEER_COPIES(ENABLED ENDED("cudaDeviceReset duration=9us object=255"), "peer",
			    "16777216"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		json_t *root = report_on(ends[i]);

		assert_non_null(find(root, "staged-peer-copy"));
		json_decref(root);
	}
	for (i = 0; i < ARRAY_SIZE(lasts); i++)
		silent(lasts[i], "staged-peer-copy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall_by_loading),
		cmocka_unit_test(test_cross_device_stall),
		cmocka_unit_test(test_stall_of_beginners),
		cmocka_unit_test(test_stall_overlaps),
		cmocka_unit_test(test_gain_of_waiters),
		cmocka_unit_test(test_others_part),
		cmocka_unit_test(test_stall_at_start),
		cmocka_unit_test(test_stall_after_start),
		cmocka_unit_test(test_stall_of_calls),
		cmocka_unit_test(test_same_device_stall),
		cmocka_unit_test(test_stall_behind_gpu),
		cmocka_unit_test(test_starvation),
		cmocka_unit_test(test_starving_without_cpu),
		cmocka_unit_test(test_end_of_each_process),
		cmocka_unit_test(test_time_slicing),
		cmocka_unit_test(test_mps_share),
		cmocka_unit_test(test_mps_users),
		cmocka_unit_test(test_oversubscribed),
		cmocka_unit_test(test_busy_host),
		cmocka_unit_test(test_busy_host_in_turn),
		cmocka_unit_test(test_legacy_stream),
		cmocka_unit_test(test_legacy_lines),
		cmocka_unit_test(test_legacy_copies),
		cmocka_unit_test(test_staged_peer_copy),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_peer_access_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
