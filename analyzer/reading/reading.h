/*
 * analyzer/reading/reading.h: the main reading of some streams, in the order of time: each record goes through the model,
 * the sums of calls, the accounting and those behind it. It can be made piece by piece.
 */
#ifndef CUDASPY_READING_H
#define CUDASPY_READING_H

#include "ahead/ahead.h"
#include "fast_path.h"
#include "findings/analyzed.h"

struct reading {
	struct analysis *a;
	struct ahead *ahead; /* other threads have the merge; NULL: this one */
	struct record record; /* in hand */
	struct fast_path *paths; /* by stream of the set */
	size_t stacks_most; /* stack_gc */
	uint64_t records; /* so far */
	char apart[APART_BYTES];
	struct merge merge;
};

/* Reads the streams of a->model, whose parts are initialised. They are at their begin. helpers: so many other
 * threads may read ahead. */
void reading_begin(struct reading *r, struct analysis *a, unsigned int helpers);

/* Some `most` records more. False: there are no more. */
bool reading_go_on(struct reading *r, uint64_t most);

/* After the last record. */
void reading_end(struct reading *r);

/* Instead of reading_end, at any time: nothing has been concluded. */
void reading_give_up(struct reading *r);

/* After that and model_finish: ranges that are open end with their threads. */
void reading_end_ranges(struct analysis *a);

#endif
