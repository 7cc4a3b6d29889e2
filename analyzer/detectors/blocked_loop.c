/*
 * analyzer/detectors/blocked_loop.c: a thread serves many descriptors from an event loop (epoll, poll, select), and waits for a GPU
 * between two polls: clients whose requests have come meanwhile wait, too, for nothing of theirs.
 *
 * A case is a wait behind which the next poll found descriptors ready, at once, other than the one that was served last
 * (idle/loops.h). Without them nothing waited, and nothing is said: a loop with one client, a reply of a worker that is polled
 * for. Since when they were ready is unknown, so the cure gains what the waits took at most.
 */
#include <stdlib.h>
#include <string.h>
#include "table.h"
#include "idle/callers.h"
#include "idle/idle.h"
#include "model/python.h"
#include "findings/site.h"
#include "text/text.h"
#include "text/where.h"

#define LEAST_PART 10 /* of a thread's working time */
#define LEAST_NS 10000000
#define LEAST_TIMES 10

/* The same place of a process, in all threads that count. */
struct blocked_loops {
	const struct process *process;
	struct event_loop sum;
	const struct thread *worst; /* that was blocked longest */
	uint64_t worst_ns, threads;
	struct thread_costs costs;
};

struct all_loops {
	struct blocked_loops *all;
	size_t n;
};

/* Does a person's input go through the loop: a notebook's cells, of which each makes many calls? */
static bool runs_cells(const struct stack *stack)
{
	for (uint8_t i = 0; stack && i < stack->n_python; i++) {
		struct python_line line = python_line_at(stack, i);

		if (line.code && (strstr(line.code->file, "/ipykernel/") ||
				  strstr(line.code->file, "/IPython/")))
			return true;
	}
	return false;
}

/* Not who waits for a reply of its own: a library that asks for progress only, a data loader, a pool of workers. */
static bool serves(const struct event_loop *loop)
{
	return loop->waits && !runs_cells(loop->stack) &&
	       idle_cause_of_stack(loop->stack, IDLE_NOTHING_TO_DO) == IDLE_NOTHING_TO_DO;
}

static bool is_much(const struct event_loop *loop, const struct host_thread *h)
{
	return serves(loop) && loop->blocked >= LEAST_TIMES && loop->calls.ns >= LEAST_NS &&
	       loop->calls.ns >= (h->outside_ns + h->in_calls_ns) / LEAST_PART;
}

static struct blocked_loops *loops_of(struct all_loops *loops, const struct process *process,
				      uint64_t address)
{
	size_t i = 0;

	while (i < loops->n &&
	       (loops->all[i].process != process || loops->all[i].sum.address != address))
		i++;
	if (i == loops->n) {
		loops->all = grow(loops->all, loops->n, sizeof(*loops->all));
		loops->all[loops->n++] =
			(struct blocked_loops){.process = process, .sum.address = address};
	}
	return &loops->all[i];
}

static void add_loop(struct blocked_loops *loops, const struct event_loop *loop,
		     const struct thread *thread)
{
	struct event_loop *sum = &loops->sum;

	sum->late += loop->late;
	sum->blocked += loop->blocked;
	sum->most_ready = max_u64(sum->most_ready, loop->most_ready);
	sum->longest_ns = max_u64(sum->longest_ns, loop->longest_ns);
	loop_calls_join(&sum->calls, &loop->calls);
	loops->threads++;
	thread_costs_add(&loops->costs, thread, (double)loop->calls.ns, (double)loop->calls.ns);
	if (loop->calls.ns <= loops->worst_ns)
		return;
	loops->worst = thread;
	loops->worst_ns = loop->calls.ns;
	sum->at_ns = loop->at_ns;
	sum->stack = loop->stack;
}

static struct all_loops add_up(const struct idle *idle)
{
	const struct model *model = idle->accounts->model;
	struct all_loops loops = {0};

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		for (size_t j = 0; h && h->loops && j < h->loops->n; j++)
			if (is_much(h->loops->all[j], h))
				add_loop(loops_of(&loops, thread->process,
						  h->loops->all[j]->address),
					 h->loops->all[j], thread);
	}
	return loops;
}

static const struct loop_call *costliest(const struct loop_calls *calls)
{
	const struct loop_call *most = &calls->all[0];

	for (size_t i = 1; i < calls->n; i++)
		if (calls->all[i].ns > most->ns)
			most = &calls->all[i];
	return most;
}

static const char *at_most(struct arena *texts, uint64_t ready)
{
	return ready > 1 ? arena_printf(texts, "up to %llu", (unsigned long long)ready) : "one";
}

/* What follows is the place of the poll, in the program or in Python. */
static const char *what(struct arena *texts, const struct blocked_loops *loops)
{
	const struct event_loop *loop = &loops->sum;
	const char *who = text_thread(texts, loops->worst, SPY_DEVICE_NONE);
	if (loops->threads > 1)
		who = arena_printf(texts, "%s, of which %s longest,",
				   text_count(texts, loops->threads, "thread"), who);
	return arena_printf(
		texts,
		"the event loop of %s waited for the GPU between two polls, and %llu of %s other "
		"descriptors were ready when it polled again, %s at one time; they had waited for up "
		"to %s in all, up to %s at one time; it polls",
		who, (unsigned long long)loop->blocked, text_count(texts, loop->late, "time"),
		at_most(texts, loop->most_ready), text_time(texts, loop->calls.ns),
		text_time(texts, loop->longest_ns));
}

static const char *cure(const struct loop_call *call)
{
	if (!call->stack || !call->stack->n_python)
		return detector_blocked_loop.fix;
	return "Wait in another thread: await asyncio.to_thread(...) or loop.run_in_executor(...) around "
	       "what synchronises (.item(), .cpu(), synchronize()), so that the loop serves others "
	       "meanwhile; or record an event and look at it between two turns of the loop "
	       "(while not event.query(): await asyncio.sleep(0.001)).";
}

static bool is_at(const struct finding *f, const struct process *process,
		  const struct loop_call *call)
{
	return f->site && f->site->key.fn == call->fn &&
	       f->site->key.return_address == call->address && f->origin.process == process;
}

/* Findings of the same calls that have a cure of their own: what that gives back this one's need not. (Those that may be
 * harmless are part of this one: same_cause.c.) */
static void find_overlaps(struct finding *finding, const struct event_loop *loop,
			  const struct found *found)
{
	struct cost *cost = &finding->cost;

	for (size_t i = 0; i < found->n; i++)
		for (size_t j = 0; j < loop->calls.n; j++) {
			const struct finding *f = &found->all[i];
			const struct loop_call *call = &loop->calls.all[j];

			if (f->remarks.maybe_harmless || !is_at(f, finding->origin.process, call))
				continue;
			cost->overlaps = true;
			cost->elsewhere_ns += min_u64(call->ns, cost_gain_ns(&f->cost));
		}
}

static void add_finding(const struct trace_set *set, const struct blocked_loops *loops,
			struct found *found)
{
	struct finding *finding = detector_add(&detector_blocked_loop, found);
	const struct event_loop *loop = &loops->sum;
	const struct loop_call *call = costliest(&loop->calls);

	finding->origin.process = loops->process;
	finding->count = loop->blocked;
	finding_set_cost(finding, loop->calls.ns);
	finding->cost.threads = loops->costs;
	finding->place.function = text_function(set, call->fn);
	finding_look_up(finding, found->texts,
			&(struct idle_part){.cause = IDLE_CUDA_WAIT,
					    .address = call->address,
					    .at_ns = call->at_ns,
					    .fn = call->fn,
					    .stack = call->stack});
	finding->what = what(found->texts, loops);
	finding->fix = cure(call);
	finding_name_wait(finding, found->texts, " at ", "", loop->address, loop->at_ns,
			  loop->stack);
	find_overlaps(finding, loop, found);
}

static void conclude(const struct idle *idle, struct found *found)
{
	struct all_loops loops = add_up(idle);

	for (size_t i = 0; i < loops.n; i++)
		add_finding(idle->accounts->model->set, &loops.all[i], found);
	free(loops.all);
}

const struct detector detector_blocked_loop = {
	.id = "blocked-loop",
	.title = "an event loop waits for the GPU while other descriptors are ready",
	.sees = "Threads that poll several descriptors (epoll_wait, poll, select: a server, asyncio, "
		"uvloop, libuv) and wait for a GPU between two polls, in calls of 250 us or more, if "
		"ten times or more the next poll returned at once with input of another descriptor "
		"than the one served last; from a tenth of the thread's working time and 10 ms on. "
		"The place is the call that waited longest in all; the finding has where the loop "
		"polls, and how often and how many descriptors were ready.",
	.blind =
		"Since when the descriptors were ready, and whose they are: clients' connections, or "
		"signals of the program's own threads. Loops by io_uring or epoll_pwait2; polls of one "
		"descriptor, which wait for a reply, and such that never wait (MPI, UCX); notebooks; the time that the loop computes between two polls.",
	.fix = "Wait in another thread, and let that signal the loop; or let the GPU do it: "
	       "cudaLaunchHostFunc behind the work, whose function writes to an eventfd that the "
	       "loop polls; or record an event and ask for it between two polls (cudaEventQuery).",
	.conclude_idle = conclude,
};
