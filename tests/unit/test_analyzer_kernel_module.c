/*
 * tests/unit/test_analyzer_kernel_module.c: time in the kernel module: what of it is a call's work, what others cost it,
 * whom processes would spare it. The numbers are taken from the JSON report.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "accounts.h"

/*
 * A pins, which its process does for each of its four GPUs, and B waits for that; C makes a range group,
 * which is nobody else's business, and D waits for that.
 */
static void test_spared(void **state)
{
	json_t *root = report_on(
		TRACE
		"slot 1 tid=101\n"
		"1ms call cudaSetDevice duration=1us device=1\n"
		"2ms call cudaSetDevice duration=1us device=2\n"
		"3ms call cudaSetDevice duration=1us device=3\n"
		"4ms call cudaSetDevice duration=1us device=0\n"
		"19ms wait kind=ioctl fn=cudaHostRegister duration=8ms object=33 count=4 "
		"device=0\n"
		"20ms memory cudaHostRegister duration=10ms op=register kind=pinned device=0\n"
		"slot 2 tid=102\n"
		"20ms wait kind=mutex fn=cudaHostRegister duration=8ms object=0x1000 "
		"holder=101 holder_fn=cudaHostRegister device=1 holder_device=0\n"
		"21ms memory cudaHostRegister duration=9ms op=register kind=pinned device=1\n"
		"slot 3 tid=103\n"
		"40ms wait kind=ioctl fn=cudaStreamCreate duration=2ms object=23 device=2\n"
		"41ms call cudaStreamCreate duration=5ms device=2\n"
		"slot 4 tid=104\n"
		"41ms wait kind=mutex fn=cudaStreamCreate duration=3ms object=0x1000 "
		"holder=103 holder_fn=cudaStreamCreate device=3 holder_device=2\n"
		"42ms call cudaStreamCreate duration=4ms device=3\n");

	(void)state;
	/* 6 of the 8 ms of A's own, 3/4 of B's 7 behind them and 1 behind the rest; D's 3. */
	assert_in_range(fact(root, "waits", "processes_help_ns"), 15200000, 15300000);
	/* 1.75 of B's; A's own work is not lost. */
	assert_in_range(fact(root, "waits", "processes_do_not_help_ns"), 1700000, 1800000);
	json_decref(root);
}

/* What such a call always takes in the kernel module is its work; what it takes beyond that is lost. */
static void test_kernel_work(void **state)
{
	char log[8192];
	json_t *root;
	int n, i;

	(void)state;
	n = snprintf(log, sizeof(log), TRACE "slot 1 tid=101\n");
	for (i = 1; i <= 20; i++)
		n += snprintf(
			log + n, sizeof(log) - (size_t)n,
			"%d050us wait kind=ioctl fn=cudaMalloc duration=%dus object=0x21\n"
			"%d100us memory cudaMalloc duration=%dus op=alloc kind=device bytes=4096\n",
			10 * i, i < 20 ? 100 + i : 5000, 10 * i, i < 20 ? 200 + i : 5100);
	root = report_on(log);
	assert_in_range(fact(root, "waits", "ioctl_ns"), 7000000, 7100000);
	/* The first one is cold: 101 us. */
	assert_in_range(fact(root, "waits", "kernel_work_ns"), 2150000, 2250000);
	assert_in_range(fact(root, "waits", "lost_ns"), 4800000, 5000000);
	assert_in_range(sum(root, "function_accounts", "function=cudaMalloc", "expected_ns"),
			4000000, 4500000);
	json_decref(root);
}

/* An allocation, of which requests to the kernel module take so long up to `end`; in a row, if they come to less. */
static void allocate(FILE *log, unsigned int device, unsigned int end_us, unsigned int us,
		     unsigned int span_us)
{
	fprintf(log,
		"%uus wait kind=ioctl fn=cudaMalloc duration=%uus span=%uus count=%u object=0x21 "
		"device=%u\n"
		"%uus memory cudaMalloc duration=%uus op=alloc kind=device bytes=4096 device=%u\n",
		end_us, us, span_us, us == span_us ? 1 : 20, device, end_us + 50, span_us + 100,
		device);
}

/* A thread whose allocations are there for 100 us at a time at which no other's are. */
static void allocate_alone(FILE *log, unsigned int slot, unsigned int device)
{
	unsigned int i;

	fprintf(log, "slot %u tid=%u\n", slot, 100 + slot);
	for (i = 1; i <= 20; i++)
		allocate(log, device, 10000 * i + 1000 * device, 100, 100);
}

/* Is that what is said of one of the worst calls? */
static bool tells(const json_t *root, const char *what)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "worst_calls"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "what")), what))
			return true;
	}
	return false;
}

#define MORE_OF(trace, pid, boot) \
	"trace " trace " pid=" pid " program=\"/bin/app\" probes=1 boot_id=" boot "\n"

/* What requests to the kernel module took longer while others' were in it is put down to those, as inferred. */
static void test_kernel_overlap(void **state)
{
	char *text;
	size_t size;
	FILE *log = open_memstream(&text, &size);
	json_t *root;

	(void)state;
	fputs(MORE_OF("app.100", "100", "here"), log);
	allocate_alone(log, 1, 0);
	allocate(log, 0, 1005000, 5000, 5000);
	allocate(log, 0, 1044000, 4000, 4000);
	allocate_alone(log, 2, 1);
	allocate(log, 1, 1004900, 3000, 3000);
	allocate(log, 1, 1044000, 2000, 4000);
	allocate_alone(log, 3, 2);
	allocate(log, 2, 1014000, 4000, 4000);
	allocate(log, 2, 1023000, 3000, 3000);
	allocate_alone(log, 4, 3);
	allocate(log, 3, 1001300, 100, 100);
	fputs(MORE_OF("app.200", "200", "here"), log);
	allocate_alone(log, 5, 4);
	allocate(log, 4, 1022000, 2000, 2000);
	fputs(MORE_OF("app.300", "300", "elsewhere"), log);
	allocate_alone(log, 6, 5);
	allocate(log, 5, 1022000, 2000, 2000);
	fclose(log);
	root = report_on(text);
	/* 4.9 of 5 ms are too long, 3 and 0.1 of them in company; then 3.9 of 4, beside half of as many. */
	assert_int_equal(
		sum(root, "kernel_overlap", "waiter=101 other=102 other_device=1", "excess_ns"),
		3000000 + 2000000);
	assert_int_equal(sum(root, "kernel_overlap", "waiter=101 other=104", "excess_ns"), 100000);
	assert_int_equal(sum(root, "kernel_overlap", "waiter=101 other=102", "calls"), 2);
	/* 2.9 of 3 ms, all of them in company; 1.9 of 2 in a row. */
	assert_in_range(sum(root, "kernel_overlap", "waiter=102 other=101", "excess_ns"),
			2900000 + 1900000, 2901000 + 1901000);
	/* Another process of the machine counts, one of another machine does not. */
	assert_int_equal(sum(root, "kernel_overlap",
			     "waiter=103 other=105 other_process=app.200@boot:here "
			     "other_function=cudaMalloc how=inferred",
			     "excess_ns"),
			 2000000);
	assert_in_range(sum(root, "kernel_overlap", "waiter=105 other=103", "excess_ns"), 1900000,
			1901000);
	/* Nobody else: not for who was there alone, nor for who was there as long as such calls are. */
	assert_int_equal(json_array_size(json_object_get(root, "kernel_overlap")), 5);
	assert_in_range(fact(root, "waits", "kernel_overlap_ns"), 13800000, 13803000);
	assert_int_equal(json_array_size(json_object_get(root, "root_blame")), 0);
	assert_true(tells(
		root,
		"thread 101@boot:here (GPU 0) was in the kernel module (ioctl), for 4.900 ms, up "
		"to 3.000 ms of it while thread 102@boot:here (GPU 1) in cudaMalloc was in it, "
		"too: inferred"));
	assert_true(tells(
		root,
		"thread 106@boot:elsewher (GPU 5) was in the kernel module (ioctl), for 1.900 ms"));
	json_decref(root);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spared),
		cmocka_unit_test(test_kernel_work),
		cmocka_unit_test(test_kernel_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
