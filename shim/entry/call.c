/*
 * shim/entry/call.c: enter and leave: a call becomes a record. Both run on the application's
 * thread, called by the trampoline (trampoline.S), and are the hot path: reserve, call, commit. No
 * lock, no allocation, no system call, no stdio in this file; what is rare is behind
 * spy_thread_ready.
 */
#include <stddef.h>
#include "inspect/inspect.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "lib/clock.h"
#include "probe/caller.h"
#include "probe/outside.h"
#include "probe/waiters.h"
#include "hook/resolve.h"
#include "entry/gap.h"
#include "record/sched.h"
#include "stack/stack.h"
#include "state/thread.h"

#ifdef CUDASPY_TEST_DELAY /* a build for tests/e2e/test_cost.sh */
#include "delay.h"
#else
#define test_delay(thread) ((void)0)
#endif

#pragma GCC poison malloc calloc realloc free printf fprintf open write mmap pthread_mutex_lock

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ONE_STACK ((uintptr_t)1 << 20)
#define DURATION_MAX ((1ull << 48) - 1)

/*
 * One of the recorder's two ordered stores; the other is spy_packet_publish. Pairs with readers of
 * the board, at any moment: depth > 0 says that fn and since are valid. Release suffices: a reader
 * that sees the depth must see them, and nothing here reads back.
 */
static inline void publish_depth(struct spy_slot_page *page, uint8_t depth)
{
	__atomic_store_n(&page->depth, depth, __ATOMIC_RELEASE);
}

/*
 * The caller's stack arguments are copied without knowing how many there are, so the window may
 * reach past the end of the stack: only if it crosses a page, and only where the thread is not on
 * the stack it was created with. There the trampoline leaves the copying to spy_copy_window.
 */
static inline uint64_t window_of(const struct spy_thread *thread, const struct spy_slot *slot,
				 const uint64_t *stack)
{
	/* from the return address on, which is certainly there */
	uintptr_t first = (uintptr_t)(stack - 1), last = (uintptr_t)stack + slot->window - 1;

	if (likely((first ^ last) < 4096) ||
	    (first > thread->stack_begin && last < thread->stack_end))
		return slot->window;
	return slot->window | WINDOW_UNSURE;
}

static inline void begin_frame(struct spy_frame *frame, struct spy_slot *slot,
			       struct spy_thread *thread)
{
	frame->slot = slot;
	frame->window = window_of(thread, slot, frame->stack);
	frame->thread = thread;
}

/*
 * How many recorded calls is this one inside of? Calls that were left by an exception or longjmp
 * never reached spy_leave; their frames lay where ours is, or below: the stack grows down.
 */
static inline uint8_t depth_of(const struct spy_thread *thread, const struct spy_frame *frame)
{
	uint8_t depth = thread->depth;

	while (unlikely(depth && thread->calls[depth - 1].frame <= (uintptr_t)frame))
		depth--;
	return depth;
}

static inline bool on_thread_stack(const struct spy_thread *thread, uintptr_t address)
{
	return address - thread->stack_begin < thread->stack_end - thread->stack_begin;
}

/*
 * A signal handler may interrupt spy_enter or spy_leave and make a CUDA call itself. That call is
 * lost, or it would write over the record in the making and wait for a lock of its own thread's. A
 * frame not far above the reentry frame, on the same stack, means that the handler never came back.
 * One far above, or on another stack, is on the stack of signals. This is rare: the kernel may be
 * asked which stack that is.
 */
static __attribute__((noinline)) bool is_interrupt(const struct spy_thread *thread, uintptr_t here,
						   uintptr_t reentry)
{
	return here < reentry || here - reentry > ONE_STACK ||
	       on_thread_stack(thread, here) != on_thread_stack(thread, reentry) ||
	       spy_own_stack_is_for_signals(here) != spy_own_stack_is_for_signals(reentry);
}

static inline bool interrupted(const struct spy_thread *thread, const struct spy_frame *frame)
{
	return unlikely(thread->reentry_frame) &&
	       is_interrupt(thread, (uintptr_t)frame, thread->reentry_frame);
}

static inline void inspect_after(struct spy_frame *frame)
{
	const struct spy_inspector *inspector = &spy_inspectors[frame->slot->inspector];

	if (inspector->after && (frame->details.event != SPY_EV_NESTED || inspector->stateful))
		inspector->after(frame, inspector);
}

static inline void inspect_before(struct spy_frame *frame, const struct spy_slot *slot,
				  bool inspected)
{
	const struct spy_inspector *inspector = &spy_inspectors[slot->inspector];

	if (!inspector->before)
		return;
	if (likely(!inspected || inspector->stateful))
		inspector->before(frame, inspector);
}

/* The board shows a call that begins; start 0: the clock was not read. */
static inline void show_call(struct spy_thread *thread, const struct spy_frame *frame, uint16_t fn,
			     uint8_t depth, uint64_t start)
{
	struct spy_slot_page *page = thread->page;

	spy_board_show(page->fn, fn);
	if (likely(!depth)) {
		spy_board_show(page->outer_fn, fn);
		spy_board_show(page->caller, frame->caller);
		spy_board_show(page->since, start);
	} else {
		spy_board_show(page->inner_since, start);
	}
	publish_depth(page, depth + 1);
}

/* The board shows the call around the one that returns, to which those inside have nothing to
 * add any more. */
static inline void show_outer(struct spy_thread *thread, uint8_t depth)
{
	const struct spy_progress *outer;

	publish_depth(thread->page, depth);
	if (likely(!depth)) {
		thread->detail_level = SPY_DETAIL_NONE;
		return;
	}
	outer = &thread->calls[depth - 1];
	spy_board_show(thread->page->fn, outer->fn);
	if (depth > 1)
		spy_board_show(thread->page->inner_since, outer->start);
}

/* Puts a call on the thread's list of those in progress. */
static inline struct spy_progress *begin_call(struct spy_thread *thread, struct spy_frame *frame,
					      uint16_t fn, uint8_t depth)
{
	struct spy_progress *call = &thread->calls[depth];

	frame->inspected = depth && call[-1].inspected;
	call->frame = (uintptr_t)frame;
	call->fn = fn;
	call->inspected = frame->inspected;
	call->timed = depth && call[-1].timed;
	call->start = 0;
	thread->depth = depth + 1;
	return call;
}

static inline void clear_details(struct spy_frame *frame)
{
	frame->details.captured = frame->details.pool = frame->details.pageable = false;
	frame->details.flags = 0;
}

static inline void count_call(struct spy_thread *thread, struct spy_frame *frame, uint16_t fn,
			      uint8_t depth, uint16_t counter, uint64_t start)
{
	frame->kind = SPY_FRAME_COUNTED;
	frame->start = start;
	spy_count(&thread->page->counts[counter]);
	show_call(thread, frame, fn, depth, 0);
}

/* Some calls of each counted function are timed, to see whether they are as short as they are believed to be (slots.h). Questions
 * are not (probe/query.h), nor calls inside one that is timed. 0: not this one. */
static inline uint64_t start_of_counted(const struct spy_thread *thread,
					const struct spy_slot *slot, uint8_t depth)
{
	uint64_t counted = thread->page->counts[spy_slot_counter(slot)];

	if (depth || slot->inspector ||
	    counted % SPY_TIMED_AMONG >=
		    __atomic_load_n(&spy_slots_timed[slot->fn], __ATOMIC_RELAXED))
		return 0;
	return spy_clock();
}

static inline void begin_counted(struct spy_thread *thread, struct spy_frame *frame,
				 const struct spy_slot *slot, uint8_t depth)
{
	begin_call(thread, frame, slot->fn, depth);
	if (!depth)
		thread->detail_level = SPY_DETAIL_COUNT;
	if (slot->inspector)
		inspect_before(frame, slot, frame->inspected);
	count_call(thread, frame, slot->fn, depth, spy_slot_counter(slot),
		   start_of_counted(thread, slot, depth));
}

/* A call of the driver's inside one that is timed and has its arguments recorded, or one whose
 * arguments are only what it works on: it is enough to count it. SPY_COUNTER_NONE: not so. */
static inline uint16_t nested_counter(const struct spy_frame *frame, struct spy_slot *slot,
				      const struct spy_progress *call)
{
	uint16_t counter;

	if (!slot->count_when_nested || !call->timed || frame->details.event > SPY_EV_OP)
		return SPY_COUNTER_NONE;
	counter = spy_slot_counter(slot);
	return likely(counter != SPY_COUNTER_NONE) ? counter : spy_slots_number(slot);
}

/* A thread that used nothing but the runtime so far is where the runtime begins. */
static inline void begin_on_device(struct spy_thread *thread, const struct spy_slot *slot)
{
	if (unlikely(!thread->device) && slot->layer != SPY_LAYER_DRIVER)
		spy_thread_set_device(thread, 0, 0);
}

/* A call that is timed begins; its arguments have been inspected. */
static inline void begin_timed(struct spy_thread *thread, struct spy_frame *frame, uint16_t fn,
			       uint8_t depth, struct spy_progress *call)
{
	uint64_t start;

	if (frame->details.event > SPY_EV_CALL) {
		call->inspected = true;
		spy_board_show(thread->page->stream, frame->details.stream);
	}
	call->timed = true;
	start = spy_clock();
	/* So that a look after a long call covers hardly more than that call. */
	if (unlikely(start >= spy_thread_look_from(thread)) && !depth) {
		spy_gap_look(thread, start);
		start = spy_clock();
	}
	frame->start = call->start = start;
	show_call(thread, frame, fn, depth, start);
}

/* Counted calls around one that is timed have lasted at least since that one began: as the runtime begins in a getter. */
__attribute__((noinline)) static void begin_inner(struct spy_thread *thread,
						  struct spy_frame *frame, struct spy_slot *slot)
{
	uint8_t depth = frame->depth;
	struct spy_progress *call = begin_call(thread, frame, slot->fn, depth);
	uint16_t counter;

	frame->kind = SPY_FRAME_TRACED;
	clear_details(frame);
	begin_on_device(thread, slot);
	if (unlikely(slot->foreign) && thread->detail_level == SPY_DETAIL_ALL)
		thread->detail_level = SPY_DETAIL_ARGUMENTS;
	if (slot->inspector)
		inspect_before(frame, slot, frame->inspected);
	if (frame->inspected || frame->details.event == SPY_EV_CALL)
		frame->details.event = SPY_EV_NESTED;
	counter = nested_counter(frame, slot, call);
	if (counter != SPY_COUNTER_NONE) {
		frame->details.event = SPY_EV_NESTED;
		count_call(thread, frame, slot->fn, depth, counter, 0);
	} else {
		if (!call->timed)
			spy_caller_set_begin(thread, spy_clock());
		begin_timed(thread, frame, slot->fn, depth, call);
	}
}

/* A call of the application's own. */
static inline void begin_outer(struct spy_thread *thread, struct spy_frame *frame,
			       const struct spy_slot *slot)
{
	struct spy_progress *call = begin_call(thread, frame, slot->fn, 0);
	uint8_t level = SPY_DETAIL_TIME;

	frame->kind = SPY_FRAME_TRACED;
	clear_details(frame);
	begin_on_device(thread, slot);
	if (slot->inspector) {
		inspect_before(frame, slot, false);
		if (frame->details.event != SPY_EV_CALL)
			level = spy_inspectors[slot->inspector].stateful && !slot->foreign
					? SPY_DETAIL_ALL
					: SPY_DETAIL_ARGUMENTS;
	}
	thread->detail_level = level;
	test_delay(thread);
	begin_timed(thread, frame, slot->fn, 0, call);
}

/* ---- while recording is dormant -------------------------------------------------------------- */

/* Of a call: where the trampoline keeps the caller's frame pointer, for the dormant path of the
 * assembly has no frame. */
static inline uintptr_t place_of(const struct spy_frame *frame)
{
	return (uintptr_t)frame + SPY_FRAME_BYTES;
}

/* The outermost call in progress is not recorded. So calls inside of it that change no table take the
 * nested fast path. */
static inline void show_dormant(struct spy_thread *thread, const struct spy_frame *frame)
{
	thread->dormant_frame = thread->calls[0].frame = place_of(frame);
	thread->detail_level = SPY_DETAIL_ARGUMENTS;
}

/* A call of the application's own in a cost window: it is counted. One of a function that is only counted in any case, on
 * the board. */
static inline void count_outer(struct spy_thread *thread, const struct spy_slot *slot)
{
	if (likely(slot->record == SPY_TRACED))
		thread->counts.calls[slot->fn]++;
	else if (slot->record != SPY_TRANSPARENT)
		spy_count(&thread->page->counts[spy_slot_counter(slot)]);
}

/* False: it is another cost window by now. */
static bool count_window_call(struct spy_thread *thread, const struct spy_frame *frame,
			      const struct spy_slot *slot)
{
	if (spy_thread_counts_late(thread))
		return false;
	if (thread->dormant_frame <= place_of(frame))
		count_outer(thread, slot);
	return true;
}

/*
 * The short way: no record, no clock, no table. What is left is that the thread is inside a call, should a window open
 * meanwhile. Threads that are awake, or have no slot, have nothing to count down: they go the long way. The assembly
 * does the same for nearly all calls (trampoline.S, spy_dormant_path).
 */
static inline bool pass_dormant(struct spy_thread *thread, struct spy_frame *frame,
				const struct spy_slot *slot)
{
	if (unlikely(thread->until_look <= 1) || unlikely(slot->keeps) || spy_window_is_asked())
		return false;
	if (unlikely(thread->counts_turn) && !count_window_call(thread, frame, slot))
		return false;
	if (unlikely(spy_thread_missed_counting(thread)))
		return false;
	thread->until_look--;
	frame->kind = SPY_FRAME_DORMANT;
	if (likely(thread->dormant_frame <= place_of(frame)))
		show_dormant(thread, frame);
	return true;
}

static inline void leave_dormant(struct spy_frame *frame)
{
	struct spy_thread *thread = frame->thread;

	if (thread->dormant_frame != place_of(frame))
		return;
	thread->dormant_frame = 0;
	thread->detail_level = SPY_DETAIL_NONE;
}

static void keep_before(struct spy_thread *thread, struct spy_frame *frame,
			const struct spy_slot *slot)
{
	if (slot->keeps == SPY_KEEPS_CAPTURES && !spy_stream_captures())
		return;
	spy_thread_begin_work(thread, frame);
	frame->kind = SPY_FRAME_KEPT;
	frame->inspected = false;
	frame->details.event = SPY_EV_CALL;
	clear_details(frame);
	begin_on_device(thread, slot);
	inspect_before(frame, slot, false);
	spy_thread_end_work(thread);
}

/* The long way. look: this may open a window. True: one is open, and the call is to be recorded. */
static bool enter_dormant(struct spy_frame *frame, const struct spy_slot *slot, bool look)
{
	struct spy_thread *thread = spy_self;

	frame->kind = SPY_FRAME_LOST;
	if (unlikely(!thread->page)) {
		thread = spy_thread_ready();
		if (!thread || !thread->page)
			return false;
	}
	if (interrupted(thread, frame))
		return false;
	frame->thread = thread;
	frame->depth = thread->dormant_frame > place_of(frame) ||
		       (thread->depth && depth_of(thread, frame));
	if (!frame->depth) {
		if (look &&
		    (thread->until_look <= 1 || spy_window_is_asked() ||
		     spy_thread_counts_late(thread) || spy_thread_missed_counting(thread)) &&
		    spy_thread_look(thread))
			return true;
		if (thread->counts_turn)
			count_outer(thread, slot);
		if (thread->asleep)
			show_dormant(thread, frame);
	}
	frame->kind = SPY_FRAME_DORMANT;
	if (slot->keeps)
		keep_before(thread, frame, slot);
	return false;
}

__attribute__((noinline)) static void leave_kept(struct spy_frame *frame)
{
	struct spy_thread *thread = frame->thread;

	/* Not in a child that was forked inside the call, nor where a user-level thread went on elsewhere. */
	if (unlikely(thread != spy_self || !thread->page)) {
		if (frame->slot->inspector == SPY_INSPECTOR_get_proc_address)
			inspect_after(frame);
		return;
	}
	leave_dormant(frame);
	spy_thread_begin_work(thread, frame);
	inspect_after(frame);
	spy_thread_end_work(thread);
}

/* A call of which there is no record, for the disk is full: what it changes is known to later ones, and opens or ends a
 * window, all the same. */
static void keep_lost(struct spy_frame *frame, const struct spy_slot *slot)
{
	struct spy_thread *thread = spy_self;

	if (!slot->keeps || !thread->page || !thread->retry_at)
		return;
	frame->thread = thread;
	frame->depth = thread->depth && depth_of(thread, frame);
	keep_before(thread, frame, slot);
}

/* The thread has no room for a record: none yet, none left, or it slept. NULL: the call is not recorded. */
__attribute__((noinline)) static struct spy_thread *get_ready(struct spy_frame *frame,
							      const struct spy_slot *slot)
{
	struct spy_thread *thread = spy_self;

	/* Inside a call that began before the window did. */
	if (thread->dormant_frame > place_of(frame)) {
		enter_dormant(frame, slot, false);
		return NULL;
	}
	thread = spy_thread_ready();
	if (thread && thread->asleep) { /* the window has just ended */
		enter_dormant(frame, slot, false);
		return NULL;
	}
	if (!thread)
		keep_lost(frame, slot);
	return thread;
}

/* Behind the short ways: what needs more registers. */
__attribute__((noinline)) static void *enter_recorded(struct spy_frame *frame,
						      struct spy_slot *slot,
						      struct spy_thread *thread, void *real)
{
	uint8_t depth;

	begin_frame(frame, slot, thread);
	frame->kind = SPY_FRAME_LOST;
	frame->details.event = SPY_EV_CALL;
	if (interrupted(thread, frame)) {
		spy_count(&thread->page->lost);
		return real;
	}
	if (unlikely(thread->head >= spy_thread_limit(thread))) {
		thread = get_ready(frame, slot);
		if (!thread)
			return real;
		frame->thread = thread;
	}
	frame->depth = depth = depth_of(thread, frame);
	if (unlikely(depth != thread->depth)) { /* and so were the waits inside of them */
		thread->detail_level = SPY_DETAIL_NONE;
		spy_waiters_leave(thread);
	}
	if (unlikely(depth >= SPY_DEPTH_MAX)) {
		spy_count(&thread->page->lost);
		return real;
	}
	if (unlikely(!spy_thread_try_work(thread, frame)))
		return real;
	if (slot->record != SPY_TRACED)
		begin_counted(thread, frame, slot, depth);
	else if (likely(!depth))
		begin_outer(thread, frame, slot);
	else
		begin_inner(thread, frame, slot);
	spy_thread_end_work(thread);
	return real;
}

/* A call that is not recorded by the short way; or is, after all. */
__attribute__((noinline)) static void *pass_by(struct spy_frame *frame, struct spy_slot *slot,
					       void *real)
{
	if (slot->record != SPY_TRANSPARENT)
		return enter_dormant(frame, slot, true)
			       ? enter_recorded(frame, slot, spy_self, real)
			       : real;
	frame->kind = SPY_FRAME_PASS;
	frame->inspected = false;
	frame->details.event = SPY_EV_CALL;
	if (slot->inspector)
		inspect_before(frame, slot, false);
	return real;
}

static inline __attribute__((always_inline)) void *enter(struct spy_frame *frame,
							 struct spy_slot *slot, void *real)
{
	struct spy_thread *thread = spy_self;

#ifdef CUDASPY_EMPTY_HOOKS /* a build for `make bench`: a trampoline that records nothing */
	begin_frame(frame, slot, thread);
	frame->kind = SPY_FRAME_LOST;
	return real;
#endif

	/* A transparent one; or recording is dormant. */
	if (unlikely(slot->record < spy_window_recorded_from())) {
		begin_frame(frame, slot, thread);
		if (likely(pass_dormant(thread, frame, slot)))
			return real;
		return pass_by(frame, slot, real);
	}
	return enter_recorded(frame, slot, thread, real);
}

__attribute__((noinline)) static void *enter_first(struct spy_frame *frame, struct spy_slot *slot)
{
	return enter(frame, slot, spy_first_call(slot, frame->slot_index));
}

/* Without a frame of its own: whatever needs registers is a function that this one jumps to. */
void *spy_enter(struct spy_frame *frame)
{
	struct spy_slot *slot = &spy_slots[frame->slot_index];
	void *real = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);

	if (unlikely(!real))
		return enter_first(frame, slot);
	return enter(frame, slot, real);
}

/*
 * Records are written as whole words: filling the bit-fields of trace_format.h one by one would
 * read memory that was never touched and wait for it. The layouts are that file's, and the unit
 * tests of the analyzer hold them against the metadata.
 */
static inline uint64_t bits(uint64_t value, unsigned int from)
{
	return value << from;
}

static inline uint64_t low48(uint64_t value)
{
	return value & ((1ull << 48) - 1);
}

static inline void write_head(uint64_t *at, const struct spy_frame *frame, uint8_t depth,
			      uint64_t now)
{
	const struct spy_thread *thread = frame->thread;
	uint32_t result = (uint32_t)frame->result;
	uint64_t duration = now - frame->start;

	if (unlikely(result > SPY_RESULT_NONE))
		result = SPY_RESULT_NONE;
	if (unlikely(duration > DURATION_MAX))
		duration = DURATION_MAX;
	at[0] = now;
	at[1] = frame->details.event | bits(frame->slot->fn, 16) | bits(result, 32) |
		bits((uint8_t)(thread->device - 1), 48) | bits(depth, 56);
	at[2] = duration | bits(thread->context, 48);
}

static inline bool is_short(const struct spy_frame *frame, uint8_t depth, uint64_t now)
{
	return likely(depth == 1 && !(uint32_t)frame->result && now - frame->start <= UINT32_MAX);
}

/* Writes the record at the head of the packet; returns its size. */
static inline size_t write_record(uint64_t *at, const struct spy_frame *frame, uint8_t depth,
				  uint64_t now)
{
	const struct spy_details *details = &frame->details;
	uint64_t caller = low48(frame->caller);

	if (details->event == SPY_EV_NESTED && is_short(frame, depth, now)) {
		at[0] = now;
		at[1] = SPY_EV_INNER | bits(frame->slot->fn, 16) | bits(now - frame->start, 32);
		return sizeof(struct spy_rec_inner);
	}
	write_head(at, frame, depth, now);
	switch (details->event) {
	case SPY_EV_NESTED:
		return sizeof(struct spy_rec_head);
	case SPY_EV_LAUNCH:
		at[3] = caller | bits(details->kernel, 48);
		at[4] = bits(details->stream, 16) | (details->kernel >> 16);
		return sizeof(struct spy_rec_launch);
	case SPY_EV_OP:
		at[3] = caller | bits(details->flags, 48);
		at[4] = details->stream;
		at[5] = details->object;
		return sizeof(struct spy_rec_op);
	case SPY_EV_COPY:
		at[3] = caller | bits(details->src_device, 48) | bits(details->dst_device, 56);
		at[4] = low48(details->stream) | bits(details->direction, 48) |
			bits(details->captured, 51) | bits(details->form, 52) |
			bits(details->src_kind, 56) | bits(details->dst_kind, 60);
		at[5] = details->bytes << 4 >> 4 | bits(details->access, 60);
		return sizeof(struct spy_rec_copy);
	case SPY_EV_MEMORY:
		at[3] = caller | bits(details->op, 48) | bits(details->dst_kind, 56) |
			bits(details->pool, 60);
		at[4] = details->stream;
		at[5] = details->address;
		at[6] = details->bytes;
		return sizeof(struct spy_rec_memory);
	default:
		at[3] = caller | bits(details->flags, 48);
		return sizeof(struct spy_rec_call);
	}
}

/*
 * Is the call's thread the one that is running, with room for a record? Not in a child that was
 * forked inside the call, nor when a user-level thread went on elsewhere.
 */
static inline bool still_ours(const struct spy_thread *thread)
{
	return thread == spy_self && thread->head + SPY_RECORD_MAX <= thread->end;
}

static inline void append_record(struct spy_thread *thread, const struct spy_frame *frame,
				 uint8_t depth, uint64_t now)
{
	spy_thread_publish(thread, now, write_record((uint64_t *)thread->head, frame, depth, now));
	spy_count(&thread->page->calls);
}

/* A counted call is worth a record if a probe saw it waiting or a call inside of it was timed, or if it is one that else would be
 * timed and it failed. Or if it was timed, and took long. */
static inline bool is_worth_a_record(const struct spy_thread *thread, const struct spy_frame *frame)
{
	return thread->calls[frame->depth].start ||
	       (frame->details.event == SPY_EV_NESTED && (uint32_t)frame->result);
}

/* What is rare about calls, in one branch: it took long, its result is not 0, it copied pageable
 * memory, a long time without a call is beside it, it made something, or is one of those in a
 * sample. */
static inline bool is_rare(struct spy_thread *thread, const struct spy_frame *frame, uint64_t now)
{
	return (now - frame->start >= spy_examined_from) | ((uint32_t)frame->result != 0) |
		       frame->details.pageable ||
	       spy_gap_is_beside(thread) ||
	       (frame->slot->makes ? spy_stack_makes(thread, frame, now)
				   : spy_stack_samples(thread, frame));
}

__attribute__((noinline)) static void look_closer(struct spy_thread *thread,
						  const struct spy_frame *frame, uint64_t now)
{
	if (frame->details.pageable && !(uint32_t)frame->result)
		spy_count(&thread->page->pageable);
	if (frame->depth)
		return;
	if (now - frame->start >= spy_long_call)
		spy_sched_look(thread, now);
	thread->poll_is_late |= now - frame->start >= spy_poll_long_call;
	spy_stack_look(thread, frame, now);
	thread->gaps.behind = false;
}

/* One that was not timed lasted at least since it waited, or since a timed call inside of it began. */
__attribute__((noinline)) static void write_counted(struct spy_thread *thread,
						    struct spy_frame *frame, uint64_t now)
{
	uint64_t *counter = &thread->page->counts[spy_slot_counter(frame->slot)];
	uint64_t waited = thread->calls[frame->depth].start;

	if (!frame->start)
		frame->start = waited ? waited : now;
	frame->details.event = frame->depth ? SPY_EV_NESTED : SPY_EV_CALL;
	clear_details(frame);
	if (*counter)
		--*counter;
	if (!frame->depth && is_rare(thread, frame, now))
		look_closer(thread, frame, now);
	append_record(thread, frame, frame->depth, now);
}

/*
 * A lock that was waited for inside the call and is kept beyond it: the thread does not wait any
 * more. Not at the end of a call inside another one: a signal handler may make it while the other
 * one still waits.
 */
static inline void stop_waiting(struct spy_thread *thread, uint8_t depth)
{
	if (unlikely(thread->waiting) && !depth)
		spy_waiters_leave(thread);
}

/* The same where the clock was read. */
static inline void settle_waiters(struct spy_thread *thread, uint8_t depth, uint64_t now)
{
	if (spy_waiters_unsettled(thread) && !depth)
		spy_waiters_settle(thread, now);
}

static inline void leave_traced(struct spy_thread *thread, struct spy_frame *frame, uint8_t depth)
{
	uint64_t now;

	/* Before the look at the clock: a signal handler's records must not come between. */
	if (unlikely(!spy_thread_try_work(thread, frame)))
		return;
	now = spy_clock();
	if (frame->slot->inspector)
		inspect_after(frame);
	if (unlikely(is_rare(thread, frame, now)))
		look_closer(thread, frame, now);
	thread->left_at = now;
	thread->outer_calls += !depth;
	thread->depth = depth;
	show_outer(thread, depth);
	append_record(thread, frame, depth, now);
	settle_waiters(thread, depth, now);
	spy_thread_end_work(thread);
}

__attribute__((noinline)) static void leave_inner(struct spy_thread *thread,
						  struct spy_frame *frame)
{
	leave_traced(thread, frame, frame->depth);
}

static inline void leave_counted(struct spy_thread *thread, struct spy_frame *frame)
{
	uint8_t depth = frame->depth;
	uint64_t now = 0;
	bool is_long = false;

	if (unlikely(!spy_thread_try_work(thread, frame)))
		return;
	if (unlikely(frame->start)) {
		now = spy_clock();
		is_long = spy_slots_took(frame->slot, now - frame->start);
	}
	if (unlikely(is_long || is_worth_a_record(thread, frame)))
		write_counted(thread, frame, now ? now : spy_clock());
	thread->depth = depth;
	show_outer(thread, depth);
	if (frame->slot->inspector)
		inspect_after(frame);
	stop_waiting(thread, depth);
	spy_thread_end_work(thread);
}

/*
 * A call that was begun by another thread: a user-level thread went on here. The call is lost, and
 * the other thread is not inside it any more. Its list says so from its next call on (depth_of),
 * unless the place is a later call's by now. Where the thread's memory is empty, this is a forked
 * child: the call was its parent's.
 */
__attribute__((noinline)) static void leave_elsewhere(const struct spy_frame *frame)
{
	struct spy_thread *thread = frame->thread;
	uintptr_t here = (uintptr_t)frame;

	if (!thread->page || thread == spy_self)
		return;
	__atomic_compare_exchange_n(&thread->calls[frame->depth].frame, &here, 0, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (frame->kind == SPY_FRAME_TRACED)
		spy_session_count_lost();
}

void spy_leave(struct spy_frame *frame)
{
	struct spy_thread *thread = frame->thread;

	if (likely(frame->kind == SPY_FRAME_TRACED)) {
		if (unlikely(!still_ours(thread))) {
			leave_elsewhere(frame);
			return;
		}
		if (likely(!frame->depth))
			leave_traced(thread, frame, 0);
		else
			leave_inner(thread, frame);
	} else if (frame->kind == SPY_FRAME_DORMANT) {
		leave_dormant(frame);
	} else if (frame->kind == SPY_FRAME_COUNTED) {
		if (likely(still_ours(thread)))
			leave_counted(thread, frame);
		else
			leave_elsewhere(frame);
	} else if (frame->kind == SPY_FRAME_KEPT) {
		leave_kept(frame);
	} else if (frame->slot->inspector) {
		/* It is not recorded, but a look-up must return stubs all the same; that needs
		 * no thread. */
		if (frame->kind == SPY_FRAME_PASS ||
		    frame->slot->inspector == SPY_INSPECTOR_get_proc_address)
			inspect_after(frame);
	}
}
