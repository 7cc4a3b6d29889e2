/*
 * analyzer/trace/streams.c: the files of a trace that are its streams. Called when it is opened.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "open.h"

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

	for (size_t i = set->n_streams; i && set->streams[i - 1]->trace == trace; i--)
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

void trace_find_streams(struct trace_set *set, struct trace *trace)
{
	if (trace->container) {
		find_packed(set, trace, true);
		find_packed(set, trace, false);
	} else {
		find_in_folder(set, trace);
	}
	for (size_t i = set->n_streams; i && set->streams[i - 1]->trace == trace; i--)
		reader_set_part(&set->streams[i - 1]->reader, trace->part);
}
