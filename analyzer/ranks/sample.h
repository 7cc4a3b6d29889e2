/*
 * analyzer/ranks/sample.h: some operations of each rank, kept as they were: for digests, in which ranks meet again that were
 * analyzed one by one.
 *
 * Which ones, the hash of what tells an operation from others decides, which is the same on all ranks: those with the least
 * hashes. So ranks that made the same operations keep the same ones, without asking each other. Beside these, those that
 * came longest after the one like it before: a slow step is slow for all ranks. Only operations that end on all ranks at
 * the same time, and have times. Off unless ranks->sample is set before the reading.
 */
#ifndef CUDASPY_RANKS_SAMPLE_H
#define CUDASPY_RANKS_SAMPLE_H

#include "ranks.h"

#define RANK_SAMPLE_LEAST 1024
#define RANK_SAMPLE_SLOW 64
#define RANK_SAMPLE_CAUSES 6
#define RANK_KINDS_MOST 64 /* kinds of operations that periods are known of */

struct rank_sampled {
	uint64_t key, comm, seq, bytes;
	uint8_t func;
	bool by_host; /* begin and end are by the host's clock */
	bool continues, first; /* as in struct rank_op */
	uint64_t submit_ns, submitted_ns; /* trace time */
	uint64_t begin_ns, end_ns; /* GPU's timer */
	uint64_t host_begin_ns, host_error_ns; /* its begin in trace time, about; 0 unknown */
	uint64_t
		period_ns; /* from the end of the one like it before to its end, GPU's timer; 0 unknown */
	uint64_t
		gap_ns; /* from the end of the member's operation before; 0 unknown, or they overlap */
	uint64_t queued_ns; /* from its submission to its begin, no less as far as clocks tell */
	uint64_t work; /* operations of the GPU submitted since the lane's operation before */
	/* What its thread did since then, the longest causes first. */
	struct rank_sampled_cause {
		uint8_t cause; /* enum idle_cause; IDLE_GPU_WORK: its thread could not submit more to its GPU */
		uint32_t
			fn; /* of IDLE_CUDA_WAIT the function that was called to wait for its GPU, … */
		uint64_t where; /* … and where (struct rank_place); else NO_FUNCTION and 0 */
		uint64_t ns;
	} causes[RANK_SAMPLE_CAUSES];
	uint32_t n_causes;
	struct idle_part part; /* the longest place of the first cause */
	const struct process *process;
};

/* All operations of a rank in a communicator. */
struct rank_comm_sum {
	uint64_t comm;
	char name[33];
	uint32_t ranks, member;
	uint64_t operations, kernel_ns, period_ns, periods;
};

struct rank_samples {
	struct rank_sampled *least, *slow; /* heaps: the first one is the next to go */
	size_t n_least, n_slow;
	struct rank_comm_sum *comms;
	size_t n_comms;
	struct rank_kind {
		uint64_t comm, bytes, end_ns, holes;
		uint8_t func;
	} kinds[RANK_KINDS_MOST];
	size_t n_kinds;
};

struct rank_instance;

/* An operation has been evaluated: before the next one of its members is. */
void rank_sample_see(struct ranks *ranks, const struct rank_instance *instance);
void rank_samples_free(struct rank_samples *samples);

/* For the garbage collection of stacks. */
size_t rank_samples_parts(const struct rank_samples *samples,
			  size_t (*see)(const struct idle_part *part));

#endif
