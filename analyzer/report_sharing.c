/*
 * analyzer/report_sharing.c: who shared a GPU with whom, when, and how. Called by `report` and `info`
 * after the last record.
 *
 * GPUs are the same if their UUIDs are; a process uses one from the first to the last of its calls
 * that allocate, copy, launch or work on a stream there. Whether a process is a client of MPS is the
 * driver's own answer; drivers that give none are taken to follow the control pipe.
 */
#include <stdlib.h>
#include <string.h>
#include "report_sharing.h"
#include "report_trace.h"
#include "report_words.h"

/* One process on one GPU. */
struct tenant {
	const struct process *process;
	const struct gpu *gpu;
	const struct device_use *use;
	bool client; /* of MPS */
};

static bool is_client(const struct process *process, const struct gpu *gpu)
{
	if (gpu->client == SPY_CLIENT_UNKNOWN)
		return process->mps.ns && *process->mps.directory && process->mps.server;
	return gpu->client == SPY_CLIENT_YES;
}

static struct tenant *find_tenants(const struct analysis *a, size_t *n_tenants)
{
	struct tenant *tenants = NULL;
	size_t i, j, n = 0;

	for (i = 0; i < a->model.n_processes; i++) {
		const struct process *process = &a->model.processes[i];

		for (j = 0; j < process->n_gpus; j++) {
			const struct gpu *gpu = &process->gpus[j];
			const struct device_use *use =
				&a->stats.uses[i * CALLSTATS_DEVICES + gpu->device];

			if (gpu->device >= SPY_DEVICE_NONE || !use->first_ns || !*gpu->uuid)
				continue;
			tenants = grow(tenants, n, sizeof(*tenants));
			tenants[n++] = (struct tenant){process, gpu, use, is_client(process, gpu)};
		}
	}
	*n_tenants = n;
	return tenants;
}

static bool same_gpu(const struct tenant *a, const struct tenant *b)
{
	return !strcmp(a->gpu->uuid, b->gpu->uuid);
}

/* Of two that are on one GPU. */
static bool overlap(const struct tenant *a, const struct tenant *b)
{
	return a->use->first_ns < b->use->last_ns && b->use->first_ns < a->use->last_ns &&
	       a->process != b->process;
}

/* Clients of one server run at the same time; any other two take turns. */
static bool together(const struct tenant *a, const struct tenant *b)
{
	const struct mps *x = &a->process->mps, *y = &b->process->mps;

	if (!a->client || !b->client)
		return false;
	if (x->server && y->server)
		return x->server == y->server;
	return x->ns && y->ns && !strcmp(x->directory, y->directory);
}

/* ---- processes on one GPU at the same time -------------------------------------------------- */

struct sharing_row {
	const char *process, *gpu, *uuid, *how, *text, *with, *percentage, *memory_limit, *client;
	uint64_t pid, device, user, from_ns, until_ns, shared_ns, partners, multiprocessors;
};

/* clang-format off */
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
/* clang-format on */

static const struct table_kind sharing_kind = {
	.key = "sharing",
	.title = "SHARED GPUS: processes that used one at the same time",
	.columns = sharing_columns,
	.n_columns = ARRAY_SIZE(sharing_columns),
	.row_bytes = sizeof(struct sharing_row),
	.text_rows = 16,
};

#define NAMES_SHOWN 4

/* "nbody.12, nbody.13 and 5 more". */
struct names {
	const char *text;
	uint64_t count;
};

static void add_name(struct report *report, struct names *names, const struct process *process)
{
	if (++names->count <= NAMES_SHOWN)
		names->text =
			report_text(report, "%s%s%s", names->text ?: "", names->text ? ", " : "",
				    report_process(report, process->trace));
}

static const char *names_text(struct report *report, const struct names *names)
{
	if (names->count <= NAMES_SHOWN)
		return names->text;
	return report_text(report, "%s and %llu more", names->text,
			   (unsigned long long)(names->count - NAMES_SHOWN));
}

/* The others whose use overlaps with one process's. */
struct neighbours {
	struct names names;
	uint64_t mates, rivals; /* that run at the same time, that take turns with it */
	uint64_t shared_ns; /* how long any of them was there */
};

/* From a GPU's tenants, in the order of their beginnings. There may be thousands: nothing is done for a
 * pair of them that could be done for one. */
static struct neighbours find_neighbours(struct report *report, const struct tenant *self,
					 const struct tenant *tenants, size_t n)
{
	uint64_t covered_ns = self->use->first_ns;
	struct neighbours found = {0};
	size_t i;

	for (i = 0; i < n && tenants[i].use->first_ns < self->use->last_ns; i++) {
		uint64_t begin = tenants[i].use->first_ns, end = tenants[i].use->last_ns;

		if (!overlap(self, &tenants[i]))
			continue;
		add_name(report, &found.names, tenants[i].process);
		if (together(self, &tenants[i]))
			found.mates++;
		else
			found.rivals++;
		if (begin < covered_ns)
			begin = covered_ns;
		if (end > self->use->last_ns)
			end = self->use->last_ns;
		if (end <= begin)
			continue;
		found.shared_ns += end - begin;
		covered_ns = end;
	}
	return found;
}

static const char *share_text(struct report *report, const struct tenant *self)
{
	const struct mps *mps = &self->process->mps;
	const char *text = "";

	if (!self->client)
		return text;
	if (mps->percentage && *mps->percentage)
		text = report_text(report, "; its share is %s %% of the threads", mps->percentage);
	if (self->gpu->multiprocessors)
		text = report_text(report, "%s%s%u multiprocessors", text,
				   *text ? ", " : "; it has ", self->gpu->multiprocessors);
	if (mps->memory_limit && *mps->memory_limit)
		text = report_text(report, "%s; its memory is limited: %s", text,
				   mps->memory_limit);
	return text;
}

/* A call may have begun before all that is in the trace. */
static uint64_t since_first(const struct analysis *a, uint64_t ns)
{
	return ns > a->model.first_ns ? ns - a->model.first_ns : 0;
}

static struct sharing_row describe(struct report *report, const struct analysis *a,
				   const struct tenant *self, const struct neighbours *others)
{
	struct sharing_row row = {
		.process = report_process(report, self->process->trace),
		.gpu = report_text(report, "%s", self->gpu->name),
		.uuid = report_text(report, "%s", self->gpu->uuid),
		.with = names_text(report, &others->names),
		.client = self->client ? "yes" : "no",
		.pid = self->process->trace->pid,
		.device = self->gpu->device,
		.user = self->process->mps.uid,
		.from_ns = since_first(a, self->use->first_ns),
		.until_ns = since_first(a, self->use->last_ns),
		.shared_ns = others->shared_ns,
		.partners = others->names.count,
		.multiprocessors = self->gpu->multiprocessors,
	};

	if (self->process->mps.ns) {
		row.percentage = report_text(report, "%s", self->process->mps.percentage);
		row.memory_limit = report_text(report, "%s", self->process->mps.memory_limit);
	}
	row.how = !others->rivals ? "MPS" : !others->mates ? "time slices" : "MPS, time slices";
	row.text = report_text(report, "with %s%s", row.with, share_text(report, self));
	return row;
}

/* By GPU, then by when they began. */
static int by_gpu(const void *a, const void *b)
{
	const struct tenant *x = a, *y = b;
	int order = strcmp(x->gpu->uuid, y->gpu->uuid);

	if (order)
		return order;
	if (x->use->first_ns != y->use->first_ns)
		return x->use->first_ns < y->use->first_ns ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static void add_sharing(struct report *report, const struct analysis *a)
{
	struct sharing_row *rows = NULL;
	struct tenant *tenants;
	struct table *table;
	size_t i, n, begin = 0, end = 0, n_rows = 0;
	bool slices = false;

	tenants = find_tenants(a, &n);
	if (n)
		qsort(tenants, n, sizeof(*tenants), by_gpu);
	for (i = 0; i < n; i++) {
		struct neighbours others;
		struct sharing_row row;

		if (i == end) /* the next GPU's */
			for (begin = i; end < n && same_gpu(&tenants[begin], &tenants[end]);)
				end++;
		others = find_neighbours(report, &tenants[i], &tenants[begin], end - begin);
		if (!others.shared_ns)
			continue;
		row = describe(report, a, &tenants[i], &others);
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

/* clang-format off */
static const struct column turn_columns[] = {
	COLUMN(struct turn_row, process, "process", UNIT_TEXT),
	COLUMN(struct turn_row, user, "user", UNIT_PLAIN),
	COLUMN(struct turn_row, server, "server", UNIT_PLAIN),
	COLUMN(struct turn_row, server_user, "its user", UNIT_PLAIN),
	COLUMN(struct turn_row, waited_ns, "waited", UNIT_NS),
	COLUMN_TEXT_WORDS(struct turn_row, text),
	COLUMN_JSON(struct turn_row, pid, UNIT_PLAIN),
};
/* clang-format on */

static const struct table_kind turn_kind = {
	.key = "mps_turns",
	.title = "WAITED FOR ANOTHER USER'S MPS SERVER",
	.columns = turn_columns,
	.n_columns = ARRAY_SIZE(turn_columns),
	.row_bytes = sizeof(struct turn_row),
	.advice =
		"A daemon serves one user at a time: clients of another wait, without an error, "
		"until the last client of the first has ended. Run them as one user, or give each "
		"user a daemon with a CUDA_MPS_PIPE_DIRECTORY and GPUs of its own.",
};

/* An idle server of another user makes way in less, when its successor is not waited for. */
#define TURN_LEAST_NS 10000000

/* The first call on any GPU has returned: the process has a context. 0: never. */
static uint64_t first_context_ns(const struct analysis *a, size_t process)
{
	const struct device_use *uses = &a->stats.uses[process * CALLSTATS_DEVICES];
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < CALLSTATS_DEVICES; i++)
		if (uses[i].first_ns && (!ns || uses[i].first_end_ns < ns))
			ns = uses[i].first_end_ns;
	return ns;
}

/* Processes of the trace that were that server's clients. */
static const char *clients_of(struct report *report, const struct analysis *a,
			      const struct mps *self)
{
	struct names names = {0};
	size_t i;

	for (i = 0; i < a->model.n_processes; i++) {
		const struct process *process = &a->model.processes[i];

		if (process->mps.ns && process->mps.server == self->server &&
		    process->mps.uid == self->server_uid)
			add_name(report, &names, process);
	}
	return names.count ? names_text(report, &names) : "processes that were not recorded";
}

/* Until when it waited: until cuInit returned, if it failed or the server was its user's by then; else
 * until it had a context; else it waits still. */
static uint64_t waited_until(const struct analysis *a, size_t i)
{
	const struct process *process = &a->model.processes[i];
	uint64_t context_ns = first_context_ns(a, i);

	if (process->mps.ns && !mps_of_another(&process->mps))
		return process->mps.ns;
	if (!process->mps.ns && process->init_ns)
		return process->init_ns;
	return context_ns > process->mps_before.ns ? context_ns : a->model.last_ns;
}

static void add_turns(struct report *report, const struct analysis *a)
{
	struct turn_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < a->model.n_processes; i++) {
		const struct process *process = &a->model.processes[i];
		const struct mps *before = &process->mps_before;
		const struct mps *mps = model_mps_in_the_way(&a->model, process);
		struct turn_row row;

		if (!mps || waited_until(a, i) - before->ns < TURN_LEAST_NS)
			continue;
		row = (struct turn_row){
			.process = report_process(report, process->trace),
			.pid = process->trace->pid,
			.user = before->uid,
			.server = mps->server,
			.server_user = mps->server_uid,
			.waited_ns = waited_until(a, i) - before->ns,
		};
		row.text = report_text(report,
				       "%s; the daemon's server worked for user %u (%s) when it "
				       "called cuInit, or before it got its own",
				       process->mps.ns || process->init_ns
					       ? "at most: what else cuInit did is in it"
					       : "and had not come out of cuInit",
				       mps->server_uid, clients_of(report, a, mps));
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = row;
	}
	report_add(report, &turn_kind, rows, n);
}

void report_sharing(struct report *report, const struct analysis *a)
{
	add_sharing(report, a);
	add_turns(report, a);
}

/* ---- info ----------------------------------------------------------------------------------- */

struct mps_row {
	const char *process, *client, *pipe_directory, *percentage, *memory_limit, *priority;
	uint64_t pid, user, daemon, server, server_user;
};

/* clang-format off */
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
/* clang-format on */

static const struct table_kind mps_kind = {
	.key = "mps",
	.title = "MPS: processes that found its control pipe",
	.columns = mps_columns,
	.n_columns = ARRAY_SIZE(mps_columns),
	.row_bytes = sizeof(struct mps_row),
};

/* Of any of its GPUs: "yes", "no"; NULL unknown. */
static const char *client_text(const struct process *process)
{
	const char *text = NULL;
	size_t i;

	for (i = 0; i < process->n_gpus; i++) {
		if (process->gpus[i].client == SPY_CLIENT_YES)
			return "yes";
		if (process->gpus[i].client == SPY_CLIENT_NO)
			text = "no";
	}
	return text;
}

static const char *set_text(struct report *report, const char *text)
{
	return *text ? report_text(report, "%s", text) : NULL;
}

void report_mps(struct report *report, const struct analysis *a)
{
	struct mps_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < a->model.n_processes; i++) {
		const struct process *process = &a->model.processes[i];
		const struct mps *mps = process->mps.ns ? &process->mps : &process->mps_before;

		if (!mps->ns || !*mps->directory)
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct mps_row){
			.process = report_process(report, process->trace),
			.client = client_text(process),
			.pipe_directory = set_text(report, mps->directory),
			.percentage = set_text(report, mps->percentage),
			.memory_limit = set_text(report, mps->memory_limit),
			.priority = set_text(report, mps->priority),
			.pid = process->trace->pid,
			.user = mps->uid,
			.daemon = mps->daemon,
			.server = mps->server,
			.server_user = mps->server_uid,
		};
	}
	report_add(report, &mps_kind, rows, n);
}
