/*
 * shim/record/thread.c: threads get slots, slots get packets: the slow path of spy_enter, and the end of a
 * thread. Runs on the application's threads, at a thread's first call, when a packet is full, and in
 * the destructor of a thread key when a thread ends.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "process/apart.h"
#include "record/board.h"
#include "lib/bounds.h"
#include "lib/calm.h"
#include "process/options.h"
#include "probe/handoff.h"
#include "probe/probe.h"
#include "hook/resolve.h"
#include "record/sched.h"
#include "record/lifecycle.h"
#include "record/message.h"
#include "record/session.h"
#include "process/tear.h"
#include "record/thread.h"

/* All zeros, so always full: what a thread has before its first call. */
static struct spy_thread nobody;

__thread struct spy_thread *spy_self = &nobody;

/* Frees the slot when a thread ends. A process has one key, made when the library is loaded. */
static pthread_key_t end_key;
static bool have_end_key;

static void thread_ended_apart(void *data)
{
	struct spy_thread *thread = data;

	/* In a forked child the slot is the parent's business: the memory reads as zeros. */
	if (spy_self == thread && thread->page && spy_session_active())
		spy_thread_end(thread);
	spy_self = &nobody;
}

static void thread_ended(void *data)
{
	spy_apart(thread_ended_apart, data);
}

void spy_thread_init(void)
{
	have_end_key = pthread_key_create(&end_key, thread_ended) == 0;
}

/* ---- fork -------------------------------------------------------------------------------------- */

/*
 * A signal handler may interrupt spy_enter or spy_leave, fork, and return in the child, too: what it interrupted goes on
 * there and completes a record, in memory that the child has as zeros or not at all. So it is given memory like it, once
 * and for nothing: the thread as it was, full, and pages in place of its packet and of its page of the board.
 */
static __thread struct spy_thread *as_it_was; /* a copy, while the thread forks */
static __thread struct spy_slot_page
	*page_it_had; /* which the short roads may be about to count on */

static struct spy_thread *resumed; /* in the child: the thread that got such memory */

#define THREAD_BYTES sizeof(struct spy_thread)

static void *map_at(void *address, size_t bytes, int flags)
{
	void *map = mmap(address, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

void spy_thread_before_fork(void)
{
	struct spy_thread *thread = spy_self;

	page_it_had = thread->page;
	if (!thread->busy || thread->busy == UINTPTR_MAX)
		return;
	as_it_was = map_at(NULL, THREAD_BYTES, 0);
	if (as_it_was)
		memcpy(as_it_was, thread, THREAD_BYTES);
}

void spy_thread_after_fork(void)
{
	if (as_it_was)
		munmap(as_it_was, THREAD_BYTES);
	as_it_was = NULL;
}

void spy_thread_forked(void)
{
	resumed = NULL;
	if (page_it_had)
		map_at(page_it_had, SPY_BOARD_PAGE, MAP_FIXED_NOREPLACE);
	if (!as_it_was) {
		spy_self = &nobody; /* its slot will be another thread's */
		return;
	}
	map_at(as_it_was->packet, SPY_PACKET_BYTES, MAP_FIXED_NOREPLACE);
	resumed = spy_self;
	memcpy(resumed, as_it_was, THREAD_BYTES);
	resumed->limit = NULL;
	spy_thread_after_fork();
}

bool spy_thread_is_settled(void)
{
	return !resumed;
}

/* It has come back to its own calls, of the child's. */
static void settle(void)
{
	if (spy_self != resumed || resumed->busy)
		return;
	memset(resumed, 0, THREAD_BYTES);
	spy_self = &nobody;
	resumed = NULL;
}

/* ---- packets and slots ------------------------------------------------------------------------- */

static void set_room(struct spy_thread *thread)
{
	thread->packet = thread->file.packet;
	thread->limit = spy_stream_limit(&thread->file);
	thread->row = NULL;
}

/* The counter is in the board, so it survives a SIGKILL. */
void spy_thread_count_lost(struct spy_thread *thread)
{
	thread->file.discarded++;
	if (thread->page)
		__atomic_store_n(&thread->page->lost, thread->page->lost + 1, __ATOMIC_RELAXED);
	if (thread->packet)
		thread->packet->discarded = thread->file.discarded;
}

/* Moves to the next packet. False: no room; the old packet stays, full. */
static bool next_packet(struct spy_thread *thread)
{
	uint64_t now = spy_clock();
	int error;

	if (now < thread->retry_at)
		return false;
	error = spy_stream_make_room(thread);
	if (error) {
		/* A full disk stays full for a while: do not ask again at each call. */
		thread->retry_at = now + spy_session->frequency / 10;
		spy_warn_not_stored(error);
		return false;
	}
	thread->retry_at = 0;
	set_room(thread);
	return true;
}

void *spy_thread_append(struct spy_thread *thread, enum spy_event event, size_t bytes)
{
	struct spy_rec_other *record;

	if ((!thread->packet || thread->head + bytes > thread->limit) && !next_packet(thread))
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

static void write_thread_record(struct spy_thread *thread)
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

	for (size_t i = 0; i < SPY_BOARD_COUNTERS; i++) {
		struct spy_rec_count *record;

		if (!page->counts[i])
			continue;
		record = spy_thread_append(thread, SPY_EV_COUNT, sizeof(*record));
		if (!record)
			return; /* they stay on the board */
		record->fn = fn[i];
		record->tid = thread->tid;
		record->count = page->counts[i];
		page->counts[i] = 0;
		spy_thread_commit(thread, sizeof(*record));
	}
}

/* A free slot, or a new one. Session lock held. */
static struct spy_thread *take_slot(void)
{
	uint32_t slot = spy_session->free_slot;
	struct spy_thread *thread;

	if (slot) {
		thread = &spy_session->threads[slot];
		spy_session->free_slot = thread->next_free;
		return thread;
	}
	if (spy_session->slots == SPY_BOARD_SLOTS)
		return NULL;
	slot = spy_session->slots;
	thread = &spy_session->threads[slot];
	thread->page = spy_board_page(spy_session->board, slot);
	if (!thread->page)
		return NULL;
	thread->slot = slot;
	spy_session->slots++;
	spy_session->board->slots = spy_session->slots;
	return thread;
}

static struct spy_thread *begin_thread(void)
{
	struct spy_bounds stack = spy_bounds_of_self(spy_apart_from());
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
	thread->tid = (uint32_t)syscall(SYS_gettid);
	thread->depth = 0;
	thread->told = SPY_TOLD_NOTHING;
	thread->device = 0;
	thread->context = 0;
	memset(&thread->inspect, 0, sizeof(thread->inspect));
	thread->stack_begin = stack.begin;
	thread->stack_end = stack.end;
	reused = thread->packet;
	spy_board_show(thread->page->tid, thread->tid);
	thread->page->wait_kind = 0;
	thread->n_holds = 0;
	memset(thread->holds, 0, sizeof(thread->holds));
	memset(thread->taken, 0, sizeof(thread->taken));
	thread->row = NULL;
	thread->python_asked = NULL;
	spy_python_ask(&thread->python_asked);
	/* Pairs with wait.c, which finds the slot by it: the page is there. */
	__atomic_store_n(&spy_session->slot_tids[thread->slot], thread->tid, __ATOMIC_RELEASE);
	thread->ran_at = thread->delay_at = thread->idle_ns = 0;
	spy_self = thread;
	if (spy_probing)
		spy_sched_look(thread, 0);
	if (have_end_key)
		pthread_setspecific(end_key, thread);
	if (reused) /* else with its first packet: find_room */
		write_thread_record(thread);
	return thread;
}

void spy_thread_end(struct spy_thread *thread)
{
	spy_handoff_leave(thread);
	spy_thread_flush_counts(thread);
	spy_board_show(thread->page->depth, 0);
	spy_board_show(thread->page->tid, 0);
	__atomic_store_n(&spy_session->slot_tids[thread->slot], 0, __ATOMIC_RELAXED);
	thread->depth = 0;
	thread->told = SPY_TOLD_NOTHING;
	thread->busy = 0;
	spy_stream_end(thread);
	if (!spy_lock(&spy_session->lock))
		return; /* nobody gets the slot any more */
	thread->next_free = spy_session->free_slot;
	spy_session->free_slot = thread->slot;
	spy_unlock(&spy_session->lock);
}

/* The thread's first call, or the first of a forked child. again: another thread is just beginning the session. */
static struct spy_thread *first_call(bool *again)
{
	enum spy_session_state state = spy_lifecycle_begin();

	*again = state == SPY_SESSION_BEGINNING;
	return state == SPY_SESSION_ACTIVE ? begin_thread() : NULL;
}

/* A full packet, or none yet. */
static bool find_room(struct spy_thread *thread)
{
	uint64_t begun = spy_overhead_begin();
	uint64_t before = thread->file.seq;
	bool first = !thread->packet;

	if (!next_packet(thread))
		return false;
	/* With a bound the packet that said whose the slot is may be deleted. */
	if (first || (spy_options_keep_bytes() && thread->file.seq != before))
		write_thread_record(thread);
	spy_modules_look();
	spy_tear_watch();
	spy_tear_mend(thread);
	if (atomic_load(&spy_session->damaged))
		spy_warn_damaged();
	spy_python_ask(&thread->python_asked);
	spy_overhead_end(thread, begun);
	return true;
}

static __thread bool
	in_here; /* a call made by what this calls (an allocator that is not libc's, say) passes unseen */

struct getting_ready {
	struct spy_thread *thread; /* the caller's, ready or NULL in the end */
	bool again; /* not now, but soon */
};

static void get_ready_apart(void *data)
{
	struct getting_ready *get = data;

	in_here = true;
	get->again = false;
	get->thread = spy_self; /* a handler's call may have begun it just before */
	if (!get->thread->page || !spy_session_active())
		get->thread = first_call(&get->again);
	/* Also where the thread took over a packet, and its name filled it. */
	if (get->thread && get->thread->head >= get->thread->limit)
		find_room(get->thread);
	in_here = false;
}

static struct spy_thread *get_ready(void)
{
	struct getting_ready get = {.again = true};

	while (get.again && spy_lifecycle_await())
		spy_apart(get_ready_apart, &get);
	return get.thread;
}

/* That there was no slot, until when it is not asked again (cycles), and in which session: a forked child's is another
 * one. While the disk is full, or all slots are taken, a lost call must not cost more than counting it. */
static __thread struct {
	uint64_t until, session;
} no_slot;

static bool has_no_slot(void)
{
	return no_slot.until && spy_session_active() &&
	       no_slot.session == spy_session->begun.clock && spy_clock() < no_slot.until;
}

static void remember_no_slot(void)
{
	if (!spy_session_active())
		return;
	no_slot.until = spy_clock() + atomic_load(&spy_session->frequency) / 10;
	no_slot.session = spy_session->begun.clock;
}

struct spy_thread *spy_thread_ready(void)
{
	struct spy_thread *thread;

	if (in_here)
		return NULL;
	if (resumed)
		settle();
	if (has_no_slot() || spy_apart_is_narrow()) {
		spy_count_lost_call();
		return NULL;
	}
	thread = spy_self;
	if (!thread->retry_at || spy_clock() >= thread->retry_at)
		thread = get_ready();
	if (!thread) {
		remember_no_slot();
		spy_count_lost_call();
		return NULL;
	}
	no_slot.until = 0;
	if (thread->head >= thread->limit) {
		spy_thread_count_lost(thread);
		return NULL;
	}
	return thread;
}

struct spy_thread *spy_set_busy(uintptr_t *before)
{
	struct spy_thread *thread = spy_self;

	spy_tear_defer(true);
	if (!thread->page)
		return NULL;
	*before = thread->busy;
	thread->busy = UINTPTR_MAX;
	return thread;
}

void spy_restore_busy(struct spy_thread *thread, uintptr_t before)
{
	if (thread == spy_self) /* its slot may be another thread's by now */
		thread->busy = before;
	spy_tear_defer(false);
}

uint64_t spy_overhead_begin(void)
{
	return spy_clock();
}

void spy_overhead_end(struct spy_thread *thread, uint64_t begun)
{
	if (thread && thread->packet)
		thread->packet->overhead += spy_clock() - begun;
}

uint8_t spy_thread_device(struct spy_thread *thread)
{
	return (uint8_t)(thread->device - 1);
}

void spy_thread_set_device(struct spy_thread *thread, uint8_t device, uint16_t context)
{
	thread->device = (uint8_t)(device + 1);
	thread->context = context;
	spy_board_show(thread->page->device, device);
	spy_board_show(thread->page->context, context);
}
