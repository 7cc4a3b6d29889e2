/*
 * analyzer/detectors/lock_cycle.c: when a recording ended, threads stood in a cycle: each waited for a lock that the next one had,
 * or for its end. Such waits leave no records, for they never end; the board shows them.
 *
 * A lock's holder is known as of when the wait for it began. The holder may have released it since and wait for another one, while
 * the thread that waited is about to wake up. So a cycle counts if all of it is known to have stood for a while.
 */
#include <stdlib.h>
#include "table.h"
#include "account/account.h"
#include "text/text.h"

#define LEAST_NS 1000000000
#define SHOWN_MOST 8 /* threads */

/* A thread at the end, by its slot. */
struct at_end {
	const struct spy_slot_page *page; /* NULL: it waits for no other one */
	const struct thread *thread;
	struct board_wait wait;
	uint64_t since_ns;
	struct at_end *next; /* whom it waits for; NULL: unknown, or no waiter */
	uint32_t mark; /* the chain that came by last */
	bool in_cycle; /* one that is done */
};

struct process_end {
	const struct accounting *accounts;
	const struct process *process;
	struct at_end *all;
	size_t n;
	uint64_t until_ns; /* the process is known to have lived */
};

static bool is_for_a_thread(const struct board_wait *wait)
{
	return wait->holder && (spy_wait_is_lock(wait->kind) || wait->kind == SPY_WAIT_JOIN);
}

/* Has another thread taken the lock since, as far as records say so? */
static bool has_changed(const struct process_end *e, const struct at_end *t)
{
	const struct lock_key key = {t->wait.object, e->process->trace->index};
	const struct lock *lock;
	const struct lock_event *last;

	HASH_FIND(hh, e->accounts->locks.by_key, &key, sizeof(key), lock);
	last = lock && lock->events ? lock_event(lock, lock->events - 1) : NULL;
	return last && last->ns > t->since_ns;
}

static void look_at(struct process_end *e, struct at_end *t, const struct spy_slot_page *page)
{
	if (!page->tid || !board_wait_of(page, &t->wait) || !is_for_a_thread(&t->wait) ||
	    !t->wait.since)
		return;
	t->since_ns = timeline_ns(&e->process->trace->timeline, t->wait.since);
	t->thread = model_find_thread(e->accounts->model, e->process, page->tid);
	if (t->thread && !has_changed(e, t))
		t->page = page;
}

static struct at_end *waiter_of(const struct process_end *e, uint32_t tid)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->all[i].page && e->all[i].page->tid == tid)
			return &e->all[i];
	return NULL;
}

/* The board of a process that may be running is older than the records that were read behind it. */
static uint64_t lived_until(const struct process *process)
{
	const struct trace *trace = process->trace;
	uint64_t looked = trace->board.head.looked;
	uint64_t looked_ns = looked ? timeline_ns(&trace->timeline, looked) : 0;

	return trace->live ? looked_ns : max_u64(looked_ns, process->last_ns);
}

static void begin(struct process_end *e)
{
	const struct board *board = &e->process->trace->board;

	e->n = board->n_slots;
	e->all = xcalloc(e->n + 1, sizeof(*e->all));
	e->until_ns = lived_until(e->process);
	for (size_t i = 0; i < e->n; i++)
		look_at(e, &e->all[i], &board->slots[i]);
	for (size_t i = 0; i < e->n; i++)
		if (e->all[i].page)
			e->all[i].next = waiter_of(e, e->all[i].wait.holder);
}

/* One of the cycle to which the chain from there leads; NULL: to none, or to one that is done. */
static struct at_end *cycle_behind(struct at_end *from, uint32_t mark)
{
	struct at_end *t = from;

	while (t && t->mark != mark && !t->in_cycle) {
		t->mark = mark;
		t = t->next;
	}
	return t && !t->in_cycle ? t : NULL;
}

/* ---- in words --------------------------------------------------------------------------------- */

static void say(struct finding *finding, struct found *found, const struct process_end *e,
		const char *words, uint64_t address, uint64_t variable)
{
	finding_name_place(finding, found->texts,
			   &(struct named_place){.words = words,
						 .address = address,
						 .variable = variable,
						 .ns = e->process->last_ns});
}

/* The call that it is in. */
static const char *function_of(const struct process_end *e, const struct at_end *t)
{
	struct trace_set *set = e->accounts->model->set;

	return text_function(set, trace_function(set, e->process->trace, t->page->outer_fn));
}

static const char *call_words(struct arena *texts, const struct process_end *e,
			      const struct at_end *t)
{
	if (t->wait.outside)
		return "waits, between CUDA calls,";
	return arena_printf(texts, "waits inside %s", function_of(e, t));
}

/* "waits inside cudaFree in release, app.c:12 for the lock at app+0x4010 (second), held by". */
static void say_thread(struct finding *finding, struct found *found, const struct process_end *e,
		       const struct at_end *t)
{
	struct arena *texts = found->texts;
	const char *place;

	say(finding, found, e, arena_printf(texts, " %s", call_words(texts, e, t)), t->wait.caller,
	    0);
	if (t->wait.kind == SPY_WAIT_JOIN) {
		say(finding, found, e, " for the end of", 0, 0);
		return;
	}
	place = arena_take(texts, lock_place(e->process, t->wait.object, e->process->last_ns));
	say(finding, found, e,
	    strcmp(place, "heap") ? arena_printf(texts, " for the lock at %s", place)
				  : arena_printf(texts, " for the lock at 0x%llx, on the heap",
						 (unsigned long long)t->wait.object),
	    0, t->wait.object);
	say(finding, found, e, ", held by", 0, 0);
}

static void say_cycle(struct finding *finding, struct found *found, const struct process_end *e,
		      const struct at_end *first, size_t n)
{
	struct arena *texts = found->texts;
	const struct at_end *t = first;
	const char *name = text_thread(texts, first->thread, first->page->device);

	for (size_t i = 0; i < n && i < SHOWN_MOST; i++, t = t->next) {
		if (i)
			name = arena_printf(texts, " %s, which",
					    text_thread(texts, t->thread, t->page->device));
		say(finding, found, e, name, 0, 0);
		say_thread(finding, found, e, t);
	}
	say(finding, found, e,
	    n > SHOWN_MOST ? arena_printf(texts, " %s, and so on, back to the first",
					  text_count(texts, n - SHOWN_MOST, "other thread"))
			   : arena_printf(texts, " %s",
					  text_thread(texts, first->thread, first->page->device)),
	    0, 0);
}

/* Threads whose chains lead into the cycle. */
static size_t count_behind(const struct process_end *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++) {
		const struct at_end *t = &e->all[i];
		size_t steps = 0;

		while (t && !t->in_cycle && steps++ < e->n)
			t = t->next;
		n += t && t->in_cycle && !e->all[i].in_cycle;
	}
	return n;
}

/* Where nothing is recorded behind it, that it lasted is unknown, and a note. */
static bool is_unknown(const struct process_end *e)
{
	const struct trace *trace = e->process->trace;

	return !trace->live && !trace->board.head.looked;
}

static bool has_lasted(const struct process_end *e, const struct at_end *last)
{
	return e->until_ns >= last->since_ns + LEAST_NS;
}

static void add_finding(struct process_end *e, const struct at_end *last, size_t n,
			struct found *found)
{
	struct finding *finding = detector_add(&detector_lock_cycle, found);
	size_t behind = count_behind(e);

	finding->origin.process = e->process;
	finding->count = n;
	finding->remarks.shown = true;
	finding->remarks.wrong = has_lasted(e, last);
	finding->cost.unknown = !finding->remarks.wrong;
	finding->lookup.address = last->wait.caller;
	finding->lookup.address_ns = e->process->last_ns;
	finding->lookup.of_wait = last->wait.outside;
	if (!last->wait.outside)
		finding->place.function = function_of(e, last);
	finding->what = arena_printf(
		found->texts, "at the end, for %s, %s stood in a cycle%s: ",
		has_lasted(e, last)
			? arena_printf(found->texts, "%s or longer",
				       text_time(found->texts, e->until_ns - last->since_ns))
			: "an unknown time",
		text_count(found->texts, n, "thread"),
		behind ? arena_printf(found->texts, ", and %s behind %s",
				      text_count(found->texts, behind, "other"),
				      n > 1 ? "them" : "it")
		       : "");
	say_cycle(finding, found, e, last, n);
}

/* last: the one whose wait closed it. */
static void judge_cycle(struct process_end *e, struct at_end *first, struct found *found)
{
	struct at_end *t = first, *last = first;
	size_t n = 0;

	do {
		if (t->since_ns > last->since_ns)
			last = t;
		t->in_cycle = true;
		n++;
		t = t->next;
	} while (t != first);
	if (has_lasted(e, last) || is_unknown(e))
		add_finding(e, last, n, found);
}

static void conclude(const struct accounting *accounts, struct found *found)
{
	const struct model *model = accounts->model;

	for (size_t i = 0; i < model->n_processes; i++) {
		struct process_end e = {.accounts = accounts, .process = &model->processes[i]};
		struct at_end *cycle;

		begin(&e);
		for (size_t j = 0; j < e.n; j++) {
			cycle = cycle_behind(&e.all[j], (uint32_t)j + 1);
			if (cycle)
				judge_cycle(&e, cycle, found);
		}
		free(e.all);
	}
}

const struct detector detector_lock_cycle = {
	.id = "lock-cycle",
	.title = "threads stand in a cycle of locks when the recording ends: a deadlock",
	.sees = "When a program is killed, crashes or ends, each of some threads that make CUDA "
		"calls waits for a lock that the next one has, or for its end, and has done so "
		"for a second or longer: the program's own locks and those inside CUDA, in calls "
		"and between them. The place is where the wait is that closed the cycle; the "
		"finding has who holds what, and waits for what, and where.",
	.blind = "Locks that do not name their holder (conditions, semaphores, Python's own locks "
		 "and its GIL), threads that make no CUDA calls, and how long a cycle had stood "
		 "where nothing was recorded behind it (--sample=0): then it is a note.",
	.fix = "Take the locks in the same order everywhere, or let go of one before waiting for "
	       "the other; make no CUDA call that may wait while a lock is held that a host "
	       "function or another thread's call needs.",
	.conclude_calls = conclude,
};
