/*
 * analyzer/findings/of_ranks.h: the ranks of a job run the same code, so a fault of it is found in each of them. Called once, by
 * finding.c, when all detectors have concluded.
 */
#ifndef CUDASPY_OF_RANKS_H
#define CUDASPY_OF_RANKS_H

#include "detector.h"

/* Such findings become one: that of the rank that it costs most, for by so much the job would be faster. It names the others. */
void findings_join_ranks(struct found *found, const struct ranks *ranks);

#endif
