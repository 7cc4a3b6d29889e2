/*
 * tests/unit/test_unwinder.c: the walk up the stack finds what glibc's backtrace() finds, also from a
 * signal's stack, a stack of the recorder's, and where objects are found by the loader's list; and it survives whatever it is told
 * a stack looks like.
 */
/* links: shim/stack/unwind.c shim/process/elf_scan.c shim/lib/elf_object.c shim/lib/lock.c */
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
#include "arch/registers.h"
#include "no_guard.h"
#include "process/elf_scan.h"
#include "stack/unwind.h"

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

/* ---- where a thread was interrupted ---- */

#define COPIED 512

static struct {
	uint64_t registers[REGISTERS_KEPT], stack[COPIED];
} interruption;
static struct spy_unwound shown[8];
static size_t n_shown;

/* As the kernel does, but here: this function is the innermost one, and has a word of its own on its stack. */
static LEAF void interrupted(void)
{
	static const int kept[REGISTERS_KEPT] = {REG_RBX, REG_RBP, REG_RSP, REG_RIP,
						 REG_R12, REG_R13, REG_R14, REG_R15};
	volatile uint64_t mark = 0x5eed5eed5eed5eed;
	ucontext_t now;

	getcontext(&now);
	for (int i = 0; i < REGISTERS_KEPT; i++)
		interruption.registers[i] = (uint64_t)now.uc_mcontext.gregs[kept[i]];
	memcpy(interruption.stack, (void *)now.uc_mcontext.gregs[REG_RSP],
	       sizeof(interruption.stack));
	sink += (int)mark;
}

static LEAF void calls_it(void)
{
	interrupted();
	sink++;
}

static bool keep_shown(const struct spy_unwound *f, void *data)
{
	(void)data;
	shown[n_shown++] = *f;
	return n_shown < 3;
}

static bool has_mark(const struct spy_unwound *f)
{
	for (size_t i = 0; i < f->n_words; i++)
		if (f->words[i] == 0x5eed5eed5eed5eed)
			return true;
	return false;
}

static void test_interrupted(void **state)
{
	const struct spy_interrupted at = {interruption.registers, interruption.stack,
					   sizeof(interruption.stack)};
	uint64_t frames[MOST], function = 0;

	(void)state;
	calls_it();
	for (int by_list = 0; by_list < 2; by_list++) {
		spy_unwind_by_list = by_list;
		n_shown = 0;
		spy_unwind_each(&at, keep_shown, NULL);
		assert_int_equal(n_shown, 3);
		assert_int_equal(shown[0].function, (uintptr_t)interrupted);
		assert_int_equal(shown[1].function, (uintptr_t)calls_it);
		assert_int_equal(shown[2].function, (uintptr_t)test_interrupted);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(shown[i].object,
					 spy_unwind_object((uintptr_t)test_interrupted));
		assert_int_not_equal(shown[0].object, 0);
		assert_int_not_equal(spy_unwind_object((uintptr_t)qsort), 0);
		assert_int_not_equal(shown[0].object, spy_unwind_object((uintptr_t)qsort));
		assert_int_equal(spy_unwind_object(16), 0);
		assert_true(has_mark(&shown[0]));
		assert_false(has_mark(&shown[1]));
		assert_true(spy_unwind_interrupted(&at, frames, MOST, &function) >= 3);
		assert_int_equal(function, (uintptr_t)interrupted);
	}
	spy_unwind_by_list = false;
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

/* ---- frames as tables may describe them ---- */

/* Functions that call what they are given. Behind the usual rules, a frame of 16 bytes with rbp in the middle, comes one
 * of each of these: instructions that say the same in another way. */
/* clang-format off */
#define FRAMES \
	FRAME("0x0f, 2, 0x77, 0x10") \
	FRAME("0x0f, 6, 0x77, 0xf0, 0x7e, 0x23, 0xa0, 0x01") \
	FRAME("0x0f, 5, 0x77, 0x00, 0x08, 0x10, 0x22") \
	FRAME("0x0f, 6, 0x77, 0x00, 0x0a, 0x10, 0x00, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x0c, 0x10, 0x00, 0x00, 0x00, 0x22") \
	FRAME("0x0f, 12, 0x77, 0x00, 0x0e, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x22") \
	FRAME("0x0f, 5, 0x77, 0x20, 0x09, 0xf0, 0x22") \
	FRAME("0x0f, 6, 0x77, 0x20, 0x0b, 0xf0, 0xff, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x20, 0x0d, 0xf0, 0xff, 0xff, 0xff, 0x22") \
	FRAME("0x0f, 12, 0x77, 0x20, 0x0f, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x22") \
	FRAME("0x0f, 7, 0x77, 0x00, 0x10, 0x90, 0x80, 0x00, 0x22") \
	FRAME("0x0f, 7, 0x77, 0x90, 0x7f, 0x10, 0x80, 0x01, 0x22") \
	FRAME("0x0f, 5, 0x77, 0x20, 0x11, 0x70, 0x22") \
	FRAME("0x0f, 7, 0x77, 0xa0, 0x01, 0x11, 0xf0, 0x7e, 0x22") \
	FRAME("0x0f, 6, 0x77, 0x00, 0x38, 0x12, 0x22, 0x22") \
	FRAME("0x0f, 6, 0x77, 0x00, 0x31, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 7, 0x77, 0x00, 0x08, 0x80, 0x33, 0x25, 0x22") \
	FRAME("0x0f, 6, 0x77, 0x00, 0x34, 0x34, 0x1e, 0x22") \
	FRAME("0x0f, 4, 0x77, 0x18, 0x38, 0x1c") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x08, 0x33, 0x08, 0x14, 0x1a, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x08, 0x10, 0x08, 0x10, 0x21, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x33, 0x33, 0x29, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x33, 0x33, 0x2a, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x34, 0x33, 0x2b, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x33, 0x33, 0x2c, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x33, 0x34, 0x2d, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x00, 0x33, 0x34, 0x2e, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x10, 0x33, 0x34, 0x29, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x10, 0x33, 0x34, 0x2a, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x10, 0x33, 0x33, 0x2b, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x10, 0x34, 0x33, 0x2c, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x10, 0x33, 0x33, 0x2d, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x10, 0x33, 0x33, 0x2e, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 9, 0x77, 0x00, 0x09, 0xff, 0x31, 0x2c, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 9, 0x77, 0x00, 0x09, 0xff, 0x31, 0x2d, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 9, 0x77, 0x00, 0x31, 0x09, 0xff, 0x2a, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 9, 0x77, 0x00, 0x31, 0x09, 0xff, 0x2b, 0x34, 0x24, 0x22") \
	FRAME("0x0f, 8, 0x77, 0x08, 0x06, 0x30, 0x1e, 0x77, 0x10, 0x22") \
	FRAME("0x12, 0x07, 0x7e") \
	FRAME("0x13, 0x7e") \
	FRAME("0x0a, 0x0c, 0x06, 0x20, 0x0b") \
	FRAME("0x0a, 0x0c, 0x06, 0x20, 0x0a, 0x0e, 0x30, 0x0b, 0x0b") \
	FRAME("0x0a, 0x0d, 0x06, 0x0b") \
	FRAME("0x05, 0x10, 0x01") \
	FRAME("0x11, 0x10, 0x01") \
	FRAME("0x08, 0x03") \
	FRAME("0x2e, 0x90, 0x01, 0x00") \
	FRAME("0x2e, 0x10, 0x0c, 0x07, 0x10") \
	FRAME("0x10, 0x10, 2, 0x38, 0x1c") \
	FRAME("0x16, 0x10, 3, 0x38, 0x1c, 0x06") \
	FRAME("0x14, 0x07, 0x00") \
	FRAME("0x15, 0x07, 0x00")

/* The same for where rbp is, which is changed. */
#define FRAMES_WITHOUT_RBP \
	FRAME("0x10, 0x06, 2, 0x40, 0x1c") \
	FRAME("0x16, 0x06, 3, 0x40, 0x1c, 0x06") \
	FRAME("0x05, 0x06, 0x02") \
	FRAME("0x11, 0x06, 0x02") \
	FRAME("0x05, 0x06, 0x82, 0x00") \
	FRAME("0x86, 0x02") \
	FRAME("0x10, 0x06, 3, 0x09, 0xf0, 0x22")

#define FRAME(escape) \
	".balign 64\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n" \
	".cfi_escape " escape "\ncall *%rdi\npop %rbp\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
__asm__(".text\n.balign 64\nframes_begin:\n" FRAMES "\n.balign 64\nframes_end:\n");
#undef FRAME
#define FRAME(escape) \
	".balign 64\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n" \
	".cfi_escape " escape "\nxor %ebp, %ebp\ncall *%rdi\npop %rbp\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
__asm__(".text\n.balign 64\nframes_without_rbp_begin:\n" FRAMES_WITHOUT_RBP "\n.balign 64\nframes_without_rbp_end:\n");
#undef FRAME
/* Where the frame ends is in memory, and the return address in rbp. */
__asm__(".text\n.balign 64\nframe_in_memory:\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n"
	"lea 16(%rsp), %rax\npush %rax\npush %rax\n.cfi_escape 0x0f, 3, 0x77, 0x08, 0x06\n"
	"call *%rdi\nadd $16, %rsp\npop %rbp\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
	".balign 64\nframe_in_rbp:\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n"
	"mov 8(%rsp), %rbp\n.cfi_escape 0x09, 0x10, 0x06, 0x10, 0x06, 2, 0x40, 0x1c\n"
	"call *%rdi\npop %rbp\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n");
/* clang-format on */

extern char frames_begin[], frames_end[], frames_without_rbp_begin[], frames_without_rbp_end[],
	frame_in_memory[], frame_in_rbp[];

/* Its own frame is found by rbp. */
static LEAF __attribute__((optimize("no-omit-frame-pointer"))) void call_frame(char *function,
									       int n)
{
	void (*frame)(void (*)(void)) = (void (*)(void (*)(void)))(uintptr_t)function;
	volatile char *more = __builtin_alloca((size_t)n * 24 + 8);

	more[0] = (char)n;
	frame(walk);
	sink += more[0];
}

static void look_from(char *function, size_t index)
{
	size_t i;

	call_frame(function, 3);
	if (n_ours < 5 || n_ours != n_theirs - 1)
		fail_msg("frame %zu: %zu frames, not %zu", index, n_ours, n_theirs - 1);
	for (i = 0; i < n_ours; i++)
		if (ours[i] != (uintptr_t)theirs[i + 1])
			fail_msg("frame %zu: another one at %zu", index, i);
}

static void test_frames(void **state)
{
	char *at;

	(void)state;
	for (at = frames_begin; at < frames_end; at += 64)
		look_from(at, (size_t)(at - frames_begin) / 64);
	for (at = frames_without_rbp_begin; at < frames_without_rbp_end; at += 64)
		look_from(at, 1000 + (size_t)(at - frames_without_rbp_begin) / 64);
	look_from(frame_in_memory, 2000);
	look_from(frame_in_rbp, 2001);
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
		cmocka_unit_test(test_walk),    cmocka_unit_test(test_signal),
		cmocka_unit_test(test_apart),   cmocka_unit_test(test_frames),
		cmocka_unit_test(test_rubbish), cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
