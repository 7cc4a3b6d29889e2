/*
 * analyzer/cost/cost.c: cost windows are collected as their records go by, and compared when all is read. Called by the
 * main reading and by the sections of a report.
 *
 * What a thread recorded in a window by function, its account says: what that has more than when the window before ended.
 */
#include <stdlib.h>
#include <string.h>
#include "cost.h"
#include "model/join.h"
#include "cudaspy/cost_plan.h"

#define WINDOWS_MOST 500000
#define RUNNING_LEAST 20 /* of a window: one in so many */
#define CELLS_MOST (4 * (size_t)WINDOWS_MOST)
/* Twelve days; of a longer run time without calls is not looked for */
#define FRAMES_MOST 4000000ull

void cost_begin(struct cost_study *cost, const struct accounting *accounts)
{
	*cost = (struct cost_study){.accounts = accounts};
}

void cost_release(struct cost_study *cost)
{
	for (size_t i = 0; i < cost->n_seen; i++) {
		free(cost->seen[i].fns);
		free(cost->seen[i].calls);
	}
	free(cost->seen);
	free(cost->windows);
	free(cost->cells);
	free(cost->counted_by_fn);
	*cost = (struct cost_study){0};
}

/* ---- collecting ------------------------------------------------------------------------------ */

static uint64_t block_of(uint64_t window)
{
	return window / 4;
}

/* Blocks are drawn by their number: all threads and processes keep the same ones. */
static bool is_kept(const struct cost_study *cost, uint64_t window)
{
	uint64_t mixed = block_of(window) * 0x9e3779b97f4a7c15ull;

	return !(mixed >> 32 & ((1ull << cost->thinned) - 1));
}

/* There are too many: every other block goes. */
static void thin(struct cost_study *cost)
{
	size_t i, j, windows = 0, cells = 0;

	cost->thinned++;
	for (i = 0; i < cost->n; i++) {
		struct cost_window window = cost->windows[i];

		if (!is_kept(cost, window.number))
			continue;
		for (j = 0; j < window.n_cells; j++)
			cost->cells[cells + j] = cost->cells[window.first_cell + j];
		window.first_cell = cells;
		cells += window.n_cells;
		cost->windows[windows++] = window;
	}
	cost->n = windows;
	cost->n_cells = cells;
}

static struct cost_seen *seen_by(struct cost_study *cost, const struct thread *thread)
{
	while (cost->n_seen <= thread->index) {
		cost->seen = grow(cost->seen, cost->n_seen, sizeof(*cost->seen));
		cost->seen[cost->n_seen++] = (struct cost_seen){0};
	}
	return &cost->seen[thread->index];
}

static void add_cell(struct cost_study *cost, struct cost_window *window, uint32_t fn,
		     uint64_t calls)
{
	size_t i;

	if (!calls)
		return;
	for (i = window->first_cell; i < cost->n_cells; i++)
		if (cost->cells[i].fn == fn)
			break;
	if (i == cost->n_cells) {
		cost->cells = grow(cost->cells, cost->n_cells, sizeof(*cost->cells));
		cost->cells[cost->n_cells++] = (struct cost_cell){.fn = fn};
		window->n_cells++;
	}
	cost->cells[i].calls = (uint32_t)min_u64(cost->cells[i].calls + calls, UINT32_MAX);
}

/* Of the functions of a thread, in the order in which they came to its account. */
static uint64_t calls_since(struct cost_seen *seen, size_t i, const struct function_accounts *f)
{
	uint64_t calls;

	if (i >= seen->n) {
		seen->fns = grow(seen->fns, seen->n, sizeof(*seen->fns));
		seen->calls = grow(seen->calls, seen->n, sizeof(*seen->calls));
		seen->fns[seen->n] = f->fns[i];
		seen->calls[seen->n++] = 0;
	}
	calls = f->all[i].calls - min_u64(seen->calls[i], f->all[i].calls);
	seen->calls[i] = f->all[i].calls;
	return calls;
}

static void add_recorded(struct cost_study *cost, struct cost_window *window, struct thread *thread)
{
	const struct thread_account *c = thread_account_of(cost->accounts, thread);
	struct cost_seen *seen;

	if (!c)
		return;
	seen = seen_by(cost, thread);
	for (size_t i = 0; i < c->functions.n; i++) {
		uint64_t calls = calls_since(seen, i, &c->functions);

		if (window)
			add_cell(cost, window, c->functions.fns[i], calls);
	}
}

static void count(struct cost_study *cost, size_t n_functions, uint32_t fn, uint64_t calls)
{
	if (cost->n_functions < n_functions) {
		cost->counted_by_fn =
			xrealloc(cost->counted_by_fn, n_functions, sizeof(*cost->counted_by_fn));
		memset(cost->counted_by_fn + cost->n_functions, 0,
		       (n_functions - cost->n_functions) * sizeof(*cost->counted_by_fn));
		cost->n_functions = n_functions;
	}
	cost->counted_by_fn[fn] = add_capped(cost->counted_by_fn[fn], calls);
	cost->counted = add_capped(cost->counted, calls);
}

static void add_counted(struct cost_study *cost, struct cost_window *window, struct model *model,
			struct trace *trace, const struct cost_record *counted)
{
	for (unsigned int i = 0; i < counted->n; i++) {
		uint32_t fn = trace_function(model->set, trace, counted->functions[i].fn);

		count(cost, model->set->functions.count, fn, counted->functions[i].count);
		if (window)
			add_cell(cost, window, fn, counted->functions[i].count);
	}
}

/* Without the time in which the thread had no CPU, for others had them: that is none of the recorder's. Where hardly any
 * is left, it is not exact enough. */
static double running_ns(const struct cost_record *of)
{
	return of->delay_ns < of->ns - of->ns / RUNNING_LEAST ? (double)(of->ns - of->delay_ns) : 0;
}

/* The window that the record is of: the thread's last one, if this one only has more functions; NULL: none. */
static struct cost_window *window_of(struct cost_study *cost, struct thread *thread,
				     const struct cost_record *of)
{
	struct cost_window *last = cost->n ? &cost->windows[cost->n - 1] : NULL;

	if (!of->valid || !is_kept(cost, of->window))
		return NULL;
	if (last && last->number == of->window && last->thread == thread)
		return last;
	if (cost->n >= WINDOWS_MOST || cost->n_cells >= CELLS_MOST) {
		thin(cost);
		if (!is_kept(cost, of->window))
			return NULL;
	}
	cost->windows = grow(cost->windows, cost->n, sizeof(*cost->windows));
	last = &cost->windows[cost->n++];
	*last = (struct cost_window){
		.number = of->window,
		.thread = thread,
		.ns = running_ns(of),
		.first_cell = cost->n_cells,
		.calls = of->calls,
		.kind = of->kind,
	};
	return last;
}

void cost_see(struct cost_study *cost, struct model *model, const struct record *record)
{
	const struct cost_record of = decode_cost(record);
	struct cost_window *window = window_of(cost, record->thread, &of);

	add_recorded(cost, window, record->thread);
	add_counted(cost, window, model, record->stream->trace, &of);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static uint64_t calls_of(const struct cost_study *cost, const struct cost_window *window,
			 const struct cost_of *of)
{
	if (of->fn == COST_ALL_FUNCTIONS)
		return window->calls;
	for (size_t i = 0; i < window->n_cells; i++)
		if (cost->cells[window->first_cell + i].fn == of->fn)
			return cost->cells[window->first_cell + i].calls;
	return 0;
}

/* The windows of one block: of a kind, calls in a nanosecond; and how long a window is. */
struct block {
	uint64_t number;
	double ns;
	double calls[SPY_COST_KINDS], rate[SPY_COST_KINDS];
	bool seen[SPY_COST_KINDS];
	bool lacked_cpu; /* a thread had hardly any CPU */
};

static int by_block(const void *a, const void *b)
{
	const struct cost_window *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread->index < y->thread->index ? -1 : 1;
	return x->first_cell < y->first_cell ? -1 : x->first_cell > y->first_cell;
}

/* struct cost_study, joined: windows, n, cells, n_cells, thinned, counted, counted_by_fn, n_functions; not: accounts (the whole's),
 * seen, n_seen (while records are read). */
static bool join_part(struct cost_study *cost, const struct cost_study *part)
{
	if (part->thinned || cost->n + part->n >= WINDOWS_MOST ||
	    cost->n_cells + part->n_cells >= CELLS_MOST)
		return false;
	for (size_t i = 0; i < part->n; i++) {
		cost->windows = grow(cost->windows, cost->n, sizeof(*cost->windows));
		cost->windows[cost->n] = part->windows[i];
		cost->windows[cost->n++].first_cell += cost->n_cells;
	}
	for (size_t i = 0; i < part->n_cells; i++) {
		cost->cells = grow(cost->cells, cost->n_cells, sizeof(*cost->cells));
		cost->cells[cost->n_cells++] = part->cells[i];
	}
	for (size_t i = 0; i < part->n_functions; i++)
		if (part->counted_by_fn[i])
			count(cost, part->n_functions, (uint32_t)i, part->counted_by_fn[i]);
	return true;
}

bool cost_join(struct cost_study *cost, struct cost_study *const *parts, struct join *join)
{
	for (size_t i = 0; i < join->n; i++)
		if (!join_part(cost, parts[i]))
			return join_refuse(join, "too many cost windows");
	return true;
}

void cost_finish(struct cost_study *cost)
{
	if (cost->n)
		qsort(cost->windows, cost->n, sizeof(*cost->windows), by_block);
}

/* The one at i and all others of its block. Returns what comes behind. Where a thread made no call in a window it has left
 * no record. */
static size_t see_block(const struct cost_study *cost, size_t i, const struct cost_of *of,
			struct block *block)
{
	*block = (struct block){.number = block_of(cost->windows[i].number)};
	block->ns = (double)spy_cost_frame(block->number / SPY_COST_BLOCKS_MOST).length_ns;
	for (; i < cost->n && block_of(cost->windows[i].number) == block->number; i++) {
		const struct cost_window *window = &cost->windows[i];

		if (of->thread && of->thread != window->thread)
			continue;
		block->seen[window->kind] = true;
		block->lacked_cpu |= window->ns <= 0;
		block->calls[window->kind] += (double)calls_of(cost, window, of);
		if (window->ns > 0)
			block->rate[window->kind] +=
				(double)calls_of(cost, window, of) / window->ns;
	}
	if (block->seen[SPY_COST_ALL] || block->seen[SPY_COST_NO_PROBES] ||
	    block->seen[SPY_COST_NO_STACKS])
		block->seen[SPY_COST_COUNTING] = true;
	if (block->seen[SPY_COST_COUNTING])
		block->seen[SPY_COST_ALL] = true;
	return i;
}

/* In which its calls were made. Where several threads made them: as long as it would have taken each, one by one. */
static double time_of(const struct block *block, unsigned int kind)
{
	return block->calls[kind] > 0 ? block->calls[kind] / block->rate[kind] : block->ns;
}

/* Was there a time in which nothing was to be recorded, or did the recorder itself choose what is measured? Then blocks
 * without calls say nothing. */
static bool had_windows(const struct cost_study *cost)
{
	for (size_t i = 0; i < cost->n; i++) {
		const struct process *process = cost->windows[i].thread->process;

		if (process->windows || process->trace->board.head.overhead_ppm)
			return true;
	}
	return false;
}

/* Blocks from the first one to the last one that were to be, and that passed without a call: the time of two windows of
 * each. `seen` are those that did not. */
static double idle_ns(const struct cost_study *cost, const uint64_t *seen, size_t n)
{
	bool all_the_time = false;
	double ns = 0, seen_ns = 0;
	uint64_t number, first, last;

	if (!n || cost->thinned || had_windows(cost))
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct spy_cost_frame frame = spy_cost_frame(seen[i] / SPY_COST_BLOCKS_MOST);

		all_the_time |= !frame.sampled;
		seen_ns += 2 * (double)frame.length_ns;
	}
	first = seen[0] / SPY_COST_BLOCKS_MOST;
	last = seen[n - 1] / SPY_COST_BLOCKS_MOST;
	for (number = first; number <= last && last - first < FRAMES_MOST; number++) {
		struct spy_cost_frame frame = spy_cost_frame(number);
		uint64_t from = number == first ? seen[0] % SPY_COST_BLOCKS_MOST : 0;
		uint64_t to =
			number == last ? seen[n - 1] % SPY_COST_BLOCKS_MOST + 1 : frame.blocks;

		if ((all_the_time || frame.sampled) && to > from)
			ns += 2 * (double)frame.length_ns * (double)(to - from);
	}
	return ns > seen_ns ? ns - seen_ns : 0;
}

struct cost_estimate cost_compare(const struct cost_study *cost, const struct cost_of *of,
				  enum spy_cost_kind without)
{
	uint64_t *seen = xcalloc(cost->n + 1, sizeof(*seen));
	struct cost_pair *pairs = NULL;
	struct cost_estimate estimate;
	struct block block;
	size_t i = 0, n = 0, n_seen = 0;

	while (i < cost->n) {
		i = see_block(cost, i, of, &block);
		if (block.seen[SPY_COST_COUNTING])
			seen[n_seen++] = block.number;
		if (!block.seen[SPY_COST_ALL] || !block.seen[without] || block.lacked_cpu)
			continue;
		pairs = grow(pairs, n, sizeof(*pairs));
		pairs[n++] = (struct cost_pair){
			.with = block.calls[SPY_COST_ALL],
			.with_ns = time_of(&block, SPY_COST_ALL),
			.without = block.calls[without],
			.without_ns = time_of(&block, without),
			.weight_ns = 2 * block.ns,
		};
	}
	estimate = cost_estimate(pairs, n,
				 without == SPY_COST_COUNTING ? idle_ns(cost, seen, n_seen) : 0);
	free(pairs);
	free(seen);
	return estimate;
}

struct cost_rate cost_rate(const struct cost_study *cost, const struct cost_of *of)
{
	struct cost_rate rate = {0};
	struct block block;
	size_t i = 0;

	while (i < cost->n) {
		i = see_block(cost, i, of, &block);
		for (unsigned int kind = 0; kind < SPY_COST_KINDS; kind++) {
			rate.ns += block.seen[kind] ? block.ns : 0;
			rate.calls += (uint64_t)block.calls[kind];
		}
	}
	return rate;
}
