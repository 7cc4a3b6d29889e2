/*
 * shim/state/recorded.c: what is recorded now, as threads, the board and the trace have it. Runs on the application's threads;
 * the session's lock is held around each change.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include "state/board_fields.h"
#include "state/recorded.h"
#include "state/session.h"

uint8_t spy_recorded_from = SPY_RECORDED;
uint32_t spy_window_changes;
bool spy_probing;
bool spy_cost_without_probes, spy_cost_without_stacks;
struct spy_recorded spy_recorded;

static const struct spy_board no_board;
const struct spy_board *spy_window_board = &no_board;

uint64_t spy_window_opened_at(void)
{
	return atomic_load_explicit(&spy_recorded.recorded_since, memory_order_relaxed);
}

uint32_t spy_window_closes(void)
{
	return atomic_load_explicit(&spy_recorded.closes, memory_order_relaxed);
}

void spy_recorded_reset(bool open)
{
	__atomic_store_n(&spy_window_board, &no_board, __ATOMIC_RELAXED);
	spy_recorded_from = open ? SPY_RECORDED : SPY_DORMANT;
	spy_recorded = (struct spy_recorded){.opened = open};
}

/* ---- records and the board ------------------------------------------------------------------- */

void spy_recorded_fill(struct spy_rec_window *record, enum spy_window_state state, uint64_t before,
		       const char *text)
{
	record->state = (uint16_t)state;
	record->number = spy_recorded.windows;
	record->since = before;
	memset(record->text, 0, sizeof(record->text));
	memcpy(record->text, text, strnlen(text, sizeof(record->text) - 1));
}

void spy_recorded_show(void)
{
	struct spy_board *board = spy_session->board;

	spy_board_show(board->windows, spy_recorded.windows);
	spy_board_show(board->state_since, atomic_load(&spy_recorded.since));
	spy_board_show(board->dormant, !spy_recorded.opened);
}

int spy_window_describe(struct spy_rec_window records[2])
{
	static const char why[] = "a part of the recording begins";
	uint64_t since = atomic_load(&spy_recorded.since);
	bool opened = spy_recorded.opened;
	int n = 0;

	records[0] = records[1] = (struct spy_rec_window){.head.event = SPY_EV_WINDOW};
	if (spy_recorded.windows || !opened)
		spy_recorded_fill(&records[n++], opened ? SPY_WINDOW_OPEN : SPY_WINDOW_CLOSED,
				  since, why);
	if (spy_recorded.counting)
		spy_recorded_fill(&records[n++], SPY_WINDOW_COUNTING, since, why);
	return n;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void apply(uint64_t now)
{
	uint8_t from = !spy_recorded.opened    ? SPY_DORMANT
		       : spy_recorded.counting ? SPY_COUNTED_ONLY
					       : SPY_RECORDED;

	if (from == SPY_RECORDED)
		atomic_store(&spy_recorded.recorded_since, now);
	__atomic_fetch_add(&spy_window_changes, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&spy_recorded_from, from, __ATOMIC_RELEASE);
}

static _Atomic int awaiting; /* threads in spy_window_await */
static uint32_t finished_changes; /* what they wait for: counts up when a change has been made */

uint32_t spy_window_state(bool *open)
{
	uint32_t number = __atomic_load_n(&finished_changes, __ATOMIC_ACQUIRE);

	*open = spy_window_is_open();
	return number;
}

void spy_window_await(uint32_t number)
{
	const struct timespec a_while = {.tv_nsec = 500000000};

	atomic_fetch_add(&awaiting, 1);
	spy_syscall(SYS_futex, &finished_changes, FUTEX_WAIT_PRIVATE, number, &a_while);
	atomic_fetch_sub(&awaiting, 1);
}

void spy_recorded_set(bool open, uint64_t now)
{
	if (open)
		spy_recorded.windows++;
	else if (!spy_recorded.windows)
		spy_recorded.windows = 1; /* which began with the recording */
	spy_recorded.closes += !open;
	atomic_store(&spy_recorded.since, now);
	spy_recorded.opened = open;
	spy_recorded.counting = false;
	apply(now);
	__atomic_fetch_add(&finished_changes, 1, __ATOMIC_SEQ_CST);
	if (atomic_load(&awaiting))
		spy_syscall(SYS_futex, &finished_changes, FUTEX_WAKE_PRIVATE, INT_MAX);
}

bool spy_window_count(bool count, struct spy_rec_window *record)
{
	if (!spy_recorded.opened || count == spy_recorded.counting)
		return false;
	spy_recorded.counting = count;
	apply(record->head.time);
	spy_recorded_fill(record, count ? SPY_WINDOW_COUNTING : SPY_WINDOW_RECORDING,
			  atomic_load(&spy_recorded.since), "cost");
	return true;
}
