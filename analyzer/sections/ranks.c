/*
 * analyzer/sections/ranks.c: for each rank of a job, how long it waited for others in collective operations and they for
 * it, and why; the job's steps; its collective operations. Called by `report` and `why`, after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "findings/gpu_use.h"
#include "findings/rank_words.h"
#include "findings/straggler.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/format.h"
#include "base/median.h"

#define TOLD_PERCENT 1 /* of the job's time: shorter waits for a rank have no line of their own */

/* ---- rows ------------------------------------------------------------------------------------ */

struct device_row {
	uint64_t device;
};

struct waited_row {
	const char *text;
	uint64_t rank, ns;
};

struct rank_row {
	const char *who, *summary, *held, *others, *host, *job, *process;
	uint64_t rank, local_rank, restarts, operations, timed, in_collectives_ns, wait_ns,
		caused_ns, late_ns, unshared_ns, held_ns, last_count, steps, gpu_late_ns,
		start_wait_ns, start_caused_ns, work_ns, busy_ns, idle_ns, collective_ns,
		exposed_ns, align_error_ns, host_error_ns;
	const struct table *gpus, *waited_for, *causes;
};

struct share_row {
	const char *text;
	uint64_t rank, percent, count, wait_ns;
};

struct group_row {
	const char *comm, *comm_name, *func, *rate;
	uint64_t count, bytes, elements, ranks, wait_ns, late_ns, transfer_ns, bus_bytes_per_s,
		in_a_row, together;
	const struct table *last_rank_share;
};

struct slow_row {
	const char *text, *cause, *site;
	uint64_t number, duration_ns, wait_ns, late_ns, rank;
};

struct steps_row {
	const char *text, *by, *range;
	uint64_t count, collectives, median_ns, slow_count, slow_every, slow_ns, slow_more_ns,
		wait_ns;
	const struct table *slow;
};

static const struct column device_columns[] = {
	COLUMN_JSON(struct device_row, device, UNIT_DEVICE),
};

static const struct column waited_columns[] = {
	COLUMN_TEXT(struct waited_row, text, ""),
	COLUMN_JSON(struct waited_row, rank, UNIT_PLAIN),
	COLUMN_JSON(struct waited_row, ns, UNIT_NS),
};

static const struct column share_columns[] = {
	COLUMN_TEXT(struct share_row, text, ""),
	COLUMN_JSON(struct share_row, rank, UNIT_PLAIN),
	COLUMN_JSON(struct share_row, percent, UNIT_COUNT),
	COLUMN_JSON(struct share_row, count, UNIT_COUNT),
	COLUMN_JSON(struct share_row, wait_ns, UNIT_NS),
};

static const struct column slow_columns[] = {
	COLUMN_TEXT(struct slow_row, text, ""),
	COLUMN_JSON(struct slow_row, number, UNIT_PLAIN),
	COLUMN_JSON(struct slow_row, duration_ns, UNIT_NS),
	COLUMN_JSON(struct slow_row, wait_ns, UNIT_NS),
	COLUMN_JSON(struct slow_row, late_ns, UNIT_NS),
	COLUMN_JSON(struct slow_row, rank, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct slow_row, cause, UNIT_TEXT),
	COLUMN_JSON(struct slow_row, site, UNIT_TEXT),
};

#define NESTED(key_, columns_, row) \
	{ \
		TABLE(key_, "", row, columns_), .text_rows = 5 \
	}

static const struct table_kind devices_kind = NESTED("gpus", device_columns, struct device_row);
static const struct table_kind waited_kind =
	NESTED("waited_for", waited_columns, struct waited_row);
static const struct table_kind shares_kind =
	NESTED("last_rank_share", share_columns, struct share_row);
static const struct table_kind slow_kind = NESTED("slow", slow_columns, struct slow_row);

/* clang-format off */
static const struct column rank_columns[] = {
	COLUMN_TEXT(struct rank_row, who, "rank"),
	COLUMN_TEXT(struct rank_row, summary, "what its GPU did"),
	COLUMN_JSON(struct rank_row, rank, UNIT_PLAIN),
	COLUMN_JSON(struct rank_row, host, UNIT_TEXT),
	{.key = "gpus", .title = "", .unit = UNIT_TABLE, .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct rank_row, gpus), .table = &devices_kind},
	COLUMN_JSON(struct rank_row, wait_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, caused_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, late_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, unshared_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, held_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, job, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, process, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, local_rank, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct rank_row, restarts, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, operations, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, timed, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, last_count, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, steps, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, in_collectives_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, gpu_late_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, start_wait_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, start_caused_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, work_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, busy_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct rank_row, idle_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, collective_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct rank_row, exposed_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct rank_row, align_error_ns, UNIT_NS),
	COLUMN_JSON(struct rank_row, host_error_ns, UNIT_NS),
	COLUMN_TEXT_WORDS(struct rank_row, held),
	COLUMN_TEXT_WORDS(struct rank_row, others),
	{.key = "waited_for", .title = "", .unit = UNIT_TABLE, .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct rank_row, waited_for), .table = &waited_kind},
	COLUMN_TABLE(struct rank_row, causes, &rank_causes_kind),
};

static const struct column steps_columns[] = {
	COLUMN_TEXT(struct steps_row, text, ""),
	COLUMN_JSON(struct steps_row, by, UNIT_TEXT),
	COLUMN_JSON(struct steps_row, range, UNIT_TEXT),
	COLUMN_JSON(struct steps_row, count, UNIT_COUNT),
	COLUMN_JSON(struct steps_row, collectives, UNIT_COUNT),
	COLUMN_JSON(struct steps_row, median_ns, UNIT_NS),
	COLUMN_JSON(struct steps_row, slow_count, UNIT_COUNT),
	COLUMN_JSON(struct steps_row, slow_every, UNIT_COUNT),
	COLUMN_JSON(struct steps_row, slow_ns, UNIT_NS),
	COLUMN_JSON(struct steps_row, slow_more_ns, UNIT_NS),
	COLUMN_JSON(struct steps_row, wait_ns, UNIT_NS),
	COLUMN_TABLE(struct steps_row, slow, &slow_kind),
};

static const struct column group_columns[] = {
	COLUMN(struct group_row, comm, "communicator", UNIT_TEXT),
	COLUMN(struct group_row, func, "function", UNIT_TEXT),
	COLUMN(struct group_row, count, "how many", UNIT_COUNT),
	COLUMN(struct group_row, bytes, "each", UNIT_BYTES),
	COLUMN(struct group_row, wait_ns, "waits", UNIT_NS),
	COLUMN_JSON(struct group_row, late_ns, UNIT_NS),
	COLUMN(struct group_row, transfer_ns, "then took", UNIT_NS),
	COLUMN_TEXT(struct group_row, rate, "at"),
	COLUMN_JSON(struct group_row, bus_bytes_per_s, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct group_row, comm_name, UNIT_TEXT),
	COLUMN_JSON(struct group_row, elements, UNIT_COUNT),
	COLUMN_JSON(struct group_row, ranks, UNIT_COUNT),
	COLUMN_JSON(struct group_row, in_a_row, UNIT_COUNT),
	COLUMN_JSON(struct group_row, together, UNIT_COUNT),
	{.key = "last_rank_share", .title = "", .unit = UNIT_TABLE, .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct group_row, last_rank_share), .table = &shares_kind},
};
/* clang-format on */

static const struct table_kind ranks_kind = {
	TABLE("ranks",
	      "RANKS: waits of ranks for each other in collective operations, and their causes",
	      struct rank_row, rank_columns),
	.text_rows = 16,
};

static const struct table_kind steps_kind = {
	TABLE("rank_steps", "STEPS of the ranks", struct steps_row, steps_columns),
};

static const struct table_kind groups_kind = {
	TABLE("collectives",
	      "COLLECTIVE OPERATIONS: how long ranks waited in them for the last one",
	      struct group_row, group_columns),
	.text_rows = 10,
	.detail = true,
};

/* ---- how fast data are moved ----------------------------------------------------------------- */

static const char *rate_words(struct arena *texts, double rate)
{
	return rate > 0 ? arena_printf(texts, "%.*f GB/s", rate < 10e9 ? 1 : 0, rate / 1e9) : "";
}

/* Where it is a tenth of a rank's time or more. */
#define MOVING_LEAST_PART 10

/* "When all ranks were there, moving the data took 2.34 s, …, most in AllReduce of 36.0 MiB at 25 GB/s (bus bandwidth). " */
static const char *moving(struct arena *texts, const struct ranks *ranks)
{
	const struct rank_group *most = NULL;
	uint64_t sum_ns = 0, job_ns = 0;
	char each[32];

	for (size_t i = 0; i < ranks->n; i++)
		job_ns = max_u64(job_ns, rank_job_ns(ranks->all[i]));
	for (size_t i = 0; i < ranks->n_groups; i++) {
		const struct rank_group *g = &ranks->groups[i];

		if (rank_group_rate(ranks, g) <= 0)
			continue;
		sum_ns += g->transfer_ns;
		most = !most || g->transfer_ns > most->transfer_ns ? g : most;
	}
	if (!most || sum_ns < job_ns / MOVING_LEAST_PART)
		return "";
	format_bytes(each, sizeof(each), most->bytes);
	return arena_printf(
		texts,
		"When all ranks were there, moving the data took %s, beside other work or not, "
		"most in %s of %s at %s (bus bandwidth). ",
		text_time(texts, sum_ns), name_nccl_func(most->func), each,
		rate_words(texts, rank_group_rate(ranks, most)));
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static const struct table *nested(const struct idle_writer *w, const struct table_kind *kind,
				  void *rows, size_t n)
{
	struct table *table = arena_take(w->texts, xcalloc(1, sizeof(*table)));

	*table = (struct table){.kind = kind, .rows = arena_take(w->texts, rows), .n_rows = n};
	return table;
}

/* A phase that was not found has no end: then all of the process's time counts. */
static uint64_t work_ns(const struct expect *expect, const struct rank *rank)
{
	const struct process *process = rank->process;
	const struct phase *phase;
	uint64_t begin_ns, end_ns;

	if (!process)
		return 0;
	phase = &expect->phases.all[process->trace->index];
	end_ns = min_u64(phase->end_ns, process->last_ns);
	begin_ns = min_u64(max_u64(phase->begin_ns, process->first_ns), end_ns);
	return end_ns - begin_ns - process_dormant_ns(process, begin_ns, end_ns);
}

static const struct table *devices(const struct idle_writer *w, const struct rank *rank)
{
	struct device_row *rows = xcalloc(64, sizeof(*rows));
	uint64_t used = 0;
	size_t i, n = 0;

	for (i = 0; i < rank->n_processes; i++)
		used |= w->idle->accounts->gpus_used[rank->processes[i]->trace->index];
	for (i = 0; i < 64; i++)
		if (used >> i & 1)
			rows[n++].device = i;
	return nested(w, &devices_kind, rows, n);
}

static int by_length(const void *a, const void *b)
{
	const struct waited_row *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: COMPARE(x->rank, y->rank);
}

static const struct table *waited_for(const struct idle_writer *w, const struct ranks *ranks,
				      const struct rank *rank)
{
	struct waited_row *rows = xcalloc(ranks->n + 1, sizeof(*rows));
	size_t i, n = 0;

	for (i = 0; i < ranks->n; i++)
		if (rank->waited_for_ns[i])
			rows[n++] = (struct waited_row){.rank = ranks->all[i]->number,
							.ns = rank->waited_for_ns[i]};
	qsort(rows, n, sizeof(*rows), by_length);
	return nested(w, &waited_kind, rows, n);
}

/* "1.8 s of work: worked 15 %, idle 71 %, waited for other ranks 14 %: 243.9 ms for rank 1" */
static const char *summary(const struct idle_writer *w, const struct ranks *ranks,
			   const struct rank *rank, const struct rank_row *row)
{
	const struct idle_gpu *gpu = gpu_of_rank(w->idle, rank);
	double whole = (double)row->work_ns;
	const char *waits = text_rank_waits(w->texts, ranks, rank);
	const char *words = arena_printf(w->texts, "%s of work", text_time(w->texts, row->work_ns));

	if (gpu && row->busy_ns != UNKNOWN_NS) {
		uint64_t known_ns = exact_known_ns(&gpu->exact);

		words = arena_printf(
			w->texts, "%s: worked %s, idle %s", words,
			text_percent(w->texts,
				     (double)(row->busy_ns - min_u64(rank->wait_ns, row->busy_ns)),
				     (double)known_ns),
			text_percent(w->texts, (double)row->idle_ns, (double)known_ns));
	} else if (row->idle_ns && row->idle_ns >= row->work_ns / 1000) {
		words = arena_printf(w->texts, "%s: idle %s or more", words,
				     text_percent(w->texts, (double)row->idle_ns, whole));
	}
	if (!rank->timed)
		return rank->operations
			       ? arena_printf(w->texts, "%s, %s that could not be compared", words,
					      text_count(w->texts, rank->operations, "collective"))
			       : words;
	if (!rank->wait_ns)
		return arena_printf(w->texts, "%s, waited for no other rank in %s", words,
				    text_count(w->texts, rank->timed, "collective"));
	return arena_printf(w->texts, "%s, waited for other ranks %s in %s%s%s", words,
			    text_percent(w->texts, (double)rank->wait_ns, whole),
			    text_count(w->texts, rank->timed, "collective"), *waits ? ": " : "",
			    waits);
}

/* "held the others up for 243.9 ms, as the last one of 12 collectives in 12 steps; its GPU …" */
static const char *held_words(const struct idle_writer *w, const struct rank *rank,
			      const struct table *causes)
{
	const char *largest = idle_causes_largest(w, causes, rank->late_ns);

	return arena_printf(w->texts,
			    "%s held the others up for %s, last in %llu of %s; the others' GPUs "
			    "waited %s in all. What it did that they did not, or for longer: %s",
			    text_rank_name(w->texts, rank), text_time(w->texts, rank->late_ns),
			    (unsigned long long)rank->last_count,
			    text_count(w->texts, rank->timed, "collective"),
			    text_time(w->texts, rank->caused_ns),
			    largest ?: "nothing that was recorded");
}

static struct rank_row describe(const struct idle_writer *w, const struct ranks *ranks,
				const struct rank *rank)
{
	const struct idle_gpu *gpu = gpu_of_rank(w->idle, rank);
	struct rank_row row = {
		.who = text_rank_where(w->texts, rank),
		.host = rank->process ? text_known_host(w->texts, rank->process->trace->host)
				      : NULL,
		.job = rank->job ? arena_printf(w->texts, "%s", rank->job) : NULL,
		.process = rank->process ? text_program(w->texts, rank->process->trace) : NULL,
		.rank = rank->number,
		.local_rank = rank->local_rank < 0 ? UNKNOWN_NS : (uint64_t)rank->local_rank,
		.restarts = rank->restarts,
		.operations = rank->operations,
		.timed = rank->timed,
		.in_collectives_ns = rank->in_collectives_ns,
		.wait_ns = rank->wait_ns,
		.caused_ns = rank->caused_ns,
		.late_ns = rank->late_ns,
		.unshared_ns = rank->unshared.ns,
		.held_ns = rank->held_ns,
		.last_count = rank->last_count,
		.steps = rank->steps,
		.gpu_late_ns = rank->gpu_late_ns,
		.start_wait_ns = rank->start_wait_ns,
		.start_caused_ns = rank->start_caused_ns,
		.work_ns = work_ns(w->idle->accounts->expect, rank),
		.busy_ns = UNKNOWN_NS,
		.collective_ns = rank->exposed_known ? rank->collective_ns : UNKNOWN_NS,
		.exposed_ns = rank->exposed_known ? rank->exposed_ns : UNKNOWN_NS,
		.align_error_ns = rank->align_error_ns,
		.host_error_ns = rank->host_error_ns,
		.gpus = devices(w, rank),
		.waited_for = waited_for(w, ranks, rank),
	};

	if (gpu && w->idle->accounts->model->complete && idle_gpu_is_exact(gpu)) {
		row.busy_ns = gpu->exact.busy_ns;
		row.idle_ns = gpu->exact.idle_ns;
	} else if (gpu && !gpu_why_uncertain(w->idle->accounts->stats, gpu)) {
		row.idle_ns = min_u64(idle_certain_ns(gpu), row.work_ns);
	}
	row.summary = summary(w, ranks, rank, &row);
	if (rank->late_ns)
		row.causes = idle_causes(w, &rank_causes_kind, idle_owner_rank(rank->index), NULL,
					 rank->late_ns);
	if (rank->late_ns && rank->late_ns * 100 >= row.work_ns * TOLD_PERCENT)
		row.held = held_words(w, rank, row.causes);
	return row;
}

/* In text the worst come first, and those that held nobody up have no causes. */
static int by_late(const void *a, const void *b)
{
	const struct rank *x = *(const struct rank *const *)a, *y = *(const struct rank *const *)b;

	return COMPARE(y->late_ns, x->late_ns) ?: COMPARE(x->index, y->index);
}

/* ---- what is known of them ------------------------------------------------------------------- */

static const char *state_words(const struct idle_writer *w, const struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->n_states; i++)
		if (ranks->states[i].seen && ranks->states[i].state == SPY_NCCL_TAKEN)
			return arena_printf(w->texts,
					    "NCCL's operations were not recorded: another profiler "
					    "plugin is in use, %s. ",
					    ranks->states[i].text);
	return "";
}

/* "1,668 collectives", "2 collectives and 520 sends" */
static const char *aligned_by(struct arena *texts, const struct ranks *ranks)
{
	const char *collectives = text_count(texts, ranks->align_operations, "collective");
	const char *sends = text_count(texts, ranks->align_messages, "send");

	if (!ranks->align_messages)
		return collectives;
	return ranks->align_operations ? arena_printf(texts, "%s and %s", collectives, sends)
				       : sends;
}

static const char *not_compared(struct arena *texts, const struct ranks *ranks)
{
	uint64_t missing = ranks->incomplete + ranks->lost;
	const char *parts = "", *clocks = "";

	if (missing)
		parts = arena_printf(texts, "%s of which a rank's part is missing",
				     text_count(texts, missing, "collective"));
	if (ranks->unaligned)
		clocks = arena_printf(texts, "%s whose clocks could not be aligned",
				      text_count(texts, ranks->unaligned, "collective"));
	if (!*parts && !*clocks)
		return "";
	return arena_printf(texts, "Not compared: %s%s%s. ", parts, *parts && *clocks ? ", " : "",
			    clocks);
}

static const char *intro(const struct idle_writer *w, const struct ranks *ranks)
{
	const char *words = state_words(w, ranks);
	struct straggler stages = {.rank = NULL};
	bool exposed = false;

	for (size_t i = 0; i < ranks->n; i++)
		exposed |= ranks->all[i]->exposed_known;
	if (ranks->world_size > ranks->n)
		words = arena_printf(w->texts, "%s%zu of %u ranks were recorded. ", words, ranks->n,
				     ranks->world_size);
	if (ranks->any && ranks->by_host_times)
		words = arena_printf(
			w->texts,
			"%sTimes are those at which hosts saw operations begin: this NCCL has "
			"no times of GPUs. ",
			words);
	else if (ranks->any && ranks->align_operations + ranks->align_messages)
		words = arena_printf(w->texts, "%sClocks of GPUs were aligned by %s, to %s. ",
				     words, aligned_by(w->texts, ranks),
				     text_time(w->texts, ranks->align_error_ns));
	if (straggler_stages(ranks, &stages))
		words = arena_printf(
			w->texts,
			"%sRanks wait mostly in sends and receives, as the stages of a pipeline do: "
			"each %s or more, which is what the schedule costs where all have as much to "
			"do (the bubble); and %s more in all, for ranks that have more. ",
			words, text_time(w->texts, stages.waits_ns),
			text_time(w->texts, stages.more_ns));
	words = arena_printf(w->texts, "%s%s", words, moving(w->texts, ranks));
	words = arena_printf(w->texts, "%s%s", words, not_compared(w->texts, ranks));
	if (ranks->graphs)
		words = arena_printf(w->texts,
				     "%sCUDA graphs with collectives were compared "
				     "by when hosts launched them, %s. ",
				     words, text_count(w->texts, ranks->graphs, "time"));
	else if (ranks->captured)
		words = arena_printf(w->texts, "%s%s in CUDA graphs %s left out. ", words,
				     text_count(w->texts, ranks->captured, "collective"),
				     ranks->captured == 1 ? "is" : "are");
	if (ranks->untimed)
		words = arena_printf(
			w->texts,
			"%sNo times of %s: they come in quick succession, or are no kernels. ",
			words, text_count(w->texts, ranks->untimed, "collective"));
	if (ranks->any && !exposed)
		words = arena_printf(
			w->texts,
			"%sWhich of them ran beside other work is not known: cudaspy run "
			"--gpu measures it. ",
			words);
	return *words ? words : NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

#define NUMBERS_TOLD 6

/* "8, 16, 24 …" */
static const char *numbers(const struct idle_writer *w, const struct rank_steps *steps)
{
	const char *words = "";
	size_t i;

	for (i = 0; i < steps->n_slow && i < NUMBERS_TOLD; i++)
		words = arena_printf(w->texts, "%s%s%llu", words, i ? ", " : "",
				     (unsigned long long)steps->slow[i].number);
	return i < steps->slow_count ? arena_printf(w->texts, "%s …", words) : words;
}

static struct slow_row describe_slow(const struct idle_writer *w, const struct ranks *ranks,
				     const struct rank_step *step)
{
	const struct rank *last = step->last < ranks->n ? ranks->all[step->last] : NULL;
	const char *name = NULL;
	struct slow_row row = {.number = step->number,
			       .duration_ns = step->ns,
			       .wait_ns = step->wait_ns,
			       .late_ns = step->late_ns,
			       .rank = last ? last->number : UNKNOWN_NS};

	if (last && step->process) {
		row.cause = idle_cause_codes[step->cause.cause];
		row.site = idle_part_place(w, step->process, &step->cause);
		name = idle_part_name(w, step->process, &step->cause);
	}
	row.text = arena_printf(w->texts, "step %llu: %s%s%s%s%s%s%s",
				(unsigned long long)step->number, text_time(w->texts, step->ns),
				last ? "; " : "", last ? text_rank_name(w->texts, last) : "",
				name ? ", " : "", name ?: "", row.site ? ": " : "", row.site ?: "");
	return row;
}

static const char *steps_by(const struct rank_steps *steps)
{
	return steps->by == RANK_STEPS_NVTX ? "nvtx" : "pattern";
}

static void add_steps(struct report *report, const struct idle_writer *w, const struct ranks *ranks)
{
	const struct rank_steps *steps = &ranks->steps;
	struct steps_row *row = xcalloc(1, sizeof(*row));
	struct slow_row *slow = xcalloc(RANK_STEPS_SLOW_MOST, sizeof(*slow));
	const char *words;

	*row = (struct steps_row){.by = steps_by(steps),
				  .range = steps->range ? steps->range->name : NULL,
				  .count = steps->count,
				  .collectives = steps->operations,
				  .median_ns = steps->median_ns,
				  .slow_count = steps->slow_count,
				  .slow_every = steps->slow_every,
				  .slow_ns = steps->slow_ns,
				  .slow_more_ns = steps->slow_more_ns,
				  .wait_ns = steps->wait_ns};
	for (size_t i = 0; i < steps->n_slow; i++)
		slow[i] = describe_slow(w, ranks, &steps->slow[i]);
	row->slow = nested(w, &slow_kind, slow, steps->n_slow);
	words = arena_printf(
		w->texts, "%s, by %s: %s each in the median",
		text_count(w->texts, steps->count, "step"),
		steps->by == RANK_STEPS_NVTX
			? arena_printf(w->texts, "the program's range %s", row->range ?: "")
			: arena_printf(w->texts, "the pattern of %s",
				       text_count(w->texts, steps->operations, "collective")),
		text_time(w->texts, steps->median_ns));
	if (steps->slow_count)
		words = arena_printf(
			w->texts, "%s; %s %s longer, %s on average: %s%s", words,
			text_count(w->texts, steps->slow_count, "step"),
			steps->slow_count == 1 ? "is" : "are",
			text_time(w->texts, steps->slow_ns / steps->slow_count),
			steps->slow_every ? arena_printf(w->texts, "mostly each %s one, ",
							 text_ordinal(w->texts, steps->slow_every))
					  : "",
			numbers(w, steps));
	row->text = words;
	report_add(report, &steps_kind, row, steps->by == RANK_STEPS_UNKNOWN ? 0 : 1);
}

/* ---- collective operations ------------------------------------------------------------------- */

/* Those who cost most first, whatever order ranks were read in. */
static int by_wait(const void *a, const void *b)
{
	const struct share_row *x = a, *y = b;

	return COMPARE(y->wait_ns, x->wait_ns) ?: COMPARE(x->rank, y->rank);
}

static const struct table *shares(const struct idle_writer *w, const struct ranks *ranks,
				  const struct rank_group *group)
{
	struct share_row *rows = xcalloc(group->n_last + 1, sizeof(*rows));
	uint64_t whole_ns = 0;
	size_t i, n = 0;

	for (i = 0; i < group->n_last; i++)
		whole_ns += group->last[i].ns;
	for (i = 0; i < group->n_last; i++)
		if (group->last[i].count)
			rows[n++] = (struct share_row){
				.rank = ranks->all[i]->number,
				.percent = whole_ns ? (uint64_t)((double)group->last[i].ns * 100 /
									 (double)whole_ns +
								 0.5)
						    : 0,
				.count = group->last[i].count,
				.wait_ns = group->last[i].ns};
	if (n)
		qsort(rows, n, sizeof(*rows), by_wait);
	return nested(w, &shares_kind, rows, n);
}

static void add_groups(struct report *report, const struct idle_writer *w,
		       const struct ranks *ranks)
{
	struct group_row *rows = xcalloc(ranks->n_groups + 1, sizeof(*rows));

	for (size_t i = 0; i < ranks->n_groups; i++) {
		const struct rank_group *g = &ranks->groups[i];

		rows[i] = (struct group_row){
			.comm = arena_printf(w->texts, "%016llx", (unsigned long long)g->hash),
			.comm_name = g->comm_name && *g->comm_name ? g->comm_name : NULL,
			.func = name_shown_func(g->graphs ? SPY_NCCL_FUNCS : g->func),
			.count = g->operations,
			.bytes = g->bytes,
			.elements = g->count,
			.ranks = g->comm_ranks,
			.wait_ns = g->wait_ns,
			.late_ns = g->late_ns,
			.transfer_ns = g->transfer_ns,
			.rate = rate_words(w->texts, rank_group_rate(ranks, g)),
			.bus_bytes_per_s = rank_group_rate(ranks, g) > 0
						   ? (uint64_t)rank_group_rate(ranks, g)
						   : UNKNOWN_NS,
			.in_a_row = g->in_a_row,
			.together = g->nobody,
			.last_rank_share = shares(w, ranks, g),
		};
	}
	report_add(report, &groups_kind, rows, ranks->n_groups);
}

/* ---- all ------------------------------------------------------------------------------------- */

void report_ranks(struct report *report, const struct ranks *ranks, struct symbolizer *symbols)
{
	bool seen = ranks->n > 1 || ranks->any;
	struct rank **order = xcalloc(ranks->n + 1, sizeof(struct rank *));
	struct rank_row *rows = xcalloc(ranks->n + 1, sizeof(*rows));
	struct idle_writer w;
	struct table *table;

	memcpy(order, ranks->order, ranks->n * sizeof(struct rank *));
	if (report->text_only && ranks->n > ranks_kind.text_rows)
		qsort(order, ranks->n, sizeof(*order), by_late);
	idle_writer_init(&w, &report->arena, ranks->idle, symbols);
	for (size_t i = 0; seen && i < report_rows(report, &ranks_kind, ranks->n); i++)
		rows[i] = describe(&w, ranks, order[i]);
	table = report_add(report, &ranks_kind, rows, seen ? ranks->n : 0);
	if (seen)
		table->intro = intro(&w, ranks);
	add_steps(report, &w, ranks);
	add_groups(report, &w, ranks);
	idle_writer_release(&w);
	free(order);
}

/* "For rank 1 it waited 243.9 ms, the longest in …: rank 1 was …" */
static const char *chain_words(const struct idle_writer *w, const struct ranks *ranks,
			       const struct rank *rank)
{
	const char *words = "";

	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank *other = ranks->order[i];
		uint64_t ns = rank->waited_for_ns[other->index];
		const struct table *causes;

		if (ns < rank->wait_ns / 20 || !ns)
			continue;
		causes = idle_causes(w, &rank_causes_kind, idle_owner_rank(other->index), NULL,
				     other->late_ns);
		words = arena_printf(
			w->texts,
			"%s%s%s's GPU waited %s in collectives for %s, which was, unlike "
			"the others: %s",
			words, *words ? ". " : "", text_rank_name(w->texts, rank),
			text_time(w->texts, ns), text_rank_where(w->texts, other),
			idle_causes_largest(w, causes, other->late_ns) ?: "(nothing recorded)");
	}
	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank *other = ranks->order[i];
		uint64_t ns = other->waited_for_ns[rank->index];

		if (ns && ns >= rank->caused_ns / 20)
			words = arena_printf(w->texts, "%s%s%s's GPU waited %s for it", words,
					     *words ? ". " : "", text_rank_where(w->texts, other),
					     text_time(w->texts, ns));
	}
	return *words ? words : NULL;
}

void report_rank(struct report *report, const struct ranks *ranks, struct symbolizer *symbols,
		 const struct rank *rank)
{
	struct rank_row *row = xcalloc(1, sizeof(*row));
	struct idle_writer w;

	idle_writer_init(&w, &report->arena, ranks->idle, symbols);
	*row = describe(&w, ranks, rank);
	row->others = chain_words(&w, ranks, rank);
	report_add(report, &ranks_kind, row, 1)->intro = intro(&w, ranks);
	add_groups(report, &w, ranks);
	idle_writer_release(&w);
}
