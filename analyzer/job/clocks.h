/*
 * analyzer/job/clocks.h: clocks of a job's ranks and hosts against each other. For meetings.c.
 */
#ifndef CUDASPY_JOB_CLOCKS_H
#define CUDASPY_JOB_CLOCKS_H

#include "job.h"

/* t of a timer is t + offset + slope * (t - at_ns) of the reference's. */
struct job_fit {
	bool known;
	int64_t offset_ns;
	double slope;
	uint64_t at_ns;
	uint64_t error_ns; /* 95 % of the ends agree within that */
};

int64_t job_fit_ns(const struct job_fit *fit, uint64_t ns);

/* Of the n rows of a communicator, in the order of their keys: fills in when each began by the timer of one of the ranks.
 * fits: room for all ranks; those of the rows are filled in. */
void job_align(struct job *job, struct meeting_row *rows, size_t n, struct job_fit *fits);

/* The clocks of hosts, by all rows. */
void job_align_hosts(struct job *job);

#endif
