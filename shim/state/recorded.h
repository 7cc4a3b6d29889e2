/*
 * shim/state/recorded.h: what is recorded now. Recording may be dormant: then calls leave no records and read no clock, but the
 * tables that the inspectors keep stay right. A window is a time in which calls are recorded (window/window.h says when); in
 * parts of it calls may be only counted, or recorded without probes or stacks (window/cost.h).
 *
 * What is said here is the process's own; the board shows it to others (struct spy_board). Used on the application's
 * threads: the first part by each call, the rest where a window may begin or end.
 */
#ifndef CUDASPY_SHIM_RECORDED_H
#define CUDASPY_SHIM_RECORDED_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"

/* Calls of slots whose enum spy_record is lower are not recorded. Where they are counted (cost.h) it is a number of its own:
 * the dormant path of the assembly counts nothing. */
enum { SPY_RECORDED = SPY_TRANSPARENT + 1, SPY_DORMANT = SPY_INSTANT + 1, SPY_COUNTED_ONLY };
extern uint8_t spy_recorded_from;

static inline uint8_t spy_window_recorded_from(void)
{
	return __atomic_load_n(&spy_recorded_from, __ATOMIC_RELAXED);
}

static inline bool spy_window_is_open(void)
{
	return spy_window_recorded_from() == SPY_RECORDED;
}

/* Counts up when a window begins and when it ends: threads see by it that they missed a change. */
extern uint32_t spy_window_changes;

static inline uint32_t spy_window_turn(void)
{
	return __atomic_load_n(&spy_window_changes, __ATOMIC_RELAXED);
}

/* Is a window open? Returns a number that changes when that does. */
uint32_t spy_window_state(bool *open);

/* Waits until the number is another one, half a second at most. Only on a thread that is not the application's. */
void spy_window_await(uint32_t number);

/* Since when calls are recorded (cycles); 0: since the recording began. */
uint64_t spy_window_opened_at(void);

/* Are calls counted for the time being, in a cost window (cost.h)? To all others that is as if it were dormant. */
static inline bool spy_window_is_counting(void)
{
	return spy_window_recorded_from() == SPY_COUNTED_ONLY;
}

/* How often windows were closed. */
uint32_t spy_window_closes(void);

/* A cost window begins in which calls are counted, or ends. Under the session's lock. False: nothing changes; else the
 * record is filled in. */
bool spy_window_count(bool counting, struct spy_rec_window *record);

/* Waits are to be recorded: the user wants probes. */
extern bool spy_probing;

/* In cost windows without them. */
extern bool spy_cost_without_probes, spy_cost_without_stacks;

static inline bool spy_cost_probes_off(void)
{
	return __builtin_expect(__atomic_load_n(&spy_cost_without_probes, __ATOMIC_RELAXED), 0);
}

static inline bool spy_cost_stacks_off(void)
{
	return __builtin_expect(__atomic_load_n(&spy_cost_without_stacks, __ATOMIC_RELAXED), 0);
}

/* The session's, or one that asks for nothing. */
extern const struct spy_board *spy_window_board;

/* Is somebody outside waiting for an answer? */
static inline bool spy_window_is_asked(void)
{
	const struct spy_board *board = __atomic_load_n(&spy_window_board, __ATOMIC_RELAXED);

	return __atomic_load_n(&board->request, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&board->answered, __ATOMIC_RELAXED);
}

/* ---- changes, and what is said of them: window.c ---------------------------------------------- */

struct spy_recorded {
	uint32_t windows; /* that have been opened */
	_Atomic bool opened; /* a window is open */
	_Atomic bool counting; /* in it calls are only counted, for a while. Session lock */
	_Atomic uint32_t closes;
	_Atomic uint64_t since; /* when the state now began, cycles; 0: when the recording did */
	_Atomic uint64_t recorded_since; /* or when calls were counted last */
};
extern struct spy_recorded spy_recorded;

/* Before there is a session: recording begins so. */
void spy_recorded_reset(bool open);

/* A window opens or closes now (cycles). */
void spy_recorded_set(bool open, uint64_t now);

/* The state in a record, and on the board. before: since when the one before lasted. */
void spy_recorded_fill(struct spy_rec_window *record, enum spy_window_state state, uint64_t before,
		       const char *text);
void spy_recorded_show(void);

/* What a part of the recording begins with: the state now, in so many records. 0: there has been no window but one. */
int spy_window_describe(struct spy_rec_window records[2]);

#endif
