/*
 * analyzer/findings/analyzed.h: what is known of a trace set: what the readings have found out so
 * far, from the model to the findings. For detectors, and for the sections of a report. Only
 * analysis.c makes one.
 */
#ifndef CUDASPY_ANALYZED_H
#define CUDASPY_ANALYZED_H

#include "finding.h"
#include "account/account.h"
#include "account/callstats.h"
#include "cost/cost.h"
#include "expect/profile.h"
#include "idle/idle.h"
#include "ranks/ranks.h"
#include "model/model.h"

struct analysis {
	struct trace_set *set;
	struct model model;
	struct callstats stats;
	struct profile profile, prior;
	struct expect expect;
	struct filtering filtering;
	struct accounting accounts;
	bool accounted;
	struct idle idle;
	struct ranks ranks;
	struct cost_study cost;
	struct findings findings;
	bool complete; /* no records are lost, as far as is known: set by who reports losses */
};

#endif
