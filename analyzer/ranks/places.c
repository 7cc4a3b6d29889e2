/*
 * analyzer/ranks/places.c: what the evaluation knows of places in all processes: which are alike, where operations are
 * submitted, names of ranges. Called for events of these.
 */
#include <stdlib.h>
#include "work.h"

/* ---- places ---------------------------------------------------------------------------------- */

struct like_place {
	struct rank_like_key key;
	uint32_t number;
	UT_hash_handle hh;
};

#define LIKES_MOST (1u << 17)

static uint32_t like_number(struct ranks_work *w, const struct rank_like_key *key)
{
	struct like_place *like;

	HASH_FIND(hh, w->likes, key, sizeof(*key), like);
	if (like)
		return like->number;
	if (w->n_likes >= LIKES_MOST)
		return 0;
	HASH_NEW(w->likes, like, key, *key);
	like->number = ++w->n_likes;
	return like->number;
}

static void add_place(struct ranks_work *w, const struct rank_place_event *event)
{
	struct rank_place *place = event->place;

	place->cause = event->cause;
	place->where = hash_key(&event->roughly, sizeof(event->roughly)) >> 24 | 1;
	place->roughly = like_number(w, &event->roughly);
	place->like = like_number(w, &event->like);
	w->places = grow(w->places, w->n_places, sizeof(struct rank_place *));
	w->places[w->n_places++] = place;
	if (w->n_places >= PLACES_MOST)
		w->refused = "too many places of ranks";
}

void rank_place_apply(struct ranks *ranks, const struct rank_place_event *event)
{
	struct rank_place *place = event->place;

	if (event->fresh)
		add_place(ranks->work, event);
	place->any_time = event->any_time;
	place->longest = event->longest;
	if (!event->holder)
		return;
	free(place->holder);
	place->holder = event->holder;
}

/* ---- sites ----------------------------------------------------------------------------------- */

struct rank_site_sum *rank_site_get(struct ranks *ranks, const struct process *process,
				    const struct rank_site_event *event, uint8_t func)
{
	struct rank_site_sum *site;
	uint64_t key = event->key;

	HASH_FIND(hh, ranks->work->sites, &key, sizeof(key), site);
	if (!site && HASH_COUNT(ranks->work->sites) >= RANK_SITES_MOST) {
		key = 0;
		HASH_FIND(hh, ranks->work->sites, &key, sizeof(key), site);
	}
	if (site)
		return site;
	HASH_NEW(ranks->work->sites, site, key, key);
	site->sum.part = event->part;
	site->sum.process = process;
	site->sum.func = func;
	return site;
}

/* ---- names of ranges ------------------------------------------------------------------------- */

/* Parts of a set have a table of names each. */
struct rank_name {
	const struct range_name *name; /* the first one of that key */
	UT_hash_handle hh;
};

const struct range_name *rank_name_get(struct ranks_work *w, const struct range_name *name)
{
	unsigned int bytes = (unsigned int)range_name_key_bytes(name);
	struct rank_name *known;

	HASH_FIND(hh, w->names, name->key, bytes, known);
	if (known)
		return known->name;
	known = xcalloc(1, sizeof(*known));
	known->name = name;
	HASH_ADD_KEYPTR(hh, w->names, name->key, bytes, known);
	return name;
}

void rank_names_forget(struct ranks_work *w)
{
	struct rank_name *name, *next;

	HASH_EMPTY (w->names, name, next)
		free(name);
}

/* ---- the end --------------------------------------------------------------------------------- */

size_t rank_places_parts(const struct ranks_work *w, size_t (*see)(const struct idle_part *part))
{
	size_t i, n = 0;

	for (i = 0; i < w->n_places; i++) {
		n += see(&w->places[i]->longest);
		if (w->places[i]->holder)
			n += see(&w->places[i]->holder->longest);
	}
	return n;
}

void rank_places_release(struct ranks_work *w)
{
	struct like_place *like, *next;
	struct rank_site_sum *site, *next_site;

	for (size_t i = 0; i < w->n_places; i++) {
		free(w->places[i]->holder);
		free(w->places[i]);
	}
	free(w->places);
	HASH_EMPTY (w->likes, like, next)
		free(like);
	HASH_EMPTY (w->sites, site, next_site)
		free(site);
	rank_names_forget(w);
}
