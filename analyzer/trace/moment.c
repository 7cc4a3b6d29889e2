/*
 * analyzer/trace/moment.c: where the reading of each thread is.
 */
#include "merge.h"
#include "moment.h"

_Thread_local struct reading_place reading_place;

struct reading_moment moment_now(void)
{
	const struct record *record = reading_place.record;

	return record ? (struct reading_moment){record->ns, record->stream->index + 1}
		      : reading_place.moment;
}
