/*
 * tests/unit/test_unwinder.c: the walk up the stack finds what glibc's backtrace() finds, also from a
 * signal's stack, a stack of the recorder's, and where objects are found by the loader's list; and it survives whatever it is told
 * a stack looks like.
 */
/* links: shim/lib/unwind.c shim/lib/elf_scan.c shim/lib/lock.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include "no_guard.h"
#include "lib/elf_scan.h"
#include "lib/unwind.h"

#define LEAF __attribute__((noinline, noclone))
#define MOST 48

static uint64_t ours[MOST];
static void *theirs[MOST];
static size_t n_ours, n_theirs;
static uintptr_t stack_end; /* 0: nothing is known of the stack */
static volatile int sink;

/* Both walk from the function that calls this one. */
static LEAF __attribute__((optimize("no-omit-frame-pointer"))) void walk(void)
{
	uintptr_t *frame = __builtin_frame_address(0);
	struct spy_unwind start = {.ip = frame[1],
				   .sp = (uintptr_t)(frame + 2),
				   .bp = frame[0],
				   .stack_begin = stack_end ? (uintptr_t)frame : 0,
				   .stack_end = stack_end};

	n_ours = spy_unwind(&start, ours, MOST);
	n_theirs = (size_t)backtrace(theirs, MOST);
}

/* theirs[0] is in walk(). */
static void compare(size_t least)
{
	size_t i;

	assert_true(n_ours >= least);
	assert_int_equal(n_ours, n_theirs - 1 < MOST ? n_theirs - 1 : MOST);
	for (i = 0; i < n_ours; i++)
		assert_int_equal(ours[i], (uintptr_t)theirs[i + 1]);
}

static LEAF void descend(int n)
{
	volatile char array[64] __attribute__((aligned(64)));
	volatile char *more = __builtin_alloca((size_t)n * 24 + 8);

	array[n & 63] = more[0] = (char)n;
	if (n)
		descend(n - 1);
	else
		walk();
	sink += array[0] + more[0];
}

static int by_number(const void *a, const void *b)
{
	walk();
	return *(const int *)a - *(const int *)b;
}

static void look_from_everywhere(void)
{
	int numbers[] = {3, 1};

	descend(12);
	compare(15);
	qsort(numbers, 2, sizeof(numbers[0]), by_number); /* through the C library */
	compare(5);
}

static void test_walk(void **state)
{
	(void)state;
	spy_elf_scan_init();
	look_from_everywhere(); /* as where there is no _dl_find_object */
	spy_unwind_init();
	look_from_everywhere();
	spy_unwind_by_list = true;
	look_from_everywhere();
	spy_unwind_by_list = false;
	stack_end = (uintptr_t)__builtin_frame_address(0) & ~7ull;
	look_from_everywhere(); /* to there directly, beyond it through the kernel */
	stack_end = 0;
}

static void handler(int number)
{
	(void)number;
	descend(3);
}

static void test_signal(void **state)
{
	static char memory[1 << 16];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)}, before;
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK}, old;

	(void)state;
	assert_int_equal(sigaltstack(&stack, &before), 0);
	sigaction(SIGUSR1, &action, &old);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &old, NULL);
	sigaltstack(&before, NULL);
	compare(8);
}

/* ---- from a stack of the recorder's ---- */

static struct spy_unwind from;
static ucontext_t here, apart;
static unsigned int asked; /* how often the kernel was asked for memory */

/* unwind.c's, by peek.h. */
long syscall(long number, ...)
{
	long a[6], result;
	va_list more;

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	asked += number == SYS_process_vm_readv;
	register long d __asm__("r10") = a[3], e __asm__("r8") = a[4], f __asm__("r9") = a[5];
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(d), "r"(e), "r"(f)
			 : "rcx", "r11", "memory");
	if (result >= -4095 && result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

static void walk_apart(void)
{
	asked = 0;
	n_ours = spy_unwind(&from, ours, MOST);
}

static LEAF __attribute__((optimize("no-omit-frame-pointer"))) void descend_apart(int n)
{
	uintptr_t *frame = __builtin_frame_address(0);

	if (n) {
		descend_apart(n - 1);
		sink++;
		return;
	}
	from = (struct spy_unwind){.ip = frame[1],
				   .sp = (uintptr_t)(frame + 2),
				   .bp = frame[0],
				   .stack_begin = (uintptr_t)frame,
				   .stack_end = stack_end};
	swapcontext(&here, &apart);
	n_theirs = (size_t)backtrace(theirs, MOST);
}

/* Not word by word: eight threads that ask at once wait for each other. */
static void test_apart(void **state)
{
	static char stack[1 << 16];

	(void)state;
	stack_end = (uintptr_t)__builtin_frame_address(0) & ~7ull;
	getcontext(&apart);
	apart.uc_stack.ss_sp = stack;
	apart.uc_stack.ss_size = sizeof(stack);
	apart.uc_link = &here;
	makecontext(&apart, walk_apart, 0);
	descend_apart(40);
	compare(41);
	assert_in_range(asked, 0, 40); /* beyond stack_end, and of the other stack */
	stack_end = 0;
}

/* ---- rubbish ---- */

static uint64_t seed = 4711;

static uint64_t random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A stack of random words, many of which point into code, into itself, or out of it. */
static void fill(uint64_t *words, size_t n)
{
	static void *const code[] = {qsort, memcpy, walk, printf, mmap, abort};
	size_t i;

	for (i = 0; i < n; i++)
		switch (random_word() % 5) {
		case 0:
			words[i] = random_word();
			break;
		case 1:
			words[i] = (uintptr_t)&words[random_word() % n];
			break;
		case 2:
			words[i] = (uintptr_t)words + random_word() % (16 * n);
			break;
		default:
			words[i] =
				(uintptr_t)code[random_word() % 6] + random_word() % 100000 - 50000;
		}
}

static void test_rubbish(void **state)
{
	const size_t bytes = 8192, n = bytes / 8;
	char *memory = mmap(NULL, bytes + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *words = (uint64_t *)(memory + 4096), frames[MOST];
	size_t i, deep = 0;

	(void)state;
	mprotect(words, bytes, PROT_READ | PROT_WRITE);
	for (i = 0; i < 20000; i++) {
		struct spy_unwind start;
		size_t found;

		fill(words, i % 100 ? 32 : n);
		start = (struct spy_unwind){.ip = words[random_word() % n],
					    .sp = (uintptr_t)&words[random_word() % n],
					    .bp = words[random_word() % n]};
		found = spy_unwind(&start, frames, MOST);
		assert_in_range(found, 1, MOST);
		deep += found > 3;
	}
	assert_true(deep > 0); /* they were no walks otherwise */
	munmap(memory, bytes + 2 * 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_rubbish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
