/*
 * analyzer/job/diff.c: what is different in a second job: how long steps take, who differs from the rest, what findings cost a
 * rank. Called by `diff`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "diff.h"
#include "findings/detector.h"
#include "text/text.h"

/* ---- both jobs ------------------------------------------------------------------------------- */

struct side_row {
	const char *side, *name;
	uint64_t ranks, hosts, duration_ns, typical_ns, slow_steps, calls, calls_ns, lost_ns,
		differences;
};

static const struct column side_columns[] = {
	COLUMN(struct side_row, side, "", UNIT_TEXT),
	COLUMN(struct side_row, ranks, "ranks", UNIT_COUNT),
	COLUMN(struct side_row, hosts, "hosts", UNIT_COUNT),
	COLUMN(struct side_row, duration_ns, "recorded", UNIT_NS),
	COLUMN(struct side_row, typical_ns, "a step", UNIT_NS),
	COLUMN(struct side_row, slow_steps, "slow steps", UNIT_COUNT),
	COLUMN(struct side_row, calls_ns, "in calls, a rank", UNIT_NS),
	COLUMN(struct side_row, lost_ns, "lost, a rank", UNIT_NS),
	COLUMN(struct side_row, differences, "differ", UNIT_COUNT),
	COLUMN_JSON(struct side_row, name, UNIT_TEXT),
	COLUMN_JSON(struct side_row, calls, UNIT_COUNT),
};

static const struct table_kind side_kind = {
	TABLE("jobs", "JOBS", struct side_row, side_columns),
};

static struct side_row side_of(const struct job *job, const char *side)
{
	uint64_t n = max_u64(job->n_ranks, 1);

	return (struct side_row){.side = side,
				 .name = job->n_ranks && *job->ranks[0].job ? job->ranks[0].job
									    : NULL,
				 .ranks = job->n_ranks,
				 .hosts = job->n_hosts,
				 .duration_ns = job->span_ns,
				 .typical_ns = job->typical_ns,
				 .slow_steps = job->slow_count,
				 .calls = job->calls,
				 .calls_ns = job->calls_ns / n,
				 .lost_ns = job->lost_ns / n,
				 .differences = job->n_findings};
}

/* ---- who differs ----------------------------------------------------------------------------- */

struct differ_row {
	const char *change, *about, *cause, *what;
	uint64_t before_ppm, after_ppm;
};

static const struct column differ_columns[] = {
	COLUMN(struct differ_row, change, "", UNIT_TEXT),
	COLUMN(struct differ_row, what, "rank, host or GPU", UNIT_TEXT),
	COLUMN_JSON(struct differ_row, about, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, before_ppm, UNIT_COUNT),
	COLUMN_JSON(struct differ_row, after_ppm, UNIT_COUNT),
};

static const struct table_kind differ_kind = {
	TABLE("differences", "DIFFERENT from the rest of their job", struct differ_row,
	      differ_columns),
	.text_rows = 20,
	.when_empty = "none, in both jobs",
};

static const char *who_of(const struct job *job, const struct job_finding *f)
{
	return f->about == JOB_RANK   ? job->ranks[f->who].name
	       : f->about == JOB_HOST ? job->hosts[f->who].name
				      : job->gpus[f->who].uuid;
}

static const struct job_finding *same_in(const struct job *other, const struct job *job,
					 const struct job_finding *f)
{
	for (size_t i = 0; i < other->n_findings; i++)
		if (other->findings[i].about == f->about &&
		    !strcmp(other->findings[i].cause, f->cause) &&
		    !strcmp(who_of(other, &other->findings[i]), who_of(job, f)))
			return &other->findings[i];
	return NULL;
}

static void add_differences(struct report *report, const struct job *a, const struct job *b)
{
	static const char *const abouts[] = {
		[JOB_RANK] = "rank", [JOB_HOST] = "host", [JOB_GPU] = "gpu"};
	struct differ_row *rows = xcalloc(a->n_findings + b->n_findings + 1, sizeof(*rows));
	const struct job_finding *same;
	size_t n = 0, i;

	for (i = 0; i < b->n_findings; i++) {
		same = same_in(a, b, &b->findings[i]);
		rows[n++] = (struct differ_row){
			same ? "same" : "appeared", abouts[b->findings[i].about],
			b->findings[i].cause,       b->findings[i].what,
			same ? same->share_ppm : 0, b->findings[i].share_ppm};
	}
	for (i = 0; i < a->n_findings; i++)
		if (!same_in(b, a, &a->findings[i]))
			rows[n++] = (struct differ_row){"vanished",
							abouts[a->findings[i].about],
							a->findings[i].cause,
							a->findings[i].what,
							a->findings[i].share_ppm,
							0};
	report_add(report, &differ_kind, rows, n);
}

/* ---- findings -------------------------------------------------------------------------------- */

struct site_row {
	const char *change, *id, *what, *function, *python, *file;
	uint64_t before_ns, after_ns, before_ranks, after_ranks, line;
	int64_t more_ns;
};

static const struct column site_columns[] = {
	COLUMN(struct site_row, change, "", UNIT_TEXT),
	COLUMN(struct site_row, before_ns, "before", UNIT_NS),
	COLUMN(struct site_row, after_ns, "after", UNIT_NS),
	COLUMN_TEXT(struct site_row, what, "what"),
	COLUMN_JSON(struct site_row, id, UNIT_TEXT),
	COLUMN_JSON(struct site_row, function, UNIT_TEXT),
	COLUMN_JSON(struct site_row, python, UNIT_TEXT),
	COLUMN_JSON(struct site_row, file, UNIT_TEXT),
	COLUMN_JSON(struct site_row, line, UNIT_COUNT),
	COLUMN_JSON(struct site_row, more_ns, UNIT_NS_CHANGE),
	COLUMN_JSON(struct site_row, before_ranks, UNIT_COUNT),
	COLUMN_JSON(struct site_row, after_ranks, UNIT_COUNT),
};

static const struct table_kind site_kind = {
	TABLE("findings", "FINDINGS, by place: what they cost a rank, on average", struct site_row,
	      site_columns),
	.text_rows = 12,
	.when_empty = "none, in both jobs",
};

/* As a baseline judges: by more than 20 % and 1 ms. */
#define MORE_PERCENT 20
#define MORE_NS 1000000

static uint64_t cost_of(const struct job *job, const struct job_site *site)
{
	return site ? add_capped(site->own_ns, site->others_ns) / max_u64(job->n_ranks, 1) : 0;
}

static bool is_more(uint64_t before_ns, uint64_t after_ns)
{
	return after_ns > before_ns + MORE_NS &&
	       after_ns - before_ns > before_ns / 100 * MORE_PERCENT;
}

static struct site_row compare(struct report *report, const struct job *a, const struct job_site *x,
			       const struct job *b, const struct job_site *y)
{
	const struct job_site *site = y ?: x;
	uint64_t before_ns = cost_of(a, x), after_ns = cost_of(b, y);
	const char *place = *site->python ? site->python : "";

	if (!*place && *site->file)
		place = report_text(report, "%s:%" PRIu64, path_basename(site->file), site->line);
	else if (!*place && *site->module)
		place = report_text(report, "%s+0x%" PRIx64, site->module, site->offset);
	return (struct site_row){
		.change = !x                             ? "appeared"
			  : !y                           ? "vanished"
			  : is_more(before_ns, after_ns) ? "worse"
			  : is_more(after_ns, before_ns) ? "better"
							 : "same",
		.id = site->detector,
		.what = report_text(report, "%s: %s %s", site->detector, site->function, place),
		.function = *site->function ? site->function : NULL,
		.python = *site->python ? site->python : NULL,
		.file = *site->file ? site->file : NULL,
		.line = site->line,
		.before_ns = before_ns,
		.after_ns = after_ns,
		.more_ns = (int64_t)(after_ns - before_ns),
		.before_ranks = x ? x->ranks : 0,
		.after_ranks = y ? y->ranks : 0};
}

static int by_change(const void *a, const void *b)
{
	const struct site_row *x = a, *y = b;

	return COMPARE((uint64_t)llabs(y->more_ns), (uint64_t)llabs(x->more_ns))
		       ?: strcmp(x->what, y->what);
}

static void add_sites(struct report *report, const struct job *a, const struct job *b)
{
	struct site_row *rows =
		xcalloc(HASH_COUNT(a->sites) + HASH_COUNT(b->sites) + 1, sizeof(*rows));
	struct job_site *other;
	struct table *table;
	size_t n = 0, same = 0, i;

	for (const struct job_site *site = b->sites; site; site = site->hh.next) {
		HASH_FIND_STR(a->sites, site->key, other);
		rows[n++] = compare(report, a, other, b, site);
	}
	for (const struct job_site *site = a->sites; site; site = site->hh.next) {
		HASH_FIND_STR(b->sites, site->key, other);
		if (!other)
			rows[n++] = compare(report, a, site, b, NULL);
	}
	qsort(rows, n, sizeof(*rows), by_change);
	for (i = n; i && (uint64_t)llabs(rows[i - 1].more_ns) < MORE_NS; i--)
		same++;
	table = report_add(report, &site_kind, rows, n);
	table->minor_rows = same;
	table->minor_name = "that changed by less than 1 ms";
}

void job_diff_report(struct report *report, const struct job *a, const struct job *b)
{
	struct side_row *rows = xcalloc(2, sizeof(*rows));

	rows[0] = side_of(a, "before");
	rows[1] = side_of(b, "after");
	report_add(report, &side_kind, rows, 2);
	add_differences(report, a, b);
	add_sites(report, a, b);
}
