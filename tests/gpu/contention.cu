/*
 * tests/gpu/contention.cu: the same call made by several threads, or several processes, at the same
 * time, each on a GPU of its own: what they take beyond a thread alone they wait for each other.
 * tests/gpu/waits starts it bare and under cudaspy.
 *
 *   contention [--one | --threads N | --procs N] [--seconds S] [--iterations N] [CALL...]
 *   contention --list
 *
 * Worker i works on device i modulo their number. All begin a call together and repeat it for S
 * seconds or N times, whichever ends first. A line for each call: mode, workers, GPUs, iterations of
 * all, and the median, 99th percentile, mean and worst microseconds of one iteration over all
 * workers. What the workers need is made before by the main thread, one worker after the other, so
 * that only the calls collide; the workers are other threads.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../../kernels/kernels.h"

#define WORKERS_MAX 64
#define SAMPLES_MAX 8192
#define KIB 1024u
#define MIB (1024u * KIB)

#define CHECK(call) \
	do { \
		cudaError_t result_ = (call); \
		if (result_ != cudaSuccess) { \
			fprintf(stderr, "contention: line %d: %s: %s\n", __LINE__, #call, \
				cudaGetErrorName(result_)); \
			exit(1); \
		} \
	} while (0)

/* A fatbin of kernels/empty.cu, for cudaLibraryLoadData; the build makes it. */
extern "C" const unsigned char small_library[];

/* What a worker calls with. */
struct subject {
	int device, devices;
	cudaStream_t stream;
	void *memory, *pinned, *pageable;
};

/* ---- the calls ------------------------------------------------------------------------------ */

static void do_launch(struct subject *s)
{
	CHECK(launch_empty(s->stream));
}

static void do_h2d_pinned(struct subject *s)
{
	CHECK(cudaMemcpyAsync(s->memory, s->pinned, 64 * KIB, cudaMemcpyHostToDevice, s->stream));
}

static void do_h2d_pageable(struct subject *s)
{
	CHECK(cudaMemcpyAsync(s->memory, s->pageable, 64 * KIB, cudaMemcpyHostToDevice, s->stream));
}

static void allocate_and_free(size_t bytes)
{
	void *memory;

	CHECK(cudaMalloc(&memory, bytes));
	CHECK(cudaFree(memory));
}

static void do_malloc_3m(struct subject *)
{
	allocate_and_free(3 * MIB);
}

static void do_malloc_64m(struct subject *)
{
	allocate_and_free(64 * MIB);
}

static void do_malloc_async(struct subject *s)
{
	void *memory;

	CHECK(cudaMallocAsync(&memory, MIB, s->stream));
	CHECK(cudaFreeAsync(memory, s->stream));
}

static void do_malloc_host(struct subject *)
{
	void *memory;

	CHECK(cudaMallocHost(&memory, MIB));
	CHECK(cudaFreeHost(memory));
}

static void do_host_register(struct subject *s)
{
	CHECK(cudaHostRegister(s->pageable, MIB, cudaHostRegisterDefault));
	CHECK(cudaHostUnregister(s->pageable));
}

/* Small: all workers together stay within a few MiB. */
static void do_managed(struct subject *)
{
	void *memory;

	CHECK(cudaMallocManaged(&memory, 256 * KIB));
	CHECK(cudaFree(memory));
}

static void do_graph(struct subject *s)
{
	cudaGraphExec_t executable;
	cudaGraph_t graph;
	int i;

	CHECK(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
	for (i = 0; i < 10; i++)
		CHECK(launch_empty(s->stream));
	CHECK(cudaStreamEndCapture(s->stream, &graph));
	CHECK(cudaGraphInstantiate(&executable, graph, 0));
	CHECK(cudaGraphExecDestroy(executable));
	CHECK(cudaGraphDestroy(graph));
}

static void do_stream(struct subject *)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamDestroy(stream));
}

static void do_library(struct subject *)
{
	cudaLibrary_t library;

	CHECK(cudaLibraryLoadData(&library, small_library, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cudaLibraryUnload(library));
}

static void do_event(struct subject *)
{
	cudaEvent_t event;

	CHECK(cudaEventCreate(&event));
	CHECK(cudaEventDestroy(event));
}

static void do_sync(struct subject *)
{
	CHECK(cudaDeviceSynchronize());
}

/* Between every two devices that can; several workers of a device find it done. */
static void peers_open(struct subject *s)
{
	int peer, can;

	for (peer = 0; peer < s->devices; peer++) {
		if (peer == s->device)
			continue;
		CHECK(cudaDeviceCanAccessPeer(&can, s->device, peer));
		if (can && cudaDeviceEnablePeerAccess(peer, 0) != cudaSuccess &&
		    cudaGetLastError() != cudaErrorPeerAccessAlreadyEnabled)
			CHECK(cudaErrorPeerAccessUnsupported);
	}
}

static void peers_close(struct subject *s)
{
	int peer;

	for (peer = 0; peer < s->devices; peer++)
		if (peer != s->device && cudaDeviceDisablePeerAccess(peer) != cudaSuccess)
			cudaGetLastError(); /* was not enabled, or is no longer */
}

/*
 * iterations: at most, so that a trace of all workers stays within some MiB. chunk: after so many the
 * worker waits for its stream, outside the times; the launch queue, about a thousand deep, never
 * fills.
 */
/* clang-format off */
static const struct call {
	const char *name;
	void (*once)(struct subject *subject);
	unsigned iterations, chunk;
	void (*open)(struct subject *subject), (*close)(struct subject *subject);
} calls[] = {
	{"launch", do_launch, 3000, 64, NULL, NULL},
	{"h2d-pinned", do_h2d_pinned, 3000, 64, NULL, NULL},
	{"h2d-pageable", do_h2d_pageable, 3000, 16, NULL, NULL},
	{"malloc-3m", do_malloc_3m, 300, 0, NULL, NULL},
	{"malloc-64m", do_malloc_64m, 200, 0, NULL, NULL},
	{"malloc-peer", do_malloc_3m, 100, 0, peers_open, peers_close},
	{"malloc-async", do_malloc_async, 2000, 64, NULL, NULL},
	{"malloc-host", do_malloc_host, 1000, 0, NULL, NULL},
	{"host-register", do_host_register, 100, 0, NULL, NULL},
	{"managed", do_managed, 6, 0, NULL, NULL},
	{"graph", do_graph, 300, 0, NULL, NULL},
	{"stream", do_stream, 2000, 0, NULL, NULL},
	{"library", do_library, 1000, 0, NULL, NULL},
	{"event", do_event, 4000, 0, NULL, NULL},
	{"sync", do_sync, 4000, 0, NULL, NULL},
};
/* clang-format on */
#define CALL_CNT ((int)(sizeof(calls) / sizeof(calls[0])))

/* ---- what all threads and processes share --------------------------------------------------- */

struct samples {
	unsigned count;
	float us[SAMPLES_MAX];
};

struct shared {
	pthread_barrier_t start; /* of each call, and its end */
	int workers, devices;
	double seconds;
	unsigned iterations_max;
	int wanted[CALL_CNT];
	struct samples samples[CALL_CNT][WORKERS_MAX];
};

static struct shared *shared;

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void subject_init(struct subject *s, int index)
{
	memset(s, 0, sizeof(*s));
	CHECK(cudaGetDeviceCount(&s->devices));
	s->device = index % s->devices;
	shared->devices = s->devices < shared->workers ? s->devices : shared->workers;
	CHECK(cudaSetDevice(s->device));
	CHECK(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&s->memory, 64 * KIB));
	CHECK(cudaMallocHost(&s->pinned, 64 * KIB));
	s->pageable = calloc(1, MIB + 4 * KIB);
	if (!s->pageable)
		exit(1);
	memset(s->pageable, 1, MIB);
	CHECK(launch_empty(s->stream)); /* loads the code */
	CHECK(cudaStreamSynchronize(s->stream));
}

static void subject_release(struct subject *s)
{
	CHECK(cudaSetDevice(s->device));
	CHECK(cudaStreamDestroy(s->stream));
	CHECK(cudaFree(s->memory));
	CHECK(cudaFreeHost(s->pinned));
	free(s->pageable);
}

/* ---- one worker ----------------------------------------------------------------------------- */

static void measure(const struct call *call, struct subject *subject, struct samples *samples)
{
	unsigned limit = call->iterations, i = 0;
	double begin, end, last;

	if (limit > shared->iterations_max)
		limit = shared->iterations_max;
	begin = now_us();
	last = begin + shared->seconds * 1e6;
	while (i < limit && begin < last) {
		call->once(subject);
		end = now_us();
		samples->us[i++] = (float)(end - begin);
		begin = end;
		if (call->chunk && i % call->chunk == 0) {
			CHECK(cudaStreamSynchronize(subject->stream));
			begin = now_us();
		}
	}
	samples->count = i;
	CHECK(cudaStreamSynchronize(subject->stream));
}

struct worker {
	pthread_t thread;
	int call, index;
	struct subject *subject;
};

/* A thread of its own, also in a process of its own: the main thread made what it needs. */
static void *work(void *argument)
{
	struct worker *worker = (struct worker *)argument;
	const struct call *call = &calls[worker->call];

	CHECK(cudaSetDevice(worker->subject->device));
	call->once(worker->subject); /* the first one is another */
	CHECK(cudaStreamSynchronize(worker->subject->stream));
	pthread_barrier_wait(&shared->start);
	measure(call, worker->subject, &shared->samples[worker->call][worker->index]);
	pthread_barrier_wait(&shared->start);
	return NULL;
}

/* Workers first to last of this process, all wanted calls. */
static void run_workers(int first, int count)
{
	static struct subject subjects[WORKERS_MAX];
	static struct worker workers[WORKERS_MAX];
	int c, i;

	for (i = 0; i < count; i++)
		subject_init(&subjects[i], first + i);
	for (c = 0; c < CALL_CNT; c++) {
		if (!shared->wanted[c])
			continue;
		for (i = 0; calls[c].open && i < count; i++) {
			CHECK(cudaSetDevice(subjects[i].device));
			calls[c].open(&subjects[i]);
		}
		for (i = 0; i < count; i++) {
			workers[i].call = c;
			workers[i].index = first + i;
			workers[i].subject = &subjects[i];
			if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
				exit(1);
		}
		for (i = 0; i < count; i++)
			pthread_join(workers[i].thread, NULL);
		for (i = 0; calls[c].close && i < count; i++) {
			CHECK(cudaSetDevice(subjects[i].device));
			calls[c].close(&subjects[i]);
		}
	}
	for (i = 0; i < count; i++)
		subject_release(&subjects[i]);
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Children that end badly leave the others at the barrier: they are ended, too. */
static int wait_for(const pid_t *children, int count)
{
	int left = count, status, i, bad = 0;

	while (left > 0 && wait(&status) > 0) {
		left--;
		if (status == 0 || bad)
			continue;
		bad = 1;
		for (i = 0; i < count; i++)
			kill(children[i], SIGKILL);
	}
	return bad;
}

static int run_processes(int count, int descriptor)
{
	pid_t children[WORKERS_MAX];
	char index[16], number[16];
	int i;

	snprintf(number, sizeof(number), "%d", descriptor);
	for (i = 0; i < count; i++) {
		snprintf(index, sizeof(index), "%d", i);
		children[i] = fork();
		if (children[i] < 0)
			exit(1);
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execl("/proc/self/exe", "contention", "--child", index, number,
			      (char *)NULL);
			_exit(127);
		}
	}
	return wait_for(children, count);
}

static void shared_map(int descriptor)
{
	shared = (struct shared *)mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED,
				       descriptor, 0);
	if (shared == MAP_FAILED) {
		perror("contention: mmap");
		exit(1);
	}
}

static int shared_new(void)
{
	int descriptor = memfd_create("contention", 0);

	if (descriptor < 0 || ftruncate(descriptor, sizeof(*shared))) {
		perror("contention: memfd");
		exit(1);
	}
	shared_map(descriptor);
	return descriptor;
}

/* ---- main ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	float left = *(const float *)a, right = *(const float *)b;

	return (left > right) - (left < right);
}

static void report(int c, const char *mode)
{
	static float all[WORKERS_MAX * SAMPLES_MAX];
	unsigned count = 0, i;
	double sum = 0;
	int w;

	for (w = 0; w < shared->workers; w++) {
		const struct samples *samples = &shared->samples[c][w];

		memcpy(all + count, samples->us, samples->count * sizeof(*all));
		count += samples->count;
	}
	if (!count)
		return;
	for (i = 0; i < count; i++)
		sum += all[i];
	qsort(all, count, sizeof(*all), compare);
	printf("%-14s %-8s %7d %5d %10u %10.2f %10.2f %10.2f %10.2f\n", calls[c].name, mode,
	       shared->workers, shared->devices, count, all[count / 2],
	       all[(unsigned)((count - 1) * 0.99)], sum / count, all[count - 1]);
}

static void want(const char *name)
{
	int c, found = 0;

	for (c = 0; c < CALL_CNT; c++)
		if (!strcmp(calls[c].name, name))
			found = shared->wanted[c] = 1;
	if (!found) {
		fprintf(stderr, "contention: no call %s; see --list\n", name);
		exit(2);
	}
}

static void list(void)
{
	int c;

	for (c = 0; c < CALL_CNT; c++)
		puts(calls[c].name);
	exit(0);
}

static const char *value_of(char **argv, int *i)
{
	if (!argv[*i + 1]) {
		fprintf(stderr, "contention: %s needs a value\n", argv[*i]);
		exit(2);
	}
	return argv[++*i];
}

int main(int argc, char **argv)
{
	int workers = 1, any = 0, bad = 0, descriptor, c, i;
	pthread_barrierattr_t attributes;
	const char *mode = "one";

	if (argc == 4 && !strcmp(argv[1], "--child")) {
		shared_map(atoi(argv[3]));
		run_workers(atoi(argv[2]), 1);
		return 0;
	}
	descriptor = shared_new();
	shared->seconds = 1;
	shared->iterations_max = SAMPLES_MAX;
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--one")) {
			workers = 1;
			mode = "one";
		} else if (!strcmp(argv[i], "--threads") || !strcmp(argv[i], "--procs")) {
			mode = argv[i] + 2;
			workers = atoi(value_of(argv, &i));
		} else if (!strcmp(argv[i], "--seconds")) {
			shared->seconds = atof(value_of(argv, &i));
		} else if (!strcmp(argv[i], "--iterations")) {
			shared->iterations_max = (unsigned)atoi(value_of(argv, &i));
		} else if (!strcmp(argv[i], "--list")) {
			list();
		} else {
			want(argv[i]);
			any = 1;
		}
	}
	if (workers < 1 || workers > WORKERS_MAX || shared->iterations_max > SAMPLES_MAX) {
		fprintf(stderr, "contention: 1 to %d workers, at most %d iterations\n", WORKERS_MAX,
			SAMPLES_MAX);
		return 2;
	}
	for (c = 0; c < CALL_CNT; c++)
		shared->wanted[c] |= !any;
	shared->workers = workers;
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->start, &attributes, (unsigned)workers);

	if (!strcmp(mode, "procs"))
		bad = run_processes(workers, descriptor);
	else
		run_workers(0, workers);
	printf("%-14s %-8s %7s %5s %10s %10s %10s %10s %10s\n", "call", "mode", "workers", "gpus",
	       "iterations", "median_us", "p99_us", "mean_us", "max_us");
	for (c = 0; c < CALL_CNT; c++)
		report(c, mode);
	return bad;
}
