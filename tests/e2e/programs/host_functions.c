/*
 * tests/e2e/programs/host_functions.c: functions on the host in streams, on the simulator, for test_host_functions.sh.
 *
 *   host_functions host | add    steps: a kernel, a function of 4 ms (cudaLaunchHostFunc, cudaStreamAddCallback), a kernel
 *   host_functions short         the same, and the function is over at once
 *   host_functions beside        the same with 4 ms, while another stream has work all the time
 *   host_functions behind        the same, and another stream waits for an event behind the function
 *   host_functions last          the function is the last in the stream, and what comes next is handed over when it has run
 *   host_functions graph         a function in a captured graph, launched 20 times
 *   host_functions windows       a function begins in one window of recording and ends in the next one, in which another one runs
 *   host_functions flood         3,000 functions at one time, each with an argument of its own
 *
 * Says how often functions ran with the arguments, the stream and the status that were theirs.
 */
#include <string.h>
#include "sim_program.h"

int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cudaStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data,
			  unsigned int flags);
int cudaProfilerStart(void);
int cudaProfilerStop(void);

enum { STEPS = 40, LAUNCHES = 20, STREAMS = 3, EACH = 1000 };

static char stub_delay;
static long function_us = 4000;
static void *stream, *other, *event;
static int ran, wrong, numbers[STREAMS * EACH];

static void pause_us(long us)
{
	struct timespec time = {0, us * 1000};

	nanosleep(&time, NULL);
}

static void launch(int us, void *in)
{
	void *args[] = {&us};

	OK(cudaLaunchKernel(&stub_delay, (struct dim3){1, 1, 1}, (struct dim3){32, 1, 1}, args, 0,
			    in));
}

/* It waits for a file, a lock, whatever. */
static void on_host(void *argument)
{
	if (function_us)
		pause_us(function_us);
	__atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
	wrong += argument != &ran;
}

static void on_stream(void *in, int status, void *argument)
{
	wrong += in != stream || status;
	on_host(argument);
}

static void count(void *argument)
{
	++*(int *)argument;
}

static void steps(const char *mode)
{
	for (int step = 0; step < STEPS; step++) {
		launch(1000, stream);
		if (!strcmp(mode, "beside"))
			launch(6000, other);
		if (!strcmp(mode, "add"))
			OK(cudaStreamAddCallback(stream, on_stream, &ran, 0));
		else
			OK(cudaLaunchHostFunc(stream, on_host, &ran));
		if (!strcmp(mode, "behind")) {
			OK(cudaEventRecord(event, stream));
			OK(cudaStreamWaitEvent(other, event, 0));
			launch(100, other);
		}
		if (!strcmp(mode, "last"))
			while (__atomic_load_n(&ran, __ATOMIC_RELAXED) <= step)
				pause_us(500);
		else
			launch(1000, stream);
		if (step % 4 != 3 && strcmp(mode, "behind"))
			continue;
		OK(cudaStreamSynchronize(stream));
		OK(cudaStreamSynchronize(other));
	}
}

static void graph(void)
{
	void *made, *exec;

	function_us = 0;
	OK(cudaStreamBeginCapture(stream, 0));
	launch(100, stream);
	OK(cudaLaunchHostFunc(stream, on_host, &ran));
	OK(cudaStreamEndCapture(stream, &made));
	OK(cudaGraphInstantiate(&exec, made, 0));
	for (int i = 0; i < LAUNCHES; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(made));
}

static int begun, may_end;

static void on_host_until(void *argument)
{
	__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
		pause_us(500);
	on_host(argument);
}

static void windows(void)
{
	function_us = 0;
	OK(cudaProfilerStart());
	OK(cudaLaunchHostFunc(stream, on_host_until, &ran));
	while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
		pause_us(500);
	OK(cudaProfilerStop());
	OK(cudaProfilerStart());
	__atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
	OK(cudaStreamSynchronize(stream));
	OK(cudaLaunchHostFunc(stream, on_host, &ran));
	OK(cudaStreamSynchronize(stream));
	OK(cudaProfilerStop());
}

static void flood(void)
{
	void *streams[STREAMS];

	for (int i = 0; i < STREAMS; i++) {
		OK(cudaStreamCreateWithFlags(&streams[i], 1));
		launch(100000, streams[i]);
		for (int k = 0; k < EACH; k++)
			OK(cudaLaunchHostFunc(streams[i], count, &numbers[i * EACH + k]));
	}
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < STREAMS * EACH; i++) {
		ran += numbers[i];
		wrong += numbers[i] != 1;
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	register_kernels(&stub_delay, NULL, 0);
	OK(cudaStreamCreateWithFlags(&stream, 1));
	OK(cudaStreamCreateWithFlags(&other, 1));
	OK(cudaEventCreate(&event));
	if (!strcmp(mode, "short"))
		function_us = 0;
	if (!strcmp(mode, "graph"))
		graph();
	else if (!strcmp(mode, "windows"))
		windows();
	else if (!strcmp(mode, "flood"))
		flood();
	else
		steps(mode);
	OK(cudaDeviceSynchronize());
	/* A function that the runtime refuses runs never. */
	if (!cudaLaunchHostFunc(stream, NULL, NULL) ||
	    !cudaLaunchHostFunc((void *)&ran, count, &wrong))
		wrong++;
	cudaGetLastError();
	printf("%d ran, %d wrong\n", ran, wrong);
	return 0;
}
