/*
 * shim/inspect/memory.c: which memory is pinned, registered, managed or a device's.
 *
 * An ordered map of address ranges, in two levels: a directory of leaves, a leaf of up to 64
 * ranges. Not a hash of base addresses, because copies start anywhere inside an allocation. Writers
 * (an allocation, a registration, a free) take turns under a lock; readers (each copy) take none
 * and never wait, not even for a writer that was preempted half way: a writer fills a fresh leaf,
 * publishes it with one store, and only then counts the generation up and calls the old leaf free.
 * A reader that finds another generation when it is done starts again. Leaves are never unmapped,
 * so a late reader reads rubbish at worst. A split or an emptied leaf replaces the directory in the
 * same way; there are two, used in turns. Loads acquire and stores release on every word, as in
 * handle_map.c, which says why.
 *
 * A range that is freed stays in its leaf as one of no kind, because allocators give the same
 * addresses again: then one word changes each time, and no leaf is copied. Where threads allocate
 * and free all the time (stream-ordered memory, a call of a microsecond) they take turns here, and
 * a leaf that another thread wrote costs each of its cache lines. Such remains are dropped when a
 * leaf is full, and with the last live range of a leaf.
 *
 * The generation also dates the answers that each thread keeps (struct spy_inspect_cache): any
 * change of the map makes them stale. Changes are rare next to copies, and a driver's answer is
 * cheap (130 ns) next to what changes the map.
 */
#include <stddef.h>
#include <sys/mman.h>
#include "cudaspy/function_numbers.h"
#include "describe/describe.h"
#include "hook/resolve.h"
#include "lib/lock.h"
#include "inspect/memory.h"

#define LEAF_RANGES 64
#define LEAVES_AT_ONCE 64
#define DIRECTORY_MAX 65536

struct range {
	uint64_t lo, hi;
	uint64_t about; /* kind | device << 8 | context << 16 | access << 32 */
};

struct leaf {
	uint64_t count;
	uint64_t live; /* ranges of a kind; for writers */
	struct {
		uint64_t lo, hi;
	} at[LEAF_RANGES]; /* by lo, not overlapping */
	uint64_t about[LEAF_RANGES]; /* 0: it was freed */
	struct leaf *next_free;
};

/* Leaf i holds the ranges that begin in [at[i].lo, at[i + 1].lo). at[0].lo is 0. No leaf is empty
 * unless it is the only one. */
struct directory {
	uint64_t count;
	struct {
		uint64_t lo;
		struct leaf *leaf;
	} at[DIRECTORY_MAX];
};

static struct {
	struct spy_lock lock; /* of writers */
	bool stale; /* a change was lost: the map says nothing until it has been emptied */
	struct directory *root; /* NULL: empty */
	struct leaf *free;
} map;

/* Never 0, the date of a cache that was never filled. */
struct spy_memory_date spy_memory_date = {.generation = 1};

static struct directory *
	directories; /* two: 2 MiB, mapped when the first range comes; the pages in use are the ones touched */

static inline uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline struct leaf *leaf_at(struct directory *directory, uint64_t i)
{
	return __atomic_load_n(&directory->at[i].leaf, __ATOMIC_ACQUIRE);
}

/* ---- readers ----------------------------------------------------------------------------------
 */

/* Number of the last leaf that may hold a range beginning at or before an address. */
static uint64_t which_leaf(struct directory *directory, uint64_t address)
{
	uint64_t first = 0, last = load(&directory->count);

	if (last > DIRECTORY_MAX)
		last = DIRECTORY_MAX; /* rubbish; the generation will show it */
	while (last - first > 1) {
		uint64_t middle = first + (last - first) / 2;

		if (load(&directory->at[middle].lo) <= address)
			first = middle;
		else
			last = middle;
	}
	return first;
}

/* How many ranges of a leaf begin at or before an address. */
static uint64_t how_many(const struct leaf *leaf, uint64_t address)
{
	uint64_t first = 0, last = load(&leaf->count);

	if (last > LEAF_RANGES)
		last = LEAF_RANGES;
	while (first < last) {
		uint64_t middle = first + (last - first) / 2;

		if (load(&leaf->at[middle].lo) <= address)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* Fills *found with the range around an address or, with kind SPY_MEM_UNKNOWN, the gap, of which
 * ranges that were freed are no part but gaps of their own. */
static void look(struct directory *root, uint64_t address, struct spy_memory *found)
{
	uint64_t number = which_leaf(root, address), i;
	struct leaf *leaf = leaf_at(root, number);
	uint64_t about = 0, hi = 0;

	*found = (struct spy_memory){.hi = UINT64_MAX, .device = SPY_DEVICE_NONE};
	if (!leaf)
		return;
	i = how_many(leaf, address);
	if (i < load(&leaf->count) && i < LEAF_RANGES)
		found->hi = load(&leaf->at[i].lo);
	else if (number + 1 < load(&root->count) && number + 1 < DIRECTORY_MAX)
		found->hi = load(&root->at[number + 1].lo);
	if (!i && number) {
		leaf = leaf_at(root, number - 1);
		i = leaf ? how_many(leaf, address) : 0;
	}
	if (!i)
		return;
	hi = load(&leaf->at[i - 1].hi);
	about = load(&leaf->about[i - 1]);
	found->lo = load(&leaf->at[i - 1].lo);
	if (address >= hi) {
		found->lo = hi;
		return;
	}
	found->hi = hi;
	if (!about)
		return;
	found->kind = about & 0xff;
	found->device = about >> 8 & 0xff;
	found->context = about >> 16 & 0xffff;
	found->access = about >> 32 & 0xff;
}

/* As look; returns the generation that the answer belongs to. */
static uint64_t look_up(uint64_t address, struct spy_memory *found)
{
	for (;;) {
		uint64_t generation = load(&spy_memory_date.generation);
		struct directory *root = __atomic_load_n(&map.root, __ATOMIC_ACQUIRE);

		if (root && !__atomic_load_n(&map.stale, __ATOMIC_RELAXED))
			look(root, address, found);
		else
			*found = (struct spy_memory){.hi = UINT64_MAX, .device = SPY_DEVICE_NONE};
		if (load(&spy_memory_date.generation) == generation)
			return generation;
	}
}

bool spy_memory_find(uint64_t address, struct spy_memory *found)
{
	look_up(address, found);
	return found->kind != SPY_MEM_UNKNOWN;
}

/* ---- writers: the lock is held -----------------------------------------------------------------
 */

static struct leaf *new_leaf(void)
{
	struct leaf *leaf = map.free;

	if (!leaf) {
		leaf = mmap(NULL, LEAVES_AT_ONCE * sizeof(*leaf), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (leaf == MAP_FAILED)
			return NULL;
		for (int i = 0; i + 1 < LEAVES_AT_ONCE; i++)
			leaf[i].next_free = &leaf[i + 1];
	}
	map.free = leaf->next_free;
	return leaf;
}

static void free_leaf(struct leaf *leaf)
{
	leaf->next_free = map.free;
	map.free = leaf;
}

static void put_range(struct leaf *leaf, const struct range *range)
{
	uint64_t i = leaf->count;

	store(&leaf->at[i].lo, range->lo);
	store(&leaf->at[i].hi, range->hi);
	store(&leaf->about[i], range->about);
	store(&leaf->count, i + 1);
	leaf->live += range->about != 0;
}

static struct range range_of(const struct leaf *leaf, uint64_t i)
{
	return (struct range){leaf->at[i].lo, leaf->at[i].hi, leaf->about[i]};
}

/* Fills `to` with from[first, last), without number `skip`, without those that were freed if `drop`,
 * and with *extra at number `extra_at`; numbers are those of `from`. */
static void fill_leaf(struct leaf *to, const struct leaf *from, uint64_t first, uint64_t last,
		      uint64_t skip, bool drop, const struct range *extra, uint64_t extra_at)
{
	store(&to->count, 0);
	to->live = 0;
	for (uint64_t i = first; i <= last; i++) {
		struct range range;

		if (extra && i == extra_at)
			put_range(to, extra);
		if (i == last || i == skip)
			continue;
		range = range_of(from, i);
		if (range.about || !drop)
			put_range(to, &range);
	}
}

static void next_generation(void)
{
	store(&spy_memory_date.generation, spy_memory_date.generation + 1);
}

/* False: another thread does not give the lock back. The change is lost, so nothing in the map
 * is certain any more: the next change begins an empty map, and the driver is asked meanwhile. */
static bool begin_change(void)
{
	if (!spy_lock_table(&map.lock)) {
		__atomic_store_n(&map.stale, true, __ATOMIC_RELEASE);
		__atomic_fetch_add(&spy_memory_date.generation, 1, __ATOMIC_RELEASE);
		return false;
	}
	if (map.stale) {
		__atomic_store_n(&map.root, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&map.stale, false, __ATOMIC_RELEASE);
		next_generation();
	}
	return true;
}

static struct directory *other_directory(void)
{
	return map.root == &directories[0] ? &directories[1] : &directories[0];
}

static void put_entry(struct directory *directory, uint64_t i, uint64_t lo, struct leaf *leaf)
{
	store(&directory->at[i].lo, lo);
	__atomic_store_n(&directory->at[i].leaf, leaf, __ATOMIC_RELEASE);
}

/* Replaces leaf `number` by the n leaves given; a directory's worth of work unless n is 1. */
static void replace_leaf(uint64_t number, struct leaf *const *leaves, uint64_t n)
{
	struct directory *old = map.root, *new = other_directory();
	struct leaf *gone = old->at[number].leaf;
	uint64_t count = 0;

	if (n == 1) {
		put_entry(old, number, old->at[number].lo, leaves[0]);
	} else {
		for (uint64_t i = 0; i < old->count; i++) {
			uint64_t lo = count ? old->at[i].lo : 0;

			if (i != number) {
				put_entry(new, count++, lo, old->at[i].leaf);
				continue;
			}
			for (uint64_t k = 0; k < n; k++)
				put_entry(new, count++, k ? leaves[k]->at[0].lo : lo, leaves[k]);
		}
		store(&new->count, count);
		__atomic_store_n(&map.root, new, __ATOMIC_RELEASE);
	}
	next_generation();
	free_leaf(gone);
}

/* Under the map's lock. */
static bool make_directories(void)
{
	void *memory;

	if (directories)
		return true;
	memory = mmap(NULL, 2 * sizeof(*directories), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory != MAP_FAILED)
		directories = memory;
	return directories;
}

static bool begin_map(void)
{
	struct leaf *leaf = make_directories() ? new_leaf() : NULL;
	struct directory *new;

	if (!leaf)
		return false;
	new = other_directory();
	store(&leaf->count, 0);
	leaf->live = 0;
	put_entry(new, 0, 0, leaf);
	store(&new->count, 1);
	__atomic_store_n(&map.root, new, __ATOMIC_RELEASE);
	return true;
}

/* A full leaf has room for more if it has enough that was freed; else it is split. */
#define LIVE_MOST (LEAF_RANGES * 3 / 4)

static void insert(const struct range *range)
{
	struct leaf *leaves[2] = {NULL, NULL}, *full;
	uint64_t number, i, half = LEAF_RANGES / 2;
	bool drop, split;

	if (!map.root && !begin_map())
		return;
	number = which_leaf(map.root, range->lo);
	full = map.root->at[number].leaf;
	i = how_many(full, range->lo);
	drop = full->count == LEAF_RANGES;
	split = drop && full->live > LIVE_MOST;
	if (split && map.root->count == DIRECTORY_MAX)
		return; /* three million ranges: the driver will be asked about this one */
	leaves[0] = new_leaf();
	if (!leaves[0])
		return;
	if (!split) {
		fill_leaf(leaves[0], full, 0, full->count, UINT64_MAX, drop, range, i);
		replace_leaf(number, leaves, 1);
		return;
	}
	leaves[1] = new_leaf();
	if (!leaves[1]) {
		free_leaf(leaves[0]);
		return;
	}
	fill_leaf(leaves[0], full, 0, half, UINT64_MAX, true, i <= half ? range : NULL, i);
	fill_leaf(leaves[1], full, half, full->count, UINT64_MAX, true, i > half ? range : NULL, i);
	replace_leaf(number, leaves, 2);
}

/* Range i of leaf `number` is of another kind from now on; 0: it was freed. */
static void set_about(uint64_t number, uint64_t i, uint64_t about)
{
	struct leaf *leaf = map.root->at[number].leaf;

	leaf->live += (about != 0) - (uint64_t)(leaf->about[i] != 0);
	if (!leaf->live && map.root->count > 1) {
		replace_leaf(number, NULL, 0);
		return;
	}
	store(&leaf->about[i], about);
	next_generation();
}

/* Takes out range i of leaf `number`: another one comes in its place. */
static void take_out(uint64_t number, uint64_t i)
{
	struct leaf *old = map.root->at[number].leaf, *leaf;

	if (old->live == (old->about[i] != 0) && map.root->count > 1) {
		replace_leaf(number, NULL, 0);
		return;
	}
	leaf = new_leaf();
	if (!leaf) { /* shrink it to nothing in place: no reader can then take it for live */
		old->live -= old->about[i] != 0;
		store(&old->about[i], 0);
		store(&old->at[i].hi, old->at[i].lo);
		next_generation();
		return;
	}
	fill_leaf(leaf, old, 0, old->count, i, false, NULL, 0);
	replace_leaf(number, &leaf, 1);
}

/* The last range, freed or not, that begins at or before an address. False: there is none. */
static bool last_before(uint64_t address, struct range *range, uint64_t *number, uint64_t *i)
{
	if (!map.root)
		return false;
	*number = which_leaf(map.root, address);
	*i = how_many(map.root->at[*number].leaf, address);
	if (!*i && *number) {
		--*number;
		*i = map.root->at[*number].leaf->count;
	}
	if (!*i)
		return false;
	--*i;
	*range = range_of(map.root->at[*number].leaf, *i);
	return true;
}

static void clear_span(uint64_t lo, uint64_t hi)
{
	uint64_t number, i;
	struct range range;

	while (hi > lo && last_before(hi - 1, &range, &number, &i) && range.hi > lo) {
		hi = range.lo; /* onwards even if it could not be taken out */
		take_out(number, i);
	}
}

/* ---- what inspectors call -----------------------------------------------------------------------
 */

static bool same_place(const struct range *range, const struct range *other)
{
	return range->lo == other->lo && range->hi == other->hi;
}

void spy_memory_add(const struct spy_memory *memory)
{
	struct range known,
		range = {.lo = memory->lo,
			 .hi = memory->hi,
			 .about = memory->kind | (uint64_t)memory->device << 8 |
				  (uint64_t)memory->context << 16 | (uint64_t)memory->access << 32};
	uint64_t number, i;

	if (range.hi <= range.lo || memory->kind == SPY_MEM_UNKNOWN || !begin_change())
		return;
	if (!last_before(range.lo, &known, &number, &i) || !same_place(&known, &range)) {
		clear_span(range.lo, range.hi);
		insert(&range);
	} else if (known.about != range.about) {
		set_about(number, i, range.about);
	}
	spy_unlock(&map.lock);
}

bool spy_memory_remove(uint64_t address, struct spy_memory *was)
{
	uint64_t number, i;
	struct range range;
	bool found;

	if (!begin_change())
		return false;
	found = last_before(address, &range, &number, &i) && range.lo == address && range.about;
	if (found) {
		*was = (struct spy_memory){.lo = range.lo,
					   .hi = range.hi,
					   .kind = range.about & 0xff,
					   .device = range.about >> 8 & 0xff,
					   .context = range.about >> 16 & 0xffff,
					   .access = range.about >> 32 & 0xff};
		set_about(number, i, 0);
	} else {
		next_generation(); /* freed, and not by us: what the driver answered is stale */
	}
	spy_unlock(&map.lock);
	return found;
}

void spy_memory_remove_span(uint64_t lo, uint64_t hi)
{
	if (!begin_change())
		return;
	clear_span(lo, hi);
	next_generation();
	spy_unlock(&map.lock);
}

void spy_memory_remove_context(uint8_t device, uint16_t context)
{
	uint64_t number, i, below = UINT64_MAX;
	struct range range;

	if (!begin_change())
		return;
	while (last_before(below, &range, &number, &i)) {
		uint16_t of = range.about >> 16 & 0xffff;
		bool gone = of && context ? of == context : (range.about >> 8 & 0xff) == device;

		below = range.lo;
		if (range.about && gone && of != SPY_CONTEXT_NONE)
			set_about(number, i, 0);
		if (!below--)
			break;
	}
	next_generation();
	spy_unlock(&map.lock);
}

void spy_memory_reset(void)
{
	map.root = NULL;
	map.free = NULL;
	map.stale = false;
	spy_memory_date.generation++;
}

void spy_memory_locks(spy_visit_lock *visit)
{
	visit(&map.lock);
}

/* ---- kinds --------------------------------------------------------------------------------------
 */

#define PAGE SPY_MEMORY_PAGE

static void remember(struct spy_inspect_cache *cache, uint64_t address,
		     const struct spy_memory *memory, uint64_t generation)
{
	struct spy_memory_hit *pair = spy_memory_pair(cache, address);

	pair[1] = pair[0];
	pair->lo = memory->lo;
	pair->hi = memory->hi;
	pair->generation = (uint32_t)generation;
	pair->kind = memory->kind;
	pair->device = memory->device;
	pair->access = memory->access;
}

/* As spy_memory_hit, but looks into the map, too. *hi is where the memory of that kind ends. */
static enum spy_memory_kind kind_at(struct spy_inspect_cache *cache, uint64_t address, uint64_t *hi)
{
	const struct spy_memory_hit *hit = spy_memory_hit(cache, address);
	struct spy_memory memory;
	uint64_t generation;

	if (spy_memory_hits(hit, address)) {
		*hi = hit->hi;
		return hit->kind;
	}
	generation = look_up(address, &memory);
	*hi = memory.hi;
	if (memory.kind != SPY_MEM_UNKNOWN)
		remember(cache, address, &memory, generation);
	return memory.kind;
}

enum spy_memory_kind spy_memory_kind_slow(struct spy_inspect_cache *cache, uint64_t address,
					  uint64_t bytes)
{
	uint64_t hi, last = address + bytes - 1;
	enum spy_memory_kind kind = kind_at(cache, address, &hi);

	/* Where memory of a pool ended there may be more by now: it grows without a call. */
	if (kind == SPY_MEM_UNKNOWN || kind == SPY_MEM_PAGEABLE || kind == SPY_MEM_DEVICE ||
	    last < hi || last < address)
		return kind;
	return kind_at(cache, last, &hi) == kind ? kind : SPY_MEM_MIXED;
}

/* Numbers of CUpointer_attribute and CUmemorytype (cuda.h; part of the driver's ABI). */
enum {
	ATTR_MEMORY_TYPE = 2,
	ATTR_IS_MANAGED = 8,
	ATTR_DEVICE_ORDINAL = 9,
	ATTR_RANGE_START = 11,
	ATTR_RANGE_SIZE = 12,
	ATTR_MEMPOOL_HANDLE = 17,
};
enum { MEMORYTYPE_NONE, MEMORYTYPE_HOST, MEMORYTYPE_DEVICE, MEMORYTYPE_ARRAY };

typedef int get_attributes(unsigned int n, const int *attributes, void **data, uint64_t address);

/* Which of several GPUs memory lies on, and whether it is a pool's. A driver without pools
 * (before CUDA 11.3) says neither. */
static void ask_where(get_attributes *ask, uint64_t address, struct spy_memory *memory)
{
	static const int attributes[] = {ATTR_DEVICE_ORDINAL, ATTR_MEMPOOL_HANDLE};
	int32_t device = -1;
	uint64_t pool = 0;
	void *data[] = {&device, &pool};

	if (!spy_may_see_several_gpus() || ask(2, attributes, data, address) || device < 0 ||
	    device >= SPY_DEVICE_NONE)
		return;
	memory->device = (uint8_t)device;
	memory->access = pool ? SPY_ACCESS_POOL : SPY_ACCESS_PEER;
}

/* cuPointerGetAttributes, plural: it answers "type 0" for pageable memory where the singular takes
 * a slow path to an error. *memory holds the gap of our map around the address. */
static bool ask_driver(uint64_t address, struct spy_memory *memory)
{
	static const int attributes[] = {ATTR_MEMORY_TYPE, ATTR_IS_MANAGED, ATTR_RANGE_START,
					 ATTR_RANGE_SIZE};
	get_attributes *ask = (get_attributes *)spy_resolve_driver(SPY_FN_cuPointerGetAttributes);
	uint32_t type = 0, managed = 0;
	uint64_t start = 0, size = 0;
	void *data[] = {&type, &managed, &start, &size};

	if (!ask || ask(4, attributes, data, address))
		return false;
	/* by the page, but not beyond what is surely not registered */
	if (type == MEMORYTYPE_NONE) {
		uint64_t page = address / PAGE * PAGE;

		memory->kind = SPY_MEM_PAGEABLE;
		memory->lo = memory->lo > page ? memory->lo : page;
		memory->hi = memory->hi < page + PAGE ? memory->hi : page + PAGE;
		return true;
	}
	memory->kind = (uint8_t)(managed                    ? SPY_MEM_MANAGED
				 : type == MEMORYTYPE_HOST  ? SPY_MEM_PINNED
				 : type == MEMORYTYPE_ARRAY ? SPY_MEM_ARRAY
							    : SPY_MEM_DEVICE);
	memory->lo = start <= address && address - start < size ? start : address;
	memory->hi = memory->lo == start && size ? start + size : address + 1;
	if (memory->kind == SPY_MEM_DEVICE)
		ask_where(ask, address, memory);
	return true;
}

enum spy_memory_kind spy_memory_ask(struct spy_thread *thread, struct spy_inspect_cache *cache,
				    uint64_t address, uint64_t bytes)
{
	enum spy_memory_kind kind = spy_memory_kind(cache, address, bytes);
	uint64_t generation, begun;
	struct spy_memory memory;

	if (kind != SPY_MEM_UNKNOWN)
		return kind;
	begun = spy_overhead_begin();
	generation = look_up(address, &memory);
	if (memory.kind != SPY_MEM_UNKNOWN || ask_driver(address, &memory))
		remember(cache, address, &memory, generation);
	spy_overhead_end(thread, begun);
	if (memory.kind == SPY_MEM_UNKNOWN)
		return SPY_MEM_UNKNOWN;
	/* Does the other end lie in the same kind? Another thread may have changed the map since,
	 * and then the cache has forgotten; what the driver said was true all the same. */
	kind = spy_memory_kind(cache, address, bytes);
	return kind == SPY_MEM_UNKNOWN ? memory.kind : kind;
}
