/*
 * analyzer/blame/charges.h: what each link of a wait chain adds to the sums of waits. Nothing is asked of these sums before
 * the last record, so a thread of its own may add it up while the accounting goes on.
 */
#ifndef CUDASPY_CHARGES_H
#define CUDASPY_CHARGES_H

#include "edges.h"

struct accounting;
struct thread;

/* A set of calls: a bit for each call that waited, which is what memory grows by in a storm of
 * them. */
struct call_set {
	uint64_t *bits;
	size_t n_words;
	uint64_t count;
	uint64_t first_ns, last_ns; /* when they began; not valid without any */
};

/* Of a process: edges with its waiters, direct ones and roots. */
struct blame_pairs {
	size_t n[2];
};

/* Calls of a function that a thread made as the program started, and that others stalled. */
struct starting_stalls {
	struct thread *waiter;
	uint32_t fn;
	uint64_t calls[2]; /* by threads of the same GPU, of another one */
};

struct blame_sums {
	struct blame_edges direct, roots;
	/* Calls that a thread on the same GPU stalled, or one on another: blame_is_stall. */
	struct call_set stalled, stalled_across;
	struct blame_pairs *pairs; /* by process */
	struct starting_stalls *starting; /* those in a row as one */
	size_t n_starting;
};

/* Of hundreds of threads each waits for each. Beyond so many pairs a sum has the waiter and the holder's call, but not the
 * holder's thread: this is its index then, until the last record. */
#define BLAME_MANY UINT32_MAX

/* So much of a wait is due to a holder. */
struct charge {
	union blame_key key;
	uint64_t call, wait; /* numbers of the waiter's: struct blame_origin */
	double ns, avoidable_ns;
	struct thread *waiter;
	uint64_t begin_ns; /* of the waiter's call */
	uint64_t at_ns; /* the record in hand: its time */
	uint32_t at_stream; /* … and its stream's index + 1 */
	uint32_t pairs_most; /* of the waiter's process, 0: this one counts in any case */
	uint32_t process;
	bool root; /* else it is a direct one */
	bool starting, working; /* as in struct blame_origin */
};

void blame_sums_release(struct blame_sums *sums);

/* Did one thread wait for another, and both on a known GPU? Not for a lock alone: what a thread
 * without a CPU did kept no other one waiting, and nothing can be said of an unknown cause. */
bool blame_is_stall(const union blame_key *root, bool across_devices);

/* For blame_sums_add: a call that other threads stalled, by another GPU's or not: each once. */
void blame_sums_stalled(struct blame_sums *sums, const struct charge *c, bool across);

static inline struct blame_edge *blame_sums_get(struct blame_sums *sums, const struct charge *c,
						const union blame_key *key)
{
	struct blame_edges *edges = c->root ? &sums->roots : &sums->direct;
	size_t before = edges->n;
	struct blame_edge *edge = edges_get(edges, key);

	sums->pairs[c->process].n[c->root] += edges->n - before;
	return edge;
}

static inline struct blame_edge *blame_sums_edge(struct blame_sums *sums, const struct charge *c)
{
	union blame_key many = c->key;
	struct blame_edge *edge;

	if (likely(sums->pairs[c->process].n[c->root] < c->pairs_most) || !c->pairs_most)
		return blame_sums_get(sums, c, &c->key);
	edge = edges_find(c->root ? &sums->roots : &sums->direct, &c->key);
	if (edge)
		return edge;
	many.holder = BLAME_MANY;
	return blame_sums_get(sums, c, &many);
}

/* At a moment: reading_place. */
static inline void blame_sums_add(struct blame_sums *sums, const struct charge *c)
{
	struct blame_edge *edge = blame_sums_edge(sums, c);
	bool across;

	/* A wait counts once, in however many links it comes. */
	edge->waits += edge->last_wait != c->wait;
	edge->last_wait = c->wait;
	edge->waited_ns += c->ns;
	if (!c->root)
		return;
	edge->avoidable_ns += c->avoidable_ns;
	if (unlikely(c->starting))
		edge->starting_ns += c->ns;
	if (c->working)
		edge->working_ns += c->ns;
	across = c->key.waiter_device != c->key.holder_device;
	if (blame_is_stall(&c->key, across))
		blame_sums_stalled(sums, c, across);
}

/* A thread that adds charges to sums, which are its own until charges_end. */
struct charges;

/* NULL: there can be no thread. */
struct charges *charges_begin(struct blame_sums *sums);

/* Where the next charge is to be written, which charges_put then hands over. */
struct charge *charges_room(struct charges *c);
void charges_put(struct charges *c);

/* Waits until all have been added; give_up: until none is any more. */
void charges_end(struct charges *c, bool give_up);

#endif
