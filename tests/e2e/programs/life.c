/*
 * tests/e2e/programs/life.c: how processes and threads begin and end; linked to a fake libcudart.so.13. Each
 * way makes calls whose number the test knows: cudaSetDevice is the one that is counted on.
 *
 *   life calls N              N calls, then a return from main
 *   life fork                 calls; a child calls, a child does not, a grandchild calls
 *   life forkmt N [busy]      N forks while four threads call (without a pause); each child calls
 *   life forkinside           a child is forked inside a call, and returns from it
 *   life again WAY [ARG]...   calls, then runs itself as `life ARG...`: WAY is exec, vfork, spawn, system
 *   life threads N AT_ONCE    N threads, AT_ONCE at a time, one call each
 *   life names                threads with names
 *   life end HOW              calls, then ends: _exit, _Exit, exit, quick_exit, abort, thread, segv
 *   life busy HOW MS          four threads call, and after so long the process ends: as above, or kill, exec
 *   life handler              calls and mallocs until a signal handler calls _exit
 *   life storm                calls under a storm of signals
 *   life until-killed N       N calls, says so, then sits in one
 *   life for-ever             calls until killed
 *   life close WHAT           calls, closes all descriptors (or from 3 on), calls
 *   life reuse FILE           closes standard error, opens FILE in its place, calls, writes into FILE
 *   life late                 calls, gives the reader of standard error time to go away, ends
 *   life descriptors          prints which descriptors are open after calls
 *   life mark N               a cudaMalloc, N calls, a cudaFree
 *   life load T N             T threads of N calls each
 *   life load-until FILE      two threads call until FILE is there, then 100,000 times more each; prints how many calls that were
 *   life limit WHAT           takes all descriptors (files) or memory (memory) away from itself, calls
 *   life chdir DIR            changes directory, then calls
 *   life destructors          calls from atexit, a destructor and a thread key's destructor
 *   life devices              threads in one slot, one after the other, on devices of their own
 *   life refill               fills a file-size limit, gets more, and calls after a quarter of a second
 *   life above                a handler that calls, on an alternate stack that lies right above the thread's
 *   life beside               the same, right above a coroutine's
 *   life kernels N            launches N kernels, each of a name of its own
 *   life verbose N            the same with long names and time between them, and as many calls later
 *   life migrate              a call inside of which its coroutine goes on on another thread, then others
 *   life small                the process' first call, and others, on stacks of 16 KiB
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaHostRegister(void *address, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *address);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cudaStreamSynchronize(void *stream);

extern char **environ;
static char *self;

static void calls(int n)
{
	int device;

	for (int i = 0; i < n; i++) {
		cudaSetDevice(i % 8);
		cudaGetDevice(&device);
	}
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int by_fork(void)
{
	pid_t pid;

	calls(10);
	pid = fork();
	if (pid == 0) {
		calls(20);
		pid = fork();
		if (pid == 0) {
			calls(40);
			exit(5);
		}
		calls(1);
		exit(wait_for(pid) + 1);
	}
	printf("child %d\n", wait_for(pid));
	pid = fork();
	if (pid == 0)
		exit(3);
	printf("quiet child %d\n", wait_for(pid));
	pid = fork();
	if (pid == 0) {
		calls(80);
		_exit(4);
	}
	printf("_exiting child %d\n", wait_for(pid));
	calls(10);
	return 0;
}

static volatile bool stop;

static void *call_until_stopped(void *unused)
{
	while (!stop)
		calls(10);
	return unused;
}

static void *call_now_and_then(void *unused)
{
	while (!stop) {
		calls(10);
		usleep(50);
	}
	return unused;
}

static int by_fork_mt(int n, bool busy)
{
	pthread_t threads[4];
	int bad = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, busy ? call_until_stopped : call_now_and_then,
			       NULL);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* should it hang */
			calls(30);
			_exit(i % 2 ? 6 : (exit(6), 0));
		}
		bad += wait_for(pid) != 6;
	}
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%d children went wrong\n", bad);
	return bad > 0;
}

static void *register_until_stopped(void *memory)
{
	while (!stop) {
		cudaHostRegister(memory, 4096, 0);
		cudaHostUnregister(memory);
	}
	return memory;
}

/* By the system call alone, while other threads change what the recorder remembers: nothing runs that pthread_atfork
 * was told of. */
static int by_clone_mt(int n)
{
	static char memory[2][8192];
	pthread_t threads[2];
	int bad = 0;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, register_until_stopped, memory[i]);
	calls(1); /* so that no child looks for a function */
	usleep(20000);
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* should it hang */
			calls(30);
			_exit(6);
		}
		bad += wait_for(pid) != 6;
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d children went wrong\n", bad);
	return bad > 0;
}

static pid_t forked = -1;

static void fork_here(void *unused)
{
	(void)unused;
	forked = fork();
	if (forked == 0)
		calls(7);
}

static int by_fork_inside(void)
{
	calls(1);
	cudaLaunchHostFunc(NULL, fork_here, NULL);
	if (forked == 0) {
		calls(4);
		exit(9);
	}
	printf("child %d\n", wait_for(forked));
	calls(1);
	return 0;
}

static int again(int argc, char **argv)
{
	char *args[16] = {self}, command[4096] = "";
	const char *way = argv[2];
	pid_t pid;

	for (int i = 3; i < argc && i < 16; i++)
		args[i - 2] = argv[i];
	for (int i = 0; args[i]; i++)
		strcat(strcat(command, args[i]), " ");
	calls(10);
	fflush(stdout);
	if (strcmp(way, "exec") == 0) {
		execv(self, args);
		return 1;
	}
	if (strcmp(way, "vfork") == 0) {
		pid = vfork();
		if (pid == 0) {
			execv(self, args);
			_exit(1);
		}
		printf("vfork %d\n", wait_for(pid));
		/* and one that cannot exec */
		pid = vfork();
		if (pid == 0) {
			execv("/no/such/program", args);
			_exit(17);
		}
		printf("vfork %d\n", wait_for(pid));
	} else if (strcmp(way, "spawn") == 0) {
		printf("spawn %d", posix_spawn(&pid, self, NULL, NULL, args, environ));
		printf(" %d\n", wait_for(pid));
		printf("spawn %d\n",
		       posix_spawn(&pid, "/no/such/program", NULL, NULL, args, environ));
	} else {
		int status = system(command);

		printf("system %d\n", WEXITSTATUS(status));
	}
	calls(10);
	return 0;
}

static void *one_call(void *unused)
{
	calls(1);
	return unused;
}

static pthread_barrier_t barrier;

static void *one_call_together(void *unused)
{
	calls(1);
	pthread_barrier_wait(&barrier);
	calls(1);
	return unused;
}

static int many_threads(int n, int at_once)
{
	pthread_t *threads = calloc((size_t)at_once, sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_barrier_init(&barrier, NULL, (unsigned int)at_once);
	for (int i = 0; i < n; i += at_once) {
		for (int t = 0; t < at_once; t++)
			if (pthread_create(&threads[t], &attr,
					   at_once > 1 ? one_call_together : one_call, NULL) != 0)
				abort();
		for (int t = 0; t < at_once; t++)
			pthread_join(threads[t], NULL);
	}
	free(threads);
	return 0;
}

static void *named(void *name)
{
	pthread_setname_np(pthread_self(), name);
	calls(1);
	return NULL;
}

static int names(void)
{
	char *const list[] = {"alpha", "15 bytes \"long\"", "back\\slash", "\xc3\xa9t\xc3\xa9", ""};
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		pthread_create(&thread, NULL, named, list[i]);
		pthread_join(thread, NULL);
	}
	return 0;
}

static void *exit_here(void *unused)
{
	(void)unused;
	calls(5);
	exit(24);
}

static void end_by(const char *how)
{
	if (strcmp(how, "_exit") == 0)
		_exit(21);
	if (strcmp(how, "_Exit") == 0)
		_Exit(22);
	if (strcmp(how, "exit") == 0)
		exit(23);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(25);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "segv") == 0)
		raise(SIGSEGV);
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "exec") == 0)
		execl(self, self, "calls", "10", NULL);
}

static int end(const char *how)
{
	pthread_t thread;

	calls(20);
	end_by(how);
	/* thread: out of one of several, all of them calling */
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, call_until_stopped, NULL);
	pthread_create(&thread, NULL, exit_here, NULL);
	pause();
	return 1;
}

static int busy(const char *how, int ms)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, call_until_stopped, NULL);
	usleep((useconds_t)ms * 1000);
	end_by(how);
	return 1;
}

static void leave(int number)
{
	(void)number;
	_exit(31);
}

static _Noreturn void handler(void)
{
	struct itimerval timer = {.it_value = {0, 2000 + getpid() % 97 * 10}};

	calls(1);
	signal(SIGALRM, leave);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (;;) {
		for (size_t bytes = 100; bytes < 3000000; bytes *= 3)
			free(malloc(bytes));
		calls(3);
	}
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	(void)number;
	alarms++;
}

static int storm(void)
{
	struct itimerval timer = {{0, 100}, {0, 100}}, off = {0};
	struct sigaction action = {.sa_handler = count_alarm};

	sigaction(SIGALRM, &action, NULL); /* no SA_RESTART */
	setitimer(ITIMER_REAL, &timer, NULL);
	calls(200000);
	setitimer(ITIMER_REAL, &off, NULL);
	printf("%s\n", alarms > 10 ? "stormy" : "calm");
	return 0;
}

static int close_all(const char *what)
{
	calls(10);
	fflush(stdout);
	if (strcmp(what, "all") == 0)
		closefrom(0);
	else
		closefrom(3);
	calls(20000);
	return 0;
}

static int reuse(const char *path)
{
	static const char text[] = "nothing but data\n";

	calls(10);
	close(2);
	if (open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644) != 2)
		return 1;
	calls(10);
	return write(2, text, sizeof(text) - 1) < 0;
}

static int descriptors(void)
{
	calls(20000);
	for (int fd = 0; fd < 1000; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d is open\n", fd);
	return 0;
}

static int limit(const char *what)
{
	struct rlimit none = {0, 0};

	if (strcmp(what, "files") == 0)
		setrlimit(RLIMIT_NOFILE, &none);
	else
		setrlimit(RLIMIT_AS, &none);
	calls(20000);
	return 0;
}

static int mark(int n)
{
	void *address;

	cudaMalloc(&address, 64);
	calls(n);
	cudaFree(address);
	return 0;
}

static void *load_thread(void *n)
{
	calls((int)(intptr_t)n);
	return NULL;
}

static int load(int threads, int n)
{
	pthread_t list[64];

	for (int i = 0; i < threads && i < 64; i++)
		pthread_create(&list[i], NULL, load_thread, (void *)(intptr_t)n);
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(list[i], NULL);
	return 0;
}

static void *load_until_thread(void *file)
{
	long made = 0;

	for (; access(file, F_OK) != 0; made += 1000) {
		calls(1000);
		usleep(200);
	}
	calls(100000);
	return (void *)(made + 100000);
}

static int load_until(char *file)
{
	pthread_t other;
	void *made;

	pthread_create(&other, NULL, load_until_thread, file);
	long sum = (long)load_until_thread(file);
	pthread_join(other, &made);
	printf("%ld\n", sum + (long)made);
	return 0;
}

static void *on_five(void *unused)
{
	pthread_setname_np(pthread_self(), "on five");
	cudaSetDevice(5);
	cudaStreamSynchronize((void *)1);
	return unused;
}

static void *on_none(void *unused)
{
	pthread_setname_np(pthread_self(), "on none");
	cudaStreamSynchronize((void *)2);
	cudaSetDevice(1);
	cudaStreamSynchronize((void *)1);
	return unused;
}

static int devices(void)
{
	pthread_t thread;

	cudaSetDevice(2);
	pthread_create(&thread, NULL, on_five, NULL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, on_none, NULL);
	pthread_join(thread, NULL);
	cudaStreamSynchronize((void *)1);
	return 0;
}

/* A full disk is asked again after a tenth of a second. */
static int refill(void)
{
	struct rlimit limit;
	void *address;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 160 << 10; /* a tail, but no second packet */
	setrlimit(RLIMIT_FSIZE, &limit);
	calls(20000);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	usleep(250000);
	for (int i = 0; i < 10; i++)
		cudaMalloc(&address, 64);
	return 0;
}

static pthread_key_t key;

static void call_at_thread_end(void *rounds)
{
	calls(3);
	if ((intptr_t)rounds > 1)
		pthread_setspecific(key, (void *)((intptr_t)rounds - 1));
}

static void *thread_with_key(void *unused)
{
	pthread_setspecific(key, (void *)(intptr_t)3);
	calls(1);
	return unused;
}

static void call_at_exit(void)
{
	calls(2);
}

static bool late;

static __attribute__((destructor)) void call_in_destructor(void)
{
	if (late)
		calls(4);
}

static int destructors(void)
{
	pthread_t thread;

	late = true;
	atexit(call_at_exit);
	pthread_key_create(&key, call_at_thread_end);
	for (int i = 0; i < 10; i++) {
		pthread_create(&thread, NULL, thread_with_key, NULL);
		pthread_join(thread, NULL);
	}
	calls(1);
	return 0;
}

/* Once more after a while in which what is interrupted gets on, however busy the machine is. */
static void alarm_again(void)
{
	struct itimerval timer = {.it_value = {0, 200 + alarms % 7 * 37}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static void call_and_wait(int number)
{
	int error = errno;

	(void)number;
	alarms++;
	calls(2);
	cudaStreamSynchronize((void *)3);
	alarm_again();
	errno = error;
}

static void *call_below(void *stack)
{
	stack_t alternate = {.ss_sp = stack, .ss_size = 64 << 10};
	struct itimerval off = {0};

	sigaltstack(&alternate, NULL);
	alarm_again();
	while (alarms < 300)
		calls(100);
	setitimer(ITIMER_REAL, &off, NULL);
	return NULL;
}

static int above(void)
{
	char *stacks =
		mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {.sa_handler = call_and_wait, .sa_flags = SA_ONSTACK};
	sigset_t alarm_only;
	pthread_attr_t attr;
	pthread_t thread;

	sigaction(SIGALRM, &action, NULL);
	pthread_attr_init(&attr);
	if (stacks == MAP_FAILED || pthread_attr_setstack(&attr, stacks, 256 << 10) != 0)
		return 77;
	pthread_create(&thread, &attr, call_below, stacks + (256 << 10));
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	pthread_join(thread, NULL);
	return 0;
}

static char *coroutine_stacks;
static ucontext_t beside_main, beside_coroutine;

static void call_in_coroutine(void)
{
	call_below(coroutine_stacks + (256 << 10));
}

/* The same above a coroutine: neither stack is the one that the thread began with. */
static int beside(void)
{
	struct sigaction action = {.sa_handler = call_and_wait, .sa_flags = SA_ONSTACK};

	coroutine_stacks =
		mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (coroutine_stacks == MAP_FAILED)
		return 77;
	sigaction(SIGALRM, &action, NULL);
	getcontext(&beside_coroutine);
	beside_coroutine.uc_stack.ss_sp = coroutine_stacks;
	beside_coroutine.uc_stack.ss_size = 256 << 10;
	beside_coroutine.uc_link = &beside_main;
	makecontext(&beside_coroutine, call_in_coroutine, 0);
	swapcontext(&beside_main, &beside_coroutine);
	return 0;
}

struct dim3 {
	unsigned int x, y, z;
};

int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **code, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *size);

/* As code made at run time does, for weeks. */
static int kernels(int n, const char *what, unsigned int pause_us)
{
	const struct dim3 one = {1, 1, 1};
	char *hosts = calloc(1, (size_t)n), name[512];
	void **code = __cudaRegisterFatBinary(NULL);

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%d", what, i);
		__cudaRegisterFunction(code, hosts + i, NULL, strdup(name), -1, NULL, NULL, NULL,
				       NULL, NULL);
		cudaLaunchKernel(hosts + i, one, one, NULL, 0, NULL);
		if (pause_us)
			usleep(pause_us);
	}
	return 0;
}

static int verbose(int n)
{
	char what[400];

	memset(what, 'k', sizeof(what));
	what[sizeof(what) - 1] = '\0';
	kernels(n, what, 20);
	for (int i = 0; i < n; i++) {
		calls(1);
		usleep(2500);
	}
	return 0;
}

static struct {
	ucontext_t own, back;
} coroutine;

static void switch_away(void *unused)
{
	(void)unused;
	swapcontext(&coroutine.own, &coroutine.back);
}

static void call_and_switch(void)
{
	cudaLaunchHostFunc(NULL, switch_away, NULL);
	switch_away(NULL);
}

static void *go_on(void *unused)
{
	swapcontext(&coroutine.back, &coroutine.own);
	return unused;
}

static void *begin_migration(void *stack)
{
	pthread_t other;

	getcontext(&coroutine.own);
	coroutine.own.uc_stack.ss_sp = stack;
	coroutine.own.uc_stack.ss_size = 256 << 10;
	makecontext(&coroutine.own, call_and_switch, 0);
	go_on(NULL);
	pthread_create(&other, NULL, go_on, NULL);
	pthread_join(other, NULL);
	calls(5);
	return NULL;
}

/* The coroutine's stack lies above the thread's: for the thread it looks as if it were still in the call. */
static int migrate(void)
{
	char *stacks =
		mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (stacks == MAP_FAILED || pthread_attr_setstack(&attr, stacks, 256 << 10) != 0)
		return 77;
	pthread_create(&thread, &attr, begin_migration, stacks + (256 << 10));
	pthread_join(thread, NULL);
	return 0;
}

static void *many_calls(void *unused)
{
	calls(5000); /* more than a packet */
	return unused;
}

static int small(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, 16384) != 0)
		return 77;
	for (int i = 0; i < 5; i++) {
		pthread_create(&thread, &attr, many_calls, NULL);
		pthread_join(thread, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	self = argv[0];
	if (strcmp(what, "calls") == 0) {
		calls(n);
		return 0;
	}
	if (strcmp(what, "fork") == 0)
		return by_fork();
	if (strcmp(what, "forkmt") == 0)
		return by_fork_mt(n, argc > 3);
	if (strcmp(what, "clonemt") == 0)
		return by_clone_mt(n);
	if (strcmp(what, "forkinside") == 0)
		return by_fork_inside();
	if (strcmp(what, "again") == 0)
		return again(argc, argv);
	if (strcmp(what, "threads") == 0)
		return many_threads(n, atoi(argv[3]));
	if (strcmp(what, "names") == 0)
		return names();
	if (strcmp(what, "end") == 0)
		return end(argv[2]);
	if (strcmp(what, "busy") == 0)
		return busy(argv[2], atoi(argv[3]));
	if (strcmp(what, "handler") == 0)
		handler();
	if (strcmp(what, "storm") == 0)
		return storm();
	if (strcmp(what, "until-killed") == 0) {
		calls(n);
		puts("waiting");
		fflush(stdout);
		cudaStreamSynchronize((void *)600000);
	}
	if (strcmp(what, "for-ever") == 0) {
		calls(10);
		puts("waiting");
		fflush(stdout);
		for (;;) {
			calls(100);
			usleep(100);
		}
	}
	if (strcmp(what, "close") == 0)
		return close_all(argv[2]);
	if (strcmp(what, "reuse") == 0)
		return reuse(argv[2]);
	if (strcmp(what, "late") == 0) {
		calls(10);
		usleep(300000);
		return 0;
	}
	if (strcmp(what, "descriptors") == 0)
		return descriptors();
	if (strcmp(what, "limit") == 0)
		return limit(argv[2]);
	if (strcmp(what, "mark") == 0)
		return mark(n);
	if (strcmp(what, "load") == 0)
		return load(n, atoi(argv[3]));
	if (strcmp(what, "load-until") == 0)
		return load_until(argv[2]);
	if (strcmp(what, "chdir") == 0) {
		if (chdir(argv[2]) < 0)
			return 1;
		calls(10);
		return 0;
	}
	if (strcmp(what, "destructors") == 0)
		return destructors();
	if (strcmp(what, "devices") == 0)
		return devices();
	if (strcmp(what, "refill") == 0)
		return refill();
	if (strcmp(what, "above") == 0)
		return above();
	if (strcmp(what, "beside") == 0)
		return beside();
	if (strcmp(what, "kernels") == 0)
		return kernels(n, "a_kernel_that_was_made_at_run_time_", 0);
	if (strcmp(what, "verbose") == 0)
		return verbose(n);
	if (strcmp(what, "migrate") == 0)
		return migrate();
	if (strcmp(what, "small") == 0)
		return small();
	return 2;
}
