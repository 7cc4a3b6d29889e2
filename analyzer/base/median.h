/*
 * analyzer/base/median.h: numbers in order, and the one in the middle; the majority of votes. For all files.
 */
#ifndef CUDASPY_MEDIAN_H
#define CUDASPY_MEDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The majority of weighted votes (Boyer and Moore), without keeping them: is the new one the candidate from now on? *lead: 0 at first.
 * same: it is for the candidate there is. */
static inline bool majority_moves(uint64_t *lead, bool same, uint64_t weight)
{
	if (same) {
		*lead += weight;
		return false;
	}
	if (*lead >= weight) {
		*lead -= weight;
		return false;
	}
	*lead = weight - *lead;
	return true;
}

/* Less than 0, 0, more than 0: for comparisons of several members, joined by ?:. Evaluates its arguments twice. */
#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

/* For qsort. */
int by_u64(const void *a, const void *b);

/* These sort them. Of an even number the middle of two; of none 0. */
double median_double(double *values, size_t n);
uint64_t median_u64(uint64_t *values, size_t n);

/* The value that 95 % do not exceed. */
uint64_t most_u64(uint64_t *values, size_t n);
double most_double(double *values, size_t n);

/* Of an even number the lower one of two: one of the values. */
uint64_t lower_median_u64(uint64_t *values, size_t n);
int64_t lower_median_i64(int64_t *values, size_t n);

#endif
