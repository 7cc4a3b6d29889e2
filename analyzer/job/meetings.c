/*
 * analyzer/job/meetings.c: operations of several ranks: who came last, by how much, and what that one did meanwhile that the
 * others did not. And which operations came late for all. Called when all ranks are loaded.
 */
#include <stdlib.h>
#include "clocks.h"

#define TOLERANCE_NS 1000 /* timers of GPUs count in steps of up to a microsecond */
#define CAUSE_LEAST_NS 20000 /* why a rank was late by less is not looked for */
#define ON_THE_WAY_NS 50000 /* what begins later behind its submission waited for its GPU */

static int by_meeting(const void *a, const void *b)
{
	const struct meeting_row *x = a, *y = b;

	return job_compare(x->comm, y->comm) ?: job_compare(x->key, y->key) ?:
	       job_compare(x->rank, y->rank) ?: job_compare(x->slow, y->slow);
}

/* A row that is in both tables is one, and has been chosen by its hash. */
static void join_rows(struct job *job)
{
	struct meeting_row *rows = job->rows;
	size_t n = 0, i;

	for (i = 0; i < job->n_rows; i++) {
		if (n && rows[n - 1].comm == rows[i].comm && rows[n - 1].key == rows[i].key &&
		    rows[n - 1].rank == rows[i].rank)
			continue;
		rows[n++] = rows[i];
	}
	job->n_rows = n;
}

/* ---- one operation --------------------------------------------------------------------------- */

struct meeting {
	struct job *job;
	const struct meeting_row *rows; /* aligned ones and others */
	size_t n, n_aligned;
	int64_t first_ns, middle_ns, last_ns; /* arrivals */
	const struct meeting_row *last;
	uint64_t queued_ns, work; /* medians */
	bool medians_known;
	uint64_t cause_ns[JOB_CAUSES_MOST]; /* medians */
	bool cause_known[JOB_CAUSES_MOST];
	uint64_t *values; /* room for all */
};

static uint64_t cause_of(const struct meeting_row *row, uint8_t cause)
{
	size_t i;

	for (i = 0; i < DIGEST_OPERATION_CAUSES; i++)
		if (row->causes[i].cause == cause)
			return row->causes[i].ns;
	return 0;
}

/* Of all ranks there: the one that is late is one of them, and seldom in the middle. */
static uint64_t median_cause(struct meeting *m, uint8_t cause)
{
	size_t i;

	if (m->cause_known[cause])
		return m->cause_ns[cause];
	for (i = 0; i < m->n; i++)
		m->values[i] = cause_of(&m->rows[i], cause);
	m->cause_ns[cause] = job_median(m->values, m->n);
	m->cause_known[cause] = true;
	return m->cause_ns[cause];
}

static void find_medians(struct meeting *m)
{
	size_t i;

	if (m->medians_known)
		return;
	for (i = 0; i < m->n; i++)
		m->values[i] = m->rows[i].queued_ns;
	m->queued_ns = job_median(m->values, m->n);
	for (i = 0; i < m->n; i++)
		m->values[i] = m->rows[i].work;
	m->work = job_median(m->values, m->n);
	m->medians_known = true;
}

/* False: fewer than two ranks, whose clocks are known, were there. */
static bool meet(struct meeting *m)
{
	int64_t *arrivals = xcalloc(m->n + 1, sizeof(*arrivals));
	size_t i;

	m->n_aligned = 0;
	m->last = NULL;
	for (i = 0; i < m->n; i++) {
		if (!m->rows[i].aligned)
			continue;
		arrivals[m->n_aligned++] = m->rows[i].arrival_ns;
		if (!m->last || m->rows[i].arrival_ns > m->last->arrival_ns)
			m->last = &m->rows[i];
	}
	if (m->n_aligned > 1) {
		m->middle_ns = job_median_signed(arrivals, m->n_aligned);
		m->first_ns = arrivals[0]; /* in order now */
		m->last_ns = m->last->arrival_ns;
	}
	free(arrivals);
	return m->n_aligned > 1;
}

static uint64_t tolerance_of(const struct job *job, const struct meeting_row *row)
{
	return max_u64(TOLERANCE_NS, job->ranks[row->rank].fit_error_ns);
}

/* How late it was behind the middle, by more than clocks can tell. */
static uint64_t late_by(const struct meeting *m, const struct meeting_row *row)
{
	uint64_t late_ns =
		row->arrival_ns > m->middle_ns ? (uint64_t)(row->arrival_ns - m->middle_ns) : 0;

	return row->aligned && late_ns > tolerance_of(m->job, row) ? late_ns : 0;
}

/* A call that is made to wait for the GPU: the GPU is late with its work if most other ranks wait there, too; else it is the
 * program that waits where it need not. */
static uint8_t charged_to(struct meeting *m, uint8_t cause)
{
	const char *wait = idle_cause_codes[IDLE_CUDA_WAIT], *code = m->job->causes[cause];

	if (strncmp(code, wait, strlen(wait)) != 0 || code[strlen(wait)] != ':')
		return cause;
	return job_cause_index(m->job,
			       median_cause(m, cause) ? idle_cause_codes[IDLE_GPU_WORK] : wait);
}

/* What of its lateness its causes explain, each no more than what is left: to sums, by cause. */
static void explain(struct meeting *m, const struct meeting_row *row, uint64_t late_ns,
		    uint64_t sums[JOB_CAUSES_MOST])
{
	uint8_t gpu_work = job_cause_index(m->job, idle_cause_codes[IDLE_GPU_WORK]);
	uint64_t left_ns = late_ns, ns;
	size_t i;

	for (i = 0; i < DIGEST_OPERATION_CAUSES; i++) {
		if (!row->causes[i].ns)
			continue;
		ns = row->causes[i].ns;
		ns -= min_u64(ns, median_cause(m, row->causes[i].cause));
		ns = min_u64(ns, left_ns);
		sums[charged_to(m, row->causes[i].cause)] += ns;
		left_ns -= ns;
	}
	find_medians(m);
	if (left_ns * 10 <= late_ns) /* rounding, and what is on its way */
		return;
	if (row->queued_ns > m->queued_ns + ON_THE_WAY_NS)
		sums[gpu_work] += left_ns;
	else
		sums[job_cause_index(m->job, idle_cause_codes[IDLE_UNEXPLAINED])] += left_ns;
}

static uint8_t largest_of(const uint64_t sums[JOB_CAUSES_MOST])
{
	uint8_t i, most = 0;

	for (i = 1; i < JOB_CAUSES_MOST; i++)
		if (sums[i] > sums[most])
			most = i;
	return most;
}

static void see_late(struct meeting *m, const struct meeting_row *row, uint64_t late_ns)
{
	struct job_rank *rank = &m->job->ranks[row->rank];
	uint8_t gpu_work = job_cause_index(m->job, idle_cause_codes[IDLE_GPU_WORK]), i;
	uint64_t sums[JOB_CAUSES_MOST] = {0};

	rank->late_ns = add_capped(rank->late_ns, late_ns);
	rank->longest_late_ns = max_u64(rank->longest_late_ns, late_ns);
	if (late_ns < CAUSE_LEAST_NS)
		return;
	explain(m, row, late_ns, sums);
	for (i = 0; i < JOB_CAUSES_MOST; i++)
		rank->cause_ns[i] = add_capped(rank->cause_ns[i], sums[i]);
	if (2 * sums[gpu_work] > late_ns) {
		rank->gpu_late++;
		rank->same_work += row->work == m->work;
	}
	if (*row->place && late_ns > rank->place_ns) {
		rank->place = row->place;
		rank->place_ns = late_ns;
	}
}

static void note_late(struct job *job, uint32_t rank, uint64_t late_ns)
{
	struct job_times *late = &job->late[rank];

	late->all = grow(late->all, late->n, sizeof(*late->all));
	late->all[late->n++] = late_ns;
}

static void note_moment(struct meeting *m, const struct meeting_row *row, uint64_t late_ns)
{
	struct job *job = m->job;
	struct job_rank *rank = &job->ranks[row->rank];

	if (!rank->first_met_ns || row->submit_ns < rank->first_met_ns)
		rank->first_met_ns = row->submit_ns;
	rank->last_met_ns = max_u64(rank->last_met_ns, row->submit_ns);
	if (job->n_ranks > JOB_PARTS_MOST)
		return;
	job->moments = grow(job->moments, job->n_moments, sizeof(*job->moments));
	job->moments[job->n_moments++] =
		(struct job_moment){job_at_ns(job, m->rows->rank, m->rows->submit_ns),
				    job->meetings, late_ns, row->rank};
}

static int by_moment(const void *a, const void *b)
{
	const struct job_moment *x = a, *y = b;

	return job_compare(x->at_ns, y->at_ns) ?: job_compare(x->meeting, y->meeting) ?:
	       job_compare(x->rank, y->rank);
}

static void divide_run(struct job *job)
{
	size_t i;

	if (job->n_moments)
		qsort(job->moments, job->n_moments, sizeof(*job->moments), by_moment);
	for (i = 0; i < job->n_moments; i++) {
		const struct job_moment *moment = &job->moments[i];

		if (!i || moment->meeting != moment[-1].meeting)
			rank_parts_next(&job->parts);
		rank_parts_add(&job->parts, moment->rank, moment->ns);
	}
	free(job->moments);
	job->moments = NULL;
}

/* Those that were chosen by their period are no sample of all. */
static void see_meeting(struct meeting *m)
{
	size_t i;

	m->job->meetings++;
	for (i = 0; i < m->n; i++) {
		struct job_rank *rank = &m->job->ranks[m->rows[i].rank];
		uint64_t late_ns = late_by(m, &m->rows[i]);

		if (!m->rows[i].aligned)
			continue;
		rank->met++;
		note_late(m->job, m->rows[i].rank, late_ns);
		note_moment(m, &m->rows[i], late_ns);
		rank->last += late_ns && &m->rows[i] == m->last;
		if (m->last_ns > m->rows[i].arrival_ns)
			rank->waited_ns += (uint64_t)(m->last_ns - m->rows[i].arrival_ns);
		if (late_ns)
			see_late(m, &m->rows[i], late_ns);
	}
}

/* ---- slow ones ------------------------------------------------------------------------------- */

/* As ranks/ranks.h: longer than 1.5 times the median, and by 100 us. */
#define SLOW_LEAST_NS 100000

/* Operations of one kind: periods of those that were chosen by their hash. */
struct kind {
	uint64_t comm, bytes;
	uint8_t function;
	uint64_t *periods; /* owned */
	size_t n;
	uint64_t typical_ns;
};

struct kinds {
	struct kind *all;
	size_t n;
};

#define KINDS_MOST 256

static struct kind *kind_of(struct kinds *kinds, const struct meeting_row *row, bool make)
{
	size_t i;

	for (i = kinds->n; i > 0; i--) {
		struct kind *kind = &kinds->all[i - 1];

		if (kind->comm == row->comm && kind->bytes == row->bytes &&
		    kind->function == row->function)
			return kind;
	}
	if (!make || kinds->n == KINDS_MOST)
		return NULL;
	kinds->all = grow(kinds->all, kinds->n, sizeof(*kinds->all));
	kinds->all[kinds->n++] =
		(struct kind){.comm = row->comm, .bytes = row->bytes, .function = row->function};
	return &kinds->all[kinds->n - 1];
}

/*
 * Of several operations of one kind in each step only one comes a step after the one before: then it is those that count,
 * if they are no fewer than one of so many. Sorts the periods.
 */
#define IN_A_STEP 12

static uint64_t typical_of(uint64_t *periods, size_t n)
{
	uint64_t median_ns = job_median(periods, n), most_ns = n ? periods[(n - 1) * 99 / 100] : 0;
	size_t first = n;

	if (!n)
		return 0; /* each came once */
	while (first && periods[first - 1] > most_ns / 2)
		first--;
	if (median_ns > most_ns / 2 || (n - first) * IN_A_STEP < n)
		return median_ns;
	return periods[first + (n - first - 1) / 2];
}

static void find_kinds(const struct job *job, struct kinds *kinds)
{
	size_t i;

	for (i = 0; i < job->n_rows; i++) {
		const struct meeting_row *row = &job->rows[i];
		struct kind *kind = row->slow ? NULL : kind_of(kinds, row, true);

		if (!kind || !row->period_ns)
			continue;
		kind->periods = grow(kind->periods, kind->n, sizeof(*kind->periods));
		kind->periods[kind->n++] = row->period_ns;
	}
	for (i = 0; i < kinds->n; i++)
		kinds->all[i].typical_ns = typical_of(kinds->all[i].periods, kinds->all[i].n);
}

static int by_more(const void *a, const void *b)
{
	const struct job_slow *x = a, *y = b;

	return job_compare(y->period_ns - y->typical_ns, x->period_ns - x->typical_ns)
		       ?: job_compare(x->at_ns, y->at_ns);
}

static int by_at(const void *a, const void *b)
{
	return job_compare(((const struct job_slow *)a)->at_ns,
			   ((const struct job_slow *)b)->at_ns);
}

/* Periods of the ranks that have it; where most ranks do not, it was slow for none but these. */
static uint64_t period_of(struct meeting *m, uint64_t *at_ns)
{
	size_t i, n = 0;

	*at_ns = UINT64_MAX;
	for (i = 0; i < m->n; i++) {
		if (m->rows[i].period_ns)
			m->values[n++] = m->rows[i].period_ns;
		*at_ns = min_u64(*at_ns, job_at_ns(m->job, m->rows[i].rank, m->rows[i].submit_ns));
	}
	return job_median(m->values, n);
}

static void see_slow(struct meeting *m, struct kinds *kinds, struct job_slow **all, size_t *n)
{
	struct kind *kind = kind_of(kinds, m->rows, false);
	uint64_t sums[JOB_CAUSES_MOST] = {0}, period_ns;
	struct job_slow slow = {.rank = UINT32_MAX, .cause = UINT32_MAX, .place = ""};
	uint64_t late_ns;
	uint8_t cause;

	if (!kind || kind->n < 8)
		return;
	period_ns = period_of(m, &slow.at_ns);
	if (period_ns < kind->typical_ns + kind->typical_ns / 2 ||
	    period_ns < kind->typical_ns + SLOW_LEAST_NS)
		return;
	slow.period_ns = period_ns;
	slow.typical_ns = kind->typical_ns;
	slow.ranks = (uint32_t)m->n;
	slow.function = m->rows->function;
	slow.bytes = m->rows->bytes;
	/* Behind the first one: several may be late at once, and then most of a few are. */
	late_ns = m->n_aligned > 1 ? (uint64_t)(m->last_ns - m->first_ns) : 0;
	if (late_ns > (period_ns - kind->typical_ns) / 2) {
		slow.rank = m->last->rank;
		slow.late_ns = late_ns;
		explain(m, m->last, slow.late_ns, sums);
		cause = largest_of(sums);
		slow.cause = sums[cause] ? cause : UINT32_MAX;
		slow.place = m->last->place;
	}
	*all = grow(*all, *n, sizeof(**all));
	(*all)[(*n)++] = slow;
}

/* The same slow step is in several kinds of operations: the one that was late by most tells of it. */
static void keep_slow(struct job *job, struct job_slow *all, size_t n)
{
	size_t i, j;

	if (n)
		qsort(all, n, sizeof(*all), by_more);
	for (i = 0; i < n; i++) {
		for (j = 0; j < job->n_slow; j++)
			if (all[i].at_ns < job->slow[j].at_ns + job->slow[j].period_ns &&
			    job->slow[j].at_ns < all[i].at_ns + all[i].period_ns)
				break;
		if (j < job->n_slow || job->n_slow == JOB_SLOW_MOST)
			continue;
		job->slow[job->n_slow++] = all[i];
		job->slow_count++;
		job->slow_more_ns += all[i].period_ns - all[i].typical_ns;
	}
	if (job->n_slow)
		qsort(job->slow, job->n_slow, sizeof(*job->slow), by_at);
	free(all);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool is_sample(const struct meeting *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->n; i++)
		n += !m->rows[i].slow;
	return 2 * n >= m->n && n > 1;
}

static void see_all(struct job *job, struct kinds *kinds)
{
	struct meeting m = {.job = job, .values = xcalloc(job->n_rows + 1, sizeof(*m.values))};
	struct job_slow *slow = NULL;
	size_t n_slow = 0, from, to;

	for (from = 0; from < job->n_rows; from = to) {
		const struct meeting_row *rows = &job->rows[from];

		for (to = from; to < job->n_rows && job->rows[to].key == rows->key &&
				job->rows[to].comm == rows->comm;
		     to++)
			;
		m = (struct meeting){.job = job, .rows = rows, .n = to - from, .values = m.values};
		if (meet(&m)) {
			if (is_sample(&m))
				see_meeting(&m);
		} else {
			job->unaligned += m.n > 1;
		}
		see_slow(&m, kinds, &slow, &n_slow);
	}
	free(m.values);
	keep_slow(job, slow, n_slow);
}

void job_align_all(struct job *job)
{
	struct job_fit *fits = xcalloc(job->n_ranks + 1, sizeof(*fits));
	size_t from, to;

	if (job->n_rows)
		qsort(job->rows, job->n_rows, sizeof(*job->rows), by_meeting);
	join_rows(job);
	for (from = 0; from < job->n_rows; from = to) {
		for (to = from; to < job->n_rows && job->rows[to].comm == job->rows[from].comm;
		     to++)
			;
		job_align(job, &job->rows[from], to - from, fits);
	}
	free(fits);
	for (from = 0; from < job->n_ranks; from++)
		job->align_error_ns = max_u64(job->align_error_ns, job->ranks[from].fit_error_ns);
	job_align_hosts(job);
}

void job_meet(struct job *job)
{
	struct kinds kinds = {0};
	uint64_t longest_ns = 0;
	size_t i;

	if (!job->n_rows)
		return;
	find_kinds(job, &kinds);
	job->late = xcalloc(job->n_ranks + 1, sizeof(*job->late));
	see_all(job, &kinds);
	divide_run(job);
	for (i = 0; i < kinds.n; i++) {
		if (kinds.all[i].n > 8)
			longest_ns = max_u64(longest_ns, kinds.all[i].typical_ns);
		free(kinds.all[i].periods);
	}
	job->typical_ns = longest_ns;
	free(kinds.all);
}
