/*
 * analyzer/render/sarif.c: the findings of a report as SARIF 2.1.0, which code hosts and
 * editors show at the lines they are about. Called by `report` and `run`.
 *
 * The detectors are its rules. A file below the current directory, where a build's sources are, is
 * named relative to it. What is suppressed or was there before says so in SARIF's own words;
 * losses, and suppressions that are of no use, are notifications of the tool.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "findings.h"
#include "json.h"
#include "render.h"
#include "base/redact.h"

#define SCHEMA \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/" \
	"sarif-schema-2.1.0.json"
#define ROOT "SRCROOT"

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

/* Sets a text; nothing if it is NULL. */
static void set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, render_json_text(text));
}

static void set_message(json_t *object, const char *key, const char *text)
{
	json_t *message = json_object();

	set_text(message, "text", text ?: "");
	json_object_set_new(object, key, message);
}

/* ---- places --------------------------------------------------------------------------------- */

/* A path as a URI reference: percent signs for all that has a meaning there. The caller frees. */
static char *uri_path(const char *prefix, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";
	size_t n = strlen(prefix);
	char *uri = xcalloc(n + 3 * strlen(path) + 1, 1);

	memcpy(uri, prefix, n);
	for (; *path; path++)
		if (strchr(plain, *path))
			uri[n++] = *path;
		else
			n += (size_t)snprintf(uri + n, 4, "%%%02X", (unsigned char)*path);
	return uri;
}

/* What is left of a path below the current directory; NULL: it is elsewhere. */
static const char *below_here(const char *path)
{
	char here[PATH_MAX];
	size_t n;

	if (path[0] != '/')
		return path;
	if (!getcwd(here, sizeof(here)))
		return NULL;
	n = strlen(here);
	return !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : NULL;
}

static json_t *artifact_location(const char *path)
{
	const char *below = below_here(path);
	char *uri = uri_path(below ? "" : "file://", below ?: path);
	json_t *location = json_object();

	json_object_set_new(location, "uri", json_string(uri));
	if (below)
		json_object_set_new(location, "uriBaseId", json_string(ROOT));
	free(uri);
	return location;
}

static json_t *physical_location(const char *file, uint64_t line)
{
	json_t *place = json_object(), *region;

	json_object_set_new(place, "artifactLocation", artifact_location(file));
	if (line) {
		region = json_object();
		json_object_set_new(region, "startLine", json_integer((json_int_t)line));
		json_object_set_new(place, "region", region);
	}
	return place;
}

/* The calling function, or as much of it as is known. Of what a library calls, the program's. */
static json_t *logical_location(const struct table *t, size_t row)
{
	const char *caller =
		table_text_at(t, row, "library_caller") ?: table_text_at(t, row, "caller");
	const char *module = table_text_at(t, row, "module");
	json_t *place = json_object();

	set_text(place, "name", caller ?: module);
	set_text(place, "fullyQualifiedName", table_text_at(t, row, "where"));
	set_text(place, "kind", caller ? "function" : "module");
	return place;
}

static json_t *python_function(const struct table *t, size_t row)
{
	json_t *place = json_object();

	set_text(place, "name", table_text_at(t, row, "python_function"));
	set_text(place, "kind", "function");
	return place;
}

/* A line of Python's is what its user wrote, and the rest how the interpreter came to the call.
 * Code hosts show nothing that has no file: without a source it is the module that calls, or the
 * program. */
static json_t *location(const struct table *t, size_t row)
{
	const char *file = table_text_at(t, row, "file");
	const char *python = table_text_at(t, row, "python_file");
	const char *module = table_text_at(t, row, "module");
	const char *program = table_text_at(t, row, "program");
	json_t *place = json_object(), *logical = json_array(), *physical = NULL;

	if (names_file(python))
		physical = physical_location(python, table_number_at(t, row, "python_line"));
	else if (file)
		physical = physical_location(file, table_number_at(t, row, "line"));
	else if (module && *module == '/')
		physical = physical_location(module, 0);
	else if (program)
		physical = physical_location(program, 0);
	if (physical)
		json_object_set_new(place, "physicalLocation", physical);
	if (python)
		json_array_append_new(logical, python_function(t, row));
	if (table_text_at(t, row, "module"))
		json_array_append_new(logical, logical_location(t, row));
	if (json_array_size(logical))
		json_object_set(place, "logicalLocations", logical);
	json_decref(logical);
	return place;
}

/* ---- results -------------------------------------------------------------------------------- */

static const char *level(const struct table *t, size_t row)
{
	const char *fails = table_text_at(t, row, "fails");

	if (fails && !strcmp(fails, "yes"))
		return "error";
	return render_finding_is_problem(t, row) ? "warning" : "note";
}

/* The same for one place in each build: where it is called, without offsets. */
static json_t *fingerprints(const struct table *t, size_t row)
{
	static const char *const keys[] = {"id", "function", "module", "caller"};
	json_t *prints = json_object();
	char *text = xstrdup("");

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *part = table_text_at(t, row, keys[i]) ?: "";
		char *longer;

		if (!strcmp(keys[i], "module"))
			part = path_basename(part);
		longer = xasprintf("%s%s%s", text, i ? "|" : "", part);
		free(text);
		text = longer;
	}
	set_text(prints, "cudaspyPlace/v1", text);
	free(text);
	return prints;
}

static json_t *suppressions(const char *reason)
{
	json_t *array = json_array(), *one;

	if (reason) {
		one = json_object();
		json_object_set_new(one, "kind", json_string("external"));
		json_object_set_new(one, "status", json_string("accepted"));
		set_text(one, "justification", reason);
		json_array_append_new(array, one);
	}
	return array;
}

/* The numbers, for programs. */
static json_t *properties(const struct table *t, size_t row)
{
	json_t *bag = json_object();

	for (size_t i = 0; i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (column->key && column->unit != UNIT_TEXT && column->unit != UNIT_TABLE)
			json_object_set_new(bag, column->key, render_json_cell(t, row, column));
	}
	return bag;
}

static const char *baseline_state(const char *compared)
{
	if (!strcmp(compared, "new"))
		return "new";
	return strcmp(compared, "worse") ? "unchanged" : "updated";
}

static json_t *result(const struct table *t, size_t row, const struct table *detectors)
{
	const char *id = table_text_at(t, row, "id"), *compared = table_text_at(t, row, "compared");
	char *message = render_finding_message(t, row), *cure = render_finding_cure(t, row);
	char *both = xasprintf("%s %s", message, cure);
	json_t *object = json_object(), *places = json_array(), *place = location(t, row);

	set_text(object, "ruleId", id);
	for (size_t rule = 0; rule < detectors->n_rows; rule++)
		if (!strcmp(table_text_at(detectors, rule, "id"), id))
			json_object_set_new(object, "ruleIndex", json_integer((json_int_t)rule));
	json_object_set_new(object, "level", json_string(level(t, row)));
	set_message(object, "message", both);
	if (json_object_size(place))
		json_array_append(places, place);
	json_decref(place);
	json_object_set_new(object, "locations", places);
	json_object_set_new(object, "partialFingerprints", fingerprints(t, row));
	json_object_set_new(object, "suppressions",
			    suppressions(table_text_at(t, row, "suppressed")));
	if (compared)
		json_object_set_new(object, "baselineState", json_string(baseline_state(compared)));
	json_object_set_new(object, "properties", properties(t, row));
	free(message);
	free(cure);
	free(both);
	return object;
}

/* ---- the run -------------------------------------------------------------------------------- */

static json_t *rule(const struct table *t, size_t row)
{
	char *help = xasprintf("%s\n\nWhat it does not see: %s", table_text_at(t, row, "fix"),
			       table_text_at(t, row, "blind"));
	json_t *object = json_object();

	set_text(object, "id", table_text_at(t, row, "id"));
	set_message(object, "shortDescription", table_text_at(t, row, "title"));
	set_message(object, "fullDescription", table_text_at(t, row, "sees"));
	set_message(object, "help", help);
	free(help);
	return object;
}

static json_t *tool(const struct table *detectors)
{
	json_t *object = json_object(), *driver = json_object(), *rules = json_array();

	for (size_t row = 0; row < detectors->n_rows; row++)
		json_array_append_new(rules, rule(detectors, row));
	json_object_set_new(driver, "name", json_string("cudaspy"));
	json_object_set_new(driver, "version", json_string(CUDASPY_VERSION));
	json_object_set_new(driver, "rules", rules);
	json_object_set_new(object, "driver", driver);
	return object;
}

/* Why the gate cannot judge; NULL: it can, or there is none. */
static const char *unjudged_text(const struct report *report)
{
	const struct table *gate = report_find(report, "gate");

	return gate && gate->n_rows ? table_text_at(gate, 0, "unjudged") : NULL;
}

static void notify(json_t *notifications, const char *level, const char *text)
{
	json_t *object = json_object();

	json_object_set_new(object, "level", json_string(level));
	set_message(object, "message", text);
	json_array_append_new(notifications, object);
}

static json_t *notifications(const struct report *report)
{
	const struct table *losses = report_find(report, "losses");
	const struct table *suppressed = report_find(report, "suppressions");
	json_t *array = json_array();
	const char *unjudged = unjudged_text(report);

	if (unjudged) {
		char *text = xasprintf("The gate cannot judge: %s.", unjudged);

		notify(array, "error", text);
		free(text);
	}
	for (size_t row = 0; losses && row < losses->n_rows; row++)
		notify(array, "warning", table_text_at(losses, row, "text") ?: "");
	for (size_t row = 0; suppressed && row < suppressed->n_rows; row++) {
		const char *state = table_text_at(suppressed, row, "state");
		char *text;

		if (!strcmp(state, "used"))
			continue;
		text = xasprintf("%s:%llu: suppression of %s: %s",
				 table_text_at(suppressed, row, "file"),
				 (unsigned long long)table_number_at(suppressed, row, "line"),
				 table_text_at(suppressed, row, "id"), state);
		notify(array, "warning", text);
		free(text);
	}
	return array;
}

static json_t *invocations(const struct report *report)
{
	const char *unjudged = unjudged_text(report);
	json_t *array = json_array(), *one = json_object();

	json_object_set_new(one, "executionSuccessful", json_boolean(!unjudged));
	json_object_set_new(one, "toolExecutionNotifications", notifications(report));
	json_array_append_new(array, one);
	return array;
}

static json_t *base_ids(void)
{
	json_t *ids = json_object(), *root = json_object();
	char here[PATH_MAX + 1], *uri;

	if (!redact_is_on() && getcwd(here, PATH_MAX)) {
		uri = uri_path("file://", strcat(here, strcmp(here, "/") ? "/" : ""));
		json_object_set_new(root, "uri", json_string(uri));
		free(uri);
	}
	json_object_set_new(ids, ROOT, root);
	return ids;
}

static json_t *run(const struct report *report)
{
	const struct table *findings = report_find(report, "findings");
	const struct table *detectors = report_find(report, "detectors");
	json_t *object = json_object(), *results = json_array();

	for (size_t row = 0; row < findings->n_rows; row++)
		json_array_append_new(results, result(findings, row, detectors));
	json_object_set_new(object, "tool", tool(detectors));
	json_object_set_new(object, "invocations", invocations(report));
	json_object_set_new(object, "originalUriBaseIds", base_ids());
	json_object_set_new(object, "results", results);
	return object;
}

int render_sarif(const struct report *report, FILE *out)
{
	json_t *root = json_object(), *runs = json_array();
	int err;

	json_array_append_new(runs, run(report));
	json_object_set_new(root, "$schema", json_string(SCHEMA));
	json_object_set_new(root, "version", json_string("2.1.0"));
	json_object_set_new(root, "runs", runs);
	err = json_dumpf(root, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(root);
	fputc('\n', out);
	return finish_output(out) || err ? -EIO : 0;
}
