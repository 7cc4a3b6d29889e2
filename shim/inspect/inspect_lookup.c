/*
 * shim/inspect/inspect_lookup.c: cuGetProcAddress and its relatives: what they find becomes a stub.
 * Runs on the application's threads, inside those calls.
 */
#include "inspect/inspect_common.h"

/* Places of the rows. */
enum { SYMBOL = 0, FOUND = 1 };

/* Only what the real look-up found is replaced, and only by the pointer it found: the address
 * decides about the ABI, never the name asked for. The status output is left as it is. */
void inspect_proc_address_found(struct spy_frame *frame, const struct spy_inspector *self)
{
	void **found = (void **)arg(frame, self, FOUND);

	if (succeeded(frame) && found && *found)
		*found = spy_wrap((const char *)arg(frame, self, SYMBOL), *found);
}
