/*
 * analyzer/expect/gpu_wait.h: what a call may wait for on the GPU, and whether its caller could
 * know: the contracts of include/cudaspy/contract.h, applied to a record. A wait for anything else
 * (a lock, the kernel module, a processor) has nothing to do with contracts.
 */
#ifndef CUDASPY_GPU_WAIT_H
#define CUDASPY_GPU_WAIT_H

#include "cudaspy/contract.h"
#include "trace/record.h"

/* For which work. */
enum gpu_wait {
	GPU_WAIT_NONE,
	GPU_WAIT_STREAM, /* of the record's stream */
	GPU_WAIT_EVENT, /* before the record's event */
	GPU_WAIT_DEVICE, /* of all streams of the record's device */
};

enum gpu_wait_sort {
	GPU_WAIT_NOT, /* there is none */
	GPU_WAIT_INTENDED, /* what such a call is made for */
	GPU_WAIT_HIDDEN, /* the call promises nothing of the kind */
	GPU_WAIT_QUEUE, /* only for room in the stream's launch queue */
};

struct gpu_waits {
	uint8_t what; /* enum gpu_wait */
	uint8_t sort; /* enum gpu_wait_sort */
	const char *why; /* part of a sentence, for reports; NULL without a wait */
};

/* For gpu_wait_of. */
extern const struct gpu_waits gpu_waits_by_contract[SPY_CONTRACT_COUNT], gpu_waits_launch_blocks;
const struct gpu_waits *gpu_wait_of_copy(const struct spy_rec_copy *copy, uint8_t contract);
const struct gpu_waits *gpu_wait_of_memory(const struct spy_rec_memory *memory, uint8_t contract);

/* A call, of a copy or about memory if they are not NULL, `contract` (enum spy_contract) its function's; settings: of its
 * trace. */
static inline const struct gpu_waits *gpu_wait_of_call(const struct spy_rec_copy *copy,
						       const struct spy_rec_memory *memory,
						       uint8_t contract,
						       const struct cuda_settings *settings)
{
	if (unlikely(settings->launches_block) && contract == SPY_CONTRACT_LAUNCH)
		return &gpu_waits_launch_blocks;
	if (unlikely(settings->loads_eagerly) && contract == SPY_CONTRACT_LIBRARY)
		contract = SPY_CONTRACT_MODULE; /* measured */
	if (copy)
		return gpu_wait_of_copy(copy, contract);
	return memory ? gpu_wait_of_memory(memory, contract) : &gpu_waits_by_contract[contract];
}

static inline const struct gpu_waits *gpu_wait_of(const struct record *record, uint8_t contract,
						  const struct cuda_settings *settings)
{
	return gpu_wait_of_call(record_copy(record), record_memory(record), contract, settings);
}

/* A wait after which the work waited for is done: not one for room in the queue. */
static inline bool gpu_wait_is_for_work(const struct gpu_waits *waits)
{
	return waits->sort == GPU_WAIT_INTENDED || waits->sort == GPU_WAIT_HIDDEN;
}

/* The call has returned: is what it waits for done? Of hidden waits only some are certain: a copy from pageable memory may
 * have been staged, and not every load of code or change of a limit waits. */
bool gpu_wait_ended(const struct record *record, uint8_t contract, const struct gpu_waits *waits);

#endif
