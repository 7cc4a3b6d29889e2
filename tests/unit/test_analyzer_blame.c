/*
 * tests/unit/test_analyzer_blame.c: because of whom calls waited for locks, and what was the root of it, from logs in which
 * both are known. The numbers are taken from the JSON report.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "accounts.h"

/* A kernel of 100 ms runs in the stream of thread 101, whose pageable copy waits for it with a lock in
 * its hands; thread 102 wants that lock. */
static void test_pageable_copy(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "1us thread tid=101 name=\"app\"\n" CALM_COPIES
		      "20ms launch cudaLaunchKernel duration=3us kernel=1 stream=0x11\n"
		      "121ms copy cudaMemcpyAsync duration=100ms direction=d2h src=device "
		      "dst=pageable bytes=4096 stream=0x11\n"
		      "slot 2 tid=102\n"
		      "1us thread tid=102 name=\"app\"\n"
		      "1ms call cudaSetDevice duration=5us\n"
		      "121010us wait kind=mutex fn=cuMemcpyDtoHAsync_v2 outer_fn=cudaMemcpyAsync "
		      "duration=90ms object=0x7f0000a010 device=0 holder=101 "
		      "holder_fn=cudaMemcpyAsync holder_device=0 holder_since=21ms depth=1\n"
		      "121060us copy cudaMemcpyAsync duration=90060us direction=d2h src=device "
		      "dst=pageable bytes=4096 stream=0x22\n");

	(void)state;
	assert_int_equal(
		sum(root, "accounts", "thread=101 function=cudaMemcpyAsync", "gpu_hidden_ns") /
			1000000,
		99);
	assert_int_equal(sum(root, "accounts", "thread=102 function=cudaMemcpyAsync", "lock_ns"),
			 90000000);
	assert_int_equal(sum(root, "blame",
			     "waiter=102 holder=101 lock=L1 how=measured "
			     "holder_function=cudaMemcpyAsync",
			     "waited_ns"),
			 90000000);
	/* 90 ms to the copy: its own 40 us, the rest is the GPU's; 10 us after its return. */
	assert_in_range(sum(root, "root_blame", "waiter=102 root=101 cause=gpu", "waited_ns"),
			89900000, 89990000);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(root, "locks"), 0), "place")),
			    "libcuda.so.1+0xa010");
	/* Processes would take turns on the one GPU, too, unless through MPS. */
	assert_int_equal(fact(root, "waits", "processes_help_ns"), 0);
	assert_in_range(fact(root, "waits", "processes_with_mps_ns"), 89900000, 90000000);
	assert_int_equal(fact(root, "waits", "asleep_ns"), 0); /* a lock is none */
	json_decref(root);
}

/* Thread 102 loses the lock for 1000 calls of thread 101, of 1 ms each, all but 50 us in the kernel module. Where it is
 * told that each of them gives the lock back, the wait is cut there. */
static void check_long_row(bool handed_over)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *root;
	int i;

	fprintf(out, TRACE "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n");
	for (i = 0; i < 20; i++) /* what they cost */
		fprintf(out, "%dms call cudaEventCreate duration=50us device=0\n", i + 1);
	for (i = 0; i < 1000; i++) {
		fprintf(out,
			"%d990us wait kind=ioctl fn=cudaEventCreate duration=940us object=0x21 "
			"device=0\n",
			100 + i);
		if (handed_over)
			fprintf(out,
				"%d998us held kind=mutex fn=cudaEventCreate object=0x1000 "
				"held=988us\n",
				100 + i);
		fprintf(out, "%d999us call cudaEventCreate duration=990us device=0\n", 100 + i);
	}
	fprintf(out, "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n"
		     "2ms call cudaEventCreate duration=50us device=1\n"
		     "1100ms wait kind=mutex fn=cudaEventCreate duration=1s object=0x1000 device=1 "
		     "holder=101 holder_fn=cudaEventCreate holder_device=0\n"
		     "1100010us call cudaEventCreate duration=1000020us device=1\n");
	fclose(out);
	root = report_on(text);
	free(text);
	assert_in_range(sum(root, "root_blame", "waiter=102 root=101 cause=ioctl", "waited_ns"),
			910000000, 960000000);
	assert_in_range(fact(root, "waits", "processes_help_ns"), 0, 90000000);
	json_decref(root);
}

static void test_long_row(void **state)
{
	(void)state;
	check_long_row(false);
	check_long_row(true);
}

/* One call waits for two locks: the sentence is about the one it waited for longest, and its reason. */
static void test_two_locks(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"40ms call cudaMalloc duration=30ms device=0\n"
		"slot 2 tid=102\n1us thread tid=102 name=\"b\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"100ms call cudaHostRegister duration=90ms device=0\n"
		"slot 3 tid=103\n1us thread tid=103 name=\"c\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"2ms call cudaEventCreate duration=5us device=0\n"
		"40ms wait kind=mutex fn=cudaEventCreate duration=20ms object=0x1000 device=1 "
		"holder=101 holder_fn=cudaMalloc holder_device=0\n"
		"100ms wait kind=mutex fn=cudaEventCreate duration=50ms object=0x2000 device=1 "
		"holder=102 holder_fn=cudaHostRegister holder_device=0\n"
		"100010us call cudaEventCreate duration=80ms device=1\n");
	const json_t *worst = json_array_get(json_object_get(root, "worst_calls"), 0);
	const char *what = json_string_value(json_object_get(worst, "what"));

	(void)state;
	if (!strstr(what, "waited 50.00 ms for L1") ||
	    !strstr(what, "held by thread 102 'b' (GPU 0) in cudaHostRegister") ||
	    !strstr(what, "; and 20.00 ms for other locks"))
		fail_msg("%s", what);
	json_decref(root);
}

/* The one it waited for longest in all, though another wait is the longest; of its holders the one that had it longest. */
static void test_one_lock_again(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"100ms call cudaMalloc duration=95ms device=0\n"
		"slot 2 tid=102\n1us thread tid=102 name=\"b\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"100ms call cudaHostRegister duration=95ms device=0\n"
		"slot 3 tid=103\n1us thread tid=103 name=\"c\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"2ms call cudaEventCreate duration=5us device=0\n"
		"30ms wait kind=mutex fn=cudaEventCreate duration=10ms object=0x1000 device=1 "
		"holder=101 holder_fn=cudaMalloc holder_device=0\n"
		"60ms wait kind=mutex fn=cudaEventCreate duration=20ms object=0x2000 device=1 "
		"holder=102 holder_fn=cudaHostRegister holder_device=0\n"
		"80ms wait kind=mutex fn=cudaEventCreate duration=7ms object=0x1000 device=1 "
		"holder=102 holder_fn=cudaHostRegister holder_device=0\n"
		"95ms wait kind=mutex fn=cudaEventCreate duration=6ms object=0x1000 device=1 "
		"holder=101 holder_fn=cudaMalloc holder_device=0\n"
		"96ms call cudaEventCreate duration=80ms device=1\n");
	const json_t *worst = json_array_get(json_object_get(root, "worst_calls"), 0);
	const char *what = json_string_value(json_object_get(worst, "what"));

	(void)state;
	/* L1 is the one of 23 ms */
	if (!strstr(what, "waited 23.00 ms for L1") ||
	    !strstr(what, "held by thread 101 'a' (GPU 0) in cudaMalloc") ||
	    !strstr(what, "; and 20.00 ms for other locks"))
		fail_msg("%s", what);
	assert_int_equal(sum(root, "locks", "name=L1", "waits"), 3);
	assert_int_equal(sum(root, "locks", "name=L1", "waited_ns"), 23000000);
	assert_int_equal(sum(root, "locks", "name=L1", "longest_ns"), 10000000);
	assert_int_equal(sum(root, "locks", "name=L1", "holders"), 2);
	assert_int_equal(sum(root, "locks", "name=L2", "holders"), 1);
	assert_int_equal(sum(root, "blame", "waiter=103 holder=101 lock=L1", "waits"), 2);
	assert_int_equal(sum(root, "blame", "waiter=103 holder=102 lock=L1", "waited_ns"), 7000000);
	assert_int_equal(sum(root, "call_blame", "holder_function=cudaHostRegister", "waited_ns"),
			 27000000);
	json_decref(root);
}

/* The sum of what a wait for a free lock of so many microseconds is blamed on; of them it had no CPU so long. */
static int64_t blamed_when_free(int us, int lacked_us)
{
	char log[1024], sched[128] = "";
	json_t *root;
	int64_t ns;

	if (lacked_us)
		snprintf(sched, sizeof(sched),
			 "40001us sched window=20ms not_running=%dus running=1us\n", lacked_us);
	snprintf(log, sizeof(log),
		 TRACE "slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		       "1ms call cudaEventCreate duration=5us device=0\n"
		       "2ms call cudaEventCreate duration=5us device=0\n"
		       "40ms wait kind=mutex fn=cudaEventCreate duration=%dus object=0x1000 "
		       "device=0 flags=16\n%s40001us call cudaEventCreate duration=20ms "
		       "device=0\n",
		 us, sched);
	root = report_on(log);
	ns = sum(root, "root_blame", "waiter=101", "waited_ns");
	assert_int_equal(sum(root, "blame", "waiter=101", "waited_ns"), ns);
	assert_int_equal(sum(root, "root_blame", "waiter=101 root=0 cause=unknown", "waited_ns"),
			 ns);
	assert_int_equal(sum(root, "locks", "name=L1", "waited_ns"), us * 1000);
	json_decref(root);
	return ns;
}

/* Nobody had it: that is no thread's fault, unless it took so long that one must have had it that was not seen. */
static void test_free_lock(void **state)
{
	(void)state;
	assert_int_equal(blamed_when_free(999, 0), 0);
	assert_int_equal(blamed_when_free(1000, 0), 1000000);
	assert_int_equal(blamed_when_free(15000, 0), 15000000);
	assert_int_equal(blamed_when_free(19900, 19500), 0); /* it was ready, and had no CPU */
}

/* A lock between processes: its holder may be a thread of another one, which is none of this one's. */
static void test_shared_lock(void **state)
{
	static const char log[] = TRACE
		"slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"2ms call cudaEventCreate duration=5us device=0\n"
		"40ms wait kind=mutex fn=cudaEventCreate duration=10ms object=0x1000 device=0 "
		"holder=4711 holder_fn=cudaFree holder_device=0 flags=%s\n"
		"40001us call cudaEventCreate duration=11ms device=0\n";
	static const char *const flags[] = {"2", "0"};
	char text[2048];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		json_t *root;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), log, flags[i]);
#pragma GCC diagnostic pop
		root = report_on(text);
		assert_int_equal(sum(root, "blame", i ? "holder=4711" : "holder=0", "waited_ns"),
				 10000000);
		assert_int_equal(fact(root, "waits", "holder_known_ns"), i ? 10000000 : 0);
		json_decref(root);
	}
}

/* It took long to wake those who waited, of whom there is no record: no lock is named, and nobody who had it. */
static void test_waking(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		      "1ms call cudaEventCreate duration=5us device=0\n"
		      "2ms call cudaEventCreate duration=5us device=0\n"
		      "40ms held kind=mutex fn=cudaEventCreate object=0x1000 held=10us span=900us\n"
		      "41ms call cudaEventCreate duration=1100us device=0\n");
	const json_t *worst = json_array_get(json_object_get(root, "worst_calls"), 0);

	(void)state;
	assert_string_equal(
		json_string_value(json_object_get(worst, "what")),
		"thread 101 'a' (GPU 0) waited for locks, holders unknown, for 900.0 us");
	assert_null(json_string_value(json_object_get(worst, "holder_function")));
	json_decref(root);
}

/* A lock lies in what was loaded there when it was waited for: in neither the library before nor, when that is gone, in
 * any. */
static void test_places(void **state)
{
	static const char *const places[] = {"libnew.so+0xa010", "heap"};
	json_t *root = report_on(
		"trace app.100 pid=100 program=\"/bin/app\" probes=1\n"
		"slot 0\n"
		"1us module base=0x7f00000000 begin=0x7f00001000 end=0x7f00009000 span_pages=32 "
		"path=\"/lib/libold.so\"\n"
		"1us module base=0x7f01000000 begin=0x7f01001000 end=0x7f01009000 span_pages=32 "
		"path=\"/lib/libgone.so\"\n"
		"10ms module begin=0x7f00001000 gone=1\n"
		"10ms module begin=0x7f01001000 gone=1\n"
		"20ms module base=0x7f00000000 begin=0x7f00002000 end=0x7f00008000 span_pages=32 "
		"path=\"/lib/libnew.so\"\n"
		"slot 1 tid=101\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"50ms wait kind=mutex fn=cudaEventCreate duration=20ms object=0x7f0000a010 "
		"device=0\n"
		"50010us call cudaEventCreate duration=21ms device=0\n"
		"90ms wait kind=mutex fn=cudaEventCreate duration=10ms object=0x7f0100a010 "
		"device=0\n"
		"90010us call cudaEventCreate duration=11ms device=0\n");
	json_t *locks = json_object_get(root, "locks");

	(void)state;
	assert_int_equal(json_array_size(locks), 2);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(locks, i), "place")),
			places[i]);
	json_decref(root);
}

/* Waits beyond a call's room share a record. Who waited for several locks had none of those that another one waited
 * for, as far as is known; and they waited no longer than the record says. */
static void test_several_locks(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"2ms call cudaEventCreate duration=5us device=0\n"
		"40ms wait kind=mutex fn=cudaEventCreate duration=20ms object=0 count=3 device=0\n"
		"40010us call cudaEventCreate duration=30ms device=0\n"
		"80ms call cudaMalloc duration=30ms device=0\n"
		"slot 2 tid=102\n1us thread tid=102 name=\"b\"\n"
		"70ms wait kind=mutex fn=cudaEventCreate duration=5ms span=50ms object=0 count=3 "
		"device=1\n"
		"70010us call cudaEventCreate duration=60ms device=1\n");

	(void)state;
	assert_int_equal(fact(root, "waits", "lock_waited_ns"), 25000000);
	assert_int_equal(fact(root, "waits", "holder_known_ns"), 0);
	assert_int_equal(fact(root, "waits", "cross_device_ns"), 0);
	json_decref(root);
}

/* Readers whom nobody knows: the time is a lock's, and no holder is known for it. */
static void test_unknown_readers(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n1us thread tid=101 name=\"a\"\n"
		"1ms call cudaEventCreate duration=5us device=0\n"
		"2ms call cudaEventCreate duration=5us device=0\n"
		"80ms wait kind=write fn=cudaEventCreate duration=60ms object=0x1000 flags=1\n"
		"80005us call cudaEventCreate duration=60010us device=0\n"
		"200ms wait kind=write fn=cudaEventCreate duration=60ms object=0x1000 flags=16\n"
		"200005us call cudaEventCreate duration=60010us device=0\n");
	const json_t *worst = json_array_get(json_object_get(root, "worst_calls"), 0);
	const char *what = json_string_value(json_object_get(worst, "what"));

	(void)state;
	assert_int_equal(fact(root, "waits", "lock_waited_ns"), 120000000);
	assert_int_equal(fact(root, "waits", "holder_known_ns"), 0);
	if (!strstr(what, "held by an unknown thread"))
		fail_msg("%s", what);
	json_decref(root);
}

/* A waits for B, who waits for C, who is in ioctl; on three GPUs. */
static void test_chain(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n"
		"21ms wait kind=mutex fn=cudaMalloc duration=10ms object=0x1000 device=0 "
		"holder=102 holder_fn=cudaFree holder_device=1 holder_since=5ms\n"
		"22ms memory cudaMalloc duration=11ms op=alloc kind=device device=0\n"
		"slot 2 tid=102\n"
		"20ms wait kind=write fn=cudaFree duration=14ms object=0x2000 device=1 "
		"holder=103 holder_fn=cudaHostRegister holder_device=2 holder_since=4ms\n"
		"23ms memory cudaFree duration=18ms op=free kind=device address=0x1 device=1\n"
		"slot 3 tid=103\n"
		"19900us wait kind=ioctl fn=cudaHostRegister duration=15ms object=0xc0de "
		"device=2\n"
		"24ms memory cudaHostRegister duration=20ms op=register kind=pinned device=2\n");

	(void)state;
	assert_int_equal(sum(root, "blame", "waiter=101", "waited_ns"), 10000000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102 waiter_device=0 holder_device=1",
			     "waited_ns"),
			 10000000);
	/* Of A's 10 ms (11 to 21) B was waiting for 9 (to 20), and C in ioctl for 8.9 of those. */
	assert_int_equal(sum(root, "root_blame", "waiter=101 root=103 root_device=2 cause=ioctl",
			     "waited_ns"),
			 8900000);
	assert_int_equal(sum(root, "root_blame", "waiter=101", "waited_ns"), 10000000);
	assert_int_equal(sum(root, "root_blame", "waiter=102 root=103 cause=ioctl", "waited_ns"),
			 13900000);
	assert_int_equal(fact(root, "waits", "cross_device_ns"), 24000000);
	/* What C was at work in the kernel module itself is not lost. */
	assert_in_range(fact(root, "waits", "processes_do_not_help_ns"), 22700000, 22800000);
	assert_int_equal(fact(root, "waits", "kernel_work_ns"), 15000000);
	assert_int_equal(sum(root, "ioctls", "request=0xc0de", "total_ns"), 15000000);
	json_decref(root);
}

/* Each of three threads waits for the next one, as far as anybody knows, and the last for the first; or two do. A fourth one
 * waits for the third. */
static void check_circle(bool of_three)
{
	char log[2048];
	json_t *root;

	snprintf(log, sizeof(log),
		 TRACE
		 "slot 1 tid=101\n"
		 "20ms wait kind=mutex fn=cudaMalloc duration=10ms object=0x1000 device=0 "
		 "holder=102 holder_fn=cudaFree holder_device=1\n"
		 "22ms memory cudaMalloc duration=12ms op=alloc kind=device device=0\n"
		 "slot 2 tid=102\n"
		 "20ms wait kind=write fn=cudaFree duration=10ms object=0x2000 device=1 "
		 "holder=%d holder_fn=cudaHostRegister holder_device=2\n"
		 "23ms memory cudaFree duration=13ms op=free kind=device address=0x1 device=1\n"
		 "slot 3 tid=103\n"
		 "20ms wait kind=mutex fn=cudaHostRegister duration=10ms object=0x3000 "
		 "device=2 holder=101 holder_fn=cudaMalloc holder_device=0\n"
		 "24ms memory cudaHostRegister duration=14ms op=register kind=pinned "
		 "device=2\n"
		 "slot 4 tid=104\n"
		 "20ms wait kind=mutex fn=cudaMalloc duration=10ms object=0x4000 device=0 "
		 "holder=103 holder_fn=cudaHostRegister holder_device=2\n"
		 "25ms memory cudaMalloc duration=15ms op=alloc kind=device device=0\n",
		 of_three ? 103 : 101);
	root = report_on(log);
	assert_int_equal(sum(root, "root_blame", "waiter=101 root=101 cause=lock", "waited_ns"),
			 10000000);
	assert_int_equal(sum(root, "root_blame", "waiter=102 root=102 cause=lock", "waited_ns"),
			 10000000);
	/* Where two go round, it is behind them. */
	assert_int_equal(
		sum(root, "root_blame",
		    of_three ? "waiter=103 root=103 cause=lock" : "waiter=103 root=102 cause=lock",
		    "waited_ns"),
		10000000);
	assert_int_equal(
		sum(root, "root_blame",
		    of_three ? "waiter=104 root=102 cause=lock" : "waiter=104 root=101 cause=lock",
		    "waited_ns"),
		10000000);
	json_decref(root);
}

static void test_circle(void **state)
{
	(void)state;
	check_circle(false);
	check_circle(true);
}

/* What thread a's waits are due to, the waits of b are due to as well. */
static void same_roots(const json_t *root, unsigned int a, unsigned int b)
{
	char of_a[64], of_b[64];
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "root_blame"), i, row)
	{
		const char *cause = json_string_value(json_object_get(row, "cause"));
		int thread = (int)json_integer_value(json_object_get(row, "root"));

		snprintf(of_a, sizeof(of_a), "waiter=%u root=%d cause=%s", a, thread, cause);
		snprintf(of_b, sizeof(of_b), "waiter=%u root=%d cause=%s", b, thread, cause);
		if (sum(root, "root_blame", of_a, "waited_ns") !=
		    sum(root, "root_blame", of_b, "waited_ns"))
			fail_msg("%s: not %s", of_a, of_b);
	}
}

/* One wait of 60 us, three holders: the first from the lock itself, then who took it meanwhile; between
 * a release and the next taking it still is the last one's. Who waits for that thread all the time waits for the same ones. */
static void test_convoy(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n"
		"100us wait kind=mutex fn=cudaMalloc duration=60us object=0x1000 holder=102 "
		"holder_fn=cudaFree\n"
		"101us memory cudaMalloc duration=70us op=alloc kind=device\n"
		"slot 2 tid=102\n"
		"30us call cudaSetDevice duration=1us\n"
		"55us released kind=mutex fn=cudaFree object=0x1000\n"
		"60us memory cudaFree duration=25us op=free kind=device address=0x1\n"
		"slot 3 tid=103\n"
		"60us taken kind=mutex fn=cudaMallocHost object=0x1000\n"
		"80us released kind=mutex fn=cudaMallocHost object=0x1000\n"
		"82us memory cudaMallocHost duration=25us op=alloc kind=pinned\n"
		"slot 4 tid=104\n"
		"84us taken kind=mutex fn=cudaStreamCreate object=0x1000\n"
		"98us released kind=mutex fn=cudaStreamCreate object=0x1000\n"
		"99us op cudaStreamCreate duration=20us\n"
		"slot 5 tid=105\n"
		"100us wait kind=mutex fn=cudaMemGetInfo duration=60us object=0x2000 holder=101 "
		"holder_fn=cudaMalloc\n"
		"102us call cudaMemGetInfo duration=70us\n");

	(void)state;
	assert_int_equal(sum(root, "blame", "waiter=105 holder=101", "waited_ns"), 60000);
	assert_int_equal(sum(root, "root_blame", "waiter=105", "waited_ns"), 60000);
	assert_int_equal(sum(root, "root_blame", "waiter=101", "waited_ns"), 60000);
	same_roots(root, 105, 101);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102", "waited_ns"), 20000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=103", "waited_ns"), 24000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=104", "waited_ns"), 16000);
	assert_int_equal(sum(root, "locks", "name=L1", "longest_row"), 2);
	assert_int_equal(sum(root, "locks", "name=L1", "holders"), 3);
	assert_int_equal(sum(root, "locks", "name=L1", "waiters"), 1);
	json_decref(root);
}

/* When turn k begins, and whose it is: every second thread has the lock three times as long as the others. */
static uint64_t turn_ns(uint64_t k)
{
	return 2000000 + k / 2 * 40000 + (k % 2 ? 10000 : 0);
}

static void tell_turns(FILE *out, uint64_t threads, uint64_t thread, uint64_t turns)
{
	const char *function = thread % 2 ? "cudaFree" : "cudaMalloc";
	uint64_t k, begun_ns = turn_ns(0) + (thread ? 10 : 0), end_ns; /* the first finds it free */

	fprintf(out, "slot %llu tid=%llu\n1us thread tid=%llu name=\"app\"\n",
		(unsigned long long)thread + 1, (unsigned long long)thread + 101,
		(unsigned long long)thread + 101);
	for (k = thread; k < turns; k += threads) {
		uint64_t waited_ns = turn_ns(k) - begun_ns;
		uint64_t before =
			k < threads ? 0 : (k + 1) % threads; /* who had it when it began to wait */

		end_ns = turn_ns(k + 1);
		if (k)
			fprintf(out,
				"%lluns wait kind=mutex fn=%s outer_fn=%s duration=%lluns "
				"span=%lluns object=0x1000 device=0 holder=%llu holder_fn=%s "
				"holder_device=0\n",
				(unsigned long long)turn_ns(k), function, function,
				(unsigned long long)waited_ns, (unsigned long long)waited_ns,
				(unsigned long long)before + 101,
				before % 2 ? "cudaFree" : "cudaMalloc");
		fprintf(out, "%lluns held kind=mutex fn=%s outer_fn=%s object=0x1000\n",
			(unsigned long long)end_ns - 100, function, function);
		fprintf(out, "%lluns call %s duration=%lluns device=0\n",
			(unsigned long long)end_ns - 50, function,
			(unsigned long long)(end_ns - 50 - begun_ns));
		begun_ns = end_ns;
	}
}

/* Pairs of threads: 16,384, and 4 for each thread and lock. Beyond these a waiter's time is known, and the holder's call, but not
 * the holder. */
static void check_pairs(const json_t *root, const char *table, const char *holder, uint64_t threads)
{
	uint64_t named = 0, others = 0,
		 most = 16384 + 4 * (threads + 2); /* with slot 0 and the lock */
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, table), i, row)
	{
		if (json_integer_value(json_object_get(row, holder)))
			named++;
		else
			others++;
	}
	if (threads <= 200) {
		assert_int_equal(others, 0);
		return;
	}
	assert_int_equal(named, most);
	assert_in_range(others, 1, 2 * threads); /* two functions */
}

/* So many threads want one lock, and get it one after the other: it is known who had it, all the time. */
static void check_crowd(uint64_t threads)
{
	uint64_t turns = 4 * threads, i;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int64_t waited;
	json_t *root;

	fputs(TRACE, out);
	for (i = 0; i < threads; i++)
		tell_turns(out, threads, i, turns);
	fclose(out);
	root = report_on(text);
	free(text);
	check_pairs(root, "blame", "holder", threads);
	check_pairs(root, "root_blame", "root", threads);
	waited = fact(root, "waits", "lock_waited_ns");
	assert_in_range(fact(root, "waits", "holder_known_ns"), waited / 1000 * 998, waited);
	assert_in_range(sum(root, "root_blame", "cause=own", "waited_ns"), waited / 1000 * 985,
			waited / 1000 * 1001);
	/* Three quarters of the time it was the threads that call cudaFree. */
	assert_in_range(sum(root, "call_blame", "holder_function=cudaFree", "waited_ns"),
			waited / 100 * 73, waited / 100 * 77);
	assert_in_range(sum(root, "call_blame", "holder_function=cudaMalloc", "waited_ns"),
			waited / 100 * 23, waited / 100 * 27);
	assert_int_equal(sum(root, "locks", "name=L1", "waits"), turns - 1);
	assert_int_equal(sum(root, "locks", "name=L1", "holders"), threads);
	/* From one turn to the next all others had it; the one behind it took it at that moment. */
	assert_in_range(sum(root, "locks", "name=L1", "longest_row"), threads - 2, threads);
	json_decref(root);
}

static void test_crowd(void **state)
{
	(void)state;
	check_crowd(8);
	check_crowd(128);
	check_crowd(200);
	check_crowd(1000);
}

/* A wait that loses 1,000 times: two others hand the lock to and fro, 6 us each time for the one and 3 us
 * for the other, 1 us between them. The order is forgotten, the sums are not. */
static void test_starvation(void **state)
{
	static char log[1 << 18];
	size_t n = (size_t)snprintf(
		log, sizeof(log), "%s",
		TRACE "slot 1 tid=101\n"
		      "20ms wait kind=mutex fn=cudaMalloc duration=5500us object=0x1000 holder=102 "
		      "holder_fn=cudaFree\n"
		      "20001us memory cudaMalloc duration=5600us op=alloc kind=device\n");
	json_t *root;
	int who, i;

	(void)state;
	/* From 14.5 to 15 ms thread 102 has it; then 500 rounds of 10 us. */
	for (who = 102; who <= 103; who++) {
		n += (size_t)snprintf(log + n, sizeof(log) - n, "slot %d tid=%d\n", who - 100, who);
		if (who == 102)
			n += (size_t)snprintf(
				log + n, sizeof(log) - n,
				"15ms released kind=mutex fn=cudaFree object=0x1000\n");
		for (i = 0; i < 500; i++)
			n += (size_t)snprintf(
				log + n, sizeof(log) - n,
				"%dus taken kind=mutex fn=cudaFree object=0x1000\n"
				"%dus released kind=mutex fn=cudaFree object=0x1000\n",
				15000 + 10 * i + (who == 102 ? 0 : 7),
				15000 + 10 * i + (who == 102 ? 6 : 10));
		n += (size_t)snprintf(
			log + n, sizeof(log) - n,
			"21ms memory cudaFree duration=7ms op=free kind=device address=0x1\n");
	}
	root = report_on(log);
	/* between the release and the next taking it is still the last one's */
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102 how=measured", "waited_ns"),
			 500000 + 500 * 7000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=103 how=measured", "waited_ns"),
			 500 * 3000);
	assert_int_equal(sum(root, "root_blame", "waiter=101", "waited_ns"), 5500000);
	assert_int_equal(sum(root, "locks", "name=L1", "longest_row"), 1000);
	assert_int_equal(sum(root, "locks", "name=L1", "starved"), 101);
	json_decref(root);
}

/* A lock that changes hands 18,002 times during one wait, of which 16,384 are remembered: who had it before these is unknown. It
 * is not the holder of the wait's begin, nor a reader that releases it later and was not seen to take it. */
static void test_forgotten_holders(void **state)
{
	size_t size;
	char *log;
	FILE *out = open_memstream(&log, &size);
	json_t *root;

	(void)state;
	fprintf(out, "%s",
		TRACE "slot 1 tid=101\n"
		      "110ms wait kind=write fn=cudaMalloc duration=100ms object=0x1000 holder=102 "
		      "holder_fn=cudaLaunchKernel\n"
		      "110001us memory cudaMalloc duration=101ms op=alloc kind=device\n"
		      "slot 2 tid=102\n"
		      "10100us released kind=write fn=cudaLaunchKernel object=0x1000\n"
		      "10200us launch cudaLaunchKernel duration=300us stream=0x11\n"
		      "slot 4 tid=104\n"
		      "109ms released kind=read fn=cudaEventRecord object=0x1000\n"
		      "109100us op cudaEventRecord duration=99ms stream=0x12\n"
		      "slot 3 tid=103\n");
	for (int i = 0; i < 9000; i++)
		fprintf(out,
			"%dus taken kind=write fn=cudaFree object=0x1000\n"
			"%dus released kind=write fn=cudaFree object=0x1000\n",
			11000 + 10 * i, 11005 + 10 * i);
	fprintf(out, "111ms memory cudaFree duration=101ms op=free kind=device address=0x1\n");
	fclose(out);
	root = report_on(log);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102", "waited_ns"), 0);
	assert_in_range(sum(root, "blame", "waiter=101 holder=0", "waited_ns"), 9000000, 9200000);
	assert_in_range(sum(root, "blame", "waiter=101 holder=103", "waited_ns"), 80000000,
			91000000);
	assert_int_equal(sum(root, "blame", "waiter=101", "waited_ns"), 100000000);
	json_decref(root);
	free(log);
}

/* Two readers; the writer waits for the one that stays, not for the one that came last. A reader that
 * waits for a writer is not held up by other readers. */
static void test_readers(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "100us wait kind=write fn=cudaFree duration=80us object=0x1000 holder=102 "
		      "holder_fn=cudaLaunchKernel flags=1\n"
		      "200us released kind=write fn=cudaFree object=0x1000\n"
		      "201us memory cudaFree duration=190us op=free kind=device address=0x1\n"
		      "slot 2 tid=102\n"
		      "99us released kind=read fn=cudaLaunchKernel object=0x1000\n"
		      "100us launch cudaLaunchKernel duration=90us stream=0x11\n"
		      "slot 3 tid=103\n"
		      "50us taken kind=read fn=cudaEventRecord object=0x1000\n"
		      "60us released kind=read fn=cudaEventRecord object=0x1000\n"
		      "61us op cudaEventRecord duration=20us stream=0x12\n"
		      "slot 4 tid=104\n"
		      "210us wait kind=read fn=cudaEventQuery duration=50us object=0x1000 "
		      "holder=101 holder_fn=cudaFree\n"
		      "211us op cudaStreamWaitEvent duration=60us stream=0x13\n"
		      "slot 5 tid=105\n"
		      "205us taken kind=read fn=cudaEventRecord object=0x1000\n"
		      "206us op cudaEventRecord duration=20us stream=0x14\n");

	(void)state;
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102", "waited_ns"), 80000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=103", "waited_ns"), 0);
	assert_int_equal(sum(root, "blame", "waiter=104 holder=101", "waited_ns"), 50000);
	assert_int_equal(sum(root, "blame", "waiter=104 holder=105", "waited_ns"), 0);
	json_decref(root);
}

/* A lock that says nobody had it: whoever took it last is blamed, and that is no measurement. A thread
 * of the driver's is named. */
static void test_unknown_holders(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "100us wait kind=mutex fn=cudaMalloc duration=10us object=0x1000 holder=777 "
		      "flags=8\n"
		      "101us memory cudaMalloc duration=20us op=alloc kind=device\n"
		      "150us wait kind=mutex fn=cudaMalloc duration=10us object=0x3000\n"
		      "151us memory cudaMalloc duration=20us op=alloc kind=device\n"
		      "slot 2 tid=102\n"
		      "200us wait kind=mutex fn=cudaFree duration=30us object=0x1000\n"
		      "201us memory cudaFree duration=40us op=free kind=device address=0x1\n");
	const json_t *row;
	size_t i;
	bool named = false;

	(void)state;
	assert_int_equal(sum(root, "blame", "waiter=101 holder=777 how=measured", "waited_ns"),
			 10000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=0", "waited_ns"), 10000);
	assert_int_equal(sum(root, "blame", "waiter=102 holder=101 how=inferred", "waited_ns"),
			 30000);
	assert_int_equal(sum(root, "root_blame", "waiter=102 root=101 how=inferred", "waited_ns"),
			 30000);
	json_array_foreach(json_object_get(root, "strangers"), i, row) named |=
		agrees(row, "tid=777 name=cuda-EvtHandlr");
	assert_true(named);
	assert_int_equal(fact(root, "waits", "holder_known_ns"), 40000);
	json_decref(root);
}

/* Of three parties: that 101 waited for 102 was seen; that 102 waited for 103 is a conclusion, and so is the root. */
static void test_half_measured(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n"
		"40ms wait kind=mutex fn=cudaMalloc duration=15ms object=0x1000 device=0 "
		"holder=102 holder_fn=cudaFree holder_device=1 holder_since=19ms\n"
		"40010us memory cudaMalloc duration=16ms op=alloc kind=device\n"
		"slot 2 tid=102\n"
		"39ms wait kind=mutex fn=cudaFree duration=19ms object=0x2000 device=1\n"
		"40ms memory cudaFree duration=21ms op=free kind=device address=0x1 device=1\n"
		"slot 3 tid=103\n"
		"10ms wait kind=mutex fn=cudaHostRegister duration=1ms object=0x2000 device=2 "
		"holder=777 flags=8\n"
		"39500us memory cudaHostRegister duration=31ms op=register kind=pinned "
		"device=2\n");

	(void)state;
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102 how=measured", "waited_ns"),
			 15000000);
	assert_int_equal(sum(root, "blame", "waiter=102 holder=103 how=inferred", "waited_ns"),
			 19000000);
	assert_int_equal(sum(root, "root_blame", "waiter=101 root=103 how=inferred", "waited_ns"),
			 14000000);
	assert_int_equal(sum(root, "root_blame", "waiter=101 root=103 how=measured", "waited_ns"),
			 0);
	assert_int_equal(sum(root, "root_blame", "waiter=101 root=102 how=measured", "waited_ns"),
			 1000000);
	json_decref(root);
}

/* A lock that nobody waited for when it was taken, and which took long to give back. */
static void test_held(void **state)
{
	json_t *root = report_on(
		TRACE "slot 1 tid=101\n"
		      "20ms wait kind=mutex fn=cudaMalloc duration=10ms object=0x1000 holder=102 "
		      "holder_fn=cudaFree\n"
		      "21ms memory cudaMalloc duration=12ms op=alloc kind=device\n"
		      "slot 2 tid=102\n"
		      "12ms held kind=mutex fn=cudaFree object=0x1000\n"
		      "12010us memory cudaFree duration=4ms op=free kind=device address=0x1\n"
		      "slot 3 tid=103\n"
		      "18ms held kind=mutex fn=cudaFree object=0x1000 held=5ms span=64us\n"
		      "18100us memory cudaFree duration=6ms op=free kind=device address=0x2\n");

	(void)state;
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102", "waited_ns"), 3000000);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=103", "waited_ns"), 7000000);
	assert_int_equal(sum(root, "accounts", "thread=103", "lock_ns"), 64000);
	assert_int_equal(sum(root, "locks", "name=L1", "waking_ns"), 64000);
	json_decref(root);
}

/* Who was told to have taken a lock in one call, and not that he gave it back, has had it no longer than that call lasted,
 * however many he made since: of what he did later no part is to blame. A thread without CUDA calls had it, which nobody saw. */
static void test_gone(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *root;
	int i;

	(void)state;
	fprintf(out, TRACE "slot 1 tid=101\n"
			   "12ms taken kind=mutex fn=cudaEventCreate object=0x1000\n"
			   "13ms call cudaEventCreate duration=1ms device=0\n");
	for (i = 0; i < 200; i++)
		fprintf(out, "%dus call cudaEventCreate duration=5us device=0\n", 13100 + 10 * i);
	fprintf(out, "39ms call cudaHostRegister duration=20ms device=0\n"
		     "slot 2 tid=102\n"
		     "40ms wait kind=mutex fn=cudaMalloc duration=30ms object=0x1000 device=1\n"
		     "41ms memory cudaMalloc duration=32ms op=alloc kind=device\n");
	fclose(out);
	root = report_on(text);
	free(text);
	assert_int_equal(sum(root, "root_blame",
			     "waiter=102 root=101 root_function=cudaHostRegister", "waited_ns"),
			 0);
	assert_in_range(sum(root, "root_blame", "waiter=102 root=101 root_function=cudaEventCreate",
			    "waited_ns"),
			1000000, 28000000);
	json_decref(root);
}

/* As launches are. */
#define LAUNCHES \
	"3ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1 device=0\n" \
	"4ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1 device=0\n" \
	"5ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1 device=0\n"

/* Without probes: a launch that took as long as another thread's cudaFree. With them nobody says that
 * it was a lock, but who was in the way. Its near twin: nobody was. */
static void test_inferred(void **state)
{
	static const char *const calls =
		"slot 1 tid=101\n"
		"1ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1 device=0\n" LAUNCHES
		"20ms launch cudaLaunchKernel duration=10ms stream=0x11 kernel=1 device=0\n"
		"slot 2 tid=102\n"
		"2ms launch cudaLaunchKernel duration=3us stream=0x21 kernel=2 device=1\n"
		"20010us memory cudaFree duration=11ms op=free kind=device address=0x1 bytes=9 "
		"device=1\n";
	char log[2048];
	json_t *root;

	(void)state;
	snprintf(log, sizeof(log), "trace app.100 pid=100 program=\"/bin/app\" probes=0\n%s",
		 calls);
	root = report_on(log);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102 how=inferred holder_device=1",
			     "waited_ns"),
			 10000000);
	assert_in_range(
		sum(root, "root_blame", "waiter=101 root=102 cause=gpu how=inferred", "waited_ns"),
		9000000, 10000000);
	assert_in_range(sum(root, "accounts", "thread=101", "lock_ns"), 9900000, 10000000);
	assert_int_equal(sum(root, "worst_calls", "thread=101 holder=102 root=102", "lost_ns") > 0,
			 1);
	check_sums(root);
	json_decref(root);
	snprintf(log, sizeof(log), "trace app.100 pid=100 program=\"/bin/app\" probes=1\n%s",
		 calls);
	root = report_on(log);
	assert_int_equal(sum(root, "blame", "waiter=101 holder=102 how=inferred", "waited_ns"),
			 10000000);
	assert_int_equal(sum(root, "accounts", "thread=101", "lock_ns"), 0);
	json_decref(root);
	root = report_on(
		"trace app.100 pid=100 program=\"/bin/app\" probes=0\n"
		"slot 1 tid=101\n"
		"1ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1 device=0\n" LAUNCHES
		"20ms launch cudaLaunchKernel duration=10ms stream=0x11 kernel=1 device=0\n"
		"slot 2 tid=102\n"
		"12ms memory cudaFree duration=11ms op=free kind=device address=0x1 bytes=9 "
		"device=1\n");
	assert_int_equal(sum(root, "blame", "waiter=101", "waited_ns"), 0);
	json_decref(root);
}

/* 101 loses so many microseconds while 102 is in a call of its own; what is concluded of it. */
static int64_t concluded(int us, int probes)
{
	char log[1024];
	json_t *root;
	int64_t ns;

	snprintf(log, sizeof(log),
		 "trace app.100 pid=100 program=\"/bin/app\" probes=%d\n"
		 "slot 1 tid=101\n"
		 "1ms launch cudaLaunchKernel duration=3us stream=0x11 kernel=1 device=0\n" LAUNCHES
		 "50ms launch cudaLaunchKernel duration=%dus stream=0x11 kernel=1 device=0\n"
		 "slot 2 tid=102\n"
		 "2ms launch cudaLaunchKernel duration=3us stream=0x21 kernel=2 device=1\n"
		 "50010us memory cudaFree duration=40ms op=free kind=device address=0x1 bytes=9 "
		 "device=1\n",
		 probes, us + 3);
	root = report_on(log);
	ns = sum(root, "blame", "waiter=101 holder=102 how=inferred", "waited_ns");
	check_sums(root);
	json_decref(root);
	return ns;
}

/* Overlap is believed from 0.2 ms on where nothing could be seen, and from 1 ms on where much of it could. */
static void test_inferred_least(void **state)
{
	(void)state;
	assert_int_equal(concluded(190, 0), 0);
	assert_int_equal(concluded(210, 0), 213000);
	assert_int_equal(concluded(1500, 0), 1503000);
	assert_int_equal(concluded(990, 1), 0);
	assert_int_equal(concluded(1010, 1), 1013000);
	assert_int_equal(concluded(5000, 1), 5003000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pageable_copy),
		cmocka_unit_test(test_long_row),
		cmocka_unit_test(test_two_locks),
		cmocka_unit_test(test_one_lock_again),
		cmocka_unit_test(test_free_lock),
		cmocka_unit_test(test_shared_lock),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_several_locks),
		cmocka_unit_test(test_waking),
		cmocka_unit_test(test_unknown_readers),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_convoy),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_starvation),
		cmocka_unit_test(test_forgotten_holders),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_unknown_holders),
		cmocka_unit_test(test_half_measured),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_inferred),
		cmocka_unit_test(test_inferred_least),
		cmocka_unit_test(test_circle),
	};

	return RUN_WITH_FINDINGS(tests);
}
