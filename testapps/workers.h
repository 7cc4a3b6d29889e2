/*
 * testapps/workers.h: the same work done by several at once: by threads of this process, or by
 * processes of their own. A test application describes its crew and gets back what each worker
 * wrote into its state.
 *
 * A process that has called CUDA cannot fork others that do. So a program that needs processes at all
 * calls CUDA in those alone, also where it compares them with the threads of one process: each crew
 * then begins with a CUDA of its own that no other crew has warmed up.
 */
#ifndef TESTAPPS_WORKERS_H
#define TESTAPPS_WORKERS_H

#include <stddef.h>

#define WORKERS_MAX 64

enum { IN_PLACE = 0, ONE_PER_GPU = -1 };

struct worker {
	int index; /* among all workers of the crew, from 0 */
	int process; /* which of the crew's processes this one is in, from 0 */
	int gpu; /* its device, already current when work and prepare are called */
	int gpu_cnt; /* devices the crew is spread over */
	const void *argument; /* the crew's */
	void *state; /* its own, state_size bytes, zeroed at first; the main process reads it after */
};

struct crew {
	long processes; /* IN_PLACE: none but this one; or their number, or ONE_PER_GPU */
	long threads; /* of each process; ONE_PER_GPU needs processes to be 1 or IN_PLACE */
	long gpus; /* to spread the workers over, worker i on GPU i modulo gpus; 0: all there are */
	size_t state_size; /* bytes */
	const void *argument;

	/* Each may be NULL but work. enter is called first in a process, before any CUDA call, to
	 * settle what CUDA takes from the environment or from the user. prepare and finish are called
	 * for one worker after the other by the main thread of its process, so that making and freeing
	 * what a worker needs disturbs nobody; work is called in the worker's own thread. */
	void (*enter)(const struct crew *crew, int process);
	void (*prepare)(struct worker *worker);
	void (*work)(struct worker *worker);
	void (*finish)(struct worker *worker);

	/* Filled by crew_run. */
	int worker_cnt, gpu_cnt;
	void *states; /* of worker_cnt workers, state_size bytes each */
};

/* Runs the crew to its end. Dies if there are too few GPUs or if a process of the crew fails. No crew
 * with processes after one in place. */
void crew_run(struct crew *crew);
void *crew_state(const struct crew *crew, int worker);
void crew_release(struct crew *crew);

/* In work: waits until all workers of the crew, in all its processes, have come here. */
void crew_meet(void);

/* Devices of this machine, counted by a process of its own. Dies if there are none. */
int gpu_count(void);

#endif
