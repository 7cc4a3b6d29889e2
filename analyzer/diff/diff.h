/*
 * analyzer/diff/diff.h: two sides compared: what calls cost, what was waited for, what was found.
 * Used by `cudaspy diff`.
 *
 * A side is one run or several of the same program. It compares their finished reports (the JSON of
 * `cudaspy report`), so that each of its numbers is one that a report shows.
 *
 * Noise: of a number there is one value for each run, 0 where a run does not have it. The medians
 * of the sides are compared. The difference is noise if the ranges of the two sides overlap, or if
 * it is not larger than the wider of them; a finding that all runs of one side have, and none of
 * the other, is no noise. With one run on each side it is unknown.
 */
#ifndef CUDASPY_DIFF_H
#define CUDASPY_DIFF_H

#include <jansson.h>
#include "base/hash.h"
#include "base/report.h"

struct headline_row;

struct diff_side {
	const char **names; /* of the runs, as given */
	json_t **reports;
	size_t n;
};

enum diff_noise { DIFF_NOISE, DIFF_REAL, DIFF_UNKNOWN };

/* A number on both sides. */
struct diff_range {
	uint64_t median, low, high;
};

/* Of `n` values, at least one; sorts them. The median of an even number lies between the middle
 * ones. */
struct diff_range diff_range_of(uint64_t *values, size_t n);

/* Is a difference between ranges of so many runs noise? Equal medians are never a difference:
 * noise, or unknown. */
enum diff_noise diff_judge(const struct diff_range *a, size_t n_a, const struct diff_range *b,
			   size_t n_b);

/* Fills the report with the comparison. The sides must have a run each, and live as long. */
void diff_report(struct report *report, const struct diff_side *a, const struct diff_side *b);

/* ---- diff_items.c: what the runs of two sides have in common, and its numbers on both. */

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

/*
 * ---- diff_headline.c: what a comparison says first, the runs and what of them differs in all,
 * and the list of the runs, which it ends with.
 */

/* How many findings did what. */
struct diff_tally {
	uint64_t appeared, vanished, grew, shrank, stayed;
};

/* The headline comes first, and counts what is found after it. */
struct headline_row *diff_add_headline(struct report *report, const struct diff_side *a,
				       const struct diff_side *b);
void diff_finish_headline(struct arena *texts, struct headline_row *row,
			  const struct diff_tally *tally);

void diff_add_runs(struct report *report, const struct diff_side *a, const struct diff_side *b);

#endif
