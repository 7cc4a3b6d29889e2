/*
 * analyzer/model/gpus.c: the GPUs of processes, and who has them besides. Called by the readings
 * as records come, and by whoever asks.
 */
#include <string.h>
#include "apply.h"
#include "trace/position.h"

void model_apply_gpu(struct process *process, const struct record *record)
{
	const struct spy_rec_gpu *of = record_gpu(record);

	if (model_gpu(process, of->device))
		return;
	process->gpus = grow(process->gpus, process->n_gpus, sizeof(*process->gpus));
	process->gpus[process->n_gpus++] = (struct gpu){
		.device = of->device,
		.client = SPY_CLIENT_UNKNOWN,
		.cc_major = of->cc_major,
		.cc_minor = of->cc_minor,
		.bytes = of->bytes,
		.name = xstrdup(record_text(record, 0)),
		.uuid = xstrdup(record_text(record, 1)),
		.pci = xstrdup(record_text(record, 2)),
	};
}

void model_apply_share(struct process *process, const struct record *record)
{
	const struct spy_rec_share *share = record_share(record);

	for (size_t i = 0; i < process->n_gpus; i++) {
		struct gpu *gpu = &process->gpus[i];

		if (gpu->device != share->device)
			continue;
		gpu->client =
			share->client < SPY_CLIENT_UNKNOWN ? share->client : SPY_CLIENT_UNKNOWN;
		gpu->multiprocessors = share->multiprocessors;
	}
}

void model_apply_mps(struct process *process, const struct record *record)
{
	const struct spy_rec_mps *of = record_mps(record);
	struct mps *mps = of->initialised ? &process->mps : &process->mps_before;

	if (mps->directory || process->mps.directory)
		return;
	*mps = (struct mps){
		.ns = record->ns,
		.uid = of->uid,
		.daemon = of->daemon,
		.server = of->server,
		.server_uid = of->server_uid,
		.directory = xstrdup(record_text(record, 0)),
		.percentage = xstrdup(record_text(record, 1)),
		.memory_limit = xstrdup(record_text(record, 2)),
		.priority = xstrdup(record_text(record, 3)),
	};
}

const struct gpu *model_gpu(const struct process *process, uint16_t device)
{
	for (size_t i = 0; i < process->n_gpus; i++)
		if (process->gpus[i].device == device)
			return &process->gpus[i];
	return NULL;
}

/* What a process had found of a daemon when it had initialised CUDA. */
static const struct trace_mps *mps_found(const struct process *process,
					 const struct reading_position *now)
{
	const struct trace_mps *mps = process->trace->use.mps;
	struct reading_position at;

	if (!mps || !now)
		return mps;
	at = (struct reading_position){mps->ns, mps->stream + 1};
	return position_compare(&at, now) <= 0 ? mps : NULL;
}

/* Found another process the same daemon, and has it had its server since? */
static bool joined(const struct process *process, const struct trace_mps *other,
		   const struct process *self)
{
	const struct mps *before = &self->mps_before;

	return other->ns > before->ns && other->server && other->server_uid == other->uid &&
	       process->trace->host == self->trace->host && other->daemon == before->daemon &&
	       !strcmp(other->directory, before->directory);
}

bool model_mps_in_the_way(const struct model *model, const struct process *process,
			  const struct reading_position *now, struct mps_server *server)
{
	const struct mps *before = &process->mps_before;
	bool meanwhile = false;

	if (!before->ns)
		return false;
	for (size_t i = 0; i < model->n_processes; i++) {
		const struct trace_mps *other = mps_found(&model->processes[i], now);

		if (!other || !joined(&model->processes[i], other, process))
			continue;
		if (other->server == before->server) { /* whose it was, maybe only since then */
			*server = (struct mps_server){other->server, other->server_uid};
			return other->uid != before->uid;
		}
		if (other->uid != before->uid &&
		    (!process->mps.ns || other->ns < process->mps.ns)) {
			*server = (struct mps_server){other->server, other->server_uid};
			meanwhile = true;
		}
	}
	if (meanwhile) /* what was there before was idle: it made way */
		return true;
	*server = (struct mps_server){before->server, before->server_uid};
	return mps_of_another(before);
}
