/*
 * analyzer/sections/calls.h: the sections of a report that say where the time went: calls by
 * function, by thread, by device, and counted functions.
 */
#ifndef CUDASPY_SECTIONS_CALLS_H
#define CUDASPY_SECTIONS_CALLS_H

#include "base/report.h"
#include "account/callstats.h"

/* nested: also the calls made inside other calls. */
void report_calls(struct report *report, const struct callstats *stats, bool nested);

#endif
