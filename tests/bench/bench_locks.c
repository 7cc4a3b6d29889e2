/*
 * tests/bench/bench_locks.c: what a lock costs a thread inside a CUDA call and outside of one, and
 * how long calls take that wait for each other. tests/bench/run starts this program bare, recorded,
 * and recorded without probes; it knows of none of them.
 *
 *   bench_locks pairs [--ms N]      ns per uncontended lock and unlock of a mutex, outside and inside
 *   bench_locks loop THREADS N      ns per launch of an empty kernel, N launches a thread
 *   bench_locks map ROUNDS          ns per call of kinds that take the same locks, all at a time
 *
 * The lines are those of bench_calls: name, threads, median, mean, number.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../kernels/kernels.h"

#define THREADS_MAX 16
#define PAIRS 10000
#define MAP_BYTES ((size_t)256 << 10)

#define CHECK(call) \
	do { \
		int result_ = (int)(call); \
		if (result_) { \
			fprintf(stderr, "bench_locks: %s: error %d\n", #call, result_); \
			exit(1); \
		} \
	} while (0)

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print_line(const char *name, int threads, double *values, size_t cnt)
{
	double sum = 0;
	size_t i;

	if (!cnt)
		return;
	for (i = 0; i < cnt; i++)
		sum += values[i];
	qsort(values, cnt, sizeof(*values), compare_doubles);
	printf("%s\t%d\t%.2f\t%.2f\t%zu\n", name, threads, values[cnt / 2], sum / (double)cnt, cnt);
	fflush(stdout);
}

/* ---- a lock and its unlock --------------------------------------------------------------------- */

static double measure_ms = 40;
static pthread_t main_thread;
static int was_inside;

/* The median of chunks. */
static void measure_pairs(const char *name)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static double chunks[4096];
	double end = now_ns() + measure_ms * 1e6, begin;
	size_t cnt = 0;
	int i;

	while (cnt < 4096 && (now_ns() < end || cnt < 5)) {
		begin = now_ns();
		for (i = 0; i < PAIRS; i++) {
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
		}
		chunks[cnt++] = (now_ns() - begin) / PAIRS;
	}
	print_line(name, 1, chunks, cnt);
}

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry nothing()\n{\n\tret;\n}\n";

static void inside(void *unused)
{
	(void)unused;
	if (was_inside || !pthread_equal(main_thread, pthread_self()))
		return;
	was_inside = 1;
	measure_pairs("inside");
}

static size_t inside_occupancy(int block_size)
{
	(void)block_size;
	inside(NULL);
	return 0;
}

/*
 * Two calls that call a function of ours before they return: the driver asks how much shared memory
 * a block needs; the simulator does not, but destroys a user object at once.
 */
static void pairs(void)
{
	CUmodule module;
	CUfunction function;
	CUuserObject object;
	int grid, block;

	main_thread = pthread_self();
	measure_pairs("outside");
	if (!cuModuleLoadData(&module, ptx) && !cuModuleGetFunction(&function, module, "nothing"))
		cuOccupancyMaxPotentialBlockSize(&grid, &block, function, inside_occupancy, 0, 0);
	if (!was_inside &&
	    !cuUserObjectCreate(&object, NULL, inside, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC))
		cuUserObjectRelease(object, 1);
	if (!was_inside)
		fprintf(stderr, "bench_locks: no call calls us on this thread\n");
}

/* ---- launches ---------------------------------------------------------------------------------- */

static pthread_barrier_t together;
static long launches;

static void *launch_thread(void *result)
{
	cudaStream_t stream;
	double begin;
	long i;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (i = 0; i < 1000; i++)
		CHECK(launch_empty(stream));
	CHECK(cudaStreamSynchronize(stream));
	pthread_barrier_wait(&together);
	begin = now_ns();
	for (i = 0; i < launches; i++)
		CHECK(launch_empty(stream));
	CHECK(cudaStreamSynchronize(stream));
	*(double *)result = (now_ns() - begin) / (double)launches;
	pthread_barrier_wait(&together);
	CHECK(cudaStreamDestroy(stream));
	return NULL;
}

static void loop(int threads)
{
	pthread_t thread[THREADS_MAX];
	double ns[THREADS_MAX];
	int i;

	pthread_barrier_init(&together, NULL, (unsigned)threads);
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, launch_thread, &ns[i]))
			exit(1);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	print_line("launch", threads, ns, (size_t)threads);
}

/* ---- calls that wait for each other ------------------------------------------------------------ */

struct worker {
	pthread_t thread;
	const struct kind *kind;
	double *first_ns, *second_ns;
	cudaGraph_t graph;
	void *pageable, *made;
};

static void make_pinned(struct worker *worker)
{
	CHECK(cudaMallocHost(&worker->made, MAP_BYTES));
}

static void free_pinned(struct worker *worker)
{
	CHECK(cudaFreeHost(worker->made));
}

static void make_registered(struct worker *worker)
{
	CHECK(cudaHostRegister(worker->pageable, MAP_BYTES, 0));
}

static void free_registered(struct worker *worker)
{
	CHECK(cudaHostUnregister(worker->pageable));
}

static void make_memory(struct worker *worker)
{
	CHECK(cudaMalloc(&worker->made, MAP_BYTES));
}

static void free_memory(struct worker *worker)
{
	CHECK(cudaFree(worker->made));
}

static void make_graph(struct worker *worker)
{
	CHECK(cudaGraphInstantiate((cudaGraphExec_t *)&worker->made, worker->graph, 0));
}

static void free_graph(struct worker *worker)
{
	CHECK(cudaGraphExecDestroy(worker->made));
}

static void make_stream(struct worker *worker)
{
	CHECK(cudaStreamCreateWithFlags((cudaStream_t *)&worker->made, cudaStreamNonBlocking));
}

static void free_stream(struct worker *worker)
{
	CHECK(cudaStreamDestroy(worker->made));
}

static const struct kind {
	const char *first_name, *second_name;
	void (*first)(struct worker *worker), (*second)(struct worker *worker);
} kinds[] = {
	{"mallochost", "freehost", make_pinned, free_pinned},
	{"register", "unregister", make_registered, free_registered},
	{"malloc", "free", make_memory, free_memory},
	{"graph", "graphend", make_graph, free_graph},
	{"stream", "streamend", make_stream, free_stream},
};
#define KIND_CNT ((int)(sizeof(kinds) / sizeof(kinds[0])))

static long rounds;

static void *map_thread(void *data)
{
	struct worker *worker = data;
	double begin, middle;
	long i;

	CHECK(cudaSetDevice(0));
	pthread_barrier_wait(&together);
	for (i = 0; i < rounds; i++) {
		begin = now_ns();
		worker->kind->first(worker);
		middle = now_ns();
		worker->kind->second(worker);
		worker->first_ns[i] = middle - begin;
		worker->second_ns[i] = now_ns() - middle;
	}
	return NULL;
}

/* Two threads of each kind, all at a time. */
static void map(void)
{
	struct worker workers[2 * KIND_CNT];
	double *all = malloc(2 * (size_t)rounds * sizeof(double));
	size_t bytes = (size_t)rounds * sizeof(double);
	cudaGraphNode_t node;
	int i;

	pthread_barrier_init(&together, NULL, 2 * KIND_CNT);
	for (i = 0; i < 2 * KIND_CNT; i++) {
		workers[i] = (struct worker){.kind = &kinds[i % KIND_CNT]};
		workers[i].first_ns = malloc(bytes);
		workers[i].second_ns = malloc(bytes);
		workers[i].pageable = aligned_alloc(4096, MAP_BYTES);
		memset(workers[i].pageable, 1, MAP_BYTES);
		CHECK(cudaGraphCreate(&workers[i].graph, 0));
		CHECK(cudaGraphAddEmptyNode(&node, workers[i].graph, NULL, 0));
	}
	for (i = 0; i < 2 * KIND_CNT; i++)
		if (pthread_create(&workers[i].thread, NULL, map_thread, &workers[i]))
			exit(1);
	for (i = 0; i < 2 * KIND_CNT; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < KIND_CNT; i++) {
		memcpy(all, workers[i].first_ns, bytes);
		memcpy(all + rounds, workers[i + KIND_CNT].first_ns, bytes);
		print_line(kinds[i].first_name, 2 * KIND_CNT, all, 2 * (size_t)rounds);
		memcpy(all, workers[i].second_ns, bytes);
		memcpy(all + rounds, workers[i + KIND_CNT].second_ns, bytes);
		print_line(kinds[i].second_name, 2 * KIND_CNT, all, 2 * (size_t)rounds);
	}
	free(all);
}

/* ---- main -------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int threads;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	if (!strcmp(what, "pairs")) {
		if (argc > 3 && !strcmp(argv[2], "--ms"))
			measure_ms = strtod(argv[3], NULL);
		pairs();
		return 0;
	}
	if (!strcmp(what, "loop") && argc > 3) {
		threads = atoi(argv[2]);
		launches = strtol(argv[3], NULL, 10);
		if (threads >= 1 && threads <= THREADS_MAX && launches > 0) {
			loop(threads);
			return 0;
		}
	}
	if (!strcmp(what, "map") && argc > 2 && (rounds = strtol(argv[2], NULL, 10)) > 0) {
		map();
		return 0;
	}
	fprintf(stderr, "Usage: bench_locks pairs [--ms N] | loop THREADS N | map ROUNDS\n");
	return 2;
}
