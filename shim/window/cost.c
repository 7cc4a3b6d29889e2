/*
 * shim/window/cost.c: when cost windows are, and what threads write down about them. Runs on the application's threads: at
 * calls, when the time has come, and in slow paths.
 *
 * They follow a plan (cudaspy/cost_plan.h) that is the same for all processes. Lengths differ from frame to frame: short
 * windows follow a program that changes quickly, long ones hold enough calls where there are few. What is drawn in it
 * makes a program's own rounds fall into each kind as often.
 *
 * What a thread has of a window begins at the call by which it notices the window's begin, and ends at the one by which it
 * notices the end: so many calls, each with what was done behind it. A call or a pause that goes on into the next window
 * belongs to the one in which it began. What the switch itself takes is in no window.
 */
#include <stdatomic.h>
#include <string.h>
#include "cudaspy/function_numbers.h"
#include "cudaspy/cost_plan.h"
#include "cudaspy/windows.h"
#include "lib/clock.h"
#include "process/options.h"
#include "record/sched.h"
#include "state/session.h"
#include "state/thread.h"
#include "stack/stack.h"
#include "window/control.h"
#include "window/cost.h"

#define FIRST_AFTER_NS 10000000000ull /* of the recording, unless all of it is measured; … */
/* … with --overhead: the first calls are recorded in any case */
#define CONTROL_AFTER_NS 20000000ull

enum { OFF, SAMPLED, ALL_THE_TIME, CONTROLLED };
static _Atomic int mode;
static uint64_t measured_from; /* cycles */

/* The time of day at a time of the trace's clock. A new one for each frame, in turns. */
static struct anchor {
	_Atomic uint64_t clock, realtime_ns;
} anchors[2];
static _Atomic unsigned int anchor;

static struct spy_cost_phase current; /* under the session's lock */
/* With --overhead: a frame's number, how many of its blocks are measured, and what is done in it besides. */
static _Atomic uint64_t decided;
#define DECIDED_KIND(word) ((uint8_t)(word))
#define DECIDED_BLOCKS(word) ((uint8_t)((word) >> 8))
#define DECIDED_NUMBER(word) ((word) >> 16)
static uint64_t accounted; /* cycles: what was done until then the control knows */
static _Atomic uint64_t current_begin, current_end = UINT64_MAX;

/* ---- the plan -------------------------------------------------------------------------------- */

static double cycles_per_ns(void)
{
	return (double)atomic_load_explicit(&spy_session->frequency, memory_order_relaxed) / 1e9;
}

static void set_anchor(struct anchor *to)
{
	struct spy_clock_pair now;

	spy_clock_read_pair(&now);
	to->clock = now.clock;
	to->realtime_ns = now.realtime_ns;
}

static uint64_t clock_at(const struct anchor *pair, uint64_t realtime_ns)
{
	int64_t ns = (int64_t)(realtime_ns - pair->realtime_ns);

	return pair->clock + (uint64_t)(int64_t)((double)ns * cycles_per_ns());
}

static uint64_t realtime_at(const struct anchor *pair, uint64_t clock)
{
	int64_t past = (int64_t)(clock - pair->clock);

	return pair->realtime_ns + (uint64_t)(int64_t)((double)past / cycles_per_ns());
}

static struct spy_cost_phase phase_from(const struct anchor *pair, uint64_t begin_ns,
					uint64_t end_ns, uint8_t kind)
{
	return (struct spy_cost_phase){
		.begin = clock_at(pair, begin_ns), .end = clock_at(pair, end_ns), .kind = kind};
}

/* So many of the frame's blocks, the first ones. */
static uint32_t blocks_measured(const struct spy_cost_frame *frame, uint64_t begin)
{
	if (mode == CONTROLLED) {
		uint64_t last = atomic_load(&decided);

		return DECIDED_NUMBER(last) == frame->number ? DECIDED_BLOCKS(last) : 0;
	}
	if (mode == ALL_THE_TIME)
		return frame->blocks;
	return begin >= measured_from && frame->sampled ? frame->blocks : 0;
}

static uint8_t kind_besides(uint64_t frame)
{
	uint64_t last = atomic_load(&decided);

	return DECIDED_NUMBER(last) == frame ? DECIDED_KIND(last) : SPY_COST_ALL;
}

/* What is to be done at that time (cycles)? */
static struct spy_cost_phase phase_at(uint64_t now)
{
	const struct anchor *pair = &anchors[atomic_load(&anchor) % 2];
	uint64_t ns = realtime_at(pair, now);
	uint64_t number = ns / SPY_COST_FRAME_NS, begin = number * SPY_COST_FRAME_NS;
	uint64_t end = begin + SPY_COST_FRAME_NS, first, last, block, place;
	struct spy_cost_frame frame = spy_cost_frame(number);
	const uint8_t kinds[SPY_COST_PLACES] = {SPY_COST_ALL, SPY_COST_COUNTING,
						frame.random >> 60 & 1 ? SPY_COST_NO_STACKS
								       : SPY_COST_NO_PROBES};
	uint8_t besides = kind_besides(number);
	struct spy_cost_phase phase;

	if (mode != ALL_THE_TIME && now < measured_from)
		return (struct spy_cost_phase){.end = measured_from, .kind = SPY_COST_ALL};
	first = begin + frame.first_ns;
	last = first +
	       blocks_measured(&frame, clock_at(pair, begin)) * SPY_COST_PLACES * frame.length_ns;
	if (last == first)
		return phase_from(pair, begin, end, besides);
	if (ns < first)
		return phase_from(pair, begin, first, besides);
	if (ns >= last)
		return phase_from(pair, last, end, besides);
	place = (ns - first) / frame.length_ns;
	begin = first + place * frame.length_ns;
	block = place / SPY_COST_PLACES;
	place %= SPY_COST_PLACES;
	phase = phase_from(pair, begin, begin + frame.length_ns,
			   kinds[spy_cost_order(&frame, block)[place]]);
	phase.window = spy_cost_window(number, block, place);
	return phase;
}

/* The same, but not before what is done already. */
static struct spy_cost_phase phase_now(uint64_t now)
{
	uint64_t begin = atomic_load(&current_begin);

	return phase_at(now > begin ? now : begin);
}

/* ---- the process goes over to another phase --------------------------------------------------- */

void spy_cost_reset(void)
{
	mode = OFF;
	current = (struct spy_cost_phase){.end = UINT64_MAX};
	current_begin = 0;
	current_end = UINT64_MAX;
	spy_cost_without_probes = spy_cost_without_stacks = false;
}

void spy_cost_begin(void)
{
	const char *option = spy_options.measure_cost;
	uint32_t ppm = 0;

	decided = 0;
	if (spy_options.overhead && !spy_parse_percent(spy_options.overhead, &ppm))
		ppm = 0;
	if (spy_options.gpu)
		ppm = 0;
	spy_control_begin(ppm);
	/* Times of GPUs are recorded all the time, and their calls have to be. */
	if (spy_options.gpu || (option && !ppm && strcmp(option, "0") == 0))
		return;
	set_anchor(&anchors[0]);
	anchor = 0;
	accounted = anchors[0].clock;
	mode = ppm ? CONTROLLED : option ? ALL_THE_TIME : SAMPLED;
	if (mode != ALL_THE_TIME)
		measured_from =
			clock_at(&anchors[0], anchors[0].realtime_ns +
						      (ppm ? CONTROL_AFTER_NS : FIRST_AFTER_NS));
	else
		measured_from = anchors[0].clock;
	current.end = measured_from;
	atomic_store(&current_end, measured_from);
}

static bool has_no_probes(const struct spy_cost_phase *phase)
{
	return phase->kind == SPY_COST_NO_PROBES || phase->kind == SPY_COST_LEAN;
}

static bool has_no_stacks(const struct spy_cost_phase *phase)
{
	return phase->kind == SPY_COST_NO_STACKS || phase->kind == SPY_COST_LEAN;
}

/* The session's lock is held. */
static bool go_over(const struct spy_cost_phase *phase, struct spy_rec_window *record)
{
	current = *phase;
	atomic_store(&current_begin, phase->begin);
	atomic_store(&current_end, phase->end);
	__atomic_store_n(&spy_cost_without_probes, has_no_probes(phase), __ATOMIC_RELAXED);
	__atomic_store_n(&spy_cost_without_stacks, has_no_stacks(phase), __ATOMIC_RELAXED);
	return spy_window_count(phase->kind == SPY_COST_COUNTING, record);
}

/* What was done since the last time. Behind the end of a phase no thread has made a call. The session's lock is held. */
static void account(uint64_t now)
{
	uint64_t end = current.end < now ? current.end : now;

	if (now <= accounted)
		return;
	if (end < accounted)
		end = accounted;
	spy_control_spent(current.kind, end - accounted, now - end);
	accounted = now;
}

void spy_cost_span(bool begins, uint64_t now)
{
	if (mode != CONTROLLED)
		return;
	if (begins)
		accounted = now;
	else
		account(now);
}

/* A new frame has begun, perhaps. The session's lock is held. */
static void decide(uint64_t now)
{
	struct spy_control_decision decision;
	uint64_t number = realtime_at(&anchors[atomic_load(&anchor) % 2], now) / SPY_COST_FRAME_NS;
	struct spy_cost_frame frame;

	if (DECIDED_NUMBER(atomic_load(&decided)) == number)
		return;
	frame = spy_cost_frame(number);
	decision = spy_control_decide(&frame);
	atomic_store(&decided, number << 16 | decision.blocks << 8 | decision.kind);
}

uint64_t spy_cost_due(void)
{
	return atomic_load_explicit(&current_end, memory_order_relaxed);
}

#define RETRY_NS 100000000

/* There is no room for a record: all stays as it is for a while. */
static void put_off(uint64_t now, uint64_t due)
{
	atomic_compare_exchange_strong(&current_end, &due,
				       now + (uint64_t)(RETRY_NS * cycles_per_ns()));
}

void spy_cost_look(uint64_t now)
{
	unsigned int next = atomic_load(&anchor) + 1;
	uint64_t due = spy_cost_due();
	struct spy_rec_window *record;
	struct spy_cost_phase phase;

	if (mode == OFF || now < due)
		return;
	record = spy_session_offer(SPY_EV_WINDOW, sizeof(*record));
	if (!record) {
		put_off(now, due);
		return;
	}
	if (now - anchors[(next - 1) % 2].clock >
	    (uint64_t)((double)SPY_COST_FRAME_NS * cycles_per_ns())) {
		set_anchor(&anchors[next % 2]);
		atomic_store(&anchor, next);
	}
	if (mode == CONTROLLED) {
		account(now);
		decide(now);
	}
	phase = phase_at(now);
	if (phase.begin > current.begin && go_over(&phase, record))
		spy_session_commit(sizeof(*record));
	else
		spy_unlock(&spy_session->lock);
}

/* ---- a thread goes over ----------------------------------------------------------------------- */

static bool fits(const struct spy_cost_phase *phase)
{
	return (phase->kind == SPY_COST_COUNTING) == spy_window_is_counting() &&
	       has_no_probes(phase) == spy_cost_probes_off() &&
	       has_no_stacks(phase) == spy_cost_stacks_off();
}

/* The thread's share of stacks is not saved up in phases without them, for the next ones to cost more than others. */
static void rest_stacks(struct spy_thread *thread, uint64_t now)
{
	struct spy_cost_thread *cost = &thread->cost;
	bool bare = cost->phase.kind == SPY_COST_COUNTING || has_no_stacks(&cost->phase);

	if (bare && !cost->bare_since)
		cost->bare_since = now;
	if (bare || !cost->bare_since)
		return;
	spy_stack_rested(thread, cost->bare_since, now);
	cost->bare_since = 0;
}

static void begin_phase(struct spy_thread *thread, uint64_t now)
{
	struct spy_cost_thread *cost = &thread->cost;

	cost->phase = phase_now(now);
	rest_stacks(thread, now);
	if (!fits(&cost->phase))
		cost->phase.window = 0;
	cost->delay_ns = cost->delayed_ns;
	cost->calls_at = thread->outer_calls;
	cost->from = spy_clock();
}

/* Once between two phases: at the end of one, before the next one begins. */
static void end_phase(struct spy_thread *thread)
{
	thread->cost.delayed_ns = spy_sched_delay_ns();
}

static void no_phase(struct spy_thread *thread)
{
	thread->cost.phase = (struct spy_cost_phase){.end = UINT64_MAX};
	thread->cost.calls_at = thread->outer_calls;
}

/* Is there anything to be written about the thread's phase? Also what came before the first window of a block: that one
 * begins there. */
static bool is_worth_a_record(const struct spy_thread *thread, uint64_t now)
{
	return thread->cost.phase.window || thread->counts_turn || phase_now(now).window;
}

static void fill(struct spy_rec_cost *record, const struct spy_thread *thread, uint64_t end)
{
	const struct spy_cost_thread *cost = &thread->cost;

	record->kind = cost->phase.kind;
	record->n = 0;
	record->calls = (uint32_t)(thread->outer_calls - cost->calls_at);
	record->begin = cost->from < end ? cost->from : end;
	record->end = end;
	record->window = cost->phase.window;
	record->delay_ns = cost->delayed_ns - cost->delay_ns;
	memset(record->fn, 0, sizeof(record->fn));
	memset(record->count, 0, sizeof(record->count));
}

static void record_control(const struct spy_thread *thread, uint64_t calls, uint64_t end)
{
	const struct spy_cost_thread *cost = &thread->cost;
	uint64_t cycles = end - (cost->from < end ? cost->from : end);
	uint64_t delay = (uint64_t)((double)(cost->delayed_ns - cost->delay_ns) * cycles_per_ns());

	if (cost->phase.window && delay < cycles - cycles / 20)
		spy_control_count(cost->phase.window, cost->phase.kind, calls, cycles - delay);
}

void spy_cost_notice(struct spy_thread *thread, uint64_t now, bool between)
{
	struct spy_rec_cost *record = (struct spy_rec_cost *)thread->head;

	if (now < thread->cost.phase.end || thread->asleep || !between)
		return;
	if (is_worth_a_record(thread, now)) {
		end_phase(thread);
		record_control(thread, thread->outer_calls - thread->cost.calls_at, now);
		/* The call's own record comes behind it. */
		if (spy_thread_has_room(thread, sizeof(*record) + SPY_RECORD_MAX)) {
			/* Not `now` behind what a new packet begins with. */
			record->head.time =
				now > thread->packet->time_end ? now : thread->packet->time_end;
			record->head.event = SPY_EV_COST;
			fill(record, thread, now);
			spy_thread_publish(thread, record->head.time, sizeof(*record));
		} else {
			spy_thread_count_lost(thread);
		}
	}
	begin_phase(thread, now);
}

/* ---- it goes to sleep, and wakes ------------------------------------------------------------- */

/* The record of the phase that has ended, and those of what was counted in it. */
static void write_down(struct spy_thread *thread, uint64_t end)
{
	uint32_t *calls = thread->counts.calls;
	struct spy_rec_cost *record;
	uint32_t counted = 0, fn = 0;
	uint64_t time = 0;

	for (uint32_t i = 0; i < SPY_FN_COUNT && thread->counts_turn; i++)
		counted += calls[i];
	record_control(thread, thread->outer_calls - thread->cost.calls_at + counted, end);
	do {
		record = spy_thread_append(thread, SPY_EV_COST, sizeof(*record));
		if (!record)
			break;
		fill(record, thread, end);
		record->calls = time ? 0 : record->calls + counted;
		time = record->head.time;
		for (; fn < SPY_FN_COUNT && counted && record->n < SPY_COST_FUNCTIONS; fn++) {
			if (!calls[fn])
				continue;
			record->fn[record->n] = (uint16_t)fn;
			record->count[record->n++] = calls[fn];
			counted -= calls[fn];
			calls[fn] = 0;
		}
		spy_thread_commit(thread, sizeof(*record));
	} while (counted);
	/* No room: they are lost. */
	if (counted && thread->page)
		__atomic_store_n(&thread->page->lost, thread->page->lost + counted,
				 __ATOMIC_RELAXED);
	if (thread->counts_turn)
		memset(calls, 0, sizeof(thread->counts.calls));
}

/* Its owner may count still. A record's worth, from *fn on. */
__attribute__((no_sanitize("thread"))) static void
take_counted(struct spy_thread *thread, uint32_t *fn, struct spy_rec_cost *record)
{
	for (; *fn < SPY_FN_COUNT && record->n < SPY_COST_FUNCTIONS; ++*fn) {
		uint32_t calls =
			__atomic_exchange_n(&thread->counts.calls[*fn], 0, __ATOMIC_RELAXED);

		if (!calls)
			continue;
		record->fn[record->n] = (uint16_t)*fn;
		record->count[record->n++] = calls;
		record->calls += calls;
	}
}

/* Of no window: nobody knows when they end. */
static void write_counted(struct spy_rec_cost *record)
{
	struct spy_rec_cost *place = spy_session_append(SPY_EV_COST, sizeof(*place));

	if (!place) {
		__atomic_fetch_add(&spy_session->board->lost, record->calls, __ATOMIC_RELAXED);
		return;
	}
	record->head = place->head;
	record->begin = record->end = place->head.time;
	*place = *record;
	spy_session_commit(sizeof(*place));
}

__attribute__((no_sanitize("thread"))) void spy_cost_write_others(void)
{
	for (uint32_t slot = 1; slot < atomic_load(&spy_session->slots); slot++) {
		struct spy_thread *thread = &spy_threads[slot];
		uint32_t fn = 0;

		while (fn < SPY_FN_COUNT && thread != spy_self && thread->counts_turn) {
			struct spy_rec_cost record = {.kind = SPY_COST_COUNTING};

			take_counted(thread, &fn, &record);
			if (record.n)
				write_counted(&record);
		}
	}
}

/* Its owner may count still. So many calls it has counted that it has written down nowhere. */
__attribute__((no_sanitize("thread"))) static uint64_t not_written(const struct spy_thread *thread)
{
	uint64_t calls = 0;

	for (uint32_t i = 0; i < SPY_FN_COUNT && thread->counts_turn; i++)
		calls += thread->counts.calls[i];
	return calls;
}

void spy_cost_count_lost(void)
{
	for (uint32_t slot = 1; slot < atomic_load(&spy_session->slots); slot++)
		__atomic_fetch_add(&spy_session->board->lost, not_written(&spy_threads[slot]),
				   __ATOMIC_RELAXED);
}

void spy_cost_sleep(struct spy_thread *thread, uint64_t now)
{
	if (mode == OFF)
		return;
	end_phase(thread);
	if (now < thread->cost.phase.end && thread->cost.phase.kind != SPY_COST_COUNTING)
		thread->cost.phase.window = 0; /* the user's window is over before it is */
	if (thread->packet && thread->cost.phase.kind != SPY_COST_COUNTING &&
	    is_worth_a_record(thread, now))
		write_down(thread, now);
	if (!spy_window_is_counting()) {
		no_phase(thread);
		return;
	}
	if (thread->cost.phase.kind != SPY_COST_COUNTING || now >= thread->cost.phase.end)
		begin_phase(thread, now);
	thread->counts_turn = spy_window_turn();
	thread->cost.pause = spy_window_closes();
}

void spy_cost_wake(struct spy_thread *thread)
{
	uint64_t now = spy_clock();

	if (mode == OFF)
		return;
	end_phase(thread);
	if (thread->counts_turn) {
		if (thread->cost.pause != spy_window_closes() || now < thread->cost.phase.end)
			thread->cost.phase.window = 0;
		if (thread->packet)
			write_down(thread, now);
	}
	thread->counts_turn = 0;
	begin_phase(thread, now);
}

void spy_cost_begin_thread(struct spy_thread *thread)
{
	uint64_t now = spy_clock();

	thread->counts_turn = 0;
	no_phase(thread);
	if (mode == OFF)
		return;
	end_phase(thread);
	begin_phase(thread, now);
	if (!spy_window_is_counting())
		return;
	thread->counts_turn = spy_window_turn();
	thread->cost.pause = spy_window_closes();
}
