/*
 * analyzer/model/model.c: what the records so far have told about the processes. Called by the
 * commands' one loop for each record; looked into by everyone after it.
 */
#include <stdlib.h>
#include <string.h>
#include "apply.h"

void model_init(struct model *model, struct trace_set *set)
{
	*model = (struct model){.set = set,
				.streams = set->streams,
				.n_streams = set->n_streams,
				.n_processes = set->n_traces};
	range_names_init(&model->range_names);
	model->processes = xcalloc(set->n_traces, sizeof(*model->processes));
	model->owners = xcalloc(set->n_streams, sizeof(*model->owners));
	for (size_t i = 0; i < set->n_traces; i++) {
		model->processes[i] =
			(struct process){.trace = set->traces[i], .first_ns = UINT64_MAX};
		model_see_board(&model->processes[i]);
	}
}

static void release_mps(struct mps *mps)
{
	free(mps->directory);
	free(mps->percentage);
	free(mps->memory_limit);
	free(mps->priority);
}

static void release_process(struct process *process)
{
	struct kernel_name *kernel, *next_kernel;
	struct python_code *code, *next_code;
	struct range_number *range, *next_range;
	struct range_family *family, *next_family;
	struct given_name *given, *next_given;
	struct note *note, *next;

	free(process->dormant_times);
	free(process->parts_seen);
	for (size_t i = 0; i < process->n_modules; i++)
		free(process->modules[i].build_id);
	for (size_t i = 0; i < process->n_gpus; i++) {
		free(process->gpus[i].name);
		free(process->gpus[i].uuid);
		free(process->gpus[i].pci);
	}
	HASH_EMPTY (process->notes, note, next)
		free(note);
	HASH_EMPTY (process->kernels, kernel, next_kernel)
		free(kernel);
	release_mps(&process->mps_before);
	release_mps(&process->mps);
	for (size_t i = 0; i < process->n_stacks; i++)
		free(process->stacks[i]);
	HASH_EMPTY (process->python, code, next_code) {
		free(code->file);
		free(code->function);
		free(code);
	}
	HASH_EMPTY (process->ranges, range, next_range)
		free(range);
	HASH_EMPTY (process->families, family, next_family)
		free(family);
	HASH_EMPTY (process->given_names, given, next_given)
		free(given);
	free(process->stacks);
	free(process->sampled);
	free(process->modules);
	places_release(&process->places);
	free(process->gpus);
}

void model_release(struct model *model)
{
	for (size_t i = 0; i < model->n_processes; i++)
		release_process(&model->processes[i]);
	HASH_CLEAR(hh, model->by_tid);
	for (size_t i = 0; i < model->n_threads; i++)
		free(model->threads[i]);
	range_names_release(&model->range_names);
	free(model->processes);
	free(model->threads);
	free(model->owners);
	*model = (struct model){0};
}

void model_init_part(struct model *model, const struct model *whole, struct stream **streams,
		     size_t n_streams)
{
	*model = (struct model){.set = whole->set,
				.streams = streams,
				.n_streams = n_streams,
				.processes = whole->processes,
				.n_processes = whole->n_processes,
				.owners = whole->owners};
	range_names_init(&model->range_names);
}

void model_release_part(struct model *model, bool joined)
{
	model->processes = NULL;
	model->n_processes = 0;
	model->owners = NULL;
	if (joined)
		model->n_threads = 0;
	model_release(model);
}

/* What only the report tells. */
static void apply_named(struct model *model, struct record *record)
{
	struct process *process = record->thread->process;

	switch (record->event) {
	case SPY_EV_KERNEL:
		model_apply_kernel(process, record);
		break;
	case SPY_EV_MODULE:
		model_apply_module(process, record);
		break;
	case SPY_EV_NOTE:
		model_apply_note(process, record);
		break;
	case SPY_EV_STACK:
		model_apply_stack(process, record);
		model->n_stacks++;
		break;
	case SPY_EV_PLACE:
		model_apply_place(model, process, record);
		break;
	case SPY_EV_PYTHON_CODE:
		model_apply_python_code(process, record);
		break;
	case SPY_EV_PYTHON_STACK:
		model_apply_python_stack(record);
		break;
	case SPY_EV_RANGE_NAME:
		model_apply_range_name(model, process, record);
		break;
	case SPY_EV_NVTX_NAME:
		model_apply_nvtx_name(model, process, record);
		break;
	default:
		break;
	}
}

void model_apply_other(struct model *model, struct record *record)
{
	struct process *process = record->thread->process;

	switch (record->event) {
	case SPY_EV_THREAD:
		model_apply_thread(model, record);
		break;
	case SPY_EV_COUNT:
		model_apply_count(model, record);
		break;
	case SPY_EV_NON_CUDA_THREAD:
		model_apply_non_cuda_thread(model, record);
		break;
	case SPY_EV_GPU:
		model_apply_gpu(process, record);
		break;
	case SPY_EV_SHARE:
		model_apply_share(process, record);
		break;
	case SPY_EV_MPS:
		model_apply_mps(process, record);
		break;
	case SPY_EV_WINDOW:
		model_apply_window(record);
		break;
	case SPY_EV_PART:
		model_apply_part(record);
		break;
	default:
		if (!model->bare)
			apply_named(model, record);
		break;
	}
}

void model_see_init(struct model *model, const struct record *record)
{
	const char *name = model->set->functions.all[record->fn].name;

	if (!strcmp(name, "cuInit"))
		record->thread->process->init_ns = record->ns;
}

/* The reader has counted them, and none of its records is later than the last one. */
static void count_records(struct model *model, const struct stream *stream)
{
	struct process *process = &model->processes[stream->trace->index];
	uint64_t last_ns = timeline_ns(&stream->trace->timeline, stream->reader.time);

	process->records += stream->reader.records;
	if (stream->reader.records && process->last_ns < last_ns)
		process->last_ns = last_ns;
}

void model_finish(struct model *model)
{
	model->first_ns = UINT64_MAX;
	for (size_t i = 0; i < model->set->n_streams; i++)
		count_records(model, model->set->streams[i]);
	for (size_t i = 0; i < model->n_processes; i++) {
		struct process *process = &model->processes[i];

		model_end_dormant(process, process->last_ns); /* it was so to the end */
		if (process->first_ns < model->first_ns)
			model->first_ns = process->first_ns;
		if (process->last_ns > model->last_ns)
			model->last_ns = process->last_ns;
		model->records += process->records;
	}
	if (model->first_ns > model->last_ns)
		model->first_ns = model->last_ns;
}
