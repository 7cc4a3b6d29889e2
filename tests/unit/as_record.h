/*
 * tests/unit/as_record.h: a record of a file, as stages of the analyzer get it.
 */
#ifndef CUDASPY_AS_RECORD_H
#define CUDASPY_AS_RECORD_H

#include "trace/record.h"

/* For the expression that it is part of. */
#define AS_RECORD(of) \
	(&(const struct record){.raw = (of), \
				.head = raw_word((of), offsetof(struct spy_rec_head, event))})

#endif
