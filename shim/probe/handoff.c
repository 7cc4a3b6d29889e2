/*
 * shim/probe/handoff.c: records of how contended locks change hands, and the count of waiters. Runs
 * on the thread that has just released a lock, or is about to wait. No lock, no system call, no
 * allocation.
 */
#include <string.h>
#include "record/board.h"
#include "probe/handoff.h"
#include "probe/wait.h"

#pragma GCC poison malloc calloc realloc fopen

#define LOW_48 ((1ull << 48) - 1)
#define CONTENDED_LEAST 50000 /* cycles: twenty microseconds or so */
#define LOOK_EVERY 8 /* one in so many acquisitions looks whether there are waiters */

struct spy_waiting spy_waiting[SPY_WAITING_BUCKETS];

/* ---- waiters -------------------------------------------------------------------------------- */

/* Pairs with the look at `contended` before a lock is given back (probe.c). */
static void count_in(struct spy_waiting *waiting, uint64_t now)
{
	__atomic_fetch_add(&waiting->threads, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&waiting->contended, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&waiting->since, now, __ATOMIC_RELAXED);
	__atomic_store_n(&waiting->contended, 1, __ATOMIC_SEQ_CST);
}

/*
 * Without waiters a bucket becomes uncontended. Not again and again, for every acquirer and
 * releaser has to fetch the line anew; nor too late, for until then they leave records. A waiter
 * that begins in between finds the flag set, or is found by the second look.
 */
static void look_for_uncontended(struct spy_waiting *waiting, uint64_t now)
{
	if (now - __atomic_load_n(&waiting->since, __ATOMIC_RELAXED) < CONTENDED_LEAST ||
	    __atomic_load_n(&waiting->threads, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&waiting->contended, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&waiting->threads, __ATOMIC_SEQ_CST))
		__atomic_store_n(&waiting->contended, 1, __ATOMIC_SEQ_CST);
}

/* Zero already: a signal handler forked during the wait, and this is the child. */
static void count_out(struct spy_waiting *waiting, uint64_t now)
{
	uint32_t threads = __atomic_load_n(&waiting->threads, __ATOMIC_RELAXED);

	/* Pairs with others_waited: a reader that sees the count sees the time. */
	__atomic_store_n(&waiting->last_leave_time, now, __ATOMIC_RELAXED);
	while (threads && !__atomic_compare_exchange_n(&waiting->threads, &threads, threads - 1,
						       false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void spy_handoff_enter(struct spy_thread *thread, const void *lock, uint64_t now)
{
	count_in(spy_waiting_for(lock), now);
	thread->waiting = spy_waiting_for(lock);
}

/* A signal handler may make a call in between, which does the same at its end. */
static void leave(struct spy_thread *thread, uint64_t now)
{
	struct spy_waiting *waiting = __atomic_exchange_n(&thread->waiting, NULL, __ATOMIC_RELAXED);

	if (!waiting)
		return;
	count_out(waiting, now);
	look_for_uncontended(waiting, now);
}

void spy_handoff_leave(struct spy_thread *thread)
{
	if (thread->waiting)
		leave(thread, spy_clock());
}

void spy_handoff_forget(void)
{
	memset(spy_waiting, 0, sizeof(spy_waiting));
}

/* Did another thread wait for it when it was released at `time`? It may have acquired and
 * released it since. */
static bool others_waited(const struct spy_thread *thread, const struct spy_waiting *waiting,
			  uint64_t time)
{
	uint32_t self = thread->waiting == waiting;

	return __atomic_load_n(&waiting->threads, __ATOMIC_ACQUIRE) > self ||
	       __atomic_load_n(&waiting->last_leave_time, __ATOMIC_RELAXED) >= time;
}

/* ---- records -------------------------------------------------------------------------------- */

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
	uint64_t since = __atomic_load_n(&spy_waiting_for(lock)->since, __ATOMIC_RELAXED);

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
	struct spy_waiting *waiting = spy_waiting_for(lock);
	uint64_t time;
	bool emit;

	if (!thread)
		return;
	time = end_acquired(thread, lock).time;
	/* A thread that has just waited itself may take it hundreds of times before that is
	 * over. */
	emit = time && others_waited(thread, waiting, time);
	if (thread->waiting == waiting)
		leave(thread, spy_clock());
	else if (!time)
		look_for_uncontended(waiting, spy_clock());
	else if (!(time / 64 % LOOK_EVERY))
		look_for_uncontended(waiting, time);
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
	struct spy_waiting *waiting = spy_waiting_for(lock);
	struct spy_thread *thread = spy_caller(__builtin_frame_address(0));
	struct spy_acquired acquired;
	uint64_t now, held_for;
	bool emit;

	if (!thread)
		return;
	now = spy_clock();
	acquired = end_acquired(thread, lock);
	held_for = acquired.time && time > acquired.time ? (time - acquired.time) & LOW_48 : 0;
	/* A thread that slept for the lock itself cannot be certain: glibc then marks the lock,
	 * because others may sleep, too. */
	sure = sure && held_for && !acquired.marked;
	emit = time && (sure || others_waited(thread, waiting, time));
	if (thread->waiting == waiting)
		leave(thread, now);
	else if (!sure)
		look_for_uncontended(waiting, now);
	if (!emit || !spy_thread_try_work(thread, __builtin_frame_address(0)))
		return;
	write_released(thread, kind, lock, time, now, held_for);
	spy_thread_end_work(thread);
}
