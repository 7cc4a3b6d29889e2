/*
 * tests/bench/spawn.c: runs a program several times and prints what it cost: a stand-in for
 * time -v, which a GPU machine may not have.
 *
 *   spawn [--repeat N] [--env NAME=VALUE]... [--quiet] -- program args...
 *
 * prints one line: median ms, least ms, largest resident set in KiB, exit status of the last run, and how long that
 * was on a CPU in ms: on a machine that others use, too, that is what can be compared.
 * --env sets a variable for the program alone; --quiet sends its output to /dev/null.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double ms_of(const struct timeval *time)
{
	return (double)time->tv_sec * 1e3 + (double)time->tv_usec / 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* The environment with one more variable in front: the first of a name is the one that counts. */
static char **env_add(char **env, char *variable)
{
	size_t cnt = 0;
	char **more;

	while (env[cnt])
		cnt++;
	more = calloc(cnt + 2, sizeof(*more));
	if (!more)
		exit(1);
	more[0] = variable;
	memcpy(more + 1, env, cnt * sizeof(*env));
	return more;
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	double *times, begin;
	long repeat = 1, i;
	char **env = environ;
	struct rusage usage;
	long rss_kib = 0;
	int status = 0;

	posix_spawn_file_actions_init(&actions);
	for (i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--quiet")) {
			posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
			posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
		} else if (!strcmp(argv[i], "--repeat") && i + 1 < argc) {
			repeat = strtol(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--env") && i + 1 < argc) {
			env = env_add(env, argv[++i]);
		} else {
			break;
		}
	}
	argv += i + 1;
	if (i >= argc || strcmp(argv[-1], "--") || !argv[0] || repeat < 1) {
		fprintf(stderr, "Usage: spawn [--repeat N] [--env NAME=VALUE]... [--quiet] -- "
				"program args...\n");
		return 2;
	}
	times = calloc((size_t)repeat, sizeof(*times));
	if (!times)
		return 1;
	for (i = 0; i < repeat; i++) {
		pid_t pid;
		int error;

		begin = now_ms();
		error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, env);
		if (error) {
			fprintf(stderr, "spawn: %s: %s\n", argv[0], strerror(error));
			return 1;
		}
		while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
			;
		times[i] = now_ms() - begin;
		if (usage.ru_maxrss > rss_kib)
			rss_kib = usage.ru_maxrss;
	}
	qsort(times, (size_t)repeat, sizeof(*times), compare_doubles);
	printf("%.3f\t%.3f\t%ld\t%d\t%.3f\n", times[repeat / 2], times[0], rss_kib,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
	       ms_of(&usage.ru_utime) + ms_of(&usage.ru_stime));
	return 0;
}
