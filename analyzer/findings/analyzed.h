/*
 * analyzer/findings/analyzed.h: what is known of a trace set: what the stages have found out so far, from the model to the
 * findings. Only analysis.c makes one, and parallel/ those of parts.
 */
#ifndef CUDASPY_ANALYZED_H
#define CUDASPY_ANALYZED_H

#include "stages.def"

struct analysis {
	struct trace_set *set;
	bool accounted;
	struct profile profile, prior; /* what calls cost on such machines */
#define STAGE(field, type, ...) type field;
#include "stages.def"
};

#endif
