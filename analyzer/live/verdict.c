/*
 * analyzer/live/verdict.c: does it hang, and on what? Called by `snapshot` and `top`.
 */
#include <stdlib.h>
#include "recording.h"
#include "text/text.h"
#include "verdict.h"

const char *verdict_name(enum verdict_kind kind)
{
	static const char *const names[] = {"deadlock", "collective", "gpu",
					    "wait",     "dormant",    "fine"};

	return names[kind];
}

void verdict_add(struct verdicts *v, enum verdict_kind kind, uint64_t ns, const char *text)
{
	v->all = grow(v->all, v->n, sizeof(*v->all));
	v->all[v->n++] = (struct live_verdict){kind, text, ns};
}

void verdicts_release(struct verdicts *v)
{
	free(v->all);
	*v = (struct verdicts){0};
}

static bool lasts(uint64_t ns, uint64_t after_ns)
{
	return ns != UNKNOWN_NS && ns >= after_ns;
}

/* ---- cycles ---------------------------------------------------------------------------------- */

static const char *where_it_is(const struct live_words *w, const struct live_thread *t)
{
	const char *place = live_place(w, t);

	return arena_printf(w->texts, "%s%s%s%s", live_call_text(w, t), place ? " (" : "",
			    place ?: "", place ? ")" : "");
}

/* "which waits for lock L2, held by …" */
static const char *cycle_text(const struct live_words *w, const struct live_thread *first,
			      uint64_t *shortest_ns)
{
	const struct live_thread *t = first;
	const char *text = "";

	*shortest_ns = UNKNOWN_NS;
	if (first->holder == first) {
		*shortest_ns = first->wait_ns;
		return arena_printf(w->texts,
				    "DEADLOCK: %s, %s, waits for %s, which it holds itself",
				    live_thread_name(w, first), where_it_is(w, first),
				    live_wait_text(w, first));
	}
	do {
		bool join = t->doing == LIVE_JOIN;

		*shortest_ns = min_u64(*shortest_ns, t->wait_ns);
		text = arena_printf(
			w->texts, "%s%s waits for %s%s%s", text,
			t == first ? arena_printf(w->texts, "%s, %s,", live_thread_name(w, t),
						  where_it_is(w, t))
				   : arena_printf(w->texts, ", %s, which", where_it_is(w, t)),
			live_wait_text(w, t), join ? "" : ", held by ",
			join ? "" : live_thread_name(w, t->holder));
		t = t->holder;
	} while (t != first);
	return arena_printf(w->texts, "DEADLOCK: %s", text);
}

static uint64_t waiting_behind(const struct live *live, uint32_t cycle)
{
	uint64_t n = 0;

	for (size_t i = 0; i < live->n_threads; i++)
		n += !live->threads[i]->cycle && live->threads[i]->root->cycle == cycle;
	return n;
}

static void find_cycles(struct verdicts *v, const struct live_words *w)
{
	const struct live *live = w->live;
	uint32_t found = 0;

	for (size_t i = 0; i < live->n_threads; i++) {
		const struct live_thread *t = live->threads[i];
		const char *text;
		uint64_t behind, ns;

		if (!t->cycle || t->cycle <= found)
			continue;
		found = t->cycle;
		text = cycle_text(w, t, &ns);
		behind = waiting_behind(live, t->cycle);
		verdict_add(
			v, VERDICT_DEADLOCK, ns,
			arena_printf(w->texts,
				     "%s. It has lasted for %s; unless one of these waits has a "
				     "time limit, none of them can go on%s.",
				     text, live_time(w, ns),
				     behind ? arena_printf(w->texts, ", nor can %s behind them",
							   text_count(w->texts, behind, "thread"))
					    : ""));
	}
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static bool waits_for_gpu(const struct live_thread *t, uint64_t after_ns)
{
	return t->doing == LIVE_GPU && lasts(t->call_ns, after_ns);
}

/* Of several threads of one GPU's: the one that others wait for, or that waits longest. */
static bool is_better(const struct live_thread *t, const struct live_thread *best)
{
	if (!best || t->waiters != best->waiters)
		return !best || t->waiters > best->waiters;
	return t->call_ns > best->call_ns;
}

static bool in_collective(const struct live_rank *ranks, size_t n,
			  const struct live_process *process)
{
	for (size_t i = 0; i < n; i++)
		if (ranks[i].process == process && ranks[i].involved && ranks[i].at != RANK_PAST)
			return true;
	return false;
}

static void say_gpu(struct verdicts *v, const struct live_words *w, const struct live_thread *best,
		    uint64_t others)
{
	const struct recent_work *work = live_awaited_work(w->live, best);
	const char *gpu = live_wait_text(w, best), *also = "", *name = live_thread_name(w, best);
	const char *rank = text_rank(w->texts, best->process->trace), *text;

	if (others)
		also = arena_printf(w->texts, ". Behind it: %s",
				    text_count(w->texts, others, "other thread"));
	if (work)
		text = arena_printf(
			w->texts,
			"%s%s%s has work that does not end, and may never end: %s. Waiting "
			"for it: %s, which %s%s.",
			gpu, rank ? " of " : "", rank ?: "", live_work_text(w, best->process, work),
			name, live_doing_text(w, best), also);
	else
		text = arena_printf(
			w->texts,
			"%s %s%s. What the GPU has to do is not known from the calls that "
			"were recorded.",
			name, live_doing_text(w, best), also);
	verdict_add(v, VERDICT_GPU, best->call_ns, text);
}

/* A verdict for each GPU of each process that is waited for, unless a collective is what it is in. */
static void find_gpus(struct verdicts *v, const struct live_words *w, uint64_t after_ns,
		      const struct live_rank *ranks, size_t n_ranks)
{
	const struct live *live = w->live;

	for (size_t i = 0; i < live->n_processes; i++) {
		const struct live_process *p = &live->processes[i];

		if (in_collective(ranks, n_ranks, p))
			continue;
		for (unsigned int device = 0; device <= SPY_DEVICE_NONE; device++) {
			const struct live_thread *best = NULL;
			uint64_t others = 0;

			for (size_t j = 0; j < p->n_threads; j++) {
				const struct live_thread *t = p->threads[j];

				if (t->device != device || !waits_for_gpu(t, after_ns))
					continue;
				others += 1 + t->waiters;
				if (is_better(t, best))
					best = t;
			}
			if (best)
				say_gpu(v, w, best, others - 1);
		}
	}
}

/* ---- other waits ----------------------------------------------------------------------------- */

/* Of those that wait for a lock, and whose chains end with that thread: the one that waits for longest. Who waits for a
 * thread's end may do so all the time. */
static const struct live_thread *longest_behind(const struct live *live,
						const struct live_thread *root)
{
	const struct live_thread *longest = NULL;

	for (size_t i = 0; i < live->n_threads; i++) {
		const struct live_thread *t = live->threads[i];

		if (t != root && t->root == root && t->doing == LIVE_LOCK &&
		    t->wait_ns != UNKNOWN_NS && (!longest || t->wait_ns > longest->wait_ns))
			longest = t;
	}
	return longest;
}

static void find_roots(struct verdicts *v, const struct live_words *w, uint64_t after_ns)
{
	const struct live *live = w->live;

	for (size_t i = 0; i < live->n_threads; i++) {
		const struct live_thread *t = live->threads[i], *behind;
		const char *also = "";

		if (t->cycle || t->root != t || waits_for_gpu(t, after_ns))
			continue;
		behind = t->waiters ? longest_behind(live, t) : NULL;
		if (behind && lasts(behind->wait_ns, after_ns)) {
			if (t->waiters > 1)
				also = arena_printf(
					w->texts, ". Behind it: %s",
					text_count(w->texts, t->waiters - 1, "other thread"));
			verdict_add(
				v, VERDICT_WAIT, behind->wait_ns,
				arena_printf(w->texts, "%s%s.", live_chain_text(w, behind), also));
		} else if (t->in_call && t->doing != LIVE_GOES_ON && lasts(t->call_ns, after_ns)) {
			if (t->doing == LIVE_LOCK)
				also = ", whose holder is unknown";
			verdict_add(v, VERDICT_WAIT, t->call_ns,
				    arena_printf(w->texts, "%s %s%s.", live_thread_name(w, t),
						 live_doing_text(w, t), also));
		}
	}
}

/* ---- what is not seen ------------------------------------------------------------------------ */

/* Where recording is dormant, calls leave no trace on the board: what its threads do is unknown, not fine. */
static void say_dormant(struct verdicts *v, const struct live_words *w)
{
	const struct live *live = w->live;
	const struct live_process *first = NULL;
	uint64_t n = 0;

	for (size_t i = 0; i < live->n_processes; i++) {
		if (!live_is_dormant(&live->processes[i]))
			continue;
		n++;
		first = first ?: &live->processes[i];
	}
	if (!n)
		return;
	verdict_add(
		v, VERDICT_DORMANT, live_recording_ns(first),
		arena_printf(w->texts,
			     "what the threads of %s%s do cannot be known, because recording is "
			     "%s. The next window opens with %s; it takes a CUDA call of the "
			     "program, and a program that hangs makes none.",
			     text_process(w->texts, first->trace),
			     n > 1 ? arena_printf(w->texts, " and of %s",
						  text_count(w->texts, n - 1, "other process"))
				   : "",
			     live_recording_text(w->texts, first),
			     live_opens_text(w->texts, first)));
}

/* ---- nothing --------------------------------------------------------------------------------- */

static void say_fine(struct verdicts *v, const struct live_words *w, uint64_t after_ns)
{
	const struct live *live = w->live;
	const struct live_thread *longest = NULL;
	uint64_t calls = 0, threads = 0, apart_ns = 1;
	const char *else_text = "";

	for (size_t i = 0; i < live->n_processes; i++) {
		calls += live->processes[i].calls + live->processes[i].counted;
		apart_ns = max_u64(apart_ns, live->processes[i].apart_ns);
	}
	for (size_t i = 0; i < live->n_threads; i++) {
		const struct live_thread *t = live->threads[i];

		threads += t->slot != 0;
		if (t->waits && t->outside && lasts(t->wait_ns, after_ns) &&
		    (!longest || t->wait_ns > longest->wait_ns))
			longest = t;
	}
	if (!calls && longest)
		else_text = arena_printf(w->texts, " No calls are made now; %s %s.",
					 live_thread_name(w, longest), live_doing_text(w, longest));
	verdict_add(
		v, VERDICT_FINE, UNKNOWN_NS,
		arena_printf(w->texts,
			     "nothing hangs: no thread has been in a CUDA call, or waited for a "
			     "lock, for %s or longer; %s, %s a second.%s",
			     text_time(w->texts, after_ns), text_count(w->texts, threads, "thread"),
			     text_count(w->texts, calls * 1000000000 / apart_ns, "call"),
			     else_text));
}

static bool all_dormant(const struct live *live)
{
	for (size_t i = 0; i < live->n_processes; i++)
		if (!live_is_dormant(&live->processes[i]))
			return false;
	return true;
}

void verdicts_find(struct verdicts *v, const struct live_words *w, uint64_t after_ns)
{
	struct live_rank *ranks;
	size_t n_ranks, hangs;

	*v = (struct verdicts){0};
	find_cycles(v, w);
	ranks = ranks_compare(w, after_ns, &n_ranks, v);
	find_gpus(v, w, after_ns, ranks, n_ranks);
	find_roots(v, w, after_ns);
	hangs = v->n;
	say_dormant(v, w);
	if (!hangs && (!v->n || !all_dormant(w->live)))
		say_fine(v, w, after_ns);
	free(ranks);
}
