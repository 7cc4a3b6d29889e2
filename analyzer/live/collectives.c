/*
 * analyzer/live/collectives.c: which rank is not where the others are? Each rank's streams say which operations it has
 * submitted, in which order, by NCCL's number of that function in that communicator, and which of them have ended. The first
 * that has not is where the rank is: submitted, but not entered while other work stands in front of it. Called by verdict.c.
 */
#include <stdlib.h>
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"
#include "verdict.h"

#define LISTED_MOST 8 /* ranks that are named */
#define DETAILS_MOST 3 /* ranks of which it is said what they do */

static int by_place(const void *x, const void *y)
{
	const struct live_rank *a = x, *b = y;

	return COMPARE(a->comm->hash, b->comm->hash) ?: COMPARE(a->comm->rank, b->comm->rank);
}

static uint64_t ago(const struct live_process *process, uint64_t ns)
{
	uint64_t now = timeline_ns(&process->trace->timeline, process->now);

	return now - min_u64(now, ns);
}

static const char *operation_text(const struct live_words *w, const struct recent_operation *op)
{
	return arena_printf(w->texts, "nccl%s #%llu", name_nccl_func(op->func),
			    (unsigned long long)op->seq);
}

/* ---- a rank ---------------------------------------------------------------------------------- */

static const struct process *model_of(const struct live_words *w, const struct live_rank *rank)
{
	return &w->live->model.processes[rank->process->index];
}

/* Has a thread of the process waited for a GPU since then? Those that ask over and over may do so all the time. */
static bool waits_for_gpu(const struct live_process *process, uint64_t since_ns)
{
	for (size_t i = 0; i < process->n_threads; i++) {
		const struct live_thread *t = process->threads[i];

		if (t->doing == LIVE_GPU && t->in_call &&
		    (t->call_ns == UNKNOWN_NS || t->call_ns >= ago(process, since_ns)))
			return true;
	}
	return false;
}

/* Has recording stopped since the operation was submitted? Then it may have ended, and others be submitted, unseen. But
 * not while a thread has been in a wait for the GPU since before. */
static bool may_have_gone_on(const struct live_words *w, const struct live_rank *rank,
			     const struct recent_operation *op)
{
	const struct process *model = model_of(w, rank);
	uint64_t stopped_ns = model->dormant_since_ns;

	if (!model->dormant) {
		if (op->ns >= model->opened_ns || !model->n_dormant_times)
			return false;
		stopped_ns = model->dormant_times[model->n_dormant_times - 1].begin_ns;
	}
	return !waits_for_gpu(rank->process, stopped_ns);
}

/* Where NCCL says nothing of its end, by what the threads do. */
static const struct recent_operation *first_open(const struct live_words *w,
						 const struct live_rank *rank)
{
	const struct recent_comm *comm = rank->comm;
	const struct recent_operation *op = comm->ops;

	if (!comm->n_ops || may_have_gone_on(w, rank, op))
		return NULL;
	return op->follows || waits_for_gpu(rank->process, UINT64_MAX) ? op : NULL;
}

static bool has_lost(const struct trace *trace)
{
	for (size_t i = 0; i < trace->n_streams; i++)
		if (trace->streams[i]->reader.losses.discarded)
			return true;
	return trace->board.present && trace->board.head.lost;
}

/* What is not recorded is unknown: it may have submitted more. */
static bool is_whole(const struct live_words *w, const struct live_rank *rank)
{
	const struct process *model = model_of(w, rank);

	if (model->dormant || has_lost(rank->process->trace))
		return false;
	return rank->op ? rank->op->ns >= model->opened_ns
			: !model->opened_ns && !w->live->recent.partly;
}

static bool same_op(const struct recent_operation *a, const struct recent_operation *b)
{
	return a->func == b->func && a->seq == b->seq;
}

/* Its place among those that have not ended; n_ops: it is none of them. */
static size_t place_of(const struct recent_comm *comm, const struct recent_operation *op)
{
	size_t i;

	for (i = 0; i < comm->n_ops && !same_op(&comm->ops[i], op); i++)
		;
	return i;
}

static bool has_queued(const struct live_rank *rank, const struct recent_operation *op)
{
	return rank->open && place_of(rank->comm, op) < rank->comm->n_ops;
}

static bool has_submitted(const struct live_rank *rank, const struct recent_operation *op)
{
	return rank->comm->submitted[op->func] && rank->comm->last_seq[op->func] >= op->seq;
}

static enum rank_at at_of(const struct live_rank *rank, const struct recent_operation *op)
{
	if (rank->open && same_op(rank->open, op))
		return RANK_AT;
	if (has_submitted(rank, op) && !has_queued(rank, op))
		return RANK_PAST;
	if (rank->open)
		return RANK_ELSEWHERE;
	return rank->whole ? RANK_MISSING : RANK_UNKNOWN;
}

/* ---- a communicator -------------------------------------------------------------------------- */

/* Its ranks, seen from an operation that has not ended. */
struct group {
	struct live_rank *ranks;
	size_t n;
	const struct recent_operation *op;
	uint64_t first_ns; /* ago, that the first of those that are at it submitted it */
	uint64_t n_at[RANK_UNKNOWN + 1];
	uint64_t behind; /* of those that are at it, work stands in front of */
};

static uint64_t not_there(const struct group *g)
{
	return g->n_at[RANK_ELSEWHERE] + g->n_at[RANK_MISSING] + g->n_at[RANK_UNKNOWN];
}

static void look_from(struct group *g, const struct recent_operation *op)
{
	g->op = op;
	g->first_ns = g->behind = 0;
	memset(g->n_at, 0, sizeof(g->n_at));
	for (size_t i = 0; i < g->n; i++) {
		struct live_rank *rank = &g->ranks[i];

		rank->at = at_of(rank, op);
		g->n_at[rank->at]++;
		if (rank->at != RANK_AT)
			continue;
		g->behind += rank->front != NULL;
		g->first_ns = max_u64(g->first_ns, ago(rank->process, rank->open->ns));
	}
}

/* One that more ranks are at, that fewer have ended, that is open for longer. */
static bool says_more(const struct group *a, const struct group *b)
{
	if (!b->op || a->n_at[RANK_AT] != b->n_at[RANK_AT])
		return !b->op || a->n_at[RANK_AT] > b->n_at[RANK_AT];
	if (a->n_at[RANK_PAST] != b->n_at[RANK_PAST])
		return a->n_at[RANK_PAST] < b->n_at[RANK_PAST];
	return a->first_ns > b->first_ns;
}

/* Seen from the operation that says most of those that ranks are in; op NULL: none has one. */
static void look_at(struct group *g)
{
	struct group most = {0};

	for (size_t i = 0; i < g->n; i++) {
		const struct recent_operation *op = g->ranks[i].open;

		for (size_t j = 0; op && j < i; j++) /* it has been seen from there */
			if (g->ranks[j].open && same_op(g->ranks[j].open, op))
				op = NULL;
		if (!op)
			continue;
		look_from(g, op);
		if (says_more(g, &most))
			most = *g;
	}
	if (most.op)
		look_from(g, most.op);
}

/* ---- in words -------------------------------------------------------------------------------- */

static bool is_at(const struct live_rank *rank)
{
	return rank->at == RANK_AT;
}

/* Nothing is known that it would have to wait for before. */
static bool is_in(const struct live_rank *rank)
{
	return is_at(rank) && !rank->front;
}

static bool is_behind(const struct live_rank *rank)
{
	return is_at(rank) && rank->front;
}

static bool is_unknown(const struct live_rank *rank)
{
	return rank->at == RANK_UNKNOWN;
}

static bool is_elsewhere(const struct live_rank *rank)
{
	return rank->at == RANK_ELSEWHERE || rank->at == RANK_MISSING;
}

/* "ranks 0, 1 and 3 have": those of which it is so. */
static const char *list_ranks(const struct live_words *w, const struct group *g,
			      bool (*is_so)(const struct live_rank *rank), const char *one,
			      const char *several)
{
	const char *text = "";
	uint64_t n = 0, known = 0;

	for (size_t i = 0; i < g->n; i++)
		n += is_so(&g->ranks[i]);
	for (size_t i = 0; i < g->n && known <= LISTED_MOST; i++) {
		if (!is_so(&g->ranks[i]))
			continue;
		if (++known > LISTED_MOST)
			text = arena_printf(w->texts, "%s and %llu more", text,
					    (unsigned long long)(n - LISTED_MOST));
		else
			text = arena_printf(w->texts, "%s%s%u", text,
					    known == 1   ? " "
					    : known == n ? " and "
							 : ", ",
					    g->ranks[i].comm->rank);
	}
	return arena_printf(w->texts, "rank%s%s %s", n == 1 ? "" : "s", text,
			    n == 1 ? one : several);
}

/* A sentence of its own: the chain may have ended with another thread. */
static const char *python_line(const struct live_words *w, const struct live_thread *t)
{
	const char *line = live_python_line(w, t);

	return line ? arena_printf(w->texts, ". The last recorded Python line of thread %u: %s",
				   t->tid, line)
		    : "";
}

/* "rank 1 has submitted it, but in front of it stands kernel delay, launched ...". */
static const char *front_text(const struct live_words *w, const struct live_rank *rank)
{
	return arena_printf(w->texts,
			    "in the stream of rank %u it is queued behind %s, of which no call "
			    "has seen the end",
			    rank->comm->rank, live_piece_text(w, rank->process, rank->front));
}

/* Have those that are at the group's operation left that one behind? */
static bool others_are_past(const struct group *g, const struct recent_operation *op)
{
	for (size_t i = 0; i < g->n; i++)
		if (is_at(&g->ranks[i]) && at_of(&g->ranks[i], op) == RANK_PAST)
			return true;
	return false;
}

static const char *where_it_is(const struct live_words *w, const struct group *g,
			       const struct live_rank *rank)
{
	const char *open = operation_text(w, rank->open),
		   *time = live_time(w, ago(rank->process, rank->open->ns));
	const char *front = rank->front ? arena_printf(w->texts, "; %s", front_text(w, rank)) : "";
	bool past = others_are_past(g, rank->open);

	return arena_printf(
		w->texts, "rank %u %s %s%s, for %s%s%s%s", rank->comm->rank,
		past ? "is still in" : "is in", open, past ? "" : " instead", time,
		has_queued(rank, g->op) ? arena_printf(w->texts, ", and has submitted %s behind it",
						       operation_text(w, g->op))
					: "",
		past ? "" : ": the ranks do not make the same operations in the same order", front);
}

static const char *what_it_does(const struct live_words *w, const struct group *g,
				const struct live_rank *rank)
{
	const struct live_thread *t;

	if (rank->at == RANK_ELSEWHERE)
		return where_it_is(w, g, rank);
	t = live_decisive_thread(rank->process, rank->op ? rank->op->thread->tid : rank->comm->tid);
	if (t && t->doing != LIVE_GOES_ON)
		return arena_printf(w->texts, "%s%s", live_chain_text(w, t), python_line(w, t));
	return arena_printf(w->texts, "rank %u makes other calls meanwhile", rank->comm->rank);
}

/* A sentence of each of them, of the first three. */
static const char *describe(const struct live_words *w, const struct group *g,
			    bool (*is_so)(const struct live_rank *rank),
			    const char *(*text_of)(const struct live_words *w,
						   const struct group *g,
						   const struct live_rank *rank))
{
	const char *text = "";
	size_t i, known = 0;

	for (i = 0; i < g->n && known < DETAILS_MOST; i++)
		if (is_so(&g->ranks[i])) {
			known++;
			text = arena_printf(w->texts, "%s %s.", text, text_of(w, g, &g->ranks[i]));
		}
	return text;
}

/* What the rank that has submitted most behind the operation has: if it is lack of others that stops it. */
static const char *queue_text(const struct live_words *w, const struct group *g)
{
	const struct live_rank *most = NULL;

	for (size_t i = 0; i < g->n; i++)
		if (is_at(&g->ranks[i]) && (!most || g->ranks[i].comm->n_ops > most->comm->n_ops))
			most = &g->ranks[i];
	if (!most || most->comm->n_ops < 2 || g->n_at[RANK_ELSEWHERE])
		return "";
	return arena_printf(w->texts, " Rank %u has submitted %s behind it.", most->comm->rank,
			    text_count(w->texts, most->comm->n_ops - 1, "further operation"));
}

/* "which ranks 0 and 2 have been in for 4 s": submitted is not entered. */
static const char *those_at(const struct live_words *w, const struct group *g)
{
	if (g->behind < g->n_at[RANK_AT])
		return arena_printf(w->texts, "which %s been in for %s",
				    list_ranks(w, g, is_in, "has", "have"),
				    live_time(w, g->first_ns));
	return arena_printf(w->texts, "which %s %s ago",
			    list_ranks(w, g, is_at, "submitted", "submitted"),
			    live_time(w, g->first_ns));
}

static const char *say_missing(const struct live_words *w, const struct group *g)
{
	const char *operation = operation_text(w, g->op);

	if (g->n_at[RANK_UNKNOWN] == not_there(g))
		return arena_printf(
			w->texts,
			"%s not known to have entered %s, %s: not all of the calls were "
			"recorded.%s%s",
			list_ranks(w, g, is_unknown, "is", "are"), operation, those_at(w, g),
			describe(w, g, is_unknown, what_it_does), queue_text(w, g));
	return arena_printf(w->texts, "%s not entered %s, %s.%s%s",
			    list_ranks(w, g, is_elsewhere, "has", "have"), operation,
			    those_at(w, g), describe(w, g, is_elsewhere, what_it_does),
			    queue_text(w, g));
}

static const char *describe_front(const struct live_words *w, const struct group *g,
				  const struct live_rank *rank)
{
	(void)g;
	return front_text(w, rank);
}

/* All that are known have submitted it. */
static const char *say_open(const struct live_words *w, const struct group *g)
{
	const char *operation = operation_text(w, g->op);
	bool all = g->ranks[0].comm->ranks <= g->n;

	if (g->behind)
		return arena_printf(
			w->texts,
			"%s has been open for %s: %s submitted it, and it does not end. It "
			"cannot begin before what is in front of it has ended:%s",
			operation, live_time(w, g->first_ns),
			list_ranks(w, g, is_at, "has", "have"),
			describe(w, g, is_behind, describe_front));
	return arena_printf(
		w->texts, "%s has been open for %s: %s in it, and it does not end%s.", operation,
		live_time(w, g->first_ns), list_ranks(w, g, is_at, "is", "are"),
		!all || g->n_at[RANK_PAST] ? ""
					   : ", although all ranks are in it: it moves no data");
}

static void say(const struct live_words *w, const struct group *g, struct verdicts *v)
{
	const char *text = not_there(g) ? say_missing(w, g) : say_open(w, g);
	uint32_t ranks = g->ranks[0].comm->ranks;

	if (ranks > g->n)
		text = arena_printf(w->texts,
				    "%s Of %u ranks %zu are known here: ask for the traces of all.",
				    text, ranks, g->n);
	verdict_add(v, VERDICT_COLLECTIVE, g->first_ns, text);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const char *state_of(const struct live_words *w, const struct group *g,
			    const struct live_rank *rank)
{
	const char *operation = operation_text(w, g->op);

	switch (rank->at) {
	case RANK_AT:
		return arena_printf(w->texts,
				    rank->front ? "has submitted %s behind other work" : "is in %s",
				    operation);
	case RANK_PAST:
		return arena_printf(w->texts, "has ended %s", operation);
	case RANK_ELSEWHERE:
		return arena_printf(w->texts, "is in %s, has not entered %s",
				    operation_text(w, rank->open), operation);
	case RANK_MISSING:
		return arena_printf(w->texts, "has not entered %s", operation);
	default:
		return arena_printf(w->texts, "is not known to have entered %s", operation);
	}
}

static void compare(const struct live_words *w, struct group *g, uint64_t after_ns,
		    struct verdicts *v)
{
	look_at(g);
	if (!g->op || g->first_ns < after_ns)
		return;
	for (size_t i = 0; i < g->n; i++) {
		g->ranks[i].involved = true;
		g->ranks[i].state = state_of(w, g, &g->ranks[i]);
	}
	if (v)
		say(w, g, v);
}

static struct live_rank rank_of(const struct live_words *w, const struct live_process *process,
				const struct recent_comm *comm)
{
	struct live_rank rank = {.comm = comm, .process = process};

	if (comm->operations) {
		rank.op = &comm->last;
		rank.operation = operation_text(w, rank.op);
		rank.ns = ago(process, rank.op->ns);
	}
	rank.open = first_open(w, &rank);
	rank.front = rank.open ? recent_in_front(&w->live->recent, rank.open) : NULL;
	rank.whole = is_whole(w, &rank);
	return rank;
}

static struct live_rank *list_all(const struct live_words *w, size_t *n)
{
	const struct live *live = w->live;
	struct live_rank *ranks = NULL;

	*n = 0;
	for (const struct recent_comm *comm = live->recent.comms; comm; comm = comm->hh.next)
		for (size_t i = 0; i < live->n_processes; i++) {
			if (live->processes[i].index != comm->key.process || !comm->known)
				continue;
			ranks = grow(ranks, *n, sizeof(*ranks));
			ranks[(*n)++] = rank_of(w, &live->processes[i], comm);
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
