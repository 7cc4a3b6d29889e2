/*
 * analyzer/findings/site_stacks.h: the stacks of a site's calls, and for how much of its cost each
 * stands. Used by sites.c while records go by, and by finding.c.
 *
 * Few calls have a stack: the first ones at a place, and ever fewer later (shim/stack/stack.c). So
 * each stands for the calls like it that came since the one before; what comes after the last is
 * shared out as what came before. Else the lines of a program's start would be told, of which there
 * are most stacks, and not those of its work. Calls are alike that moved as many bytes and were
 * both long or both short, for of these the recorder takes samples apart; calls of other bytes are
 * made in other lines. A call that has a stack for its length alone stands only for itself.
 */
#ifndef CUDASPY_SITE_STACKS_H
#define CUDASPY_SITE_STACKS_H

#include "model/model.h"

#define SITE_STACKS 24
#define SITE_LIKES 8

struct site_stack {
	const struct stack
		*stack; /* of the costliest of the calls that have this one; NULL: none */
	uint64_t ns, cost_ns; /* how long that call took, and what it cost */
	uint64_t weight; /* what the calls cost for which it stands, and a nanosecond for each */
	uint32_t like; /* 1 + the row below; 0: it stands for itself */
};

/* Start with zeros. Most sites have none, or few. */
struct site_stacks {
	struct site_stack *all; /* n of them, SITE_STACKS at most */
	struct site_like {
		uint64_t bytes;
		bool is_long;
		uint64_t left; /* weight of the calls since the last stack */
	} * likes; /* SITE_LIKES at most: the last is also for all that find no room */
	uint32_t n, n_likes;
};

struct site_call {
	uint64_t bytes, ns, cost_ns;
	const struct stack *stack; /* NULL: none */
	bool outlier; /* it has one because none was told of that was half as long */
};

/* One more call, in the order of their claims. */
void site_stacks_call(struct site_stacks *s, const struct site_call *call);

/* No more calls will come. Once, before the others below. */
void site_stacks_end(struct site_stacks *s);

void site_stacks_add(struct site_stacks *sum, const struct site_stacks *more);

/* Is a part of the weight next to nothing? */
static inline bool site_stacks_minor(uint64_t weight, uint64_t all)
{
	return weight < all / 50;
}

void site_stacks_release(struct site_stacks *s);

#endif
