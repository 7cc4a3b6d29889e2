/*
 * shim/record/thread.c: threads get slots, slots get packets, and slots are given back. Runs on the
 * application's threads, at a thread's first call, when a packet is full, and in the destructor of
 * a thread key when a thread ends.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "lib/bounds.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "record/message.h"
#include "record/sched.h"
#include "state/session.h"
#include "state/subsystem.h"
#include "state/thread.h"

/* Frees the slot when a thread ends. A process has one key, made when the library is loaded. */
static pthread_key_t end_key;
static bool have_end_key;

static void thread_ended_on_own_stack(void *data)
{
	struct spy_thread *thread = data;

	/* In a forked child the slot is not used: the memory reads as zeros. */
	if (spy_self == thread && thread->page && spy_session_active())
		spy_thread_end(thread);
	spy_self_reset();
}

static void thread_ended(void *data)
{
	spy_own_stack_run(thread_ended_on_own_stack, data);
}

void spy_thread_init(void)
{
	have_end_key = pthread_key_create(&end_key, thread_ended) == 0;
}

/* ---- packets -------------------------------------------------------------------------------- */

static void use_room(struct spy_thread *thread)
{
	thread->packet = thread->file.packet;
	spy_thread_use_room(thread, spy_stream_limit(&thread->file));
}

/* Where the recording has gone on to another part, the next call looks for room again. Pairs with begin_part (parts.c):
 * either we see the part, or our limit goes behind our back. */
static void set_room(struct spy_thread *thread)
{
	use_room(thread);
	thread->row = NULL;
	if (spy_stream_is_behind(&thread->file))
		spy_thread_call_back(thread);
}

/* What there is of the packet, in the part before, serves until there is room in the next one. */
static bool make_do(struct spy_thread *thread)
{
	if (!thread->packet)
		return false;
	use_room(thread);
	return thread->head < thread->full_at;
}

static void record_owner(struct spy_thread *thread)
{
	if (thread->file.kind != SPY_STREAM_CALLS)
		return;
	spy_thread_write_name(thread);
	SPY_EACH(repeat, thread);
}

/* Moves to the next packet. False: no room; the old packet stays, full. */
bool spy_thread_next_packet(struct spy_thread *thread)
{
	bool behind = spy_stream_is_behind(&thread->file);
	uint64_t now = spy_clock();
	int error;

	/* It had moved on already when it was called back. */
	if (!behind && thread->packet && !spy_thread_limit(thread) && make_do(thread)) {
		set_room(thread);
		return true;
	}
	if (now < thread->retry_at)
		return behind && make_do(thread);
	error = spy_stream_make_room(thread);
	if (error) {
		/* A full disk stays full for a while: do not ask again at each call. */
		thread->retry_at = now + spy_session->frequency / 10;
		spy_warn_not_stored(error);
		return behind && make_do(thread);
	}
	thread->retry_at = 0;
	set_room(thread);
	if (behind)
		record_owner(thread);
	return true;
}

void *spy_thread_append(struct spy_thread *thread, enum spy_event event, size_t bytes)
{
	struct spy_rec_other *record;

	if ((!thread->packet || thread->head + bytes > spy_thread_limit(thread)) &&
	    !spy_thread_next_packet(thread))
		return NULL;
	record = (struct spy_rec_other *)thread->head;
	record->time = spy_clock();
	record->event = event;
	return record;
}

void spy_thread_commit(struct spy_thread *thread, size_t bytes)
{
	const struct spy_rec_other *record = (const struct spy_rec_other *)thread->head;

	spy_thread_publish(thread, record->time, bytes);
}

void spy_thread_write_name(struct spy_thread *thread)
{
	struct spy_rec_thread *record = spy_thread_append(thread, SPY_EV_THREAD, sizeof(*record));

	if (!record)
		return;
	record->reserved = 0;
	record->tid = thread->tid;
	memset(record->name, 0, sizeof(record->name));
	prctl(PR_GET_NAME, record->name);
	spy_thread_commit(thread, sizeof(*record));
}

void spy_thread_flush_counts(struct spy_thread *thread)
{
	struct spy_slot_page *page = thread->page;
	const uint16_t *fn = spy_session->board->counter_fn;
	uint64_t packet = thread->file.seq;

	for (size_t i = 0; i < SPY_BOARD_COUNTERS; i++) {
		struct spy_rec_count *record;

		if (!page->counts[i])
			continue;
		record = spy_thread_append(thread, SPY_EV_COUNT, sizeof(*record));
		if (!record || spy_stream_is_deleted(&thread->file))
			return; /* they stay on the board */
		record->fn = spy_board_see(fn[i]);
		record->tid = thread->tid;
		record->count = page->counts[i];
		page->counts[i] = 0;
		spy_thread_commit(thread, sizeof(*record));
	}
	/* With a bound the packet that said whose these are may be deleted. */
	if (spy_options_keeps_packets() && thread->file.seq != packet)
		spy_thread_write_name(thread);
}

/* ---- dormant times --------------------------------------------------------------------------- */

static void forget_counts(struct spy_thread *thread)
{
	memset(thread->page->counts, 0, sizeof(thread->page->counts));
}

/* What belongs to no packet is not recorded; the packet stays with the slot. */
static void lie_down(struct spy_thread *thread)
{
	thread->asleep = true;
	thread->page->asleep = 1;
	thread->packet = NULL;
	spy_thread_lose_room(thread);
	thread->row = NULL;
	thread->until_look = 1;
}

void spy_thread_sleep(struct spy_thread *thread)
{
	uint64_t now = spy_clock();

	if (thread->asleep)
		return;
	thread->depth = 0;
	thread->detail_level = SPY_DETAIL_NONE;
	spy_board_show(thread->page->depth, 0);
	if (thread->packet)
		spy_thread_flush_counts(thread);
	SPY_EACH(thread_sleeps, thread, now);
	lie_down(thread);
}

/* Times since before the window are none of its. */
static void begin_anew(struct spy_thread *thread)
{
	thread->turn = spy_window_turn();
	thread->gaps = (struct spy_gaps){0};
	thread->left_at = spy_clock();
	thread->ran_at = thread->delay_at = thread->idle_ns = 0;
	spy_thread_look_at(thread, 0);
	thread->poll_is_late = false;
	if (spy_probing)
		spy_sched_begin_thread(thread);
}

void spy_thread_wake(struct spy_thread *thread)
{
	if (!thread->asleep)
		return;
	thread->asleep = false;
	thread->page->asleep = 0;
	thread->until_look = 0;
	thread->dormant_frame = 0;
	thread->detail_level = SPY_DETAIL_NONE;
	/* What was counted meanwhile is of no window, or all that is known of a cost window. */
	if (!thread->counts_turn)
		forget_counts(thread);
	if (thread->file.packet) {
		use_room(thread);
		if (spy_stream_is_behind(&thread->file))
			spy_thread_next_packet(thread);
	} else if (thread->counts_turn) {
		spy_thread_next_packet(thread);
	}
	begin_anew(thread);
	if (thread->packet) { /* else with its first packet: ready.c */
		spy_thread_write_name(thread);
		SPY_EACH(repeat, thread);
		if (thread->counts_turn)
			spy_thread_flush_counts(thread);
	}
	SPY_EACH(thread_wakes, thread);
}

void spy_thread_renew(struct spy_thread *thread)
{
	begin_anew(thread);
	SPY_EACH(repeat, thread);
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* A new one. Session lock held. */
static struct spy_thread *make_slot(void)
{
	uint32_t slot = spy_session->slots;
	struct spy_thread *thread;

	if (slot == SPY_BOARD_SLOTS)
		return NULL;
	thread = &spy_threads[slot];
	thread->page = spy_board_page(spy_session->board, slot);
	if (!thread->page)
		return NULL;
	thread->slot = slot;
	spy_session->slots++;
	spy_board_show(spy_session->board->slots, spy_session->slots);
	return thread;
}

/* A free slot, or a new one. Session lock held. */
static struct spy_thread *take_slot(void)
{
	uint32_t slot = spy_session->free_slot;
	struct spy_thread *thread;

	if (!slot)
		return make_slot();
	thread = &spy_threads[slot];
	spy_session->free_slot = thread->next_free;
	return thread;
}

struct spy_thread *spy_thread_take(enum spy_stream_kind kind)
{
	struct spy_thread *thread;

	if (!spy_lock(&spy_session->lock))
		return NULL;
	thread = make_slot();
	if (thread) {
		spy_session->alive++;
		thread->file.kind = kind;
		atomic_store(&spy_session->taken[kind], thread);
	}
	spy_unlock(&spy_session->lock);
	return thread;
}

struct spy_thread *spy_thread_begin(void)
{
	struct spy_bounds stack = spy_bounds_of_self(spy_own_stack_left_at());
	struct spy_thread *thread;
	bool reused;

	if (!spy_lock(&spy_session->lock))
		return NULL;
	thread = take_slot();
	if (thread)
		spy_session->alive++;
	spy_unlock(&spy_session->lock);
	if (!thread)
		return NULL;
	thread->tid = (uint32_t)spy_syscall(SYS_gettid);
	thread->depth = 0;
	thread->detail_level = SPY_DETAIL_NONE;
	thread->device = 0;
	thread->context = 0;
	memset(&thread->inspect, 0, sizeof(thread->inspect));
	thread->stack_begin = stack.begin;
	thread->stack_end = stack.end;
	reused = thread->packet;
	spy_board_show(thread->page->tid, thread->tid);
	thread->page->wait_kind = 0;
	thread->page->outside_kind = 0;
	thread->query = (struct spy_query){0};
	thread->poll_served = 0;
	thread->poll_is_late = false;
	thread->n_holds = 0;
	memset(thread->holds, 0, sizeof(thread->holds));
	memset(thread->acquired, 0, sizeof(thread->acquired));
	thread->row = NULL;
	thread->serves_cuda = false;
	thread->gaps = (struct spy_gaps){0};
	thread->python_asked = NULL;
	thread->python_state = 0;
	__atomic_store_n(&thread->handle, pthread_self(), __ATOMIC_RELAXED);
	/* Pairs with wait.c, which finds the slot by it: the page is there. */
	__atomic_store_n(&spy_session->slot_tids[thread->slot], thread->tid, __ATOMIC_RELEASE);
	thread->dormant_frame = 0;
	thread->turn = spy_window_turn();
	thread->ran_at = thread->delay_at = thread->idle_ns = 0;
	spy_thread_look_at(thread, 0);
	spy_self = thread;
	if (spy_probing)
		spy_sched_begin_thread(thread);
	if (have_end_key)
		pthread_setspecific(end_key, thread);
	SPY_EACH(thread_begins, thread);
	if (!spy_window_is_open())
		lie_down(thread);
	else if (thread->asleep)
		spy_thread_wake(thread);
	else if (reused && spy_stream_is_behind(&thread->file)) { /* which tells it, too */
		spy_thread_next_packet(thread);
	} else if (reused) { /* else with its first packet: ready.c */
		spy_thread_write_name(thread);
		SPY_EACH(repeat, thread);
	}
	return thread;
}

void spy_thread_end(struct spy_thread *thread)
{
	SPY_EACH(thread_ends, thread);
	if (thread->counts_turn)
		spy_thread_wake(thread);
	if (thread->asleep)
		forget_counts(thread);
	else
		spy_thread_flush_counts(thread);
	spy_board_show(thread->page->depth, 0);
	spy_board_show(thread->page->outside_kind, 0);
	spy_board_show(thread->page->tid, 0);
	__atomic_store_n(&spy_session->slot_tids[thread->slot], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->handle, 0, __ATOMIC_RELAXED);
	thread->depth = 0;
	thread->detail_level = SPY_DETAIL_NONE;
	thread->reentry_frame = 0;
	spy_stream_end(thread);
	if (!spy_lock(&spy_session->lock))
		return; /* the slot is not used any more */
	thread->next_free = spy_session->free_slot;
	spy_session->free_slot = thread->slot;
	spy_unlock(&spy_session->lock);
}
