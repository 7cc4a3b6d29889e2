/*
 * analyzer/findings/profiled.h: a profiler of the program's own makes its host slower: where it recorded for most of the work, findings
 * about GPUs that wait for the host have it for their first cure. Called by finding.c, behind find_cure.
 */
#ifndef CUDASPY_PROFILED_H
#define CUDASPY_PROFILED_H

#include "finding.h"
#include "idle/idle.h"

void finding_name_profiler(struct finding *finding, const struct idle *idle, struct arena *texts);

#endif
