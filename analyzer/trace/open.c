/*
 * analyzer/trace/open.c: a trace is opened: its metadata, its board, its names, its streams. Called by trace.c for each that
 * was found.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "open.h"
#include "parts.h"
#include "base/redact.h"

/* Takes "-NUMBER" off the end of a name. */
static bool take_number(char *name, uint32_t *number)
{
	char *dash = strrchr(name, '-'), *end;

	if (!dash || dash == name || !isdigit((unsigned char)dash[1]))
		return false;
	*number = (uint32_t)strtoul(dash + 1, &end, 10);
	if (*end)
		return false;
	*dash = '\0';
	return true;
}

/* PROGRAM-PID.cudaspy, or PROGRAM-PID-N.cudaspy; a program's name may end like that, too. The board
 * knows the number of the process; the N count up from 2. */
static void names_from_directory(struct trace *trace)
{
	static const char suffix[] = ".cudaspy";
	const struct container *c = trace->container;
	const char *folder = c ? c->members[trace->first_member].folder : "";
	char path[PATH_MAX], *name, *end, *dash;
	uint32_t last, before;

	/* What the recorder called it, a container knows; it may have another name itself. */
	if (*folder)
		snprintf(path, sizeof(path), "/%s", folder);
	else if (!realpath(trace->dir, path))
		return;
	name = strrchr(path, '/') + 1;
	end = strstr(name, suffix);
	if (!end || end[sizeof(suffix) - 1])
		return;
	*end = '\0';
	if (!take_number(name, &last))
		return;
	dash = strrchr(name, '-');
	if (take_number(name, &before)) {
		if (trace->pid ? last == trace->pid || before != trace->pid : last > 1001)
			*dash = '-';
		else
			last = before;
	}
	free(trace->program);
	trace->program = xstrdup(name);
	if (!trace->pid)
		trace->pid = last;
}

static void set_settings(struct trace *trace)
{
	const char *blocking = metadata_text(&trace->metadata, "env_CUDA_LAUNCH_BLOCKING");
	const char *loading = metadata_text(&trace->metadata, "env_CUDA_MODULE_LOADING");

	trace->cuda.launches_block = blocking && strtol(blocking, NULL, 10) != 0;
	trace->cuda.loads_eagerly = loading && !strcmp(loading, "EAGER");
}

/* 0: it does not say, or nonsense. */
static uint32_t pid_of(const struct metadata *m)
{
	int64_t pid = metadata_number(m, "pid", 0);

	return pid > 0 && pid <= INT32_MAX ? (uint32_t)pid : 0;
}

static uint32_t part_of(const struct metadata *m)
{
	int64_t part = metadata_number(m, "part", 1);

	return part > 0 && part <= INT32_MAX ? (uint32_t)part : 1;
}

static void set_names(struct trace *trace)
{
	const char *program = metadata_text(&trace->metadata, "program");

	trace->pid = pid_of(&trace->metadata);
	if (!trace->pid && trace->board.present)
		trace->pid = trace->board.head.pid;
	trace->program = xstrdup(program ? path_basename(program) : "?");
	if (!program)
		names_from_directory(trace);
}

void trace_free(struct trace *trace)
{
	metadata_release(&trace->metadata);
	board_release(&trace->board);
	trace_parts_release(trace);
	free(trace->mapped);
	free(trace->use.gpus);
	free(trace->use.mps);
	free(trace->program);
	free(trace->dir);
	free(trace);
}

static bool taken(const struct trace *trace, const struct trace_filter *filter)
{
	const char *run = metadata_text(&trace->metadata, "cudaspy_run");

	return !filter || !filter->run || (run && !strcmp(run, filter->run));
}

/* Is the process of that metadata there? Only a machine that has not been started anew since can
 * tell: *known. */
static bool is_running(const struct metadata *m, bool *known)
{
	const char *boot = metadata_text(m, "boot_id");
	pid_t pid = (pid_t)pid_of(m);
	char here[64] = "";
	FILE *file;

	*known = false;
	file = boot && pid > 0 ? fopen("/proc/sys/kernel/random/boot_id", "re") : NULL;
	if (!file)
		return false;
	if (fgets(here, sizeof(here), file)) {
		here[strcspn(here, "\n")] = '\0';
		*known = !strcmp(here, boot);
	}
	fclose(file);
	return *known && (!kill(pid, 0) || errno == EPERM);
}

/* A file of a trace in a container, at most so many bytes of it. -ENOENT without a word when there is none. */
static int read_packed(const struct container *c, size_t first, const char *name, uint64_t most,
		       const char *path, char **bytes, size_t *size)
{
	const struct container_member *member = container_find(c, first, name);
	struct container_extent extent;

	*bytes = NULL;
	*size = 0;
	if (!member)
		return -ENOENT;
	extent = container_extent(c, member);
	return container_read_extent(path, &extent, most, bytes, size);
}

static int read_packed_metadata(struct trace *trace, const char *path)
{
	char *text;
	size_t size;
	int err = read_packed(trace->container, trace->first_member, "metadata", METADATA_MAX_BYTES,
			      path, &text, &size);

	if (!err)
		err = metadata_parse(&trace->metadata, path, text, size);
	free(text);
	return err;
}

static int read_metadata(struct trace *trace)
{
	char *path = xasprintf("%s/metadata", trace->dir);
	int err = trace->container ? read_packed_metadata(trace, path)
				   : metadata_read(&trace->metadata, path);

	free(path);
	trace->has_metadata = !err;
	return err;
}

#define BOARD_MAX_BYTES ((uint64_t)SPY_BOARD_PAGE * (1 + SPY_BOARD_SLOTS))

static void read_packed_board(struct trace *trace, const char *path)
{
	char *bytes;
	size_t size;

	if (!read_packed(trace->container, trace->first_member, ".board", BOARD_MAX_BYTES, path,
			 &bytes, &size))
		board_parse(&trace->board, path, bytes, size);
	free(bytes);
}

static bool holds(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	bool yes = !access(path, F_OK);

	free(path);
	return yes;
}

static bool holds_streams(const char *dir)
{
	return holds(dir, "stream_0000") || holds(dir, "stream_0000_tail");
}

static bool has_streams(const struct trace *trace)
{
	const struct container *c = trace->container;

	return c ? container_find(c, trace->first_member, "stream_0000") ||
			       container_find(c, trace->first_member, "stream_0000_tail")
		 : holds_streams(trace->dir);
}

/* Reads what else is not in the streams. */
static void read_board(struct trace *trace)
{
	bool known = true, running; /* what lives is not packed */
	char *path;

	/* First this, then the board: a process that has gone writes no more. */
	running = !trace->container && is_running(&trace->metadata, &known);
	path = xasprintf("%s/.board", trace->dir);
	if (trace->container)
		read_packed_board(trace, path);
	else
		board_read(&trace->board, path);
	free(path);
	trace->alive = running && trace->board.present && !trace->board.head.ended;
	trace->live = trace->board.present && !trace->board.head.ended && (running || !known);
	trace->part = part_of(&trace->metadata);
	/* Of a part that is finished a thread may have the tail yet, until its next call. */
	trace->writing = trace->board.present && (!trace->board.head.ended || running);
}

/* The recorder makes the board, then metadata, then the first stream, and a thread has a slot then. */
static bool has_only_begun(const struct trace *trace, int err)
{
	if (err != -ENOENT || !trace->board.present || trace->board.head.ended ||
	    has_streams(trace))
		return false;
	for (size_t i = 0; i < trace->board.n_slots; i++)
		if (trace->board.slots[i].tid)
			return false;
	return true;
}

/* err: what came of reading metadata. False: this is no trace, or none that can be read. */
static bool is_ours(struct trace *trace, int err)
{
	if (!err)
		return true;
	/* With our board or streams it is our trace, whatever has become of the text. */
	if (err == -EPROTO || (err != -ENOENT && !trace->board.present && !has_streams(trace)))
		return false;
	metadata_release(&trace->metadata);
	warn("%s/metadata: %s: functions are named as this version numbers them", trace->dir,
	     err == -ENOENT ? "missing" : "of no use");
	return true;
}

/* One of the names that `cudaspy run` gives: those of people may stand there with other
 * characters. */
static bool is_given(const char *run)
{
	return !run[strspn(run, "0123456789abcdef")];
}

static bool packed_mentions(const struct found_trace *found, const char *run)
{
	char *text;
	size_t size;
	bool yes = !read_packed(found->container, found->first_member, "metadata",
				METADATA_MAX_BYTES, found->dir, &text, &size) &&
		   memmem(text, size, run, strlen(run));

	free(text);
	return yes;
}

/* Does its metadata hold that run's name at all? What others have left there, damaged perhaps, is
 * not complained about in the report of a run. */
static bool mentions(const char *dir, const char *run)
{
	char *path = xasprintf("%s/metadata", dir), *text = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = -1;
	bool yes;

	if (fd >= 0 && !fstat(fd, &st)) {
		st.st_size = (off_t)min_u64((uint64_t)st.st_size, METADATA_MAX_BYTES);
		text = xrealloc(NULL, (size_t)st.st_size + 1, 1);
		n = read(fd, text, (size_t)st.st_size);
	}
	yes = n > 0 && memmem(text, (size_t)n, run, strlen(run));
	if (fd >= 0)
		close(fd);
	free(text);
	free(path);
	return yes;
}

bool folder_of(const char *dir, struct folder *folder)
{
	struct stat st;

	if (stat(dir, &st))
		return false;
	*folder = (struct folder){st.st_dev, st.st_ino, 0};
	return true;
}

static bool folder_of_found(const struct found_trace *found, struct folder *folder)
{
	const struct container *c = found->container;

	if (!c)
		return folder_of(found->dir, folder);
	*folder = (struct folder){c->device, c->inode, found->first_member + 1};
	return true;
}

void trace_open(struct trace_set *set, const struct found_trace *found,
		const struct trace_filter *filter)
{
	struct trace *trace;
	size_t first = set->n_streams;
	bool readable;
	int err;

	if (filter && filter->run && is_given(filter->run) &&
	    !(found->container ? packed_mentions(found, filter->run)
			       : mentions(found->dir, filter->run)))
		return;
	trace = xcalloc(1, sizeof(*trace));
	trace->dir = xstrdup(found->dir);
	trace->container = found->container;
	trace->first_member = found->first_member;
	redact_directory(found->dir);
	err = read_metadata(trace);
	if (!taken(trace, filter)) {
		trace_free(trace);
		return;
	}
	read_board(trace);
	if (has_only_begun(trace, err)) {
		set->begun++;
		trace_free(trace);
		return;
	}
	readable = is_ours(trace, err);
	if (readable)
		trace_find_streams(set, trace);
	if (!readable ||
	    (!trace->has_metadata && !trace->board.present && set->n_streams == first)) {
		set->unreadable++;
		trace_free(trace);
		return;
	}
	set_names(trace);
	set_settings(trace);
	set->cuda.launches_block |= trace->cuda.launches_block;
	set->cuda.loads_eagerly |= trace->cuda.loads_eagerly;
	trace_set_timeline(trace);
	trace_check_events(trace);
	trace_map_known_functions(set, trace);
	if (folder_of_found(found, &trace->folder))
		HASH_ADD(hh, set->by_folder, folder, sizeof(trace->folder), trace);
	set->traces = grow(set->traces, set->n_traces, sizeof(*set->traces));
	set->traces[set->n_traces++] = trace;
}

bool trace_is_in(const char *dir)
{
	return holds(dir, "metadata") || holds(dir, ".board") || holds_streams(dir);
}
