/*
 * tests/e2e/programs/lowest.c: MS: opens, closes and forks for so long, in a thread that has made calls, beside one that works.
 * What is opened gets the lowest number there is, each time; and a forked child has the descriptors that its parent has. Says
 * how often it was otherwise. Linked with the simulator's runtime.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sim_program.h"

#define OPENS 200 /* from fork to fork */

static volatile bool done;

static void *work(void *data)
{
	OK(cudaFree(NULL));
	while (!done)
		;
	return data;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Descriptors below those that a recorder keeps. */
static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool child_has(int n)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(descriptors() != n);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("no child");
	return status == 0;
}

int main(int argc, char **argv)
{
	double end = now_ms() + (argc > 1 ? atoi(argv[1]) : 1000);
	int lowest, opened, others = 0, children = 0, n = 0;
	pthread_t thread;

	OK(cudaSetDevice(0));
	if (pthread_create(&thread, NULL, work, NULL))
		die("no thread");
	/* What the recorder begins, it has begun then. */
	for (int i = 0; i < 3000; i++)
		OK(cudaDeviceSynchronize());
	usleep(100000);
	lowest = open("/dev/null", O_RDONLY);
	close(lowest);
	n = descriptors();
	while (now_ms() < end) {
		for (int i = 0; i < OPENS; i++) {
			opened = open("/dev/null", O_RDONLY);
			others += opened != lowest;
			close(opened);
		}
		children += !child_has(n);
	}
	done = true;
	pthread_join(thread, NULL);
	printf("%d opened elsewhere, %d children with others\n", others, children);
	return others || children;
}
