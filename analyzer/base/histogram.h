/*
 * analyzer/base/histogram.h: durations, counted in buckets, for quantiles.
 *
 * Log-linear: values below 64 exactly, above that 64 buckets for each power of two, so a quantile
 * is at most 0.8 % off. Memory grows with the powers of two that occur (512 bytes each), not with
 * the number of values.
 */
#ifndef CUDASPY_HISTOGRAM_H
#define CUDASPY_HISTOGRAM_H

#include "util.h"

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_SUB (1 << HISTOGRAM_SUB_BITS)
#define HISTOGRAM_OCTAVES (64 - HISTOGRAM_SUB_BITS + 1)

struct histogram {
	uint64_t max; /* beside the lower octaves, which are used most */
	uint64_t *octaves[HISTOGRAM_OCTAVES]; /* HISTOGRAM_SUB counts each, NULL: all zero */
};

/* Starts with zeros; histogram_release frees what it grew. */
void histogram_release(struct histogram *h);

/* For histogram_add: the octave's counts, allocated. */
uint64_t *histogram_octave(struct histogram *h, unsigned int octave);

static inline void histogram_add(struct histogram *h, uint64_t value)
{
	unsigned int octave = 0, shift = 0;
	uint64_t *counts;

	if (value > h->max)
		h->max = value;
	if (value >= HISTOGRAM_SUB) {
		octave = 64 - (unsigned int)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
		shift = octave - 1;
	}
	counts = h->octaves[octave];
	if (unlikely(!counts))
		counts = histogram_octave(h, octave);
	counts[(value >> shift) & (HISTOGRAM_SUB - 1)]++;
}

/* Adds the values of another one. */
void histogram_merge(struct histogram *sum, const struct histogram *h);

/* How many values there are. */
uint64_t histogram_count(const struct histogram *h);

/* The value that `part` (0 to 1) of all values do not exceed: the middle of its bucket, but not
 * more than the largest value. 0 when there are none. */
uint64_t histogram_quantile(const struct histogram *h, double part);

#endif
