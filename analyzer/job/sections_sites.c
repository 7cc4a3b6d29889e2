/*
 * analyzer/job/sections_sites.c: findings of the program, by their place, with the ranks that have them. Called by
 * sections.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "sections.h"
#include "base/lines.h"
#include "findings/detector.h"
#include "findings/finding.h"
#include "text/text.h"

struct site_row {
	const char *id, *title, *severity, *headline, *function, *module, *caller, *file, *python,
		*where, *ranks_text, *fix, *what;
	uint64_t rank, cost_ns, gain_low_ns, gain_high_ns, own_ns, others_ns, idle_gpu_ns, count,
		share_ppm, ranks, offset, line;
};

/* The keys are those of a report's findings, as far as they mean the same. */
static const struct column site_columns[] = {
	COLUMN_TONE(struct site_row, rank, "#", UNIT_PLAIN, TONE_SEVERITY),
	COLUMN(struct site_row, cost_ns, "cost", UNIT_NS),
	COLUMN(struct site_row, gain_high_ns, "gain", UNIT_NS),
	COLUMN(struct site_row, ranks, "ranks", UNIT_COUNT),
	COLUMN_TEXT_TONE(struct site_row, headline, "what", TONE_SEVERITY),
	COLUMN_LINE(struct site_row, where, UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct site_row, ranks_text),
	COLUMN_JSON(struct site_row, id, UNIT_TEXT),
	COLUMN_JSON(struct site_row, title, UNIT_TEXT),
	COLUMN_JSON(struct site_row, severity, UNIT_TEXT),
	COLUMN_JSON(struct site_row, what, UNIT_TEXT),
	COLUMN_JSON(struct site_row, function, UNIT_TEXT),
	COLUMN_JSON(struct site_row, module, UNIT_TEXT),
	COLUMN_JSON(struct site_row, offset, UNIT_COUNT),
	COLUMN_JSON(struct site_row, caller, UNIT_TEXT),
	COLUMN_JSON(struct site_row, file, UNIT_TEXT),
	COLUMN_JSON(struct site_row, line, UNIT_COUNT),
	COLUMN_JSON(struct site_row, python, UNIT_TEXT),
	COLUMN_JSON(struct site_row, gain_low_ns, UNIT_NS),
	COLUMN_JSON(struct site_row, own_ns, UNIT_NS),
	COLUMN_JSON(struct site_row, others_ns, UNIT_NS),
	COLUMN_JSON(struct site_row, idle_gpu_ns, UNIT_NS),
	COLUMN_JSON(struct site_row, count, UNIT_COUNT),
	COLUMN_JSON(struct site_row, share_ppm, UNIT_COUNT),
	COLUMN_JSON(struct site_row, fix, UNIT_TEXT),
};

static const struct table_kind site_kind = {
	TABLE("findings", "FINDINGS of the program, all ranks together: problems, then notes",
	      struct site_row, site_columns),
	.text_rows = 10,
	.when_empty = "none",
};

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static const char *where_words(struct arena *texts, const struct job_site *s)
{
	const char *in = *s->caller ? arena_printf(texts, " in %s", s->caller) : "";

	if (*s->python)
		return arena_printf(texts, "%s%s%s", s->function, *s->function ? " " : "",
				    s->python);
	if (*s->file && s->line)
		return arena_printf(texts, "%s%s, %s:%" PRIu64, s->function, in,
				    path_basename(s->file), s->line);
	if (*s->module)
		return arena_printf(texts, "%s%s, %s+0x%" PRIx64, s->function, in, s->module,
				    s->offset);
	return *s->function ? s->function : NULL;
}

/* "in 37 of 1,000 ranks, a problem in 12; costliest in rank 3 (node1): 12 ms, …" */
static const char *ranks_words(struct arena *texts, const struct job *job, const struct job_site *s)
{
	const char *words =
		arena_printf(texts, "in %s of %zu%s", text_count(texts, s->ranks, "rank"),
			     job->n_ranks, s->ranks == job->n_ranks ? ", all of them" : "");
	size_t i;

	if (s->problems && s->problems < s->ranks)
		words = arena_printf(texts, "%s, a problem in %" PRIu64, words, s->problems);
	for (i = 0; i < ARRAY_SIZE(s->top) && s->top[i].rank != UINT32_MAX && s->top[i].ns; i++)
		words = arena_printf(texts, "%s%s%s: %s", words, i ? ", " : "; most in ",
				     job_rank_words(texts, job, s->top[i].rank),
				     text_time(texts, s->top[i].ns));
	return words;
}

static int by_gain(const void *a, const void *b)
{
	const struct job_site *x = *(const struct job_site *const *)a;
	const struct job_site *y = *(const struct job_site *const *)b;

	return COMPARE(x->severity, y->severity) ?: COMPARE(y->weight_ns, x->weight_ns) ?:
	       strcmp(x->key, y->key);
}

static struct site_row describe(struct report *report, const struct job *job,
				const struct job_site *s)
{
	const struct detector *detector = detectors_find(s->detector);
	struct arena *texts = &report->arena;
	const char *severity =
		severity_keys[s->severity <= SEVERITY_MINOR ? s->severity : SEVERITY_MINOR];

	return (struct site_row){
		.id = s->detector,
		.title = detector ? detector->title : s->detector,
		.severity = severity,
		.headline =
			arena_printf(texts, "%s%s: %s", s->detector,
				     s->severity == SEVERITY_NOTE ? ", a note" : "",
				     detector ? detector->title : "of a later version of cudaspy"),
		.function = or_null(s->function),
		.module = or_null(s->module),
		.caller = or_null(s->caller),
		.file = or_null(s->file),
		.python = or_null(s->python),
		.where = where_words(texts, s),
		.ranks_text = ranks_words(texts, job, s),
		.what = ranks_words(texts, job, s),
		.fix = detector ? detector->fix : NULL,
		.cost_ns = add_capped(s->own_ns, s->others_ns),
		.gain_low_ns = s->gain_low_ns,
		.gain_high_ns = s->gain_high_ns,
		.own_ns = s->own_ns,
		.others_ns = s->others_ns,
		.idle_gpu_ns = s->idle_gpu_ns,
		.count = s->count,
		.share_ppm = s->share_ppm,
		.ranks = s->ranks,
		.offset = s->offset,
		.line = s->line,
	};
}

void job_report_sites(struct report *report, const struct job *job)
{
	size_t n = HASH_COUNT(job->sites), i, minor = 0;
	const struct job_site **sites = xcalloc(n + 1, sizeof(*sites)), *site;
	struct site_row *rows = xcalloc(n + 1, sizeof(*rows));
	struct table *table;

	for (i = 0, site = job->sites; site; site = site->hh.next)
		sites[i++] = site;
	qsort(sites, n, sizeof(*sites), by_gain);
	for (i = 0; i < n; i++) {
		rows[i] = describe(report, job, sites[i]);
		rows[i].rank = i + 1;
		minor += sites[i]->severity >= SEVERITY_MINOR;
	}
	free(sites);
	table = report_add(report, &site_kind, rows, n);
	table->minor_rows = minor;
	if (n)
		table->intro = "Cost and gain are thread-seconds: the time of all threads of all "
			       "ranks, added up.";
}
