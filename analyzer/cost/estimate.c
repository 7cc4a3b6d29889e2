/*
 * analyzer/cost/estimate.c: the statistics of cost windows. Called by cost.c, and by tests with made-up data.
 *
 * In a block the kinds are in random order. So without an effect the difference of the logarithms of two rates is as
 * likely positive as negative, whatever the program does and however one block resembles the next: the differences of
 * all blocks are independent in sign. Their mean over its own error is then well described by Student's distribution, and
 * on the safe side where a few are large.
 *
 * What is sought is the additional time of the whole run: the mean of the differences by time, and of times without
 * calls nothing. So blocks are not weighted by how exact they are: a program that makes its calls in bursts, and works
 * between them, would else be said to cost what its bursts do.
 */
#include <math.h>
#include <stdlib.h>
#include "base/util.h"
#include "estimate.h"
#include "base/median.h"

#define CALLS_ENOUGH 20 /* of each kind, for one comparison */
#define CALLS_IDLE 4 /* fewer in both windows: nothing happened that could take longer */
#define COMPARED_LEAST 12
#define IDLE_MOST 0.98 /* of the time */
#define STRAYS_FROM 0.25 /* from the median on, at least … */
#define STRAYS_SIGMAS 5 /* … and so many of what the median deviation says */
#define STRAYS_MOST 2 /* not more than one in two */

struct difference {
	double value, ns;
};

double cost_student(double freedom)
{
	/* Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5). */
	const double z = 1.959963985;
	double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, f = freedom;

	return z + (z3 + z) / (4 * f) + (5 * z5 + 16 * z3 + 3 * z) / (96 * f * f) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * f * f * f);
}

/* How far from the middle may one lie? */
static double farthest(const struct difference *all, size_t n, double *middle)
{
	double *numbers = xcalloc(n, sizeof(*numbers)), sigma;

	for (size_t i = 0; i < n; i++)
		numbers[i] = all[i].value;
	*middle = median_double(numbers, n);
	for (size_t i = 0; i < n; i++)
		numbers[i] = fabs(all[i].value - *middle);
	sigma = 1.4826 * median_double(numbers, n);
	free(numbers);
	return fmax(STRAYS_FROM, STRAYS_SIGMAS * sigma);
}

static size_t leave_out_strays(struct difference *all, size_t n)
{
	double middle, most;
	size_t i, left = 0;

	if (!n)
		return 0;
	most = farthest(all, n, &middle);
	for (i = 0; i < n; i++)
		if (fabs(all[i].value - middle) <= most)
			all[left++] = all[i];
	return left;
}

static bool is_usable(const struct cost_pair *pair)
{
	return pair->with_ns > 0 && pair->without_ns > 0;
}

static void add(struct cost_pair *sum, const struct cost_pair *more)
{
	sum->with += more->with;
	sum->with_ns += more->with_ns;
	sum->without += more->without;
	sum->without_ns += more->without_ns;
	sum->weight_ns += more->weight_ns;
}

/* Pairs with few calls are joined to the next ones that have few. Returns how many differences there are; idle_ns grows
 * by the time in which there were hardly any calls. */
static size_t compare(const struct cost_pair *pairs, size_t n, struct difference *all,
		      double *idle_ns)
{
	struct cost_pair few = {0};
	size_t i, found = 0;

	for (i = 0; i < n; i++) {
		struct cost_pair pair = pairs[i];

		if (!is_usable(&pair))
			continue;
		if (pair.with + pair.without < 2 * CALLS_IDLE) {
			*idle_ns += pair.weight_ns;
			continue;
		}
		if (pair.with < CALLS_ENOUGH || pair.without < CALLS_ENOUGH) {
			add(&few, &pair);
			if (few.with < CALLS_ENOUGH || few.without < CALLS_ENOUGH)
				continue;
			pair = few;
			few = (struct cost_pair){0};
		}
		all[found++] = (struct difference){
			.value =
				log(pair.with_ns / pair.with) - log(pair.without_ns / pair.without),
			.ns = pair.weight_ns,
		};
	}
	return found;
}

static void average(struct cost_estimate *e, const struct difference *all, size_t n, double idle_ns)
{
	double sum = 0, weight = 0, squares = 0, error = 0, mean, effective, half;

	for (size_t i = 0; i < n; i++) {
		sum += all[i].value * all[i].ns;
		weight += all[i].ns;
		squares += all[i].ns * all[i].ns;
	}
	mean = sum / weight;
	effective = weight * weight / squares;
	for (size_t i = 0; i < n; i++)
		error += all[i].ns * all[i].ns * (all[i].value - mean) * (all[i].value - mean);
	error = sqrt(error * effective / fmax(effective - 1, 1)) / weight;
	half = error * cost_student(fmax(effective - 1, 3));
	e->busy = weight / (weight + idle_ns);
	e->middle = e->busy * expm1(mean);
	e->low = e->busy * expm1(mean - half);
	e->high = e->busy * expm1(mean + half);
	if (effective < COMPARED_LEAST)
		e->verdict = COST_FEW_BLOCKS;
	else if ((e->high - e->low) / 2 > fmax(COST_WIDEST, fabs(e->middle) / 2) ||
		 e->left_out * STRAYS_MOST > e->left_out + n)
		e->verdict = COST_VARIES;
}

void cost_estimate_of_busy(struct cost_estimate *e)
{
	if (e->busy <= 0)
		return;
	e->middle /= e->busy;
	e->low /= e->busy;
	e->high /= e->busy;
	e->busy = 1;
}

struct cost_estimate cost_estimate(const struct cost_pair *pairs, size_t n, double idle_ns)
{
	struct cost_estimate e = {.verdict = n ? COST_KNOWN : COST_NOTHING, .pairs = n};
	struct difference *all = xcalloc(n + 1, sizeof(*all));
	double busy_ns = 0;
	size_t found = compare(pairs, n, all, &idle_ns), i;

	for (i = 0; i < found; i++)
		busy_ns += all[i].ns;
	e.compared = leave_out_strays(all, found);
	e.left_out = found - e.compared;
	if (n && busy_ns <= (busy_ns + idle_ns) * (1 - IDLE_MOST))
		e.verdict = COST_FEW_CALLS;
	else if (n)
		average(&e, all, e.compared, idle_ns);
	free(all);
	return e;
}
