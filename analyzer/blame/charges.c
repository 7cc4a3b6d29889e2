/*
 * analyzer/blame/charges.c: the sums of waits. Called by blame.c for each link of a wait chain, or by a thread of its own,
 * here, for each of those that blame.c has handed over, in their order.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "account/account.h"
#include "base/jobs.h"
#include "base/queue.h"

void blame_sums_release(struct blame_sums *sums)
{
	edges_release(&sums->direct);
	edges_release(&sums->roots);
	free(sums->stalled.bits);
	free(sums->stalled_across.bits);
	free(sums->pairs);
	free(sums->starting);
	*sums = (struct blame_sums){0};
}

/* False: it was there already. */
static bool call_set_add(struct call_set *set, uint64_t call, uint64_t begin_ns)
{
	size_t word = call / 64, n = set->n_words;

	if (word >= n) {
		set->n_words = 2 * word + 16;
		set->bits = xrealloc(set->bits, set->n_words, sizeof(*set->bits));
		memset(set->bits + n, 0, (set->n_words - n) * sizeof(*set->bits));
	}
	if (set->bits[word] >> call % 64 & 1)
		return false;
	set->bits[word] |= 1ull << call % 64;
	if (!set->count++ || begin_ns < set->first_ns)
		set->first_ns = begin_ns;
	if (begin_ns > set->last_ns)
		set->last_ns = begin_ns;
	return true;
}

static void count_starting(struct blame_sums *sums, const struct charge *c, bool across)
{
	struct starting_stalls *last =
		sums->n_starting ? &sums->starting[sums->n_starting - 1] : NULL;

	if (!last || last->waiter != c->waiter || last->fn != c->key.waiter_fn) {
		sums->starting = grow(sums->starting, sums->n_starting, sizeof(*sums->starting));
		last = &sums->starting[sums->n_starting++];
		*last = (struct starting_stalls){.waiter = c->waiter, .fn = c->key.waiter_fn};
	}
	last->calls[across]++;
}

/* A call that other threads stalled, by another GPU's or not: each once. */
void blame_sums_stalled(struct blame_sums *sums, const struct charge *c, bool across)
{
	if (call_set_add(across ? &sums->stalled_across : &sums->stalled, c->call, c->begin_ns) &&
	    c->starting)
		count_starting(sums, c, across);
}

/* ---- the thread ------------------------------------------------------------------------------- */

#define BLOCKS 8
#define BLOCK_CHARGES 512
#define FETCHED_AHEAD 6 /* of those that the other thread has written, or read */

struct charges {
	struct blame_sums *sums;
	struct queue queue;
	char apart[APART_BYTES];
	struct charge *block; /* of the one who writes: NULL: none yet */
	size_t n;
	double cpu_s;
	pthread_t thread;
};

static void *add_up(void *data)
{
	struct charges *c = data;
	const struct charge *all;
	struct timespec cpu;
	size_t bytes, i;

	while ((all = (const struct charge *)(const void *)queue_take(&c->queue, &bytes)))
		for (i = 0; i < bytes / sizeof(*all); i++) {
			__builtin_prefetch(&all[i + FETCHED_AHEAD]);
			reading_place.moment =
				(struct reading_moment){all[i].at_ns, all[i].at_stream};
			blame_sums_add(c->sums, &all[i]);
		}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	c->cpu_s = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
	return NULL;
}

struct charges *charges_begin(struct blame_sums *sums)
{
	struct charges *c = xcalloc_apart(1, sizeof(*c));

	c->sums = sums;
	queue_init(&c->queue, BLOCKS, BLOCK_CHARGES * sizeof(struct charge));
	if (!pthread_create(&c->thread, NULL, add_up, c))
		return c;
	queue_release(&c->queue);
	free(c);
	return NULL;
}

struct charge *charges_room(struct charges *c)
{
	if (unlikely(!c->block))
		c->block = (struct charge *)(void *)queue_room(&c->queue);
	__builtin_prefetch(&c->block[c->n + FETCHED_AHEAD], 1);
	return &c->block[c->n];
}

void charges_put(struct charges *c)
{
	if (likely(++c->n < BLOCK_CHARGES))
		return;
	queue_publish(&c->queue, c->n * sizeof(*c->block));
	c->block = NULL;
	c->n = 0;
}

void charges_end(struct charges *c, bool give_up)
{
	if (!c)
		return;
	if (c->n && !give_up)
		queue_publish(&c->queue, c->n * sizeof(*c->block));
	queue_close(&c->queue);
	pthread_join(c->thread, NULL);
	if (jobs_tells_phases())
		jobs_tell("summing waits   CPU %8.3f s, waited for %llu times of %llu", c->cpu_s,
			  (unsigned long long)c->queue.writer_waited,
			  (unsigned long long)c->queue.written);
	queue_release(&c->queue);
	free(c);
}
