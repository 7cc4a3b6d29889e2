/*
 * shim/process/own_stack.c: stacks of the shim's own for slow paths. Runs on the application's
 * threads. Some stacks are kept; a thread that finds none maps another. Mapping and unmapping stops
 * all threads that map memory or touch new memory, and eight threads whose pageable copies wait for
 * each other record their call stacks at the same time.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include "process/own_stack.h"
#include "lib/signal_guard.h"
#include "lib/lock.h"

/* Driver functions and allocators that are not libc's may run on it. Memory is used as far as it
 * is touched. */
#define STACK_BYTES ((size_t)256 << 10)
#define GUARD_BYTES ((size_t)4096)
#define NARROW_BYTES 1536

/* trampoline.S */
void spy_call_on(void (*work)(void *data), void *data, void *top)
	__attribute__((visibility("hidden")));

#define SPARES 16
static char *spares[SPARES]; /* lowest addresses of stacks that are not in use */

static __thread uintptr_t left_at; /* 0: the thread is on the application's stack */
static __thread uintptr_t own_end; /* of the stack that it is on then */

/* The place to look at first: a thread finds there what it put there before. */
static size_t own_place(void)
{
	return (spy_lock_self() >> 12) % SPARES;
}

static char *make_stack(void)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		return NULL;
	mprotect(stack, GUARD_BYTES, PROT_NONE);
	return stack;
}

static char *take_stack(void)
{
	size_t place = own_place();

	for (size_t i = 0; i < SPARES; i++, place = (place + 1) % SPARES) {
		char *stack;

		if (!__atomic_load_n(&spares[place], __ATOMIC_RELAXED))
			continue;
		stack = __atomic_exchange_n(&spares[place], NULL, __ATOMIC_ACQUIRE);
		if (stack)
			return stack;
	}
	return make_stack();
}

static void give_stack(char *stack)
{
	size_t place = own_place();

	for (size_t i = 0; i < SPARES; i++, place = (place + 1) % SPARES) {
		char *none = NULL;

		if (__atomic_compare_exchange_n(&spares[place], &none, stack, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	munmap(stack, STACK_BYTES);
}

/* Sanitizers must be informed of each stack: there, slow paths stay on the application's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STAY_ON_STACK 1
#else
#define STAY_ON_STACK 0
#endif

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	char *stack;
	SPY_SIGNAL_GUARD;

	stack = left_at || STAY_ON_STACK ? NULL : take_stack();
	if (!stack) {
		work(data);
		return;
	}
	left_at = (uintptr_t)__builtin_frame_address(0);
	own_end = (uintptr_t)stack + STACK_BYTES;
	spy_call_on(work, data, stack + STACK_BYTES);
	left_at = own_end = 0;
	give_stack(stack);
}

uintptr_t spy_own_stack_left_at(void)
{
	return left_at ? left_at : (uintptr_t)__builtin_frame_address(0);
}

/* A handler of a signal that is not blocked may have a stack of its own. */
uintptr_t spy_own_stack_end(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return own_end && own_end - here < STACK_BYTES ? own_end : 0;
}

bool spy_own_stack_is_for_signals(uintptr_t address)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE) &&
	       address - (uintptr_t)stack.ss_sp < stack.ss_size;
}

bool spy_own_stack_is_narrow(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	stack_t stack;

	return !left_at && sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK &&
	       here - (uintptr_t)stack.ss_sp < NARROW_BYTES;
}
