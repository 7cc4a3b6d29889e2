/*
 * analyzer/timeline/events.c: what GPUs, ranges and ranks did, as slices. Called by the main reading, as it learns of it.
 */
#include <stdlib.h>
#include "events.h"
#include "findings/rank_words.h"
#include "idle/causes.h"
#include "trace/names.h"

/* ---- names ------------------------------------------------------------------------------------- */

const char *events_name(const struct events *e, uint32_t number)
{
	return e->labels.all[number]->text;
}

uint32_t events_cached(struct events *e, struct name_cache *cache, unsigned int value,
		       const char *(*name)(unsigned int value))
{
	if (value >= ARRAY_SIZE(cache->known))
		return label_of(&e->labels, name(value));
	if (!cache->known[value])
		cache->known[value] = label_of(&e->labels, name(value)) + 1;
	return cache->known[value] - 1;
}

uint32_t events_thread_name(struct events *e, const struct thread *thread)
{
	struct thread_tracks *tracks = tracks_thread(&e->tracks, thread);

	if (!tracks->name)
		tracks->name = label_of(&e->labels, tracks->calls->name) + 1;
	return tracks->name - 1;
}

#define KERNELS_CACHED 4096 /* of a process */

uint32_t events_kernel(struct events *e, uint32_t process, uint32_t kernel)
{
	const struct process *of = &e->source.shown->model.processes[process];
	uint32_t *known;

	if (!kernel || kernel >= KERNELS_CACHED)
		return label_of_kernel(&e->labels, of, kernel);
	if (!e->kernels[process])
		e->kernels[process] = xcalloc(KERNELS_CACHED, sizeof(**e->kernels));
	known = &e->kernels[process][kernel];
	if (!*known) {
		uint32_t name = label_of_kernel(&e->labels, of, kernel);

		if (!name) /* its name may still come */
			return 0;
		*known = name + 1;
	}
	return *known - 1;
}

static uint32_t range_label(struct events *e, const struct range_name *name)
{
	char *text;

	while (e->n_range_names <= name->index) {
		e->range_names = grow(e->range_names, e->n_range_names, sizeof(*e->range_names));
		e->range_names[e->n_range_names++] = 0;
	}
	if (!e->range_names[name->index]) {
		text = xasprintf("%s%s%s", name->domain, *name->domain ? ": " : "", name->name);
		e->range_names[name->index] = label_of(&e->labels, text) + 1;
		free(text);
	}
	return e->range_names[name->index] - 1;
}

static const char *cause_text(unsigned int cause)
{
	return cause < IDLE_CAUSE_COUNT ? idle_cause_texts[cause] : "?";
}

/* ---- slices that need not wait ------------------------------------------------------------------ */

static void next(struct events *e)
{
	if (e->sink->next)
		e->sink->next(e->sink->data);
}

static void put_into_row(struct events *e, struct slice *slice, uint32_t depth)
{
	tracks_row(&e->tracks, slice, depth);
	e->sink->slice(e->sink->data, slice);
	if (e->sink->slice_end)
		e->sink->slice_end(e->sink->data, slice->track, slice->end_ns);
}

void events_put(struct events *e, struct slice *slice)
{
	put_into_row(e, slice, 0);
}

/* Of a track with rows; times are those of records. */
static void put(struct events *e, struct slice *slice, uint32_t depth)
{
	slice->begin_ns = events_since(e, slice->begin_ns);
	slice->end_ns = max_u64(slice->begin_ns, events_since(e, slice->end_ns));
	put_into_row(e, slice, depth);
}

void events_flow(struct events *e, struct track *track, uint64_t ns, uint64_t flow, bool ends)
{
	struct slice point = {.track = track,
			      .begin_ns = events_since(e, ns),
			      .end_ns = events_since(e, ns),
			      .category = SLICE_FLOW,
			      .flow = flow,
			      .flow_ends = ends};

	if (e->sink->flow)
		e->sink->flow(e->sink->data, &point);
}

static void on_range(void *data, const struct shown_range *range)
{
	struct events *e = data;
	struct slice slice = {.begin_ns = range->begin_ns,
			      .end_ns = range->end_ns,
			      .category = range->mark ? SLICE_MARK : SLICE_RANGE,
			      .name = range_label(e, range->name)};

	next(e);
	if (range->mark) {
		slice.track = tracks_thread(&e->tracks, range->thread)->calls;
		slice.begin_ns = slice.end_ns = events_since(e, range->begin_ns);
		if (e->sink->mark)
			e->sink->mark(e->sink->data, &slice);
		return;
	}
	slice.track = tracks_ranges(&e->tracks, range->thread);
	slice_add_known(&slice, ARGUMENT_UNENDED, range->unended);
	put(e, &slice, range->depth);
}

/* ---- GPUs -------------------------------------------------------------------------------------- */

/* What a filter leaves out is not asked for here by who shows operations. */
static bool is_left_out(const struct events *e, uint32_t gpu, const struct gpu_event *op)
{
	const struct filtering *f = &e->source.shown->filtering;

	return e->source.shown->idle.gpus[gpu].left_out || op->end_ns < f->from_ns ||
	       op->begin_ns >= f->to_ns;
}

static void add_submission(struct events *e, struct slice *slice, const struct thread *thread,
			   const struct gpu_event *op)
{
	uint64_t ns = op->submit_begin_ns +
		      (max_u64(op->submit_end_ns, op->submit_begin_ns) - op->submit_begin_ns) / 2;

	slice_add_known(slice, ARGUMENT_THREAD, events_thread_name(e, thread));
	slice_add(slice, ARGUMENT_LATENCY,
		  op->begin_ns - min_u64(op->submit_begin_ns, op->begin_ns));
	slice->flow = ++e->flows;
	slice->flow_ends = true;
	/* The two clocks agree up to some error; an arrow leads to later times. */
	events_flow(e, tracks_thread(&e->tracks, thread)->calls, min_u64(ns, op->begin_ns),
		    slice->flow, false);
}

static void on_gpu_op(void *data, const struct gpu_event *op, uint32_t gpu)
{
	struct events *e = data;
	const struct model *model = &e->source.shown->model;
	const struct thread *thread =
		op->tid ? model_find_thread(model, &model->processes[op->process], op->tid) : NULL;
	uint32_t kernel = events_kernel(e, op->process, op->kernel);
	struct slice slice = {
		.begin_ns = op->begin_ns,
		.end_ns = op->end_ns,
		.category = SLICE_OPERATION,
		.name = kernel ?: events_cached(e, &e->gpu_ops, op->kind, name_gpu_op)};

	if (is_left_out(e, gpu, op))
		return;
	next(e);
	slice.track = tracks_stream(&e->tracks, gpu, op);
	slice_add_known(&slice, op->kind == SPY_GPU_KERNEL ? ARGUMENT_BLOCKS : ARGUMENT_BYTES,
			op->amount);
	if (op->kind == SPY_GPU_COPY)
		slice_add(&slice, ARGUMENT_DIRECTION,
			  events_cached(e, &e->directions, op->direction, name_direction));
	slice_add_known(&slice, ARGUMENT_CORRELATION, op->correlation);
	if (thread && op->submit_begin_ns)
		add_submission(e, &slice, thread, op);
	put(e, &slice, 0);
}

static void on_idle(void *data, const struct shown_idle *idle)
{
	struct events *e = data;
	struct slice slice = {.track = tracks_idle(&e->tracks, idle->gpu, idle->exact),
			      .begin_ns = idle->begin_ns,
			      .end_ns = idle->end_ns,
			      .category = SLICE_IDLE,
			      .name = events_cached(e, &e->causes, idle->cause, cause_text)};

	next(e);
	slice_add(&slice, ARGUMENT_IDLE, idle->ns);
	put(e, &slice, 0);
}

/* ---- collective operations ---------------------------------------------------------------------- */

static uint32_t rank_label(struct events *e, uint32_t index)
{
	const struct ranks *ranks = &e->source.known->ranks;
	struct arena texts = {0};
	uint32_t name;

	if (index >= ranks->n)
		return 0;
	name = label_of(&e->labels, text_rank_name(&texts, ranks->all[index]));
	arena_release(&texts);
	return name;
}

static struct slice slice_of_part(struct events *e, const struct shown_collective *c)
{
	bool timed = c->end_ns;
	struct slice slice = {.track = tracks_rank(&e->tracks, c->rank),
			      .begin_ns = timed ? c->begin_ns : c->submit_begin_ns,
			      .end_ns = timed ? c->end_ns : c->submit_end_ns,
			      .category = SLICE_COLLECTIVE,
			      .name = events_cached(e, &e->functions, c->func, name_shown_func)};

	slice_add(&slice, ARGUMENT_NUMBER, c->number);
	slice_add_known(&slice, ARGUMENT_COMM, c->comm);
	slice_add_known(&slice, ARGUMENT_BYTES, c->bytes);
	slice_add_known(&slice, ARGUMENT_COUNT, c->count);
	slice_add_known(&slice, ARGUMENT_WAITED, c->wait_ns);
	if (c->last_rank != UINT32_MAX)
		slice_add_known(&slice, ARGUMENT_LAST, rank_label(e, c->last_rank));
	if (c->by_host_times || !timed)
		slice_add(&slice, ARGUMENT_HOST_TIMES, 1);
	return slice;
}

static const struct shown_collective *last_part(const struct events *e)
{
	for (size_t i = 0; i < e->n_parts; i++)
		if (e->parts[i].rank == e->parts[i].last_rank)
			return &e->parts[i];
	return NULL;
}

/* The part of who came last first, for the arrows of the others lead to it. No arrow leads back, or to where that part is
 * over: hosts' clocks, by which parts are shown, may be further off than a short operation lasts. */
static void put_parts(struct events *e)
{
	const struct shown_collective *last = last_part(e);
	struct slice slice, to = {.track = NULL};
	uint64_t begin_ns;

	if (e->n_parts)
		next(e);
	if (last) {
		to = slice_of_part(e, last);
		put(e, &to, 0);
	}
	for (size_t i = 0; i < e->n_parts; i++) {
		if (&e->parts[i] == last)
			continue;
		slice = slice_of_part(e, &e->parts[i]);
		begin_ns = max_u64(to.begin_ns, events_since(e, slice.begin_ns));
		if (to.track && e->parts[i].wait_ns && begin_ns < to.end_ns)
			slice.flow = ++e->flows;
		put(e, &slice, 0);
		if (slice.flow)
			events_flow(e, to.track, e->zero_ns + begin_ns, slice.flow, true);
	}
	e->n_parts = 0;
}

static void on_collective(void *data, const struct shown_collective *c)
{
	struct events *e = data;

	if (e->n_parts && e->parts[0].number != c->number)
		put_parts(e);
	e->parts = grow(e->parts, e->n_parts, sizeof(*e->parts));
	e->parts[e->n_parts++] = *c;
}

/* ---- */

struct events *events_new(const struct timeline_source *source, const struct sink *sink)
{
	struct events *e = xcalloc(1, sizeof(*e));

	e->source = *source;
	e->sink = sink;
	e->zero_ns = source->known->model.first_ns;
	tracks_init(&e->tracks, source, sink);
	labels_init(&e->labels, &source->known->model, source->symbols);
	events_take_findings(e);
	counters_init(&e->counters, &source->known->model);
	e->kernels = xcalloc(source->known->set->n_traces + 1, sizeof(uint32_t *));
	e->listener = (struct listener){.data = e,
					.on_call = events_on_call,
					.on_nested = events_on_nested,
					.on_outside = events_on_outside,
					.on_gpu_look = counters_see_gpu,
					.on_range = on_range,
					.on_gpu_op = on_gpu_op,
					.on_idle = on_idle,
					.on_collective = on_collective};
	return e;
}

const struct listener *events_listener(struct events *e)
{
	return &e->listener;
}

void events_finish(struct events *e)
{
	put_parts(e);
	events_finish_threads(e);
	events_show_findings(e, UINT64_MAX);
	counters_finish(e);
}

void events_free(struct events *e)
{
	for (size_t i = 0; i < e->n_pending; i++) {
		free(e->pending[i].all);
		free(e->pending[i].arrows);
	}
	for (size_t i = 0; i < e->source.known->set->n_traces; i++)
		free(e->kernels[i]);
	free(e->pending);
	free(e->order.all);
	free(e->open_ends);
	free(e->kernels);
	free(e->range_names);
	free(e->locks);
	free(e->parts);
	free(e->findings);
	counters_release(&e->counters);
	tracks_release(&e->tracks);
	labels_release(&e->labels);
	free(e);
}
