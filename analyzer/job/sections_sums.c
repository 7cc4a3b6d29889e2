/*
 * analyzer/job/sections_sums.c: calls, idle causes, locks and waits of all ranks together. Called by sections.c.
 */
#include <stdlib.h>
#include "sections.h"
#include "text/text.h"

static const char *text_of(const struct job *job, const struct job_sum *sum, uint32_t column)
{
	const char *text = digest_texts_at(&job->digest->texts, sum->cells[column]);

	return *text ? text : NULL;
}

/* A row without a name stands for those that are not told apart. */
static const char *name_of(const struct job *job, const struct job_sum *sum, uint32_t column)
{
	return text_of(job, sum, column) ?: "all others";
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct function_row {
	const char *function, *most_rank;
	uint64_t nested, count, failed, total_ns, lost_ns, median_ns, p99_ns, max_ns, ranks;
};

static const struct column function_columns[] = {
	COLUMN(struct function_row, function, "function", UNIT_TEXT),
	COLUMN(struct function_row, count, "calls", UNIT_COUNT),
	COLUMN(struct function_row, total_ns, "took", UNIT_NS),
	COLUMN(struct function_row, lost_ns, "lost", UNIT_NS),
	COLUMN(struct function_row, median_ns, "median", UNIT_NS),
	COLUMN(struct function_row, p99_ns, "99 %", UNIT_NS),
	COLUMN_JSON(struct function_row, max_ns, UNIT_NS),
	COLUMN_JSON(struct function_row, most_rank, UNIT_TEXT),
	COLUMN_JSON(struct function_row, failed, UNIT_COUNT),
	COLUMN_JSON(struct function_row, nested, UNIT_COUNT),
	COLUMN_JSON(struct function_row, ranks, UNIT_COUNT),
};

static const struct table_kind function_kind = {
	TABLE("functions", "CALLS of all ranks, by function; medians are about",
	      struct function_row, function_columns),
	.detail = true,
	.text_rows = 20,
};

/* Of a histogram by powers of two: in the middle of the bucket, by length; no more than the longest. */
static uint64_t quantile(const uint64_t *buckets, double part, uint64_t longest_ns)
{
	uint64_t all = 0, seen = 0, from_ns, to_ns;
	uint32_t i;

	for (i = 0; i < DIGEST_BUCKETS; i++)
		all = add_capped(all, buckets[i]);
	for (i = 0; i < DIGEST_BUCKETS - 1; i++) {
		seen = add_capped(seen, buckets[i]);
		if ((double)seen >= part * (double)all)
			break;
	}
	if (!all)
		return 0;
	if (i == DIGEST_BUCKETS - 1)
		return longest_ns;
	from_ns = i ? 500ull << i : 0;
	to_ns = 1000ull << i;
	return min_u64(from_ns + (to_ns - from_ns) / 2, longest_ns);
}

static void add_functions(struct report *report, const struct job *job)
{
	size_t n, i;
	struct job_sum **sums = job_sums(job, JOB_FUNCTIONS, &n);
	struct function_row *rows = xcalloc(n + 1, sizeof(*rows));

	for (i = 0; i < n; i++) {
		const uint64_t *cells = sums[i]->cells;
		const uint64_t *buckets = &cells[D_FUNC_us_1];

		rows[i] = (struct function_row){
			.function = name_of(job, sums[i], D_FUNC_function),
			.nested = cells[D_FUNC_nested],
			.count = cells[D_FUNC_count],
			.failed = cells[D_FUNC_failed],
			.total_ns = cells[D_FUNC_total_ns],
			.lost_ns = cells[D_FUNC_lost_ns],
			.max_ns = cells[D_FUNC_longest_ns],
			.median_ns = quantile(buckets, 0.5, cells[D_FUNC_longest_ns]),
			.p99_ns = quantile(buckets, 0.99, cells[D_FUNC_longest_ns]),
			.ranks = sums[i]->ranks,
			.most_rank = job->ranks[sums[i]->most_rank].name,
		};
		if (rows[i].nested)
			rows[i].function = arena_printf(&report->arena, "%s, inside of others",
							rows[i].function);
	}
	free(sums);
	report_add(report, &function_kind, rows, n);
}

/* ---- idle causes ----------------------------------------------------------------------------- */

struct cause_row {
	const char *of, *cause, *text, *place, *most_rank;
	uint64_t count, ns, longest_ns, ranks;
};

static const struct column cause_columns[] = {
	COLUMN(struct cause_row, ns, "time", UNIT_NS),
	COLUMN(struct cause_row, ranks, "ranks", UNIT_COUNT),
	COLUMN(struct cause_row, most_rank, "most in", UNIT_TEXT),
	COLUMN(struct cause_row, text, "what", UNIT_TEXT),
	COLUMN_JSON(struct cause_row, of, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, place, UNIT_TEXT),
	COLUMN_JSON(struct cause_row, count, UNIT_COUNT),
	COLUMN_JSON(struct cause_row, longest_ns, UNIT_NS),
};

static const struct table_kind cause_kind = {
	TABLE("causes",
	      "IDLE: what GPUs waited for, and what the threads that feed them did outside of "
	      "calls",
	      struct cause_row, cause_columns),
	.detail = true,
	.text_rows = 20,
};

static const char *cause_words(struct arena *texts, const struct cause_row *row)
{
	const char *of = row->of && !strcmp(row->of, "gpu") ? "GPUs idle" : "threads";

	if (!row->cause)
		return "all others";
	return arena_printf(texts, "%s: %s%s%s%s", of, job_cause_text(row->cause),
			    row->place ? " (" : "", row->place ?: "", row->place ? ")" : "");
}

static void add_causes(struct report *report, const struct job *job)
{
	size_t n, i;
	struct job_sum **sums = job_sums(job, JOB_CAUSES, &n);
	struct cause_row *rows = xcalloc(n + 1, sizeof(*rows));

	for (i = 0; i < n; i++) {
		const uint64_t *cells = sums[i]->cells;

		rows[i] = (struct cause_row){.of = text_of(job, sums[i], D_CAUSE_of),
					     .cause = text_of(job, sums[i], D_CAUSE_cause),
					     .place = text_of(job, sums[i], D_CAUSE_place),
					     .count = cells[D_CAUSE_count],
					     .ns = cells[D_CAUSE_ns],
					     .longest_ns = cells[D_CAUSE_longest_ns],
					     .ranks = sums[i]->ranks,
					     .most_rank = job->ranks[sums[i]->most_rank].name};
		rows[i].text = cause_words(&report->arena, &rows[i]);
	}
	free(sums);
	report_add(report, &cause_kind, rows, n);
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct lock_row {
	const char *place, *kind, *function, *most_rank;
	uint64_t locks, waits, waited_ns, longest_ns, ranks;
};

static const struct column lock_columns[] = {
	COLUMN(struct lock_row, place, "lock", UNIT_TEXT),
	COLUMN(struct lock_row, kind, "kind", UNIT_TEXT),
	COLUMN(struct lock_row, waits, "waits", UNIT_COUNT),
	COLUMN(struct lock_row, waited_ns, "waited", UNIT_NS),
	COLUMN(struct lock_row, longest_ns, "longest", UNIT_NS),
	COLUMN(struct lock_row, ranks, "ranks", UNIT_COUNT),
	COLUMN(struct lock_row, most_rank, "most in", UNIT_TEXT),
	COLUMN_JSON(struct lock_row, locks, UNIT_COUNT),
	COLUMN_JSON(struct lock_row, function, UNIT_TEXT),
};

static const struct table_kind lock_kind = {
	TABLE("locks", "LOCKS that calls waited for, by where they lie", struct lock_row,
	      lock_columns),
	.detail = true,
	.text_rows = 10,
};

static void add_locks(struct report *report, const struct job *job)
{
	size_t n, i;
	struct job_sum **sums = job_sums(job, JOB_LOCKS, &n);
	struct lock_row *rows = xcalloc(n + 1, sizeof(*rows));

	for (i = 0; i < n; i++) {
		const uint64_t *cells = sums[i]->cells;

		rows[i] = (struct lock_row){.place = name_of(job, sums[i], D_LOCK_place),
					    .kind = text_of(job, sums[i], D_LOCK_kind),
					    .function = text_of(job, sums[i], D_LOCK_function),
					    .locks = cells[D_LOCK_locks],
					    .waits = cells[D_LOCK_waits],
					    .waited_ns = cells[D_LOCK_waited_ns],
					    .longest_ns = cells[D_LOCK_longest_ns],
					    .ranks = sums[i]->ranks,
					    .most_rank = job->ranks[sums[i]->most_rank].name};
	}
	free(sums);
	report_add(report, &lock_kind, rows, n);
}

/* ---- who waited for whom --------------------------------------------------------------------- */

struct wait_row {
	const char *waiter, *waiter_function, *holder, *holder_function, *cause, *words, *most_rank;
	uint64_t inferred, waits, waited_ns, ranks;
};

static const struct column wait_columns[] = {
	COLUMN(struct wait_row, waited_ns, "waited", UNIT_NS),
	COLUMN(struct wait_row, waits, "waits", UNIT_COUNT),
	COLUMN(struct wait_row, ranks, "ranks", UNIT_COUNT),
	COLUMN(struct wait_row, most_rank, "most in", UNIT_TEXT),
	COLUMN_TEXT(struct wait_row, words, "waiter, holder, cause"),
	COLUMN_JSON(struct wait_row, waiter, UNIT_TEXT),
	COLUMN_JSON(struct wait_row, waiter_function, UNIT_TEXT),
	COLUMN_JSON(struct wait_row, holder, UNIT_TEXT),
	COLUMN_JSON(struct wait_row, holder_function, UNIT_TEXT),
	COLUMN_JSON(struct wait_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct wait_row, inferred, UNIT_COUNT),
};

static const struct table_kind wait_kind = {
	TABLE("waits", "WAITS of threads for each other in calls, by role, at the root",
	      struct wait_row, wait_columns),
	.detail = true,
	.text_rows = 10,
};

static void add_waits(struct report *report, const struct job *job)
{
	size_t n, i;
	struct job_sum **sums = job_sums(job, JOB_EDGES, &n);
	struct wait_row *rows = xcalloc(n + 1, sizeof(*rows));

	for (i = 0; i < n; i++) {
		const uint64_t *cells = sums[i]->cells;
		struct wait_row *row = &rows[i];

		*row = (struct wait_row){
			.waiter = text_of(job, sums[i], D_EDGE_waiter),
			.waiter_function = text_of(job, sums[i], D_EDGE_waiter_function),
			.holder = text_of(job, sums[i], D_EDGE_holder),
			.holder_function = text_of(job, sums[i], D_EDGE_holder_function),
			.cause = text_of(job, sums[i], D_EDGE_cause),
			.inferred = cells[D_EDGE_inferred],
			.waits = cells[D_EDGE_waits],
			.waited_ns = cells[D_EDGE_waited_ns],
			.ranks = sums[i]->ranks,
			.most_rank = job->ranks[sums[i]->most_rank].name};
		row->words = row->waiter
				     ? arena_printf(&report->arena, "%s in %s for %s in %s%s%s",
						    row->waiter, row->waiter_function ?: "?",
						    row->holder ?: "?", row->holder_function ?: "?",
						    row->cause ? ": " : "", row->cause ?: "")
				     : "all others";
	}
	free(sums);
	report_add(report, &wait_kind, rows, n);
}

void job_report_sums(struct report *report, const struct job *job)
{
	add_functions(report, job);
	add_causes(report, job);
	add_locks(report, job);
	add_waits(report, job);
}
