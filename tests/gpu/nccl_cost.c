/*
 * tests/gpu/nccl_cost.c: what NCCL's profiler interface costs: all-reduces of 8 B to 64 MiB between processes, in
 * blocks that have its events switched off, those of collectives on, and those of kernels, too; in turns inside one
 * run, so that they have the same conditions. Ranks that share a GPU need an MPS daemon to run at the same time, and
 * NCCL takes each for a host of its own (NCCL_HOSTID).
 *
 *   nccl_cost [--ranks N] [--blocks N] [--events]
 *
 * The program stands between NCCL and the profiler of a preloaded library, or one that does nothing, so that it can
 * switch. --events shows the first events instead. `make gpu-build` builds it where there is an nccl.h; with
 * NCCL_STATIC_LIB=libnccl_static.a also nccl_cost_static, which has NCCL linked in.
 */
#define _GNU_SOURCE
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MOST 16
#define COLLECTIVES (1 << 1)
#define KERNELS (1 << 6)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the profiler ----------------------------------------------------------------------------- */

struct profiler {
	const char *name;
	int (*init)();
	int (*start)(void *context, void **event, void *what);
	int (*stop)(void *event);
	int (*state)(void *event, int state, void *arguments);
	int (*end)(void *context);
};

static int *mask; /* NCCL's: which events it sends */
static bool show;
static int rank_here;
static uint64_t n_events;
static int version; /* of the interface */

static void see(const char *what, uint64_t type, uint64_t timer)
{
	if (show && n_events++ < 120)
		fprintf(stderr, "rank %d %llu ns thread %ld %s type %llu timer %llu\n", rank_here,
			(unsigned long long)now_ns(), syscall(SYS_gettid), what,
			(unsigned long long)type, (unsigned long long)timer);
}

static int own_start(void *context, void **event, void *what)
{
	uint64_t *words = what;
	uint64_t type = words[0] & 0xff;

	(void)context;
	*event = (void *)(uintptr_t)(type | 0x1000);
	see("start", type, words[4]); /* of a kernel's channel: its timer */
	return 0;
}

static int own_stop(void *event)
{
	see("stop", (uintptr_t)event & 0xff, 0);
	return 0;
}

static int own_state(void *event, int state, void *arguments)
{
	see("state", (uint64_t)state, state == 22 ? *(uint64_t *)arguments : 0);
	(void)event;
	return 0;
}

static int own_end(void *context)
{
	(void)context;
	return 0;
}

static struct profiler here = {"nccl_cost", NULL, own_start, own_stop, own_state, own_end};
static int (*next_init)(); /* of the preloaded library's; NULL: there is none */

static int init_v5(void **context, uint64_t id, int *events, const char *name, int nodes, int ranks,
		   int rank, void *log)
{
	mask = events;
	*mask = COLLECTIVES | KERNELS;
	*context = &mask;
	return next_init ? next_init(context, id, events, name, nodes, ranks, rank, log) : 0;
}

static int init_v4(void **context, int *events, const char *name, uint64_t id, int nodes, int ranks,
		   int rank, void *log)
{
	mask = events;
	*mask = COLLECTIVES | KERNELS;
	*context = &mask;
	return next_init ? next_init(context, events, name, id, nodes, ranks, rank, log) : 0;
}

/* NCCL looks a profiler up: it gets the preloaded library's, or else the one above, behind an init that notes where the
 * set of events is. */
void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);
	struct profiler *found;

	if (!next) {
		const char *preloaded = getenv("LD_PRELOAD");
		void *library = preloaded ? dlopen(preloaded, RTLD_NOW | RTLD_NOLOAD) : NULL;

		next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34")
			       ?: dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		next = (library ? next(library, "dlsym") : NULL) ?: next;
	}
	found = next(handle, name);
	if (strncmp(name, "ncclProfiler_v", 14))
		return found;
	if (name[14] < '4' || name[14] > '6' || name[15])
		return NULL;
	if (found) {
		next_init = found->init;
		here = *found;
	}
	version = name[14] - '0';
	here.init = version == 4 ? init_v4 : init_v5; /* version 6 has that of 5 */
	return &here;
}

/* ---- NCCL ------------------------------------------------------------------------------------- */

static struct {
	ncclResult_t (*version)(int *);
	ncclResult_t (*id)(ncclUniqueId *);
	ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int);
	ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				   ncclComm_t, cudaStream_t);
	ncclResult_t (*destroy)(ncclComm_t);
} nccl;

static void check(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "nccl_cost: rank %d: %s failed: %s\n", rank_here, what,
		cudaGetErrorString(cudaGetLastError()));
	exit(1);
}

#ifdef NCCL_STATIC
static void load(void)
{
	nccl.version = ncclGetVersion;
	nccl.id = ncclGetUniqueId;
	nccl.init = ncclCommInitRank;
	nccl.all_reduce = ncclAllReduce;
	nccl.destroy = ncclCommDestroy;
}
#else
static void load(void)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "nccl_cost: %s\n", dlerror());
		exit(77);
	}
	nccl.version = dlsym(library, "ncclGetVersion");
	nccl.id = dlsym(library, "ncclGetUniqueId");
	nccl.init = dlsym(library, "ncclCommInitRank");
	nccl.all_reduce = dlsym(library, "ncclAllReduce");
	nccl.destroy = dlsym(library, "ncclCommDestroy");
}
#endif

/* ---- measuring -------------------------------------------------------------------------------- */

struct shared {
	ncclUniqueId id;
	volatile int ready, arrived;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return n ? values[n / 2] : 0;
}

#define MODES 3
#define BLOCKS_MOST 64
static const int modes[MODES] = {0, COLLECTIVES, COLLECTIVES | KERNELS};
static int wanted; /* events the profiler behind asked for */

static double block(ncclComm_t comm, float *data, size_t bytes, cudaStream_t stream, int n,
		    bool each)
{
	uint64_t begun;

	check(cudaStreamSynchronize(stream) == cudaSuccess, "synchronising");
	begun = now_ns();
	for (int i = 0; i < n; i++) {
		check(nccl.all_reduce(data, data, bytes / sizeof(*data), ncclFloat, ncclSum, comm,
				      stream) == ncclSuccess,
		      "ncclAllReduce");
		if (each)
			check(cudaStreamSynchronize(stream) == cudaSuccess, "synchronising");
	}
	check(cudaStreamSynchronize(stream) == cudaSuccess, "synchronising");
	return (double)(now_ns() - begun) / n / 1000;
}

static void measure(ncclComm_t comm, float *data, size_t bytes, cudaStream_t stream, int blocks)
{
	static double times[2][MODES][BLOCKS_MOST];
	int n = bytes > 1 << 22 ? 10 : bytes > 1 << 15 ? 50 : 640;

	for (int b = -1; b < blocks; b++)
		for (int turn = 0; turn < MODES; turn++) {
			int mode = (turn + b + 1) % MODES;

			if (mask)
				*mask = modes[mode] & wanted;
			for (int each = 0; each < 2; each++) {
				double us = block(comm, data, bytes, stream, n, each);

				if (b >= 0)
					times[each][mode][b] = us;
			}
		}
	if (rank_here)
		return;
	printf("%9zu", bytes);
	for (int each = 0; each < 2; each++)
		for (int mode = 0; mode < MODES; mode++)
			printf(" %10.2f", median(times[each][mode], blocks));
	printf("\n");
	fflush(stdout);
}

static void run(struct shared *shared, int rank, int ranks, int blocks)
{
	char host[32];
	int gpus = 0, nccl_version = 0;
	ncclComm_t comm;
	cudaStream_t stream;
	float *data;

	rank_here = rank;
	snprintf(host, sizeof(host), "%d", rank);
	setenv("RANK", host, 1);
	check(cudaGetDeviceCount(&gpus) == cudaSuccess && gpus, "cudaGetDeviceCount");
	if (ranks > gpus)
		setenv("NCCL_HOSTID", host, 1);
	check(cudaSetDevice(rank % gpus) == cudaSuccess, "cudaSetDevice");
	load();
	if (!rank) {
		check(nccl.id(&shared->id) == ncclSuccess, "ncclGetUniqueId");
		__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	}
	while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE))
		sched_yield();
	check(nccl.init(&comm, ranks, shared->id, rank) == ncclSuccess, "ncclCommInitRank");
	nccl.version(&nccl_version);
	wanted = mask ? *mask : 0;
	check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream");
	check(cudaMalloc((void **)&data, 64 << 20) == cudaSuccess, "cudaMalloc");
	check(cudaMemset(data, 0, 64 << 20) == cudaSuccess, "cudaMemset");
	if (show) {
		for (int i = 0; i < 5; i++) {
			if (rank == 1)
				usleep(20000);
			see("call", 0, 0);
			block(comm, data, i % 2 ? 1 << 20 : 8, stream, 1, true);
			see("done", 0, 0);
		}
	} else {
		if (!rank)
			printf("NCCL %d, interface %d, %d ranks on %d GPUs, events %#x%s; us "
			       "for each all-reduce: in a row (off, collectives, kernels too), "
			       "each waited for (the same)\n",
			       nccl_version, version, ranks, gpus, wanted,
			       mask ? "" : " (no profiler)");
		for (size_t bytes = 8; bytes <= 64 << 20; bytes *= 8)
			measure(comm, data, bytes, stream, blocks);
		measure(comm, data, 64 << 20, stream, blocks);
	}
	check(nccl.destroy(comm) == ncclSuccess, "ncclCommDestroy");
}

int main(int argc, char **argv)
{
	int ranks = 2, blocks = 11, status = 0, all = 0;
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--ranks") && i + 1 < argc)
			ranks = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--blocks") && i + 1 < argc)
			blocks = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--events"))
			show = true;
		else
			return fprintf(stderr,
				       "usage: nccl_cost [--ranks N] [--blocks N] [--events]\n"),
			       2;
	if (ranks < 2 || ranks > RANKS_MOST || blocks < 1 || blocks > BLOCKS_MOST)
		return fprintf(stderr, "nccl_cost: 2 to %d ranks, 1 to %d blocks\n", RANKS_MOST,
			       BLOCKS_MOST),
		       2;
	if (!getenv("NCCL_PROFILER_PLUGIN"))
		setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
	for (int rank = 0; rank < ranks; rank++)
		if (!fork()) {
			run(shared, rank, ranks, blocks);
			exit(0);
		}
	while (wait(&status) > 0)
		all |= status;
	return all ? 1 : 0;
}
