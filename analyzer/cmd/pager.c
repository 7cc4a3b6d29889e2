/*
 * analyzer/cmd/pager.c: the user's pager. Called by output.c. It starts with the first byte, so that what comes before,
 * questions of the shell and warnings, has the terminal to itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "command.h"
#include "pager.h"

static struct pager {
	const char *command;
	pid_t pid; /* 0: it has not begun */
	int fd; /* its standard input */
	struct sigaction interrupt, quit, broken; /* as they were */
} pager;

/* ---- which one ------------------------------------------------------------------------------- */

/* Is there a program of that name? */
static bool is_program(const char *name, size_t n)
{
	const char *path = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";
	char *word = xstrndup(name, n), *copy = xstrdup(path), *rest = copy, *dir;
	bool found = strchr(word, '/') && !access(word, X_OK);

	while (!found && (dir = strsep(&rest, ":"))) {
		char *file = xasprintf("%s/%s", *dir ? dir : ".", word);

		found = !access(file, X_OK);
		free(file);
	}
	free(copy);
	free(word);
	return found;
}

/* $PAGER, for the shell; NULL: none is wanted, or the one that is is not there. */
static const char *choose(void)
{
	const char *wanted = getenv("PAGER"), *terminal = getenv("TERM");
	const char *command = wanted ?: "less";
	size_t n = strcspn(command, " \t");

	if (!isatty(STDOUT_FILENO) || !terminal || !strcmp(terminal, "dumb"))
		return NULL;
	if (!*command || !strcmp(command, "cat"))
		return NULL;
	/* What is more than a name, the shell understands. */
	if (!command[strcspn(command, "$`\"'\\|&;<>(){}*?[]~=")] && !is_program(command, n)) {
		if (wanted)
			warn("PAGER=%s: there is no such program", wanted);
		return NULL;
	}
	return command;
}

/* ---- its life -------------------------------------------------------------------------------- */

static void become_pager(int in)
{
	static const char *const argv[] = {"sh", "-c", NULL, NULL};
	const char *words[ARRAY_SIZE(argv)];

	memcpy(words, argv, sizeof(argv));
	words[2] = pager.command;
	/* Ends where all fits the screen, shows colours, leaves the text on the screen. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	dup2(in, STDIN_FILENO);
	execv("/bin/sh", (char *const *)words);
	_exit(127);
}

/* A pager takes ^C as a command, and the terminal is its own until it ends. */
static void leave_signals_to_it(void)
{
	struct sigaction ignored = {.sa_handler = SIG_IGN};

	sigaction(SIGINT, &ignored, &pager.interrupt);
	sigaction(SIGQUIT, &ignored, &pager.quit);
	sigaction(SIGPIPE, &ignored, &pager.broken);
}

static int start(void)
{
	int ends[2];

	fflush(stderr);
	if (pipe(ends))
		return -errno;
	pager.pid = fork();
	if (pager.pid < 0) {
		pager.pid = 0;
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (!pager.pid) {
		close(ends[1]);
		become_pager(ends[0]);
	}
	close(ends[0]);
	pager.fd = ends[1];
	leave_signals_to_it();
	return 0;
}

static void wait_for_it(void)
{
	while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &pager.interrupt, NULL);
	sigaction(SIGQUIT, &pager.quit, NULL);
	sigaction(SIGPIPE, &pager.broken, NULL);
}

/* Without a pager after all, the terminal gets it. */
static ssize_t put(void *cookie, const char *text, size_t n)
{
	size_t done = 0;

	(void)cookie;
	if (!pager.pid && start())
		pager.fd = STDOUT_FILENO;
	while (done < n) {
		ssize_t wrote = write(pager.fd, text + done, n - done);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0 && errno == EPIPE && pager.pid) {
			/* Its user has seen enough: there is nothing left to do. */
			wait_for_it();
			_exit(STATUS_FINE);
		}
		if (wrote <= 0)
			return 0;
		done += (size_t)wrote;
	}
	return (ssize_t)n;
}

static int end(void *cookie)
{
	(void)cookie;
	if (pager.pid) {
		close(pager.fd);
		wait_for_it();
	}
	pager = (struct pager){0};
	return 0;
}

FILE *pager_open(void)
{
	static const cookie_io_functions_t functions = {.write = put, .close = end};

	pager = (struct pager){.command = choose()};
	return pager.command ? fopencookie(NULL, "w", functions) : NULL;
}
