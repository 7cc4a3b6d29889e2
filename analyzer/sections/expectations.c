/*
 * analyzer/sections/expectations.c: what calls should have cost. Called by `report` and
 * `calibrate`.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "base/format.h"
#include "trace/names.h"
#include "base/median.h"

/* ---- classes of a trace ---------------------------------------------------------------------- */

struct class_row {
	const char *function, *class, *basis, *kind_of_source;
	uint64_t expected_ns, spread_ns, samples, rested_ns, count, total_ns;
};

/* clang-format off */
static const struct column class_columns[] = {
	COLUMN(struct class_row, function, "function", UNIT_TEXT),
	COLUMN(struct class_row, expected_ns, "expected", UNIT_NS_IF_KNOWN),
	COLUMN(struct class_row, spread_ns, "spread", UNIT_NS_IF_KNOWN),
	COLUMN(struct class_row, count, "calls", UNIT_COUNT),
	COLUMN(struct class_row, total_ns, "took", UNIT_NS),
	COLUMN_TEXT_WORDS(struct class_row, basis),
	COLUMN_JSON(struct class_row, class, UNIT_TEXT),
	COLUMN_JSON(struct class_row, samples, UNIT_COUNT),
	COLUMN_JSON(struct class_row, rested_ns, UNIT_NS_IF_KNOWN),
	{.key = "source", .title = "", .unit = UNIT_TEXT, .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct class_row, kind_of_source)},
};
/* clang-format on */

static const struct table_kind class_kind = {
	TABLE("expectations", "EXPECTED: what unobstructed calls cost, by total host time",
	      struct class_row, class_columns),
	.detail = true,
	.text_rows = 8,
};

/* clang-format off */
static const char *const source_keys[] = {
	[EXPECT_NONE] = "none",
	[EXPECT_PROFILE] = "profile",
	[EXPECT_CLEAN] = "unobstructed",
	[EXPECT_FEW] = "few_unobstructed",
	[EXPECT_PRIOR] = "prior",
	[EXPECT_LOW_QUANTILE] = "fastest_tenth",
	[EXPECT_NEIGHBOUR] = "neighbour",
	[EXPECT_DEFAULT] = "guess",
};
/* clang-format on */

static int by_total(const void *a, const void *b)
{
	const struct class_row *x = a, *y = b;

	return COMPARE(y->total_ns, x->total_ns) ?: strcmp(x->function, y->function) ?:
	       strcmp(x->class, y->class);
}

/* Which calls, and where the number is from. */
static const char *basis_text(struct arena *texts, const char *class, const char *source,
			      const struct call_class *c)
{
	const char *rested = "";
	char ns[32];

	if (c->rested_ns) {
		format_ns(ns, sizeof(ns), c->rested_ns);
		rested = arena_printf(texts, "; %s after a pause of the thread", ns);
	}
	return arena_printf(texts, "%s%s%s%s", class, *class ? ": " : "", source, rested);
}

void report_expectations(struct report *report, struct expect *e)
{
	struct class_row *rows = xcalloc(e->n_classes, sizeof(*rows));
	size_t i, n = 0;

	for (i = 0; i < e->n_classes; i++) {
		const struct call_class *c = e->classes[i];
		bool known = c->source != EXPECT_NONE;

		if (!c->calls)
			continue;
		rows[n++] = (struct class_row){
			.function =
				report_text(report, "%s", e->set->functions.all[c->key.fn].name),
			.class = report_text(report, "%s", expect_class_text(e, c)),
			.basis = basis_text(&report->arena, expect_class_text(e, c),
					    expect_source_text(e, c), c),
			.kind_of_source = source_keys[c->source],
			.expected_ns = known ? c->expected_ns : UNKNOWN_NS,
			.spread_ns = known ? c->spread_ns : UNKNOWN_NS,
			.samples = c->samples,
			.rested_ns = c->rested_ns ?: UNKNOWN_NS,
			.count = c->calls,
			.total_ns = c->total_ns,
		};
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_total);
	report_add(report, &class_kind, rows, n);
}

/* ---- a profile ------------------------------------------------------------------------------- */

struct about_row {
	const char *gpus, *driver, *date;
	uint64_t classes;
};

static const struct column about_columns[] = {
	COLUMN(struct about_row, gpus, "GPU", UNIT_TEXT),
	COLUMN(struct about_row, driver, "driver", UNIT_TEXT),
	COLUMN(struct about_row, date, "measured", UNIT_TEXT),
	COLUMN(struct about_row, classes, "classes", UNIT_COUNT),
};

static const struct table_kind about_kind = {
	TABLE("profile", "PROFILE", struct about_row, about_columns),
	.facts = true,
};

/* All sizes of a kind of call. */
struct kind_row {
	const char *function, *what, *text, *high;
	uint64_t low_bytes, low_ns, high_bytes, high_ns, samples;
};

static const struct column kind_columns[] = {
	COLUMN(struct kind_row, function, "function", UNIT_TEXT),
	COLUMN(struct kind_row, low_ns, "takes", UNIT_NS),
	COLUMN_TEXT(struct kind_row, high, "to"),
	COLUMN_TEXT(struct kind_row, text, "of"),
	COLUMN_JSON(struct kind_row, what, UNIT_TEXT),
	COLUMN_JSON(struct kind_row, low_bytes, UNIT_BYTES),
	COLUMN_JSON(struct kind_row, high_bytes, UNIT_BYTES),
	COLUMN_JSON(struct kind_row, high_ns, UNIT_NS),
	COLUMN_JSON(struct kind_row, samples, UNIT_COUNT),
};

static const struct table_kind kind_kind = {
	TABLE("costs", "UNOBSTRUCTED CALLS, medians", struct kind_row, kind_columns),
};

static const char *what_text(struct arena *texts, const struct class_key *key)
{
	const char *cold = key->flags & CLASS_COLD ? "first one" : NULL;

	if (key->flags & CLASS_COPY)
		return arena_printf(texts, "%s %s to %s%s", name_direction(key->what),
				    name_memory_kind(key->kinds >> 4),
				    name_memory_kind(key->kinds & 15), cold ? ", first one" : "");
	if (key->flags & CLASS_MEMORY)
		return arena_printf(texts, "%s %s%s%s", name_memory_op(key->what & 15),
				    name_memory_kind(key->kinds),
				    key->what >> 4 ? " of a pool" : "", cold ? ", first one" : "");
	return cold;
}

static bool same_kind(const struct profile_class *a, const struct profile_class *b)
{
	return !strcmp(a->function, b->function) && a->key.flags == b->key.flags &&
	       a->key.what == b->key.what && a->key.kinds == b->key.kinds;
}

/* "d2h device to pinned, 4 B to 16.0 MiB" */
static void write_sizes(struct kind_row *row, struct arena *texts)
{
	char low[32], high[32], ns[32];

	row->text = row->what;
	if (!row->high_bytes)
		return;
	format_bytes(low, sizeof(low), row->low_bytes);
	format_bytes(high, sizeof(high), row->high_bytes);
	format_ns(ns, sizeof(ns), row->high_ns);
	row->high = arena_printf(texts, "%s", ns);
	row->text = arena_printf(texts, "%s, %s to %s", row->what, low, high);
}

static struct kind_row *add_kinds(struct arena *texts, const struct profile *p, size_t *n)
{
	struct kind_row *rows = xcalloc(p->n_classes, sizeof(*rows)), *row = NULL;

	for (size_t i = *n = 0; i < p->n_classes; i++) {
		const struct profile_class *class = &p->classes[i];

		if (!row || !same_kind(class - 1, class)) {
			row = &rows[(*n)++];
			row->function = arena_printf(texts, "%s", class->function);
			row->what = what_text(texts, &class->key);
			row->low_bytes = class->bytes;
			row->low_ns = class->expected_ns;
		}
		row->high_bytes = class->bytes;
		row->high_ns = class->expected_ns;
		row->samples += class->samples;
	}
	for (size_t i = 0; i < *n; i++)
		write_sizes(&rows[i], texts);
	return rows;
}

void report_profile(struct report *report, const struct profile *profile)
{
	struct about_row *about = xcalloc(1, sizeof(*about));
	struct kind_row *kinds;
	size_t n;

	*about = (struct about_row){
		.gpus = profile->n_gpus ? report_text(report, "%s%s", profile->gpus[0],
						      profile->n_gpus > 1 ? " and others" : "")
					: NULL,
		.driver = report_text(report, "%s", profile->driver),
		.date = report_text(report, "%s", profile->date),
		.classes = profile->n_classes,
	};
	report_add(report, &about_kind, about, 1);
	kinds = add_kinds(&report->arena, profile, &n);
	report_add(report, &kind_kind, kinds, n);
}
