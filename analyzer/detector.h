/*
 * analyzer/detector.h: what can be found in a trace. A detector is one file in detectors/ and one
 * row of the table in detectors.c.
 *
 * It sees each record of the types it asks for, in time order, after the model has taken it in, and
 * at the end adds its section to the report. It changes nothing but its own state.
 */
#ifndef CUDASPY_DETECTOR_H
#define CUDASPY_DETECTOR_H

#include "model.h"
#include "report.h"
#include "symbolize.h"

#define DETECTORS_MAX 16
#define DETECTOR_SEES(event) (1u << (event))

struct detector {
	const char *name;
	unsigned int events; /* DETECTOR_SEES(...) of each record type it wants, or-ed */
	void *(*start)(void); /* its state */
	void (*see)(void *state, const struct model *model, const struct record *record);
	void (*report)(void *state, const struct model *model, struct symbolizer *symbols,
		       struct report *report);
	void (*free)(void *state);
};

extern const struct detector detector_pageable_copy;

/* All rows of the table at work. */
struct detectors {
	void *states[DETECTORS_MAX];
	unsigned int wanted; /* the record types that any of them wants, or-ed */
};

/* detectors_free afterwards. */
void detectors_start(struct detectors *d);
void detectors_free(struct detectors *d);

/* Row i of the table; NULL behind the last. */
const struct detector *detectors_row(size_t i);

/* Their sections of the report. */
void detectors_report(struct detectors *d, const struct model *model, struct symbolizer *symbols,
		      struct report *report);

/* For detectors_see: shows them a record that one of them wants. */
void detectors_see_wanted(struct detectors *d, const struct model *model,
			  const struct record *record);

static inline void detectors_see(struct detectors *d, const struct model *model,
				 const struct record *record)
{
	if (d->wanted & DETECTOR_SEES(record->raw->other.event))
		detectors_see_wanted(d, model, record);
}

#endif
