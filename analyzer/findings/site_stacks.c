/*
 * analyzer/findings/site_stacks.c: the stacks of a site's calls, and for how much of its cost each
 * stands. Called by sites.c and finding.c.
 */
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "site_stacks.h"

static bool same_way(const struct stack *a, const struct stack *b)
{
	return a == b || (a->process == b->process && a->n == b->n && a->n_python == b->n_python &&
			  !memcmp(a->frames, b->frames, a->n * sizeof(a->frames[0])) &&
			  !memcmp(a->python, b->python, a->n_python * sizeof(a->python[0])));
}

void site_stacks_release(struct site_stacks *s)
{
	free(s->all);
	free(s->likes);
	*s = (struct site_stacks){0};
}

/* With those of the same way to the call, or in the place of the lightest. */
static void keep(struct site_stacks *s, const struct site_stack *stack)
{
	struct site_stack *into = s->all;
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->all[i].like == stack->like && same_way(s->all[i].stack, stack->stack))
			break;
		if (s->all[i].weight < into->weight)
			into = &s->all[i];
	}
	if (i == SITE_STACKS) {
		if (into->weight < stack->weight)
			*into = *stack;
		return;
	}
	if (i == s->n) {
		s->all = grow(s->all, s->n, sizeof(*s->all));
		s->all[s->n++] = (struct site_stack){0};
	}
	into = &s->all[i];
	if (!into->stack || stack->cost_ns > into->cost_ns) {
		into->stack = stack->stack;
		into->ns = stack->ns;
		into->cost_ns = stack->cost_ns;
	}
	into->like = stack->like;
	into->weight += stack->weight;
}

static uint32_t like_of(struct site_stacks *s, const struct site_call *call)
{
	bool is_long = call->ns >= ACCOUNT_LONG_NS;
	uint32_t i;

	for (i = 0; i < s->n_likes; i++)
		if (s->likes[i].bytes == call->bytes && s->likes[i].is_long == is_long)
			return i;
	if (i == SITE_LIKES)
		return i - 1;
	s->likes = grow(s->likes, i, sizeof(*s->likes));
	s->likes[i] = (struct site_like){.bytes = call->bytes, .is_long = is_long};
	return s->n_likes++;
}

void site_stacks_call(struct site_stacks *s, const struct site_call *call)
{
	uint32_t i = like_of(s, call);
	uint64_t weight = call->cost_ns + 1;

	if (!call->stack) {
		s->likes[i].left += weight;
		return;
	}
	if (!call->outlier) {
		weight += s->likes[i].left;
		s->likes[i].left = 0;
	}
	keep(s, &(struct site_stack){.stack = call->stack,
				     .ns = call->ns,
				     .cost_ns = call->cost_ns,
				     .weight = weight,
				     .like = call->outlier ? 0 : i + 1});
}

/* What the stacks of the row weigh. */
static uint64_t weight_of(const struct site_stacks *s, uint32_t like)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].like == like + 1)
			sum += s->all[i].weight;
	return sum;
}

/* The row whose stacks are the best for calls of that one: itself; of as many bytes; SITE_LIKES:
 * none. */
static uint32_t nearest(const struct site_stacks *s, uint32_t like)
{
	if (weight_of(s, like))
		return like;
	for (uint32_t i = 0; i < s->n_likes; i++)
		if (s->likes[i].bytes == s->likes[like].bytes && weight_of(s, i))
			return i;
	return SITE_LIKES;
}

void site_stacks_end(struct site_stacks *s)
{
	double more[SITE_LIKES] = {0}; /* times what it weighs */
	uint32_t i, to;

	for (i = 0; i < s->n_likes; i++) {
		to = nearest(s, i);
		if (to < SITE_LIKES)
			more[to] += (double)s->likes[i].left / (double)weight_of(s, to);
	}
	for (i = 0; i < s->n; i++)
		if (s->all[i].like)
			s->all[i].weight +=
				(uint64_t)(more[s->all[i].like - 1] * (double)s->all[i].weight);
}

void site_stacks_add(struct site_stacks *sum, const struct site_stacks *more)
{
	for (size_t i = 0; i < more->n; i++) {
		struct site_stack stack = more->all[i];

		keep(sum, &stack);
	}
}
