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

#include "hook/resolve.h"
#include "hook/wrap.h"
#include "record/kernel_names.h"
#include "record/notes.h"
#include "state/call.h"
#include "state/inspectors.h"
#include "state/thread.h"

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

/* Index: enum spy_inspector_id. Row 0 does nothing: before and after are NULL. */
extern const struct spy_inspector spy_inspectors[SPY_INSPECTOR_COUNT];

/* Does a function number mean the per-thread default stream by stream 0 (_ptsz, _ptds)? */
extern const uint8_t spy_fn_per_thread[];

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

#endif
