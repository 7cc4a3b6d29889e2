/*
 * analyzer/job/differ.c: which ranks, hosts and GPUs differ from the rest, and in what. Called when all operations have been
 * compared. The thresholds are choices; what changes from run to run by itself must not name anybody.
 */
#include <stdlib.h>
#include "job.h"
#include "text/text.h"

/* What a rank's lateness costs at least, to be told, and when it is systematic where there are few ranks: ranks/lateness.h. So
 * much of it without the tenth in which it was latest: hiccups are not systematic. */
#define USUAL_PPM 5000
/* In so many operations a rank may be late by far more than chance by chance: hiccups come to all. A rank
 * with far more of these than the median has a reason of its own. It need not be late in most
 * operations: of those of a step all but the first find the ranks together. Far:
 * so many of the usual distances of two such numbers, the square root of their sum. */
#define OFTEN_FAR 4
#define EVENT_PART 20 /* of a step, and more than that is late by much */
#define EVENT_TIMES 10 /* the median of all that are behind the middle: then it is no chance */
/* Of the ranks' values: farther from their median than so many of their usual distances (MAD). Of values that scatter by
 * chance (normally), 6 of 1.48 MAD is one in 10^9: no rank in a job of any size. */
#define FAR 6
#define MAD_PERCENT 148
/* And so many times the median: where most ranks have next to nothing, that is what counts. */
#define TIMES 3
#define FEW_TIMES 2 /* of few ranks, each of which has its hiccups */
#define MET_LEAST 8 /* operations that it was compared in */
#define ALONE_LEAST 3 /* ranks that are compared by what their calls lose */
#define HOST_PERCENT 75 /* of a host's ranks: then it is the host */
/* Of its late operations, those with no more work than the others had: then its GPU is slow. */
#define SAME_PERCENT 80
#define CAUSE_PERCENT 50 /* of a rank's lateness, to call it the cause */
/* Of a rank's time, more than the others lose in their calls for one reason. */
#define CALLS_PPM 50000
#define GPU_PERCENT 20 /* that an operation takes longer on a GPU that is slow */
/* By which the numbers of operations may differ, to be the same work. */
#define OPERATIONS_PERCENT 5

/* Beside those of idle/causes.h. */
static const char slow_gpu[] = "slow-gpu", slow_clock[] = "gpu-times";

static struct job_finding *add(struct job *job, enum job_about about, uint32_t who,
			       const char *cause)
{
	job->findings = grow(job->findings, job->n_findings, sizeof(*job->findings));
	job->findings[job->n_findings] =
		(struct job_finding){.about = about, .who = who, .cause = cause};
	return &job->findings[job->n_findings++];
}

/* ---- far from the rest ----------------------------------------------------------------------- */

struct spread {
	uint64_t median, mad;
};

/* values are sorted, and lost. */
static struct spread spread_of(uint64_t *values, size_t n)
{
	struct spread s = {.median = lower_median_u64(values, n)};

	for (size_t i = 0; i < n; i++)
		values[i] = values[i] > s.median ? values[i] - s.median : s.median - values[i];
	s.mad = lower_median_u64(values, n);
	return s;
}

static bool is_far(const struct spread *s, uint64_t value)
{
	uint64_t mad = s->mad / 100 * MAD_PERCENT + s->mad % 100 * MAD_PERCENT / 100;

	return value > s->median && value - s->median > FAR * mad;
}

/* ---- how often, and how much as a rule ------------------------------------------------------- */

/* What a rank does in fewer of its operations than one of so many is not systematic. */
#define HICCUPS_PART 10

/* Of all that are late, by any amount, the median: chance. */
static uint64_t chance_of(const struct job *job)
{
	uint64_t *values = NULL, median_ns;
	size_t i, j, n = 0;

	for (i = 0; i < job->n_ranks; i++)
		for (j = 0; j < job->late[i].n; j++) {
			if (!job->late[i].all[j])
				continue;
			values = grow(values, n, sizeof(*values));
			values[n++] = job->late[i].all[j];
		}
	median_ns = values ? lower_median_u64(values, n) : 0;
	free(values);
	return median_ns;
}

static void find_usual_lateness(struct job *job)
{
	uint64_t event_ns =
		job->late ? max_u64(chance_of(job) * EVENT_TIMES, job->typical_ns / EVENT_PART) : 0;

	for (size_t i = 0; job->late && i < job->n_ranks; i++) {
		struct job_rank *r = &job->ranks[i];
		struct job_times *late = &job->late[i];
		size_t n = late->n - (late->n + HICCUPS_PART - 1) / HICCUPS_PART;
		uint64_t sum_ns = 0;

		lower_median_u64(late->all, late->n); /* sorts them */
		for (size_t j = 0; j < n; j++)
			sum_ns = add_capped(sum_ns, late->all[j]);
		r->usual_late_ns = n ? sum_ns / n : 0;
		for (size_t j = late->n; j && late->all[j - 1] > event_ns; j--)
			r->often_late++;
		free(late->all);
	}
	free(job->late);
	job->late = NULL;
}

/* ---- late at operations ---------------------------------------------------------------------- */

/* But for the longest, per operation. */
static uint64_t mean_late_ns(const struct job_rank *r)
{
	return r->met > 1 ? (r->behind_ns - r->longest_behind_ns) / (r->met - 1) : 0;
}

/* Operations that were compared stand for the rest. */
static uint64_t of_all(const struct job_rank *r, uint64_t ns)
{
	double all_ns = r->met ? (double)ns * (double)job_operations_of(r) / (double)r->met : 0;

	return all_ns < (double)(NUMBER_MOST / 2) ? (uint64_t)all_ns : NUMBER_MOST / 2;
}

/* How far it was behind the middle, but for the longest time. */
static uint64_t usually_behind_ns(const struct job_rank *r)
{
	return of_all(r, mean_late_ns(r) * r->met);
}

/* Of the job's time, what others waited for it, as the report of traces says it; and where another one was later still, what
 * they will, when that one is late no more. */
static uint64_t cost_of(const struct job *job, const struct job_rank *r)
{
	bool is_alone = r - job->ranks == job->straggler;

	return of_all(r, is_alone ? r->late_ns : add_capped(r->late_ns, r->beside_ns));
}

static uint64_t time_of(const struct job_rank *r)
{
	return r->span_ns - min_u64(r->dormant_ns, r->span_ns);
}

/* From the first operation that it was compared in to the last one, and what came before the first, about. */
static uint64_t met_ns(const struct job_rank *r)
{
	uint64_t span_ns = r->last_met_ns - min_u64(r->first_met_ns, r->last_met_ns);

	return r->met > 1 ? span_ns + span_ns / (r->met - 1) : span_ns;
}

static uint64_t ppm(uint64_t part, uint64_t whole)
{
	double share = whole ? (double)part / (double)whole : 0;

	return share < 1e6 ? (uint64_t)(1e6 * share) : NUMBER_MOST / 2;
}

/* What is usual among the ranks. */
struct usual {
	struct spread late_ns; /* of usual_late_ns */
	uint64_t often, mean_late_ns; /* medians */
};

/* In nearly all of its operations, by a bit; or now and then, by much. */
static bool is_systematic(const struct job_rank *r, const struct usual *u)
{
	uint64_t usual_ns = r->usual_late_ns * job_operations_of(r);
	uint64_t more = r->often_late - min_u64(u->often, r->often_late);

	if (ppm(usual_ns, met_ns(r)) >= USUAL_PPM && is_far(&u->late_ns, r->usual_late_ns) &&
	    r->usual_late_ns / TIMES >= u->late_ns.median)
		return true;
	return more * more > OFTEN_FAR * OFTEN_FAR * (r->often_late + u->often) &&
	       mean_late_ns(r) / TIMES >= u->mean_late_ns;
}

/* Of few ranks the parts of the run alone tell whether it is chance, of very many it is enough that no other one is like it. */
static bool is_late(const struct job *job, const struct job_rank *r, const struct usual *u)
{
	if (r->met < MET_LEAST || !rank_late_is_significant(usually_behind_ns(r), met_ns(r)))
		return false;
	if (job->n_ranks <= JOB_PARTS_MOST &&
	    !rank_parts_systematic(&job->parts, (size_t)(r - job->ranks), job->n_ranks))
		return false;
	if (job->n_ranks >= JOB_FEW)
		return is_systematic(r, u);
	return mean_late_ns(r) / FEW_TIMES >= u->mean_late_ns &&
	       rank_late_is_significant(of_all(r, r->sure_ns), met_ns(r));
}

static bool *find_late(struct job *job)
{
	bool *late = xcalloc(job->n_ranks + 1, sizeof(*late));
	uint64_t *values[3];
	struct usual u;
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		values[i] = xcalloc(job->n_ranks + 1, sizeof(*values[i]));
	for (i = 0; i < job->n_ranks; i++) {
		const struct job_rank *r = &job->ranks[i];

		if (r->met < MET_LEAST)
			continue;
		values[0][n] = r->usual_late_ns;
		values[1][n] = r->often_late;
		values[2][n++] = mean_late_ns(r);
	}
	u.late_ns = spread_of(values[0], n);
	u.often = lower_median_u64(values[1], n);
	u.mean_late_ns = lower_median_u64(values[2], n);
	for (i = 0; n > 1 && i < job->n_ranks; i++)
		late[i] = i == job->straggler || is_late(job, &job->ranks[i], &u);
	for (i = 0; i < ARRAY_SIZE(values); i++)
		free(values[i]);
	return late;
}

/* ---- why ------------------------------------------------------------------------------------- */

static const char *cause_of(const struct job *job, const struct job_rank *r, uint64_t *percent)
{
	bool by_thread = r - job->ranks == job->straggler && job->straggler_by == STRAGGLER_BY_HOST;
	size_t i, most = 0;
	uint64_t sum_ns = 0;
	const char *cause;

	for (i = 0; i < job->n_causes; i++) {
		if (by_thread && !strcmp(job->causes[i], idle_cause_codes[IDLE_GPU_WORK]))
			continue;
		sum_ns += r->cause_ns[i];
		if (r->cause_ns[i] > r->cause_ns[most])
			most = i;
	}
	*percent = sum_ns ? (uint64_t)(100.0 * (double)r->cause_ns[most] / (double)sum_ns) : 0;
	cause = sum_ns ? job->causes[most] : idle_cause_codes[IDLE_UNEXPLAINED];
	if (!strcmp(cause, idle_cause_codes[IDLE_GPU_WORK]) && r->gpu_late &&
	    r->same_work * 100 >= r->gpu_late * SAME_PERCENT)
		return slow_gpu;
	return cause;
}

static const char *cause_words(const char *cause)
{
	if (cause == slow_gpu)
		return "its GPU takes longer for the same work";
	if (cause == slow_clock)
		return "its GPU takes longer for each operation";
	return job_cause_text(cause);
}

static const char *fix_of(const char *cause)
{
	enum idle_cause known = idle_cause_of_code(cause);

	if (cause == slow_gpu || cause == slow_clock)
		return "Look at that GPU: clocks, power and temperature limits, errors of its "
		       "memory, another tenant. "
		       "Put another one in its place and compare.";
	return known < IDLE_CAUSE_COUNT ? idle_cause_meanings[known] : NULL;
}

/* "node7, GPU-1234" */
static const char *where_words(struct job *job, const struct job_rank *r)
{
	const char *gpu = r->gpu != UINT32_MAX ? job->gpus[r->gpu].uuid : "";

	return arena_printf(&job->texts, "%s%s%s", job->hosts[r->host].name, *gpu ? ", " : "", gpu);
}

static void report_late(struct job *job, uint32_t rank)
{
	const struct job_rank *r = &job->ranks[rank];
	uint64_t percent;
	const char *cause = cause_of(job, r, &percent);
	bool gpu = cause == slow_gpu && r->gpu != UINT32_MAX;
	struct job_finding *f = add(job, gpu ? JOB_GPU : JOB_RANK, gpu ? r->gpu : rank, cause);
	const char *mostly = percent >= CAUSE_PERCENT ? "" : "of several reasons most: ";

	f->cost_ns = cost_of(job, r);
	f->share_ppm = ppm(f->cost_ns, met_ns(r));
	f->what = arena_printf(&job->texts, "%s%s (%s) comes late to collectives: %s%s",
			       gpu ? "the GPU of " : "", r->name, where_words(job, r), mostly,
			       cause_words(cause));
	f->evidence = arena_printf(
		&job->texts,
		"last at %llu of %s that were compared, %s behind the middle of the ranks on "
		"average%s%s; "
		"about %s of the time from its first to its last",
		(unsigned long long)r->last, text_count(&job->texts, r->met, "operation"),
		text_time(&job->texts, mean_late_ns(r)), *r->place ? ", most at " : "", r->place,
		text_percent(&job->texts, (double)f->cost_ns, (double)met_ns(r)));
	f->fix = fix_of(cause);
}

/* ---- a host's ranks -------------------------------------------------------------------------- */

/* The cause of most of its ranks. */
static const char *common_cause(const struct job *job, const bool *late, uint32_t host,
				const char **place)
{
	struct job_rank sum = {.met = 0};
	uint64_t percent, most_ns = 0;

	*place = "";
	for (size_t i = 0; i < job->n_ranks; i++) {
		const struct job_rank *r = &job->ranks[i];

		if (r->host != host || !late[i])
			continue;
		for (size_t j = 0; j < job->n_causes; j++)
			sum.cause_ns[j] = add_capped(sum.cause_ns[j], r->cause_ns[j]);
		sum.gpu_late += r->gpu_late;
		sum.same_work += r->same_work;
		if (r->place_ns > most_ns) {
			most_ns = r->place_ns;
			*place = r->place;
		}
	}
	return cause_of(job, &sum, &percent);
}

static void report_host(struct job *job, const bool *late, uint32_t host, uint32_t n_late,
			uint32_t n_met)
{
	const char *place, *cause = common_cause(job, late, host, &place);
	struct job_finding *f = add(job, JOB_HOST, host, cause);
	uint64_t sum_ns = 0, time_ns = 0;

	for (size_t i = 0; i < job->n_ranks; i++) {
		if (job->ranks[i].host != host || !late[i])
			continue;
		f->cost_ns = max_u64(f->cost_ns, cost_of(job, &job->ranks[i]));
		time_ns = max_u64(time_ns, met_ns(&job->ranks[i]));
		sum_ns += mean_late_ns(&job->ranks[i]);
	}
	f->share_ppm = ppm(f->cost_ns, time_ns);
	f->what = arena_printf(&job->texts, "host %s: its ranks come late to collectives: %s",
			       job->hosts[host].name, cause_words(cause));
	f->evidence = arena_printf(&job->texts,
				   "%u of its %u ranks, %s behind the middle of all ranks on "
				   "average%s%s; about %s of their time",
				   n_late, n_met, text_time(&job->texts, sum_ns / n_late),
				   *place ? ", most at " : "", place,
				   text_percent(&job->texts, (double)f->cost_ns, (double)time_ns));
	f->fix = fix_of(cause);
}

/* Where nearly all ranks of a host are late, and there are other hosts, it is the host: its ranks are not told one by one. */
static void report_all_late(struct job *job, const bool *late, bool *reported)
{
	uint32_t *n_late = xcalloc(job->n_hosts + 1, sizeof(*n_late));
	uint32_t *n_met = xcalloc(job->n_hosts + 1, sizeof(*n_met));
	bool *is_host = xcalloc(job->n_hosts + 1, sizeof(*is_host));

	for (size_t i = 0; i < job->n_ranks; i++) {
		n_met[job->ranks[i].host] += job->ranks[i].met >= MET_LEAST;
		n_late[job->ranks[i].host] += late[i];
	}
	for (size_t i = 0; i < job->n_hosts; i++) {
		is_host[i] = job->n_hosts > 1 && n_met[i] > 1 &&
			     n_late[i] * 100 >= n_met[i] * HOST_PERCENT;
		if (is_host[i])
			report_host(job, late, (uint32_t)i, n_late[i], n_met[i]);
	}
	for (size_t i = 0; i < job->n_ranks; i++) {
		reported[i] = late[i];
		if (late[i] && !is_host[job->ranks[i].host])
			report_late(job, (uint32_t)i);
	}
	free(n_late);
	free(n_met);
	free(is_host);
}

/* ---- without collectives --------------------------------------------------------------------- */

/* What ranks' calls lose for a reason, of their time; the cause is a code of idle/causes.h. */
static const struct measure {
	enum job_loss_of of;
	enum idle_cause cause;
	const char *words;
} measures[] = {
	{JOB_LOST_TO_LOCKS, IDLE_CUDA_LOCK,
	 "waits longer for locks inside CUDA than the other ranks"},
	{JOB_LOST_TO_OTHERS, IDLE_NOT_RUNNING,
	 "is ready but on no CPU for longer than the other ranks, in CUDA calls"},
	{JOB_LOST_TO_IOCTLS, IDLE_KERNEL_MODULE,
	 "is longer in NVIDIA's kernel module than the other ranks"},
};

/* Where ranks meet, it matters how late they come, and not what their calls lose. */
static bool is_alone(const struct job_rank *r)
{
	return r->met < MET_LEAST;
}

static uint64_t lost_ppm(const struct job_rank *r, const struct measure *measure)
{
	return ppm(r->lost[measure->of].ns, time_of(r));
}

/* Losses that come by chance, none longer than the longest: the usual distance of their sum from what is usual is the square
 * root of the longest times the sum, at most. A few long ones are not systematic, whatever they add up to. */
static bool is_often(const struct job_rank *r, const struct measure *measure, uint64_t usual_ppm)
{
	double ns = (double)r->lost[measure->of].ns;
	double more_ns = ns - (double)time_of(r) * (double)usual_ppm / 1e6;

	return more_ns > 0 && more_ns * more_ns > (double)(OFTEN_FAR * OFTEN_FAR) * ns *
							  (double)r->lost[measure->of].longest_ns;
}

static struct spread usual_loss(const struct job *job, const struct measure *measure)
{
	uint64_t *values = xcalloc(job->n_ranks + 1, sizeof(*values));
	struct spread s = {0};
	size_t i, n = 0;

	for (i = 0; i < job->n_ranks; i++)
		if (is_alone(&job->ranks[i]))
			values[n++] = lost_ppm(&job->ranks[i], measure);
	if (n >= ALONE_LEAST)
		s = spread_of(values, n);
	else
		s.median = UINT64_MAX;
	free(values);
	return s;
}

static void report_measure(struct job *job, const struct measure *measure, bool *reported)
{
	struct spread s = usual_loss(job, measure);

	for (size_t i = 0; i < job->n_ranks; i++) {
		struct job_rank *r = &job->ranks[i];
		uint64_t value = lost_ppm(r, measure);
		struct job_finding *f;

		if (reported[i] || !is_alone(r) || !is_far(&s, value) ||
		    value - s.median < CALLS_PPM || value / TIMES < s.median ||
		    !is_often(r, measure, s.median))
			continue;
		reported[i] = true;
		f = add(job, JOB_RANK, (uint32_t)i, idle_cause_codes[measure->cause]);
		f->share_ppm = value - s.median;
		f->cost_ns = (uint64_t)((double)time_of(r) * (double)f->share_ppm / 1e6);
		f->what = arena_printf(&job->texts, "%s (%s) %s", r->name, where_words(job, r),
				       measure->words);
		f->evidence = arena_printf(&job->texts, "%s of its time, the others %s",
					   text_percent(&job->texts, (double)value, 1e6),
					   text_percent(&job->texts, (double)s.median, 1e6));
		f->fix = fix_of(f->cause);
	}
}

/* ---- GPUs by their own times ----------------------------------------------------------------- */

static uint64_t operation_ns(const struct job_rank *r)
{
	return r->own_operations ? r->own_ns / r->own_operations : 0;
}

static void report_gpu(struct job *job, struct job_rank *r, uint64_t median_ns)
{
	struct job_finding *f = add(job, JOB_GPU, r->gpu, slow_clock);

	f->cost_ns = (operation_ns(r) - median_ns) * r->own_operations;
	f->share_ppm = ppm(f->cost_ns, time_of(r));
	f->what = arena_printf(&job->texts, "the GPU of %s (%s) takes longer for each operation",
			       r->name, where_words(job, r));
	f->evidence = arena_printf(&job->texts, "%s on average, the other GPUs %s",
				   text_time(&job->texts, operation_ns(r)),
				   text_time(&job->texts, median_ns));
	f->fix = fix_of(slow_clock);
}

/* Where GPU times were recorded; of ranks that had as much to do as most. */
static void report_gpus(struct job *job, bool *reported)
{
	uint64_t *values = xcalloc(job->n_ranks + 1, sizeof(*values));
	uint64_t operations, away;
	struct spread s;
	size_t i, n = 0;

	for (i = 0; i < job->n_ranks; i++)
		if (job->ranks[i].own_operations)
			values[n++] = job->ranks[i].own_operations;
	operations = lower_median_u64(values, n);
	for (i = n = 0; i < job->n_ranks; i++)
		if (job->ranks[i].own_operations)
			values[n++] = operation_ns(&job->ranks[i]);
	s = spread_of(values, n);
	for (i = 0; n > 2 && i < job->n_ranks; i++) {
		struct job_rank *r = &job->ranks[i];

		away = r->own_operations > operations ? r->own_operations - operations
						      : operations - r->own_operations;
		if (reported[i] || r->gpu == UINT32_MAX || !r->own_operations ||
		    away * 100 > operations * OPERATIONS_PERCENT || !is_far(&s, operation_ns(r)) ||
		    operation_ns(r) < s.median + s.median / 100 * GPU_PERCENT ||
		    (operation_ns(r) - s.median) * r->own_operations < RANK_LATE_LEAST_NS)
			continue;
		reported[i] = true;
		report_gpu(job, r, s.median);
	}
	free(values);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b)
{
	const struct job_finding *x = a, *y = b;

	return COMPARE(y->share_ppm, x->share_ppm) ?: COMPARE(x->about, y->about) ?:
	       COMPARE(x->who, y->who);
}

void job_differ(struct job *job)
{
	bool *reported = xcalloc(job->n_ranks + 1, sizeof(*reported)), *late;

	find_usual_lateness(job);
	late = find_late(job);
	report_all_late(job, late, reported);
	for (size_t i = 0; i < ARRAY_SIZE(measures); i++)
		report_measure(job, &measures[i], reported);
	report_gpus(job, reported);
	if (job->n_findings)
		qsort(job->findings, job->n_findings, sizeof(*job->findings), by_cost);
	free(late);
	free(reported);
}
