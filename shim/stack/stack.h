/*
 * shim/stack/stack.h: where the calls that are worth a look come from: a record of return addresses
 * before the call's own. stack.c decides which calls, and how often at one place; unwind.c walks.
 * Runs on the application's threads.
 */
#ifndef CUDASPY_SHIM_STACK_H
#define CUDASPY_SHIM_STACK_H

#include "stack/python.h"
#include "state/thread.h"

/* A place in the program that makes calls worth a look. The threads share the table without a
 * lock; it is part of the session, so a forked child begins with none. */
struct spy_stack_site {
	uint64_t key; /* return address and function, of launches also the kernel; 0: free */
	uint64_t longest; /* call that has its stack in the trace, cycles */
	uint64_t calls; /* worth a look; about, beyond the first */
	uint64_t samples; /* the same, of those that are only in a sample */
	uint64_t stack_emitted; /* when its last stack was written, in a bounded trace */
};

#define SPY_STACK_SITES 4096 /* beyond this many, places get no stack */
/* Launches of known kernels apart, of which a library's one place may make thousands; beyond this many kernels it is
 * their place that counts. */
#define SPY_STACK_KERNELS 2048

/* A code object of Python's that has a number in the trace: its place in the table and 1. */
struct spy_python_code {
	uint64_t key; /* file, function and first line; 0: free */
	uint64_t emitted_in; /* the packet (slot and number, and 1) with its record */
};

#define SPY_PYTHON_CODES 4096 /* beyond this many, lines in others are not recorded */

/* Cycles from which on a call is examined when it returns (call.c): the scheduler's account
 * (spy_long_call) or a stack. */
extern uint64_t spy_examined_from;

/* Is the call of a sort that is sampled? Launches into other streams than the legacy one must
 * find out quickly. */
static inline bool spy_stack_sampled(const struct spy_frame *frame)
{
	uint8_t sampled = frame->slot->sampled;

	return sampled == SPY_SAMPLED_LEGACY ? frame->details.stream == SPY_STREAM_LEGACY : sampled;
}

#define SPY_STACK_EARLY 1024 /* calls of a thread: it may make no others */

/*
 * About one call in 64 of a thread's, of the early ones one in 8, by how many it has made; not
 * every 64th, for programs make calls in rounds. One multiplication would not do: with rounds of
 * some lengths it draws the same few places again and again.
 */
static inline bool spy_stack_draws(uint64_t calls)
{
	uint64_t mixed = calls * 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
	return mixed >= -(calls < SPY_STACK_EARLY ? 1ull << 61 : 1ull << 58);
}

static inline bool spy_stack_samples(const struct spy_thread *thread, const struct spy_frame *frame)
{
	return spy_stack_sampled(frame) && spy_stack_draws(thread->page->calls);
}

#define SPY_STACK_LOT 16 /* calls counted at once */

/* One in a lot, drawn by the clock. */
static inline bool spy_stack_is_drawn(uint64_t now)
{
	return !((now * 0x9e3779b97f4a7c15ull >> 32) % SPY_STACK_LOT);
}

static inline uint64_t spy_stack_place_key(const struct spy_frame *frame)
{
	return frame->caller << 16 | frame->slot->fn;
}

/* Of a launch the place is code that nvcc made, or a library's, and launches kernels for all of the program: each kernel is
 * a place of its own. 0: the kernel is unknown, or it is no launch. */
static inline uint64_t spy_stack_kernel_key(const struct spy_frame *frame)
{
	if (frame->details.event != SPY_EV_LAUNCH || !frame->details.kernel)
		return 0;
	return spy_stack_place_key(frame) ^ frame->details.kernel * 0xd6e8feb86659fd93ull;
}

static inline uint64_t spy_stack_key(const struct spy_frame *frame)
{
	return spy_stack_kernel_key(frame) ?: spy_stack_place_key(frame);
}

/* Where the thread keeps that a place has had its first calls. */
static inline struct spy_settled *spy_stack_settled(struct spy_thread *thread, uint64_t key)
{
	return &thread->settled[key * 0x9e3779b97f4a7c15ull >> 32 & (SPY_SETTLED - 1)];
}

/* A call that makes things: may its place be due? Of a settled one spy_stack_look would say no
 * as well, but later. */
static inline bool spy_stack_makes(struct spy_thread *thread, const struct spy_frame *frame,
				   uint64_t now)
{
	uint64_t key = spy_stack_key(frame);
	const struct spy_settled *settled = spy_stack_settled(thread, key);

	return settled->key != key || (now - frame->start) / 2 >= settled->longest ||
	       spy_stack_is_drawn(now);
}

/* When a session begins. frequency: cycles a second. */
void spy_stack_begin(uint64_t frequency);

/* Cycles without a call from which the calls on both sides of it are worth a stack. */
extern uint64_t spy_long_gap;

/* A wait between two calls that has ended (probe/outside.h). */
struct spy_outside {
	uint64_t start; /* when it began */
	uint64_t
		object; /* a lock's address; a descriptor, where is_file; an event or stream; 0 none */
	uintptr_t caller, sp, bp; /* the return address, and the registers after the return */
	uint64_t bytes; /* that a read or write moved */
	uint32_t holder; /* thread, 0 unknown */
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t flags; /* enum spy_wait_flag */
	bool is_file;
	bool at_once; /* a poll that is not to wait */
	uint16_t ready; /* descriptors, of a poll with SPY_WAIT_LATE */
};

/* From `from` until now (cycles) the thread took no stacks, whatever it did: its share is what it was then. */
void spy_stack_rested(struct spy_thread *thread, uint64_t from, uint64_t now);

/* A wait between calls has ended; now is the time of its record, which comes behind. A long one gets
 * a stack, as far as its thread's share goes; of polls that found descriptors ready a sample does. Takes no lock, allocates nothing. */
void spy_stack_wait(struct spy_thread *thread, const struct spy_outside *wait, uint64_t now);

struct spy_unwind;

/* What is no call and is announced now, at a place with that key (not 0), by who returns to from->ip: the first of a
 * place get a stack, then a sample. The record comes behind, with the same time. Takes no lock, allocates nothing. */
void spy_stack_place(struct spy_thread *thread, const struct spy_unwind *from, uint64_t key,
		     uint64_t now);

/* The number of a function of Python's, whose record has been written into that stream unless the trace has it;
 * 0: no room. And has the trace the record of that number, as far as it will be kept? The stream has a packet. */
uint32_t spy_stack_code(struct spy_thread *thread, const struct spy_python_place *place,
			uint64_t now);
bool spy_stack_code_is_recorded(const struct spy_thread *stream, uint32_t number);

/* The thread's call of its own returns: is it worth a look, and was its place recorded too often?
 * now is the time of the call's record, which comes behind. Takes no lock, allocates nothing. */
void spy_stack_look(struct spy_thread *thread, const struct spy_frame *frame, uint64_t now);

#endif
