/*
 * analyzer/digest/dump.c: all that a digest has, one line for each row, or as JSON. Called by `cudaspy dump`.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include "digest.h"
#include "base/lines.h"
#include "base/redact.h"

/* Texts may hold anything. */
static char *shown_text(const struct digest *digest, uint64_t number, bool json)
{
	char *left = redacted(digest_texts_at(&digest->texts, number));
	char *text = json ? valid_utf8(left) : visible(left);

	free(left);
	return text;
}

static void put_row(const struct digest *digest, const struct digest_data *data, uint32_t table,
		    uint32_t row, FILE *out)
{
	const struct digest_table_info *info = &digest->schema.tables[table];

	fputs(info->name, out);
	if (digest_is_rest(data, table, row))
		fprintf(out, " rest_of=%" PRIu64, data->tables[table].folded);
	for (uint32_t i = 0; i < info->n_columns; i++) {
		uint64_t cell = digest_cell(data, table, row, i);
		char *text;

		if (!cell)
			continue;
		if (info->columns[i].type != DIGEST_TEXT) {
			fprintf(out, " %s=%" PRIu64, info->columns[i].name, cell);
			continue;
		}
		text = shown_text(digest, cell, false);
		fprintf(out, " %s=\"%s\"", info->columns[i].name, text);
		free(text);
	}
	fputc('\n', out);
}

static void put_rank(const struct digest *digest, const struct digest_data *data, const char *name,
		     FILE *out)
{
	fprintf(out, "# %s\n", name);
	for (uint32_t table = 0; table < data->n_tables; table++)
		for (uint32_t row = 0; row < data->tables[table].n; row++)
			put_row(digest, data, table, row, out);
}

static json_t *json_row(const struct digest *digest, const struct digest_data *data, uint32_t table,
			uint32_t row)
{
	const struct digest_table_info *info = &digest->schema.tables[table];
	json_t *object = json_object();

	if (digest_is_rest(data, table, row))
		json_object_set_new(object, "rest_of",
				    json_integer((json_int_t)data->tables[table].folded));
	for (uint32_t i = 0; i < info->n_columns; i++) {
		uint64_t cell = digest_cell(data, table, row, i);
		char *text;

		if (info->columns[i].type != DIGEST_TEXT) {
			json_object_set_new(object, info->columns[i].name,
					    json_integer((json_int_t)min_u64(cell, NUMBER_MOST)));
			continue;
		}
		text = shown_text(digest, cell, true);
		json_object_set_new(object, info->columns[i].name, json_string(text));
		free(text);
	}
	return object;
}

static json_t *json_rank(const struct digest *digest, const struct digest_data *data,
			 const char *name)
{
	json_t *object = json_object(), *rows;
	char *valid = valid_utf8(name);

	json_object_set_new(object, "name", json_string(valid));
	free(valid);
	for (uint32_t table = 0; table < data->n_tables; table++) {
		rows = json_array();
		for (uint32_t row = 0; row < data->tables[table].n; row++)
			json_array_append_new(rows, json_row(digest, data, table, row));
		json_object_set_new(object, digest->schema.tables[table].name, rows);
	}
	return object;
}

static int put_json(const struct digest *digest, const struct digest_data *data, const char *name,
		    bool first, FILE *out)
{
	json_t *rank = json_rank(digest, data, name);
	int err;

	fputs(first ? "\n" : ",\n", out);
	err = json_dumpf(rank, out, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(rank);
	return err ? -EIO : 0;
}

int digest_dump(const struct digest *digest, bool json, FILE *out)
{
	struct arena texts = {0};
	struct digest_data data;
	size_t n, i;
	struct digest_rank **ranks = digest_ranks(digest, &n);
	int err = 0;

	if (json)
		fprintf(out, "{\"schema\": \"cudaspy-digest-1\", \"level\": %u, \"ranks\": [",
			digest->level);
	else
		fprintf(out, "# digest %d.%d, level %u, %zu rank%s\n", DIGEST_MAJOR, DIGEST_MINOR,
			digest->level, n, n == 1 ? "" : "s");
	for (i = 0; !err && i < n; i++) {
		char *name;

		digest_rank_data(digest, ranks[i], &data);
		name = redacted(digest_rank_name(&texts, digest, &data));
		if (json) {
			err = put_json(digest, &data, name, !i, out);
		} else {
			char *text = visible(name);

			put_rank(digest, &data, text, out);
			free(text);
		}
		free(name);
		digest_data_release(&data);
		arena_release(&texts);
	}
	if (json)
		fputs("]}\n", out);
	free(ranks);
	return finish_output(out) || err ? -EIO : 0;
}
