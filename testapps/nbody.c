/*
 * testapps/nbody.c: one GPU for several processes, with and without MPS. Each process computes the same:
 * how many bodies move that all attract each other. Three ways to share a GPU:
 *
 *   alone   one process has it all
 *   shared  several take turns: time slices, each process stands still while another computes
 *   mps     several are clients of NVIDIA's Multi-Process Service and compute at the same time, each with
 *           the share of the multiprocessors that --shares gives it (needs the daemon)
 *
 * Compare the interactions per second of each process and of all. A kernel that fills the GPU gains nothing
 * by MPS: two processes have half each, either way; what MPS saves is the slices of kernels that do not.
 * See also who runs when: a server of MPS serves one user at a time, so that with --users 2 the second
 * process stands in its first CUDA call, without an error, until the first one has ended ('CUDA start').
 */
#include "common.h"
#include "mps.h"
#include "nbody_bodies.h"
#include "workers.h"

#include <errno.h>
#include <grp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FIRST_USER 60001
#define CHECK_BODIES 1024 /* a small system, of which each body is checked */
#define CHECK_STEPS 4
#define SAMPLES 4 /* bodies that are checked of the large one */
#define FLOP_PER_INTERACTION 20 /* as n-body benchmarks count */

static struct {
	long bodies, iterations, processes, users;
	const char *mode, *shares;
	long share[WORKERS_MAX]; /* read from shares */
} options = {
	.bodies = 512000,
	.iterations = 10,
	.processes = 2,
	.mode = "all",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"bodies", "N", "bodies of each process (512000)",
		OPTION_NUMBER, &options.bodies, 2, 1l << 24, "2048"},
	{"iterations", "N", "steps of each process (10)",
		OPTION_NUMBER, &options.iterations, 1, 1000000, "3"},
	{"mode", "NAME", "alone, shared, mps or all (all; mps only if there is a daemon)",
		OPTION_TEXT, &options.mode, 0, 0, NULL},
	{"processes", "N", "processes that share the GPU (2)",
		OPTION_NUMBER, &options.processes, 1, WORKERS_MAX, NULL},
	{"users", "N", "run as so many users, from 60001 on; needs root (all as this one)",
		OPTION_NUMBER, &options.users, 1, WORKERS_MAX, NULL},
	{"shares", "P,...", "per cent of the GPU for each client of MPS, 1 to 100 (no limit)",
		OPTION_TEXT, &options.shares, 0, 0, NULL},
	{0},
};
/* clang-format on */

enum mode { ALONE, SHARED, MPS, MODE_CNT };

static const char *const mode_names[] = {"alone", "shared", "mps"};

/* ---- one process ---------------------------------------------------------------------------- */

struct computer {
	double entered_ms, ready_ms; /* before its first CUDA call, and when CUDA could be used */
	double begin_ms, end_ms; /* of the steps that are measured */
	long user;
	int multiprocessors;
	bool mps;
	unsigned wrong;
};

static double entered_ms; /* of this process */

static void become(long user)
{
	gid_t group = (gid_t)user;

	if (setgroups(0, NULL) || setgid(group) || setuid((uid_t)user))
		die("cannot run as user %ld: %s", user, strerror(errno));
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* forgotten when the user changes */
}

static void enter(const struct crew *crew, int process)
{
	enum mode mode = *(const enum mode *)crew->argument;
	char share[16];

	if (mode != MPS)
		mps_avoid();
	if (mode == MPS && options.shares) {
		snprintf(share, sizeof(share), "%ld", options.share[process]);
		if (setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", share, 1))
			die("out of memory");
	}
	if (options.users)
		become(FIRST_USER + process % options.users);
	entered_ms = now_ms();
}

static void prepare(struct worker *worker)
{
	struct computer *computer = worker->state;

	CUDA_CHECK(cudaFree(NULL)); /* older runtimes make the context at the first such call */
	computer->ready_ms = now_ms();
	computer->entered_ms = entered_ms;
	computer->user = (long)getuid();
	if (*(const enum mode *)worker->argument == MPS)
		mps_need_client(worker);
	computer->mps = mps_client(worker->gpu);
	CUDA_CHECK(cudaDeviceGetAttribute(&computer->multiprocessors,
					  cudaDevAttrMultiProcessorCount, worker->gpu));
}

/* The host stays a step ahead of the GPU, which so never stands, and knows how far it has come. */
static void move(struct bodies *bodies, const struct worker *worker, cudaStream_t stream)
{
	cudaEvent_t done[2];
	long i;

	for (i = 0; i < 2; i++)
		CUDA_CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
	for (i = 0; i < options.iterations; i++) {
		bodies_step(bodies, stream);
		CUDA_CHECK(cudaEventRecord(done[i % 2], stream));
		if (!i)
			continue;
		CUDA_CHECK(cudaEventSynchronize(done[(i - 1) % 2]));
		if (worker->index == 0)
			progress("%s: step %ld of %ld",
				 mode_names[*(const enum mode *)worker->argument], i,
				 options.iterations);
	}
	CUDA_CHECK(cudaStreamSynchronize(stream));
	for (i = 0; i < 2; i++)
		CUDA_CHECK(cudaEventDestroy(done[i]));
}

static void work(struct worker *worker)
{
	struct computer *computer = worker->state;
	struct bodies bodies;
	cudaStream_t stream;
	long i;

	CUDA_CHECK(cudaStreamCreate(&stream));
	bodies_init(&bodies, CHECK_BODIES);
	for (i = 0; i < CHECK_STEPS; i++)
		bodies_step(&bodies, stream);
	CUDA_CHECK(cudaStreamSynchronize(stream));
	computer->wrong = bodies_wrong(&bodies, CHECK_BODIES);
	bodies_release(&bodies);

	bodies_init(&bodies, (unsigned)options.bodies);
	CUDA_CHECK(cudaDeviceSynchronize());
	/* Side by side from the first step on. But another user's process may come only when this one has
	 * ended, and must not be waited for. */
	if (!options.users)
		crew_meet();
	computer->begin_ms = now_ms();
	move(&bodies, worker, stream);
	computer->end_ms = now_ms();
	computer->wrong += bodies_wrong(&bodies, bodies.count < SAMPLES ? bodies.count : SAMPLES);
	bodies_release(&bodies);
	CUDA_CHECK(cudaStreamDestroy(stream));
}

/* ---- one way to share ----------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"mode", "mode", 0},
	{"process", "process", 0},
	{"user", "user", 0},
	{"mps", "MPS", 0},
	{"share_percent", "share %", 0},
	{"multiprocessors", "SMs", 0},
	{"cuda_start_s", "CUDA start s", 2},
	{"start_s", "start s", 2},
	{"end_s", "end s", 2},
	{"seconds", "seconds", 3},
	{"ginteractions_per_s", "G interactions/s", 3},
	{"gflops", "GFLOP/s", 1},
};

/* The end of a row: how long the steps of so many processes took, and what that is per second. */
static void report_rate(struct table *table, int processes, double ms)
{
	double bodies = (double)options.bodies;
	double interactions = bodies * bodies * (double)options.iterations * processes;

	table_number(table, ms / 1e3);
	table_number(table, interactions / ms / 1e6);
	table_number(table, interactions / ms / 1e6 * FLOP_PER_INTERACTION);
}

static void report(struct table *table, const struct crew *crew, enum mode mode)
{
	const struct computer *computer = crew_state(crew, 0);
	double first_ms = computer->begin_ms, last_ms = computer->end_ms;
	int i;

	for (i = 1; i < crew->worker_cnt; i++) {
		computer = crew_state(crew, i);
		first_ms = fmin(first_ms, computer->begin_ms);
		last_ms = fmax(last_ms, computer->end_ms);
	}
	for (i = 0; i < crew->worker_cnt; i++) {
		computer = crew_state(crew, i);
		table_text(table, mode_names[mode]);
		table_number(table, i);
		table_number(table, (double)computer->user);
		table_text(table, computer->mps ? "yes" : "no");
		if (mode == MPS && options.shares)
			table_number(table, (double)options.share[i]);
		else
			table_empty(table);
		table_number(table, computer->multiprocessors);
		table_number(table, (computer->ready_ms - computer->entered_ms) / 1e3);
		table_number(table, (computer->begin_ms - first_ms) / 1e3);
		table_number(table, (computer->end_ms - first_ms) / 1e3);
		report_rate(table, 1, computer->end_ms - computer->begin_ms);
	}
	table_text(table, mode_names[mode]);
	table_text(table, "all");
	for (i = 0; i < 5; i++)
		table_empty(table);
	table_number(table, 0);
	table_number(table, (last_ms - first_ms) / 1e3);
	report_rate(table, crew->worker_cnt, last_ms - first_ms);
}

static unsigned run(enum mode mode, struct table *table)
{
	struct crew crew = {
		.processes = mode == ALONE ? 1 : options.processes,
		.threads = 1,
		.gpus = 1,
		.state_size = sizeof(struct computer),
		.argument = &mode,
		.enter = enter,
		.prepare = prepare,
		.work = work,
	};
	unsigned wrong = 0;
	int i;

	progress("%s: %ld bodies, %ld iterations, %ld processes", mode_names[mode], options.bodies,
		 options.iterations, crew.processes);
	crew_run(&crew);
	report(table, &crew, mode);
	for (i = 0; i < crew.worker_cnt; i++)
		wrong += ((struct computer *)crew_state(&crew, i))->wrong;
	crew_release(&crew);
	if (wrong)
		fprintf(stderr, "%s: %s: %u bodies moved otherwise than on the CPU\n", program,
			mode_names[mode], wrong);
	return wrong;
}

static void read_shares(void)
{
	const char *at = options.shares;
	char *end;
	long i;

	for (i = 0; at && i < options.processes; i++) {
		options.share[i] = strtol(at, &end, 10);
		if (end == at || options.share[i] < 1 || options.share[i] > 100)
			break;
		at = *end == ',' ? end + 1 : end;
		if (!*end && i + 1 == options.processes)
			return;
	}
	if (options.shares)
		usage_error("--shares %s: must be a number from 1 to 100 for each of %ld processes",
			    options.shares, options.processes);
}

/* Whether the mode is among those to run. */
static bool wanted(enum mode mode)
{
	return !strcmp(options.mode, "all") || !strcmp(options.mode, mode_names[mode]);
}

int main(int argc, char **argv)
{
	enum output output = options_read(argc, argv,
					  "Processes on one GPU compute how bodies move that "
					  "attract each other: one alone, several\n"
					  "in time slices, several as clients of MPS. Shows what "
					  "each gets of the GPU, and when.",
					  rows);
	unsigned wrong = 0, ran = 0;
	bool mps = true;
	struct table table;
	enum mode mode;

	read_shares();
	if (options.shares && !wanted(MPS))
		usage_error("--shares: only clients of MPS have some: --mode mps or all");
	if (options.users && geteuid())
		die("--users: only root can run processes as other users");
	/* Who did not ask for MPS need not have it. What is lacking is better known before the rest runs; its
	 * own processes tell if there is no rest. */
	if (!strcmp(options.mode, "all") && options.shares)
		mps_need();
	else if (!strcmp(options.mode, "all"))
		mps = mps_there();
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (mode = ALONE; mode < MODE_CNT; mode++) {
		if (!wanted(mode))
			continue;
		ran++;
		if (mode != MPS || mps)
			wrong += run(mode, &table);
	}
	if (!ran)
		usage_error("--mode %s: must be alone, shared, mps or all", options.mode);
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
