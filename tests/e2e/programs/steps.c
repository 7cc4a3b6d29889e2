/*
 * tests/e2e/programs/steps.c: does what its arguments say, one after the other; linked to a fake libcudart.so.13.
 * So a test can change the files, rights and descriptors under a program between its calls.
 *
 *   calls:N        N calls of cudaSetDevice
 *   thread:N       the same in a new thread, which ends
 *   crowd:N        N threads that make a call each and stay
 *   more:N         each thread that stayed makes N calls
 *   disperse       they end
 *   touch:FILE  await:FILE   says where we are, waits until the test goes on
 *   umask:OCTAL  chdir:DIR  chroot:DIR  setuid:ID  setgid:ID  seteuid:ID  raw-setuid:ID  unshare
 *   closefrom:N    closes all descriptors from N on
 *   take:N         has descriptors of its own under all numbers from N to 1100
 *   taken          are they still what they were?
 *   lowest         which number does open() give?
 *   kill           by SIGKILL
 *   block          the thread blocks all signals; blocked: says whether SIGBUS is
 *   masked:N       a handler that blocks all signals makes N calls
 *   on-bus:HOW     handles SIGBUS: by sigaction, signal, ignore, default
 *   ask-bus        who handles it?
 *   bus            touches a page behind the end of a file of its own
 *   send-bus       sends itself a SIGBUS; wait-bus: takes one by sigwaitinfo
 *   trap:NAMES     from here on system calls raise SIGSYS, and a handler says EPERM
 *   refuse:ERRNO:NAMES   from here on system calls fail with ERRNO, or kill (ERRNO 0)
 *   only:FILE      the same for all calls but those whose names are in the file (EPERM)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

int cudaSetDevice(int device);

static void calls(int n)
{
	for (int i = 0; i < n; i++)
		cudaSetDevice(i % 8);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define CROWD_MOST 4000

static pthread_t crowd[CROWD_MOST];
static int crowd_size, wanted = 1;
static pthread_barrier_t begin, end;
static pthread_attr_t small;

static void *call_and_end(void *n)
{
	calls((int)(intptr_t)n);
	return NULL;
}

static void *call_and_stay(void *unused)
{
	while (wanted) {
		calls(wanted);
		pthread_barrier_wait(&end);
		pthread_barrier_wait(&begin);
	}
	return unused;
}

static void one_thread(int n)
{
	pthread_t thread;

	pthread_create(&thread, &small, call_and_end, (void *)(intptr_t)n);
	pthread_join(thread, NULL);
}

static void gather(int n)
{
	crowd_size = n < CROWD_MOST ? n : CROWD_MOST;
	wanted = 1;
	pthread_barrier_init(&begin, NULL, (unsigned int)crowd_size + 1);
	pthread_barrier_init(&end, NULL, (unsigned int)crowd_size + 1);
	for (int i = 0; i < crowd_size; i++)
		if (pthread_create(&crowd[i], &small, call_and_stay, NULL) != 0)
			abort();
	pthread_barrier_wait(&end);
}

static void more(int n)
{
	wanted = n;
	pthread_barrier_wait(&begin);
	if (n)
		pthread_barrier_wait(&end);
}

static void disperse(void)
{
	more(0);
	for (int i = 0; i < crowd_size; i++)
		pthread_join(crowd[i], NULL);
}

/* ---- files and descriptors -------------------------------------------------------------------- */

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	if (fd >= 0)
		close(fd);
}

static void await(const char *path)
{
	for (int i = 0; i < 2000 && access(path, F_OK) != 0; i++)
		usleep(10000);
}

static int mine[1101];

static void take(int from)
{
	for (int fd = from; fd <= 1100; fd++)
		if ((mine[fd] = dup2(0, fd) == fd))
			continue;
}

/* Standard input is /dev/null in all tests. */
static void taken(void)
{
	struct stat zero, now;
	int wrong = 0;

	fstat(0, &zero);
	for (int fd = 3; fd <= 1100; fd++)
		wrong += mine[fd] && (fstat(fd, &now) != 0 || now.st_ino != zero.st_ino);
	printf("%d descriptors are not what they were\n", wrong);
}

static void lowest(void)
{
	int fd = open("/", O_RDONLY);

	printf("open gives %d\n", fd);
	close(fd);
}

/* ---- SIGBUS ---------------------------------------------------------------------------------- */

static sigjmp_buf out;
static char *own; /* a page behind the end of its file */

static void on_bus_info(int number, siginfo_t *info, void *context)
{
	sigset_t mask;
	char text[128];

	(void)context;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	write(1, text,
	      (size_t)snprintf(text, sizeof(text),
			       "signal %d, code %d, address %s, blocked %d %d\n", number,
			       info->si_code, info->si_addr == own ? "right" : "other",
			       sigismember(&mask, SIGBUS), sigismember(&mask, SIGUSR1)));
	if (info->si_code > 0)
		siglongjmp(out, 1);
}

static void on_bus(int number)
{
	char text[64];

	write(1, text, (size_t)snprintf(text, sizeof(text), "signal %d\n", number));
	siglongjmp(out, 1);
}

static void handle_bus(const char *how)
{
	struct sigaction action = {.sa_sigaction = on_bus_info, .sa_flags = SA_SIGINFO};

	sigaddset(&action.sa_mask, SIGUSR1);
	if (strcmp(how, "sigaction") == 0)
		sigaction(SIGBUS, &action, NULL);
	else
		signal(SIGBUS, strcmp(how, "signal") == 0   ? on_bus
			       : strcmp(how, "ignore") == 0 ? SIG_IGN
							    : SIG_DFL);
}

static void ask_bus(void)
{
	struct sigaction action;

	sigaction(SIGBUS, NULL, &action);
	printf("handler %s, flags %x, masks %d %d\n",
	       action.sa_handler == SIG_DFL         ? "default"
	       : action.sa_handler == SIG_IGN       ? "ignore"
	       : action.sa_handler == on_bus        ? "on_bus"
	       : action.sa_sigaction == on_bus_info ? "on_bus_info"
						    : "another",
	       (unsigned int)action.sa_flags & ~0x04000000u, sigismember(&action.sa_mask, SIGBUS),
	       sigismember(&action.sa_mask, SIGUSR1));
}

static void touch_behind_the_end(void)
{
	char name[] = "/tmp/steps.XXXXXX";
	int fd = mkstemp(name);

	unlink(name);
	own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (sigsetjmp(out, 1) == 0)
		*(volatile char *)own = 1;
	munmap(own, 4096);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void blocked(void)
{
	sigset_t mask, again;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	sigprocmask(SIG_SETMASK, NULL, &again);
	printf("SIGBUS is blocked: %d %d\n", sigismember(&mask, SIGBUS),
	       sigismember(&again, SIGBUS));
}

static int calls_of_handler;

static void make_calls(int number)
{
	(void)number;
	calls(calls_of_handler);
}

static void handle_masked(int n)
{
	struct sigaction action = {.sa_handler = make_calls};

	calls_of_handler = n;
	sigfillset(&action.sa_mask);
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
}

static void wait_bus(void)
{
	sigset_t set;
	siginfo_t info = {0};

	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	printf("sigwaitinfo: %d", sigwaitinfo(&set, &info));
	printf(", code %d\n", info.si_code);
}

/* ---- system calls that are refused ------------------------------------------------------------- */

static const struct {
	const char *name;
	int number;
} numbers[] = {
#define CALL(name) \
	{ \
#name, SYS_##name \
	}
#include "syscalls.def"
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* Is a name in a list, separated by anything? */
static bool in_list(const char *list, const char *name)
{
	static const char apart[] = ", \n";
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += length)
		if ((at == list || strchr(apart, at[-1])) && strchr(apart, at[length]))
			return true;
	return false;
}

static void filter(const char *list, bool listed, unsigned int listed_action, unsigned int other)
{
	static struct sock_filter code[2 * NUMBERS + 8];
	struct sock_fprog program = {.filter = code};
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < NUMBERS; i++) {
		if (in_list(list, numbers[i].name) != listed)
			continue;
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned int)numbers[i].number, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed_action);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
	program.len = n;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
		printf("no filter: %d\n", errno);
}

static void refuse(const char *text)
{
	int error = atoi(text);

	filter(strchr(text, ':') + 1, true,
	       error ? SECCOMP_RET_ERRNO | (unsigned int)error : SECCOMP_RET_KILL_PROCESS,
	       SECCOMP_RET_ALLOW);
}

static void answer(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)number;
	(void)info;
	at->uc_mcontext.gregs[REG_RAX] = -EPERM;
}

static void trap(const char *names)
{
	struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigaction(SIGSYS, &action, NULL);
	filter(names, true, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
}

static void only(const char *path)
{
	static char list[65536];
	FILE *file = fopen(path, "re");

	if (!file || !fread(list, 1, sizeof(list) - 1, file))
		abort();
	fclose(file);
	filter(list, true, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void told(const char *what, int result)
{
	printf("%s: %d\n", what, result);
}

static void change_rights(const char *step, const char *value)
{
	unsigned int id = (unsigned int)atoi(value);

	if (strcmp(step, "setuid") == 0)
		told(step, setuid(id));
	else if (strcmp(step, "setgid") == 0)
		told(step, setgid(id));
	else if (strcmp(step, "seteuid") == 0)
		told(step, seteuid(id));
	else if (strcmp(step, "raw-setuid") == 0)
		told(step, (int)syscall(SYS_setuid, id));
	else if (strcmp(step, "chroot") == 0)
		told(step, chroot(value) || chdir("/"));
	else if (strcmp(step, "chdir") == 0)
		told(step, chdir(value));
	else if (strcmp(step, "unshare") == 0)
		told(step, unshare(CLONE_NEWNS));
	else if (strcmp(step, "umask") == 0)
		umask((mode_t)strtol(value, NULL, 8));
	else
		fprintf(stderr, "steps: what is '%s'?\n", step);
}

static bool about_signals(const char *step, const char *value)
{
	if (strcmp(step, "block") == 0)
		block_all();
	else if (strcmp(step, "blocked") == 0)
		blocked();
	else if (strcmp(step, "masked") == 0)
		handle_masked(atoi(value));
	else if (strcmp(step, "on-bus") == 0)
		handle_bus(value);
	else if (strcmp(step, "ask-bus") == 0)
		ask_bus();
	else if (strcmp(step, "bus") == 0)
		touch_behind_the_end();
	else if (strcmp(step, "send-bus") == 0)
		told(step, kill(getpid(), SIGBUS));
	else if (strcmp(step, "wait-bus") == 0)
		wait_bus();
	else if (strcmp(step, "kill") == 0)
		kill(getpid(), SIGKILL);
	else
		return false;
	return true;
}

static bool about_calls(const char *step, const char *value)
{
	if (strcmp(step, "calls") == 0)
		calls(atoi(value));
	else if (strcmp(step, "thread") == 0)
		one_thread(atoi(value));
	else if (strcmp(step, "crowd") == 0)
		gather(atoi(value));
	else if (strcmp(step, "more") == 0)
		more(atoi(value));
	else if (strcmp(step, "disperse") == 0)
		disperse();
	else
		return false;
	return true;
}

static bool about_files(const char *step, const char *value)
{
	if (strcmp(step, "touch") == 0)
		touch(value);
	else if (strcmp(step, "await") == 0)
		await(value);
	else if (strcmp(step, "closefrom") == 0)
		closefrom(atoi(value));
	else if (strcmp(step, "take") == 0)
		take(atoi(value));
	else if (strcmp(step, "taken") == 0)
		taken();
	else if (strcmp(step, "lowest") == 0)
		lowest();
	else if (strcmp(step, "refuse") == 0)
		refuse(value);
	else if (strcmp(step, "trap") == 0)
		trap(value);
	else if (strcmp(step, "only") == 0)
		only(value);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], ':');

		if (value)
			*value++ = '\0';
		else
			value = "";
		if (!about_calls(argv[i], value) && !about_signals(argv[i], value) &&
		    !about_files(argv[i], value))
			change_rights(argv[i], value);
		fflush(stdout);
	}
	return 0;
}
