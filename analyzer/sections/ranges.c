/*
 * analyzer/sections/ranges.c: the program's own ranges (NVTX): where its time went, in its own
 * words. Called by `report`, and by the findings.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "text/text.h"
#include "base/median.h"

/* "layers: backward". */
static const char *full_name(struct arena *texts, const struct range_name *name)
{
	if (!*name->domain)
		return arena_printf(texts, "%s", *name->name ? name->name : "(no name)");
	return arena_printf(texts, "%s: %s", name->domain, name->name);
}

const char *report_range_name(struct arena *texts, struct range_name *name)
{
	return full_name(texts, range_shown(name));
}

/* ---- the table ------------------------------------------------------------------------------- */

#define RANGE_ROWS_MOST 1000 /* of what is shown as one row, the costliest; the rest is one row */

struct range_row {
	const char *shown, *name, *domain;
	uint64_t count, marks, unended, names, ns, longest_ns, calls, calls_ns, lost_ns, gpu_ns,
		lock_ns, outside_wait_ns, own_ns, own_calls_ns, gpu_idle_ns;
};

static const struct column range_columns[] = {
	COLUMN_TEXT(struct range_row, shown, "range"),
	COLUMN_JSON(struct range_row, name, UNIT_TEXT),
	COLUMN_JSON(struct range_row, domain, UNIT_TEXT),
	COLUMN(struct range_row, count, "count", UNIT_COUNT),
	COLUMN(struct range_row, ns, "time", UNIT_NS),
	COLUMN(struct range_row, own_ns, "own", UNIT_NS),
	COLUMN(struct range_row, calls, "calls", UNIT_COUNT),
	COLUMN(struct range_row, calls_ns, "in calls", UNIT_NS),
	COLUMN(struct range_row, gpu_ns, "GPU waits", UNIT_NS),
	COLUMN(struct range_row, lost_ns, "lost", UNIT_NS),
	COLUMN_JSON(struct range_row, lock_ns, UNIT_NS),
	COLUMN_JSON(struct range_row, outside_wait_ns, UNIT_NS),
	COLUMN_JSON(struct range_row, own_calls_ns, UNIT_NS),
	COLUMN_JSON(struct range_row, gpu_idle_ns, UNIT_NS),
	COLUMN_JSON(struct range_row, longest_ns, UNIT_NS),
	COLUMN_JSON(struct range_row, names, UNIT_COUNT),
	COLUMN_JSON(struct range_row, marks, UNIT_COUNT),
	COLUMN_JSON(struct range_row, unended, UNIT_COUNT),
};

static const struct table_kind ranges_kind = {
	TABLE("ranges", "RANGES of the program (NVTX)", struct range_row, range_columns),
	.text_rows = 15,
};

static void add(struct range_row *row, const struct range_sum *sum, uint64_t idle_ns)
{
	row->count = add_capped(row->count, sum->count);
	row->marks = add_capped(row->marks, sum->marks);
	row->unended = add_capped(row->unended, sum->unended);
	row->ns = add_capped(row->ns, sum->all.ns);
	row->longest_ns = max_u64(row->longest_ns, min_u64(sum->longest_ns, NUMBER_MOST));
	row->calls = add_capped(row->calls, sum->all.calls);
	row->calls_ns = add_capped(row->calls_ns, sum->all.calls_ns);
	row->lost_ns = add_capped(row->lost_ns, sum->all.lost_ns);
	row->gpu_ns = add_capped(row->gpu_ns, sum->all.gpu_ns);
	row->lock_ns = add_capped(row->lock_ns, sum->all.lock_ns);
	row->outside_wait_ns = add_capped(row->outside_wait_ns, sum->all.outside_ns);
	row->own_ns = add_capped(row->own_ns, sum->own.ns);
	row->own_calls_ns = add_capped(row->own_calls_ns, sum->own.calls_ns);
	row->gpu_idle_ns = add_capped(row->gpu_idle_ns, idle_ns);
}

static void join(struct range_row *row, const struct range_row *more)
{
	row->count = add_capped(row->count, more->count);
	row->marks = add_capped(row->marks, more->marks);
	row->unended = add_capped(row->unended, more->unended);
	row->names = add_capped(row->names, more->names);
	row->ns = add_capped(row->ns, more->ns);
	row->longest_ns = max_u64(row->longest_ns, more->longest_ns);
	row->calls = add_capped(row->calls, more->calls);
	row->calls_ns = add_capped(row->calls_ns, more->calls_ns);
	row->lost_ns = add_capped(row->lost_ns, more->lost_ns);
	row->gpu_ns = add_capped(row->gpu_ns, more->gpu_ns);
	row->lock_ns = add_capped(row->lock_ns, more->lock_ns);
	row->outside_wait_ns = add_capped(row->outside_wait_ns, more->outside_wait_ns);
	row->own_ns = add_capped(row->own_ns, more->own_ns);
	row->own_calls_ns = add_capped(row->own_calls_ns, more->own_calls_ns);
	row->gpu_idle_ns = add_capped(row->gpu_idle_ns, more->gpu_idle_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct range_row *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: COMPARE(y->count + y->marks, x->count + x->marks) ?:
	       strcmp(x->shown, y->shown);
}

/* The costliest come first: those that are too many are one row. */
static size_t bound(struct range_row *rows, size_t n)
{
	if (n <= RANGE_ROWS_MOST)
		return n;
	for (size_t i = RANGE_ROWS_MOST; i < n; i++)
		join(&rows[RANGE_ROWS_MOST - 1], &rows[i]);
	rows[RANGE_ROWS_MOST - 1].shown = rows[RANGE_ROWS_MOST - 1].name = "(all others)";
	rows[RANGE_ROWS_MOST - 1].domain = "";
	return RANGE_ROWS_MOST;
}

/* Rows of what names are shown as; by index of that name, then in order. */
static size_t fill(struct range_row *rows, struct arena *texts, const struct idle *idle)
{
	const struct range_names *names = &idle->accounts->model->range_names;
	const struct ranges *ranges = &idle->accounts->ranges;
	size_t i, n = 0;

	for (i = 0; i < names->n && i < ranges->n_sums; i++) {
		const struct range_name *shown = range_shown(names->all[i]);
		const struct range_sum *sum = &ranges->sums[i];

		if (!sum->count && !sum->marks)
			continue;
		add(&rows[shown->index], sum, i < idle->ranges.n ? idle->ranges.ns[i] : 0);
		rows[shown->index].names++;
	}
	for (i = 0; i < names->n; i++) {
		if (!rows[i].names)
			continue;
		rows[i].shown = full_name(texts, names->all[i]);
		rows[i].name = names->all[i]->name;
		rows[i].domain = names->all[i]->domain;
		rows[n++] = rows[i];
	}
	return n;
}

/* What the recorder left out. */
static uint64_t count_boards(const struct idle *idle, size_t field)
{
	const struct model *model = idle->accounts->model;
	uint64_t sum = 0, n;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct board *board = &model->processes[i].trace->board;

		if (!board->present)
			continue;
		memcpy(&n, (const char *)&board->head + field, sizeof(n));
		sum = add_capped(sum, n);
	}
	return sum;
}

#define LEFT_OPEN_NAMED 3

/* "left out, because the library did not end them: 2 of NCCL: ncclCommInitRankConfig". NULL: there are none. */
static const char *left_open_text(struct arena *texts, const struct idle *idle)
{
	const struct ranges *ranges = &idle->accounts->ranges;
	const char *text = NULL;
	size_t i, n = 0;

	for (i = 0; i < ranges->n_sums; i++) {
		if (!ranges->sums[i].left_open || n++ >= LEFT_OPEN_NAMED)
			continue;
		text = arena_printf(texts, "%s%" PRIu64 " of %s",
				    text ? arena_printf(texts, "%s, ", text)
					 : "left out, because the library did not end them: ",
				    ranges->sums[i].left_open,
				    full_name(texts, idle->accounts->model->range_names.all[i]));
	}
	return n > LEFT_OPEN_NAMED
		       ? arena_printf(texts, "%s and %zu more names", text, n - LEFT_OPEN_NAMED)
		       : text;
}

/* "3 ranges or marks are not here: threads that call no CUDA announced 2 of them". */
static const char *missing_text(struct arena *texts, const struct idle *idle)
{
	uint64_t elsewhere = count_boards(idle, offsetof(struct spy_board, ranges_elsewhere));
	uint64_t lost = add_capped(count_boards(idle, offsetof(struct spy_board, ranges_lost)),
				   idle->accounts->ranges.lost);
	const char *text = left_open_text(texts, idle);

	if (lost)
		text = arena_printf(
			texts,
			"%s%s%s not followed: no room, too many open, or no begin in the trace",
			text ?: "", text ? "; " : "", text_count(texts, lost, "range"));
	if (elsewhere)
		text = arena_printf(texts, "%s%s%s by threads before a call of CUDA: only counted",
				    text ?: "", text ? "; " : "",
				    text_count(texts, elsewhere, "NVTX event"));
	return text;
}

void report_ranges(struct report *report, const struct idle *idle)
{
	struct range_row *rows = xcalloc(idle->accounts->model->range_names.n + 1, sizeof(*rows));
	size_t n = fill(rows, &report->arena, idle);
	struct table *table;

	qsort(rows, n, sizeof(*rows), by_time);
	table = report_add(report, &ranges_kind, rows, bound(rows, n));
	if (n)
		table->intro = missing_text(&report->arena, idle);
}

/* ---- shares ----------------------------------------------------------------------------------- */

struct share_row {
	const char *shown; /* NULL: text has them in one line */
	const char *name, *domain;
	uint64_t count, ns;
};

static const struct column share_columns[] = {
	COLUMN_TEXT(struct share_row, shown, ""),
	COLUMN_JSON(struct share_row, name, UNIT_TEXT),
	COLUMN_JSON(struct share_row, domain, UNIT_TEXT),
	COLUMN_JSON(struct share_row, count, UNIT_COUNT),
	COLUMN_JSON(struct share_row, ns, UNIT_NS),
};

const struct table_kind range_shares_kind = {
	TABLE("ranges", "", struct share_row, share_columns),
};

#define SHARES_SHOWN 3

static int by_share(const void *a, const void *b)
{
	const struct range_share *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->name->index < y->name->index ? -1 : 1;
}

/* "in range step # (82 %), layers: forward (10 %), and 2 more". */
static const char *shares_text(struct arena *texts, const struct range_shares *shares,
			       uint64_t own_ns)
{
	const char *text = "in range";

	for (size_t i = 0; i < shares->n && i < SHARES_SHOWN; i++) {
		const struct range_share *share = &shares->all[i];

		text = arena_printf(texts, "%s%s %s", text, i ? "," : "",
				    full_name(texts, share->name));
		if (own_ns)
			text = arena_printf(texts, "%s (%s)", text,
					    text_percent(texts, (double)share->ns, (double)own_ns));
	}
	if (shares->n > SHARES_SHOWN)
		text = arena_printf(texts, "%s, and %zu more", text, shares->n - SHARES_SHOWN);
	return text;
}

const struct table *report_range_shares(struct arena *texts, const struct range_shares *shares,
					uint64_t own_ns)
{
	struct table *table = arena_take(texts, xcalloc(1, sizeof(*table)));
	struct range_shares now = {0};
	struct share_row *rows;

	/* Names that have become many since are one. */
	range_shares_join(&now, shares);
	qsort(now.all, now.n, sizeof(now.all[0]), by_share);
	rows = arena_take(texts, xcalloc(now.n + 1, sizeof(*rows)));
	for (size_t i = 0; i < now.n; i++)
		rows[i] = (struct share_row){.name = now.all[i].name->name,
					     .domain = now.all[i].name->domain,
					     .count = now.all[i].count,
					     .ns = now.all[i].ns};
	*table = (struct table){.kind = &range_shares_kind, .rows = rows, .n_rows = now.n};
	table->intro = shares_text(texts, &now, own_ns);
	return table;
}
