/*
 * tests/e2e/programs/faults_idle.c: GPUs that have nothing to do because of the host: of what it does between its calls, of what
 * a launch takes, or because threads let only one GPU work at a time. Habits of faults (faults.c), for
 * test_findings.sh.
 */
#include "faults.h"
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Takes so much of a CPU's time, however many others want one. */
static void compute(struct worker *w, unsigned int us)
{
	uint64_t begin_ns = cpu_ns(), clock_ns = now_ns(), ns = us * w->length_pct * 10ull;

	while (cpu_ns() - begin_ns < ns)
		;
	w->cost_ns += (int64_t)ns;
	w->delayed_ns += (int64_t)(now_ns() - clock_ns - ns);
}

/* What it computes comes from the last step's results, and the next step's data from that; or it could have been
 * done while the GPU works. */
static void starved_by_host(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		work(w, 2000);
		if (w->clean)
			compute(w, 2000);
		finish(w);
		if (!w->clean)
			compute(w, 2000);
	}
}

/* As many launches; but for longer kernels the thread has to wait. */
static void launch_bound(struct worker *w)
{
	for (unsigned int i = rounds(w, 100); i; i--) {
		for (int j = 0; j < 50; j++)
			launch(&stub_delay, w->clean ? 50 : 1, w->stream);
		finish(w);
	}
}

/* Two threads with a GPU each: only the one that has the baton works. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	unsigned int turns, gone;
} baton = {.lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER};

static void take_baton(const struct worker *w)
{
	pthread_mutex_lock(&baton.lock);
	while (!baton.gone && baton.turns % 2 != (unsigned int)w->role)
		pthread_cond_wait(&baton.given, &baton.lock);
	pthread_mutex_unlock(&baton.lock);
}

static void give_baton(bool gone)
{
	pthread_mutex_lock(&baton.lock);
	baton.turns++;
	baton.gone += gone;
	pthread_cond_broadcast(&baton.given);
	pthread_mutex_unlock(&baton.lock);
}

static void serial_threads(struct worker *w)
{
	for (unsigned int i = rounds(w, 50); i; i--) {
		if (!w->clean)
			take_baton(w);
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->stream);
		finish(w);
		if (!w->clean)
			give_baton(i == 1);
	}
}

/* clang-format off */
const struct habit idle_habits[] = {
	{"starved-by-host", "starved-by-host", "own", "cudaMemcpyAsync", "", "", 1, 1, NULL, starved_by_host},
	{"launch-bound", "launch-bound", "-", "cudaLaunchKernel", "", "hold cuLaunchKernel read:submits 20\n", 1, 1, NULL, launch_bound},
	{"serial-threads", "serial-gpus", "-", "cudaStreamSynchronize", "early-sync", "", 2, 2, NULL, serial_threads},
	{.name = NULL},
};
/* clang-format on */
