/*
 * analyzer/model/model.c: what the records so far have told about the processes. Called by the
 * commands' one loop for each record; looked into by everyone after it.
 */
#include <stdlib.h>
#include <string.h>
#include "model.h"
#include "base/redact.h"

/* Kernel numbers count up from 1; a larger one is damage. */
#define KERNELS_MAX (1u << 22)
#define PYTHON_MAX (1u << 16) /* and of functions of Python's */
#define RANGES_MAX (1u << 16) /* and of NVTX's names */
#define GIVEN_MOST (1u << 16) /* threads of a process that have names of the program's */

/* Results that are answers and no failures: cudaErrorNotReady, CUDA_ERROR_NOT_READY. */
#define RESULT_NOT_READY 600

bool result_is_failure(uint16_t result)
{
	return result && result != SPY_RESULT_NONE && result != RESULT_NOT_READY;
}

void model_init(struct model *model, struct trace_set *set)
{
	size_t i;

	*model = (struct model){.set = set,
				.streams = set->streams,
				.n_streams = set->n_streams,
				.n_processes = set->n_traces};
	range_names_init(&model->range_names);
	model->processes = xcalloc(set->n_traces, sizeof(*model->processes));
	model->owners = xcalloc(set->n_streams, sizeof(*model->owners));
	for (i = 0; i < set->n_traces; i++)
		model->processes[i] =
			(struct process){.trace = set->traces[i], .first_ns = UINT64_MAX};
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
	size_t i;

	free(process->dormant_times);
	free(process->parts_seen);
	for (i = 0; i < process->n_modules; i++)
		free(process->modules[i].build_id);
	for (i = 0; i < process->n_gpus; i++) {
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
	for (i = 0; i < process->n_stacks; i++)
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
	free(process->modules);
	places_release(&process->places);
	free(process->gpus);
}

void model_release(struct model *model)
{
	size_t i;

	for (i = 0; i < model->n_processes; i++)
		release_process(&model->processes[i]);
	HASH_CLEAR(hh, model->by_tid);
	for (i = 0; i < model->n_threads; i++)
		free(model->threads[i]);
	range_names_release(&model->range_names);
	free(model->processes);
	free(model->threads);
	free(model->owners);
	*model = (struct model){0};
}

/* ---- threads -------------------------------------------------------------------------------- */

static uint64_t thread_key(const struct process *process, uint32_t tid)
{
	return (uint64_t)process->trace->index << 32 | tid;
}

static struct thread *new_thread(struct model *model, struct process *process)
{
	struct thread *thread = xcalloc(1, sizeof(*thread));

	thread->process = process;
	thread->born = moment_now();
	thread->index = (uint32_t)model->n_threads;
	thread->first_ns = thread->exited_ns = UINT64_MAX;
	*(process->threads ? &process->last_thread->next : &process->threads) = thread;
	process->last_thread = thread;
	model->threads = grow(model->threads, model->n_threads, sizeof(*model->threads));
	model->threads[model->n_threads++] = thread;
	return thread;
}

struct thread *model_many(struct model *model, struct process *process)
{
	if (!process->many) {
		process->many = new_thread(model, process);
		process->many->many = true;
	}
	return process->many;
}

/* The system may use a number again: the youngest thread of a number is the one to be found. */
static struct thread *add_thread(struct model *model, struct process *process, uint32_t tid)
{
	struct thread *thread, *older;

	if (model->n_threads >= THREADS_MOST)
		return model_many(model, process);
	thread = new_thread(model, process);
	thread->tid = tid;
	thread->key = thread_key(process, tid);
	HASH_REPLACE(hh, model->by_tid, key, sizeof(thread->key), thread, older);
	(void)older;
	return thread;
}

struct thread *model_find_thread(const struct model *model, const struct process *process,
				 uint32_t tid)
{
	uint64_t key = thread_key(process, tid);
	struct thread *thread;

	HASH_FIND(hh, model->by_tid, &key, sizeof(key), thread);
	return thread;
}

struct thread *model_thread(struct model *model, struct process *process, uint32_t tid)
{
	struct thread *thread = model_find_thread(model, process, tid);

	if (!thread) {
		thread = add_thread(model, process, tid);
		thread->non_cuda = true; /* until it writes a record of its own */
	}
	return thread;
}

/* From here on the slot is the thread's: its owner before has ended, unless a thread of that number
 * is in another slot. */
static void take_slot(struct model *model, const struct record *record, struct thread *thread)
{
	struct thread **owner = &model->owners[record->stream->index], *before = *owner;

	thread->first_ns = min_u64(thread->first_ns, record->ns);
	if (before == thread)
		return;
	if (before && !--before->slots)
		before->exited_ns = record->ns;
	if (thread->exited_ns != UINT64_MAX)
		thread->away_ns += record->ns - min_u64(record->ns, thread->exited_ns);
	thread->exited_ns = UINT64_MAX;
	thread->slots++;
	*owner = thread;
}

struct thread *model_owner(struct model *model, const struct record *record)
{
	struct process *process = &model->processes[record->process];
	uint32_t tid = record->tid;
	struct thread *thread = model_find_thread(model, process, tid);

	if (!thread)
		thread = add_thread(model, process, tid);
	thread->non_cuda = false;
	if (process->first_ns > record->ns)
		process->first_ns = record->ns;
	take_slot(model, record, thread);
	return thread;
}

/* The name that the program has given the thread of that number. */
static const char *given_to(const struct process *process, uint32_t tid)
{
	struct given_name *given;

	HASH_FIND(hh, process->given_names, &tid, sizeof(tid), given);
	return given ? given->name : NULL;
}

/* The thread itself says that the slot is its own: it has just begun to use CUDA. */
static void apply_thread(struct model *model, struct record *record)
{
	struct thread *thread = record->thread;
	const char *name = record->raw->thread.name;

	if (thread->name[0] && strncmp(thread->name, name, sizeof(thread->name) - 1))
		thread = add_thread(model, thread->process, record->raw->thread.tid);
	memcpy(thread->name, name, sizeof(thread->name) - 1);
	thread->given = given_to(thread->process, thread->tid);
	take_slot(model, record, thread);
	record->thread = thread;
}

static void apply_non_cuda_thread(struct model *model, struct record *record)
{
	const struct spy_rec_stranger *raw = &record->raw->stranger;
	struct thread *thread = model_thread(model, record->thread->process, raw->tid);

	if (!thread->name[0])
		memcpy(thread->name, raw->name, sizeof(thread->name) - 1);
}

static void apply_count(struct model *model, struct record *record)
{
	struct thread *thread;

	record->fn = trace_function(model->set, record->stream->trace, record->raw->count.fn);
	if (record->raw->count.tid == record->thread->tid)
		return;
	thread = model_find_thread(model, record->thread->process, record->raw->count.tid);
	if (thread)
		record->thread = thread;
}

/* ---- things of the process ------------------------------------------------------------------ */

static void apply_kernel(struct process *process, const struct spy_rec_kernel *kernel,
			 const char *name)
{
	struct kernel_name *known;
	uint32_t number = kernel->kernel;

	if (number >= KERNELS_MAX)
		return;
	HASH_FIND(hh, process->kernels, &number, sizeof(number), known);
	if (known) /* told again: the first name holds, sites may have it already */
		return;
	known = xcalloc(1, sizeof(*known) + strlen(name) + 1);
	known->number = number;
	strcpy(known->name, name);
	HASH_ADD(hh, process->kernels, number, sizeof(known->number), known);
}

/* Of the objects that lie or lay at an address, the youngest. */
struct search {
	const struct process *process;
	uint64_t address, ns;
	const struct module *found; /* of those that fit and had not gone by then */
	const struct module *unloaded; /* of those that fit and had */
	uint64_t times; /* they were unloaded */
};

static struct place_of_module *place_of(struct process *process, const struct module *module)
{
	return places_get(&process->places, &(struct place_of_module){.base = module->base,
								      .span_end = module->span_end,
								      .begin = module->begin,
								      .end = module->end});
}

/* Unloaded is the youngest that begins there. */
static bool look_for_loaded(const struct place_of_module *place, void *context)
{
	struct search *s = context;
	const struct module *module = &s->process->modules[place->module];

	if (place->begin == s->address && module->unloaded_ns == UINT64_MAX &&
	    (!s->found || module > s->found))
		s->found = module;
	return true;
}

static void module_goes(struct process *process, const struct spy_rec_module *raw, uint64_t ns)
{
	struct search s = {.process = process, .address = raw->begin};
	struct module *module;

	places_at(&process->places, raw->begin, look_for_loaded, &s);
	if (!s.found)
		return;
	module = &process->modules[s.found - process->modules];
	module->unloaded_ns = ns;
	place_of(process, module)->unloaded++;
}

void model_place_module(struct process *process, uint32_t number)
{
	place_of(process, &process->modules[number])->module = number;
}

static void apply_module(struct process *process, const struct record *record)
{
	const struct spy_rec_module *raw = &record->raw->module;
	const char *build_id = record_text(record->raw, 0), *path = record_text(record->raw, 1);
	size_t bytes;
	struct module module = {
		.base = raw->base,
		.begin = raw->begin,
		.end = raw->end,
		.span_end = raw->base + 4096ull * raw->span_pages,
		.unloaded_ns = UINT64_MAX,
	};

	if (raw->gone) {
		module_goes(process, raw, record->ns);
		return;
	}
	redact_path(path);
	bytes = strlen(build_id) + 1;
	module.build_id = xcalloc(1, bytes + strlen(path) + 1);
	module.path = strcpy(module.build_id + bytes, path);
	memcpy(module.build_id, build_id, bytes);
	process->modules = grow(process->modules, process->n_modules, sizeof(*process->modules));
	process->modules[process->n_modules] = module;
	model_place_module(process, (uint32_t)process->n_modules++);
}

static void apply_gpu(struct process *process, const union spy_any *raw)
{
	if (model_gpu(process, raw->gpu.device))
		return;
	process->gpus = grow(process->gpus, process->n_gpus, sizeof(*process->gpus));
	process->gpus[process->n_gpus++] = (struct gpu){
		.device = raw->gpu.device,
		.client = SPY_CLIENT_UNKNOWN,
		.cc_major = raw->gpu.cc_major,
		.cc_minor = raw->gpu.cc_minor,
		.bytes = raw->gpu.bytes,
		.name = xstrdup(record_text(raw, 0)),
		.uuid = xstrdup(record_text(raw, 1)),
		.pci = xstrdup(record_text(raw, 2)),
	};
}

static void apply_share(struct process *process, const struct spy_rec_share *share)
{
	size_t i;

	for (i = 0; i < process->n_gpus; i++) {
		struct gpu *gpu = &process->gpus[i];

		if (gpu->device != share->device)
			continue;
		gpu->client =
			share->client < SPY_CLIENT_UNKNOWN ? share->client : SPY_CLIENT_UNKNOWN;
		gpu->multiprocessors = share->multiprocessors;
	}
}

static void apply_mps(struct process *process, const struct record *record)
{
	const struct spy_rec_mps *raw = &record->raw->mps;
	struct mps *mps = raw->initialised ? &process->mps : &process->mps_before;

	if (mps->directory || process->mps.directory)
		return;
	*mps = (struct mps){
		.ns = record->ns,
		.uid = raw->uid,
		.daemon = raw->daemon,
		.server = raw->server,
		.server_uid = raw->server_uid,
		.directory = xstrdup(record_text(record->raw, 0)),
		.percentage = xstrdup(record_text(record->raw, 1)),
		.memory_limit = xstrdup(record_text(record->raw, 2)),
		.priority = xstrdup(record_text(record->raw, 3)),
	};
}

/* What notes are known by: their text, and which note it is behind it. */
static void apply_note(struct process *process, const union spy_any *raw)
{
	const char *text = record_text(raw, 0);
	size_t length = strlen(text) + 1;
	char key[SPY_TEXT_MAX + sizeof(uint16_t)];
	struct note *note;

	memcpy(key, text, length);
	memcpy(key + length, &raw->note.note, sizeof(uint16_t));
	HASH_FIND(hh, process->notes, key, length + sizeof(uint16_t), note);
	if (!note) {
		note = xcalloc(1, sizeof(*note) + length + sizeof(uint16_t));
		note->note = raw->note.note;
		memcpy(note->text, key, length + sizeof(uint16_t));
		HASH_ADD_KEYPTR(hh, process->notes, note->text, length + sizeof(uint16_t), note);
	}
	note->count++;
}

static void apply_stack(struct process *process, const struct record *record)
{
	const struct spy_rec_stack *raw = &record->raw->stack;
	uint8_t n = raw->count < SPY_STACK_MOST ? raw->count : SPY_STACK_MOST;
	struct stack *stack = xcalloc(1, sizeof(*stack) + n * sizeof(stack->frames[0]));

	stack->process = process;
	stack->ns = record->ns;
	stack->time = raw->time;
	stack->fn = raw->fn;
	stack->why = raw->why;
	stack->n = n;
	memcpy(stack->frames, (const char *)raw + offsetof(struct spy_rec_stack, frames),
	       n * sizeof(stack->frames[0]));
	process->stacks = grow(process->stacks, process->n_stacks, sizeof(*process->stacks));
	process->stacks[process->n_stacks++] = stack;
	record->thread->stack = stack;
}

static void forget_stacks_of(struct process *process)
{
	size_t i, kept = 0;

	for (i = 0; i < process->n_stacks; i++) {
		struct stack *stack = process->stacks[i];

		if (!stack->kept && !stack->pinned) {
			free(stack);
			continue;
		}
		stack->kept = false;
		process->stacks[kept++] = stack;
	}
	process->n_stacks = kept;
}

/* Those of other parts of the set belong to other threads. */
void model_forget_stacks(struct model *model)
{
	size_t n = model->own ? model->n_own : model->n_processes, i;

	model->n_stacks = 0;
	for (i = 0; i < n; i++) {
		struct process *process = &model->processes[model->own ? model->own[i] : i];

		forget_stacks_of(process);
		model->n_stacks += process->n_stacks;
	}
}

static void apply_python_code(struct process *process, const union spy_any *raw)
{
	uint32_t number = raw->python_code.code;
	struct python_code *code;

	if (number >= PYTHON_MAX)
		return;
	HASH_FIND(hh, process->python, &number, sizeof(number), code);
	if (code)
		return; /* told again */
	code = xcalloc(1, sizeof(*code));
	code->number = number;
	code->file = xstrdup(record_text(raw, 0));
	redact_path(code->file);
	code->function = xstrdup(record_text(raw, 1));
	code->first_line = raw->python_code.first_line;
	HASH_ADD(hh, process->python, number, sizeof(code->number), code);
}

/* It belongs to the stack before it. */
static void apply_python_stack(const struct record *record)
{
	const struct spy_rec_python_stack *raw = &record->raw->python_stack;
	struct stack *stack = record->thread->stack;
	uint8_t i;

	if (!stack || stack->time != raw->time || stack->fn != raw->fn)
		return;
	stack->n_python = raw->count < SPY_PYTHON_MOST ? raw->count : SPY_PYTHON_MOST;
	stack->more_python = raw->more;
	for (i = 0; i < stack->n_python; i++)
		stack->python[i] = (struct python_frame){raw->codes[i], raw->lines[i]};
}

static struct range_family *family_of(struct process *process, struct range_name *name)
{
	struct range_family *family;

	HASH_FIND_PTR(process->families, &name, family);
	if (!family) {
		family = xcalloc(1, sizeof(*family));
		family->name = name;
		HASH_ADD_PTR(process->families, name, family);
	}
	return family;
}

static void apply_range_name(struct model *model, struct process *process, const union spy_any *raw)
{
	uint32_t number = raw->range_name.name;
	struct range_number *range;

	if (!number || number >= RANGES_MAX)
		return;
	HASH_FIND(hh, process->ranges, &number, sizeof(number), range);
	if (range)
		return; /* told again */
	range = xcalloc(1, sizeof(*range));
	range->number = number;
	range->name = range_names_get(&model->range_names, record_text(raw, 0), record_text(raw, 1),
				      raw->range_name.folded);
	if (raw->range_name.folded)
		family_of(process, range->name)->many = true;
	if (range->name->family) {
		range->family = family_of(process, range->name->family);
		range->family->members++;
	}
	HASH_ADD(hh, process->ranges, number, sizeof(range->number), range);
}

/* A later name of a thread is left out: threads hold the first one. */
static void apply_nvtx_name(struct model *model, struct process *process, const union spy_any *raw)
{
	const char *name = record_text(raw, 0);
	uint32_t tid = (uint32_t)raw->nvtx_name.object;
	struct given_name *given;
	struct thread *thread;

	if (raw->nvtx_name.what != SPY_NAMED_THREAD || !*name || given_to(process, tid) ||
	    HASH_COUNT(process->given_names) >= GIVEN_MOST)
		return;
	given = xcalloc(1, sizeof(*given) + strlen(name) + 1);
	given->tid = tid;
	strcpy(given->name, name);
	HASH_ADD(hh, process->given_names, tid, sizeof(given->tid), given);
	thread = model_find_thread(model, process, tid);
	if (thread)
		thread->given = given->name;
}

/* What only the report tells. */
static void apply_named(struct model *model, struct record *record)
{
	struct process *process = record->thread->process;

	switch (record->raw->other.event) {
	case SPY_EV_KERNEL:
		apply_kernel(process, &record->raw->kernel, record_text(record->raw, 0));
		break;
	case SPY_EV_MODULE:
		apply_module(process, record);
		break;
	case SPY_EV_NOTE:
		apply_note(process, record->raw);
		break;
	case SPY_EV_STACK:
		apply_stack(process, record);
		model->n_stacks++;
		break;
	case SPY_EV_PYTHON_CODE:
		apply_python_code(process, record->raw);
		break;
	case SPY_EV_PYTHON_STACK:
		apply_python_stack(record);
		break;
	case SPY_EV_RANGE_NAME:
		apply_range_name(model, process, record->raw);
		break;
	case SPY_EV_NVTX_NAME:
		apply_nvtx_name(model, process, record->raw);
		break;
	default:
		break;
	}
}

/* ---- windows -------------------------------------------------------------------------------- */

/* The time until then was dormant. Times stay in order and apart, whatever the records say. */
static void end_dormant(struct process *process, uint64_t ns)
{
	size_t n = process->n_dormant_times;
	const struct dormant_time *last = n ? &process->dormant_times[n - 1] : NULL;
	struct dormant_time time = {.begin_ns = process->dormant_since_ns, .end_ns = ns};

	if (!process->dormant)
		return;
	process->dormant = false;
	if (last) {
		time.begin_ns = max_u64(time.begin_ns, last->end_ns);
		time.before_ns = last->before_ns + last->end_ns - last->begin_ns;
	}
	time.end_ns = max_u64(time.end_ns, time.begin_ns);
	process->dormant_ns += time.end_ns - time.begin_ns;
	if (n == DORMANT_MOST) {
		process->dormant_times[n - 1].end_ns = time.end_ns;
		return;
	}
	process->dormant_times = grow(process->dormant_times, n, sizeof(*process->dormant_times));
	process->dormant_times[process->n_dormant_times++] = time;
}

static void begin_dormant(struct process *process, uint64_t ns)
{
	if (process->dormant)
		return;
	process->dormant = true;
	process->dormant_since_ns = ns;
}

/* For how long it was dormant until then. */
static uint64_t dormant_until(const struct process *process, uint64_t ns)
{
	size_t low = 0, high = process->n_dormant_times;
	const struct dormant_time *time;

	while (low < high) { /* the first one that begins later */
		size_t middle = low + (high - low) / 2;

		if (process->dormant_times[middle].begin_ns > ns)
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return 0;
	time = &process->dormant_times[low - 1];
	return time->before_ns + min_u64(ns, time->end_ns) - time->begin_ns;
}

uint64_t process_dormant_ns(const struct process *process, uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? dormant_until(process, end_ns) - dormant_until(process, begin_ns)
				 : 0;
}

static void apply_window(const struct record *record)
{
	struct process *process = record->thread->process;
	const struct spy_rec_window *raw = &record->raw->window;

	switch (raw->state) {
	case SPY_WINDOW_OPEN:
		/* A part of the recording begins with the window that is open. */
		process->windows += !process->windows || process->window != raw->number;
		process->window = raw->number;
		/* fall through */
	case SPY_WINDOW_RECORDING:
		end_dormant(process, record->ns);
		process->opened_ns = record->ns;
		break;
	case SPY_WINDOW_CLOSED:
		if (!process->windows && raw->number)
			process->windows = 1; /* which began with the recording */
		begin_dormant(process, raw->number ? record->ns : process->first_ns);
		break;
	case SPY_WINDOW_COUNTING:
		process->countings += !process->dormant;
		begin_dormant(process, record->ns);
		break;
	default:
		break;
	}
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* What is known of the ones that the recorder has deleted: the last word holds. */
static void see_removed(struct process *process, const struct record *record)
{
	const struct spy_rec_part *raw = &record->raw->part;

	if (!raw->removed || raw->removed < process->removed_parts)
		return;
	process->removed_parts = raw->removed;
	process->removed_calls = raw->removed_calls;
	process->removed_ns = timeline_span_ns(
		&record->stream->trace->timeline,
		raw->removed_until - min_u64(raw->recording_began, raw->removed_until));
}

static struct part_seen *part_of(struct process *process, uint32_t number)
{
	size_t n = process->n_parts_seen;

	if (!n || process->parts_seen[n - 1].number != number) {
		process->parts_seen = grow(process->parts_seen, n, sizeof(*process->parts_seen));
		process->parts_seen[process->n_parts_seen++] = (struct part_seen){.number = number};
	}
	return &process->parts_seen[process->n_parts_seen - 1];
}

/* Between parts that are not neighbours, nothing was recorded as far as is known. */
static void apply_part(const struct record *record)
{
	struct process *process = record->thread->process;
	const struct spy_rec_part *raw = &record->raw->part;

	see_removed(process, record);
	if (raw->state == SPY_PART_END) {
		process->part_ended = raw->number;
		process->part_ended_ns = record->ns;
		part_of(process, raw->number)->end_ns = record->ns;
		part_of(process, raw->number)->calls = raw->calls;
	}
	if (raw->state != SPY_PART_BEGIN)
		return;
	process->part = raw->number;
	part_of(process, raw->number)->begin_ns = record->ns;
	process->part_is_apart = process->part_ended + 1 != raw->number;
	if (!process->part_is_apart)
		return;
	if (process->part_ended && !process->dormant) {
		process->dormant = true;
		process->dormant_since_ns = process->part_ended_ns;
	}
	if (process->part_ended)
		end_dormant(process, record->ns);
	process->opened_ns = record->ns;
}

void model_apply_other(struct model *model, struct record *record)
{
	struct process *process = record->thread->process;

	switch (record->raw->other.event) {
	case SPY_EV_THREAD:
		apply_thread(model, record);
		break;
	case SPY_EV_COUNT:
		apply_count(model, record);
		break;
	case SPY_EV_STRANGER:
		apply_non_cuda_thread(model, record);
		break;
	case SPY_EV_GPU:
		apply_gpu(process, record->raw);
		break;
	case SPY_EV_SHARE:
		apply_share(process, &record->raw->share);
		break;
	case SPY_EV_MPS:
		apply_mps(process, record);
		break;
	case SPY_EV_WINDOW:
		apply_window(record);
		break;
	case SPY_EV_PART:
		apply_part(record);
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
	size_t i;

	model->first_ns = UINT64_MAX;
	for (i = 0; i < model->set->n_streams; i++)
		count_records(model, model->set->streams[i]);
	for (i = 0; i < model->n_processes; i++) {
		struct process *process = &model->processes[i];

		end_dormant(process, process->last_ns); /* it was so to the end */
		if (process->first_ns < model->first_ns)
			model->first_ns = process->first_ns;
		if (process->last_ns > model->last_ns)
			model->last_ns = process->last_ns;
		model->records += process->records;
	}
	if (model->first_ns > model->last_ns)
		model->first_ns = model->last_ns;
}

/* ---- questions ------------------------------------------------------------------------------ */

static bool look_for_code(const struct place_of_module *place, void *context)
{
	struct search *s = context;
	const struct module *module = &s->process->modules[place->module];

	if (s->address < place->begin || s->address >= place->end)
		return true;
	s->times += place->unloaded;
	/* Objects are noticed after they were loaded: a beginning may be late. */
	if (s->ns <= module->unloaded_ns && (!s->found || module > s->found))
		s->found = module;
	else if (s->ns > module->unloaded_ns && (!s->unloaded || module > s->unloaded))
		s->unloaded = module;
	return true;
}

uint32_t model_gone(const struct process *process, uint64_t address)
{
	struct search s = {.process = process, .address = address};

	places_at(&process->places, address, look_for_code, &s);
	return (uint32_t)s.times;
}

const struct module *model_module(const struct process *process, uint64_t address, uint64_t ns)
{
	struct search s = {.process = process, .address = address, .ns = ns};

	places_at(&process->places, address, look_for_code, &s);
	return s.found ? s.found : s.unloaded;
}

static bool look_for_data(const struct place_of_module *place, void *context)
{
	struct search *s = context;
	const struct module *module = &s->process->modules[place->module];

	if (s->address >= place->base && s->address < place->span_end &&
	    s->ns <= module->unloaded_ns && (!s->found || module > s->found))
		s->found = module;
	return true;
}

const struct module *model_module_of_data(const struct process *process, uint64_t address,
					  uint64_t ns)
{
	struct search s = {.process = process, .address = address, .ns = ns};

	places_at(&process->places, address, look_for_data, &s);
	return s.found;
}

const char *model_kernel(const struct process *process, uint32_t kernel)
{
	struct kernel_name *known;

	HASH_FIND(hh, process->kernels, &kernel, sizeof(kernel), known);
	return known ? known->name : NULL;
}

const struct range_number *model_range_number(const struct process *process, uint32_t number)
{
	struct range_number *range;

	HASH_FIND(hh, process->ranges, &number, sizeof(number), range);
	return range;
}

const struct python_code *model_python(const struct stack *stack, const struct python_frame *frame)
{
	struct python_code *code;

	HASH_FIND(hh, stack->process->python, &frame->code, sizeof(frame->code), code);
	return code;
}

const struct gpu *model_gpu(const struct process *process, uint16_t device)
{
	size_t i;

	for (i = 0; i < process->n_gpus; i++)
		if (process->gpus[i].device == device)
			return &process->gpus[i];
	return NULL;
}

/* What a process had found of a daemon when it had initialised CUDA. */
static const struct trace_mps *mps_found(const struct process *process,
					 const struct reading_moment *now)
{
	const struct trace_mps *mps = process->trace->use.mps;
	struct reading_moment at;

	if (!mps || !now)
		return mps;
	at = (struct reading_moment){mps->ns, mps->stream + 1};
	return moment_compare(&at, now) <= 0 ? mps : NULL;
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
			  const struct reading_moment *now, struct mps_server *server)
{
	const struct mps *before = &process->mps_before;
	bool meanwhile = false;
	size_t i;

	if (!before->ns)
		return false;
	for (i = 0; i < model->n_processes; i++) {
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
