/*
 * analyzer/model/places.h: where in a process's memory objects lie or lay: which of them have an
 * address, found in as many steps whether a program has loaded ten objects or, one after the other,
 * a million. For the model.
 */
#ifndef CUDASPY_PLACES_H
#define CUDASPY_PLACES_H

#include "base/util.h"

/* Where an object is mapped, however often one was loaded there. */
struct place_of_module {
	uint64_t base, span_end; /* of all its segments; the same: unknown */
	uint64_t begin, end; /* of its code */
	uint32_t module; /* the last one there: number in the process's modules */
	uint32_t unloaded; /* how often one was unloaded there */
};

/* Start with zeros. */
struct places {
	struct place_of_module *all;
	size_t n;
	struct place_cell *cells; /* an open table of n_cells, a power of two */
	size_t n_cells, n_used;
	uint32_t levels; /* a bit for each that has cells */
};

void places_release(struct places *places);

/* The place with these four bounds, made if it is new. Valid until the next one is asked for. */
struct place_of_module *places_get(struct places *places, const struct place_of_module *like);

/*
 * Calls see for each place that may have the address, in code or data, until it returns false:
 * those that have it are among them.
 */
typedef bool place_fn(const struct place_of_module *place, void *context);
void places_at(const struct places *places, uint64_t address, place_fn *found_at, void *context);

#endif
