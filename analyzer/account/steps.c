/*
 * analyzer/account/steps.c: what a thread has just done. Called by the accounting for each copy of the
 * application.
 */
#include "steps.h"

void steps_see_copy(struct copy_row *row, const union spy_any *raw, const struct step *step)
{
	if (!steps_in_row(row, raw))
		*row = (struct copy_row){.place = record_caller(raw),
					 .stream = record_stream(raw),
					 .direction = raw->copy.direction};
	row->count++;
	row->ns += step->end_ns - step->begin_ns;
	row->own_ns += step->own_ns;
	row->bytes = add_capped(row->bytes, raw->copy.bytes);
}
