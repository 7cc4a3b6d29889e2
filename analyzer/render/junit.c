/*
 * analyzer/render/junit.c: the findings of a report as JUnit XML: a test suite with a test case for
 * each detector, which fails where there are findings that do. Called by `report` and `run`.
 *
 * A test case has one failure at most, as most readers show only one: it tells of all its findings.
 * Where the trace has gaps there is one more, "complete-data": skipped, or an error if the gate
 * cannot judge.
 */
#include <stdlib.h>
#include <string.h>
#include "findings.h"
#include "render.h"
#include "base/lines.h"

/* Bytes of the character at `text`; 0: it is none that XML knows, or none to be looked at. */
static size_t character(const char *text)
{
	if (*text == '\n' || *text == '\t')
		return 1;
	if (!strncmp(text, "\xef\xbf\xbe", 3) || !strncmp(text, "\xef\xbf\xbf", 3))
		return 0;
	return harmless_character(text);
}

/* Texts from a traced process may be anything: what XML does not know becomes '?'. */
static void print_text(const char *text, FILE *out)
{
	while (*text) {
		size_t n = character(text);

		if (!n)
			fputc('?', out);
		else if (strchr("<>&\"\n\t", *text))
			fprintf(out, "&#%d;", *text);
		else
			fwrite(text, 1, n, out);
		text += n ? n : 1;
	}
}

static void print_attribute(const char *name, const char *text, FILE *out)
{
	fprintf(out, " %s=\"", name);
	print_text(text, out);
	fputc('"', out);
}

/* What there is of a detector. */
struct found {
	size_t failures, suppressed;
	size_t first_failure, first_suppressed; /* rows */
	uint64_t cost_ns; /* UNKNOWN_NS: unknown for one of them */
};

static bool is_of(const struct table *findings, size_t row, const char *id)
{
	return !strcmp(table_text_at(findings, row, "id"), id);
}

static struct found look(const struct table *findings, const char *id)
{
	struct found found = {0};

	for (size_t row = 0; row < findings->n_rows; row++) {
		if (!is_of(findings, row, id))
			continue;
		found.cost_ns =
			add_known_ns(found.cost_ns, table_number_at(findings, row, "cost_ns"));
		if (render_finding_fails(findings, row) && !found.failures++)
			found.first_failure = row;
		if (table_text_at(findings, row, "suppressed") && !found.suppressed++)
			found.first_suppressed = row;
	}
	return found;
}

static void print_finding(const struct table *findings, size_t row, FILE *out)
{
	const char *where = table_text_at(findings, row, "where");
	const char *python = table_text_at(findings, row, "python");
	char *message = render_finding_message(findings, row);
	char *cure = render_finding_cure(findings, row);

	if (where) {
		print_text(where, out);
		fputs("\n  ", out);
	}
	if (python) {
		print_text(python, out);
		fputs("\n  ", out);
	}
	print_text(message, out);
	fputs("\n  ", out);
	print_text(cure, out);
	fputc('\n', out);
	free(message);
	free(cure);
}

static void print_failure(const struct table *findings, const char *id, const struct found *found,
			  FILE *out)
{
	char *message = render_finding_message(findings, found->first_failure);

	fputs("      <failure", out);
	print_attribute("message", message, out);
	print_attribute("type", id, out);
	fputc('>', out);
	for (size_t row = 0; row < findings->n_rows; row++)
		if (is_of(findings, row, id) && render_finding_fails(findings, row))
			print_finding(findings, row, out);
	fputs("</failure>\n", out);
	free(message);
}

static void print_case(const struct table *findings, const struct table *detectors, size_t row,
		       FILE *out)
{
	const char *id = table_text_at(detectors, row, "id");
	struct found found = look(findings, id);

	fputs("    <testcase", out);
	print_attribute("classname", "cudaspy", out);
	print_attribute("name", id, out);
	if (found.cost_ns != UNKNOWN_NS)
		fprintf(out, " time=\"%.6f\"", (double)found.cost_ns / 1e9);
	fputs(">\n", out);
	if (found.failures)
		print_failure(findings, id, &found, out);
	else if (found.suppressed) {
		fputs("      <skipped", out);
		print_attribute("message",
				table_text_at(findings, found.first_suppressed, "suppressed"), out);
		fputs("/>\n", out);
	}
	fputs("    </testcase>\n", out);
}

/* ---- what is missing ------------------------------------------------------------------------- */

struct gaps {
	const struct table *losses;
	const char *verdict, *unjudged; /* the gate's; NULL: none, it can judge */
	bool any;
};

static struct gaps find_gaps(const struct report *report)
{
	const struct table *gate = report_find(report, "gate");
	struct gaps gaps = {.losses = report_find(report, "losses")};

	if (gate && gate->n_rows) {
		gaps.verdict = table_text_at(gate, 0, "verdict");
		gaps.unjudged = table_text_at(gate, 0, "unjudged");
	}
	gaps.any = gaps.unjudged || (gaps.losses && gaps.losses->n_rows);
	return gaps;
}

/* "count what (of which process)" of each loss, in one line. The caller frees. */
static char *losses_text(const struct table *t)
{
	char *text = xstrdup(""), *longer;

	for (size_t row = 0; t && row < t->n_rows; row++) {
		const char *process = table_text_at(t, row, "process");

		longer = xasprintf("%s%s%llu %s%s%s%s", text, row ? "; " : "",
				   (unsigned long long)table_number_at(t, row, "count"),
				   table_text_at(t, row, "text"), process ? " (" : "",
				   process ?: "", process ? ")" : "");
		free(text);
		text = longer;
	}
	return text;
}

static void print_gaps(const struct gaps *gaps, FILE *out)
{
	char *losses = losses_text(gaps->losses), *message;

	fputs("    <testcase classname=\"cudaspy\" name=\"complete-data\" time=\"0\">\n", out);
	if (gaps->unjudged) {
		message = xasprintf("the gate cannot judge: %s", gaps->unjudged);
		fputs("      <error", out);
		print_attribute("message", message, out);
		fputs(" type=\"incomplete-data\">", out);
		print_text(losses, out);
		fputs("</error>\n", out);
	} else {
		message = xasprintf("%s%s on incomplete data: %s", gaps->verdict ? "the gate " : "",
				    gaps->verdict ?: "judged", losses);
		fputs("      <skipped", out);
		print_attribute("message", message, out);
		fputs("/>\n", out);
	}
	fputs("    </testcase>\n", out);
	free(message);
	free(losses);
}

int render_junit(const struct report *report, FILE *out)
{
	const struct table *findings = report_find(report, "findings");
	const struct table *detectors = report_find(report, "detectors");
	const struct gaps gaps = find_gaps(report);
	size_t row, failures = 0, skipped = gaps.any && !gaps.unjudged;

	for (row = 0; row < detectors->n_rows; row++) {
		struct found found = look(findings, table_text_at(detectors, row, "id"));

		failures += found.failures != 0;
		skipped += !found.failures && found.suppressed;
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
	fprintf(out,
		"  <testsuite name=\"cudaspy\" tests=\"%zu\" failures=\"%zu\" errors=\"%d\" "
		"skipped=\"%zu\">\n",
		detectors->n_rows + gaps.any, failures, gaps.unjudged != NULL, skipped);
	for (row = 0; row < detectors->n_rows; row++)
		print_case(findings, detectors, row, out);
	if (gaps.any)
		print_gaps(&gaps, out);
	fputs("  </testsuite>\n</testsuites>\n", out);
	return finish_output(out);
}
