/*
 * shim/inspect/inspect.h: what is learnt from arguments.
 *
 * An inspector is a row of inspectors.def: functions to run before and after the real call, and the
 * places of the arguments. Rows are named in the last column of entrypoints.def. Everything here
 * runs on the application's thread, inside its call, before the clock of the call starts or after
 * it has stopped. It must not fail, and must not touch outputs unless the call succeeded and the
 * pointer is not NULL.
 */
#ifndef CUDASPY_SHIM_INSPECT_H
#define CUDASPY_SHIM_INSPECT_H

#include "state/call.h"

#define SPY_NO_ARG (-1)

struct spy_inspector {
	const char *name;
	/*
	 * Before the real call; may be NULL. Fills frame->details; leaves details.event alone if
	 * there is nothing to record. Runs for nested calls too when stateful is set, else only for
	 * the outermost call that has an inspector.
	 */
	void (*before)(struct spy_frame *frame, const struct spy_inspector *self);
	/* After it, for any result; may be NULL. */
	void (*after)(struct spy_frame *frame, const struct spy_inspector *self);
	bool stateful; /* keeps memory.c or a thread's shadow up to date: run at every depth */
	/* Places of the arguments in words (spy_word), SPY_NO_ARG where there is none; what each
	 * of the eight means is the functions' own affair, inspectors.def names them. */
	int8_t at[8];
	uint8_t a, b; /* small constants of the row: a direction, a form, a kind, an element size */
};

/* The rows of inspectors.def, numbered in order; 0 is `none`. An entry point that names a row which
 * does not exist does not compile. */
enum spy_inspector_id {
	SPY_INSPECTOR_none,
#define INSPECTOR(name, ...) SPY_INSPECTOR_##name,
#include "inspect/inspectors.def"
	SPY_INSPECTOR_COUNT
};

/* Index: enum spy_inspector_id. Row 0 does nothing: before and after are NULL. */
extern const struct spy_inspector spy_inspectors[SPY_INSPECTOR_COUNT];

/* Does a function number mean the per-thread default stream by stream 0 (_ptsz, _ptds)? */
extern const uint8_t spy_fn_per_thread[];

/* ---- what inspectors keep for each thread --------------------------------------------------- */

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

/* In a forked child, before anything else: frees the tables' locks, whose holders were left
 * behind in the parent. */
void spy_inspect_forked(void);

/*
 * Before a forked child records anything: forgets memory, handles and contexts; keeps what the ELF
 * constructors registered. False: a change of a table was interrupted by the signal handler that
 * forked, and will go on when it returns: not yet. By one thread at a time.
 */
bool spy_inspect_reset(void);

/* Is any stream being captured? */
bool spy_stream_captures(void);

/* ---- what inspectors may ask of the rest of the shim ---------------------------------------- */

/* The current thread's shadows; owned by inspect_context.c, kept in struct spy_thread. */
uint8_t spy_thread_device(struct spy_thread *thread); /* SPY_DEVICE_NONE unknown */
void spy_thread_set_device(struct spy_thread *thread, uint8_t device, uint16_t context);

/* The real function of a driver row (enum spy_fn), for our own questions; NULL if this process has
 * none. Calls through it are not recorded. */
void *spy_resolve_driver(int fn);

/* Our own slow work: what runs between these two is booked to cudaspy, not to the application. */
uint64_t spy_overhead_begin(void);
void spy_overhead_end(struct spy_thread *thread, uint64_t begun);

/* Number of a kernel name; writes the SPY_EV_KERNEL record the first time. 0 if it cannot. Slow:
 * keep the number with the handle. name is copied, may be NULL (returns 0). */
uint32_t spy_kernel_number(const char *name);

/* How many GPUs the process sees, 0: unknown. */
extern int spy_gpus;

static inline bool spy_may_see_several_gpus(void)
{
	return __atomic_load_n(&spy_gpus, __ATOMIC_RELAXED) != 1;
}

/* Writes a note into the session's stream. Slow. */
void spy_note(enum spy_note note, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Has any session begun in this process? Registration runs before there is one. */
bool spy_session_active(void);

/* For cuGetProcAddress and its relatives (wrap.c): the stub to hand out instead of a real
 * function that was asked for as `name`; returns `real` itself if it has no row. */
void *spy_wrap(const char *name, void *real);

#endif
