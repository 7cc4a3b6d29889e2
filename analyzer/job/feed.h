/*
 * analyzer/job/feed.h: operations of digests, matched and evaluated by ranks/ as those of traces are. For matched.c.
 */
#ifndef CUDASPY_JOB_FEED_H
#define CUDASPY_JOB_FEED_H

#include "job.h"
#include "ranks/work.h"

/* Evaluates all rows, in about the order of time; shows each operation, and fills in what the ranks' sums say. */
void job_feed(struct job *job,
	      void (*see)(void *data, struct rank_instance *instance, const struct rank_op *last),
	      void *data);

/* The index of the cause that a part is of. */
uint8_t job_cause_of_part(struct job *job, const struct idle_part *part);

#endif
