/*
 * shim/probe/outside.h: a thread that makes CUDA calls waits between two of them. Around the
 * functions of the C library that block. Runs on the thread that waits; what takes less than 20 us
 * leaves no record and costs two looks at the clock.
 *
 * While the function blocks nothing is kept but what the board shows of it. A wait that is left by
 * longjmp or a cancellation leaves that behind; readers see that the thread has gone on
 * (trace_format.h).
 */
#ifndef CUDASPY_SHIM_OUTSIDE_H
#define CUDASPY_SHIM_OUTSIDE_H

#include "lib/clock.h"
#include "stack/stack.h"
#include "state/thread.h"

/* Cycles from which a wait leaves a record. */
extern uint64_t spy_outside_least;

/* Cycles from which on a call keeps an event loop waiting: poll.h. */
extern uint64_t spy_poll_long_call;

/* When a session begins. frequency: cycles a second. */
void spy_outside_begin(uint64_t frequency);

/* Does the calling thread make CUDA calls, and is it in none? What a thread of CUDA's waits for between the program's
 * functions is CUDA's affair. */
static inline bool spy_is_outside(void)
{
	return !spy_self->depth && spy_self->packet && !spy_self->reentry_frame &&
	       !spy_self->serves_cuda;
}

/* A wait of the calling thread, which is at work on its records, goes into one; it began at `begun` and is there from
 * wait->start on. */
void spy_outside_add(struct spy_thread *thread, const struct spy_outside *wait, uint64_t begun,
		     uint64_t now);

/* Writes the record of a wait that has just ended. errno stays. */
void spy_outside_write(const struct spy_outside *wait);

/* The thread whose pthread_t that is, among those that make CUDA calls; 0: unknown. */
uint32_t spy_outside_thread(pthread_t handle);

/* The board shows a wait that is about to begin; and that it has ended. errno stays. */
void spy_outside_show(const struct spy_outside *wait);
void spy_outside_hide(void);

/* The same by who is at work on the thread's records. */
void spy_outside_show_on(struct spy_slot_page *page, const struct spy_outside *wait);

/*
 * The end of a function that is not inlined, and whose caller is the application: the call, and the
 * record of a wait. Before the call: fields of struct spy_outside that the board shows; behind it:
 * those of the record, which may name the call's `result`.
 */
#define WAIT_SHOWN(type, shown, call, ...) \
	uint64_t start_ = spy_clock(); \
	type result; \
\
	SHOW_WAIT(shown); \
	result = call; \
	spy_outside_hide(); \
	if (__builtin_expect(spy_clock() - start_ >= spy_outside_least, 0)) \
		WRITE_WAIT(__VA_ARGS__); \
	return result;

#define SPY_FIELDS(...) __VA_ARGS__

#define SHOW_WAIT(shown) \
	spy_outside_show(&(struct spy_outside){.start = start_, \
					       .caller = (uintptr_t)__builtin_return_address(0), \
					       SPY_FIELDS shown})

#define WRITE_WAIT(...) \
	spy_outside_write( \
		&(struct spy_outside){.start = start_, \
				      .caller = (uintptr_t)__builtin_return_address(0), \
				      .sp = (uintptr_t)__builtin_dwarf_cfa(), \
				      .bp = *(const uintptr_t *)__builtin_frame_address(0), \
				      __VA_ARGS__})

/* The same for what is known before: fields that the board shows and the record has; and those that
 * only the record has. */
#define WAIT_OUTSIDE(type, known, call, ...) \
	WAIT_SHOWN(type, known, call, SPY_FIELDS known, __VA_ARGS__)

#endif
