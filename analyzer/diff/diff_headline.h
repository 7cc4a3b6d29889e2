/*
 * analyzer/diff/diff_headline.h: what a comparison says first, the runs and what of them differs in
 * all, and the list of the runs, which it ends with.
 */
#ifndef CUDASPY_DIFF_HEADLINE_H
#define CUDASPY_DIFF_HEADLINE_H

#include "diff_items.h"

/* How many findings did what. */
struct diff_tally {
	uint64_t appeared, vanished, grew, shrank, stayed;
};

struct headline_row;

/* The headline comes first, and counts what is found after it. */
struct headline_row *diff_add_headline(struct report *report, const struct diff_side *a,
				       const struct diff_side *b);
void diff_finish_headline(struct arena *texts, struct headline_row *row,
			  const struct diff_tally *tally);

void diff_add_runs(struct report *report, const struct diff_side *a, const struct diff_side *b);

#endif
