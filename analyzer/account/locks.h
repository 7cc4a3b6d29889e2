/*
 * analyzer/account/locks.h: the locks that calls waited for, and the order in which they changed
 * hands.
 *
 * A lock is an address in a process. Locks without waiters leave no record. While a thread waits,
 * each change of the holder in a CUDA call leaves one: with these, a long wait is shared among the
 * successive holders.
 */
#ifndef CUDASPY_LOCKS_H
#define CUDASPY_LOCKS_H

#include "base/hash.h"
#include "model/model.h"

/* A thread acquired the lock, or released it. */
struct lock_event {
	uint64_t ns;
	struct thread *thread;
	uint32_t fn; /* the application's call, number in the set's functions */
	uint8_t device;
	bool released;
	bool open; /* it was acquired, and its release may not be recorded */
	bool shared; /* as a reader: others may have the lock, too */
	/* How often it was acquired so far, this time included; and not by readers. Filled in by
	 * lock_add; they wrap. */
	uint32_t acquired, acquired_exclusive;
};

/* A set of threads. Start with zeros; thread_set_release. */
struct thread_set {
	/* index + 1 of each, in an open table of n_places, a power of two; 0: an empty place */
	uint32_t *members;
	uint32_t n_places, count;
};

struct lock_key {
	uint64_t address;
	uint64_t process;
};

/* A lock is no queue: to be passed over now and then is normal. So often is not. */
#define LOCK_PASSED 16
#define LOCK_LOSS_NS 10000000 /* a shorter wait is negligible, however often it is lost */

/* One wait, in which others took the lock again and again. */
struct lock_loss {
	struct thread *waiter; /* NULL: there is none */
	uint64_t ns; /* how long it was */
	uint64_t lacked_ns; /* of that, the waiter was ready to go on and had no CPU */
	uint64_t acquired; /* how often others took it */
	uint64_t lost; /* of that, the part of the rest of the time: if it was even */
	struct thread *by; /* the thread that acquired it most often, how often, in which call */
	uint64_t by_acquired;
	uint32_t by_fn;
	/* The call in which others had it longest meanwhile, and for how long; by_fn may be a short one. */
	uint32_t had_fn;
	uint64_t had_ns;
};

struct lock {
	struct lock_key key;
	const struct process *process;
	uint32_t index; /* among all locks, in the order of their first waits */
	struct reading_position created; /* when it came up */
	/* enum spy_wait_kind of the first wait; the next ones, too: valid if waits > 0 */
	uint8_t kind;
	uint32_t first_fn, first_inner_fn; /* the call it was first waited for in */
	uint64_t first_ns;
	/* Filled in by locks_name: */
	uint32_t rank; /* 1: the longest waited for */
	char *name; /* "L1"; owned */
	char *place; /* "libcuda.so.1+0x1234" or "heap"; owned */

	struct lock_event *ring; /* the last of them; NULL: none yet */
	size_t ring_size; /* a power of two */
	uint64_t events; /* so far */
	/* events during a wait with too many holders to tell apart, at least; 0: none */
	uint64_t events_of_dropped;

	uint64_t waits, waited_ns, longest_ns; /* as measured */
	uint64_t waking_ns; /* holders took to release it to waiters */
	uint64_t longest_row; /* most times others took it during one wait */
	struct thread *starved; /* whose wait that was */
	/* What is lost for want of a CPU is not the lock's: of waits that are LOCK_LOSS_NS without
	 * that, the one that was lost most often; and those that were lost LOCK_PASSED times or
	 * more. */
	struct lock_loss loss;
	uint64_t passed_waits, passed_ns;
	struct thread_set waiters, holders;
	UT_hash_handle hh;
};

#define LOCKS_MOST (1u << 17) /* are distinguished */

struct locks {
	struct lock *by_key;
	struct lock **all; /* by index */
	struct lock *last; /* waits come in runs */
	size_t count;
};

void locks_release(struct locks *l);

/* The lock at that address, made if it is new. */
struct lock *locks_get(struct locks *l, const struct process *process, uint64_t address);

void lock_add(struct lock *lock, const struct lock_event *event);

/* The events after `ns`, oldest first: numbers [first, lock->events). Older ones may be forgotten.
 * Logarithmic in the number of events. */
uint64_t lock_events_since(const struct lock *lock, uint64_t ns);

static inline struct lock_event *lock_event_place(const struct lock *lock, uint64_t number)
{
	return &lock->ring[number & (lock->ring_size - 1)];
}

/* Event of that number; NULL: there is none, or it is forgotten. */
static inline const struct lock_event *lock_event(const struct lock *lock, uint64_t number)
{
	if (number >= lock->events || lock->events - number > lock->ring_size)
		return NULL;
	return lock_event_place(lock, number);
}

/* Where a lock lies: "libcuda.so.1+0x1234", or "heap" for what is in no library's segments. The
 * caller frees. */
char *lock_place(const struct process *process, uint64_t address, uint64_t ns);

void thread_set_release(struct thread_set *set);
void thread_set_add(struct thread_set *set, const struct thread *thread);
/* The set's indices were those of `threads`, which have others now. */
void thread_set_renumber(struct thread_set *set, struct thread *const *threads);
void thread_set_join(struct thread_set *set, const struct thread_set *more);
bool thread_set_has(const struct thread_set *set, const struct thread *thread);

/* After the last record: names those that were waited for, longest first. Returns them in that
 * order, *n of them; the caller frees the array. */
struct lock **locks_name(struct locks *l, size_t *n);

#endif
