/*
 * analyzer/findings/same_cause.h: findings that have the same cause name each other, and those whose cost another
 * one has as well are notes. Called once, by finding.c, when costs and places are known.
 */
#ifndef CUDASPY_SAME_CAUSE_H
#define CUDASPY_SAME_CAUSE_H

#include "finding.h"

void findings_name_causes(struct finding *findings, size_t n, struct arena *texts);

#endif
