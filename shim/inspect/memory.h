/*
 * shim/inspect/memory.h: which memory is pinned, registered, managed or a device's.
 *
 * Inspectors tell it of allocations (inspect_memory.c) and ask it about the two ends of a copy
 * (inspect_copy.c), on the application's threads. What it does not know it can ask of the driver.
 *
 * The kind of a piece of memory is the kind of its first byte. That is how the driver sees it too
 * (H200, driver 580): a copy that starts in pageable memory and ends in a registered range stages
 * and blocks like any pageable one; one that starts in a registered range and ends outside fails
 * with cudaErrorInvalidValue, and is what SPY_MEM_MIXED stands for here. Registrations count by the
 * byte, not by the page. Stream-ordered memory, mapped VMM memory and memory of another process are
 * SPY_MEM_DEVICE. On machines where the GPU reads pageable memory (ATS, HMM) pageable stays
 * pageable: the copy still stages.
 */
#ifndef CUDASPY_SHIM_MEMORY_H
#define CUDASPY_SHIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"
#include "inspect/inspect.h"
#include "lib/lock.h"

#define SPY_CONTEXT_NONE UINT16_MAX

struct spy_memory {
	uint64_t lo, hi; /* [lo, hi) */
	uint8_t kind; /* enum spy_memory_kind */
	uint8_t device; /* it was allocated on, SPY_DEVICE_NONE unknown */
	/* number of the context it goes away with, 0 unknown, SPY_CONTEXT_NONE with none */
	uint16_t context;
	uint8_t access; /* enum spy_access */
};

/* Live memory never overlaps, so an older range that the new one covers was freed unseen, and is
 * removed. An empty range or an unknown kind is ignored. */
void spy_memory_add(const struct spy_memory *range);

/* Forgets the range that begins at an address. False, and *was untouched, if there is none. */
bool spy_memory_remove(uint64_t address, struct spy_memory *was);

/* Forgets every range that touches [lo, hi). */
void spy_memory_remove_span(uint64_t lo, uint64_t hi);

/* Forgets what went away with a context: its ranges, and those of its device whose context we do
 * not know. Context 0, unknown: all of the device's that go away with any. */
void spy_memory_remove_context(uint8_t device, uint16_t context);

/* The range an address lies in, by our own map. Lock-free. */
bool spy_memory_find(uint64_t address, struct spy_memory *found);

/* Counts up at each change of the map: what was kept before is stale. */
extern struct spy_memory_date {
	uint64_t generation;
} __attribute__((aligned(64))) spy_memory_date; /* beside nothing that other calls read */

#define SPY_MEMORY_PAGE 4096ull

static inline bool spy_memory_hits(const struct spy_memory_hit *hit, uint64_t address)
{
	return hit->lo <= address && address < hit->hi &&
	       hit->generation ==
		       (uint32_t)__atomic_load_n(&spy_memory_date.generation, __ATOMIC_ACQUIRE);
}

/* The two places where a thread keeps what it learnt about an address, so that the two ends of a
 * copy never take turns in one. Buffers are aligned: mix all bits. */
static inline struct spy_memory_hit *spy_memory_pair(struct spy_inspect_cache *cache,
						     uint64_t address)
{
	uint64_t hash = address / SPY_MEMORY_PAGE * 0x9e3779b97f4a7c15ull;

	return &cache->memory[(hash >> 32) % (SPY_MEMORY_HITS / 2) * 2];
}

/* The one of them that has the address, or one that has not. */
static inline const struct spy_memory_hit *spy_memory_hit(struct spy_inspect_cache *cache,
							  uint64_t address)
{
	const struct spy_memory_hit *pair = spy_memory_pair(cache, address);

	return spy_memory_hits(pair, address) ? pair : pair + 1;
}

enum spy_memory_kind spy_memory_kind_slow(struct spy_inspect_cache *cache, uint64_t address,
					  uint64_t bytes);

/* Kind of [address, address + bytes) by our map and by answers the thread got before;
 * SPY_MEM_UNKNOWN: the driver has to be asked. The hot path: no lock, no system call. */
static inline enum spy_memory_kind spy_memory_kind(struct spy_inspect_cache *cache,
						   uint64_t address, uint64_t bytes)
{
	const struct spy_memory_hit *hit = spy_memory_hit(cache, address);

	if (spy_memory_hits(hit, address) && bytes <= hit->hi - address)
		return hit->kind;
	return spy_memory_kind_slow(cache, address, bytes);
}

/* The memory whose kind the thread has just learnt, NULL: unknown. */
static inline const struct spy_memory_hit *spy_memory_known(struct spy_inspect_cache *cache,
							    uint64_t address)
{
	const struct spy_memory_hit *hit = spy_memory_hit(cache, address);

	return spy_memory_hits(hit, address) ? hit : NULL;
}

/* As spy_memory_kind, but asks the driver if need be, and keeps the answer in the cache until the
 * map changes. Books its time as overhead. To be called after a CUDA call of this thread succeeded:
 * then the driver is initialised in this very process. The question is harmless in every state of
 * a stream capture and needs no context (measured: all three modes, capturing and other threads).
 */
enum spy_memory_kind spy_memory_ask(struct spy_thread *thread, struct spy_inspect_cache *cache,
				    uint64_t address, uint64_t bytes);

/* Empties the map in a forked child. */
void spy_memory_reset(void);

void spy_memory_locks(spy_visit_lock *visit);

#endif
