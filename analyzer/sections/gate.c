/*
 * analyzer/sections/gate.c: what the gate made of the findings: its verdict, what exceeded
 * what, and which suppressions do nothing. Called by `report`.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "findings/detector.h"
#include "text/text.h"

/* ---- the verdict ----------------------------------------------------------------------------- */

struct gate_row {
	const char *verdict, *says, *incomplete, *data, *unnamed, *places, *unjudged, *counts,
		*suppresses, *compares, *baseline;
	uint64_t failures, counted, counted_ns, counted_unknown, suppressed, suppressed_ns,
		suppressed_unknown, added, worse, same, gone, lost_records;
};

static const struct column gate_columns[] = {
	COLUMN_JSON(struct gate_row, verdict, UNIT_TEXT),
	COLUMN_TEXT(struct gate_row, says, "verdict"),
	COLUMN_TEXT(struct gate_row, data, "data"),
	COLUMN_TEXT(struct gate_row, places, "places"),
	COLUMN_JSON(struct gate_row, unnamed, UNIT_TEXT),
	COLUMN_JSON(struct gate_row, unjudged, UNIT_TEXT),
	COLUMN_JSON(struct gate_row, incomplete, UNIT_TEXT),
	COLUMN_JSON(struct gate_row, lost_records, UNIT_COUNT),
	COLUMN_TEXT(struct gate_row, counts, "counted"),
	COLUMN_TEXT(struct gate_row, suppresses, "suppressed"),
	COLUMN_TEXT(struct gate_row, compares, "baseline"),
	COLUMN_JSON(struct gate_row, failures, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, counted, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, counted_ns, UNIT_NS),
	COLUMN_JSON(struct gate_row, counted_unknown, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, suppressed, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, suppressed_ns, UNIT_NS),
	COLUMN_JSON(struct gate_row, suppressed_unknown, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, baseline, UNIT_TEXT),
	COLUMN_JSON(struct gate_row, added, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, worse, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, same, UNIT_COUNT),
	COLUMN_JSON(struct gate_row, gone, UNIT_COUNT),
};

static const struct table_kind gate_kind = {
	TABLE("gate", "GATE", struct gate_row, gate_columns),
	.facts = true,
};

/* "3 findings: 5.200 ms, and 1 of them of unknown cost". */
static const char *findings_text(struct arena *texts, uint64_t count, uint64_t unknown, uint64_t ns)
{
	const char *findings = text_count(texts, count, "finding");

	if (!count)
		return "no finding";
	if (unknown == count)
		return arena_printf(texts, "%s of unknown cost", findings);
	if (!unknown)
		return arena_printf(texts, "%s: %s", findings, text_time(texts, ns));
	return arena_printf(texts, "%s: %s, and %llu of them of unknown cost", findings,
			    text_time(texts, ns), (unsigned long long)unknown);
}

static const char *verdict(const struct gate *gate)
{
	if (gate_cannot_judge(gate))
		return "unknown";
	if (!gate_asked(gate))
		return NULL;
	return gate->n_failures ? "failed" : "passed";
}

static const char *verdict_text(struct arena *texts, const struct gate *gate)
{
	const char *data = gate->incomplete ? ", on incomplete data" : "";

	if (gate_cannot_judge(gate))
		return arena_printf(texts, "CANNOT JUDGE: %s", gate->unjudged);
	if (!gate_asked(gate))
		return "none asked for (--fail-on, --budget)";
	if (!gate->n_failures)
		return arena_printf(texts, "passed%s", data);
	return arena_printf(texts, "FAILED, for %zu reason%s%s", gate->n_failures,
			    gate->n_failures == 1 ? "" : "s", data);
}

static const char *data_text(struct arena *texts, const struct gate *gate)
{
	if (!gate->lost_records)
		return "incomplete: LOSSES says what is missing";
	return arena_printf(texts, "incomplete: %llu record%s lost; LOSSES says what is missing",
			    (unsigned long long)gate->lost_records,
			    gate->lost_records == 1 ? "" : "s");
}

static const char *baseline_text(struct arena *texts, const struct baseline *b)
{
	return arena_printf(texts, "%s: %llu new, %llu worse, %llu as before, %llu gone", b->path,
			    (unsigned long long)b->fresh, (unsigned long long)b->worse,
			    (unsigned long long)b->same, (unsigned long long)b->gone);
}

static void add_verdict(struct report *report, const struct gate *gate)
{
	const struct baseline *b = &gate->baseline;
	struct gate_row *row = xcalloc(1, sizeof(*row));

	*row = (struct gate_row){
		.verdict = verdict(gate),
		.says = verdict_text(&report->arena, gate),
		.data = gate->incomplete ? data_text(&report->arena, gate) : NULL,
		.unnamed = gate->unnamed ? report_text(report, "%s", gate->unnamed) : NULL,
		.unjudged =
			gate_cannot_judge(gate) ? report_text(report, "%s", gate->unjudged) : NULL,
		.incomplete = gate->incomplete ? "yes" : "no",
		.lost_records = gate->lost_records,
		.counts = findings_text(&report->arena, gate->counted, gate->counted_unknown,
					gate->counted_ns),
		.suppresses = gate->suppressions.n
				      ? findings_text(&report->arena, gate->suppressed,
						      gate->suppressed_unknown, gate->suppressed_ns)
				      : NULL,
		.compares = b->path ? baseline_text(&report->arena, b) : NULL,
		.baseline = b->path,
		.failures = gate->n_failures,
		.counted = gate->counted,
		.counted_ns = gate->counted_ns,
		.counted_unknown = gate->counted_unknown,
		.suppressed = gate->suppressed,
		.suppressed_ns = gate->suppressed_ns,
		.suppressed_unknown = gate->suppressed_unknown,
		.added = b->fresh,
		.worse = b->worse,
		.same = b->same,
		.gone = b->gone,
	};
	if (row->unnamed)
		row->places = report_text(report, "%s: " GATE_UNNAMED, row->unnamed);
	report_add(report, &gate_kind, row, gate_used(gate));
}

/* ---- why it fails ---------------------------------------------------------------------------- */

static const struct column failure_columns[] = {
	COLUMN(struct gate_failure, rule, "rule", UNIT_TEXT),
	COLUMN_JSON(struct gate_failure, id, UNIT_TEXT),
	COLUMN(struct gate_failure, text, "found", UNIT_TEXT),
	COLUMN_LINE(struct gate_failure, where, UNIT_TEXT),
	COLUMN_JSON(struct gate_failure, value, UNIT_COUNT),
	COLUMN_JSON(struct gate_failure, limit, UNIT_COUNT),
	COLUMN_JSON(struct gate_failure, unit, UNIT_TEXT),
};

static const struct table_kind failure_kind = {
	TABLE("gate_failures", "WHY THE GATE FAILS", struct gate_failure, failure_columns),
	.text_rows = 20,
};

static void add_failures(struct report *report, const struct gate *gate)
{
	struct gate_failure *rows = xcalloc(gate->n_failures, sizeof(*rows));

	if (gate->n_failures)
		memcpy(rows, gate->failures, gate->n_failures * sizeof(*rows));
	report_add(report, &failure_kind, rows, gate->n_failures);
}

/* ---- suppressions ---------------------------------------------------------------------------- */

struct suppression_row {
	const char *at, *file, *id, *place, *until, *reason, *state, *says;
	uint64_t line, findings, unknown, cost_ns;
};

static const struct column suppression_columns[] = {
	COLUMN_TEXT(struct suppression_row, at, "entry"),
	COLUMN_JSON(struct suppression_row, file, UNIT_TEXT),
	COLUMN_JSON(struct suppression_row, line, UNIT_COUNT),
	COLUMN(struct suppression_row, id, "detector", UNIT_TEXT),
	COLUMN(struct suppression_row, place, "place", UNIT_TEXT),
	COLUMN_JSON(struct suppression_row, until, UNIT_TEXT),
	COLUMN_JSON(struct suppression_row, reason, UNIT_TEXT),
	COLUMN_JSON(struct suppression_row, state, UNIT_TEXT),
	COLUMN_JSON(struct suppression_row, findings, UNIT_COUNT),
	COLUMN_JSON(struct suppression_row, unknown, UNIT_COUNT),
	COLUMN_JSON(struct suppression_row, cost_ns, UNIT_NS),
	COLUMN_TEXT(struct suppression_row, says, "state"),
};

static const struct table_kind suppression_kind = {
	TABLE("suppressions", "SUPPRESSIONS that expired or are not needed", struct suppression_row,
	      suppression_columns),
	.text_rows = 20,
};

static struct suppression_row describe(struct arena *texts, const struct suppression *e)
{
	struct suppression_row row = {
		.at = arena_printf(texts, "%s:%llu", path_basename(e->path),
				   (unsigned long long)e->line),
		.file = arena_printf(texts, "%s", e->path),
		.line = e->line,
		.id = e->id,
		.place = e->place,
		.until = e->until,
		.reason = e->reason,
		.state = e->expired    ? "expired"
			 : e->findings ? "used"
				       : "unused",
		.findings = e->findings,
		.unknown = e->unknown,
		.cost_ns = e->cost_ns,
	};

	row.says = row.state;
	if (e->expired)
		row.says = arena_printf(texts, "expired on %s; %s", e->until,
					findings_text(texts, e->findings, e->unknown, e->cost_ns));
	return row;
}

/* Those in use last, and not in text: they need no attention. */
static void add_suppressions(struct report *report, const struct suppressions *s)
{
	struct suppression_row *rows = xcalloc(s->n, sizeof(*rows));
	size_t i, used, n = 0, n_used = 0;
	struct table *table;

	for (used = 0; used < 2; used++)
		for (i = 0; i < s->n; i++)
			if ((s->all[i].findings && !s->all[i].expired) == used) {
				rows[n++] = describe(&report->arena, &s->all[i]);
				n_used += used;
			}
	table = report_add(report, &suppression_kind, rows, n);
	table->minor_rows = n_used;
	table->minor_name = "in use";
}

/* ---- the detectors --------------------------------------------------------------------------- */

struct detector_row {
	const char *id, *title, *sees, *blind, *fix;
};

static const struct column detector_columns[] = {
	COLUMN(struct detector_row, id, "", UNIT_TEXT),
	COLUMN(struct detector_row, title, "", UNIT_TEXT),
	COLUMN(struct detector_row, sees, "", UNIT_TEXT),
	COLUMN(struct detector_row, blind, "", UNIT_TEXT),
	COLUMN(struct detector_row, fix, "", UNIT_TEXT),
};

/* What was looked for: SARIF's rules and JUnit's test cases. */
static const struct table_kind detector_kind = {
	TABLE("detectors", NULL, struct detector_row, detector_columns),
	.unlisted = true,
};

static void add_detectors(struct report *report)
{
	struct detector_row *rows = NULL;
	const struct detector *d;
	size_t n;

	for (n = 0; (d = detectors_row(n)); n++) {
		rows = grow(rows, n, sizeof(*rows));
		rows[n] = (struct detector_row){d->id, d->title, d->sees, d->blind, d->fix};
	}
	report_add(report, &detector_kind, rows, n);
}

void report_gate(struct report *report, const struct gate *gate)
{
	add_verdict(report, gate);
	add_failures(report, gate);
	add_suppressions(report, &gate->suppressions);
	add_detectors(report);
}
