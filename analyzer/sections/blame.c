/*
 * analyzer/sections/blame.c: waiters and holders: threads, GPUs, locks, and all that has to do with
 * the subject of a question. Called by waits.c.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"

/* ---- waiters and holders ------------------------------------------------------------------- */

struct blame_row {
	const char *process, *holder_process, *waiter_function, *holder_function, *lock, *how,
		*cause;
	uint64_t waiter, waiter_device, holder, holder_device, waits, waited_ns;
};

/* clang-format off */
static const struct column blame_columns[] = {
	COLUMN(struct blame_row, waiter, "thread", UNIT_PLAIN),
	COLUMN(struct blame_row, waiter_device, "GPU", UNIT_DEVICE),
	COLUMN(struct blame_row, waiter_function, "waited in", UNIT_TEXT),
	COLUMN(struct blame_row, holder, "for", UNIT_PLAIN),
	COLUMN(struct blame_row, holder_device, "GPU", UNIT_DEVICE),
	COLUMN(struct blame_row, holder_function, "in", UNIT_TEXT),
	COLUMN(struct blame_row, lock, "lock", UNIT_TEXT),
	COLUMN(struct blame_row, waited_ns, "waited", UNIT_NS),
	COLUMN_JSON(struct blame_row, process, UNIT_TEXT),
	COLUMN_JSON(struct blame_row, waits, UNIT_COUNT),
	COLUMN_JSON(struct blame_row, how, UNIT_TEXT),
};

static const struct column root_columns[] = {
	COLUMN(struct blame_row, waiter, "thread", UNIT_PLAIN),
	COLUMN(struct blame_row, waiter_device, "GPU", UNIT_DEVICE),
	COLUMN(struct blame_row, waiter_function, "waited in", UNIT_TEXT),
	{.key = "root", .title = "root", .unit = UNIT_PLAIN, .offset = offsetof(struct blame_row, holder)},
	{.key = "root_device", .title = "GPU", .unit = UNIT_DEVICE, .offset = offsetof(struct blame_row, holder_device)},
	{.key = "root_function", .title = "in", .unit = UNIT_TEXT, .offset = offsetof(struct blame_row, holder_function)},
	COLUMN(struct blame_row, cause, "cause", UNIT_TEXT),
	COLUMN(struct blame_row, waited_ns, "waited", UNIT_NS),
	COLUMN_JSON(struct blame_row, process, UNIT_TEXT),
	COLUMN_JSON(struct blame_row, waits, UNIT_COUNT),
	COLUMN_JSON(struct blame_row, how, UNIT_TEXT),
};
static const struct column kernel_overlap_columns[] = {
	COLUMN(struct blame_row, waiter, "thread", UNIT_PLAIN),
	COLUMN(struct blame_row, waiter_device, "GPU", UNIT_DEVICE),
	{.key = "waiter_function", .title = "took longer in", .unit = UNIT_TEXT, .offset = offsetof(struct blame_row, waiter_function)},
	{.key = "other", .title = "beside", .unit = UNIT_PLAIN, .offset = offsetof(struct blame_row, holder)},
	{.key = "other_device", .title = "GPU", .unit = UNIT_DEVICE, .offset = offsetof(struct blame_row, holder_device)},
	{.key = "other_function", .title = "in", .unit = UNIT_TEXT, .offset = offsetof(struct blame_row, holder_function)},
	{.key = "calls", .title = "calls", .unit = UNIT_COUNT, .offset = offsetof(struct blame_row, waits)},
	{.key = "excess_ns", .title = "by", .unit = UNIT_NS, .offset = offsetof(struct blame_row, waited_ns)},
	COLUMN_JSON(struct blame_row, process, UNIT_TEXT),
	{.key = "other_process", .title = "", .unit = UNIT_TEXT, .place = COLUMN_JSON_ONLY, .offset = offsetof(struct blame_row, holder_process)},
	COLUMN_JSON(struct blame_row, how, UNIT_TEXT),
};
/* clang-format on */

static const struct table_kind blame_kind = {
	TABLE("blame", "WAITS FOR LOCKS, by waiter and holder", struct blame_row, blame_columns),
	.detail = true,
	.text_rows = 12,
};

static const struct table_kind root_kind = {
	TABLE("root_blame", "ROOTS of these waits: what the last holder of the chain did",
	      struct blame_row, root_columns),
	.detail = true,
	.text_rows = 12,
};

static const struct table_kind kernel_overlap_kind = {
	TABLE("kernel_overlap",
	      "KERNEL MODULE: calls that took longer while others were in it (inferred)",
	      struct blame_row, kernel_overlap_columns),
	.detail = true,
	.text_rows = 12,
};

static int by_waited(const void *a, const void *b)
{
	const struct blame_row *x = a, *y = b;

	return COMPARE(y->waited_ns, x->waited_ns) ?: COMPARE(x->waiter, y->waiter) ?:
	       COMPARE(x->holder, y->holder) ?: strcmp(x->waiter_function, y->waiter_function);
}

static void add_edges(struct report *report, const struct accounting *a,
		      const struct table_kind *kind, const struct blame_edges *edges,
		      const struct subject *s)
{
	struct blame_row *rows = xcalloc(edges->n, sizeof(*rows));
	const struct blame_edge *edge;
	size_t n = 0;

	EDGES_ITER (edge, edges) {
		const union blame_key *k = &edge->key;
		const struct thread *waiter = edge_thread(a->model, k->waiter), *holder;

		if (!subject_has_edge(a, s, k))
			continue;
		holder = edge_thread(a->model, k->holder);
		rows[n++] = (struct blame_row){
			.process = text_process(&report->arena, waiter->process->trace),
			.waiter = waiter->tid,
			.waiter_function = text_function(a->model->set, k->waiter_fn),
			.waiter_device = k->waiter_device,
			.holder = holder ? holder->tid : 0,
			.holder_process =
				holder ? text_process(&report->arena, holder->process->trace)
				       : NULL,
			.holder_function = text_function(a->model->set, k->holder_fn),
			.holder_device = k->holder_device,
			.how = k->inferred ? "inferred" : "measured",
			.cause = cause_keys[k->cause],
			.waits = edge->waits,
			.waited_ns = (uint64_t)(edge->waited_ns + 0.5),
		};
		if (k->lock)
			rows[n - 1].lock =
				report_text(report, "%s", a->locks.all[k->lock - 1]->name);
	}
	qsort(rows, n, sizeof(*rows), by_waited);
	report_add(report, kind, rows, n);
}

/* ---- GPU by GPU, call by call ---------------------------------------------------------------- */

struct pair_row {
	uint64_t waiter_device, holder_device, waits, waited_ns;
	const char *waiter_function, *holder_function, *calls, *how;
	bool inferred;
	double ns;
	double most_ns; /* of the pair of calls named */
};

static const struct column device_columns[] = {
	COLUMN(struct pair_row, waiter_device, "GPU", UNIT_DEVICE),
	COLUMN(struct pair_row, holder_device, "waited for GPU", UNIT_DEVICE),
	COLUMN(struct pair_row, waits, "times", UNIT_COUNT),
	COLUMN(struct pair_row, waited_ns, "in all", UNIT_NS),
	COLUMN(struct pair_row, calls, "longest in", UNIT_TEXT),
	COLUMN_JSON(struct pair_row, how, UNIT_TEXT),
};

static const struct column call_columns[] = {
	COLUMN(struct pair_row, waiter_function, "call", UNIT_TEXT),
	COLUMN(struct pair_row, holder_function, "waited for", UNIT_TEXT),
	COLUMN(struct pair_row, waits, "times", UNIT_COUNT),
	COLUMN(struct pair_row, waited_ns, "in all", UNIT_NS),
	COLUMN_JSON(struct pair_row, how, UNIT_TEXT),
};

static const struct table_kind device_kind = {
	TABLE("device_blame",
	      "GPU BY GPU: waits of its threads for locks that another's threads held",
	      struct pair_row, device_columns),
	.detail = true,
	.text_rows = 24,
};

static const struct table_kind call_kind = {
	TABLE("call_blame", "CALL BY CALL: waits for locks, by the holder's call", struct pair_row,
	      call_columns),
	.detail = true,
	.text_rows = 8,
};

static bool same_devices(const struct pair_row *x, const struct pair_row *y)
{
	return x->inferred == y->inferred && x->waiter_device == y->waiter_device &&
	       x->holder_device == y->holder_device;
}

static bool same_calls(const struct pair_row *x, const struct pair_row *y)
{
	return x->inferred == y->inferred && !strcmp(x->waiter_function, y->waiter_function) &&
	       !strcmp(x->holder_function, y->holder_function);
}

static int by_pair(const void *a, const void *b)
{
	const struct pair_row *x = a, *y = b;

	return COMPARE(y->waited_ns, x->waited_ns) ?: COMPARE(x->waiter_device, y->waiter_device) ?:
	       COMPARE(x->holder_device, y->holder_device) ?:
	       strcmp(x->waiter_function, y->waiter_function) ?:
	       strcmp(x->holder_function, y->holder_function);
}

/* The edges with a known holder, those that are the same to `same` in one row. */
static void add_pairs(struct report *report, const struct accounting *a,
		      const struct table_kind *kind,
		      bool (*same)(const struct pair_row *, const struct pair_row *),
		      const struct subject *s)
{
	struct pair_row *rows = NULL;
	const struct blame_edge *edge;
	size_t i, n = 0;

	EDGES_ITER (edge, &a->blame->direct) {
		const union blame_key *k = &edge->key;
		struct pair_row row = {
			.waiter_device = k->waiter_device,
			.holder_device = k->holder_device,
			.waiter_function = text_function(a->model->set, k->waiter_fn) ?: "?",
			.holder_function = text_function(a->model->set, k->holder_fn) ?: "?",
			.inferred = k->inferred,
			.how = k->inferred ? "inferred" : "measured",
		};

		if (!k->holder || !subject_has_edge(a, s, k))
			continue;
		for (i = 0; i < n && !same(&rows[i], &row); i++)
			;
		if (i == n) {
			rows = grow(rows, n, sizeof(*rows));
			rows[n++] = row;
		}
		rows[i].waits += edge->waits;
		rows[i].ns += edge->waited_ns;
		rows[i].waited_ns = (uint64_t)(rows[i].ns + 0.5);
		if (edge->waited_ns > rows[i].most_ns) {
			rows[i].most_ns = edge->waited_ns;
			rows[i].calls = report_text(report, "%s for %s", row.waiter_function,
						    row.holder_function);
		}
	}
	if (rows)
		qsort(rows, n, sizeof(*rows), by_pair);
	report_add(report, kind, rows, n);
}

/* ---- locks ---------------------------------------------------------------------------------- */

struct lock_row {
	const char *name, *place, *kind, *first_function, *process, *about;
	uint64_t waits, waited_ns, waking_ns, longest_ns, waiters, holders, longest_row, starved,
		address;
};

static const struct column lock_columns[] = {
	COLUMN(struct lock_row, name, "lock", UNIT_TEXT),
	COLUMN(struct lock_row, kind, "kind", UNIT_TEXT),
	COLUMN(struct lock_row, waits, "waits", UNIT_COUNT),
	COLUMN(struct lock_row, waited_ns, "waited", UNIT_NS),
	COLUMN(struct lock_row, longest_ns, "longest", UNIT_NS),
	COLUMN(struct lock_row, waiters, "waiters", UNIT_COUNT),
	COLUMN(struct lock_row, holders, "holders", UNIT_COUNT),
	COLUMN(struct lock_row, longest_row, "passed over", UNIT_COUNT),
	COLUMN_JSON(struct lock_row, waking_ns, UNIT_NS),
	COLUMN_JSON(struct lock_row, place, UNIT_TEXT),
	COLUMN_JSON(struct lock_row, address, UNIT_PLAIN),
	COLUMN_JSON(struct lock_row, process, UNIT_TEXT),
	COLUMN_JSON(struct lock_row, first_function, UNIT_TEXT),
	COLUMN_JSON(struct lock_row, starved, UNIT_PLAIN),
	COLUMN_TEXT_WORDS(struct lock_row, about),
};

static const struct table_kind lock_kind = {
	TABLE("locks", "LOCKS that calls waited for", struct lock_row, lock_columns),
	.detail = true,
	.text_rows = 10,
};

void report_locks(struct report *report, const struct trace_set *set, struct lock *const *locks,
		  size_t n_locks, const struct subject *s)
{
	struct lock_row *rows = xcalloc(n_locks + 1, sizeof(*rows));
	size_t i, n = 0;

	for (i = 0; i < n_locks; i++) {
		const struct lock *lock = locks[i];
		struct lock_row *row = &rows[n];

		if (s->kind == SUBJECT_LOCK && !subject_is_lock(s, lock))
			continue;
		n++;
		*row = (struct lock_row){
			.name = report_text(report, "%s", lock->name),
			.place = report_text(report, "%s", lock->place),
			.kind = spy_wait_is_lock(lock->kind) && lock->kind != SPY_WAIT_MUTEX &&
						lock->kind != SPY_WAIT_SPIN
					? "rwlock"
					: name_wait(lock->kind),
			.process = text_process(&report->arena, lock->process->trace),
			.first_function = text_function(set, lock->first_fn),
			.waits = lock->waits,
			.waited_ns = lock->waited_ns,
			.waking_ns = lock->waking_ns,
			.longest_ns = lock->longest_ns,
			.waiters = lock->waiters.count,
			.holders = lock->holders.count,
			.longest_row = lock->longest_row,
			.starved = lock->starved ? lock->starved->tid : 0,
			.address = lock->key.address,
		};
		row->about =
			report_text(report, "%s, first waited for in %s (%s)", row->place,
				    row->first_function, text_function(set, lock->first_inner_fn));
	}
	report_add(report, &lock_kind, rows, n);
}

/* ---- threads without calls ------------------------------------------------------------------ */

struct non_cuda_row {
	const char *process, *name;
	uint64_t tid;
};

static const struct column non_cuda_columns[] = {
	COLUMN(struct non_cuda_row, process, "process", UNIT_TEXT),
	COLUMN(struct non_cuda_row, tid, "thread", UNIT_PLAIN),
	COLUMN(struct non_cuda_row, name, "name", UNIT_TEXT),
};

static const struct table_kind non_cuda_kind = {
	TABLE("strangers",
	      "THREADS WITHOUT CALLS that held locks: the driver's own, or threads that cudaspy "
	      "cannot see",
	      struct non_cuda_row, non_cuda_columns),
	.detail = true,
	.text_rows = 8,
};

void report_non_cuda_threads(struct report *report, const struct model *model)
{
	struct non_cuda_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];

		if (!thread->non_cuda)
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct non_cuda_row){
			.process = text_process(&report->arena, thread->process->trace),
			.name = thread->name[0] ? report_text(report, "%.15s", thread->name) : NULL,
			.tid = thread->tid,
		};
	}
	report_add(report, &non_cuda_kind, rows, n);
}

/* ---- one thread, function, lock or GPU ------------------------------------------------------- */

struct subject_row {
	const char *subject, *also, *only, *waited, *waited_mostly, *held_up, *held_up_mostly;
	uint64_t waited_ns, held_up_ns, calls, counted;
};

static const struct column subject_columns[] = {
	COLUMN(struct subject_row, subject, "about", UNIT_TEXT),
	COLUMN(struct subject_row, also, "also", UNIT_TEXT),
	COLUMN_TEXT(struct subject_row, only, "called"),
	COLUMN_TEXT(struct subject_row, waited, "waited"),
	COLUMN_TEXT(struct subject_row, waited_mostly, "longest for"),
	COLUMN_TEXT(struct subject_row, held_up, "held up"),
	COLUMN_TEXT(struct subject_row, held_up_mostly, "longest"),
	COLUMN_JSON(struct subject_row, waited_ns, UNIT_NS),
	COLUMN_JSON(struct subject_row, held_up_ns, UNIT_NS),
	COLUMN_JSON(struct subject_row, calls, UNIT_COUNT),
	COLUMN_JSON(struct subject_row, counted, UNIT_COUNT),
};

static const struct table_kind subject_kind = {
	TABLE("why", "WHY", struct subject_row, subject_columns),
	.facts = true,
};

/* Is the subject one end of the edge: the waiter's, or the holder's? A lock is both. */
static bool is_end(const struct accounting *a, const union blame_key *k, const struct subject *s,
		   bool holder)
{
	uint32_t thread = holder ? k->holder : k->waiter;

	switch (s->kind) {
	case SUBJECT_THREAD:
		return thread && subject_is_thread(s, edge_thread(a->model, thread));
	case SUBJECT_CALL:
		return (holder ? k->holder_fn : k->waiter_fn) == s->fn;
	case SUBJECT_DEVICE:
		return (holder ? k->holder_device : k->waiter_device) == s->device;
	default:
		return subject_has_edge(a, s, k);
	}
}

/* Sums up the edges at one end of which the subject is, and says what is at the other end of the
 * longest. */
static double sum_end(struct arena *texts, const struct accounting *a, bool holder,
		      const char **mostly)
{
	const struct subject *s = &a->blame->subject;
	const struct blame_edge *edge, *most = NULL;
	double ns = 0;

	EDGES_ITER (edge, &a->blame->direct) {
		if (!is_end(a, &edge->key, s, holder))
			continue;
		ns += edge->waited_ns;
		if (!most || edge->waited_ns > most->waited_ns)
			most = edge;
	}
	if (most) {
		uint32_t thread = holder ? most->key.waiter : most->key.holder;
		uint32_t fn = holder ? most->key.waiter_fn : most->key.holder_fn;

		*mostly = arena_printf(
			texts, "%s%s, %s",
			text_thread(texts, edge_thread(a->model, thread),
				    holder ? most->key.waiter_device : most->key.holder_device),
			text_in_function(texts, a->model->set, fn),
			text_time(texts, (uint64_t)most->waited_ns));
	}
	return ns;
}

#define THREADS_NAMED 8

/* "thread 4711", or "2 threads: feeder (4711), feeder (4712)": several may be called so. */
static const char *subject_threads(struct arena *texts, const struct accounting *a, size_t *n)
{
	const struct subject *s = &a->blame->subject;
	const struct thread *only = NULL;
	const char *list = "";

	for (size_t i = *n = 0; i < a->model->n_threads; i++) {
		const struct thread *thread = a->model->threads[i];

		if (!subject_is_thread(s, thread))
			continue;
		if (++*n <= THREADS_NAMED)
			list = arena_printf(texts, "%s%s%s (%u)", list, *list ? ", " : "",
					    thread_name(thread), thread->tid);
		only = thread;
	}
	if (*n < 2 || !s->name)
		return arena_printf(texts, "thread %u", only ? only->tid : s->tid);
	return arena_printf(texts, "%zu threads: %s%s", *n, list,
			    *n > THREADS_NAMED ? ", ..." : "");
}

static const char *subject_text(struct arena *texts, const struct accounting *a, size_t *n_threads)
{
	const struct subject *s = &a->blame->subject;

	switch (s->kind) {
	case SUBJECT_THREAD:
		return subject_threads(texts, a, n_threads);
	case SUBJECT_CALL:
		return text_function(a->model->set, s->fn);
	case SUBJECT_DEVICE:
		return arena_printf(texts, "GPU %u", s->device);
	case SUBJECT_PLACE:
		return s->place->function ? arena_printf(texts, "function %s, and what it called",
							 s->place->functions ?: s->place->function)
					  : arena_printf(texts, "place %s", s->place->text);
	case SUBJECT_FINDING:
		return arena_printf(texts, "finding %zu%s", s->finding,
				    s->place ? ", and the calls made at its place"
					     : ", of the whole run");
	default:
		for (size_t i = 0; i < a->locks.count; i++)
			if (subject_is_lock(s, a->locks.all[i]))
				return arena_printf(texts, "lock %s, %s", a->locks.all[i]->name,
						    a->locks.all[i]->place);
		return "a lock";
	}
}

/* Why there is nothing to tell of a function that was called: no call of the application's was
 * recorded. */
static const char *only_text(struct arena *texts, const struct callstats *stats, uint32_t fn)
{
	if (!stats->counted[fn])
		return arena_printf(texts,
				    "%s, only inside other calls, which contain its waits: "
				    "report --verbose --nested has both",
				    text_count(texts, stats->nested[fn].count, "time"));
	if (stats->model->set->functions.all[fn].contract == SPY_CONTRACT_HOST)
		return arena_printf(texts,
				    "%s, and only counted: it never waits, so there are no records "
				    "of its calls",
				    text_count(texts, stats->counted[fn], "time"));
	return arena_printf(
		texts,
		"%s, and only counted: inside other calls, which contain its waits, or because "
		"CUDASPY_COUNT names it (CUDASPY_TRACE=%s records each)",
		text_count(texts, stats->counted[fn], "time"),
		stats->model->set->functions.all[fn].name);
}

static void count_calls(struct subject_row *row, const struct accounting *a)
{
	const struct subject *s = &a->blame->subject;

	for (size_t i = 0; s->kind == SUBJECT_THREAD && i < a->model->n_threads; i++) {
		if (!subject_is_thread(s, a->model->threads[i]))
			continue;
		row->calls += a->stats->threads[i].count;
		row->counted = add_capped(row->counted, a->stats->threads[i].counted);
	}
	if (s->kind == SUBJECT_CALL) {
		row->calls = a->stats->direct[s->fn].count;
		row->counted = a->stats->counted[s->fn];
	}
	for (size_t i = 0; s->kind == SUBJECT_DEVICE && i < a->model->n_processes; i++)
		row->calls += a->stats->devices[callstats_index(a->stats, i, s->device)].count;
}

void report_subject(struct report *report, const struct accounting *a)
{
	enum subject_kind kind = a->blame->subject.kind;
	struct subject_row *row = xcalloc(1, sizeof(*row));
	size_t asked = 1;
	uint64_t callers, threads; /* whose times are added up: those it held up may be several */

	row->subject = subject_text(&report->arena, a, &asked);
	if (a->blame->subject.also_function)
		row->also =
			report_text(report, "a function of the program: cudaspy why function:%s",
				    kind == SUBJECT_CALL ? row->subject : a->blame->subject.name);
	if (kind == SUBJECT_PLACE || kind == SUBJECT_FINDING) {
		report_add(report, &subject_kind, row, 1);
		return;
	}
	row->waited_ns = (uint64_t)sum_end(&report->arena, a, false, &row->waited_mostly);
	row->held_up_ns = (uint64_t)sum_end(&report->arena, a, true, &row->held_up_mostly);
	callers = callstats_callers(a->stats);
	threads = kind == SUBJECT_THREAD ? asked : callers;
	row->waited =
		row->waited_ns
			? report_text(report, "%s for locks that others held",
				      text_thread_time(&report->arena, row->waited_ns, threads))
			: "in no call for a lock that others held";
	row->held_up =
		row->held_up_ns
			? report_text(report, "others, for %s",
				      text_thread_time(&report->arena, row->held_up_ns, callers))
			: "no thread in a call";
	count_calls(row, a);
	if (a->blame->subject.kind == SUBJECT_CALL && !row->calls) {
		row->only = only_text(&report->arena, a->stats, a->blame->subject.fn);
		row->waited = row->held_up = NULL;
	}
	if (a->blame->subject.kind == SUBJECT_LOCK) {
		row->waited =
			report_text(report, "by its waiters, %s",
				    text_thread_time(&report->arena, row->waited_ns, threads));
		row->held_up = NULL;
	}
	report_add(report, &subject_kind, row, 1);
}

void report_edges(struct report *report, const struct accounting *a)
{
	const struct subject *subject = &a->blame->subject;

	add_pairs(report, a, &device_kind, same_devices, subject);
	add_pairs(report, a, &call_kind, same_calls, subject);
	add_edges(report, a, &blame_kind, &a->blame->direct, subject);
	add_edges(report, a, &root_kind, &a->blame->roots, subject);
	add_edges(report, a, &kernel_overlap_kind, &a->blame->kernel_overlap.edges, subject);
}
