/*
 * shim/describe/ranks.h: which rank of a job the process is, as its launcher says in the environment. Used when a
 * session begins: a program may set the variables itself, as launchers in Python do.
 */
#ifndef CUDASPY_SHIM_RANKS_H
#define CUDASPY_SHIM_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#define SPY_JOB_MAX 128

struct spy_rank {
	const char *from; /* the variable that says the rank; NULL: none does */
	uint32_t rank;
	bool has_local_rank, has_world_size, has_restarts;
	uint32_t local_rank, world_size, restarts;
	char job[SPY_JOB_MAX]; /* empty: unknown */
};

void spy_rank_read(struct spy_rank *rank);

#endif
