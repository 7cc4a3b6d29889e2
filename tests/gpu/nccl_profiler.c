/*
 * tests/gpu/nccl_profiler.c: a user's own profiler for NCCL, version 4 of its interface, as libnccl-profiler.so: counts the
 * collectives it gets and says so when the process ends. The recorder must leave it alone. On NCCL's threads.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define COLLECTIVES (1 << 1)

static unsigned long events;

static int begin(void **context, int *mask, const char *name, uint64_t comm, int nodes, int ranks,
		 int rank, void *log)
{
	(void)name, (void)comm, (void)nodes, (void)ranks, (void)rank, (void)log;
	*mask = COLLECTIVES;
	*context = &events;
	return 0;
}

static int start(void *context, void **event, void *what)
{
	(void)context, (void)what;
	__atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
	*event = &events;
	return 0;
}

static int stop(void *event)
{
	(void)event;
	return 0;
}

static int state(void *event, int to, void *arguments)
{
	(void)event, (void)to, (void)arguments;
	return 0;
}

static int end(void *context)
{
	(void)context;
	fprintf(stderr, "nccl_profiler: process %d: %lu events\n", (int)getpid(), events);
	return 0;
}

const struct {
	const char *name;
	int (*begin)(void **, int *, const char *, uint64_t, int, int, int, void *);
	int (*start)(void *, void **, void *);
	int (*stop)(void *);
	int (*state)(void *, int, void *);
	int (*end)(void *);
} ncclProfiler_v4 = {"nccl_profiler", begin, start, stop, state, end};
