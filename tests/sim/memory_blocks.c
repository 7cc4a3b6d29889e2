/*
 * tests/sim/memory_blocks.c: whose memory an address is. One range of address space is divided into
 * arenas: one for each device, one for pinned, one for managed memory, one for mapped (VMM) memory; an
 * arena's map finds the block of an address in one step. Device memory is host memory, so copies move
 * bytes. Host memory registered later is kept in a sorted table. Any thread, under one spin lock.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	GRANULE = 64 << 10,
	HUGE_FROM = 4 << 20,
	ARENA_PINNED = SIM_MAX_DEVICES,
	ARENA_MANAGED,
	ARENA_MAPPED,
	ARENAS
};

#define ARENA_BYTES (32ull << 30)
#define MAPPED_BYTES \
	(8 * \
	 ARENA_BYTES) /* address space is all that it takes: llama.cpp reserves 32 GiB a GPU and context */

struct arena {
	uint64_t base, bytes;
	uint64_t used; /* never handed out beyond this */
	struct sim_block **map; /* block of each granule */
	struct sim_block *freed; /* blocks to be used again, by any size that fits exactly */
};

static struct arena arenas[ARENAS];
static uint64_t arenas_begin, arenas_end;
static int arena_order[ARENAS], arena_cnt; /* which arena lies at the nth place of the range */
static struct sim_spin spin;
static struct sim_block *block_pool;
static atomic_ullong next_id = 1;

struct range {
	uint64_t begin, end;
	struct sim_block *block;
};
static struct range *ranges;
static unsigned range_cnt, range_cap;
static atomic_uint range_hint;

void sim_memory_init(void)
{
	int cnt = 0;
	uint64_t bytes;
	char *all;

	if (arenas_begin)
		return;
	for (int i = 0; i < ARENAS; i++)
		if (i >= SIM_MAX_DEVICES || i < sim_script.gpus)
			arena_order[cnt++] = i;
	arena_cnt = cnt;
	/* The last is that of mapped memory. */
	bytes = (uint64_t)(cnt - 1) * ARENA_BYTES + MAPPED_BYTES;
	all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (all == MAP_FAILED) {
		fprintf(stderr, "sim: no address space for %d arenas\n", cnt);
		abort();
	}
	for (int i = 0; i < cnt; i++) {
		struct arena *arena = &arenas[arena_order[i]];

		arena->base = (uint64_t)(uintptr_t)all + (uint64_t)i * ARENA_BYTES;
		arena->bytes = arena == &arenas[ARENA_MAPPED] ? MAPPED_BYTES : ARENA_BYTES;
		arena->map = mmap(NULL, arena->bytes / GRANULE * sizeof(struct sim_block *),
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (arena->map == MAP_FAILED)
			abort();
	}
	arenas_end = (uint64_t)(uintptr_t)all + bytes;
	arenas_begin = (uint64_t)(uintptr_t)all;
}

static struct arena *arena_of(uint64_t address)
{
	uint64_t place = (address - arenas_begin) / ARENA_BYTES;

	return &arenas[arena_order[place < (uint64_t)arena_cnt ? place : (uint64_t)arena_cnt - 1]];
}

/* Sizes come in steps of an eighth, so that freed blocks fit again. */
static uint64_t round_size(uint64_t bytes)
{
	uint64_t step = GRANULE;

	while (step * 16 < bytes)
		step *= 2;
	return (bytes + step - 1) / step * step;
}

/* Blocks are never given back to malloc: whoever looks one up may still be reading it. They come in
 * chunks that a leak checker can see, which it could not through the maps. */
static struct sim_block *block_alloc(void)
{
	static struct chunk {
		struct chunk *next;
		struct sim_block blocks[63];
	} * chunks;
	struct sim_block *block;

	if (!block_pool) {
		struct chunk *chunk = calloc(1, sizeof(*chunk));

		if (!chunk)
			abort();
		chunk->next = chunks;
		chunks = chunk;
		for (size_t i = 0; i < sizeof(chunk->blocks) / sizeof(chunk->blocks[0]); i++) {
			chunk->blocks[i].next_free = block_pool;
			block_pool = &chunk->blocks[i];
		}
	}
	block = block_pool;
	block_pool = block->next_free;
	memset(block, 0, sizeof(*block));
	return block;
}

static int carve(struct sim_block **out, struct arena *arena, uint64_t bytes)
{
	uint64_t size = round_size(bytes ? bytes : 1), first;
	struct sim_block **p, *block = NULL;

	sim_spin_lock(&spin);
	for (p = &arena->freed; *p; p = &(*p)->next_free)
		if ((*p)->granule_bytes == size) {
			block = *p;
			*p = block->next_free;
			break;
		}
	if (!block) {
		if (size > arena->bytes - arena->used) {
			sim_spin_unlock(&spin);
			return SIM_OUT_OF_MEMORY;
		}
		block = block_alloc();
		block->base = arena->base + arena->used;
		arena->used += size;
		if (size >= HUGE_FROM) /* a GPU has no page faults: the fewer the better */
			madvise((void *)(uintptr_t)block->base, size, MADV_HUGEPAGE);
	} else {
		uint64_t base = block->base;

		memset(block, 0, sizeof(*block));
		block->base = base;
	}
	block->granule_bytes = size;
	block->bytes = bytes;
	block->id = atomic_fetch_add(&next_id, 1);
	first = (block->base - arena->base) / GRANULE;
	for (uint64_t i = 0; i < size / GRANULE; i++)
		arena->map[first + i] = block;
	sim_spin_unlock(&spin);
	*out = block;
	return SIM_OK;
}

int sim_block_new(struct sim_block **out, enum sim_mem kind, int dev, uint64_t bytes)
{
	struct arena *arena = &arenas[kind == MEM_DEVICE   ? dev
				      : kind == MEM_PINNED ? ARENA_PINNED
							   : ARENA_MANAGED];
	int rc;

	if (kind == MEM_DEVICE) {
		uint64_t used = atomic_fetch_add(&sim_devices[dev].used_bytes, bytes) + bytes;

		if (used > sim_script.memory_bytes) {
			atomic_fetch_sub(&sim_devices[dev].used_bytes, bytes);
			return SIM_OUT_OF_MEMORY;
		}
	}
	rc = carve(out, arena, bytes);
	if (rc) {
		if (kind == MEM_DEVICE)
			atomic_fetch_sub(&sim_devices[dev].used_bytes, bytes);
		return rc;
	}
	(*out)->kind = kind;
	(*out)->dev = dev;
	return SIM_OK;
}

uint64_t sim_reserve_va(uint64_t bytes, struct sim_block **out)
{
	if (carve(out, &arenas[ARENA_MAPPED], bytes))
		return 0;
	(*out)->kind = MEM_DEVICE;
	(*out)->vmm = true;
	return (*out)->base;
}

void sim_block_free(struct sim_block *block)
{
	struct arena *arena;
	uint64_t first;

	arena = arena_of(block->base);
	/* Memory of a freed block reads as zero next time, and is the system's until then. */
	if (!block->vmm && block->granule_bytes >= 1 << 20)
		madvise((void *)(uintptr_t)block->base, block->granule_bytes, MADV_DONTNEED);
	if (block->kind == MEM_DEVICE && !block->vmm)
		atomic_fetch_sub(&sim_devices[block->dev].used_bytes, block->bytes);
	sim_spin_lock(&spin);
	first = (block->base - arena->base) / GRANULE;
	for (uint64_t i = 0; i < block->granule_bytes / GRANULE; i++)
		arena->map[first + i] = NULL;
	block->next_free = arena->freed;
	arena->freed = block;
	sim_spin_unlock(&spin);
}

/* Index of the first range that ends behind the address. */
static unsigned range_find(uint64_t address)
{
	unsigned lo = 0, hi = range_cnt;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (ranges[mid].end <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct sim_block *sim_block_of(uint64_t address)
{
	struct sim_block *block = NULL;

	if (address >= arenas_begin && address < arenas_end) {
		struct arena *arena = arena_of(address);

		sim_spin_lock(&spin);
		block = arena->map[(address - arena->base) / GRANULE];
		sim_spin_unlock(&spin);
	} else if (atomic_load_explicit(&range_hint, memory_order_relaxed)) {
		unsigned i;

		sim_spin_lock(&spin);
		i = range_find(address);
		if (i < range_cnt && ranges[i].begin <= address)
			block = ranges[i].block;
		sim_spin_unlock(&spin);
	}
	return block;
}

enum sim_mem sim_mem_at(uint64_t address, int *dev)
{
	struct sim_block *block = sim_block_of(address);

	if (dev)
		*dev = !block ? -1 : block->vmm ? sim_mapped_on(address, NULL) : block->dev;
	return block ? block->kind : MEM_PAGEABLE;
}

int sim_register_range(void *ptr, size_t bytes, unsigned flags)
{
	uint64_t begin = (uint64_t)(uintptr_t)ptr;
	unsigned i;

	if (!bytes || sim_mem_at(begin, NULL) != MEM_PAGEABLE)
		return bytes ? SIM_ALREADY_REGISTERED : SIM_INVALID_VALUE;
	sim_spin_lock(&spin);
	i = range_find(begin);
	if (i < range_cnt && ranges[i].begin < begin + bytes) {
		sim_spin_unlock(&spin);
		return SIM_ALREADY_REGISTERED;
	}
	if (range_cnt == range_cap) {
		range_cap = range_cap ? 2 * range_cap : 64;
		ranges = realloc(ranges, range_cap * sizeof(*ranges));
		if (!ranges)
			abort();
	}
	memmove(&ranges[i + 1], &ranges[i], (range_cnt - i) * sizeof(*ranges));
	ranges[i] = (struct range){begin, begin + bytes, block_alloc()};
	ranges[i].block->base = begin;
	ranges[i].block->bytes = bytes;
	ranges[i].block->kind = MEM_PINNED;
	ranges[i].block->flags = flags;
	ranges[i].block->registered = true;
	ranges[i].block->id = atomic_fetch_add(&next_id, 1);
	range_cnt++;
	atomic_store_explicit(&range_hint, range_cnt, memory_order_relaxed);
	sim_spin_unlock(&spin);
	return SIM_OK;
}

int sim_unregister_range(void *ptr)
{
	uint64_t begin = (uint64_t)(uintptr_t)ptr;
	int rc = SIM_NOT_REGISTERED;
	unsigned i;

	sim_spin_lock(&spin);
	i = range_find(begin);
	if (i < range_cnt && ranges[i].begin == begin) {
		ranges[i].block->next_free = block_pool;
		block_pool = ranges[i].block;
		range_cnt--;
		memmove(&ranges[i], &ranges[i + 1], (range_cnt - i) * sizeof(*ranges));
		atomic_store_explicit(&range_hint, range_cnt, memory_order_relaxed);
		rc = SIM_OK;
	}
	sim_spin_unlock(&spin);
	return rc;
}
