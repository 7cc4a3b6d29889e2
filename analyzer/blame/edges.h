/*
 * analyzer/blame/edges.h: waiters and holders: the sums of waits, one for each pair of calls, their
 * threads, and the lock or the cause between them. Contended traces add to them several times for
 * each wait.
 */
#ifndef CUDASPY_EDGES_H
#define CUDASPY_EDGES_H

#include "base/util.h"
#include "trace/position.h"

/* Threads are indices + 1, 0 unknown. Without padding: it is hashed and compared by its words, and whoever makes one for
 * each wait fills in whole words, which the processor can read again at once (blame_key_of). */
union blame_key {
	struct {
		uint32_t waiter, waiter_fn, holder, holder_fn;
		uint32_t lock; /* index + 1; 0 in roots */
		uint8_t waiter_device, holder_device;
		uint8_t cause; /* of roots */
		uint8_t inferred;
	};
	uint64_t words[3];
};

_Static_assert(sizeof(union blame_key) == 3 * sizeof(uint64_t), "no padding");

static inline union blame_key blame_key_of(uint32_t waiter, uint32_t waiter_fn,
					   uint8_t waiter_device, uint32_t holder,
					   uint32_t holder_fn, uint8_t holder_device, uint32_t lock,
					   uint8_t cause, bool inferred)
{
	return (union blame_key){
		.words = {waiter | (uint64_t)waiter_fn << 32, holder | (uint64_t)holder_fn << 32,
			  lock | (uint64_t)waiter_device << 32 | (uint64_t)holder_device << 40 |
				  (uint64_t)cause << 48 | (uint64_t)inferred << 56}};
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as blame_key_of fills them in");

struct blame_edge {
	union blame_key key;
	struct reading_position created; /* when it came up */
	uint64_t waits, last_wait;
	double waited_ns; /* shares of calls: parts of nanoseconds add up */
	double starting_ns; /* of that, as the program started: work_starting */
	double working_ns; /* of waited_ns, while the waiter's process worked: phase.h */
	/* of waited_ns, behind requests that processes would not make, or not in a row */
	double avoidable_ns;
};

/* Start with zeros. */
struct blame_edges {
	struct blame_edge *all; /* in the order they came up */
	size_t n;
	size_t last; /* number of the one asked for last, from 1; 0: none */
	struct edge_place *places; /* an open table of n_places, a power of two */
	size_t n_places;
};

struct model;
struct thread;

/* Whose index it is in a key; NULL unknown. */
const struct thread *edge_thread(const struct model *model, uint32_t index);

static inline bool blame_same_key(const union blame_key *a, const union blame_key *b)
{
	return !((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) |
		 (a->words[2] ^ b->words[2]));
}

/* For edges_find. */
struct blame_edge *edges_look_up(struct blame_edges *edges, const union blame_key *key);

/* The edge of that key; NULL: there is none. Valid until the next one is made. A lock that is held and then handed over
 * asks for the same one twice. */
static inline struct blame_edge *edges_find(struct blame_edges *edges, const union blame_key *key)
{
	if (edges->last && blame_same_key(&edges->all[edges->last - 1].key, key))
		return &edges->all[edges->last - 1];
	return edges_look_up(edges, key);
}

/* The edge of that key, made if it is new. Valid until the next one is asked for. */
struct blame_edge *edges_get(struct blame_edges *edges, const union blame_key *key);

void edges_release(struct blame_edges *edges);

/* All of them, in that order. */
#define EDGES_ITER(edge, edges) \
	for ((edge) = (edges)->all; (edges)->n && (edge) != (edges)->all + (edges)->n; (edge)++)

#endif
