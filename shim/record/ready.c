/*
 * shim/record/ready.c: the slow path of spy_enter: a thread's first call, a full packet, or no
 * room. Runs on the application's threads.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include "process/own_stack.h"
#include "process/options.h"
#include "record/truncation.h"
#include "record/message.h"
#include "lib/clock.h"
#include "state/session.h"
#include "state/subsystem.h"
#include "state/thread.h"

/* The thread's first call, or the first of a forked child. again: another thread is just
 * beginning the session. */
static struct spy_thread *first_call(bool *again)
{
	int state = spy_begin_recording ? spy_begin_recording() : SPY_SESSION_NONE;

	*again = state == SPY_SESSION_BEGINNING;
	return state == SPY_SESSION_ACTIVE ? spy_thread_begin() : NULL;
}

static void record_owner(struct spy_thread *thread)
{
	spy_thread_write_name(thread);
	SPY_EACH(repeat, thread);
}

/* A full packet, or none yet. */
static bool find_room(struct spy_thread *thread)
{
	uint64_t begun = spy_overhead_begin();
	uint64_t before = thread->file.seq;
	bool first = !thread->packet;

	if (!spy_thread_next_packet(thread))
		return false;
	/* With a bound the packet that said whose the slot is may be deleted. */
	if (first || (spy_options_keeps_packets() && thread->file.seq != before))
		record_owner(thread);
	SPY_EACH(packet, thread);
	SPY_EACH(look, thread, begun, !thread->depth);
	spy_truncation_watch();
	spy_truncation_repair(thread);
	if (atomic_load(&spy_session->damaged))
		spy_warn_damaged();
	spy_overhead_end(thread, begun);
	return true;
}

/* A call made by the code below, by an allocator that is not libc's, say, is not recorded. */
static __thread bool in_here;

struct getting_ready {
	struct spy_thread *thread; /* the caller's, ready or NULL in the end */
	bool again; /* not now, but soon */
};

static void get_ready_on_own_stack(void *data)
{
	struct getting_ready *get = data;

	in_here = true;
	get->again = false;
	get->thread = spy_self; /* a handler's call may have begun it just before */
	if (!get->thread->page || !spy_session_active())
		get->thread = first_call(&get->again);
	if (get->thread && get->thread->asleep && spy_window_is_open())
		spy_thread_wake(get->thread);
	/* Also where the thread took over a packet, and its name filled it. */
	if (get->thread && !get->thread->asleep &&
	    get->thread->head >= spy_thread_limit(get->thread))
		find_room(get->thread);
	in_here = false;
}

#define AWAIT_MS 5000
#define AWAIT_STEP_MS 10

/* Until no other thread is at it any more; false: that lasts too long. The signals are as the
 * application has them. */
static bool await_beginning(void)
{
	const struct timespec step = {.tv_nsec = AWAIT_STEP_MS * 1000000};
	static _Atomic bool in_vain;
	uint64_t begun = spy_clock_monotonic();
	int error = errno;

	/* Who begins it wakes all; the time is for one that was forked away, or jumped out of its handler. */
	while (spy_session->state == SPY_SESSION_BEGINNING && !in_vain) {
		spy_syscall(SYS_futex, &spy_session->state, FUTEX_WAIT_PRIVATE,
			    SPY_SESSION_BEGINNING, &step, NULL, 0);
		in_vain = spy_clock_monotonic() - begun >= AWAIT_MS * 1000000ull;
	}
	errno = error;
	return spy_session->state != SPY_SESSION_BEGINNING;
}

static struct spy_thread *get_ready(void)
{
	struct getting_ready get = {.again = true};

	while (get.again && await_beginning())
		spy_own_stack_run(get_ready_on_own_stack, &get);
	return get.thread;
}

/*
 * That there was no slot, until when it is not asked again (cycles), and in which session: a forked
 * child's is another one. While the disk is full, or all slots are taken, a lost call must not cost
 * more than counting it.
 */
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
	spy_fork_handle();
	if (has_no_slot() || spy_own_stack_is_narrow()) {
		spy_session_count_lost();
		return NULL;
	}
	thread = spy_self;
	/* One that sleeps through a window would not count what it loses. */
	if (!thread->retry_at || spy_clock() >= thread->retry_at ||
	    (thread->asleep && spy_window_is_open()))
		thread = get_ready();
	if (!thread) {
		remember_no_slot();
		spy_session_count_lost();
		return NULL;
	}
	no_slot.until = 0;
	if (thread->asleep)
		return thread;
	if (thread->head >= thread->full_at) {
		spy_thread_count_lost(thread);
		return NULL;
	}
	return thread;
}

bool spy_thread_find_room(const struct spy_thread *thread)
{
	if (in_here || thread != spy_self || !spy_session_active() || spy_own_stack_is_narrow() ||
	    (thread->retry_at && spy_clock() < thread->retry_at))
		return false;
	return get_ready() == thread && thread->head < thread->full_at;
}

/* ---- while recording is dormant -------------------------------------------------------------- */

#define LOOK_AFTER_US 50 /* on average */
#define STEP_MOST 64 /* calls from one look at the clock to the next */

/* Where calls come in quick succession the clock is read once in many of them. */
static uint32_t next_step(const struct spy_thread *thread, uint64_t now)
{
	uint64_t elapsed = now - thread->looked_at;
	uint64_t wanted = atomic_load(&spy_session->frequency) / 1000000 * LOOK_AFTER_US;

	if (!thread->looked_at || elapsed / STEP_MOST >= wanted)
		return 1;
	if (elapsed * STEP_MOST <= wanted * thread->look_step)
		return STEP_MOST;
	return (uint32_t)(wanted * thread->look_step / elapsed) ?: 1;
}

static void sleep_on_own_stack(void *data)
{
	struct spy_thread *thread = data;

	in_here = true;
	/* Of what was before, all is written down. */
	if (spy_thread_counts_late(thread) || spy_thread_missed_counting(thread))
		spy_thread_wake(thread);
	spy_thread_sleep(thread);
	in_here = false;
}

static bool may_be_due(void)
{
	for (const struct spy_subsystem *each = spy_subsystems; each->name; each++)
		if (each->has_time && each->has_time())
			return true;
	return false;
}

bool spy_thread_look(struct spy_thread *thread)
{
	uint64_t now;

	if (in_here || spy_own_stack_is_narrow())
		return false;
	if (!thread->asleep || spy_thread_counts_late(thread) || spy_thread_missed_counting(thread))
		spy_own_stack_run(sleep_on_own_stack, thread);
	if (may_be_due()) {
		now = spy_clock();
		thread->until_look = thread->look_step = next_step(thread, now);
		thread->looked_at = now;
		SPY_EACH(look, thread, now, true);
	} else {
		thread->until_look = thread->look_step = STEP_MOST;
	}
	/* It fell asleep between two cost windows, the second of which has begun. */
	if (spy_thread_missed_counting(thread))
		spy_own_stack_run(sleep_on_own_stack, thread);
	return spy_window_is_open();
}
