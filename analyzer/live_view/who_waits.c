/*
 * analyzer/live_view/who_waits.c: threads that have not gone on: chains of them, each one, and the locks. Called by `top` and
 * `snapshot`.
 */
#include <stdlib.h>
#include "sections/sections.h"
#include "tables.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"

const char *live_doing_name(enum live_doing doing)
{
	static const char *const names[LIVE_DOINGS] = {
		[LIVE_GOES_ON] = "active",  [LIVE_LOCK] = "lock",       [LIVE_JOIN] = "join",
		[LIVE_GPU] = "gpu",         [LIVE_MODULE] = "ioctl",    [LIVE_WAIT] = "wait",
		[LIVE_CALL] = "call",       [LIVE_BETWEEN] = "between", [LIVE_UNSEEN] = "unseen",
		[LIVE_NO_CUDA] = "no-cuda", [LIVE_GONE] = "gone",
	};

	return names[doing];
}

/* ---- chains ---------------------------------------------------------------------------------- */

struct chain_row {
	const char *chain;
	uint64_t waited_ns, threads;
};

/* clang-format off */
static const struct column chain_columns[] = {
	COLUMN(struct chain_row, waited_ns, "for", UNIT_NS_IF_KNOWN),
	COLUMN(struct chain_row, chain, "the thread, what it waits for, the holder of that, and so on", UNIT_TEXT),
	COLUMN_JSON(struct chain_row, threads, UNIT_COUNT),
};
/* clang-format on */

static const struct table_kind chain_kind = {
	TABLE("chains", "WAIT CHAINS, from each waiter to the thread that the others wait for",
	      struct chain_row, chain_columns),
	.text_rows = 12,
};

static bool is_waited_for(const struct live *live, const struct live_thread *t)
{
	for (size_t i = 0; i < live->n_threads; i++)
		if (live->threads[i]->holder == t && live->threads[i] != t &&
		    live->threads[i]->doing != LIVE_JOIN)
			return true;
	return false;
}

static uint64_t stuck_ns(const struct live_thread *t)
{
	if (t->doing == LIVE_GOES_ON || !t->slot)
		return 0;
	if (t->waits)
		return t->wait_ns == UNKNOWN_NS ? 0 : t->wait_ns;
	return t->in_call && t->call_ns != UNKNOWN_NS ? t->call_ns : 0;
}

/* One that nobody waits for; of a cycle the first. */
static bool begins_chain(const struct live *live, const struct live_thread *t)
{
	if (!t->slot || (!t->holder && t->doing != LIVE_GPU) ||
	    (t->doing == LIVE_JOIN && !t->cycle))
		return false;
	if (!t->cycle)
		return !is_waited_for(live, t);
	for (size_t i = 0; live->threads[i] != t; i++)
		if (live->threads[i]->cycle == t->cycle)
			return false;
	return true;
}

/* Threads of the chain, each of a cycle once. */
static uint64_t length_of(const struct live_thread *t)
{
	const struct live_thread *into = NULL;
	uint64_t n = 1;

	while (t->holder && t->holder != into) {
		if (!into && t->cycle)
			into = t;
		if (t->holder == into)
			break;
		t = t->holder;
		n++;
	}
	return n;
}

static int by_chain(const void *x, const void *y)
{
	const struct chain_row *a = x, *b = y;

	return COMPARE(b->threads, a->threads) ?: COMPARE(b->waited_ns, a->waited_ns);
}

void live_add_chains(struct report *report, const struct live_words *w, uint64_t after_ns)
{
	const struct live *live = w->live;
	struct chain_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < live->n_threads; i++) {
		const struct live_thread *t = live->threads[i];

		if (!begins_chain(live, t) || (stuck_ns(t) < after_ns && !t->cycle))
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct chain_row){live_chain_text(w, t), stuck_ns(t), length_of(t)};
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_chain);
	report_add(report, &chain_kind, rows, n);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define ACTIVE_MOST 4 /* threads that make calls, named in text */

struct thread_row {
	const char *thread, *of, *doing, *waits_for, *where, *system, *function, *holder, *name,
		*wait_kind, *shown;
	const struct table *stack;
	uint64_t pid, tid, device, stuck_ns, call_ns, wait_ns, waiters;
	uint64_t weight; /* for the order */
};

static const struct column thread_columns[] = {
	COLUMN_TEXT(struct thread_row, thread, "thread"),
	COLUMN_TEXT(struct thread_row, of, "of"),
	COLUMN_TEXT(struct thread_row, shown, "now"),
	COLUMN_JSON(struct thread_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct thread_row, tid, UNIT_PLAIN),
	COLUMN_JSON(struct thread_row, name, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, doing, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, function, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, device, UNIT_DEVICE),
	COLUMN_JSON(struct thread_row, call_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct thread_row, waits_for, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, wait_kind, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, wait_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct thread_row, holder, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, waiters, UNIT_COUNT),
	COLUMN_JSON(struct thread_row, where, UNIT_TEXT),
	COLUMN_JSON(struct thread_row, system, UNIT_TEXT),
	COLUMN_TABLE(struct thread_row, stack, &stack_table_kind),
};

static const struct table_kind thread_kind = {
	TABLE("threads", "THREADS", struct thread_row, thread_columns),
	.text_rows = 40,
};

/* Its last recorded stack, which need not be that of the call it is in. */
const struct table *live_last_stack(struct report *report, const struct live_words *w,
				    const struct live_thread *t)
{
	const struct stack *stack = t->model ? t->model->stack : NULL;
	struct table *table;
	const struct table *made;

	if (!stack)
		return NULL;
	made = report_stack(&report->arena, w->symbols, stack, 0);
	if (!made)
		return NULL;
	table = arena_take(&report->arena, xcalloc(1, sizeof(*table)));
	*table = *made;
	table->intro =
		report_text(report,
			    "last recorded stack, of a call that returned at %s (not the call it "
			    "is in now):",
			    live_stack_time(w, t));
	return table;
}

/* In a cycle, in a call or at a lock, waiting for something else, between two calls, going on. */
static uint64_t weight_of(const struct live_thread *t)
{
	if (t->cycle)
		return 4;
	if (t->doing == LIVE_GOES_ON)
		return 0;
	if (!stuck_ns(t))
		return t->slot ? 1 : 3;
	return t->in_call || t->doing == LIVE_LOCK ? 3 : 2;
}

/* Of those that go on there is nothing else to say: text has them in one line. */
static void fold_active(struct report *report, struct table *table)
{
	const struct thread_row *rows = table->rows;
	const char *text = "making calls";
	size_t i = table->n_rows, n = 0;

	while (i && !rows[i - 1].weight)
		i--;
	table->minor_rows = table->n_rows - i;
	for (; i < table->n_rows && n < ACTIVE_MOST; i++, n++)
		text = report_text(report, "%s%s %s", text, n ? "," : ":", rows[i].thread);
	table->minor_name = i < table->n_rows ? report_text(report, "%s, ...", text) : text;
}

static struct thread_row thread_row_of(struct report *report, const struct live_words *w,
				       const struct live_thread *t)
{
	const char *state = live_state_text(w, t);
	const char *name = t->model ? thread_name(t->model) : t->os.name;
	struct thread_row row = {
		.thread = live_thread_short(w, t),
		.of = text_rank(w->texts, t->process->trace)
			      ?: text_program(w->texts, t->process->trace),
		.name = report_text(report, "%s", *name ? name : t->os.name),
		.doing = live_doing_name(t->doing),
		.waits_for = live_wait_text(w, t),
		.where = live_place(w, t),
		.system = state,
		.pid = t->process->recorded ? (uint64_t)t->process->recorded->pid
					    : t->process->trace->pid,
		.tid = t->tid,
		.device = t->device,
		.call_ns = t->in_call ? t->call_ns : UNKNOWN_NS,
		.wait_ns = t->waits ? t->wait_ns : UNKNOWN_NS,
		.waiters = t->waiters,
	};

	if (t->in_call)
		row.function = text_function(&w->live->set, t->fn);
	if (t->waits)
		row.wait_kind = name_wait(t->wait_kind);
	if (t->holder)
		row.holder = live_thread_name(w, t->holder);
	row.stuck_ns = stuck_ns(t);
	row.weight = weight_of(t);
	row.shown = t->doing == LIVE_GOES_ON
			    ? report_text(report, "makes calls; at this moment it is %s",
					  live_call_text(w, t))
			    : report_text(report, "%s%s%s%s%s", live_doing_text(w, t),
					  t->holder && t->doing == LIVE_LOCK ? ", held by " : "",
					  t->doing == LIVE_LOCK ? row.holder ?: "" : "",
					  state && t->slot && live_wait_text(w, t) ? "; " : "",
					  state && t->slot && live_wait_text(w, t) ? state : "");
	return row;
}

/* Of those the ones that others wait for first, then those that have not gone on for longest. */
static int by_stuck(const void *x, const void *y)
{
	const struct thread_row *a = x, *b = y;

	return COMPARE(b->weight, a->weight) ?: COMPARE(b->waiters, a->waiters) ?:
	       COMPARE(b->stuck_ns, a->stuck_ns) ?: COMPARE(a->tid, b->tid);
}

void live_add_threads(struct report *report, const struct live_words *w, uint64_t after_ns,
		      bool stacks)
{
	const struct live *live = w->live;
	struct thread_row *rows = xcalloc(live->n_threads, sizeof(*rows));

	for (size_t i = 0; i < live->n_threads; i++) {
		const struct live_thread *t = live->threads[i];

		rows[i] = thread_row_of(report, w, t);
		if (stacks && t->doing != LIVE_JOIN && (t->cycle || stuck_ns(t) >= after_ns))
			rows[i].stack = live_last_stack(report, w, t);
	}
	if (live->n_threads)
		qsort(rows, live->n_threads, sizeof(*rows), by_stuck);
	fold_active(report, report_add(report, &thread_kind, rows, live->n_threads));
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct lock_row {
	const char *lock, *kind, *lies, *holder, *holder_does;
	uint64_t object, pid, waiters, longest_ns;
};

static const struct column lock_columns[] = {
	COLUMN(struct lock_row, lock, "lock", UNIT_TEXT),
	COLUMN(struct lock_row, kind, "kind", UNIT_TEXT),
	COLUMN(struct lock_row, waiters, "waiting", UNIT_COUNT),
	COLUMN(struct lock_row, longest_ns, "longest", UNIT_NS),
	COLUMN(struct lock_row, lies, "lies in", UNIT_TEXT),
	COLUMN(struct lock_row, holder, "held by", UNIT_TEXT),
	COLUMN_JSON(struct lock_row, holder_does, UNIT_TEXT),
	COLUMN_JSON(struct lock_row, object, UNIT_PLAIN),
	COLUMN_JSON(struct lock_row, pid, UNIT_PLAIN),
};

static const struct table_kind lock_kind = {
	TABLE("locks", "LOCKS that are waited for", struct lock_row, lock_columns),
	.text_rows = 20,
};

void live_add_locks(struct report *report, const struct live_words *w)
{
	struct lock_row *rows = xcalloc(w->n_locks, sizeof(*rows));

	for (size_t i = 0; i < w->n_locks; i++) {
		const struct live_lock *lock = &w->locks[i];
		const struct module *module =
			w->live->open ? model_module_of_data(
						&w->live->model.processes[lock->process->index],
						lock->object, now_ns())
				      : NULL;

		rows[i] = (struct lock_row){
			.lock = report_text(report, "L%zu", i + 1),
			.kind = name_wait(lock->kind),
			.lies = module ? report_text(report, "%s", path_basename(module->path))
				       : report_text(report, "0x%llx",
						     (unsigned long long)lock->object),
			.holder = lock->holder ? live_thread_name(w, lock->holder) : NULL,
			.holder_does = lock->holder ? live_doing_text(w, lock->holder) : NULL,
			.object = min_u64(lock->object, NUMBER_MOST),
			.pid = lock->process->recorded ? (uint64_t)lock->process->recorded->pid
						       : lock->process->trace->pid,
			.waiters = lock->waiters,
			.longest_ns = lock->longest_ns,
		};
	}
	report_add(report, &lock_kind, rows, w->n_locks);
}
