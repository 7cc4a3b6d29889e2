/*
 * analyzer/job/sections.c: what the job is, what its digests lack, its hosts. Called by `report`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "sections.h"
#include "text/text.h"

const char *job_rank_words(struct arena *texts, const struct job *job, uint32_t rank)
{
	return arena_printf(texts, "%s (%s)", job->ranks[rank].name,
			    job->hosts[job->ranks[rank].host].name);
}

/* ---- the job --------------------------------------------------------------------------------- */

struct summary_row {
	const char *name, *program, *ranks_text, *recorded, *called, *collectives, *clocks, *cost,
		*found, *detail;
	uint64_t ranks, world_size, missing, hosts, gpus, duration_ns, begin_unix_ns, records,
		lost_records, calls, calls_ns, lost_ns, compared, unaligned, align_error_ns,
		typical_ns, level, problems, notes;
};

static const struct column summary_columns[] = {
	COLUMN(struct summary_row, name, "job", UNIT_TEXT),
	COLUMN(struct summary_row, program, "program", UNIT_TEXT),
	COLUMN_TEXT(struct summary_row, ranks_text, "ranks"),
	COLUMN_TEXT(struct summary_row, recorded, "recorded"),
	COLUMN_TEXT(struct summary_row, called, "calls"),
	COLUMN_TEXT(struct summary_row, collectives, "collectives"),
	COLUMN_TEXT(struct summary_row, clocks, "clocks"),
	COLUMN_TEXT(struct summary_row, cost, "recording"),
	COLUMN_TEXT(struct summary_row, detail, "detail"),
	COLUMN_TEXT_TONE(struct summary_row, found, "found", TONE_FOUND),
	COLUMN_JSON(struct summary_row, ranks, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, world_size, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, missing, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, hosts, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, gpus, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, duration_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, begin_unix_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, records, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, lost_records, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, calls, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, calls_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, lost_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, compared, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, unaligned, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, align_error_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, typical_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, level, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, problems, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, notes, UNIT_COUNT),
};

static const struct table_kind summary_kind = {
	TABLE("job", "JOB", struct summary_row, summary_columns),
	.facts = true,
};

static const char *ranks_words(struct arena *texts, const struct job *job)
{
	const char *of = job->n_missing || job->world_size == job->n_ranks
				 ? arena_printf(texts, " of %" PRIu64, job->world_size)
				 : "";

	return arena_printf(texts, "%zu%s, on %s and %s", job->n_ranks, job->world_size ? of : "",
			    text_count(texts, job->n_hosts, "host"),
			    text_count(texts, job->n_gpus, "GPU"));
}

/* "train, …": of several the first one. */
static const char *program_of(const struct job *job)
{
	for (size_t i = 0; i < job->n_ranks; i++)
		if (*job->ranks[i].program)
			return job->ranks[i].program;
	return NULL;
}

static const char *job_name(struct arena *texts, const struct job *job)
{
	if (job->n_jobs > 1)
		return arena_printf(texts, "%u jobs, compared as one", job->n_jobs);
	return job->n_ranks && *job->ranks[0].job ? job->ranks[0].job : NULL;
}

static const char *collectives_words(struct arena *texts, const struct job *job)
{
	const char *unaligned = "";

	if (!job->compared && !job->unaligned)
		return NULL;
	if (job->unaligned)
		unaligned = arena_printf(texts, "; of %s clocks could not be aligned",
					 text_count(texts, job->unaligned, "more operation"));
	return arena_printf(texts, "%s of several ranks compared, chosen by chance%s",
			    text_count(texts, job->compared, "operation"), unaligned);
}

static const char *clocks_words(struct arena *texts, const struct job *job)
{
	uint64_t most_ns = 0, error_ns = 0;
	size_t i, n = 0;

	if (!job->compared)
		return NULL;
	for (i = 1; i < job->n_hosts; i++) {
		if (!job->hosts[i].clock_known)
			continue;
		n++;
		most_ns = max_u64(most_ns, (uint64_t)llabs(job->hosts[i].clock_ns));
		error_ns = max_u64(error_ns, job->hosts[i].clock_error_ns);
	}
	if (!n)
		return arena_printf(texts, "those of GPUs agree within %s when aligned",
				    text_time(texts, job->align_error_ns));
	return arena_printf(texts,
			    "those of GPUs agree within %s when aligned; those of hosts differed "
			    "by up to %s, known "
			    "within %s",
			    text_time(texts, job->align_error_ns), text_time(texts, most_ns),
			    text_time(texts, error_ns));
}

static int by_number(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* "cost its programs 0.8 % of their time (median of 12 ranks; 1.3 % at most)" */
static const char *cost_words(struct arena *texts, const struct job *job)
{
	uint64_t *values = xcalloc(job->n_ranks + 1, sizeof(*values));
	const char *words = NULL;
	size_t i, n = 0;

	for (i = 0; i < job->n_ranks; i++)
		if (job->ranks[i].cost_ppm_1)
			values[n++] = job->ranks[i].cost_ppm_1 - 1;
	qsort(values, n, sizeof(*values), by_number);
	if (n)
		words = arena_printf(texts,
				     "cost the programs %s of their time (median of %s that "
				     "measured it; %s at most)",
				     text_percent(texts, (double)values[(n - 1) / 2], 1e6),
				     text_count(texts, n, "rank"),
				     text_percent(texts, (double)values[n - 1], 1e6));
	free(values);
	return words;
}

static const char *found_words(struct arena *texts, const struct job *job,
			       const struct summary_row *row)
{
	uint64_t n = row->problems - job->n_findings;
	const char *sites = n ? text_count(texts, n, "problem") : "no problem";

	if (job->n_ranks == 2 && !job->compared && !job->n_findings)
		return arena_printf(texts,
				    "%s of the program; two ranks that have no collective "
				    "operations in common are not compared",
				    sites);
	if (job->n_ranks < 2)
		return arena_printf(
			texts,
			"%s of the program; with one rank there is no other to compare it with",
			sites);
	if (!job->n_findings)
		return arena_printf(texts,
				    "no rank, host or GPU differs from the rest; %s of the program",
				    sites);
	return arena_printf(texts, "%s from the rest: %s; %s of the program",
			    text_count(texts, job->n_findings, "difference"), job->findings[0].what,
			    sites);
}

static void count_sites(const struct job *job, struct summary_row *row)
{
	row->problems = job->n_findings;
	for (const struct job_site *site = job->sites; site; site = site->hh.next) {
		row->problems += site->severity == 0;
		row->notes += site->severity == 1;
	}
}

static void add_summary(struct report *report, const struct job *job)
{
	struct arena *texts = &report->arena;
	struct summary_row *row = xcalloc(1, sizeof(*row));

	*row = (struct summary_row){
		.name = job_name(texts, job),
		.program = program_of(job),
		.ranks_text = ranks_words(texts, job),
		.recorded = arena_printf(texts, "%s, %s", text_time(texts, job->span_ns),
					 text_count(texts, job->records, "record")),
		.called = arena_printf(
			texts, "%s, %s in them, %s of that lost",
			text_count(texts, job->calls, "call"),
			text_thread_time(texts, job->calls_ns, 2),
			text_percent(texts, (double)job->lost_ns, (double)job->calls_ns)),
		.collectives = collectives_words(texts, job),
		.clocks = clocks_words(texts, job),
		.cost = cost_words(texts, job),
		.ranks = job->n_ranks,
		.world_size = job->world_size,
		.missing = job->n_missing,
		.hosts = job->n_hosts,
		.gpus = job->n_gpus,
		.duration_ns = job->span_ns,
		.begin_unix_ns = job->begin_ns,
		.records = job->records,
		.lost_records = job->lost_records,
		.calls = job->calls,
		.calls_ns = job->calls_ns,
		.lost_ns = job->lost_ns,
		.compared = job->compared,
		.unaligned = job->unaligned,
		.align_error_ns = job->align_error_ns,
		.typical_ns = job->typical_ns,
		.level = job->digest->level,
	};
	count_sites(job, row);
	if (row->level)
		row->detail = arena_printf(texts,
					   "of so many ranks each keeps 1/%u of its rows, the "
					   "costliest; the rest is in "
					   "sums",
					   1u << row->level);
	row->found = found_words(texts, job, row);
	report_add(report, &summary_kind, row, 1);
}

/* ---- losses ---------------------------------------------------------------------------------- */

struct loss_row {
	const char *ranks, *kind, *text;
	uint64_t count;
};

/* clang-format off */
static const struct column loss_columns[] = {
	COLUMN(struct loss_row, ranks, "ranks", UNIT_TEXT),
	COLUMN_TONE(struct loss_row, count, "count", UNIT_COUNT, TONE_LOSS),
	COLUMN(struct loss_row, text, "what", UNIT_TEXT),
	COLUMN_JSON(struct loss_row, kind, UNIT_TEXT),
};

static const struct {
	const char *kind, *text;
} loss_words[] = {
	{"unreadable",  "traces that could not be read at all"},
	{"no_metadata", "processes without a metadata file"},
	{"no_board",    "processes without a board file"},
	{"streams",     "streams missing: threads whose files are not there, or empty"},
	{"calls",       "records of calls missing"},
	{"files",       "stream files that cannot be read"},
	{"records",     "records the program could not write"},
	{"no_stream",   "records of threads that got no stream"},
	{"dropped",     "packets dropped by keep-the-last"},
	{"packets",     "packets missing in the middle"},
	{"damaged",     "bytes of damaged files"},
	{"disordered",  "records older than the one before"},
	{"not_ended",   "processes that did not end in order: killed, or still running"},
};
/* clang-format on */

static const struct table_kind loss_kind = {
	TABLE("losses", "LOSSES: missing from the rest of this report", struct loss_row,
	      loss_columns),
	.missing = true,
};

#define RANGES_MOST 12

/* "3, 7-9" */
static const char *missing_words(struct arena *texts, const struct job *job)
{
	const char *words = job->n_missing == 1 ? "rank" : "ranks";
	size_t i, j, n = 0;

	for (i = 0; i < job->n_missing; i = j) {
		for (j = i + 1; j < job->n_missing && job->missing[j] == job->missing[j - 1] + 1;
		     j++)
			;
		if (n++ == RANGES_MOST)
			return arena_printf(texts, "%s, and %zu more", words, job->n_missing - i);
		words = j - i > 1 ? arena_printf(texts, "%s%s %u-%u", words, n > 1 ? "," : "",
						 job->missing[i], job->missing[j - 1])
				  : arena_printf(texts, "%s%s %u", words, n > 1 ? "," : "",
						 job->missing[i]);
	}
	return words;
}

static const char *some_ranks(struct arena *texts, const struct job *job,
			      const struct job_loss *loss)
{
	const char *words = job->ranks[loss->first[0]].name;

	for (size_t i = 1; i < JOB_NAMED && i < loss->ranks; i++)
		words = arena_printf(texts, "%s, %s", words, job->ranks[loss->first[i]].name);
	return loss->ranks > JOB_NAMED ? arena_printf(texts, "%s and %" PRIu64 " more", words,
						      loss->ranks - JOB_NAMED)
				       : words;
}

static const char *words_of_loss(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(loss_words); i++)
		if (!strcmp(loss_words[i].kind, kind))
			return loss_words[i].text;
	return kind;
}

/* Ranks of a kind: how many, their names, and of the first ones what is said of each. */
struct some {
	uint64_t n;
	const char *names, *words;
};

static void add_some(struct some *some, struct arena *texts, const char *name, const char *words)
{
	if (some->n++ >= JOB_NAMED)
		return;
	some->names = some->n > 1 ? arena_printf(texts, "%s, %s", some->names, name) : name;
	some->words = arena_printf(texts, "%s%s%s %s", some->words ?: "", some->words ? "; " : "",
				   name, words);
}

static struct loss_row loss_of(const struct some *some, struct arena *texts, const char *kind,
			       const char *text)
{
	bool more = some->n > JOB_NAMED;

	return (struct loss_row){
		.ranks = more ? arena_printf(texts, "%s and %" PRIu64 " more", some->names,
					     some->n - JOB_NAMED)
			      : some->names,
		.kind = kind,
		.text = arena_printf(texts, "%s: %s%s", text, some->words, more ? "; …" : ""),
		.count = some->n};
}

const char *job_parts_words(struct arena *texts, const struct job_rank *r)
{
	return arena_printf(texts, "%s of %" PRIu64 "%s", r->parts_words,
			    r->n_parts_known + !r->parts_end_known,
			    r->parts_end_known ? "" : " or more");
}

const char *job_time_words(struct arena *texts, const struct job *job, const struct job_rank *r)
{
	return arena_printf(texts, "from %s to %s", text_time(texts, job_from_ns(job, r)),
			    text_time(texts, job_until_ns(job, r)));
}

static size_t add_cover(struct report *report, const struct job *job, struct loss_row *rows)
{
	struct some partial = {0}, apart = {0}, removed = {0};
	struct arena *texts = &report->arena;
	uint64_t removed_calls = 0;
	size_t n = 0, i;

	for (i = 0; i < job->n_ranks; i++) {
		const struct job_rank *r = &job->ranks[i];

		if (r->parts && !r->parts_complete)
			add_some(&partial, texts, r->name,
				 arena_printf(texts, "has %s", job_parts_words(texts, r)));
		if (r->is_apart)
			add_some(&apart, texts, r->name, job_time_words(texts, job, r));
		if (r->removed_calls)
			add_some(&removed, texts, r->name,
				 arena_printf(texts, "%" PRIu64, r->removed_calls));
		removed_calls = add_capped(removed_calls, r->removed_calls);
	}
	if (partial.n)
		rows[n++] = loss_of(&partial, texts, "parts",
				    "recorded in parts, and not all are here");
	if (removed.n) {
		rows[n] =
			loss_of(&removed, texts, "removed",
				"records of calls in parts that the recorder has deleted (--keep, "
				"--keep-for)");
		rows[n++].count = removed_calls;
	}
	if (apart.n)
		rows[n++] = loss_of(
			&apart, texts, "times",
			arena_printf(texts,
				     "ranks cover different times (most are there from %s to %s), "
				     "and are compared where they meet",
				     text_time(texts, job->most_from_ns),
				     text_time(texts, job->most_until_ns)));
	return n;
}

static void add_losses(struct report *report, const struct job *job)
{
	struct loss_row *rows = xcalloc(job->n_losses + 4, sizeof(*rows));
	size_t n = 0, i;

	if (job->n_missing)
		rows[n++] = (struct loss_row){
			.ranks = missing_words(&report->arena, job),
			.kind = "missing",
			.text = arena_printf(&report->arena,
					     "missing: the job has %" PRIu64
					     " ranks, and there is no digest of these",
					     job->world_size),
			.count = job->n_missing};
	n += add_cover(report, job, &rows[n]);
	for (i = 0; i < job->n_losses; i++)
		rows[n++] =
			(struct loss_row){.ranks = some_ranks(&report->arena, job, &job->losses[i]),
					  .kind = job->losses[i].kind,
					  .text = words_of_loss(job->losses[i].kind),
					  .count = job->losses[i].count};
	report_add(report, &loss_kind, rows, n);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

struct host_row {
	const char *host, *clock;
	uint64_t ranks, clock_error_ns;
	int64_t clock_ns;
};

static const struct column host_columns[] = {
	COLUMN(struct host_row, host, "host", UNIT_TEXT),
	COLUMN(struct host_row, ranks, "ranks", UNIT_COUNT),
	COLUMN_TEXT(struct host_row, clock, "clock, against the first host's"),
	COLUMN_JSON(struct host_row, clock_ns, UNIT_NS_CHANGE),
	COLUMN_JSON(struct host_row, clock_error_ns, UNIT_NS_IF_KNOWN),
};

static const struct table_kind host_kind = {
	TABLE("hosts", "HOSTS", struct host_row, host_columns),
	.detail = true,
	.text_rows = 64,
};

static void add_hosts(struct report *report, const struct job *job)
{
	struct host_row *rows = xcalloc(job->n_hosts + 1, sizeof(*rows));
	struct arena *texts = &report->arena;

	for (size_t i = 0; i < job->n_hosts; i++) {
		const struct job_host *host = &job->hosts[i];

		rows[i] = (struct host_row){
			.host = host->name,
			.ranks = host->ranks,
			.clock_ns = host->clock_ns,
			.clock_error_ns = host->clock_known ? host->clock_error_ns : UNKNOWN_NS,
			.clock = "not known: no operations with ranks there"};
		if (host->clock_known)
			rows[i].clock =
				arena_printf(texts, "%s%s, known within %s",
					     text_time(texts, (uint64_t)llabs(host->clock_ns)),
					     host->clock_ns < 0 ? " behind"
					     : host->clock_ns   ? " ahead"
								: "",
					     text_time(texts, host->clock_error_ns));
	}
	report_add(report, &host_kind, rows, job->n_hosts > 1 ? job->n_hosts : 0);
}

void job_report_summary(struct report *report, const struct job *job)
{
	add_losses(report, job);
	add_summary(report, job);
}

void job_report(struct report *report, const struct job *job)
{
	job_report_summary(report, job);
	job_report_ranks(report, job);
	job_report_sharing(report, job);
	job_report_sites(report, job);
	add_hosts(report, job);
	job_report_sums(report, job);
}
