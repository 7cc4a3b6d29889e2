/*
 * analyzer/diff.c: two sides compared. Called by `cudaspy diff`.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include "buckets.h"
#include "diff.h"
#include "report_words.h"

/* ---- numbers -------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct diff_range diff_range_of(uint64_t *values, size_t n)
{
	uint64_t low, high;

	qsort(values, n, sizeof(*values), by_value);
	low = values[(n - 1) / 2];
	high = values[n / 2];
	return (struct diff_range){
		.median = low + (high - low) / 2, .low = values[0], .high = values[n - 1]};
}

static uint64_t distance(uint64_t x, uint64_t y)
{
	return x > y ? x - y : y - x;
}

enum diff_noise diff_judge(const struct diff_range *a, size_t n_a, const struct diff_range *b,
			   size_t n_b)
{
	uint64_t width_a = a->high - a->low, width_b = b->high - b->low;

	if (n_a < 2 && n_b < 2)
		return DIFF_UNKNOWN;
	if (a->low <= b->high && b->low <= a->high)
		return DIFF_NOISE;
	return distance(a->median, b->median) > (width_a > width_b ? width_a : width_b)
		       ? DIFF_REAL
		       : DIFF_NOISE;
}

/* ---- what there is on both sides ------------------------------------------------------------- */

#define NUMBERS 3

/* What one run has of an item. */
struct cell {
	uint64_t numbers[NUMBERS];
	bool present;
	const char *severity; /* of findings: the worst; NULL: none */
};

/* A function, a bucket or a finding: what has the same key in all runs. */
struct item {
	char *key;
	const json_t *row; /* in one of the reports, for its texts; B's if it has one */
	struct cell *cells; /* by run: A's, then B's */
	UT_hash_handle hh;
};

struct items {
	struct item *all;
	const struct diff_side *a, *b;
};

static struct item *item_of(struct items *items, char *key, const json_t *row)
{
	struct item *item;

	HASH_FIND_STR(items->all, key, item);
	if (item) {
		free(key);
	} else {
		item = xcalloc(1, sizeof(*item));
		item->key = key;
		item->cells = xcalloc(items->a->n + items->b->n, sizeof(*item->cells));
		HASH_ADD_KEYPTR(hh, items->all, item->key, strlen(item->key), item);
	}
	item->row = row;
	return item;
}

static void items_release(struct items *items)
{
	struct item *item, *next;

	HASH_ITER (hh, items->all, item, next) {
		HASH_DEL(items->all, item);
		free(item->key);
		free(item->cells);
		free(item);
	}
}

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

static uint64_t number_of(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* Adds a report's rows of a kind to the run's cells. */
typedef void collect_fn(struct items *items, const json_t *report, size_t run);

static void collect(struct items *items, const struct diff_side *a, const struct diff_side *b,
		    collect_fn *fn)
{
	size_t i;

	*items = (struct items){.a = a, .b = b};
	for (i = 0; i < a->n; i++)
		fn(items, a->reports[i], i);
	for (i = 0; i < b->n; i++)
		fn(items, b->reports[i], a->n + i);
}

static void collect_calls(struct items *items, const json_t *report, size_t run)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "calls"), i, row)
	{
		struct cell *cell =
			&item_of(items, xstrdup(text_of(row, "function") ?: "?"), row)->cells[run];

		cell->present = true;
		cell->numbers[0] = number_of(row, "total_ns");
		cell->numbers[1] = number_of(row, "count");
		cell->numbers[2] = number_of(row, "median_ns");
	}
}

static void collect_waits(struct items *items, const json_t *report, size_t run)
{
	static const char *const keys[] = {
#define BUCKET(name, key, text) #key "_ns",
		BUCKETS(BUCKET)
#undef BUCKET
	};
	const json_t *row = json_object_get(report, "waits");
	/* As the report's text has it: what calls take in the kernel module in any case is own work. */
	uint64_t kernel_work_ns = number_of(row, "kernel_work_ns");
	size_t i;

	for (i = 0; i < BUCKET_COUNT; i++) {
		struct cell *cell = &item_of(items, xstrdup(keys[i]), row)->cells[run];

		cell->present = true;
		cell->numbers[0] = number_of(row, keys[i]);
		if (i == BUCKET_OWN)
			cell->numbers[0] += kernel_work_ns;
		else if (i == BUCKET_IOCTL && cell->numbers[0] >= kernel_work_ns)
			cell->numbers[0] -= kernel_work_ns;
	}
}

static bool is_minor(const char *severity)
{
	return !severity || !strcmp(severity, "minor");
}

/*
 * A finding is the same one if detector, CUDA function and place are: the function that calls, which
 * stays when the program is built again, and its module; without symbols the address in the module.
 */
static void collect_findings(struct items *items, const json_t *report, size_t run)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "findings"), i, row)
	{
		const char *caller = text_of(row, "caller");
		uint64_t offset = caller ? 0 : number_of(row, "offset");
		char *key = xasprintf("%s %s %s %s+%llx", text_of(row, "id") ?: "?",
				      text_of(row, "function") ?: "", text_of(row, "module") ?: "",
				      caller ?: "", (unsigned long long)offset);
		struct cell *cell = &item_of(items, key, row)->cells[run];

		cell->present = true;
		cell->numbers[0] += number_of(row, "cost_ns");
		cell->numbers[1] += number_of(row, "count");
		cell->numbers[2] = 1;
		if (!cell->severity || is_minor(cell->severity))
			cell->severity = text_of(row, "severity");
	}
}

static struct diff_range side_range(const struct item *item, size_t number, size_t first, size_t n)
{
	uint64_t *values = xcalloc(n, sizeof(*values));
	struct diff_range range;
	size_t i;

	for (i = 0; i < n; i++)
		values[i] = item->cells[first + i].numbers[number];
	range = diff_range_of(values, n);
	free(values);
	return range;
}

/* ---- a number of an item, on both sides ------------------------------------------------------- */

struct change {
	struct diff_range a, b;
	enum diff_noise noise;
};

static struct change change_of(const struct items *items, const struct item *item, size_t number)
{
	struct change c = {.a = side_range(item, number, 0, items->a->n),
			   .b = side_range(item, number, items->a->n, items->b->n)};

	c.noise = diff_judge(&c.a, items->a->n, &c.b, items->b->n);
	return c;
}

static int64_t difference(const struct change *c)
{
	return (int64_t)(c->b.median - c->a.median);
}

static const char *noise_key(const struct change *c)
{
	return c->noise == DIFF_NOISE ? "yes" : c->noise == DIFF_REAL ? "no" : "unknown";
}

/* From so many times on, percents say nothing. */
#define TIMES_LEAST 10

/* "+1.234 ms". */
static const char *short_change(struct report *report, const struct change *c)
{
	int64_t ns = difference(c);
	char text[32];

	format_ns(text, sizeof(text), distance(c->a.median, c->b.median));
	return report_text(report, "%s%s", ns < 0 ? "-" : ns > 0 ? "+" : "", text);
}

/* "+1.234 ms (+12 %)", "+1.234 ms (12 times)". */
static const char *signed_time(struct report *report, const struct change *c)
{
	const char *noise = c->noise == DIFF_NOISE ? ", noise" : "";
	double times = c->a.median ? (double)c->b.median / (double)c->a.median : 0;
	int64_t ns = difference(c);
	char text[32], share[32], sign = ns < 0 ? '-' : '+';

	if (!ns)
		return "same";
	format_ns(text, sizeof(text), distance(c->a.median, c->b.median));
	if (!c->a.median)
		return report_text(report, "+%s%s", text, noise);
	if (times >= TIMES_LEAST)
		return report_text(report, "+%s (%.0f times)%s", text, times, noise);
	format_percent(share, sizeof(share), (double)distance(c->a.median, c->b.median),
		       (double)c->a.median);
	if (share[0] < '0' || share[0] > '9') /* "over 99.9 %" */
		return report_text(report, "%c%s (%s)%s", sign, text, share, noise);
	return report_text(report, "%c%s (%c%s)%s", sign, text, sign, share, noise);
}

static const char *range_text(struct report *report, const struct diff_range *r)
{
	char low[32], high[32];

	format_ns(low, sizeof(low), r->low);
	format_ns(high, sizeof(high), r->high);
	return report_text(report, "%s to %s", low, high);
}

/* Where the runs of the sides lie; nothing with one run each. */
static const char *ranges_text(struct report *report, const struct items *items,
			       const struct change *c)
{
	if (items->a->n < 2 && items->b->n < 2)
		return "";
	return report_text(report, "A %s, B %s", range_text(report, &c->a),
			   range_text(report, &c->b));
}

/* Too little to show in text: noise, or less than a hundredth of what the sides have in all. */
#define LITTLE_PART 100

static bool is_little(const struct change *c, uint64_t whole_ns)
{
	return c->noise == DIFF_NOISE || !difference(c) ||
	       distance(c->a.median, c->b.median) < whole_ns / LITTLE_PART;
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct diff_row {
	const char *name, *title, *change, *verdict, *noise, *detail; /* of all kinds */
	const char *a_severity, *b_severity, *function, *module, *caller, *where; /* findings */
	uint64_t a_ns, b_ns, change_ns, a_low_ns, a_high_ns, b_low_ns, b_high_ns;
	uint64_t a_count, b_count, a_median_ns, b_median_ns, a_runs, b_runs;
	uint64_t size_ns; /* of the change */
	bool little;
};

/* clang-format off */
#define COMMON_JSON \
	COLUMN_JSON(struct diff_row, change_ns, UNIT_NS), \
	COLUMN_JSON(struct diff_row, verdict, UNIT_TEXT), \
	COLUMN_JSON(struct diff_row, noise, UNIT_TEXT), \
	COLUMN_JSON(struct diff_row, a_low_ns, UNIT_NS), \
	COLUMN_JSON(struct diff_row, a_high_ns, UNIT_NS), \
	COLUMN_JSON(struct diff_row, b_low_ns, UNIT_NS), \
	COLUMN_JSON(struct diff_row, b_high_ns, UNIT_NS)

static const struct column finding_columns[] = {
	COLUMN(struct diff_row, a_ns, "A", UNIT_NS),
	COLUMN(struct diff_row, b_ns, "B", UNIT_NS),
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
		.key = key_, \
		.title = title_, \
		.columns = name##_columns, \
		.n_columns = ARRAY_SIZE(name##_columns), \
		.row_bytes = sizeof(struct diff_row), \
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

static struct diff_row row_of(struct report *report, const struct change *c)
{
	struct diff_row row = {
		.a_ns = c->a.median,
		.b_ns = c->b.median,
		.change_ns = (uint64_t)difference(c),
		.size_ns = distance(c->a.median, c->b.median),
		.a_low_ns = c->a.low,
		.a_high_ns = c->a.high,
		.b_low_ns = c->b.low,
		.b_high_ns = c->b.high,
		.noise = noise_key(c),
		.change = signed_time(report, c),
	};

	row.verdict = !row.size_ns ? "same" : difference(c) > 0 ? "grew" : "shrank";
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

struct tally {
	uint64_t appeared, vanished, grew, shrank, stayed;
};

/* The worst in the side's runs, NULL if none has it; and how many have. */
static const char *severity_of(const struct item *item, size_t first, size_t n, uint64_t *runs)
{
	const char *worst = NULL;
	size_t i;

	for (i = first; i < first + n; i++) {
		*runs += item->cells[i].present;
		if (item->cells[i].severity && is_minor(worst))
			worst = item->cells[i].severity;
	}
	return worst;
}

static void count_finding(struct tally *tally, const struct diff_row *row)
{
	if (row->little)
		tally->stayed++;
	else if (!row->a_runs)
		tally->appeared++;
	else if (!row->b_runs)
		tally->vanished++;
	else if ((int64_t)row->change_ns > 0)
		tally->grew++;
	else
		tally->shrank++;
}

static const char *finding_detail(struct report *report, const struct items *items,
				  const struct diff_row *row, const struct change *c)
{
	const char *ranges = ranges_text(report, items, c);

	return report_text(report, "%s: %s in A, %llu in B%s%s",
			   !row->a_runs   ? "appeared"
			   : !row->b_runs ? "vanished"
					  : row->verdict,
			   word_count(report, row->a_count, "call"),
			   (unsigned long long)row->b_count, *ranges ? "; " : "", ranges);
}

static struct diff_row finding_row(struct report *report, const struct items *items,
				   const struct item *item)
{
	struct change c = change_of(items, item, 0), presence = change_of(items, item, 2);
	struct diff_row row;

	/* It is in all runs of one side and in none of the other, whatever it cost in each. */
	if (presence.noise == DIFF_REAL)
		c.noise = DIFF_REAL;
	row = row_of(report, &c);
	row.name = text_of(item->row, "id");
	row.title = text_of(item->row, "title");
	row.function = text_of(item->row, "function");
	row.module = text_of(item->row, "module");
	row.caller = text_of(item->row, "caller");
	row.where = text_of(item->row, "where");
	row.change = short_change(report, &c);
	row.a_severity = severity_of(item, 0, items->a->n, &row.a_runs);
	row.b_severity = severity_of(item, items->a->n, items->b->n, &row.b_runs);
	row.a_count = side_range(item, 1, 0, items->a->n).median;
	row.b_count = side_range(item, 1, items->a->n, items->b->n).median;
	if (!row.a_runs || !row.b_runs)
		row.verdict = row.a_runs ? "vanished" : "appeared";
	/* One that costs no time (an error) is one all the same. */
	row.little = (is_minor(row.a_severity) && is_minor(row.b_severity)) ||
		     c.noise == DIFF_NOISE ||
		     (row.a_runs && row.b_runs && is_little(&c, c.a.median + c.b.median));
	row.detail = finding_detail(report, items, &row, &c);
	return row;
}

static void add_findings(struct report *report, const struct diff_side *a,
			 const struct diff_side *b, struct tally *tally)
{
	struct items items;
	struct diff_row *rows;
	struct item *item;
	size_t n = 0;

	collect(&items, a, b, collect_findings);
	rows = xcalloc(HASH_COUNT(items.all) + 1, sizeof(*rows));
	for (item = items.all; item; item = item->hh.next) {
		rows[n] = finding_row(report, &items, item);
		count_finding(tally, &rows[n]);
		n++;
	}
	add_table(report, &finding_kind, rows, n, "No difference worth a line.");
	items_release(&items);
}

/* ---- waits and calls ------------------------------------------------------------------------ */

static void add_waits(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	static const char *const names[] = {
#define BUCKET(name, key, text) text,
		BUCKETS(BUCKET)
#undef BUCKET
	};
	static const char *const keys[] = {
#define BUCKET(name, key, text) #key,
		BUCKETS(BUCKET)
#undef BUCKET
	};
	struct diff_row *rows = xcalloc(BUCKET_COUNT, sizeof(*rows));
	struct items items;
	struct item *item;
	size_t n = 0, bucket = 0;

	collect(&items, a, b,
		collect_waits); /* in the order of the buckets, which the table keeps */
	for (item = items.all; item; item = item->hh.next, bucket++) {
		struct change c = change_of(&items, item, 0);

		rows[n] = row_of(report, &c);
		rows[n].name = keys[bucket];
		rows[n].title = names[bucket];
		n += c.a.high || c.b.high;
	}
	report_add(report, &wait_kind, rows, n);
	items_release(&items);
}

static const char *call_detail(struct report *report, const struct items *items,
			       const struct diff_row *row, const struct change *c)
{
	const char *ranges = ranges_text(report, items, c);
	char a[32], b[32];

	format_ns(a, sizeof(a), row->a_median_ns);
	format_ns(b, sizeof(b), row->b_median_ns);
	if (!row->a_count != !row->b_count)
		return report_text(report, "median of a call %s in %s, not called in %s%s%s",
				   row->a_count ? a : b, row->a_count ? "A" : "B",
				   row->a_count ? "B" : "A", *ranges ? "; totals " : "", ranges);
	return report_text(report, "median of a call %s in A, %s in B%s%s", a, b,
			   *ranges ? "; totals " : "", ranges);
}

static uint64_t side_call_ns(const struct diff_side *side)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < side->n; i++) {
		uint64_t ns = number_of(json_object_get(side->reports[i], "summary"), "call_ns");

		most = ns > most ? ns : most;
	}
	return most;
}

static void add_calls(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	uint64_t a_ns = side_call_ns(a), b_ns = side_call_ns(b);
	struct items items;
	struct diff_row *rows;
	struct item *item;
	size_t n = 0;

	collect(&items, a, b, collect_calls);
	rows = xcalloc(HASH_COUNT(items.all) + 1, sizeof(*rows));
	for (item = items.all; item; item = item->hh.next) {
		struct change c = change_of(&items, item, 0);
		struct diff_row *row = &rows[n++];

		*row = row_of(report, &c);
		row->name = text_of(item->row, "function");
		row->a_count = side_range(item, 1, 0, a->n).median;
		row->b_count = side_range(item, 1, a->n, b->n).median;
		row->a_median_ns = side_range(item, 2, 0, a->n).median;
		row->b_median_ns = side_range(item, 2, a->n, b->n).median;
		row->detail = call_detail(report, &items, row, &c);
		row->little = is_little(&c, a_ns > b_ns ? a_ns : b_ns);
	}
	add_table(report, &call_kind, rows, n, "No difference worth a line.");
	items_release(&items);
}

/* ---- the headline --------------------------------------------------------------------------- */

struct headline_row {
	const char *a, *b, *inside, *lost, *found, *rule;
	uint64_t a_runs, b_runs, a_total_ns, b_total_ns, a_lost_ns, b_lost_ns;
	uint64_t appeared, vanished, grew, shrank;
	const char *lost_noise;
};

/* clang-format off */
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
/* clang-format on */

static const struct table_kind headline_kind = {
	.key = "summary",
	.title = "CUDASPY DIFF",
	.columns = headline_columns,
	.n_columns = ARRAY_SIZE(headline_columns),
	.row_bytes = sizeof(struct headline_row),
	.facts = true,
};

/* "3 runs: before1, before2, before3 (app.4711)". */
static const char *side_text(struct report *report, const struct diff_side *side)
{
	const char *program =
		text_of(json_object_get(side->reports[0], "summary"), "program") ?: "?";
	const char *text = side->n > 1 ? report_text(report, "%zu runs: ", side->n) : "";
	size_t i;

	for (i = 0; i < side->n; i++)
		text = report_text(report, "%s%s%s", text, i ? ", " : "", side->names[i]);
	return report_text(report, "%s (%s)", text, program);
}

/* Of two sides that do not differ, how many in a hundred have ranges that lie apart? */
static double apart_percent(size_t n, size_t m)
{
	double ways = 1;
	size_t i;

	for (i = 1; i <= n; i++)
		ways = ways * (double)(m + i) / (double)i;
	return 200 / ways;
}

static const char *rule_text(struct report *report, size_t n_a, size_t n_b)
{
	if (n_a < 2 && n_b < 2)
		return "not known, with one run on each side; give several: cudaspy diff A1 A2 A3 "
		       "-- B1 B2 B3";
	return report_text(report,
			   "medians are compared; a difference is noise if the ranges of A and B "
			   "overlap, or if it is not larger than the wider one; where nothing "
			   "changed, up to %.2g %% of the numbers will seem to have",
			   apart_percent(n_a, n_b));
}

static struct change change_of_wait(const struct diff_side *a, const struct diff_side *b,
				    const char *key)
{
	size_t i;
	uint64_t *values = xcalloc(a->n > b->n ? a->n : b->n, sizeof(*values));
	struct change c;

	for (i = 0; i < a->n; i++)
		values[i] = number_of(json_object_get(a->reports[i], "waits"), key);
	c.a = diff_range_of(values, a->n);
	for (i = 0; i < b->n; i++)
		values[i] = number_of(json_object_get(b->reports[i], "waits"), key);
	c.b = diff_range_of(values, b->n);
	c.noise = diff_judge(&c.a, a->n, &c.b, b->n);
	free(values);
	return c;
}

static const char *change_text(struct report *report, const struct change *c)
{
	char a[32], b[32];

	format_ns(a, sizeof(a), c->a.median);
	format_ns(b, sizeof(b), c->b.median);
	return report_text(report, "%s in A, %s in B: %s", a, b, signed_time(report, c));
}

static struct headline_row *add_headline(struct report *report, const struct diff_side *a,
					 const struct diff_side *b)
{
	struct change total = change_of_wait(a, b, "total_ns");
	struct change lost = change_of_wait(a, b, "lost_ns");
	struct headline_row *row = xcalloc(1, sizeof(*row));

	row->a = side_text(report, a);
	row->b = side_text(report, b);
	row->rule = rule_text(report, a->n, b->n);
	row->inside = change_text(report, &total);
	row->lost = change_text(report, &lost);
	row->lost_noise = noise_key(&lost);
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
static void finish_headline(struct report *report, struct headline_row *row,
			    const struct tally *tally)
{
	row->appeared = tally->appeared;
	row->vanished = tally->vanished;
	row->grew = tally->grew;
	row->shrank = tally->shrank;
	row->found = report_text(
		report,
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

/* clang-format off */
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
/* clang-format on */

static const struct table_kind run_kind = {
	.key = "runs",
	.title = "RUNS",
	.columns = run_columns,
	.n_columns = ARRAY_SIZE(run_columns),
	.row_bytes = sizeof(struct run_row),
};

static void add_runs(struct run_row *rows, const struct diff_side *side, const char *name)
{
	size_t i;

	for (i = 0; i < side->n; i++) {
		const json_t *summary = json_object_get(side->reports[i], "summary");

		rows[i] = (struct run_row){
			.side = name,
			.run = side->names[i],
			.program = text_of(summary, "program"),
			.processes = number_of(summary, "processes"),
			.calls = number_of(summary, "calls"),
			.duration_ns = number_of(summary, "duration_ns"),
			.call_ns = number_of(summary, "call_ns"),
			.lost_records = number_of(summary, "lost_records"),
		};
	}
}

void diff_report(struct report *report, const struct diff_side *a, const struct diff_side *b)
{
	struct run_row *runs = xcalloc(a->n + b->n, sizeof(*runs));
	struct headline_row *headline = add_headline(report, a, b);
	struct tally tally = {0};

	add_findings(report, a, b, &tally);
	finish_headline(report, headline, &tally);
	add_waits(report, a, b);
	add_calls(report, a, b);
	add_runs(runs, a, "A");
	add_runs(runs + a->n, b, "B");
	report_add(report, &run_kind, runs, a->n + b->n);
}
