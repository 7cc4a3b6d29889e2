/*
 * tests/unit/test_analyzer_queue.c: blocks from one thread to another come whole, in order, and no block is filled again
 * while it is read; either side may be the slower one, or want no more.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <sched.h>
#include <cmocka.h>
#include "base/queue.h"
#include "base/util.h"

#define BLOCKS 4
#define NUMBERS 64 /* in a block */
#define ROUNDS 2000

struct writing {
	struct queue queue;
	bool slow; /* the writer is slower */
	uint64_t written; /* blocks */
};

static void *write_all(void *data)
{
	struct writing *w = data;
	uint64_t *block, i;

	for (; w->written < ROUNDS; w->written++) {
		block = (uint64_t *)(void *)queue_room(&w->queue);
		if (!block)
			return NULL;
		for (i = 0; i < NUMBERS; i++)
			block[i] = w->written * NUMBERS + i;
		if (w->slow)
			sched_yield();
		/* Blocks need not be full. */
		queue_publish(&w->queue, (1 + w->written % NUMBERS) * sizeof(*block));
	}
	queue_close(&w->queue);
	return NULL;
}

static void begin(struct writing *w, pthread_t *thread, bool slow)
{
	*w = (struct writing){.slow = slow};
	queue_init(&w->queue, BLOCKS, NUMBERS * sizeof(uint64_t));
	assert_int_equal(pthread_create(thread, NULL, write_all, w), 0);
}

static void read_all(bool slow_writer)
{
	struct writing w;
	const uint64_t *block;
	uint64_t round, i;
	pthread_t thread;
	size_t used;

	begin(&w, &thread, slow_writer);
	for (round = 0; (block = (const uint64_t *)(const void *)queue_take(&w.queue, &used));
	     round++) {
		assert_int_equal(used, (1 + round % NUMBERS) * sizeof(*block));
		if (!slow_writer && round % 64 == 0)
			sched_yield();
		for (i = 0; i < used / sizeof(*block); i++)
			assert_int_equal(block[i], round * NUMBERS + i);
	}
	assert_int_equal(round, ROUNDS);
	assert_null(queue_take(&w.queue, &used));
	pthread_join(thread, NULL);
	queue_release(&w.queue);
}

static void test_in_order(void **state)
{
	(void)state;
	read_all(false);
	read_all(true);
}

/* A writer that waits for room goes on, and learns that nothing more is wanted. */
static void test_cancelled(void **state)
{
	struct writing w;
	pthread_t thread;
	size_t used, i;

	(void)state;
	begin(&w, &thread, false);
	for (i = 0; i < 3; i++)
		assert_non_null(queue_take(&w.queue, &used));
	queue_cancel(&w.queue);
	pthread_join(thread, NULL);
	assert_true(w.written <= 3 + BLOCKS);
	queue_release(&w.queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
