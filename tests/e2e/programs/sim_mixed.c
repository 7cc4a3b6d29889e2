/*
 * tests/e2e/programs/sim_mixed.c: an ordinary runtime-API program for the simulator: threads, streams, events,
 * copies of every direction and kind of memory, errors. Linked to the simulated libcudart.so.13, to the
 * one of 12, or to the static one. Prints nothing that depends on time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim_program.h"

int cudaGetDeviceCount(int *count);
int cudaStreamCreate(void **stream);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

enum { DEFAULT = D2D + 1 };

static void count_up(void *counter)
{
	__atomic_fetch_add((int *)counter, 1, __ATOMIC_RELAXED);
}

static void *work(void *number)
{
	enum { BYTES = 1 << 16 };
	int device = (int)(intptr_t)number % 2, bad = 0, called = 0;
	void *stream, *event, *gpu, *other, *pinned, *managed;
	char *pageable = malloc(BYTES), *registered = aligned_alloc(4096, BYTES);

	bad += !!cudaSetDevice(device);
	bad += !!cudaStreamCreate(&stream);
	bad += !!cudaEventCreate(&event);
	bad += !!cudaMalloc(&gpu, BYTES);
	bad += !!cudaMalloc(&other, BYTES);
	bad += !!cudaMallocHost(&pinned, BYTES);
	bad += !!cudaMallocManaged(&managed, BYTES, 1);
	bad += !!cudaHostRegister(registered, BYTES, 0);
	memset(pageable, 7, BYTES);
	memset(pinned, 8, BYTES);
	memset(registered, 9, BYTES);
	for (int i = 0; i < 20; i++) {
		bad += !!cudaMemcpyAsync(gpu, pageable, 1000 + i, H2D, stream);
		bad += !!cudaMemcpyAsync(other, gpu, 2000 + i, D2D, stream);
		bad += !!cudaMemcpyAsync(pageable, other, 3000 + i, D2H, stream);
		bad += !!cudaMemcpyAsync(gpu, pinned, 4000 + i, DEFAULT, stream);
		bad += !!cudaMemcpyAsync(pinned, gpu, 5000 + i, D2H, stream);
		bad += !!cudaMemcpyAsync(gpu, registered + 100, 6000 + i, H2D, stream);
		bad += !!cudaMemcpyAsync(managed, gpu, 7000 + i, DEFAULT, stream);
		bad += !!cudaMemcpy2DAsync(gpu, 256, pageable, 128, 64, 10 + i, H2D, stream);
		bad += !!cudaMemsetAsync(other, i, 8000 + i, stream);
		bad += !!cudaLaunchHostFunc(stream, count_up, &called);
		bad += !!cudaEventRecord(event, stream);
		bad += !!cudaEventSynchronize(event);
		bad += !!cudaMemcpy(pageable, gpu, 9000 + i, D2H);
		bad += !!cudaStreamSynchronize(stream);
	}
	bad += !!cudaHostUnregister(registered);
	bad += !!cudaFree(gpu) + !!cudaFree(other) + !!cudaFree(managed) + !!cudaFreeHost(pinned);
	bad += !!cudaEventDestroy(event) + !!cudaStreamDestroy(stream);
	printf("thread: %d errors, %d host functions\n", bad, called);
	free(pageable);
	free(registered);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	int count = 0, result;
	void *address;

	result = cudaGetDeviceCount(&count);
	printf("%d devices: %s\n", count, cudaGetErrorName(result));
	printf("device 99: %s\n", cudaGetErrorName(cudaSetDevice(99)));
	printf("last: %s\n", cudaGetErrorName(cudaGetLastError()));
	printf("too much: %s\n", cudaGetErrorName(cudaMalloc(&address, 1ull << 38)));
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("synchronize: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
	return 0;
}
