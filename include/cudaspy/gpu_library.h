/*
 * include/cudaspy/gpu_library.h: what libcudaspy.so and libcudaspy_gpu.so say to each other.
 *
 * libcudaspy_gpu.so is loaded by dlopen when GPU times are asked for (CUDASPY_GPU), and is the only one that knows
 * CUPTI: it subscribes to its activity records and hands them over as records of the trace. Both come from one build.
 */
#ifndef CUDASPY_GPU_LIBRARY_H
#define CUDASPY_GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cudaspy/gpu_windows.h"
#include "cudaspy/trace_format.h"

#define SPY_GPU_LIBRARY "libcudaspy_gpu.so"
#define SPY_GPU_LIBRARY_VERSION 2

/* libcudaspy.so. Any thread, also one of CUPTI's; several at one time. */
struct spy_gpu_recorder {
	/* Does a function of the driver's, by its name, hand work to a GPU? */
	bool (*submits)(const char *function);
	/* Number of a kernel by its mangled name; 0: none. */
	uint32_t (*kernel)(const char *name);
	uint64_t (*clock)(void); /* the trace's, in cycles */
	/* dlsym as it is: libcudaspy.so's own answers with what makes us give way (shim/gpu/slot.c). */
	void *(*symbol)(void *library, const char *name);
	/* Who took CUPTI's slot before us; empty: unknown. */
	const char *(*who_took_slot)(void);
	/* Are calls recorded now? Returns a number that changes when that does. */
	uint32_t (*turn)(bool *open);
	/* Waits until the number is another one; for a while at most. On a thread of the library's own. */
	void (*await)(uint32_t turn);
	/* Appends `count` records of `bytes` bytes each, one behind the other; fills in their times. */
	void (*write)(void *records, size_t bytes, size_t count);
};

/* libcudaspy_gpu.so: its one symbol, a struct of this type. */
#define SPY_GPU_LIBRARY_SYMBOL "cudaspy_gpu_library"

struct spy_gpu_library {
	uint32_t version; /* SPY_GPU_LIBRARY_VERSION */
	/* Once, when the driver has been initialised, on the thread that did it. The first record says what came of it.
	 * True: GPU times are, or will be, recorded. */
	bool (*start)(const struct spy_gpu_recorder *recorder,
		      const struct spy_gpu_windows *windows);
	/* Another tool is about to use CUPTI: everything that has been recorded is written, and CUPTI left alone from
	 * now on. who: for the trace. Any thread; again: no effect. */
	void (*give_way)(const char *who);
};

#endif
