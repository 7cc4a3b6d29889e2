/*
 * tests/e2e/programs/edge.c: calls whose stack arguments end where the stack ends: nothing above them is
 * mapped, or it is a guard page, or another thread makes it come and go. Functions of none, five and ten words
 * on the stack. `refused`: where the kernel does not copy memory for us.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* edge_x86_64.S: calls function on another stack, with the 16-byte aligned stack pointer at `sp` when
 * the call instruction is reached: the stack arguments begin there. */
int edge_call(void *function, void *sp);

int cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **args,
		   void **extra);
int cuStreamSynchronize(void *stream);
int cuTensorMapEncodeIm2colWide(void);
int cuInit(unsigned int flags);

#define STACK_BYTES (256 << 10)

static int calls; /* the first print sets up stdout */

/* The stack is all zeros, so the arguments are, and the same with the shim as without. */
static int call(void *function, char *stack, size_t from_end)
{
	int result;

	memset(stack, 0, STACK_BYTES);
	errno = 4711;
	result = edge_call(function, stack + STACK_BYTES - from_end);
	if (errno != 4711 && calls++ > 0)
		printf("errno was changed to %d\n", errno);
	return result;
}

static void try(void *function, unsigned int words, int above)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *stack = mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = stack + STACK_BYTES;
	size_t bytes = (words * 8 + 15) & ~15ul;

	if (stack == MAP_FAILED)
		exit(2);
	if (above == 2) {
		/* there at first, gone later */
		for (size_t gap = 0; gap < 160; gap += 16)
			call(function, stack, bytes + gap);
	}
	if (above == 1)
		mprotect(end, page, PROT_NONE);
	else
		munmap(end, page);
	for (size_t gap = 0; gap < 160; gap += 16)
		if (call(function, stack, bytes + gap))
			puts("unexpected result");
	munmap(stack, STACK_BYTES);
}

static atomic_bool stop;

static void *come_and_go(void *page)
{
	while (!atomic_load(&stop)) {
		mprotect(page, 4096, PROT_READ);
		mprotect(page, 4096, PROT_NONE);
	}
	return NULL;
}

/* Whether it can be read when somebody looks says nothing of when somebody reads it. */
static void try_changing(void)
{
	char *stack = mmap(NULL, STACK_BYTES + 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	if (stack == MAP_FAILED || pthread_create(&thread, NULL, come_and_go, stack + STACK_BYTES))
		exit(2);
	for (int i = 0; i < 30000; i++)
		if (edge_call((void *)cuLaunchKernel, stack + STACK_BYTES - 48))
			puts("unexpected result");
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	munmap(stack, STACK_BYTES + 4096);
}

/* As a list of system calls for a container does. */
static void refuse(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(2);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"nothing", "a guard page",
					    "a page that was there before"};

	if (argc > 1 && !strcmp(argv[1], "refused"))
		refuse();
	cuInit(0);
	for (int above = 0; above < 3; above++) {
		printf("above the stack: %s\n", names[above]);
		fflush(stdout);
		try((void *)cuStreamSynchronize, 0, above);
		try((void *)cuLaunchKernel, 5, above);
		try((void *)cuTensorMapEncodeIm2colWide, 10, above);
	}
	if (argc == 1)
		try_changing();
	puts("done");
	return 0;
}
