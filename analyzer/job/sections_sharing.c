/*
 * analyzer/job/sections_sharing.c: who used a GPU beside whom, in turns or by MPS, and who waited for another user's server.
 * Called by sections.c.
 */
#include <stdlib.h>
#include "sections.h"
#include "text/text.h"

struct sharing_row {
	const char *rank, *gpu, *uuid, *how, *with, *words, *percentage;
	uint64_t pid, user, from_ns, until_ns, shared_ns, turns_ns, waited_ns, others, turn_ns;
};

static const struct column sharing_columns[] = {
	COLUMN(struct sharing_row, rank, "rank", UNIT_TEXT),
	COLUMN(struct sharing_row, gpu, "GPU", UNIT_TEXT),
	COLUMN(struct sharing_row, shared_ns, "shared", UNIT_NS),
	COLUMN(struct sharing_row, others, "others", UNIT_COUNT),
	COLUMN(struct sharing_row, how, "how", UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct sharing_row, words),
	COLUMN_JSON(struct sharing_row, uuid, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct sharing_row, user, UNIT_PLAIN),
	COLUMN_JSON(struct sharing_row, from_ns, UNIT_NS),
	COLUMN_JSON(struct sharing_row, until_ns, UNIT_NS),
	COLUMN_JSON(struct sharing_row, turns_ns, UNIT_NS),
	COLUMN_JSON(struct sharing_row, waited_ns, UNIT_NS),
	COLUMN_JSON(struct sharing_row, with, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, percentage, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, turn_ns, UNIT_NS),
};

static const struct table_kind sharing_kind = {
	TABLE("sharing", "SHARED GPUS: ranks that used one at the same time", struct sharing_row,
	      sharing_columns),
	.text_rows = 16,
};

static const char *words_of(struct arena *texts, const struct job_tenant *t)
{
	const char *words = "";

	if (t->with)
		words = arena_printf(texts, "with %s", t->with);
	if (job_is_sliced(t))
		words = arena_printf(texts,
				     "%s; for %s another process had its time slices on this GPU; "
				     "its calls waited for GPUs for %s in all",
				     words, text_time(texts, t->sliced_ns),
				     text_time(texts, t->waited_ns));
	if (t->client && *t->percentage)
		words = arena_printf(texts, "%s; its share is %s %% of the threads", words,
				     t->percentage);
	if (t->turn_ns)
		words = arena_printf(texts,
				     "%s%sin cuInit it waited for %s, until the MPS server had "
				     "finished the processes of user %llu",
				     words, *words ? "; " : "", text_time(texts, t->turn_ns),
				     (unsigned long long)t->server_user);
	return words;
}

static const char *how_of(const struct job_tenant *t)
{
	if (!t->mates && !t->rivals)
		return "another user's MPS";
	return !t->rivals ? "MPS" : !t->mates ? "time slices" : "MPS, time slices";
}

static struct sharing_row row_of(struct arena *texts, const struct job *job,
				 const struct job_tenant *t)
{
	return (struct sharing_row){
		.rank = job_rank_words(texts, job, t->rank),
		.gpu = *t->gpu ? t->gpu : t->uuid,
		.uuid = t->uuid,
		.how = how_of(t),
		.with = t->with,
		.words = words_of(texts, t),
		.percentage = *t->percentage ? t->percentage : NULL,
		.pid = t->pid,
		.user = t->user,
		.from_ns = job_at_ns(job, t->rank, t->from_ns),
		.until_ns = job_at_ns(job, t->rank, t->until_ns),
		.shared_ns = t->shared_ns,
		.turns_ns = t->sliced_ns,
		.waited_ns = t->waited_ns,
		.others = t->mates + t->rivals,
		.turn_ns = t->turn_ns,
	};
}

void job_report_sharing(struct report *report, const struct job *job)
{
	struct sharing_row *rows = xcalloc(job->n_tenants + 1, sizeof(*rows));
	struct table *table;
	bool slices = false;
	size_t i, n = 0;

	for (i = 0; i < job->n_tenants; i++) {
		const struct job_tenant *t = &job->tenants[i];

		if (!t->shared_ns && !t->turn_ns)
			continue;
		rows[n++] = row_of(&report->arena, job, t);
		slices |= t->rivals != 0;
	}
	table = report_add(report, &sharing_kind, rows, n);
	if (slices)
		table->intro =
			"Processes take turns on a GPU, one at a time, unless they are clients of "
			"one MPS server: start the daemon (nvidia-cuda-mps-control -d) before "
			"them to let their work run at the same time.";
}
