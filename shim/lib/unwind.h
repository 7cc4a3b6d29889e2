/*
 * shim/lib/unwind.h: return addresses from the application's stack.
 *
 * By the tables the compilers leave for exceptions (.eh_frame), for little code has frame pointers;
 * and without libgcc or libunwind: both may allocate, take the loader's lock or abort on what they do
 * not understand. Nothing here does: objects are found by glibc's _dl_find_object, which takes no
 * lock; tables are read within the segment they lie in; a stack is read directly only where it must
 * be mapped (the thread's own, from where it is in use) and else through the kernel, which says no instead of
 * killing. Whatever is not understood ends the walk.
 */
#ifndef CUDASPY_SHIM_UNWIND_H
#define CUDASPY_SHIM_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a walk begins: a function that has just been returned to. */
struct spy_unwind {
	uintptr_t ip; /* return address */
	uintptr_t sp; /* after the return */
	uintptr_t bp; /* the frame pointer's register */
	uintptr_t stack_begin,
		stack_end; /* of the stack what is in use, and so mapped; 0, 0: unknown */
};

/*
 * Writes return addresses, innermost (start->ip) first; returns how many. The calling function must have been
 * called from below start->sp, if on another stack. errno may change.
 */
size_t spy_unwind(const struct spy_unwind *start, uint64_t *frames, size_t most);

/* Before the first walk; idempotent. */
void spy_unwind_init(void);

/* For tests: find objects by the loader's list, as where glibc is older than 2.35. */
extern bool spy_unwind_by_list;

#endif
