/*
 * shim/state/subsystem.h: what a part of the shim may want to do at the turns in the life of the process, of a recording, and
 * of a thread. entry/subsystems.c lists who does; whoever makes a turn (lifecycle.c, ready.c, thread.c, gap.c,
 * session_stream.c) walks that list with SPY_EACH and knows none of them by name.
 *
 * Rows are walked from the first to the last; at the end of a recording from the last to the first. Nothing here is on the
 * way of a call that finds its room.
 */
#ifndef CUDASPY_SHIM_SUBSYSTEM_H
#define CUDASPY_SHIM_SUBSYSTEM_H

#include <stdbool.h>
#include <stdint.h>

struct spy_board;
struct spy_thread;

/* All of a row but the name may be missing. */
struct spy_subsystem {
	const char *name;

	/* ---- the process ---- */

	/* The library is loaded: before its first look-up or call, perhaps before any constructor, when most of the C library
	 * does not work yet. Also where nothing will be recorded. Against nothing: other threads wait. */
	void (*load)(void);

	/* The same, behind all of them, and only where something may be recorded. */
	void (*init)(void);

	/* The library's constructor: the environment can be read and set, and no other thread exists if the library was
	 * loaded with the program. Also where nothing will be recorded. */
	void (*arrange)(void);

	/* In a child that was forked, within fork or at the child's first call: what threads of the parent held is free. No other
	 * thread; locks of the C library may be held by nobody, so nothing is allocated. The session reads as zeros. */
	void (*forked)(void);

	/* A forked child is about to begin a recording of its own: what its parent's calls left is forgotten. False: not yet,
	 * it is tried again at the next call. */
	bool (*forget_parent)(void);

	/* ---- a recording ---- */

	/* The first page of its board is filled: before it begins, and anew, within a handler of SIGBUS or a slow path, where
	 * somebody has truncated the board's file. Allocates and locks nothing. */
	void (*fill_board)(struct spy_board *board);

	/* It begins, has a folder and a board (spy_session), and is not active yet. frequency: cycles a second. One thread;
	 * others wait for it or go on unrecorded. */
	void (*begin)(uint64_t frequency);

	/* It is active: the first records of its own stream. Against calls of other threads. */
	void (*first_records)(void);

	/* The session's stream has moved on to another part of the recording, and has written nothing there. Session lock held: records
	 * are written with spy_session_put. What belongs to threads is written by `repeat`. */
	void (*part_begins)(void);

	/* It ends, perhaps by a signal handler's _exit: no thread begins anything from here on that is not done when it dies. */
	void (*stop)(void);

	/* It ends, not by a signal handler: the last records. Other threads still make calls. */
	void (*end)(void);

	/* It has ended, perhaps by a signal handler's _exit, and no thread stores packets any more: what the board says becomes
	 * final. Other threads may still write to their packets. */
	void (*final)(void);

	/* ---- a thread: on the thread itself, on the recorder's own stack ---- */

	/* It has got a slot; its stream may have no packet yet. */
	void (*thread_begins)(struct spy_thread *thread);

	/* Its stream goes on where a reader may not know what was before (a first packet, a window, another part): writes it again. */
	void (*repeat)(struct spy_thread *thread);

	/* A packet is full, or there was none: the next one is there. Calls may be in progress. */
	void (*packet)(struct spy_thread *thread);

	/* A while has passed: does what is due at `now` (cycles). At a call's begin, or where a packet is full, on the stack of the
	 * caller. between: no call of the thread is in progress, but for one that begins. What needs the thread awake asks that. */
	void (*look)(struct spy_thread *thread, uint64_t now, bool between);

	/* May something become due by itself? Where nobody says so, a dormant thread does not read the clock. */
	bool (*has_time)(void);

	/* Recording is dormant, and the thread has no call in progress: it records nothing from now on; and it does again. */
	void (*thread_sleeps)(struct spy_thread *thread, uint64_t now);
	void (*thread_wakes)(struct spy_thread *thread);

	/* It ends, and has its slot still. */
	void (*thread_ends)(struct spy_thread *thread);
};

/* The rows, and behind them one without a name. Before the library is loaded there are none. */
extern const struct spy_subsystem *spy_subsystems;

#define SPY_EACH(slot, ...) \
	do { \
		for (const struct spy_subsystem *each = spy_subsystems; each->name; each++) \
			if (each->slot) \
				each->slot(__VA_ARGS__); \
	} while (0)

#define SPY_EACH_BACKWARDS(slot) \
	do { \
		const struct spy_subsystem *each = spy_subsystems; \
\
		while (each->name) \
			each++; \
		while (each != spy_subsystems) \
			if ((--each)->slot) \
				each->slot(); \
	} while (0)

/* lifecycle.c: begins the recording unless there is one. SPY_SESSION_ACTIVE, or why this process records nothing: _NONE not
 * yet, _BEGINNING another thread is at it. NULL before the library is loaded. */
extern int (*spy_begin_recording)(void);

#endif
