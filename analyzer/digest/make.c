/*
 * analyzer/digest/make.c: the digest of a rank: who it is, its GPUs, what its traces lack. The rest is in make_calls.c,
 * make_findings.c, make_operations.c, make_sharing.c and make_parts.c. Called by `cudaspy digest` for each rank, when its traces have been read.
 */
#include <stdlib.h>
#include "make.h"
#include "base/redact.h"
#include "findings/gpu_use.h"
#include "trace/losses.h"

uint64_t digest_text(struct digest_builder *m, const char *text)
{
	char *left = text && redact_is_on() ? redacted(text) : NULL;
	uint32_t number = digest_texts_add(&m->digest->texts, left ?: text);

	free(left);
	return number;
}

/* ---- who it is ------------------------------------------------------------------------------- */

static const struct trace *first_trace(const struct digest_builder *m)
{
	return m->a->set->traces[0];
}

/* With a rank of a launcher's, host and process are not needed to tell it from others. */
static bool is_launched(const struct trace *trace)
{
	return trace->metadata.has_rank && trace->metadata.world_size != 1;
}

/* What tells a process from another one of its number: its recording, which is the same in all parts; or when it began. */
static const char *begin_of(struct digest_builder *m, const struct metadata *metadata)
{
	return metadata->has_uuid
		       ? digest_recording(m, metadata)
		       : arena_printf(&m->texts, "%llu", (unsigned long long)m->begin_ns);
}

static void name_rank(struct digest_builder *m, uint64_t *row)
{
	const struct trace *trace = first_trace(m);
	const struct metadata *metadata = &trace->metadata;
	const struct rank *rank = m->a->ranks.n ? m->a->ranks.all[0] : NULL;

	row[D_RANK_host] = digest_text(m, trace->host->name ?: trace->host->label);
	row[D_RANK_boot] = digest_text(m, trace->host->boot);
	row[D_RANK_program] = digest_text(m, trace->program);
	row[D_RANK_pid] = trace->pid;
	row[D_RANK_local_1] = metadata->has_rank ? (uint64_t)(metadata->local_rank + 1) : 0;
	if (rank) {
		row[D_RANK_rank_1] = (uint64_t)rank->number + 1;
		row[D_RANK_world_size] = rank->world_size;
	}
	if (is_launched(trace)) {
		row[D_RANK_job] = digest_text(m, metadata->job);
		row[D_RANK_restarts] = metadata->restarts;
	} else {
		row[D_RANK_place] = digest_text(
			m, arena_printf(&m->texts, "%s/%s/%s.%u/%s", trace->host->name ?: "",
					trace->host->boot ?: "", trace->program, trace->pid,
					begin_of(m, metadata)));
	}
}

/* ---- how much there is ----------------------------------------------------------------------- */

static void add_process(const struct digest_builder *m, const struct process *process,
			uint64_t *row)
{
	const struct account sum = account_sum(&m->a->accounts, process);
	const struct losses losses = losses_sum(process->trace);

	row[D_RANK_processes]++;
	row[D_RANK_windows] += process->windows;
	row[D_RANK_dormant_ns] += process->dormant_ns;
	row[D_RANK_records] += process->records;
	row[D_RANK_lost_records] =
		add_capped(row[D_RANK_lost_records], losses_records(&losses, process->trace));
	row[D_RANK_calls] += sum.calls;
	row[D_RANK_calls_ns] += sum.total_ns;
	row[D_RANK_lost_ns] += account_lost(&sum);
	if (process->trace->board.present && !process->trace->board.head.ended)
		row[D_RANK_ended] = 0;
}

/* Of the thread that feeds its first GPU. */
static void add_feeder(const struct digest_builder *m, uint64_t *row)
{
	const struct thread *thread =
		m->a->idle.n_gpus ? gpu_feeder(&m->a->idle, &m->a->idle.gpus[0]) : NULL;
	const struct host_thread *h = thread ? host_thread_find(&m->a->idle.threads, thread) : NULL;

	if (!h)
		return;
	row[D_RANK_working_ns] = h->outside_ns + h->in_calls_ns;
	row[D_RANK_outside_ns] = h->outside_ns;
}

/* A cost below 0 is chance: recording makes nothing faster. */
static uint64_t cost_ppm(double part)
{
	return part <= 0 ? 0 : part >= 1 ? 1000000 : (uint64_t)(part * 1e6);
}

/* What recording cost it, if it was measured and is known. */
static void add_cost(const struct digest_builder *m, uint64_t *row)
{
	struct cost_estimate e = cost_compare(
		&m->a->cost, &(struct cost_of){.fn = COST_ALL_FUNCTIONS}, SPY_COST_COUNTING);

	if (e.verdict != COST_KNOWN)
		return;
	row[D_RANK_cost_ppm] = cost_ppm(e.middle) + 1;
	row[D_RANK_cost_low_ppm] = cost_ppm(e.low);
	row[D_RANK_cost_high_ppm] = cost_ppm(e.high);
}

static void make_rank(struct digest_builder *m)
{
	const struct ranks *ranks = &m->a->ranks;
	uint64_t *row = digest_data_add(&m->data, D_RANK);

	name_rank(m, row);
	row[D_RANK_ended] = 1;
	for (size_t i = 0; i < m->a->model.n_processes; i++)
		add_process(m, &m->a->model.processes[i], row);
	row[D_RANK_threads] = callstats_callers(&m->a->stats);
	row[D_RANK_begin_ns] = m->begin_ns;
	if (m->a->model.last_ns > m->a->model.first_ns)
		row[D_RANK_span_ns] = m->a->model.last_ns - m->a->model.first_ns;
	row[D_RANK_clock_hz] = first_trace(m)->metadata.frequency;
	row[D_RANK_cpus] = first_trace(m)->host->cpus;
	row[D_RANK_untimed] = ranks->untimed + ranks->incomplete;
	row[D_RANK_captured] = ranks->captured;
	for (size_t i = 0; i < ranks->n; i++) {
		row[D_RANK_operations] += ranks->all[i]->operations;
		row[D_RANK_in_collectives_ns] += ranks->all[i]->in_collectives_ns;
	}
	row[D_RANK_timed] =
		row[D_RANK_operations] - min_u64(row[D_RANK_untimed], row[D_RANK_operations]);
	add_feeder(m, row);
	add_cost(m, row);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static void make_gpu(struct digest_builder *m, const struct idle_gpu *gpu)
{
	const struct gpu *named = idle_named(gpu);
	uint64_t *row = digest_data_add(&m->data, D_GPU);

	row[D_GPU_device_1] = (uint64_t)gpu->device + 1;
	row[D_GPU_idle_ns] = idle_known_ns(gpu);
	if (named) {
		row[D_GPU_uuid] = digest_text(m, named->uuid);
		row[D_GPU_name] = digest_text(m, named->name);
		row[D_GPU_pci] = digest_text(m, named->pci);
	}
	if (!idle_gpu_is_exact(gpu))
		return;
	row[D_GPU_exact] = 1;
	row[D_GPU_busy_ns] = gpu->exact.busy_ns;
	row[D_GPU_exposed_ns] = gpu->exact.exposed_ns;
	row[D_GPU_own_ns] = gpu->exact.busy_ns - min_u64(gpu->exact.exposed_ns, gpu->exact.busy_ns);
	row[D_GPU_own_operations] =
		gpu->exact.operations - min_u64(gpu->exact.collectives, gpu->exact.operations);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void add_loss(struct digest_builder *m, const char *kind, uint64_t count)
{
	uint64_t text = count ? digest_text(m, kind) : 0, *row;

	if (!count)
		return;
	for (uint32_t i = 0; i < m->data.tables[D_LOSS].n; i++) {
		row = &m->data.tables[D_LOSS].cells[i * D_LOSS_COLUMNS];
		if (row[D_LOSS_kind] == text) {
			row[D_LOSS_count] = add_capped(row[D_LOSS_count], count);
			return;
		}
	}
	row = digest_data_add(&m->data, D_LOSS);
	row[D_LOSS_kind] = text;
	row[D_LOSS_count] = count;
}

/* The kinds are those of a report's LOSSES. */
static void make_losses(struct digest_builder *m)
{
	add_loss(m, "unreadable", m->a->set->unreadable);
	for (size_t i = 0; i < m->a->model.n_processes; i++) {
		const struct trace *trace = m->a->model.processes[i].trace;
		const struct losses sum = losses_sum(trace);

		add_loss(m, "no_metadata", !trace->has_metadata);
		add_loss(m, "no_board", !trace->board.present);
		add_loss(m, "streams", sum.streams_missing);
		add_loss(m, "calls", sum.calls_missing);
		add_loss(m, "files", sum.streams.unreadable_files);
		add_loss(m, "records", sum.streams.discarded);
		add_loss(m, "no_stream", trace->board.head.lost);
		add_loss(m, "dropped", sum.streams.packets_dropped);
		add_loss(m, "packets", sum.streams.packets_missing);
		add_loss(m, "damaged", sum.streams.unreadable_bytes);
		add_loss(m, "disordered", sum.streams.disordered);
		add_loss(m, "not_ended", trace->board.present && !trace->board.head.ended);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

int digest_make(struct digest *digest, const struct analysis *a, struct symbolizer *symbols,
		const char *source)
{
	struct digest_builder m = {.digest = digest, .a = a, .symbols = symbols};
	int err;

	m.begin_ns = a->model.records ? a->model.first_ns : 0;
	digest_data_init(&m.data, &digest->schema);
	idle_writer_init(&m.words, &m.texts, &a->idle, symbols);
	make_rank(&m);
	for (size_t i = 0; i < a->idle.n_gpus; i++)
		make_gpu(&m, &a->idle.gpus[i]);
	make_losses(&m);
	digest_make_calls(&m);
	digest_make_findings(&m);
	digest_make_operations(&m);
	digest_make_sharing(&m);
	digest_make_parts(&m);
	idle_writer_release(&m.words);
	err = digest_add(digest, &m.data, source);
	digest_data_release(&m.data);
	arena_release(&m.texts);
	return err;
}
