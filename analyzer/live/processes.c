/*
 * analyzer/live/processes.c: finds recorded processes by the board that they map. Called by `ps`, `top` and `snapshot`.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cudaspy/trace_format.h"
#include "base/median.h"
#include "processes.h"

/* A file under /proc, as one text. False: it is not there, or not for us. */
static bool read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The last of the numbers behind NSpid: what the process itself sees. */
static pid_t inner_number(const char *path)
{
	char text[4096], *line, *end;
	long number = 0;

	if (!read_small(path, text, sizeof(text)))
		return 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	line += strlen("\nNSpid:");
	line[strcspn(line, "\n")] = '\0';
	for (; *line; line = end) {
		long next = strtol(line, &end, 10);

		if (end == line)
			break;
		number = next;
	}
	return (pid_t)number;
}

/* ---- the board ------------------------------------------------------------------------------- */

/* The path of a mapping, of which \012 is a line's end. */
static void unescape(char *path)
{
	char *to = path, *from = path;

	for (; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* Is that the board with that number, and the process's own? A child of vfork maps its parent's. */
static bool is_board(const char *path, uint64_t inode, pid_t inner_pid)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct spy_board head;
	struct stat st;
	bool yes;

	if (fd < 0)
		return false;
	yes = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == inode &&
	      pread(fd, &head, sizeof(head), 0) == sizeof(head) && head.magic == SPY_BOARD_MAGIC &&
	      head.pid == (uint32_t)inner_pid && !head.ended;
	close(fd);
	return yes;
}

/* As we reach it: by the path itself, or from the root of the process. */
static char *reach(pid_t pid, const char *path, uint64_t inode, pid_t inner_pid)
{
	char *inside;

	if (is_board(path, inode, inner_pid))
		return xstrdup(path);
	inside = xasprintf("/proc/%d/root%s", (int)pid, path);
	if (is_board(inside, inode, inner_pid))
		return inside;
	free(inside);
	return NULL;
}

/* The mapping of a board in a line of `maps`: its path, or NULL. */
static char *board_of_line(char *line, uint64_t *inode)
{
	static const char name[] = "/.board";
	char *path = strchr(line, '/');
	unsigned long long number;
	size_t n;

	if (!path)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	n = strlen(path);
	if (n < sizeof(name) || strcmp(path + n - (sizeof(name) - 1), name) != 0)
		return NULL;
	if (sscanf(line, "%*s %*s %*s %*s %llu", &number) != 1)
		return NULL;
	*inode = number;
	unescape(path);
	return path;
}

static void add(struct recorded_list *list, const struct recorded *found, char *board)
{
	*strrchr(board, '/') = '\0';
	list->all = grow(list->all, list->n, sizeof(*list->all));
	list->all[list->n] = *found;
	list->all[list->n++].dir = board;
}

/* Looks at what the process maps. */
static void look_at(struct recorded_list *list, pid_t pid, uid_t uid)
{
	char *name = xasprintf("/proc/%d/maps", (int)pid), *line = NULL, *path, *board;
	struct recorded found = {.pid = pid, .uid = uid};
	FILE *maps = fopen(name, "re");
	size_t room = 0;

	free(name);
	while (maps && getline(&line, &room, maps) > 0) {
		path = board_of_line(line, &found.board_inode);
		if (!path)
			continue;
		name = xasprintf("/proc/%d/status", (int)pid);
		found.inner_pid = inner_number(name) ?: pid;
		free(name);
		board = reach(pid, path, found.board_inode, found.inner_pid);
		if (board)
			add(list, &found, board);
		else if (access(path, F_OK) && errno == EACCES)
			list->unreadable++;
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
}

static int by_pid(const void *x, const void *y)
{
	const struct recorded *a = x, *b = y;

	return COMPARE(a->pid, b->pid);
}

static bool owner_of(pid_t pid, uid_t *uid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st))
		return false;
	*uid = st.st_uid;
	return true;
}

void recorded_find(struct recorded_list *list)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	uid_t uid;

	*list = (struct recorded_list){0};
	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && owner_of(pid, &uid) &&
		    (!geteuid() || uid == geteuid()))
			look_at(list, pid, uid);
	}
	if (dir)
		closedir(dir);
	if (list->n)
		qsort(list->all, list->n, sizeof(*list->all), by_pid);
}

bool recorded_find_one(struct recorded_list *list, pid_t pid)
{
	uid_t uid;

	*list = (struct recorded_list){0};
	if (owner_of(pid, &uid))
		look_at(list, pid, uid);
	return list->n;
}

void recorded_release(struct recorded_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->all[i].dir);
	free(list->all);
	*list = (struct recorded_list){0};
}

bool recorded_has(uint64_t board_inode)
{
	struct recorded_list list;
	bool has = false;

	recorded_find(&list);
	for (size_t i = 0; i < list.n; i++)
		has |= list.all[i].board_inode == board_inode;
	recorded_release(&list);
	return has;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool has_task(pid_t pid, long tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%ld", (int)pid, tid);
	return !access(path, F_OK);
}

/* In a container: the task whose last number is that. */
static pid_t search_task(pid_t pid, uint32_t tid)
{
	char path[64];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid,
			 atoi(entry->d_name));
		if (inner_number(path) == (pid_t)tid)
			found = (pid_t)atoi(entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

pid_t os_thread_number(const struct recorded *process, uint32_t tid)
{
	if (!tid || tid > INT32_MAX)
		return 0;
	if (process->pid != process->inner_pid)
		return search_task(process->pid, tid);
	return has_task(process->pid, tid) ? (pid_t)tid : 0;
}

static bool read_task(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	if (!read_small(path, text, size))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

void os_thread_look(struct os_thread *thread, pid_t pid, pid_t tid)
{
	char text[512], *end;

	*thread = (struct os_thread){0};
	if (!tid)
		return;
	if (read_task(pid, tid, "comm", text, sizeof(text)))
		snprintf(thread->name, sizeof(thread->name), "%.15s", text);
	/* PID (NAME) STATE …: the name may have brackets and blanks in it */
	if (read_task(pid, tid, "stat", text, sizeof(text)) && (end = strrchr(text, ')')) && end[1])
		thread->state = end[2];
	if (read_task(pid, tid, "wchan", text, sizeof(text)) && strcmp(text, "0") != 0)
		snprintf(thread->where, sizeof(thread->where), "%.47s", text);
}
