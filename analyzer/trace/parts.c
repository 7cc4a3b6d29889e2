/*
 * analyzer/trace/parts.c: parts of one recording are made one trace. Called once, when all traces are open.
 */
#include <stdlib.h>
#include <string.h>
#include "parts.h"
#include "trace.h"
#include "base/median.h"

static int by_recording(const void *a, const void *b)
{
	const struct trace *x = *(struct trace *const *)a, *y = *(struct trace *const *)b;

	return memcmp(x->metadata.uuid, y->metadata.uuid, sizeof(x->metadata.uuid))
		       ?: COMPARE(x->part, y->part);
}

static bool is_same(const struct trace *x, const struct trace *y)
{
	return !memcmp(x->metadata.uuid, y->metadata.uuid, sizeof(x->metadata.uuid));
}

/* The streams of a trace lie one behind the other. */
static struct stream **streams_of(struct trace_set *set, const struct trace *trace, size_t *n)
{
	size_t i = 0, end;

	while (i < set->n_streams && set->streams[i]->trace != trace)
		i++;
	for (end = i; end < set->n_streams && set->streams[end]->trace == trace; end++)
		;
	*n = end - i;
	return &set->streams[i];
}

/* The process was killed while it began the part: there is its folder, and nothing in it. */
static bool is_empty(struct trace_set *set, const struct trace *trace)
{
	size_t n;

	streams_of(set, trace, &n);
	return !n;
}

/* It was killed between the exchange of their names and the first record: the board is in the new folder. */
static void take_board(struct trace_set *set, struct trace *to, struct trace *from)
{
	struct board none = to->board;
	struct stream **streams;
	size_t i, n;

	if (to->board.present || !from->board.present)
		return;
	to->board = from->board;
	from->board = none;
	to->alive = from->alive;
	to->live = from->live;
	to->writing = from->writing;
	streams = streams_of(set, to, &n);
	for (i = 0; i < n; i++)
		streams[i]->reader.live = to->live;
}

/* A slot without a stream in the last part gets the part's own. */
static void join(struct trace_set *set, struct trace *last, struct trace *part,
		 struct stream **by_slot)
{
	struct stream **streams;
	size_t i, n;

	streams = streams_of(set, part, &n);
	for (i = 0; i < n; i++) {
		struct stream *stream = streams[i];

		if (by_slot[stream->slot]) {
			reader_join(&by_slot[stream->slot]->reader, &stream->reader);
			continue;
		}
		stream->trace = last;
		stream->reader.uuid = last->metadata.uuid;
		stream->reader.live = last->live;
		by_slot[stream->slot] = stream;
	}
	last->board.head.lost = add_capped(last->board.head.lost, part->board.head.lost);
	part->joined = true;
}

static void add_part(struct trace *last, const struct trace *part)
{
	last->parts = grow(last->parts, last->n_parts, sizeof(*last->parts));
	last->parts[last->n_parts++] =
		(struct trace_part){.number = part->part, .dir = xstrdup(part->dir)};
}

static void set_runs(const struct trace *last, struct stream **by_slot)
{
	uint32_t run = 0;

	for (size_t i = 0; i < last->n_parts; i++) {
		if (!i || last->parts[i].number != last->parts[i - 1].number + 1)
			run = last->parts[i].number;
		for (size_t slot = 0; slot < SPY_BOARD_SLOTS; slot++)
			if (by_slot[slot])
				reader_set_run(&by_slot[slot]->reader, last->parts[i].number, run);
	}
}

static void join_all(struct trace_set *set, struct trace **parts, size_t n)
{
	struct stream **by_slot = xcalloc(SPY_BOARD_SLOTS, sizeof(*by_slot)), **streams;
	struct trace *last;
	size_t i, n_streams;

	for (; n > 1 && is_empty(set, parts[n - 1]); n--) {
		take_board(set, parts[n - 2], parts[n - 1]);
		parts[n - 1]->joined = true;
	}
	last = parts[n - 1];
	streams = streams_of(set, last, &n_streams);
	for (i = 0; i < n_streams; i++)
		by_slot[streams[i]->slot] = streams[i];
	for (i = 0; i < n; i++)
		add_part(last, parts[i]);
	for (i = 0; i + 1 < n; i++)
		join(set, last, parts[i], by_slot);
	set_runs(last, by_slot);
	free(by_slot);
}

void trace_parts_join(struct trace_set *set)
{
	struct trace **all = xcalloc(set->n_traces, sizeof(struct trace *));
	size_t i, j, n = 0;

	for (i = 0; i < set->n_traces; i++)
		if (set->traces[i]->metadata.has_uuid)
			all[n++] = set->traces[i];
	qsort(all, n, sizeof(struct trace *), by_recording);
	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n && is_same(all[i], all[j]); j++)
			;
		if (j - i > 1 || all[i]->part > 1)
			join_all(set, all + i, j - i);
	}
	free(all);
}

bool trace_parts_have_gaps(const struct trace *trace)
{
	for (size_t i = 0; i < trace->n_parts; i++)
		if (trace->parts[i].number != i + 1)
			return true;
	return false;
}

struct parts_missing trace_parts_missing(const struct trace *trace)
{
	struct parts_missing missing = {0};

	if (!trace->n_parts)
		return missing;
	missing.first = trace->parts[0].number - 1;
	for (size_t i = 1; i < trace->n_parts; i++)
		missing.between += trace->parts[i].number - trace->parts[i - 1].number - 1;
	return missing;
}

bool trace_parts_are_documented(const struct trace *trace)
{
	const struct spy_board *board = &trace->board.head;
	struct parts_missing missing = trace_parts_missing(trace);

	return board->removed_cycles && missing.first == board->parts_removed && !missing.between;
}

void trace_parts_release(struct trace *trace)
{
	for (size_t i = 0; i < trace->n_parts; i++)
		free(trace->parts[i].dir);
	free(trace->parts);
}
