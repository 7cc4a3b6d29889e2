/*
 * shim/process/heap.c: the recorder's own memory. Sizes are powers of two; small ones are cut from
 * chunks, large ones are maps of their own; what is given back waits for the next of its size.
 * Called in slow paths, on any thread.
 */
#include <string.h>
#include <sys/mman.h>
#include "state/board_fields.h"
#include "process/heap.h"
#include "state/session.h"

#define LEAST_CLASS 5 /* 32 bytes */
#define CHUNK ((size_t)64 << 10)

static unsigned int class_of(size_t bytes)
{
	unsigned int class = LEAST_CLASS;

	while (class < SPY_HEAP_CLASSES && (size_t)1 << class < bytes)
		class ++;
	return class;
}

static void *map(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* A piece of the chunk, or of a new one; what was left of the old one is at most a half. */
static void *cut(struct spy_heap *heap, size_t bytes)
{
	void *piece;

	if ((size_t)(heap->end - heap->at) < bytes) {
		uint8_t *chunk = map(CHUNK);

		if (!chunk)
			return NULL;
		heap->at = chunk;
		heap->end = chunk + CHUNK;
	}
	piece = heap->at;
	heap->at += bytes;
	return piece;
}

static void *find(struct spy_heap *heap, unsigned int class)
{
	size_t bytes = (size_t)1 << class;
	void *piece = heap->free[class];

	if (piece) {
		memcpy(&heap->free[class], piece, sizeof(void *));
		return piece;
	}
	return bytes > CHUNK / 2 ? map(bytes) : cut(heap, bytes);
}

/* Under the lock. */
static void count(struct spy_heap *heap, uint64_t used)
{
	heap->used = used;
	if (spy_session_active())
		spy_board_show(spy_session->board->heap, used);
}

void *spy_heap_take(size_t bytes)
{
	struct spy_heap *heap = &spy_session->heap;
	unsigned int class = class_of(bytes);
	void *piece = NULL;

	if (class >= SPY_HEAP_CLASSES || !spy_lock(&heap->lock))
		return NULL;
	if (heap->used + ((size_t)1 << class) <= SPY_HEAP_MOST)
		piece = find(heap, class);
	if (piece)
		count(heap, heap->used + ((size_t)1 << class));
	spy_unlock(&heap->lock);
	if (piece)
		memset(piece, 0, bytes);
	return piece;
}

void spy_heap_give(void *memory, size_t bytes)
{
	struct spy_heap *heap = &spy_session->heap;
	unsigned int class = class_of(bytes);

	if (!memory || !spy_lock(&heap->lock))
		return; /* without the lock it is lost, not shared */
	memcpy(memory, &heap->free[class], sizeof(void *));
	heap->free[class] = memory;
	count(heap, heap->used - ((size_t)1 << class));
	spy_unlock(&heap->lock);
}
