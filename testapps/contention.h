/*
 * testapps/contention.h: one call that contention.c lets several workers make at the same time, and
 * what a worker makes it with. The calls are in contention_calls.c and contention_memory.c.
 */
#ifndef TESTAPPS_CONTENTION_H
#define TESTAPPS_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <cuda_runtime_api.h>

/* All made before anybody works, so that only the calls collide. */
struct subject {
	int worker, gpu;
	int peer_cnt; /* GPUs that peer access is about: 0 to peer_cnt - 1 */
	bool opens_peers; /* it is this one's job, for its GPU, and they are not open all the time */
	cudaStream_t stream;
	int *memory, *pinned, *pageable; /* COPY_BYTES on the GPU, as many pinned, PAGEABLE_BYTES */
	int *counter; /* on the GPU: each launch adds 1 */
	int launched; /* what it should be */
};

/*
 * The functions are called by the worker's own thread, in this order: open, once (the first is
 * another), once again and again while the clock runs, right, close. open and close may be NULL.
 */
struct call {
	const char *name, *what;
	void (*once)(struct subject *subject);
	/* Makes the call once more, or looks at what it left: whether that is as it should be. */
	bool (*right)(struct subject *subject);
	unsigned iterations; /* at most, so that a trace of all workers stays within some MiB */
	/* After so many the worker waits for its stream, outside the times, so that the launch queue,
	 * about a thousand deep, never fills. 0: never. */
	unsigned chunk;
	void (*open)(struct subject *subject);
	void (*close)(struct subject *subject);
};

enum { CALLS_MAX = 32, ITERATIONS_MAX = 4000 };
enum { COPY_BYTES = 64 << 10, PAGEABLE_BYTES = 1 << 20 };

/* Both tables end with a row without a name. */
extern const struct call calls_without_memory[]; /* contention_calls.c */
extern const struct call calls_with_memory[]; /* contention_memory.c */

/* Lets every other GPU into the memory of the subject's, as far as they can. What is allocated there
 * from now on is mapped for all of them, too. The subject's GPU is the current one, before and after. */
void peers_open(const struct subject *subject);

#endif
