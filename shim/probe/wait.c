/*
 * shim/probe/wait.c: a wait inside a call becomes a record, with the lock's holder and the holder's
 * call. Runs on the waiter: before it blocks, where time is negligible, and when it goes on,
 * perhaps with a lock of the driver's, where time matters: a few stores, no lock, no system call.
 * Nothing here allocates: the wait may be for an allocator's lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "lib/clock.h"
#include "record/board.h"
#include "lib/signal_guard.h"
#include "lib/thread_name.h"
#include "probe/caller.h"
#include "probe/waiters.h"
#include "state/session.h"
#include "probe/wait.h"

#pragma GCC poison malloc calloc realloc fopen

#define DURATION_MAX ((1ull << 48) - 1)
#define LOW_48 ((1ull << 48) - 1)

/* ---- the holder ----------------------------------------------------------------------------- */

/* The slot of a thread, 0 none. Slots are few. */
static uint32_t find_slot(uint32_t tid)
{
	uint32_t slots = atomic_load_explicit(&spy_session->slots, memory_order_relaxed);

	for (uint32_t slot = 1; slot < slots && slot < SPY_BOARD_SLOTS; slot++)
		if (__atomic_load_n(&spy_session->slot_tids[slot], __ATOMIC_ACQUIRE) == tid)
			return slot;
	return 0;
}

/*
 * Which of our threads has a lock that names no holder? Other ones than we; 0 none. A spin lock is
 * waited for a hundred nanoseconds, and each slot costs three: with many threads not all are looked
 * at.
 */
#define SLOTS_LOOKED_AT 128

static uint32_t find_reader(const struct spy_thread *self, const void *object)
{
	uint32_t slots = atomic_load_explicit(&spy_session->slots, memory_order_relaxed);

	for (uint32_t slot = 1; slot < slots && slot < SLOTS_LOOKED_AT; slot++) {
		const struct spy_thread *thread = &spy_threads[slot];
		uint32_t tid = __atomic_load_n(&spy_session->slot_tids[slot], __ATOMIC_ACQUIRE);

		/* A thread inside no call has released what it acquired in one. */
		if (thread == self || !tid ||
		    !__atomic_load_n(&thread->page->depth, __ATOMIC_ACQUIRE))
			continue;
		for (unsigned int i = 0; i < SPY_HOLDS; i++)
			if (__atomic_load_n(&thread->holds[i], __ATOMIC_RELAXED) ==
			    (uintptr_t)object)
				return tid;
	}
	return 0;
}

/* Has the thread's name been written? If not, the caller is to do it. */
static bool is_name_emitted(uint32_t tid)
{
	for (unsigned int i = 0; i < SPY_NONCUDA_THREADS; i++) {
		uint32_t known = 0;

		if (__atomic_compare_exchange_n(&spy_session->noncuda_threads[i], &known, tid,
						false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return false;
		if (known == tid)
			return true;
	}
	return true;
}

/*
 * A holder that makes no calls: one of the driver's own threads, most likely. Its name goes into
 * the trace once: into the stream of the thread that waits for it. The session's would need its
 * lock, whose owner may be waiting for the very allocator that we are in.
 */
static void emit_noncuda_thread(struct spy_thread *thread, uint32_t tid)
{
	struct spy_rec_non_cuda_thread *record;
	char name[16] = "";
	SPY_SIGNAL_GUARD;

	if (is_name_emitted(tid) || !spy_thread_name(tid, name) ||
	    !(record = spy_caller_room(thread, sizeof(*record))))
		return;
	*record = (struct spy_rec_non_cuda_thread){
		.head = {.time = spy_clock(), .event = SPY_EV_NON_CUDA_THREAD}, .tid = tid};
	memcpy(record->name, name, sizeof(record->name));
	spy_thread_publish(thread, record->head.time, sizeof(*record));
}

void spy_wait_name_holder(struct spy_thread *thread, uint32_t tid)
{
	if (!find_slot(tid))
		emit_noncuda_thread(thread, tid);
}

/* What the board says of the holder. */
static void look_at_holder(struct spy_wait *wait)
{
	uint32_t slot = find_slot(wait->holder);
	const struct spy_slot_page *page = slot ? spy_threads[slot].page : NULL;

	if (!page) {
		wait->flags |= SPY_WAIT_IDLE_HOLDER;
		emit_noncuda_thread(wait->thread, wait->holder);
		return;
	}
	/* Pairs with publish_depth: fn and since are those of a call that has begun. */
	if (!__atomic_load_n(&page->depth, __ATOMIC_ACQUIRE)) {
		wait->flags |= SPY_WAIT_IDLE_HOLDER;
		return;
	}
	wait->holder_fn = spy_board_see(page->outer_fn);
	wait->holder_since = spy_board_see(page->since);
	wait->holder_device = spy_board_see(page->device);
	wait->holder_stream = spy_board_see(page->stream);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Waits that come in rows: the record of the one before, if this one can join it. */
static struct spy_rec_wait *row_of(const struct spy_thread *thread, const struct spy_wait *wait)
{
	struct spy_rec_wait *last = (struct spy_rec_wait *)thread->row;

	if (wait->kind < SPY_WAIT_FUTEX || !last || thread->head != thread->row + sizeof(*last) ||
	    last->kind != wait->kind || last->object != wait->object ||
	    last->depth != thread->depth - 1 || last->fn != spy_board_see(thread->page->fn) ||
	    last->time < thread->calls[last->depth].start)
		return NULL;
	return last;
}

/* No room for more records in this call: a row of the kind takes it in, whatever it was for.
 * Starting a GPU up takes some hundred requests to the kernel. */
static struct spy_rec_wait *any_row(const struct spy_thread *thread, const struct spy_wait *wait)
{
	struct spy_rec_wait *last = (struct spy_rec_wait *)thread->row;

	if (spy_thread_has_room(thread, sizeof(*last)) || !last ||
	    thread->head != thread->row + sizeof(*last) || last->kind != wait->kind ||
	    last->outer_fn != thread->calls[0].fn || last->time < thread->calls[0].start)
		return NULL;
	if (wait->object != last->object)
		last->object = 0;
	if (wait->holder != last->holder) /* of locks: several threads had them */
		last->holder = 0;
	last->flags = (last->flags & wait->flags) |
		      ((last->flags | wait->flags) & (SPY_WAIT_FAILED | SPY_WAIT_UNFOLLOWED));
	return last;
}

/* glibc counts readers and waiting readers in this word (nptl/pthread_rwlock_common.c). */
static bool has_readers(const struct spy_wait *wait)
{
	const pthread_rwlock_t *lock = (const pthread_rwlock_t *)wait->object;

	return (wait->kind == SPY_WAIT_READ || wait->kind == SPY_WAIT_WRITE) &&
	       __atomic_load_n(&lock->__data.__readers, __ATOMIC_RELAXED) >> 3;
}

/* The holder and its call. The caller is among the waiters already. */
static void find_holder(struct spy_wait *wait, const uint32_t *owner)
{
	if (owner)
		wait->holder = spy_wait_owner(owner);
	if (!wait->holder && wait->kind != SPY_WAIT_MUTEX) {
		wait->holder = find_reader(wait->thread, (const void *)wait->object);
		if (wait->holder && wait->kind != SPY_WAIT_SPIN)
			wait->flags |= SPY_WAIT_READERS;
	}
	if (!wait->holder) {
		/* A reader outside of CUDA calls is not in the table. */
		wait->flags |= has_readers(wait) ? SPY_WAIT_READERS : SPY_WAIT_FREE;
		return;
	}
	look_at_holder(wait);
}

/*
 * The same of a lock that pauses (waiters.h): what the lock itself says, and the call of a thread
 * that it names. The table of readers, which others write, is not searched.
 */
static void find_named_holder(struct spy_wait *wait, const uint32_t *owner)
{
	wait->flags |= SPY_WAIT_UNFOLLOWED;
	if (owner)
		wait->holder = spy_wait_owner(owner);
	if (wait->holder)
		look_at_holder(wait);
	else if (has_readers(wait))
		wait->flags |= SPY_WAIT_READERS;
	else if (owner)
		wait->flags |= SPY_WAIT_FREE;
}

/* A call that never returns leaves no record of its wait: the board has it. */
static void show_wait(struct spy_slot_page *page, const struct spy_wait *wait)
{
	page->wait_object = wait->object;
	page->wait_holder = wait->holder;
	page->wait_since = wait->start;
	__atomic_store_n(&page->wait_kind, wait->kind + 1u, __ATOMIC_RELEASE);
}

void spy_wait_begin(struct spy_wait *wait, enum spy_wait_kind kind, const void *object,
		    const void *owner, unsigned int flags)
{
	struct spy_thread *thread =
		spy_cost_probes_off() ? NULL : spy_caller(__builtin_frame_address(0));

	if (thread && !spy_thread_try_work(thread, __builtin_frame_address(0)))
		thread = NULL;
	wait->thread = thread;
	if (!thread)
		return;
	wait->call = thread->calls[thread->depth - 1].frame;
	wait->kind = (uint8_t)kind;
	wait->object = (uintptr_t)object;
	wait->flags = (uint8_t)flags;
	wait->holder = 0;
	wait->holder_fn = 0;
	wait->holder_since = wait->holder_stream = 0;
	wait->holder_device = SPY_DEVICE_NONE;
	if (spy_wait_is_lock(kind)) {
		spy_waiters_leave(thread);
		wait->start = spy_clock();
		wait->pauses = spy_waiters_pauses(object);
		if (spy_waiters_enter(thread, object, wait->start))
			find_holder(wait, owner);
		else
			find_named_holder(wait, owner);
	} else {
		wait->start = spy_clock();
	}
	spy_caller_set_begin(thread, wait->start);
	show_wait(thread->page, wait);
	spy_thread_end_work(thread);
}

static void write_wait(struct spy_thread *thread, const struct spy_wait *wait, uint64_t now)
{
	uint64_t duration = now - wait->start;
	struct spy_rec_wait *record = row_of(thread, wait);

	if (!record)
		record = any_row(thread, wait);
	if (record) {
		record->duration = (record->duration + duration) & LOW_48;
		record->span = (now - (record->time - record->span)) & LOW_48;
		record->count++;
		record->time = now;
		spy_thread_publish(thread, now, 0);
		return;
	}
	record = spy_caller_room(thread, sizeof(*record));
	if (!record)
		return;
	if (duration > DURATION_MAX)
		duration = DURATION_MAX;
	*record = (struct spy_rec_wait){
		.time = now,
		.event = SPY_EV_WAIT,
		.kind = wait->kind,
		.depth = (uint8_t)(thread->depth - 1),
		.fn = spy_board_see(thread->page->fn),
		.outer_fn = thread->calls[0].fn,
		.duration = duration,
		.device = (uint8_t)(thread->device - 1),
		.flags = wait->flags,
		.object = wait->object,
		.count = 1,
		.holder = wait->holder,
		.holder_since = wait->holder_since,
		.holder_stream = wait->holder_stream & LOW_48,
		.holder_device = wait->holder_device,
		.span = duration,
		.holder_fn = wait->holder_fn,
	};
	thread->row = thread->head;
	spy_thread_publish(thread, now, sizeof(*record));
}

/* Is the thread inside the same call as when it began to wait? Less than spy_caller asks, for it may have the lock. Then its
 * work begins, before the look at the clock: a signal handler's records must not come between. */
static bool still_waits(const struct spy_wait *wait)
{
	struct spy_thread *thread = wait->thread;

	return thread == spy_self && spy_probing && !thread->reentry_frame && thread->depth &&
	       thread->calls[thread->depth - 1].frame == wait->call &&
	       spy_thread_try_work(thread, __builtin_frame_address(0));
}

void spy_wait_end(struct spy_wait *wait, bool failed)
{
	struct spy_thread *thread = wait->thread;
	bool lock = spy_wait_is_lock(wait->kind);
	uint64_t now;

	if (!thread)
		return;
	if (failed && lock && thread->waiting == spy_waiters_of((const void *)wait->object))
		spy_waiters_leave(thread);
	if (!still_waits(wait))
		return;
	now = spy_clock();
	__atomic_store_n(&thread->page->wait_kind, 0, __ATOMIC_RELAXED);
	if (lock) {
		thread->waited += now - wait->start;
		if (spy_waiters_pauses((const void *)wait->object) != wait->pauses)
			wait->flags |= SPY_WAIT_UNFOLLOWED;
	}
	if (failed)
		wait->flags |= SPY_WAIT_FAILED;
	write_wait(thread, wait, now);
	spy_thread_end_work(thread);
}
