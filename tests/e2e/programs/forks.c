/*
 * tests/e2e/programs/forks.c: fork, the loader and signal handlers at the worst moments; linked to a fake
 * libcudart.so.13. Bare, each way ends at once with status 0; who waits for ever is killed, and told.
 *
 *   forks loader N      N forks while another thread opens and closes a library; children call
 *   forks handler N     N forks in a handler of SIGALRM while the thread allocates; every other child calls
 *   forks back N        the same, but children return from the handler and go on with what it interrupted
 *   forks walk HOW      calls inside a callback of dl_iterate_phdr, while other threads make their first ones:
 *                       HOW is beside; await: the callback goes on when all of them have made theirs; or stay: it
 *                       never does, and SIGTERM goes to one of them
 *   forks walkfork      forks inside a callback of dl_iterate_phdr; the child calls
 *   forks slots         no slot is to be had, then a fork, and a call in the child at once
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaHostRegister(void *address, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *address);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(void **stream);
int cudaStreamDestroy(void *stream);
int cudaEventCreate(void **event);
int cudaEventDestroy(void *event);

#define PATIENCE_S 5 /* a child that lives longer hangs */

static volatile bool stop;

/* A child's exit status; 128 and the signal; or 99 if it had to be killed. */
static int wait_for(pid_t pid)
{
	const struct timespec a_moment = {.tv_nsec = 1000000};
	struct timespec now, begun;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		pid_t found = waitpid(pid, &status, WNOHANG);

		if (found == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		nanosleep(&a_moment, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < begun.tv_sec + PATIENCE_S);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return 99;
}

static void call(int n)
{
	void *address;
	int device;

	for (int i = 0; i < n; i++) {
		cudaSetDevice(i % 8);
		cudaGetDevice(&device);
		cudaMalloc(&address, 4096);
		cudaFree(address);
	}
}

/* ---- beside the loader ------------------------------------------------------------------------- */

static void *open_and_close(void *path)
{
	while (!stop) {
		void *handle = dlopen(path, RTLD_NOW);

		if (!handle)
			abort();
		dlclose(handle);
	}
	return NULL;
}

static int beside_loader(int n, char *path)
{
	pthread_t thread;
	int bad = 0;

	call(1);
	pthread_create(&thread, NULL, open_and_close, path);
	for (int i = 0; i < n && bad < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			call(10);
			cudaDeviceSynchronize(); /* which the parent never called */
			_exit(6);
		}
		bad += wait_for(pid) != 6;
	}
	stop = true;
	pthread_join(thread, NULL);
	printf("%d children went wrong\n", bad);
	return bad > 0;
}

/* ---- in a handler ------------------------------------------------------------------------------ */

static volatile int forks, wanted;
static volatile bool is_child, back;
static volatile pid_t children[1000];

static void fork_now(int signal)
{
	int error = errno;
	pid_t pid;

	(void)signal;
	if (forks >= wanted || is_child)
		return;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		is_child = true;
		if (back || forks % 2)
			cudaSetDevice(1);
		if (!back)
			_exit(6);
	}
	children[forks] = pid;
	forks = forks + 1;
	errno = error;
}

static void *allocate_beside(void *unused)
{
	while (!stop)
		call(10);
	return unused;
}

static int in_handler(int n)
{
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	static char memory[64][4096];
	pthread_t thread;
	sigset_t alarms;
	int bad = 0;

	wanted = n;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	pthread_create(&thread, NULL, allocate_beside, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	signal(SIGALRM, fork_now);
	setitimer(ITIMER_REAL, &often, NULL);
	while (forks < wanted && !is_child) {
		for (int i = 0; i < 64; i++)
			cudaHostRegister(memory[i], 4096, 0);
		for (int i = 0; i < 64; i++)
			cudaHostUnregister(memory[i]);
	}
	if (is_child) {
		call(10);
		_exit(6);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	stop = true;
	pthread_join(thread, NULL);
	for (int i = 0; i < n && bad < 2; i++) {
		int status = wait_for(children[i]);

		if (status != 6)
			fprintf(stderr, "child %d: %d\n", i, status);
		bad += status != 6;
	}
	printf("%d children went wrong\n", bad);
	return bad > 0;
}

/* ---- inside a walk over the libraries ----------------------------------------------------------- */

#define THREADS 8

static pthread_barrier_t inside;
static _Atomic int done;
static int awaited; /* until so many are done */

static void *first_calls(void *unused)
{
	void *made;

	pthread_barrier_wait(&inside);
	call(1);
	cudaStreamCreate(&made);
	cudaStreamDestroy(made);
	cudaEventCreate(&made);
	cudaEventDestroy(made);
	cudaDeviceSynchronize();
	done++;
	while (awaited == INT_MAX)
		pause();
	return unused;
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
	const struct timespec a_moment = {.tv_nsec = 1000000};

	(void)info;
	(void)size;
	(void)unused;
	pthread_barrier_wait(&inside);
	nanosleep(&a_moment, NULL);
	call(10);
	while (done < THREADS && awaited)
		nanosleep(&a_moment, NULL);
	if (awaited == INT_MAX && write(STDOUT_FILENO, "inside\n", 7) == 7)
		pause(); /* with SIGTERM blocked */
	return 1;
}

static int inside_walk(const char *how)
{
	pthread_t threads[THREADS];
	sigset_t term;

	awaited = strcmp(how, "await") == 0 ? THREADS : strcmp(how, "stay") == 0 ? INT_MAX : 0;

	pthread_barrier_init(&inside, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, first_calls, NULL);
	if (awaited == INT_MAX) {
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		pthread_sigmask(SIG_BLOCK, &term, NULL);
	}
	dl_iterate_phdr(visit, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d threads\n", done);
	return 0;
}

static int visit_and_fork(struct dl_phdr_info *info, size_t size, void *unused)
{
	pid_t pid = fork();

	(void)info;
	(void)size;
	(void)unused;
	if (pid == 0) {
		call(10);
		cudaDeviceSynchronize();
		_exit(6);
	}
	printf("child %d\n", wait_for(pid));
	return 1;
}

/* ---- without a slot ------------------------------------------------------------------------------ */

/* A thread's first call when neither a file nor memory is to be had. */
static void *call_in_need(void *unused)
{
	struct rlimit files, memory, none;
	int device;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_AS, &memory);
	none = files;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	none = memory;
	none.rlim_cur = 4096;
	setrlimit(RLIMIT_AS, &none);
	for (int i = 0; i < 3; i++)
		cudaSetDevice(1);
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_NOFILE, &files);
	pid = fork();
	if (pid == 0) {
		cudaGetDevice(&device);
		call(5);
		exit(6);
	}
	printf("child %d\n", wait_for(pid));
	return unused;
}

static int without_slot(void)
{
	pthread_t thread;

	call(1);
	pthread_create(&thread, NULL, call_in_need, NULL);
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (strcmp(way, "loader") == 0 && argc > 3)
		return beside_loader(n, argv[3]);
	if (strcmp(way, "handler") == 0 || strcmp(way, "back") == 0) {
		back = *way == 'b';
		return in_handler(n);
	}
	if (strcmp(way, "walk") == 0 && argc > 2)
		return inside_walk(argv[2]);
	if (strcmp(way, "walkfork") == 0)
		return dl_iterate_phdr(visit_and_fork, NULL) != 1;
	if (strcmp(way, "slots") == 0)
		return without_slot();
	return 2;
}
