/*
 * analyzer/sections/gpus.c: for each GPU, how long it certainly had nothing to do, and what those
 * who feed it did meanwhile. Called by `report`, after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "gpus.h"
#include "account/work.h"
#include "idle/callers.h"
#include "text/text.h"
#include "text/where.h"

/* ---- rows ------------------------------------------------------------------------------------ */

struct cause_row {
	const char *cause, *site, *name, *text;
	uint64_t ns;
};

/* clang-format off */
static const struct column cause_columns[] = {
	COLUMN_TEXT(struct cause_row, text, ""),
	COLUMN_JSON(struct cause_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, ns, UNIT_NS),
	COLUMN_JSON(struct cause_row, site, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, name, UNIT_TEXT),
};
/* clang-format on */

static const struct table_kind idle_causes_kind = {
	.key = "idle_causes",
	.title = "",
	.columns = cause_columns,
	.n_columns = ARRAY_SIZE(cause_columns),
	.row_bytes = sizeof(struct cause_row),
	.text_rows = 5,
};

static const struct table_kind feeder_causes_kind = {
	.key = "feeder_causes",
	.title = "",
	.columns = cause_columns,
	.n_columns = ARRAY_SIZE(cause_columns),
	.row_bytes = sizeof(struct cause_row),
	.text_rows = 5,
};

struct gpu_row {
	const char *process, *name, *busy_known, *unknown, *feeder;
	uint64_t device, work_ns, busy_ns, idle_ns, idle_max_ns;
	uint64_t feeder_thread, feeder_outside_ns, feeder_in_calls_ns;
	const struct table *idle_causes, *feeder_causes;
};

/* clang-format off */
static const struct column gpu_columns[] = {
	COLUMN(struct gpu_row, device, "GPU", UNIT_DEVICE),
	COLUMN(struct gpu_row, process, "process", UNIT_TEXT),
	COLUMN(struct gpu_row, work_ns, "at work for", UNIT_NS),
	COLUMN(struct gpu_row, idle_ns, "idle at least", UNIT_NS),
	COLUMN(struct gpu_row, idle_max_ns, "at most", UNIT_NS),
	COLUMN_JSON(struct gpu_row, name, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, busy_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, busy_known, UNIT_TEXT),
	COLUMN_LINE(struct gpu_row, unknown, UNIT_TEXT),
	COLUMN_TABLE(struct gpu_row, idle_causes, &idle_causes_kind),
	COLUMN_TEXT_LINE(struct gpu_row, feeder),
	COLUMN_JSON(struct gpu_row, feeder_thread, UNIT_PLAIN),
	COLUMN_JSON(struct gpu_row, feeder_outside_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, feeder_in_calls_ns, UNIT_NS),
	COLUMN_TABLE(struct gpu_row, feeder_causes, &feeder_causes_kind),
};
/* clang-format on */

static const struct table_kind gpus_kind = {
	.key = "gpus",
	.title = "GPUS: how long each certainly had nothing to do while its program worked, and "
		 "what "
		 "the thread did that submitted the next work",
	.columns = gpu_columns,
	.n_columns = ARRAY_SIZE(gpu_columns),
	.row_bytes = sizeof(struct gpu_row),
};

/* ---- places ---------------------------------------------------------------------------------- */

struct writer {
	struct arena *texts;
	const struct analysis *a;
	struct symbolizer *symbols;
	const struct idle_sum **sums; /* by owner */
	size_t n_sums;
};

static int by_owner(const void *a, const void *b)
{
	const struct idle_sum *const *x = a, *const *y = b;

	return (*x)->key.owner < (*y)->key.owner ? -1 : (*x)->key.owner > (*y)->key.owner;
}

static void sort_sums(struct writer *w)
{
	const struct idle_sum *sum = w->a->idle.sums.by_key;

	w->sums = xcalloc(HASH_COUNT(w->a->idle.sums.by_key) + 1, sizeof(*w->sums));
	for (; sum; sum = sum->hh.next)
		w->sums[w->n_sums++] = sum;
	qsort(w->sums, w->n_sums, sizeof(*w->sums), by_owner);
}

/* The first of an owner; n_sums: none of it, nor behind. */
static size_t first_of(const struct writer *w, uint64_t owner)
{
	size_t low = 0, high = w->n_sums, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (w->sums[middle]->key.owner < owner)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* "main, app.c:12", "app+0x1234"; NULL: unknown. */
static const char *place_words(const struct writer *w, const struct process *process,
			       uint64_t address, uint64_t ns)
{
	struct place place;

	if (!address)
		return NULL;
	symbolize(w->symbols, process, address, ns, &place);
	if (place.path && place.file)
		return arena_printf(w->texts, "%s, %s:%d", place.inner ?: place.function ?: "?",
				    path_basename(place.file), place.line);
	if (place.path && place.function)
		return arena_printf(w->texts, "%s (%s)", place.function, path_basename(place.path));
	return place.path ? arena_printf(w->texts, "%s+0x%llx", path_basename(place.path),
					 (unsigned long long)place.offset)
			  : NULL;
}

/* Of a call or a wait: its line of Python, or else its place. */
static const char *site_words(const struct writer *w, const struct process *process, uint32_t fn,
			      const struct stack *stack, uint64_t address, uint64_t ns)
{
	struct python_line line = python_line(stack);
	const char *words = text_python(w->texts, &line), *function;

	if (words)
		return words;
	words = place_words(w, process, address, ns);
	function = text_function(w->a->set, fn);
	if (!function)
		return words;
	return words ? arena_printf(w->texts, "%s in %s", function, words) : function;
}

/* One end of a time on a CPU, in few words: "train.py:17", "copy.c:25", "cudaMalloc (app+0x12)". */
static const char *end_words(const struct writer *w, const struct process *process, uint32_t fn,
			     const struct stack *stack, uint64_t address, uint64_t ns)
{
	struct python_line line = python_line(stack);
	const char *function = text_function(w->a->set, fn);
	struct place place = {0};

	if (line.code && line.line)
		return arena_printf(w->texts, "%s:%u", path_basename(line.code->file), line.line);
	if (address)
		symbolize(w->symbols, process, address, ns, &place);
	if (place.path && place.file)
		return arena_printf(w->texts, "%s:%d", path_basename(place.file), place.line);
	return place.path
		       ? arena_printf(w->texts, "%s (%s+0x%llx)", function,
				      path_basename(place.path), (unsigned long long)place.offset)
		       : function;
}

/* A time on a CPU lies between two calls. */
static const char *between(const struct writer *w, const struct idle_sum *sum)
{
	const struct idle_part *part = &sum->longest;
	const char *behind;

	if (part->fn == NO_FUNCTION)
		return NULL;
	behind = end_words(w, sum->process, part->fn, part->stack, part->address, part->at_ns);
	if (part->fn_before == NO_FUNCTION)
		return arena_printf(w->texts, "before %s", behind);
	return arena_printf(w->texts, "between %s and %s",
			    end_words(w, sum->process, part->fn_before, part->stack_before,
				      part->address_before, part->at_ns),
			    behind);
}

static const char *site_of(const struct writer *w, const struct idle_sum *sum)
{
	const struct idle_part *part = &sum->longest;

	if (part->cause == IDLE_PYTHON || part->cause == IDLE_CPU ||
	    (part->cause == IDLE_UNEXPLAINED && part->fn_before != NO_FUNCTION))
		return between(w, sum);
	return site_words(w, sum->process, part->fn, part->stack, part->address, part->at_ns);
}

/* ---- causes ---------------------------------------------------------------------------------- */

static int by_cause(const void *a, const void *b)
{
	const struct cause_row *x = a, *y = b;
	int order = strcmp(x->cause, y->cause);

	return order ? order : strcmp(x->site ?: "", y->site ?: "");
}

static int by_ns(const void *a, const void *b)
{
	const struct cause_row *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : by_cause(a, b);
}

/* Places that read alike are one. */
static size_t join(struct cause_row *rows, size_t n)
{
	size_t i, kept = 0;

	if (!n)
		return 0;
	qsort(rows, n, sizeof(*rows), by_cause);
	for (i = 1; i < n; i++)
		if (by_cause(&rows[kept], &rows[i]))
			rows[++kept] = rows[i];
		else
			rows[kept].ns += rows[i].ns;
	return kept + 1;
}

#define CAUSES_MOST 256 /* rows; what else there is has no place */

/* The causes of an owner, the largest first. Their sum is whole_ns exactly, if it is known: what
 * rounding leaves goes to the largest. gpu: whose certain part is meant; NULL: all. */
static const struct table *causes_of(const struct writer *w, const struct table_kind *kind,
				     uint64_t owner, const struct idle_gpu *gpu, uint64_t whole_ns)
{
	struct table *table = arena_take(w->texts, xcalloc(1, sizeof(*table)));
	struct cause_row *rows = NULL;
	uint64_t sum_ns = 0;
	size_t i, n = 0;

	for (i = first_of(w, owner); i < w->n_sums && w->sums[i]->key.owner == owner; i++) {
		const struct idle_sum *sum = w->sums[i];

		if (!sum->ns)
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct cause_row){
			.cause = idle_cause_codes[sum->key.cause],
			.site = site_of(w, sum),
			.name = idle_name_of_stack(
					sum->longest.fn == NO_FUNCTION ? sum->longest.stack : NULL)
					?: idle_cause_texts[sum->key.cause],
			.ns = gpu ? idle_scaled_ns(gpu, sum->ns) : sum->ns};
	}
	n = join(rows, n);
	for (i = 0; i < n; i++)
		sum_ns += rows[i].ns;
	if (n)
		qsort(rows, n, sizeof(*rows), by_ns);
	if (n && sum_ns < whole_ns)
		rows[0].ns += whole_ns - sum_ns;
	if (n > CAUSES_MOST) {
		for (i = CAUSES_MOST; i < n; i++)
			rows[CAUSES_MOST - 1].ns += rows[i].ns;
		rows[CAUSES_MOST - 1].cause = idle_cause_codes[IDLE_UNEXPLAINED];
		rows[CAUSES_MOST - 1].name = "many small parts";
		rows[CAUSES_MOST - 1].site = NULL;
		n = CAUSES_MOST;
		qsort(rows, n, sizeof(*rows), by_ns);
	}
	for (i = 0; i < n; i++)
		rows[i].text =
			arena_printf(w->texts, "%s  %s%s%s",
				     text_percent(w->texts, (double)rows[i].ns, (double)whole_ns),
				     rows[i].name, rows[i].site ? ": " : "", rows[i].site ?: "");
	*table = (struct table){
		.kind = kind, .rows = n ? arena_take(w->texts, rows) : NULL, .n_rows = n};
	return table;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Its processes' working phases, from the first one's begin to the last one's end. */
static uint64_t work_ns(const struct analysis *a, const struct idle_gpu *gpu)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0;
	size_t i;

	for (i = 0; i < gpu->n_processes; i++) {
		const struct process *process = gpu->processes[i];
		const struct phase *phase = &a->expect.phases.all[process->trace->index];

		begin_ns = min_u64(begin_ns, phase->found ? phase->begin_ns : process->first_ns);
		end_ns = max_u64(end_ns, phase->found ? phase->end_ns : process->last_ns);
	}
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static bool is_blind(const struct process *process)
{
	const struct note *note;

	for (note = process->notes; note; note = note->hh.next)
		if (note->note == SPY_NOTE_BLIND)
			return true;
	return false;
}

static bool shares_memory(const struct analysis *a)
{
	uint32_t fn;

	for (fn = 0; fn < a->set->functions.count && fn < a->stats.n_functions; fn++)
		if (a->set->functions.all[fn].does == FUNCTION_OPENS_SHARED &&
		    a->stats.direct[fn].count)
			return true;
	return false;
}

/* Why nothing is certain about a GPU; NULL: no reason. */
static const char *why_unknown(const struct analysis *a, const struct idle_gpu *gpu, bool complete)
{
	size_t i;

	if (!complete)
		return "records are lost";
	if (gpu->gpu && gpu->gpu->client == SPY_CLIENT_YES)
		return "other clients of MPS may use it";
	if (shares_memory(a))
		return "another process may work in memory that they share";
	for (i = 0; i < gpu->n_processes; i++)
		if (is_blind(gpu->processes[i]))
			return "not all calls are seen: see the notes";
	return NULL;
}

/* Is a wait for the GPU certainly a wait for its own work, and not for another one's, or for a
 * function on the host? */
static bool waits_prove_work(const struct analysis *a, const struct idle_gpu *gpu)
{
	uint64_t used = a->accounts.gpus_used[gpu->processes[0]->trace->index];
	uint32_t fn;

	if (gpu->n_processes > 1 || __builtin_popcountll(used) != 1)
		return false;
	for (fn = 0; fn < a->set->functions.count && fn < a->stats.n_functions; fn++)
		if (a->set->functions.all[fn].does == FUNCTION_SHOWS_OTHERS &&
		    a->stats.direct[fn].count + a->stats.nested[fn].count)
			return false;
	return true;
}

/* The thread that made most calls with it current, of those whose time is known. */
static const struct thread *feeder_of(const struct analysis *a, const struct idle_gpu *gpu)
{
	const struct thread *thread, *best = NULL;
	uint64_t most = 0;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(&a->accounts, thread);

		if (!c || c->device != gpu->device || !host_thread_find(&a->idle.threads, thread) ||
		    a->stats.threads[thread->index].count <= most)
			continue;
		most = a->stats.threads[thread->index].count;
		best = thread;
	}
	return best;
}

static void describe_feeder(const struct writer *w, const struct idle_gpu *gpu, struct gpu_row *row)
{
	const struct thread *thread = feeder_of(w->a, gpu);
	const struct host_thread *h = thread ? host_thread_find(&w->a->idle.threads, thread) : NULL;

	if (!h || !w->a->accounts.gaps_told[gpu->processes[0]->trace->index])
		return;
	row->feeder_thread = thread->tid;
	row->feeder_outside_ns = h->outside_ns;
	row->feeder_in_calls_ns = h->in_calls_ns;
	row->feeder =
		arena_printf(w->texts, "%s, which feeds it, was outside CUDA for %s of its time:",
			     text_thread(w->texts, thread, gpu->device),
			     text_percent(w->texts, (double)h->outside_ns,
					  (double)(h->outside_ns + h->in_calls_ns)));
	row->feeder_causes =
		causes_of(w, &feeder_causes_kind, idle_owner_thread(thread), NULL, h->outside_ns);
}

static struct gpu_row describe(const struct writer *w, size_t number, bool complete)
{
	const struct idle_gpu *gpu = &w->a->idle.gpus[number];
	const char *unknown = why_unknown(w->a, gpu, complete);
	struct gpu_row row = {
		.process = gpu->n_processes > 1 ? "several"
						: text_process(w->texts, gpu->processes[0]->trace),
		.name = gpu->gpu ? gpu->gpu->name : NULL,
		.device = gpu->device,
		.work_ns = work_ns(w->a, gpu),
		.busy_known = "bounds",
	};

	if (unknown)
		row.unknown = arena_printf(w->texts, "nothing certain: %s", unknown);
	else
		row.idle_ns = min_u64(idle_certain_ns(gpu), row.work_ns);
	if (!unknown && waits_prove_work(w->a, gpu))
		row.busy_ns = min_u64(gpu->waited_ns, row.work_ns - row.idle_ns);
	row.idle_max_ns = row.work_ns - row.busy_ns;
	if (row.idle_ns)
		row.idle_causes =
			causes_of(w, &idle_causes_kind, idle_owner_gpu(number), gpu, row.idle_ns);
	describe_feeder(w, gpu, &row);
	return row;
}

static int by_device(const void *a, const void *b)
{
	const struct gpu_row *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return strcmp(x->process, y->process);
}

void report_gpus(struct report *report, const struct analysis *a, struct symbolizer *symbols,
		 bool complete)
{
	struct writer w = {.texts = &report->arena, .a = a, .symbols = symbols};
	struct gpu_row *rows = xcalloc(a->idle.n_gpus + 1, sizeof(*rows));
	size_t i, n = 0;

	sort_sums(&w);
	for (i = 0; i < a->idle.n_gpus; i++)
		rows[n++] = describe(&w, i, complete);
	free(w.sums);
	qsort(rows, n, sizeof(*rows), by_device);
	report_add(report, &gpus_kind, rows, n);
}
