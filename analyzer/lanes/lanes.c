/*
 * analyzer/lanes/lanes.c: what the main reading shows, put into lanes. Called for each call, wait, range and operation.
 */
#include <stdlib.h>
#include "lanes.h"
#include "account/streams.h"
#include "text/nvml.h"
#include "trace/names.h"

/* ---- which lane ------------------------------------------------------------------------------- */

static struct lane **slot(struct lane ***array, size_t *n, size_t i)
{
	while (*n <= i) {
		*array = grow(*array, *n, sizeof(struct lane *));
		(*array)[(*n)++] = NULL;
	}
	return &(*array)[i];
}

static struct lane *lane_of_thread(struct lanes *l, const struct thread *thread)
{
	struct lane **lane = slot(&l->threads, &l->n_threads, thread->index);

	if (!*lane) {
		*lane = store_add_lane(&l->store, LANE_THREAD);
		(*lane)->thread = thread;
		(*lane)->process = thread->process;
	}
	return *lane;
}

static struct lane *lane_of_gpu(struct lanes *l, uint32_t gpu)
{
	struct lane **lane = slot(&l->gpus, &l->n_gpus, gpu);

	if (!*lane) {
		*lane = store_add_lane(&l->store, LANE_GPU);
		(*lane)->index = gpu;
		(*lane)->process = l->a->idle.gpus[gpu].processes[0];
	}
	return *lane;
}

static struct lane *lane_of_stream(struct lanes *l, uint32_t gpu, const struct gpu_event *op)
{
	struct stream_lane_key key = {gpu, op->process, op->context, op->stream};
	struct stream_lane *known;

	HASH_FIND(hh, l->streams, &key, sizeof(key), known);
	if (!known) {
		HASH_NEW(l->streams, known, key, key);
		known->lane = store_add_lane(&l->store, LANE_STREAM);
		known->lane->index = gpu;
		known->lane->process = &l->a->model.processes[op->process];
		known->lane->stream = op->stream;
		known->lane->context = op->context;
	}
	return known->lane;
}

static struct lane *lane_of_rank(struct lanes *l, const struct shown_collective *collective)
{
	struct lane **lane = slot(&l->ranks, &l->n_ranks, collective->rank);

	if (!*lane) {
		*lane = store_add_lane(&l->store, LANE_RANK);
		(*lane)->index = collective->rank;
		(*lane)->process = collective->process;
	}
	return *lane;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint64_t thread_value(struct lanes *l, const struct thread *thread)
{
	if (!thread)
		return 0;
	lane_of_thread(l, thread);
	return thread->index + 1;
}

static uint64_t function_value(uint32_t fn)
{
	return fn == NO_FUNCTION ? 0 : (uint64_t)fn + 1;
}

/* What of a wait is due to one holder; NULL: it has none. */
static void add_wait(struct lanes *l, struct lane *lane, const struct wait *w,
		     const struct holder_part *part)
{
	struct item item = {
		.begin_ns = part ? part->begin_ns : w->begin_ns,
		.end_ns = part ? part->end_ns : w->end_ns,
		.values = {min_u64(w->kind, SPY_WAIT_KINDS), w->lock ? w->lock->index + 1 : 0}};

	if (part) {
		item.values[2] = thread_value(l, part->by->holder);
		item.values[3] = function_value(part->by->fn);
		item.values[4] = part->release_ns;
	}
	store_add_item(&l->store, lane, ITEMS_WAITS, &item);
}

static void add_waits(struct lanes *l, struct lane *lane, const struct completed_call *call)
{
	for (size_t i = 0; i < call->n_waits; i++) {
		const struct wait *w = &call->waits[i];
		struct holder_part part;

		for (size_t next = 0; next < w->n_intervals;) {
			next = wait_next_holder(w, next, &part);
			add_wait(l, lane, w, &part);
		}
		if (!w->n_intervals)
			add_wait(l, lane, w, NULL);
	}
}

static size_t parts_of(const struct completed_call *call, struct call_part parts[BUCKET_COUNT])
{
	size_t i, n = 0;

	for (i = 0; call->divided && i < BUCKET_COUNT; i++)
		if (i != BUCKET_OWN && call->bucket_ns[i])
			parts[n++] = (struct call_part){call->bucket_ns[i], (enum bucket)i};
	return n;
}

static void on_call(void *data, const struct record *record, const struct completed_call *call)
{
	struct lanes *l = data;
	struct lane *lane = lane_of_thread(l, record->thread);
	struct call_part parts[BUCKET_COUNT];
	size_t n = parts_of(call, parts);

	l->store.run_ns = record->ns - min_u64(l->a->model.processes[0].first_ns, record->ns);
	store_add_call(&l->store, lane,
		       (struct call_item){.begin_ns = call->begin_ns,
					  .end_ns = call->end_ns,
					  .expected_ns = call->expected_ns,
					  .where = label_where(&l->labels, record->thread->process,
							       call->return_address, call->end_ns,
							       call->stack),
					  .name = label_of_function(&l->labels, call->fn),
					  .about = label_of_arguments(&l->labels, record),
					  .count = 1},
		       parts, n);
	if (call->divided)
		add_waits(l, lane, call);
}

/* ---- between calls --------------------------------------------------------------------------- */

static void on_outside(void *data, const struct record *record)
{
	struct lanes *l = data;
	const struct host_thread *host = host_thread_find(&l->a->idle.threads, record->thread);
	const struct host_wait *wait;
	const struct thread *holder;

	if (!host || !host->n_waits)
		return;
	wait = &host->waits[(host->n_waits - 1) % host->waits_size];
	holder = wait->part.holder ? model_find_thread(&l->a->model, record->thread->process,
						       wait->part.holder)
				   : NULL;
	store_add_item(&l->store, lane_of_thread(l, record->thread), ITEMS_GAPS,
		       &(struct item){.begin_ns = wait->begin_ns,
				      .end_ns = wait->end_ns,
				      .values = {wait->part.cause,
						 label_where(&l->labels, record->thread->process,
							     wait->part.address, wait->end_ns,
							     wait->part.stack),
						 thread_value(l, holder)}});
}

static void on_range(void *data, const struct shown_range *range)
{
	struct lanes *l = data;
	const struct range_name *name = range->name;
	char *text = xasprintf("%s%s%s", name->domain, *name->domain ? ": " : "", name->name);

	store_add_item(&l->store, lane_of_thread(l, range->thread), ITEMS_RANGES,
		       &(struct item){.begin_ns = range->begin_ns,
				      .end_ns = range->end_ns,
				      .values = {label_of(&l->labels, text), range->depth}});
	free(text);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static uint32_t name_of_op(struct lanes *l, const struct gpu_event *op)
{
	uint32_t kernel =
		label_of_kernel(&l->labels, &l->a->model.processes[op->process], op->kernel);

	return kernel ? kernel : label_of(&l->labels, name_gpu_op(op->kind));
}

/* On the GPU's own lane what its streams do together: operations that overlap are one. */
static void add_to_gpu(struct lanes *l, struct lane *lane, const struct item *op)
{
	size_t n = lane->n_items[ITEMS_OPS];
	struct item *last = n ? &lane->items[ITEMS_OPS][n - 1] : NULL;

	if (last && op->begin_ns >= last->begin_ns && op->begin_ns < last->end_ns) {
		last->end_ns = max_u64(last->end_ns, op->end_ns);
		memset(last->values, 0, sizeof(last->values));
		return;
	}
	store_add_item(&l->store, lane, ITEMS_OPS, op);
}

static void on_gpu_op(void *data, const struct gpu_event *op, uint32_t gpu)
{
	struct lanes *l = data;
	const struct process *process = &l->a->model.processes[op->process];
	const struct thread *thread =
		op->tid ? model_find_thread(&l->a->model, process, op->tid) : NULL;
	struct item item = {
		.begin_ns = op->begin_ns,
		.end_ns = op->end_ns,
		.values = {name_of_op(l, op), min_u64(op->kind, SPY_GPU_MEMSET + 1),
			   thread_value(l, thread),
			   thread ? op->begin_ns - min_u64(op->submit_begin_ns, op->begin_ns) : 0,
			   op->amount}};

	add_to_gpu(l, lane_of_gpu(l, gpu), &item);
	store_add_item(&l->store, lane_of_stream(l, gpu, op), ITEMS_OPS, &item);
}

/* Where there are exact times of a GPU, those that are only certain are not drawn: encode.c. */
static void on_idle(void *data, const struct shown_idle *idle)
{
	struct lanes *l = data;

	store_add_item(&l->store, lane_of_gpu(l, idle->gpu), ITEMS_IDLE,
		       &(struct item){.begin_ns = idle->begin_ns,
				      .end_ns = idle->end_ns,
				      .values = {idle->cause, idle->ns, idle->exact}});
}

/* NVML's answer is of the last sixth of a second to second. */
#define LOOK_LEAST_NS 166666667
#define LOOK_MOST_NS 1000000000

/* Of the time since the look before it, unless that was long ago. Each process that uses the GPU asks. */
static uint64_t look_begin(const struct lane *lane, const struct record *record)
{
	uint64_t since_ns = max_u64(lane->looked_ns, record->thread->process->first_ns);

	if (lane->looked_ns && record->ns - lane->looked_ns <= LOOK_MOST_NS)
		return lane->looked_ns;
	return max_u64(since_ns, record->ns - min_u64(LOOK_LEAST_NS, record->ns));
}

/* "its power limit, heat, by software"; 0: nothing slows it down, or that is unknown. */
static uint32_t name_of_limits(struct lanes *l, const struct spy_rec_gpu_look *look)
{
	struct arena texts = {0};
	const char *words = "";
	uint32_t name;

	for (unsigned int bit = 0; look->known & SPY_GPU_LOOK_REASONS && bit < 64; bit++)
		if (look->reasons >> bit & 1 && text_nvml_limit(bit))
			words = arena_printf(&texts, "%s%s%s", words, *words ? "; " : "",
					     text_nvml_limit(bit));
	name = label_of(&l->labels, words);
	arena_release(&texts);
	return name;
}

static void on_gpu_look(void *data, const struct record *record)
{
	struct lanes *l = data;
	const struct spy_rec_gpu_look *look = record_gpu_look(record);
	size_t index =
		work_index(&l->a->accounts.work, record->process, streams_device(look->device));
	uint32_t gpu = l->a->idle.users[index].gpu;
	struct lane *lane = gpu ? lane_of_gpu(l, gpu - 1) : NULL;

	if (!lane || record->ns <= lane->looked_ns)
		return;
	store_add_item(
		&l->store, lane, ITEMS_LOOKS,
		&(struct item){
			.begin_ns = look_begin(lane, record),
			.end_ns = record->ns,
			.values = {[LOOK_BUSY] = look->busy <= 100 ? look->busy * 10u + 1 : 0,
				   [LOOK_CLOCK] = look->clock,
				   [LOOK_CLOCK_MOST] = look->clock_most,
				   [LOOK_SLOWED] = name_of_limits(l, look),
				   [LOOK_POWER] = (look->power + 500) / 1000,
				   [LOOK_TEMPERATURE] = look->temperature}});
	lane->looked_ns = record->ns;
}

static void on_collective(void *data, const struct shown_collective *c)
{
	struct lanes *l = data;
	bool timed = c->end_ns;
	uint64_t begin_ns = timed ? c->begin_ns : c->submit_begin_ns;

	store_add_item(
		&l->store, lane_of_rank(l, c), ITEMS_COLLECTIVES,
		&(struct item){
			.begin_ns = begin_ns,
			.end_ns = timed ? c->end_ns : c->submit_end_ns,
			.values = {label_of(&l->labels, name_shown_func(c->func)), c->number,
				   c->wait_ns, c->last_rank == UINT32_MAX ? 0 : c->last_rank + 1,
				   c->bytes, begin_ns - min_u64(c->submit_begin_ns, begin_ns)}});
}

/* ---- */

struct lanes *lanes_new(const struct analysis *a, struct symbolizer *symbols)
{
	struct lanes *l = xcalloc(1, sizeof(*l));

	l->a = a;
	l->symbols = symbols;
	labels_init(&l->labels, &a->model, symbols);
	l->listener = (struct listener){.data = l,
					.on_call = on_call,
					.on_outside = on_outside,
					.on_gpu_look = on_gpu_look,
					.on_range = on_range,
					.on_gpu_op = on_gpu_op,
					.on_idle = on_idle,
					.on_collective = on_collective};
	return l;
}

void lanes_free(struct lanes *l)
{
	struct stream_lane *known, *next;

	if (!l)
		return;
	HASH_EMPTY (l->streams, known, next)
		free(known);
	store_release(&l->store);
	labels_release(&l->labels);
	free(l->threads);
	free(l->gpus);
	free(l->ranks);
	free(l);
}

const struct listener *lanes_listener(struct lanes *l)
{
	return &l->listener;
}
