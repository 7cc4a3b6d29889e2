/*
 * tests/e2e/programs/windows.c: does what its arguments say, one after the other, on the simulator: a program whose recording is
 * dormant for a time, for test_windows.sh.
 *
 *   memory pin pageable stream   makes memory of each kind, and a stream
 *   device:N                     makes it current
 *   copy:N                       N asynchronous copies of both kinds of memory each
 *   get:N                        asks for the current device N times
 *   devices                      asks how many there are
 *   start stop                   cudaProfilerStart, cudaProfilerStop
 *   push:NAME pop                a range of NVTX, as its header calls it: by the library that the environment names
 *   begin:NAME                   a range that any thread may end; end: this thread does, end-there: another one
 *   thread:N                     a new thread copies N times, and ends
 *   stay:N                       one copies N times and stays; again:N: it copies N times more
 *   rounds:N                     N windows: the thread that stays copies many times before each, and a few times in it, right
 *                                away or a bit later; prints how many that are in windows
 *   starts:N                     N windows that two threads open at the same moment, and one closes; a memset in each; says how many in eight seconds
 *   relay:N                      N ranges of NVTX called step, of two threads in turn: one begins while the other's ends; a memset in each; the same
 *   wait:MS                      sleeps
 *   touch:FILE await:FILE        says where it is; copies until the test goes on
 *   fork:N                       a child copies N times and ends, before this process uses a GPU; where N is 1000 or
 *                                more, it is N - 1000 times, and cudaProfilerStart before
 *   exit kill                    ends: by _exit, by SIGKILL
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim_nvtx.h"
#include "sim_program.h"

int cudaProfilerStart(void);
int cudaProfilerStop(void);
int cudaGetDevice(int *device);
int cudaGetDeviceCount(int *n);

enum { BYTES = 4096 };

static void *device_memory, *pinned, *pageable, *stream;

/* ---- CUDA -------------------------------------------------------------------------------------- */

static void copy(int n)
{
	for (; n > 0; n--) {
		OK(cudaMemcpyAsync(device_memory, pinned, BYTES, H2D, stream));
		OK(cudaMemcpyAsync(device_memory, pageable, BYTES, H2D, stream));
	}
}

static void *copy_there(void *n)
{
	copy((int)(intptr_t)n);
	return NULL;
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t change;
	int wanted; /* 0: none; -1: the thread is there */
} staying = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void *stay(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&staying.lock);
	for (;;) {
		while (staying.wanted <= 0)
			pthread_cond_wait(&staying.change, &staying.lock);
		copy(staying.wanted);
		staying.wanted = -1;
		pthread_cond_broadcast(&staying.change);
	}
	return NULL;
}

static void again(int n)
{
	pthread_mutex_lock(&staying.lock);
	staying.wanted = n;
	pthread_cond_broadcast(&staying.change);
	while (staying.wanted > 0)
		pthread_cond_wait(&staying.change, &staying.lock);
	pthread_mutex_unlock(&staying.lock);
}

static void run_thread(void *(*what)(void *), void *data, bool join)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, data))
		exit(3);
	if (join)
		pthread_join(thread, NULL);
}

static void fork_and_copy(int n)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		OK(cudaMalloc(&device_memory, BYTES));
		OK(cudaMallocHost(&pinned, BYTES));
		pageable = malloc(BYTES);
		if (n >= 1000)
			OK(cudaProfilerStart());
		copy(n % 1000);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		exit(4);
}

static void sleep_ms(int ms)
{
	nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

/* Other calls than copies meanwhile, which may notice that something is due. */
static void look_about(long us)
{
	struct timespec began, now;

	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		OK(cudaMemsetAsync(device_memory, 0, BYTES, stream));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - began.tv_sec) * 1000000 + (now.tv_nsec - began.tv_nsec) / 1000 < us);
}

enum { FEW = 5, MANY = 400 };

static void rounds(int n)
{
	for (int i = 0; i < n; i++) {
		again(MANY);
		OK(cudaProfilerStart());
		look_about(i % 16 * 500);
		again(FEW);
		OK(cudaProfilerStop());
	}
	printf("%d\n", n * FEW * 2);
}

static void set_memory(void)
{
	OK(cudaMemsetAsync(device_memory, 0, BYTES, stream));
}

static _Atomic int arrived;

#define SPINS 10000

/* Two threads meet, for the `time`th time from 1 on, and go on at the same moment: neither gives its CPU away before it has to. */
static void meet(int time)
{
	arrived++;
	for (int spins = 0; arrived < 2 * time; spins++)
		if (spins > SPINS)
			sched_yield();
}

/* Beside other work each meeting may take as long as a thread waits for its CPU: after so long there are no more. */
#define MEET_SECONDS 8

static _Atomic int last_meeting; /* nothing is done in it */

static int seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int)now.tv_sec;
}

static void *start_too(void *n)
{
	for (int time = 1; time <= 2 * (int)(intptr_t)n; time += 2) {
		meet(time);
		if (time == last_meeting)
			break;
		OK(cudaProfilerStart());
		meet(time + 1);
	}
	return NULL;
}

static void start_together(int n)
{
	int time, until = seconds() + MEET_SECONDS;

	arrived = 0;
	run_thread(start_too, (void *)(intptr_t)n, false);
	for (time = 1; time <= 2 * n; time += 2) {
		if (seconds() > until)
			last_meeting = time;
		meet(time);
		if (time == last_meeting)
			break;
		OK(cudaProfilerStart());
		meet(time + 1);
		set_memory();
		OK(cudaProfilerStop());
		OK(cudaDeviceSynchronize());
	}
	printf("%d\n", time / 2);
}

/* Returns how many turns there were. The one that begins says when it is over. */
static int take_turns(int n, int first)
{
	int time, until = seconds() + MEET_SECONDS;

	for (time = 1; time <= n; time++) {
		if (first)
			if (seconds() > until)
				last_meeting = time;
		meet(time);
		if (time == last_meeting)
			break;
		if (time % 2 == first) {
			push("step");
			set_memory();
		} else if (time > 1) {
			pop();
		}
	}
	return time - 1;
}

static void *be_second(void *n)
{
	take_turns((int)(intptr_t)n, 0);
	return NULL;
}

static void relay(int n)
{
	arrived = 0;
	run_thread(be_second, (void *)(intptr_t)n, false);
	printf("%d\n", take_turns(n, 1));
}

static void await(const char *file)
{
	while (access(file, F_OK)) {
		copy(1);
		sleep_ms(1);
	}
}

static void get(int n)
{
	int device;

	for (; n > 0; n--)
		OK(cudaGetDevice(&device));
}

/* ---- what is to be done ------------------------------------------------------------------------ */

static void act(const char *what, const char *value)
{
	int n = atoi(value);

	if (!strcmp(what, "pin"))
		OK(cudaMallocHost(&pinned, BYTES));
	else if (!strcmp(what, "pageable"))
		pageable = malloc(BYTES);
	else if (!strcmp(what, "stream"))
		OK(cudaStreamCreateWithFlags(&stream, 1));
	else if (!strcmp(what, "device"))
		OK(cudaSetDevice(n));
	else if (!strcmp(what, "memory"))
		OK(cudaMalloc(&device_memory, BYTES));
	else if (!strcmp(what, "copy"))
		copy(n);
	else if (!strcmp(what, "get"))
		get(n);
	else if (!strcmp(what, "devices"))
		OK(cudaGetDeviceCount(&n));
	else if (!strcmp(what, "start"))
		OK(cudaProfilerStart());
	else if (!strcmp(what, "stop"))
		OK(cudaProfilerStop());
	else if (!strcmp(what, "push"))
		push(value);
	else if (!strcmp(what, "pop"))
		pop();
	else if (!strcmp(what, "begin"))
		begin(value);
	else if (!strcmp(what, "end"))
		end(NULL);
	else if (!strcmp(what, "end-there"))
		run_thread(end, NULL, true);
	else if (!strcmp(what, "thread"))
		run_thread(copy_there, (void *)(intptr_t)n, true);
	else if (!strcmp(what, "stay"))
		run_thread(stay, NULL, false), again(n);
	else if (!strcmp(what, "again"))
		again(n);
	else if (!strcmp(what, "rounds"))
		rounds(n);
	else if (!strcmp(what, "starts"))
		start_together(n);
	else if (!strcmp(what, "relay"))
		relay(n);
	else if (!strcmp(what, "wait"))
		sleep_ms(n);
	else if (!strcmp(what, "touch"))
		fclose(fopen(value, "w"));
	else if (!strcmp(what, "await"))
		await(value);
	else if (!strcmp(what, "fork"))
		fork_and_copy(n);
	else if (!strcmp(what, "exit"))
		_exit(0);
	else if (!strcmp(what, "kill"))
		kill(getpid(), SIGKILL);
	else
		exit(2);
}

int main(int argc, char **argv)
{
	find_nvtx();
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], ':');

		if (value)
			*value++ = '\0';
		act(argv[i], value ? value : "0");
	}
	return 0;
}
