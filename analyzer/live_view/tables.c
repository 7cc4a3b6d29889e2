/*
 * analyzer/live_view/tables.c: the picture of running programs as tables, but those of who_waits.c. Called by `ps`, `top` and `snapshot`.
 */
#include <stdlib.h>
#include <time.h>
#include "live/recording.h"
#include "tables.h"
#include "text/nvml.h"
#include "text/text.h"
#include "trace/names.h"
#include "base/median.h"

/* ---- verdict --------------------------------------------------------------------------------- */

struct verdict_row {
	const char *kind, *text;
	uint64_t lasted_ns;
};

static const struct column verdict_columns[] = {
	COLUMN_JSON(struct verdict_row, kind, UNIT_TEXT),
	COLUMN_JSON(struct verdict_row, text, UNIT_TEXT),
	COLUMN_JSON(struct verdict_row, lasted_ns, UNIT_NS_IF_KNOWN),
};

static const struct table_kind verdict_kind = {
	TABLE("verdicts", NULL, struct verdict_row, verdict_columns),
	.json_only = true, /* text begins with them */
};

void live_add_verdicts(struct report *report, const struct verdicts *v)
{
	struct verdict_row *rows = xcalloc(v->n, sizeof(*rows));

	for (size_t i = 0; i < v->n; i++)
		rows[i] = (struct verdict_row){verdict_name(v->all[i].kind),
					       report_text(report, "%s", v->all[i].text),
					       v->all[i].ns};
	report_add(report, &verdict_kind, rows, v->n);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct process_row {
	const char *program, *since, *rank, *gpus, *directory, *host, *user, *recording, *shown,
		*opens, *next;
	uint64_t pid, threads, calls_per_s, waiting, started_ns, windows, recording_ns;
};

static const struct column process_columns[] = {
	COLUMN(struct process_row, pid, "pid", UNIT_PLAIN),
	COLUMN(struct process_row, program, "program", UNIT_TEXT),
	COLUMN_TEXT(struct process_row, since, "since"),
	COLUMN(struct process_row, rank, "rank", UNIT_TEXT),
	COLUMN(struct process_row, gpus, "GPUs", UNIT_TEXT),
	COLUMN(struct process_row, threads, "threads", UNIT_COUNT),
	COLUMN(struct process_row, waiting, "waiting", UNIT_COUNT),
	COLUMN(struct process_row, calls_per_s, "calls/s", UNIT_COUNT),
	COLUMN_TEXT(struct process_row, shown, "recording"),
	COLUMN_LINE(struct process_row, directory, UNIT_TEXT),
	COLUMN_JSON(struct process_row, recording, UNIT_TEXT),
	COLUMN_JSON(struct process_row, recording_ns, UNIT_NS_IF_KNOWN),
	COLUMN_JSON(struct process_row, windows, UNIT_COUNT),
	COLUMN_JSON(struct process_row, opens, UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct process_row, next),
	COLUMN_JSON(struct process_row, started_ns, UNIT_NS),
	COLUMN_JSON(struct process_row, host, UNIT_TEXT),
	COLUMN_JSON(struct process_row, user, UNIT_TEXT),
};

static const struct table_kind process_kind = {
	TABLE("processes", "PROCESSES", struct process_row, process_columns),
};

uint64_t live_calls_per_s(const struct live_process *p)
{
	return (uint64_t)((unsigned __int128)(p->calls + p->counted) * 1000000000 /
			  max_u64(p->apart_ns, 1));
}

uint64_t live_waiting(const struct live_process *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_threads; i++) {
		const struct live_thread *t = p->threads[i];

		n += t->slot && (t->in_call ? t->waits || t->doing == LIVE_GPU
					    : t->waits && spy_wait_is_lock(t->wait_kind));
	}
	return n;
}

/* "0,1"; NULL: none that is known. */
static const char *live_gpu_list(struct arena *texts, const struct live_process *p)
{
	const char *text = NULL;

	for (unsigned int device = 0; device < SPY_DEVICE_NONE; device++)
		for (size_t i = 0; i < p->n_threads; i++)
			if (p->threads[i]->slot && p->threads[i]->device == device) {
				text = arena_printf(texts, "%s%s%u", text ?: "", text ? "," : "",
						    device);
				break;
			}
	return text;
}

/* The time of day, with the date if that is another one. */
static const char *since_text(struct arena *texts, uint64_t ns)
{
	time_t then = (time_t)(ns / 1000000000), now = time(NULL);
	struct tm tm, today;
	char text[32];

	if (!ns || !localtime_r(&then, &tm) || !localtime_r(&now, &today))
		return NULL;
	strftime(text, sizeof(text),
		 tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year ? "%H:%M:%S"
									    : "%Y-%m-%d %H:%M",
		 &tm);
	return arena_printf(texts, "%s", text);
}

void live_add_processes(struct report *report, const struct live_words *w)
{
	const struct live *live = w->live;
	struct process_row *rows = xcalloc(live->n_processes, sizeof(*rows));

	for (size_t i = 0; i < live->n_processes; i++) {
		const struct live_process *p = &live->processes[i];
		struct process_row *row = &rows[i];

		row->pid = p->recorded ? (uint64_t)p->recorded->pid : p->trace->pid;
		row->program = report_text(report, "%s", p->trace->program);
		row->started_ns = p->started_ns;
		row->since = since_text(&report->arena, p->started_ns);
		if (p->trace->metadata.has_rank)
			row->rank = report_text(report, "%u", p->trace->metadata.rank);
		row->gpus = live_gpu_list(&report->arena, p);
		for (size_t j = 0; j < p->n_threads; j++)
			row->threads += p->threads[j]->slot != 0;
		row->calls_per_s = live_calls_per_s(p);
		row->waiting = live_waiting(p);
		row->recording = live_recording_name(p);
		row->recording_ns = live_recording_ns(p);
		row->windows = live_windows(p);
		row->shown = live_recording_text(&report->arena, p);
		row->opens = live_opens_text(&report->arena, p);
		if (row->opens)
			row->next =
				report_text(report, "the next window opens with %s", row->opens);
		row->directory = report_text(report, "%s", p->trace->dir);
		row->host = text_known_host(&report->arena, p->trace->host);
		if (p->recorded)
			row->user = report_text(report, "%u", (unsigned int)p->recorded->uid);
	}
	report_add(report, &process_kind, rows, live->n_processes);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

struct gpu_row {
	const char *process, *name, *last, *shown, *nvml;
	uint64_t pid, device, outstanding, waiting, last_ns;
	/* By NVML; UNKNOWN_NS: unknown. */
	uint64_t busy_percent, clock_mhz, clock_most_mhz, power_mw, temperature_c, other_processes;
};

static const struct column gpu_columns[] = {
	COLUMN_TEXT(struct gpu_row, process, "process"),
	COLUMN(struct gpu_row, device, "GPU", UNIT_DEVICE),
	COLUMN(struct gpu_row, outstanding, "outstanding", UNIT_COUNT),
	COLUMN(struct gpu_row, waiting, "threads waiting", UNIT_COUNT),
	COLUMN_TEXT_WORDS(struct gpu_row, shown),
	COLUMN_JSON(struct gpu_row, last, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct gpu_row, name, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, last_ns, UNIT_NS_IF_KNOWN),
	COLUMN_LINE(struct gpu_row, nvml, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, busy_percent, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct gpu_row, clock_mhz, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct gpu_row, clock_most_mhz, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct gpu_row, power_mw, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct gpu_row, temperature_c, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct gpu_row, other_processes, UNIT_PLAIN_IF_KNOWN),
};

static const struct table_kind gpu_kind = {
	TABLE("gpus",
	      "GPUS: work that no call has waited for since (at most; the GPU itself is not "
	      "asked), and what NVML says",
	      struct gpu_row, gpu_columns),
	.text_rows = 32,
};

static bool uses(const struct live_process *p, unsigned int device, uint64_t *waiting)
{
	bool yes = false;

	*waiting = 0;
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct live_thread *t = p->threads[i];

		if (!t->slot || t->device != device)
			continue;
		yes = true;
		*waiting += t->doing == LIVE_GPU;
	}
	return yes;
}

static const char *limit_words(struct arena *texts, const struct spy_rec_gpu_look *look)
{
	const char *words = "";

	for (unsigned int bit = 0; look->known & SPY_GPU_LOOK_REASONS && bit < 64; bit++)
		if (look->reasons >> bit & 1 && text_nvml_limit(bit))
			words = arena_printf(texts, "%s, slowed by %s", words,
					     text_nvml_limit(bit));
	return words;
}

/* What NVML says of it; NULL: nothing. */
static const char *nvml_words(struct arena *texts, const struct spy_rec_gpu_look *look)
{
	const char *words =
		look ? arena_printf(texts, "NVML: a kernel runs for %u %% of the time", look->busy)
		     : NULL;

	if (look && look->clock_most)
		words = arena_printf(texts, "%s; clock %u of %u MHz%s", words, look->clock,
				     look->clock_most, limit_words(texts, look));
	if (look && look->known & SPY_GPU_LOOK_PROCESSES && look->others)
		words = arena_printf(texts, "%s; %u other process%s on it", words, look->others,
				     look->others == 1 ? " is" : "es are");
	return words;
}

static uint64_t if_known(const struct spy_rec_gpu_look *look, uint64_t value, bool known)
{
	return look && known ? value : UNKNOWN_NS;
}

static void add_nvml(struct arena *texts, struct gpu_row *row, const struct spy_rec_gpu_look *look)
{
	static const struct spy_rec_gpu_look none;
	const struct spy_rec_gpu_look *of = look ?: &none;

	row->nvml = nvml_words(texts, look);
	row->busy_percent = if_known(look, of->busy, true);
	row->clock_mhz = if_known(look, of->clock, of->clock);
	row->clock_most_mhz = if_known(look, of->clock_most, of->clock_most);
	row->power_mw = if_known(look, of->power, of->power);
	row->temperature_c = if_known(look, of->temperature, of->temperature);
	row->other_processes = if_known(look, of->others, of->known & SPY_GPU_LOOK_PROCESSES);
}

void live_add_gpus(struct report *report, const struct live_words *w)
{
	const struct live *live = w->live;
	struct gpu_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < live->n_processes; i++)
		for (unsigned int device = 0; device < SPY_DEVICE_NONE; device++) {
			const struct live_process *p = &live->processes[i];
			const struct recent_work *work;
			const struct gpu *gpu;
			uint64_t waiting, now;
			const char *last;

			if (!uses(p, device, &waiting))
				continue;
			work = recent_find_work(&live->recent, p->index, device, 0, NULL);
			gpu = model_gpu(&live->model.processes[p->index], (uint16_t)device);
			now = timeline_ns(&p->trace->timeline, p->now);
			last = work ? live_work_text(w, p, work) : NULL;
			rows = grow(rows, n, sizeof(*rows));
			rows[n++] = (struct gpu_row){
				.process = text_process(&report->arena, p->trace),
				.pid = p->recorded ? (uint64_t)p->recorded->pid : p->trace->pid,
				.name = gpu ? report_text(report, "%s", gpu->name) : NULL,
				.device = device,
				.outstanding = recent_outstanding(&live->recent, p->index, device),
				.waiting = waiting,
				.last = last,
				.shown = last ? report_text(report, "last: %s", last) : NULL,
				.last_ns = work ? now - min_u64(now, work->last.ns) : UNKNOWN_NS,
			};
			add_nvml(&report->arena, &rows[n - 1],
				 recent_gpu_look(&live->recent, p->index, device, now));
		}
	report_add(report, &gpu_kind, rows, n);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct rank_row {
	const char *communicator, *operation, *state, *process;
	uint64_t rank, ranks, submitted_ns, operations;
};

static const struct column rank_columns[] = {
	COLUMN(struct rank_row, communicator, "communicator", UNIT_TEXT),
	COLUMN(struct rank_row, rank, "rank", UNIT_PLAIN),
	COLUMN(struct rank_row, operation, "last submitted", UNIT_TEXT),
	COLUMN(struct rank_row, submitted_ns, "ago", UNIT_NS_IF_KNOWN),
	COLUMN(struct rank_row, state, "state", UNIT_TEXT),
	COLUMN_JSON(struct rank_row, process, UNIT_TEXT),
	COLUMN_JSON(struct rank_row, ranks, UNIT_COUNT),
	COLUMN_JSON(struct rank_row, operations, UNIT_COUNT),
};

static const struct table_kind rank_kind = {
	TABLE("ranks", "RANKS: where each is in collective operations", struct rank_row,
	      rank_columns),
	.text_rows = 64,
};

void live_add_ranks(struct report *report, const struct live_words *w, uint64_t after_ns)
{
	size_t i, n;
	struct live_rank *ranks = ranks_compare(w, after_ns, &n, NULL);
	struct rank_row *rows = xcalloc(n, sizeof(*rows));

	for (i = 0; i < n; i++) {
		const struct recent_comm *comm = ranks[i].comm;

		rows[i] = (struct rank_row){
			.communicator = comm->name[0] ? report_text(report, "%s", comm->name)
						      : report_text(report, "%016llx",
								    (unsigned long long)comm->hash),
			.rank = comm->rank,
			.ranks = comm->ranks,
			.operation = ranks[i].operation,
			.submitted_ns = ranks[i].op ? ranks[i].ns : UNKNOWN_NS,
			.state = ranks[i].state ?: "goes on",
			.operations = comm->operations,
			.process = text_process(&report->arena, ranks[i].process->trace),
		};
	}
	report_add(report, &rank_kind, rows, n);
	free(ranks);
}

/* ---- costs ----------------------------------------------------------------------------------- */

struct cost_row {
	const char *what, *process, *function;
	uint64_t ns;
};

static const struct column cost_columns[] = {
	COLUMN(struct cost_row, ns, "time", UNIT_NS),
	COLUMN(struct cost_row, what, "call, and what it waits for", UNIT_TEXT),
	COLUMN(struct cost_row, process, "process", UNIT_TEXT),
	COLUMN_JSON(struct cost_row, function, UNIT_TEXT),
};

static const struct table_kind cost_kind = {
	TABLE("costs",
	      "COSTLIEST calls and waits of the last interval, of all threads together (sampled)",
	      struct cost_row, cost_columns),
	.text_rows = 10,
};

static int by_cost(const void *x, const void *y)
{
	const struct live_cost *a = *(const struct live_cost *const *)x;
	const struct live_cost *b = *(const struct live_cost *const *)y;

	return COMPARE(b->ns, a->ns) ?: memcmp(&a->key, &b->key, sizeof(a->key));
}

/* The costliest first. The caller frees the array, not what it points to. */
static const struct live_cost **live_costs(const struct live *live, size_t *n)
{
	const struct live_cost **all = xcalloc(HASH_COUNT(live->costs), sizeof(*all));

	*n = 0;
	for (const struct live_cost *cost = live->costs; cost; cost = cost->hh.next)
		all[(*n)++] = cost;
	if (*n)
		qsort(all, *n, sizeof(*all), by_cost);
	return all;
}

/* "cudaFree, for a read lock in libcuda.so.1, held by thread 12". */
static const char *live_cost_text(const struct live_words *w, const struct live_cost *cost)
{
	const struct live_cost_key *key = &cost->key;
	const char *call = key->fn == LIVE_BETWEEN_CALLS ? "between calls"
							 : text_function(&w->live->set, key->fn);
	const char *kind = key->kind ? name_wait(key->kind - 1) : NULL;
	const struct module *module;

	if (!kind)
		return call;
	if (!key->object)
		return arena_printf(w->texts, "%s, in %s", call, kind);
	module = w->live->open ? model_module_of_data(&w->live->model.processes[key->process],
						      key->object, now_ns())
			       : NULL;
	return arena_printf(
		w->texts, "%s, for a %s lock in %s%s", call, kind,
		module ? path_basename(module->path)
		       : arena_printf(w->texts, "0x%llx", (unsigned long long)key->object),
		key->holder ? arena_printf(w->texts, ", held by thread %u", key->holder) : "");
}

void live_add_costs(struct report *report, const struct live_words *w)
{
	size_t i, n;
	const struct live_cost **costs = live_costs(w->live, &n);
	struct cost_row *rows = xcalloc(n, sizeof(*rows));

	for (i = 0; i < n; i++)
		rows[i] = (struct cost_row){
			.what = live_cost_text(w, costs[i]),
			.process = text_process(&report->arena,
						w->live->set.traces[costs[i]->key.process]),
			.function = costs[i]->key.fn == LIVE_BETWEEN_CALLS
					    ? NULL
					    : text_function(&w->live->set, costs[i]->key.fn),
			.ns = costs[i]->ns,
		};
	report_add(report, &cost_kind, rows, n);
	free(costs);
}
