/*
 * testapps/hang_rank.c: the variant `rank`: each step of all ranks ends in an all-reduce. In one step the
 * last rank waits for a batch that a helper thread gives it late: all others are in the all-reduce by then.
 */
#include "common.h"
#include "hang.h"
#include "../kernels/kernels.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 6, LATE_STEP = 4, SUMMANDS = 1024 };

static int batches[2]; /* a pipe from the helper */

static bool is_late(const struct worker *worker)
{
	return worker->index == hang_ranks - 1;
}

static void *make_batches(void *argument)
{
	long step;

	(void)argument;
	for (step = 0; step < STEPS; step++) {
		if (step == LATE_STEP)
			sleep_ms((double)hang_seconds * 1e3);
		if (write(batches[1], "", 1) != 1)
			break;
	}
	return NULL;
}

static void begin_helper(void)
{
	pthread_t thread;

	if (pipe(batches) || pthread_create(&thread, NULL, make_batches, NULL))
		die("cannot start the loader: %s", strerror(errno));
	pthread_detach(thread);
}

static void read_batch(void)
{
	char byte;

	if (read(batches[0], &byte, 1) != 1)
		die("the loader: %s", strerror(errno));
}

void rank_prepare(struct worker *worker)
{
	struct stuck *self = worker->state;

	hang_prepare(worker);
	self->left_out = !nccl_load();
}

static void one_step(struct stuck *self, int rank, long step)
{
	int *numbers = self->device, *host = self->pinned;
	double begin, ms;
	size_t i;

	CUDA_CHECK(cudaMemsetAsync(numbers, 0, SUMMANDS * sizeof(int), self->stream));
	CUDA_CHECK(launch_add(numbers, SUMMANDS, (int)(rank + step), self->stream));
	nccl_sum(numbers, numbers, SUMMANDS, self->stream);
	CUDA_CHECK(cudaMemcpyAsync(host, numbers, SUMMANDS * sizeof(int), cudaMemcpyDeviceToHost,
				   self->stream));
	begin = now_ms();
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
	ms = now_ms() - begin;
	if (ms > self->waited_ms)
		self->waited_ms = ms;
	for (i = 0; i < SUMMANDS; i++)
		self->wrong +=
			host[i] != (int)(hang_ranks * (hang_ranks - 1) / 2 + hang_ranks * step);
}

static void join(const struct worker *worker)
{
	struct stuck *first = crew_state(hang_crew, 0);

	if (!worker->index)
		nccl_make_id(&first->id);
	crew_meet();
	nccl_join(&first->id, worker->index, (int)hang_ranks);
}

void rank_work(struct worker *worker)
{
	struct stuck *self = worker->state;
	long step;

	crew_meet();
	if (self->left_out) {
		if (!worker->index)
			fprintf(stderr, "%s: there is no libnccl.so.2: rank is left out\n",
				program);
		return;
	}
	join(worker);
	if (is_late(worker))
		begin_helper();
	for (step = 0; step < STEPS; step++) {
		if (is_late(worker)) {
			double begin = now_ms();

			read_batch();
			if (now_ms() - begin > self->waited_ms)
				self->waited_ms = now_ms() - begin;
		}
		one_step(self, worker->index, step);
	}
	crew_meet();
	nccl_leave();
}
