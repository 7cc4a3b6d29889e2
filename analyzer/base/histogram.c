/*
 * analyzer/base/histogram.c: durations, counted in buckets. Called by callstats and by detectors.
 */
#include <math.h>
#include <stdlib.h>
#include "histogram.h"

uint64_t *histogram_octave(struct histogram *h, unsigned int octave)
{
	h->octaves[octave] = xcalloc(HISTOGRAM_SUB, sizeof(uint64_t));
	return h->octaves[octave];
}

void histogram_release(struct histogram *h)
{
	if (!h->max &&
	    !h->octaves[0]) /* as most are: there are two for each function that there is */
		return;
	for (unsigned int octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		free(h->octaves[octave]);
	*h = (struct histogram){0};
}

void histogram_merge(struct histogram *sum, const struct histogram *h)
{
	if (h->max > sum->max)
		sum->max = h->max;
	for (unsigned int octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
		if (!h->octaves[octave])
			continue;
		if (!sum->octaves[octave])
			histogram_octave(sum, octave);
		for (unsigned int i = 0; i < HISTOGRAM_SUB; i++)
			sum->octaves[octave][i] += h->octaves[octave][i];
	}
}

/* The middle of a bucket. Octave 0 has the values themselves; octave o > 0 has values from
 * SUB << (o - 1) on, in steps of 1 << (o - 1), and its index still has the leading one cut off. */
static uint64_t bucket_middle(unsigned int octave, unsigned int index)
{
	unsigned int shift = octave ? octave - 1 : 0;
	uint64_t low = (uint64_t)(index | (octave ? HISTOGRAM_SUB : 0)) << shift;

	return low + (((uint64_t)1 << shift) >> 1);
}

uint64_t histogram_count(const struct histogram *h)
{
	uint64_t count = 0;

	for (unsigned int octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (unsigned int i = 0; h->octaves[octave] && i < HISTOGRAM_SUB; i++)
			count += h->octaves[octave][i];
	return count;
}

uint64_t histogram_quantile(const struct histogram *h, double part)
{
	uint64_t rank = (uint64_t)ceil(part * (double)histogram_count(h)), seen = 0, value;

	for (unsigned int octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (unsigned int i = 0; h->octaves[octave] && i < HISTOGRAM_SUB; i++) {
			seen += h->octaves[octave][i];
			if (!seen || seen < rank)
				continue;
			value = bucket_middle(octave, i);
			return value < h->max ? value : h->max;
		}
	return 0;
}
