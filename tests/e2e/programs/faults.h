/*
 * tests/e2e/programs/faults.h: what the habits of faults (faults.c) are made of. Each file of them ends with their table.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <pthread.h>
#include <stdbool.h>
#include "sim_program.h"

enum {
	WORKERS_MAX = 8,
	PLACES = 24,
	LAZY_KERNELS = 16,
	RECKONED_MAX = 512,
	BUFFER_BYTES = 8 << 20,
	KB = 1024
};

struct worker;
typedef void run_fn(struct worker *w);

struct habit {
	const char *name, *detector;
	/* What its calls' cost is in truth: gpu, lock, time (but locks), work (time but waits), turns (what they waited
	 * for the GPU or what passed until the thread's next call, whichever is less), own (nothing: all is in the
	 * worker's cost_ns), mps (waits for another user's server, of the process), or -: none is known. A finding whose
	 * cost the report calls unknown (legacy-stream, time-slicing, mps-share) has none in truth. Calls that fail cost
	 * a few us, of which most is the recorder's. Which of a thread's waits for a lock were longer than a queue's, and
	 * which time a CPU was missing, the simulator does not know. */
	const char *truth;
	const char *calls; /* of these functions, | between them */
	const char *also; /* detectors that may speak, too: the same seen from another side */
	const char *script;
	int threads, devices; /* thread i works on device i % devices of its own */
	run_fn *prepare, *run;
};

struct worker {
	pthread_t thread;
	const struct habit *habits[WORKERS_MAX]; /* one after the other */
	int habit_cnt, role, device;
	bool clean;
	void *stream, *blocking[2], *event, *gpu, *peer_gpu, *pinned, *pinned_to;
	char *pageable;
	void **places, *all_places[WORKERS_MAX][PLACES]; /* places: those of the habit it is at */
	int64_t *calm_ns, all_calm_ns[WORKERS_MAX]; /* of one cure, measured before */
	int64_t cost_ns; /* of the habit it is at, besides what its calls cost */
	int64_t delayed_ns; /* so much longer that took by the clock: this machine had other work */
	int64_t reckoned_ns[RECKONED_MAX]; /* one by one */
	int reckoned;
	/* drawn from the seed */
	unsigned int rounds_pct, length_pct, size_pct;
};

extern char stub_delay, stub_lazy[LAZY_KERNELS], symbol[1];

/* The tables, each up to a row without a name. */
extern const struct habit copy_habits[], hidden_habits[], steady_habits[], sync_habits[],
	launch_habits[], company_habits[], idle_habits[];

/* ---- what they are made of: inlined, so that the calls are the habit's own ---- */
#define INLINE static inline __attribute__((always_inline))

INLINE unsigned int rounds(const struct worker *w, unsigned int about)
{
	return about * w->rounds_pct / 100;
}

INLINE size_t size(const struct worker *w, size_t about)
{
	return about * w->size_pct / 100 / 64 * 64;
}

INLINE void launch(const void *kernel, int us, void *stream)
{
	struct dim3 one = {1, 1, 1};
	void *args[] = {&us};

	OK(cudaLaunchKernel(kernel, one, one, args, 0, stream));
}

/* Honest work of about so many microseconds: data goes there, a few kernels, data comes back. */
INLINE void work(struct worker *w, unsigned int us)
{
	us = us * w->length_pct / 100;
	OK(cudaMemcpyAsync(w->gpu, w->pinned, size(w, 256 * KB), H2D, w->stream));
	for (int i = 0; i < 4; i++)
		launch(&stub_delay, (int)us / 4, w->stream);
	OK(cudaMemcpyAsync(w->pinned_to, w->gpu, size(w, 256 * KB), D2H, w->stream));
}

INLINE void finish(struct worker *w)
{
	OK(cudaStreamSynchronize(w->stream));
}

/* What was begun then costs so much more than it does when it is done as it should be. */
INLINE void reckon(struct worker *w, uint64_t begin_ns)
{
	if (w->reckoned == RECKONED_MAX)
		die("too many to reckon");
	w->reckoned_ns[w->reckoned++] = (int64_t)(now_ns() - begin_ns) - *w->calm_ns;
}

/* ---- what several of them use (faults.c) ---- */

/* The least that it takes to hand over such a copy. */
int64_t calm_copy_ns(struct worker *w, void *to, const void *from, size_t bytes, int kind);

enum { ARRAY_PITCH = 8192 };
void make_array(void **array, size_t bytes);

#endif
