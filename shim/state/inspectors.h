/*
 * shim/state/inspectors.h: the inspectors' numbers, by which slots name them, and what they keep for each thread. What they do
 * is inspect/inspect.h.
 */
#ifndef CUDASPY_SHIM_INSPECTORS_H
#define CUDASPY_SHIM_INSPECTORS_H

#include <stdint.h>

/* The rows of inspectors.def, numbered in order; 0 is `none`. An entry point that names a row which
 * does not exist does not compile. */
enum spy_inspector_id {
	SPY_INSPECTOR_none,
#define INSPECTOR(name, ...) SPY_INSPECTOR_##name,
#include "inspect/inspectors.def"
	SPY_INSPECTOR_COUNT
};

#define SPY_MEMORY_HITS 64
#define SPY_KERNEL_HITS 128

/* What the map or the driver said about a range of memory (memory.c). */
struct spy_memory_hit {
	uint64_t lo, hi; /* [lo, hi) */
	uint32_t generation; /* of the map when it was so */
	uint8_t kind; /* enum spy_memory_kind */
	uint8_t device; /* it was allocated on, SPY_DEVICE_NONE unknown */
	uint8_t access; /* enum spy_access */
};

/* Number of a kernel's handle (inspect_launch.c). */
struct spy_kernel_hit {
	uint64_t handle;
	uint32_t generation; /* of the kernel table when it was so */
	uint32_t number; /* 0: its name is unknown */
};

/* Direct-mapped. Part of struct spy_thread, used by its owner alone, valid when all zero. */
struct spy_inspect_cache {
	struct spy_memory_hit memory[SPY_MEMORY_HITS];
	struct spy_kernel_hit kernels[SPY_KERNEL_HITS];
	/* what the call in progress frees, 0 nothing: not again by calls inside it */
	uint64_t unmaking;
};

#endif
