/*
 * tests/e2e/programs/profiled.c: a program with a profiler of its own, as frameworks have one, on the simulator: it copies, then
 * takes CUPTI's slot and counts the copies that CUPTI tells of, for test_gpu_times.sh.
 *
 *   profiled early|late     the slot is taken before the first CUDA call, or behind the first copies
 *   profiled forks          the slot is left alone; children are forked, which end as the process does
 *
 * Prints how many copies CUPTI told of; status 1 when the slot was not to be had.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim_program.h"

enum { COPIES = 20, BYTES = 4096, MEMCPY = 1, BUFFER = 1 << 16 };

static struct {
	int (*cuptiSubscribe)(void **subscriber, void *callback, void *data);
	int (*cuptiUnsubscribe)(void *subscriber);
	int (*cuptiActivityRegisterCallbacks)(void *wanted, void *done);
	int (*cuptiActivityEnable)(unsigned int kind);
	int (*cuptiActivityDisable)(unsigned int kind);
	int (*cuptiActivityGetNextRecord)(uint8_t *buffer, size_t valid, void **record);
	int (*cuptiActivityFlushAll)(unsigned int flags);
	int (*cuptiGetThreadIdType)(int *type);
} cupti;

static int told;

static void wanted(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(8, BUFFER);
	*size = BUFFER;
	*most = 0;
}

static void done(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	void *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (valid && !cupti.cuptiActivityGetNextRecord(buffer, valid, &record))
		told += *(int *)record == MEMCPY;
	free(buffer);
}

static void on_call(void)
{
}

#define FIND(name) OK(!(cupti.name = dlsym(library, #name)))
static void *take_slot(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW), *subscriber;
	int thread_ids = -1;

	OK(!library);
	FIND(cuptiSubscribe);
	FIND(cuptiUnsubscribe);
	FIND(cuptiActivityRegisterCallbacks);
	FIND(cuptiActivityEnable);
	FIND(cuptiActivityDisable);
	FIND(cuptiActivityGetNextRecord);
	FIND(cuptiActivityFlushAll);
	FIND(cuptiGetThreadIdType);
	OK(cupti.cuptiSubscribe(&subscriber, (void *)on_call, NULL));
	/* As CUPTI begins, whoever had it before. */
	OK(cupti.cuptiGetThreadIdType(&thread_ids) || thread_ids != 0);
	OK(cupti.cuptiActivityRegisterCallbacks((void *)wanted, (void *)done));
	OK(cupti.cuptiActivityEnable(MEMCPY));
	return subscriber;
}

static void copy(void *to, const void *from)
{
	for (int i = 0; i < COPIES; i++)
		OK(cudaMemcpyAsync(to, from, BYTES, H2D, NULL));
	OK(cudaDeviceSynchronize());
}

static void fork_children(void *to, const void *from)
{
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		int status = -1;

		if (!child)
			exit(0);
		OK(cudaMemcpyAsync(to, from, BYTES, H2D, NULL));
		OK(waitpid(child, &status, 0) != child || status);
	}
}

int main(int argc, char **argv)
{
	bool early = argc > 1 && !strcmp(argv[1], "early");
	void *device, *host, *subscriber = early ? take_slot() : NULL;

	OK(cudaMalloc(&device, BYTES));
	OK(cudaMallocHost(&host, BYTES));
	for (int i = 0; i < 10; i++)
		copy(device, host);
	if (argc > 1 && !strcmp(argv[1], "forks")) {
		fork_children(device, host);
		return 0;
	}
	if (!early)
		subscriber = take_slot();
	copy(device, host);
	OK(cupti.cuptiActivityDisable(MEMCPY));
	OK(cupti.cuptiActivityFlushAll(1));
	OK(cupti.cuptiUnsubscribe(subscriber));
	copy(device, host);
	printf("%d copies\n", told);
	return 0;
}
