/*
 * analyzer/digest/schema.c: the list of tables and columns as data. Called where a digest is made, read or merged.
 */
#include <errno.h>
#include "schema.h"

/* clang-format off */
#define COLUMN_INFO(table, name_, type_, fold_) {.name = #name_, .type = DIGEST_##type_, .fold = DIGEST_##fold_},
#define TABLE_INFO(table, name_, rule_, by_, most_, least_) \
	{.name = #name_, .rule = DIGEST_##rule_, .by = D_##table##_##by_, .most = (most_), .least = (least_), \
	 .n_columns = D_##table##_COLUMNS, .columns = {DIGEST_##table(COLUMN_INFO)}},
static const struct digest_table_info known[DIGEST_TABLES_KNOWN] = {DIGEST_TABLES(TABLE_INFO)};
/* clang-format on */

void digest_schema_init(struct digest_schema *schema)
{
	memcpy(schema->tables, known, sizeof(known));
	schema->n_tables = DIGEST_TABLES_KNOWN;
}

static bool same_columns(const struct digest_table_info *a, const struct digest_table_info *b,
			 const char **column)
{
	uint32_t i, n = a->n_columns < b->n_columns ? a->n_columns : b->n_columns;

	for (i = 0; i < n; i++) {
		const struct digest_column *x = &a->columns[i], *y = &b->columns[i];

		*column = y->name;
		if (strcmp(x->name, y->name) != 0 || x->type != y->type || x->fold != y->fold)
			return false;
	}
	return true;
}

static int join_table(struct digest_table_info *table, const struct digest_table_info *more,
		      struct arena *texts, const char **why)
{
	const char *column = "";

	if (strcmp(table->name, more->name) != 0 || table->rule != more->rule ||
	    table->by != more->by) {
		*why = arena_printf(texts, "table '%s' is another one", more->name);
		return -EPROTO;
	}
	if (!same_columns(table, more, &column)) {
		*why = arena_printf(texts, "column '%s' of table '%s' is another one", column,
				    more->name);
		return -EPROTO;
	}
	for (; table->n_columns < more->n_columns; table->n_columns++)
		table->columns[table->n_columns] = more->columns[table->n_columns];
	/* The smaller bound: it does not matter which of the two came first. */
	table->most = (uint32_t)min_u64(table->most, more->most);
	table->least = (uint32_t)min_u64(table->least, more->least);
	return 0;
}

int digest_schema_join(struct digest_schema *schema, const struct digest_schema *more,
		       struct arena *texts, const char **why)
{
	int err;

	for (uint32_t i = 0; i < more->n_tables; i++) {
		if (i == schema->n_tables) {
			schema->tables[schema->n_tables++] = more->tables[i];
			continue;
		}
		err = join_table(&schema->tables[i], &more->tables[i], texts, why);
		if (err)
			return err;
	}
	return 0;
}
