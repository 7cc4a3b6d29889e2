/*
 * tests/e2e/programs/leaves.c: a program whose other thread has ended leaves its user namespace, which a process with several threads may
 * not. Prints what became of it, and how many threads it has then; status 77: it may not at all.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cudaMalloc(void **memory, size_t bytes);
int cudaDeviceSynchronize(void);

static void *nothing(void *data)
{
	return data;
}

static void print_threads(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "Threads:", 8))
			fputs(line, stdout);
	if (status)
		fclose(status);
}

int main(void)
{
	pthread_t thread;
	void *memory;
	int i;

	if (pthread_create(&thread, NULL, nothing, NULL) || cudaMalloc(&memory, 1 << 20))
		return 1;
	pthread_join(thread, NULL);
	for (i = 0; i < 50; i++) {
		cudaDeviceSynchronize();
		usleep(3000);
	}
	if (unshare(CLONE_NEWUSER)) {
		printf("%s\n", strerror(errno));
		return errno == EPERM || errno == ENOSPC ? 77 : 0;
	}
	print_threads();
	return 0;
}
