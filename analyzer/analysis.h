/*
 * analyzer/analysis.h: a trace set, read from end to end: the one loop behind report and info.
 */
#ifndef CUDASPY_ANALYSIS_H
#define CUDASPY_ANALYSIS_H

#include "callstats.h"
#include "detector.h"
#include "model.h"

struct analysis {
	struct trace_set *set;
	struct model model;
	struct callstats stats;
	struct detectors detectors;
};

/* Reads all records. analysis_release afterwards; the set must live as long. */
void analysis_run(struct analysis *a, struct trace_set *set);
void analysis_release(struct analysis *a);

#endif
