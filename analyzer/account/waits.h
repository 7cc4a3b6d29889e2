/*
 * analyzer/account/waits.h: what a thread waited for inside a call, as probes saw it. Kept with the call, for those who
 * divide its time, and for those who waited for it.
 */
#ifndef CUDASPY_ACCOUNT_WAITS_H
#define CUDASPY_ACCOUNT_WAITS_H

#include "locks.h"

#define NO_FUNCTION UINT32_MAX

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

/* What of a wait for a lock is due to one holder. */
struct holder_part {
	const struct hold_interval *by; /* whose holder it is */
	uint64_t begin_ns, end_ns;
	uint64_t release_ns; /* of that, since the holder had released the lock */
};

/* The part that begins with interval i < n_intervals. A hand-over belongs to the holder that has released the lock. Returns
 * the interval with which the next part begins. */
size_t wait_next_holder(const struct wait *w, size_t i, struct holder_part *part);

/* In the C library, but for no lock, nor in the kernel module: the reason is unknown. */
static inline bool wait_asleep(const struct wait *w)
{
	return !w->lock && w->kind != SPY_WAIT_IOCTL;
}

/* Frees `n` waits and the array they are in. */
void waits_free(struct wait *waits, size_t n);

#endif
