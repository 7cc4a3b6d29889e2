/*
 * tests/e2e/programs/week.c: a program that makes calls for a week, by its clock. For tests/bench/week.sh.
 *
 *   week CALLS THREADS DAYS [SECONDS]
 *
 * CALLS recorded calls of several kinds (and others, which are counted) by THREADS threads, in steps. Behind each step the
 * clock goes on by ten minutes, in which nothing is done: time passes, and calls last as long as they do. (A clock that only
 * runs faster makes each of them last milliseconds, and whatever is done each few milliseconds is done at each call.) The
 * recorder has these times with CUDASPY_CLOCK=monotonic. Says how far it is each few seconds, and stops after SECONDS of
 * the real clock.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP_S 600
#define STEPS_OF_A_DAY 144
#define THREADS_MOST 64
#define SAY_EACH_S 5

struct dim3 {
	unsigned int x, y, z;
};

int cudaSetDevice(int device);
int cudaGetLastError(void);
int cudaEventQuery(void *event);
int cudaEventRecord(void *event, void *stream);
int cudaEventSynchronize(void *event);
int cudaStreamWaitEvent(void *stream, void *event, unsigned int flags);
int cudaStreamSynchronize(void *stream);
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemsetAsync(void *at, int value, size_t bytes, void *stream);
int cudaMalloc(void **address, size_t bytes);
int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaFree(void *address);
int cudaHostAlloc(void **address, size_t bytes, unsigned int flags);
int cudaStreamCreate(void **stream);
int cudaEventCreate(void **event);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **code, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *size);

/* ---- the clock ------------------------------------------------------------------------------- */

static _Atomic long long passed_s; /* that nobody has waited for */

/* In place of the C library's, for all that is loaded. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	int error;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	error = real ? real(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
	if (!error && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC))
		now->tv_sec += atomic_load_explicit(&passed_s, memory_order_relaxed);
	return error;
}

static double real_s(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- calls ------------------------------------------------------------------------------------ */

static char kernel;
static const struct dim3 one = {1, 1, 1};

struct worker {
	void *stream, *event, *device, *pinned, *pooled;
	long made; /* calls of which there are records */
} __attribute__((aligned(128)));

static void begin(struct worker *w)
{
	cudaSetDevice(0);
	cudaStreamCreate(&w->stream);
	cudaEventCreate(&w->event);
	cudaMalloc(&w->device, 1 << 20);
	cudaHostAlloc(&w->pinned, 1 << 20, 0);
	w->made = 5;
}

/* What a round of a training loop may look like. */
static void one_call(struct worker *w)
{
	switch (w->made++ % 16) {
	case 0:
		cudaMemcpyAsync(w->device, w->pinned, 65536, 1, w->stream);
		break;
	case 1:
		cudaMemsetAsync(w->device, 0, 4096, w->stream);
		break;
	case 2:
		cudaMallocAsync(&w->pooled, 4096, w->stream);
		break;
	case 3:
		cudaEventRecord(w->event, w->stream);
		break;
	case 4:
		cudaStreamWaitEvent(w->stream, w->event, 0);
		break;
	case 5:
		cudaSetDevice(0);
		break;
	case 13:
		cudaFreeAsync(w->pooled, w->stream);
		break;
	case 14:
		cudaEventQuery(w->event); /* is counted */
		cudaEventSynchronize(w->event);
		break;
	case 15:
		cudaStreamSynchronize(w->stream);
		break;
	default:
		cudaLaunchKernel(&kernel, one, one, NULL, 0, w->stream);
		cudaGetLastError(); /* is counted */
	}
}

/* ---- steps ------------------------------------------------------------------------------------ */

static struct worker workers[THREADS_MOST];
static pthread_barrier_t barrier;
static long calls, steps, limit_s;
static int threads;
static bool over; /* between two barriers one thread changes it */

static long all_made(void)
{
	long made = 0;

	for (int i = 0; i < threads; i++)
		made += workers[i].made;
	return made;
}

static void say(const char *what, double since)
{
	printf("%s %ld real_s %.1f simulated_h %.1f\n", what, all_made(), real_s() - since,
	       (double)atomic_load(&passed_s) / 3600);
	fflush(stdout);
}

/* One thread, while the others wait. */
static void between(long step, double since)
{
	static double said;
	double now = real_s();

	atomic_fetch_add(&passed_s, STEP_S);
	over = step == steps || (limit_s && now - since >= (double)limit_s);
	if (now - said >= SAY_EACH_S || over)
		say(over ? "made" : "progress", since);
	if (now - said >= SAY_EACH_S)
		said = now;
}

static void *work(void *data)
{
	struct worker *w = data;
	double since = real_s();
	long share = calls / threads;

	begin(w);
	for (long step = 1; !over; step++) {
		long until = step == steps ? share
					   : (long)((double)share * (double)step / (double)steps);

		while (w->made < until)
			one_call(w);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			between(step, since);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t list[THREADS_MOST];

	calls = argc > 3 ? atol(argv[1]) : 0;
	threads = argc > 3 ? atoi(argv[2]) : 0;
	steps = argc > 3 ? (long)(atof(argv[3]) * STEPS_OF_A_DAY) : 0;
	limit_s = argc > 4 ? atol(argv[4]) : 0;
	if (calls < 1 || threads < 1 || threads > THREADS_MOST || steps < 1)
		return 2;
	__cudaRegisterFunction(__cudaRegisterFatBinary(NULL), &kernel, NULL, "a_kernel", -1, NULL,
			       NULL, NULL, NULL, NULL);
	pthread_barrier_init(&barrier, NULL, (unsigned int)threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&list[i], NULL, work, &workers[i]) != 0)
			return 1;
	for (int i = 0; i < threads; i++)
		pthread_join(list[i], NULL);
	return 0;
}
