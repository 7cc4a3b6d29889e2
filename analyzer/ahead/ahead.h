/*
 * analyzer/ahead/ahead.h: reads ahead. Threads of their own read the streams, each some of them, put their records in the
 * order of time and copy them into blocks, each with what can be said of it without knowing those before it. The thread of
 * the main reading takes them from there, and gets what merge_next would have given it, in the same order, warnings too.
 *
 * Calls inside others come right behind the record they were found behind, where the main reading may count them without
 * their being in order (reading.c). It may leave some: these come again when it is their time.
 */
#ifndef CUDASPY_AHEAD_H
#define CUDASPY_AHEAD_H

#include "blocks.h"
#include "expect/signatures.h"

/* The main reading takes no less time for a record than half of what they do */
#define AHEAD_THREADS_MOST 2

/* Calls inside others that the main reading has left for later; of a stream. */
struct ahead_left {
	struct ahead_nested *all;
	size_t n, next;
	uint32_t tid;
};

struct ahead {
	struct ahead_thread *threads;
	unsigned int n_threads;
	struct trace_set *set;
	uint32_t n_functions;
	uint8_t *begins_cuda; /* by function: no call of it is AHEAD_NESTED */
	uint64_t nested_ns; /* ahead_wish */
	pthread_mutex_t beginning; /* held until all threads are there */
	/* The main reading's. Its streams are copies: the others are written to, with their readers, for each record. */
	char apart[APART_BYTES];
	struct stream *streams;
	struct ahead_thread
		*hand; /* whose record was returned last; of all others the next one is known */
	struct record *record; /* in hand */
	const struct ahead_record *first; /* of it, in the block or kept; NULL: it was left */
	struct ahead_left *left; /* by stream */
	size_t n_left;
	struct spy_rec_head again; /* the one in hand, if it was left */
	void *kept; /* the record in hand, if its block is empty */
};

/* What a reading wants. */
struct ahead_wish {
	/* Whose streams have their first records; they are the threads' from then on. */
	struct merge *merge;
	struct trace_set *set;
	struct record *record; /* where all of them are put */
	/* Calls inside others come as said above, if they end no later than that behind the record before; 0: in order, as
	 * all others. */
	uint64_t nested_ns;
	bool count; /* calls of functions that have a name are counted by the threads */
	unsigned int
		threads; /* so many, if there are as many streams; AHEAD_THREADS_MOST at most */
};

/* Begins to read. NULL: there can be no thread. */
struct ahead *ahead_begin(const struct ahead_wish *wish);

/* After the last record: what was counted. */
void ahead_add_calls(const struct ahead *a, struct callstats *s);

/* Also before the last record. */
void ahead_end(struct ahead *a);

/* write.c: the threads wait for each other. */
void ahead_wait_for_begin(struct ahead *a);

static inline const struct ahead_item *ahead_item_at(const uint8_t *at)
{
	return (const struct ahead_item *)(const void *)at;
}

/* The one of two whose next record comes first. Which one it is, is no branch. */
static inline struct ahead_thread *ahead_earlier(struct ahead_thread *t, struct ahead_thread *u)
{
	const struct ahead_item *a = ahead_item_at(t->at), *b = ahead_item_at(u->at);
	bool earlier = (b->ns < a->ns) | ((b->ns == a->ns) & (b->stream < a->stream));

	return earlier ? u : t;
}

static inline struct ahead_thread *ahead_earliest(const struct ahead *a)
{
	struct ahead_thread *t = &a->threads[0];

	for (unsigned int i = 1; i < a->n_threads; i++)
		t = ahead_earlier(t, &a->threads[i]);
	return t;
}

static inline void ahead_take(struct ahead *a, struct ahead_thread *t)
{
	const struct ahead_record *first = (const struct ahead_record *)(const void *)t->at;
	struct record *record = a->record;

	a->hand = t;
	a->first = first;
	t->at += first->item.bytes;
	record_set(record, (const union spy_any *)(first + 1));
	record->stream = &a->streams[first->item.stream];
	record->process = record->stream->trace->index;
	record->tid = first->tid;
	record->ns = first->item.ns;
	record->duration_ns = first->item.duration_ns;
}

/* For ahead_next. */
bool ahead_next_slow(struct ahead *a);

/* As merge_next; of a call, duration_ns is there, too. */
static inline bool ahead_next(struct ahead *a)
{
	const struct ahead_thread *t = a->hand;

	if (unlikely(a->n_left) || unlikely(t->at == t->end) ||
	    unlikely(ahead_item_at(t->at)->kind != AHEAD_RECORD))
		return ahead_next_slow(a);
	ahead_take(a, ahead_earliest(a));
	return true;
}

/* The streams of the next records of a thread, as far as they lie in the same block. Returns how many. */
static inline size_t ahead_coming(const struct ahead_thread *t, uint32_t *streams, size_t most)
{
	const uint8_t *at = t->at;
	size_t n = 0;

	__builtin_prefetch(at + 512); /* which the other thread has written */
	__builtin_prefetch(at + 576);
	while (n < most && at != t->end) {
		const struct ahead_item *item = ahead_item_at(at);

		if (item->kind == AHEAD_RECORD)
			streams[n++] = item->stream;
		else if (item->kind != AHEAD_NESTED)
			break;
		at += item->bytes;
	}
	return n;
}

/* Were calls found inside of another one, behind the record in hand? */
static inline bool ahead_has_nested(const struct ahead *a)
{
	return unlikely(!a->first) || unlikely(a->first->item.followed);
}

/* Only if there are: how many of them end before that time. The others are left for later. */
uint64_t ahead_count_nested(struct ahead *a, uint64_t until_ns);

#endif
