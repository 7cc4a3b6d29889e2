/*
 * analyzer/base/queue.c: blocks of memory from one thread to another. Called by both.
 *
 * A block is some thousand records, so that a lock for each is nothing. Where one side is faster it sleeps; the writer of
 * a full queue is woken when half of it is empty, and not for each block.
 */
#include <stdlib.h>
#include "queue.h"
#include "util.h"

void queue_init(struct queue *q, size_t n, size_t block_bytes)
{
	*q = (struct queue){
		.blocks = xcalloc(n, sizeof(*q->blocks)), .n = n, .block_bytes = block_bytes};
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	pthread_cond_init(&q->emptied, NULL);
}

void queue_release(struct queue *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->blocks[i].bytes);
	free(q->blocks);
	pthread_cond_destroy(&q->emptied);
	pthread_cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
	*q = (struct queue){0};
}

uint8_t *queue_room(struct queue *q)
{
	struct queue_block *block = &q->blocks[q->written % q->n];
	bool cancelled;

	pthread_mutex_lock(&q->lock);
	if (q->written - q->read == q->n)
		q->writer_waited++;
	while (q->written - q->read == q->n && !q->cancelled) {
		q->writer_waits = true;
		pthread_cond_wait(&q->emptied, &q->lock);
	}
	q->writer_waits = false;
	cancelled = q->cancelled;
	pthread_mutex_unlock(&q->lock);
	if (!block->bytes && !cancelled)
		block->bytes = xcalloc_apart(1, q->block_bytes);
	return cancelled ? NULL : block->bytes;
}

static void wake_reader(struct queue *q)
{
	if (!q->reader_waits)
		return;
	q->reader_waits = false;
	pthread_cond_signal(&q->filled);
}

void queue_publish(struct queue *q, size_t used)
{
	q->blocks[q->written % q->n].used = used;
	pthread_mutex_lock(&q->lock);
	q->written++;
	wake_reader(q);
	pthread_mutex_unlock(&q->lock);
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	wake_reader(q);
	pthread_mutex_unlock(&q->lock);
}

/* The block in hand is empty. */
static void give_back(struct queue *q)
{
	q->read++;
	q->in_hand = false;
	if (q->writer_waits && q->written - q->read <= q->n / 2) {
		q->writer_waits = false;
		pthread_cond_signal(&q->emptied);
	}
}

const uint8_t *queue_take(struct queue *q, size_t *used)
{
	const struct queue_block *block;

	pthread_mutex_lock(&q->lock);
	if (q->in_hand)
		give_back(q);
	if (q->read == q->written && !q->closed)
		q->reader_waited++;
	while (q->read == q->written && !q->closed) {
		q->reader_waits = true;
		pthread_cond_wait(&q->filled, &q->lock);
	}
	q->in_hand = q->read < q->written;
	pthread_mutex_unlock(&q->lock);
	if (!q->in_hand)
		return NULL;
	block = &q->blocks[q->read % q->n];
	*used = block->used;
	return block->bytes;
}

void queue_cancel(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->cancelled = true;
	pthread_cond_signal(&q->emptied);
	pthread_mutex_unlock(&q->lock);
}
