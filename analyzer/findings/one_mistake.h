/*
 * analyzer/findings/one_mistake.h: findings that have one mistake between them name each other, and those whose cost another
 * one has as well are notes. Called once, by finding.c, when costs and places are known.
 */
#ifndef CUDASPY_ONE_MISTAKE_H
#define CUDASPY_ONE_MISTAKE_H

#include "finding.h"

void findings_name_causes(struct finding *findings, size_t n, struct arena *texts);

#endif
