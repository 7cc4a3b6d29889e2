/*
 * shim/record/sched.h: was the thread running during a long call? Its time on a CPU, and the time
 * it was ready and had none, as the kernel accounts for them.
 */
#ifndef CUDASPY_SHIM_SCHED_H
#define CUDASPY_SHIM_SCHED_H

#include "state/thread.h"

/* A call lasted for so many cycles or more: the account of its thread is of interest. */
extern uint64_t spy_long_call;

/* Cycles after which a look at it is too old for the next call. */
extern uint64_t spy_look_again;

/* When a session begins. frequency: cycles a second. */
void spy_sched_begin(uint64_t frequency);

/* The calling thread's: looks at it and writes the record. After a long call: now is the time of the
 * call's own record. */
void spy_sched_look(struct spy_thread *thread, uint64_t now);

/* The same before a call that begins at `start`. */
/* Sets when the thread looks next: look_at. */
void spy_sched_look_later(struct spy_thread *thread);

bool spy_sched_look_before(struct spy_thread *thread, uint64_t start);

/* The calling thread's time on a CPU so far; 0: unknown. */
uint64_t spy_sched_ran_ns(void);

/* The calling thread's time ready to run and on no CPU, so far; 0 where the kernel does not say. Slow: it reads a file. */
uint64_t spy_sched_delay_ns(void);

/* Only remembers what it says, for the next look. */
void spy_sched_begin_thread(struct spy_thread *thread);

#endif
