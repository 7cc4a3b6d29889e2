/*
 * tests/e2e/programs/probes_processes.c: system calls made by syscall(), futexes among them, and children: of vfork, of
 * clone, of fork, while a lock is shared with them or a thread waits for one. For probes (probes.c), in its
 * threads, outside a CUDA call and inside one.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probes.h"

/* ---- syscall() --------------------------------------------------------------------------------- */

/* Ends a child without touching the stack that it may share with its parent. */
static inline __attribute__((always_inline)) void exit_at_once(long status)
{
	long number = SYS_exit_group;

	__asm__ volatile("syscall" : "+a"(number) : "D"(status) : "rcx", "r11", "memory");
}

static int status_of(long pid)
{
	int status = -1;

	return waitpid((pid_t)pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									   : -1;
}

/* Both return twice. */
static __attribute__((noinline)) int child_of_vfork(void)
{
	long pid = syscall(SYS_vfork);

	if (pid == 0)
		exit_at_once(41);
	return status_of(pid);
}

static __attribute__((noinline)) int child_of_clone(void)
{
	long pid = syscall(SYS_clone, (unsigned long)SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		sched_yield();
		exit_at_once(syscall(SYS_getppid) > 0 ? 42 : 43);
	}
	return status_of(pid);
}

static int second_page(void)
{
	int fd = (int)syscall(SYS_memfd_create, "probes", 0), found = -1;
	char *page;

	if (fd >= 0 && ftruncate(fd, 8192) == 0 && pwrite(fd, "x", 1, 4096) == 1) {
		page = (char *)syscall(SYS_mmap, NULL, 4096L, (long)PROT_READ, (long)MAP_SHARED,
				       (long)fd, 4096L);
		if (page != MAP_FAILED)
			found = *page;
		munmap(page, 4096);
	}
	close(fd);
	return found;
}

static uint32_t futex_word;

static void wake_later(void *unused)
{
	(void)unused;
	sleep_ms(3);
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *wake_thread(void *unused)
{
	enter(wake_later, unused);
	return NULL;
}

void syscall_checks(void)
{
	struct timespec short_time = {0, MS}, wrong = {0, -1};
	pthread_t thread;
	uint32_t other = 0;

	TRY(syscall(SYS_gettid) == gettid());
	TRY(syscall(SYS_close, 999));
	TRY(syscall(100000));
	TRY(second_page());
	futex_word = 0;
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 1, NULL, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, &short_time, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &wrong, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, -1));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_CMP_REQUEUE, 1, 0, &other, 1));
	TRY(syscall(SYS_futex, &futex_word, 99, 1, 0, NULL, 0));
	TRY(syscall(SYS_futex, 8, FUTEX_WAIT, 0, NULL, NULL, 0));
	INTERRUPTED(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0));
	pthread_create(&thread, NULL, wake_thread, NULL);
	while (!__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	pthread_join(thread, NULL);
	TRY(child_of_vfork());
	TRY(child_of_clone());
	TRY(child_of_vfork());
}

/* ---- processes --------------------------------------------------------------------------------- */

static pthread_mutex_t *shared;
static int from_child[2], to_child[2];

/* The child has the lock for a while; robust: it ends with it. */
static void fork_holding(bool robust)
{
	char byte = 0;
	pid_t pid = fork();

	if (pid == 0) {
		byte = (char)pthread_mutex_lock(shared);
		if (write(from_child[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1)
			_exit(1);
		sleep_ms(3);
		_exit(robust ? 0 : pthread_mutex_unlock(shared));
	}
	if (read(from_child[0], &byte, 1) != 1)
		byte = 99;
	printf("a child's: %d\n", byte);
	TRY(pthread_mutex_trylock(shared));
	TRY(pthread_mutex_timedlock(shared, &past));
	if (write(to_child[1], &byte, 1) != 1)
		return;
	TRY(pthread_mutex_lock(shared));
	if (robust)
		TRY(pthread_mutex_consistent(shared));
	TRY(pthread_mutex_unlock(shared));
	TRY(status_of(pid));
}

/* A fork while another thread waits: the child finds its locks as they were. */
static void fork_while_waiting(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct holder waiter = {
		.take = mutex_lock, .give = mutex_unlock, .lock = &lock, .for_ms = 1};
	pid_t pid;

	pthread_mutex_lock(&lock);
	pthread_create(&waiter.thread, NULL, hold_thread, &waiter);
	sleep_ms(5);
	pid = fork();
	if (pid == 0) {
		int sum = pthread_mutex_trylock(&lock) == EBUSY ? 0 : 1;

		sum += pthread_mutex_unlock(&lock) + pthread_mutex_lock(&lock);
		sum += pthread_mutex_unlock(&lock) + cudaSetDevice(2);
		_exit(sum);
	}
	pthread_mutex_unlock(&lock);
	holder_end(&waiter);
	TRY(status_of(pid));
}

void fork_checks(void)
{
	struct mutex_kind plain = {PTHREAD_MUTEX_NORMAL, 0, 0, 1};
	struct mutex_kind robust = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0, 1};
	struct mutex_kind heir = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT,
				  1};

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(from_child) || pipe(to_child))
		return;
	fflush(stdout);
	mutex_init(shared, &plain);
	fork_holding(false);
	mutex_init(shared, &robust);
	fork_holding(true);
	mutex_init(shared, &heir);
	fork_holding(true);
	fork_while_waiting();
	munmap(shared, 4096);
	for (int i = 0; i < 2; i++) {
		close(from_child[i]);
		close(to_child[i]);
	}
}
