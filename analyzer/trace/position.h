/*
 * analyzer/trace/position.h: where a reading is, in the order of all records: for what several readings of parts of a set
 * have found, and has to be put in the order in which one reading of all of it would have found it (analyzer/parallel/).
 * A thread makes one reading at a time.
 */
#ifndef CUDASPY_POSITION_H
#define CUDASPY_POSITION_H

#include "base/util.h"

struct record;

/* While a record was looked at. In the order of records: by time, then by stream. */
struct reading_position {
	uint64_t ns;
	uint32_t stream; /* its index + 1; 0: before all records of that time */
};

/* What is done when all records of a time have been looked at, and before the next one is: POSITION_BEHIND and a number. */
#define POSITION_BEHIND 0x80000000u

struct reading_place {
	const struct record *record; /* the one in hand; NULL: none */
	struct reading_position position; /* where there is no record in hand */
	/* Other readings go on at the same time: what they share may not be changed. */
	bool apart;
	const char
		*refused; /* that was asked for, and what: the reading is worth nothing. NULL: no */
};

extern _Thread_local struct reading_place reading_place;

struct reading_position position_now(void);

static inline int position_compare(const struct reading_position *a,
				   const struct reading_position *b)
{
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->stream < b->stream ? -1 : a->stream > b->stream;
}

/* Something that only a reading of the whole set can do. False: this is one. */
static inline bool reading_refuses(const char *what)
{
	if (reading_place.apart)
		reading_place.refused = what;
	return reading_place.apart;
}

#endif
