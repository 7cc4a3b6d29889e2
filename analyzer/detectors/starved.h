/*
 * analyzer/detectors/starved.h: threads that make CUDA calls and wait for one kind of thing between them, for a good
 * part of their time: what the detectors of such waits have in common.
 */
#ifndef CUDASPY_DETECTORS_STARVED_H
#define CUDASPY_DETECTORS_STARVED_H

#include "findings/detector.h"
#include "idle/idle.h"

/* A finding for each process in which threads waited so for a tenth of their working time or more. `waited`: "waited
 * for the data loader", or what the wait's stack says better. */
void starved_conclude(const struct detector *detector, enum idle_cause cause, const char *waited,
		      const struct idle *idle, struct found *found);

#endif
