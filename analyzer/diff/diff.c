/*
 * analyzer/diff/diff.c: two sides compared: the tables of findings, waits and calls. Called by
 * `cudaspy diff`.
 */
#include <stdlib.h>
#include <string.h>
#include "diff.h"
#include "account/buckets.h"
#include "base/format.h"
#include "text/text.h"

/* ---- texts ---------------------------------------------------------------------------------- */

/* "+1.234 ms". */
static const char *short_change(struct arena *texts, const struct diff_change *c)
{
	int64_t ns = diff_difference(c);
	char text[32];

	format_ns(text, sizeof(text), diff_distance(c->a.median, c->b.median));
	return arena_printf(texts, "%s%s", ns < 0 ? "-" : ns > 0 ? "+" : "", text);
}

static const char *range_text(struct arena *texts, const struct diff_range *r)
{
	char low[32], high[32];

	format_ns(low, sizeof(low), r->low);
	format_ns(high, sizeof(high), r->high);
	return arena_printf(texts, "%s to %s", low, high);
}

/* Where the runs of the sides lie; nothing with one run each. */
static const char *ranges_text(struct arena *texts, const struct diff_items *items,
			       const struct diff_change *c)
{
	if (items->a->n < 2 && items->b->n < 2)
		return "";
	return arena_printf(texts, "A %s, B %s", range_text(texts, &c->a),
			    range_text(texts, &c->b));
}

/* Too little to show in text: noise, or less than a hundredth of what the sides have in all. */
#define LITTLE_PART 100

static bool is_little(const struct diff_change *c, uint64_t whole_ns)
{
	return c->noise == DIFF_NOISE || !diff_difference(c) ||
	       diff_distance(c->a.median, c->b.median) < whole_ns / LITTLE_PART;
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct diff_row {
	const char *name, *title, *change, *verdict, *noise, *detail; /* of all kinds */
	const char *a_severity, *b_severity, *function, *module, *caller, *where; /* findings */
	uint64_t a_ns, b_ns, change_ns, a_low_ns, a_high_ns, b_low_ns, b_high_ns;
	uint64_t a_count, b_count, a_median_ns, b_median_ns, a_runs, b_runs;
	uint64_t size_ns; /* of the change */
	bool little;
	bool unknown; /* the cost of one side is unknown, or of both */
};

/* clang-format off */
#define COMMON_JSON \
	COLUMN_JSON(struct diff_row, change_ns, UNIT_NS_CHANGE), \
	COLUMN_JSON(struct diff_row, verdict, UNIT_TEXT), \
	COLUMN_JSON(struct diff_row, noise, UNIT_TEXT), \
	COLUMN_JSON(struct diff_row, a_low_ns, UNIT_NS_IF_KNOWN), \
	COLUMN_JSON(struct diff_row, a_high_ns, UNIT_NS_IF_KNOWN), \
	COLUMN_JSON(struct diff_row, b_low_ns, UNIT_NS_IF_KNOWN), \
	COLUMN_JSON(struct diff_row, b_high_ns, UNIT_NS_IF_KNOWN)

static const struct column finding_columns[] = {
	COLUMN(struct diff_row, a_ns, "A", UNIT_NS_IF_KNOWN),
	COLUMN(struct diff_row, b_ns, "B", UNIT_NS_IF_KNOWN),
	COLUMN_TEXT(struct diff_row, change, "change"),
	COLUMN_TEXT(struct diff_row, title, "what"),
	COLUMN_TEXT_LINE(struct diff_row, where),
	COLUMN_TEXT_WORDS(struct diff_row, detail),
	{.key = "id", .title = "", .unit = UNIT_TEXT, .place = COLUMN_JSON_ONLY, .offset = offsetof(struct diff_row, name)},
	COLUMN_JSON(struct diff_row, function, UNIT_TEXT),
	COLUMN_JSON(struct diff_row, module, UNIT_TEXT),
	COLUMN_JSON(struct diff_row, caller, UNIT_TEXT),
	COMMON_JSON,
	COLUMN_JSON(struct diff_row, a_severity, UNIT_TEXT),
	COLUMN_JSON(struct diff_row, b_severity, UNIT_TEXT),
	COLUMN_JSON(struct diff_row, a_count, UNIT_COUNT),
	COLUMN_JSON(struct diff_row, b_count, UNIT_COUNT),
	COLUMN_JSON(struct diff_row, a_runs, UNIT_COUNT),
	COLUMN_JSON(struct diff_row, b_runs, UNIT_COUNT),
};

static const struct column wait_columns[] = {
	{.key = "cause", .title = "", .unit = UNIT_TEXT, .place = COLUMN_JSON_ONLY, .offset = offsetof(struct diff_row, name)},
	COLUMN_TEXT(struct diff_row, title, "cause"),
	COLUMN(struct diff_row, a_ns, "A", UNIT_NS),
	COLUMN(struct diff_row, b_ns, "B", UNIT_NS),
	COLUMN_TEXT(struct diff_row, change, "change"),
	COMMON_JSON,
};

static const struct column call_columns[] = {
	{.key = "function", .title = "function", .unit = UNIT_TEXT, .offset = offsetof(struct diff_row, name)},
	COLUMN(struct diff_row, a_count, "calls A", UNIT_COUNT),
	COLUMN(struct diff_row, b_count, "B", UNIT_COUNT),
	COLUMN(struct diff_row, a_ns, "total A", UNIT_NS),
	COLUMN(struct diff_row, b_ns, "B", UNIT_NS),
	COLUMN_TEXT(struct diff_row, change, "change"),
	COLUMN_TEXT_WORDS(struct diff_row, detail),
	COLUMN_JSON(struct diff_row, a_median_ns, UNIT_NS),
	COLUMN_JSON(struct diff_row, b_median_ns, UNIT_NS),
	COMMON_JSON,
};
/* clang-format on */

#define KIND(name, key_, title_, rows_, empty) \
	static const struct table_kind name##_kind = { \
		TABLE(key_, title_, struct diff_row, name##_columns), \
		.text_rows = rows_, \
		.when_empty = empty, \
	}
KIND(finding, "findings", "FINDINGS, what they cost; the largest change first", 10,
     "none on either side");
KIND(wait, "waits", "WHERE THE TIME INSIDE CALLS WENT", 0, NULL);
KIND(call, "calls", "CALLS of the application, the largest change of their time first", 15,
     "none were recorded");

static int by_change(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	if (x->little != y->little)
		return x->little ? 1 : -1;
	if (x->size_ns != y->size_ns)
		return x->size_ns < y->size_ns ? 1 : -1;
	return strcmp(x->name ?: "", y->name ?: "");
}

static struct diff_row row_of(struct arena *texts, const struct diff_change *c)
{
	struct diff_row row = {
		.a_ns = c->a.median,
		.b_ns = c->b.median,
		.change_ns = (uint64_t)diff_difference(c),
		.size_ns = diff_distance(c->a.median, c->b.median),
		.a_low_ns = c->a.low,
		.a_high_ns = c->a.high,
		.b_low_ns = c->b.low,
		.b_high_ns = c->b.high,
		.noise = diff_noise_key(c),
		.change = diff_signed_time(texts, c),
	};

	row.verdict = !row.size_ns ? "same" : diff_difference(c) > 0 ? "grew" : "shrank";
	return row;
}

/* The rows of what changed little come last, and are not shown in text. */
static void add_table(struct report *report, const struct table_kind *kind, struct diff_row *rows,
		      size_t n, const char *nothing)
{
	struct table *table;
	size_t i, little = 0;

	if (n)
		qsort(rows, n, sizeof(*rows), by_change);
	for (i = 0; i < n; i++)
		little += rows[i].little;
	table = report_add(report, kind, rows, n);
	table->minor_rows = little;
	if (n && little == n)
		table->intro = nothing;
}

/* ---- findings ------------------------------------------------------------------------------- */

/* The worst in the side's runs, NULL if none has it; and how many have. */
static const char *severity_of(const struct diff_item *item, size_t first, size_t n, uint64_t *runs)
{
	const char *worst = NULL;

	for (size_t i = first; i < first + n; i++) {
		*runs += item->cells[i].present;
		if (item->cells[i].severity && diff_is_minor(worst))
			worst = item->cells[i].severity;
	}
	return worst;
}

static void count_finding(struct diff_tally *tally, const struct diff_row *row)
{
	if (row->little)
		tally->stayed++;
	else if (!row->a_runs)
		tally->appeared++;
	else if (!row->b_runs)
		tally->vanished++;
	else if (row->unknown)
		tally->stayed++;
	else if ((int64_t)row->change_ns > 0)
		tally->grew++;
	else
		tally->shrank++;
}

/* How many places there are in the function, in the run that has most. */
static uint64_t count_places(const struct diff_items *items, const struct diff_item *item)
{
	uint64_t most = 0;

	for (size_t i = 0; i < items->a->n + items->b->n; i++)
		if (item->cells[i].places > most)
			most = item->cells[i].places;
	return most;
}

static const char *finding_detail(struct arena *texts, const struct diff_items *items,
				  const struct diff_item *item, const struct diff_row *row,
				  const struct diff_change *c)
{
	const char *ranges = row->unknown ? "" : ranges_text(texts, items, c), *places = "";
	uint64_t n_places = count_places(items, item);

	if (n_places > 1)
		places = arena_printf(texts, ", at %llu places, here most",
				      (unsigned long long)n_places);
	return arena_printf(texts, "%s: %s in A, %llu in B%s%s%s",
			    !row->a_runs   ? "appeared"
			    : !row->b_runs ? "vanished"
					   : row->verdict,
			    text_count(texts, row->a_count, "case"),
			    (unsigned long long)row->b_count, places, *ranges ? "; " : "", ranges);
}

static bool is_unknown(const struct diff_item *item, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		if (item->cells[i].unknown)
			return true;
	return false;
}

/* An unknown value is no number, nor is its difference from another. */
static void mark_unknown(struct diff_row *row, const struct diff_items *items,
			 const struct diff_item *item)
{
	bool a = is_unknown(item, 0, items->a->n);
	bool b = is_unknown(item, items->a->n, items->b->n);

	row->unknown = a || b;
	if (!row->unknown)
		return;
	if (a)
		row->a_ns = row->a_low_ns = row->a_high_ns = UNKNOWN_NS;
	if (b)
		row->b_ns = row->b_low_ns = row->b_high_ns = UNKNOWN_NS;
	row->change = "?";
	row->change_ns = 0;
	row->verdict = "unknown";
}

static struct diff_row finding_row(struct arena *texts, const struct diff_items *items,
				   const struct diff_item *item)
{
	struct diff_change c = diff_change_of(items, item, 0),
			   presence = diff_change_of(items, item, 2);
	struct diff_row row;

	/* It is in all runs of one side and in none of the other, whatever it cost in each. */
	if (presence.noise == DIFF_REAL)
		c.noise = DIFF_REAL;
	row = row_of(texts, &c);
	row.name = diff_text_of(item->row, "id");
	row.title = arena_printf(texts, "%s: %s", row.name ?: "?",
				 diff_text_of(item->row, "title") ?: "?");
	row.function = diff_text_of(item->row, "function");
	row.module = diff_text_of(item->row, "module");
	row.caller = diff_text_of(item->row, "caller");
	row.where = diff_text_of(item->row, "where");
	row.change = short_change(texts, &c);
	mark_unknown(&row, items, item);
	row.a_severity = severity_of(item, 0, items->a->n, &row.a_runs);
	row.b_severity = severity_of(item, items->a->n, items->b->n, &row.b_runs);
	row.a_count = diff_side_range(item, 1, 0, items->a->n).median;
	row.b_count = diff_side_range(item, 1, items->a->n, items->b->n).median;
	if (!row.a_runs || !row.b_runs)
		row.verdict = row.a_runs ? "vanished" : "appeared";
	/* One that costs no time (an error) is one all the same. */
	row.little = (diff_is_minor(row.a_severity) && diff_is_minor(row.b_severity)) ||
		     c.noise == DIFF_NOISE ||
		     (row.a_runs && row.b_runs && is_little(&c, c.a.median + c.b.median));
	row.detail = finding_detail(texts, items, item, &row, &c);
	return row;
}

static void add_findings(struct report *report, const struct diff_side *a,
			 const struct diff_side *b, struct diff_tally *tally)
{
	struct diff_items items;
	struct diff_row *rows;
	size_t n = 0;

	diff_collect(&items, a, b, diff_collect_findings);
	rows = xcalloc(HASH_COUNT(items.all) + 1, sizeof(*rows));
	for (struct diff_item *item = items.all; item; item = item->hh.next) {
		rows[n] = finding_row(&report->arena, &items, item);
		count_finding(tally, &rows[n]);
		n++;
	}
	add_table(report, &finding_kind, rows, n, "No difference worth a line.");
	diff_items_release(&items);
}

/* ---- waits and calls ------------------------------------------------------------------------ */

static void add_waits(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	static const char *const keys[] = {
#define BUCKET(name, key, text) #key,
		BUCKETS(BUCKET)
#undef BUCKET
	};
	struct diff_row *rows = xcalloc(BUCKET_COUNT, sizeof(*rows));
	struct diff_items items;
	struct diff_item *item;
	size_t n = 0, bucket = 0;

	diff_collect(&items, a, b,
		     diff_collect_waits); /* in the order of the buckets, which the table keeps */
	for (item = items.all; item; item = item->hh.next, bucket++) {
		struct diff_change c = diff_change_of(&items, item, 0);

		rows[n] = row_of(&report->arena, &c);
		rows[n].name = keys[bucket];
		rows[n].title = bucket_names[bucket];
		n += c.a.high || c.b.high;
	}
	report_add(report, &wait_kind, rows, n)->intro =
		"Times are thread-seconds: those of all threads, added up.";
	diff_items_release(&items);
}

static const char *call_detail(struct arena *texts, const struct diff_items *items,
			       const struct diff_row *row, const struct diff_change *c)
{
	const char *ranges = ranges_text(texts, items, c);
	char a[32], b[32];

	format_ns(a, sizeof(a), row->a_median_ns);
	format_ns(b, sizeof(b), row->b_median_ns);
	if (!row->a_count != !row->b_count)
		return arena_printf(texts, "median of a call %s in %s, not called in %s%s%s",
				    row->a_count ? a : b, row->a_count ? "A" : "B",
				    row->a_count ? "B" : "A", *ranges ? "; totals " : "", ranges);
	return arena_printf(texts, "median of a call %s in A, %s in B%s%s", a, b,
			    *ranges ? "; totals " : "", ranges);
}

static uint64_t side_call_ns(const struct diff_side *side)
{
	uint64_t most = 0;

	for (size_t i = 0; i < side->n; i++) {
		uint64_t ns =
			diff_number_of(json_object_get(side->reports[i], "summary"), "call_ns");

		most = ns > most ? ns : most;
	}
	return most;
}

static void add_calls(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	uint64_t a_ns = side_call_ns(a), b_ns = side_call_ns(b);
	struct diff_items items;
	struct diff_row *rows;
	size_t n = 0;

	diff_collect(&items, a, b, diff_collect_calls);
	rows = xcalloc(HASH_COUNT(items.all) + 1, sizeof(*rows));
	for (struct diff_item *item = items.all; item; item = item->hh.next) {
		struct diff_change c = diff_change_of(&items, item, 0);
		struct diff_row *row = &rows[n++];

		*row = row_of(&report->arena, &c);
		row->name = diff_text_of(item->row, "function");
		row->a_count = diff_side_range(item, 1, 0, a->n).median;
		row->b_count = diff_side_range(item, 1, a->n, b->n).median;
		row->a_median_ns = diff_side_range(item, 2, 0, a->n).median;
		row->b_median_ns = diff_side_range(item, 2, a->n, b->n).median;
		row->detail = call_detail(&report->arena, &items, row, &c);
		row->little = is_little(&c, a_ns > b_ns ? a_ns : b_ns);
	}
	add_table(report, &call_kind, rows, n, "No difference worth a line.");
	diff_items_release(&items);
}

void diff_report(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	struct headline_row *headline = diff_add_headline(report, a, b);
	struct diff_tally tally = {0};

	add_findings(report, a, b, &tally);
	diff_finish_headline(&report->arena, headline, &tally);
	add_waits(report, a, b);
	add_calls(report, a, b);
	diff_add_runs(report, a, b);
}
