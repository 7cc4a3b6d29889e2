/*
 * tests/sim/span.h: what happens around every exported function of the simulator: the truth record,
 * error injection, and the thread's state that driver and runtime share. Included by driver and
 * runtime; the code behind it (truth.c, script.c) lives in the driver, and the runtime reaches it
 * through the table that cuGetExportTable hands out for sim_private_uuid, as a real runtime reaches
 * its driver's private tables.
 */
#ifndef SIM_SPAN_H
#define SIM_SPAN_H

#include "sim_types.h"

enum sim_fn {
#define ENTRY(name, layer, record, contract, inspector) FN_##name,
#include "cudaspy/entrypoints.def"
#undef ENTRY
	FN_COUNT
};

enum sim_mem { MEM_NONE, MEM_PAGEABLE, MEM_PINNED, MEM_DEVICE, MEM_MANAGED, MEM_ARRAY };

/* What one call did; filled in while the call runs, written to the truth file when it ends. */
struct sim_span {
	struct sim_span *outer;
	enum sim_fn fn;
	int result;
	uint64_t begin_ns, end_ns;
	uint64_t bytes;
	uint64_t stream;
	uint64_t gpu_wait_ns; /* blocked for simulated GPU work */
	uint64_t lock_wait_ns; /* blocked for locks, all together */
	uint64_t worst_ns; /* the longest of these, and who held that lock */
	int holder_tid;
	short lock; /* sim_lock + 1, 0: none */
	short lock_dev;
	unsigned char src, dst; /* enum sim_mem */
	unsigned char depth;
	bool unimplemented;
	bool staged; /* a copy between GPUs that went through the host */
	bool holding; /* what the script says to hold for the whole call */
	short hold_dev;
	uint64_t ioctl_ns; /* to be spent in the kernel module before the call ends */
	unsigned correlation; /* as CUPTI counts calls; 0: nobody asks */
	struct sim_job *jobs; /* submitted inside an outermost call (jobs.c) */
};

/* One thread as driver and runtime both see it. */
struct sim_thread {
	struct sim_span *span; /* innermost call in progress, only while spans are on */
	struct sim_ctx *ctx; /* top of the context stack */
	int tid;
	int depth;
};

struct sim_private {
	size_t size;
	struct sim_thread *(*thread)(void);
	bool *spans_on; /* truth is written or errors are injected: span_open and span_close matter */
	int (*span_open)(struct sim_span *span, enum sim_fn fn);
	int (*span_close)(struct sim_span *span, int result);
	void (*unimplemented)(enum sim_fn fn);
	/* Tells the size of a __device__ variable, which the simulated driver cannot read from code. */
	void (*declare_global)(void *library, const char *name, size_t bytes, bool managed);
	/* The runtime's lock around the making of contexts. */
	void (*lock)(void);
	void (*unlock)(void);
};

static const unsigned char sim_private_uuid[16] = {0x73, 0x70, 0x79, 0x73, 0x69, 0x6d, 0x2d, 0x70,
						   0x72, 0x69, 0x76, 0x61, 0x74, 0x65, 0x2d, 0x31};
/* Tables that the simulated runtime asks for, and goes on without. */
static const unsigned char sim_missing_uuids[2][16] = {{0x6b, 0x01}, {0xa0, 0x02}};

#endif
