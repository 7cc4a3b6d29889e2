/*
 * shim/lib/bounds.c: see bounds.h. Runs when the library is loaded, and on the application's
 * threads, at a thread's first call.
 *
 * The first thread's stack ends where the loader found it. Of any other thread, glibc keeps its
 * data (what pthread_self points to) at the end of the stack, as the ABI for thread-local storage
 * on this processor demands. In there are, one after the other, where the block of memory with the
 * stack begins, its size, and how much of its beginning is the guard. No header has the offset. But
 * in the data of the first thread that size is the end of its stack, behind a null pointer: that is
 * looked for. In a C library without such data the other threads' stacks are unknown.
 */
#include "lib/bounds.h"
#include "arch/processor.h"
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul
#define TCB_BYTES 2048 /* at least; glibc 2.34 has 2304 */
#define MAIN_STACK_MOST ((size_t)8 << 20)

/* ld.so's: the highest address of the first thread's stack that belongs to main and its callers. */
extern void *__libc_stack_end;

struct block {
	uintptr_t begin;
	size_t size, guard;
};

static pthread_t first; /* 0: not the one that loaded the library */
static size_t block_at; /* of a struct block, in bytes from pthread_self; 0: not known */

static struct block block_of(uintptr_t self, size_t at)
{
	struct block block;

	memcpy(&block, (const void *)(self + at), sizeof(block));
	return block;
}

void spy_bounds_init(void)
{
	if (getpid() != (int)spy_syscall(SYS_gettid))
		return;
	first = pthread_self();
	for (size_t at = sizeof(void *); at < TCB_BYTES && !block_at; at += sizeof(void *)) {
		struct block block = block_of((uintptr_t)first, at);

		if (!block.begin && block.size == (uintptr_t)__libc_stack_end)
			block_at = at;
	}
}

static struct spy_bounds bounds_of_first(void)
{
	uintptr_t end = (uintptr_t)__libc_stack_end;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > MAIN_STACK_MOST)
		limit.rlim_cur = MAIN_STACK_MOST;
	return (struct spy_bounds){.begin = end - limit.rlim_cur, .end = end};
}

/* Could that be the block with the stack that has `self` in its last page? */
static bool is_block(const struct block *block, uintptr_t self)
{
	uintptr_t end = block->begin + block->size;

	return block->begin && block->begin < self && end > self && end - self < 2 * PAGE &&
	       block->guard % PAGE == 0 && block->guard < self - block->begin;
}

struct spy_bounds spy_bounds_of_self(uintptr_t here)
{
	struct spy_bounds of_first = bounds_of_first();
	uintptr_t self = (uintptr_t)pthread_self();
	struct block block;

	if (pthread_self() == first || (here > of_first.begin && here < of_first.end))
		return of_first;
	block = block_at ? block_of(self, block_at) : (struct block){.begin = 0};
	if (!is_block(&block, self))
		return (struct spy_bounds){.begin = 0};
	return (struct spy_bounds){.begin = block.begin + block.guard,
				   .end = block.begin + block.size};
}
