/*
 * tests/unit/digest_scene.h: a job told by the rows of its digests: for the tests of what is said of digests.
 *
 *   rank(&s, "rank_1=4 host=a span_ns=10s");            a rank, or a part of one
 *   row(&s, "roles", "role=main lock_ns=%ums", 100);    of the rank before; the columns are those of digest/schema.h
 *
 * Numbers may have a unit (us, ms, s); a text with blanks stands in quotes ('). What is not said is 0.
 */
#ifndef CUDASPY_TESTS_DIGEST_SCENE_H
#define CUDASPY_TESTS_DIGEST_SCENE_H

#include <jansson.h>
#include "cmd_files/cmd_job.h"
#include "digest/digest.h"
#include "render/render.h"
#include "scratch.h"

struct scene {
	struct digest *digest;
	struct digest_data data;
	bool open; /* a rank is being told */
};

static inline void scene_add(struct scene *s)
{
	if (!s->open)
		return;
	assert_int_equal(digest_add(s->digest, &s->data, "told"), 0);
	digest_data_release(&s->data);
	s->open = false;
}

static inline uint64_t scene_number(const char *text)
{
	char *unit;
	uint64_t number = strtoull(text, &unit, 10);

	return number * (!strcmp(unit, "us")   ? 1000
			 : !strcmp(unit, "ms") ? 1000000
			 : !strcmp(unit, "s")  ? 1000000000
					       : 1);
}

static inline uint32_t scene_table(const struct scene *s, const char *name)
{
	for (uint32_t i = 0; i < s->digest->schema.n_tables; i++)
		if (!strcmp(s->digest->schema.tables[i].name, name))
			return i;
	fail_msg("no table '%s'", name);
	return 0;
}

static inline void scene_put(struct scene *s, uint32_t table, uint64_t *cells, const char *name,
			     const char *value)
{
	const struct digest_table_info *info = &s->digest->schema.tables[table];

	for (uint32_t i = 0; i < info->n_columns; i++)
		if (!strcmp(info->columns[i].name, name)) {
			cells[i] = info->columns[i].type == DIGEST_TEXT
					   ? digest_texts_add(&s->digest->texts, value)
					   : scene_number(value);
			return;
		}
	fail_msg("no column '%s' in '%s'", name, info->name);
}

/* Cuts up the text. */
static inline void scene_cells(struct scene *s, const char *table, char *text)
{
	uint32_t number = scene_table(s, table);
	uint64_t *cells = digest_data_add(&s->data, number);
	char *name, *value;

	while (*(text += strspn(text, " "))) {
		name = strsep(&text, "=");
		if (*text == '\'') {
			value = ++text;
			value = strsep(&text, "'");
		} else {
			value = strsep(&text, " ");
		}
		scene_put(s, number, cells, name, value);
		if (!text)
			return;
	}
}

__attribute__((format(printf, 3, 4))) static inline void row(struct scene *s, const char *table,
							     const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	scene_cells(s, table, text);
}

__attribute__((format(printf, 2, 3))) static inline void rank(struct scene *s, const char *format,
							      ...)
{
	char text[1024];
	va_list args;

	if (!s->digest)
		s->digest = digest_new();
	scene_add(s);
	digest_data_init(&s->data, &s->digest->schema);
	s->open = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	scene_cells(s, "rank", text);
}

/* The report; the caller frees. */
static inline char *scene_report(struct scene *s, const char *format)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	scene_add(s);
	assert_int_equal(job_show_digest(s->digest, renderer_find(format), true, out), 0);
	fclose(out);
	return text;
}

static inline void scene_end(struct scene *s)
{
	digest_free(s->digest);
	*s = (struct scene){0};
}

/* ---- what is said ---------------------------------------------------------------------------- */

static inline void scene_cell(const json_t *row, const char *key, FILE *out)
{
	const json_t *value = json_object_get(row, key);

	if (json_is_integer(value))
		fprintf(out, "%lld", json_integer_value(value));
	else
		fputs(json_string_value(value) ?: "-", out);
}

static inline void scene_cells_of(const json_t *row, const char *keys, FILE *out)
{
	char *copy = strdup(keys), *rest = copy, *key;

	while ((key = strsep(&rest, " "))) {
		scene_cell(row, key, out);
		fputs(rest ? " | " : "\n", out);
	}
	free(copy);
}

/* The table has these rows, a line each: the values of the keys, with " | " between them; unknown: "-". */
static inline void shows(const json_t *root, const char *table, const char *keys,
			 const char *expected)
{
	const json_t *rows = json_object_get(root, table), *each;
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (json_is_object(rows))
		scene_cells_of(rows, keys, out);
	json_array_foreach(rows, i, each) scene_cells_of(each, keys, out);
	fclose(out);
	if (strcmp(text, expected))
		fail_msg("%s has\n%snot\n%s", table, text, expected);
	free(text);
}

/* The same of the scene's report; it ends the scene. */
static inline void scene_shows(struct scene *s, const char *table, const char *keys,
			       const char *expected)
{
	char *text = scene_report(s, "json");
	json_t *root = json_loads(text, 0, NULL);

	assert_non_null(root);
	shows(root, table, keys, expected);
	json_decref(root);
	free(text);
	scene_end(s);
}

/* Its words are in the text report, on however many lines. */
static inline void scene_says(struct scene *s, const char *words)
{
	char *text = scratch_squeeze(scene_report(s, "text"));

	if (!strstr(text, words))
		fail_msg("'%s' is not in:\n%s", words, text);
	free(text);
}

#endif
