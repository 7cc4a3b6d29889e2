/*
 * analyzer/ahead/write.c: a thread that reads ahead. All of this file runs on it, but for its begin.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ahead.h"

static size_t aligned(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* The lines of the block were read by the other thread: they are fetched before it is their turn. */
#define FETCHED_AHEAD 512

static inline void fetch_to_write(const struct ahead_thread *t)
{
	__builtin_prefetch(t->block + t->used + FETCHED_AHEAD, 1);
	__builtin_prefetch(t->block + t->used + FETCHED_AHEAD + 64, 1);
}

/* False: nothing more is wanted. */
static bool next_block(struct ahead_thread *t)
{
	if (t->block)
		queue_publish(&t->queue, t->used);
	t->used = 0;
	t->block = queue_room(&t->queue);
	t->stopped = !t->block;
	return t->block;
}

static inline bool has_room(const struct ahead_thread *t, size_t bytes)
{
	return likely(t->block != NULL) && likely(AHEAD_BLOCK_BYTES - t->used >= bytes);
}

/* An item of that size; NULL: nothing more is wanted. */
static struct ahead_item *add(struct ahead_thread *t, enum ahead_kind kind, size_t bytes)
{
	size_t all = aligned(bytes);
	struct ahead_item *item;

	if (!has_room(t, all) && !next_block(t))
		return NULL;
	item = (struct ahead_item *)(void *)(t->block + t->used);
	t->used += all;
	t->last = item;
	fetch_to_write(t);
	item->bytes = (uint16_t)all;
	item->kind = kind;
	item->followed = false;
	return item;
}

/* As if the main reading had come this far. */
static void take_warning(void *data, char *text)
{
	struct ahead_thread *t = data;
	struct ahead_item *item = t->stopped ? NULL : add(t, AHEAD_WARNING, sizeof(*item));

	if (item)
		item->text = text;
	else
		free(text);
}

/* The number of the function, if the call may be counted out of order. */
static bool may_be_counted(const struct ahead *a, const struct trace *trace,
			   const struct nested_call *call, uint32_t *fn)
{
	if (unlikely(call->fn >= trace->n_functions))
		return false;
	*fn = trace->functions[call->fn];
	return likely(!a->begins_cuda[*fn]) && likely(!call->damaged);
}

/* One call more in the item, or in a new one. NULL: nothing more is wanted. */
static inline struct ahead_nested *add_nested_call(struct ahead_thread *t,
						   struct ahead_item **nested)
{
	struct ahead_nested *call;

	if (!*nested || !has_room(t, sizeof(*call))) {
		t->last->followed = true;
		*nested = add(t, AHEAD_NESTED, sizeof(**nested) + sizeof(*call));
		if (!*nested)
			return NULL;
		(*nested)->n = 0;
		t->used -= sizeof(*call);
		(*nested)->bytes -= sizeof(*call);
	}
	call = (struct ahead_nested *)(void *)(t->block + t->used);
	t->used += sizeof(*call);
	(*nested)->bytes += sizeof(*call);
	(*nested)->n++;
	fetch_to_write(t);
	return call;
}

static void count(struct calls *calls, uint32_t fn, bool failed, uint64_t ns)
{
	if (calls)
		callstats_add(&calls[fn], failed, ns);
}

/* Those right behind the record in hand, as long as no unattributed wait may be due that is met from now on. */
static bool add_nested(struct ahead_thread *t, const struct record *record)
{
	struct reader *r = &record->stream->reader;
	const struct trace *trace = record->stream->trace;
	uint64_t until_ns = record->ns + t->ahead->nested_ns;
	struct ahead_item *nested = NULL;
	struct nested_call found;
	uint32_t fn;

	while (reader_peek_nested(r, &found)) {
		uint64_t ns = timeline_ns(&trace->timeline, found.time);
		struct ahead_nested *call;

		if (!may_be_counted(t->ahead, trace, &found, &fn) || unlikely(ns >= until_ns))
			break;
		call = add_nested_call(t, &nested);
		if (!call)
			return false;
		call->head = reader_long_form(r, &found)->call_head;
		call->ns = nested->ns = ns;
		count(t->nested, fn, result_is_failure(found.result),
		      timeline_span_ns(&trace->timeline, found.duration));
		reader_take(r, &found);
	}
	return true;
}

/* As the model will have it. */
static void see_call(struct ahead_thread *t, const struct record *record,
		     struct ahead_record *first)
{
	const struct trace *trace = record->stream->trace;
	uint64_t *called_ns = &t->called_ns[record->stream->index];
	uint64_t ns = record_span_ns(record, record_cycles(record));

	if (!record->depth) {
		ns = min_u64(ns, record->ns - min_u64(*called_ns, record->ns));
		*called_ns = record->ns;
	}
	first->item.duration_ns = ns;
	first->detail = signature_detail(record);
	first->hash = signature_hash(signature_head(record), first->detail);
	if (likely(record->trace_fn < trace->n_functions))
		count(record->depth ? t->nested : t->direct, trace->functions[record->trace_fn],
		      record_failed(record), ns);
}

static bool add_record(struct ahead_thread *t, const struct record *record)
{
	const struct reader *r = &record->stream->reader;
	size_t bytes = reader_has_expanded(r) ? sizeof(struct spy_rec_head) : r->size;
	struct ahead_record *first =
		(struct ahead_record *)add(t, AHEAD_RECORD, sizeof(*first) + bytes);

	if (!first)
		return false;
	first->item.ns = record->ns;
	first->item.stream = record->stream->index;
	first->tid = record->tid;
	memcpy(first + 1, record->raw, bytes);
	if (record_is_call(record))
		see_call(t, record, first);
	return !t->ahead->nested_ns || add_nested(t, record);
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *read_ahead(void *data)
{
	struct ahead_thread *t = data;
	struct record record;

	ahead_wait_for_begin(t->ahead);
	warn_divert(take_warning, t);
	while (merge_next(&t->merge, &record) && add_record(t, &record))
		;
	warn_divert(NULL, NULL);
	if (t->block)
		queue_publish(&t->queue, t->used);
	queue_close(&t->queue);
	t->cpu_s = cpu_s();
	return NULL;
}

int ahead_thread_begin(struct ahead_thread *t)
{
	return pthread_create(&t->thread, NULL, read_ahead, t);
}
