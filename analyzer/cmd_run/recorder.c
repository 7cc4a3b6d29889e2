/*
 * analyzer/cmd_run/recorder.c: programs run with the shim preloaded. Called by run and calibrate.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "recorder.h"

#define SHIM "libcudaspy.so"

/* The shim: $CUDASPY_LIB, else beside this program, else where `make install` puts it. Absolute,
 * because the program may change its directory before it starts another one. */
static bool find_shim(char *path)
{
	static const char *const places[] = {"%s/" SHIM, "%s/../lib/cudaspy/" SHIM};
	const char *env = getenv("CUDASPY_LIB");
	char self[PATH_MAX], try[PATH_MAX + 64];
	ssize_t n;
	size_t i;

	if (env && *env)
		return realpath(env, path);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return false;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < ARRAY_SIZE(places); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(try, sizeof(try), places[i], self);
#pragma GCC diagnostic pop
		if (realpath(try, path))
			return true;
	}
	return false;
}

bool recorder_find(const char *verb, char *path)
{
	const char *env = getenv("CUDASPY_LIB");

	if (!find_shim(path)) {
		if (env && *env)
			fprintf(stderr, "cudaspy %s: CUDASPY_LIB=%s: %s\n", verb, env,
				strerror(errno));
		else
			fprintf(stderr,
				"cudaspy %s: " SHIM " is neither beside cudaspy nor in "
				"../lib/cudaspy; CUDASPY_LIB can name it\n",
				verb);
		return false;
	}
	/* The loader would take it for several names. */
	if (path[strcspn(path, " \t\n:")]) {
		fprintf(stderr,
			"cudaspy %s: %s: LD_PRELOAD cannot name a path with blanks or colons; make "
			"install puts it elsewhere, CUDASPY_LIB can name a copy\n",
			verb, path);
		return false;
	}
	return true;
}

static void set_preload(const char *shim)
{
	const char *old = getenv("LD_PRELOAD");
	char *preload = old && *old ? xasprintf("%s:%s", shim, old) : xstrdup(shim);

	setenv("LD_PRELOAD", preload, 1);
	free(preload);
}

static volatile sig_atomic_t child;

/* A signal that ends us is meant for the program. */
static void pass_on(int signal)
{
	if (child > 0)
		kill((pid_t)child, signal);
}

/* While the program runs: signals that the terminal sends to it as well, which we outlive to
 * report, and signals that we pass on. One that was ignored from the start (nohup) stays so for
 * both. */
static const struct {
	int number;
	void (*handler)(int);
} signals[] = {
	{SIGINT, SIG_IGN}, {SIGQUIT, SIG_IGN}, {SIGTERM, pass_on},
	{SIGHUP, pass_on}, {SIGUSR1, pass_on}, {SIGUSR2, pass_on},
};
static struct sigaction signals_before[ARRAY_SIZE(signals)];

static void take_signals(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct sigaction ours = {.sa_handler = signals[i].handler, .sa_flags = SA_RESTART};

		sigaction(signals[i].number, NULL, &signals_before[i]);
		if (signals_before[i].sa_handler != SIG_IGN)
			sigaction(signals[i].number, &ours, NULL);
	}
}

static void give_signals_back(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i].number, &signals_before[i], NULL);
}

int recorder_run(const char *verb, const char *shim, char **argv)
{
	int status, err;

	take_signals();
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		give_signals_back();
		if (shim)
			set_preload(shim);
		execvp(argv[0], argv);
		err = errno;
		fprintf(stderr, "cudaspy %s: %s: %s\n", verb, argv[0], strerror(err));
		_exit(err == ENOENT ? RECORDER_NOT_FOUND : RECORDER_CANNOT_RUN);
	}
	while (waitpid((pid_t)child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	child = 0;
	give_signals_back(); /* from here on they mean us */
	return status;
}
