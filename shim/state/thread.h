/*
 * shim/state/thread.h: what belongs to one recorded thread.
 *
 * Threads own slots: a slot is a struct spy_thread, a stream and a page of the board. A slot whose
 * thread ended serves the next new thread. The structures live in memory that the kernel hands to a
 * forked child as zeros, and all zeros means: full, so take the slow path. That is the whole of
 * fork handling on the hot path.
 */
#ifndef CUDASPY_SHIM_THREAD_H
#define CUDASPY_SHIM_THREAD_H

#include <pthread.h>
#include "state/call.h"
#include "state/inspectors.h"
#include "record/stream_file.h"
#include "window/cost.h"

#define SPY_DEPTH_MAX 64 /* calls in progress, one inside the other, that are recorded */
#define SPY_RECORD_MAX 64 /* bytes of the largest record of a call */
#define SPY_CALL_ROOM ((size_t)SPY_DEPTH_MAX * SPY_RECORD_MAX)
/* Kept for waits inside calls, which cannot change packets */
#define SPY_WAIT_ROOM ((size_t)12 << 10)
#define SPY_HOLDS 8 /* locks without a named holder that a thread has at one time */

/* A call in progress. A copy, not a pointer to the frame: a call that was left by an exception or
 * longjmp leaves no frame behind. */
struct spy_progress {
	uintptr_t frame; /* where its frame was */
	uint64_t start; /* 0 for a counted call, which reads no clock */
	uint16_t fn;
	bool inspected; /* its arguments are recorded, or those of a call around it */
	bool timed; /* it is, or one around it */
};

/* A lock that others wait for, and that the thread has taken without a wait. */
struct spy_acquired {
	uintptr_t lock; /* 0: none */
	uint64_t time; /* right before it was tried */
	bool marked; /* by glibc, as if a thread slept for it: acquired again after a condition */
};

#define SPY_ACQUIRED 8

/* stack.c: a place that has had its first calls, and whose next ones are rarely due. */
struct spy_settled {
	uint64_t key; /* 0: none */
	uint64_t longest; /* as the table of places had it last */
};

#define SPY_SETTLED 16

/* gap.c: long times without a call, by the number of calls between one and the next. */
#define SPY_GAPS 8

struct spy_gaps {
	uint64_t calls_at; /* calls of the slot when the last one ended */
	uint64_t next_at; /* and when the next one is expected to begin; 0: not known */
	uint32_t between[SPY_GAPS]; /* a ring */
	uint32_t n;
	bool behind; /* the call in progress is the first one behind it */
};

struct spy_waiters;

/* query.c: the thread has asked whether work of a GPU has ended, and it had not. All times in cycles. */
struct spy_query {
	uint64_t object; /* the event or stream; 0: nothing is asked for */
	/* The first answer; from when on no record speaks of it; the last one. */
	uint64_t begun, since, last;
	uint64_t calls; /* records of calls by then */
	/* The thread's time on a CPU, a short time before the last answer. */
	uint64_t ran_ns, ran_at;
	uintptr_t caller; /* return address of the first question */
	uint32_t others; /* questions for others since */
	bool written; /* there is a record of it */
	bool slept; /* since the last answer */
};

/* Aligned: one's end shares no pair of cache lines with the next one's head, which changes with
 * each record. */
struct spy_thread {
	/* Invariant while recording: head + 64 * (calls in progress) <= end of the packet. A new
	 * call may begin while head < limit = end - SPY_CALL_ROOM - SPY_WAIT_ROOM. */
	uint8_t *head; /* where the next record goes */
	/* By the owner; NULL by the thread that begins another part of the recording (parts/parts.c): the owner's next call
	 * takes the slow path. spy_thread_limit. */
	uint8_t *limit;
	uint8_t *end; /* of the packet, as far as records inside calls go; NULL: there is none */
	struct spy_packet *packet;
	struct spy_slot_page *page;
	uint8_t depth; /* calls in progress */
	uint8_t detail_level; /* enum spy_detail_level: of calls[0] */
	uint8_t device; /* shadow of the current device, +1; 0 unknown */
	uint16_t context; /* shadow of the current context's number */
	/* the re-entry frame: the one that spy_enter or spy_leave is at work on, 0 none */
	uintptr_t reentry_frame;
	struct spy_gaps gaps;
	uint64_t left_at; /* when its last timed call of depth 0 returned */
	uint64_t outer_calls; /* timed ones of depth 0 that have returned */
	/* It looks for what is due at the next call from then on (cycles; gap.c). 0 by the sampler's thread, which asks where it is
	 * (sample/ask.c): spy_thread_look_from. */
	uint64_t look_at;
	uint64_t ran_at; /* sched.c: when the thread's time on a CPU was looked at (cycles) */
	struct spy_waiters *waiting; /* waiters.c: for a lock of these; NULL: for none */
	struct spy_waiters *paused; /* the thread has paused tracking of these; NULL: none */
	struct spy_progress calls[SPY_DEPTH_MAX]; /* [0, depth), outermost first */
	/* probe.c and wait.c */
	uint8_t *row; /* the last record of a wait, for the next of its kind to join */
	struct spy_acquired acquired[SPY_ACQUIRED]; /* a ring */
	unsigned int n_acquired;
	unsigned int n_holds;
	uintptr_t holds[SPY_HOLDS]; /* locks held as reader, and spin locks; others look */
	uint64_t waited; /* for locks, since ran_at (cycles) */
	struct spy_query query;
	/* sched.c */
	uint64_t ran_ns; /* the thread's time on a CPU, as of ran_at */
	uint64_t delay_at, delay_ns; /* as long it was ready and had none: as of when, the same */
	/* The same, at the last look after a read or write (outside.c). */
	uint64_t outside_delay_ns;
	/* probe/poll.h: the descriptor that was returned last, for its input; the next poll is the first one since a long
	 * call. */
	uint64_t poll_served;
	bool poll_is_late;
	uint64_t idle_ns; /* on no CPU, for whatever reason, between the two */
	bool lacked_cpu; /* and it had waited for one a good part of the time before */

	uint64_t stacks_until; /* stack.c: its share is used up until then (cycles) */
	uint64_t stacks_time_until; /* and its share of time */
	struct spy_settled settled[SPY_SETTLED];
	void *(*python_asked)(
		void); /* the interpreter's function that this thread has called before */
	uintptr_t python_state; /* what it said last; 0: none. Read by the sampler, too */

	/* While the thread is asleep: the place of the outermost call in progress (call.c: place_of), 0 none; after how many calls it
	 * looks for what may be due, and when it did so last (cycles). until_look: 0 while it is awake. */
	uintptr_t dormant_frame;
	uint32_t until_look, look_step;
	uint64_t looked_at;
	uint32_t counts_turn; /* spy_window_turn when it began to count its calls; 0: it does not */

	/* cold */
	uint8_t *full_at; /* the limit as the owner has set it */
	uintptr_t stack_begin, stack_end; /* of the thread's own stack; 0, 0 unknown */
	struct spy_stream_file file;
	struct spy_cut cut;
	uint32_t slot;
	uint32_t tid;
	pthread_t handle; /* 0: the slot is free */
	uint32_t next_free; /* slot number, 0 none: while on the session's list of free slots */
	bool serves_cuda; /* it is CUDA's, and runs functions of the program's (inspect/host_function.c) */
	bool asleep; /* it has no packet for the time being: recording is, or was, dormant */
	uint32_t turn; /* spy_window_turn when it was last awake */
	uint64_t retry_at; /* no room for a packet: do not try again before (cycles) */
	struct spy_inspect_cache inspect;
	struct spy_cost_thread cost;
	struct spy_cost_counts counts; /* while it counts its calls */
} __attribute__((aligned(128)));

static inline uint8_t *spy_thread_limit(const struct spy_thread *thread)
{
	return __atomic_load_n(&thread->limit, __ATOMIC_RELAXED);
}

/* From when on it looks for what is due. */
static inline uint64_t spy_thread_look_from(const struct spy_thread *thread)
{
	return __atomic_load_n(&thread->look_at, __ATOMIC_RELAXED);
}

/* What another thread has asked for meanwhile it may not see: that one asks again. */
static inline void spy_thread_look_at(struct spy_thread *thread, uint64_t at)
{
	__atomic_store_n(&thread->look_at, at, __ATOMIC_RELAXED);
}

/* So far its records go, and a new call may begin. Owner only. */
static inline void spy_thread_use_room(struct spy_thread *thread, uint8_t *limit)
{
	thread->full_at = limit;
	thread->end = limit + SPY_CALL_ROOM + SPY_WAIT_ROOM;
	__atomic_store_n(&thread->limit, limit, __ATOMIC_SEQ_CST);
}

/* From here on the owner's calls look for room. Any thread. */
static inline void spy_thread_call_back(struct spy_thread *thread)
{
	__atomic_store_n(&thread->limit, NULL, __ATOMIC_SEQ_CST);
}

/* Its packet is none of its any more, or not for the time being. Owner only. */
static inline void spy_thread_lose_room(struct spy_thread *thread)
{
	thread->full_at = thread->end = NULL;
	spy_thread_call_back(thread);
}

/* Is there room for a record inside the calls in progress, which cannot change packets? */
static inline bool spy_thread_has_room(const struct spy_thread *thread, size_t bytes)
{
	return thread->head + bytes + (size_t)thread->depth * SPY_RECORD_MAX <= thread->end;
}

/* The same for a record between calls, which may be the thread's last one: room that the tail's file
 * has, too. */
static inline bool spy_thread_has_room_outside(const struct spy_thread *thread, size_t bytes)
{
	return spy_thread_has_room(thread, bytes) &&
	       thread->head + bytes <= (uint8_t *)thread->packet + thread->file.room;
}

/* The record of so many bytes that was written at the head is complete: shows it to readers.
 * Owner only. */
static inline void spy_thread_publish(struct spy_thread *thread, uint64_t time, size_t bytes)
{
	thread->head += bytes;
	spy_packet_publish(thread->packet, time,
			   (uint64_t)(thread->head - (uint8_t *)thread->packet) * 8);
}

/* Around what a signal handler's calls must not interrupt: a record in the making. here: a
 * frame's address. */
static inline void spy_thread_begin_work(struct spy_thread *thread, const void *here)
{
	thread->reentry_frame = (uintptr_t)here;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void spy_thread_end_work(struct spy_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->reentry_frame = 0;
}

/* The same, unless a signal handler forked right before it, and this is the child: the thread's
 * memory is zero. */
static inline bool spy_thread_try_work(struct spy_thread *thread, const void *here)
{
	spy_thread_begin_work(thread, here);
	if (__builtin_expect(thread->packet != NULL, 1))
		return true;
	spy_thread_end_work(thread);
	return false;
}

/* The calling thread's; never NULL, points to an empty one before the thread's first call. */
extern __thread struct spy_thread *spy_self;

/* Gives the calling thread the empty one again. */
void spy_self_reset(void);

/* Prepares for the end of threads; once, when the library is loaded. */
void spy_thread_init(void);

/* fork.c: around a fork, on the thread that forks. */
void spy_fork_before(void);
void spy_fork_after(void);
void spy_fork_child(void);

/* May a forked child begin a session? Not while a record of its parent's is in the making. */
bool spy_fork_is_handled(void);

/* In a child: forgets what was in the making once the thread is back in its own calls. */
void spy_fork_handle(void);

/*
 * ready.c: the slow path of spy_enter: begins the session, gives the thread a slot, moves to a new
 * packet. Returns the thread, ready for one more record, or NULL if this call cannot be recorded
 * (it has been counted as lost where that is possible).
 */
struct spy_thread *spy_thread_ready(void);

/* Recording is dormant, and a call of the thread's own begins: the thread goes to sleep, if it has not yet, and looks
 * for what is due. True: a window is open now. */
bool spy_thread_look(struct spy_thread *thread);

/* A window is open; the thread has not yet noticed a change. Ranges of NVTX that are open are told. Owner only, at
 * work. */
void spy_thread_renew(struct spy_thread *thread);

static inline bool spy_thread_missed_a_change(const struct spy_thread *thread)
{
	return __builtin_expect(thread->turn != spy_window_turn(), 0);
}

/* Does it count its calls, and a later cost window has begun since? */
static inline bool spy_thread_counts_late(const struct spy_thread *thread)
{
	return thread->counts_turn && thread->counts_turn != spy_window_turn();
}

/* Is it asleep since before the cost window in which calls are counted, and does not count its own? */
static inline bool spy_thread_missed_counting(const struct spy_thread *thread)
{
	return thread->asleep && !thread->counts_turn && spy_window_is_counting();
}

/* thread.c: a thread without calls in progress records nothing from here on; and it does again. Owner only. */
void spy_thread_sleep(struct spy_thread *thread);
void spy_thread_wake(struct spy_thread *thread);

/* The same between two calls, for records that are no call's: a new packet, if the thread has a slot
 * and its packet is full. Its calls lose nothing if there is no room. */
bool spy_thread_find_room(const struct spy_thread *thread);

/* Gives the calling thread a slot, and writes its name if the slot has a packet already. NULL:
 * there is no slot. */
struct spy_thread *spy_thread_begin(void);

/* Takes a slot that is no thread's, and has been none's: its stream has records of another kind. Its user is its owner.
 * NULL: there is none left. */
struct spy_thread *spy_thread_take(enum spy_stream_kind kind);

/* Moves to the next packet. False: no room; the old packet stays, full. */
bool spy_thread_next_packet(struct spy_thread *thread);

/* Writes the record of the thread's number and name. */
void spy_thread_write_name(struct spy_thread *thread);

/* Appends a record of `bytes` bytes that is not a call's; fills in head.time. Owner only. Returns
 * where it lies, or NULL if there is no room. */
void *spy_thread_append(struct spy_thread *thread, enum spy_event event, size_t bytes);

/* The record that spy_thread_append returned is filled in: shows it to readers. */
void spy_thread_commit(struct spy_thread *thread, size_t bytes);

/* One record could not be written. Owner only. */
void spy_thread_count_lost(struct spy_thread *thread);

/* A call was lost that is no one thread's (session.c). Any thread, before there is a session,
 * too. */
void spy_session_count_lost(void);

/* Writes the thread's counters as records and gives the slot back. Owner only. */
void spy_thread_end(struct spy_thread *thread);

/* Writes the counters as records. Owner only. */
void spy_thread_flush_counts(struct spy_thread *thread);

/* The current thread's shadows;of inspect_context.c. */
uint8_t spy_thread_device(struct spy_thread *thread); /* SPY_DEVICE_NONE unknown */
void spy_thread_set_device(struct spy_thread *thread, uint8_t device, uint16_t context);

/* Our own slow work: what runs between these two is booked to cudaspy, not to the application. */
uint64_t spy_overhead_begin(void);
void spy_overhead_end(struct spy_thread *thread, uint64_t begun);

/* gap.c: is the call that returns the first one behind a long gap, or the last one before the next, if
 * that comes after as many calls as it did the last time? */
static inline bool spy_gap_is_beside(const struct spy_thread *thread)
{
	return thread->gaps.behind | (thread->page->calls + 1 == thread->gaps.next_at);
}

#endif
