/*
 * tests/sim/nccl_proxy.c: what happens behind a launch, on a thread of the library's own, as NCCL's proxy
 * does it: it polls for kernels that have begun or ended, tells the profiler plugin, and writes
 * nccl.<pid>.tsv of the truth. It also sees to it that the simulated GPUs go on when another rank came.
 */
#include "nccl.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct nccl_batch *batches, **end = &batches;
static bool started;

/* ---- the truth ---- */
static int truth_file(void)
{
	static const char head[] = "#comm\trank\tfunc\tseq\tbytes\tsubmitted_ns\tbegin_ns\tend_ns"
				   "\tgpu_begin_ns\tgpu_end_ns\tpeer\tnote\n";
	static int fd = -1, pid;
	const char *dir = getenv("SPYSIM_TRUTH");
	char path[600];

	if (!dir || !*dir || pid == getpid())
		return fd;
	pid = getpid();
	snprintf(path, sizeof(path), "%s/nccl.%d.tsv", dir, pid);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, head, sizeof(head) - 1) < 0)
		fprintf(stderr, "sim: cannot write %s\n", path);
	return fd;
}

static void write_truth(const struct nccl_batch *batch)
{
	const struct nccl_comm *comm = batch->comm;
	uint64_t begin_ns = atomic_load(&batch->begin_ns), end_ns = atomic_load(&batch->end_ns);
	int fd = truth_file();
	char line[256];

	for (const struct nccl_task *task = batch->tasks; fd >= 0 && task; task = task->next) {
		int n = snprintf(
			line, sizeof(line),
			"%#llx\t%d\t%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%d\t%s\n",
			(unsigned long long)comm->hash, comm->rank, nccl_func_name[task->func],
			(unsigned long long)task->sequence,
			(unsigned long long)nccl_task_bytes(task),
			(unsigned long long)task->submitted_ns, (unsigned long long)begin_ns,
			(unsigned long long)end_ns,
			(unsigned long long)nccl_clock_read(comm->clock, begin_ns),
			(unsigned long long)nccl_clock_read(comm->clock, end_ns), task->peer,
			atomic_load(&comm->error) ? "FAILED" : "-");

		if (write(fd, line, (size_t)n) < 0)
			return;
	}
}

/* ---- the thread ---- */
static void batch_free(struct nccl_batch *batch)
{
	struct nccl_task *task;

	while ((task = batch->tasks)) {
		batch->tasks = task->next;
		free(task);
	}
	free(batch);
}

/* Looks at one. True: it is over. */
static bool look(struct nccl_batch *batch, uint64_t now)
{
	uint64_t begin_ns = atomic_load(&batch->begin_ns);

	if (!batch->channels_begun && begin_ns && begin_ns <= now) {
		nccl_plugin_channels_begin(batch);
		batch->channels_begun = true;
	}
	if (!batch->channels_begun || !atomic_load(&batch->taken))
		return false;
	nccl_plugin_channels_end(batch);
	write_truth(batch);
	return true;
}

/* Takes what is over off the list. */
static void look_at_all(void)
{
	struct nccl_batch *batch, **p = &batches;
	uint64_t now = nccl_now_ns();

	while ((batch = *p)) {
		struct nccl_comm *comm = batch->comm;

		pthread_mutex_unlock(&lock);
		if (!look(batch, now)) {
			pthread_mutex_lock(&lock);
			p = &batch->next;
			continue;
		}
		pthread_mutex_lock(&lock);
		*p = batch->next;
		if (!batch->next)
			end = p;
		batch_free(batch);
		if (atomic_fetch_sub(&comm->outstanding, 1) == 1)
			pthread_cond_broadcast(&done);
	}
}

/* Until the ranks of the first one's communicator have changed something, or for a moment. */
static void wait_for_change(struct nccl_comm *comm, int seen)
{
	struct timespec moment = {0, 300000};

	syscall(SYS_futex, &comm->file->changes, FUTEX_WAIT, seen, &moment, NULL, 0);
}

static void *proxy_main(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct nccl_comm *comm;
		int seen;

		while (!batches)
			pthread_cond_wait(&work, &lock);
		comm = batches->comm;
		seen = atomic_load(&comm->file->changes);
		pthread_mutex_unlock(&lock);
		nccl_source->settle();
		pthread_mutex_lock(&lock);
		look_at_all();
		if (!batches || batches->comm != comm)
			continue;
		pthread_mutex_unlock(&lock);
		wait_for_change(comm, seen);
		pthread_mutex_lock(&lock);
	}
	return NULL;
}

static void begin_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (started)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&thread, &attr, proxy_main, NULL);
	pthread_attr_destroy(&attr);
}

void nccl_proxy_add(struct nccl_batch *batch)
{
	atomic_fetch_add(&batch->comm->outstanding, 1);
	pthread_mutex_lock(&lock);
	begin_thread();
	batch->next = NULL;
	*end = batch;
	end = &batch->next;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

/* Until the communicator's kernels are over. */
void nccl_proxy_drain(struct nccl_comm *comm)
{
	pthread_mutex_lock(&lock);
	while (atomic_load(&comm->outstanding))
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
}
