/*
 * analyzer/idle/idle.h: when GPUs certainly had nothing to do, and what the threads that feed them
 * did meanwhile.
 *
 * From the moment a call proves that nothing is outstanding on a GPU (work.h: all streams, events'
 * order followed) until the next call that may hand it work begins, the GPU was idle: a lower bound,
 * for it may be idle at other times, too. The time is charged to what the thread of that next call
 * did meanwhile. A call that is known only when it returns may take such an interval back: the GPU
 * may have worked for it since it began.
 */
#ifndef CUDASPY_IDLE_H
#define CUDASPY_IDLE_H

#include "host.h"

#define IDLE_KEPT 256 /* last intervals that later calls may take back */
#define IDLE_PARTS 8

/* A GPU was idle. */
struct idle_interval {
	uint64_t begin_ns, end_ns, ns; /* ns: what is left of it */
	struct idle_charge {
		struct idle_sum *sum;
		uint64_t ns;
	} charges[IDLE_PARTS];
	size_t n_charges;
};

/* A GPU, as far as processes that were recorded use it. */
struct idle_gpu {
	const struct process **processes; /* that used it */
	size_t n_processes;
	uint8_t device; /* its ordinal in the first one */
	size_t n_busy; /* processes that have work outstanding on it */
	uint64_t since_ns; /* idle since then; 0: not, or unknown */
	uint64_t idle_ns; /* in the working phase */
	uint64_t doubt_ns; /* of that, what a call may have taken back that is kept no more */
	uint64_t waited_ns, waited_until_ns; /* threads waited for it: no less */
	struct idle_interval *intervals; /* a ring, IDLE_KEPT at most */
	size_t intervals_size;
	uint64_t n_intervals;
};

/* A process's view of it. */
struct idle_user {
	uint32_t gpu; /* index + 1; 0: it has not used it */
	uint64_t handed_over; /* operations so far */
	bool busy;
};

struct idle_gpu_name {
	uint64_t key;
	uint32_t gpu; /* index + 1 */
	UT_hash_handle hh;
};

struct idle {
	struct accounting *accounts;
	struct idle_gpu *gpus;
	size_t n_gpus;
	struct idle_gpu_name *names; /* of them, by their hash */
	struct idle_user *users; /* by work_index */
	struct host_threads threads;
	struct idle_sums sums; /* owners: idle_owner_… */
};

static inline uint64_t idle_owner_gpu(size_t gpu)
{
	return (uint64_t)1 << 32 | gpu;
}

static inline uint64_t idle_owner_thread(const struct thread *thread)
{
	return thread->index;
}

/* What its first process says of it; NULL: nothing. Valid until the next record. */
static inline const struct gpu *idle_named(const struct idle_gpu *gpu)
{
	return model_gpu(gpu->processes[0], gpu->device);
}

void idle_init(struct idle *idle, struct accounting *accounts);
void idle_release(struct idle *idle);

/* Each record that does not go the fast path, after the accounting. in_calls_ns: so long the
 * record's thread was in calls until then. */
void idle_see(struct idle *idle, const struct record *record, uint64_t in_calls_ns);

/* How long the GPU was certainly idle in its working phase; and, of its sums, what is to be taken
 * for their part of it. */
uint64_t idle_certain_ns(const struct idle_gpu *gpu);
uint64_t idle_scaled_ns(const struct idle_gpu *gpu, uint64_t ns);

#endif
