/*
 * analyzer/ahead/blocks.h: what lies in the blocks between a thread that reads ahead, which writes them (write.c), and the
 * main reading (ahead.c). One item follows the other; none goes on in the next block.
 */
#ifndef CUDASPY_AHEAD_BLOCKS_H
#define CUDASPY_AHEAD_BLOCKS_H

#include "account/callstats.h"
#include "base/queue.h"
#include "trace/merge.h"

enum ahead_kind {
	AHEAD_RECORD,
	AHEAD_NESTED, /* calls inside others, behind such a record or behind others of them */
	AHEAD_WARNING, /* came up behind the record, and what is inside of it */
	AHEAD_END, /* in no block: behind all others */
};

struct ahead_item {
	uint64_t ns; /* AHEAD_NESTED: of the last call */
	union {
		uint64_t duration_ns; /* AHEAD_RECORD: of a call */
		uint64_t n; /* AHEAD_NESTED: so many calls */
		char *text; /* AHEAD_WARNING; owned */
	};
	uint32_t stream; /* AHEAD_RECORD: of the set */
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

/* AHEAD_NESTED: the item, and n of these. */
struct ahead_nested {
	uint64_t ns;
	struct spy_rec_head head;
};

#define AHEAD_BLOCK_BYTES (65536u - 64) /* for the bytes of an item, too */

/* A thread that reads some of the streams. */
struct ahead_thread {
	struct queue queue;
	char apart_from_queue[APART_BYTES];
	/* The main reading's: */
	const uint8_t *at, *end; /* in the block; at the end of all, at an item of AHEAD_END */
	/* The thread's: */
	char apart_from_reading[APART_BYTES];
	struct ahead *ahead;
	pthread_t thread;
	struct merge merge;
	uint64_t *called_ns; /* by stream: as in struct stream */
	struct calls *direct, *nested; /* by function; NULL: the main reading counts them */
	uint8_t *block;
	size_t used;
	struct ahead_item *last;
	bool stopped;
	double cpu_s; /* it has taken */
	char apart_from_next[APART_BYTES];
};

/* Begins to read what merge has. 0: it does; its struct ahead does not change from then on but for what is the main
 * reading's. Else: there is no thread. */
int ahead_thread_begin(struct ahead_thread *t);

#endif
