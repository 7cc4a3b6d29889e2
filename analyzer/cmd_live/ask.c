/*
 * analyzer/cmd_live/ask.c: asks running programs to begin or end a window, by words of the board that they map: nothing is
 * sent, and nobody is stopped. A program follows when one of its threads makes its next CUDA call; all of a job are asked
 * at once, and then waited for.
 *
 * Boards are others' files: they are read and written, not mapped (who maps a file dies when it is cut off), and each wait
 * has an end, which those that do not let go or do not answer share. Who can be asked at once is not kept waiting by them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "cmd/command.h"
#include "live_options.h"
#include "live/processes.h"

/* How long to wait, for all of them together. */
#define ANSWER_MS 3000
#define ROTATED_MS 3000
#define BEFORE_MS 1000 /* for requests before, that have not been followed */
#define LOCK_MS (ANSWER_MS + 1000) /* others that ask have the lock until they are answered */
#define EACH_MS 50 /* and for each, however long the others took */

/* A program that was asked. */
struct asked {
	char *dir;
	struct spy_board board; /* as it was read last */
	int fd;
	uint32_t request;
};

struct asked_list {
	const char *verb;
	struct asked *all;
	size_t n, failed, gone;
	char **locked; /* traces whose boards others have locked */
	size_t n_locked;
	int lock_ms, before_ms, answer_ms, rotated_ms; /* what is left to wait */
};

/* Waits for a moment. False: there is no time left for it. spent: on this one, 0 at first. */
static bool wait_on(int *left_ms, int *spent_ms)
{
	enum { STEP_MS = 5 };

	if (*left_ms <= 0 && *spent_ms >= EACH_MS)
		return false;
	*left_ms -= STEP_MS;
	*spent_ms += STEP_MS;
	nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
	return true;
}

/* False: it is cut off by now. */
static bool read_board(struct asked *a)
{
	return pread(a->fd, &a->board, sizeof(a->board), 0) == (ssize_t)sizeof(a->board);
}

static bool is_answered(struct asked *a, uint32_t request)
{
	return read_board(a) && a->board.answered == request;
}

static int fail(const struct asked_list *list, const char *path, int err)
{
	warn("%s: %s: %s", list->verb, path,
	     err == -EWOULDBLOCK ? "another process keeps it locked" : strerror(-err));
	return err;
}

/* patient: waits for the lock; else -EWOULDBLOCK says that somebody has it. */
static int lock_board(struct asked_list *list, const struct asked *a, const char *path,
		      bool patient)
{
	int spent_ms = 0;

	while (flock(a->fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail(list, path, -errno);
		if (!patient)
			return -EWOULDBLOCK;
		if (!wait_on(&list->lock_ms, &spent_ms))
			return fail(list, path, -EWOULDBLOCK);
	}
	return 0;
}

static int check_board(const struct asked_list *list, struct asked *a, const char *path)
{
	if (!read_board(a)) {
		warn("%s: %s: board is cut off", list->verb, path);
		return -ENODATA;
	}
	if (a->board.magic != SPY_BOARD_MAGIC) {
		warn("%s: %s: not a board (bad magic number)", list->verb, path);
		return -ENOMSG;
	}
	if (a->board.version != SPY_TRACE_VERSION) {
		warn("%s: %s: recorded by another version of cudaspy", list->verb, a->dir);
		return -EINVAL;
	}
	return a->board.ended ? -ESRCH : 0;
}

/* Reads the board, under the file's lock. -errno after a message; without one -ESRCH: the process has ended, and
 * -EWOULDBLOCK as lock_board. */
static int open_board(struct asked_list *list, struct asked *a, const char *path, bool patient)
{
	struct stat status;
	int err;

	a->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (a->fd < 0 || fstat(a->fd, &status))
		return fail(list, path, -errno);
	if (!S_ISREG(status.st_mode)) {
		warn("%s: %s: not a regular file", list->verb, path);
		return -EINVAL;
	}
	err = lock_board(list, a, path, patient);
	return err ?: check_board(list, a, path);
}

/* What lies in the board from there up to there, as a->board has it. */
static bool write_board(const struct asked *a, size_t from, size_t to)
{
	return pwrite(a->fd, (const char *)&a->board + from, to - from, (off_t)from) ==
	       (ssize_t)(to - from);
}

/* The request's number comes last: the program reads the others when it has changed. */
static int fill_in(const struct asked_list *list, struct asked *a, const struct asking *asking,
		   const char *path)
{
	struct spy_board *board = &a->board;

	board->wanted = asking->wanted;
	board->wanted_at_ns = asking->at_ns;
	board->wanted_every_ns = asking->every_ns;
	board->wanted_for_ns = asking->for_ns;
	memset(board->wanted_text, 0, sizeof(board->wanted_text));
	if (asking->text)
		memcpy(board->wanted_text, asking->text,
		       strnlen(asking->text, sizeof(board->wanted_text) - 1));
	a->request = ++board->request;
	errno = EIO; /* of a write that is cut short */
	if (!write_board(a, offsetof(struct spy_board, wanted),
			 offsetof(struct spy_board, overhead_ppm)) ||
	    !write_board(a, offsetof(struct spy_board, request),
			 offsetof(struct spy_board, answered)))
		return fail(list, path, -errno);
	return 0;
}

/* What was asked before is to be followed first: marks would be lost. */
static void await_before(struct asked_list *list, struct asked *a)
{
	int spent_ms = 0;

	while (!is_answered(a, a->board.request))
		if (!wait_on(&list->before_ms, &spent_ms)) {
			warn("%s: %s: an earlier request was not followed yet, and is replaced",
			     list->verb, a->dir);
			break;
		}
}

static void ask(struct asked_list *list, const char *dir, const struct asking *asking, bool patient)
{
	struct asked a = {.dir = xasprintf("%s", dir), .fd = -1};
	char *path = xasprintf("%s/.board", dir);
	int err = open_board(list, &a, path, patient);

	if (!err) {
		await_before(list, &a);
		err = fill_in(list, &a, asking, path);
	}
	free(path);
	if (!err) {
		list->all = grow(list->all, list->n, sizeof(*list->all));
		list->all[list->n++] = a;
		return;
	}
	if (a.fd >= 0)
		close(a.fd);
	if (err == -EWOULDBLOCK && !patient) {
		list->locked = grow(list->locked, list->n_locked, sizeof(*list->locked));
		list->locked[list->n_locked++] = a.dir;
		return;
	}
	list->failed += err != -ESRCH;
	free(a.dir);
}

/* When all others have been asked. */
static void ask_locked(struct asked_list *list, const struct asking *asking)
{
	for (size_t i = 0; i < list->n_locked; i++) {
		ask(list, list->locked[i], asking, true);
		free(list->locked[i]);
	}
	free(list->locked);
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
			ask(list, path, asking, false);
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
static void conclude_rotation(struct asked_list *list, struct asked *a)
{
	uint32_t error = 0, part;
	int spent_ms = 0;
	char *name;

	while (!error && (!read_board(a) || a->board.rotated != a->request))
		if (!wait_on(&list->rotated_ms, &spent_ms))
			error = EBUSY;
	error = error ?: a->board.rotate_error;
	part = a->board.part;
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
	for (size_t i = 0; i < list->n; i++) {
		struct asked *a = &list->all[i];
		int spent_ms = 0;
		bool answered;

		while (!(answered = is_answered(a, a->request)) &&
		       wait_on(&list->answer_ms, &spent_ms))
			;
		if (!answered)
			conclude_unanswered(list, a);
		else if (asking->wanted == SPY_WANTED_ROTATE)
			conclude_rotation(list, a);
		else if (asking->wanted == SPY_WANTED_MARK)
			printf("%s: marked\n", a->dir);
		else
			printf("%s: %s%s\n", a->dir, state_of(&a->board),
			       asking->at_ns && a->board.dormant ? " until then" : "");
		close(a->fd);
		free(a->dir);
	}
	free(list->all);
}

int ask_all(const char *verb, const struct asking *asking, char **words, size_t n)
{
	struct asked_list list = {.verb = verb,
				  .lock_ms = LOCK_MS,
				  .before_ms = BEFORE_MS,
				  .answer_ms = ANSWER_MS,
				  .rotated_ms = ROTATED_MS};
	struct live_targets targets;
	size_t i;

	if (!live_targets_find(&targets, verb, words, n)) {
		live_targets_release(&targets);
		return STATUS_USAGE;
	}
	for (i = 0; i < targets.n_dirs; i++) {
		if (is_trace(targets.dirs[i])) {
			ask(&list, targets.dirs[i], asking, false);
		} else if (!ask_in(&list, targets.dirs[i], asking)) {
			warn("%s: %s: no trace, and none in it", verb, targets.dirs[i]);
			list.failed++;
		}
	}
	ask_locked(&list, asking);
	if (!list.n && !list.failed)
		warn("%s: no recorded program is running (cudaspy ps lists them)", verb);
	i = list.n;
	conclude(&list, asking);
	live_targets_release(&targets);
	warnings_flush();
	return i > list.gone && !list.failed && !fflush(stdout) && !ferror(stdout) ? STATUS_FINE
										   : STATUS_NOTHING;
}
