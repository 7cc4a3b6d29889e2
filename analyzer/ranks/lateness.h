/*
 * analyzer/ranks/lateness.h: does a rank come late to collective operations systematically, or by chance? One rule, for the report
 * of traces (findings/straggler.c) and for that of digests (job/differ.c).
 *
 * How long the same work takes on a host changes by itself, for a while each time: a rank may be the last one in three of
 * four operations for half a minute, and another one for the next. So operations in a row are no evidence of their own.
 * The run is divided into parts, and what is systematic shows in nearly all of them: as time; or, where hiccups of any rank are more
 * than that, as the sum of square roots of times, in which what comes again and again counts more. Or it is, in many
 * parts, far more than what any other rank ever does.
 */
#ifndef CUDASPY_LATENESS_H
#define CUDASPY_LATENESS_H

#include "base/util.h"

/* Of the job's time, that a rank makes the others wait: less is not worth anybody's time. */
#define RANK_LATE_LEAST_PPM 25000
#define RANK_LATE_LEAST_NS 2000000 /* and no less than that: a short job's share is chance */

#define RANK_BINS 64

/* Operations in the order of time, a fixed number in each bin, and how late each rank was in them. */
struct rank_parts {
	struct rank_bins {
		uint64_t late_ns[RANK_BINS], late_roots[RANK_BINS];
		/* The longest one, its bin, and the longest but for that. */
		uint64_t longest_ns, second_ns;
		size_t longest_bin;
	} * *late; /* by rank; NULL: it never was; owned, as each of them */
	size_t n_late;
	uint64_t operations[RANK_BINS];
	uint64_t bin_operations; /* that a full bin has */
	size_t n_bins;
};

/* The next operation; what is added then is of it. */
void rank_parts_next(struct rank_parts *parts);
void rank_parts_add(struct rank_parts *parts, size_t rank, uint64_t late_ns);
void rank_parts_release(struct rank_parts *parts);

/* Of n_ranks that there are, in any order. */
bool rank_parts_systematic(const struct rank_parts *parts, size_t rank, size_t n_ranks);

#define RANK_SPANS_MOST 1024 /* the last ones; what lies before them counts as new */

/* Times of one clock, in their order, with gaps between them. Start with zeros. */
struct rank_spans {
	struct rank_span {
		uint64_t begin_ns, end_ns;
	} * all; /* owned */
	size_t n;
};

/* Adds a time; returns what of it was in none of them. */
uint64_t rank_spans_take(struct rank_spans *spans, uint64_t begin_ns, uint64_t end_ns);
void rank_spans_release(struct rank_spans *spans);

/* Is it enough to be told, of a job's time? */
static inline bool rank_late_is_significant(uint64_t late_ns, uint64_t job_ns)
{
	return late_ns >= RANK_LATE_LEAST_NS &&
	       (double)late_ns * 1e6 >= (double)job_ns * RANK_LATE_LEAST_PPM;
}

#endif
