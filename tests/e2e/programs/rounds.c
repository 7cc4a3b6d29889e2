/*
 * tests/e2e/programs/rounds.c: does the same in each of its rounds, on the simulator, so that a report of some of them can be compared
 * with another one (test_window_whole.sh).
 *
 *   rounds N
 *
 * A round is a range "step" of NVTX. Two threads work on one GPU. The first one copies to pageable memory behind a kernel of
 * KERNEL_MS: the copy waits for it, with the lock that copies to pageable memory have. LATE_MS after the begin of the round the
 * second one copies, too, and waits for that lock. The first one also does what no round needs: allocates and frees, waits
 * for what it has waited for, copies pageable memory asynchronously, makes a call that fails. All memory is made before the first
 * round.
 */
#include <pthread.h>
#include "sim_nvtx.h"
#include "sim_program.h"

enum { BYTES = 1 << 20, KERNEL_MS = 120, LATE_MS = 40, SMALL_COPIES = 5 };

static char delay;
static pthread_barrier_t begins, ends;
static int rounds;

struct worker {
	void *stream, *device, *pinned, *pageable;
};
static struct worker first, second;

static void prepare(struct worker *w)
{
	OK(cudaStreamCreateWithFlags(&w->stream, 1));
	OK(cudaMalloc(&w->device, BYTES));
	OK(cudaMallocHost(&w->pinned, BYTES));
	w->pageable = calloc(1, BYTES);
}

static void launch(void *stream, int us)
{
	void *args[] = {&us};

	OK(cudaLaunchKernel(&delay, (struct dim3){1, 1, 1}, (struct dim3){1, 1, 1}, args, 0,
			    stream));
}

static void work(struct worker *w)
{
	void *more;

	launch(w->stream, KERNEL_MS * 1000);
	OK(cudaMemcpyAsync(w->pageable, w->device, BYTES, D2H, w->stream));
	for (int i = 0; i < SMALL_COPIES; i++)
		OK(cudaMemcpyAsync(w->device, w->pinned, 4096, H2D, w->stream));
	OK(cudaStreamSynchronize(w->stream));
	OK(cudaStreamSynchronize(w->stream));
	OK(cudaMalloc(&more, BYTES));
	launch(w->stream, 10000);
	OK(cudaFree(more));
	OK(cudaMemcpyAsync(w->device, w->pageable, BYTES, H2D, w->stream));
	OK(cudaDeviceSynchronize());
	cudaSetDevice(1000);
	cudaGetLastError();
}

static void *work_late(void *unused)
{
	OK(cudaSetDevice(0));
	for (int i = 0; i < rounds; i++) {
		pthread_barrier_wait(&begins);
		nanosleep(&(struct timespec){0, LATE_MS * 1000000l}, NULL);
		OK(cudaMemcpyAsync(second.pageable, second.device, BYTES, D2H, second.stream));
		OK(cudaStreamSynchronize(second.stream));
		pthread_barrier_wait(&ends);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	rounds = argc > 1 ? atoi(argv[1]) : 1;
	find_nvtx();
	register_kernels(&delay, NULL, 0);
	OK(cudaSetDevice(0));
	prepare(&first);
	prepare(&second);
	pthread_barrier_init(&begins, NULL, 2);
	pthread_barrier_init(&ends, NULL, 2);
	if (pthread_create(&thread, NULL, work_late, NULL))
		die("no thread");
	for (int i = 0; i < rounds; i++) {
		push("step");
		pthread_barrier_wait(&begins);
		work(&first);
		pthread_barrier_wait(&ends);
		pop();
	}
	pthread_join(thread, NULL);
	return 0;
}
