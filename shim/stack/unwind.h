/*
 * shim/stack/unwind.h: return addresses from the application's stack.
 *
 * By the tables the compilers leave for exceptions (.eh_frame), which all code has that may be
 * thrown through; frame pointers most code has not. And without libgcc or libunwind: libgcc's
 * unwinder may be loaded the first time (dlopen inside a CUDA call), both may allocate, take the
 * loader's lock or abort on what they do not understand. Here whatever is not understood ends the
 * walk:
 *
 *   - objects are found by _dl_find_object of glibc 2.35, which takes no lock; before that by the
 *     loader's list, under the loader's lock for the length of the walk, as at each packet;
 *   - tables are read within the segment they lie in, and programs in them are bounded;
 *   - a stack is read directly only where it must be mapped (the thread's own and the recorder's, from
 *     the page where it is in use), and everywhere else (coroutines, signals' stacks, whatever a broken chain points to)
 *     through process_vm_readv, which says no instead of killing;
 *   - callers lie above, and there are 48 at most; an address is believed if it lies in an object,
 *     or behind a call in code made at run time;
 *   - code made at run time has no tables: there the next instructions are read (Python's
 *     trampolines return at once), or else the frame pointer.
 *
 * The walk takes some kilobytes: callers are on a stack of our own (process/own_stack.h).
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
	uintptr_t own_end; /* of the recorder's own stack, if the caller is on it; else 0 */
};

/* Writes return addresses, innermost (start->ip) first; returns how many. The calling function
 * must have been called from below start->sp, if on another stack. errno may change. */
size_t spy_unwind(const struct spy_unwind *start, uint64_t *frames, size_t most);

/* Where a thread was that runs on: the registers that the kernel kept (REGISTERS_KEPT, in the order of spy_registers_kept), and
 * a copy of its stack from the stack pointer on. */
struct spy_interrupted {
	const uint64_t *registers;
	const uint64_t *stack;
	size_t stack_bytes;
};

/* The same; *function: where the function begins in which it was, 0 unknown. Innermost is where it was (that address and 1: a reader of return addresses finds it). The walk ends where the copy
 * does. While libraries are held (state/libraries.h). 0: it makes no sense. errno may change. */
size_t spy_unwind_interrupted(const struct spy_interrupted *at, uint64_t *frames, size_t most,
			      uint64_t *function);

/* A function of that walk. */
struct spy_unwound {
	uintptr_t object; /* where the object begins that has its code; 0: none has */
	uint64_t function; /* where it begins; 0 unknown: it has no tables */
	/* What it has in the registers that functions keep for their callers: a bit in `known` for each that is known. */
	const uint64_t *registers;
	uint32_t known;
	const uint64_t *words; /* what it has on the stack, in the copy */
	size_t n_words;
};

#define SPY_UNWIND_MOST 64

/* Shows the functions of such a walk, innermost first, until `show` returns false. */
typedef bool spy_unwind_visit(const struct spy_unwound *f, void *data);
void spy_unwind_each(const struct spy_interrupted *at, spy_unwind_visit *show, void *data);

/* Where the object begins in which that lies; 0: in none. While libraries are held. */
uintptr_t spy_unwind_object(uintptr_t address);

/* Before the first walk; idempotent. */
void spy_unwind_init(void);

/* For tests: find objects by the loader's list, as where glibc is older than 2.35. */
extern bool spy_unwind_by_list;

#endif
