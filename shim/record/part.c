/*
 * shim/record/part.c: who works in the folder of which part of the recording, and how large finished ones are. Runs on the
 * application's threads, in slow paths.
 */
#include <stdatomic.h>
#include "record/part.h"
#include "state/session.h"

static struct spy_parts *parts(void)
{
	return &spy_session->parts;
}

uint64_t spy_parts_begun_at(uint32_t part)
{
	return atomic_load(&parts()->begun_at[part % 2]);
}

/* ---- who is in a folder ----------------------------------------------------------------------- */

/* Pairs with begin_part (parts.c): a part's folder is forgotten when nobody has been in it since the part after it began. */
uint32_t spy_parts_enter(void)
{
	for (;;) {
		uint32_t part = atomic_load(&spy_session->part);

		atomic_fetch_add(&parts()->inside[part % 2], 1);
		if (part == atomic_load(&spy_session->part))
			return part;
		atomic_fetch_sub(&parts()->inside[part % 2], 1);
	}
}

void spy_parts_leave(uint32_t part)
{
	atomic_fetch_sub(&parts()->inside[part % 2], 1);
}

/* Of a part that is right now being noted as finished this says nothing: it passes for larger than it is. */
void spy_parts_shrink(uint32_t number, uint64_t bytes)
{
	struct spy_part *part = &spy_finished_parts[number % SPY_PARTS_MOST];

	/* Pairs with finish, which makes it one of these at last. */
	if (number >= atomic_load(&parts()->next) || number < atomic_load(&parts()->oldest) ||
	    part->number != number || atomic_load(&part->bytes) < bytes)
		return;
	atomic_fetch_sub(&part->bytes, bytes);
	atomic_fetch_sub(&parts()->finished_bytes, bytes);
	atomic_fetch_sub(&spy_session->used, bytes);
}
