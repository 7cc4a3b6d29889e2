/*
 * tests/stress/runtime.h: the functions of CUDA's runtime that the random programs call, declared without
 * CUDA's headers, so that no toolkit is needed.
 */
#ifndef STRESS_RUNTIME_H
#define STRESS_RUNTIME_H

#include <stddef.h>

struct dim3 {
	unsigned int x, y, z;
};

int cudaSetDevice(int number);
int cudaGetDevice(int *number);
int cudaGetDeviceCount(int *count);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int error);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMallocHost(void **address, size_t bytes);
int cudaFreeHost(void *address);
int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemset(void *address, int value, size_t bytes);
int cudaMemsetAsync(void *address, int value, size_t bytes, void *stream);
int cudaHostRegister(void *address, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *address);
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
int cudaStreamCreateWithFlags(void **stream, unsigned int flags);
int cudaStreamDestroy(void *stream);
int cudaStreamQuery(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned int flags);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaEventSynchronize(void *event);
int cudaEventDestroy(void *event);
int cudaDeviceSynchronize(void);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **code);
void __cudaUnregisterFatBinary(void **code);
void __cudaRegisterFunction(void **code, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *size);

#endif
