/*
 * analyzer/account/recent_ops.c: what a thread has just done. Called by the accounting for each
 * copy of the application.
 */
#include "recent_ops.h"

void recent_ops_see_copy(struct copy_run *run, const struct record *record,
			 const struct recent_op *step)
{
	if (!recent_ops_in_run(run, record))
		*run = (struct copy_run){.place = record_return_address(record),
					 .stream = record_stream(record),
					 .direction = record_direction(record)};
	run->count++;
	run->ns += step->end_ns - step->begin_ns;
	run->own_ns += step->own_ns;
	run->bytes = add_capped(run->bytes, record_bytes(record));
}
