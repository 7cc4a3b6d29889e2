/*
 * tests/gpu/stalls.cu: small situations in which one thread's call stops another's, and two in which
 * none does, with what the host clock says of them. tests/gpu/waits starts it bare and under cudaspy.
 *
 *   stalls pageable|sync-first|pinned   four threads of one GPU, each with a stream, started 5 ms
 *                                       apart: copy in, a kernel of 400, 350, 300, 250 ms, copy back
 *   stalls stack|free|limit             while a kernel of 700 ms runs, B does one thing that waits for
 *                                       the device, and C copies and launches every 2 ms
 *   stalls queue                        launches far ahead of the GPU until a launch blocks
 *   stalls clean                        pinned copies, a thread for each GPU, nothing allocated
 *
 * Threads are named by their ids, as in cudaspy's report. On the simulator the situation stack needs
 * the script line 'lazy needs_stack'.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "../../kernels/kernels.h"

#define COPY_BYTES (352 * 1024 * 4)
#define LONG_KERNEL_MS 700
#define STACK_BYTES (100 * 1024)
#define GPUS_MAX 64

#define CHECK(call) \
	do { \
		cudaError_t result_ = (call); \
		if (result_ != cudaSuccess) { \
			fprintf(stderr, "stalls: line %d: %s: %s\n", __LINE__, #call, \
				cudaGetErrorName(result_)); \
			exit(1); \
		} \
	} while (0)

/* Its local memory is more than a context has at first: the first launch makes it grow. */
extern "C" __global__ void needs_stack(unsigned *values, unsigned count)
{
	volatile unsigned stack[STACK_BYTES / sizeof(unsigned)];
	unsigned i, sum = 0;

	for (i = 0; i < count; i++)
		stack[(values[0] + i * 977) % (STACK_BYTES / sizeof(unsigned))] = i;
	for (i = 0; i < count; i++)
		sum += stack[(values[0] + i * 977) % (STACK_BYTES / sizeof(unsigned))];
	values[0] = sum;
}
extern "C" const unsigned spysim_sizes_needs_stack[];
const unsigned spysim_sizes_needs_stack[] = {sizeof(unsigned *), sizeof(unsigned), 0};

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void sleep_ms(unsigned ms)
{
	struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left))
		;
}

static int thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

static cudaStream_t stream_new(int device)
{
	cudaStream_t stream;

	CHECK(cudaSetDevice(device));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

/* ---- four threads that share nothing but the GPU -------------------------------------------- */

enum variant { PAGEABLE, SYNC_FIRST, PINNED };

struct copier {
	pthread_t thread;
	int index, tid;
	enum variant variant;
	unsigned kernel_ms;
	cudaStream_t stream;
	void *in, *out, *device;
	double begin_ms, called_ms, returned_ms;
};

static pthread_barrier_t together;

static void *host_buffer(enum variant variant)
{
	void *memory;

	if (variant == PINNED)
		CHECK(cudaMallocHost(&memory, COPY_BYTES));
	else
		memory = malloc(COPY_BYTES);
	if (!memory)
		exit(1);
	memset(memory, 1, COPY_BYTES);
	return memory;
}

static void *copy_work(void *argument)
{
	struct copier *c = (struct copier *)argument;

	CHECK(cudaSetDevice(0));
	c->tid = thread_id();
	pthread_barrier_wait(&together);
	sleep_ms(5 * (unsigned)c->index);
	c->begin_ms = now_ms();
	CHECK(cudaMemcpyAsync(c->device, c->in, COPY_BYTES, cudaMemcpyHostToDevice, c->stream));
	CHECK(launch_delay(c->kernel_ms * 1000, c->stream));
	if (c->variant == SYNC_FIRST)
		CHECK(cudaStreamSynchronize(c->stream));
	c->called_ms = now_ms();
	CHECK(cudaMemcpyAsync(c->out, c->device, COPY_BYTES, cudaMemcpyDeviceToHost, c->stream));
	c->returned_ms = now_ms();
	CHECK(cudaStreamSynchronize(c->stream));
	return NULL;
}

static void copies(enum variant variant)
{
	struct copier copiers[4];
	int i;

	pthread_barrier_init(&together, NULL, 4);
	for (i = 0; i < 4; i++) {
		struct copier *c = &copiers[i];

		c->index = i;
		c->variant = variant;
		c->kernel_ms = 400 - 50 * (unsigned)i;
		c->stream = stream_new(0);
		CHECK(cudaMalloc(&c->device, COPY_BYTES));
		c->in = host_buffer(variant);
		c->out = host_buffer(variant);
		CHECK(launch_delay(0, c->stream));
		CHECK(cudaStreamSynchronize(c->stream));
	}
	for (i = 0; i < 4; i++)
		if (pthread_create(&copiers[i].thread, NULL, copy_work, &copiers[i]))
			exit(1);
	for (i = 0; i < 4; i++)
		pthread_join(copiers[i].thread, NULL);
	for (i = 0; i < 4; i++)
		printf("thread %d: began %.1f ms, kernel %u ms, copy back called at %.1f ms, took "
		       "%.3f ms, returned at %.1f ms\n",
		       copiers[i].tid, copiers[i].begin_ms - copiers[0].begin_ms,
		       copiers[i].kernel_ms, copiers[i].called_ms - copiers[0].begin_ms,
		       copiers[i].returned_ms - copiers[i].called_ms,
		       copiers[i].returned_ms - copiers[0].begin_ms);
}

/* ---- a call that waits for the device, and others' calls behind it --------------------------- */

enum trigger { STACK, FREE, LIMIT };

static struct {
	enum trigger trigger;
	cudaStream_t a, b, c;
	void *b_memory, *c_memory, *c_pinned;
	double b_ms, copy_ms, launch_ms;
	int b_tid, c_tid;
} blocked;
static int stop;

static void *trigger_work(void *)
{
	double begin_ms;
	void *memory;

	CHECK(cudaSetDevice(0));
	blocked.b_tid = thread_id();
	begin_ms = now_ms();
	if (blocked.trigger == STACK) {
		needs_stack<<<1, 1, 0, blocked.b>>>((unsigned *)blocked.b_memory, 64u);
		CHECK(cudaGetLastError());
	} else if (blocked.trigger == FREE) {
		CHECK(cudaMalloc(&memory, 1 << 20));
		CHECK(cudaFree(memory));
	} else {
		CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 48 * 1024));
	}
	blocked.b_ms = now_ms() - begin_ms;
	CHECK(cudaStreamSynchronize(blocked.b));
	return NULL;
}

static void *victim_work(void *)
{
	CHECK(cudaSetDevice(0));
	blocked.c_tid = thread_id();
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		double begin = now_ms(), copied, launched;

		CHECK(cudaMemcpyAsync(blocked.c_memory, blocked.c_pinned, 4096,
				      cudaMemcpyHostToDevice, blocked.c));
		copied = now_ms();
		CHECK(launch_empty(blocked.c));
		launched = now_ms();
		if (copied - begin > blocked.copy_ms)
			blocked.copy_ms = copied - begin;
		if (launched - copied > blocked.launch_ms)
			blocked.launch_ms = launched - copied;
		sleep_ms(2);
	}
	CHECK(cudaStreamSynchronize(blocked.c));
	return NULL;
}

static void stall(enum trigger trigger)
{
	pthread_t b, c;

	blocked.trigger = trigger;
	blocked.a = stream_new(0);
	blocked.b = stream_new(0);
	blocked.c = stream_new(0);
	CHECK(cudaMalloc(&blocked.b_memory, 4096));
	CHECK(cudaMemset(blocked.b_memory, 0, 4096));
	CHECK(cudaMalloc(&blocked.c_memory, 4096));
	CHECK(cudaMallocHost(&blocked.c_pinned, 4096));
	CHECK(launch_delay(0, blocked.a));
	CHECK(launch_empty(blocked.c));
	CHECK(cudaDeviceSynchronize());

	if (pthread_create(&c, NULL, victim_work, NULL))
		exit(1);
	sleep_ms(100);
	CHECK(launch_delay(LONG_KERNEL_MS * 1000, blocked.a));
	sleep_ms(20);
	if (pthread_create(&b, NULL, trigger_work, NULL))
		exit(1);
	pthread_join(b, NULL);
	CHECK(cudaStreamSynchronize(blocked.a));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(c, NULL);
	printf("B, thread %d: waited %.2f ms\n", blocked.b_tid, blocked.b_ms);
	printf("C, thread %d: worst copy %.2f ms, worst launch %.2f ms\n", blocked.c_tid,
	       blocked.copy_ms, blocked.launch_ms);
}

/* ---- the launch queue ------------------------------------------------------------------------ */

static void *queue_work(void *)
{
	cudaStream_t stream = stream_new(0);
	double begin, took, blocked_ms = 0;
	unsigned i, nth = 0;

	CHECK(launch_delay(0, stream));
	CHECK(launch_empty(stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(launch_delay(300 * 1000, stream));
	for (i = 2; i <= 4000; i++) {
		begin = now_ms();
		CHECK(launch_empty(stream));
		took = now_ms() - begin;
		if (took > blocked_ms) {
			blocked_ms = took;
			nth = i;
		}
		if (took > 50)
			break;
	}
	CHECK(cudaStreamSynchronize(stream));
	printf("thread %d: launch %u took longest, %.2f ms\n", thread_id(), nth, blocked_ms);
	return NULL;
}

static void queue(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, queue_work, NULL))
		exit(1);
	pthread_join(thread, NULL);
}

/* ---- nothing wrong --------------------------------------------------------------------------- */

struct clean {
	pthread_t thread;
	int device, tid;
	cudaStream_t stream;
	void *memory, *in, *out;
	unsigned rounds;
	double worst_ms; /* of the three calls that promise to return at once */
};

static void *clean_work(void *argument)
{
	struct clean *c = (struct clean *)argument;
	double last_ms;

	CHECK(cudaSetDevice(c->device));
	c->tid = thread_id();
	pthread_barrier_wait(&together);
	last_ms = now_ms() + 400;
	while (now_ms() < last_ms) {
		double begin_ms = now_ms(), took_ms;

		CHECK(cudaMemcpyAsync(c->memory, c->in, COPY_BYTES, cudaMemcpyHostToDevice,
				      c->stream));
		CHECK(launch_delay(1000, c->stream));
		CHECK(cudaMemcpyAsync(c->out, c->memory, COPY_BYTES, cudaMemcpyDeviceToHost,
				      c->stream));
		took_ms = now_ms() - begin_ms;
		if (took_ms > c->worst_ms)
			c->worst_ms = took_ms;
		CHECK(cudaStreamSynchronize(c->stream));
		c->rounds++;
	}
	return NULL;
}

static void clean(void)
{
	static struct clean threads[GPUS_MAX];
	int gpus, i;

	CHECK(cudaGetDeviceCount(&gpus));
	if (gpus > GPUS_MAX)
		gpus = GPUS_MAX;
	pthread_barrier_init(&together, NULL, (unsigned)gpus);
	for (i = 0; i < gpus; i++) {
		struct clean *c = &threads[i];

		c->device = i;
		c->stream = stream_new(i);
		CHECK(cudaMalloc(&c->memory, COPY_BYTES));
		c->in = host_buffer(PINNED);
		c->out = host_buffer(PINNED);
		CHECK(launch_delay(0, c->stream));
		CHECK(cudaStreamSynchronize(c->stream));
	}
	for (i = 0; i < gpus; i++)
		if (pthread_create(&threads[i].thread, NULL, clean_work, &threads[i]))
			exit(1);
	for (i = 0; i < gpus; i++)
		pthread_join(threads[i].thread, NULL);
	for (i = 0; i < gpus; i++)
		printf("thread %d (GPU %d): %u rounds, worst three asynchronous calls %.3f ms\n",
		       threads[i].tid, threads[i].device, threads[i].rounds, threads[i].worst_ms);
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";

	if (!strcmp(name, "pageable"))
		copies(PAGEABLE);
	else if (!strcmp(name, "sync-first"))
		copies(SYNC_FIRST);
	else if (!strcmp(name, "pinned"))
		copies(PINNED);
	else if (!strcmp(name, "stack"))
		stall(STACK);
	else if (!strcmp(name, "free"))
		stall(FREE);
	else if (!strcmp(name, "limit"))
		stall(LIMIT);
	else if (!strcmp(name, "queue"))
		queue();
	else if (!strcmp(name, "clean"))
		clean();
	else {
		fputs("Usage: stalls pageable|sync-first|pinned|stack|free|limit|queue|clean\n",
		      stderr);
		return 2;
	}
	return 0;
}
