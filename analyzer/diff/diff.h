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
#include "base/report.h"

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

#endif
