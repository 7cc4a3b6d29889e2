/*
 * analyzer/trace/trace.c: trace directories, found and opened. Called by every command that reads.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "copies.h"
#include "moment.h"
#include "parts.h"
#include "trace.h"
#include "base/magic.h"
#include "base/redact.h"
#include "cudaspy/metadata_layout.h"

/* Memory for all streams' buffers together, and what one of them gets at most. More of it reads
 * slower: then the records of many streams fall out of the processor's caches before their turn
 * comes (100 streams, 10 M records: 0.43 s with 4 MB, 0.69 s with 64 MB). */
#define BUFFERS_BYTES ((size_t)4 << 20)
#define BUFFER_BYTES ((size_t)256 << 10)

/* ---- one trace ------------------------------------------------------------------------------ */

/* stream_NNNN, stream_NNNN_K or stream_NNNN_tail. */
static bool parse_stream_name(const char *name, uint32_t *slot, uint64_t *number)
{
	char *end;
	unsigned long long value;

	if (strncmp(name, "stream_", 7) || !isdigit((unsigned char)name[7]))
		return false;
	value = strtoull(name + 7, &end, 10);
	*number = READER_FILE_PLAIN;
	if (!strcmp(end, "_tail")) {
		*number = READER_FILE_TAIL;
		end += strlen(end);
	} else if (*end == '_' && isdigit((unsigned char)end[1])) {
		*number = strtoull(end + 1, &end, 10) + 1;
	}
	*slot = (uint32_t)value;
	return !*end && value < SPY_BOARD_SLOTS;
}

/* Does the process delete packets? Older recorders say so by their option alone. */
static bool is_bounded(const struct metadata *metadata)
{
	const char *keep = metadata_text(metadata, "env_CUDASPY_KEEP");

	return metadata_number(metadata, "keep_mib", keep && *keep) > 0;
}

static struct stream *find_stream(struct trace_set *set, struct trace *trace, uint32_t slot)
{
	struct stream *stream;
	size_t i;

	for (i = set->n_streams; i && set->streams[i - 1]->trace == trace; i--)
		if (set->streams[i - 1]->slot == slot)
			return set->streams[i - 1];
	stream = xcalloc(1, sizeof(*stream));
	stream->trace = trace;
	stream->slot = slot;
	reader_init(&stream->reader, trace->metadata.has_uuid ? trace->metadata.uuid : NULL);
	stream->reader.live = trace->live;
	stream->reader.unbounded = trace->has_metadata && !is_bounded(&trace->metadata);
	stream->reader.keeps_first = slot == 0;
	set->streams = grow(set->streams, set->n_streams, sizeof(*set->streams));
	set->streams[set->n_streams++] = stream;
	return stream;
}

/* A file of the trace, if it is one of a stream: of its tail, or another one. extent: where it is, NULL: in the directory. */
static void find_file(struct trace_set *set, struct trace *trace, const char *name, bool tails,
		      const struct container_extent *extent)
{
	struct reader *reader;
	uint64_t number;
	uint32_t slot;
	char *path;

	if (!parse_stream_name(name, &slot, &number) || (number == READER_FILE_TAIL) != tails)
		return;
	reader = &find_stream(set, trace, slot)->reader;
	path = xasprintf("%s/%s", trace->dir, name);
	if (tails && trace->writing)
		reader_add_copy_of_extent(reader, path, extent);
	else
		reader_add_extent(reader, path, number, extent);
	free(path);
}

static void find_files(struct trace_set *set, struct trace *trace, DIR *dir, bool tails)
{
	struct dirent *entry;

	while ((entry = readdir(dir)))
		find_file(set, trace, entry->d_name, tails, NULL);
}

static void find_packed(struct trace_set *set, struct trace *trace, bool tails)
{
	const struct container *c = trace->container;
	size_t i, end = container_next_folder(c, trace->first_member);

	for (i = trace->first_member; i < end; i++) {
		struct container_extent extent = container_extent(c, &c->members[i]);

		find_file(set, trace, c->members[i].name, tails, &extent);
	}
}

static void find_in_folder(struct trace_set *set, struct trace *trace)
{
	DIR *dir = opendir(trace->dir);

	if (!dir) {
		warn("%s: %s", trace->dir, strerror(errno));
		return;
	}
	find_files(set, trace, dir, true);
	rewinddir(dir);
	find_files(set, trace, dir, false);
	closedir(dir);
}

/* Tails first: see reader.h. */
static void find_streams(struct trace_set *set, struct trace *trace)
{
	size_t i;

	if (trace->container) {
		find_packed(set, trace, true);
		find_packed(set, trace, false);
	} else {
		find_in_folder(set, trace);
	}
	for (i = set->n_streams; i && set->streams[i - 1]->trace == trace; i--)
		reader_set_part(&set->streams[i - 1]->reader, trace->part);
}

static void map_functions(struct trace_set *set, struct trace *trace)
{
	struct metadata *m = &trace->metadata;
	size_t i;

	if (trace->functions)
		return;
	trace->mapped = xcalloc(m->n_functions, sizeof(*trace->mapped));
	for (i = 0; i < m->n_functions; i++)
		trace->mapped[i] = m->functions[i]
					   ? functions_number(&set->functions, m->functions[i])
					   : trace_function_slow(set, (uint16_t)i);
	trace->functions = trace->mapped;
	trace->n_functions = m->n_functions;
	metadata_forget_functions(m);
}

static bool numbers_as_we_do(const struct trace_set *set, const struct metadata *m)
{
	size_t i;

	for (i = 0; i < m->n_functions; i++)
		if (i >= SPY_FN_COUNT || !m->functions[i] ||
		    strcmp(set->functions.all[i].name, m->functions[i]))
			return false;
	return true;
}

/* Most traces number functions as this version does: then a thousand names need neither be looked
 * up nor kept until all traces are in order. */
static void map_known_functions(struct trace_set *set, struct trace *trace)
{
	static const uint32_t known[] = {
#define ENTRY(name, layer, record, contract, inspector) SPY_FN_##name,
#include "cudaspy/entrypoints.def"
	};

	if (!numbers_as_we_do(set, &trace->metadata))
		return;
	trace->functions = known;
	trace->n_functions = trace->metadata.n_functions ?: SPY_FN_COUNT;
	metadata_forget_functions(&trace->metadata);
}

uint32_t trace_function_slow(struct trace_set *set, uint16_t fn)
{
	char name[32];

	snprintf(name, sizeof(name), "function %u", fn);
	if (!functions_has(&set->functions, name) && reading_refuses("an unnamed function"))
		return 0;
	return functions_number(&set->functions, name);
}

/* Are record types what they are in this build? Later versions may add some. */
static void check_events(const struct trace *trace)
{
	size_t i;

	for (i = 0; i < trace->metadata.n_events; i++) {
		const char *name = trace->metadata.events[i];

		if (name && (i >= SPY_EV_COUNT_ALL || strcmp(name, record_layouts[i].name)))
			warn("%s/metadata: record type %zu is '%s', which this cudaspy does "
			     "not know",
			     trace->dir, i, name);
	}
}

/* No processor's counter is slower or faster. Damage may say anything: 1 Hz would make years of
 * each cycle. */
#define FREQUENCY_LEAST 1000000
#define FREQUENCY_MOST 100000000000ull

/* Times since the epoch, and since a counter was 0, are less: some 146 years. So are sums of both,
 * in 63 bits. */
#define TIME_MOST_NS ((uint64_t)1 << 62)

static void check_frequency(const struct trace *trace, const char *file, uint64_t *frequency)
{
	if (!*frequency || (*frequency >= FREQUENCY_LEAST && *frequency <= FREQUENCY_MOST))
		return;
	warn("%s/%s: a clock of %llu Hz: not believed", trace->dir, file,
	     (unsigned long long)*frequency);
	*frequency = 0;
}

/* Cycles that come to so many nanoseconds, rounded down. */
static uint64_t timeline_cycles(const struct timeline *t, uint64_t ns)
{
	unsigned __int128 cycles = ((unsigned __int128)ns << 40) / t->ns_per_cycle_40;

	return cycles < UINT64_MAX ? (uint64_t)cycles : UINT64_MAX;
}

static void set_zero(struct trace *trace)
{
	const struct metadata *m = &trace->metadata;
	struct timeline *t = &trace->timeline;
	uint64_t zero_ns;

	if (m->offset_s < TIME_MOST_NS / 1000000000 &&
	    m->offset_cycles < timeline_cycles(t, TIME_MOST_NS)) {
		zero_ns = m->offset_s * 1000000000 + timeline_span_ns(t, m->offset_cycles);
		if (zero_ns < TIME_MOST_NS) {
			t->zero_ns = zero_ns;
			return;
		}
	}
	warn("%s/metadata: a clock that began %llu s and %llu cycles after 1970: not believed",
	     trace->dir, (unsigned long long)m->offset_s, (unsigned long long)m->offset_cycles);
}

static void set_timeline(struct trace *trace)
{
	struct metadata *m = &trace->metadata;
	struct timeline *t = &trace->timeline;
	uint64_t frequency;

	check_frequency(trace, "metadata", &m->frequency);
	check_frequency(trace, ".board", &trace->board.head.frequency);
	frequency = m->frequency ? m->frequency : trace->board.head.frequency;

	if (!frequency) {
		warn("%s: the clock's frequency is unknown: times are cycles", trace->dir);
		frequency = 1000000000;
	}
	/* Rounded up, so that a whole number of nanoseconds comes out as that and not one less. */
	t->ns_per_cycle_40 =
		(uint64_t)((((unsigned __int128)1000000000 << 40) + frequency - 1) / frequency);
	set_zero(trace);
}

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

static void free_trace(struct trace *trace)
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

/* Reads what else is not in the streams; err: what came of reading metadata. False: this is no
 * trace, or none that can be read. */
static bool read_board(struct trace *trace, int err)
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

/* A trace that was found: in a directory, or in a container. */
struct found {
	const char *dir;
	const struct container *container; /* NULL: none */
	size_t first_member;
};

static bool packed_mentions(const struct found *found, const char *run)
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

static bool folder_of(const char *dir, struct folder *folder)
{
	struct stat st;

	if (stat(dir, &st))
		return false;
	*folder = (struct folder){st.st_dev, st.st_ino, 0};
	return true;
}

static bool folder_of_found(const struct found *found, struct folder *folder)
{
	const struct container *c = found->container;

	if (!c)
		return folder_of(found->dir, folder);
	*folder = (struct folder){c->device, c->inode, found->first_member + 1};
	return true;
}

static void add_found(struct trace_set *set, const struct found *found,
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
		free_trace(trace);
		return;
	}
	readable = read_board(trace, err);
	if (readable)
		find_streams(set, trace);
	if (!readable ||
	    (!trace->has_metadata && !trace->board.present && set->n_streams == first)) {
		set->unreadable++;
		free_trace(trace);
		return;
	}
	set_names(trace);
	set_settings(trace);
	set->cuda.launches_block |= trace->cuda.launches_block;
	set->cuda.loads_eagerly |= trace->cuda.loads_eagerly;
	set_timeline(trace);
	check_events(trace);
	map_known_functions(set, trace);
	if (folder_of_found(found, &trace->folder))
		HASH_ADD(hh, set->by_folder, folder, sizeof(trace->folder), trace);
	set->traces = grow(set->traces, set->n_traces, sizeof(*set->traces));
	set->traces[set->n_traces++] = trace;
}

static void add_trace(struct trace_set *set, const char *dir, const struct trace_filter *filter)
{
	add_found(set, &(struct found){.dir = dir}, filter);
}

/* ---- the set -------------------------------------------------------------------------------- */

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

static bool looks_like_trace(const char *dir)
{
	return holds(dir, "metadata") || holds(dir, ".board") || holds_streams(dir);
}

/* ---- containers ----------------------------------------------------------------------------- */

static bool is_open_container(const struct trace_set *set, const char *path)
{
	struct stat st;
	size_t i;

	for (i = 0; !stat(path, &st) && i < set->n_containers; i++)
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
	size_t i;

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
	for (i = 0; i < c->n_members; i = container_next_folder(c, i)) {
		bool alone = !i && container_next_folder(c, 0) == c->n_members;
		char *dir = alone ? xstrdup(path) : xasprintf("%s/%s", path, c->members[i].folder);

		if (!folder || !strcmp(folder, c->members[i].folder))
			add_found(set, &(struct found){dir, c, i}, filter);
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

		if (looks_like_trace(path)) {
			if (!is_open(set, path))
				add_trace(set, path, filter);
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

/* By what traces say of themselves: where they lie decides only between those that say the same. */
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
		free_trace(trace);
	}
	set->n_traces = n_traces;
}

static int by_start(const void *a, const void *b)
{
	const struct trace *x = *(struct trace *const *)a, *y = *(struct trace *const *)b;
	int64_t s = metadata_number(&x->metadata, "start_realtime_ns", 0);
	int64_t t = metadata_number(&y->metadata, "start_realtime_ns", 0);
	int order;

	if (s != t)
		return s < t ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	order = by_text(x, y, "hostname");
	order = order ? order : by_text(x, y, "boot_id");
	order = order ? order : strcmp(x->program, y->program);
	order = order ? order : by_uuid(x, y);
	return order ? order : strcmp(x->dir, y->dir);
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
		map_functions(set, set->traces[i]);
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
	size_t i;

	for (i = 0; i < set->n_streams; i++)
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

/* A trace, or those below, so many folders deep. False after a message: there is none. */
static bool add_named(struct trace_set *set, const char *dir, const struct trace_filter *filter,
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
	if (looks_like_trace(dir)) {
		add_trace(set, dir, filter);
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

/* What is known of it is drawn from all that metadata says: only then some of that is dropped. */
static void redact(struct trace_set *set)
{
	size_t i;

	for (i = 0; redact_is_on() && i < set->n_traces; i++)
		metadata_redact(&set->traces[i]->metadata);
}

int trace_set_open(struct trace_set *set, const char *const *dirs, size_t n_dirs,
		   const struct trace_filter *filter)
{
	static const char *const here[] = {"."};
	unsigned int deep = n_dirs ? FOLDERS_DEEP : 0; /* where nobody said where, only here */
	size_t i;
	int err = 0;

	if (!n_dirs) {
		dirs = here;
		n_dirs = ARRAY_SIZE(here);
	}
	*set = (struct trace_set){0};
	functions_init(&set->functions);
	raise_file_limit();
	for (i = 0; i < n_dirs; i++) {
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
	} else if (!filter || !filter->run) {
		runs_tell(set);
	}
	number(set);
	hosts_find(set);
	limit_times(set);
	redact(set);
	return err ?: set->n_traces ? 0 : -ENOENT;
}

void trace_set_release(struct trace_set *set)
{
	size_t i;

	for (i = 0; i < set->n_streams; i++) {
		reader_release(&set->streams[i]->reader);
		free(set->streams[i]);
	}
	HASH_CLEAR(hh, set->by_folder);
	for (i = 0; i < set->n_traces; i++)
		free_trace(set->traces[i]);
	for (i = 0; i < set->n_containers; i++) {
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
