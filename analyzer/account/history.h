/*
 * analyzer/account/history.h: sums of a thread's calls that are no longer in its ring. A starved
 * waiter waits for thousands of calls of the holders; why those took so long is asked when the
 * waiter gets the lock.
 */
#ifndef CUDASPY_HISTORY_H
#define CUDASPY_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include "buckets.h"

struct completed_call;

/* Sums of calls that follow one another. */
struct era {
	uint64_t begin_ns, end_ns; /* of the first call, of the last */
	uint64_t calls;
	double bucket_ns[BUCKET_COUNT];
	double avoidable_ns; /* of the kernel module's: as in struct blame_edge */
};

/* Two eras become one when there are too many: the whole run fits, the coarser the longer it
 * was. */
#define ERAS 64

struct history {
	struct era *eras; /* n of them, ERAS at most; owned */
	size_t n;
	uint64_t calls_each; /* of an era, before the next begins */
};

void history_free(struct history *history); /* or NULL */

/* A divided call is about to be forgotten, its waits with it. */
void history_add(struct history *history, const struct completed_call *call);

#endif
