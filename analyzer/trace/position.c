/*
 * analyzer/trace/position.c: where the reading of each thread is.
 */
#include "merge.h"
#include "position.h"

_Thread_local struct reading_place reading_place;

struct reading_position position_now(void)
{
	const struct record *record = reading_place.record;

	return record ? (struct reading_position){record->ns, record->stream->index + 1}
		      : reading_place.position;
}
