/*
 * shim/window/window.c: windows open and close: at a time, or because somebody asks. What is recorded now stands in
 * state/recorded.c. Runs on
 * the application's threads, on the recorder's own stack; the session's lock is held around each change.
 */
#include <stdatomic.h>
#include <string.h>
#include "cudaspy/windows.h"
#include "parts/parts.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "state/recorded.h"
#include "state/session.h"
#include "window/cost.h"
#include "window/plan.h"
#include "window/window.h"

static _Atomic uint64_t due = UINT64_MAX; /* the next change that has a time, cycles */

/* What somebody outside has asked for: windows of so many cycles, at moments that all programs that were asked have in common. */
static struct {
	bool active;
	uint64_t for_cycles; /* 0: without end */
	uint64_t first_ns, every_ns, next_ns; /* since the epoch; 0: once; 0: none is to come */
} asked;

/* ---- times ----------------------------------------------------------------------------------- */

static uint64_t cycles(uint64_t ns)
{
	if (ns > SPY_TIME_MOST_NS)
		ns = SPY_TIME_MOST_NS;
	return (uint64_t)((double)ns * (double)atomic_load(&spy_session->frequency) / 1e9);
}

/* A window was opened: how long? */
static uint64_t end_of_window(uint64_t now)
{
	if (asked.for_cycles)
		return now + asked.for_cycles;
	return spy_plan.duration_ns ? now + cycles(spy_plan.duration_ns) : UINT64_MAX;
}

#define LONG_NS 1000000 /* a time of which the last part is measured anew */

/* Waits for the time of the next window that was asked for: the frequency is not exact, and clocks are set. False: it has
 * come. */
static bool await_next(void)
{
	struct spy_clock_pair now;
	uint64_t ns;

	spy_clock_read_pair(&now);
	if (now.realtime_ns >= asked.next_ns)
		return false;
	ns = asked.next_ns - now.realtime_ns;
	atomic_store(&due, now.clock + cycles(ns < LONG_NS ? ns : ns - ns / 16));
	return true;
}

/* A window was closed: when is the next one to begin by itself? One that was late, for want of calls, puts off no other. */
static void set_next(void)
{
	struct spy_clock_pair now;
	uint64_t every = asked.every_ns;

	atomic_store(&due, UINT64_MAX);
	asked.next_ns = 0;
	if (!every)
		return;
	spy_clock_read_pair(&now);
	asked.next_ns = now.realtime_ns + every -
			(now.realtime_ns + every - asked.first_ns % every) % every;
	await_next();
}

/* ---- changes --------------------------------------------------------------------------------- */

struct change {
	bool open;
	const char *why;
	bool (*holds)(void); /* NULL: in any case */
};

static bool is_in_vain(const struct change *change)
{
	return change->open == spy_recorded.opened || (change->holds && !change->holds());
}

/* Where there is no session yet, the next one begins so. */
static void change_early(const struct change *change)
{
	if (!is_in_vain(change))
		spy_recorded_set(change->open, 0);
}

static void change_on_own_stack(void *data)
{
	const struct change *change = data;
	bool is_so = change->open == spy_recorded.opened;
	struct spy_rec_window *record;
	uint64_t before, now;

	if (!spy_session_active()) {
		change_early(change);
		return;
	}
	/* Another thread may be about to change it, for a reason that does not hold any more: only under the lock it is
	 * known. */
	if (is_so && !change->holds)
		return;
	record = is_so ? spy_session_offer(SPY_EV_WINDOW, sizeof(*record))
		       : spy_session_append(SPY_EV_WINDOW, sizeof(*record));
	/* Without the record of its begin a window would not be known as one. One that ends without a record is told
	 * of by the next one's. */
	if (!record && (change->open || is_so))
		return;
	if (record && is_in_vain(change)) {
		spy_unlock(&spy_session->lock);
		return;
	}
	before = atomic_load(&spy_recorded.since);
	now = record ? record->head.time : spy_clock();
	spy_recorded_set(change->open, now);
	if (change->open)
		atomic_store(&due, end_of_window(now));
	else
		set_next();
	spy_recorded_show();
	if (!record)
		return;
	spy_cost_span(change->open, now);
	spy_recorded_fill(record, change->open ? SPY_WINDOW_OPEN : SPY_WINDOW_CLOSED, before,
			  change->why);
	spy_session_commit(sizeof(*record));
}

void spy_window_open(const char *why, bool (*holds)(void))
{
	struct change change = {.open = true, .why = why, .holds = holds};

	spy_own_stack_run(change_on_own_stack, &change);
}

void spy_window_close(const char *why, bool (*holds)(void))
{
	struct change change = {.open = false, .why = why, .holds = holds};

	spy_own_stack_run(change_on_own_stack, &change);
}

/* ---- sessions -------------------------------------------------------------------------------- */

void spy_window_init(void)
{
	spy_plan_read();
	spy_recorded_reset(!spy_plan.dormant);
	spy_cost_reset();
	due = UINT64_MAX;
	memset(&asked, 0, sizeof(asked));
}

void spy_window_begin(void)
{
	uint64_t loaded = spy_loaded.clock;
	struct spy_rec_window *record;
	bool open = spy_recorded.opened;
	uint64_t now = spy_clock();

	__atomic_store_n(&spy_window_board, spy_session->board, __ATOMIC_RELAXED);
	if (spy_plan.delay_ns)
		atomic_store(&spy_plan.not_before, loaded + cycles(spy_plan.delay_ns));
	if (open)
		atomic_store(&due, end_of_window(now));
	else if (spy_plan.delay_ns && spy_plan.capture == SPY_CAPTURE_ALL)
		atomic_store(&due, loaded + cycles(spy_plan.delay_ns));
	spy_cost_begin();
	if (!spy_plan.dormant && open)
		return; /* one window, as far as is known */
	record = spy_session_append(SPY_EV_WINDOW, sizeof(*record));
	if (record) {
		spy_recorded_fill(record, open ? SPY_WINDOW_OPEN : SPY_WINDOW_CLOSED, 0,
				  spy_plan.why);
		spy_session_commit(sizeof(*record));
	}
	spy_recorded_show();
}

void spy_window_end(void)
{
	if (!spy_recorded.opened || !spy_lock(&spy_session->lock))
		return;
	spy_cost_span(false, spy_clock());
	spy_unlock(&spy_session->lock);
}

/* ---- what is due ------------------------------------------------------------------------------ */

bool spy_window_has_time(void)
{
	return atomic_load_explicit(&due, memory_order_relaxed) != UINT64_MAX ||
	       spy_window_is_asked() || (spy_recorded.opened && spy_cost_due() != UINT64_MAX);
}

static void write_mark(const char *text)
{
	struct spy_rec_window *record = spy_session_append(SPY_EV_WINDOW, sizeof(*record));

	if (!record)
		return;
	spy_recorded_fill(record, SPY_WINDOW_MARK, atomic_load(&spy_recorded.since), text);
	spy_session_commit(sizeof(*record));
}

/* Opens now, or at the time that was asked for. */
static void start(const struct spy_board *board)
{
	uint64_t at_ns = board->wanted_at_ns, every_ns = board->wanted_every_ns;
	struct spy_clock_pair now;

	spy_clock_read_pair(&now);
	asked.active = true;
	asked.for_cycles = board->wanted_for_ns ? cycles(board->wanted_for_ns) : 0;
	asked.first_ns = at_ns ?: now.realtime_ns;
	asked.every_ns = every_ns < SPY_TIME_MOST_NS ? every_ns : SPY_TIME_MOST_NS;
	asked.next_ns = 0;
	if (at_ns > now.realtime_ns) {
		spy_window_close("cudaspy start --at", NULL);
		asked.next_ns = at_ns;
		await_next();
	} else if (spy_recorded.opened) {
		atomic_store(&due, end_of_window(now.clock));
	} else {
		spy_window_open("cudaspy start", NULL);
	}
}

static void stop(void)
{
	memset(&asked, 0, sizeof(asked));
	spy_window_close("cudaspy stop", NULL);
	atomic_store(&due, UINT64_MAX);
}

static void rotate(uint32_t request)
{
	struct spy_board *board = spy_session->board;

	spy_board_show(board->rotate_error, (uint32_t)-spy_parts_rotate());
	__atomic_store_n(&board->rotated, request, __ATOMIC_RELEASE);
}

/* One thread follows a request. What it says may be changed meanwhile, and is anything at all. */
static void follow(void)
{
	struct spy_board *board = spy_session->board;
	uint32_t request = __atomic_load_n(&board->request, __ATOMIC_ACQUIRE);
	uint32_t answered = __atomic_load_n(&board->answered, __ATOMIC_ACQUIRE);
	struct spy_board copy = {.wanted = board->wanted,
				 .wanted_at_ns = board->wanted_at_ns,
				 .wanted_every_ns = board->wanted_every_ns,
				 .wanted_for_ns = board->wanted_for_ns};

	memcpy(copy.wanted_text, board->wanted_text, sizeof(copy.wanted_text) - 1);
	if (request == answered ||
	    !__atomic_compare_exchange_n(&board->answered, &answered, request, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (copy.wanted == SPY_WANTED_START)
		start(&copy);
	else if (copy.wanted == SPY_WANTED_STOP)
		stop();
	else if (copy.wanted == SPY_WANTED_MARK)
		write_mark(copy.wanted_text);
	else if (copy.wanted == SPY_WANTED_ROTATE)
		rotate(request);
}

#define RETRY_NS 100000000

/* There was no room for the record of a window's begin: again in a while, unless another time has been set. */
static void put_off(uint64_t now)
{
	uint64_t none = UINT64_MAX;

	atomic_compare_exchange_strong(&due, &none, now + cycles(RETRY_NS));
}

static void look_on_own_stack(void *data)
{
	uint64_t now = *(const uint64_t *)data, at = atomic_load(&due);

	if (spy_window_is_asked())
		follow();
	if (spy_recorded.opened)
		spy_cost_look(now);
	if (now < at || at != atomic_load(&due))
		return;
	/* One thread does it; a change sets the next time. */
	if (!atomic_compare_exchange_strong(&due, &at, UINT64_MAX))
		return;
	if (spy_recorded.opened) {
		spy_window_close(asked.active ? "cudaspy start --for" : "--duration", NULL);
		return;
	}
	if (await_next())
		return;
	spy_window_open(asked.active ? "cudaspy start --at" : spy_plan.why, NULL);
	if (!spy_recorded.opened)
		put_off(now);
}

/* Where nothing is due, which is nearly always, the own stack and its signal mask are not needed. */
void spy_window_look(struct spy_thread *thread, uint64_t now, bool between)
{
	(void)thread;
	(void)between;
	if (now < atomic_load(&due) && (!spy_recorded.opened || now < spy_cost_due()) &&
	    !spy_window_is_asked())
		return;
	if (spy_session_active())
		spy_own_stack_run(look_on_own_stack, &now);
}
