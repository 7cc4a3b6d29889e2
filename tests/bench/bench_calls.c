/*
 * tests/bench/bench_calls.c: what one CUDA call costs the thread that makes it. tests/bench/run
 * starts this program bare and under each tracer in turn; it knows of none of them.
 *
 *   bench_calls [--threads 1,2,4] [--ms N] [CALL...]   a line for each call and thread count:
 *                                                      call, threads, median ns, mean ns, calls
 * made bench_calls --loop N     N launches in a row, then one synchronise: ns per launch, all
 * included bench_calls --start      starts CUDA on device 0 and ends
 *
 * Each thread has a stream and buffers of its own and times chunks of equal calls; waiting for the
 * GPU happens between chunks. The median of the chunks is the cost of the path of a call; the mean
 * also has what happens now and then: a full buffer, a new page, a growing file, a lost time slice.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../kernels/kernels.h"

#define THREADS_MAX 64
#define CHUNKS_MAX 65536

#define CHECK(call) \
	do { \
		int result_ = (int)(call); \
		if (result_) { \
			fprintf(stderr, "bench_calls: %s: error %d\n", #call, result_); \
			exit(1); \
		} \
	} while (0)

/* What a thread calls with. */
struct subject {
	CUcontext context;
	cudaStream_t stream;
	void *device, *pinned, *pageable;
};

/* ---- the calls ------------------------------------------------------------------------------ */

static __thread volatile unsigned long long stamps[2];

/* No call at all: two time stamps, the least that measuring a call can cost. */
static void call_stamps(struct subject *subject)
{
	(void)subject;
#if defined(__x86_64__)
	stamps[0] = __builtin_ia32_rdtsc();
	stamps[1] = __builtin_ia32_rdtsc();
#endif
}

static void call_instant(struct subject *subject)
{
	CUcontext context;

	(void)subject;
	CHECK(cuCtxGetCurrent(&context));
}

static void call_getter(struct subject *subject)
{
	int value;

	(void)subject;
	CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
}

static void call_count(struct subject *subject)
{
	int count;

	(void)subject;
	CHECK(cuDeviceGetCount(&count));
}

static void call_recorded(struct subject *subject)
{
	CHECK(cuCtxSetCurrent(subject->context));
}

static void call_sync(struct subject *subject)
{
	CHECK(cuStreamSynchronize(subject->stream));
}

static void call_launch(struct subject *subject)
{
	CHECK(launch_empty(subject->stream));
}

static void call_pinned(struct subject *subject)
{
	CHECK(cudaMemcpyAsync(subject->device, subject->pinned, 4, cudaMemcpyHostToDevice,
			      subject->stream));
}

static void call_pageable(struct subject *subject)
{
	CHECK(cudaMemcpyAsync(subject->device, subject->pageable, 4, cudaMemcpyHostToDevice,
			      subject->stream));
}

/*
 * chunk: long enough that two clock reads do not count, short enough that the launch queue, about a
 * thousand deep, never fills.
 */
static const struct call {
	const char *name;
	void (*call)(struct subject *subject);
	unsigned chunk;
	int queues; /* wait for the GPU after each chunk */
} calls[] = {
	{"stamps", call_stamps, 4096, 0},
	{"instant", call_instant, 4096, 0}, /* cuCtxGetCurrent: counted on the count-only path */
	{"getter", call_getter, 4096, 0}, /* cuDeviceGetAttribute: counted */
	{"count", call_count, 4096,
	 0}, /* cuDeviceGetCount: the same, and costs next to nothing itself */
	{"recorded", call_recorded, 4096,
	 0}, /* cuCtxSetCurrent: one record, no GPU work; keeps a table */
	{"sync", call_sync, 1024, 0}, /* cuStreamSynchronize, idle: a record, no table to keep */
	{"launch", call_launch, 64, 1}, /* runtime and driver call, an empty kernel */
	{"pinned", call_pinned, 64, 1}, /* cudaMemcpyAsync to the device, 4 bytes */
	{"pageable", call_pageable, 64, 1},
};
#define CALL_CNT (sizeof(calls) / sizeof(calls[0]))

/* ---- measuring ------------------------------------------------------------------------------ */

static pthread_barrier_t together;
static double measure_ms = 40;

struct worker {
	pthread_t thread;
	const struct call *call;
	CUcontext context;
	double *chunk_ns; /* per call, one value for each chunk */
	size_t chunk_cnt;
};

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void subject_init(struct subject *subject, CUcontext context)
{
	subject->context = context;
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&subject->stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&subject->device, 4096));
	CHECK(cudaMallocHost(&subject->pinned, 4096));
	subject->pageable = calloc(1, 4096);
}

static void subject_release(struct subject *subject)
{
	CHECK(cudaStreamDestroy(subject->stream));
	CHECK(cudaFree(subject->device));
	CHECK(cudaFreeHost(subject->pinned));
	free(subject->pageable);
}

static double run_chunk(const struct call *call, struct subject *subject)
{
	double begin = now_ns(), end;
	unsigned i;

	for (i = 0; i < call->chunk; i++)
		call->call(subject);
	end = now_ns();
	if (call->queues)
		CHECK(cudaStreamSynchronize(subject->stream));
	return (end - begin) / call->chunk;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct subject subject;
	double end;

	subject_init(&subject, worker->context);
	run_chunk(worker->call, &subject); /* the first call of its kind sets things up */
	pthread_barrier_wait(&together);
	end = now_ns() + measure_ms * 1e6;
	while (worker->chunk_cnt < CHUNKS_MAX && (now_ns() < end || worker->chunk_cnt < 5))
		worker->chunk_ns[worker->chunk_cnt++] = run_chunk(worker->call, &subject);
	pthread_barrier_wait(&together);
	subject_release(&subject);
	return NULL;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void measure(const struct call *call, unsigned threads, CUcontext context)
{
	static struct worker workers[THREADS_MAX];
	double *all, sum = 0;
	size_t cnt = 0, j;
	unsigned i;

	pthread_barrier_init(&together, NULL, threads);
	for (i = 0; i < threads; i++) {
		workers[i] = (struct worker){.call = call, .context = context};
		workers[i].chunk_ns = malloc(CHUNKS_MAX * sizeof(double));
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			exit(1);
	}
	all = malloc((size_t)threads * CHUNKS_MAX * sizeof(double));
	for (i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		for (j = 0; j < workers[i].chunk_cnt; j++) {
			all[cnt++] = workers[i].chunk_ns[j];
			sum += workers[i].chunk_ns[j];
		}
		free(workers[i].chunk_ns);
	}
	pthread_barrier_destroy(&together);
	qsort(all, cnt, sizeof(*all), compare_doubles);
	printf("%s\t%u\t%.2f\t%.2f\t%zu\n", call->name, threads, all[cnt / 2], sum / (double)cnt,
	       cnt * call->chunk);
	fflush(stdout);
	free(all);
}

/* ---- a launch-bound program ----------------------------------------------------------------- */

static void loop(long launches)
{
	cudaStream_t stream;
	double begin;
	long i;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (i = 0; i < 1000; i++)
		CHECK(launch_empty(stream));
	CHECK(cudaStreamSynchronize(stream));
	begin = now_ns();
	for (i = 0; i < launches; i++)
		CHECK(launch_empty(stream));
	CHECK(cudaStreamSynchronize(stream));
	printf("loop\t1\t%.2f\t%.2f\t%ld\n", (now_ns() - begin) / (double)launches,
	       (now_ns() - begin) / (double)launches, launches);
	CHECK(cudaStreamDestroy(stream));
}

/* ---- main ----------------------------------------------------------------------------------- */

static int usage(void)
{
	size_t i;

	fprintf(stderr,
		"Usage: bench_calls [--threads 1,2,4] [--ms N] [--loop N] [--start] [CALL...]\n"
		"Calls:");
	for (i = 0; i < CALL_CNT; i++)
		fprintf(stderr, " %s", calls[i].name);
	fputc('\n', stderr);
	return 2;
}

static int wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
	}
	return argc == 0;
}

static void measure_all(const char *threads, int argc, char **argv, CUcontext context)
{
	const char *next;
	size_t i;

	for (i = 0; i < CALL_CNT; i++) {
		if (!wanted(calls[i].name, argc, argv))
			continue;
		for (next = threads; next; next = strchr(next, ',')) {
			unsigned long n = strtoul(next += *next == ',', NULL, 10);

			if (n >= 1 && n <= THREADS_MAX)
				measure(&calls[i], (unsigned)n, context);
		}
	}
}

int main(int argc, char **argv)
{
	const char *threads = "1,2,4,8,16";
	long launches = 0;
	CUcontext context;
	int i, start = 0;

	for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--start"))
			start = 1;
		else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
			threads = argv[++i];
		else if (!strcmp(argv[i], "--ms") && i + 1 < argc)
			measure_ms = strtod(argv[++i], NULL);
		else if (!strcmp(argv[i], "--loop") && i + 1 < argc)
			launches = strtol(argv[++i], NULL, 10);
		else
			return usage();
	}
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	CHECK(cuCtxGetCurrent(&context));
	if (launches)
		loop(launches);
	else if (!start)
		measure_all(threads, argc - i, argv + i, context);
	return 0;
}
