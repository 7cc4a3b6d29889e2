/*
 * analyzer/job/diff.h: two jobs side by side. Called by `diff` when both sides are digests.
 */
#ifndef CUDASPY_JOB_DIFF_H
#define CUDASPY_JOB_DIFF_H

#include "job.h"
#include "base/report.h"

#define JOB_DIFF_SCHEMA "cudaspy-job-diff-1"

void job_diff_report(struct report *report, const struct job *a, const struct job *b);

#endif
