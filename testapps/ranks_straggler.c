/*
 * testapps/ranks_straggler.c: what makes one rank late, each by about as many milliseconds as asked for:
 *
 *   free    allocates and frees a big block, behind the step's kernels: cudaFree waits for the device
 *   load    reads its batch from a pipe that a slow helper thread fills
 *   sync    small kernels, the device synchronised after each
 *   cpu     computes on the CPU before it launches anything
 *   nap     sleeps before it launches anything: what no other rank does
 *   turns   the same, for two thirds of the run; for the rest another rank does: what hosts do by themselves
 *   kernel  the step's kernels take longer: a slow GPU
 *   uneven  the same of another rank each time, in turn: work of different sizes
 */
#include "common.h"
#include "ranks.h"
#include "../kernels/kernels.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BIG_BLOCK_BYTES = 64 << 20, SMALL_KERNEL_US = 50, SHORT_TURN_MS = 1 };

static int requests[2], batches[2]; /* pipes to the helper and back */

void straggler_read(const char *text, struct straggler *straggler)
{
	static const char *const causes[] = {"free", "load",  "sync",   "cpu",
					     "nap",  "turns", "kernel", "uneven"};
	char copy[64], *rest = copy, *field;
	size_t i;

	*straggler = (struct straggler){.rank = -1, .every = 4, .ms = 5};
	if (!text || !strcmp(text, "none"))
		return;
	strncpy(copy, text, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = 0;
	straggler->rank = (int)strtol(copy, &rest, 10);
	if (rest == copy || *rest != ':' || straggler->rank < 0)
		usage_error("--straggler %s: not RANK:CAUSE[:EVERY[:MS]]", text);
	rest++;
	field = strsep(&rest, ":");
	for (i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (!strcmp(field, causes[i]))
			straggler->cause = causes[i];
	if (!straggler->cause)
		usage_error(
			"--straggler %s: the cause is free, load, sync, cpu, nap, turns, kernel or "
			"uneven",
			text);
	if (rest && (field = strsep(&rest, ":")))
		straggler->every = strtol(field, NULL, 10);
	if (rest)
		straggler->ms = strtod(rest, NULL);
	if (straggler->every < 1 || !(straggler->ms > 0))
		usage_error("--straggler %s: EVERY and MS are more than 0", text);
}

static bool is(const struct straggler *straggler, const char *cause)
{
	return !strcmp(straggler->cause, cause);
}

bool straggler_is_late(const struct straggler *straggler, int rank, long step)
{
	int late = straggler->rank;

	if (late >= 0 && is(straggler, "turns") && step >= straggler->steps * 2 / 3)
		late = (int)((late + 1) % straggler->ranks);
	if (late >= 0 && is(straggler, "uneven"))
		late = (int)((late + step / straggler->every) % straggler->ranks);
	return rank == late && step % straggler->every == straggler->every - 1;
}

/* ---- load ---- */
static void *make_batches(void *argument)
{
	const struct straggler *straggler = argument;
	char byte;

	while (read(requests[0], &byte, 1) == 1) {
		sleep_ms(straggler->ms);
		if (write(batches[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void read_batch(void)
{
	char byte = 0;

	if (write(requests[1], &byte, 1) != 1 || read(batches[0], &byte, 1) != 1)
		die("the loader: %s", strerror(errno));
}

void straggler_prepare(const struct straggler *straggler, int rank)
{
	pthread_t thread;

	if (rank != straggler->rank || !is(straggler, "load"))
		return;
	if (pipe(requests) || pipe(batches) ||
	    pthread_create(&thread, NULL, make_batches, (void *)straggler))
		die("cannot start the loader: %s", strerror(errno));
	pthread_detach(thread);
}

/* ---- the others ---- */
static void compute(double ms)
{
	volatile double value = 1;
	double until = now_ms() + ms;
	int i;

	while (now_ms() < until)
		for (i = 0; i < 1000; i++)
			value = value * 1.0000001 + 1e-9;
}

static void synchronise_often(double ms, cudaStream_t stream)
{
	double until = now_ms() + ms;

	do {
		CUDA_CHECK(launch_delay(SMALL_KERNEL_US, stream));
		CUDA_CHECK(cudaDeviceSynchronize());
	} while (now_ms() < until);
}

/* The first cudaFree waits for what the GPU still has to do; it is late by what comes after that. */
static void allocate_and_free(double ms)
{
	double until = 0;
	void *block;

	do {
		CUDA_CHECK(cudaMalloc(&block, BIG_BLOCK_BYTES));
		CUDA_CHECK(cudaFree(block));
		if (!until)
			until = now_ms() + ms;
	} while (now_ms() < until);
}

void take_turn(bool longer, double ms)
{
	compute(SHORT_TURN_MS + (longer ? ms : 0));
}

void straggler_before(const struct straggler *straggler, cudaStream_t stream)
{
	if (is(straggler, "load"))
		read_batch();
	else if (is(straggler, "cpu") || is(straggler, "turns"))
		compute(straggler->ms);
	else if (is(straggler, "nap"))
		sleep_ms(straggler->ms);
	else if (is(straggler, "sync"))
		synchronise_often(straggler->ms, stream);
}

void straggler_behind(const struct straggler *straggler, cudaStream_t stream)
{
	(void)stream;
	if (is(straggler, "free"))
		allocate_and_free(straggler->ms);
}

double straggler_kernel_ms(const struct straggler *straggler)
{
	return is(straggler, "kernel") || is(straggler, "uneven") ? straggler->ms : 0;
}
