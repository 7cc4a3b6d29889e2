/*
 * analyzer/base/median.c: numbers in order, and the one in the middle.
 */
#include <stdlib.h>
#include "median.h"

int by_u64(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int by_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return COMPARE(x, y);
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return COMPARE(x, y);
}

double median_double(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_double);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

uint64_t median_u64(uint64_t *values, size_t n)
{
	uint64_t low = lower_median_u64(values, n);

	return n ? low + (values[n / 2] - low) / 2 : 0;
}

uint64_t most_u64(uint64_t *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_u64);
	return values[(n - 1) * 95 / 100];
}

double most_double(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_double);
	return values[(n - 1) * 95 / 100];
}

uint64_t lower_median_u64(uint64_t *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_u64);
	return values[(n - 1) / 2];
}

int64_t lower_median_i64(int64_t *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_i64);
	return values[(n - 1) / 2];
}
