/*
 * analyzer/ranks/lateness.c: operations in bins as they come, and what the parts of the run say of a rank. Called for each
 * operation in which ranks are compared, and at the end.
 */
#include <math.h>
#include <stdlib.h>
#include "lateness.h"
#include "base/median.h"

#define PARTS_MOST 8
#define PARTS_LEAST 4
#define PART_OPERATIONS 6 /* that a part has at least, while there are more parts than the least */
#define OPERATIONS_LEAST 8
/* Student's t of the parts' means. By chance, of eight parts one in 400 has it, of four one in 70. */
#define STEADY 4.0
#define CLIP_LOW 1.0 /* a part counts as its median less so many of it at least, … */
#define CLIP_HIGH 3.0 /* … and so many at most: hiccups */
#define ALONE_TIMES 3.0 /* what any other rank ever did in a part, … */
#define ALONE_PARTS 2 /* … in one part of so many */

/* ---- bins ------------------------------------------------------------------------------------ */

static void fold(uint64_t *bins)
{
	for (size_t i = 0; i < RANK_BINS / 2; i++)
		bins[i] = add_capped(bins[2 * i], bins[2 * i + 1]);
	memset(&bins[RANK_BINS / 2], 0, RANK_BINS / 2 * sizeof(*bins));
}

void rank_parts_next(struct rank_parts *parts)
{
	if (!parts->bin_operations)
		parts->bin_operations = 1;
	if (!parts->n_bins || parts->operations[parts->n_bins - 1] >= parts->bin_operations)
		parts->n_bins++;
	if (parts->n_bins > RANK_BINS) {
		fold(parts->operations);
		for (size_t i = 0; i < parts->n_late; i++) {
			if (!parts->late[i])
				continue;
			fold(parts->late[i]->late_ns);
			fold(parts->late[i]->late_roots);
			parts->late[i]->longest_bin /= 2;
		}
		parts->bin_operations *= 2;
		parts->n_bins = RANK_BINS / 2 + 1;
	}
	parts->operations[parts->n_bins - 1]++;
}

static void add_to(uint64_t *bin, uint64_t value)
{
	*bin = add_capped(*bin, value);
}

void rank_parts_add(struct rank_parts *parts, size_t rank, uint64_t late_ns)
{
	size_t bin = parts->n_bins - 1;

	while (parts->n_late <= rank) {
		parts->late = grow(parts->late, parts->n_late, sizeof(*parts->late));
		parts->late[parts->n_late++] = NULL;
	}
	if (!parts->late[rank])
		parts->late[rank] = xcalloc(1, sizeof(**parts->late));
	add_to(&parts->late[rank]->late_ns[bin], late_ns);
	add_to(&parts->late[rank]->late_roots[bin], (uint64_t)sqrt((double)late_ns));
	if (late_ns > parts->late[rank]->longest_ns) {
		parts->late[rank]->second_ns = parts->late[rank]->longest_ns;
		parts->late[rank]->longest_ns = late_ns;
		parts->late[rank]->longest_bin = bin;
	} else if (late_ns > parts->late[rank]->second_ns) {
		parts->late[rank]->second_ns = late_ns;
	}
}

void rank_parts_release(struct rank_parts *parts)
{
	for (size_t i = 0; i < parts->n_late; i++)
		free(parts->late[i]);
	free(parts->late);
	*parts = (struct rank_parts){.late = NULL};
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void replace(struct rank_spans *spans, size_t from, size_t to, struct rank_span span)
{
	if (to == from) {
		spans->all = grow(spans->all, spans->n, sizeof(*spans->all));
		spans->n++;
		memmove(&spans->all[from + 1], &spans->all[from],
			(spans->n - 1 - from) * sizeof(*spans->all));
	} else {
		memmove(&spans->all[from + 1], &spans->all[to],
			(spans->n - to) * sizeof(*spans->all));
		spans->n -= to - from - 1;
	}
	spans->all[from] = span;
	if (spans->n > RANK_SPANS_MOST)
		memmove(spans->all, &spans->all[1], --spans->n * sizeof(*spans->all));
}

/* Most come behind all others. */
uint64_t rank_spans_take(struct rank_spans *spans, uint64_t begin_ns, uint64_t end_ns)
{
	struct rank_span all = {begin_ns, end_ns};
	uint64_t new_ns = end_ns - begin_ns;
	size_t from = spans->n, to;

	while (from && spans->all[from - 1].end_ns >= begin_ns)
		from--;
	for (to = from; to < spans->n && spans->all[to].begin_ns <= end_ns; to++) {
		const struct rank_span *span = &spans->all[to];

		new_ns -= min_u64(span->end_ns, end_ns) - max_u64(span->begin_ns, begin_ns);
		all.begin_ns = min_u64(all.begin_ns, span->begin_ns);
		all.end_ns = max_u64(all.end_ns, span->end_ns);
	}
	replace(spans, from, to, all);
	return new_ns;
}

void rank_spans_release(struct rank_spans *spans)
{
	free(spans->all);
	*spans = (struct rank_spans){.n = 0};
}

/* ---- parts ----------------------------------------------------------------------------------- */

static uint64_t operations_of(const struct rank_parts *parts)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < parts->n_bins; i++)
		sum += parts->operations[i];
	return sum;
}

/* What happens once is not systematic: the longest lateness, where no other one is nearly as long. */
static bool has_once(const struct rank_bins *late)
{
	return late->longest_ns > late->second_ns + late->second_ns / 2;
}

static double usual_in(const struct rank_bins *late, bool roots, size_t bin)
{
	uint64_t all = roots ? late->late_roots[bin] : late->late_ns[bin], once = 0;

	if (bin == late->longest_bin && has_once(late))
		once = roots ? (uint64_t)sqrt((double)late->longest_ns) : late->longest_ns;
	return (double)(all - min_u64(once, all));
}

/* A rank's lateness by operation, in each of n parts; or the roots. Without what it has once. */
static void means_of(const struct rank_parts *parts, bool roots, size_t rank, size_t n,
		     double *means)
{
	const struct rank_bins *late = rank < parts->n_late ? parts->late[rank] : NULL;
	uint64_t operations;
	size_t part, bin;
	double sum;

	for (part = bin = 0; part < n; part++) {
		for (sum = 0, operations = 0; bin < (part + 1) * parts->n_bins / n; bin++) {
			operations += parts->operations[bin];
			sum += late ? usual_in(late, roots, bin) : 0;
		}
		means[part] = operations ? sum / (double)operations : 0;
	}
}

/* What the other ranks do: in each part their median, and the most of any of them in any part. */
static double others_of(const struct rank_parts *parts, bool roots, size_t rank, size_t n_ranks,
			size_t n, double *medians)
{
	double *all = xcalloc(n_ranks * n + 1, sizeof(*all)),
	       *values = xcalloc(n_ranks + 1, sizeof(*values));
	double most = 0;
	size_t part, i, others;

	for (i = 0; i < n_ranks; i++)
		means_of(parts, roots, i, n, &all[i * n]);
	for (part = 0; part < n; part++) {
		for (i = others = 0; i < n_ranks; i++) {
			if (i == rank)
				continue;
			values[others++] = all[i * n + part];
			most = all[i * n + part] > most ? all[i * n + part] : most;
		}
		medians[part] = median_double(values, others);
	}
	free(all);
	free(values);
	return most;
}

/* Is it more than the others do in nearly all parts, about as much in each? Loses `more`. */
static bool is_steady(double *more, size_t n)
{
	double sorted[PARTS_MOST], median, mean = 0, square = 0;

	memcpy(sorted, more, n * sizeof(*sorted));
	median = median_double(sorted, n);
	if (median <= 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (more[i] > CLIP_HIGH * median)
			more[i] = CLIP_HIGH * median;
		if (more[i] < -CLIP_LOW * median)
			more[i] = -CLIP_LOW * median;
		mean += more[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++)
		square += (more[i] - mean) * (more[i] - mean);
	/* mean / (deviation / sqrt(n)), its square */
	return mean > 0 && mean * mean * (double)n * (double)(n - 1) >= STEADY * STEADY * square;
}

static bool is_systematic(const struct rank_parts *parts, bool roots, size_t rank, size_t n_ranks,
			  size_t n)
{
	double late[PARTS_MOST] = {0}, more[PARTS_MOST] = {0}, most;
	size_t alone = 0, i;

	means_of(parts, roots, rank, n, late);
	most = others_of(parts, roots, rank, n_ranks, n, more);
	for (i = 0; i < n; i++) {
		alone += late[i] > 0 && late[i] >= ALONE_TIMES * most;
		more[i] = late[i] - more[i];
	}
	return (!roots && alone * ALONE_PARTS >= n) || is_steady(more, n);
}

bool rank_parts_systematic(const struct rank_parts *parts, size_t rank, size_t n_ranks)
{
	uint64_t operations = operations_of(parts);
	size_t n = operations / PART_OPERATIONS;

	if (operations < OPERATIONS_LEAST || n_ranks < 2)
		return false;
	n = n < PARTS_LEAST ? PARTS_LEAST : n > PARTS_MOST ? PARTS_MOST : n;
	return is_systematic(parts, false, rank, n_ranks, n) ||
	       is_systematic(parts, true, rank, n_ranks, n);
}
