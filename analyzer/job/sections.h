/*
 * analyzer/job/sections.h: the report of a job of many ranks. Called by `report` when it is given digests.
 */
#ifndef CUDASPY_JOB_SECTIONS_H
#define CUDASPY_JOB_SECTIONS_H

#include "job.h"
#include "base/report.h"

#define JOB_SCHEMA "cudaspy-job-1"

/* Fills a report in: all tables of it. */
void job_report(struct report *report, const struct job *job);

/* ---- for the files of this folder ------------------------------------------------------------ */

void job_report_summary(struct report *report, const struct job *job); /* job, losses, hosts */
void job_report_ranks(struct report *report,
		      const struct job *job); /* differences, slow steps, ranks */
void job_report_sharing(struct report *report, const struct job *job); /* shared GPUs */
void job_report_sums(struct report *report,
		     const struct job *job); /* functions, causes, locks, waits */
void job_report_sites(struct report *report, const struct job *job); /* findings */

/* "part 2 of 3 or more" */
const char *job_parts_words(struct arena *texts, const struct job_rank *r);

/* "from 1.2 s to 3.4 s", since the job's begin */
const char *job_time_words(struct arena *texts, const struct job *job, const struct job_rank *r);

/* "rank 3 (node7)" */
const char *job_rank_words(struct arena *texts, const struct job *job, uint32_t rank);

#endif
