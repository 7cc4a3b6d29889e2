/*
 * analyzer/idle/loops.h: event loops that wait for GPUs between two polls, and what was ready when they polled again. Of each
 * thread, filled in by idle.c.
 *
 * The recorder says of the first poll behind each long call how many descriptors had input by then (SPY_WAIT_LATE). The calls
 * in question are those since the last such poll that took SPY_LOOKED_AT_NS or more; of these the time counts that they
 * waited for a GPU. When a descriptor became ready is unknown: it waited for that long at most.
 *
 * A loop that serves waits where it polls when there is nothing to do. What never does asks for progress while it waits for
 * something else (MPI, UCX). One wait is enough: asyncio does not wait in a poll while it has callbacks to call, which is nearly
 * always the case of a server with much to do.
 */
#ifndef CUDASPY_IDLE_LOOPS_H
#define CUDASPY_IDLE_LOOPS_H

#include "account/account.h"

#define LOOPS_MOST 8 /* places where a thread polls that are told apart; more are left out */
#define LOOP_CALLS \
	8 /* places of calls of a loop that are told apart; the last stands for all others, too */

/* Waits for GPUs in calls at one place. */
struct loop_call {
	uint32_t fn;
	uint64_t address; /* the return address */
	uint64_t ns, longest_ns;
	uint64_t at_ns; /* the longest one's begin */
	const struct stack *stack; /* NULL: none */
};

struct loop_calls {
	uint64_t ns; /* of all of them */
	size_t n;
	struct loop_call all[LOOP_CALLS];
};

struct event_loop {
	uint64_t address; /* of the poll: the return address */
	uint64_t at_ns; /* the last one */
	const struct stack *stack; /* of one of them; NULL: none */
	uint64_t waits; /* so often it waited in such a poll, or would have */
	uint64_t late; /* times that it polled again after such waits */
	uint64_t blocked; /* of these, with descriptors that were ready */
	uint64_t most_ready; /* at one time */
	uint64_t longest_ns; /* for which it was blocked at one time, in waits for GPUs */
	struct loop_calls calls; /* in which it was blocked */
};

struct loops {
	struct loop_calls since_poll;
	uint64_t since_ns; /* the first one's begin */
	struct event_loop *all[LOOPS_MOST]; /* owned */
	size_t n;
};

/* A call of the thread has returned. loops: NULL: none yet; owned by the caller (loops_free). */
void loops_see_call(struct loops **loops, const struct completed_call *call);

/* A record of a wait between calls. */
void loops_see_wait(struct loops *loops, const struct record *record, const struct stack *stack);

void loops_free(struct loops *loops);

/* Adds up what the calls at each place took. */
void loop_calls_join(struct loop_calls *sum, const struct loop_calls *calls);

#endif
