/*
 * analyzer/blame/history.h: what a thread's calls did that are no more remembered one by one. Who is starved of a
 * lock waits for thousands of calls of those who have it, and why they took so long is asked when he got it.
 */
#ifndef CUDASPY_HISTORY_H
#define CUDASPY_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include "account/buckets.h"

struct finished;

/* Sums of calls that follow one another. */
struct era {
	uint64_t begin_ns, end_ns; /* of the first call, of the last */
	uint64_t calls;
	double bucket_ns[BUCKET_COUNT];
	double spared_ns; /* of the kernel module's: as in struct blame_edge */
};

/* Two eras become one when there are too many: the whole run fits, the coarser the longer it was. */
#define ERAS 64

struct history {
	struct era *eras; /* n of them, ERAS at most; owned */
	size_t n;
	uint64_t calls_each; /* of an era, before the next begins */
};

void history_free(struct history *history); /* or NULL */

/* A divided call is about to be forgotten, its waits with it. */
void history_add(struct history *history, const struct finished *call);

#endif
