/*
 * analyzer/trace/trace.c: a set of traces, found in directories and containers, and put in order. Called by every command
 * that reads.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "copies.h"
#include "open.h"
#include "parts.h"
#include "base/magic.h"
#include "base/redact.h"
#include "base/median.h"

/* Memory for all streams' buffers together, and what one of them gets at most. More of it reads
 * slower: then the records of many streams fall out of the processor's caches before their turn
 * comes (100 streams, 10 M records: 0.43 s with 4 MB, 0.69 s with 64 MB). */
#define BUFFERS_BYTES ((size_t)4 << 20)
#define BUFFER_BYTES ((size_t)256 << 10)

/* Named twice, or by its parent as well. */
static bool is_open(const struct trace_set *set, const char *dir)
{
	struct folder folder;
	struct trace *trace = NULL;

	if (folder_of(dir, &folder))
		HASH_FIND(hh, set->by_folder, &folder, sizeof(folder), trace);
	return trace;
}

/* As the recorder names directories. */
static bool is_named_like_trace(const char *dir)
{
	static const char suffix[] = ".cudaspy";
	size_t n = strlen(dir);

	return n >= sizeof(suffix) && !strcmp(dir + n - (sizeof(suffix) - 1), suffix);
}

/* Is it a directory whose files cannot be reached? Returns why, or 0. */
static int locked_out(const char *dir)
{
	struct stat st;
	char *inside;
	int err;

	if (stat(dir, &st))
		return errno == ENOENT ? 0 : errno;
	if (!S_ISDIR(st.st_mode))
		return 0;
	inside = xasprintf("%s/.", dir);
	err = access(inside, F_OK) ? errno : 0;
	free(inside);
	return err;
}

/* ---- containers ----------------------------------------------------------------------------- */

static bool is_open_container(const struct trace_set *set, const char *path)
{
	struct stat st;

	for (size_t i = 0; !stat(path, &st) && i < set->n_containers; i++)
		if (set->containers[i]->device == st.st_dev &&
		    set->containers[i]->inode == st.st_ino)
			return true;
	return false;
}

/* Its folders are its traces. Who looks for one run is not told of damage in what others have left. folder: only that one;
 * NULL: all. False after a message: it cannot be read. */
static bool add_container(struct trace_set *set, const char *path, const char *folder,
			  const struct trace_filter *filter)
{
	struct container *c;

	if (is_open_container(set, path))
		return true;
	redact_directory(path);
	c = xcalloc(1, sizeof(*c));
	if (container_open(c, path, filter && filter->run)) {
		container_release(c);
		free(c);
		return false;
	}
	set->containers = grow(set->containers, set->n_containers, sizeof(*set->containers));
	set->containers[set->n_containers++] = c;
	for (size_t i = 0; i < c->n_members; i = container_next_folder(c, i)) {
		bool alone = !i && container_next_folder(c, 0) == c->n_members;
		char *dir = alone ? xstrdup(path) : xasprintf("%s/%s", path, c->members[i].folder);

		if (!folder || !strcmp(folder, c->members[i].folder))
			trace_open(set, &(struct found_trace){dir, c, i}, filter);
		free(dir);
	}
	return true;
}

/* CONTAINER/FOLDER: one of several traces in a container. */
static bool add_part(struct trace_set *set, const char *path, const struct trace_filter *filter)
{
	char *copy = xstrdup(path), *slash = copy + strlen(copy);
	size_t n_traces = set->n_traces;
	struct stat st;
	bool there = false;

	while (!there && (slash = memrchr(copy, '/', (size_t)(slash - copy)))) {
		*slash = '\0';
		there = !stat(copy, &st);
	}
	if (there && S_ISREG(st.st_mode))
		add_container(set, copy, path + (slash - copy) + 1, filter);
	if (set->n_traces == n_traces)
		warn("%s: %s", path, strerror(ENOTDIR));
	free(copy);
	return set->n_traces > n_traces;
}

/* A directory named as a trace whose files cannot be reached is one that cannot be read. */
static bool is_locked_trace(struct trace_set *set, const char *dir)
{
	int err = is_named_like_trace(dir) ? locked_out(dir) : 0;

	if (!err)
		return false;
	warn("%s: %s", dir, strerror(err));
	set->unreadable++;
	return true;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* A folder, and no link to one, which may lead back. */
static bool is_folder(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

#define FOLDERS_DEEP 2 /* a folder for each node, and one for each of its ranks */

/* Traces below a directory: directly, or in its folders, so many deep. Returns how many there are, readable or not; -1
 * if the directory cannot be read, after a message where it was named. */
static int add_children(struct trace_set *set, const char *dir, const struct trace_filter *filter,
			unsigned int deep, bool named)
{
	struct dirent **entries;
	int i, found = 0, n = scandir(dir, &entries, is_visible, alphasort);

	if (n < 0) {
		if (named)
			warn("%s: %s", dir, strerror(errno));
		return -1;
	}
	for (i = 0; i < n; i++) {
		char *path = xasprintf("%s%s%s", strcmp(dir, ".") ? dir : "",
				       strcmp(dir, ".") ? "/" : "", entries[i]->d_name);

		if (trace_is_in(path)) {
			if (!is_open(set, path))
				trace_open(set, &(struct found_trace){.dir = path}, filter);
			found++;
		} else if (container_is_named(path)) {
			if (!add_container(set, path, NULL, filter))
				set->unreadable += !(filter && filter->run);
			found++;
		} else if (!(filter && filter->run) && is_locked_trace(set, path)) {
			found++;
		} else if (deep && is_folder(path)) {
			int below = add_children(set, path, filter, deep - 1, false);

			found += below > 0 ? below : 0;
		}
		free(path);
		free(entries[i]);
	}
	free(entries);
	return found;
}

static int by_uuid(const struct trace *x, const struct trace *y)
{
	if (!x->metadata.has_uuid || !y->metadata.has_uuid)
		return x->metadata.has_uuid - y->metadata.has_uuid;
	return memcmp(x->metadata.uuid, y->metadata.uuid, sizeof(x->metadata.uuid));
}

static int by_text(const struct trace *x, const struct trace *y, const char *key)
{
	return strcmp(metadata_text(&x->metadata, key) ?: "",
		      metadata_text(&y->metadata, key) ?: "");
}

/* Copies, parts that are joined to others, and runs that are not wanted: they and their streams are gone. */
static void drop(struct trace_set *set)
{
	size_t i, n_streams = 0, n_traces = 0;

	for (i = 0; i < set->n_streams; i++) {
		struct stream *stream = set->streams[i];

		if (!stream->trace->copy && !stream->trace->left_out && !stream->trace->joined) {
			set->streams[n_streams++] = stream;
			continue;
		}
		reader_release(&stream->reader);
		free(stream);
	}
	set->n_streams = n_streams;
	for (i = 0; i < set->n_traces; i++) {
		struct trace *trace = set->traces[i];

		if (!trace->copy && !trace->left_out && !trace->joined) {
			set->traces[n_traces++] = trace;
			continue;
		}
		if (trace->hh.tbl)
			HASH_DEL(set->by_folder, trace);
		trace_free(trace);
	}
	set->n_traces = n_traces;
}

/* By what traces say of themselves: where they lie decides only between those that say the same. */
static int by_start(const void *a, const void *b)
{
	const struct trace *x = *(struct trace *const *)a, *y = *(struct trace *const *)b;
	int64_t s = metadata_number(&x->metadata, "start_realtime_ns", 0);
	int64_t t = metadata_number(&y->metadata, "start_realtime_ns", 0);

	return COMPARE(s, t) ?: COMPARE(x->pid, y->pid) ?: by_text(x, y, "hostname") ?:
	       by_text(x, y, "boot_id") ?: strcmp(x->program, y->program) ?: by_uuid(x, y) ?:
	       strcmp(x->dir, y->dir);
}

static int by_trace_and_slot(const void *a, const void *b)
{
	const struct stream *x = *(struct stream *const *)a, *y = *(struct stream *const *)b;

	if (x->trace != y->trace)
		return x->trace->index < y->trace->index ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void number(struct trace_set *set)
{
	size_t i, bytes;

	if (set->n_traces)
		qsort(set->traces, set->n_traces, sizeof(*set->traces), by_start);
	for (i = 0; i < set->n_traces; i++) {
		set->traces[i]->index = (uint32_t)i;
		trace_map_functions(set, set->traces[i]);
	}
	if (set->n_streams)
		qsort(set->streams, set->n_streams, sizeof(*set->streams), by_trace_and_slot);
	bytes = BUFFERS_BYTES / (set->n_streams ? set->n_streams : 1);
	for (i = 0; i < set->n_streams; i++) {
		set->streams[i]->index = (uint32_t)i;
		if (!set->streams[i]->trace->n_streams++)
			set->streams[i]->trace->streams = &set->streams[i];
		reader_set_buffer(&set->streams[i]->reader,
				  bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES);
	}
}

/* By the timelines that they share. */
static void limit_times(struct trace_set *set)
{
	for (size_t i = 0; i < set->n_streams; i++)
		set->streams[i]->reader.time_end =
			timeline_cycles(&set->streams[i]->trace->timeline, TIME_MOST_NS);
}

/* Each stream holds a file open. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool add_any(struct trace_set *set, const char *dir, const struct trace_filter *filter,
		    unsigned int deep)
{
	size_t before = set->n_traces, unreadable = set->unreadable;
	struct stat st;
	int found;

	if (stat(dir, &st)) {
		if (errno == ENOTDIR)
			return add_part(set, dir, filter);
		warn("%s: %s", dir, strerror(errno));
		return false;
	}
	if (file_is_digest(dir)) {
		warn("%s: a digest: this needs the traces that it was made of (report, diff, merge "
		     "and dump take digests)",
		     dir);
		return false;
	}
	if (S_ISREG(st.st_mode))
		return add_container(set, dir, NULL, filter);
	if (!S_ISDIR(st.st_mode)) {
		warn("%s: not a directory", dir);
		return false;
	}
	if (is_open(set, dir))
		return true;
	if (trace_is_in(dir)) {
		trace_open(set, &(struct found_trace){.dir = dir}, filter);
		/* A file of such a name may lie beside traces: then it is none that cannot be
		 * read. */
		unreadable = set->unreadable - unreadable;
		if (set->n_traces == before && add_children(set, dir, filter, 0, true) > 0)
			set->unreadable -= unreadable;
		return true;
	}
	found = add_children(set, dir, filter, deep, true);
	if (!found && !(filter && filter->run)) {
		int err = locked_out(dir);

		warn("%s: %s", dir, err ? strerror(err) : "no trace here");
		return false;
	}
	return found >= 0;
}

/* A trace, or those below, so many folders deep. False after a message: there is none. */
static bool add_named(struct trace_set *set, const char *dir, const struct trace_filter *filter,
		      unsigned int deep)
{
	size_t before = set->n_traces, begun = set->begun;
	bool added = add_any(set, dir, filter, deep);

	if (added && set->n_traces == before && set->begun > begun) {
		warn("%s: a recording that has only begun: nothing is in it", dir);
		return false;
	}
	return added;
}

/* What is known of it is drawn from all that metadata says: only then some of that is dropped. */
static void redact(struct trace_set *set)
{
	for (size_t i = 0; redact_is_on() && i < set->n_traces; i++)
		metadata_redact(&set->traces[i]->metadata);
}

int trace_set_open(struct trace_set *set, const char *const *dirs, size_t n_dirs,
		   const struct trace_filter *filter)
{
	static const char *const here[] = {"."};
	unsigned int deep = n_dirs ? FOLDERS_DEEP : 0; /* where nobody said where, only here */
	int err = 0;

	if (!n_dirs) {
		dirs = here;
		n_dirs = ARRAY_SIZE(here);
	}
	*set = (struct trace_set){0};
	functions_init(&set->functions);
	raise_file_limit();
	for (size_t i = 0; i < n_dirs; i++) {
		redact_directory(dirs[i]);
		if (!add_named(set, dirs[i], filter, deep))
			set->not_found++;
	}
	copies_find(set);
	drop(set);
	trace_parts_join(set);
	drop(set);
	runs_find(set);
	if (filter && filter->wanted && set->n_traces) {
		err = runs_choose(set, filter->wanted);
		drop(set);
	} else if (!filter || (!filter->run && !filter->apart)) {
		runs_warn(set, filter != NULL);
	}
	number(set);
	hosts_find(set);
	limit_times(set);
	redact(set);
	return err ?: set->n_traces ? 0 : -ENOENT;
}

void trace_set_release(struct trace_set *set)
{
	for (size_t i = 0; i < set->n_streams; i++) {
		reader_release(&set->streams[i]->reader);
		free(set->streams[i]);
	}
	HASH_CLEAR(hh, set->by_folder);
	for (size_t i = 0; i < set->n_traces; i++)
		trace_free(set->traces[i]);
	for (size_t i = 0; i < set->n_containers; i++) {
		container_release(set->containers[i]);
		free(set->containers[i]);
	}
	free(set->containers);
	free(set->streams);
	free(set->traces);
	free(set->runs);
	hosts_release(set);
	functions_release(&set->functions);
	*set = (struct trace_set){0};
}
