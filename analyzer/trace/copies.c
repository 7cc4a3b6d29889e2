/*
 * analyzer/trace/copies.c: directories that hold the same trace. Called once, when all traces are
 * open.
 */
#include <stdlib.h>
#include <string.h>
#include "copies.h"
#include "trace.h"
#include "base/median.h"

/* How much there is of a trace: a process that ended writes no more; then it is the files that
 * count, and then what is in their last packets. */
struct amount {
	struct trace *trace;
	size_t order; /* among the set's traces, as they were named */
	bool ended;
	uint64_t bytes, calls;
};

/* And by part: parts of one recording are no copies. */
static int by_uuid(const void *a, const void *b)
{
	const struct amount *x = a, *y = b;

	return memcmp(x->trace->metadata.uuid, y->trace->metadata.uuid,
		      sizeof(x->trace->metadata.uuid))
		       ?: COMPARE(x->trace->part, y->trace->part);
}

/* Those with one uuid are beside each other, the one that has most first. */
static int by_uuid_and_amount(const void *a, const void *b)
{
	const struct amount *x = a, *y = b;
	int order = by_uuid(a, b);

	if (order)
		return order;
	if (x->ended != y->ended)
		return x->ended ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct amount amount_of(struct trace *trace, size_t order)
{
	const struct board *board = &trace->board;
	struct amount amount = {
		.trace = trace, .order = order, .ended = board->present && board->head.ended};

	for (size_t i = 0; i < board->n_slots; i++)
		amount.calls = add_capped(amount.calls, board->slots[i].calls);
	return amount;
}

/* Of those that are there twice: their streams are looked at only then. */
static void add_bytes(const struct trace_set *set, struct amount *amount)
{
	for (size_t i = 0; i < set->n_streams; i++)
		if (set->streams[i]->trace == amount->trace)
			amount->bytes += reader_bytes(&set->streams[i]->reader);
}

void copies_find(struct trace_set *set)
{
	struct amount *all = xcalloc(set->n_traces, sizeof(*all));
	size_t i, n = 0;

	for (i = 0; i < set->n_traces; i++)
		if (set->traces[i]->metadata.has_uuid)
			all[n++] = amount_of(set->traces[i], i);
	qsort(all, n, sizeof(*all), by_uuid);
	for (i = 0; i < n; i++)
		if ((i && !by_uuid(&all[i - 1], &all[i])) ||
		    (i + 1 < n && !by_uuid(&all[i], &all[i + 1])))
			add_bytes(set, &all[i]);
	qsort(all, n, sizeof(*all), by_uuid_and_amount);
	for (i = 1; i < n; i++) {
		if (by_uuid(&all[i - 1], &all[i]))
			continue;
		warn("%s: is the same trace as %s: read once", all[i].trace->dir,
		     all[i - 1].trace->dir);
		all[i].trace->copy = true;
	}
	free(all);
}
