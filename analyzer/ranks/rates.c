/*
 * analyzer/ranks/rates.c: how fast operations move data between ranks when all of these are there. Called after the last record.
 */
#include "ranks.h"

/*
 * How many bytes each link between the ranks has to carry for one operation, as NCCL's own tests count them (bus bandwidth:
 * PERFORMANCE.md of nccl-tests), so that operations and numbers of ranks can be compared. 0: unknown.
 */
static double bus_bytes(const struct rank_group *g)
{
	double ranks = g->comm_ranks, bytes = (double)g->bytes;

	if (ranks < 2 || g->graphs)
		return 0;
	switch (g->func) {
	case SPY_NCCL_ALL_REDUCE:
		return bytes * 2 * (ranks - 1) / ranks;
	case SPY_NCCL_ALL_GATHER: /* their bytes are those of one rank */
	case SPY_NCCL_REDUCE_SCATTER:
		return bytes * (ranks - 1);
	case SPY_NCCL_BROADCAST:
	case SPY_NCCL_REDUCE:
		return bytes;
	default:
		return 0;
	}
}

#define RATE_ERRORS \
	2 /* an operation takes so many times the clocks' error: else its time is not known */
#define RATE_LEAST_BYTES (1 << 20) /* what is smaller takes as long as it takes to begin */

double rank_group_rate(const struct ranks *ranks, const struct rank_group *g)
{
	double ns = (double)g->transfer_ns / (double)(g->operations ?: 1);

	if (g->bytes < RATE_LEAST_BYTES || ns <= 0 ||
	    ns < RATE_ERRORS * (double)ranks->align_error_ns)
		return 0;
	return bus_bytes(g) / ns * 1e9;
}
