/*
 * tests/e2e/programs/sim_program.h: what programs for the simulator need of CUDA, declared without its headers, so that
 * no toolkit is needed; and how they fail.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct dim3 {
	unsigned int x, y, z;
};

struct channels {
	int x_bits, y_bits, z_bits, w_bits, kind; /* kind: 2 for float */
};

/* cudaMemcpy3DParms */
struct copy_box {
	void *from_array;
	size_t from_at[3];
	void *from;
	size_t from_pitch, from_width, from_height;
	void *to_array;
	size_t to_at[3];
	void *to;
	size_t to_pitch, to_width, to_height;
	size_t width, height, depth;
	int kind;
};

int cudaSetDevice(int device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemGetInfo(size_t *free, size_t *total);
int cudaMallocHost(void **address, size_t bytes);
int cudaFreeHost(void *address);
int cudaMallocManaged(void **address, size_t bytes, unsigned int flags);
int cudaHostRegister(void *address, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *address);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		      size_t height, int kind, void *stream);
int cudaMemcpy3DAsync(const struct copy_box *copy, void *stream);
int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
			    int kind, void *stream);
int cudaMemcpy2DToArrayAsync(void *array, size_t x, size_t y, const void *from, size_t pitch,
			     size_t width, size_t height, int kind, void *stream);
int cudaMallocArray(void **array, const struct channels *channels, size_t width, size_t height,
		    unsigned int flags);
int cudaFreeArray(void *array);
int cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes,
			 size_t count, void *attributes, size_t *indices, size_t attribute_count,
			 void *stream);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
			void *stream);
int cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
int cudaMemsetAsync(void *address, int value, size_t bytes, void *stream);
int cudaStreamCreateWithFlags(void **stream, unsigned int flags);
int cudaStreamDestroy(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned int flags);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventDestroy(void *event);
int cudaDeviceSynchronize(void);
int cudaDeviceSetLimit(int limit, size_t value);
int cudaGetLastError(void);
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
const char *cudaGetErrorName(int error);
int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaStreamQuery(void *stream);
int cudaEventQuery(void *event);
int cudaEventSynchronize(void *event);
int cudaLibraryLoadData(void **library, const void *code, void *jit_options, void *jit_values,
			unsigned int jit_cnt, void *options, void *values, unsigned int cnt);
int cudaLibraryUnload(void *library);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuModuleLoadData(void **module, const void *image);
int cuMemSetAccess(uint64_t address, size_t bytes, const int *description, size_t n);
int cuCtxCreate_v4(void **context, const void *parameters, unsigned int flags, int device);
int cuCtxDestroy_v2(void *context);
int cuModuleUnload(void *module);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **code);
void __cudaRegisterFunction(void **code, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *size);
void __cudaRegisterVar(void **code, char *host, char *device, const char *name, int external,
		       size_t bytes, int constant, int global);

enum { H2H, H2D, D2H, D2D };

static inline void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

static inline void ok(int result, const char *what)
{
	if (result)
		die("%s: %s", what, cudaGetErrorName(result));
}
#define OK(call) ok(call, #call)

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A kernel that takes its argument's microseconds, and n more of which each is loaded at its first launch. */
enum { LAZY_MOST = 16 };

__attribute__((unused)) static void register_kernels(const char *delay, const char *lazy, int n)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x466243b1, 1, "code", NULL};
	static char names[LAZY_MOST][32];
	void **code = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(code, delay, NULL, "_Z5delayi", -1, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < n && i < LAZY_MOST; i++) {
		snprintf(names[i], sizeof(names[i]), "_Z%dlazy%d_delayi", i < 10 ? 11 : 12, i);
		__cudaRegisterFunction(code, &lazy[i], NULL, names[i], -1, NULL, NULL, NULL, NULL,
				       NULL);
	}
	__cudaRegisterFatBinaryEnd(code);
}

/* A variable of the device, in code of its own. */
__attribute__((unused)) static void register_variable(char *variable, size_t bytes)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x466243b1, 1, "variables", NULL};
	void **code = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterVar(code, variable, NULL, "variable", 0, bytes, 0, 0);
	__cudaRegisterFatBinaryEnd(code);
}

#endif
