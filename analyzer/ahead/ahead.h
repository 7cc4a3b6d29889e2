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

#include "base/queue.h"
#include "trace/merge.h"

enum ahead_kind {
	AHEAD_RECORD,
	AHEAD_NESTED, /* … behind such a record, or behind another one of them */
	AHEAD_WARNING,
};

/* What lies in a block: then come the bytes of the record, its texts too. */
struct ahead_item {
	uint64_t ns;
	union {
		struct {
			uint32_t stream; /* of the set */
			uint32_t tid;
		};
		uint64_t duration_ns; /* AHEAD_NESTED */
		char *text; /* AHEAD_WARNING; owned */
	};
	uint32_t fn; /* AHEAD_NESTED: number in the set's functions */
	uint16_t bytes; /* in all, a multiple of 8 */
	uint8_t kind; /* enum ahead_kind */
	bool followed : 1; /* the next one is of AHEAD_NESTED */
	bool failed : 1; /* AHEAD_NESTED */
};

/* Calls inside others that the main reading has left for later; of a stream. */
struct ahead_left {
	struct ahead_nested {
		struct spy_rec_head head;
		uint64_t ns, duration_ns;
		uint32_t fn, tid;
		bool failed;
	} * all;
	size_t n, next;
};

struct ahead {
	struct queue queue;
	struct trace_set *set;
	/* The main reading's: */
	const uint8_t *at, *end; /* in the block */
	struct record *record; /* in hand */
	const struct ahead_item *first; /* of it; NULL: not in the block */
	const struct ahead_item *item; /* of it, or of the last call inside it; NULL: it was left */
	struct ahead_left *left; /* by stream */
	size_t n_left;
	struct spy_rec_head again; /* the one in hand, if it was left */
	uint8_t *kept; /* the record in hand, if its block is empty */
	/* The thread's: */
	struct merge *merge;
	uint64_t nested_ns;
	uint8_t *begins_cuda; /* by function: no call of it is AHEAD_NESTED */
	uint32_t n_functions;
	uint8_t *block;
	size_t used;
	struct ahead_item *last;
	bool stopped;
	double cpu_s; /* it has taken */
	pthread_t thread;
};

/* A call inside another one. */
struct ahead_call {
	uint64_t ns, duration_ns;
	uint32_t fn;
	bool failed;
};

/*
 * Begins to read what the merge has. nested_ns: calls inside others come as said above, if they end no later
 * than that behind the record before; 0: in order, as all others. record: where all of them are put.
 * NULL: there can be no thread. The merge is the thread's until ahead_end.
 */
struct ahead *ahead_begin(struct merge *merge, struct trace_set *set, struct record *record,
			  uint64_t nested_ns);

/* Also before the last record. */
void ahead_end(struct ahead *a);

/* For ahead_next. */
bool ahead_next_slow(struct ahead *a);

/* As merge_next. */
static inline bool ahead_next(struct ahead *a)
{
	const struct ahead_item *item = (const struct ahead_item *)(const void *)a->at;
	struct record *record = a->record;

	if (unlikely(a->n_left) || unlikely(a->at == a->end) ||
	    unlikely(item->kind != AHEAD_RECORD))
		return ahead_next_slow(a);
	a->first = a->item = item;
	a->at += item->bytes;
	record->raw = (const union spy_any *)(item + 1);
	record->stream = a->set->streams[item->stream];
	record->process = record->stream->trace->index;
	record->tid = item->tid;
	record->ns = item->ns;
	return true;
}

/* For ahead_peek: the item may be in the next block, or be one of those left. */
bool ahead_peek_slow(struct ahead *a, struct ahead_call *call);

/* The next call inside another one, behind the record in hand; false: there is none. ahead_take counts it as taken. */
static inline bool ahead_peek(struct ahead *a, struct ahead_call *call)
{
	const struct ahead_item *item;

	if (likely(a->item != NULL) && likely(!a->item->followed))
		return false;
	if (unlikely(!a->item) || unlikely(a->at == a->end))
		return ahead_peek_slow(a, call);
	item = (const struct ahead_item *)(const void *)a->at;
	*call = (struct ahead_call){item->ns, item->duration_ns, item->fn, item->failed};
	return true;
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
