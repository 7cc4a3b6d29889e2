/*
 * tests/e2e/programs/python_fake.c: calls that fail (FAKE_RESULT) while a library that looks like Python's (argument 1) is
 * there, and when it is gone; the second time with another thread that makes calls all the while. Prints
 * nothing.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaStreamQuery(void *stream);
int cudaStreamDestroy(void *stream);
int cudaEventDestroy(void *event);
int cudaFree(void *memory);
int cudaFreeHost(void *memory);
int cudaStreamSynchronize(void *stream);
int cudaEventSynchronize(void *event);
int cudaGraphExecDestroy(void *graph);
int cudaHostUnregister(void *memory);

/* Of a place that makes many calls few get a stack: where the recorder knows of Python, and where there is none any
 * more, the first of others. */
static int (*const within[])(void *) = {cudaStreamSynchronize, cudaEventSynchronize,
					cudaGraphExecDestroy, cudaHostUnregister};
static int (*const others[])(void *) = {cudaFree, cudaStreamDestroy, cudaEventDestroy,
					cudaFreeHost};

static bool stop;

static void *make_calls(void *data)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		cudaStreamQuery(data);
	return data;
}

static void calls(int n)
{
	while (n--)
		cudaSetDevice(n);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	bool beside = false;

	(void)argc;
	calls(1);
	for (int round = 0; round < 4; round++) {
		void *python = dlopen(argv[1], RTLD_NOW);

		if (!python)
			return 1;
		calls(6000); /* so many that the recorder looks which libraries there are */
		within[round](NULL);
		if (dlclose(python) || dlopen(argv[1], RTLD_NOLOAD))
			return 2;
		others[round](NULL);
		if (round == 1)
			beside = !pthread_create(&thread, NULL, make_calls, NULL);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	return beside ? pthread_join(thread, NULL) : 3;
}
