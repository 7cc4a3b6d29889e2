/*
 * shim/hook/resolve.c: from a slot to the real function. A stub's slot keeps its real function; the
 * first call or look-up finds it. Runs on the application's threads, at first calls and look-ups
 * only.
 */
#include "hook/loader.h"
#include "hook/resolve.h"
#include "hook/slots.h"
#include "process/elf_scan.h"
#include "process/own_stack.h"
#include "state/session.h"

struct search {
	int fn;
	bool startup_only;
	const char *version; /* the stub's own generation; NULL for the driver */
	bool past_self;
	void *found[4]; /* by preference, best first */
	int layer[4];
};

/*
 * Preferences, as the dynamic linker would have bound the call had we not been there:
 * 0  the next object loaded with the program that has it, in our version or (an interposer) in none
 * 1  an object opened later that has it in our version; for the driver, libcuda itself
 * 2  the newest other generation of the runtime
 * 3  anything else that exports the name
 */
static int visit_real(const struct spy_object *object, void *data)
{
	struct search *search = data;
	const char *name = spy_names[search->fn];
	void *exact = NULL, *any;
	bool versioned = false;
	int layer;

	if (object->is_self) {
		search->past_self = true;
		return 0;
	}
	if (search->startup_only && object->position >= spy_loader_startup)
		return 1;
	if (search->version)
		exact = spy_object_symbol(object, name, search->version, NULL);
	any = exact ? exact : spy_object_symbol(object, name, NULL, &versioned);
	if (!any)
		return 0;
	layer = spy_loader_layer(object, search->fn);
	if (search->past_self && object->position < spy_loader_startup &&
	    (exact || !versioned || !search->version)) {
		if (!search->found[0]) {
			search->found[0] = any;
			search->layer[0] = layer;
		}
		return 1;
	}
	if (exact || (!search->version && layer == SPY_LAYER_DRIVER)) {
		if (!search->found[1]) {
			search->found[1] = any;
			search->layer[1] = layer;
		}
	} else if (versioned && layer >= 0) {
		if (!search->found[2] || layer > search->layer[2]) {
			search->found[2] = any;
			search->layer[2] = layer;
		}
	} else if (!search->found[3]) {
		search->found[3] = any;
		search->layer[3] = layer;
	}
	return 0;
}

void *spy_resolve_find(int fn, const char *version, int *layer)
{
	struct search search = {.fn = fn, .version = version};

	spy_each_object(visit_real, &search);
	for (int i = 0; i < 4; i++) {
		if (search.found[i]) {
			*layer = search.layer[i];
			return search.found[i];
		}
	}
	return NULL;
}

bool spy_resolve_bound_elsewhere(int fn, const char *version, const void *real)
{
	struct search search = {.fn = fn, .version = version, .startup_only = true};

	if (!spy_each_first_object(visit_real, &search))
		spy_each_object(visit_real, &search);
	return search.found[0] && search.found[0] != real;
}

void *spy_resolve_keep(struct spy_slot *slot, void *real, int layer)
{
	bool locked = spy_lock(&spy_session->wrap_lock);

	spy_slots_prepare(slot);
	if (slot->real) { /* another thread was faster */
		real = slot->real;
	} else if (real && locked) { /* or else the next call finds it again */
		/* An interposer in between: the layer below it is the one the caller was linked
		 * to. */
		if (layer >= 0)
			__atomic_store_n(&slot->layer, (uint8_t)layer, __ATOMIC_RELAXED);
		spy_slots_set_foreign(slot, layer < 0);
		__atomic_store_n(&slot->real, real, __ATOMIC_RELEASE);
	}
	if (locked)
		spy_unlock(&spy_session->wrap_lock);
	return real;
}

struct finding {
	struct spy_slot *slot;
	void *real; /* the answer */
};

static void find_driver_on_own_stack(void *data)
{
	struct finding *finding = data;
	int layer = SPY_LAYER_DRIVER;
	void *real = spy_resolve_find(finding->slot->fn, NULL, &layer);

	finding->real = spy_resolve_keep(finding->slot, real, layer);
}

static void *find_driver(struct spy_slot *slot)
{
	struct finding finding = {.slot = slot};

	spy_own_stack_run(find_driver_on_own_stack, &finding);
	return finding.real;
}

void *spy_resolve_driver(int fn)
{
	struct spy_slot *slot = &spy_slots[fn * 3];
	void *real = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);

	return real ? real : find_driver(slot);
}
