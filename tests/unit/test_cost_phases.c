/* links: shim/window/cost.c shim/state/recorded.c */
/*
 * tests/unit/test_cost_phases.c: cost windows as cost_plan.h has them: what is done at each time, by each option, and what
 * a thread writes down about it: awake, asleep, with more functions than a record has room for, and where there is no room.
 */
#include "thread_stubs.h"
#include "cudaspy/cost_plan.h"
#include "cudaspy/function_numbers.h"
#include "process/options.h"
#include "record/sched.h"
#include "stack/stack.h"
#include "state/recorded.h"
#include "window/control.h"
#include "window/cost.h"

#define SECOND 1000000000ull

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
struct spy_thread *spy_threads;
static struct spy_thread threads[4];
static uint64_t ahead; /* of the trace's clock is the time of day */
static uint64_t delay_ns; /* of the calling thread, so far */
static bool has_room;
static int n_windows; /* records of them */
static int n_lost;
static uint64_t rested_from, rested_until;

static uint32_t control_ppm;
static struct spy_control_decision decision;
static int n_decisions;
static struct counted {
	uint64_t window, calls, cycles;
	enum spy_cost_kind kind;
} counted;
static uint64_t spent[SPY_COST_KINDS], idle;

void spy_clock_read_pair(struct spy_clock_pair *pair)
{
	*pair = (struct spy_clock_pair){.clock = now, .realtime_ns = now + ahead};
}

uint64_t spy_sched_delay_ns(void)
{
	return delay_ns;
}

void spy_stack_rested(struct spy_thread *of, uint64_t from, uint64_t until)
{
	(void)of;
	rested_from = from;
	rested_until = until;
}

void *spy_session_offer(enum spy_event event, size_t bytes)
{
	session_full = !has_room;
	return spy_session_append(event, bytes);
}

void spy_thread_count_lost(struct spy_thread *of)
{
	(void)of;
	n_lost++;
}

void *spy_thread_append(struct spy_thread *of, enum spy_event event, size_t bytes)
{
	struct spy_rec_cost *record = (struct spy_rec_cost *)of->head;

	assert_int_equal(bytes, sizeof(*record));
	if (!spy_thread_has_room(of, bytes))
		return NULL;
	record->head = (struct spy_rec_other){.event = event, .time = now};
	return record;
}

void spy_thread_commit(struct spy_thread *of, size_t bytes)
{
	spy_thread_publish(of, now, bytes);
}

void spy_control_begin(uint32_t ppm)
{
	control_ppm = ppm;
}

void spy_control_count(uint64_t window, enum spy_cost_kind kind, uint64_t calls, uint64_t cycles)
{
	counted =
		(struct counted){.window = window, .kind = kind, .calls = calls, .cycles = cycles};
}

struct spy_control_decision spy_control_decide(const struct spy_cost_frame *frame)
{
	assert_int_equal(frame->number, (now + ahead) / SPY_COST_FRAME_NS);
	n_decisions++;
	return decision;
}

void spy_control_spent(enum spy_cost_kind kind, uint64_t in, uint64_t without_calls)
{
	spent[kind] += in;
	idle += without_calls;
}

/* ---- a process ---- */

static void begin(struct spy_options options, uint64_t frame)
{
	begin_session();
	memset(threads, 0, sizeof(threads));
	spy_threads = threads;
	spy_options = options;
	ahead = frame * SPY_COST_FRAME_NS - now;
	delay_ns = 0;
	has_room = true;
	n_windows = n_lost = n_decisions = 0;
	memset(spent, 0, sizeof(spent));
	idle = 0;
	counted = (struct counted){0};
	rested_from = rested_until = 0;
	spy_recorded_reset(true);
	spy_cost_reset();
	assert_int_equal(spy_cost_due(), UINT64_MAX);
	spy_cost_begin();
}

/* To a time of day. */
static void go_to(uint64_t realtime_ns)
{
	assert_true(realtime_ns >= now + ahead);
	now = realtime_ns - ahead;
}

static void look(void)
{
	bool was = spy_window_is_counting();
	size_t before = session_bytes;

	spy_cost_look(now);
	if (session_bytes != before) {
		const struct spy_rec_window *record = (void *)(session_records + before);

		n_windows++;
		assert_int_equal(record->state, was ? SPY_WINDOW_RECORDING : SPY_WINDOW_COUNTING);
	}
	assert_int_equal(was != spy_window_is_counting(), session_bytes != before);
	assert_int_equal(session.lock.owner, 0);
}

static void expect_kind(enum spy_cost_kind kind)
{
	assert_int_equal(spy_window_is_counting(), kind == SPY_COST_COUNTING);
	assert_int_equal(spy_cost_probes_off(),
			 kind == SPY_COST_NO_PROBES || kind == SPY_COST_LEAN);
	assert_int_equal(spy_cost_stacks_off(),
			 kind == SPY_COST_NO_STACKS || kind == SPY_COST_LEAN);
}

/* Nothing happens before that time of day, and then it is of that kind. */
static void next_phase(uint64_t realtime_ns, enum spy_cost_kind before, enum spy_cost_kind kind)
{
	assert_int_equal(spy_cost_due() + ahead, realtime_ns);
	go_to(realtime_ns - 1);
	look();
	expect_kind(before);
	go_to(realtime_ns);
	look();
	expect_kind(kind);
}

static uint64_t frame_with(bool sampled, uint64_t random_bit, uint64_t from)
{
	while (spy_cost_frame(from).sampled != sampled ||
	       (spy_cost_frame(from).random >> 60 & 1) != random_bit)
		from++;
	return from;
}

/* The first one whose first block has such an order. */
static struct spy_cost_frame frame_that(bool (*is)(const uint8_t *order))
{
	uint64_t number = 5000000000ull;
	struct spy_cost_frame frame = spy_cost_frame(number);

	while (!is(spy_cost_order(&frame, 0)))
		frame = spy_cost_frame(++number);
	return frame;
}

static bool counts_last(const uint8_t *order)
{
	return order[2] == 1;
}

static bool counts_first(const uint8_t *order)
{
	return order[0] == 1;
}

static uint64_t begin_of(const struct spy_cost_frame *frame)
{
	return frame->number * SPY_COST_FRAME_NS + frame->first_ns;
}

static enum spy_cost_kind kind_in(const struct spy_cost_frame *frame, uint64_t block, uint64_t i)
{
	const enum spy_cost_kind kinds[] = {SPY_COST_ALL, SPY_COST_COUNTING,
					    frame->random >> 60 & 1 ? SPY_COST_NO_STACKS
								    : SPY_COST_NO_PROBES};

	return kinds[spy_cost_order(frame, block)[i]];
}

/* Through so many blocks of a frame, from its begin to its end. besides: what is done around them. */
static void pass_frame(uint64_t number, uint64_t blocks, enum spy_cost_kind besides)
{
	struct spy_cost_frame frame = spy_cost_frame(number);
	uint64_t from = begin_of(&frame);
	enum spy_cost_kind before = besides;

	for (uint64_t block = 0; block < blocks; block++)
		for (uint64_t i = 0; i < SPY_COST_PLACES; i++, from += frame.length_ns) {
			next_phase(from, before, kind_in(&frame, block, i));
			before = kind_in(&frame, block, i);
		}
	if (blocks)
		next_phase(from, before, besides);
	assert_int_equal(spy_cost_due() + ahead, (number + 1) * SPY_COST_FRAME_NS);
	go_to((number + 1) * SPY_COST_FRAME_NS);
	look();
}

/* ---- when ---- */

static void test_off(void **state)
{
	static const struct spy_options off[] = {
		{.measure_cost = "0"}, {.gpu = "1"}, {.gpu = "1", .measure_cost = "1"}};

	(void)state;
	for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++) {
		begin(off[i], 1000);
		assert_int_equal(spy_cost_due(), UINT64_MAX);
		now += 20 * SECOND;
		look();
		expect_kind(SPY_COST_ALL);
		spy_cost_begin_thread(&thread);
		spy_cost_notice(&thread, now, true);
		spy_cost_sleep(&thread, now);
		spy_cost_wake(&thread);
		no_record(&thread);
		assert_int_equal(control_ppm, 0);
	}
	begin((struct spy_options){.gpu = "1", .overhead = "1%"}, 1000);
	assert_int_equal(spy_cost_due(), UINT64_MAX);
	assert_int_equal(control_ppm, 0);
	begin((struct spy_options){.overhead = "much"}, 1000);
	assert_int_equal(control_ppm, 0);
	assert_int_equal(spy_cost_due(), now + 10 * SECOND);
}

/* --measure-cost: all blocks of all frames, whatever is drawn. */
static void test_all_the_time(void **state)
{
	uint64_t number = 5000000000ull;

	(void)state;
	begin((struct spy_options){.measure_cost = "1"}, number);
	assert_int_equal(spy_cost_due(), now);
	look();
	for (int i = 0; i < 40; i++, number++)
		pass_frame(number, spy_cost_frame(number).blocks, SPY_COST_ALL);
	assert_true(n_windows > 40);
	/* Late: what is due then is done at once. */
	go_to((number + 7) * SPY_COST_FRAME_NS - 1);
	look();
	expect_kind(SPY_COST_ALL);
	/* In a time without calls the clock may have been set: the plan follows the time of day. */
	now += 2 * SPY_COST_FRAME_NS;
	ahead += 12345678;
	number = (now + ahead) / SPY_COST_FRAME_NS;
	go_to((number + 1) * SPY_COST_FRAME_NS);
	look();
	pass_frame(number + 1, spy_cost_frame(number + 1).blocks, SPY_COST_ALL);
}

/* By itself: from the tenth second on, three in a hundred frames. */
static void test_sampled(void **state)
{
	uint64_t first = frame_with(true, 0, 7000000000ull), begun, none, later;

	(void)state;
	/* The tenth second ends inside of a frame that would be measured: it is not. */
	begin((struct spy_options){0}, first - 38);
	begun = now;
	assert_int_equal(spy_cost_due(), begun + 10 * SECOND);
	now = begun + 10 * SECOND - 1;
	look();
	now++;
	assert_int_equal((now + ahead) / SPY_COST_FRAME_NS, first);
	look();
	assert_int_equal(spy_cost_due() + ahead, (first + 1) * SPY_COST_FRAME_NS);
	none = frame_with(false, 0, first + 1);
	go_to(none * SPY_COST_FRAME_NS);
	look();
	pass_frame(none, 0, SPY_COST_ALL);
	for (uint64_t bit = 0; bit < 2; bit++) {
		later = frame_with(true, bit, none + 2);
		go_to(later * SPY_COST_FRAME_NS);
		look();
		pass_frame(later, spy_cost_frame(later).blocks, SPY_COST_ALL);
		none = later;
	}
	assert_int_equal(n_decisions, 0);
}

/* No room for the record: again in a tenth of a second, and all stays as it is. */
static void test_no_room_for_windows(void **state)
{
	uint64_t number = 5000000001ull;
	struct spy_cost_frame frame = spy_cost_frame(number);

	(void)state;
	begin((struct spy_options){.measure_cost = "1"}, number);
	look();
	has_room = false;
	go_to(begin_of(&frame));
	look();
	expect_kind(SPY_COST_ALL);
	assert_int_equal(spy_cost_due(), now + 100 * MS);
	has_room = true;
	now += 100 * MS;
	look();
	assert_true(spy_cost_due() > now);
	assert_true(spy_cost_due() <= now + 40 * MS);
}

/* ---- --overhead ---- */

static void test_controlled(void **state)
{
	static const enum spy_cost_kind besides[] = {SPY_COST_LEAN, SPY_COST_ALL, SPY_COST_COUNTING,
						     SPY_COST_NO_PROBES, SPY_COST_NO_STACKS};
	uint64_t number = 6000000000ull, begun;

	(void)state;
	begin((struct spy_options){.overhead = "2%", .measure_cost = "1"}, number);
	assert_int_equal(control_ppm, 20000);
	begun = now;
	assert_int_equal(spy_cost_due(), begun + 20 * MS);
	/* The first calls are recorded, and known to be. */
	decision = (struct spy_control_decision){.blocks = 0, .kind = SPY_COST_LEAN};
	now = begun + 20 * MS;
	look();
	expect_kind(SPY_COST_LEAN);
	assert_int_equal(spent[SPY_COST_ALL], 20 * MS);
	assert_int_equal(n_decisions, 1);
	for (int i = 0; i < 5; i++) {
		struct spy_cost_frame frame = spy_cost_frame(++number);
		uint64_t blocks = i ? frame.blocks - 1 : 0, known, sum = 0;

		decision = (struct spy_control_decision){.blocks = (uint32_t)blocks,
							 .kind = besides[i]};
		go_to(number * SPY_COST_FRAME_NS);
		look();
		expect_kind(besides[i]);
		assert_int_equal(n_decisions, 2 * i + 2);
		/* All of the time is accounted. */
		memset(spent, 0, sizeof(spent));
		known = now;
		decision = (struct spy_control_decision){.blocks = 0, .kind = SPY_COST_ALL};
		pass_frame(number++, blocks, besides[i]);
		for (int kind = 0; kind < SPY_COST_KINDS; kind++)
			sum += spent[kind];
		assert_int_equal(sum, now - known);
		if (besides[i] != SPY_COST_COUNTING)
			assert_int_equal(spent[SPY_COST_COUNTING], blocks * frame.length_ns);
		assert_int_equal(idle, 0);
		expect_kind(SPY_COST_ALL);
	}
	/* Behind the end of a phase no call was made: idle. */
	memset(spent, 0, sizeof(spent));
	now = spy_cost_due() + 5 * MS;
	look();
	assert_int_equal(idle, 5 * MS);
	/* A window of the user's: what is outside is not accounted. */
	memset(spent, 0, sizeof(spent));
	idle = 0;
	now += 1 * MS;
	spy_cost_span(false, now);
	now += 3 * MS;
	spy_cost_span(true, now);
	now += 2 * MS;
	spy_cost_span(false, now);
	assert_int_equal(spent[SPY_COST_ALL], 3 * MS);
	assert_int_equal(idle, 0);
}

/* ---- threads ---- */

static const struct spy_rec_cost *next_cost(void)
{
	return next_record(&thread, SPY_EV_COST, sizeof(struct spy_rec_cost));
}

static void expect_cost(const struct spy_rec_cost *record, enum spy_cost_kind kind, uint64_t window,
			uint64_t begun, uint64_t end, uint32_t calls, uint64_t waited)
{
	assert_int_equal(record->head.time, now);
	assert_int_equal(record->kind, kind);
	assert_int_equal(record->window, window);
	assert_int_equal(record->begin, begun);
	assert_int_equal(record->end, end);
	assert_int_equal(record->calls, calls);
	assert_int_equal(record->delay_ns, waited);
}

static void notice(void)
{
	look();
	spy_cost_notice(&thread, now, true);
}

/* A thread that makes seven calls in each window, and waits a little for a CPU. */
static void test_thread(void **state)
{
	struct spy_cost_frame frame = frame_that(counts_last);
	uint64_t number = frame.number, from, begun;

	(void)state;
	begin((struct spy_options){.measure_cost = "1"}, number);
	look();
	spy_cost_begin_thread(&thread);
	from = begin_of(&frame);
	thread.outer_calls = 100;
	go_to(from - 1);
	notice();
	no_record(&thread);
	/* What came before the first window of a block is written, too, so that one begins there. */
	go_to(from + 1000);
	begun = now;
	delay_ns = 50;
	notice();
	expect_cost(next_cost(), SPY_COST_ALL, 0, number * SPY_COST_FRAME_NS - ahead, now, 100, 50);
	for (uint64_t i = 0; i < 2; i++) {
		thread.outer_calls += 7;
		delay_ns += 1000;
		spy_cost_notice(&thread, now, true); /* not yet */
		no_record(&thread);
		go_to(from + (i + 1) * frame.length_ns + 500);
		look();
		spy_cost_notice(&thread, now, false); /* inside a call */
		no_record(&thread);
		if (i == 1) /* counting begins: it goes to sleep (below) */
			break;
		spy_cost_notice(&thread, now, true);
		expect_cost(next_cost(), kind_in(&frame, 0, i), spy_cost_window(number, 0, i),
			    begun, now, 7, 1000);
		assert_int_equal(counted.window, spy_cost_window(number, 0, i));
		assert_int_equal(counted.kind, kind_in(&frame, 0, i));
		assert_int_equal(counted.calls, 7);
		assert_int_equal(counted.cycles, now - begun - 1000);
		begun = now;
	}
	/* Asleep for the time in which calls are counted. */
	spy_cost_sleep(&thread, now);
	thread.asleep = true;
	expect_cost(next_cost(), kind_in(&frame, 0, 1), spy_cost_window(number, 0, 1), begun, now,
		    7, 1000);
	no_record(&thread);
	assert_int_equal(thread.counts_turn, spy_window_turn());
	begun = now;
	spy_cost_notice(&thread, UINT64_MAX - 1, true);
	no_record(&thread);
	thread.counts.calls[3] = 5;
	thread.counts.calls[SPY_FN_COUNT - 1] = 6;
	thread.outer_calls += 2;
	go_to(from + 3 * frame.length_ns + 20);
	look();
	spy_cost_wake(&thread);
	thread.asleep = false;
	{
		const struct spy_rec_cost *record = next_cost();

		expect_cost(record, SPY_COST_COUNTING, spy_cost_window(number, 0, 2), begun, now,
			    13, 0);
		assert_int_equal(record->n, 2);
		assert_int_equal(record->fn[0], 3);
		assert_int_equal(record->count[0], 5);
		assert_int_equal(record->fn[1], SPY_FN_COUNT - 1);
		assert_int_equal(record->count[1], 6);
		assert_int_equal(record->fn[2] + record->count[2], 0);
	}
	no_record(&thread);
	assert_int_equal(thread.counts_turn, 0);
	assert_int_equal(thread.counts.calls[3] + thread.counts.calls[SPY_FN_COUNT - 1], 0);
	/* Without stacks, or counted: the share of stacks is not saved up. */
	assert_true(rested_from < rested_until);
	assert_int_equal(rested_until, now);
}

/* A thread that waited for a CPU for most of a window says nothing of what recording costs. */
static void test_without_cpu(void **state)
{
	struct spy_cost_frame frame = frame_that(counts_last);
	uint64_t number = frame.number, from;

	(void)state;
	from = begin_of(&frame);
	for (int i = 0; i < 2; i++) {
		uint64_t most = frame.length_ns - frame.length_ns / 20;

		begin((struct spy_options){.measure_cost = "1"}, number);
		look();
		spy_cost_begin_thread(&thread);
		go_to(from);
		notice();
		delay_ns += i ? most : most - 1;
		go_to(from + frame.length_ns);
		notice();
		assert_int_equal(counted.window, i ? 0 : spy_cost_window(number, 0, 0));
	}
}

/* The user's window is over before the cost window is: what there was of it belongs to none. */
static void test_user_window_ends(void **state)
{
	struct spy_cost_frame frame = frame_that(counts_last);
	uint64_t number = frame.number, from;

	(void)state;
	from = begin_of(&frame);
	begin((struct spy_options){.measure_cost = "1"}, number);
	look();
	spy_cost_begin_thread(&thread);
	go_to(from);
	notice();
	next_cost();
	thread.outer_calls += 3;
	now += 1 * MS;
	spy_recorded_set(false, now);
	spy_cost_sleep(&thread, now);
	expect_cost(next_cost(), kind_in(&frame, 0, 0), 0, from - ahead, now, 3, 0);
	no_record(&thread);
	assert_int_equal(thread.counts_turn, 0);
	now += 1 * MS;
	spy_recorded_set(true, now);
	spy_cost_wake(&thread);
	no_record(&thread);
}

/* ---- counted calls ---- */

/* Into a window in which calls are counted, from its begin on; the thread is asleep. */
static uint64_t begin_counting(void)
{
	struct spy_cost_frame frame = frame_that(counts_first);
	uint64_t number = frame.number;

	begin((struct spy_options){.measure_cost = "1"}, number);
	look();
	spy_cost_begin_thread(&thread);
	go_to(begin_of(&frame));
	look();
	assert_true(spy_window_is_counting());
	spy_cost_sleep(&thread, now);
	thread.asleep = true;
	next_cost();
	no_record(&thread);
	return frame.length_ns;
}

/* More functions than a record has: the calls are in the first one. */
static void test_many_functions(void **state)
{
	uint64_t length = begin_counting();
	const struct spy_rec_cost *record;
	int fn = 0;

	(void)state;
	for (int i = 0; i < 2 * SPY_COST_FUNCTIONS + 1; i++)
		thread.counts.calls[3 * i] = (uint32_t)i + 1;
	now += length;
	look();
	spy_cost_wake(&thread);
	for (int i = 0; i < 3; i++) {
		record = next_cost();
		assert_int_equal(record->n, i < 2 ? SPY_COST_FUNCTIONS : 1);
		assert_int_equal(record->calls, i ? 0 : 17 * 18 / 2);
		for (int k = 0; k < record->n; k++, fn++) {
			assert_int_equal(record->fn[k], 3 * fn);
			assert_int_equal(record->count[k], fn + 1);
		}
	}
	no_record(&thread);
	assert_int_equal(page.lost, 0);
}

/* Room for one record: what does not go into it is lost, and known to be. */
static void test_counts_without_room(void **state)
{
	uint64_t length = begin_counting();

	(void)state;
	for (int i = 0; i < SPY_COST_FUNCTIONS + 2; i++)
		thread.counts.calls[i] = 10;
	thread.head = thread.end - sizeof(struct spy_rec_cost);
	page.lost = 4;
	now += length;
	look();
	spy_cost_wake(&thread);
	assert_ptr_equal(thread.head, thread.end);
	assert_int_equal(page.lost, 24);
	assert_int_equal(thread.counts.calls[SPY_COST_FUNCTIONS], 0);
}

/* A window of the user's began and ended meanwhile, or the wake came early: the counts are those of no window. */
static void test_interrupted_counting(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t length = begin_counting();

		thread.counts.calls[1] = 8;
		now += i ? length / 2 : length;
		if (i) {
			spy_recorded_set(false, now);
			spy_recorded_set(true, now);
		} else {
			spy_recorded.closes++;
			look();
		}
		spy_cost_wake(&thread);
		assert_int_equal(next_cost()->window, 0);
	}
}

/* A thread without a packet keeps nothing of it. */
static void test_sleeper_without_packet(void **state)
{
	uint64_t length = begin_counting();

	(void)state;
	thread.packet = NULL;
	thread.counts.calls[1] = 8;
	now += length;
	look();
	spy_cost_wake(&thread);
	assert_int_equal(thread.counts_turn, 0);
}

/* A thread that begins while calls are counted counts, too. */
static void test_begin_thread(void **state)
{
	begin_counting();
	(void)state;
	other_thread.counts_turn = 99;
	spy_cost_begin_thread(&other_thread);
	assert_int_equal(other_thread.counts_turn, spy_window_turn());
	assert_int_equal(other_thread.cost.pause, spy_window_closes());
	assert_int_equal(other_thread.cost.from, now);
	begin((struct spy_options){.measure_cost = "1"}, 5000000000ull);
	look();
	other_thread.counts_turn = 99;
	spy_cost_begin_thread(&other_thread);
	assert_int_equal(other_thread.counts_turn, 0);
}

/* The process ends: what other threads have counted is written for them; what cannot be is lost. */
static void test_others(void **state)
{
	const struct spy_rec_cost *record = (void *)session_records;

	begin_counting();
	(void)state;
	session_bytes = 0;
	session.slots = 4;
	spy_self = &threads[1];
	for (int i = 1; i < 4; i++) {
		threads[i].counts_turn = i == 3 ? 0 : 5;
		threads[i].counts.calls[7] = 40;
		threads[i].counts.calls[9] = 2;
	}
	for (uint32_t fn = 20; fn < 20 + SPY_COST_FUNCTIONS; fn++)
		threads[2].counts.calls[fn] = 1;
	spy_cost_write_others();
	assert_int_equal(session_bytes, 2 * sizeof(*record));
	assert_int_equal(record[0].kind, SPY_COST_COUNTING);
	assert_int_equal(record[0].window, 0);
	assert_int_equal(record[0].begin, record[0].head.time);
	assert_int_equal(record[0].end, record[0].head.time);
	assert_int_equal(record[0].n, SPY_COST_FUNCTIONS);
	assert_int_equal(record[0].calls, 42 + SPY_COST_FUNCTIONS - 2);
	assert_int_equal(record[0].fn[0], 7);
	assert_int_equal(record[0].count[0], 40);
	assert_int_equal(record[1].n, 2);
	assert_int_equal(record[1].calls, 2);
	assert_int_equal(threads[2].counts.calls[7], 0);
	/* The caller's own it writes itself; of a thread that does not count there is nothing. */
	assert_int_equal(threads[1].counts.calls[7] + threads[3].counts.calls[7], 80);
	spy_cost_count_lost();
	assert_int_equal(board.lost, 42);
	threads[2].counts.calls[7] = 6;
	session.state = SPY_SESSION_FAILED;
	spy_cost_write_others();
	assert_int_equal(board.lost, 48);
}

/* The thread's record does not fit: one is lost, and the next window is its own. */
static void test_notice_without_room(void **state)
{
	struct spy_cost_frame frame = frame_that(counts_last);
	uint64_t number = frame.number;
	uint8_t *full;

	(void)state;
	begin((struct spy_options){.measure_cost = "1"}, number);
	look();
	spy_cost_begin_thread(&thread);
	go_to(begin_of(&frame));
	full = thread.end - sizeof(struct spy_rec_cost) - SPY_RECORD_MAX;
	thread.head = full + 1;
	notice();
	assert_int_equal(n_lost, 1);
	assert_ptr_equal(thread.head, full + 1);
	assert_int_equal(thread.cost.phase.window, spy_cost_window(number, 0, 0));
	go_to(begin_of(&frame) + frame.length_ns);
	thread.head = full;
	thread.packet->time_end = now + 9; /* a record that came between */
	notice();
	assert_int_equal(n_lost, 1);
	assert_int_equal(((struct spy_rec_cost *)full)->head.time, now + 9);
	assert_int_equal(((struct spy_rec_cost *)full)->end, now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_all_the_time),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_no_room_for_windows),
		cmocka_unit_test(test_controlled),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_without_cpu),
		cmocka_unit_test(test_user_window_ends),
		cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_counts_without_room),
		cmocka_unit_test(test_interrupted_counting),
		cmocka_unit_test(test_sleeper_without_packet),
		cmocka_unit_test(test_begin_thread),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_notice_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
