/*
 * analyzer/expect/phase.c: the phase in which each process works. Called by the first reading.
 */
#include <math.h>
#include <stdlib.h>
#include "phase.h"
#include "base/median.h"

#define REPEATED 8 /* calls from which on a site is one of a loop */
#define TRIMMED_PART 5 /* of the samples, at either end: more are left out nowhere */
#define FAR 3 /* times as far from the others as any of those from the next one */
#define PHASE_PART 32 /* of the process's time: less is no phase */
#define LONG_WORK_NS 10000000000
#define STEPS_BLUR 64 /* one call in so many may be outside of the steps, or not be counted */
#define STEPS_OVER 16 /* and of a step's calls no more: else any number of steps would do */
#define STEPS_SURE 0.6 /* of the sites that recur in the phase: they fit its steps */
#define STEPS_TRIED 256 /* different counts of calls */

void phases_init(struct phases *p, const struct trace_set *set)
{
	*p = (struct phases){.n = set->n_traces, .set = set};
	p->all = xcalloc(p->n, sizeof(*p->all));
	for (size_t i = 0; i < p->n; i++)
		p->all[i] = (struct phase){.end_ns = UINT64_MAX};
}

void phases_release(struct phases *p)
{
	free(p->all);
	free(p->sites);
	*p = (struct phases){0};
}

/* ---- sites ---------------------------------------------------------------------------------- */

/* Every other one is left. */
static void thin_out(struct phase_site *site)
{
	if (site->n_samples % 2)
		site->next += site->stride;
	site->n_samples = (site->n_samples + 1) / 2;
	for (uint32_t i = 0; i < site->n_samples; i++)
		site->samples[i] = site->samples[2 * i];
	site->stride *= 2;
}

void phase_sample(struct phase_site *site, uint64_t time)
{
	if (site->n_samples == PHASE_SAMPLES)
		thin_out(site);
	site->samples[site->n_samples++] = time;
	site->next = site->count + site->stride;
}

#define PLACES_FIRST 256

static void grow_places(struct phases *p)
{
	struct phases old = *p;

	p->n_places = old.n_places ? 2 * old.n_places : PLACES_FIRST;
	p->sites = xcalloc(p->n_places, sizeof(*p->sites));
	for (size_t i = 0; i < old.n_places; i++)
		if (old.sites[i].key)
			*phase_place(p, old.sites[i].key) = old.sites[i];
	free(old.sites);
}

struct phase_site *phase_add_site(struct phases *p, uint64_t key, uint8_t event)
{
	struct phase_site *site;

	if (2 * p->n_sites >= p->n_places)
		grow_places(p);
	p->n_sites++;
	site = phase_place(p, key);
	*site = (struct phase_site){.key = key, .first = UINT64_MAX, .stride = 1, .event = event};
	return site;
}

/* As if of the other's calls only its samples were seen. */
static void join_site(struct phase_site *site, const struct phase_site *more)
{
	uint64_t before = site->count;

	site->first = min_u64(site->first, more->first);
	site->last = max_u64(site->last, more->last);
	while (site->stride < more->stride)
		thin_out(site);
	for (uint32_t i = 0; i < more->n_samples; i++) {
		site->count = before + 1 + i * more->stride;
		if (site->count >= site->next)
			phase_sample(site, more->samples[i]);
	}
	site->count = before + more->count;
}

static void take_sites(struct phases *p, struct phases *more)
{
	p->sites = more->sites;
	p->n_sites = more->n_sites;
	p->n_places = more->n_places;
	more->sites = NULL;
	more->n_sites = more->n_places = 0;
}

void phases_join(struct phases *p, struct phases *more)
{
	if (more->longest > p->longest) {
		p->longest = more->longest;
		p->longest_at = more->longest_at;
	}
	if (!p->n_places) {
		take_sites(p, more);
		return;
	}
	for (size_t i = 0; i < more->n_places; i++) {
		const struct phase_site *site = &more->sites[i];
		struct phase_site *own;

		if (!site->key)
			continue;
		own = phase_place(p, site->key);
		if (own->key)
			join_site(own, site);
		else
			*phase_add_site(p, site->key, site->event) = *site;
	}
}

/* ---- stretches ------------------------------------------------------------------------------ */

/* In which a site recurs; and what its word weighs. */
struct stretch {
	uint64_t begin, end;
	double weight;
};

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return COMPARE(*x, *y);
}

static uint64_t longest_gap(const uint64_t *times, uint32_t from, uint32_t to)
{
	uint64_t longest = 0;

	for (uint32_t i = from + 1; i <= to; i++)
		if (times[i] - times[i - 1] > longest)
			longest = times[i] - times[i - 1];
	return longest;
}

/* Of n samples in the order of time: are those from `from` to `to` far from all others? */
static bool stands_apart(const uint64_t *times, uint32_t n, uint32_t from, uint32_t to)
{
	uint64_t far = FAR * longest_gap(times, from, to);

	return (!from || times[from] - times[from - 1] >= far) &&
	       (to + 1 == n || times[to + 1] - times[to] >= far);
}

/* Without the few calls at either end that are far from the rest: they are of something else. */
static struct stretch stretch_of(struct phase_site *site)
{
	uint32_t n = site->n_samples, most = n / TRIMMED_PART, cut, from;
	struct stretch s = {.begin = site->first, .end = site->last};
	uint64_t *times = site->samples;
	double votes = log2((double)site->count);

	qsort(times, n, sizeof(*times), by_time);
	for (cut = 2 * most; cut; cut--)
		for (from = cut > most ? cut - most : 0; from <= min_u64(cut, most); from++) {
			uint32_t to = n - 1 - (cut - from);

			if (!stands_apart(times, n, from, to))
				continue;
			s.begin = from ? times[from] : s.begin;
			s.end = to + 1 < n ? times[to] : s.end;
			cut = 1; /* the most that can be left out is */
			break;
		}
	s.weight = (double)(s.end - s.begin) * votes * votes;
	return s;
}

/* Where a stretch begins or ends. */
struct border {
	uint64_t time;
	double weight; /* less than 0: it ends */
};

static int by_border(const void *a, const void *b)
{
	const struct border *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->weight < y->weight) - (x->weight > y->weight); /* begins first */
}

static size_t find_borders(struct phases *p, struct border *borders)
{
	size_t i, n = 0;

	for (i = 0; i < p->n_places; i++) {
		struct stretch s;

		if (!p->sites[i].key)
			continue;
		p->first = min_u64(p->first, p->sites[i].first);
		p->last = p->sites[i].last > p->last ? p->sites[i].last : p->last;
		if (p->sites[i].count < REPEATED || p->sites[i].n_samples < REPEATED / 2)
			continue;
		s = stretch_of(&p->sites[i]);
		borders[n++] = (struct border){s.begin, s.weight};
		borders[n++] = (struct border){s.end, -s.weight};
	}
	if (n)
		qsort(borders, n, sizeof(*borders), by_border);
	return n;
}

static double most_votes(const struct border *borders, size_t n)
{
	double votes = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		votes += borders[i].weight;
		most = votes > most ? votes : most;
	}
	return most;
}

/* From the first border at which there are half the most votes to the last one. */
static bool find_stretch(const struct border *borders, size_t n, struct stretch *found)
{
	double most = most_votes(borders, n), votes = 0, before;

	*found = (struct stretch){.begin = UINT64_MAX};
	for (size_t i = 0; i < n; i++) {
		before = votes;
		votes += borders[i].weight;
		if (before < most / 2 && votes >= most / 2)
			found->begin = min_u64(found->begin, borders[i].time);
		if (before >= most / 2 && votes < most / 2)
			found->end = borders[i].time;
	}
	return most > 0 && found->begin < found->end;
}

/* ---- is it long enough? --------------------------------------------------------------------- */

/* The longest time from one call to the next between two times, as far as samples tell; nothing where it is a call that took so
 * long. `times` are in order. */
static uint64_t longest_wait(const struct phases *p, const uint64_t *times, size_t n, uint64_t from,
			     uint64_t to)
{
	uint64_t longest = 0, begin = 0;

	for (size_t i = 1; i < n; i++) {
		if (times[i - 1] < from || times[i] > to || times[i] - times[i - 1] <= longest)
			continue;
		begin = times[i - 1];
		longest = times[i] - begin;
	}
	if (p->longest > longest / 2 && p->longest_at > begin &&
	    p->longest_at - p->longest < begin + longest)
		return 0;
	return longest;
}

/* The process's time, without the wait for its work; and without the one behind it, if the work took its time: short, it may as
 * well be what the process begins with. */
static uint64_t busy_time(const struct phases *p, const struct stretch *work, bool short_one)
{
	uint64_t *times = xcalloc((PHASE_SAMPLES + 2) * p->n_sites + 1, sizeof(*times));
	uint64_t waits;
	size_t i, n = 0;

	for (i = 0; i < p->n_places; i++) {
		const struct phase_site *site = &p->sites[i];

		if (!site->key)
			continue;
		times[n++] = site->first;
		times[n++] = site->last;
		for (uint32_t j = 0; j < site->n_samples; j++)
			times[n++] = site->samples[j];
	}
	qsort(times, n, sizeof(*times), by_time);
	waits = longest_wait(p, times, n, p->first, work->begin);
	if (!short_one)
		waits += longest_wait(p, times, n, work->end, p->last);
	free(times);
	return p->last - p->first - waits;
}

static bool is_long_enough(const struct phases *p, const struct trace *trace,
			   const struct stretch *work)
{
	uint64_t length = work->end - work->begin;
	uint64_t ns = timeline_ns(&trace->timeline, work->end) -
		      timeline_ns(&trace->timeline, work->begin);

	return length >= (p->last - p->first) / PHASE_PART ||
	       length >= busy_time(p, work, ns < LONG_WORK_NS) / PHASE_PART;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Most of the phase. */
static bool recurs_in(const struct phase_site *site, const struct stretch *work)
{
	return site->key && site->count >= REPEATED &&
	       min_u64(site->last, work->end) >=
		       max_u64(site->first, work->begin) + (work->end - work->begin) / 4 * 3;
}

/* Of so many calls, are there about as many in each of n steps? */
static bool fits_steps(uint64_t count, uint64_t n)
{
	uint64_t over = count % n;

	return count + count / STEPS_BLUR >= n &&
	       min_u64(over, n - over) <= min_u64(count / STEPS_BLUR, n / STEPS_OVER) + 1;
}

/* How many sites have as many calls in each of n steps? */
static size_t count_fitting(const uint64_t *counts, size_t n_counts, uint64_t n)
{
	size_t i, fitting = 0;

	for (i = 0; i < n_counts; i++)
		fitting += fits_steps(counts[i], n);
	return fitting;
}

struct steps {
	uint64_t n; /* 0: unknown */
	bool sure;
};

/* As many as fit most sites, for what comes in each second of them must not make two one; else as fit best: more steps fit less
 * likely by chance. `counts` are in order. */
static struct steps count_steps(const struct phases *p, const struct stretch *work)
{
	uint64_t *counts = xcalloc(p->n_sites + 1, sizeof(*counts)), last = 0;
	struct steps steps = {0};
	double most = 0;
	size_t i, n = 0, tried = 0;

	for (i = 0; i < p->n_places; i++)
		if (recurs_in(&p->sites[i], work))
			counts[n++] = p->sites[i].count;
	if (n)
		qsort(counts, n, sizeof(*counts), by_time);
	for (i = 0; i < n && tried < STEPS_TRIED; i++) {
		size_t fitting;

		if (counts[i] == last)
			continue;
		last = counts[i];
		tried++;
		fitting = count_fitting(counts, n, last);
		if (fitting >= STEPS_SURE * (double)n) {
			steps = (struct steps){.n = last, .sure = true};
			continue;
		}
		if (steps.sure || (double)fitting * log2((double)last) <= most)
			continue;
		most = (double)fitting * log2((double)last);
		steps.n = last;
	}
	free(counts);
	return steps;
}

static bool hands_over_work(const struct phases *p, const struct trace *trace,
			    const struct phase_site *site)
{
	uint16_t fn = (site->key - 1) >> 48;
	const struct function *function;

	if (!site->key || fn >= trace->n_functions)
		return false;
	function = &p->set->functions.all[trace->functions[fn]];
	return spy_contract_submits(function->contract) &&
	       (site->event != SPY_EV_OP || function->does == FUNCTION_LAUNCHES_GRAPH);
}

/* As many of a site's calls as of its samples are in the phase, which may begin and end within a step. */
static double count_within(const struct phase_site *site, const struct stretch *work, uint64_t step)
{
	uint32_t i, within = 0;

	for (i = 0; i < site->n_samples; i++)
		within += site->samples[i] + step >= work->begin &&
			  site->samples[i] <= work->end + step;
	return site->n_samples ? (double)site->count * within / site->n_samples : 0;
}

static double count_work(const struct phases *p, const struct trace *trace,
			 const struct stretch *work, uint64_t steps)
{
	uint64_t step = (work->end - work->begin) / steps;
	double count = 0;

	for (size_t i = 0; i < p->n_places; i++)
		if (hands_over_work(p, trace, &p->sites[i]))
			count += count_within(&p->sites[i], work, step);
	return count;
}

void phase_see_window(struct phase_windows *w, const struct record *record)
{
	const struct spy_rec_window *window = record_window(record);

	if (!window) { /* SPY_EV_GPU */
		w->was_up |= w->dormant && !w->opened;
	} else if (window->state == SPY_WINDOW_CLOSED) {
		w->dormant = true;
		w->closed = window->number ? record_time(record) : 0;
	} else if (window->state == SPY_WINDOW_OPEN) {
		w->dormant = false;
		w->opened = w->opened ?: record_time(record);
		w->closed = 0;
	}
}

static void reach_windows(struct stretch *stretch, const struct phase_windows *w)
{
	if (phase_joined(w))
		stretch->begin = min_u64(stretch->begin, w->opened);
	if (w->closed)
		stretch->end = max_u64(stretch->end, w->closed);
}

void phases_conclude(struct phases *p, const struct trace *trace,
		     const struct phase_windows *windows)
{
	struct border *borders = xcalloc(2 * p->n_sites + 1, sizeof(*borders));
	struct stretch stretch;
	size_t n;

	p->first = UINT64_MAX;
	p->last = 0;
	n = find_borders(p, borders);
	if (find_stretch(borders, n, &stretch) && is_long_enough(p, trace, &stretch)) {
		struct phase *phase = &p->all[trace->index];
		struct steps steps = count_steps(p, &stretch);
		double work = steps.n ? count_work(p, trace, &stretch, steps.n) : 0;

		reach_windows(&stretch, windows);
		*phase = (struct phase){
			.begin_ns = timeline_ns(&trace->timeline, stretch.begin),
			.end_ns = timeline_ns(&trace->timeline, stretch.end),
			.found = true,
		};
		if (steps.n) {
			phase->step_ns =
				(double)(phase->end_ns - phase->begin_ns) / (double)steps.n;
			phase->step_work = work / (double)steps.n;
			phase->steps_sure = steps.sure;
		}
	}
	free(borders);
	free(p->sites);
	p->sites = NULL;
	p->n_sites = p->n_places = 0;
	p->longest = p->longest_at = 0;
}
