/*
 * analyzer/idle/pieces.c: a thread's time in pieces, collected and cut. Called where a GPU is used by several processes: by
 * the main reading, and by the replay of journals (analyzer/parallel/), which has what other threads have collected.
 */
#include "pieces.h"

/* ---- collected ------------------------------------------------------------------------------- */

struct collecting {
	struct idle_pieces *pieces;
	const struct accounting *accounts;
	const struct host_threads *threads;
	const struct process *process;
	struct idle_span span;
};

static void collect(void *data, const struct idle_part *part, uint64_t ns)
{
	struct collecting *c = data;
	struct idle_pieces *pieces = c->pieces;

	if (pieces->n == pieces->room) {
		pieces->room = pieces->room ? 2 * pieces->room : 64;
		pieces->all = xrealloc(pieces->all, pieces->room, sizeof(*pieces->all));
	}
	pieces->all[pieces->n++] = (struct idle_piece){.part = *part, .ns = ns, .span = c->span};
}

static void collect_and_follow(void *data, const struct idle_part *part, uint64_t ns)
{
	struct collecting *c = data, holder = *c;
	size_t at = c->pieces->n;

	collect(c, part, ns);
	host_divide_holder(c->accounts, c->threads, c->process, part, ns, &holder.span, collect,
			   &holder);
	c->pieces->all[at].n_holder = (uint32_t)(c->pieces->n - at - 1);
}

void idle_pieces_collect(struct idle_pieces *pieces, const struct accounting *a,
			 const struct host_threads *threads, const struct thread_account *c,
			 uint64_t begin_ns, uint64_t end_ns)
{
	struct collecting collecting = {
		.pieces = pieces, .accounts = a, .threads = threads, .process = c->thread->process};

	pieces->n = 0;
	host_divide_spans(a, host_thread_find(threads, c->thread), c, begin_ns, end_ns,
			  &collecting.span, collect_and_follow, &collecting);
}

/* ---- cut ------------------------------------------------------------------------------------- */

/* part <= whole: the result is no more than ns, and ns where they are the same. */
static uint64_t in_proportion(uint64_t ns, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((unsigned __int128)ns * part / whole) : 0;
}

/* Those of the same time that are no waits, from this one on. */
static uint64_t rest_of(const struct idle_piece *piece, const struct idle_piece *end)
{
	const struct idle_piece *one;
	uint64_t ns = 0;

	for (one = piece; one < end && one->span.rest && one->span.begin_ns == piece->span.begin_ns;
	     one++)
		ns += one->ns;
	return ns;
}

void idle_pieces_cut(const struct idle_piece *all, size_t n, uint64_t begin_ns, uint64_t end_ns,
		     idle_cut_visit *visit, void *data)
{
	const struct idle_piece *end = all + n, *piece;
	uint64_t left_ns = end_ns - begin_ns, rest_ns, ns;

	for (piece = all; piece < end; piece += 1 + piece->n_holder) {
		if (piece->span.end_ns <= begin_ns)
			continue;
		ns = piece->ns;
		if (piece->span.begin_ns < begin_ns && piece->span.rest) {
			rest_ns = rest_of(piece, end);
			ns = in_proportion(ns, min_u64(left_ns, rest_ns), rest_ns);
		} else if (piece->span.begin_ns < begin_ns) {
			ns = in_proportion(ns, piece->span.end_ns - begin_ns,
					   piece->span.end_ns - piece->span.begin_ns);
		}
		ns = min_u64(ns, left_ns);
		left_ns -= ns;
		if (ns)
			visit(data, piece, ns);
	}
}

struct adding {
	struct idle_holder *holder;
	bool holds;
};

static void add_to_holder(void *data, const struct idle_piece *piece, uint64_t ns)
{
	const struct adding *to = data;

	idle_holder_add(to->holder, &piece->part, ns, to->holds);
}

void idle_pieces_follow(const struct idle_sums *sums, struct idle_sum *sum,
			const struct idle_piece *piece, uint64_t ns)
{
	struct adding to = {idle_sum_holder(sum, &piece->part, ns), sums->holds};
	uint64_t end_ns = piece->part.at_ns + piece->ns;

	if (to.holder)
		idle_pieces_cut(piece + 1, piece->n_holder, end_ns - ns, end_ns, add_to_holder,
				&to);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

bool idle_pieces_hold(const struct idle_piece *all, size_t n, int by)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		idle_part_hold(&all[i].part, by);
		any |= all[i].part.stack || all[i].part.stack_before;
	}
	return any;
}
