/*
 * analyzer/findings/of_ranks.c: findings that ranks of a job have in common, as one. Called by finding.c.
 */
#include <stdlib.h>
#include <string.h>
#include "of_ranks.h"
#include "rank_words.h"
#include "text/text.h"

#define NAMED_MOST 3 /* more ranks are counted */

static const struct rank *rank_of(const struct ranks *ranks, const struct finding *f)
{
	const struct process *process = f->origin.process;

	return (f->detector->of_code || f->detector->of_function) && process
		       ? ranks->by_process[process->trace->index]
		       : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ?: "", b ?: "");
}

/* Where the most of it is. */
static bool in_one_function(const struct finding *x, const struct finding *y)
{
	const struct python_code *a, *b;

	if (!x->stacks.n_python || !y->stacks.n_python)
		return false;
	a = x->stacks.python[0].at.code;
	b = y->stacks.python[0].at.code;
	return a && b && same_text(a->file, b->file) && same_text(a->function, b->function);
}

static bool are_one(const struct ranks *ranks, const struct finding *x, const struct finding *y)
{
	const struct rank *a = rank_of(ranks, x), *b = rank_of(ranks, y);

	return x->detector == y->detector && a && b && a != b && same_text(a->job, b->job) &&
	       same_text(x->origin.process->trace->program, y->origin.process->trace->program) &&
	       (x->detector->of_code || in_one_function(x, y));
}

/* "; the same of rank 1 (GPU 1): 3.3 s", "; the same of 7 more ranks: 3.3 s at most"; NULL: none is marked. */
static const char *others_text(struct arena *texts, const struct ranks *ranks,
			       const struct finding *all, const bool *joined, size_t n)
{
	const char *named = "";
	uint64_t most_ns = 0;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (!joined[i])
			continue;
		named = arena_printf(texts, "%s%s%s", named, count++ ? ", " : "",
				     text_rank_where(texts, rank_of(ranks, &all[i])));
		most_ns = max_u64(most_ns, cost_ns(&all[i].cost));
	}
	if (!count)
		return NULL;
	if (count > NAMED_MOST)
		named = arena_printf(texts, "%zu more ranks", count);
	return arena_printf(texts, "; the same of %s: %s%s", named, text_time(texts, most_ns),
			    count > 1 ? " at most" : "");
}

/* Marks those that are one with the first, and returns which of all of them costs most. That is not marked. */
static size_t find_others(const struct found *found, const struct ranks *ranks, size_t first,
			  bool *joined)
{
	size_t most = first;

	memset(joined, 0, found->n * sizeof(*joined));
	for (size_t i = first + 1; i < found->n; i++) {
		joined[i] = are_one(ranks, &found->all[first], &found->all[i]);
		if (joined[i] && cost_ns(&found->all[i].cost) > cost_ns(&found->all[most].cost))
			most = i;
	}
	joined[first] = most != first;
	joined[most] = false;
	return most;
}

static void join(struct finding *most, struct finding *other)
{
	most->origin.processes++;
	if (most->origin.host != other->origin.host)
		most->origin.host = NULL;
	most->cost.idle_gpu_ns += other->cost.idle_gpu_ns;
	thread_costs_release(&other->cost.threads);
}

static void join_marked(struct found *found, const struct ranks *ranks, struct finding *most,
			const bool *joined)
{
	const char *others = others_text(found->texts, ranks, found->all, joined, found->n);
	size_t n = 0;

	if (!others)
		return;
	most->what = arena_printf(found->texts, "%s%s", most->what, others);
	for (size_t i = 0; i < found->n; i++)
		if (joined[i])
			join(most, &found->all[i]);
	for (size_t i = 0; i < found->n; i++)
		if (!joined[i])
			found->all[n++] = found->all[i];
	found->n = n;
}

void findings_join_ranks(struct found *found, const struct ranks *ranks)
{
	bool *joined = xcalloc(found->n + 1, sizeof(*joined));

	for (size_t i = 0; i < found->n; i++)
		if (rank_of(ranks, &found->all[i]))
			join_marked(found, ranks, &found->all[find_others(found, ranks, i, joined)],
				    joined);
	free(joined);
}
