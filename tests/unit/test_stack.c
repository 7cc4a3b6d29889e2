/* links: shim/stack/stack.c */
/*
 * tests/unit/test_stack.c: which calls get a stack, how often at one place and in one thread, and what the records hold,
 * also of lines of Python, with a clock that the test sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "process/options.h"
#include "process/own_stack.h"
#include "record/sched.h"
#include "state/libraries.h"
#include "state/session.h"
#include "stack/stack.h"
#include "stack/unwind.h"

#define HZ 1000000000ull
#define MS 1000000ull
#define SECOND HZ
#define FN 77
#define NO_RECORD (-1)

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
uint64_t spy_long_call = 250000;
struct spy_session *spy_session;
bool spy_cost_without_probes, spy_cost_without_stacks;
static uint64_t keep;
static uint64_t overhead;
static struct spy_unwind asked;
static int n_places;
static struct spy_python python = {.minor = 12};
static bool has_python, may_enter;
static int entered;
static unsigned int n_frames, at_frame;

bool spy_options_keeps_packets(void)
{
	return keep;
}

static uint64_t stack_takes; /* cycles */
bool spy_clock_is_counter;

uint64_t spy_overhead_begin(void)
{
	return 1;
}

/* When a stack has been recorded. */
uint64_t spy_clock_monotonic(void)
{
	return 1 + stack_takes;
}

void spy_overhead_end(struct spy_thread *thread, uint64_t begun)
{
	assert_non_null(thread);
	overhead += begun;
}

uintptr_t spy_own_stack_end(void)
{
	return 0;
}

uintptr_t spy_own_stack_left_at(void)
{
	return 0x1234;
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

size_t spy_unwind(const struct spy_unwind *start, uint64_t *frames, size_t most)
{
	asked = *start;
	assert_int_equal(most, SPY_STACK_MOST);
	frames[0] = 0x111;
	frames[1] = 0x222;
	return 2;
}

const struct spy_python *spy_python_here(void)
{
	return has_python ? &python : NULL;
}

bool spy_libraries_hold(void)
{
	entered += may_enter;
	return may_enter;
}

void spy_libraries_release(void)
{
	entered--;
}

bool spy_python_begin(struct spy_python_walk *walk, const struct spy_python *of)
{
	*walk = (struct spy_python_walk){.python = of};
	at_frame = 0;
	return n_frames;
}

bool spy_python_next(struct spy_python_walk *walk, struct spy_python_frame *frame)
{
	(void)walk;
	frame->first_line = at_frame;
	return at_frame++ < n_frames;
}

/* Frame k is line 10 + k of f<k>, but the third cannot be read. */
bool spy_python_read(const struct spy_python_walk *walk, const struct spy_python_frame *frame,
		     struct spy_python_place *place)
{
	(void)walk;
	n_places++;
	place->first_line = frame->first_line;
	place->line = 10 + frame->first_line;
	snprintf(place->file, sizeof(place->file), "/file%u.py", frame->first_line);
	snprintf(place->function, sizeof(place->function), "f%u", frame->first_line);
	return frame->first_line != 2;
}

/* ---- a thread and its calls ---- */

static struct spy_thread thread;
static struct spy_slot_page page;
static struct spy_slot slot;
static uint8_t packet[SPY_PACKET_BYTES] __attribute__((aligned(4096)));
static uint64_t memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static struct spy_frame frame;
static uint64_t now;

static int begin(void **state)
{
	(void)state;
	free(spy_session);
	spy_session = calloc(1, sizeof(*spy_session));
	spy_session->part = 1;
	memset(&thread, 0, sizeof(thread));
	memset(&page, 0, sizeof(page));
	slot = (struct spy_slot){.fn = FN};
	frame = (struct spy_frame){.slot = &slot, .caller = 0x5000, .stack = memory + 4};
	thread.packet = (struct spy_packet *)packet;
	thread.page = &page;
	thread.slot = 3;
	thread.depth = 1; /* the call is on its way */
	thread.file.room = SPY_PACKET_BYTES;
	page.calls = 1; /* of which none is drawn */
	spy_options = (struct spy_options){0};
	keep = 0;
	has_python = may_enter = false;
	entered = n_places = 0;
	n_frames = 0;
	stack_takes = 0;
	now = 1000 * SECOND;
	spy_stack_begin(HZ);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(spy_session);
	spy_session = NULL;
	return 0;
}

/* The record of a call that returns now; NULL: it got none. */
static const struct spy_rec_stack *looked(uint64_t duration)
{
	uint64_t seq = thread.packet->seq;

	memset(packet, 0, sizeof(*thread.packet) + 4096);
	thread.packet->seq = seq;
	thread.head = packet + sizeof(*thread.packet);
	spy_thread_use_room(&thread, packet + sizeof(packet) - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	frame.start = now - duration;
	spy_stack_look(&thread, &frame, now);
	return thread.head == packet + sizeof(*thread.packet)
		       ? NULL
		       : (const struct spy_rec_stack *)(packet + sizeof(*thread.packet));
}

/* Why it got one. */
static int why(uint64_t duration)
{
	const struct spy_rec_stack *record = looked(duration);

	return record ? record->why : NO_RECORD;
}

/* The same, at another place, long after the others. */
static int why_elsewhere(uint64_t duration)
{
	now += SECOND;
	frame.caller += 8;
	return why(duration);
}

/* ---- which ---- */

static void test_which(void **state)
{
	(void)state;
	assert_int_equal(why_elsewhere(999999), NO_RECORD);
	assert_int_equal(why_elsewhere(MS), SPY_STACK_LONG);
	frame.details.pageable = true;
	assert_int_equal(why_elsewhere(10), SPY_STACK_PAGEABLE);
	frame.details.captured = true;
	assert_int_equal(why_elsewhere(10), NO_RECORD);
	frame.details.pageable = frame.details.captured = false;
	frame.result = 2;
	assert_int_equal(why_elsewhere(10), SPY_STACK_FAILED);
	assert_int_equal(why_elsewhere(2 * MS), SPY_STACK_FAILED | SPY_STACK_LONG);
	frame.result = 600; /* not ready: an answer */
	assert_int_equal(why_elsewhere(10), NO_RECORD);
	frame.result = 601;
	assert_int_equal(why_elsewhere(10), SPY_STACK_FAILED);
	frame.result = SPY_RESULT_NONE; /* of a function that returns none */
	assert_int_equal(why_elsewhere(10), NO_RECORD);
	frame.result = SPY_RESULT_NONE - 1;
	assert_int_equal(why_elsewhere(10), SPY_STACK_FAILED);
	frame.result = 7ull << 32; /* no part of it */
	assert_int_equal(why_elsewhere(10), NO_RECORD);
}

static void test_switched_off(void **state)
{
	(void)state;
	assert_int_equal(spy_examined_from, 20000);
	spy_stack_begin(100000000); /* a clock of 100 MHz */
	assert_int_equal(spy_examined_from, 2000);
	assert_int_equal(why_elsewhere(100000), SPY_STACK_LONG);
	spy_options.nostacks = "1";
	spy_stack_begin(HZ);
	assert_int_equal(spy_examined_from, 250000);
	frame.result = 2;
	frame.details.pageable = true;
	slot.makes = 1;
	slot.sampled = SPY_SAMPLED_ALL;
	assert_int_equal(why_elsewhere(SECOND), NO_RECORD);
}

/* What the record says, and where the walk begins. */
static void test_record(void **state)
{
	const struct spy_rec_stack *record;

	(void)state;
	overhead = 0;
	record = looked(5 * MS);
	assert_non_null(record);
	assert_int_equal(record->time, now);
	assert_int_equal(record->event, SPY_EV_STACK);
	assert_int_equal(record->fn, FN);
	assert_int_equal(record->count, 2);
	assert_int_equal(record->frames[0], 0x111);
	assert_int_equal(record->frames[1], 0x222);
	assert_int_equal(record->frames[2], 0);
	assert_ptr_equal(thread.head, (const uint8_t *)record + sizeof(*record));
	assert_int_equal(thread.packet->content_bits, 8 * (thread.head - packet));
	assert_int_equal(thread.packet->time_end, now);
	assert_int_equal(overhead, 1);
	assert_int_equal(asked.ip, 0x5000);
	assert_int_equal(asked.sp, (uintptr_t)(memory + 4));
	assert_int_equal(asked.bp, 2);
	assert_int_equal(asked.stack_begin | asked.stack_end, 0); /* not known */
	thread.stack_begin = (uintptr_t)(memory + 4) - 64;
	thread.stack_end = (uintptr_t)(memory + 4) + 64;
	assert_int_equal(why_elsewhere(5 * MS), SPY_STACK_LONG);
	assert_int_equal(asked.stack_begin, 0x1234);
	assert_int_equal(asked.stack_end, thread.stack_end);
	thread.stack_end = (uintptr_t)(memory + 4); /* it is on another stack */
	assert_int_equal(why_elsewhere(5 * MS), SPY_STACK_LONG);
	assert_int_equal(asked.stack_begin | asked.stack_end, 0);
	thread.stack_begin = (uintptr_t)(memory + 4);
	thread.stack_end = (uintptr_t)(memory + 4) + 64;
	assert_int_equal(why_elsewhere(5 * MS), SPY_STACK_LONG);
	assert_int_equal(asked.stack_begin | asked.stack_end, 0);
}

/* Behind it there is room for the call's own record, and for those of calls in progress. */
static void test_room(void **state)
{
	size_t least = sizeof(struct spy_rec_stack) + SPY_RECORD_MAX;
	int depth, more;

	(void)state;
	for (depth = 0; depth < 2; depth++)
		for (more = -1; more <= 0; more++) {
			now += SECOND;
			frame.caller += 8;
			thread.depth = (uint8_t)depth;
			thread.head = packet + sizeof(*thread.packet);
			spy_thread_use_room(&thread, thread.head + least +
							     (size_t)depth * SPY_RECORD_MAX + more -
							     SPY_CALL_ROOM - SPY_WAIT_ROOM);
			frame.start = now - 5 * MS;
			spy_stack_look(&thread, &frame, now);
			assert_int_equal(thread.head != packet + sizeof(*thread.packet), more == 0);
		}
}

/* ---- how often at one place ---- */

/* A moment long after, at which a lot is drawn or not. */
static void later(bool drawn)
{
	now += SECOND;
	while (spy_stack_is_drawn(now) != drawn)
		now++;
}

static void test_first_calls(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 12; i++) {
		later(false);
		assert_int_equal(why(5 * MS), i < 8 ? SPY_STACK_LONG : NO_RECORD);
	}
	/* From another place, and of another function there. */
	assert_int_equal(why_elsewhere(5 * MS), SPY_STACK_LONG);
	slot.fn = FN + 1;
	assert_int_equal(why(5 * MS), SPY_STACK_LONG);
}

/* Twice as long as the longest that has one. */
static void test_longer(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		later(false);
		why(5 * MS);
	}
	later(false);
	assert_int_equal(why(10 * MS - 1), NO_RECORD);
	assert_int_equal(why(10 * MS), SPY_STACK_LONG);
	later(false);
	assert_int_equal(why(19 * MS), NO_RECORD);
	assert_int_equal(why(25 * MS), SPY_STACK_LONG);
	later(false);
	assert_int_equal(why(49 * MS), NO_RECORD);
}

/* About the 16th, 32nd, 64th …, counted in lots of 16. */
static void test_lots(void **state)
{
	int i, calls = 12;

	(void)state;
	for (i = 0; i < 12; i++) {
		later(true); /* in the first ones each call counts for itself */
		assert_int_equal(why(5 * MS), i < 8 ? SPY_STACK_LONG : NO_RECORD);
	}
	for (i = 0; i < 40; i++) {
		int before = calls;

		calls += 16;
		later(false);
		assert_int_equal(why(5 * MS), NO_RECORD);
		later(true);
		assert_int_equal(why(5 * MS), __builtin_clz((unsigned int)before) !=
							      __builtin_clz((unsigned int)calls)
						      ? SPY_STACK_LONG
						      : NO_RECORD);
	}
}

/* Something was made: the first four times are a beginning. */
static void test_made(void **state)
{
	uint64_t key = spy_stack_key(&frame);
	int i;

	(void)state;
	slot.makes = 1;
	for (i = 0; i < 40; i++) {
		later(false);
		assert_true(i > 12 || spy_stack_makes(&thread, &frame, now));
		assert_int_equal(why(10), i < 4 || i >= 12 ? NO_RECORD : SPY_STACK_MADE);
		assert_int_equal(spy_stack_settled(&thread, key)->key == key, i >= 12);
	}
	/* No look at the place any more, but if it was long or a lot is drawn. */
	frame.start = now - 19;
	assert_false(spy_stack_makes(&thread, &frame, now));
	frame.start = now - 20;
	assert_true(spy_stack_makes(&thread, &frame, now));
	later(true);
	frame.start = now - 10;
	assert_true(spy_stack_makes(&thread, &frame, now));
	later(false);
	frame.start = now - 10;
	frame.caller += 8;
	assert_true(spy_stack_makes(&thread, &frame, now));
	/* What failed besides is no beginning. */
	frame.result = 2;
	assert_int_equal(why_elsewhere(10), SPY_STACK_MADE | SPY_STACK_FAILED);
}

/* Old packets are deleted: a place is recorded once more, a quarter of a second later at the earliest. */
static void test_bounded(void **state)
{
	uint64_t key = spy_stack_key(&frame);
	int i;

	(void)state;
	keep = 1 << 20;
	spy_stack_begin(HZ);
	for (i = 0; i < 30; i++) {
		later(false);
		assert_int_equal(why(5 * MS), SPY_STACK_LONG);
	}
	now += MS;
	why(5 * MS); /* how long it was is told only now */
	now += 239 * MS;
	while (spy_stack_is_drawn(now))
		now++;
	assert_int_equal(why(5 * MS), NO_RECORD);
	now += 10 * MS;
	while (spy_stack_is_drawn(now))
		now++;
	assert_int_equal(why(5 * MS), SPY_STACK_LONG);
	slot.makes = 1; /* and so none is settled */
	for (i = 0; i < 30; i++)
		why(10);
	assert_true(spy_stack_settled(&thread, key)->key != key);
}

/* So many places are known; beyond them there is none. */
static void test_full_table(void **state)
{
	uint64_t i, recorded = 0;

	(void)state;
	for (i = 0; i < 3 * SPY_STACK_SITES; i++)
		recorded += why_elsewhere(5 * MS) == SPY_STACK_LONG;
	assert_in_range(recorded, SPY_STACK_SITES * 95 / 100, SPY_STACK_SITES);
}

/* ---- how often in one thread ---- */

/* How many of so many calls now, each at a place of its own, get one? */
static unsigned int burst(unsigned int calls, uint64_t duration)
{
	unsigned int n = 0;

	while (calls--) {
		frame.caller += 8;
		n += why(duration) != NO_RECORD;
	}
	return n;
}

static void test_share(void **state)
{
	(void)state;
	assert_int_equal(burst(300, 5 * MS), 200);
	now += 1; /* the next one is used up in part */
	assert_int_equal(burst(10, 5 * MS), 1);
	now += 20 * MS - 1; /* 50 a second */
	assert_int_equal(burst(10, 5 * MS), 0);
	now += 1;
	assert_int_equal(burst(10, 5 * MS), 1);
	now += 100 * MS;
	assert_int_equal(burst(10, 5 * MS), 5);
	now += 3600 * SECOND; /* what was not used is not kept */
	assert_int_equal(burst(300, 5 * MS), 200);
	/* Of what takes very long each place has one, and what is short then waits the longer. */
	assert_int_equal(burst(300, 10 * MS), 300);
	frame.caller -= 8;
	assert_int_equal(why(100 * MS), NO_RECORD);
	assert_int_equal(burst(10, 5 * MS), 0);
}

static void test_share_of_samples(void **state)
{
	(void)state;
	slot.sampled = SPY_SAMPLED_ALL;
	for (page.calls = 1; !spy_stack_draws(page.calls); page.calls++)
		;
	assert_int_equal(burst(300, 10), 100);
	assert_int_equal(burst(300, 5 * MS), 100); /* for others something is left */
}

/* ---- the sample ---- */

static void test_sampled(void **state)
{
	int i;

	(void)state;
	for (page.calls = 1; !spy_stack_draws(page.calls); page.calls++)
		;
	slot.sampled = SPY_SAMPLED_NONE;
	assert_int_equal(why_elsewhere(10), NO_RECORD);
	slot.sampled = SPY_SAMPLED_ALL;
	assert_int_equal(why_elsewhere(10), SPY_STACK_SAMPLED);
	slot.sampled = SPY_SAMPLED_LEGACY;
	assert_int_equal(why_elsewhere(10), NO_RECORD);
	frame.details.stream = SPY_STREAM_LEGACY;
	assert_int_equal(why_elsewhere(10), SPY_STACK_SAMPLED);
	frame.details.stream = SPY_STREAM_PER_THREAD;
	assert_int_equal(why_elsewhere(10), NO_RECORD);
	/* One that waited for something is in it, into whatever stream; if its sort is. */
	slot.sampled = SPY_SAMPLED_NONE;
	assert_int_equal(why_elsewhere(MS / 50), NO_RECORD);
	slot.sampled = SPY_SAMPLED_LEGACY;
	assert_int_equal(why_elsewhere(MS / 50 - 1), NO_RECORD);
	assert_int_equal(why_elsewhere(MS / 50), SPY_STACK_SAMPLED);
	/* Four at a place, and the eighth; long ones are counted apart. */
	slot.sampled = SPY_SAMPLED_ALL;
	frame.caller += 8;
	for (i = 0; i < 12; i++) {
		later(false);
		assert_int_equal(why(10), i < 4 || i == 7 ? SPY_STACK_SAMPLED : NO_RECORD);
	}
	for (i = 0; i < 8; i++) {
		later(false);
		assert_int_equal(why(5 * MS), SPY_STACK_SAMPLED | SPY_STACK_LONG);
	}
	later(false);
	assert_int_equal(why(5 * MS), NO_RECORD);
}

/* One in 8 of the first, one in 64 of the rest, in rounds of any length, too. */
/* One place launches all kernels: each is one of its own, as long as there is room. */
static void test_kernels(void **state)
{
	uint32_t i;

	(void)state;
	slot.sampled = SPY_SAMPLED_LEGACY;
	frame.details.event = SPY_EV_LAUNCH;
	frame.details.stream = SPY_STREAM_PER_THREAD;
	for (i = 0; i < 12; i++) {
		frame.details.kernel = 1 + i % 3;
		later(false);
		assert_int_equal(why(MS / 50), SPY_STACK_SAMPLED);
	}
	frame.details.kernel = 1;
	later(false);
	assert_int_equal(why(MS / 50), NO_RECORD);
	for (i = 1; i < 4 * SPY_STACK_KERNELS; i++) {
		frame.details.kernel = i;
		later(false);
		why(MS / 50);
	}
	later(false);
	assert_int_equal(why(MS / 50), NO_RECORD);
	later(false);
	assert_int_equal(why_elsewhere(MS / 50), SPY_STACK_SAMPLED);
	frame.details = (struct spy_details){0};
}

static void test_draws(void **state)
{
	unsigned int early = 0, late = 0, round, i, n;

	(void)state;
	for (i = 0; i < SPY_STACK_EARLY; i++)
		early += spy_stack_draws(i);
	for (; i < SPY_STACK_EARLY + 64000; i++)
		late += spy_stack_draws(i);
	assert_in_range(early, 100, 156);
	assert_in_range(late, 900, 1100);
	for (round = 2; round < 200; round++) {
		for (i = 0, n = 0; i < 6400; i++)
			n += spy_stack_draws(SPY_STACK_EARLY + i * round);
		assert_in_range(n, 55, 150);
	}
	for (i = 0, n = 0; i < 16000; i++)
		n += spy_stack_is_drawn(1000 * SECOND + 10007ull * i);
	assert_in_range(n, 800, 1200);
}

/* ---- lines of Python ---- */

static void *has_asked(void)
{
	return NULL;
}

/* The records behind the stack: one for each code, and one with all lines. */
static void test_python(void **state)
{
	const struct spy_rec_python_code *code;
	const struct spy_rec_python_stack *lines;
	const uint8_t *at;
	unsigned int i, numbers[4];

	(void)state;
	n_frames = 4;
	has_python = may_enter = true;
	python.symbols.thread_state = has_asked;
	assert_non_null(looked(5 * MS));
	assert_ptr_equal(thread.head,
			 packet + sizeof(struct spy_packet) + sizeof(struct spy_rec_stack));
	thread.python_asked = has_asked; /* it knows its state from before */
	now += SECOND;
	at = (const uint8_t *)looked(5 * MS) + sizeof(struct spy_rec_stack);
	for (i = 0; i < 4; i++) {
		char file[32], function[8];

		if (i == 2)
			continue;
		code = (const struct spy_rec_python_code *)at;
		snprintf(file, sizeof(file), "/file%u.py", i);
		snprintf(function, sizeof(function), "f%u", i);
		assert_int_equal(code->head.event, SPY_EV_PYTHON_CODE);
		assert_int_equal(code->head.time, now);
		assert_int_equal(code->first_line, i);
		assert_string_equal(code->text, file);
		assert_string_equal(code->text + strlen(file) + 1, function);
		numbers[i] = code->code;
		assert_in_range(numbers[i], 1, SPY_PYTHON_CODES);
		at += sizeof(*code) + strlen(file) + 1 + strlen(function) + 1;
		while (*at == ' ') /* up to a whole number of words, with one more text */
			at++;
		assert_int_equal(*at++, 0);
		assert_int_equal((at - packet) % 8, 0);
	}
	lines = (const struct spy_rec_python_stack *)at;
	assert_int_equal(lines->time, now);
	assert_int_equal(lines->event, SPY_EV_PYTHON_STACK);
	assert_int_equal(lines->fn, FN);
	assert_int_equal(lines->count, 4);
	assert_int_equal(lines->more, 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(lines->codes[i], i == 2 ? 0 : numbers[i]);
		assert_int_equal(lines->lines[i], i == 2 ? 0 : 10 + i);
	}
	assert_ptr_equal(thread.head, at + sizeof(*lines));
	assert_int_equal(entered, 0);
	/* Codes are told once; of many frames those in the middle are left out. */
	now += SECOND;
	n_frames = 4;
	lines = (const struct spy_rec_python_stack *)((const uint8_t *)looked(5 * MS) +
						      sizeof(struct spy_rec_stack));
	assert_int_equal(lines->event, SPY_EV_PYTHON_STACK);
	assert_int_equal(lines->codes[1], numbers[1]);
	for (n_frames = SPY_PYTHON_MOST; n_frames <= SPY_PYTHON_MOST + 15; n_frames += 5) {
		now += SECOND;
		assert_non_null(looked(5 * MS));
		lines = (const struct spy_rec_python_stack *)(thread.head - sizeof(*lines));
		assert_int_equal(lines->event, SPY_EV_PYTHON_STACK);
		assert_int_equal(lines->count, SPY_PYTHON_MOST);
		assert_int_equal(lines->more,
				 n_frames > SPY_PYTHON_MOST ? SPY_PYTHON_MORE_BETWEEN : 0);
		for (i = 3; i < SPY_PYTHON_MOST; i++)
			assert_int_equal(lines->lines[i],
					 10 + (i < SPY_PYTHON_INNERMOST
						       ? i
						       : n_frames - SPY_PYTHON_MOST + i));
	}
}

/* No lines: the thread is in no Python, or a library is being unloaded. */
static void test_no_python(void **state)
{
	(void)state;
	has_python = may_enter = true;
	python.symbols.thread_state = thread.python_asked = has_asked;
	assert_non_null(looked(5 * MS));
	assert_ptr_equal(thread.head,
			 packet + sizeof(struct spy_packet) + sizeof(struct spy_rec_stack));
	n_frames = 3;
	may_enter = false;
	now += SECOND;
	assert_non_null(looked(5 * MS));
	assert_ptr_equal(thread.head,
			 packet + sizeof(struct spy_packet) + sizeof(struct spy_rec_stack));
	assert_int_equal(entered, 0);
	assert_int_equal(n_places, 0);
}

/* Old packets are deleted: each packet has the codes that its lines are of. */
static void test_python_bounded(void **state)
{
	const uint8_t *behind;
	size_t bytes[3];
	int i;

	(void)state;
	keep = 1 << 20;
	spy_stack_begin(HZ);
	n_frames = 2;
	has_python = may_enter = true;
	python.symbols.thread_state = thread.python_asked = has_asked;
	for (i = 0; i < 3; i++) {
		now += SECOND;
		assert_non_null(looked(5 * MS));
		behind = packet + sizeof(struct spy_packet) + sizeof(struct spy_rec_stack);
		bytes[i] = (size_t)(thread.head - behind);
		if (i == 1)
			thread.packet->seq++;
	}
	assert_int_equal(bytes[1], sizeof(struct spy_rec_python_stack));
	assert_true(bytes[0] > bytes[1]);
	assert_int_equal(bytes[2], bytes[0]);
	thread.slot = 4;
	now += SECOND;
	assert_non_null(looked(5 * MS));
	assert_int_equal(thread.head - behind, bytes[0]);
}

/* ---- between calls ---- */

/* The calls beside a long gap, however often it comes; as far as there is something left. */
static void test_gap(void **state)
{
	(void)state;
	page.calls = 4;
	thread.gaps.next_at = 6;
	assert_int_equal(why(10), NO_RECORD);
	thread.gaps.next_at = 5; /* the next one is expected behind this call */
	for (int i = 0; i < 8; i++)
		assert_int_equal(why(10), SPY_STACK_GAP);
	assert_int_equal(why(5 * MS), SPY_STACK_GAP | SPY_STACK_LONG);
	thread.gaps.next_at = 4;
	assert_int_equal(why(10), NO_RECORD);
	thread.gaps.behind = true;
	for (int i = 0; i < 8; i++)
		assert_int_equal(why(10), SPY_STACK_GAP);
	now += 10 * SECOND;
	assert_int_equal(burst(300, 10), 100);
	thread.gaps.behind = false;
	assert_int_equal(burst(300, 5 * MS), 100); /* for others something is left */
}

static struct spy_outside wait = {.caller = 0x7000, .sp = 0x100, .bp = 0x200, .kind = 2};

/* The same of a wait that ends now, or of what is announced. */
static int why_wait(uint64_t duration, uint64_t place)
{
	const struct spy_rec_stack *record = (void *)(packet + sizeof(*thread.packet));

	memset(packet, 0, sizeof(*thread.packet) + 4096);
	thread.head = packet + sizeof(*thread.packet);
	spy_thread_use_room(&thread, packet + sizeof(packet) - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	wait.start = now - duration;
	asked = (struct spy_unwind){0};
	if (place)
		spy_stack_place(
			&thread,
			&(struct spy_unwind){.ip = wait.caller, .sp = wait.sp, .bp = wait.bp},
			place, now);
	else
		spy_stack_wait(&thread, &wait, now);
	if (thread.head == packet + sizeof(*thread.packet))
		return NO_RECORD;
	assert_int_equal(record->fn, SPY_FN_NONE);
	assert_int_equal(record->time, now);
	assert_int_equal(record->count, 2);
	assert_int_equal(asked.ip, wait.caller);
	assert_int_equal(asked.sp, wait.sp);
	assert_int_equal(asked.bp, wait.bp);
	return record->why;
}

static void test_wait(void **state)
{
	(void)state;
	assert_int_equal(why_wait(MS - 1, 0), NO_RECORD);
	for (int i = 0; i < 100; i++)
		assert_int_equal(why_wait(MS, 0), SPY_STACK_GAP);
	assert_int_equal(why_wait(50 * MS, 0), NO_RECORD);
	/* The first one of a kind and a place has one all the same. */
	wait.kind = 3;
	assert_int_equal(why_wait(MS, 0), SPY_STACK_GAP);
	assert_int_equal(why_wait(MS, 0), NO_RECORD);
	wait.caller++;
	assert_int_equal(why_wait(MS, 0), SPY_STACK_GAP);
	assert_int_equal(why_wait(MS, 0), NO_RECORD);
	now += SECOND;
	spy_cost_without_stacks = true;
	assert_int_equal(why_wait(MS, 0), NO_RECORD);
	spy_cost_without_stacks = false;
	assert_int_equal(why_wait(MS, 0), SPY_STACK_GAP);
	spy_options.nostacks = "1";
	spy_stack_begin(HZ);
	assert_int_equal(why_wait(SECOND, 0), NO_RECORD);
}

/* A place that is no call, and a poll that finds something: four, then the eighth, however long. */
static void test_place(void **state)
{
	(void)state;
	wait.caller = 0x8000;
	for (int i = 0; i < 12; i++) {
		later(false);
		assert_int_equal(why_wait(0, 0xabc),
				 i < 4 || i == 7 ? SPY_STACK_SAMPLED : NO_RECORD);
	}
	wait.ready = 1;
	for (int i = 0; i < 12; i++) {
		later(false);
		assert_int_equal(why_wait(i % 2 * SECOND, 0),
				 i < 4 || i == 7 ? SPY_STACK_SAMPLED : NO_RECORD);
	}
	wait.ready = 0;
	spy_cost_without_stacks = true;
	assert_int_equal(why_wait(0, 0xdef), NO_RECORD);
	spy_cost_without_stacks = false;
	assert_int_equal(why_wait(0, 0xdef), SPY_STACK_SAMPLED);
	/* What is left for samples, whatever the place. */
	now += 10 * SECOND;
	for (unsigned int i = 0; i < 200; i++)
		assert_int_equal(why_wait(0, 0x1000 + i), i < 100 ? SPY_STACK_SAMPLED : NO_RECORD);
	spy_options.nostacks = "1";
	spy_stack_begin(HZ);
	now += 10 * SECOND;
	assert_int_equal(why_wait(0, 0x99999), NO_RECORD);
}

/* ---- how much of a thread's time ---- */

static int why_soon(uint64_t duration)
{
	frame.caller += 8;
	return why(duration);
}

/* Stacks of 1 ms each: 20 ms of them at once, then one in 200 ms. */
static void test_time(void **state)
{
	int i;

	(void)state;
	stack_takes = MS;
	for (i = 0; i < 20; i++)
		assert_int_equal(why_soon(2 * MS), SPY_STACK_LONG);
	assert_int_equal(why_soon(2 * MS), NO_RECORD);
	frame.result = 2; /* what failed does not wait */
	assert_int_equal(why_soon(10), SPY_STACK_FAILED);
	frame.result = 0;
	now += 199 * MS; /* it is paid for all the same */
	assert_int_equal(why_soon(2 * MS), NO_RECORD);
	now += 2 * MS;
	assert_int_equal(why_soon(2 * MS), SPY_STACK_LONG);
	assert_int_equal(why_soon(2 * MS), NO_RECORD);
	/* To a call that took far longer it is nothing. */
	now += 201 * MS;
	for (i = 0; i < 10; i++)
		assert_int_equal(why_soon(100 * MS), SPY_STACK_LONG);
	assert_int_equal(why_soon(2 * MS), SPY_STACK_LONG);
	assert_int_equal(why_soon(2 * MS), NO_RECORD);
}

/* Longer than 2 ms no stack takes: then the thread had no CPU. */
static void test_time_off_cpu(void **state)
{
	int i;

	(void)state;
	stack_takes = SECOND;
	for (i = 0; i < 10; i++)
		assert_int_equal(why_soon(2 * MS), SPY_STACK_LONG);
	assert_int_equal(why_soon(2 * MS), NO_RECORD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_which),      TEST(test_switched_off), TEST(test_record),
		TEST(test_room),       TEST(test_first_calls),  TEST(test_longer),
		TEST(test_lots),       TEST(test_made),         TEST(test_bounded),
		TEST(test_full_table), TEST(test_share),        TEST(test_share_of_samples),
		TEST(test_sampled),    TEST(test_gap),          TEST(test_wait),
		TEST(test_place),      TEST(test_kernels),      TEST(test_draws),
		TEST(test_python),     TEST(test_no_python),    TEST(test_python_bounded),
		TEST(test_time),       TEST(test_time_off_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
