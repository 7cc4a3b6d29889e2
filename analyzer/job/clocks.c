/*
 * analyzer/job/clocks.c: operations in the order of their keys, and the clocks of hosts against each other, by operations
 * that end on all ranks at the same time. (The timers of GPUs: ranks/clocks.c.) Called when all ranks are loaded.
 */
#include <stdlib.h>
#include "job.h"

static int by_operation(const void *a, const void *b)
{
	const struct operation_row *x = a, *y = b;

	return COMPARE(x->comm, y->comm) ?: COMPARE(x->key, y->key) ?:
	       COMPARE(x->rank, y->rank) ?: COMPARE(x->slow, y->slow);
}

/* A row that is in both tables is one, and has been chosen by its hash. */
static void join_rows(struct job *job)
{
	struct operation_row *rows = job->rows;
	size_t n = 0, i;

	for (i = 0; i < job->n_rows; i++) {
		if (n && rows[n - 1].comm == rows[i].comm && rows[n - 1].key == rows[i].key &&
		    rows[n - 1].rank == rows[i].rank)
			continue;
		rows[n++] = rows[i];
	}
	job->n_rows = n;
}

/* The ends of an operation on a host and on the first one. */
struct pair {
	uint32_t host;
	int64_t difference_ns;
};

static int by_host(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return COMPARE(x->host, y->host);
}

/* When an operation ended by the host's clock, which it began by. */
static uint64_t host_end_ns(const struct operation_row *row)
{
	return row->host_ns + (row->end_ns - row->begin_ns);
}

/* The first host's clock is taken for right. Its own ranks' middle stands for it. */
static size_t find_pairs(const struct job *job, struct pair *pairs)
{
	size_t n = 0, from, to, i;

	for (from = 0; from < job->n_rows; from = to) {
		const struct operation_row *of = NULL;

		for (to = from; to < job->n_rows && job->rows[to].key == job->rows[from].key &&
				job->rows[to].comm == job->rows[from].comm;
		     to++)
			if (!of && job->rows[to].host_ns && !job->ranks[job->rows[to].rank].host)
				of = &job->rows[to];
		for (i = from; of && i < to; i++) {
			const struct operation_row *row = &job->rows[i];
			uint32_t host = job->ranks[row->rank].host;

			if (host && row->host_ns)
				pairs[n++] = (struct pair){
					host, (int64_t)(host_end_ns(row) - host_end_ns(of))};
		}
	}
	return n;
}

static void set_clock(struct job_host *host, const struct pair *pairs, size_t n)
{
	int64_t *values = xcalloc(n, sizeof(*values));
	uint64_t *residuals = xcalloc(n, sizeof(*residuals));

	for (size_t i = 0; i < n; i++)
		values[i] = pairs[i].difference_ns;
	host->clock_known = true;
	host->clock_ns = lower_median_i64(values, n);
	for (size_t i = 0; i < n; i++)
		residuals[i] = (uint64_t)llabs(values[i] - host->clock_ns);
	host->clock_error_ns = most_u64(residuals, n);
	free(values);
	free(residuals);
}

void job_align_hosts(struct job *job)
{
	struct pair *pairs = xcalloc(job->n_rows + 1, sizeof(*pairs));
	size_t n, from, to;

	if (job->n_rows)
		qsort(job->rows, job->n_rows, sizeof(*job->rows), by_operation);
	join_rows(job);
	n = find_pairs(job, pairs);
	if (n) {
		qsort(pairs, n, sizeof(*pairs), by_host);
		job->hosts[0].clock_known = true;
	}
	for (from = 0; from < n; from = to) {
		for (to = from; to < n && pairs[to].host == pairs[from].host; to++)
			;
		set_clock(&job->hosts[pairs[from].host], &pairs[from], to - from);
	}
	free(pairs);
}
