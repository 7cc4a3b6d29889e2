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

/* Of a thread, or of the threads of a process that count. */
struct starved {
	uint64_t ns, waits, threads;
	const struct thread *worst; /* the one that waited longest */
	uint64_t worst_ns;
	const struct idle_sum *longest; /* its place with the longest wait */
	struct thread_costs costs;
};

static void add_sum(struct starved *s, const struct idle_sum *sum)
{
	s->ns += sum->ns;
	s->waits += sum->count;
	if (!s->longest || sum->longest_ns > s->longest->longest_ns)
		s->longest = sum;
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
	process->longest = s->longest;
}

/* Sums of threads are by their index. */
static void add_up(const struct idle *idle, enum idle_cause cause, struct starved *processes)
{
	const struct model *model = idle->accounts->model;
	struct starved *threads = xcalloc(model->n_threads + 1, sizeof(*threads));

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		if (sum->key.cause != cause || !sum->ns)
			continue;
		if (sum->key.owner < model->n_threads)
			add_sum(&threads[sum->key.owner], sum);
	}
	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (h && is_much(&threads[i], h))
			add_thread(&processes[thread->process->trace->index], &threads[i], thread);
	}
	free(threads);
}

static const char *what(const struct accounting *a, struct arena *texts, const struct starved *s,
			const char *waited)
{
	const struct stack *stack = s->longest->longest.stack;
	struct python_line line = python_line(stack);
	const char *name = idle_name_of_stack(stack), *python = text_python(texts, &line);
	const struct thread_account *c = thread_account_of(a, s->worst);
	const char *others = "", *held = "";

	if (s->longest->gil_held_at)
		held = arena_printf(texts, "; it was most often %s",
				    text_gil_holder(texts, a->model, s->worst->process,
						    s->longest->gil_holder,
						    s->longest->gil_held_at));
	if (s->threads > 1)
		others = arena_printf(texts, " (%llu threads did so, for %s together)",
				      (unsigned long long)s->threads, text_time(texts, s->ns));
	return arena_printf(texts, "%s %s%s for %s between its calls%s%s%s%s",
			    text_thread(texts, s->worst, c ? c->device : SPY_DEVICE_NONE),
			    name ? "waited for " : waited, name ?: "",
			    text_time(texts, s->worst_ns), python ? ", at " : "", python ?: "",
			    others, held);
}

static void add_finding(const struct detector *detector, enum idle_cause cause, const char *waited,
			const struct idle *idle, const struct starved *s, struct found *found)
{
	struct finding *finding = detector_add(detector, found);
	const struct idle_part *part = &s->longest->longest;

	finding->origin.process = s->worst->process;
	finding->count = s->waits;
	finding_set_cost(finding, s->ns);
	finding->cost.threads = s->costs;
	if (part->stack && part->stack->n_python)
		finding_look_up(finding, found->texts, part);
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
