/*
 * analyzer/sections/cost.c: what recording cost the program, as far as its cost windows tell. Called by `report`, and by
 * `run --measure-cost`, whose report has nothing else.
 */
#include <math.h>
#include <stdlib.h>
#include "sections.h"
#include "text/text.h"
#include "base/median.h"

/* A call that is only counted, over one without cudaspy: docs/PERFORMANCE.md. */
#define COUNTING_NS 20
#define OVER_LIMIT 1.15 /* so much of it is said to be above: the estimate is no more exact */
#define THREADS_SHOWN 12
#define FUNCTIONS_SHOWN 20
#define BIASED_FROM 0.05 /* a function that takes so much longer is named */
#define BIASED_SURE 1.8 /* times the interval: of twenty functions none shall be named by chance */

/* ---- words ----------------------------------------------------------------------------------- */

/* "0.8": in per cent, with as many places as matter beside `width`. */
static const char *percent(struct arena *texts, double part, double width)
{
	double value = 100 * part;
	int places = width < 0.0005 ? 3 : width < 0.005 ? 2 : 1;

	if (fabs(value) < 0.5 * pow(10, -places))
		value = 0;
	return arena_printf(texts, "%.*f", places, value);
}

/* "0.8 % (0.3 to 1.3 %)" */
static const char *interval(struct arena *texts, const struct cost_estimate *e)
{
	double width = e->high - e->low;

	return arena_printf(texts, "%s %% (%s to %s %%)", percent(texts, e->middle, width),
			    percent(texts, e->low, width), percent(texts, e->high, width));
}

/* NULL: it is known. */
static const char *why_unknown(struct arena *texts, const struct cost_estimate *e)
{
	double width = e->high - e->low;

	switch (e->verdict) {
	case COST_NOTHING:
		return "not measured: cudaspy run --measure-cost does it";
	case COST_FEW_CALLS:
		return "too few calls in most of the time";
	case COST_FEW_BLOCKS:
		return arena_printf(texts, "only %zu comparisons, because the run was too short",
				    e->compared);
	case COST_VARIES:
		return arena_printf(
			texts,
			"the program's own pace varies too much: %zu comparisons give an "
			"interval of %s to %s %%",
			e->compared, percent(texts, e->low, width), percent(texts, e->high, width));
	default:
		return NULL;
	}
}

struct busiest {
	uint32_t number; /* thread index, function */
	uint64_t calls;
};

static int by_calls(const void *a, const void *b)
{
	const struct busiest *x = a, *y = b;

	return COMPARE(y->calls, x->calls) ?: COMPARE(x->number, y->number);
}

/* Those with most calls first. The caller frees. */
static struct busiest *busiest(const struct cost_study *cost, size_t n, bool functions)
{
	struct busiest *all = xcalloc(n + 1, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i].number = (uint32_t)i;
	for (size_t i = 0; i < cost->n; i++) {
		const struct cost_window *window = &cost->windows[i];

		if (!functions && window->thread->index < n)
			all[window->thread->index].calls += window->calls;
		for (size_t j = 0; functions && j < window->n_cells; j++)
			if (cost->cells[window->first_cell + j].fn < n)
				all[cost->cells[window->first_cell + j].fn].calls +=
					cost->cells[window->first_cell + j].calls;
	}
	qsort(all, n, sizeof(*all), by_calls);
	return all;
}

/* Where it was measured, and nothing can be compared, that is another thing than nothing measured. */
static struct cost_estimate compare(const struct cost_study *cost, const struct cost_of *of,
				    enum spy_cost_kind without)
{
	struct cost_estimate e = cost_compare(cost, of, without);

	if (e.verdict == COST_NOTHING && (cost->n || cost->counted))
		e.verdict = COST_FEW_BLOCKS;
	return e;
}

static struct cost_estimate of_all(const struct cost_study *cost, enum spy_cost_kind without)
{
	return compare(cost, &(struct cost_of){.fn = COST_ALL_FUNCTIONS}, without);
}

/* Of the time in which something takes so much longer. */
static double recorders_part(int32_t longer_ppm)
{
	double longer = longer_ppm / 1e6;

	return longer > 0 ? longer / (1 + longer) : 0;
}

/* What --overhead has made of it; NULL: there was none. */
static const char *kept(struct arena *texts, const struct model *model)
{
	double all = 0, lean = 0, counted = 0, cost = 0, wanted = 0;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct board *board = &model->processes[i].trace->board;
		double cycles[SPY_COST_KINDS], whole = 0;

		if (!board->present || !board->head.overhead_ppm)
			continue;
		for (unsigned int kind = 0; kind < SPY_COST_KINDS; kind++)
			whole += cycles[kind] = (double)board->head.cost_cycles[kind];
		wanted = fmax(wanted, board->head.overhead_ppm / 1e6);
		counted += cycles[SPY_COST_COUNTING];
		lean += cycles[SPY_COST_LEAN];
		all += whole;
		cost += (whole - cycles[SPY_COST_COUNTING] - cycles[SPY_COST_LEAN]) *
				recorders_part(board->head.cost_ppm) +
			cycles[SPY_COST_LEAN] * recorders_part(board->head.lean_ppm);
	}
	if (wanted <= 0 || all <= 0)
		return NULL;
	cost /= all - fmin(cost, all / 2);
	return arena_printf(
		texts,
		"--overhead=%g%%: with everything in %s of the time, without probes and "
		"stacks in %s, calls only counted in %s, which makes about %s %%%s",
		100 * wanted, text_percent(texts, all - lean - counted, all),
		text_percent(texts, lean, all), text_percent(texts, counted, all),
		percent(texts, cost, 0.004),
		cost > OVER_LIMIT * wanted
			? ", which is more, because the run was too short to make up for "
			  "measuring at its begin"
			: "");
}

/* The calls of a function, each with what is done until the thread's next one, recorded over counted. */
static struct cost_estimate of_function(const struct cost_study *cost, uint32_t fn)
{
	struct cost_estimate e = compare(cost, &(struct cost_of){.fn = fn}, SPY_COST_COUNTING);

	cost_estimate_of_busy(&e);
	return e;
}

/* Does recording surely change that function, and more than all calls together? By how much may be unsure. */
static bool is_changed(const struct cost_estimate *e, const struct cost_estimate *of_all_calls)
{
	double middle = log1p(e->middle);
	double low = expm1(middle - BIASED_SURE * (middle - log1p(e->low)));
	double all =
		of_all_calls->verdict == COST_KNOWN ? of_all_calls->high : of_all_calls->middle;

	return (e->verdict == COST_KNOWN || e->verdict == COST_VARIES) && low > BIASED_FROM &&
	       low > all;
}

static const char *changed(struct arena *texts, const struct model *model, uint32_t fn,
			   const struct cost_estimate *e)
{
	return arena_printf(texts,
			    "%s, and what is done until the next, took %.2f times as long while "
			    "recorded (%.2f to %.2f)",
			    text_function(model->set, fn), 1 + e->middle, 1 + e->low, 1 + e->high);
}

/* "; " and that of the function of which it is most; or nothing. */
static const char *changed_most(struct arena *texts, const struct cost_study *cost,
				const struct cost_estimate *of_all_calls)
{
	const struct model *model = cost->accounts->model;
	size_t n = model->set->functions.count, i;
	struct busiest *all = busiest(cost, n, true);
	struct cost_estimate most = {.low = 0};
	uint32_t fn = COST_ALL_FUNCTIONS;

	for (i = 0; i < n && i < FUNCTIONS_SHOWN && all[i].calls; i++) {
		struct cost_estimate e = of_function(cost, all[i].number);

		if (!is_changed(&e, of_all_calls) || e.low <= most.low)
			continue;
		most = e;
		fn = all[i].number;
	}
	free(all);
	if (fn == COST_ALL_FUNCTIONS)
		return "";
	return arena_printf(texts, "; %s", changed(texts, model, fn, &most));
}

const char *report_cost_text(struct arena *texts, const struct cost_study *cost)
{
	struct cost_estimate e = of_all(cost, SPY_COST_COUNTING);
	const char *limit = kept(texts, cost->accounts->model), *why = why_unknown(texts, &e),
		   *text;

	if (e.verdict == COST_NOTHING)
		return limit ?: why;
	if (why)
		text = arena_printf(texts, "what recording %s this program is unknown: %s%s",
				    limit ? "with everything costs" : "cost", why,
				    changed_most(texts, cost, &e));
	else
		text = arena_printf(texts, "recording %s this program %s%s",
				    limit ? "with everything costs" : "cost", interval(texts, &e),
				    changed_most(texts, cost, &e));
	return limit ? arena_printf(texts, "%s; %s", text, limit) : text;
}

/* ---- the table ------------------------------------------------------------------------------- */

struct cost_row {
	const char *of, *cost, *kind, *thread, *function, *unknown, *sentence;
	uint64_t calls_per_s, comparisons, left_out, only_counted;
	int64_t cost_ppm, low_ppm, high_ppm;
};

static const struct column cost_columns[] = {
	COLUMN_TEXT(struct cost_row, of, "of"),
	COLUMN_TEXT(struct cost_row, cost, "takes longer by (95 % sure)"),
	COLUMN(struct cost_row, calls_per_s, "calls/s", UNIT_COUNT),
	COLUMN(struct cost_row, comparisons, "comparisons", UNIT_COUNT),
	COLUMN_JSON(struct cost_row, left_out, UNIT_COUNT),
	COLUMN_JSON(struct cost_row, only_counted, UNIT_COUNT),
	COLUMN_JSON(struct cost_row, kind, UNIT_TEXT),
	COLUMN_JSON(struct cost_row, thread, UNIT_TEXT),
	COLUMN_JSON(struct cost_row, function, UNIT_TEXT),
	COLUMN_JSON(struct cost_row, cost_ppm, UNIT_PPM),
	COLUMN_JSON(struct cost_row, low_ppm, UNIT_PPM),
	COLUMN_JSON(struct cost_row, high_ppm, UNIT_PPM),
	COLUMN_JSON(struct cost_row, unknown, UNIT_TEXT),
	COLUMN_JSON(struct cost_row, sentence, UNIT_TEXT),
};

static const struct table_kind cost_kind = {
	TABLE("recording_cost", "WHAT RECORDING COSTS this program, measured in it",
	      struct cost_row, cost_columns),
	.text_rows = 40,
	.detail = true,
};

static int64_t ppm(double part)
{
	return (int64_t)llround(fmin(fmax(part, -1e3), 1e6) * 1e6);
}

static void fill(struct cost_row *row, struct arena *texts, const struct cost_estimate *e,
		 const struct cost_rate *rate)
{
	row->unknown = why_unknown(texts, e);
	row->cost = row->unknown ? arena_printf(texts, "? %s", row->unknown) : interval(texts, e);
	row->comparisons = e->compared;
	row->left_out = e->left_out;
	row->calls_per_s = rate->ns > 0 ? (uint64_t)((double)rate->calls * 1e9 / rate->ns) : 0;
	row->cost_ppm = row->low_ppm = row->high_ppm = INT64_MIN;
	if (!e->compared || e->verdict == COST_FEW_CALLS)
		return;
	row->cost_ppm = e->verdict == COST_KNOWN ? ppm(e->middle) : INT64_MIN;
	row->low_ppm = ppm(e->low);
	row->high_ppm = ppm(e->high);
}

static struct cost_row *add_row(struct cost_row **rows, size_t *n)
{
	*rows = grow(*rows, *n, sizeof(**rows));
	(*rows)[*n] = (struct cost_row){0};
	return &(*rows)[(*n)++];
}

/* What would be given back without one part of the recording. */
static void add_part(struct cost_row **rows, size_t *n, struct arena *texts,
		     const struct cost_study *cost, enum spy_cost_kind without, const char *kind,
		     const char *of)
{
	struct cost_rate rate = cost_rate(cost, &(struct cost_of){.fn = COST_ALL_FUNCTIONS});
	struct cost_estimate e = of_all(cost, without);
	struct cost_row *row = add_row(rows, n);

	fill(row, texts, &e, &rate);
	row->kind = kind;
	row->of = of;
}

/* Counting alone, over a program without cudaspy: no thread of which there is in this run. */
static void add_counting(struct cost_row **rows, size_t *n, struct arena *texts,
			 const struct cost_study *cost)
{
	struct cost_rate rate = cost_rate(cost, &(struct cost_of){.fn = COST_ALL_FUNCTIONS});
	struct cost_row *row = add_row(rows, n);
	double part = rate.ns > 0 ? (double)rate.calls * COUNTING_NS / rate.ns : 0;

	row->kind = "counting";
	row->of = "counting alone, besides";
	row->cost = arena_printf(texts, "%s %% (computed: %u ns a call)",
				 percent(texts, part, part / 10), COUNTING_NS);
	row->only_counted = cost->counted;
	row->calls_per_s = rate.ns > 0 ? (uint64_t)((double)rate.calls * 1e9 / rate.ns) : 0;
	row->cost_ppm = row->low_ppm = row->high_ppm = ppm(part);
}

/* ---- by thread and by function ---------------------------------------------------------------- */

static void add_threads(struct cost_row **rows, size_t *n, struct arena *texts,
			const struct cost_study *cost)
{
	const struct model *model = cost->accounts->model;
	size_t n_threads = model->n_threads, i;
	struct busiest *all = busiest(cost, n_threads, false);

	for (i = 0; i < n_threads && i < THREADS_SHOWN && all[i].calls && all[1].calls; i++) {
		struct cost_of of = {.thread = model->threads[all[i].number],
				     .fn = COST_ALL_FUNCTIONS};
		struct cost_estimate e = compare(cost, &of, SPY_COST_COUNTING);
		struct cost_rate rate = cost_rate(cost, &of);
		struct cost_row *row = add_row(rows, n);

		fill(row, texts, &e, &rate);
		row->kind = "thread";
		row->of = row->thread = text_thread(texts, of.thread, SPY_DEVICE_NONE);
	}
	free(all);
}

/* All of which calls were only counted have a row; those with most calls are compared. */
static void add_functions(struct cost_row **rows, size_t *n, struct arena *texts,
			  const struct cost_study *cost)
{
	const struct model *model = cost->accounts->model;
	size_t n_functions = model->set->functions.count, i;
	struct cost_estimate of_all_calls = of_all(cost, SPY_COST_COUNTING);
	struct busiest *all = busiest(cost, n_functions, true);

	for (i = 0; i < n_functions; i++) {
		struct cost_of of = {.fn = all[i].number};
		uint64_t counted = of.fn < cost->n_functions ? cost->counted_by_fn[of.fn] : 0;
		struct cost_estimate e = {.verdict = COST_FEW_CALLS};
		struct cost_rate rate = {0};
		struct cost_row *row;

		if (!all[i].calls && !counted)
			continue;
		if (i < FUNCTIONS_SHOWN) {
			e = of_function(cost, of.fn);
			rate = cost_rate(cost, &of);
		}
		row = add_row(rows, n);
		fill(row, texts, &e, &rate);
		row->kind = "function";
		if (is_changed(&e, &of_all_calls))
			row->sentence = changed(texts, model, of.fn, &e);
		row->only_counted = counted;
		row->function = text_function(model->set, of.fn);
		row->of = arena_printf(texts, "%s, and until the next", row->function);
	}
	free(all);
}

void report_cost(struct report *report, const struct cost_study *cost)
{
	struct arena *texts = &report->arena;
	struct cost_row *rows = NULL;
	size_t n = 0;
	struct table *table;

	if (!cost->n && !cost->counted) {
		report_add(report, &cost_kind, NULL, 0);
		return;
	}
	add_part(&rows, &n, texts, cost, SPY_COST_COUNTING, "all",
		 "recording, over counting its calls");
	rows[0].sentence = report_cost_text(texts, cost);
	add_part(&rows, &n, texts, cost, SPY_COST_NO_PROBES, "probes", "of it: probes of waits");
	add_part(&rows, &n, texts, cost, SPY_COST_NO_STACKS, "stacks", "of it: call stacks");
	add_counting(&rows, &n, texts, cost);
	add_threads(&rows, &n, texts, cost);
	add_functions(&rows, &n, texts, cost);
	table = report_add(report, &cost_kind, rows, n);
	table->intro = "In short windows, in random order, calls were recorded, or only counted; "
		       "this compares how often they were made.";
}
