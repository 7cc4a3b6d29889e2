/*
 * analyzer/account/recent_ops.c: what a thread has just done. Called by the accounting for each
 * copy of the application.
 */
#include "recent_ops.h"

void recent_ops_see_copy(struct copy_run *run, const union spy_any *raw,
			 const struct recent_op *step)
{
	if (!recent_ops_in_run(run, raw))
		*run = (struct copy_run){.place = record_return_address(raw),
					 .stream = record_stream(raw),
					 .direction = raw->copy.direction};
	run->count++;
	run->ns += step->end_ns - step->begin_ns;
	run->own_ns += step->own_ns;
	run->bytes = add_capped(run->bytes, raw->copy.bytes);
}
