/*
 * shim/bounds.c: see bounds.h. Runs on the application's threads, at a thread's first call.
 *
 * The first thread's stack ends where the loader found it. Of any other, glibc keeps what it knows of the thread (what
 * pthread_self points to) in the last page of its stack, as the ABI for thread-local storage on this processor wants
 * it, and in there, one after the other, where the block of memory begins that has the stack, its size, and how much of
 * its beginning is the guard. At which offset no header says: it is looked for, in the first thread whose guard
 * page proves it. Until then, and in a C library that keeps no such thing, a thread's stack is unknown.
 */
#include "bounds.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "peek.h"

#define PAGE 4096ul
#define MAIN_STACK_MOST ((size_t)8 << 20)

/* ld.so's: the highest address of the first thread's stack that belongs to main and its callers. */
extern void *__libc_stack_end;

struct block {
	uintptr_t begin;
	size_t size, guard;
};

static pthread_t first; /* 0: not the one that loaded the library */
static _Atomic size_t
	block_at; /* of a struct block, in bytes from pthread_self; 0: not known yet */

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

/* Could that be the block with the stack that has `self` in its last page? */
static bool is_block(const struct block *block, uintptr_t self)
{
	uintptr_t end = block->begin + block->size;

	return block->begin < self && end > self && end - self < 2 * PAGE &&
	       block->guard % PAGE == 0 && block->guard < self - block->begin;
}

static bool is_guarded(const struct block *block)
{
	uintptr_t page = block->begin + block->guard - PAGE;
	unsigned char in_core;

	return block->guard && block->begin % PAGE == 0 && block->size % PAGE == 0 &&
	       mincore((void *)page, PAGE, &in_core) == 0 && !spy_is_readable(page);
}

static struct block block_of(uintptr_t self, size_t at)
{
	struct block block;

	memcpy(&block, (const void *)(self + at), sizeof(block));
	return block;
}

static size_t find_block(uintptr_t self)
{
	size_t end = PAGE - self % PAGE;

	for (size_t at = sizeof(void *); at + sizeof(struct block) <= end; at += sizeof(void *)) {
		struct block block = block_of(self, at);

		if (is_block(&block, self) && is_guarded(&block))
			return at;
	}
	return 0;
}

struct spy_bounds spy_bounds_of_self(uintptr_t here)
{
	struct spy_bounds of_first = bounds_of_first();
	uintptr_t self = (uintptr_t)pthread_self();
	struct block block = {.begin = 0};
	size_t at = atomic_load(&block_at);

	if (pthread_self() == first || (here > of_first.begin && here < of_first.end))
		return of_first;
	if (!at) {
		at = find_block(self);
		if (at)
			atomic_store(&block_at, at);
	}
	if (at)
		block = block_of(self, at);
	if (!at || !is_block(&block, self))
		return (struct spy_bounds){.begin = 0};
	return (struct spy_bounds){.begin = block.begin + block.guard,
				   .end = block.begin + block.size};
}
