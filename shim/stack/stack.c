/*
 * shim/stack/stack.c: which calls get a stack, and how often. Runs on the application's threads,
 * when a call of their own returns. Takes no lock, allocates nothing.
 *
 * Such are calls that were long, failed, copied pageable memory, made something, or loaded or unloaded code. One in 64 (of a
 * thread's first calls one in 8) of those that wait, copy, hand work to a stream, allocate from a pool or use code that may have to
 * be loaded is one as well;
 * of the runtime's launches only those to the legacy default stream, for which other streams wait.
 * Too many of these are a problem, too, and the return address does not say where they come from:
 * of <<<>>>, in a program with a static CUDA runtime, in C++ with many wrappers, in Python. In a
 * program with Python its lines are recorded with the stack (python.h). For the same reason such a call
 * that waited, if only for some microseconds, counts as one of the sample, into whatever stream.
 *
 * A place (return address and function, and of a launch the kernel) gets a stack for its first eight calls (of a sample four),
 * then for each that took twice as long as the longest recorded, and for about the 16th, 32nd, 64th
 * …: so a wrapper that all of a program calls shows some more of its callers. A thread gets 50 a
 * second in the long run, 200 at once: a program's start makes many such calls, and its work begins
 * right behind it. Samples get half of the 200.
 *
 * They take half a per cent of a thread's time in the long run, and 20 ms at once, of which samples get
 * half: with many lines of Python that is less than 50 a second. This does not hold for calls that failed or
 * copied pageable memory, nor is a stack counted whose call took a hundred times as long. And neither share keeps
 * a place from having its first when a call takes 10 ms, or a wait between calls a millisecond.
 */
#include <stddef.h>
#include <string.h>
#include "cudaspy/function_numbers.h"
#include "process/own_stack.h"
#include "lib/clock.h"
#include "process/options.h"
#include "state/libraries.h"
#include "state/session.h"
#include "stack/python.h"
#include "record/sched.h"
#include "stack/stack.h"
#include "stack/unwind.h"

#pragma GCC poison malloc calloc realloc free fopen pthread_mutex_lock

#define FIRST_CALLS 8 /* of a place that get a stack */
#define FIRST_SAMPLED 4
#define WAITED_US 20 /* from so long on, a short call has waited for something */
#define MADE_BEFORE 4 /* so many things are made before it counts as again */
#define PER_SECOND 50 /* a thread's, in the long run */
#define AT_ONCE 200 /* for a program's start makes many, and its work begins right behind it */
#define SAMPLED_AT_ONCE 100 /* of these that are only in a sample */
#define TIME_PART 200 /* of a thread's time is for stacks: … */
#define TIME_AT_ONCE_MS 20
#define FIRST_MS 10 /* from so long on a call is sure to have a stack, if its place has none */
#define TIME_MOST_MS 2 /* that one takes; in what goes beyond that its thread had no CPU */
#define SLOW_CALL 100 /* times what its stack takes */
#define AGAIN_MS 250 /* a place is recorded once more, where old packets are deleted */
#define PROBES 16 /* entries looked at in a table */
#define WAITS 0xff00 /* in keys of places, where those of calls have the function's number */
#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY: an answer */

uint64_t spy_examined_from = UINT64_MAX;
uint64_t spy_long_gap = UINT64_MAX;
static uint64_t long_call = UINT64_MAX; /* that is worth a stack */
static uint64_t waited = UINT64_MAX; /* that is one of a sample */
static bool bounded; /* old packets are deleted */

void spy_stack_begin(uint64_t frequency)
{
	long_call = spy_options.nostacks ? UINT64_MAX : frequency / 1000;
	bounded = spy_options_keeps_packets();
	spy_long_gap = long_call;
	waited = spy_options.nostacks ? UINT64_MAX : frequency / (1000000 / WAITED_US);
	spy_examined_from = waited < spy_long_call ? waited : spy_long_call;
}

static bool failed(const struct spy_frame *frame)
{
	uint32_t result = (uint32_t)frame->result;

	return result && result < SPY_RESULT_NONE && result != NOT_READY;
}

static uint8_t worth_a_look(const struct spy_thread *thread, const struct spy_frame *frame,
			    uint64_t now)
{
	uint8_t why = 0;

	if (now - frame->start >= long_call)
		why |= SPY_STACK_LONG;
	if (frame->details.pageable && !frame->details.captured)
		why |= SPY_STACK_PAGEABLE;
	if (failed(frame))
		why |= SPY_STACK_FAILED;
	if (frame->slot->makes)
		why |= SPY_STACK_MADE;
	if (spy_stack_samples(thread, frame) ||
	    (frame->slot->sampled && now - frame->start >= waited))
		why |= SPY_STACK_SAMPLED;
	if (spy_gap_is_beside(thread))
		why |= SPY_STACK_GAP;
	return why;
}

/* Only in a sample, or for what is not a call: the thread's share is there for the others first. */
static bool can_wait(uint8_t why)
{
	return !(why & ~(SPY_STACK_SAMPLED | SPY_STACK_GAP));
}

/*
 * The entry of a key in a table of such entries, which begin with theirs, or a free one taken for
 * it; NULL: the table is full around there. What else is in a new entry is zero for all: no order
 * to keep.
 */
static void *find_entry(void *table, size_t entries, size_t bytes, uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15ull >> 32;

	for (uint64_t i = 0; i < PROBES; i++) {
		uint64_t *entry = (uint64_t *)((char *)table + (at + i) % entries * bytes);
		uint64_t known = __atomic_load_n(entry, __ATOMIC_RELAXED);

		if (!known && __atomic_compare_exchange_n(entry, &known, key, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return entry;
		if (known == key)
			return entry;
	}
	return NULL;
}

_Static_assert(SPY_FN_COUNT < WAITS, "keys of places");
_Static_assert(!offsetof(struct spy_stack_site, key) && !offsetof(struct spy_python_code, key),
	       "find_entry");

/*
 * How many calls of the place are now counted for this one: each of the first ones, then a lot for
 * one in that many, drawn by the clock. Threads that allocate side by side would else meet at the
 * counter in each call, and wait for its cache line longer than the call takes.
 */
static uint64_t lot_of(const uint64_t *counter, uint64_t now)
{
	if (__atomic_load_n(counter, __ATOMIC_RELAXED) < MADE_BEFORE + FIRST_CALLS)
		return 1;
	return spy_stack_is_drawn(now) ? SPY_STACK_LOT : 0;
}

/* The thread need not look at the place again before a lot is drawn, or a call takes twice as
 * long. */
static void settle(struct spy_thread *thread, const struct spy_stack_site *site, uint64_t key)
{
	if (bounded || __atomic_load_n(&site->calls, __ATOMIC_RELAXED) < MADE_BEFORE + FIRST_CALLS)
		return;
	*spy_stack_settled(thread, key) = (struct spy_settled){
		.key = key, .longest = __atomic_load_n(&site->longest, __ATOMIC_RELAXED)};
}

/* Does the number of bits grow with the last lot? */
static bool doubled(uint64_t calls, uint64_t lot)
{
	return (calls ^ (calls - lot)) > calls - lot;
}

/* Of a bounded trace: may the packet that has the place's last stack be gone? Then it is
 * recorded again, now and then. */
static bool is_forgotten(struct spy_stack_site *site, uint64_t now)
{
	uint64_t emitted = __atomic_load_n(&site->stack_emitted, __ATOMIC_RELAXED);

	return bounded && now > emitted && now - emitted >= AGAIN_MS * long_call;
}

static struct spy_stack_site *find_site(uint64_t key)
{
	return find_entry(spy_session->stack_sites, SPY_STACK_SITES, sizeof(struct spy_stack_site),
			  key);
}

/* A kernel for which there is no room is one of those that the place launches. */
static struct spy_stack_site *site_of(const struct spy_frame *frame)
{
	uint64_t kernel = spy_stack_kernel_key(frame);
	struct spy_stack_site *site = NULL;

	if (kernel)
		site = find_entry(spy_session->stack_kernels, SPY_STACK_KERNELS, sizeof(*site),
				  kernel);
	return site ?: find_site(spy_stack_place_key(frame));
}

/* Is this call of the place one to record? Samples are counted separately: thousands of short
 * calls must not use up the share of the first long or failed one. */
static bool is_due(struct spy_thread *thread, const struct spy_frame *frame, uint8_t why,
		   uint64_t now)
{
	uint64_t key = spy_stack_key(frame), duration = now - frame->start;
	struct spy_stack_site *site = site_of(frame);
	uint64_t calls, lot, before = why == SPY_STACK_MADE ? MADE_BEFORE : 0;
	uint64_t first = why == SPY_STACK_SAMPLED ? FIRST_SAMPLED : FIRST_CALLS, *counter;

	if (!site)
		return false;
	if (why == SPY_STACK_MADE)
		settle(thread, site, key);
	counter = why == SPY_STACK_SAMPLED ? &site->samples : &site->calls;
	lot = lot_of(counter, now);
	calls = lot ? __atomic_add_fetch(counter, lot, __ATOMIC_RELAXED) : UINT64_MAX;
	if (calls <= before)
		return false;
	if (is_forgotten(site, now)) {
		__atomic_store_n(&site->stack_emitted, now, __ATOMIC_RELAXED);
		return true;
	}
	/* Two threads at once may both record it: two stacks instead of one. */
	if (duration / 2 >= __atomic_load_n(&site->longest, __ATOMIC_RELAXED)) {
		__atomic_store_n(&site->longest, duration, __ATOMIC_RELAXED);
		return true;
	}
	return lot && (calls <= before + first || doubled(calls, lot));
}

/* Cycles that a stack uses up of its thread's share. */
static uint64_t share(void)
{
	return 1000 * long_call / PER_SECOND;
}

static uint64_t ahead(uint64_t until, uint64_t now)
{
	return until > now ? until - now : 0;
}

/* Has the thread had its share of them, or of the time for them? long_call is a millisecond. */
static bool too_many(const struct spy_thread *thread, uint8_t why, uint64_t now)
{
	uint64_t most = (can_wait(why) ? SAMPLED_AT_ONCE : AT_ONCE) * share();
	uint64_t most_time = TIME_AT_ONCE_MS * TIME_PART * long_call / (can_wait(why) ? 2 : 1);

	if (ahead(thread->stacks_until, now) >= most)
		return true;
	return !(why & (SPY_STACK_FAILED | SPY_STACK_PAGEABLE)) &&
	       ahead(thread->stacks_time_until, now) >= most_time;
}

/* Was the call so long that a stack is nothing beside it, and the place has none at all? */
static bool is_first(const struct spy_frame *frame, uint64_t now)
{
	const struct spy_stack_site *site =
		now - frame->start >= FIRST_MS * long_call ? site_of(frame) : NULL;

	return site && !__atomic_load_n(&site->longest, __ATOMIC_RELAXED);
}

static void use_share(struct spy_thread *thread, uint64_t now)
{
	thread->stacks_until = now + ahead(thread->stacks_until, now) + share();
}

/* Of a stack that took `cycles`, beside a call or a wait that took `beside`. */
static void use_time(struct spy_thread *thread, uint64_t now, uint64_t cycles, uint64_t beside)
{
	uint64_t most = TIME_MOST_MS * long_call;

	if (cycles <= beside / SLOW_CALL)
		return;
	thread->stacks_time_until = now + ahead(thread->stacks_time_until, now) +
				    TIME_PART * (cycles < most ? cycles : most);
}

void spy_stack_rested(struct spy_thread *thread, uint64_t from, uint64_t now)
{
	if (now <= from)
		return;
	if (thread->stacks_until > from)
		thread->stacks_until += now - from;
	if (thread->stacks_time_until > from)
		thread->stacks_time_until += now - from;
}

/* From the function that `from` returns to. */
static size_t walk(const struct spy_thread *thread, struct spy_unwind *from, uint64_t *frames)
{
	if (from->sp > thread->stack_begin && from->sp < thread->stack_end) {
		from->stack_begin = spy_own_stack_left_at();
		from->stack_end = thread->stack_end;
	}
	from->own_end = spy_own_stack_end();
	return spy_unwind(from, frames, SPY_STACK_MOST);
}

/* ---- in Python ------------------------------------------------------------------------------ */

/* FNV-1a: a table of four thousand will hardly see two with the same 64 bits. */
static uint64_t hash_more(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n--)
		hash = (hash ^ *at++) * 0x100000001b3ull;
	return hash;
}

/* A function is known by what it is called: its object may have been freed, and another one lie
 * there. */
static uint64_t key_of(const struct spy_python_place *place)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	hash = hash_more(hash, place->file, strlen(place->file) + 1);
	hash = hash_more(hash, place->function, strlen(place->function) + 1);
	hash = hash_more(hash, &place->first_line, sizeof(place->first_line));
	return hash ? hash : 1;
}

/* What is told now is known so far: in the packet, or in the part of the recording. */
static uint64_t recorded_in(const struct spy_thread *thread)
{
	return bounded ? (uint64_t)thread->slot << 48 | (thread->packet->seq + 1)
		       : spy_session->part;
}

/* Has the trace, as far as it will be kept, that code's name? Two threads at once may both say
 * no. */
static bool is_emitted(const struct spy_thread *thread, struct spy_python_code *code)
{
	uint64_t here = recorded_in(thread);

	if (__atomic_load_n(&code->emitted_in, __ATOMIC_RELAXED) == here)
		return true;
	__atomic_store_n(&code->emitted_in, here, __ATOMIC_RELAXED);
	return false;
}

#define CODE_BYTES (sizeof(struct spy_rec_python_code) + SPY_PYTHON_FILE + SPY_PYTHON_FUNCTION + 8)

static void record_code(struct spy_thread *thread, uint32_t number,
			const struct spy_python_place *place, uint64_t now)
{
	struct spy_rec_python_code *record = (struct spy_rec_python_code *)thread->head;
	size_t file = strlen(place->file) + 1, function = strlen(place->function) + 1;
	size_t bytes = sizeof(*record) + file + function, padding = 7 - bytes % 8;

	*record = (struct spy_rec_python_code){.head = {.time = now, .event = SPY_EV_PYTHON_CODE},
					       .code = number,
					       .first_line = place->first_line};
	memcpy(record->text, place->file, file);
	memcpy(record->text + file, place->function, function);
	memset(record->text + file + function, ' ', padding);
	record->text[file + function + padding] = '\0';
	spy_thread_publish(thread, now, bytes + padding + 1);
}

/* Is there room, in a call or between calls? */
static bool has_room_for(const struct spy_thread *thread, size_t bytes)
{
	bytes += SPY_RECORD_MAX; /* that of the call or the wait */
	return thread->depth ? spy_thread_has_room(thread, bytes)
			     : spy_thread_has_room_outside(thread, bytes);
}

/* The code's number, after its record was written; 0: no room in the table, or for the record. */
uint32_t spy_stack_code(struct spy_thread *thread, const struct spy_python_place *place,
			uint64_t now)
{
	struct spy_python_code *code;
	uint32_t number;

	if (!has_room_for(thread, CODE_BYTES + sizeof(struct spy_rec_python_stack)))
		return 0;
	code = find_entry(spy_session->python_codes, SPY_PYTHON_CODES, sizeof(*code),
			  key_of(place));
	if (!code)
		return 0;
	number = (uint32_t)(code - spy_session->python_codes) + 1;
	if (!is_emitted(thread, code))
		record_code(thread, number, place, now);
	return number;
}

bool spy_stack_code_is_recorded(const struct spy_thread *stream, uint32_t number)
{
	return __atomic_load_n(&spy_session->python_codes[number - 1].emitted_in,
			       __ATOMIC_RELAXED) == recorded_in(stream);
}

/* Where the frame of that number is kept, from 0 on, innermost first: of those behind the innermost ones the last. */
static unsigned int frame_slot(unsigned int number)
{
	return number < SPY_PYTHON_INNERMOST
		       ? number
		       : SPY_PYTHON_INNERMOST + (number - SPY_PYTHON_INNERMOST) %
							(SPY_PYTHON_MOST - SPY_PYTHON_INNERMOST);
}

static void write_python_stack(struct spy_thread *thread, const struct spy_python *python,
			       uint16_t fn, uint64_t now)
{
	struct spy_rec_python_stack record = {.time = now, .event = SPY_EV_PYTHON_STACK, .fn = fn};
	struct spy_python_frame frames[SPY_PYTHON_MOST], frame;
	struct spy_python_walk walk;
	struct spy_python_place place;
	unsigned int n = 0;

	if (!spy_python_begin(&walk, python))
		return;
	for (; spy_python_next(&walk, &frame); n++)
		frames[frame_slot(n)] = frame;
	record.count = (uint8_t)(n < SPY_PYTHON_MOST ? n : SPY_PYTHON_MOST);
	if (n > SPY_PYTHON_MOST)
		record.more = SPY_PYTHON_MORE_BETWEEN;
	for (unsigned int i = 0; i < record.count; i++) {
		/* The outer ones from the oldest on. */
		unsigned int of = i < SPY_PYTHON_INNERMOST ? i : n - record.count + i;

		if (!spy_python_read(&walk, &frames[frame_slot(of)], &place))
			continue;
		record.codes[i] = spy_stack_code(thread, &place, now);
		record.lines[i] = place.line;
	}
	if (!record.count || !has_room_for(thread, sizeof(record)))
		return;
	memcpy(thread->head, &record, sizeof(record));
	spy_thread_publish(thread, now, sizeof(record));
}

static void record_python(struct spy_thread *thread, uint16_t fn, uint64_t now)
{
	const struct spy_python *python;

	if (!spy_python_here() || !spy_libraries_hold())
		return;
	python = spy_python_here();
	if (python && thread->python_asked == python->symbols.thread_state)
		write_python_stack(thread, python, fn, now);
	spy_libraries_release();
}

struct look {
	struct spy_thread *thread;
	struct spy_unwind from;
	uint64_t now;
	uint64_t beside; /* cycles of the call or the wait */
	uint16_t fn;
	uint8_t why;
};

static void look_on_own_stack(void *data)
{
	struct look *look = data;
	struct spy_thread *thread = look->thread;
	struct spy_rec_stack *record = (struct spy_rec_stack *)thread->head;

	*record = (struct spy_rec_stack){
		.time = look->now, .event = SPY_EV_STACK, .fn = look->fn, .why = look->why};
	record->count =
		(uint8_t)walk(thread, &look->from,
			      (uint64_t *)(thread->head + offsetof(struct spy_rec_stack, frames)));
	use_share(thread, look->now);
	spy_thread_publish(thread, look->now, sizeof(*record));
	record_python(thread, look->fn, look->now);
}

static void record_stack(struct look *look)
{
	uint64_t begun = spy_overhead_begin();

	spy_own_stack_run(look_on_own_stack, look);
	use_time(look->thread, look->now, spy_clock() - begun, look->beside);
	spy_overhead_end(look->thread, begun);
}

static uint64_t key_of_wait(const struct spy_outside *wait)
{
	return wait->caller << 16 | (WAITS + wait->kind);
}

/* Has no long wait of that kind at that place had a stack? It has one now. */
static bool is_first_wait(const struct spy_outside *wait)
{
	struct spy_stack_site *site = find_site(key_of_wait(wait));

	return site && !__atomic_exchange_n(&site->longest, 1, __ATOMIC_RELAXED);
}

void spy_stack_wait(struct spy_thread *thread, const struct spy_outside *wait, uint64_t now)
{
	struct look look = {.thread = thread,
			    .from = {.ip = wait->caller, .sp = wait->sp, .bp = wait->bp},
			    .now = now,
			    .beside = now - wait->start,
			    .fn = SPY_FN_NONE,
			    .why = SPY_STACK_GAP};

	if (wait->ready)
		spy_stack_place(thread, &look.from, key_of_wait(wait), now);
	else if (now - wait->start >= long_call && !spy_cost_stacks_off() &&
		 has_room_for(thread, sizeof(struct spy_rec_stack)) &&
		 (is_first_wait(wait) || !too_many(thread, SPY_STACK_GAP, now)))
		record_stack(&look);
}

static bool is_place_due(uint64_t key, uint64_t now)
{
	struct spy_stack_site *site = find_site(key);
	uint64_t lot, calls;

	if (!site)
		return false;
	lot = lot_of(&site->samples, now);
	if (!lot)
		return false;
	calls = __atomic_add_fetch(&site->samples, lot, __ATOMIC_RELAXED);
	if (is_forgotten(site, now)) {
		__atomic_store_n(&site->stack_emitted, now, __ATOMIC_RELAXED);
		return true;
	}
	return calls <= FIRST_SAMPLED || doubled(calls, lot);
}

void spy_stack_place(struct spy_thread *thread, const struct spy_unwind *from, uint64_t key,
		     uint64_t now)
{
	struct look look = {.thread = thread,
			    .from = *from,
			    .now = now,
			    .fn = SPY_FN_NONE,
			    .why = SPY_STACK_SAMPLED};

	if (long_call != UINT64_MAX && !spy_cost_stacks_off() && is_place_due(key, now) &&
	    !too_many(thread, SPY_STACK_SAMPLED, now) &&
	    has_room_for(thread, sizeof(struct spy_rec_stack)))
		record_stack(&look);
}

/* The frames are found by what the trampoline left: the return address, and below it the slot's
 * number and the caller's frame pointer (trampoline.S). */
void spy_stack_look(struct spy_thread *thread, const struct spy_frame *frame, uint64_t now)
{
	struct look look = {.thread = thread,
			    .from = {.ip = frame->caller,
				     .sp = (uintptr_t)frame->stack,
				     .bp = frame->stack[-3]},
			    .now = now,
			    .beside = now - frame->start,
			    .fn = frame->slot->fn};

	look.why = long_call == UINT64_MAX || spy_cost_stacks_off()
			   ? 0
			   : worth_a_look(thread, frame, now);
	if (look.why && (!too_many(thread, look.why, now) || is_first(frame, now)) &&
	    (look.why & SPY_STACK_GAP || is_due(thread, frame, look.why, now)) &&
	    has_room_for(thread, sizeof(struct spy_rec_stack)))
		record_stack(&look);
}
