/*
 * analyzer/blame/holders.h: the holders of a lock during a wait for it: the wait, cut where the
 * lock changed hands.
 */
#ifndef CUDASPY_HOLDERS_H
#define CUDASPY_HOLDERS_H

#include "blame.h"
#include "locks.h"

struct accounting;

/* A part of a wait during which one thread had the lock. */
struct hold_interval {
	struct thread *holder; /* NULL: unknown */
	uint64_t begin_ns, end_ns;
	/* If this is a sample: when the holder had the lock around its moment, which is what others
	 * of that time are taken to be like; both 0: it had the lock all the time. */
	uint64_t seen_begin_ns, seen_end_ns;
	uint32_t fn; /* its call; NO_FUNCTION: none */
	uint8_t device;
	bool measured; /* and not concluded from the holder before */
	bool handover; /* the holder had released it, and no other thread had acquired it yet */
};

struct wait {
	uint8_t kind; /* enum spy_wait_kind */
	uint64_t begin_ns, end_ns; /* first and last moment */
	uint64_t ns; /* of waiting between them */
	uint64_t handover_ns; /* of that, while the lock had no holder */
	struct lock *lock; /* NULL: another kind of wait */
	struct lock_loss loss; /* the threads that acquired it meanwhile */
	uint64_t request; /* of an ioctl, and how often it was made */
	uint32_t count;
	float avoidable, avoidable_behind; /* of an ioctl: kernel_module.h */
	bool left_out; /* of a call that does not count: nor does its lock count it */
	bool holders_dropped; /* too many had the lock to tell when each had it */
	struct hold_interval *intervals; /* of locks: they cover it; owned */
	size_t n_intervals;
};

/* In the C library, but for no lock, nor in the kernel module: the reason is unknown. */
static inline bool wait_asleep(const struct wait *w)
{
	return !w->lock && w->kind != SPY_WAIT_IOCTL;
}

/* Divides a wait for a lock among its holders, one after the other: w->intervals, w->handover_ns
 * and w->loss. The record is the wait's, w->lock its lock, which learns of its holders. */
void holders_find(struct accounting *a, const struct record *record, const struct wait_record *wait,
		  struct wait *w);

/* A call's waits take no more time together than the call did: what their records claim beyond that
 * is taken off those that came first, and off their locks. */
void holders_fit(struct wait *waits, size_t n, uint64_t call_ns);

/* The call is over, and w->loss.lacked_ns is known: the lock learns how often the wait was lost. */
void holders_settle(struct wait *w);

/* Frees `n` waits and the array they are in. */
void waits_free(struct wait *waits, size_t n);

#endif
