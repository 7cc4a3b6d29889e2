/*
 * analyzer/timeline/counters.c: how many threads wait for a lock, how much work is outstanding on a GPU, and what NVML says of it, as
 * counters over time. Called for each call, each wait of one, and each answer of NVML's.
 *
 * Waits are known when their call has returned, so in no order of their begins: their ends lie in a heap until WAIT_EDGES others
 * have come. One that turns out to have begun before what is told by then, counts from there on.
 */
#include <stdlib.h>
#include "events.h"
#include "account/streams.h"

/* Of values that change more often, the last one in so long is told: 20 us, or more of a long recording. */
#define COUNTER_STEP_NS 20000
#define COUNTER_VALUES_MOST 10000 /* of a counter */

void counters_init(struct counters *c, const struct model *known)
{
	uint64_t run_ns = known->last_ns - min_u64(known->first_ns, known->last_ns);

	*c = (struct counters){0};
	c->step_ns = max_u64(COUNTER_STEP_NS, run_ns / COUNTER_VALUES_MOST);
}

/* ---- a counter ----------------------------------------------------------------------------------- */

static void write_open(struct events *e, struct track *track)
{
	if (!track->open)
		return;
	track->open = false;
	track->written_ns = track->value_ns;
	e->sink->counter(e->sink->data, track, track->value_ns, track->value);
}

/* The value from then on. */
static void set(struct events *e, struct track *track, uint64_t ns, uint64_t value)
{
	if (track->any && track->value == value)
		return;
	if (track->any && ns - min_u64(track->written_ns, ns) >= e->counters.step_ns)
		write_open(e, track);
	track->value = value;
	track->value_ns = max_u64(ns, track->value_ns);
	track->open = true;
	if (!track->any || track->value_ns - track->written_ns >= e->counters.step_ns)
		write_open(e, track);
	track->any = true;
}

static struct track **slot(struct track ***array, size_t *n, size_t i)
{
	while (*n <= i) {
		*array = grow(*array, *n, sizeof(struct track *));
		(*array)[(*n)++] = NULL;
	}
	return &(*array)[i];
}

/* ---- queues at locks ------------------------------------------------------------------------------ */

static struct track *track_of_lock(struct events *e, const struct process *process,
				   const struct lock *lock)
{
	struct track **track = slot(&e->counters.locks, &e->counters.n_locks, lock->index);
	struct arena texts = {0};

	if (!*track) {
		*track = tracks_counter(&e->tracks, tracks_process(&e->tracks, process),
					arena_printf(&texts, "threads that wait for %s",
						     tracks_lock_name(&e->tracks, &texts, lock)));
		arena_release(&texts);
	}
	return *track;
}

static struct track *track_of_process(struct events *e, const struct process *process)
{
	struct counters *c = &e->counters;
	struct track **track;

	if (!c->waiting)
		c->waiting = xcalloc(e->source.known->set->n_traces + 1, sizeof(struct track *));
	track = &c->waiting[process->trace->index];
	if (!*track)
		*track = tracks_counter(&e->tracks, tracks_process(&e->tracks, process),
					"threads that wait for locks");
	return *track;
}

static void swap(struct wait_edge *a, struct wait_edge *b)
{
	struct wait_edge edge = *a;

	*a = *b;
	*b = edge;
}

/* Ends come before begins of the same time. */
static bool is_before(const struct wait_edge *a, const struct wait_edge *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->change < b->change;
}

static struct wait_edge take_first(struct counters *c)
{
	struct wait_edge first = c->edges[0];
	size_t i = 0, below;

	c->edges[0] = c->edges[--c->n_edges];
	for (; (below = 2 * i + 1) < c->n_edges; i = below) {
		if (below + 1 < c->n_edges && is_before(&c->edges[below + 1], &c->edges[below]))
			below++;
		if (!is_before(&c->edges[below], &c->edges[i]))
			break;
		swap(&c->edges[below], &c->edges[i]);
	}
	return first;
}

static void write_first(struct events *e)
{
	struct counters *c = &e->counters;
	struct wait_edge edge = take_first(c);

	c->written_ns = max_u64(c->written_ns, edge.ns);
	set(e, edge.lock, c->written_ns, edge.lock->value + (uint64_t)(int64_t)edge.change);
	set(e, edge.process, c->written_ns, edge.process->value + (uint64_t)(int64_t)edge.change);
}

static void put_edge(struct events *e, struct wait_edge edge)
{
	struct counters *c = &e->counters;
	size_t i;

	if (!c->edges)
		c->edges = xcalloc(WAIT_EDGES, sizeof(*c->edges));
	if (c->n_edges == WAIT_EDGES)
		write_first(e);
	i = c->n_edges++;
	c->edges[i] = edge;
	for (; i && is_before(&c->edges[i], &c->edges[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&c->edges[i], &c->edges[(i - 1) / 2]);
}

void counters_see_wait(struct events *e, const struct process *process, const struct lock *lock,
		       uint64_t begin_ns, uint64_t end_ns)
{
	struct wait_edge edge = {events_since(e, begin_ns), NULL, NULL, 1};

	if (!e->sink->counter || end_ns <= begin_ns)
		return;
	edge.lock = track_of_lock(e, process, lock);
	edge.process = track_of_process(e, process);
	put_edge(e, edge);
	edge.ns = events_since(e, end_ns);
	edge.change = -1;
	put_edge(e, edge);
}

/* ---- work outstanding ------------------------------------------------------------------------------ */

static struct track *track_of_device(struct events *e, const struct process *process, size_t index,
				     uint32_t device)
{
	struct track **track = slot(&e->counters.devices, &e->counters.n_devices, index);
	struct arena texts = {0};

	if (!*track) {
		*track = tracks_counter(
			&e->tracks, tracks_process(&e->tracks, process),
			arena_printf(&texts, "operations not known to be done, GPU %u", device));
		arena_release(&texts);
	}
	return *track;
}

/* streams.h: own_stream; a handle is an address, which is larger. */
static const char *name_of_stream(struct arena *texts, const struct stream_key *key,
				  size_t n_threads)
{
	const char *what = "operations not known to be done";

	if (key->stream == STREAM_LEGACY)
		return arena_printf(texts, "%s, legacy default stream of GPU %u", what,
				    key->device);
	if (key->stream >> 8 && key->stream >> 8 <= n_threads &&
	    (key->stream & 0xff) == STREAM_PER_THREAD)
		return arena_printf(texts, "%s, a thread's default stream of GPU %u", what,
				    key->device);
	return arena_printf(texts, "%s, stream 0x%llx of GPU %u", what,
			    (unsigned long long)key->stream, key->device);
}

static struct track *track_of_stream(struct events *e, const struct process *process,
				     const struct gpu_stream *stream)
{
	struct counters *c = &e->counters;
	struct stream_counter *known = c->last_stream;
	struct arena texts = {0};

	if (likely(known) && !memcmp(&known->key, &stream->key, sizeof(known->key)))
		return known->track;
	HASH_FIND(hh, c->streams, &stream->key, sizeof(stream->key), known);
	if (!known) {
		HASH_NEW(c->streams, known, key, stream->key);
		known->track = tracks_counter(
			&e->tracks, tracks_process(&e->tracks, process),
			name_of_stream(&texts, &stream->key, e->source.shown->model.n_threads));
		arena_release(&texts);
	}
	c->last_stream = known;
	return known->track;
}

void counters_see_call(struct events *e, const struct record *record)
{
	const struct accounting *a = &e->source.shown->accounts;
	const struct process *process = record->thread->process;
	uint32_t device = streams_device(record->device);
	size_t index = work_index(&a->work, record->process, device);
	const struct thread_account *c;
	uint64_t ns = events_since(e, record->ns), outstanding;

	if (!e->sink->counter)
		return;
	outstanding = streams_outstanding(&a->work.devices[index]);
	if (outstanding || (index < e->counters.n_devices && e->counters.devices[index]))
		set(e, track_of_device(e, process, index, device), ns, outstanding);
	c = thread_account_of(a, record->thread);
	if (c && c->stream && record_stream(record))
		set(e, track_of_stream(e, process, c->stream), ns,
		    c->stream->submitted - c->stream->done);
}

/* ---- NVML ------------------------------------------------------------------------------------------ */

#define LOOK_UNKNOWN UINT64_MAX

/* In the order of look_values. */
static const char *const look_names[] = {"utilisation of GPU %u (%%, NVML)",
					 "clock of GPU %u (MHz, NVML)", "power of GPU %u (W, NVML)",
					 "temperature of GPU %u (degrees C, NVML)",
					 "memory in use of GPU %u (MiB, NVML)"};

static void look_values(const struct spy_rec_gpu_look *look,
			uint64_t values[ARRAY_SIZE(look_names)])
{
	values[0] = look->busy <= 100 ? look->busy : LOOK_UNKNOWN;
	values[1] = look->clock ?: LOOK_UNKNOWN;
	values[2] = look->power ? (look->power + 500) / 1000 : LOOK_UNKNOWN;
	values[3] = look->temperature ?: LOOK_UNKNOWN;
	values[4] = look->used_bytes ? look->used_bytes >> 20 : LOOK_UNKNOWN;
}

static struct track *track_of_look(struct events *e, const struct process *process, size_t index,
				   uint32_t device, size_t value)
{
	struct track **track = slot(&e->counters.looks, &e->counters.n_looks,
				    index * ARRAY_SIZE(look_names) + value);
	char name[64];

	if (!*track) {
		snprintf(name, sizeof(name), look_names[value], device);
		*track = tracks_counter(&e->tracks, tracks_process(&e->tracks, process), name);
	}
	return *track;
}

void counters_see_gpu(void *data, const struct record *record)
{
	struct events *e = data;
	const struct spy_rec_gpu_look *look = record_gpu_look(record);
	const struct process *process = record->thread->process;
	uint32_t device = streams_device(look->device);
	size_t index = work_index(&e->source.shown->accounts.work, record->process, device);
	uint64_t values[ARRAY_SIZE(look_names)];

	if (!e->sink->counter)
		return;
	look_values(look, values);
	for (size_t i = 0; i < ARRAY_SIZE(look_names); i++)
		if (values[i] != LOOK_UNKNOWN)
			set(e, track_of_look(e, process, index, device, i),
			    events_since(e, record->ns), values[i]);
}

/* ---- */

void counters_finish(struct events *e)
{
	if (!e->sink->counter)
		return;
	while (e->counters.n_edges)
		write_first(e);
	for (size_t i = 0; i < e->tracks.n; i++)
		if (e->tracks.all[i]->kind == TRACK_COUNTER)
			write_open(e, e->tracks.all[i]);
}

void counters_release(struct counters *c)
{
	struct stream_counter *known, *next;

	HASH_EMPTY (c->streams, known, next)
		free(known);
	free(c->edges);
	free(c->locks);
	free(c->waiting);
	free(c->devices);
	free(c->looks);
	*c = (struct counters){0};
}
