/*
 * analyzer/job/matched.c: collective operations of all ranks: how late each of them came, and why; and which operations came
 * long after the one like it before. Who was last, and how long the others waited for it, ranks/ finds, which is given the
 * operations again (feed.c), and shows each as it is evaluated. Called when all ranks are loaded.
 */
#include <stdlib.h>
#include "feed.h"

#define TOLERANCE_NS 1000 /* timers of GPUs count in steps of up to a microsecond */
#define CAUSE_LEAST_NS 20000 /* why a rank was late by less is not looked for */

/* ---- one operation --------------------------------------------------------------------------- */

struct matched {
	struct job *job;
	struct rank_instance *instance;
	size_t n, n_aligned;
	int64_t first_ns, middle_ns, last_ns; /* arrivals */
	const struct rank_op *last;
	uint64_t *values; /* room for all */
};

/* False: fewer than two ranks, whose clocks are known, were there. */
static bool match(struct matched *m)
{
	int64_t *arrivals = xcalloc(m->instance->n_ops + 1, sizeof(*arrivals));

	m->n = m->instance->n_ops;
	for (const struct rank_op *op = m->instance->ops; op; op = op->next) {
		if (!op->aligned)
			continue;
		arrivals[m->n_aligned++] = op->arrival_ns;
		if (!m->last || op->arrival_ns > m->last->arrival_ns)
			m->last = op;
	}
	if (m->n_aligned > 1) {
		m->middle_ns = lower_median_i64(arrivals, m->n_aligned);
		m->first_ns = arrivals[0]; /* in order now */
		m->last_ns = m->last->arrival_ns;
	}
	free(arrivals);
	return m->n_aligned > 1;
}

/* How late it was behind the middle, by more than clocks can tell. */
static uint64_t late_by(const struct matched *m, const struct rank_op *op)
{
	uint64_t late_ns =
		op->arrival_ns > m->middle_ns ? (uint64_t)(op->arrival_ns - m->middle_ns) : 0;

	return late_ns > max_u64(TOLERANCE_NS, op->member->fit.error_ns) ? late_ns : 0;
}

/* What of that is new: as ranks/ has it of the last one, where nothing has waited for the operation before (find_paid). */
static uint64_t new_of(const struct rank_op *op, uint64_t late_ns)
{
	struct rank_member *member = op->member;

	if (!op->continues)
		member->behind_middle_ns = 0;
	late_ns -= min_u64(member->behind_middle_ns, late_ns);
	member->behind_middle_ns += late_ns;
	return late_ns;
}

/* Of one that was last, ranks/ has found why: with what it was late by before. */
static void see_reasons(struct matched *m, const struct rank_op *op, uint64_t late_ns)
{
	struct job_rank *rank = &m->job->ranks[op->row->rank];
	struct rank_reasons reasons;
	uint64_t gpu_ns = 0;

	rank_reasons_find(m->job->ranks_of, m->instance, op, late_ns, &reasons);
	for (uint32_t i = 0; i < reasons.n; i++) {
		uint64_t *sum = &rank->cause_ns[job_cause_of_part(m->job, &reasons.all[i].part)];

		*sum = add_capped(*sum, reasons.all[i].ns);
		if (reasons.all[i].part.cause == IDLE_GPU_WORK)
			gpu_ns += reasons.all[i].ns;
	}
	if (2 * gpu_ns > late_ns) {
		rank->gpu_late++;
		rank->same_work += reasons.same_work;
	}
}

static void see_late(struct matched *m, const struct rank_op *op, uint64_t late_ns, bool is_last)
{
	struct job_rank *rank = &m->job->ranks[op->row->rank];

	rank->behind_ns = add_capped(rank->behind_ns, late_ns);
	rank->longest_behind_ns = max_u64(rank->longest_behind_ns, late_ns);
	if (!is_last)
		rank->beside_ns = add_capped(rank->beside_ns, late_ns);
	if (late_ns < CAUSE_LEAST_NS)
		return;
	if (!is_last)
		see_reasons(m, op, late_ns);
	if (*op->row->place && late_ns > rank->place_ns) {
		rank->place = op->row->place;
		rank->place_ns = late_ns;
	}
}

static void note_late(struct job *job, uint32_t rank, uint64_t late_ns)
{
	struct job_times *late = &job->late[rank];

	late->all = grow(late->all, late->n, sizeof(*late->all));
	late->all[late->n++] = late_ns;
	if (job->n_ranks <= JOB_PARTS_MOST)
		rank_parts_add(&job->parts, rank, late_ns);
}

/* Those that were chosen by their period are no sample of all. */
static void see_matched(struct matched *m, const struct rank_op *last)
{
	m->job->compared++;
	rank_parts_next(&m->job->parts);
	for (const struct rank_op *op = m->instance->ops; op; op = op->next) {
		struct job_rank *rank = &m->job->ranks[op->row->rank];
		uint64_t late_ns;

		if (!op->aligned)
			continue;
		late_ns = new_of(op, late_by(m, op));
		rank->met++;
		note_late(m->job, op->row->rank, late_ns);
		if (!rank->first_met_ns || op->row->submit_ns < rank->first_met_ns)
			rank->first_met_ns = op->row->submit_ns;
		rank->last_met_ns = max_u64(rank->last_met_ns, op->row->submit_ns);
		if (late_ns)
			see_late(m, op, late_ns, op == last);
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
	struct job_slow *slow;
	size_t n_slow;
};

#define KINDS_MOST 256

static struct kind *kind_of(struct kinds *kinds, const struct operation_row *row, bool make)
{
	for (size_t i = kinds->n; i > 0; i--) {
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
	uint64_t median_ns = lower_median_u64(periods, n),
		 most_ns = n ? periods[(n - 1) * 99 / 100] : 0;
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
	for (size_t i = 0; i < job->n_rows; i++) {
		const struct operation_row *row = &job->rows[i];
		struct kind *kind = row->slow ? NULL : kind_of(kinds, row, true);

		if (!kind || !row->period_ns)
			continue;
		kind->periods = grow(kind->periods, kind->n, sizeof(*kind->periods));
		kind->periods[kind->n++] = row->period_ns;
	}
	for (size_t i = 0; i < kinds->n; i++)
		kinds->all[i].typical_ns = typical_of(kinds->all[i].periods, kinds->all[i].n);
}

static int by_more(const void *a, const void *b)
{
	const struct job_slow *x = a, *y = b;

	return COMPARE(y->period_ns - y->typical_ns, x->period_ns - x->typical_ns)
		       ?: COMPARE(x->at_ns, y->at_ns);
}

static int by_at(const void *a, const void *b)
{
	return COMPARE(((const struct job_slow *)a)->at_ns, ((const struct job_slow *)b)->at_ns);
}

/* Periods of the ranks that have it; where most ranks do not, it was slow for none but these. */
static uint64_t period_of(struct matched *m, uint64_t *at_ns)
{
	size_t n = 0;

	*at_ns = UINT64_MAX;
	for (const struct rank_op *op = m->instance->ops; op; op = op->next) {
		if (op->row->period_ns)
			m->values[n++] = op->row->period_ns;
		*at_ns = min_u64(*at_ns, job_at_ns(m->job, op->row->rank, op->row->submit_ns));
	}
	return lower_median_u64(m->values, n);
}

/* Of the last one; UINT32_MAX: none is known. */
static uint32_t cause_of(const struct matched *m, uint64_t late_ns)
{
	uint64_t sums[JOB_CAUSES_MOST] = {0};
	struct rank_reasons reasons;
	size_t i, most = 0;

	rank_reasons_find(m->job->ranks_of, m->instance, m->last, late_ns, &reasons);
	for (i = 0; i < reasons.n; i++)
		sums[job_cause_of_part(m->job, &reasons.all[i].part)] += reasons.all[i].ns;
	for (i = 1; i < JOB_CAUSES_MOST; i++)
		if (sums[i] > sums[most])
			most = i;
	return sums[most] ? (uint32_t)most : UINT32_MAX;
}

static void see_slow(struct matched *m, struct kinds *kinds)
{
	const struct operation_row *row = m->instance->ops->row;
	struct kind *kind = kind_of(kinds, row, false);
	struct job_slow slow = {.rank = UINT32_MAX, .cause = UINT32_MAX, .place = ""};
	uint64_t late_ns, period_ns;

	if (!kind || kind->n < 8)
		return;
	period_ns = period_of(m, &slow.at_ns);
	if (period_ns < kind->typical_ns + kind->typical_ns / 2 ||
	    period_ns < kind->typical_ns + SLOW_LEAST_NS)
		return;
	slow.period_ns = period_ns;
	slow.typical_ns = kind->typical_ns;
	slow.ranks = (uint32_t)m->n;
	slow.function = row->function;
	slow.bytes = row->bytes;
	/* Behind the first one: several may be late at once, and then most of a few are. */
	late_ns = m->n_aligned > 1 ? (uint64_t)(m->last_ns - m->first_ns) : 0;
	if (late_ns > (period_ns - kind->typical_ns) / 2) {
		slow.rank = m->last->row->rank;
		slow.late_ns = late_ns;
		slow.cause = cause_of(m, late_ns);
		slow.place = m->last->row->place;
	}
	kinds->slow = grow(kinds->slow, kinds->n_slow, sizeof(*kinds->slow));
	kinds->slow[kinds->n_slow++] = slow;
}

/* The same slow step is in several kinds of operations: the one that was late by most tells of it. */
static void keep_slow(struct job *job, struct kinds *kinds)
{
	struct job_slow *all = kinds->slow;
	size_t n = kinds->n_slow, i, j;

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

struct seeing {
	struct job *job;
	struct kinds kinds;
	uint64_t *values;
};

static void see(void *data, struct rank_instance *instance, const struct rank_op *last)
{
	struct seeing *s = data;
	struct matched m = {.job = s->job, .instance = instance, .values = s->values};

	if (!match(&m))
		s->job->unaligned += m.n > 1;
	else if (!instance->ops->aside)
		see_matched(&m, last);
	see_slow(&m, &s->kinds);
}

void job_match(struct job *job)
{
	struct seeing s = {.job = job};
	uint64_t longest_ns = 0;

	if (!job->n_rows)
		return;
	find_kinds(job, &s.kinds);
	job->late = xcalloc(job->n_ranks + 1, sizeof(*job->late));
	s.values = xcalloc(job->n_rows + 1, sizeof(*s.values));
	job_feed(job, see, &s);
	keep_slow(job, &s.kinds);
	for (size_t i = 0; i < s.kinds.n; i++) {
		if (s.kinds.all[i].n > 8)
			longest_ns = max_u64(longest_ns, s.kinds.all[i].typical_ns);
		free(s.kinds.all[i].periods);
	}
	job->typical_ns = longest_ns;
	free(s.kinds.all);
	free(s.values);
}
