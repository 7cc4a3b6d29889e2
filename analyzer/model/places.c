/*
 * analyzer/model/places.c: which objects have an address. Called by the model for each object that
 * is loaded or unloaded, and for each address that is looked up.
 *
 * Memory is cut into cells at several levels, each level's sixteen times as large as those of the
 * one below. A place is noted in the cells of the lowest level at which two of them hold it. So an
 * address is asked for in one cell of each level, in which no more than some sixteen places lie
 * side by side.
 */
#include <stdlib.h>
#include "base/hash.h"
#include "places.h"

#define LEVEL_FIRST 12 /* bits of an address in a cell of the lowest level */
#define LEVEL_STEP 4
#define LEVELS 13
#define CELLS_FIRST 64

/* So many places of a cell are remembered, the youngest: more would have to lie across each
 * other. */
#define CELL_MOST 64

struct place_cell {
	uint64_t key; /* address >> bits of the level, and above that the level + 1; 0: empty */
	uint32_t *numbers; /* of its places; owned */
	uint32_t n; /* so far */
};

void places_release(struct places *places)
{
	for (size_t i = 0; i < places->n_cells; i++)
		free(places->cells[i].numbers);
	free(places->cells);
	free(places->all);
	*places = (struct places){0};
}

static unsigned int bits_of(unsigned int level)
{
	return LEVEL_FIRST + LEVEL_STEP * level;
}

static uint64_t key_of(unsigned int level, uint64_t address)
{
	return (uint64_t)(level + 1) << 56 | address >> bits_of(level);
}

/* The cell of that key, or the empty one where it would be. */
static struct place_cell *find_cell(const struct places *places, uint64_t key)
{
	size_t at = hash_key(&key, sizeof(key));
	struct place_cell *cell;

	do
		cell = &places->cells[at++ & (places->n_cells - 1)];
	while (cell->key && cell->key != key);
	return cell;
}

static void grow_cells(struct places *places)
{
	struct places more = {.n_cells = places->n_cells ? 2 * places->n_cells : CELLS_FIRST};

	more.cells = xcalloc(more.n_cells, sizeof(*more.cells));
	for (size_t i = 0; i < places->n_cells; i++)
		if (places->cells[i].key)
			*find_cell(&more, places->cells[i].key) = places->cells[i];
	free(places->cells);
	places->cells = more.cells;
	places->n_cells = more.n_cells;
}

static void note(struct places *places, uint64_t key, uint32_t number)
{
	struct place_cell *cell;

	if (2 * places->n_used >= places->n_cells)
		grow_cells(places);
	cell = find_cell(places, key);
	places->n_used += !cell->key;
	cell->key = key;
	if (cell->n < CELL_MOST)
		cell->numbers = grow(cell->numbers, cell->n, sizeof(*cell->numbers));
	cell->numbers[cell->n++ % CELL_MOST] = number;
}

static uint64_t first_of(const struct place_of_module *place)
{
	return min_u64(place->base, place->begin);
}

/* The last address of it. */
static uint64_t last_of(const struct place_of_module *place)
{
	uint64_t end = place->end > place->span_end ? place->end : place->span_end;

	return end > first_of(place) ? end - 1 : first_of(place);
}

/* The level at which the place is noted: that of one cell, or of two side by side. */
static unsigned int level_of(const struct place_of_module *place)
{
	unsigned int level = 0;

	while (level + 1 < LEVELS &&
	       (last_of(place) >> bits_of(level)) - (first_of(place) >> bits_of(level)) > 1)
		level++;
	return level;
}

static bool is_there(const struct place_of_module *a, const struct place_of_module *b)
{
	return a->begin == b->begin && a->end == b->end && a->base == b->base &&
	       a->span_end == b->span_end;
}

struct place_of_module *places_get(struct places *places, const struct place_of_module *like)
{
	unsigned int level = level_of(like);
	uint64_t first = key_of(level, first_of(like)), last = key_of(level, last_of(like));
	const struct place_cell *cell = places->n_cells ? find_cell(places, first) : NULL;

	for (uint32_t i = cell ? (uint32_t)min_u64(cell->n, CELL_MOST) : 0; i--;)
		if (is_there(&places->all[cell->numbers[i]], like))
			return &places->all[cell->numbers[i]];
	places->all = grow(places->all, places->n, sizeof(*places->all));
	places->all[places->n] = *like;
	places->levels |= 1u << level;
	note(places, first, (uint32_t)places->n);
	if (last != first)
		note(places, last, (uint32_t)places->n);
	return &places->all[places->n++];
}

void places_at(const struct places *places, uint64_t address, place_fn *found_at, void *context)
{
	for (uint32_t levels = places->levels; levels; levels &= levels - 1) {
		unsigned int level = (unsigned int)__builtin_ctz(levels);
		const struct place_cell *cell = find_cell(places, key_of(level, address));

		for (uint32_t i = (uint32_t)min_u64(cell->n, CELL_MOST); i--;)
			if (!found_at(&places->all[cell->numbers[i]], context))
				return;
	}
}
