/*
 * shim/window/window.h: recording may be dormant. Then calls leave no records and read no clock, but the tables that
 * the inspectors keep stay right. A window is a time in which calls are recorded.
 *
 * What is said here is the process's own; the board shows it to others (struct spy_board). Used on the application's
 * threads: the first part by each call, the rest where a window may begin or end.
 */
#ifndef CUDASPY_SHIM_WINDOW_H
#define CUDASPY_SHIM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"

struct spy_thread;

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

/* ---- what happens --------------------------------------------------------------------------- */

/* When the library is loaded, behind the options; and in a forked child. */
void spy_window_init(void);

/* A session has begun: its first records. */
void spy_window_begin(void);

/* The session ends. On the recorder's own stack. */
void spy_window_end(void);

/* What a part of the recording begins with: the state now, in so many records. 0: there has been no window but one. */
struct spy_rec_window;
int spy_window_describe(struct spy_rec_window records[2]);

/* Opens or closes; nothing happens if it is so already, or if `holds`, asked when no other thread can change it, says no. why: a
 * few words. Slow; on any stack. */
void spy_window_open(const char *why, bool (*holds)(void));
void spy_window_close(const char *why, bool (*holds)(void));

/* Is recording to be dormant at times, by an option? */
bool spy_window_is_planned(void);

/* The session's, or one that asks for nothing. */
extern const struct spy_board *spy_window_board;

/* Is somebody outside waiting for an answer? */
static inline bool spy_window_is_asked(void)
{
	const struct spy_board *board = __atomic_load_n(&spy_window_board, __ATOMIC_RELAXED);

	return __atomic_load_n(&board->request, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&board->answered, __ATOMIC_RELAXED);
}

/* Is there a time at which something is to happen, or does somebody outside wait for an answer? */
bool spy_window_has_time(void);

/* Does what is due at `now` (cycles), and what somebody outside has asked for. Slow. */
void spy_window_look(struct spy_thread *thread, uint64_t now);

/* cudaProfilerStart or cudaProfilerStop was called. */
void spy_window_profiler(bool start);

/* ---- ranges of NVTX ------------------------------------------------------------------------- */

/* Do ranges open windows? Then each one is compared. */
extern bool spy_window_by_ranges;

/* Does a range of that name, a number of names.h, open a window? If so, it has begun; spy_window_range_ends has to
 * follow when it ends. */
bool spy_window_range_begins(uint32_t name);
void spy_window_range_ends(void);

/* The same for ranges that are known by a number, and that any thread may end. */
void spy_window_range_started(uint32_t name, uint64_t id);
void spy_window_range_ended(uint64_t id);

#endif
