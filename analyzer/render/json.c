/*
 * analyzer/render/json.c: a finished report as one JSON object: "schema", then each table under its
 * key, as an array of objects, or as one object for facts. Called by the commands.
 */
#include <errno.h>
#include <stdlib.h>
#include "json.h"
#include "render.h"
#include "base/lines.h"

json_t *render_json_text(const char *text)
{
	char *valid = valid_utf8(text);
	json_t *value = json_string(valid);

	free(valid);
	return value;
}

static json_t *json_table(const struct table *t);

json_t *render_json_cell(const struct table *t, size_t row, const struct column *column)
{
	const struct table *table;

	if (column->unit == UNIT_TABLE) {
		table = table_table(t, row, column);
		return table ? json_table(table) : json_array();
	}
	if (table_is_null(t, row, column))
		return json_null();
	if (column->unit == UNIT_TEXT)
		return render_json_text(table_text(t, row, column));
	return json_integer(table_integer(t, row, column));
}

static json_t *json_row(const struct table *t, size_t row)
{
	json_t *object = json_object();

	for (size_t i = 0; i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (column->key)
			json_object_set_new(object, column->key, render_json_cell(t, row, column));
	}
	return object;
}

static json_t *json_table(const struct table *t)
{
	json_t *array;

	if (t->kind->facts)
		return t->n_rows ? json_row(t, 0) : json_object();
	array = json_array();
	for (size_t row = 0; row < t->n_rows; row++)
		json_array_append_new(array, json_row(t, row));
	return array;
}

json_t *render_json_report(const struct report *report)
{
	json_t *root = json_object();

	json_object_set_new(root, "schema", json_string(report->schema));
	for (size_t i = 0; i < report->n_tables; i++)
		if (!report->tables[i].kind->unlisted)
			json_object_set_new(root, report->tables[i].kind->key,
					    json_table(&report->tables[i]));
	return root;
}

int render_json(const struct report *report, FILE *out)
{
	json_t *root = render_json_report(report);
	int err = json_dumpf(root, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(root);
	fputc('\n', out);
	return finish_output(out) || err ? -EIO : 0;
}
