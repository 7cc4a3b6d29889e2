/*
 * tests/unit/test_analyzer_account.c: where the time of calls went, from logs in which that is known: a full queue, the
 * GPU, no CPU, sleep, or nobody knows. The numbers are taken from the JSON report. Who made a call wait is in
 * test_analyzer_blame.c, time in the kernel module in test_analyzer_kernel_module.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "accounts.h"

/* A call that takes 20 ms longer than such calls do, of which it sleeps 18 in two rows of short sleeps. */
static void test_asleep(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n"
		"1us thread tid=101 name=\"app\"\n" CALM_COPIES
		"30ms wait kind=sleep fn=cudaSetDevice duration=9ms count=9 span=9ms depth=1\n"
		"40ms wait kind=sleep fn=cudaSetDevice duration=9ms count=9 span=9ms depth=1\n"
		"41ms call cudaSetDevice duration=20ms\n");

	(void)state;
	assert_in_range(fact(root, "waits", "unexplained_ns"), 18000000, 20000000);
	assert_int_equal(fact(root, "waits", "asleep_ns"), 18000000);
	assert_non_null(
		strstr(json_string_value(json_object_get(
			       json_array_get(json_object_get(root, "worst_calls"), 0), "what")),
		       "slept in between, for 18.00 ms"));
	json_decref(root);
}

/* Launches far ahead of the GPU wait for room; it is nobody's lock. The same launch with little
 * outstanding is not explained by that. */
static void test_full_queue(void **state)
{
	static char log[1 << 16];
	size_t n = (size_t)snprintf(log, sizeof(log), "%s", TRACE "slot 1 tid=101\n");
	json_t *root;
	int i;

	(void)state;
	for (i = 0; i < 1020; i++)
		n += (size_t)snprintf(log + n, sizeof(log) - n,
				      "%dus launch cudaLaunchKernel duration=3us stream=0x11\n",
				      100 + 5 * i);
	snprintf(log + n, sizeof(log) - n,
		 "16ms launch cudaLaunchKernel duration=10ms stream=0x11\n"
		 "30ms launch cudaLaunchKernel duration=10ms stream=0x12\n");
	root = report_on(log);
	assert_in_range(sum(root, "accounts", "function=cudaLaunchKernel", "queue_ns"), 9990000,
			10000000);
	assert_in_range(sum(root, "accounts", "function=cudaLaunchKernel", "unexplained_ns"),
			9990000, 10000000);
	assert_int_equal(sum(root, "accounts", "function=cudaLaunchKernel", "lock_ns"), 0);
	json_decref(root);
}

/* What a call of 20 ms has of a window of so long in which its thread was kept from running so long. */
static int64_t kept_from_running(unsigned int window_ms, unsigned int not_running_ms)
{
	char log[1024];
	json_t *root;
	int64_t ns;

	snprintf(log, sizeof(log),
		 TRACE "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n" CALM_COPIES
		       "10ms call cudaSetDevice duration=5us\n"
		       "100ms sched window=%ums not_running=%ums running=1us\n"
		       "100ms call cudaSetDevice duration=20ms\n",
		 window_ms, not_running_ms);
	root = report_on(log);
	check_sums(root);
	ns = fact(root, "waits", "not_running_ns");
	json_decref(root);
	return ns;
}

/* The scheduler's account may have begun before the call: a part of it is the call's; and never more than the call. */
static void test_window(void **state)
{
	(void)state;
	assert_int_equal(kept_from_running(20, 12), 12000000);
	assert_int_equal(kept_from_running(40, 20), 10000000);
	assert_int_equal(kept_from_running(80, 60), 15000000);
	assert_int_equal(kept_from_running(10, 6), 6000000);
	assert_in_range(kept_from_running(20, 30), 19990000, 20000000);
	assert_int_equal(kept_from_running(0, 0), 0);
}

/* The first launch of a kernel waits for the device, though there is no other to compare it with; on an
 * idle device the same first launch is the price of loading. */
static void test_cold(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "5ms launch cudaLaunchKernel duration=4ms stream=0x11 kernel=1\n"
		      "6ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1\n"
		      "700ms launch cudaLaunchKernel duration=690ms stream=0x12 kernel=2\n");

	(void)state;
	assert_in_range(sum(root, "accounts", "function=cudaLaunchKernel", "gpu_hidden_ns"),
			684000000, 690000000);
	assert_in_range(sum(root, "accounts", "function=cudaLaunchKernel", "loading_ns"), 3990000,
			9100000);
	assert_in_range(sum(root, "accounts", "function=cudaLaunchKernel", "own_ns"), 9000, 20000);
	json_decref(root);
}

/* Ready to run and not running: of a wait for a lock only what lay after its release, and of what
 * nobody explains. A call that was shorter than the wait has the end of that. */
static void test_not_running(void **state)
{
	static const struct {
		unsigned int call_us, lock_us;
	} cases[] = {{10010, 6000}, {6010, 2010}, {5000, 1000}, {4000, 0}, {3000, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t waited_ns = min_u64(10000, cases[i].call_us) * 1000;
		char log[2048];
		json_t *root;

		snprintf(
			log, sizeof(log),
			TRACE
			"slot 1 tid=101\n"
			"20ms wait kind=mutex fn=cudaMalloc duration=10ms object=0x1000 holder=102 "
			"holder_fn=cudaFree\n"
			"20010us sched window=%uus not_running=6000000 running=1000\n"
			"20010us memory cudaMalloc duration=%uus op=alloc kind=device\n"
			"slot 2 tid=102\n"
			"16ms released kind=mutex fn=cudaFree object=0x1000\n"
			"16010us memory cudaFree duration=7ms op=free kind=device address=0x1\n",
			cases[i].call_us, cases[i].call_us);
		root = report_on(log);
		assert_int_equal(sum(root, "accounts", "thread=101", "lock_ns"),
				 cases[i].lock_us * 1000);
		assert_int_equal(sum(root, "accounts", "thread=101", "not_running_ns"),
				 min_u64(4000, cases[i].call_us) * 1000);
		assert_int_equal(sum(root, "locks", "name=L1", "waited_ns"), waited_ns);
		assert_int_equal(sum(root, "locks", "name=L1", "longest_ns"), waited_ns);
		assert_int_equal(sum(root, "blame", "waiter=101 holder=102", "waited_ns"),
				 waited_ns);
		assert_int_equal(sum(root, "root_blame", "waiter=101 root=102", "waited_ns"),
				 waited_ns);
		json_decref(root);
	}
}

/* A thread waits for one thing at a time: what two records say of the same 6 ms, counts once. 12 of 20 ms are of locks. */
static void test_waits_that_overlap(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n" CALM_COPIES
		      "30ms wait kind=mutex fn=cudaMalloc duration=10ms object=0x1000 holder=102\n"
		      "32ms wait kind=mutex fn=cudaMalloc duration=8ms object=0x2000 holder=102\n"
		      "40ms memory cudaMalloc duration=20ms op=alloc kind=device\n");

	(void)state;
	assert_int_equal(sum(root, "accounts", "function=cudaMalloc", "lock_ns"), 12000000);
	assert_int_equal(sum(root, "locks", "name=L1", "waited_ns"), 10000000);
	assert_int_equal(sum(root, "locks", "name=L2", "waited_ns"), 2000000);
	json_decref(root);
}

/* Each time there is work that the call may wait for: what it costs without, nobody knows. */
static void test_unknown_expectation(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "10ms launch cudaLaunchKernel duration=3us kernel=1 stream=0x11\n"
		      "40ms memory cudaFree duration=29ms op=free kind=device address=0x1\n"
		      "50ms launch cudaLaunchKernel duration=3us kernel=1 stream=0x11\n"
		      "80ms memory cudaFree duration=29ms op=free kind=device address=0x2\n"
		      "90ms launch cudaLaunchKernel duration=3us kernel=1 stream=0x11\n"
		      "120ms memory cudaFree duration=29ms op=free kind=device address=0x3\n");
	const json_t *row, *expected;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(root, "worst_calls")), 3);
	json_array_foreach(json_object_get(root, "worst_calls"), i, row)
		assert_true(json_is_null(json_object_get(row, "expected_ns")));
	json_array_foreach(json_object_get(root, "function_accounts"), i, row)
		assert_int_equal(json_is_null(json_object_get(row, "expected_ns")),
				 agrees(row, "function=cudaFree"));
	json_array_foreach(json_object_get(root, "expectations"), i, row)
	{
		expected = json_object_get(row, "expected_ns");
		assert_int_equal(json_is_null(expected), agrees(row, "source=none"));
	}
	json_decref(root);
}

/* Nothing to compare it with, and nothing it could have waited for: long, and not lost. */
static void test_unknown_is_not_lost(void **state)
{
	json_t *root = report_on(TRACE "slot 1 tid=101\n"
				       "10ms memory cudaFree duration=5ms result=1 op=free "
				       "kind=device address=0x1\n"
				       "20ms memory cudaFree duration=6ms result=1 op=free "
				       "kind=device address=0x2\n"
				       "30ms memory cudaFree duration=7ms result=1 op=free "
				       "kind=device address=0x3\n");

	(void)state;
	assert_int_equal(sum(root, "accounts", "function=cudaFree", "total_ns"), 18000000);
	assert_int_equal(sum(root, "accounts", "function=cudaFree", "lost_ns"), 0);
	assert_int_equal(json_array_size(json_object_get(root, "worst_calls")), 0);
	json_decref(root);
}

/* ---- whatever the records are, the sums are exact ---------------------------------------------- */

static uint32_t seed;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

static size_t random_thread(char *log, size_t size, int slot)
{
	static const char *const calls[] = {
		"launch cudaLaunchKernel",  "memory cudaMalloc",    "memory cudaFree",
		"op cudaStreamSynchronize", "copy cudaMemcpyAsync", "call cudaDeviceSynchronize"};
	static const char *const kinds[] = {"mutex",     "read",  "write", "spin",
					    "condition", "ioctl", "poll",  "yield"};
	size_t n = (size_t)snprintf(log, size, "slot %d tid=%d\n", slot, 100 + slot);
	uint32_t now = 1000, i, j;

	for (i = 0; i < 60; i++) {
		uint32_t duration = 1 + random_below(50000);

		now += random_below(20000);
		for (j = random_below(4); j; j--) {
			now += 1 + random_below(duration);
			n += (size_t)snprintf(
				log + n, size - n,
				"%uns %s kind=%s fn=cudaMalloc duration=%u object=0x%x holder=%u "
				"holder_fn=cudaFree flags=%u held=%u span=%u\n",
				now,
				(const char *[]){"wait", "wait", "held", "taken",
						 "released"}[random_below(5)],
				kinds[random_below(ARRAY_SIZE(kinds))], random_below(60000),
				0x1000 + 16 * random_below(3),
				random_below(8) ? 101 + random_below(5) : 0, random_below(16),
				random_below(2) * random_below(60000), random_below(3000));
		}
		if (!random_below(4))
			n += (size_t)snprintf(log + n, size - n,
					      "%uns sched window=%u not_running=%u\n", now,
					      random_below(100000), random_below(100000));
		now += 1;
		n += (size_t)snprintf(log + n, size - n,
				      "%uns %s duration=%u stream=0x%x bytes=4096 address=1 "
				      "direction=%s src=pageable dst=device device=%u\n",
				      now, calls[random_below(ARRAY_SIZE(calls))], duration,
				      0x10 + random_below(3), random_below(2) ? "h2d" : "d2h",
				      random_below(3));
	}
	return n;
}

static void test_sums(void **state)
{
	static char log[1 << 18];
	uint32_t round;
	json_t *root;

	(void)state;
	for (round = 1; round <= 30; round++) {
		size_t n = (size_t)snprintf(log, sizeof(log), "%s", TRACE);
		int slot;

		seed = round;
		for (slot = 1; slot <= 5; slot++)
			n += random_thread(log + n, sizeof(log) - n, slot);
		root = report_on_any(log);
		check_sums(root);
		json_decref(root);
	}
}

/* Waits that claim to be longer than their call: together they are no longer than it, whoever sums; the last ones are
 * believed first. */
static void test_waits_fit(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "10ms memory cudaMalloc duration=1ms op=alloc kind=device bytes=4096\n"
		      "slot 2 tid=102\n"
		      "11ms launch cudaLaunchKernel duration=1us stream=0x11 kernel=1\n"
		      "30ms wait kind=mutex fn=cudaMalloc duration=15ms object=0x700 holder=101\n"
		      "31ms wait kind=mutex fn=cudaMalloc duration=900us object=0x800 holder=101\n"
		      "31100us memory cudaFree duration=1200us op=free kind=device\n"
		      "40ms wait kind=mutex fn=cudaMalloc duration=35ms object=0x700 holder=101\n"
		      "41ms memory cudaFree duration=2ms op=free kind=device\n");

	(void)state;
	assert_int_equal(sum(root, "locks", "address=2048", "waited_ns"), 900000);
	assert_int_equal(sum(root, "locks", "address=1792", "waited_ns"), 300000 + 2000000);
	assert_int_equal(sum(root, "blame", "", "waited_ns"), 1200000 + 2000000);
	assert_int_equal(sum(root, "root_blame", "", "waited_ns"), 1200000 + 2000000);
	assert_int_equal(fact(root, "waits", "lock_ns"), 1200000 + 2000000);
	check_sums(root);
	json_decref(root);
}

/* Metadata says that there were no probes, and there are records of theirs: then there were. A sleep that was seen is not
 * turned into a lock that nobody saw. */
static void test_probes_show(void **state)
{
	json_t *root =
		report_on("trace app.100 pid=100 program=\"/bin/app\" probes=0\n"
			  "slot 1 tid=101\n"
			  "90ms memory cudaMalloc duration=80ms op=alloc kind=device bytes=4096\n"
			  "slot 2 tid=102\n"
			  "11ms memory cudaFree duration=100us op=free kind=device\n"
			  "79ms wait kind=poll fn=cudaFree duration=60ms\n"
			  "80ms memory cudaFree duration=62ms op=free kind=device\n");

	(void)state;
	assert_in_range(fact(root, "waits", "asleep_ns"), 59000000, 60000000);
	assert_in_range(fact(root, "waits", "unexplained_ns"), 59000000, 62000000);
	assert_int_equal(fact(root, "waits", "lock_ns"), 0);
	json_decref(root);
}

/* Of 400 calls one in twenty takes 30 us instead of 3, with nothing in its way. One that nothing explains loses what it
 * takes beyond that; and nothing, if it asked the kernel module for what others do not. */
static void test_within_usual(void **state)
{
	static char log[1 << 16];
	size_t n = (size_t)snprintf(log, sizeof(log), "%s", TRACE "slot 1 tid=101\n");
	json_t *root;
	int i;

	(void)state;
	for (i = 0; i < 400; i++)
		n += (size_t)snprintf(log + n, sizeof(log) - n,
				      "%dus call cudaSetDevice duration=%dus\n", 100 + 50 * i,
				      i % 20 == 10 ? 30 : 3);
	n += (size_t)snprintf(log + n, sizeof(log) - n, "30ms call cudaSetDevice duration=90us\n");
	root = report_on(log);
	assert_in_range(sum(root, "accounts", "function=cudaSetDevice", "unexplained_ns"), 59000,
			61000);
	json_decref(root);

	snprintf(log + n, sizeof(log) - n,
		 "40ms wait kind=ioctl fn=cudaSetDevice duration=100us depth=1\n"
		 "40ms call cudaSetDevice duration=400us\n");
	root = report_on(log);
	assert_in_range(sum(root, "accounts", "function=cudaSetDevice", "unexplained_ns"), 59000,
			61000);
	assert_int_equal(sum(root, "accounts", "function=cudaSetDevice", "ioctl_ns"), 100000);
	json_decref(root);
}

/* Of 1,000 calls six take 25 us instead of 3: fewer than one in a hundred, and more than four. */
static void test_within_rare(void **state)
{
	static char log[1 << 16];
	size_t n = (size_t)snprintf(log, sizeof(log), "%s", TRACE "slot 1 tid=101\n");
	json_t *root;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		n += (size_t)snprintf(log + n, sizeof(log) - n,
				      "%dus call cudaSetDevice duration=%dus\n", 100 + 30 * i,
				      i % 160 == 10 ? 25 : 3);
	snprintf(log + n, sizeof(log) - n, "40ms call cudaSetDevice duration=60us\n");
	root = report_on(log);
	assert_in_range(sum(root, "accounts", "function=cudaSetDevice", "unexplained_ns"), 34000,
			36000);
	json_decref(root);
}

/* Few copies of a size take about the same; many of another size show how much such calls differ. */
static void test_spread_of_other_sizes(void **state)
{
	static const char copy[] = "copy cudaMemcpyAsync stream=0x11 direction=h2d src=pinned "
				   "dst=device";
	static char log[1 << 17];
	size_t n = (size_t)snprintf(log, sizeof(log), "%s", TRACE "slot 1 tid=101\n");
	json_t *root;
	int i;

	(void)state;
	for (i = 0; i < 400; i++)
		n += (size_t)snprintf(log + n, sizeof(log) - n,
				      "%dus %s bytes=%d duration=%dus\n"
				      "%dus op cudaStreamSynchronize stream=0x11 duration=3us\n",
				      100 + 50 * i, copy, i < 396 ? 1 << 20 : 4096,
				      i % 20 == 10 ? 20 : 3, 110 + 50 * i);
	snprintf(log + n, sizeof(log) - n, "30ms %s bytes=4096 duration=20us\n", copy);
	root = report_on(log);
	assert_int_equal(sum(root, "accounts", "function=cudaMemcpyAsync", "unexplained_ns"), 0);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_full_queue),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_not_running),
		cmocka_unit_test(test_cold),
		cmocka_unit_test(test_waits_that_overlap),
		cmocka_unit_test(test_unknown_expectation),
		cmocka_unit_test(test_unknown_is_not_lost),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_waits_fit),
		cmocka_unit_test(test_within_usual),
		cmocka_unit_test(test_within_rare),
		cmocka_unit_test(test_spread_of_other_sizes),
		cmocka_unit_test(test_probes_show),
	};

	return RUN_WITH_FINDINGS(tests);
}
