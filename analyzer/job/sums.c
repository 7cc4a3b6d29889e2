/*
 * analyzer/job/sums.c: rows of all ranks with one key, put together as the schema says. Called while ranks are loaded, and by
 * the sections.
 */
#include <stdlib.h>
#include "job.h"

static const uint32_t tables[JOB_SUMS] = {[JOB_FUNCTIONS] = D_FUNC,
					  [JOB_CAUSES] = D_CAUSE,
					  [JOB_LOCKS] = D_LOCK,
					  [JOB_EDGES] = D_EDGE};

/* The cells that say whose row it is: they are cleared where rows are folded. */
static size_t key_of(const struct digest_table_info *info, const uint64_t *row, uint64_t *key)
{
	size_t n = 0;

	for (uint32_t i = 0; i < info->n_columns; i++)
		if (info->columns[i].fold == DIGEST_CLEAR)
			key[n++] = row[i];
	return n * sizeof(*key);
}

static struct job_sum *sum_of(struct job_sum **sums, const struct digest_table_info *info,
			      const uint64_t *row)
{
	uint64_t key[DIGEST_COLUMNS_MOST];
	size_t bytes = key_of(info, row, key);
	struct job_sum *sum;

	HASH_FIND(hh, *sums, key, bytes, sum);
	if (sum)
		return sum;
	sum = xcalloc(1, sizeof(*sum) + bytes);
	memcpy(sum->key, key, bytes);
	sum->cells = xcalloc(info->n_columns, sizeof(*sum->cells));
	for (uint32_t i = 0; i < info->n_columns; i++)
		if (info->columns[i].fold == DIGEST_CLEAR)
			sum->cells[i] = row[i];
	HASH_ADD_KEYPTR(hh, *sums, sum->key, bytes, sum);
	return sum;
}

static void add_row(struct job_sum *sum, const struct digest_table_info *info, const uint64_t *row,
		    uint32_t rank)
{
	for (uint32_t i = 0; i < info->n_columns; i++) {
		if (info->columns[i].fold == DIGEST_SUM)
			sum->cells[i] = add_capped(sum->cells[i], row[i]);
		else if (info->columns[i].fold == DIGEST_MAX)
			sum->cells[i] = max_u64(sum->cells[i], row[i]);
	}
	if (sum->last_1 != rank + 1) {
		sum->ranks++;
		sum->last_1 = rank + 1;
		sum->last = 0;
	}
	sum->last = add_capped(sum->last, row[info->by]);
	if (sum->ranks == 1 || sum->last > sum->most) {
		sum->most = sum->last;
		sum->most_rank = rank;
	}
}

void job_sum_add(struct job *job, const struct digest_data *data, uint32_t rank)
{
	for (size_t i = 0; i < JOB_SUMS; i++) {
		const struct digest_table_info *info = &job->digest->schema.tables[tables[i]];
		const struct digest_rows *rows = &data->tables[tables[i]];

		for (uint32_t row = 0; row < rows->n; row++) {
			const uint64_t *cells = &rows->cells[(size_t)row * rows->columns];

			add_row(sum_of(&job->sums[i], info, cells), info, cells, rank);
		}
	}
}

void job_sums_release(struct job *job)
{
	struct job_sum *sum, *next;

	for (size_t i = 0; i < JOB_SUMS; i++)
		HASH_EMPTY (job->sums[i], sum, next) {
			free(sum->cells);
			free(sum);
		}
}

struct ordered {
	struct job_sum *sum;
	uint64_t by;
	size_t i; /* of equal ones the first comes first: ranks are loaded in order */
};

static int by_most(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	return COMPARE(y->by, x->by) ?: COMPARE(x->i, y->i);
}

struct job_sum **job_sums(const struct job *job, enum job_sum_table table, size_t *n)
{
	uint32_t by = job->digest->schema.tables[tables[table]].by;
	struct ordered *all = xcalloc(HASH_COUNT(job->sums[table]) + 1, sizeof(*all));
	struct job_sum **sums = xcalloc(HASH_COUNT(job->sums[table]) + 1, sizeof(*sums)), *sum;

	*n = 0;
	for (sum = job->sums[table]; sum; sum = sum->hh.next, (*n)++)
		all[*n] = (struct ordered){sum, sum->cells[by], *n};
	qsort(all, *n, sizeof(*all), by_most);
	for (size_t i = 0; i < *n; i++)
		sums[i] = all[i].sum;
	free(all);
	return sums;
}
