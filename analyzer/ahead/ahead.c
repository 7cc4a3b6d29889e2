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

/* The lines of the block were read by the other thread: they are fetched before it is their turn. */
#define FETCHED_AHEAD 512

static inline void fetch_to_write(const struct ahead *a)
{
	__builtin_prefetch(a->block + a->used + FETCHED_AHEAD, 1);
	__builtin_prefetch(a->block + a->used + FETCHED_AHEAD + 64, 1);
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

/* An item of that size; NULL: nothing more is wanted. */
static struct ahead_item *add(struct ahead *a, enum ahead_kind kind, size_t bytes)
{
	size_t all = aligned(bytes);
	struct ahead_item *item;

	if (unlikely(!a->block || BLOCK_BYTES - a->used < all) && !next_block(a))
		return NULL;
	item = (struct ahead_item *)(void *)(a->block + a->used);
	a->used += all;
	a->last = item;
	fetch_to_write(a);
	item->bytes = (uint16_t)all;
	item->kind = kind;
	item->followed = false;
	return item;
}

/* As if the main reading had come this far. */
static void take_warning(void *data, char *text)
{
	struct ahead *a = data;
	struct ahead_item *item = a->stopped ? NULL : add(a, AHEAD_WARNING, sizeof(*item));

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
	uint64_t until_ns = record->ns + a->nested_ns;
	const union spy_any *raw;
	uint32_t fn;

	for (raw = reader_peek_nested(r); raw; raw = reader_peek_nested(r)) {
		bool inner = raw->other.event == SPY_EV_INNER;
		uint64_t ns = timeline_ns(&trace->timeline, raw->other.time);
		struct ahead_item *before = a->last;
		struct ahead_nested *nested;

		if (!may_be_counted(a, trace, raw, &fn) || unlikely(ns >= until_ns))
			break;
		before->followed = true;
		nested = (struct ahead_nested *)add(a, AHEAD_NESTED, sizeof(*nested));
		if (!nested)
			return false;
		nested->head = inner ? reader_expand(r, &raw->inner)->call_head : raw->call_head;
		nested->item.ns = ns;
		nested->item.duration_ns = timeline_span_ns(
			&trace->timeline, inner ? min_u64(raw->inner.duration, record_time(raw))
						: record_duration(raw));
		nested->item.fn = fn;
		if (a->nested)
			callstats_add(&a->nested[fn], !inner && call_failed(&raw->call_head),
				      nested->item.duration_ns);
		reader_take(r, raw);
	}
	return true;
}

/* As the model will have it. */
static void see_call(struct ahead *a, const struct record *record, struct ahead_record *first)
{
	const union spy_any *raw = record->raw;
	const struct trace *trace = record->stream->trace;
	uint64_t *called_ns = &a->called_ns[record->stream->index];
	uint64_t ns = timeline_span_ns(&trace->timeline, record_duration(raw));

	if (!raw->call_head.depth) {
		ns = min_u64(ns, record->ns - min_u64(*called_ns, record->ns));
		*called_ns = record->ns;
	}
	first->item.duration_ns = ns;
	first->detail = signature_detail(raw);
	first->hash = signature_hash(signature_head(raw), first->detail);
	if (a->direct && likely(raw->call_head.fn < trace->n_functions)) {
		uint32_t fn = trace->functions[raw->call_head.fn];

		callstats_add(raw->call_head.depth ? &a->nested[fn] : &a->direct[fn],
			      call_failed(&raw->call_head), ns);
	}
}

static bool add_record(struct ahead *a, const struct record *record)
{
	const struct reader *r = &record->stream->reader;
	size_t bytes = record->raw == (const union spy_any *)&r->expanded
			       ? sizeof(struct spy_rec_head)
			       : r->size;
	struct ahead_record *first =
		(struct ahead_record *)add(a, AHEAD_RECORD, sizeof(*first) + bytes);

	if (!first)
		return false;
	first->item.ns = record->ns;
	first->item.stream = record->stream->index;
	first->tid = record->tid;
	memcpy(first + 1, record->raw, bytes);
	if (record_is_call(record->raw))
		see_call(a, record, first);
	return !a->nested_ns || add_nested(a, record);
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
	while (merge_next(a->merge, &record) && add_record(a, &record))
		;
	warn_divert(NULL, NULL);
	if (a->block)
		queue_publish(&a->queue, a->used);
	queue_close(&a->queue);
	a->cpu_s = cpu_s();
	return NULL;
}

/* ---- the main reading ------------------------------------------------------------------------- */

static void release(struct ahead *a)
{
	uint32_t i;

	for (i = 0; i < a->set->n_streams; i++)
		free(a->left[i].all);
	for (i = 0; a->direct && i < a->n_functions; i++) {
		histogram_release(&a->direct[i].durations_ns);
		histogram_release(&a->nested[i].durations_ns);
	}
	free(a->direct);
	free(a->nested);
	free(a->streams);
	free(a->called_ns);
	free(a->begins_cuda);
	free(a->left);
	free(a->kept);
	queue_release(&a->queue);
	free(a);
}

struct ahead *ahead_begin(const struct ahead_wish *wish)
{
	struct ahead *a = xcalloc_apart(1, sizeof(*a));
	const struct functions *functions = &wish->set->functions;
	uint32_t fn;
	size_t i;

	a->set = wish->set;
	a->merge = wish->merge;
	a->nested_ns = wish->nested_ns;
	a->record = wish->record;
	a->left = xcalloc_apart(a->set->n_streams + 1, sizeof(*a->left));
	a->called_ns = xcalloc_apart(a->set->n_streams + 1, sizeof(*a->called_ns));
	a->streams = xcalloc_apart(a->set->n_streams + 1, sizeof(*a->streams));
	for (i = 0; i < a->set->n_streams; i++)
		a->streams[i] = (struct stream){.trace = a->set->streams[i]->trace,
						.slot = a->set->streams[i]->slot,
						.index = (uint32_t)i};
	a->n_functions = functions->count;
	a->begins_cuda = xcalloc_apart(a->n_functions + 1, 1);
	for (fn = 0; fn < a->n_functions; fn++)
		a->begins_cuda[fn] = functions->all[fn].contract == SPY_CONTRACT_INIT;
	if (wish->count) {
		a->direct = xcalloc_apart(a->n_functions + 1, sizeof(*a->direct));
		a->nested = xcalloc_apart(a->n_functions + 1, sizeof(*a->nested));
	}
	queue_init(&a->queue, BLOCKS, BLOCK_BYTES);
	if (!pthread_create(&a->thread, NULL, read_ahead, a))
		return a;
	release(a);
	return NULL;
}

void ahead_add_calls(const struct ahead *a, struct callstats *s)
{
	uint32_t fn;

	for (fn = 0; a->direct && fn < a->n_functions; fn++) {
		if (!a->direct[fn].count && !a->nested[fn].count)
			continue;
		s->called[fn] = true;
		calls_add(&s->direct[fn], &a->direct[fn]);
		calls_add(&s->nested[fn], &a->nested[fn]);
	}
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
	release(a);
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
		     l->all[l->next].item.ns < a->left[best].all[a->left[best].next].item.ns))
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

static void return_left(struct ahead *a, uint32_t stream)
{
	const struct ahead_left *l = &a->left[stream];

	a->again = l->all[l->next].head;
	a->first = NULL;
	a->item = NULL;
	a->record->raw = (const union spy_any *)&a->again;
	a->record->stream = &a->streams[stream];
	a->record->process = a->record->stream->trace->index;
	a->record->tid = l->tid;
	a->record->ns = l->all[l->next].item.ns;
	take_left(a, stream);
}

bool ahead_next_slow(struct ahead *a)
{
	bool found = find_item(a);
	const struct ahead_item *item = found ? item_at(a->at) : NULL;
	size_t n_left = a->n_left;
	uint64_t left_ns;
	uint32_t stream;

	if (n_left) {
		stream = first_left(a);
		left_ns = a->left[stream].all[a->left[stream].next].item.ns;
		if (!item || left_ns < item->ns ||
		    (left_ns == item->ns && stream <= item->stream)) {
			return_left(a, stream);
			return true;
		}
	}
	a->n_left = 0; /* ahead_next finds this one, and nothing that is left */
	found = found && ahead_next(a);
	a->n_left = n_left;
	return found;
}

/* The record in hand stays what it is while its block is filled again. */
static void keep_record(struct ahead *a)
{
	size_t bytes = a->first->item.bytes;

	if (a->first == a->kept)
		return;
	a->kept = xrealloc(a->kept, bytes, 1);
	a->first = memcpy(a->kept, a->first, bytes);
	a->record->raw = (const union spy_any *)(a->first + 1);
}

const struct ahead_item *ahead_peek_slow(struct ahead *a)
{
	const struct ahead_left *l;

	if (!a->item) {
		l = &a->left[a->record->stream->index];
		return l->next < l->n ? &l->all[l->next].item : NULL;
	}
	keep_record(a);
	while (a->at == a->end)
		if (!take_block(a))
			return NULL;
	return item_at(a->at);
}

void ahead_take_left(struct ahead *a)
{
	take_left(a, a->record->stream->index);
}

void ahead_leave(struct ahead *a)
{
	struct ahead_left *l = &a->left[a->record->stream->index];
	const struct ahead_item *item;

	while (a->item && (item = ahead_peek(a))) {
		l->all = grow(l->all, l->n, sizeof(*l->all));
		l->all[l->n++] = *(const struct ahead_nested *)item;
		l->tid = a->record->tid;
		a->n_left++;
		ahead_take(a);
	}
}
