/*
 * analyzer/cmd_live/ask.c: asks running programs to begin or end a window, by words of the board that they map: nothing is
 * sent, and nobody is stopped. A program follows when one of its threads makes its next CUDA call; all of a job are asked
 * at once, and then waited for.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "cmd/command.h"
#include "live_options.h"
#include "live/processes.h"

#define ANSWER_MS 3000 /* for all together */
#define BEFORE_MS 1000 /* for a request before, that has not been followed */

/* A program that was asked. */
struct asked {
	char *dir;
	struct spy_board *board;
	int fd;
	uint32_t request;
};

struct asked_list {
	const char *verb;
	struct asked *all;
	size_t n, failed, gone;
};

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static bool is_answered(const struct spy_board *board, uint32_t request)
{
	return __atomic_load_n(&board->answered, __ATOMIC_ACQUIRE) == request;
}

/* Maps the board, under the file's lock. -errno after a message; -ESRCH without one: the process has ended. */
static int open_board(const struct asked_list *list, struct asked *a)
{
	char *path = xasprintf("%s/.board", a->dir);
	struct stat status;
	int err = 0;

	a->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (a->fd < 0 || fstat(a->fd, &status) || flock(a->fd, LOCK_EX))
		err = -errno;
	if (err)
		warn("%s: %s: %s", list->verb, path, strerror(-err));
	free(path);
	if (err)
		return err;
	if (!S_ISREG(status.st_mode) || status.st_size < SPY_BOARD_PAGE) {
		warn("%s: %s: it has no board of a running program", list->verb, a->dir);
		return -EINVAL;
	}
	a->board = mmap(NULL, SPY_BOARD_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (a->board == MAP_FAILED) {
		a->board = NULL;
		warn("%s: %s: %s", list->verb, a->dir, strerror(errno));
		return -ENOMEM;
	}
	if (a->board->magic != SPY_BOARD_MAGIC || a->board->version != SPY_TRACE_VERSION) {
		warn("%s: %s: recorded by another version of cudaspy", list->verb, a->dir);
		return -EINVAL;
	}
	return a->board->ended ? -ESRCH : 0;
}

static void fill_in(struct asked *a, const struct asking *asking)
{
	struct spy_board *board = a->board;

	board->wanted = asking->wanted;
	board->wanted_at_ns = asking->at_ns;
	board->wanted_every_ns = asking->every_ns;
	board->wanted_for_ns = asking->for_ns;
	memset(board->wanted_text, 0, sizeof(board->wanted_text));
	if (asking->text)
		memcpy(board->wanted_text, asking->text,
		       strnlen(asking->text, sizeof(board->wanted_text) - 1));
	a->request = board->request + 1;
	__atomic_store_n(&board->request, a->request, __ATOMIC_RELEASE);
}

/* What was asked before is to be followed first: marks would be lost. */
static void await_before(const struct asked_list *list, const struct asked *a)
{
	int ms;

	for (ms = 0; ms < BEFORE_MS && !is_answered(a->board, a->board->request); ms += 5)
		sleep_ms(5);
	if (ms >= BEFORE_MS)
		warn("%s: %s: an earlier request was not followed yet, and is replaced", list->verb,
		     a->dir);
}

static void ask(struct asked_list *list, const char *dir, const struct asking *asking)
{
	struct asked a = {.dir = xasprintf("%s", dir), .fd = -1};
	int err = open_board(list, &a);

	if (!err) {
		await_before(list, &a);
		fill_in(&a, asking);
		list->all = grow(list->all, list->n, sizeof(*list->all));
		list->all[list->n++] = a;
		return;
	}
	list->failed += err != -ESRCH;
	if (a.board)
		munmap(a.board, SPY_BOARD_PAGE);
	if (a.fd >= 0)
		close(a.fd);
	free(a.dir);
}

static bool is_trace(const char *dir)
{
	char *path = xasprintf("%s/.board", dir);
	bool is = !access(path, F_OK);

	free(path);
	return is;
}

/* The traces in a directory; false: there are none. */
static bool ask_in(struct asked_list *list, const char *dir, const struct asking *asking)
{
	static const char suffix[] = ".cudaspy";
	DIR *in = opendir(dir);
	const struct dirent *entry;
	bool any = false;

	while (in && (entry = readdir(in))) {
		size_t length = strlen(entry->d_name);
		char *path;

		if (length < sizeof(suffix) ||
		    strcmp(entry->d_name + length - sizeof(suffix) + 1, suffix) != 0)
			continue;
		path = xasprintf("%s/%s", dir, entry->d_name);
		if (is_trace(path)) {
			ask(list, path, asking);
			any = true;
		}
		free(path);
	}
	if (in)
		closedir(in);
	return any;
}

static const char *state_of(const struct spy_board *board)
{
	return board->dormant ? "dormant" : "recording";
}

/* The name that a finished part has: its folder's with a number. NULL: it has another one, for that was taken. */
static char *finished_name(const char *dir, uint32_t part)
{
	static const char suffix[] = ".cudaspy";
	size_t length = strlen(dir), stem;
	char *path, *other;
	bool is;

	while (length > 1 && dir[length - 1] == '/')
		length--;
	stem = length - (sizeof(suffix) - 1);
	if (length < sizeof(suffix) || strncmp(dir + stem, suffix, sizeof(suffix) - 1) != 0)
		return NULL;
	path = xasprintf("%.*s.%04u%s", (int)stem, dir, part, suffix);
	other = xasprintf("%.*s.%04u-2%s", (int)stem, dir, part, suffix);
	is = access(path, F_OK) == 0 && access(other, F_OK) != 0;
	free(other);
	if (is)
		return path;
	free(path);
	return NULL;
}

/* Ends a part? What came of it stands behind the answer. */
static void conclude_rotation(struct asked_list *list, const struct asked *a)
{
	uint32_t error, part;
	char *name;
	int ms;

	for (ms = 0;
	     ms < ANSWER_MS && __atomic_load_n(&a->board->rotated, __ATOMIC_ACQUIRE) != a->request;
	     ms += 5)
		sleep_ms(5);
	error = ms < ANSWER_MS ? a->board->rotate_error : EBUSY;
	part = a->board->part;
	if (error) {
		warn("%s: %s: the part goes on: %s", list->verb, a->dir, strerror((int)error));
		list->failed++;
		return;
	}
	name = finished_name(a->dir, part - 1);
	printf("%s: part %u is finished%s%s\n", a->dir, part - 1, name ? ": " : "", name ?: "");
	free(name);
}

/* Nobody has followed. */
static void conclude_unanswered(struct asked_list *list, const struct asked *a)
{
	struct stat status;

	if (fstat(a->fd, &status) || recorded_has(status.st_ino)) {
		printf("%s: asked; follows at its next CUDA call\n", a->dir);
		return;
	}
	printf("%s: asked; no process of yours on this host records into it: it was killed, or "
	       "runs elsewhere\n",
	       a->dir);
	list->gone++;
}

/* Says what became of it. */
static void conclude(struct asked_list *list, const struct asking *asking)
{
	size_t i;
	int ms = 0;

	for (i = 0; i < list->n; i++) {
		struct asked *a = &list->all[i];

		for (; ms < ANSWER_MS && !is_answered(a->board, a->request); ms += 5)
			sleep_ms(5);
		if (!is_answered(a->board, a->request))
			conclude_unanswered(list, a);
		else if (asking->wanted == SPY_WANTED_ROTATE)
			conclude_rotation(list, a);
		else if (asking->wanted == SPY_WANTED_MARK)
			printf("%s: marked\n", a->dir);
		else
			printf("%s: %s%s\n", a->dir, state_of(a->board),
			       asking->at_ns && a->board->dormant ? " until then" : "");
		munmap(a->board, SPY_BOARD_PAGE);
		close(a->fd);
		free(a->dir);
	}
	free(list->all);
}

int ask_all(const char *verb, const struct asking *asking, char **words, size_t n)
{
	struct asked_list list = {.verb = verb};
	struct live_targets targets;
	size_t i;

	if (!live_targets_find(&targets, verb, words, n)) {
		live_targets_release(&targets);
		return STATUS_USAGE;
	}
	for (i = 0; i < targets.n_dirs; i++) {
		if (is_trace(targets.dirs[i])) {
			ask(&list, targets.dirs[i], asking);
		} else if (!ask_in(&list, targets.dirs[i], asking)) {
			warn("%s: %s: no trace, and none in it", verb, targets.dirs[i]);
			list.failed++;
		}
	}
	if (!list.n && !list.failed)
		warn("%s: no recorded program is running (cudaspy ps lists them)", verb);
	i = list.n;
	conclude(&list, asking);
	live_targets_release(&targets);
	warnings_flush();
	return i > list.gone && !list.failed && !fflush(stdout) && !ferror(stdout) ? STATUS_FINE
										   : STATUS_NOTHING;
}
