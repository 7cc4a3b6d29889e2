/*
 * analyzer/blame/worst_calls.h: the calls that lost most, of those that have to do with the subject.
 */
#ifndef CUDASPY_WORST_CALLS_H
#define CUDASPY_WORST_CALLS_H

#include "account/buckets.h"

struct accounting;
struct blame;
struct completed_call;
struct range_name;
struct wait_chain_link;

/* One of the calls that lost most. */
#define WORST_CALLS 48
#define WORST_CALL_ROOTS 8
struct worst_call {
	uint64_t serial; /* 0: none */
	struct reading_position at; /* of its record */
	struct thread *thread;
	uint32_t fn;
	uint8_t device;
	/* expected_ns: as in struct completed_call */
	uint64_t begin_ns, end_ns, expected_ns, lost_ns;
	uint64_t return_address; /* return address, 0 unknown */
	const struct stack *stack; /* NULL: none was taken */
	struct range_name *range; /* innermost one of the program's; NULL: none */
	uint64_t bucket_ns[BUCKET_COUNT];
	/* the lock that it waited for longest, so long, and the thread that held it longest */
	const struct lock *lock;
	uint64_t lock_ns;
	bool inferred; /* no probe saw a lock: the holder below was in the way, by overlap */
	struct thread *holder;
	uint32_t holder_fn;
	uint8_t holder_device;
	uint64_t held_ns;
	/* enum spy_wait_kind: of its waits for what is no lock those that were longest together */
	uint8_t slept_kind;
	uint64_t slept_ns; /* all of these */
	/* whose requests were longest in the kernel module during its own, as far as it took longer
	 * there: kernel_overlap.h */
	struct thread *overlap_thread;
	uint32_t overlap_fn;
	uint8_t overlap_device;
	uint64_t overlap_ns;
	const char *why; /* such a call may wait for the GPU; NULL: it may not */
	struct worst_call_root {
		const struct lock *lock; /* the first of the chain */
		struct thread *thread;
		uint32_t fn;
		uint8_t device, cause;
		double ns;
	} roots[WORST_CALL_ROOTS];
};

/* For the replay of a journal: a call takes part, of which nothing else is known, if it is one of the worst so far. */
void worst_call_replay(struct blame *b, struct thread *thread, uint64_t end_ns, uint64_t lost_ns,
		       uint64_t serial);

/* Is it one of the worst? Returns its serial, 0 if not. why: as in struct gpu_waits. */
uint64_t worst_call_add(struct accounting *a, const struct completed_call *call, uint64_t lost_ns,
			const char *why);

/* The same call's entry, if it still is one of the worst; else NULL. */
struct worst_call *worst_call_of(struct blame *b, const struct completed_call *call);

/* Adds a part of the waiting of the call of that serial, if it still is one of the worst. */
void worst_call_add_root(struct blame *b, uint64_t serial, const struct worst_call_root *more);

/* No probe saw what the call of the link waited for: the holder was in its way. */
void worst_call_infer(struct blame *b, const struct wait_chain_link *link);

#endif
