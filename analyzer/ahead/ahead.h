/*
 * analyzer/ahead/ahead.h: reads ahead. A thread of its own reads the streams, puts their records in the order of time and
 * copies them into blocks, each with what can be said of it without knowing those before it. The thread of the main
 * reading takes them from there, and gets what merge_next would have given it, in the same order, warnings too.
 *
 * Calls inside others come right behind the record they were found behind, where the main reading may count them without
 * their being in order (reading.c). It may leave some: these come again when it is their time.
 */
#ifndef CUDASPY_AHEAD_H
#define CUDASPY_AHEAD_H

#include "account/callstats.h"
#include "base/queue.h"
#include "expect/signatures.h"

enum ahead_kind {
	AHEAD_RECORD,
	AHEAD_NESTED, /* … behind such a record, or behind another one of them */
	AHEAD_WARNING,
};

/* What lies in a block. */
struct ahead_item {
	uint64_t ns;
	union {
		uint64_t duration_ns; /* of calls */
		char *text; /* AHEAD_WARNING; owned */
	};
	union {
		uint32_t stream; /* AHEAD_RECORD: of the set */
		uint32_t fn; /* AHEAD_NESTED: number in the set's functions */
	};
	uint16_t bytes; /* in all, a multiple of 8 */
	uint8_t kind; /* enum ahead_kind */
	bool followed; /* the next one is of AHEAD_NESTED */
};

/* AHEAD_RECORD: then come its bytes, its texts too. */
struct ahead_record {
	struct ahead_item item;
	uint64_t detail, hash; /* of a call: signature_detail, signature_hash */
	uint32_t tid, unused;
};

struct ahead_nested {
	struct ahead_item item;
	struct spy_rec_head head;
};

/* Calls inside others that the main reading has left for later; of a stream. */
struct ahead_left {
	struct ahead_nested *all;
	size_t n, next;
	uint32_t tid;
};

struct ahead {
	struct queue queue;
	struct trace_set *set;
	char apart_from_queue[APART_BYTES];
	/* The main reading's. Its streams are copies: the others are written to, with their readers, for each record. */
	struct stream *streams;
	const uint8_t *at, *end; /* in the block */
	struct record *record; /* in hand */
	const struct ahead_record *first; /* of it, in the block or kept; NULL: it was left */
	const struct ahead_item *item; /* of it, or of the last call inside it; NULL: it was left */
	struct ahead_left *left; /* by stream */
	size_t n_left;
	struct spy_rec_head again; /* the one in hand, if it was left */
	void *kept; /* the record in hand, if its block is empty */
	/* The thread's: */
	char apart_from_reading[APART_BYTES];
	struct merge *merge;
	uint64_t nested_ns;
	uint64_t *called_ns; /* by stream: as in struct stream */
	uint8_t *begins_cuda; /* by function: no call of it is AHEAD_NESTED */
	struct calls *direct, *nested; /* the same; NULL: they are counted by the main reading */
	uint32_t n_functions;
	uint8_t *block;
	size_t used;
	struct ahead_item *last;
	bool stopped;
	double cpu_s; /* it has taken */
	pthread_t thread;
};

/* What a reading wants. */
struct ahead_wish {
	struct merge
		*merge; /* whose streams have their first records; the thread's until ahead_end */
	struct trace_set *set;
	struct record *record; /* where all of them are put */
	/* Calls inside others come as said above, if they end no later than that behind the record before; 0: in order, as
	 * all others. */
	uint64_t nested_ns;
	bool count; /* calls of functions that have a name are counted by the thread */
};

/* Begins to read. NULL: there can be no thread. */
struct ahead *ahead_begin(const struct ahead_wish *wish);

/* After the last record: what was counted. */
void ahead_add_calls(const struct ahead *a, struct callstats *s);

/* Also before the last record. */
void ahead_end(struct ahead *a);

/* For ahead_next. */
bool ahead_next_slow(struct ahead *a);

/* As merge_next; of a call, duration_ns is there, too. */
static inline bool ahead_next(struct ahead *a)
{
	const struct ahead_record *first = (const struct ahead_record *)(const void *)a->at;
	struct record *record = a->record;

	if (unlikely(a->n_left) || unlikely(a->at == a->end) ||
	    unlikely(first->item.kind != AHEAD_RECORD))
		return ahead_next_slow(a);
	a->first = first;
	a->item = &first->item;
	a->at += first->item.bytes;
	record->raw = (const union spy_any *)(first + 1);
	record->stream = &a->streams[first->item.stream];
	record->process = record->stream->trace->index;
	record->tid = first->tid;
	record->ns = first->item.ns;
	record->duration_ns = first->item.duration_ns;
	return true;
}

/* The streams of the next records, as far as they lie in the same block and nothing is between them. Returns how many. */
static inline size_t ahead_coming(const struct ahead *a, uint32_t *streams, size_t most)
{
	const uint8_t *at = a->at;
	size_t n;

	__builtin_prefetch(at + 512); /* which the other thread has written */
	__builtin_prefetch(at + 576);
	for (n = 0; n < most && at != a->end; n++) {
		const struct ahead_item *item = (const struct ahead_item *)(const void *)at;

		if (item->kind != AHEAD_RECORD)
			break;
		streams[n] = item->stream;
		at += item->bytes;
	}
	return n;
}

/* For ahead_peek: the item may be in the next block, or be one of those left. */
const struct ahead_item *ahead_peek_slow(struct ahead *a);

/* The next call inside another one, behind the record in hand, until ahead_take counts it as taken; NULL: there is none. */
static inline const struct ahead_item *ahead_peek(struct ahead *a)
{
	if (likely(a->item != NULL) && likely(!a->item->followed))
		return NULL;
	if (unlikely(!a->item) || unlikely(a->at == a->end))
		return ahead_peek_slow(a);
	return (const struct ahead_item *)(const void *)a->at;
}

void ahead_take_left(struct ahead *a);

static inline void ahead_take(struct ahead *a)
{
	if (unlikely(!a->item)) {
		ahead_take_left(a);
		return;
	}
	a->item = (const struct ahead_item *)(const void *)a->at;
	a->at += a->item->bytes;
}

/* The one that ahead_peek has returned, and those behind it, are left for later. */
void ahead_leave(struct ahead *a);

#endif
