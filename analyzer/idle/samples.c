/*
 * analyzer/idle/samples.c: pools of samples. Called by idle.c for the calls of threads that are sampled, and after the last
 * record.
 */
#include <stdlib.h>
#include "base/median.h"
#include "callers.h"
#include "model/python.h"
#include "samples.h"

/* ---- pools ------------------------------------------------------------------------------------ */

/* What is on a CPU, as far as is known, and what is blocked where no probe saw it, are divided by samples of their own. Samples
 * are a thread's: others may come to the same call by other ways. */
static struct idle_sum_key pool_key(struct idle_sum_key key, const struct thread *thread)
{
	key.owner = idle_owner_thread(thread);
	key.cause = key.cause == IDLE_UNEXPLAINED ? IDLE_UNEXPLAINED : IDLE_CPU;
	return key;
}

static struct sample_pool *find_pool(const struct sample_pools *pools, struct idle_sum_key key)
{
	struct sample_pool *pool;

	HASH_FIND(hh, pools->all, &key, sizeof(key), pool);
	return pool;
}

static struct sample_pool *get_pool(struct sample_pools *pools, struct idle_sum_key key)
{
	struct sample_pool *pool = find_pool(pools, key);

	if (pool || HASH_COUNT(pools->all) >= SAMPLE_POOLS_MOST)
		return pool;
	HASH_NEW(pools->all, pool, key, key);
	return pool;
}

/* Where the thread was; of waits for the GIL, where its holder was. */
static struct sample_share share_of(const struct host_sample *sample, const struct stack *place)
{
	const struct python_frame *frame = python_frame(place);

	return (struct sample_share){.place = place,
				     .holder = sample->holder,
				     .code = frame ? frame->code : 0,
				     .line = frame ? frame->line : 0,
				     .address = !frame && place && place->n ? place->frames[0] : 0,
				     .work = idle_cause_of_work(place, IDLE_CAUSE_COUNT),
				     .state = sample->state & (SPY_SAMPLE_GC | SPY_SAMPLE_GIL)};
}

static bool same_share(const struct sample_share *a, const struct sample_share *b)
{
	return a->holder == b->holder && a->code == b->code && a->line == b->line &&
	       a->address == b->address && a->state == b->state && a->work == b->work &&
	       !a->place == !b->place;
}

/* A line of Python calls this and that: the stack that is shown is one of what it called most (majority_moves). */
static void vote(struct sample_share *share, const struct stack *place, uint64_t weight_us)
{
	bool same = !place || python_called(place).code == python_called(share->place).code;

	if (majority_moves(&share->lead_us, same, weight_us))
		share->place = place;
}

static void add(struct sample_pool *pool, const struct host_sample *sample,
		const struct stack *place)
{
	struct sample_share share = share_of(sample, place);

	pool->weight_us += sample->weight_us;
	for (size_t i = 0; i < pool->n_shares; i++)
		if (same_share(&pool->shares[i], &share)) {
			pool->shares[i].weight_us += sample->weight_us;
			vote(&pool->shares[i], place, sample->weight_us);
			return;
		}
	if (pool->n_shares == SAMPLE_SHARES_MOST)
		return;
	share.weight_us = share.lead_us = sample->weight_us;
	pool->shares = grow(pool->shares, pool->n_shares, sizeof(*pool->shares));
	pool->shares[pool->n_shares++] = share;
}

void samples_join(struct sample_pools *whole, struct sample_pools *part,
		  const struct model *of_part)
{
	struct sample_pool *pool, *next;

	HASH_EMPTY (part->all, pool, next) {
		pool->key.owner = idle_owner_thread(of_part->threads[pool->key.owner]);
		HASH_ADD(hh, whole->all, key, sizeof(pool->key), pool);
	}
}

void samples_release(struct sample_pools *pools)
{
	struct sample_pool *pool, *next;

	HASH_EMPTY (pools->all, pool, next) {
		free(pool->shares);
		free(pool);
	}
}

/* ---- from a sample to its gap ------------------------------------------------------------------- */

/* The gap that the thread was in then. */
struct gap {
	const struct completed_call *before, *behind; /* NULL: unknown */
};

/* False: it was in a call. */
static bool find_gap(const struct thread_account *c, uint64_t ns, struct gap *gap)
{
	uint64_t known = min_u64(c->ring.n, c->ring.size), i;
	const struct completed_call *call;

	*gap = (struct gap){NULL, NULL};
	for (i = 1; i <= known; i++, gap->behind = call) {
		call = completed_call_at(&c->ring, c->ring.n - i);
		if (ns >= call->end_ns) {
			gap->before = call;
			return true;
		}
		if (ns >= call->begin_ns)
			return false;
	}
	if (known < c->ring.n)
		gap->behind = NULL; /* so long ago */
	return true;
}

/* What comes before a call of the fast path, which is known by its number only, is a short gap of the thread. */
static bool is_short(const struct gap *gap)
{
	return !gap->behind || gap->behind->fast;
}

static bool is_long(const struct gap *gap)
{
	return gap->before && gap->behind &&
	       gap->behind->begin_ns - gap->before->end_ns >= HOST_LONG_GAP_NS;
}

static void pool_sample(struct sample_pools *pools, const struct accounting *a,
			struct host_thread *h, const struct thread_account *c,
			const struct host_sample *sample)
{
	struct idle_part part = {.fn = NO_FUNCTION, .fn_before = NO_FUNCTION};
	const struct process *process = c->thread->process;
	struct sample_pool *pool;
	struct gap gap;

	if (!host_sample_counts(h, sample) || !find_gap(c, sample->ns, &gap) || is_long(&gap))
		return;
	if (!is_short(&gap))
		part = host_gap_part(a, process, h, gap.before, gap.behind, sample->ns);
	part.cause = sample->state & SPY_SAMPLE_BLOCKED ? IDLE_UNEXPLAINED : IDLE_CPU;
	pool = get_pool(pools, pool_key(idle_sum_key_of(0, process, &part), c->thread));
	if (pool)
		add(pool, sample, sample->place);
}

/* All waits of the thread for the GIL are one: its holder does not depend on who waits where. */
static struct idle_sum_key gil_key(const struct process *process, const struct thread *thread)
{
	return (struct idle_sum_key){.owner = idle_owner_thread(thread),
				     .process = process->trace->index,
				     .cause = IDLE_GIL};
}

static void pool_holder(struct sample_pools *pools, const struct thread_account *c,
			const struct host_sample *sample)
{
	struct sample_pool *pool = get_pool(pools, gil_key(c->thread->process, c->thread));

	if (pool)
		add(pool, sample, sample->held_at);
}

void samples_pool(struct sample_pools *pools, const struct accounting *a, struct host_thread *h,
		  const struct thread_account *c)
{
	const struct completed_call *f = completed_call_at(&c->ring, c->ring.n - 1);

	if (h->n_samples - h->n_pooled > h->samples_size)
		h->n_pooled = h->n_samples - h->samples_size;
	for (; h->n_pooled < h->n_samples; h->n_pooled++) {
		const struct host_sample *sample = &h->samples[h->n_pooled % h->samples_size];

		if (sample->ns >= f->end_ns)
			return;
		if (sample->state & SPY_SAMPLE_GIL && sample->holder)
			pool_holder(pools, c, sample);
		pool_sample(pools, a, h, c, sample);
	}
}

/* ---- around the working phase -------------------------------------------------------------------- */

/* There is no such cause: so no sum has that key. */
static struct idle_sum_key around_key(const struct thread *thread, enum samples_around where,
				      bool ran)
{
	return (struct idle_sum_key){.owner = idle_owner_thread(thread),
				     .process = thread->process->trace->index,
				     .cause = IDLE_CAUSE_COUNT + where,
				     .line = ran};
}

void samples_pool_around(struct sample_pools *pools, const struct thread *thread,
			 enum samples_around where, const struct host_sample *sample)
{
	struct sample_pool *pool =
		get_pool(pools, around_key(thread, where, !(sample->state & SPY_SAMPLE_BLOCKED)));

	if (pool)
		add(pool, sample, sample->place);
}

/* One function of the program, or of C where there is no Python. */
static bool same_function(const struct sample_share *a, const struct sample_share *b)
{
	const struct python_code *x = python_line(a->place).code, *y = python_line(b->place).code;

	if (x || y)
		return x == y;
	return a->place->function ? a->place->function == b->place->function
				  : a->address == b->address && !b->place->function;
}

struct samples_place samples_place_around(const struct sample_pools *pools,
					  const struct thread *thread, enum samples_around where,
					  bool ran)
{
	const struct sample_pool *pool = find_pool(pools, around_key(thread, where, ran));
	struct samples_place found = {.all_us = pool ? pool->weight_us : 0};

	for (size_t i = 0; pool && i < pool->n_shares; i++) {
		const struct sample_share *share = &pool->shares[i], *most = share;
		uint64_t us = 0;

		for (size_t j = 0; share->place && j < pool->n_shares; j++) {
			const struct sample_share *other = &pool->shares[j];

			if (!other->place || !same_function(share, other))
				continue;
			us += other->weight_us;
			most = other->weight_us > most->weight_us ? other : most;
		}
		if (us <= found.us)
			continue;
		found.us = us;
		found.place = most->place;
		found.state = most->state;
	}
	return found;
}

/* ---- sums ------------------------------------------------------------------------------------- */

/* A time between calls for which no sample has spoken yet. */
static bool is_unsampled(const struct idle_part *part)
{
	if (!part->thread)
		return false;
	if (part->cause != IDLE_CPU && !idle_runs_python(part->cause) &&
	    (part->cause != IDLE_UNEXPLAINED || part->fn_before == NO_FUNCTION))
		return false;
	return part->fn != NO_FUNCTION || (!part->stack && !part->address);
}

static bool is_to_divide(const struct idle_sum *sum)
{
	return sum->ns && !sum->holder && is_unsampled(&sum->longest);
}

static uint64_t function_of(const struct sample_share *share)
{
	return share->place && !share->code ? share->place->function : 0;
}

/* Places in one function are one, where the thread was most often. What all of them stand for; 0: it was one of those before. */
static uint64_t join_function(const struct sample_pool *pool, size_t i,
			      const struct sample_share **most)
{
	const struct sample_share *share = &pool->shares[i];
	uint64_t function = function_of(share), sum = 0;
	size_t j;

	*most = share;
	if (!function)
		return share->weight_us;
	for (j = 0; j < pool->n_shares; j++) {
		const struct sample_share *other = &pool->shares[j];

		if (function_of(other) != function || other->state != share->state)
			continue;
		if (j < i)
			return 0;
		sum += other->weight_us;
		if (other->weight_us > (*most)->weight_us)
			*most = other;
	}
	return sum;
}

/* Code that is not Python's has a place if the kernel has interrupted it in time. Where it did not, the thread was at one of
 * the places that others of the pool have: how much each of these stands for. */
static double weight_of_native(const struct sample_pool *pool)
{
	uint64_t unknown = 0, known = 0;

	for (size_t i = 0; i < pool->n_shares; i++) {
		if (!pool->shares[i].place)
			unknown += pool->shares[i].weight_us;
		else if (pool->shares[i].place->function)
			known += pool->shares[i].weight_us;
	}
	return known ? (double)(known + unknown) / (double)known : 1;
}

/* Each stands for the time since the look before it. Where they stand for less than a tenth of what is to be divided most looks have failed,
 * and those that have not may all have been at what is seldom done. */
static bool speaks_for(const struct sample_pool *pool, uint64_t ns)
{
	return (double)pool->weight_us * 1000 * SAMPLES_SPEAK_FOR >= (double)ns;
}

static void divide(struct idle_sums *sums, struct idle_sum *sum, const struct sample_pool *pool)
{
	const struct idle_sum whole = *sum;
	const double native = weight_of_native(pool);
	uint64_t left_us = pool->weight_us, left_ns = sum->ns, ns, us;

	for (size_t i = 0; i < pool->n_shares && left_us; i++) {
		const struct sample_share *share;

		us = join_function(pool, i, &share);
		if (function_of(share))
			us = (uint64_t)((double)us * native + 0.5);
		else if (!share->place)
			us = 0;
		us = min_u64(us, left_us); /* what was rounded up before is lacking here */
		ns = (uint64_t)((double)left_ns * (double)us / (double)left_us);
		left_us -= us;
		left_ns -= min_u64(ns, left_ns);
		if (share->place && ns) {
			struct idle_part part =
				host_sampled_part(&whole.longest, share->place, share->state);

			sum->ns -= ns;
			sum->long_ns = (uint64_t)((double)whole.long_ns * (double)sum->ns /
						  (double)whole.ns);
			idle_sums_add_of(sums, sum->key.owner, &part, ns, &whole);
		}
	}
}

void samples_place(const struct sample_pools *pools, struct idle_part *part)
{
	const struct process *process = part->thread ? part->thread->process : NULL;
	const struct sample_share *most = NULL, *share;
	const struct sample_pool *pool;
	uint64_t most_us = 0, us;

	if (!is_unsampled(part))
		return;
	pool = find_pool(pools, pool_key(idle_sum_key_of(0, process, part), part->thread));
	for (size_t i = 0; pool && i < pool->n_shares; i++) {
		us = join_function(pool, i, &share);
		if (us <= most_us || !share->place)
			continue;
		most = share;
		most_us = us;
	}
	if (most)
		*part = host_sampled_part(part, most->place, most->state);
}

/* Who had the GIL most often, where that is known. */
static void name_holder(const struct sample_pools *pools, struct idle_sum *sum)
{
	const struct thread *thread = sum->longest.thread;
	const struct sample_pool *pool =
		thread ? find_pool(pools, gil_key(sum->process, thread)) : NULL;
	const struct sample_share *most = NULL;

	for (size_t i = 0; pool && i < pool->n_shares; i++)
		if (pool->shares[i].place && (!most || pool->shares[i].weight_us > most->weight_us))
			most = &pool->shares[i];
	if (!most)
		return;
	sum->gil_holder = most->holder;
	sum->gil_held_at = most->place;
}

void samples_divide(const struct sample_pools *pools, struct idle_sums *sums)
{
	size_t n = HASH_COUNT(sums->by_key), i = 0;
	struct idle_sum **all, *sum;

	if (!pools->all)
		return;
	all = xcalloc(n + 1, sizeof(struct idle_sum *));
	for (sum = sums->by_key; sum; sum = sum->hh.next)
		all[i++] = sum;
	for (i = 0; i < n; i++) {
		const struct sample_pool *pool =
			is_to_divide(all[i])
				? find_pool(pools, pool_key(all[i]->key, all[i]->longest.thread))
				: NULL;

		if (pool && speaks_for(pool, all[i]->ns))
			divide(sums, all[i], pool);
	}
	for (sum = sums->by_key; sum; sum = sum->hh.next)
		if (sum->key.cause == IDLE_GIL)
			name_holder(pools, sum);
	free(all);
}
