/* links: shim/entry/call.c */
/*
 * tests/unit/test_call.c: enter and leave, called by hand as the trampoline does, with a clock that stands still: what
 * comes into the packet and onto the board, and what is lost, of calls, calls inside calls, counted ones, calls that
 * were left, and calls of signal handlers that interrupt a record in the making.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "inspect/inspect.h"
#include "process/own_stack.h"
#include "lib/clock.h"
#include "record/board.h"
#include "probe/caller.h"
#include "probe/waiters.h"
#include "hook/resolve.h"
#include "entry/gap.h"
#include "record/sched.h"
#include "stack/stack.h"
#include "state/thread.h"

/* ---- the rest of the shim ---- */

struct spy_slot spy_slots[SPY_SLOTS];
__thread struct spy_thread *spy_self;
uint64_t spy_examined_from, spy_long_call, spy_poll_long_call;
bool spy_clock_is_counter;

static uint64_t now; /* the clock */
static struct spy_thread thread, *ready;
static struct spy_slot_page page;
static uint8_t packet[SPY_PACKET_BYTES] __attribute__((aligned(4096)));
static struct spy_details found; /* what the inspector finds out */
static int n_before, n_after, n_waiters, n_sched, n_stacks, n_ready, n_resolved, n_lost;
static int n_timed;
static uint64_t sched_at, timed_cycles;

uint64_t spy_clock_monotonic(void)
{
	return now;
}

void spy_caller_set_begin(struct spy_thread *of, uint64_t at)
{
	assert_int_equal(at, now);
	for (uint8_t i = 0; i < of->depth; i++)
		if (!of->calls[i].start)
			of->calls[i].start = at;
}

void spy_waiters_leave(struct spy_thread *of)
{
	of->waiting = NULL;
	n_waiters++;
}

void spy_waiters_settle(struct spy_thread *of, uint64_t at)
{
	assert_int_equal(at, now);
	spy_waiters_leave(of);
}

static void before(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)self;
	n_before++;
	if (found.event != SPY_EV_CALL)
		frame->details = found;
}

static void after(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)frame;
	(void)self;
	n_after++;
}

enum { STATELESS = 1, STATEFUL = 2 };

const struct spy_inspector spy_inspectors[SPY_INSPECTOR_COUNT] = {
	[STATELESS] = {.before = before, .after = after},
	[STATEFUL] = {.before = before, .after = after, .stateful = true},
	[SPY_INSPECTOR_get_proc_address] = {.after = after},
};

void *spy_first_call(struct spy_slot *slot, uint64_t index)
{
	(void)index;
	n_resolved++;
	return slot->real = &n_resolved;
}

static uintptr_t signals_begin, signals_end; /* the alternate stack */

bool spy_own_stack_is_for_signals(uintptr_t address)
{
	return address >= signals_begin && address < signals_end;
}

void spy_sched_look(struct spy_thread *of, uint64_t at)
{
	assert_ptr_equal(of, &thread);
	n_sched++;
	sched_at = at;
	of->ran_at = now;
}

void spy_gap_look(struct spy_thread *of, uint64_t start)
{
	assert_int_equal(start, now);
	spy_sched_look(of, 0);
}

uint8_t spy_recorded_from;
uint32_t spy_window_changes = 1;
static struct spy_board board; /* with a request in it */
const struct spy_board *spy_window_board = &board;
static bool captures;
static int n_looks;
static uint8_t then_from; /* spy_recorded_from behind the next look */

bool spy_stream_captures(void)
{
	return captures;
}

bool spy_thread_look(struct spy_thread *of)
{
	assert_ptr_equal(of, &thread);
	n_looks++;
	of->asleep = true;
	of->packet = NULL;
	spy_thread_lose_room(of);
	of->until_look = spy_recorded_from == SPY_DORMANT ? 3 : 0;
	board.answered = board.request;
	spy_recorded_from = then_from;
	return spy_window_is_open();
}

uint16_t spy_slots_number(struct spy_slot *slot)
{
	return slot->counter = 9;
}

uint8_t spy_slots_timed[SPY_FN_COUNT];

bool spy_slots_took(const struct spy_slot *slot, uint64_t cycles)
{
	assert_int_equal(slot->record, SPY_COUNTED);
	timed_cycles = cycles;
	n_timed++;
	return cycles >= 50;
}

void spy_stack_look(struct spy_thread *of, const struct spy_frame *frame, uint64_t at)
{
	assert_ptr_equal(of, &thread);
	assert_true(frame->start <= at);
	n_stacks++;
}

void spy_session_count_lost(void)
{
	n_lost++;
}

struct spy_thread *spy_thread_ready(void)
{
	n_ready++;
	if (ready && ready->asleep && spy_window_is_open()) {
		ready->asleep = false;
		ready->packet = (struct spy_packet *)packet;
		spy_thread_use_room(ready,
				    packet + SPY_PACKET_BYTES - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	}
	return ready;
}

void spy_thread_set_device(struct spy_thread *of, uint8_t device, uint16_t context)
{
	of->device = (uint8_t)(device + 1);
	of->context = context;
}

/* ---- a stack, and calls on it ---- */

#define FN 77
#define CALLER 0xabcd123456789abcull /* the upper 16 bits are no part of an address */

static struct spy_frame
	frames[SPY_DEPTH_MAX + 2]; /* the stack grows down: deeper calls have lower numbers */
#define OUTER (&frames[SPY_DEPTH_MAX])
#define INNER (&frames[SPY_DEPTH_MAX - 1])
static uint64_t arguments[64] __attribute__((aligned(4096)));

static int begin(void **state)
{
	(void)state;
	memset(&thread, 0, sizeof(thread));
	memset(&page, 0, sizeof(page));
	memset(packet, 0, sizeof(packet));
	memset(frames, 0xa5, sizeof(frames));
	memset(&found, 0, sizeof(found));
	found.event = SPY_EV_CALL;
	n_before = n_after = n_waiters = n_sched = n_stacks = n_ready = n_resolved = n_lost = 0;
	thread.page = &page;
	thread.packet = (struct spy_packet *)packet;
	thread.head = packet + sizeof(struct spy_packet);
	spy_thread_use_room(&thread, packet + SPY_PACKET_BYTES - SPY_CALL_ROOM - SPY_WAIT_ROOM);
	spy_self = ready = &thread;
	n_timed = 0;
	spy_examined_from = spy_long_call = spy_poll_long_call = thread.look_at = UINT64_MAX;
	now = 1000;
	spy_recorded_from = SPY_RECORDED;
	then_from = SPY_DORMANT;
	board.request = board.answered = 0;
	captures = false;
	n_looks = 0;
	for (unsigned int i = 0; i < SPY_SLOTS; i++)
		spy_slots[i] = (struct spy_slot){.real = &now,
						 .fn = (uint16_t)(FN + i),
						 .record = SPY_TRACED,
						 .layer = SPY_LAYER_RT13,
						 .window = SPY_WINDOW};
	return 0;
}

static void *enter(struct spy_frame *frame, unsigned int slot)
{
	frame->slot_index = slot;
	frame->stack = arguments + 1;
	frame->caller = CALLER;
	return spy_enter(frame);
}

static void leave(struct spy_frame *frame, uint64_t after_cycles, uint64_t result)
{
	now += after_cycles;
	frame->result = result;
	spy_leave(frame);
}

static size_t at; /* records are read from here on */

/* The next record in the packet, of so many bytes. */
static const void *record(size_t bytes)
{
	const void *next = packet + sizeof(struct spy_packet) + at;

	at += bytes;
	assert_true((const uint8_t *)next + bytes <= thread.head);
	assert_int_equal(thread.packet->content_bits, 8 * (uint64_t)(thread.head - packet));
	return next;
}

/* There are no more. */
static void no_record(void)
{
	assert_ptr_equal(thread.head, packet + sizeof(struct spy_packet) + at);
	at = 0;
}

static void expect_head(const struct spy_rec_head *head, enum spy_event event, uint16_t fn,
			uint64_t duration, uint16_t result, uint8_t depth)
{
	assert_int_equal(head->event, event);
	assert_int_equal(head->fn, fn);
	assert_int_equal(head->duration, duration);
	assert_int_equal(head->result, result);
	assert_int_equal(head->depth, depth);
	assert_int_equal(head->device, (uint8_t)(thread.device - 1));
	assert_int_equal(head->context, thread.context);
}

/* ---- a call ---- */

static void test_call(void **state)
{
	const struct spy_rec_call *call;

	(void)state;
	thread.context = 0x1234;
	assert_ptr_equal(enter(OUTER, 0), &now);
	assert_int_equal(page.depth, 1);
	assert_int_equal(page.fn, FN);
	assert_int_equal(page.outer_fn, FN);
	assert_int_equal(page.since, 1000);
	assert_int_equal(page.caller, CALLER);
	assert_int_equal(thread.depth, 1);
	assert_int_equal(thread.detail_level, SPY_DETAIL_TIME);
	assert_int_equal(thread.device, 1); /* the runtime begins on the first */
	assert_int_equal(thread.reentry_frame, 0);
	leave(OUTER, 500, 0xdead000000000000ull);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 500, 0, 0);
	assert_int_equal(call->head.time, 1500);
	assert_int_equal(call->caller, CALLER & 0xffffffffffff);
	assert_int_equal(call->flags, 0);
	no_record();
	assert_int_equal(page.depth, 0);
	assert_int_equal(page.calls, 1);
	assert_int_equal(page.lost, 0);
	assert_int_equal(thread.packet->time_end, 1500);
	assert_int_equal(thread.depth, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_NONE);
	assert_int_equal(thread.reentry_frame, 0);
	assert_int_equal(n_sched + n_waiters + n_stacks, 0);
}

static void test_results(void **state)
{
	static const struct {
		uint64_t result;
		uint16_t shown;
	} results[] = {{0, 0},
		       {2, 2},
		       {0xdeadbeef00000002ull, 2},
		       {SPY_RESULT_NONE - 1, SPY_RESULT_NONE - 1},
		       {SPY_RESULT_NONE, SPY_RESULT_NONE},
		       {SPY_RESULT_NONE + 1, SPY_RESULT_NONE},
		       {0xffffffff, SPY_RESULT_NONE}};

	(void)state;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		const struct spy_rec_call *call;

		enter(OUTER, 0);
		leave(OUTER, 1, results[i].result);
		call = record(sizeof(*call));
		assert_int_equal(call->head.result, results[i].shown);
	}
	no_record();
	/* Where the device is unknown a driver's call says so. */
	thread.device = 0;
	spy_slots[0].layer = SPY_LAYER_DRIVER;
	at = (size_t)(thread.head - packet) - sizeof(struct spy_packet);
	enter(OUTER, 0);
	leave(OUTER, (1ull << 48) + 5, 0);
	{
		const struct spy_rec_call *call = record(sizeof(*call));

		assert_int_equal(call->head.device, SPY_DEVICE_NONE);
		assert_int_equal(call->head.duration, (1ull << 48) - 1); /* no longer */
	}
	no_record();
}

/* Each shape, with every field as it was found. */
static void test_shapes(void **state)
{
	const struct spy_rec_launch *launch;
	const struct spy_rec_op *op;
	const struct spy_rec_copy *copy;
	const struct spy_rec_memory *memory;

	(void)state;
	spy_slots[0].inspector = STATELESS;
	found = (struct spy_details){
		.event = SPY_EV_LAUNCH, .kernel = 0x12345678, .stream = 0x777766665555};
	enter(OUTER, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_ARGUMENTS);
	assert_int_equal(page.stream, 0x777766665555);
	leave(OUTER, 1, 0);
	launch = record(sizeof(*launch));
	expect_head(&launch->head, SPY_EV_LAUNCH, FN, 1, 0, 0);
	assert_int_equal(launch->kernel_hi << 16 | launch->kernel_lo, 0x12345678);
	assert_int_equal(launch->stream, 0x777766665555);
	assert_int_equal(launch->caller, CALLER & 0xffffffffffff);

	found = (struct spy_details){
		.event = SPY_EV_OP, .flags = 0xfedc, .stream = 0x1122334455667788, .object = 0x99};
	enter(OUTER, 0);
	leave(OUTER, 2, 0);
	op = record(sizeof(*op));
	expect_head(&op->head, SPY_EV_OP, FN, 2, 0, 0);
	assert_int_equal(op->flags, 0xfedc);
	assert_int_equal(op->stream, 0x1122334455667788);
	assert_int_equal(op->object, 0x99);
	assert_int_equal(op->caller, CALLER & 0xffffffffffff);

	found = (struct spy_details){.event = SPY_EV_COPY,
				     .direction = SPY_DIR_D2D,
				     .form = SPY_FORM_PEER,
				     .src_kind = SPY_MEM_DEVICE,
				     .dst_kind = SPY_MEM_MIXED,
				     .src_device = 5,
				     .dst_device = 6,
				     .access = 2 | 1 << 2,
				     .captured = true,
				     .stream = 0xffff777766665555,
				     .bytes = 0xf123456789abcdefull};
	enter(OUTER, 0);
	leave(OUTER, 3, 0);
	copy = record(sizeof(*copy));
	expect_head(&copy->head, SPY_EV_COPY, FN, 3, 0, 0);
	assert_int_equal(copy->direction, SPY_DIR_D2D);
	assert_int_equal(copy->form, SPY_FORM_PEER);
	assert_int_equal(copy->src_kind, SPY_MEM_DEVICE);
	assert_int_equal(copy->dst_kind, SPY_MEM_MIXED);
	assert_int_equal(copy->src_device, 5);
	assert_int_equal(copy->dst_device, 6);
	assert_int_equal(copy->src_access, 2);
	assert_int_equal(copy->dst_access, 1);
	assert_int_equal(copy->captured, 1);
	assert_int_equal(copy->stream, 0x777766665555);
	assert_int_equal(copy->bytes, 0x123456789abcdef);
	assert_int_equal(copy->caller, CALLER & 0xffffffffffff);

	found = (struct spy_details){.event = SPY_EV_MEMORY,
				     .op = SPY_MEMOP_UNMAP,
				     .dst_kind = SPY_MEM_ARRAY,
				     .pool = true,
				     .stream = 0x1122334455667788,
				     .address = 0xaaaabbbbccccdddd,
				     .bytes = 0x1111222233334444};
	enter(OUTER, 0);
	leave(OUTER, 4, 0);
	memory = record(sizeof(*memory));
	expect_head(&memory->head, SPY_EV_MEMORY, FN, 4, 0, 0);
	assert_int_equal(memory->op, SPY_MEMOP_UNMAP);
	assert_int_equal(memory->kind, SPY_MEM_ARRAY);
	assert_int_equal(memory->pool, 1);
	assert_int_equal(memory->reserved, 0);
	assert_int_equal(memory->stream, 0x1122334455667788);
	assert_int_equal(memory->address, 0xaaaabbbbccccdddd);
	assert_int_equal(memory->bytes, 0x1111222233334444);
	assert_int_equal(memory->caller, CALLER & 0xffffffffffff);
	no_record();
	assert_int_equal(n_before, 4);
	assert_int_equal(n_after, 4);
}

/* ---- calls inside calls ---- */

static void test_nested(void **state)
{
	const struct spy_rec_inner *inner;
	const struct spy_rec_head *head;
	const struct spy_rec_call *call;

	(void)state;
	spy_slots[0].inspector = spy_slots[1].inspector = STATELESS;
	found.event = SPY_EV_OP;
	enter(OUTER, 0);
	now = 1100;
	enter(INNER, 1); /* the arguments of the one around it are recorded */
	assert_int_equal(n_before, 1);
	assert_int_equal(page.depth, 2);
	assert_int_equal(page.fn, FN + 1);
	assert_int_equal(page.outer_fn, FN);
	assert_int_equal(page.since, 1000);
	assert_int_equal(page.inner_since, 1100);
	now = 1200;
	enter(INNER - 1, 2); /* a third */
	assert_int_equal(page.depth, 3);
	assert_int_equal(page.inner_since, 1200);
	leave(INNER - 1, 10, 0);
	head = record(sizeof(*head));
	expect_head(head, SPY_EV_NESTED, FN + 2, 10, 0, 2);
	assert_int_equal(page.depth, 2);
	assert_int_equal(page.fn, FN + 1);
	assert_int_equal(page.inner_since, 1100);
	leave(INNER, 10, 0);
	inner = record(sizeof(*inner));
	assert_int_equal(inner->event, SPY_EV_INNER);
	assert_int_equal(inner->fn, FN + 1);
	assert_int_equal(inner->duration, 120);
	assert_int_equal(inner->time, 1220);
	assert_int_equal(page.depth, 1);
	assert_int_equal(page.fn, FN);
	enter(INNER, 1);
	leave(INNER, 5, 35); /* failed: in full */
	head = record(sizeof(*head));
	expect_head(head, SPY_EV_NESTED, FN + 1, 5, 35, 1);
	enter(INNER, 1);
	leave(INNER, UINT32_MAX, 0);
	inner = record(sizeof(*inner));
	assert_int_equal(inner->duration, UINT32_MAX);
	enter(INNER, 1);
	leave(INNER, (uint64_t)UINT32_MAX + 1, 0); /* longer than a short record can say */
	head = record(sizeof(*head));
	expect_head(head, SPY_EV_NESTED, FN + 1, (uint64_t)UINT32_MAX + 1, 0, 1);
	assert_int_equal(n_after, 0);
	spy_slots[1].inspector = STATEFUL; /* keeps a table up to date at any detail level */
	enter(INNER, 1);
	leave(INNER, 5, 0);
	record(sizeof(*inner));
	assert_int_equal(n_before, 2);
	assert_int_equal(n_after, 1);
	leave(OUTER, 5, 0);
	record(sizeof(struct spy_rec_op));
	no_record();
	assert_int_equal(page.calls, 7);

	/* Inside one that tells nothing the inner one does. */
	begin(NULL);
	spy_slots[1].inspector = STATELESS;
	enter(OUTER, 0);
	found.event = SPY_EV_OP;
	enter(INNER, 1);
	leave(INNER, 5, 0);
	expect_head(&((const struct spy_rec_op *)record(sizeof(struct spy_rec_op)))->head,
		    SPY_EV_OP, FN + 1, 5, 0, 1);
	leave(OUTER, 5, 0);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 10, 0, 0);
	no_record();
	assert_int_equal(n_after, 1);
}

static void test_too_deep(void **state)
{
	(void)state;
	for (int i = 0; i < SPY_DEPTH_MAX; i++)
		enter(&frames[SPY_DEPTH_MAX + 1 - i], 0);
	assert_int_equal(page.depth, SPY_DEPTH_MAX);
	assert_int_equal(page.lost, 0);
	enter(&frames[1], 0);
	assert_int_equal(page.lost, 1);
	assert_int_equal(page.depth, SPY_DEPTH_MAX);
	leave(&frames[1], 1, 0);
	assert_int_equal(page.depth, SPY_DEPTH_MAX);
	for (int i = SPY_DEPTH_MAX; i--;)
		leave(&frames[SPY_DEPTH_MAX + 1 - i], 1, 0);
	assert_int_equal(page.depth, 0);
	assert_int_equal(page.calls, SPY_DEPTH_MAX);
}

/* Calls that an exception took us out of: what lies at or below the new frame is over. */
static void test_left(void **state)
{
	(void)state;
	enter(OUTER, 0);
	enter(INNER, 1);
	assert_int_equal(n_waiters, 0);
	enter(INNER, 2); /* in its place */
	assert_int_equal(INNER->depth, 1);
	assert_int_equal(n_waiters, 1);
	leave(INNER, 1, 0);
	enter(INNER, 1);
	enter(INNER + 2, 3); /* above both */
	assert_int_equal((INNER + 2)->depth, 0);
	assert_int_equal(page.outer_fn, FN + 3);
	assert_int_equal(n_waiters, 2);
	leave(INNER + 2, 1, 0);
	assert_int_equal(page.depth, 0);
}

/* ---- counted calls ---- */

static void test_counted(void **state)
{
	const struct spy_rec_call *call;

	(void)state;
	spy_slots[0].record = SPY_COUNTED;
	spy_slots[0].counter = 3;
	spy_slots[0].inspector = STATELESS;
	thread.paused =
		(void *)UINTPTR_MAX; /* what lies before the first call of the list is none */
	enter(OUTER, 0);
	thread.paused = NULL;
	assert_int_equal(thread.calls[0].timed, 0);
	assert_false(OUTER->inspected);
	assert_int_equal(page.counts[3], 1);
	assert_int_equal(page.depth, 1);
	assert_int_equal(page.fn, FN);
	assert_int_equal(page.since, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_COUNT);
	leave(OUTER, 5, 1); /* that it failed is not worth a record */
	no_record();
	assert_int_equal(page.depth, 0);
	assert_int_equal(page.calls, 0);
	assert_int_equal(n_before, 1);
	assert_int_equal(n_after, 1);
	enter(OUTER, 0);
	thread.calls[0].start = 1010; /* a probe saw it wait */
	now = 1010;
	leave(OUTER, 30, 0);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 30, 0, 0);
	no_record();
	assert_int_equal(page.counts[3], 1); /* it has a record instead */
	assert_int_equal(page.calls, 1);
}

/* The first few of each 64 calls are timed, unless they are questions or inside another call. A long one gets a record. */
static void test_counted_timed(void **state)
{
	const struct spy_rec_call *call;

	(void)state;
	spy_slots[0].record = spy_slots[1].record = SPY_COUNTED;
	spy_slots[0].counter = spy_slots[1].counter = 3;
	spy_slots_timed[FN] = spy_slots_timed[FN + 1] = 4;
	for (int i = 0; i < 128; i++) {
		enter(OUTER, 0);
		leave(OUTER, 49, 0);
	}
	no_record();
	assert_int_equal(n_timed, 8);
	assert_int_equal(timed_cycles, 49);
	enter(OUTER, 0);
	leave(OUTER, 50, 0);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 50, 0, 0);
	assert_int_equal(page.counts[3], 128);
	assert_int_equal(page.calls, 1);
	enter(OUTER, 0);
	thread.calls[0].start = now + 10; /* a probe saw it wait as well: it began before that */
	leave(OUTER, 60, 0);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 60, 0, 0);
	assert_int_equal(n_timed, 10);
	spy_slots[0].inspector = STATELESS;
	enter(OUTER, 0);
	leave(OUTER, 1000, 0);
	spy_slots[0].inspector = 0;
	enter(OUTER, 0);
	enter(INNER, 1);
	leave(INNER, 1000, 0);
	page.counts[3] = 60;
	leave(OUTER, 1, 0);
	enter(OUTER, 0);
	leave(OUTER, 1000, 0);
	assert_int_equal(n_timed, 11);
	record(sizeof(*call)); /* around the inner one */
	no_record();
}

/* A driver's call inside one that is timed, with its arguments recorded, is only counted. */
static void test_count_when_nested(void **state)
{
	const struct spy_rec_head *head;

	(void)state;
	spy_slots[1].count_when_nested = true;
	spy_slots[1].counter = SPY_COUNTER_NONE; /* until it is called for the first time */
	spy_slots[1].layer = SPY_LAYER_DRIVER;
	enter(OUTER, 0);
	enter(INNER, 1);
	assert_int_equal(spy_slots[1].counter, 9);
	assert_int_equal(page.counts[9], 1);
	assert_int_equal(page.depth, 2);
	leave(INNER, 5, 0);
	no_record();
	enter(INNER, 1);
	assert_int_equal(page.counts[9], 2);
	leave(INNER, 5, 7); /* failed */
	head = record(sizeof(*head));
	expect_head(head, SPY_EV_NESTED, FN + 1, 0, 7, 1);
	assert_int_equal(page.counts[9], 1);
	spy_slots[1].inspector = STATELESS; /* now it copies, which is recorded nowhere else */
	found.event = SPY_EV_COPY;
	enter(INNER, 1);
	assert_int_equal(page.counts[9], 1);
	leave(INNER, 5, 0);
	record(sizeof(struct spy_rec_copy));
	leave(OUTER, 5, 0);
	record(sizeof(struct spy_rec_call));
	no_record();

	begin(NULL); /* inside one that is only counted itself: that one began no later */
	spy_slots[0].record = SPY_COUNTED;
	spy_slots[0].counter = 3;
	spy_slots_timed[FN] = 0;
	spy_slots[1].count_when_nested = true;
	spy_slots[1].counter = 9;
	enter(OUTER, 0);
	now += 100;
	enter(INNER, 1);
	leave(INNER, 5, 0);
	leave(OUTER, 5, 0);
	record(sizeof(struct spy_rec_inner));
	head = record(sizeof(struct spy_rec_call));
	expect_head(head, SPY_EV_CALL, FN, 10, 0, 0);
	no_record();
	assert_int_equal(page.counts[9], 0);
	assert_int_equal(page.counts[3], 0);
}

/* ---- calls that are lost, or pass unrecorded ---- */

/* A handler's call, while a record of its thread is in the making: lost, and leaves no trace in it. */
static void interrupt(struct spy_frame *frame, uintptr_t reentry, bool lost)
{
	uint64_t before_ns = page.lost;

	thread.reentry_frame = reentry;
	assert_ptr_equal(enter(frame, 0), &now);
	assert_int_equal(page.lost, before_ns + lost);
	assert_int_equal(thread.depth, !lost);
	assert_int_equal(thread.reentry_frame, lost ? reentry : 0);
	leave(frame, 1, 0);
	if (!lost)
		record(sizeof(struct spy_rec_call));
	no_record();
	at = (size_t)(thread.head - packet) - sizeof(struct spy_packet);
}

static void test_interrupted(void **state)
{
	uintptr_t here = (uintptr_t)OUTER;

	(void)state;
	interrupt(OUTER, here + 4096, true); /* below, as handlers are */
	interrupt(OUTER, here + 1, true);
	interrupt(OUTER, UINTPTR_MAX, true); /* while something else of ours runs */
	interrupt(OUTER, here, false); /* that one never came back */
	interrupt(OUTER, here - 4096, false);
	interrupt(OUTER, here - (1 << 20), false);
	interrupt(OUTER, here - (1 << 20) - 16, true); /* far above: the stack of signals */
	interrupt(OUTER, here - (4 << 20), true);
	signals_begin = here - 2048; /* right above a coroutine's */
	signals_end = here + 4096;
	interrupt(OUTER, here - 4096, true);
	interrupt(OUTER, here - 1024, false);
	signals_begin = signals_end = 0;
	at = 0;
}

static void test_no_room(void **state)
{
	(void)state;
	thread.head = thread.limit;
	ready = NULL;
	assert_ptr_equal(enter(OUTER, 0), &now);
	leave(OUTER, 1, 0);
	assert_int_equal(n_ready, 1);
	assert_int_equal(page.depth, 0);
	assert_ptr_equal(thread.head, thread.limit);
	thread.head--;
	enter(OUTER, 0); /* the last one that fits */
	assert_int_equal(n_ready, 1);
	assert_int_equal(page.depth, 1);
	leave(OUTER, 1, 0);
	assert_int_equal(page.calls, 1);
	thread.head = thread.limit;
	ready = &thread;
	enter(OUTER, 0); /* there was room again */
	assert_int_equal(n_ready, 2);
	leave(OUTER, 1, 0);
	assert_int_equal(page.calls, 2);
}

/* The thread that returns is another one: a coroutine went on there. The call is lost, and its thread leaves it; but not if
 * that has begun another one in its place. */
static void elsewhere(bool counted, bool replaced)
{
	static struct spy_thread other = {.page = &page};

	begin(NULL);
	spy_slots[0].record = counted ? SPY_COUNTED : SPY_TRACED;
	enter(OUTER, 0);
	if (replaced)
		thread.calls[0].frame++;
	spy_self = &other;
	leave(OUTER, 1, 0);
	no_record();
	assert_int_equal(page.calls, 0);
	assert_int_equal(n_lost, !counted); /* or it has been counted */
	assert_int_equal(thread.calls[0].frame, replaced ? (uintptr_t)OUTER + 1 : 0);
	spy_self = &thread;
	enter(INNER, 1); /* as if it were inside */
	assert_int_equal(INNER->depth, replaced);
	leave(INNER, 1, 0);
	at = 0;
}

static void test_not_ours(void **state)
{
	static struct spy_thread child;

	(void)state;
	elsewhere(false, false);
	elsewhere(true, false);
	elsewhere(false, true);

	begin(NULL); /* a child that was forked inside the call: its parent's memory is empty there */
	enter(OUTER, 0);
	thread.page = NULL;
	spy_self = &child;
	leave(OUTER, 1, 0);
	assert_int_equal(n_lost, 0);
	assert_int_equal(thread.calls[0].frame, (uintptr_t)OUTER);
	thread.page = &page;
	spy_self = &thread;

	thread.packet = NULL; /* the thread itself, without room for it */
	leave(OUTER, 1, 0);
	thread.packet = (struct spy_packet *)packet;
	no_record();
	thread.head = packet + SPY_PACKET_BYTES - SPY_RECORD_MAX + 8;
	leave(OUTER, 1, 0); /* a record might not fit any more */
	assert_int_equal(page.calls, 0);
	assert_int_equal(n_lost, 0);
	thread.head = packet + SPY_PACKET_BYTES - SPY_RECORD_MAX;
	leave(OUTER, 1, 0);
	assert_int_equal(page.calls, 1);
}

static void test_transparent(void **state)
{
	(void)state;
	spy_slots[0].record = SPY_TRANSPARENT;
	spy_slots[0].inspector = STATELESS;
	spy_slots[0].real = NULL;
	assert_ptr_equal(enter(OUTER, 0), &n_resolved);
	assert_int_equal(n_resolved, 1);
	leave(OUTER, 1, 0);
	no_record();
	assert_int_equal(page.depth + page.lost + page.calls, 0);
	assert_int_equal(n_before, 1);
	assert_int_equal(n_after, 1);
	/* A look-up that is lost hands out stubs all the same, and no other one does anything. */
	for (int look_up = 0; look_up < 2; look_up++) {
		begin(NULL);
		spy_slots[0].inspector = look_up ? SPY_INSPECTOR_get_proc_address : STATELESS;
		thread.reentry_frame = UINTPTR_MAX;
		enter(OUTER, 0);
		leave(OUTER, 1, 0);
		assert_int_equal(n_after, look_up);
	}
}

/* ---- a closer look ---- */

/* A call of the thread's own that takes long keeps an event loop waiting. */
static void test_long_call(void **state)
{
	(void)state;
	spy_examined_from = 100;
	spy_poll_long_call = 1000;
	enter(OUTER, 1);
	enter(INNER, 0);
	leave(INNER, 5000, 0);
	assert_false(thread.poll_is_late);
	begin(NULL);
	spy_examined_from = 100;
	spy_poll_long_call = 1000;
	enter(OUTER, 0);
	leave(OUTER, 999, 0);
	assert_false(thread.poll_is_late);
	enter(OUTER, 0);
	leave(OUTER, 1000, 0);
	assert_true(thread.poll_is_late);
	enter(OUTER, 0);
	leave(OUTER, 200, 0);
	assert_true(thread.poll_is_late); /* until it polls */
}

static void test_closer_look(void **state)
{
	(void)state;
	spy_examined_from = 100;
	spy_long_call = 1000;
	enter(OUTER, 0);
	leave(OUTER, 99, 0);
	assert_int_equal(n_stacks, 0);
	enter(OUTER, 0);
	leave(OUTER, 100, 0);
	assert_int_equal(n_stacks, 1);
	assert_int_equal(n_sched, 0);
	enter(OUTER, 0);
	leave(OUTER, 1000, 0);
	assert_int_equal(n_stacks, 2);
	assert_int_equal(n_sched, 1);
	assert_int_equal(sched_at, now);
	enter(OUTER, 0);
	leave(OUTER, 1, 5); /* failed */
	assert_int_equal(n_stacks, 3);
	spy_slots[0].inspector = STATELESS;
	found = (struct spy_details){.event = SPY_EV_COPY, .pageable = true};
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_stacks, 4);
	assert_int_equal(page.pageable, 1);
	enter(OUTER, 0);
	leave(OUTER, 1, 5);
	assert_int_equal(page.pageable, 1); /* it copied nothing */
	found.event = SPY_EV_CALL;
	/* Inside another call: pageable is counted, the rest is the outer one's. */
	n_stacks = n_sched = 0;
	enter(OUTER, 1);
	found = (struct spy_details){.event = SPY_EV_COPY, .pageable = true};
	enter(INNER, 0);
	leave(INNER, 5000, 0);
	assert_int_equal(page.pageable, 2);
	assert_int_equal(n_stacks + n_sched, 0);
	leave(OUTER, 0, 0);
	assert_int_equal(n_stacks, 1);
	assert_int_equal(n_sched, 1);
	/* What makes things, or is in a sample. */
	n_stacks = 0;
	spy_slots[2].makes = 1;
	enter(OUTER, 2);
	leave(OUTER, 1, 0);
	assert_int_equal(n_stacks, 1); /* its place has not had its first calls */
	spy_slots[3].sampled = SPY_SAMPLED_ALL;
	for (int i = 0; i < 1000; i++) {
		enter(OUTER, 3);
		leave(OUTER, 1, 0);
		thread.head = packet + sizeof(struct spy_packet);
	}
	assert_in_range(n_stacks, 1 + 90, 1 + 160); /* about one in eight of the first ones */
}

/* So that the account of a long call tells of hardly more than that call. */
static void test_look_before(void **state)
{
	(void)state;
	thread.look_at = 1001;
	enter(OUTER, 0);
	assert_int_equal(n_sched, 0);
	leave(OUTER, 1, 0);
	enter(OUTER, 0); /* at 1001 */
	assert_int_equal(n_sched, 1);
	assert_int_equal(sched_at, 0);
	now += 1000;
	enter(INNER, 0); /* not inside a call */
	assert_int_equal(n_sched, 1);
}

/* A lock that was waited for in a call is over with that call, not with one inside it. */
static void test_waiting(void **state)
{
	(void)state;
	enter(OUTER, 0);
	enter(INNER, 1);
	thread.waiting = (void *)&now;
	leave(INNER, 1, 0);
	assert_int_equal(n_waiters, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_waiters, 1);
	spy_slots[0].record = SPY_COUNTED;
	enter(OUTER, 0);
	thread.waiting = (void *)&now;
	leave(OUTER, 1, 0);
	assert_int_equal(n_waiters, 2);
	/* It let a lock rest: at the end of a call of its own it looks whether that is over. */
	spy_slots[0].record = SPY_TRACED;
	thread.paused = (void *)&now;
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_waiters, 3);
	thread.paused = NULL;
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_waiters, 3);
}

static uint64_t window_at(const uint64_t *stack)
{
	OUTER->slot_index = 0;
	OUTER->stack = (uint64_t *)(uintptr_t)stack;
	spy_enter(OUTER);
	thread.depth = 0;
	return OUTER->window;
}

#define UNSURE (SPY_WINDOW | WINDOW_UNSURE)

/* Stack arguments are copied without a look only where they cannot reach past the end of a stack. */
static void test_window(void **state)
{
	uintptr_t end = (uintptr_t)arguments + 4096;

	(void)state;
	assert_int_equal(window_at((const uint64_t *)(end - SPY_WINDOW)), SPY_WINDOW);
	assert_int_equal(window_at((const uint64_t *)(end - SPY_WINDOW + 8)), UNSURE);
	assert_int_equal(window_at((const uint64_t *)(end)),
			 UNSURE); /* the return address is before it */
	assert_int_equal(window_at((const uint64_t *)(end + 8)), SPY_WINDOW);
	thread.stack_begin = (uintptr_t)arguments;
	thread.stack_end = end + 4096;
	assert_int_equal(window_at((const uint64_t *)(end - SPY_WINDOW + 8)), SPY_WINDOW);
	thread.stack_end = end + 8; /* the last byte lies there */
	assert_int_equal(window_at((const uint64_t *)(end - SPY_WINDOW + 8)), SPY_WINDOW);
	thread.stack_end = end + 7;
	assert_int_equal(window_at((const uint64_t *)(end - SPY_WINDOW + 8)), UNSURE);
	thread.stack_begin = end - SPY_WINDOW;
	thread.stack_end = end + 4096;
	assert_int_equal(window_at((const uint64_t *)(end - SPY_WINDOW + 8)), UNSURE);
}

/* The detail level of the outermost call decides which calls inside it go through the trampoline. */
static void test_detail_levels(void **state)
{
	(void)state;
	found.event = SPY_EV_MEMORY;
	spy_slots[0].inspector = STATEFUL;
	enter(OUTER, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_ALL);
	spy_slots[1].foreign = true; /* another library's: it may do anything inside */
	enter(INNER, 1);
	assert_int_equal(thread.detail_level, SPY_DETAIL_ARGUMENTS);
	leave(INNER, 1, 0);
	leave(OUTER, 1, 0);
	spy_slots[0].foreign = true;
	enter(OUTER, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_ARGUMENTS);
	leave(OUTER, 1, 0);
	found.event = SPY_EV_CALL; /* an inspector with nothing to tell */
	enter(OUTER, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_TIME);
	leave(OUTER, 1, 0);
	assert_int_equal(thread.detail_level, SPY_DETAIL_NONE);
}

/* ---- while recording is dormant ---- */

static void fall_asleep(void)
{
	spy_recorded_from = SPY_DORMANT;
	thread.until_look = 1;
	thread.asleep = true;
	thread.packet = NULL;
	spy_thread_lose_room(&thread);
}

/* Where the trampoline keeps the frame pointer: its dormant path has no frame. */
static uintptr_t place_of(const struct spy_frame *frame)
{
	return (uintptr_t)frame + SPY_FRAME_BYTES;
}

static void test_dormant(void **state)
{
	(void)state;
	fall_asleep();
	thread.until_look = 100;
	spy_slots[0].inspector = STATELESS;
	assert_ptr_equal(enter(OUTER, 0), &now);
	assert_int_equal(thread.dormant_frame, place_of(OUTER));
	assert_ptr_equal(enter(INNER, 1), &now);
	leave(INNER, 1, 0);
	assert_int_equal(thread.dormant_frame, place_of(OUTER));
	leave(OUTER, 1, 0);
	assert_int_equal(thread.dormant_frame, 0);
	assert_int_equal(n_before + n_after + n_ready + n_looks + n_lost, 0);
	assert_int_equal(page.calls + page.lost + page.depth, 0);
	assert_int_equal(thread.depth + thread.device, 0);
	assert_int_equal(thread.reentry_frame, 0);
}

/* In a cost window the application's own calls are counted, and how many were recorded is known, too. */
static void test_counting(void **state)
{
	(void)state;
	enter(OUTER, 0);
	enter(INNER, 1);
	leave(INNER, 1, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(thread.outer_calls, 1);
	fall_asleep();
	thread.until_look = 100;
	thread.counts_turn = spy_window_changes;
	spy_slots[2].record = SPY_COUNTED;
	spy_slots[2].counter = 5;
	spy_slots[3].keeps = SPY_KEEPS_TABLES;
	spy_slots[4].record = SPY_TRANSPARENT;
	spy_slots[4].counter = SPY_COUNTER_NONE;
	for (unsigned int i = 0; i < 5; i++) {
		enter(OUTER, i);
		enter(INNER, 1);
		leave(INNER, 1, 0);
		leave(OUTER, 1, 0);
	}
	assert_int_equal(thread.counts.calls[FN], 1);
	assert_int_equal(thread.counts.calls[FN + 1], 1); /* those inside of others are not */
	assert_int_equal(thread.counts.calls[FN + 2] + thread.counts.calls[FN + 4], 0);
	assert_int_equal(page.counts[5], 1);
	assert_int_equal(thread.counts.calls[FN + 3], 1);
	assert_int_equal(n_looks, 0);
	/* By another window it is noticed at once, whenever the next look is due. */
	spy_window_changes++;
	enter(OUTER, 0);
	assert_int_equal(n_looks, 1);
	leave(OUTER, 1, 0);
	assert_int_equal(thread.outer_calls, 1);
}

/* Inspectors that keep tables run, at each depth; and so do those of captures, while there are any. */
static void test_dormant_keeps(void **state)
{
	(void)state;
	fall_asleep();
	thread.until_look = 100;
	spy_slots[0].inspector = spy_slots[1].inspector = STATEFUL;
	spy_slots[0].keeps = spy_slots[1].keeps = SPY_KEEPS_TABLES;
	enter(OUTER, 0);
	enter(INNER, 1);
	assert_int_equal(INNER->depth, 1); /* what is freed by both is so once */
	leave(INNER, 1, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_before, 2);
	assert_int_equal(n_after, 2);
	assert_int_equal(thread.device, 1);
	assert_int_equal(thread.reentry_frame, 0);
	spy_slots[0].inspector = STATELESS;
	spy_slots[0].keeps = SPY_KEEPS_CAPTURES;
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_before + n_after, 4);
	captures = true;
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_before + n_after, 6);
	/* Not in a handler's call, which may have interrupted a table's change. */
	thread.reentry_frame = UINTPTR_MAX;
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_before + n_after, 6);
	assert_int_equal(page.calls, 0);
}

/* A call in progress when the window ends is recorded; the thread sleeps from its next one on. */
static void test_window_ends(void **state)
{
	const struct spy_rec_call *call;

	(void)state;
	enter(OUTER, 0);
	spy_recorded_from = SPY_DORMANT;
	enter(INNER, 1);
	leave(INNER, 5, 0);
	assert_int_equal(n_looks, 0); /* not inside of it */
	leave(OUTER, 5, 0);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 10, 0, 0);
	no_record();
	enter(OUTER, 0);
	assert_int_equal(n_looks, 1);
	leave(OUTER, 5, 0);
	assert_int_equal(page.calls, 1);
}

/* The call that opens it is recorded; of one in progress those inside of it are not. */
static void test_window_begins(void **state)
{
	const struct spy_rec_call *call;

	(void)state;
	fall_asleep();
	thread.until_look = 2;
	enter(OUTER, 0);
	spy_recorded_from = SPY_RECORDED;
	enter(INNER, 1);
	leave(INNER, 1, 0);
	assert_int_equal(n_ready, 0);
	leave(OUTER, 1, 0);
	no_record();
	spy_recorded_from = SPY_DORMANT;
	then_from = SPY_RECORDED;
	board.request = 1;
	enter(OUTER, 0);
	assert_int_equal(n_looks, 1);
	assert_int_equal(n_ready, 1);
	leave(OUTER, 7, 0);
	call = record(sizeof(*call));
	expect_head(&call->head, SPY_EV_CALL, FN, 7, 0, 0);
	no_record();
	assert_int_equal(n_lost, 0);
}

/* It ends between a thread's look at it and its way to a packet. */
static void test_window_ends_at_once(void **state)
{
	(void)state;
	fall_asleep();
	spy_recorded_from = SPY_RECORDED;
	spy_slots[0].inspector = STATEFUL;
	spy_slots[0].keeps = SPY_KEEPS_TABLES;
	ready = &(struct spy_thread){.page = &page, .asleep = true};
	spy_recorded_from = SPY_RECORDED + 1; /* no window, and the slot is not held back */
	enter(OUTER, 0);
	leave(OUTER, 1, 0);
	assert_int_equal(n_ready, 1);
	assert_int_equal(n_before + n_after, 2);
	no_record();
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_call),
		TEST(test_dormant),
		TEST(test_counting),
		TEST(test_dormant_keeps),
		TEST(test_window_ends),
		TEST(test_window_begins),
		TEST(test_window_ends_at_once),
		TEST(test_results),
		TEST(test_shapes),
		TEST(test_nested),
		TEST(test_too_deep),
		TEST(test_left),
		TEST(test_counted),
		TEST(test_counted_timed),
		TEST(test_count_when_nested),
		TEST(test_interrupted),
		TEST(test_no_room),
		TEST(test_not_ours),
		TEST(test_transparent),
		TEST(test_long_call),
		TEST(test_closer_look),
		TEST(test_look_before),
		TEST(test_waiting),
		TEST(test_window),
		TEST(test_detail_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
