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

/* "rank 3 (node7)" */
const char *job_rank_words(struct arena *texts, const struct job *job, uint32_t rank);

#endif
