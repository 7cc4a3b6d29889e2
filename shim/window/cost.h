/*
 * shim/window/cost.h: what recording costs this program, measured in it. For short times, cost windows, calls are only
 * counted, or recorded without probes or without stacks; in neighbouring ones they are recorded with everything. How
 * often each thread makes calls in them is written down (SPY_EV_COST): the analyzer compares.
 *
 * Which kind it is at a time follows from the time of day alone (plan of cost.c), for all processes of all hosts: ranks
 * that wait for each other are slowed down at the same time or not at all. Used on the application's threads.
 */
#ifndef CUDASPY_SHIM_COST_H
#define CUDASPY_SHIM_COST_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"
#include "state/recorded.h"

struct spy_thread;

/* A time of one kind, in cycles. */
struct spy_cost_phase {
	uint64_t begin, end; /* end: UINT64_MAX while nothing is measured */
	uint64_t window; /* as in spy_rec_cost; 0: none of a block */
	uint8_t kind; /* enum spy_cost_kind: what is to be done meanwhile */
};

/* What a thread knows of the phase it is in. */
struct spy_cost_thread {
	struct spy_cost_phase phase;
	uint64_t from; /* since when it is in there, cycles */
	uint64_t calls_at; /* outer_calls then */
	uint64_t delay_ns,
		delayed_ns; /* without a CPU: as of then, and as of the last phase's end */
	uint64_t bare_since; /* in phases without stacks since then, cycles; 0: in one with them */
	uint32_t pause; /* spy_window_pauses when it began to count */
};

/* Calls of the functions that are recorded one by one elsewhere, while they are only counted. */
struct spy_cost_counts {
	uint32_t calls[SPY_FN_MOST];
};

/* When the library is loaded, and in a forked child; and when a session begins. */
void spy_cost_reset(void);
void spy_cost_begin(void);

/* A window of the user's begins or ends: --overhead is about the time in them. Under the session's lock. */
void spy_cost_span(bool begins, uint64_t now);

/* When the present phase ends (cycles); UINT64_MAX: nothing is measured. */
uint64_t spy_cost_due(void);

/* Goes over to the phase of `now` (cycles), if that is a later one. On the recorder's own stack. */
void spy_cost_look(uint64_t now);

/* The thread's phase is over, at the begin of a call of its own: writes it down, and begins the one of `now`. Where
 * there is no room for a record, the time is not used. Behind spy_window_look. Owner only, at work. */
void spy_cost_notice(struct spy_thread *thread, uint64_t now, bool between);

/* The same as the thread goes to sleep, since `now`: for a cost window in which calls are counted (else recording is dormant); and as
 * it wakes. On the recorder's own stack, without a call in progress. */
void spy_cost_sleep(struct spy_thread *thread, uint64_t now);
void spy_cost_wake(struct spy_thread *thread);

/* The process ends, and other threads have not: writes down what they have counted. */
void spy_cost_write_others(void);

/* It has ended: what is not written is lost. */
void spy_cost_count_lost(void);

/* A thread begins; behind spy_thread_sleep's work, if it begins asleep. */
void spy_cost_begin_thread(struct spy_thread *thread);

#endif
