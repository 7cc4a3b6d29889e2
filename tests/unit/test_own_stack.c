/* links: shim/process/own_stack.c shim/lib/lock.c shim/arch/x86_64/own_stack.S */
/*
 * tests/unit/test_own_stack.c: slow paths run on another stack, once; many threads at once have one each; and what an
 * address is to the thread's stacks: the program's, the recorder's, that of signals.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "no_guard.h"
#include "process/own_stack.h"

#define STACK_BYTES (256 << 10) /* own_stack.c */
#define SPARES 16
#define NARROW 1536

static uintptr_t here(void)
{
	return (uintptr_t)__builtin_frame_address(0);
}

static bool is_near(uintptr_t a, uintptr_t b)
{
	return a - b < 4096 || b - a < 4096;
}

/* ---- one thread ---- */

struct seen {
	uintptr_t at, left_at, end, inner_at, inner_end;
	bool blocked;
};

static void look_inside(void *data)
{
	struct seen *seen = data;

	seen->inner_at = here();
	seen->inner_end = spy_own_stack_end();
}

static void look(void *data)
{
	struct seen *seen = data;
	volatile char deep[128 << 10]; /* half of it */
	sigset_t now;

	deep[0] = deep[sizeof(deep) - 1] = 1;
	seen->at = here();
	seen->left_at = spy_own_stack_left_at();
	seen->end = spy_own_stack_end();
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	seen->blocked = sigismember(&now, SIGUSR1) == 1;
	spy_own_stack_run(look_inside, seen);
}

static void test_run(void **state)
{
	struct seen seen, again;
	sigset_t now;

	(void)state;
	assert_int_equal(spy_own_stack_end(), 0);
	assert_true(is_near(spy_own_stack_left_at(), here()));
	spy_own_stack_run(look, &seen);
	assert_false(is_near(seen.at, here()));
	assert_true(is_near(seen.left_at, here()));
	assert_true(seen.end > seen.at && seen.end - seen.at < STACK_BYTES);
	assert_true(seen.blocked);
	/* Inside of it, on the same one. */
	assert_true(seen.inner_at < seen.end && seen.end - seen.inner_at < STACK_BYTES);
	assert_int_equal(seen.inner_end, seen.end);
	/* And all as before; the next one is the same again. */
	assert_int_equal(spy_own_stack_end(), 0);
	assert_true(is_near(spy_own_stack_left_at(), here()));
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	assert_int_equal(sigismember(&now, SIGUSR1), 0);
	spy_own_stack_run(look, &again);
	assert_int_equal(again.end, seen.end);
}

/* Below it lies memory that may not be touched. */
static void touch(void *data)
{
	const volatile char *end = (const volatile char *)spy_own_stack_end();
	int *readable = data;
	int null[2];

	assert_int_equal(pipe(null), 0);
	*readable = write(null[1], (const char *)end - STACK_BYTES + 4096, 1) == 1;
	*readable += 2 * (write(null[1], (const char *)end - STACK_BYTES + 4095, 1) == 1);
	*readable += 4 * (write(null[1], (const char *)end - 1, 1) == 1);
	close(null[0]);
	close(null[1]);
}

static void test_guard(void **state)
{
	int readable;

	(void)state;
	spy_own_stack_run(touch, &readable);
	assert_int_equal(readable, 1 + 4);
}

/* ---- several threads ---- */

#define THREADS (SPARES + 4)

static pthread_barrier_t all;
static uintptr_t ends[THREADS];

static void meet(void *data)
{
	*(uintptr_t *)data = spy_own_stack_end();
	pthread_barrier_wait(&all);
}

static void *run_meeting(void *data)
{
	spy_own_stack_run(meet, data);
	return NULL;
}

/* How many mappings have the size of such a stack? */
static int mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin, end;
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), maps))
		for (int i = 0; i < THREADS; i++)
			n += sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin < ends[i] &&
			     ends[i] <= end;
	fclose(maps);
	return n;
}

/* Each has its own; of those given back, as many as are kept stay. */
static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	pthread_barrier_init(&all, NULL, THREADS);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, run_meeting, &ends[i]);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < THREADS; i++)
			for (int k = 0; k < i; k++)
				assert_int_not_equal(ends[i], ends[k]);
		assert_int_equal(mapped(), SPARES);
	}
}

/* ---- the stack of signals ---- */

static char signals[64 << 10] __attribute__((aligned(4096)));
static volatile bool narrow, wide, inside;

static __attribute__((noinline)) void look_deeper(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	narrow = spy_own_stack_is_narrow();
}

static void in_handler(int signal)
{
	(void)signal;
	wide = !spy_own_stack_is_narrow();
	inside = spy_own_stack_is_for_signals(here());
	look_deeper(here() - (uintptr_t)signals - NARROW + 200);
}

static void test_signals(void **state)
{
	stack_t stack = {.ss_sp = signals, .ss_size = sizeof(signals)},
		off = {.ss_flags = SS_DISABLE};
	struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};

	(void)state;
	sigaltstack(&off, NULL);
	assert_false(spy_own_stack_is_for_signals(here()));
	assert_false(spy_own_stack_is_for_signals(0));
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	assert_true(spy_own_stack_is_for_signals((uintptr_t)signals));
	assert_true(spy_own_stack_is_for_signals((uintptr_t)signals + sizeof(signals) - 1));
	assert_false(spy_own_stack_is_for_signals((uintptr_t)signals + sizeof(signals)));
	assert_false(spy_own_stack_is_for_signals((uintptr_t)signals - 1));
	assert_false(spy_own_stack_is_narrow());
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	assert_true(inside);
	assert_true(wide);
	assert_true(narrow);
	/* As the kernel says it of one that is no more. */
	sigaltstack(&off, NULL);
	assert_false(spy_own_stack_is_for_signals((uintptr_t)signals));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
