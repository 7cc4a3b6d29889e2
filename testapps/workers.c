/*
 * testapps/workers.c: crews of threads and processes: see workers.h. crew_run is called from main;
 * it forks, if there are to be processes, and in each the main thread prepares, starts one thread for
 * each worker, joins them and finishes.
 */
#include "workers.h"
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What all processes of a crew share. */
struct meeting {
	pthread_barrier_t barrier;
	int worker_cnt, gpu_cnt;
};

static struct meeting *meeting;

static void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("out of memory");
	return memory;
}

static void meeting_of(int worker_cnt)
{
	pthread_barrierattr_t attributes;

	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&meeting->barrier, &attributes, (unsigned)worker_cnt);
	meeting->worker_cnt = worker_cnt;
}

void crew_meet(void)
{
	pthread_barrier_wait(&meeting->barrier);
}

void *crew_state(const struct crew *crew, int worker)
{
	return (char *)crew->states + (size_t)worker * crew->state_size;
}

/* ---- in a process of the crew --------------------------------------------------------------- */

struct worker_thread {
	pthread_t thread;
	const struct crew *crew;
	struct worker worker;
};

static void *worker_main(void *argument)
{
	struct worker_thread *self = argument;
	char name[16];

	/* What debuggers and tracers show, as the tables count: "matmul/3". */
	snprintf(name, sizeof(name), "%.10s/%d", program, self->worker.index);
	prctl(PR_SET_NAME, name);
	CUDA_CHECK(cudaSetDevice(self->worker.gpu));
	self->crew->work(&self->worker);
	return NULL;
}

static int devices(long wanted)
{
	int count;

	CUDA_CHECK(cudaGetDeviceCount(&count));
	if (wanted > count)
		die("--gpus %ld: there %s only %d", wanted, count == 1 ? "is" : "are", count);
	return count;
}

static void process_main(const struct crew *crew, int process)
{
	struct worker_thread *threads;
	long thread_cnt, i;
	int gpu_cnt;

	if (crew->enter)
		crew->enter(crew, process);
	gpu_cnt = devices(crew->gpus);
	if (crew->gpus)
		gpu_cnt = (int)crew->gpus;
	thread_cnt = crew->threads == ONE_PER_GPU ? gpu_cnt : crew->threads;
	if (thread_cnt > WORKERS_MAX)
		die("%ld workers: at most %d", thread_cnt, WORKERS_MAX);
	if (!meeting->worker_cnt)
		meeting_of((int)thread_cnt); /* the only process, which alone knew */
	meeting->gpu_cnt = gpu_cnt;

	threads = allocate(thread_cnt, sizeof(*threads));
	for (i = 0; i < thread_cnt; i++) {
		struct worker *worker = &threads[i].worker;

		threads[i].crew = crew;
		worker->index = process * (int)thread_cnt + (int)i;
		worker->process = process;
		worker->gpu = worker->index % gpu_cnt;
		worker->gpu_cnt = gpu_cnt;
		worker->argument = crew->argument;
		worker->state = crew_state(crew, worker->index);
		CUDA_CHECK(cudaSetDevice(worker->gpu));
		if (crew->prepare)
			crew->prepare(worker);
	}
	for (i = 0; i < thread_cnt; i++)
		if (pthread_create(&threads[i].thread, NULL, worker_main, &threads[i]))
			die("cannot start thread %ld", i);
	for (i = 0; i < thread_cnt; i++)
		pthread_join(threads[i].thread, NULL);
	for (i = 0; crew->finish && i < thread_cnt; i++) {
		CUDA_CHECK(cudaSetDevice(threads[i].worker.gpu));
		crew->finish(&threads[i].worker);
	}
	free(threads);
}

/* ---- in the main process -------------------------------------------------------------------- */

static pid_t process_start(const struct crew *crew, int process)
{
	pid_t parent = getpid(), child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		die("cannot start process %d: %s", process, strerror(errno));
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* it died before we asked to be told */
	process_main(crew, process);
	exit(0);
}

/* A process that fails leaves the others at their meeting: they are ended, too. It has said why,
 * unless a signal ended it. */
static void processes_wait(pid_t *children, long count)
{
	int status, failed = 0, left = (int)count, i;
	pid_t ended;

	while (left > 0) {
		ended = wait(&status);
		if (ended < 0)
			die("wait: %s", strerror(errno));
		for (i = 0; i < count && children[i] != ended; i++)
			;
		if (i == count)
			continue; /* none of ours: of the program that became this one */
		children[i] = 0; /* the number may soon be somebody else's */
		left--;
		if (!status || failed)
			continue;
		failed = status;
		for (i = 0; i < count; i++)
			if (children[i])
				kill(children[i], SIGKILL);
	}
	if (WIFSIGNALED(failed))
		die("a process was ended by signal %d", WTERMSIG(failed));
	if (failed)
		exit(1);
}

void crew_run(struct crew *crew)
{
	pid_t children[WORKERS_MAX];
	long processes = crew->processes, each = crew->threads, i;

	if (processes == ONE_PER_GPU)
		processes = crew->gpus ? crew->gpus : gpu_count();
	if (each > 0 && (processes ? processes : 1) * each > WORKERS_MAX)
		die("%ld workers: at most %d", (processes ? processes : 1) * each, WORKERS_MAX);
	meeting = shared_memory(sizeof(*meeting));
	if (each > 0)
		meeting_of((int)((processes ? processes : 1) * each));
	crew->states = shared_memory(WORKERS_MAX * crew->state_size);
	if (processes == IN_PLACE)
		process_main(crew, 0);
	else /* who started us may have ignored it: then there is nothing to wait for */
		signal(SIGCHLD, SIG_DFL);
	for (i = 0; i < processes; i++)
		children[i] = process_start(crew, (int)i);
	processes_wait(children, processes);
	crew->worker_cnt = meeting->worker_cnt;
	crew->gpu_cnt = meeting->gpu_cnt;
	if (crew->gpu_cnt > crew->worker_cnt)
		crew->gpu_cnt = crew->worker_cnt;
	munmap(meeting, sizeof(*meeting));
}

void crew_release(struct crew *crew)
{
	munmap(crew->states, WORKERS_MAX * crew->state_size);
	crew->states = NULL;
}

static void count_into(struct worker *worker)
{
	*(int *)worker->state = worker->gpu_cnt;
}

int gpu_count(void)
{
	struct crew crew = {
		.processes = 1, .threads = 1, .state_size = sizeof(int), .work = count_into};
	int count;

	crew_run(&crew);
	count = *(int *)crew_state(&crew, 0);
	crew_release(&crew);
	return count;
}
