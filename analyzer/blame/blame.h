/*
 * analyzer/blame/blame.h: which threads and calls waits are due to.
 *
 * A wait for a lock points from the call that waited to the calls that held the lock meanwhile:
 * that is the direct blame. If the holder was itself waiting just then, for another lock, for the
 * GPU, in the kernel module, the blame goes on from there until it reaches a thread that was not
 * waiting for another one: the root. What happened in a call is known when it returns, so links of
 * the wait chain are deferred at the holder until then.
 */
#ifndef CUDASPY_BLAME_H
#define CUDASPY_BLAME_H

#include "journal.h"
#include "kernel_overlap.h"
#include "subject.h"
#include "unattributed.h"
#include "worst_calls.h"

struct accounting;
struct thread_account;
struct completed_call;
struct join;

/* Whose wait it was, wherever the blame goes. */
struct blame_origin {
	struct thread *waiter;
	uint32_t process; /* the waiter's: its index */
	uint32_t fn;
	uint8_t device;
	bool inferred;
	bool awaits; /* as in struct completed_call */
	bool starting; /* its call is of the start: work_starting */
	bool working; /* it is of the phase in which its process works */
	uint64_t serial; /* of the waiter's call, for the list of the worst */
	const struct lock *lock; /* that it waited for; NULL: unknown */
	uint64_t call, wait; /* their numbers, from 1: of calls that waited, and of waits */
	uint64_t begin_ns; /* of the waiter's call */
	double weight; /* of each nanosecond: 1, or more where the holders were sampled */
};

/* Blame for a stretch of time, on its way to the root. */
struct wait_chain_link {
	struct blame_origin origin;
	struct thread *holder;
	uint64_t begin_ns, end_ns;
	uint32_t fn; /* the holder's, as far as known when the wait began */
	uint8_t device;
	uint8_t level; /* holders it went past */
};

/* A set of calls: a bit for each call that waited, which is what memory grows by in a storm of
 * them. */
struct call_set {
	uint64_t *bits;
	size_t n_words;
	uint64_t count;
	uint64_t first_ns, last_ns; /* when they began; not valid without any */
};

struct blame {
	struct accounting *accounts; /* on which it stands */
	struct blame_edges direct, roots;
	/* Calls that a thread on the same GPU stalled, or one on another: blame_is_stall. */
	struct call_set stalled, stalled_across;
	struct worst_call worst_calls[WORST_CALLS];
	uint64_t least_lost_ns; /* of a full list of the worst calls */
	struct subject subject; /* the worst calls are those that have to do with it */
	struct journal *journal; /* of a part: has the worst calls, too; NULL: none */
	uint64_t serial, calls, waits;
	struct kernel_overlap kernel_overlap;
	struct unattributed_waits *unattributed; /* by process */
};

/*
 * Would a wait, followed to this root, have been the same had the two threads been processes of
 * their own? A lock is the process's own, whatever its holder did; but processes on one GPU take
 * turns unless they share it through MPS, and the kernel module is the same for all.
 */
enum processes_help { HELP_UNKNOWN, HELP_ALONE, HELP_WITH_MPS, HELP_NOT };

/* Adds a root's waiting to its kinds of help: all of it to the one above, but for the part in the
 * kernel module that processes would be spared. */
void blame_add_help(const struct blame_edge *root, double help_ns[HELP_NOT + 1]);

/* Did one thread wait for another, and both on a known GPU? Not for a lock alone: what a thread
 * without a CPU did kept no other one waiting, and nothing can be said of an unknown cause. */
bool blame_is_stall(const union blame_key *root, bool across_devices);

void blame_init(struct blame *b, struct accounting *accounts);
void blame_release(struct blame *b);

/* What the parts of a set know, and locks with it, becomes the whole's: behind account_join. While they are read: an entry of
 * the journal of that part. */
bool blame_join(struct blame *whole, struct blame *const *parts, struct join *join);
void blame_replay(struct accounting *whole, size_t part, const struct journal_entry *entry);

/* A call has returned that waited for locks, or that others wait at. */
void blame_waits(struct accounting *a, const struct completed_call *call, uint64_t serial);
void blame_resolve_deferred(struct accounting *a, struct thread_account *account);

/* After the last record: what still waits at calls that never returned. */
void blame_finish(struct accounting *a);

/*
 * A call took long, and no probe saw why: recorded without probes, or a lock that is not the C
 * library's. To be asked when other threads' calls of the same time have returned. Concludes from
 * overlap which call was in the way: false if none was. blame_conclude then books it.
 */
bool blame_infer(struct accounting *a, const struct completed_call *call,
		 struct wait_chain_link *link);
void blame_conclude(struct accounting *a, const struct wait_chain_link *link);

#endif
