/*
 * shim/lib/handle_map.h: from a handle of CUDA's to what we know about it: one word.
 *
 * Open addressing, one writer at a time, readers that neither lock nor wait: any thread, inside a
 * CUDA call. A map in zeroed memory is an empty map.
 */
#ifndef CUDASPY_SHIM_HANDLE_MAP_H
#define CUDASPY_SHIM_HANDLE_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/lock.h"

struct spy_handle_table;

struct spy_handle_map {
	struct spy_lock lock; /* of writers */
	uint64_t generation; /* counts up whenever `table` changes */
	struct spy_handle_table *table;
	struct spy_handle_table *spare; /* the table before this one, if of the same size */
};

/* What was set for a handle, 0 if nothing. A handle of 0 has nothing. */
uint64_t spy_handle_get(const struct spy_handle_map *map, uint64_t handle);

/* value 0 forgets the handle. False if there is no memory, or the lock was not to be had: all
 * stays as it is. */
bool spy_handle_set(struct spy_handle_map *map, uint64_t handle, uint64_t value);

/* Sets a handle that is still set to `old` (0: to nothing); returns what it is set to then, 0 if
 * the lock was not to be had. */
uint64_t spy_handle_replace(struct spy_handle_map *map, uint64_t handle, uint64_t old,
			    uint64_t value);

/* Empties the map in a forked child, whatever state the fork found it in. */
void spy_handle_reset(struct spy_handle_map *map);

#endif
