/*
 * shim/bounds.c: see bounds.h. Runs on the application's threads, at a thread's first call.
 *
 * The first thread's stack ends where the loader found it. Of any other, glibc keeps what it knows of the thread (what
 * pthread_self points to) in the last page of its stack, as the ABI for thread-local storage on this processor wants
 * it; how far down the stack goes the list of mappings tells. That list is long where threads are many, and
 * they have few sizes: one that was found once is tried first, a guard page below it proves it.
 */
#include "bounds.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "peek.h"

#define PAGE 4096ul
#define MAIN_STACK_MOST ((size_t)8 << 20)
#define SIZES 4

/* ld.so's: the highest address of the first thread's stack that belongs to main and its callers. */
extern void *__libc_stack_end;

static pthread_t first; /* 0: not the one that loaded the library */
static _Atomic size_t sizes[SIZES]; /* of stacks met, from the guard page to the end */
static _Atomic unsigned int n_sizes;

void spy_bounds_init(void)
{
	if (getpid() == (int)syscall(SYS_gettid))
		first = pthread_self();
}

static struct spy_bounds bounds_of_first(void)
{
	uintptr_t end = (uintptr_t)__libc_stack_end;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > MAIN_STACK_MOST)
		limit.rlim_cur = MAIN_STACK_MOST;
	return (struct spy_bounds){.begin = end - limit.rlim_cur, .end = end};
}

static bool is_guard(uintptr_t page)
{
	unsigned char in_core;

	return mincore((void *)page, PAGE, &in_core) == 0 && !spy_is_readable(page);
}

/* The least of the sizes met that ends at a guard page; 0: none does. */
static size_t size_met(uintptr_t end)
{
	size_t least = 0;

	for (int i = 0; i < SIZES; i++) {
		size_t size = atomic_load(&sizes[i]);

		if (size && (!least || size < least) && is_guard(end - size - PAGE))
			least = size;
	}
	return least;
}

/* ---- the list of mappings --------------------------------------------------------------------- */

struct lines {
	int file;
	size_t at, length;
	char text[1024];
};

static int next_char(struct lines *in)
{
	ssize_t length;

	if (in->at == in->length) {
		length = read(in->file, in->text, sizeof(in->text));
		if (length <= 0)
			return -1;
		in->at = 0;
		in->length = (size_t)length;
	}
	return (unsigned char)in->text[in->at++];
}

/* A number in hexadecimal digits, and what follows it. */
static int next_number(struct lines *in, uintptr_t *number)
{
	int c = next_char(in);

	for (*number = 0; (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); c = next_char(in))
		*number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	return c;
}

/* Where the mapping begins that holds an address; 0: no such, or there is no list. */
static uintptr_t begin_of_mapping(uintptr_t address)
{
	struct lines in = {.file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	uintptr_t begin = 0, end = 0;
	int c = in.file < 0 ? -1 : 0;

	while (c >= 0 && end <= address) {
		if (next_number(&in, &begin) != '-' || next_number(&in, &end) != ' ')
			break;
		do
			c = next_char(&in);
		while (c >= 0 && c != '\n');
	}
	if (in.file >= 0)
		close(in.file);
	return begin <= address && address < end ? begin : 0;
}

struct spy_bounds spy_bounds_of_self(uintptr_t here)
{
	struct spy_bounds of_first = bounds_of_first(), bounds = {.begin = 0};
	uintptr_t self = (uintptr_t)pthread_self(), end = (self | (PAGE - 1)) + 1;
	size_t size;

	if (pthread_self() == first || (here > of_first.begin && here < of_first.end))
		return of_first;
	size = size_met(end);
	if (size) {
		bounds.begin = end - size;
	} else {
		bounds.begin = begin_of_mapping(self);
		if (bounds.begin && is_guard(bounds.begin - PAGE))
			atomic_store(&sizes[atomic_fetch_add(&n_sizes, 1) % SIZES],
				     end - bounds.begin);
	}
	bounds.end = bounds.begin ? end : 0;
	return bounds;
}
