/*
 * analyzer/base/queue.h: blocks of memory that one thread fills and another one empties, in order. Of each queue there is
 * one thread that writes and one that reads; the latter may change where its owner hands it over with a lock.
 */
#ifndef CUDASPY_QUEUE_H
#define CUDASPY_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_block {
	uint8_t *bytes; /* allocated when it is first filled */
	size_t used;
};

struct queue {
	struct queue_block *blocks; /* a ring of n */
	size_t n, block_bytes;
	uint64_t written, read; /* blocks so far; the lock's */
	bool in_hand; /* the reader's: it has a block */
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	bool writer_waits, reader_waits;
	bool closed; /* nothing more comes */
	bool cancelled; /* nothing more is wanted */
	uint64_t writer_waited, reader_waited; /* how often */
};

void queue_init(struct queue *q, size_t n, size_t block_bytes);
void queue_release(struct queue *q);

/* The writer: an empty block, when there is one. NULL: nothing more is wanted. */
uint8_t *queue_room(struct queue *q);

/* The block that queue_room has returned is filled so far; the reader may have it. */
void queue_publish(struct queue *q, size_t used);
void queue_close(struct queue *q);

/* The reader: the next block, when there is one; the one before it is the writer's again. NULL: nothing more comes. */
const uint8_t *queue_take(struct queue *q, size_t *used);

/* … nothing more is wanted: a writer that waits goes on, and learns of it. */
void queue_cancel(struct queue *q);

#endif
