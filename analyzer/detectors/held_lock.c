/*
 * analyzer/detectors/held_lock.c: a lock of the program's own is held over CUDA calls, or while its holder waits for something
 * else, and other threads that work with CUDA stand in line for it between their calls.
 *
 * Of each thread's waits for such locks the part counts in which the holder was inside CUDA calls: waiting for its GPU,
 * submitting work, or whatever else it was there for; or waited for a file, another lock, a connection. What it computed
 * meanwhile is the program's own affair.
 */
#include <stdlib.h>
#include <string.h>
#include "table.h"
#include "account/locks.h"
#include "findings/idle_price.h"
#include "model/python.h"
#include "text/text.h"
#include "text/where.h"

#define LEAST_PART 10 /* of a thread's working time */
#define LEAST_NS 10000000

/* Of a thread, or of the threads of a process that count. */
struct in_line {
	uint64_t ns, waits, threads, worst_ns, longest_ns;
	uint64_t by_cause[IDLE_CAUSE_COUNT]; /* what holders did */
	const struct thread *worst; /* that waited longest */
	const struct idle_sum *longest; /* the place with most of it */
	struct thread_costs costs;
};

/* What the holder has no need of the lock for. */
static bool counts(enum idle_cause cause)
{
	switch (cause) {
	case IDLE_FILE:
	case IDLE_PIPE:
	case IDLE_SOCKET:
	case IDLE_LOADER:
	case IDLE_LOCK:
	case IDLE_JOIN:
	case IDLE_SLEEP:
		return true;
	default:
		return idle_in_a_call(cause);
	}
}

/* For how long the holders did such things meanwhile; 0 also where it is no wait for such a lock. */
static uint64_t held_ns(const struct idle_sum *sum)
{
	uint64_t ns = 0;

	if (sum->key.cause != IDLE_LOCK || !sum->holder)
		return 0;
	for (size_t i = 0; i < IDLE_CAUSE_COUNT; i++)
		if (counts((enum idle_cause)i))
			ns += sum->holder->ns[i];
	return min_u64(ns, sum->ns);
}

static void add_sum(struct in_line *l, const struct idle_sum *sum, uint64_t ns)
{
	l->ns += ns;
	l->waits += sum->count;
	for (size_t i = 0; i < IDLE_CAUSE_COUNT; i++)
		if (counts((enum idle_cause)i))
			l->by_cause[i] += sum->holder->ns[i];
	if (ns <= l->longest_ns)
		return;
	l->longest = sum;
	l->longest_ns = ns;
}

static void add_thread(struct in_line *process, const struct in_line *l,
		       const struct thread *thread)
{
	process->ns += l->ns;
	process->waits += l->waits;
	process->threads++;
	for (size_t i = 0; i < IDLE_CAUSE_COUNT; i++)
		process->by_cause[i] += l->by_cause[i];
	thread_costs_add(&process->costs, thread, (double)l->ns, (double)l->ns);
	if (l->ns <= process->worst_ns)
		return;
	process->worst = thread;
	process->worst_ns = l->ns;
	process->longest = l->longest;
	process->longest_ns = l->longest_ns;
}

static bool is_much(const struct in_line *l, const struct host_thread *h)
{
	return l->ns >= LEAST_NS && l->ns >= (h->outside_ns + h->in_calls_ns) / LEAST_PART;
}

/* By process. Sums of threads are by their index. */
static struct in_line *add_up(const struct idle *idle)
{
	const struct model *model = idle->accounts->model;
	struct in_line *processes = xcalloc(model->n_processes + 1, sizeof(*processes));
	struct in_line *threads = xcalloc(model->n_threads + 1, sizeof(*threads));

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = sum->key.owner < model->n_threads ? held_ns(sum) : 0;

		if (ns)
			add_sum(&threads[sum->key.owner], sum, ns);
	}
	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (h && is_much(&threads[i], h))
			add_thread(&processes[thread->process->trace->index], &threads[i], thread);
	}
	free(threads);
	return processes;
}

static enum idle_cause main_cause(const struct in_line *l)
{
	enum idle_cause most = 0, cause;

	for (cause = 1; cause < IDLE_CAUSE_COUNT; cause++)
		if (l->by_cause[cause] > l->by_cause[most])
			most = cause;
	return most;
}

/* The lock, as far as it has a name: "the lock at app+0x4010", "a lock on the heap". */
static const char *lock_words(struct arena *texts, const struct in_line *l)
{
	const struct idle_part *wait = &l->longest->longest;
	const char *place;

	if (!wait->object)
		return "a lock of the program's own";
	place = arena_take(texts, lock_place(l->worst->process, wait->object, wait->at_ns));
	return strcmp(place, "heap") ? arena_printf(texts, "the program's own lock at %s", place)
				     : "a lock of the program's own, on the heap,";
}

/* What follows is where they wait, in the program or in Python. */
static const char *what(const struct model *model, struct arena *texts, const struct in_line *l)
{
	const struct idle_holder *holder = l->longest->holder;
	const struct thread *thread = model_find_thread(model, l->worst->process, holder->tid);
	enum idle_cause cause = main_cause(l);

	return arena_printf(texts,
			    "%s waited %s for %s while %s, which had it, was %s%s for %s; %s "
			    "longest, %s",
			    text_count(texts, l->threads, "thread"), text_time(texts, l->ns),
			    lock_words(texts, l),
			    thread ? text_thread(texts, thread, SPY_DEVICE_NONE) : "another one",
			    idle_in_a_call(cause) ? "inside CUDA calls: " : "",
			    idle_cause_texts[cause], text_time(texts, l->by_cause[cause]),
			    text_thread(texts, l->worst, SPY_DEVICE_NONE),
			    text_time(texts, l->worst_ns));
}

static const char *cure(enum idle_cause cause)
{
	if (cause == IDLE_CUDA_WAIT)
		return detector_held_lock.fix;
	if (!idle_in_a_call(cause))
		return "Release the lock before that wait: take it for the data that it protects "
		       "alone, and read, write or wait for others outside of it.";
	return "Make the CUDA calls outside of the lock: take it for the data that it protects "
	       "alone, or give each stream's data a lock of its own.";
}

/* Of GPUs that stood still meanwhile. */
static void take(const struct idle *idle, struct finding *finding)
{
	idle_price_take(idle, finding, finding->origin.process, 0);
	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->process == finding->origin.process && sum->ns && held_ns(sum))
			idle_price_take_part(idle, finding, sum,
					     (double)held_ns(sum) / (double)sum->ns);
}

static void add_finding(const struct idle *idle, const struct in_line *l, struct found *found)
{
	const struct model *model = idle->accounts->model;
	struct finding *finding = detector_add(&detector_held_lock, found);
	const struct idle_part *held = &l->longest->holder->longest, *wait = &l->longest->longest;

	finding->origin.process = l->worst->process;
	finding->count = l->waits;
	finding_set_cost(finding, l->ns);
	finding->cost.threads = l->costs;
	finding->place.function = text_function(model->set, held->fn);
	finding_look_up(finding, found->texts, held);
	finding_name_wait(finding, found->texts, ", at ", ",", wait->address, wait->at_ns,
			  wait->stack);
	finding->lookup.variable = wait->object;
	finding->lookup.variable_ns = wait->at_ns;
	finding->what = what(model, found->texts, l);
	finding->fix = cure(main_cause(l));
	take(idle, finding);
}

static void conclude(const struct idle *idle, struct found *found)
{
	struct in_line *processes = add_up(idle);

	for (size_t i = 0; i < idle->accounts->model->n_processes; i++)
		if (processes[i].worst)
			add_finding(idle, &processes[i], found);
	free(processes);
}

const struct detector detector_held_lock = {
	.id = "held-lock",
	.title =
		"a thread holds a lock of the program's own while it is in CUDA calls or waits, and "
		"others wait for it",
	.sees = "Waits between CUDA calls for a mutex or read-write lock of the program's own, from a "
		"tenth of a thread's working time and 10 ms on, while the thread that had it was "
		"inside CUDA calls, or waited for a file, a connection, a pipe, a thread or another "
		"lock, or slept. The place is the holder's call or wait; the finding has what it did "
		"there, and where and for how long others waited.",
	.blind =
		"Locks that do not name their holder (conditions, semaphores, Python's own locks), "
		"and threads that make no CUDA calls.",
	.fix = "Release the lock before the wait for the GPU: take it for the data that it "
	       "protects alone, and wait for an event of the work outside of it.",
	.conclude_idle = conclude,
};
