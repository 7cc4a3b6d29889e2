/*
 * analyzer/job/sections_ranks.c: who differs from the rest, which steps were slow, all ranks. Called by sections.c.
 */
#include <stdlib.h>
#include "sections.h"
#include "text/text.h"

/* ---- who differs ----------------------------------------------------------------------------- */

struct differ_row {
	const char *about, *who, *host, *gpu, *cause, *what, *evidence, *fix, *severity;
	uint64_t number, share_ppm, cost_ns, rank;
};

/* clang-format off */
static const struct column differ_columns[] = {
	COLUMN_TONE(struct differ_row, number, "#", UNIT_PLAIN, TONE_SEVERITY),
	COLUMN(struct differ_row, cost_ns, "cost", UNIT_NS),
	COLUMN_TONE(struct differ_row, what, "what", UNIT_TEXT, TONE_SEVERITY),
	COLUMN_TEXT_WORDS(struct differ_row, evidence),
	COLUMN_TEXT_WORDS(struct differ_row, fix),
	COLUMN_JSON(struct differ_row, about, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, who, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, rank, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct differ_row, host, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, gpu, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct differ_row, share_ppm, UNIT_COUNT),
	COLUMN_JSON(struct differ_row, severity, UNIT_TEXT),
	{.key = "evidence", .title = "", .unit = UNIT_TEXT, .place = COLUMN_JSON_ONLY, .offset = offsetof(struct differ_row, evidence)},
	{.key = "fix", .title = "", .unit = UNIT_TEXT, .place = COLUMN_JSON_ONLY, .offset = offsetof(struct differ_row, fix)},
};
/* clang-format on */

static const struct table_kind differ_kind = {
	TABLE("differences", "DIFFERENT from the rest: ranks, hosts and GPUs, and in what",
	      struct differ_row, differ_columns),
	.text_rows = 20,
	.when_empty = "none: no rank, host or GPU stands out",
};

static void add_differences(struct report *report, const struct job *job)
{
	static const char *const abouts[] = {
		[JOB_RANK] = "rank", [JOB_HOST] = "host", [JOB_GPU] = "gpu"};
	struct differ_row *rows = xcalloc(job->n_findings + 1, sizeof(*rows));

	for (size_t i = 0; i < job->n_findings; i++) {
		const struct job_finding *f = &job->findings[i];
		struct differ_row *row = &rows[i];

		*row = (struct differ_row){.number = i + 1,
					   .about = abouts[f->about],
					   .cause = f->cause,
					   .what = f->what,
					   .evidence = f->evidence,
					   .fix = f->fix,
					   .severity = "problem",
					   .share_ppm = f->share_ppm,
					   .cost_ns = f->cost_ns,
					   .rank = UNKNOWN_NS};
		if (f->about == JOB_RANK) {
			const struct job_rank *rank = &job->ranks[f->who];

			row->who = rank->name;
			row->host = job->hosts[rank->host].name;
			if (rank->number_1)
				row->rank = rank->number_1 - 1;
			if (rank->gpu != UINT32_MAX)
				row->gpu = job->gpus[rank->gpu].uuid;
		} else if (f->about == JOB_HOST) {
			row->who = row->host = job->hosts[f->who].name;
		} else {
			row->who = row->gpu = job->gpus[f->who].uuid;
			row->host = job->hosts[job->gpus[f->who].host].name;
		}
	}
	report_add(report, &differ_kind, rows, job->n_findings);
}

/* ---- slow steps ------------------------------------------------------------------------------ */

struct slow_row {
	const char *after, *last, *cause, *words;
	uint64_t at_ns, period_ns, typical_ns, late_ns, ranks, bytes;
};

static const struct column slow_columns[] = {
	COLUMN(struct slow_row, at_ns, "at", UNIT_NS),
	COLUMN(struct slow_row, period_ns, "took", UNIT_NS),
	COLUMN(struct slow_row, typical_ns, "most take", UNIT_NS),
	COLUMN_TEXT(struct slow_row, words, "why"),
	COLUMN_JSON(struct slow_row, last, UNIT_TEXT),
	COLUMN_JSON(struct slow_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct slow_row, late_ns, UNIT_NS),
	COLUMN_JSON(struct slow_row, ranks, UNIT_COUNT),
	COLUMN_JSON(struct slow_row, bytes, UNIT_BYTES),
};

static const struct table_kind slow_kind = {
	TABLE("slow_steps", "SLOW STEPS: from one collective operation to the next like it",
	      struct slow_row, slow_columns),
	.text_rows = 10,
};

static void add_slow(struct report *report, const struct job *job)
{
	struct slow_row *rows = xcalloc(job->n_slow + 1, sizeof(*rows));
	struct arena *texts = &report->arena;
	struct table *table;

	for (size_t i = 0; i < job->n_slow; i++) {
		const struct job_slow *slow = &job->slow[i];
		const char *cause = slow->cause != UINT32_MAX ? job->causes[slow->cause] : NULL;

		rows[i] = (struct slow_row){.at_ns = slow->at_ns,
					    .period_ns = slow->period_ns,
					    .typical_ns = slow->typical_ns,
					    .late_ns = slow->late_ns,
					    .ranks = slow->ranks,
					    .bytes = slow->bytes,
					    .cause = cause,
					    .words = "all ranks were slow together"};
		if (slow->rank == UINT32_MAX)
			continue;
		rows[i].last = job->ranks[slow->rank].name;
		rows[i].words = arena_printf(
			texts, "%s was %s late%s%s%s%s%s", job_rank_words(texts, job, slow->rank),
			text_time(texts, slow->late_ns), cause ? ": " : "",
			cause ? job_cause_text(cause) : "", *slow->place ? " (" : "", slow->place,
			*slow->place ? ")" : "");
	}
	table = report_add(report, &slow_kind, rows, job->n_slow);
	if (job->n_slow)
		table->intro = arena_printf(texts, "%s, %s longer together than most steps.",
					    text_count(texts, job->slow_count, "step"),
					    text_time(texts, job->slow_more_ns));
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct rank_row {
	const char *name, *host, *gpu, *program, *cause, *place, *parts, *parts_line;
	uint64_t rank, from_ns, until_ns, span_ns, parts_of, records, lost_records, calls, calls_ns,
		lost_ns, operations, met, last, late_ns, waited_ns, lock_ns, not_running_ns,
		ioctl_ns, outside_ns, align_error_ns, late_each_ns;
};

static const struct column rank_columns[] = {
	COLUMN(struct rank_row, name, "rank", UNIT_TEXT),
	COLUMN(struct rank_row, host, "host", UNIT_TEXT),
	COLUMN(struct rank_row, calls, "calls", UNIT_COUNT),
	COLUMN(struct rank_row, lost_ns, "lost", UNIT_NS),
	COLUMN(struct rank_row, lock_ns, "locks", UNIT_NS),
	COLUMN(struct rank_row, met, "compared", UNIT_COUNT),
	COLUMN(struct rank_row, last, "last", UNIT_COUNT),
	COLUMN(struct rank_row, late_each_ns, "late, each", UNIT_NS),
	COLUMN(struct rank_row, cause, "most for", UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct rank_row, parts_line),
	COLUMN_JSON(struct rank_row, rank, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct rank_row, gpu, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, program, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, parts, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, parts_of, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct rank_row, from_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, until_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, place, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, span_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, records, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, lost_records, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, calls_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, operations, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, late_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, waited_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, not_running_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, ioctl_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, outside_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, align_error_ns, UNIT_NS),
};

static const struct table_kind rank_kind = {
	TABLE("ranks", "RANKS: those that came latest to collectives first", struct rank_row,
	      rank_columns),
	.text_rows = 12,
};

static const char *main_cause(const struct job *job, const struct job_rank *r)
{
	size_t i, most = 0;

	for (i = 1; i < job->n_causes; i++)
		if (r->cause_ns[i] > r->cause_ns[most])
			most = i;
	return r->cause_ns[most] ? job->causes[most] : NULL;
}

static int by_late(const void *a, const void *b)
{
	const struct rank_row *x = a, *y = b;

	return COMPARE(y->late_each_ns, x->late_each_ns) ?: COMPARE(x->rank, y->rank) ?:
	       strcmp(x->name, y->name);
}

/* Of ranks that are not all there. */
static const char *parts_line(struct arena *texts, const struct job *job, const struct job_rank *r)
{
	if (!r->parts || r->parts_complete)
		return r->is_apart ? job_time_words(texts, job, r) : NULL;
	return arena_printf(texts, "%s: %s", job_parts_words(texts, r),
			    job_time_words(texts, job, r));
}

static void add_ranks(struct report *report, const struct job *job)
{
	struct rank_row *rows = xcalloc(job->n_ranks + 1, sizeof(*rows));

	for (size_t i = 0; i < job->n_ranks; i++) {
		const struct job_rank *r = &job->ranks[i];

		rows[i] = (struct rank_row){
			.name = r->name,
			.parts = r->parts_words,
			.parts_of = r->parts_end_known ? r->n_parts_known : UNKNOWN_NS,
			.parts_line = parts_line(&report->arena, job, r),
			.from_ns = job_from_ns(job, r),
			.until_ns = job_until_ns(job, r),
			.host = job->hosts[r->host].name,
			.gpu = r->gpu != UINT32_MAX ? job->gpus[r->gpu].uuid : NULL,
			.program = r->program,
			.rank = r->number_1 ? r->number_1 - 1 : UNKNOWN_NS,
			.cause = main_cause(job, r),
			.place = *r->place ? r->place : NULL,
			.span_ns = r->span_ns,
			.records = r->records,
			.lost_records = r->lost_records,
			.calls = r->calls,
			.calls_ns = r->calls_ns,
			.lost_ns = r->lost_ns,
			.operations = r->operations,
			.met = r->met,
			.last = r->last,
			.late_ns = r->late_ns,
			.late_each_ns = r->met ? r->behind_ns / r->met : 0,
			.waited_ns = r->waited_ns,
			.lock_ns = r->lost[JOB_LOST_TO_LOCKS].ns,
			.not_running_ns = r->lost[JOB_LOST_TO_OTHERS].ns,
			.ioctl_ns = r->lost[JOB_LOST_TO_IOCTLS].ns,
			.outside_ns = r->outside_ns,
			.align_error_ns = r->fit_error_ns,
		};
	}
	qsort(rows, job->n_ranks, sizeof(*rows), by_late);
	report_add(report, &rank_kind, rows, job->n_ranks);
}

void job_report_ranks(struct report *report, const struct job *job)
{
	add_differences(report, job);
	add_slow(report, job);
	add_ranks(report, job);
}
