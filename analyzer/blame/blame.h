/*
 * analyzer/blame/blame.h: because of whom.
 *
 * A wait for a lock points from the call that waited to the calls that held the lock meanwhile:
 * that is the direct blame. If the holder was itself waiting just then, for another lock, for the
 * GPU, in the kernel module, the blame goes on from there until it reaches somebody who was not
 * waiting for a thread: the root. What happened in a call is known when it returns, so pieces of
 * blame wait at the holder until then.
 */
#ifndef CUDASPY_BLAME_H
#define CUDASPY_BLAME_H

#include "subject.h"
#include "account/buckets.h"

struct accounting;
struct caller;
struct finished;

#define NO_FUNCTION UINT32_MAX

/* Whose wait it was, wherever the blame goes. */
struct blame_origin {
	struct thread *waiter;
	uint32_t fn;
	uint8_t device;
	bool inferred;
	bool awaits; /* as in struct finished */
	bool starting; /* its call is of the start: work_starting */
	bool working; /* it is of the phase in which its process works */
	uint64_t serial; /* of the waiter's call, for the list of the worst */
	const struct lock *lock; /* that it waited for; NULL: nobody knows */
	uint64_t call, wait; /* their numbers, from 1: of calls that waited, and of waits */
	uint64_t begin_ns; /* of the waiter's call */
	double weight; /* of each nanosecond: 1, or more where the holders were sampled */
};

/* Blame for a stretch of time, on its way to the root. */
struct blame_piece {
	struct blame_origin origin;
	struct thread *holder;
	uint64_t begin_ns, end_ns;
	uint32_t fn; /* the holder's, as far as known when the wait began */
	uint8_t device;
	uint8_t level; /* holders it went past */
};

/* One of the calls that lost most. */
#define VICTIMS 48
#define VICTIM_ROOTS 8
struct victim {
	uint64_t serial; /* 0: none */
	struct thread *thread;
	uint32_t fn;
	uint8_t device;
	uint64_t begin_ns, end_ns, expected_ns, lost_ns; /* expected_ns: as in struct finished */
	uint64_t caller; /* return address, 0 unknown */
	const struct stack *stack; /* NULL: none was taken */
	uint64_t bucket_ns[BUCKET_COUNT];
	/* the lock that it waited for longest, so long, and who had that longest */
	const struct lock *lock;
	uint64_t lock_ns;
	bool inferred; /* no probe saw a lock: the holder below is who was in the way, by overlap */
	struct thread *holder;
	uint32_t holder_fn;
	uint8_t holder_device;
	uint64_t held_ns;
	uint8_t slept_kind; /* enum spy_wait_kind: of its waits for what is no lock those that were longest together */
	uint64_t slept_ns; /* all of these */
	/* whose requests were longest in the kernel module beside its own, as far as it took longer there: company.h */
	struct thread *beside;
	uint32_t beside_fn;
	uint8_t beside_device;
	uint64_t beside_ns;
	const char *why; /* such a call may wait for the GPU; NULL: it may not */
	struct victim_root {
		const struct lock *lock; /* the first of the chain */
		struct thread *thread;
		uint32_t fn;
		uint8_t device, cause;
		double ns;
	} roots[VICTIM_ROOTS];
};

/* A set of such calls: a bit for each call that waited, which is what memory grows by in a storm of them. */
struct call_set {
	uint64_t *bits;
	size_t n_words;
	uint64_t count;
	uint64_t first_ns, last_ns; /* when they began; not valid without any */
};

struct blame {
	struct blame_edges direct, roots;
	/* Calls that a thread on the same GPU stalled, or one on another: blame_is_stall. */
	struct call_set stalled, stalled_across;
	struct victim victims[VICTIMS];
	uint64_t least_lost_ns; /* of a full list of victims */
	struct subject subject; /* victims are calls that have to do with it */
	uint64_t serial, calls, waits;
};

/*
 * Would a wait, followed to this root, have been the same had the two threads been processes of their
 * own? A lock is the process's own, whatever its holder did; but processes on one GPU take turns unless
 * they share it through MPS, and the kernel module is the same for all.
 */
enum processes_help { HELP_UNKNOWN, HELP_ALONE, HELP_WITH_MPS, HELP_NOT };

enum processes_help blame_processes_help(const struct blame_key *root);

/* Adds a root's waiting to its kinds of help: all of it to the one above, but for the part in the kernel
 * module that processes would be spared. */
void blame_add_help(const struct blame_edge *root, double help_ns[HELP_NOT + 1]);

/* Did one thread wait for another, and both on a known GPU? Not for a lock alone: a thread that lacked a
 * CPU kept nobody waiting by what it did, and of what nobody knows nothing can be said. */
bool blame_is_stall(const struct blame_key *root, bool across_devices);

void blame_release(struct blame *b);

/* A call has returned that waited for locks, or that others wait at. */
void blame_waits(struct accounting *a, const struct finished *call, uint64_t serial);
void blame_arrivals(struct accounting *a, struct caller *caller);

/* Is it one of the worst? Returns its serial, 0 if not. why: as in struct gpu_waits. */
uint64_t blame_victim(struct accounting *a, const struct finished *call, uint64_t lost_ns,
		      const char *why);

/* The same call's entry, if it still is one of the worst; else NULL. */
struct victim *blame_victim_of(struct blame *b, const struct finished *call);

/* After the last record: what still waits at calls that never returned. */
void blame_finish(struct accounting *a);

/*
 * A call took long, and no probe saw why: recorded without probes, or a lock that is not the C
 * library's. To be asked when other threads' calls of the same time have returned. Concludes from
 * overlap who was in the way: false if nobody was. blame_conclude then books it.
 */
bool blame_infer(struct accounting *a, const struct finished *call, struct blame_piece *piece);
void blame_conclude(struct accounting *a, const struct blame_piece *piece);

#endif
