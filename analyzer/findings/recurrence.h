/*
 * analyzer/findings/recurrence.h: how often a site's cases come back while its process works: once, now and then, in each step; or
 * before and after that only.
 *
 * Cases in the working phase (expect/phase.h) that lie less than one and a half steps apart, by the work that was handed to GPUs
 * between them, are one *occasion*: of what is done in each step there is one occasion, as long as the phase; of a checkpoint one
 * each time. Start-up, shut-down and what was done on
 * one short occasion take what they take however long the program runs, so that they are no problem of its speed.
 */
#ifndef CUDASPY_RECURRENCE_H
#define CUDASPY_RECURRENCE_H

#include "cost_share.h"

struct accounting;
struct arena;
struct model;
struct phase;
struct site;

#define OCCASION_PARTS 16 /* of the phase, as long as each other */

/* Of a site's cases; begin with zeros. */
struct occasions {
	uint64_t before, behind; /* cases before the phase and behind it */
	uint64_t count; /* in the phase */
	uint64_t first_ns, last_ns; /* the first case's begin, the last one's end */
	uint64_t within_ns; /* the sum of their lengths */
	/* Of the process: at the first case, where the last occasion began, and at the last case. */
	uint64_t first_submissions, last_submissions, submissions;
	uint64_t within_submissions; /* others than these cases, while they lasted */
	/* Of each part of the phase: its cases, the sum of their lengths, and of the process the submissions by the first and the last. NULL: there are
	 * no two cases; owned. */
	struct occasion_part {
		uint64_t count, ns, first_ns, first_submissions, submissions;
	} * parts;
	uint64_t cases; /* in the phase */
};

void occasions_add(struct occasions *o, const struct phase *phase, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t submissions);

void occasions_release(struct occasions *o);

/* Two sites' become those of one: of the same occasions, or of more than are counted. */
void occasions_join(struct occasions *sum, const struct occasions *more);

enum recurs {
	RECURS_UNKNOWN, /* no phase, too few steps in it, or no calls are the cause */
	RECURS_START, /* before the phase only */
	RECURS_END, /* behind it only */
	RECURS_OUTSIDE, /* both */
	RECURS_ONCE, /* one occasion, a short one */
	RECURS_AGAIN, /* several */
	RECURS_STEPS, /* most steps of the phase, or of a long part of it */
};

/* As a report in JSON has them; NULL: unknown. */
extern const char *const recurs_keys[];

struct recurrence {
	enum recurs recurs;
	uint64_t occasions; /* 0: unknown, or none in the phase */
	uint64_t every; /* about every so many steps; 0: unknown */
	uint64_t cost_ns, working_ns; /* of the site, all of it and the part in the phase */
	bool little; /* that part is too little to speak of */
	bool each; /* of RECURS_STEPS: all of the phase */
	bool steps_sure; /* it is known how many steps there are */
	bool at_start, at_end; /* some are before the phase, or behind it */
	uint64_t first_ns; /* of the first occasion */
	/* Most of the cost is from a short part of the phase that has no steps in it: what it is there, and when that begins. It is not in working_ns.
	 * 0: no such part. */
	uint64_t burst_ns, burst_at_ns;
	struct cost_share
		cost_share; /* the part of working time that it cost; unless `recurs` is unknown */
};

/* After the last record; of costs of which no calls are known: what of them is the phase's. */
struct recurrence recurrence_of_costs(const struct accounting *a, const struct thread_costs *costs);

/* Of a site. */
struct recurrence recurrence_of(const struct accounting *a, const struct site *site);

/* No problem of a program that runs on: it is not done again, or what is costs next to nothing. */
bool recurrence_passes(const struct recurrence *r);

/* "once, at the start", "5 times, about every 40th step"; NULL: unknown. */
const char *recurrence_words(struct arena *texts, const struct model *model,
			     const struct recurrence *r);

#endif
