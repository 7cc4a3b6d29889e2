/*
 * analyzer/analysis.h: a trace set, read from end to end: the one loop behind report and info.
 *
 * It is read twice: stream by stream, to learn what calls cost; then all streams together, in the
 * order of time.
 */
#ifndef CUDASPY_ANALYSIS_H
#define CUDASPY_ANALYSIS_H

#include "findings/analyzed.h"

/* What else than counting and finding. */
struct analysis_options {
	const char *profile; /* file of the machine's profile; NULL: where calibrate writes it */
	const struct filter *filter; /* only such calls count; NULL: all */
	const struct subject *subject; /* of the list of the worst calls; NULL: everything */
	bool sample_collectives; /* some of each rank's are kept: ranks/sample.h */
	const struct listener
		*listener; /* is shown what happens; NULL: nobody. Must live as long */
};

/*
 * Reads all records, and finds out where the calls' time went unless options is NULL. 0, or -errno
 * after a warning about a profile that was named and cannot be read, or a filter that fits nothing there is (-EINVAL).
 * analysis_release in all cases; the set and the filter must live as long.
 */
int analysis_run(struct analysis *a, struct trace_set *set, const struct analysis_options *options);
void analysis_release(struct analysis *a);

#endif
