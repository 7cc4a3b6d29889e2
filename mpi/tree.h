/*
 * mpi/tree.h: from a digest in each rank to one of all of them in rank 0.
 */
#ifndef CUDASPY_MPI_TREE_H
#define CUDASPY_MPI_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include "digest/digest.h"

#define TREE_PROBLEMS 4096 /* bytes of text about what could not be read */

/* What a rank has, and what became of what it was to read: its own, and of those that have sent it theirs. */
struct tree_state {
	struct digest *digest;
	uint64_t read, left_out; /* groups of traces, digests */
	bool differ; /* a rank of the job is in two digests, and differs: there is no result */
	char problems[TREE_PROBLEMS]; /* lines: what was left out */
	uint64_t sent_bytes; /* of this rank alone */
};

/* A line about something that was left out. */
void tree_problem(struct tree_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Called by all ranks; afterwards rank 0 has everything. */
void tree_reduce(struct tree_state *state);

#endif
