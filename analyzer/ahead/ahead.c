/*
 * analyzer/ahead/ahead.c: takes what other threads have read ahead. Runs on the thread of the main reading.
 */
#include <stdlib.h>
#include <string.h>
#include "ahead.h"
#include "base/jobs.h"

/* A block takes as long to fill as some thousand records; all of them lie in the second cache of a processor. */
#define BLOCKS 12

static const struct ahead_item behind_all = {
	.ns = UINT64_MAX, .stream = UINT32_MAX, .kind = AHEAD_END};

/* ---- begin and end ---------------------------------------------------------------------------- */

static void release_calls(struct calls *calls, uint32_t n)
{
	for (uint32_t fn = 0; calls && fn < n; fn++)
		histogram_release(&calls[fn].durations_ns);
	free(calls);
}

static void release_thread(const struct ahead *a, struct ahead_thread *t)
{
	release_calls(t->direct, a->n_functions);
	release_calls(t->nested, a->n_functions);
	free(t->called_ns);
	merge_release(&t->merge);
	queue_release(&t->queue);
}

static void release(struct ahead *a)
{
	for (uint32_t i = 0; i < a->n_threads; i++)
		release_thread(a, &a->threads[i]);
	for (uint32_t i = 0; i < a->set->n_streams; i++)
		free(a->left[i].all);
	free(a->threads);
	free(a->streams);
	free(a->begins_cuda);
	free(a->left);
	free(a->kept);
	pthread_mutex_destroy(&a->beginning);
	free(a);
}

void ahead_wait_for_begin(struct ahead *a)
{
	pthread_mutex_lock(&a->beginning);
	pthread_mutex_unlock(&a->beginning);
}

static void init_thread(struct ahead *a, struct ahead_thread *t, bool counts)
{
	t->ahead = a;
	t->called_ns = xcalloc_apart(a->set->n_streams + 1, sizeof(*t->called_ns));
	if (counts) {
		t->direct = xcalloc_apart(a->n_functions + 1, sizeof(*t->direct));
		t->nested = xcalloc_apart(a->n_functions + 1, sizeof(*t->nested));
	}
	queue_init(&t->queue, BLOCKS, AHEAD_BLOCK_BYTES);
}

/* As many threads as there can be, which wait. */
static void begin_threads(struct ahead *a, const struct ahead_wish *wish)
{
	size_t n = min_u64(min_u64(wish->threads, AHEAD_THREADS_MOST), wish->merge->n_streams);
	unsigned int most = (unsigned int)max_u64(n, 1);

	a->threads = xcalloc_apart(most, sizeof(*a->threads));
	while (a->n_threads < most) {
		struct ahead_thread *t = &a->threads[a->n_threads];

		init_thread(a, t, wish->count);
		if (ahead_thread_begin(t)) {
			release_thread(a, t);
			return;
		}
		a->n_threads++;
	}
}

/* Each stream goes to the thread that has the least to read so far. */
static void deal(struct ahead *a, struct merge *merge)
{
	uint64_t *bytes = xcalloc(a->n_threads, sizeof(*bytes));
	unsigned int *of = xcalloc(merge->n_streams + 1, sizeof(*of)), k;
	struct merge **merges = xcalloc(a->n_threads, sizeof(*merges));

	for (size_t i = 0; i < merge->n_streams; i++) {
		const struct reader *r = &merge->streams[i]->reader;

		for (k = 1; k < a->n_threads; k++)
			of[i] = bytes[k] < bytes[of[i]] ? k : of[i];
		bytes[of[i]] += 1 + r->file_bytes * r->n_files;
	}
	for (k = 0; k < a->n_threads; k++)
		merges[k] = &a->threads[k].merge;
	merge_divide(merge, merges, a->n_threads, of);
	free(merges);
	free(bytes);
	free(of);
}

static void settle(struct ahead_thread *t);

struct ahead *ahead_begin(const struct ahead_wish *wish)
{
	struct ahead *a = xcalloc_apart(1, sizeof(*a));
	const struct functions *functions = &wish->set->functions;

	a->set = wish->set;
	a->nested_ns = wish->nested_ns;
	a->record = wish->record;
	a->left = xcalloc_apart(a->set->n_streams + 1, sizeof(*a->left));
	a->streams = xcalloc_apart(a->set->n_streams + 1, sizeof(*a->streams));
	for (uint32_t i = 0; i < a->set->n_streams; i++)
		a->streams[i] = (struct stream){.trace = a->set->streams[i]->trace,
						.slot = a->set->streams[i]->slot,
						.index = i};
	a->n_functions = functions->count;
	a->begins_cuda = xcalloc_apart(a->n_functions + 1, 1);
	for (uint32_t i = 0; i < a->n_functions; i++)
		a->begins_cuda[i] = functions->all[i].contract == SPY_CONTRACT_INIT;
	pthread_mutex_init(&a->beginning, NULL);
	pthread_mutex_lock(&a->beginning);
	begin_threads(a, wish);
	if (a->n_threads)
		deal(a, wish->merge);
	pthread_mutex_unlock(&a->beginning);
	if (!a->n_threads) {
		release(a);
		return NULL;
	}
	for (uint32_t i = 0; i < a->n_threads; i++)
		settle(&a->threads[i]);
	a->hand = &a->threads[0];
	return a;
}

static void add_calls(struct callstats *s, const struct ahead_thread *t, uint32_t fn)
{
	if (!t->direct[fn].count && !t->nested[fn].count)
		return;
	s->called[fn] = true;
	calls_add(&s->direct[fn], &t->direct[fn]);
	calls_add(&s->nested[fn], &t->nested[fn]);
}

void ahead_add_calls(const struct ahead *a, struct callstats *s)
{
	for (unsigned int i = 0; i < a->n_threads && a->threads[i].direct; i++)
		for (uint32_t fn = 0; fn < a->n_functions; fn++)
			add_calls(s, &a->threads[i], fn);
}

/* To the next block. False: there is none. */
static bool take_block(struct ahead_thread *t)
{
	size_t used;

	t->at = queue_take(&t->queue, &used);
	t->end = t->at ? t->at + used : NULL;
	return t->at;
}

/* What was not wanted any more. */
static void drop_rest(struct ahead_thread *t)
{
	if (t->at == (const uint8_t *)&behind_all)
		return;
	do {
		for (; t->at != t->end; t->at += ahead_item_at(t->at)->bytes)
			if (ahead_item_at(t->at)->kind == AHEAD_WARNING)
				free(ahead_item_at(t->at)->text);
	} while (take_block(t));
}

void ahead_end(struct ahead *a)
{
	if (!a)
		return;
	for (unsigned int i = 0; i < a->n_threads; i++)
		queue_cancel(&a->threads[i].queue);
	for (unsigned int i = 0; i < a->n_threads; i++) {
		struct ahead_thread *t = &a->threads[i];

		pthread_join(t->thread, NULL);
		if (jobs_logs_phases())
			jobs_log("reading ahead   CPU %8.3f s, waited %llu times of %llu; "
				 "waited for %llu times",
				 t->cpu_s, (unsigned long long)t->queue.writer_waited,
				 (unsigned long long)t->queue.written,
				 (unsigned long long)t->queue.reader_waited);
		drop_rest(t);
	}
	release(a);
}

/* ---- the next record -------------------------------------------------------------------------- */

/* To the thread's next record. What it has warned of is said: it has to be, before another thread's record is looked at. */
static void settle(struct ahead_thread *t)
{
	for (;;) {
		if (t->at == t->end && !take_block(t)) {
			t->at = (const uint8_t *)&behind_all;
			t->end = t->at + sizeof(behind_all);
			return;
		}
		if (t->at == t->end)
			continue;
		if (ahead_item_at(t->at)->kind == AHEAD_RECORD ||
		    ahead_item_at(t->at)->kind == AHEAD_END)
			return;
		if (ahead_item_at(t->at)->kind == AHEAD_WARNING) {
			warn("%s", ahead_item_at(t->at)->text);
			free(ahead_item_at(t->at)->text);
		}
		t->at += ahead_item_at(t->at)->bytes;
	}
}

/* The first of those left; only if there are any. */
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

static void return_left(struct ahead *a, uint32_t stream)
{
	const struct ahead_left *l = &a->left[stream];

	a->again = l->all[l->next].head;
	a->first = NULL;
	record_set(a->record, (const union spy_any *)&a->again);
	a->record->stream = &a->streams[stream];
	a->record->process = a->record->stream->trace->index;
	a->record->tid = l->tid;
	a->record->ns = l->all[l->next].ns;
	take_left(a, stream);
}

bool ahead_next_slow(struct ahead *a)
{
	const struct ahead_item *item;
	uint64_t left_ns;
	uint32_t stream;

	settle(a->hand);
	item = ahead_item_at(ahead_earliest(a)->at);
	if (a->n_left) {
		stream = first_left(a);
		left_ns = a->left[stream].all[a->left[stream].next].ns;
		if (left_ns < item->ns || (left_ns == item->ns && stream <= item->stream)) {
			return_left(a, stream);
			return true;
		}
	}
	if (item->kind == AHEAD_END)
		return false;
	ahead_take(a, ahead_earliest(a));
	return true;
}

/* ---- calls inside others ---------------------------------------------------------------------- */

/* The record in hand stays what it is while its block is filled again. */
static void keep_record(struct ahead *a)
{
	size_t bytes = a->first->item.bytes;

	if (a->first == a->kept)
		return;
	a->kept = xrealloc(a->kept, bytes, 1);
	a->first = memcpy(a->kept, a->first, bytes);
	record_set(a->record, (const union spy_any *)(a->first + 1));
}

/* The item behind the one that is followed by one. */
static const struct ahead_item *next_nested(struct ahead *a)
{
	struct ahead_thread *t = a->hand;
	const struct ahead_item *item;

	while (t->at == t->end) {
		keep_record(a);
		if (!take_block(t))
			return NULL; /* nothing more was wanted */
	}
	item = ahead_item_at(t->at);
	t->at += item->bytes;
	return item;
}

static void leave(struct ahead *a, const struct ahead_nested *call)
{
	struct ahead_left *l = &a->left[a->record->stream->index];

	l->all = grow(l->all, l->n, sizeof(*l->all));
	l->all[l->n++] = *call;
	l->tid = a->record->tid;
	a->n_left++;
}

/* Not all of them end before that time. */
static uint64_t count_some(struct ahead *a, const struct ahead_item *item, uint64_t until_ns)
{
	const struct ahead_nested *calls = (const struct ahead_nested *)(const void *)(item + 1);
	uint64_t n = 0, i;

	for (i = 0; i < item->n; i++) {
		if (calls[i].ns < until_ns)
			n++;
		else
			leave(a, &calls[i]);
	}
	return n;
}

/* The record in hand was left, and so were those behind it. */
static uint64_t count_left(struct ahead *a, uint64_t until_ns)
{
	uint32_t stream = a->record->stream->index;
	const struct ahead_left *l = &a->left[stream];
	uint64_t n = 0;

	for (; l->next < l->n && l->all[l->next].ns < until_ns; n++)
		take_left(a, stream);
	return n;
}

uint64_t ahead_count_nested(struct ahead *a, uint64_t until_ns)
{
	const struct ahead_item *item;
	uint64_t n = 0;

	if (!a->first)
		return count_left(a, until_ns);
	for (bool followed = a->first->item.followed; followed; followed = item->followed) {
		item = next_nested(a);
		if (!item)
			return n;
		n += likely(item->ns < until_ns) ? item->n : count_some(a, item, until_ns);
	}
	return n;
}
