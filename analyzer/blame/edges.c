/*
 * analyzer/blame/edges.c: the sums of waits by waiter and holder. Called by blame.c for each link
 * of a wait chain.
 */
#include <stdlib.h>
#include "edges.h"
#include "base/hash.h"
#include "model/model.h"

#define PLACES_FIRST 256

/* The hash is here, too: what is looked at on the way to an edge lies side by side. */
struct edge_place {
	uint32_t hash;
	uint32_t number; /* of the edge, from 1; 0: empty */
};

void edges_release(struct blame_edges *edges)
{
	free(edges->all);
	free(edges->places);
	*edges = (struct blame_edges){0};
}

static void grow_places(struct blame_edges *edges)
{
	size_t n = edges->n_places ? 2 * edges->n_places : PLACES_FIRST, i, at;
	struct edge_place *places = xcalloc(n, sizeof(*places));

	for (i = 0; i < edges->n_places; i++) {
		if (!edges->places[i].number)
			continue;
		for (at = edges->places[i].hash; places[at & (n - 1)].number; at++)
			;
		places[at & (n - 1)] = edges->places[i];
	}
	free(edges->places);
	edges->places = places;
	edges->n_places = n;
}

/* Three products, none of which has to wait for another. */
static inline uint32_t hash_of(const union blame_key *key)
{
	uint64_t hash = hash_mix(key->words[0]) + key->words[1] * 0xbf58476d1ce4e5b9ull +
			key->words[2] * 0x94d049bb133111ebull;

	return (uint32_t)(hash ^ hash >> 32);
}

/* The place of the key's edge, or the empty one where it would be. */
static inline struct edge_place *place_of(const struct blame_edges *edges,
					  const union blame_key *key, uint32_t hash)
{
	struct edge_place *place;

	for (size_t at = hash;; at++) {
		place = &edges->places[at & (edges->n_places - 1)];
		if (!place->number || (place->hash == hash &&
				       blame_same_key(&edges->all[place->number - 1].key, key)))
			return place;
	}
}

struct blame_edge *edges_look_up(struct blame_edges *edges, const union blame_key *key)
{
	const struct edge_place *place;

	if (unlikely(!edges->n))
		return NULL;
	place = place_of(edges, key, hash_of(key));
	if (unlikely(!place->number))
		return NULL;
	edges->last = place->number;
	return &edges->all[place->number - 1];
}

struct blame_edge *edges_get(struct blame_edges *edges, const union blame_key *key)
{
	struct blame_edge *edge = edges_find(edges, key);
	uint32_t hash = hash_of(key);

	if (edge)
		return edge;
	if (2 * edges->n >= edges->n_places)
		grow_places(edges);
	edges->all = grow(edges->all, edges->n, sizeof(*edges->all));
	edges->all[edges->n] = (struct blame_edge){.key = *key, .created = position_now()};
	edges->last = ++edges->n;
	*place_of(edges, key, hash) = (struct edge_place){hash, (uint32_t)edges->n};
	return &edges->all[edges->n - 1];
}

const struct thread *edge_thread(const struct model *model, uint32_t index)
{
	return index ? model->threads[index - 1] : NULL;
}
