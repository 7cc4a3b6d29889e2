/*
 * analyzer/sections/filters.c: of a report on a part of a recording (--thread, --from …): which part it is, what each
 * option leaves out, and what is said of the whole recording all the same. Called by `report` and `why`.
 */
#include <stdlib.h>
#include "sections.h"
#include "text/text.h"

struct outside_row {
	const char *option, *value;
	uint64_t found, calls, ns;
};

static const struct column outside_columns[] = {
	COLUMN_JSON(struct outside_row, option, UNIT_TEXT),
	COLUMN_JSON(struct outside_row, value, UNIT_TEXT),
	COLUMN_JSON(struct outside_row, found, UNIT_COUNT),
	COLUMN_JSON(struct outside_row, calls, UNIT_COUNT),
	COLUMN_JSON(struct outside_row, ns, UNIT_NS),
};

static const struct table_kind outside_kind = {
	TABLE("outside", "", struct outside_row, outside_columns),
};

struct only_row {
	const char *shown[FILTER_KINDS]; /* what the option means here */
	const char *range, *inside, *outside, *not_limited;
	uint64_t names, calls, calls_ns, left_out, left_out_ns, left_out_counted;
	uint64_t from_ns, to_ns;
	const struct table *options;
};

/* clang-format off */
#define SHOWN(kind, option) \
	{.title = "--" option, .unit = UNIT_TEXT, .offset = offsetof(struct only_row, shown[kind])}
static const struct column only_columns[] = {
	SHOWN(FILTER_THREAD, "thread"),
	SHOWN(FILTER_GPU, "gpu"),
	SHOWN(FILTER_RANK, "rank"),
	SHOWN(FILTER_PROCESS, "process"),
	SHOWN(FILTER_FUNCTION, "function"),
	SHOWN(FILTER_RANGE, "range"),
	SHOWN(FILTER_FROM, "from"),
	SHOWN(FILTER_TO, "to"),
	COLUMN_TEXT(struct only_row, inside, "in it"),
	COLUMN_TEXT(struct only_row, outside, "left out"),
	COLUMN(struct only_row, not_limited, "not limited", UNIT_TEXT),
	COLUMN_JSON(struct only_row, range, UNIT_TEXT),
	COLUMN_JSON(struct only_row, names, UNIT_COUNT),
	COLUMN_JSON(struct only_row, from_ns, UNIT_NS),
	COLUMN_JSON(struct only_row, to_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct only_row, calls, UNIT_COUNT),
	COLUMN_JSON(struct only_row, calls_ns, UNIT_NS),
	COLUMN_JSON(struct only_row, left_out, UNIT_COUNT),
	COLUMN_JSON(struct only_row, left_out_ns, UNIT_NS),
	COLUMN_JSON(struct only_row, left_out_counted, UNIT_COUNT),
	{.key = "options", .title = "", .unit = UNIT_TABLE, .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct only_row, options), .table = &outside_kind},
};
/* clang-format on */

static const struct table_kind only_kind = {
	TABLE("only", "ONLY a part of the recording", struct only_row, only_columns),
	.facts = true,
};

/* "2 threads", "from t = 1.200 s on, the begin of the working phase". */
static const char *meaning(struct arena *texts, const struct filtering *f, enum filter_kind kind)
{
	static const char *const things[FILTER_KINDS] = {"thread",   "GPU",  "rank", "process",
							 "function", "name", NULL,   NULL};
	const struct filter_time *time = kind == FILTER_FROM ? &f->filter->from : &f->filter->to;
	uint64_t ns = kind == FILTER_FROM ? f->from_ns : f->to_ns;
	const char *phase = "";

	if (things[kind] && kind == FILTER_PROCESS && f->found[kind] != 1)
		return arena_printf(texts, "%llu processes", (unsigned long long)f->found[kind]);
	if (things[kind])
		return text_count(texts, f->found[kind], things[kind]);
	if (time->form == FILTER_TIME_PHASE)
		phase = f->no_phase           ? " (no working phase is known: all of the recording)"
			: kind == FILTER_FROM ? " (the working phase begins)"
					      : " (the working phase ends)";
	if (ns == UINT64_MAX)
		return arena_printf(texts, "the end%s", phase);
	return arena_printf(texts, "t = %s%s",
			    text_time(texts, ns - min_u64(ns, f->survey.first_ns)), phase);
}

static void describe_options(struct arena *texts, const struct filtering *f, struct only_row *only)
{
	struct outside_row *rows = arena_take(texts, xcalloc(FILTER_KINDS, sizeof(*rows)));
	struct table *table = arena_take(texts, xcalloc(1, sizeof(*table)));
	size_t n = 0;

	for (unsigned int kind = 0; kind < FILTER_KINDS; kind++) {
		const struct filter_sum *sum = &f->outside[kind];

		if (!filter_has(f, kind))
			continue;
		rows[n++] = (struct outside_row){.option = filter_option(kind),
						 .value = f->filter->words.of[kind],
						 .found = f->found[kind],
						 .calls = sum->calls,
						 .ns = sum->ns};
		only->shown[kind] =
			arena_printf(texts, "%s: %s; outside %s, %s", f->filter->words.of[kind],
				     meaning(texts, f, kind), text_count(texts, sum->calls, "call"),
				     text_time(texts, sum->ns));
	}
	*table = (struct table){.kind = &outside_kind, .rows = rows, .n_rows = n};
	only->options = table;
}

#define WINDOW (1u << FILTER_FROM | 1u << FILTER_TO)
#define OF_GPUS (1u << FILTER_GPU | 1u << FILTER_RANK | 1u << FILTER_PROCESS)

/* What is told of all calls and of the whole recording, whatever the options say. */
static const char *not_limited(struct arena *texts, const struct ranks *ranks)
{
	const struct filtering *f = ranks->idle->accounts->filtering;
	const char *text = "", *window = filter_has_window(f) ? ", but by time" : "";

	if (f->kinds & ~(WINDOW | OF_GPUS))
		text = arena_printf(texts, "GPUS and findings about idle GPUs%s; ", window);
	if (ranks->n && f->kinds & ~WINDOW)
		text = arena_printf(texts, "%sRANKS%s; ", text, window);
	if (ranks->n)
		text = arena_printf(texts, "%sCOLLECTIVES and STEPS; ", text);
	if (ranks->idle->accounts->ranges.n_sums)
		text = arena_printf(texts, "%show many RANGES there were, and how long; ", text);
	return arena_printf(texts, "%swhat calls are expected to cost", text);
}

void report_only(struct report *report, const struct ranks *ranks)
{
	const struct filtering *f = ranks->idle->accounts->filtering;
	struct arena *texts = &report->arena;
	struct only_row *row;

	if (!f->kinds)
		return;
	row = xcalloc(1, sizeof(*row));
	describe_options(texts, f, row);
	row->range = f->filter->words.of[FILTER_RANGE];
	row->names = f->found[FILTER_RANGE];
	row->from_ns = f->from_ns - min_u64(f->from_ns, f->survey.first_ns);
	row->to_ns = f->to_ns == UINT64_MAX ? UNKNOWN_NS : f->to_ns - f->survey.first_ns;
	row->calls = ranks->idle->accounts->stats->all.count;
	row->calls_ns = ranks->idle->accounts->stats->all.total_ns;
	row->left_out = f->left_out.calls;
	row->left_out_ns = f->left_out.ns;
	row->left_out_counted = f->counted;
	row->inside = report_text(report, "%s, %s", text_count(texts, row->calls, "call"),
				  text_time(texts, row->calls_ns));
	row->outside = report_text(report, "%s, %s%s", text_count(texts, row->left_out, "call"),
				   text_time(texts, row->left_out_ns),
				   f->counted ? report_text(report, "; %s that were only counted",
							    text_count(texts, f->counted, "call"))
					      : "");
	row->not_limited = not_limited(texts, ranks);
	report_add(report, &only_kind, row, 1);
}
