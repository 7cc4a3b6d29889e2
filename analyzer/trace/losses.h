/*
 * analyzer/trace/losses.h: what the files of a trace do not have: the recorder could not write it,
 * or it has gone since.
 */
#ifndef CUDASPY_LOSSES_H
#define CUDASPY_LOSSES_H

#include "trace.h"

struct losses {
	struct reader_losses streams; /* of all of them together */
	uint64_t streams_missing;
	uint64_t calls_missing; /* recorded, as the board has it, and not there */
	uint64_t calls; /* that are there */
};

/* After the last record. */
struct losses losses_sum(const struct trace *trace);

/* How many records are known to be lost; what was in files that have gone, the board may not
 * know. */
uint64_t losses_records(const struct losses *losses, const struct trace *trace);

/* Has it no calls because they are lost, as far as is known? */
bool losses_all(const struct losses *losses, const struct trace *trace);

#endif
