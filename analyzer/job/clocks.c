/*
 * analyzer/job/clocks.c: the timers of GPUs and the clocks of hosts against each other, by operations that end on all ranks
 * at the same time. As ranks/clocks.c does it where all traces are read together; here with some operations of the whole
 * run. Called by meetings.c for each communicator.
 */
#include <math.h>
#include <stdlib.h>
#include "clocks.h"

#define SLOPE_LEAST 8 /* pairs, for a slope */
#define SLOPE_MOST 1e-3 /* more is no drift of a clock */
#define ERROR_MOST_NS 20e6 /* ends that lie further apart are no ends of one operation */

/* The ends of an operation on a rank and on the reference. */
struct pair {
	uint32_t of; /* rank or host */
	uint64_t at_ns;
	int64_t difference_ns;
};

static int by_time(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return job_compare(x->of, y->of) ?: job_compare(x->at_ns, y->at_ns);
}

static int64_t median_difference(const struct pair *pairs, size_t n, int64_t *values)
{
	size_t i;

	for (i = 0; i < n; i++)
		values[i] = pairs[i].difference_ns - pairs[0].difference_ns;
	return pairs[0].difference_ns + job_median_signed(values, n);
}

/* From the medians of the halves; the pairs are in order. */
static double slope_of(const struct pair *pairs, size_t n, int64_t *values)
{
	const struct pair *second = &pairs[n - n / 2];
	double span, rise;

	if (n < SLOPE_LEAST)
		return 0;
	span = (double)(second[n / 2 / 2].at_ns - pairs[n / 2 / 2].at_ns);
	rise = (double)(median_difference(second, n / 2, values) -
			median_difference(pairs, n / 2, values));
	return span > 0 && fabs(rise) <= SLOPE_MOST * span ? rise / span : 0;
}

/* What of a pair's difference the line does not say. */
static int64_t rest_of(const struct pair *pair, const struct pair *first, double slope)
{
	double later = (double)(pair->at_ns - first->at_ns);

	return pair->difference_ns - first->difference_ns - llround(slope * later);
}

static struct job_fit fit_line(const struct pair *pairs, size_t n, bool sloped)
{
	int64_t *values = xcalloc(n + 1, sizeof(*values)), offset;
	uint64_t *rests = xcalloc(n + 1, sizeof(*rests));
	struct job_fit fit = {.at_ns = pairs[0].at_ns};
	size_t i;

	fit.slope = sloped ? slope_of(pairs, n, values) : 0;
	for (i = 0; i < n; i++)
		values[i] = rest_of(&pairs[i], pairs, fit.slope);
	offset = job_median_signed(values, n);
	for (i = 0; i < n; i++)
		rests[i] = (uint64_t)llabs(rest_of(&pairs[i], pairs, fit.slope) - offset);
	fit.offset_ns = pairs[0].difference_ns + offset;
	fit.error_ns = job_most(rests, n);
	fit.known = (double)fit.error_ns <= ERROR_MOST_NS;
	free(values);
	free(rests);
	return fit;
}

int64_t job_fit_ns(const struct job_fit *fit, uint64_t ns)
{
	double later = (double)(int64_t)(ns - fit->at_ns);

	return (int64_t)ns + fit->offset_ns + (fit->slope != 0 ? llround(fit->slope * later) : 0);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* The rank with most of the rows; of several the first one. counts: zeros, by rank, and again so. */
static uint32_t reference_of(const struct meeting_row *rows, size_t n, uint32_t *counts)
{
	uint32_t best = rows[0].rank;
	size_t i;

	for (i = 0; i < n; i++)
		counts[rows[i].rank]++;
	for (i = 0; i < n; i++)
		if (counts[rows[i].rank] > counts[best] ||
		    (counts[rows[i].rank] == counts[best] && rows[i].rank < best))
			best = rows[i].rank;
	for (i = 0; i < n; i++)
		counts[rows[i].rank] = 0;
	return best;
}

/* Of each operation the reference's end less each other one's. */
static struct pair *pairs_of(const struct meeting_row *rows, size_t n, uint32_t reference,
			     size_t *n_pairs)
{
	struct pair *pairs = xcalloc(n + 1, sizeof(*pairs));
	size_t from, to, i;

	*n_pairs = 0;
	for (from = 0; from < n; from = to) {
		const struct meeting_row *of = NULL;

		for (to = from; to < n && rows[to].key == rows[from].key; to++)
			if (rows[to].rank == reference)
				of = &rows[to];
		for (i = from; of && i < to; i++)
			if (rows[i].rank != reference)
				pairs[(*n_pairs)++] =
					(struct pair){rows[i].rank, rows[i].end_ns,
						      (int64_t)(of->end_ns - rows[i].end_ns)};
	}
	if (*n_pairs)
		qsort(pairs, *n_pairs, sizeof(*pairs), by_time);
	return pairs;
}

void job_align(struct job *job, struct meeting_row *rows, size_t n, struct job_fit *fits)
{
	uint32_t *counts = xcalloc(job->n_ranks + 1, sizeof(*counts));
	uint32_t reference = reference_of(rows, n, counts);
	size_t n_pairs, from, to, i;
	struct pair *pairs = pairs_of(rows, n, reference, &n_pairs);

	for (i = 0; i < n; i++)
		fits[rows[i].rank] = (struct job_fit){0};
	fits[reference].known = n_pairs > 0;
	for (from = 0; from < n_pairs; from = to) {
		uint32_t rank = pairs[from].of;

		for (to = from; to < n_pairs && pairs[to].of == rank; to++)
			;
		fits[rank] = fit_line(&pairs[from], to - from, true);
		if (fits[rank].known)
			job->ranks[rank].fit_error_ns =
				max_u64(job->ranks[rank].fit_error_ns, fits[rank].error_ns);
	}
	for (i = 0; i < n; i++) {
		rows[i].aligned = fits[rows[i].rank].known;
		if (rows[i].aligned)
			rows[i].arrival_ns = job_fit_ns(&fits[rows[i].rank], rows[i].begin_ns);
	}
	free(pairs);
	free(counts);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* When an operation ended by the host's clock, which it began by. */
static uint64_t host_end_ns(const struct meeting_row *row)
{
	return row->host_ns + (row->end_ns - row->begin_ns);
}

/* The first host's clock is taken for right. Its own ranks' middle stands for it. */
void job_align_hosts(struct job *job)
{
	struct pair *pairs = xcalloc(job->n_rows + 1, sizeof(*pairs));
	size_t n = 0, from, to, i;

	for (from = 0; from < job->n_rows; from = to) {
		const struct meeting_row *of = NULL;

		for (to = from; to < job->n_rows && job->rows[to].key == job->rows[from].key &&
				job->rows[to].comm == job->rows[from].comm;
		     to++)
			if (!of && job->rows[to].host_ns && !job->ranks[job->rows[to].rank].host)
				of = &job->rows[to];
		for (i = from; of && i < to; i++) {
			const struct meeting_row *row = &job->rows[i];
			uint32_t host = job->ranks[row->rank].host;

			if (host && row->host_ns)
				pairs[n++] = (struct pair){
					host, host_end_ns(row),
					(int64_t)(host_end_ns(row) - host_end_ns(of))};
		}
	}
	if (n)
		qsort(pairs, n, sizeof(*pairs), by_time);
	for (from = 0; from < n; from = to) {
		struct job_host *host = &job->hosts[pairs[from].of];
		struct job_fit fit;

		for (to = from; to < n && pairs[to].of == pairs[from].of; to++)
			;
		fit = fit_line(&pairs[from], to - from, false);
		host->clock_known = true;
		host->clock_ns = fit.offset_ns;
		host->clock_error_ns = fit.error_ns;
	}
	if (n)
		job->hosts[0].clock_known = true;
	free(pairs);
}
