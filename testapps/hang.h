/*
 * testapps/hang.h: what the parts of `hang` share: the variants, each of which is a crew's work.
 */
#ifndef TESTAPPS_HANG_H
#define TESTAPPS_HANG_H

#include <stdbool.h>
#include <cuda_runtime_api.h>
#include "workers.h"
#include "ranks.h"

enum { HANG_THREADS = 3, HANG_BLOCK_BYTES = 1 << 20 };

/* A thread or a rank of a variant. */
struct stuck {
	cudaStream_t stream;
	void *device, *pinned;
	struct nccl_id id;
	bool left_out; /* there is no NCCL */
	double waited_ms; /* its longest wait */
	unsigned wrong; /* results */
};

struct hang {
	const char *name;
	long threads, processes;
	void (*prepare)(struct worker *worker);
	void (*work)(struct worker *worker);
};

extern long hang_seconds, hang_ranks;
extern const struct crew *hang_crew; /* in a process of it */

/* For all variants: a stream and two blocks of HANG_BLOCK_BYTES. */
void hang_prepare(struct worker *worker);

/* hang_rank.c: a rank that does not come to a collective operation. */
void rank_prepare(struct worker *worker);
void rank_work(struct worker *worker);

#endif
