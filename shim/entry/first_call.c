/*
 * shim/entry/first_call.c: the first call of a function, perhaps the first of the process. Runs on
 * the application's threads, on the recorder's own stack.
 */
#include "hook/resolve.h"
#include "hook/slots.h"
#include "process/own_stack.h"
#include "entry/lifecycle.h"
#include "record/notes.h"

/* cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE are both 100: driver_types.h, cuda.h. What a program
 * gets that found our stub although it has no CUDA library (a weak reference, say). */
static int no_device(void)
{
	return 100;
}

struct resolving {
	struct spy_slot *slot;
	uint64_t index;
	void *real; /* the answer */
};

static void resolve_on_own_stack(void *data)
{
	struct resolving *resolving = data;
	struct spy_slot *slot = resolving->slot;
	int layer = __atomic_load_n(&slot->layer, __ATOMIC_RELAXED);
	void *real;

	spy_lifecycle_init();
	real = spy_resolve_find(slot->fn, spy_slots_version(resolving->index, slot->fn), &layer);
	resolving->real = spy_resolve_keep(slot, real, layer);
	if (resolving->real)
		return;
	spy_note(SPY_NOTE_MISSING, "%s", spy_names[slot->fn]);
	resolving->real = no_device;
}

void *spy_first_call(struct spy_slot *slot, uint64_t index)
{
	struct resolving resolving = {.slot = slot, .index = index};

	spy_own_stack_run(resolve_on_own_stack, &resolving);
	return resolving.real;
}
