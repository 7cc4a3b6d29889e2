/*
 * analyzer/cost/cost.h: what recording costs the program, from its cost windows: in which some of its calls were recorded,
 * and others only counted (include/cudaspy/trace_format.h: struct spy_rec_cost).
 */
#ifndef CUDASPY_COST_H
#define CUDASPY_COST_H

#include "account/account.h"
#include "cudaspy/trace_format.h"
#include "estimate.h"
#include "model/model.h"

/* The calls of one function in a window. */
struct cost_cell {
	uint32_t fn, calls;
};

/* What a thread had of a window. */
struct cost_window {
	uint64_t number; /* as in spy_rec_cost */
	struct thread *thread;
	double ns; /* 0: not known well enough */
	size_t first_cell;
	uint32_t n_cells, calls;
	uint8_t kind; /* enum spy_cost_kind */
};

/* How many calls of each function a thread had made, as far as recorded, when its last window ended. */
struct cost_seen {
	uint32_t *fns;
	uint64_t *calls;
	size_t n;
};

struct cost_study {
	const struct accounting *accounts;
	struct cost_window *windows; /* as they came; in the end by number */
	size_t n;
	struct cost_cell *cells;
	size_t n_cells;
	struct cost_seen *seen; /* by thread index */
	size_t n_seen;
	unsigned int thinned; /* of 2 to that power blocks one is kept: there were too many */
	/* Calls that were only counted. */
	uint64_t counted;
	uint64_t *counted_by_fn;
	size_t n_functions;
};

void cost_begin(struct cost_study *cost, const struct accounting *accounts);
void cost_release(struct cost_study *cost);

/* A record of the kind SPY_EV_COST; behind the accounting. */
void cost_see(struct cost_study *cost, struct model *model, const struct record *record);

/* Adds what the parts of the set have collected, before cost_finish. False: it is too much to be kept together. */
struct join;
bool cost_join(struct cost_study *cost, struct cost_study *const *parts, struct join *join);

/* Behind the last record. */
void cost_finish(struct cost_study *cost);

/* ---- when all is read ----------------------------------------------------------------------- */

/* Whose calls are compared. */
struct cost_of {
	const struct thread *thread; /* NULL: of all threads */
	uint32_t fn; /* COST_ALL_FUNCTIONS: of all functions */
};

#define COST_ALL_FUNCTIONS UINT32_MAX

/* Recorded with everything, over `without`: SPY_COST_COUNTING, or without probes, or stacks. */
struct cost_estimate cost_compare(const struct cost_study *cost, const struct cost_of *of,
				  enum spy_cost_kind without);

/* Calls in all windows that are compared, and the time of these: of all threads that is the time of windows. */
struct cost_rate {
	uint64_t calls;
	double ns;
};

struct cost_rate cost_rate(const struct cost_study *cost, const struct cost_of *of);

#endif
