/*
 * analyzer/detectors.c: the table of detectors. Called by the commands' one loop and by the report.
 */
#include "detector.h"

static const struct detector *const table[] = {
	&detector_pageable_copy,
};
_Static_assert(ARRAY_SIZE(table) <= DETECTORS_MAX, "states have room");
_Static_assert(SPY_EV_COUNT_ALL <= 32, "a bit for each record type");

const struct detector *detectors_row(size_t i)
{
	return i < ARRAY_SIZE(table) ? table[i] : NULL;
}

void detectors_start(struct detectors *d)
{
	size_t i;

	*d = (struct detectors){0};
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		d->states[i] = table[i]->start();
		d->wanted |= table[i]->events;
	}
}

void detectors_see_wanted(struct detectors *d, const struct model *model,
			  const struct record *record)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i]->events & DETECTOR_SEES(record->raw->other.event))
			table[i]->see(d->states[i], model, record);
}

void detectors_report(struct detectors *d, const struct model *model, struct symbolizer *symbols,
		      struct report *report)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		table[i]->report(d->states[i], model, symbols, report);
}

void detectors_free(struct detectors *d)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		table[i]->free(d->states[i]);
}
