/*
 * analyzer/steps.c: what a thread has just done. Called by the accounting for each copy of the
 * application.
 */
#include "steps.h"

void steps_see_copy(struct copy_row *row, const struct spy_rec_copy *copy, uint64_t own_ns)
{
	if (!steps_in_row(row, copy))
		*row = (struct copy_row){.place = copy->caller,
					 .stream = copy->stream,
					 .direction = copy->direction};
	row->count++;
	row->own_ns += own_ns;
	row->bytes += copy->bytes;
}
