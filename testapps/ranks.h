/*
 * testapps/ranks.h: what the parts of `ranks` share: how a rank's numbers become the sum of all ranks'
 * (ranks_nccl.c, ranks_shared.c), and what makes one rank late (ranks_straggler.c).
 */
#ifndef TESTAPPS_RANKS_H
#define TESTAPPS_RANKS_H

#include <stdbool.h>
#include <cuda_runtime_api.h>

/* ---- through NCCL, if libnccl.so.2 can be loaded ---- */

enum { NCCL_ID_BYTES = 128 };
struct nccl_id {
	char bytes[NCCL_ID_BYTES];
};

/* Before CUDA is used: the variables that launchers set, and with more ranks than GPUs NCCL_HOSTID. */
void nccl_name_rank(int rank, int ranks, int gpus);
bool nccl_load(void); /* false: there is none */
void nccl_make_id(struct nccl_id *id);
void nccl_join(const struct nccl_id *id, int rank, int ranks);
void nccl_sum(const int *in, int *sum, size_t count, cudaStream_t stream);
void nccl_send(const int *in, size_t count, int rank, cudaStream_t stream);
void nccl_receive(int *out, size_t count, int rank, cudaStream_t stream);
/* All-to-all, in one kernel: each rank gets the part of its own number of all others' numbers, and of its own. */
void nccl_exchange(const int *in, int *out, size_t count, int rank, int ranks, cudaStream_t stream);
void nccl_check(void); /* dies if an operation has failed */
void nccl_leave(void);

/* ---- through memory that the processes share, where the host adds ---- */

void shared_make(int ranks, size_t count); /* in the main process */
void shared_join(void);
void shared_sum(const int *in, int *sum, size_t count, int rank, int ranks, cudaStream_t stream);
void shared_leave(void);

/* ---- the straggler: RANK:CAUSE[:EVERY[:MS]] ---- */

struct straggler {
	int rank; /* -1: none */
	const char *cause; /* free, load, sync, cpu, nap, turns, kernel or uneven */
	long every; /* steps */
	double ms; /* by how much it is late */
	long ranks, steps; /* of the job: for turns */
};

void straggler_read(const char *text,
		    struct straggler *straggler); /* ends the program if it is wrong */
bool straggler_is_late(const struct straggler *straggler, int rank, long step);
void straggler_prepare(const struct straggler *straggler, int rank);
/* What all ranks do, now one and now another for so much longer. */
void take_turn(bool longer, double ms);
/* Before the step's kernels, and behind them. */
void straggler_before(const struct straggler *straggler, cudaStream_t stream);
void straggler_behind(const struct straggler *straggler, cudaStream_t stream);
double straggler_kernel_ms(const struct straggler *straggler); /* longer than others' */

#endif
