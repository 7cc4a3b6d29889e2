/*
 * analyzer/sections/gpus.h: for each GPU, how long it certainly had nothing to do, and what those
 * who feed it did meanwhile.
 */
#ifndef CUDASPY_SECTIONS_GPUS_H
#define CUDASPY_SECTIONS_GPUS_H

#include "base/report.h"
#include "idle/idle.h"
#include "symbols/symbolize.h"

void report_gpus(struct report *report, const struct idle *idle, struct symbolizer *symbols);

#endif
