/*
 * shim/probe/handoff.c: records of how contended locks change hands. Runs on the thread that has
 * just released a lock. No lock, no system call, no allocation.
 */
#include "lib/clock.h"
#include "record/board.h"
#include "probe/handoff.h"
#include "probe/waiters.h"

#pragma GCC poison malloc calloc realloc fopen

#define LOW_48 ((1ull << 48) - 1)
#define LOOK_EVERY 8 /* one in so many acquisitions looks whether there are waiters */

/* Not before what has been recorded since: a wait for another lock, a signal handler's call. */
static uint64_t time_for(struct spy_thread *thread, uint64_t time)
{
	uint64_t last = thread->packet->time_end;

	time = time < last ? last : time;
	spy_caller_set_begin(thread, time);
	return time;
}

static void write_acquired(struct spy_thread *thread, const void *lock, uint64_t time)
{
	struct spy_rec_taken *record = spy_caller_room(thread, sizeof(*record));

	if (!record)
		return;
	time = time_for(thread, time);
	*record = (struct spy_rec_taken){
		.time = time,
		.event = SPY_EV_TAKEN,
		.kind = SPY_WAIT_MUTEX,
		.depth = (uint8_t)(thread->depth - 1),
		.fn = spy_board_see(thread->page->fn),
		.outer_fn = thread->calls[0].fn,
		.object = (uintptr_t)lock,
	};
	spy_thread_publish(thread, time, sizeof(*record));
}

/* How the call acquired the lock, if that was at once and the lock was contended ever since;
 * time 0: not so. Its record is written now, or never. */
static struct spy_acquired end_acquired(struct spy_thread *thread, const void *lock)
{
	uint64_t since = __atomic_load_n(&spy_waiters_of(lock)->since, __ATOMIC_RELAXED);

	for (unsigned int i = 1; i <= SPY_ACQUIRED; i++) {
		struct spy_acquired *acquired =
			&thread->acquired[(thread->n_acquired - i) % SPY_ACQUIRED];
		struct spy_acquired was = *acquired;

		if (was.lock != (uintptr_t)lock)
			continue;
		acquired->lock = 0;
		if (was.time < thread->calls[0].start || was.time < since)
			break;
		return was;
	}
	return (struct spy_acquired){0};
}

void spy_handoff_unlocked(const void *lock)
{
	struct spy_thread *thread = spy_caller(__builtin_frame_address(0));
	struct spy_waiters *waiting = spy_waiters_of(lock);
	uint64_t time;
	bool emit;

	if (!thread)
		return;
	spy_waiters_count_handoff(waiting);
	time = end_acquired(thread, lock).time;
	/* A thread that has just waited itself may take it hundreds of times before that is
	 * over. */
	emit = time && spy_waiters_others(thread, waiting, time);
	if (thread->waiting == waiting)
		spy_waiters_leave_at(thread, spy_clock());
	else if (!time)
		spy_waiters_look(thread, waiting, spy_clock());
	else if (!(time / 64 % LOOK_EVERY))
		spy_waiters_look(thread, waiting, time);
	if (!emit || !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	write_acquired(thread, lock, time);
	spy_thread_end_work(thread);
}

static void write_released(struct spy_thread *thread, enum spy_wait_kind kind, const void *lock,
			   uint64_t time, uint64_t now, uint64_t held_for)
{
	struct spy_rec_held *record = spy_caller_room(thread, sizeof(*record));
	uint64_t span = (now - time) / SPY_SPAN_UNIT;

	if (!record)
		return;
	time = time_for(thread, time);
	*record = (struct spy_rec_held){
		.time = time,
		.event = SPY_EV_HELD,
		.kind = (uint8_t)kind,
		.depth = (uint8_t)(thread->depth - 1),
		.fn = spy_board_see(thread->page->fn),
		.outer_fn = thread->calls[0].fn,
		.object = (uintptr_t)lock,
		.span = span < UINT16_MAX ? span : UINT16_MAX,
		.held = held_for,
	};
	spy_thread_publish(thread, time, sizeof(*record));
}

void spy_handoff_released(enum spy_wait_kind kind, const void *lock, uint64_t time, bool sure)
{
	struct spy_waiters *waiting = spy_waiters_of(lock);
	struct spy_thread *thread = spy_caller(__builtin_frame_address(0));
	struct spy_acquired acquired;
	uint64_t now, held_for;
	bool emit;

	if (!thread)
		return;
	now = spy_clock();
	spy_waiters_count_handoff(waiting);
	acquired = end_acquired(thread, lock);
	held_for = acquired.time && time > acquired.time ? (time - acquired.time) & LOW_48 : 0;
	/* A thread that slept for the lock itself cannot be certain: glibc then marks the lock,
	 * because others may sleep, too. */
	sure = sure && held_for && !acquired.marked;
	emit = time && (sure || spy_waiters_others(thread, waiting, time));
	if (thread->waiting == waiting)
		spy_waiters_leave_at(thread, now);
	else
		spy_waiters_look(thread, waiting, now);
	if (!emit || !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	write_released(thread, kind, lock, time, now, held_for);
	spy_thread_end_work(thread);
}
