/*
 * analyzer/diff/diff_items.h: what the runs of two sides have in common, and its numbers on both.
 */
#ifndef CUDASPY_DIFF_ITEMS_H
#define CUDASPY_DIFF_ITEMS_H

#include "diff.h"
#include "base/hash.h"

#define DIFF_NUMBERS 3

/* What one run has of an item. */
struct diff_cell {
	uint64_t numbers[DIFF_NUMBERS];
	bool present;
	bool unknown; /* of findings: what one of them cost */
	const char *severity; /* of findings: the worst; NULL: none */
	uint64_t places; /* of findings: in the function */
};

/* A function, a bucket or a finding: what has the same key in all runs. */
struct diff_item {
	char *key;
	/* in one of the reports, for its texts: of findings the dearest one's, else the last */
	const json_t *row;
	uint64_t most_ns; /* what that finding cost */
	struct diff_cell *cells; /* by run: A's, then B's */
	UT_hash_handle hh;
};

struct diff_items {
	struct diff_item *all;
	const struct diff_side *a, *b;
};

/* Adds a report's rows of a kind to the run's cells. */
typedef void diff_collect_fn(struct diff_items *items, const json_t *report, size_t run);

void diff_collect(struct diff_items *items, const struct diff_side *a, const struct diff_side *b,
		  diff_collect_fn *fn);
void diff_items_release(struct diff_items *items);

/* Numbers: total_ns, count, median_ns. */
diff_collect_fn diff_collect_calls;
/* Numbers: ns. In the order of the buckets. */
diff_collect_fn diff_collect_waits;
/* Numbers: cost_ns, count, 1. */
diff_collect_fn diff_collect_findings;

bool diff_is_minor(const char *severity); /* NULL: it is not there at all */

/* Of a row of a report in JSON; NULL or 0: it has none. */
const char *diff_text_of(const json_t *row, const char *key);
uint64_t diff_number_of(const json_t *row, const char *key);

/* A number of an item: of n runs, from number `first` on. */
struct diff_range diff_side_range(const struct diff_item *item, size_t number, size_t first,
				  size_t n);

/* The same on both sides. */
struct diff_change {
	struct diff_range a, b;
	enum diff_noise noise;
};

struct diff_change diff_change_of(const struct diff_items *items, const struct diff_item *item,
				  size_t number);
int64_t diff_difference(const struct diff_change *c); /* of the medians */
uint64_t diff_distance(uint64_t x, uint64_t y);

/* As JSON has it: "yes", "no", "unknown". */
const char *diff_noise_key(const struct diff_change *c);

/* "+1.234 ms (+12 %)", "+1.234 ms (12 times)", "+1.234 ms (from 2.300 us)". */
const char *diff_signed_time(struct arena *texts, const struct diff_change *c);

#endif
