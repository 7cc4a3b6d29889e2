/*
 * analyzer/diff/diff_headline.c: what is compared with what, and what of it differs in all. Called
 * by diff.c.
 */
#include <stdlib.h>
#include "diff.h"
#include "base/format.h"

/* ---- the headline --------------------------------------------------------------------------- */

struct headline_row {
	const char *a, *b, *inside, *lost, *found, *rule;
	uint64_t a_runs, b_runs, a_total_ns, b_total_ns, a_lost_ns, b_lost_ns;
	uint64_t appeared, vanished, grew, shrank;
	const char *lost_noise;
};

static const struct column headline_columns[] = {
	COLUMN_TEXT(struct headline_row, a, "A"),
	COLUMN_TEXT(struct headline_row, b, "B"),
	COLUMN_TEXT(struct headline_row, found, "findings"),
	COLUMN_TEXT(struct headline_row, lost, "lost"),
	COLUMN_TEXT(struct headline_row, inside, "in calls"),
	COLUMN(struct headline_row, rule, "noise", UNIT_TEXT),
	COLUMN_JSON(struct headline_row, a_runs, UNIT_COUNT),
	COLUMN_JSON(struct headline_row, b_runs, UNIT_COUNT),
	COLUMN_JSON(struct headline_row, a_total_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, b_total_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, a_lost_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, b_lost_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, lost_noise, UNIT_TEXT),
	COLUMN_JSON(struct headline_row, appeared, UNIT_COUNT),
	COLUMN_JSON(struct headline_row, vanished, UNIT_COUNT),
	COLUMN_JSON(struct headline_row, grew, UNIT_COUNT),
	COLUMN_JSON(struct headline_row, shrank, UNIT_COUNT),
};

static const struct table_kind headline_kind = {
	TABLE("summary", "CUDASPY DIFF", struct headline_row, headline_columns),
	.facts = true,
};

/* "3 runs: before1, before2, before3 (app.4711)". */
static const char *side_text(struct arena *texts, const struct diff_side *side)
{
	const char *program =
		diff_text_of(json_object_get(side->reports[0], "summary"), "program") ?: "?";
	const char *text = side->n > 1 ? arena_printf(texts, "%zu runs: ", side->n) : "";

	for (size_t i = 0; i < side->n; i++)
		text = arena_printf(texts, "%s%s%s", text, i ? ", " : "", side->names[i]);
	return arena_printf(texts, "%s (%s)", text, program);
}

/* Of two sides that do not differ, how many in a hundred have ranges that lie apart? */
static double apart_percent(size_t n, size_t m)
{
	double ways = 1;

	for (size_t i = 1; i <= n; i++)
		ways = ways * (double)(m + i) / (double)i;
	return 200 / ways;
}

static const char *rule_text(struct arena *texts, size_t n_a, size_t n_b)
{
	if (n_a < 2 && n_b < 2)
		return "not known, with one run on each side; give several: cudaspy diff A1 A2 A3 "
		       "-- B1 B2 B3";
	return arena_printf(texts,
			    "medians are compared; a difference is noise if the ranges of A and "
			    "B overlap, or if it is not larger than the wider one; if nothing "
			    "changed, up to %.2g %% of the numbers will still appear to have "
			    "changed",
			    apart_percent(n_a, n_b));
}

static struct diff_change change_of_wait(const struct diff_side *a, const struct diff_side *b,
					 const char *key)
{
	uint64_t *values = xcalloc(a->n > b->n ? a->n : b->n, sizeof(*values));
	struct diff_change c;

	for (size_t i = 0; i < a->n; i++)
		values[i] = diff_number_of(json_object_get(a->reports[i], "waits"), key);
	c.a = diff_range_of(values, a->n);
	for (size_t i = 0; i < b->n; i++)
		values[i] = diff_number_of(json_object_get(b->reports[i], "waits"), key);
	c.b = diff_range_of(values, b->n);
	c.noise = diff_judge(&c.a, a->n, &c.b, b->n);
	free(values);
	return c;
}

static const char *change_text(struct arena *texts, const struct diff_change *c)
{
	char a[32], b[32];

	format_ns(a, sizeof(a), c->a.median);
	format_ns(b, sizeof(b), c->b.median);
	return arena_printf(texts, "%s in A, %s in B: %s", a, b, diff_signed_time(texts, c));
}

struct headline_row *diff_add_headline(struct report *report, const struct diff_side *a,
				       const struct diff_side *b)
{
	struct diff_change total = change_of_wait(a, b, "total_ns");
	struct diff_change lost = change_of_wait(a, b, "lost_ns");
	struct headline_row *row = xcalloc(1, sizeof(*row));

	row->a = side_text(&report->arena, a);
	row->b = side_text(&report->arena, b);
	row->rule = rule_text(&report->arena, a->n, b->n);
	row->inside = change_text(&report->arena, &total);
	row->lost = change_text(&report->arena, &lost);
	row->lost_noise = diff_noise_key(&lost);
	row->a_runs = a->n;
	row->b_runs = b->n;
	row->a_total_ns = total.a.median;
	row->b_total_ns = total.b.median;
	row->a_lost_ns = lost.a.median;
	row->b_lost_ns = lost.b.median;
	report_add(report, &headline_kind, row, 1);
	return row;
}

/* The headline comes first, and counts what is found after it. */
void diff_finish_headline(struct arena *texts, struct headline_row *row,
			  const struct diff_tally *tally)
{
	row->appeared = tally->appeared;
	row->vanished = tally->vanished;
	row->grew = tally->grew;
	row->shrank = tally->shrank;
	row->found = arena_printf(
		texts,
		"%llu appeared, %llu vanished, %llu grew, %llu shrank, %llu about the same or "
		"minor",
		(unsigned long long)tally->appeared, (unsigned long long)tally->vanished,
		(unsigned long long)tally->grew, (unsigned long long)tally->shrank,
		(unsigned long long)tally->stayed);
}

/* ---- the runs ------------------------------------------------------------------------------- */

struct run_row {
	const char *side, *run, *program;
	uint64_t processes, calls, duration_ns, call_ns, lost_records;
};

static const struct column run_columns[] = {
	COLUMN(struct run_row, side, "", UNIT_TEXT),
	COLUMN(struct run_row, run, "run", UNIT_TEXT),
	COLUMN_JSON(struct run_row, program, UNIT_TEXT),
	COLUMN(struct run_row, processes, "processes", UNIT_COUNT),
	COLUMN(struct run_row, duration_ns, "lasted", UNIT_NS),
	COLUMN(struct run_row, calls, "calls", UNIT_COUNT),
	COLUMN(struct run_row, call_ns, "in calls", UNIT_NS),
	COLUMN(struct run_row, lost_records, "records lost", UNIT_COUNT),
};

static const struct table_kind run_kind = {
	TABLE("runs", "RUNS", struct run_row, run_columns),
};

static void add_side(struct run_row *rows, const struct diff_side *side, const char *name)
{
	for (size_t i = 0; i < side->n; i++) {
		const json_t *summary = json_object_get(side->reports[i], "summary");

		rows[i] = (struct run_row){
			.side = name,
			.run = side->names[i],
			.program = diff_text_of(summary, "program"),
			.processes = diff_number_of(summary, "processes"),
			.calls = diff_number_of(summary, "calls"),
			.duration_ns = diff_number_of(summary, "duration_ns"),
			.call_ns = diff_number_of(summary, "call_ns"),
			.lost_records = diff_number_of(summary, "lost_records"),
		};
	}
}

void diff_add_runs(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	struct run_row *rows = xcalloc(a->n + b->n, sizeof(*rows));

	add_side(rows, a, "A");
	add_side(rows + a->n, b, "B");
	report_add(report, &run_kind, rows, a->n + b->n);
}
