/*
 * tests/stress/signals.c: handlers that call CUDA, wherever they interrupt: the calls, the loader, malloc, fork.
 * What they are called for and when is up to the machine, so nothing they do is seen; it only has to work.
 */
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "runtime.h"
#include "stress.h"

#define TIMER SIGRTMIN
#define KICK SIGUSR1

/* A process' own way. */
static bool forks, nests;
static atomic_int forked;

/* ---- the handler ----------------------------------------------------------------------------- */

static void fork_in_handler(void)
{
	unsigned int may_lose = image->may_lose; /* it has as little as its parent */
	pid_t pid;

	if (atomic_fetch_add(&forked, 1) >= 4)
		return;
	pid = _Fork();
	if (pid == 0) {
		image_begin("handler");
		image->may_lose |= may_lose | 1;
		for (unsigned int i = 0; i < 8; i++)
			call_in_handler(i);
		_exit(0);
	}
	if (pid > 0)
		wait_for(pid);
}

static void handler(int number)
{
	static __thread int depth;
	static atomic_uint turn;
	unsigned int n = atomic_fetch_add(&turn, 1);
	int error = errno;

	(void)number;
	if (depth++ < 3 && !simulated) {
		call_in_handler(n);
		call_in_handler(n * 5 + 3);
		if (forks && n % 16 == 15)
			fork_in_handler();
	}
	depth--;
	errno = error;
}

/* ---- SIGSEGV and SIGBUS of the program's own --------------------------------------------------- */

static __thread sigjmp_buf *volatile expected;

static void fault(int number, siginfo_t *info, void *data)
{
	const greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
	char name[16] = "";
	void *stack[30];

	if (expected)
		siglongjmp(*expected, number);
	signal(number, SIG_DFL); /* a crash */
	prctl(PR_GET_NAME, name);
	dprintf(STDERR_FILENO,
		"signal %d (code %d) in thread '%s' at 0x%llx, for address %p, stack 0x%llx: 0x%llx 0x%llx\n",
		number, info->si_code, name, registers[REG_RIP], info->si_addr, registers[REG_RSP],
		((long long *)registers[REG_RSP])[0], ((long long *)registers[REG_RSP])[1]);
	backtrace_symbols_fd((void *const *)registers[REG_RSP], registers[REG_RIP] ? 0 : 24,
			     STDERR_FILENO); /* who called nothing */
	backtrace_symbols_fd(stack, backtrace(stack, 30), STDERR_FILENO);
}

static int touch(volatile char *address)
{
	sigjmp_buf buffer;
	int number = sigsetjmp(buffer, 1);

	if (!number) {
		expected = &buffer;
		*address = 1;
	}
	expected = NULL;
	return number;
}

/* A page that may not be touched, and one behind the end of a file. */
void do_faults(struct actor *actor)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);
	char *guard = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	for (unsigned int i = 1 + below(actor, 4); i > 0; i--) {
		CALL(cudaGetLastError());
		see(actor, (uint64_t)touch(one_in(actor, 2) ? guard : file));
		burst_of_free(actor, 2);
	}
	munmap(guard, 4096);
	munmap(file, 4096);
}

/* ---- a process' signals ---------------------------------------------------------------------- */

/* Also where the parent blocked them. */
void begin_signals(struct actor *actor)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	nests = one_in(actor, 3);
	if (nests)
		action.sa_flags |= SA_NODEFER;
	else
		sigfillset(&action.sa_mask);
	if (one_in(actor, 2))
		action.sa_flags |= SA_RESTART;
	sigaction(TIMER, &action, NULL);
	sigaction(KICK, &action, NULL);
	action.sa_sigaction = fault;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	forks = one_in(actor, 3) && allowed(ACTION_handlerforks);
	forked = 0;
}

/* One thing is done meanwhile. */
static void act_once(struct actor *actor)
{
	struct actor child;

	actor_begin(&child, actor, "timed", 0);
	child.may = actor->may;
	if (child.depth < DEPTH_MOST)
		child.depth = DEPTH_MOST - 1;
	act(&child);
	actor_end(&child);
}

void do_timers(struct actor *actor)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TIMER};
	long ns = 300000 + below(actor, 2000) * 1000;
	struct itimerspec when = {{0, ns}, {0, ns}};
	timer_t timer;
	bool there;

	if (!simulated)
		image->may_lose |= 1;
	event._sigev_un._tid = gettid();
	there = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0; /* limits may forbid it */
	if (there)
		timer_settime(timer, 0, &when, NULL);
	act_once(actor);
	if (there)
		timer_delete(timer);
}

void do_altstack(struct actor *actor)
{
	size_t least = (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096;
	stack_t stack = {.ss_size = 64 << 10}, before;

	if (one_in(actor, 2) && !nests && allowed(ACTION_tinystack))
		stack.ss_size = least > 8192 ? least : 8192;
	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	sigaltstack(&stack, &before);
	if (before.ss_flags == SS_DISABLE)
		do_timers(actor);
	sigaltstack(&before, NULL);
	munmap(stack.ss_sp, stack.ss_size);
}

/* ---- pthread_kill ---------------------------------------------------------------------------- */

struct kicked {
	struct actor actor;
	atomic_bool may_go;
};

static void *while_kicked(void *data)
{
	struct kicked *kicked = data;

	act(&kicked->actor);
	while (!atomic_load(&kicked->may_go))
		sleep_us(50);
	actor_end(&kicked->actor);
	return NULL;
}

void do_kicks(struct actor *actor)
{
	struct kicked kicked = {.may_go = false};
	pthread_t thread;

	actor_begin(&kicked.actor, actor, "kicked", 0);
	kicked.actor.may &= ~(unsigned int)MAY_FORK;
	if (!simulated)
		image->may_lose |= 1;
	if (pthread_create(&thread, NULL, while_kicked, &kicked) != 0)
		_exit(92);
	for (unsigned int i = below(actor, 20); i > 0; i--) {
		pthread_kill(thread, KICK);
		sleep_us(below(actor, 100));
	}
	atomic_store(&kicked.may_go, true);
	pthread_join(thread, NULL);
}

/* ---- a mask ---------------------------------------------------------------------------------- */

void do_mask(struct actor *actor)
{
	sigset_t all, before, now;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	burst(actor);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	see(actor, (uint64_t)sigismember(&now, SIGTERM));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Ways in which the others are done. */
void do_tinystack(struct actor *actor)
{
	(void)actor;
}

void do_handlerforks(struct actor *actor)
{
	(void)actor;
}
