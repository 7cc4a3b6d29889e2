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
#include "subject.h"
#include "edges.h"
#include "account/buckets.h"
#include "base/util.h"

struct accounting;
struct thread_account;
struct completed_call;
struct join;
struct model;
struct request;
struct stretch;
struct wait;
struct blame;
struct range_name;
struct wait_chain_link;

/*
 * ---- kernel_overlap.c: which other threads were in the kernel module. Its locks cannot be
 * watched, but it is one for all threads of a machine, also for those of other processes: a call
 * that is in it longer than such calls are may have waited for any thread with requests in it
 * meanwhile. That is concluded from overlap: it is never measured, and kept separate from what
 * is.
 */

struct kernel_overlap {
	/* Holders are the other threads in it; waited_ns, by how much longer a waiter's calls were.
	 * All are inferred. */
	struct blame_edges edges;
	struct request *
		ring; /* the last ones of all threads, in the order of their ends; NULL: none yet */
	size_t ring_size; /* a power of two */
	uint64_t requests; /* so far */
	struct stretch *own; /* of the call in hand */
	size_t n_own, own_size;
	struct journal *journal; /* of a part: then all is written there, and the rest is empty */
	/* While journals are replayed, threads have no index yet: by their numbers (thread_account), from 1. */
	const struct thread **numbered;
	size_t n_numbered;
	bool numbers;
};

void kernel_overlap_release(struct kernel_overlap *c);

/* A thread was in the kernel module, for the call in progress. */
void kernel_overlap_add_wait(struct kernel_overlap *c, struct thread_account *account, uint32_t fn,
			     const struct wait *w);

/* Of a divided call: was it in the kernel module for so long that other threads in it are worth a
 * search? */
bool kernel_overlap_is_significant(const struct completed_call *f);

/* Says so, when other threads' requests of the same time have been met, too. account: the thread's. */
void kernel_overlap_find(struct accounting *a, struct thread_account *account,
			 const struct completed_call *f);

/* For the replay of a journal: as if it had been met, or searched for, now. */
void kernel_overlap_replay(struct accounting *a, const struct journal_entry *entry);

/* After that: threads have their indices. */
void kernel_overlap_renumber(struct kernel_overlap *c);

/* ---- worst_calls.c: the calls that lost most, of those that have to do with the subject. */

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
	 * there: kernel_overlap.c */
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

/*
 * ---- unattributed.c: long calls in which no probe saw why: of a process recorded without
 * probes, or that waited for a lock which is not the C library's; and calls that were longer in
 * the kernel module than such calls are. Which call was in the way is concluded from overlap
 * (kernel_overlap.c), as soon as the calls of other threads that overlap have returned.
 */

/* Of a process. */
struct unattributed_waits {
	struct completed_call *all; /* until it is time to look for overlap */
	size_t n;
	uint64_t due_ns; /* when it is, of the first of them */
	/* with probes that have seen no lock so far */
	struct wait_chain_link *guesses;
	size_t n_guesses;
	bool locks_seen; /* probes have seen a lock of the process */
};

/* An unattributed wait is kept for so long, and longer if its call was long: the call that was in
 * the way returns about then. */
#define UNATTRIBUTED_DELAY_NS 100000

/* None is looked at before that time, whatever is met from now on. */
static inline uint64_t unattributed_due(const struct unattributed_waits *r, uint64_t now_ns)
{
	uint64_t ns = now_ns + UNATTRIBUTED_DELAY_NS;

	return r->n && r->due_ns < ns ? r->due_ns : ns;
}

void unattributed_release(struct unattributed_waits *r);

/* A call has returned: is it one? */
void unattributed_remember(struct accounting *a, const struct completed_call *f);

/* Looks at those of the process that are due. */
void unattributed_resolve(struct accounting *a, size_t process, uint64_t now_ns);

/* After the last record: at all of them. */
void unattributed_finish(struct accounting *a);

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
