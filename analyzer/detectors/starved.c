/*
 * analyzer/detectors/starved.c: what the detectors of waits between calls have in common. Called when all records have
 * been read.
 */
#include <stdlib.h>
#include "starved.h"
#include "findings/idle_price.h"
#include "idle/callers.h"
#include "model/python.h"
#include "text/text.h"
#include "text/where.h"

#define LEAST_PART 10 /* of a thread's working time */
#define LEAST_NS 10000000
#define NEXT_TO_NOTHING 20 /* so small a part of the time needs no words */

/* Of a thread, or of the threads of a process that count. */
struct starved {
	uint64_t ns, waits, threads;
	const struct thread *worst; /* the one that waited longest */
	uint64_t worst_ns;
	/* Of that thread: a sum of the line with the most of it, or where no line is known the largest one; what that line has, and all
	 * lines; and what is called otherwise. */
	const struct idle_sum *most;
	uint64_t most_ns, lined_ns, otherwise_ns;
	struct thread_costs costs;
};

static bool is_of(const struct idle_sum *sum, enum idle_cause cause, const struct model *model)
{
	return sum->key.cause == cause && sum->ns && sum->key.owner < model->n_threads;
}

static bool is_nearly_all(uint64_t part_ns, uint64_t ns)
{
	return part_ns >= ns - ns / NEXT_TO_NOTHING;
}

static bool has_line(const struct idle_sum *sum)
{
	return sum->key.code;
}

static bool same_line(const struct idle_sum *a, const struct idle_sum *b)
{
	return a == b || (has_line(a) && a->key.code == b->key.code && a->key.line == b->key.line);
}

static bool is_more(const struct idle_sum *sum, const struct idle_sum *most)
{
	if (!most || has_line(sum) != has_line(most))
		return !most || has_line(sum);
	return sum->ns > most->ns;
}

static void add_sum(struct starved *s, const struct idle_sum *sum)
{
	s->ns += sum->ns;
	s->waits += sum->count;
	if (is_more(sum, s->most))
		s->most = sum;
}

/* Beside the place with the most of it. */
static void see_place(struct starved *s, const struct idle_sum *sum)
{
	const char *name = idle_name_of_wait(&sum->longest);

	if (same_line(sum, s->most))
		s->most_ns += sum->ns;
	if (sum->longest.stack && name != idle_name_of_wait(&s->most->longest))
		s->otherwise_ns += sum->ns;
	if (has_line(sum))
		s->lined_ns += sum->ns;
}

static bool is_much(const struct starved *s, const struct host_thread *h)
{
	return s->ns >= LEAST_NS && s->ns >= (h->outside_ns + h->in_calls_ns) / LEAST_PART;
}

static void add_thread(struct starved *process, const struct starved *s,
		       const struct thread *thread)
{
	process->ns += s->ns;
	process->waits += s->waits;
	process->threads++;
	thread_costs_add(&process->costs, thread, (double)s->ns, (double)s->ns);
	if (process->worst && s->ns <= process->worst_ns)
		return;
	process->worst = thread;
	process->worst_ns = s->ns;
	process->most = s->most;
	process->most_ns = s->most_ns;
	process->otherwise_ns = s->otherwise_ns;
	process->lined_ns = s->lined_ns;
}

/* Sums of threads are by their index. */
static void add_up(const struct idle *idle, enum idle_cause cause, struct starved *processes)
{
	const struct model *model = idle->accounts->model;
	struct starved *threads = xcalloc(model->n_threads + 1, sizeof(*threads));

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (is_of(sum, cause, model))
			add_sum(&threads[sum->key.owner], sum);
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (is_of(sum, cause, model))
			see_place(&threads[sum->key.owner], sum);
	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (h && is_much(&threads[i], h))
			add_thread(&processes[thread->process->trace->index], &threads[i], thread);
	}
	free(threads);
}

/* ", at train.py:21 in step", ", 79 % of it at train.py:21 in step". Few waits have a line, as few have a stack: these stand for
 * all. */
static const char *place_text(struct arena *texts, const struct starved *s)
{
	struct python_line line = python_line(s->most->longest.stack);
	const char *python = text_python(texts, &line), *known = "";

	if (!python)
		return "";
	if (is_nearly_all(s->most_ns, s->lined_ns))
		return arena_printf(texts, ", at %s", python);
	if (!is_nearly_all(s->lined_ns, s->worst_ns))
		known = ", as far as its lines are known,";
	return arena_printf(texts, ", %s of it%s at %s",
			    text_percent(texts, (double)s->most_ns, (double)s->lined_ns), known,
			    python);
}

static const char *what(const struct accounting *a, struct arena *texts, const struct starved *s,
			const char *waited)
{
	const char *name = is_nearly_all(s->worst_ns - s->otherwise_ns, s->worst_ns)
				   ? idle_name_of_wait(&s->most->longest)
				   : NULL;
	const struct thread_account *c = thread_account_of(a, s->worst);
	const char *others = "", *held = "";

	if (s->most->gil_held_at)
		held = arena_printf(texts, "; it was most often %s",
				    text_gil_holder(texts, a->model, s->worst->process,
						    s->most->gil_holder, s->most->gil_held_at));
	if (s->threads > 1)
		others = arena_printf(texts, " (%llu threads did so, for %s together)",
				      (unsigned long long)s->threads, text_time(texts, s->ns));
	return arena_printf(texts, "%s %s%s for %s between its calls%s%s%s",
			    text_thread(texts, s->worst, c ? c->device : SPY_DEVICE_NONE),
			    name ? "waited for " : waited, name ?: "",
			    text_time(texts, s->worst_ns), place_text(texts, s), others, held);
}

/* Lines count by how many of the stacks have them: each sum has as many as its part of the time is. */
static void add_stacks(const struct idle *idle, enum idle_cause cause, const struct starved *s,
		       struct arena *texts, struct finding *finding)
{
	const struct stack **stacks =
		arena_take(texts, xcalloc(SITE_STACKS, sizeof(struct stack *)));
	size_t n = 0;

	stacks[n++] = s->most->longest.stack;
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t most = sum->ns * SITE_STACKS / (s->lined_ns ?: 1);

		if (!is_of(sum, cause, idle->accounts->model) || !has_line(sum) ||
		    sum->key.owner != s->worst->index)
			continue;
		for (most -= sum == s->most && most; most && n < SITE_STACKS; most--)
			stacks[n++] = sum->longest.stack;
	}
	finding->lookup.stacks = stacks;
	finding->lookup.n_stacks = n;
}

static void add_finding(const struct detector *detector, enum idle_cause cause, const char *waited,
			const struct idle *idle, const struct starved *s, struct found *found)
{
	struct finding *finding = detector_add(detector, found);
	const struct idle_part *part = &s->most->longest;

	finding->origin.process = s->worst->process;
	finding->count = s->waits;
	finding_set_cost(finding, s->ns);
	finding->cost.threads = s->costs;
	if (part->stack && part->stack->n_python) {
		finding_look_up(finding, found->texts, part);
		add_stacks(idle, cause, s, found->texts, finding);
	}
	finding->what = what(idle->accounts, found->texts, s, waited);
	idle_price_take(idle, finding, s->worst->process, 1ull << cause);
	finding->fix = detector->fix;
}

void starved_conclude(const struct detector *detector, enum idle_cause cause, const char *waited,
		      const struct idle *idle, struct found *found)
{
	const struct model *model = idle->accounts->model;
	struct starved *processes = xcalloc(model->n_processes + 1, sizeof(*processes));

	add_up(idle, cause, processes);
	for (size_t i = 0; i < model->n_processes; i++)
		if (processes[i].worst)
			add_finding(detector, cause, waited, idle, &processes[i], found);
	free(processes);
}
