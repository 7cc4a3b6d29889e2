/*
 * analyzer/ahead/ahead.c: reads ahead. The first half runs on the thread that reads the streams, the second one on that of
 * the main reading.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ahead.h"
#include "base/jobs.h"
#include "model/model.h"
#include "trace/moment.h"

/* A block takes as long to fill as some thousand records; all of them lie in the second cache of a processor. */
#define BLOCKS 12
#define BLOCK_BYTES (64u << 10)

/* ---- the thread ------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* False: nothing more is wanted. */
static bool next_block(struct ahead *a)
{
	if (a->block)
		queue_publish(&a->queue, a->used);
	a->used = 0;
	a->block = queue_room(&a->queue);
	a->stopped = !a->block;
	return a->block;
}

/* Room for a record of that size; NULL: nothing more is wanted. */
static struct ahead_item *add(struct ahead *a, enum ahead_kind kind, size_t bytes)
{
	size_t all = aligned(sizeof(struct ahead_item) + bytes);
	struct ahead_item *item;

	if (unlikely(!a->block || BLOCK_BYTES - a->used < all) && !next_block(a))
		return NULL;
	item = (struct ahead_item *)(void *)(a->block + a->used);
	a->used += all;
	a->last = item;
	item->bytes = (uint16_t)all;
	item->kind = kind;
	item->followed = item->failed = false;
	item->fn = 0;
	return item;
}

/* As if the main reading had come this far. */
static void take_warning(void *data, char *text)
{
	struct ahead *a = data;
	struct ahead_item *item = a->stopped ? NULL : add(a, AHEAD_WARNING, 0);

	if (item)
		item->text = text;
	else
		free(text);
}

/* The number of the function, if the call may be counted out of order. */
static bool may_be_counted(const struct ahead *a, const struct trace *trace,
			   const union spy_any *raw, uint32_t *fn)
{
	if (unlikely(raw->call_head.fn >= trace->n_functions))
		return false;
	*fn = trace->functions[raw->call_head.fn];
	return likely(!a->begins_cuda[*fn]) &&
	       likely(raw->other.event == SPY_EV_INNER || raw->call_head.depth); /* else damaged */
}

/* Those right behind the record in hand, as long as no unattributed wait may be due that is met from now on. */
static bool add_nested(struct ahead *a, const struct record *record)
{
	struct reader *r = &record->stream->reader;
	const struct trace *trace = record->stream->trace;
	uint64_t until_ns = record->ns + a->nested_ns, ns;
	const union spy_any *raw;
	uint32_t fn;

	for (raw = reader_peek_nested(r); raw; raw = reader_peek_nested(r)) {
		bool inner = raw->other.event == SPY_EV_INNER;
		uint64_t duration;
		struct ahead_item *item, *before = a->last;
		struct spy_rec_head *head;

		ns = timeline_ns(&trace->timeline, raw->other.time);
		if (!may_be_counted(a, trace, raw, &fn) || unlikely(ns >= until_ns))
			break;
		before->followed = true;
		item = add(a, AHEAD_NESTED, sizeof(*head));
		if (!item)
			return false;
		duration = inner ? min_u64(raw->inner.duration, record_time(raw))
				 : record_duration(raw);
		head = (struct spy_rec_head *)(item + 1);
		*head = inner ? reader_expand(r, &raw->inner)->call_head : raw->call_head;
		item->ns = ns;
		item->duration_ns = timeline_span_ns(&trace->timeline, duration);
		item->fn = fn;
		item->failed = !inner && call_failed(head);
		reader_take(r, raw);
	}
	return true;
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *read_ahead(void *data)
{
	struct ahead *a = data;
	struct record record;

	warn_divert(take_warning, a);
	while (merge_next(a->merge, &record)) {
		size_t bytes = record.raw == (const union spy_any *)&record.stream->reader.expanded
				       ? sizeof(struct spy_rec_head)
				       : record.stream->reader.size;
		struct ahead_item *item = add(a, AHEAD_RECORD, bytes);

		if (!item)
			break;
		item->ns = record.ns;
		item->stream = record.stream->index;
		item->tid = record.tid;
		memcpy(item + 1, record.raw, bytes);
		if (a->nested_ns && !add_nested(a, &record))
			break;
	}
	warn_divert(NULL, NULL);
	if (a->block)
		queue_publish(&a->queue, a->used);
	queue_close(&a->queue);
	a->cpu_s = cpu_s();
	return NULL;
}

/* ---- the main reading ------------------------------------------------------------------------- */

struct ahead *ahead_begin(struct merge *merge, struct trace_set *set, struct record *record,
			  uint64_t nested_ns)
{
	struct ahead *a = xcalloc(1, sizeof(*a));
	uint32_t fn;

	a->set = set;
	a->merge = merge;
	a->nested_ns = nested_ns;
	a->record = record;
	a->left = xcalloc(set->n_streams + 1, sizeof(*a->left));
	a->n_functions = set->functions.count;
	a->begins_cuda = xcalloc(a->n_functions + 1, 1);
	for (fn = 0; fn < a->n_functions; fn++)
		a->begins_cuda[fn] = set->functions.all[fn].contract == SPY_CONTRACT_INIT;
	queue_init(&a->queue, BLOCKS, BLOCK_BYTES);
	if (!pthread_create(&a->thread, NULL, read_ahead, a))
		return a;
	queue_release(&a->queue);
	free(a->begins_cuda);
	free(a->left);
	free(a);
	return NULL;
}

static const struct ahead_item *item_at(const uint8_t *at)
{
	return (const struct ahead_item *)(const void *)at;
}

/* To the next block. False: there is none. */
static bool take_block(struct ahead *a)
{
	size_t used;

	a->at = queue_take(&a->queue, &used);
	a->end = a->at ? a->at + used : NULL;
	return a->at;
}

/* To the next record that is none of those left. False: there is none. */
static bool find_item(struct ahead *a)
{
	for (;;) {
		if (a->at == a->end && !take_block(a))
			return false;
		if (a->at == a->end)
			continue;
		if (item_at(a->at)->kind == AHEAD_RECORD)
			return true;
		if (item_at(a->at)->kind == AHEAD_WARNING) {
			warn("%s", item_at(a->at)->text);
			free(item_at(a->at)->text);
		}
		a->at += item_at(a->at)->bytes;
	}
}

void ahead_end(struct ahead *a)
{
	size_t i;

	if (!a)
		return;
	queue_cancel(&a->queue);
	pthread_join(a->thread, NULL);
	if (jobs_tells_phases())
		jobs_tell("reading ahead   CPU %8.3f s, waited %llu times of %llu; waited for %llu "
			  "times",
			  a->cpu_s, (unsigned long long)a->queue.writer_waited,
			  (unsigned long long)a->queue.written,
			  (unsigned long long)a->queue.reader_waited);
	do { /* what was not wanted any more */
		for (; a->at != a->end; a->at += item_at(a->at)->bytes)
			if (item_at(a->at)->kind == AHEAD_WARNING)
				free(item_at(a->at)->text);
	} while (take_block(a));
	for (i = 0; i < a->set->n_streams; i++)
		free(a->left[i].all);
	free(a->left);
	free(a->kept);
	free(a->begins_cuda);
	queue_release(&a->queue);
	free(a);
}

/* ---- those left ------------------------------------------------------------------------------- */

/* The first of them; only if there are any. */
static uint32_t first_left(const struct ahead *a)
{
	uint32_t best = UINT32_MAX, i;

	for (i = 0; i < a->set->n_streams; i++) {
		const struct ahead_left *l = &a->left[i];

		if (l->next < l->n &&
		    (best == UINT32_MAX ||
		     l->all[l->next].ns < a->left[best].all[a->left[best].next].ns))
			best = i;
	}
	return best;
}

static void take_left(struct ahead *a, uint32_t stream)
{
	struct ahead_left *l = &a->left[stream];

	a->n_left--;
	if (++l->next == l->n)
		l->next = l->n = 0;
}

bool ahead_next_slow(struct ahead *a)
{
	bool found = find_item(a);
	const struct ahead_item *item = found ? item_at(a->at) : NULL;
	const struct ahead_nested *left;
	size_t n_left = a->n_left;
	uint32_t stream;

	if (n_left) {
		stream = first_left(a);
		left = &a->left[stream].all[a->left[stream].next];
		if (!item || left->ns < item->ns ||
		    (left->ns == item->ns && stream <= item->stream)) {
			a->again = left->head;
			a->first = a->item = NULL;
			a->record->raw = (const union spy_any *)&a->again;
			a->record->stream = a->set->streams[stream];
			a->record->process = a->record->stream->trace->index;
			a->record->tid = left->tid;
			a->record->ns = left->ns;
			take_left(a, stream);
			return true;
		}
		/* ahead_next finds this one, and nothing that is left. */
		a->n_left = 0;
	}
	found = found && ahead_next(a);
	a->n_left = n_left;
	return found;
}

/* The record in hand stays what it is while its block is filled again. */
static void keep_record(struct ahead *a)
{
	size_t bytes;

	if (!a->first)
		return;
	bytes = a->first->bytes - sizeof(*a->first);
	a->kept = xrealloc(a->kept, bytes, 1);
	memcpy(a->kept, a->first + 1, bytes);
	a->record->raw = (const union spy_any *)a->kept;
	a->first = NULL;
}

bool ahead_peek_slow(struct ahead *a, struct ahead_call *call)
{
	const struct ahead_item *item;

	if (!a->item) {
		const struct ahead_left *l = &a->left[a->record->stream->index];
		const struct ahead_nested *left = &l->all[l->next];

		if (l->next >= l->n)
			return false;
		*call = (struct ahead_call){left->ns, left->duration_ns, left->fn, left->failed};
		return true;
	}
	keep_record(a);
	while (a->at == a->end)
		if (!take_block(a))
			return false;
	item = item_at(a->at);
	*call = (struct ahead_call){item->ns, item->duration_ns, item->fn, item->failed};
	return true;
}

void ahead_take_left(struct ahead *a)
{
	take_left(a, a->record->stream->index);
}

void ahead_leave(struct ahead *a)
{
	struct ahead_left *l = &a->left[a->record->stream->index];
	const struct ahead_item *item;
	struct ahead_call call;

	while (a->item && ahead_peek(a, &call)) {
		item = item_at(a->at);
		l->all = grow(l->all, l->n, sizeof(*l->all));
		l->all[l->n++] =
			(struct ahead_nested){.head = *(const struct spy_rec_head *)(item + 1),
					      .ns = call.ns,
					      .duration_ns = call.duration_ns,
					      .fn = call.fn,
					      .tid = a->record->tid,
					      .failed = call.failed};
		a->n_left++;
		ahead_take(a);
	}
}
