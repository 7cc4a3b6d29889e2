/*
 * tests/e2e/programs/fake.c: what the functions of a fake CUDA library do. Linked with fake_x86_64.S into
 * libcuda.so.1 and libcudart.so.11.0, .12 and .13 (GENERATION 0, 11, 12, 13). No simulation: a
 * function prints what it received, does the little its callers cannot do without, and returns.
 *
 *   FAKE_MODE=hash     return the hash of everything received (abi.c)
 *   FAKE_MODE=hash0    the same, but rax is 0 (success) with rubbish above bit 31
 *   FAKE_MODE=quiet    print nothing
 *   FAKE_RESULT=N      return N instead of 0
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fake.h"
#include "fake_layers.h"

void fake_call(struct fake_args *args) __attribute__((visibility("hidden")));

/* Linked with -Bsymbolic: a fake's own functions, whatever is preloaded. */
#define ENTRY(name, layer, record, contract, inspector) FAKE_##layer(extern const char name[];)
#include "cudaspy/entrypoints.def"
#undef ENTRY

static const struct {
	const char *name;
	const void *address;
} functions[] = {
#define ENTRY(name, layer, record, contract, inspector) FAKE_##layer({#name COMMA name} COMMA)
#define COMMA ,
#include "cudaspy/entrypoints.def"
};

#define SILENT 99

struct behaviour {
	const char *name;
	unsigned int words; /* printed; SILENT: not even the name, the shim asks these itself */
	void (*act)(struct fake_args *args);
};

static void out_int(struct fake_args *args, int value)
{
	if (args->word[0])
		*(int *)args->word[0] = value;
}

static void two(struct fake_args *args)
{
	out_int(args, 2);
}

static void zero(struct fake_args *args)
{
	out_int(args, 0);
}

static void version(struct fake_args *args)
{
	out_int(args, (GENERATION ? GENERATION : 13) * 1000);
}

/* Addresses handed out say who handed them out, and do not depend on the layout of the process. */
static void allocate(struct fake_args *args)
{
	static uint64_t next = 0x100000ull * (GENERATION + 1);

	*(uint64_t *)args->word[0] = __atomic_fetch_add(&next, 0x1000, __ATOMIC_RELAXED);
}

static void allocate_host(struct fake_args *args)
{
	*(void **)args->word[0] = calloc(1, args->word[1]);
}

static void call_back(struct fake_args *args)
{
	((void (*)(void *))args->word[1])((void *)args->word[2]);
}

/* cudaStreamAddCallback(stream, function(stream, status, data), data, flags) */
static void call_back_stream(struct fake_args *args)
{
	((void (*)(void *, int, void *))args->word[1])((void *)args->word[0], 0,
						       (void *)args->word[2]);
}

/* cudaStreamSynchronize and its like take as long as their stream's number says, in ms. */
static void wait_a_while(struct fake_args *args)
{
	struct timespec time = {args->word[0] / 1000, args->word[0] % 1000 * 1000000};

	if (args->word[0] > 2)
		nanosleep(&time, NULL);
}

static void *driver(const char *name)
{
	static void *handle;

	if (!handle)
		handle = dlopen("libcuda.so.1", RTLD_NOW);
	return handle ? dlsym(handle, name) : NULL;
}

#if GENERATION == 0
/* A function that no list has heard of. */
int cuBrandNew(int value);
/* As the driver does, it looks up what it has itself: how many ways lead elsewhere. */
int cuLooksItselfUp(void);

int cuBrandNew(int value)
{
	return value + 1;
}
#endif

static const void *find(const char *name, const char *suffix)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strncmp(functions[i].name, name, length) == 0 &&
		    strcmp(functions[i].name + length, suffix) == 0)
			return functions[i].address;
	return NULL;
}

#if GENERATION == 0
int cuLooksItselfUp(void)
{
	void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	const void *own = find("cuInit", "");
	int elsewhere = 0;

	elsewhere += dlsym(self, "cuInit") != own;
	elsewhere += dlsym(RTLD_DEFAULT, "cuInit") != own;
	elsewhere += dlsym(self, "cuGetProcAddress_v2") != find("cuGetProcAddress_v2", "");
	if (self)
		dlclose(self);
	return elsewhere;
}
#endif

/* cuGetProcAddress(name, &function, version, flags), _v2 (..., &status): the newest ABI from version
 * 3020 on, the per-thread variant with flag 2. */
static void get_address(struct fake_args *args)
{
	static const char *const per_thread[] = {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds"};
	static const char *const newer[] = {"_v3", "_v2"};
	const char *name = (const char *)args->word[0];
	const void *found = NULL;

	for (int i = 0; i < 4 && (args->word[3] & 2) && !found; i++)
		found = find(name, per_thread[i]);
	for (int i = 0; i < 2 && (int)args->word[2] >= 3020 && !found; i++)
		found = find(name, newer[i]);
	if (!found)
		found = find(name, "");
#if GENERATION == 0
	if (strcmp(name, "cuBrandNew") == 0)
		found = (const void *)cuBrandNew;
#endif
	*(const void **)args->word[1] = found;
	args->rax = found ? 0 : 500;
	if (args->word[4] && strcmp(functions[args->index].name, "cuGetProcAddress_v2") == 0)
		*(int *)args->word[4] = found ? 0 : 1;
}

/* cudaGetDriverEntryPoint(name, &function, flags, &status) */
static void get_entry_point(struct fake_args *args)
{
	int (*ask)(const char *, void **, int, uint64_t, int *) = driver("cuGetProcAddress_v2");
	int status;

	args->rax = ask ? (uint64_t)ask((const char *)args->word[0], (void **)args->word[1],
					GENERATION * 1000, args->word[2], &status)
			: 100;
	if (args->word[3])
		*(int *)args->word[3] = args->rax ? 1 : 0;
}

/* cudaGetDriverEntryPointByVersion(name, &function, version, flags, &status) */
static void get_entry_point_by_version(struct fake_args *args)
{
	int (*ask)(const char *, void **, int, uint64_t, int *) = driver("cuGetProcAddress_v2");
	int status;

	args->rax = ask ? (uint64_t)ask((const char *)args->word[0], (void **)args->word[1],
					(int)args->word[2], args->word[3], &status)
			: 100;
	if (args->word[4])
		*(int *)args->word[4] = args->rax ? 1 : 0;
}

static void fail(struct fake_args *args)
{
	args->rax = 1;
}

static void text(struct fake_args *args)
{
	args->rax = (uint64_t) "a text of the fake library";
}

static void text_into(struct fake_args *args)
{
	snprintf((char *)args->word[0], (size_t)(int)args->word[1], "fake");
}

/* cudaCreateChannelDesc returns a structure of 20 bytes through a hidden pointer. */
static void channel(struct fake_args *args)
{
	int *desc = (int *)args->word[0];

	for (int i = 0; i < 5; i++)
		desc[i] = i < 4 ? (int)args->word[1 + i] : (int)args->word[5];
	args->rax = args->word[0];
}

static void size_out(struct fake_args *args)
{
	*(size_t *)args->word[0] = 1 << 30;
}

/* Everything else prints its name alone and returns 0. */
static const struct behaviour behaviours[] = {
	{"cudaGetDeviceCount", 0, two},
	{"cudaGetDevice", 0, zero},
	{"cudaRuntimeGetVersion", 0, version},
	{"cudaDriverGetVersion", 0, version},
	{"cudaSetDevice", 1, NULL},
	{"cudaMalloc", 0, allocate},
	{"cudaMallocHost", 0, allocate_host},
	{"cudaFree", 1, NULL},
	{"cudaMemcpy", 4, NULL},
	{"cudaMemcpyAsync", 5, NULL},
	{"cudaMemcpyAsync_ptsz", 5, NULL},
	{"cudaMemsetAsync", 4, NULL},
	{"cudaMemPrefetchAsync", GENERATION == 13 ? 5 : 4, NULL},
	{"cudaLaunchKernel", 8, NULL},
	{"cudaLaunchHostFunc", 1, call_back},
	{"cudaStreamAddCallback", 1, call_back_stream},
	{"cudaStreamSynchronize", 1, wait_a_while},
	{"cudaStreamSynchronize_ptsz", 1, wait_a_while},
	{"cudaDeviceSynchronize", 0, NULL},
	{"cudaStreamQuery", 1, NULL},
	{"cudaEventRecord", 2, NULL},
	{"cudaGetErrorName", 1, text},
	{"cudaGetErrorString", 1, text},
	{"cudaCreateChannelDesc", 0, channel},
	{"cudaGetDriverEntryPoint", 0, get_entry_point},
	{"cudaGetDriverEntryPointByVersion", 0, get_entry_point_by_version},
	{"cuInit", 1, NULL},
	{"cuDriverGetVersion", SILENT, version},
	{"cuDeviceGetCount", SILENT, two},
	{"cuDeviceGet", SILENT, zero},
	{"cuDeviceGetName", SILENT, text_into},
	{"cuDeviceGetPCIBusId", SILENT, text_into},
	{"cuDeviceTotalMem_v2", SILENT, size_out},
	{"cuDeviceGetAttribute", SILENT, two},
	{"cuDeviceGetUuid", SILENT, NULL},
	{"cuDeviceGetUuid_v2", SILENT, NULL},
	{"cuPointerGetAttributes", SILENT, NULL},
	{"cuFuncGetName", SILENT, fail},
	{"cuKernelGetName", SILENT, fail},
	{"cuCtxGetCurrent", SILENT, NULL},
	{"cuCtxGetDevice", SILENT, NULL},
	{"cuMemAlloc", 0, allocate},
	{"cuMemAlloc_v2", 0, allocate},
	{"cuMemFree_v2", 1, NULL},
	{"cuMemcpyHtoDAsync_v2", 4, NULL},
	{"cuMemcpyHtoDAsync_v2_ptsz", 4, NULL},
	{"cuLaunchHostFunc", 1, call_back},
	{"cuLaunchKernel", 11, NULL},
	{"cuTensorMapEncodeIm2colWide", 16, NULL},
	{"cuStreamSynchronize", 1, wait_a_while},
	{"cuStreamSynchronize_ptsz", 1, wait_a_while},
	{"cuGetProcAddress", 0, get_address},
	{"cuGetProcAddress_v2", 0, get_address},
};

/* Words that look like addresses are not printed: they differ from run to run. */
static void show(const char *name, const struct fake_args *args, unsigned int words)
{
	char line[512];
	int length = snprintf(line, sizeof(line), "%s%d %s(", GENERATION ? "cudart" : "cuda",
			      GENERATION, name);

	for (unsigned int i = 0; i < words; i++) {
		uint64_t word = i < 6 ? args->word[i] : args->stack[i - 6];

		length += snprintf(line + length, sizeof(line) - (size_t)length,
				   word >> 32 ? "%sptr" : "%s%llx", i ? ", " : "",
				   (unsigned long long)word);
	}
	puts(strcat(line, ")"));
}

static unsigned int mode; /* 0 print, 1 quiet, 2 hash, 3 hash0 */
static uint64_t result;

__attribute__((constructor)) static void read_mode(void)
{
	const char *text_ = getenv("FAKE_MODE");

	if (text_)
		mode = strcmp(text_, "hash0") == 0 ? 3 : strcmp(text_, "hash") == 0 ? 2 : 1;
	text_ = getenv("FAKE_RESULT");
	result = text_ ? strtoull(text_, NULL, 0) : 0;
}

void fake_call(struct fake_args *args)
{
	const char *name = functions[args->index].name;

	args->rdx = 0;
	args->rax = result;
	memset(args->xmm0, 0, sizeof(args->xmm0));
	memset(args->xmm1, 0, sizeof(args->xmm1));
	if (mode >= 2) {
		uint64_t hash = fake_hash(name, GENERATION, args);

		args->rax = mode == 2 ? hash : hash & 0xffffffff00000000ull;
		args->rdx = fake_mix(hash, 1);
		args->xmm0[0] = fake_mix(hash, 2);
		args->xmm0[1] = fake_mix(hash, 3);
		args->xmm1[0] = fake_mix(hash, 4);
		args->xmm1[1] = fake_mix(hash, 5);
		return;
	}
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		if (strcmp(behaviours[i].name, name) == 0) {
			if (!mode && behaviours[i].words != SILENT)
				show(name, args, behaviours[i].words);
			if (behaviours[i].act)
				behaviours[i].act(args);
			return;
		}
	}
	if (!mode)
		show(name, args, 0);
}
