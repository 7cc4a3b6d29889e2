/*
 * tests/stress/processes.c: actors as processes: how they come about, what they begin with, and how they end.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "runtime.h"
#include "stress.h"

extern char **environ;

void sleep_us(long us)
{
	struct timespec left = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void call_at_exit(void)
{
	CALL(cudaGetLastError());
	CALL(cudaSetDevice(0));
}

/* Of a program image: ends by itself if who started it does. */
void begin_process(struct actor *actor)
{
	struct rlimit no_core = {0, 0};
	int device;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	image_begin(actor->path);
	calls_begin();
	begin_signals(actor);
	if (one_in(actor, 3))
		atexit(call_at_exit);
	/* The simulator begins under a lock, with the loader: not in a library's constructor. */
	if (simulated)
		CALL(cudaFree(NULL));
	else if (!allowed(ACTION_early) || one_in(actor, 2))
		CALL(cudaGetDevice(&device));
}

/* Of a forked child. */
static void begin_child(struct actor *actor)
{
	image_begin(actor->path);
	atomic_store(&detached, 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void *call_on(void *unused)
{
	call_for_ever();
	return unused;
}

static int end_status;

static void *exit_from_here(void *unused)
{
	(void)unused;
	sleep_us(200);
	exit(end_status);
}

static void start_noise(struct actor *actor)
{
	pthread_t thread;

	if (!(actor->may & MAY_THREAD))
		return;
	image->may_lose |= 1;
	for (unsigned int i = below(actor, 3); i > 0; i--)
		pthread_create(&thread, NULL, call_on, NULL);
	sleep_us(below(actor, 500));
}

static _Noreturn void become_another(struct actor *actor)
{
	struct actor next;
	char random[32], depth[16];

	actor_begin(&next, actor, "image", 0);
	snprintf(random, sizeof(random), "%llu", (unsigned long long)draw(actor));
	snprintf(depth, sizeof(depth), "%d", next.depth);
	execl(self, self, "image", next.path, random, depth, NULL);
	_exit(93);
}

static _Noreturn void end_abruptly(struct actor *actor, int status)
{
	pthread_t thread;
	unsigned int way = below(actor, 10);

	start_noise(actor);
	switch (way) {
	case 0:
		if (actor->may & MAY_LOAD)
			exit(status);
		_exit(status);
	case 1:
		if (actor->may & MAY_LOAD)
			quick_exit(status);
		_Exit(status);
	case 2:
		abort();
	case 3:
		kill(getpid(), SIGKILL);
		pause();
		_exit(94);
	case 4:
		kill(getpid(), SIGTERM);
		pause();
		_exit(94);
	case 5:
	case 6:
		if (actor->may & MAY_SPAWN && actor->depth < DEPTH_MOST)
			become_another(actor);
		_exit(status);
	case 7:
		if (!(actor->may & MAY_THREAD))
			_exit(status);
		end_status = status;
		pthread_create(&thread, NULL, exit_from_here, NULL);
		pthread_exit(NULL);
	case 8:
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		_exit(94);
	default:
		_exit(status);
	}
}

/* Acts; what it saw is written down before anything abrupt is done. */
void process(struct actor *actor)
{
	int status = (int)below(actor, 60);

	act(actor);
	while (atomic_load(&detached))
		sleep_us(100);
	actor_end(actor);
	if (allowed(ACTION_ends) && one_in(actor, 2))
		end_abruptly(actor, status);
	if (actor->may & MAY_LOAD)
		exit(status);
	_exit(status);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* A child acts. */
static void fork_child(struct actor *actor, const char *what, unsigned int taken)
{
	struct actor child;
	pid_t pid;

	actor_begin(&child, actor, what, (int)below(actor, 100));
	child.may &= ~taken;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		begin_child(&child);
		if (simulated &&
		    !(actor->may & MAY_FORK)) /* it may find the simulator's locks held */
			_exit(1);
		process(&child);
	}
	see(actor, (uint64_t)wait_for(pid));
}

void do_fork(struct actor *actor)
{
	fork_child(actor, "fork", 0);
}

/* The child cannot know who had the loader's lock. */
void do_forkmt(struct actor *actor)
{
	fork_child(actor, "mt", MAY_FORK | MAY_LOAD | MAY_THREAD);
}

/* Nothing runs that pthread_atfork knows of: the child calls what takes no lock. */
void do_clone(struct actor *actor)
{
	struct actor child;
	pid_t pid;

	actor_begin(&child, actor, "clone", 0);
	child.may = 0;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		begin_child(&child);
		if (!simulated)
			burst_of_free(&child, 10);
		actor_end(&child);
		_exit((int)below(&child, 60));
	}
	see(actor, (uint64_t)wait_for(pid));
}

/* ---- exec ------------------------------------------------------------------------------------ */

struct arguments {
	char path[64], random[32], depth[16];
	char *argv[6];
};

static void make_arguments(struct arguments *a, struct actor *actor, const char *what)
{
	struct actor child;

	actor_begin(&child, actor, what, (int)below(actor, 100));
	snprintf(a->path, sizeof(a->path), "%s", child.path);
	snprintf(a->random, sizeof(a->random), "%llu", (unsigned long long)draw(&child));
	snprintf(a->depth, sizeof(a->depth), "%d", child.depth);
	a->argv[0] = (char *)self;
	a->argv[1] = "image";
	a->argv[2] = a->path;
	a->argv[3] = a->random;
	a->argv[4] = a->depth;
	a->argv[5] = NULL;
}

void do_vfork(struct actor *actor)
{
	const char *file = one_in(actor, 3) ? "/no/such/program" : self;
	struct arguments a;
	pid_t pid;

	make_arguments(&a, actor, "vfork");
	pid = vfork();
	if (pid == 0) {
		execv(file, a.argv);
		_exit(17);
	}
	see(actor, (uint64_t)wait_for(pid));
}

void do_spawn(struct actor *actor)
{
	struct arguments a;
	pid_t pid;

	make_arguments(&a, actor, "spawn");
	see(actor, (uint64_t)posix_spawn(&pid, self, NULL, NULL, a.argv, environ));
	see(actor, (uint64_t)wait_for(pid));
	see(actor, (uint64_t)posix_spawn(&pid, "/no/such/program", NULL, NULL, a.argv, environ));
}

/* Some call before they execute. */
void do_exec(struct actor *actor)
{
	bool calls = one_in(actor, 2) && (!simulated || actor->may & MAY_FORK);
	struct actor child;
	struct arguments a;
	pid_t pid;

	actor_begin(&child, actor, "exec", 0);
	make_arguments(&a, actor, "exec");
	pid = fork();
	if (pid == 0) {
		begin_child(&child);
		if (calls)
			burst(&child);
		execv(self, a.argv);
		_exit(93);
	}
	see(actor, (uint64_t)wait_for(pid));
}

/* ---- children that are killed, or have little ------------------------------------------------- */

void do_kill(struct actor *actor)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGABRT};
	int number = signals[below(actor, 4)];
	pid_t pid = fork();

	if (pid == 0) {
		image_begin("killed");
		image->may_lose = 1;
		call_for_ever();
	}
	sleep_us(below(actor, 3000));
	kill(pid, number);
	see(actor, (uint64_t)wait_for(pid));
}

static void take_away(struct actor *actor)
{
	static const struct {
		int what;
		rlim_t most;
	} limits[] = {
		{RLIMIT_NOFILE, 8}, {RLIMIT_FSIZE, 300000}, {RLIMIT_STACK, 256 << 10},
		{RLIMIT_NPROC, 1},  {RLIMIT_MEMLOCK, 4096}, {RLIMIT_SIGPENDING, 4},
		{RLIMIT_CPU, 1000},
	};
	unsigned int i = below(actor, sizeof(limits) / sizeof(limits[0]));
	rlim_t value = limits[i].most >> below(actor, 12);
	struct rlimit limit = {value, value};

	if (limits[i].what == RLIMIT_STACK || limits[i].what == RLIMIT_CPU)
		limit.rlim_cur = limit.rlim_max = limits[i].most;
	setrlimit(limits[i].what, &limit);
}

void do_limits(struct actor *actor)
{
	struct actor child;
	pid_t pid;

	actor_begin(&child, actor, "limit", 0);
	child.may = MAY_LOCK | MAY_ALLOCATE;
	pid = fork();
	if (pid == 0) {
		begin_child(&child);
		take_away(&child);
		image->may_lose = 2;
		process(&child);
	}
	see(actor, (uint64_t)wait_for(pid));
}

/* What is open has the numbers it has without the recorder. */
static void shuffle_descriptors(struct actor *actor)
{
	switch (below(actor, 4)) {
	case 0:
		closefrom(0);
		break;
	case 1:
		close_range(3, ~0u, 0);
		break;
	case 2:
		close((int)below(actor, 3));
		break;
	}
	for (unsigned int i = below(actor, 6); i > 0; i--) {
		see(actor, (uint64_t)open("/dev/null", O_RDWR));
		burst(actor);
	}
	for (int fd = 0; fd < 10; fd++)
		see(actor, fcntl(fd, F_GETFD) >= 0);
}

void do_descriptors(struct actor *actor)
{
	struct actor child;
	pid_t pid;

	actor_begin(&child, actor, "fd", 0);
	pid = fork();
	if (pid == 0) {
		begin_child(&child);
		shuffle_descriptors(&child);
		process(&child);
	}
	see(actor, (uint64_t)wait_for(pid));
}

void do_chdir(struct actor *actor)
{
	static const char *const folders[] = {"/", "/tmp", "/proc/self", "/usr"};

	see(actor, (uint64_t)chdir(folders[below(actor, 4)]));
	burst(actor);
}

/* Ways in which the others are done. */
void do_early(struct actor *actor)
{
	(void)actor;
}

void do_ends(struct actor *actor)
{
	(void)actor;
}
