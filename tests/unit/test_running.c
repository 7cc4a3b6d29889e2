/* links: shim/sample/running.c */
/*
 * tests/unit/test_running.c: threads that run are interrupted by the kernel's clock, where it allows that: what there is of
 * them then, a thread that has gone, as many as are interrupted at one time, and what is said where it is refused.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "record/notes.h"
#include "sample/running.h"
#include "stack/unwind.h"
#include "state/libraries.h"

static char note[300];
static int n_notes, held;
static bool no_libraries;
static uint64_t walked[3];

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	(void)what;
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
	n_notes++;
}

bool spy_libraries_hold(void)
{
	held += !no_libraries;
	return !no_libraries;
}

void spy_libraries_release(void)
{
	held--;
}

size_t spy_unwind_interrupted(const struct spy_interrupted *at, uint64_t *frames, size_t most,
			      uint64_t *function)
{
	(void)at;
	assert_true(most >= 3);
	memcpy(frames, walked, sizeof(walked));
	*function = 77;
	return 3;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Why the kernel refuses it to us; 0: it does not. */
static int refusal(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .sample_period = 1000000,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close((int)fd);
	return fd < 0 ? errno : 0;
}

/* A system call filter, under which it is not tried. */
static bool is_filtered(void)
{
	char line[256];
	bool is = true;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		is &= strcmp(line, "Seccomp:\t0\n") != 0;
	if (file)
		fclose(file);
	return is;
}

static int begin(void **state)
{
	(void)state;
	spy_running_forked();
	n_notes = held = 0;
	no_libraries = false;
	spy_running_begin(200000);
	return 0;
}

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Runs until it has been interrupted, since then. */
static struct spy_interrupted be_interrupted(struct spy_running *running, uint64_t since,
					     uint64_t *ns)
{
	struct spy_interrupted at;

	while (!spy_running_look(running, own_tid(), since, ns, &at))
		assert_int_equal(n_notes, 0);
	return at;
}

static void test_refused(void **state)
{
	struct spy_running running = {0};
	struct spy_interrupted at;
	uint64_t ns;
	int why = refusal();

	(void)state;
	assert_false(spy_running_look(&running, own_tid(), 0, &ns, &at)); /* from now on */
	if (!why && !is_filtered()) {
		assert_non_null(running.ring);
		assert_int_equal(n_notes, 0);
		spy_running_end(&running);
		return;
	}
	assert_null(running.ring);
	assert_int_equal(n_notes, 1);
	assert_non_null(strstr(note, is_filtered() ? "a seccomp filter"
				     : why == EACCES || why == EPERM
					     ? "not allowed (kernel.perf_event_paranoid"
					     : "the kernel has no perf_event_open"));
	/* Not again in this process. */
	assert_false(spy_running_look(&running, own_tid(), 0, &ns, &at));
	assert_int_equal(n_notes, 1);
}

static void test_gone(void **state)
{
	struct spy_running running = {0};
	struct spy_interrupted at;
	uint64_t ns;

	(void)state;
	if (is_filtered() || refusal())
		skip();
	assert_false(spy_running_look(&running, 5000000, 0, &ns, &at));
	assert_null(running.ring);
	assert_int_equal(n_notes, 0); /* that is no refusal: others are interrupted … */
	assert_false(spy_running_look(&running, own_tid(), 0, &ns, &at));
	assert_non_null(running.ring); /* … from now on */
	spy_running_end(&running);
	assert_null(running.ring);
	spy_running_end(&running);
	/* Not asked for. */
	spy_running_begin(0);
	assert_false(spy_running_look(&running, own_tid(), 0, &ns, &at));
	assert_null(running.ring);
	assert_int_equal(n_notes, 0);
}

static void test_interrupted(void **state)
{
	struct spy_running running = {0};
	struct spy_interrupted at;
	uint64_t first, next, begun = now_ns();

	(void)state;
	if (is_filtered() || refusal())
		skip();
	at = be_interrupted(&running, 0, &first);
	assert_true(first >= begun && first <= now_ns());
	assert_non_null(at.registers);
	assert_true(at.stack_bytes > 0 && at.stack_bytes <= 16384);
	/* Each of them once, if it is to be a later one. */
	at = be_interrupted(&running, first + 1, &next);
	assert_true(next > first);
	assert_false(spy_running_look(&running, own_tid(), now_ns() + 1000000000, &next, &at));
	assert_false(
		spy_running_look(&running, own_tid() + 1, 0, &next, &at)); /* another thread's */
	/* So many times round the ring: the newest is found. */
	for (int i = 0; i < 20; i++) {
		uint64_t since = now_ns();

		be_interrupted(&running, since, &next);
		assert_true(next >= since);
	}
	spy_running_end(&running);
}

/* As many as are interrupted at one time; one that ends makes room. */
static void test_most(void **state)
{
	struct spy_running running[SPY_RUNNING_MOST + 1] = {{0}};
	struct spy_interrupted at;
	uint64_t ns;

	(void)state;
	if (is_filtered() || refusal())
		skip();
	for (int i = 0; i <= SPY_RUNNING_MOST; i++)
		spy_running_look(&running[i], own_tid(), UINT64_MAX, &ns, &at);
	if (n_notes)
		skip(); /* so much memory may not be locked here */
	assert_non_null(running[SPY_RUNNING_MOST - 1].ring);
	assert_null(running[SPY_RUNNING_MOST].ring);
	spy_running_end(&running[3]);
	spy_running_look(&running[SPY_RUNNING_MOST], own_tid(), UINT64_MAX, &ns, &at);
	assert_non_null(running[SPY_RUNNING_MOST].ring);
	spy_running_look(&running[3], own_tid(), UINT64_MAX, &ns, &at);
	assert_null(running[3].ring);
	for (int i = 0; i <= SPY_RUNNING_MOST; i++)
		spy_running_end(&running[i]);
}

/* What lies in this library is the recorder's own work, and no place of the program's. */
static void test_walk(void **state)
{
	struct spy_interrupted at = {0};
	uint64_t frames[8], function;

	(void)state;
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++)
			walked[k] = k == i ? (uintptr_t)spy_running_walk : 0x1000;
		assert_int_equal(spy_running_walk(&at, frames, 8, &function), i < 3 ? 0 : 3);
		assert_int_equal(held, 0);
	}
	assert_int_equal(frames[1], 0x1000);
	assert_int_equal(function, 77);
	no_libraries = true; /* one is being unloaded */
	assert_int_equal(spy_running_walk(&at, frames, 8, &function), 0);
	assert_int_equal(held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_refused, begin),
		cmocka_unit_test_setup(test_gone, begin),
		cmocka_unit_test_setup(test_interrupted, begin),
		cmocka_unit_test_setup(test_most, begin),
		cmocka_unit_test_setup(test_walk, begin),
	};

	/* Files that are opened have number 0, as in a program that closed its input. */
	close(STDIN_FILENO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
