/*
 * analyzer/expect/expect_join.c: the classes of calls of all parts of a set become one. Called by parallel/join.c.
 */
#include "expect.h"
#include "model/join.h"

/* What a new class costs was told from the others that there were; in the whole there may be more. */
static bool same_cost(const struct call_class *x, const struct call_class *y)
{
	return x->source == y->source && x->bounded == y->bounded &&
	       x->expected_ns == y->expected_ns && x->spread_ns == y->spread_ns &&
	       x->most_ns == y->most_ns && x->samples == y->samples &&
	       x->rested_ns == y->rested_ns && x->kernel_ns == y->kernel_ns;
}

static void join_calls_of_class(struct call_class *sum, const struct call_class *more)
{
	sum->calls += more->calls;
	sum->total_ns += more->total_ns;
}

/* struct expect, joined: classes, n_classes, n_copied; not: set, machine, records, outer, inner, last_ns, phases, profile, prior,
 * probed, prior_fits, processes, settled (copied from the whole), plain, n_plain, table, n_table, n_in_table, table_shift
 * (expect_class_of_key keeps them), arena (of a copy: its new classes). */
bool expect_join(struct expect *whole, struct expect *const *parts, struct join *join)
{
	struct creation_order order = {0};
	bool same = true;

	for (size_t i = 0; i < join->n; i++) {
		const struct expect *e = parts[i];

		for (size_t j = 0; j < e->n_classes; j++)
			if (j < e->n_copied)
				join_calls_of_class(whole->classes[j], e->classes[j]);
			else
				creation_order_add(&order, &e->classes[j]->created, i,
						   e->classes[j]);
	}
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++) {
		const struct call_class *class = order.all[i].what;
		struct call_class *sum = expect_class_of_key(whole, &class->key);

		same &= same_cost(sum, class);
		join_calls_of_class(sum, class);
	}
	creation_order_release(&order);
	return same || join_refuse(join, "calls of a kind whose cost comes from others of the set");
}
