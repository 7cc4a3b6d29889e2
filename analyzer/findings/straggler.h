/*
 * analyzer/findings/straggler.h: is a job held up by its ranks, by one of them or by turns, and by its thread or by its GPU?
 * For the detectors of ranks, after the last record.
 */
#ifndef CUDASPY_STRAGGLER_H
#define CUDASPY_STRAGGLER_H

#include "detector.h"
#include "ranks/ranks.h"

enum straggler_by {
	STRAGGLER_NONE,
	STRAGGLER_BY_HOST, /* one rank's thread is late */
	STRAGGLER_BY_GPU, /* one rank's GPU takes longer for the same work */
	STRAGGLER_BY_WORK, /* one rank's GPU has more work, or the last rank changes */
};

struct straggler {
	enum straggler_by by;
	const struct rank *
		rank; /* the one that held the others up for longest, but for its longest time; NULL: none did */
	bool mostly; /* for most of the time; or for what no other rank does */
	uint64_t
		job_ns; /* of its steps; else from the first operation of a rank to its last one, the longest */
	/* Ranks send to each other and wait mostly in that, as a pipeline's stages do. Each is late because others were; but who waits least has most
	 * to do: that is `rank`. waits_ns is how long it waits, more_ns how much longer the others do, together. */
	bool stages;
	size_t n_stages;
	uint64_t waits_ns, more_ns;
	uint64_t late_ns; /* of all ranks */
	uint64_t wait_ns; /* likewise */
	const struct rank_steps *steps;
};

struct straggler straggler_find(const struct ranks *ranks);

/* Received in all-to-alls, in times of the mean of the other ranks; 0: nothing was, or not by all. */
double straggler_share(const struct ranks *ranks, const struct rank *rank);

/* Why a rank's thread is late. */
struct straggler_reason {
	const struct idle_sum *sum; /* the largest of it; NULL: nothing is known */
	uint64_t ns; /* of the lateness; lines of one function of Python's are one */
	enum {
		STRAGGLER_EXCESS, /* at one place, where the others are, too, or for too short a time to tell */
		STRAGGLER_SPREAD, /* here and there, nowhere by much: it has no work that they do not have */
		STRAGGLER_ALIKE, /* where all ranks compute, the others for two thirds as long or longer: CPUs differ by that */
		STRAGGLER_UNSHARED, /* what no other rank does (rank.unshared): ns is all of it */
	} kind;
};
struct straggler_reason straggler_reason(const struct idle *idle, const struct rank *rank);

/* A part of a reason to show: one of its place that has lines of Python, if there is one. */
const struct idle_part *straggler_part(const struct idle *idle, const struct idle_sum *reason);

/* A new finding of a detector: whose, how often, and what it costs. */
struct finding *straggler_finding(const struct detector *detector, const struct ranks *ranks,
				  const struct straggler *h, struct found *found);

/* Ranks send to each other, and that is where they wait: who is in it, and the one that waits least. */
bool straggler_stages(const struct ranks *ranks, struct straggler *h);

/* "rank 1 (GPU 1) holds the other ranks up: it came last to 12 of 196 collectives, and the others waited 243.9 ms for it,
 * 14 % of 1.8 s" */
const char *straggler_words(struct arena *texts, const struct straggler *h);

#endif
