/*
 * analyzer/live/collectives.c: which rank is not where the others are? Each rank's streams say which operations it has
 * submitted, by NCCL's number of that function in that communicator, and which of them have run. Called by verdict.c.
 */
#include <stdlib.h>
#include "text/text.h"
#include "trace/names.h"
#include "verdict.h"

static int by_place(const void *x, const void *y)
{
	const struct live_rank *a = x, *b = y;

	if (a->comm->hash != b->comm->hash)
		return a->comm->hash < b->comm->hash ? -1 : 1;
	return (a->comm->rank > b->comm->rank) - (a->comm->rank < b->comm->rank);
}

static uint64_t ago(const struct live_process *process, uint64_t ns)
{
	uint64_t now = timeline_ns(&process->trace->timeline, process->now);

	return now - min_u64(now, ns);
}

static const char *operation_text(const struct live_words *w, uint8_t func, uint64_t seq)
{
	return arena_printf(w->texts, "nccl%s #%llu", name_nccl_func(func),
			    (unsigned long long)seq);
}

static bool is_compared(uint8_t func)
{
	return func != SPY_NCCL_SEND && func != SPY_NCCL_RECV && func != SPY_NCCL_OTHER;
}

/* Does a thread of the process wait for a GPU? */
static bool waits_for_gpu(const struct live_process *process)
{
	size_t i;

	for (i = 0; i < process->n_threads; i++)
		if (process->threads[i]->doing == LIVE_GPU)
			return true;
	return false;
}

/* Has it begun and not ended? Where NCCL says nothing of its end, by what the threads do. */
static bool is_open(const struct live_rank *rank, const struct recent_op *op)
{
	if (!op->seen || op->ran || op->graph)
		return false;
	return op->follows || waits_for_gpu(rank->process);
}

/* One communicator: its ranks, of which what is asked is one function's operations. */
struct group {
	struct live_rank *ranks;
	size_t n;
	uint8_t func;
	uint64_t seq; /* the last that any has submitted */
	uint64_t first_ns; /* ago, that the first of those in it submitted it */
	uint64_t in, missing;
};

static bool look_at_func(struct group *g, uint8_t func, bool partly)
{
	uint64_t open = 0, seq = 0;
	size_t i;

	g->func = func;
	g->first_ns = g->in = g->missing = 0;
	for (i = 0; i < g->n; i++)
		if (g->ranks[i].comm->last[func].seen)
			seq = max_u64(seq, g->ranks[i].comm->last[func].seq);
	g->seq = seq;
	for (i = 0; i < g->n; i++) {
		const struct recent_op *op = &g->ranks[i].comm->last[func];

		if (op->seen && op->seq == seq) {
			g->in++;
			open += is_open(&g->ranks[i], op);
			g->first_ns = max_u64(g->first_ns, ago(g->ranks[i].process, op->ns));
		} else if (op->seen || !partly) {
			g->missing++;
		}
	}
	return g->in && open;
}

static const char *list_ranks(const struct live_words *w, const struct group *g, bool missing)
{
	const char *text = "";
	uint64_t n = missing ? g->missing : g->in, told = 0;
	size_t i;

	for (i = 0; i < g->n; i++) {
		const struct recent_op *op = &g->ranks[i].comm->last[g->func];
		bool in = op->seen && op->seq == g->seq;

		if (in == missing)
			continue;
		if (++told > 8)
			return arena_printf(w->texts, "ranks%s and %llu more", text,
					    (unsigned long long)(n - 8));
		text = arena_printf(w->texts, "%s%s%u", text,
				    told == 1   ? " "
				    : told == n ? " and "
						: ", ",
				    g->ranks[i].comm->rank);
	}
	return arena_printf(w->texts, "rank%s%s", n == 1 ? "" : "s", text);
}

/* Is it in another operation of the communicator than the others? */
static bool is_in_another(const struct live_rank *rank, const struct group *g)
{
	return rank->op && is_compared(rank->comm->last_func) && rank->comm->last_func != g->func &&
	       is_open(rank, rank->op);
}

/* A sentence of its own: the chain may have ended with another thread. */
static const char *python_line(const struct live_words *w, const struct live_thread *t)
{
	const char *line = live_python_line(w, t);

	return line ? arena_printf(w->texts, ". The last recorded Python line of thread %u: %s",
				   t->tid, line)
		    : "";
}

static const char *what_it_does(const struct live_words *w, const struct group *g,
				const struct live_rank *rank)
{
	const struct live_thread *t = live_that_matters(
		rank->process, rank->op ? rank->op->thread->tid : rank->comm->tid);

	if (is_in_another(rank, g))
		return arena_printf(
			w->texts,
			"rank %u is in %s instead, for %s: the ranks do not make the same "
			"operations in the same order",
			rank->comm->rank, rank->operation, live_time(w, rank->ns));
	if (t && t->doing != LIVE_GOES_ON)
		return arena_printf(w->texts, "%s%s", live_chain_text(w, t), python_line(w, t));
	return arena_printf(w->texts, "rank %u makes other calls meanwhile", rank->comm->rank);
}

static const char *what_they_do(const struct live_words *w, const struct group *g)
{
	const char *text = "";
	size_t i, told = 0;

	for (i = 0; i < g->n && told < 3; i++)
		if (g->ranks[i].missing) {
			told++;
			text = arena_printf(w->texts, "%s %s.", text,
					    what_it_does(w, g, &g->ranks[i]));
		}
	return text;
}

static void say(const struct live_words *w, const struct group *g, struct verdicts *v)
{
	const char *operation = operation_text(w, g->func, g->seq);
	uint32_t ranks = g->ranks[0].comm->ranks;
	const char *unknown = "";

	if (ranks > g->n)
		unknown = arena_printf(
			w->texts, " Of %u ranks %zu are known here: ask for the traces of all.",
			ranks, g->n);
	if (g->missing)
		verdict_add(v, VERDICT_COLLECTIVE, g->first_ns,
			    arena_printf(w->texts,
					 "%s %s not entered %s, which %s %s been in for %s.%s%s",
					 list_ranks(w, g, true), g->missing == 1 ? "has" : "have",
					 operation, list_ranks(w, g, false),
					 g->in == 1 ? "has" : "have", live_time(w, g->first_ns),
					 what_they_do(w, g), unknown));
	else
		verdict_add(
			v, VERDICT_COLLECTIVE, g->first_ns,
			arena_printf(
				w->texts,
				"%s has been open for %s: %s %s in it, and it does not end%s.%s",
				operation, live_time(w, g->first_ns), list_ranks(w, g, false),
				g->in == 1 ? "is" : "are",
				ranks > g->n ? ""
					     : ", though all are: what moves the data stands still",
				unknown));
}

static void mark(const struct live_words *w, struct group *g)
{
	size_t i;

	for (i = 0; i < g->n; i++) {
		struct live_rank *rank = &g->ranks[i];
		const struct recent_op *op = &rank->comm->last[g->func];

		if (op->seen && op->seq == g->seq) {
			rank->waits = is_open(rank, op);
			rank->state = rank->waits ? arena_printf(w->texts, "is in %s",
								 operation_text(w, g->func, g->seq))
						  : "has ended it";
		} else {
			rank->missing = true;
			rank->state =
				arena_printf(w->texts, "%s%shas not entered %s",
					     is_in_another(rank, g) ? "is in " : "",
					     is_in_another(rank, g) ? arena_printf(w->texts, "%s, ",
										   rank->operation)
								    : "",
					     operation_text(w, g->func, g->seq));
		}
	}
}

/* One that somebody is missing in, that more ranks are in, that is open for longer. */
static bool is_worse(const struct group *a, const struct group *b)
{
	if (!b->n || !a->missing != !b->missing)
		return !b->n || a->missing;
	return a->in != b->in ? a->in > b->in : a->first_ns > b->first_ns;
}

/* Of the functions whose operations are open the one that says most. */
static void compare(const struct live_words *w, struct group *g, uint64_t after_ns,
		    struct verdicts *v)
{
	struct group worst = {0};
	uint8_t func;

	for (func = 0; func < SPY_NCCL_FUNCS; func++)
		if (is_compared(func) && look_at_func(g, func, w->live->recent.partly) &&
		    is_worse(g, &worst))
			worst = *g;
	if (!worst.n || worst.first_ns < after_ns)
		return;
	mark(w, &worst);
	if (v)
		say(w, &worst, v);
}

static struct live_rank *list_all(const struct live_words *w, size_t *n)
{
	const struct live *live = w->live;
	const struct recent_comm *comm;
	struct live_rank *ranks = NULL;
	size_t i;

	*n = 0;
	for (comm = live->recent.comms; comm; comm = comm->hh.next)
		for (i = 0; i < live->n_processes; i++) {
			struct live_rank *rank;

			if (live->processes[i].index != comm->key.process || !comm->told)
				continue;
			ranks = grow(ranks, *n, sizeof(*ranks));
			rank = &ranks[(*n)++];
			*rank = (struct live_rank){.comm = comm, .process = &live->processes[i]};
			if (!comm->operations)
				continue;
			rank->op = &comm->last[comm->last_func];
			rank->operation = operation_text(w, comm->last_func, rank->op->seq);
			rank->ns = ago(rank->process, rank->op->ns);
		}
	return ranks;
}

struct live_rank *ranks_compare(const struct live_words *w, uint64_t after_ns, size_t *n,
				struct verdicts *v)
{
	struct live_rank *ranks = list_all(w, n);
	size_t i, from;

	if (*n)
		qsort(ranks, *n, sizeof(*ranks), by_place);
	for (from = i = 0; i < *n; i++) {
		if (i + 1 < *n && ranks[i + 1].comm->hash == ranks[from].comm->hash)
			continue;
		compare(w, &(struct group){.ranks = &ranks[from], .n = i + 1 - from}, after_ns, v);
		from = i + 1;
	}
	return ranks;
}
