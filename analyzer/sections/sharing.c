/*
 * analyzer/sections/sharing.c: which processes shared a GPU, when, and how. Called by `report` and
 * `info` after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "findings/sharing.h"
#include "text/text.h"

/* ---- processes on one GPU at the same time -------------------------------------------------- */

struct sharing_row {
	const char *process, *gpu, *uuid, *how, *text, *with, *percentage, *memory_limit, *client;
	uint64_t pid, device, user, from_ns, until_ns, shared_ns, partners, multiprocessors;
};

static const struct column sharing_columns[] = {
	COLUMN(struct sharing_row, process, "process", UNIT_TEXT),
	COLUMN(struct sharing_row, gpu, "GPU", UNIT_TEXT),
	COLUMN(struct sharing_row, from_ns, "from", UNIT_NS),
	COLUMN(struct sharing_row, until_ns, "until", UNIT_NS),
	COLUMN(struct sharing_row, shared_ns, "shared", UNIT_NS),
	COLUMN(struct sharing_row, partners, "others", UNIT_COUNT),
	COLUMN(struct sharing_row, how, "how", UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct sharing_row, text),
	COLUMN_JSON(struct sharing_row, uuid, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct sharing_row, device, UNIT_DEVICE),
	COLUMN_JSON(struct sharing_row, user, UNIT_PLAIN),
	COLUMN_JSON(struct sharing_row, with, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, client, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, percentage, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, memory_limit, UNIT_TEXT),
	COLUMN_JSON(struct sharing_row, multiprocessors, UNIT_PLAIN),
};

static const struct table_kind sharing_kind = {
	TABLE("sharing", "SHARED GPUS: processes that used one at the same time",
	      struct sharing_row, sharing_columns),
	.text_rows = 16,
};

#define NAMES_SHOWN 4

/* "nbody.12, nbody.13 and 5 more". */
struct names {
	const char *text;
	uint64_t count;
};

static void add_name(struct arena *texts, struct names *names, const struct process *process)
{
	if (++names->count <= NAMES_SHOWN)
		names->text =
			arena_printf(texts, "%s%s%s", names->text ?: "", names->text ? ", " : "",
				     text_process(texts, process->trace));
}

static const char *names_text(struct arena *texts, const struct names *names)
{
	if (names->count <= NAMES_SHOWN)
		return names->text;
	return arena_printf(texts, "%s and %llu more", names->text,
			    (unsigned long long)(names->count - NAMES_SHOWN));
}

/* The others whose use overlaps with one process's. */
struct neighbours {
	struct names names;
	uint64_t mates, rivals; /* that run at the same time, that take turns with it */
	uint64_t shared_ns; /* how long any of them was there */
};

/* From a GPU's tenants, in the order of their beginnings. There may be thousands: nothing is done
 * for a pair of them that could be done for one. */
static struct neighbours find_neighbours(struct arena *texts, const struct tenant *self,
					 const struct tenant *tenants, size_t n)
{
	struct neighbours found = {.shared_ns = tenant_shared_ns(self, tenants, n)};

	for (size_t i = 0; i < n && tenants[i].use->first_ns < self->use->last_ns; i++) {
		if (!tenants_overlap(self, &tenants[i]))
			continue;
		add_name(texts, &found.names, tenants[i].process);
		if (tenants_together(self, &tenants[i]))
			found.mates++;
		else
			found.rivals++;
	}
	return found;
}

static const char *share_text(struct arena *texts, const struct tenant *self)
{
	const struct mps *mps = &self->process->mps;
	const char *text = "";

	if (!self->client)
		return text;
	if (mps->percentage && *mps->percentage)
		text = arena_printf(texts, "; its share is %s %% of the threads", mps->percentage);
	if (self->gpu->multiprocessors)
		text = arena_printf(texts, "%s%s%u multiprocessors", text,
				    *text ? ", " : "; it has ", self->gpu->multiprocessors);
	if (mps->memory_limit && *mps->memory_limit)
		text = arena_printf(texts, "%s; its memory is limited: %s", text,
				    mps->memory_limit);
	return text;
}

/* A call may have begun before all that is in the trace. */
static uint64_t since_first(const struct model *model, uint64_t ns)
{
	return ns > model->first_ns ? ns - model->first_ns : 0;
}

static struct sharing_row describe(struct arena *texts, const struct model *model,
				   const struct tenant *self, const struct neighbours *others)
{
	struct sharing_row row = {
		.process = text_process(texts, self->process->trace),
		.gpu = arena_printf(texts, "%s", self->gpu->name),
		.uuid = arena_printf(texts, "%s", self->gpu->uuid),
		.with = names_text(texts, &others->names),
		.client = self->client ? "yes" : "no",
		.pid = self->process->trace->pid,
		.device = self->gpu->device,
		.user = self->process->mps.uid,
		.from_ns = since_first(model, self->use->first_ns),
		.until_ns = since_first(model, self->use->last_ns),
		.shared_ns = others->shared_ns,
		.partners = others->names.count,
		.multiprocessors = self->gpu->multiprocessors,
	};

	if (self->process->mps.ns) {
		row.percentage = arena_printf(texts, "%s", self->process->mps.percentage);
		row.memory_limit = arena_printf(texts, "%s", self->process->mps.memory_limit);
	}
	row.how = !others->rivals ? "MPS" : !others->mates ? "time slices" : "MPS, time slices";
	row.text = arena_printf(texts, "with %s%s", row.with, share_text(texts, self));
	return row;
}

static void add_sharing(struct report *report, const struct callstats *stats)
{
	struct sharing_row *rows = NULL;
	struct tenant *tenants;
	struct table *table;
	size_t i, n, begin = 0, end = 0, n_rows = 0;
	bool slices = false;

	tenants = tenants_find(stats, &n);
	for (i = 0; i < n; i++) {
		struct neighbours others;
		struct sharing_row row;

		if (i == end) /* the next GPU's */
			end = tenants_of_gpu(tenants, n, begin = i);
		others = find_neighbours(&report->arena, &tenants[i], &tenants[begin], end - begin);
		if (!others.shared_ns)
			continue;
		row = describe(&report->arena, stats->model, &tenants[i], &others);
		rows = grow(rows, n_rows, sizeof(*rows));
		rows[n_rows++] = row;
		slices |= strcmp(row.how, "MPS") != 0;
	}
	free(tenants);
	table = report_add(report, &sharing_kind, rows, n_rows);
	if (slices)
		table->intro =
			"Processes take turns on a GPU, one at a time, unless they are clients of "
			"one MPS server: start the daemon (nvidia-cuda-mps-control -d) before "
			"them to let their work run at the same time.";
}

/* ---- waits for another user's server --------------------------------------------------------- */

struct turn_row {
	const char *process, *text;
	uint64_t pid, user, server, server_user, waited_ns;
};

static const struct column turn_columns[] = {
	COLUMN(struct turn_row, process, "process", UNIT_TEXT),
	COLUMN(struct turn_row, user, "user", UNIT_PLAIN),
	COLUMN(struct turn_row, server, "server", UNIT_PLAIN),
	COLUMN(struct turn_row, server_user, "its user", UNIT_PLAIN),
	COLUMN(struct turn_row, waited_ns, "waited", UNIT_NS),
	COLUMN_TEXT_WORDS(struct turn_row, text),
	COLUMN_JSON(struct turn_row, pid, UNIT_PLAIN),
};

static const struct table_kind turn_kind = {
	TABLE("mps_turns", "WAITED FOR ANOTHER USER'S MPS SERVER", struct turn_row, turn_columns),
	.advice =
		"A daemon serves one user at a time: clients of another wait, without an error, "
		"until the last client of the first has ended. Run them as one user, or give each "
		"user a daemon with a CUDA_MPS_PIPE_DIRECTORY and GPUs of its own.",
};

/* Processes of the trace that were that server's clients. */
static const char *clients_of(struct arena *texts, const struct model *model,
			      const struct host *host, const struct mps_server *self)
{
	struct names names = {0};

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];

		if (process->trace->host == host && process->mps.ns &&
		    process->mps.server == self->server && process->mps.uid == self->uid)
			add_name(texts, &names, process);
	}
	return names.count ? names_text(texts, &names) : "processes that were not recorded";
}

static void add_turns(struct report *report, const struct callstats *stats)
{
	struct turn_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < stats->model->n_processes; i++) {
		const struct process *process = &stats->model->processes[i];
		const struct mps *before = &process->mps_before;
		struct mps_server mps;
		struct turn_row row;

		if (!model_mps_in_the_way(stats->model, process, NULL, &mps) ||
		    !sharing_turn_ns(stats, process))
			continue;
		row = (struct turn_row){
			.process = text_process(&report->arena, process->trace),
			.pid = process->trace->pid,
			.user = before->uid,
			.server = mps.server,
			.server_user = mps.uid,
			.waited_ns = sharing_turn_ns(stats, process),
		};
		row.text = report_text(
			report,
			"%s; the daemon's server worked for user %u (%s) when it "
			"called cuInit, or before it got its own",
			process->mps.ns || process->init_ns
				? "at most, because it contains what else cuInit did"
				: "and had not come out of cuInit",
			mps.uid,
			clients_of(&report->arena, stats->model, process->trace->host, &mps));
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = row;
	}
	report_add(report, &turn_kind, rows, n);
}

void report_sharing(struct report *report, const struct callstats *stats)
{
	add_sharing(report, stats);
	add_turns(report, stats);
}

/* ---- info ----------------------------------------------------------------------------------- */

struct mps_row {
	const char *process, *client, *pipe_directory, *percentage, *memory_limit, *priority;
	uint64_t pid, user, daemon, server, server_user;
};

static const struct column mps_columns[] = {
	COLUMN(struct mps_row, process, "process", UNIT_TEXT),
	COLUMN(struct mps_row, client, "client", UNIT_TEXT),
	COLUMN(struct mps_row, user, "user", UNIT_PLAIN),
	COLUMN(struct mps_row, daemon, "daemon", UNIT_PLAIN),
	COLUMN(struct mps_row, server, "server", UNIT_PLAIN),
	COLUMN(struct mps_row, server_user, "its user", UNIT_PLAIN),
	COLUMN(struct mps_row, percentage, "threads %", UNIT_TEXT),
	COLUMN(struct mps_row, memory_limit, "memory limit", UNIT_TEXT),
	COLUMN(struct mps_row, priority, "priority", UNIT_TEXT),
	COLUMN(struct mps_row, pipe_directory, "pipe directory", UNIT_TEXT),
	COLUMN_JSON(struct mps_row, pid, UNIT_PLAIN),
};

static const struct table_kind mps_kind = {
	TABLE("mps", "MPS: processes that found its control pipe", struct mps_row, mps_columns),
};

/* Of any of its GPUs: "yes", "no"; NULL unknown. */
static const char *client_text(const struct process *process)
{
	const char *text = NULL;

	for (size_t i = 0; i < process->n_gpus; i++) {
		if (process->gpus[i].client == SPY_CLIENT_YES)
			return "yes";
		if (process->gpus[i].client == SPY_CLIENT_NO)
			text = "no";
	}
	return text;
}

static const char *set_text(struct arena *texts, const char *text)
{
	return *text ? arena_printf(texts, "%s", text) : NULL;
}

void report_mps(struct report *report, const struct model *model)
{
	struct mps_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];
		const struct mps *mps = process->mps.ns ? &process->mps : &process->mps_before;

		if (!mps->ns || !*mps->directory)
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct mps_row){
			.process = text_process(&report->arena, process->trace),
			.client = client_text(process),
			.pipe_directory = set_text(&report->arena, mps->directory),
			.percentage = set_text(&report->arena, mps->percentage),
			.memory_limit = set_text(&report->arena, mps->memory_limit),
			.priority = set_text(&report->arena, mps->priority),
			.pid = process->trace->pid,
			.user = mps->uid,
			.daemon = mps->daemon,
			.server = mps->server,
			.server_user = mps->server_uid,
		};
	}
	report_add(report, &mps_kind, rows, n);
}
