/*
 * analyzer/tables/csv.c: the report's tables as comma-separated values (RFC 4180): a folder with a file for each, or one of
 * them (--table). Called by `cudaspy export`, once.
 *
 * The first line has the keys that JSON has, which say the unit. What is not known is an empty field; an empty text is "".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "walk.h"
#include "base/lines.h"
#include "export/export.h"

struct csv {
	const struct export_job *job;
	FILE *file; /* of the table in hand; NULL: it is not asked for, or an error */
	char *path; /* of its file, in the folder; NULL: the only one */
	bool found; /* the table that was asked for */
	int err;
};

/* ---- fields ---------------------------------------------------------------------------------- */

static void put_quoted(FILE *out, const char *text)
{
	char *valid = valid_utf8(text), *at;

	if (*valid && !valid[strcspn(valid, ",\"\r\n")]) {
		fputs(valid, out);
	} else {
		fputc('"', out);
		for (at = valid; *at; at++) {
			if (*at == '"')
				fputc('"', out);
			fputc(*at, out);
		}
		fputc('"', out);
	}
	free(valid);
}

static void put_field(FILE *out, const struct table *t, size_t row, const struct column *column)
{
	if (table_is_null(t, row, column))
		return;
	if (column->unit == UNIT_TEXT)
		put_quoted(out, table_text(t, row, column));
	else
		fprintf(out, "%" PRId64, table_integer(t, row, column));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void open_in_folder(struct csv *c, const char *name)
{
	if (c->err)
		return;
	c->path = xasprintf("%s/%s.csv", c->job->out->temporary, name);
	c->file = fopen(c->path, "we");
	if (c->file)
		return;
	c->err = -errno;
	warn("%s: %s", c->path, strerror(-c->err));
}

static void begin(void *data, const char *name, const struct table_kind *kind, bool inner)
{
	struct csv *c = data;
	const char *comma = "", *table = c->job->options->table;

	if (!table) {
		open_in_folder(c, name);
	} else if (!strcmp(table, name)) {
		c->file = c->job->out->file;
		c->found = true;
	}
	if (!c->file)
		return;
	if (inner)
		fputs("row", c->file);
	comma = inner ? "," : "";
	for (size_t i = 0; i < kind->n_columns; i++)
		if (table_has(&kind->columns[i])) {
			fprintf(c->file, "%s%s", comma, kind->columns[i].key);
			comma = ",";
		}
	fputc('\n', c->file);
}

static void add_row(void *data, const struct table *t, size_t row, uint64_t outer_row)
{
	struct csv *c = data;
	const char *comma = "";

	if (!c->file)
		return;
	if (outer_row) {
		fprintf(c->file, "%" PRIu64, outer_row);
		comma = ",";
	}
	for (size_t i = 0; i < t->kind->n_columns; i++)
		if (table_has(&t->kind->columns[i])) {
			fputs(comma, c->file);
			put_field(c->file, t, row, &t->kind->columns[i]);
			comma = ",";
		}
	fputc('\n', c->file);
}

static void end(void *data)
{
	struct csv *c = data;

	if (c->file && c->path) {
		c->err = finish_output(c->file) ?: c->err;
		fclose(c->file);
	}
	c->file = NULL;
	free(c->path);
	c->path = NULL;
}

/* ---- */

static void name_table(void *data, const char *name, const struct table_kind *kind, bool inner)
{
	char **names = data, *longer = xasprintf("%s%s%s", *names, **names ? ", " : "", name);

	(void)kind;
	(void)inner;
	free(*names);
	*names = longer;
}

static void no_row(void *data, const struct table *t, size_t row, uint64_t outer_row)
{
	(void)data;
	(void)t;
	(void)row;
	(void)outer_row;
}

static void no_end(void *data)
{
	(void)data;
}

static int no_such_table(const struct export_job *job)
{
	char *names = xstrdup("");

	tables_walk(job->report, &(struct table_visitor){&names, name_table, no_row, no_end});
	warn("export: no table '%s' (there are: %s)", job->options->table, names);
	free(names);
	return -EINVAL;
}

void *csv_begin(const struct export_job *job)
{
	struct csv *c = xcalloc(1, sizeof(*c));

	c->job = job;
	if (!job->options->table && mkdir(job->out->temporary, 0777)) {
		warn("%s: %s", job->out->path, strerror(errno));
		free(c);
		return NULL;
	}
	tables_walk(job->report, &(struct table_visitor){c, begin, add_row, end});
	if (job->options->table && !c->found)
		c->err = no_such_table(job);
	return c;
}

int csv_end(void *state, int err)
{
	struct csv *c = state;

	err = c->err ?: err;
	free(c);
	return err;
}
