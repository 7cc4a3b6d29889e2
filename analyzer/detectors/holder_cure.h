/*
 * analyzer/detectors/holder_cure.h: what to do about a call that has a lock inside CUDA for which others wait. For the
 * detectors of such waits, after the last record.
 */
#ifndef CUDASPY_HOLDER_CURE_H
#define CUDASPY_HOLDER_CURE_H

#include "trace/trace.h"

/* Is it a call that prepares work, which can be done once, before it? */
bool holder_prepares(const struct function *function);

/* waits_for_gpu: that is what it does while it has the lock. NULL: it is no call. */
const char *holder_cure(struct arena *texts, const struct trace_set *set, uint32_t fn,
			bool waits_for_gpu);

#endif
