/*
 * shim/lib/handle_map.c: from a handle of CUDA's to what we know about it.
 *
 * Called by inspectors on the application's threads. Readers work on a table that a writer never
 * moves entries in: it adds entries and changes values. When the table is full, the live entries go
 * to another one and the pointer is swapped. The old table is kept as the spare and filled again at
 * the earliest when the new one is full, too: a reader that is still in it by then finds that
 * `generation` changed and starts again. Tables are never unmapped, so a late reader reads rubbish
 * at worst, and never for long.
 *
 * The orderings are those of a seqlock, with acquire loads and release stores on the data itself in
 * place of fences (which ThreadSanitizer does not know, and which cost the same on x86-64,
 * nothing): a reader that loads a word of a later generation therefore also sees that generation's
 * number.
 */
#include <stddef.h>
#include <sys/mman.h>
#include "lib/handle_map.h"

struct entry {
	uint64_t handle; /* 0: free */
	uint64_t value; /* 0: forgotten */
};

struct spy_handle_table {
	uint64_t mask; /* entries - 1; never changes */
	uint64_t used; /* entries with a handle; writers only */
	struct entry at[];
};

#define FIRST_ENTRIES 256

static inline uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint64_t hash(uint64_t handle)
{
	return (handle * 0x9e3779b97f4a7c15ull) >> 20;
}

/* The handle's entry, or the free one where it would go; NULL only for a reader in a table that is
 * being filled again. */
static struct entry *probe(struct spy_handle_table *table, uint64_t handle)
{
	for (uint64_t i = 0; i <= table->mask; i++) {
		struct entry *entry = &table->at[(hash(handle) + i) & table->mask];
		uint64_t found = load(&entry->handle);

		if (found == handle || !found)
			return entry;
	}
	return NULL;
}

uint64_t spy_handle_get(const struct spy_handle_map *map, uint64_t handle)
{
	for (;;) {
		uint64_t generation = load(&map->generation), value = 0;
		struct spy_handle_table *table = __atomic_load_n(&map->table, __ATOMIC_ACQUIRE);
		struct entry *entry;

		if (!table || !handle)
			return 0;
		entry = probe(table, handle);
		if (entry && load(&entry->handle) == handle)
			value = load(&entry->value);
		if (load(&map->generation) == generation)
			return value;
	}
}

static struct spy_handle_table *new_table(uint64_t entries)
{
	struct spy_handle_table *table;

	table = mmap(NULL, sizeof(*table) + entries * sizeof(struct entry), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return NULL;
	table->mask = entries - 1;
	return table;
}

static void put(struct spy_handle_table *table, uint64_t handle, uint64_t value)
{
	struct entry *entry = probe(table, handle);

	/* before the handle: a reader that finds the handle finds the value */
	store(&entry->value, value);
	if (!load(&entry->handle)) {
		table->used++;
		store(&entry->handle, handle);
	}
}

/* Makes room: the live entries move to the spare table or, if they fill half of it, a larger one.
 */
static bool move(struct spy_handle_map *map)
{
	struct spy_handle_table *old = map->table, *table = NULL;
	uint64_t entries = old ? old->mask + 1 : FIRST_ENTRIES, live = 0;

	for (uint64_t i = 0; old && i <= old->mask; i++)
		live += old->at[i].value != 0;
	if (live * 2 >= entries)
		entries *= 2;
	else
		table = map->spare;
	if (!table)
		table = new_table(entries);
	if (!table)
		return false;
	for (uint64_t i = 0; table == map->spare && i < entries; i++) {
		store(&table->at[i].handle, 0);
		store(&table->at[i].value, 0);
	}
	table->used = 0;
	for (uint64_t i = 0; old && i <= old->mask; i++) {
		if (old->at[i].value)
			put(table, old->at[i].handle, old->at[i].value);
	}
	__atomic_store_n(&map->table, table, __ATOMIC_RELEASE);
	store(&map->generation, map->generation + 1);
	map->spare = old && old->mask == table->mask ? old : NULL;
	return true;
}

static bool set(struct spy_handle_map *map, uint64_t handle, uint64_t value)
{
	struct spy_handle_table *table = map->table;
	struct entry *entry = table ? probe(table, handle) : NULL;

	if (entry && entry->handle) {
		store(&entry->value, value);
		return true;
	}
	if (!value)
		return true;
	if ((!table || (table->used + 1) * 4 > (table->mask + 1) * 3) && !move(map))
		return false;
	put(map->table, handle, value);
	return true;
}

bool spy_handle_set(struct spy_handle_map *map, uint64_t handle, uint64_t value)
{
	bool done;

	if (!handle || !spy_lock_table(&map->lock))
		return false;
	done = set(map, handle, value);
	spy_unlock(&map->lock);
	return done;
}

uint64_t spy_handle_replace(struct spy_handle_map *map, uint64_t handle, uint64_t old,
			    uint64_t value)
{
	uint64_t now;

	if (!handle || !spy_lock_table(&map->lock))
		return 0;
	now = spy_handle_get(map, handle);
	if (now == old) {
		set(map, handle, value);
		now = value;
	}
	spy_unlock(&map->lock);
	return now;
}

void spy_handle_reset(struct spy_handle_map *map)
{
	map->table = map->spare = NULL;
	store(&map->generation, map->generation + 1);
}
