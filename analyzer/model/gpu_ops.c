/*
 * analyzer/model/gpu_ops.c: streams of GPU times are read ahead and put in order. Called by the idle account, within
 * the main reading.
 */
#include <stdlib.h>
#include <string.h>
#include "gpu_ops.h"
#include "trace/decode.h"
#include "trace/groups.h"
#include "trace/position.h"

/* No more than so many wait for their turn: 64 MB a process. */
#define AHEAD_MOST ((size_t)1 << 20)

/* The records of a submission's own calls end that much later, at most: the runtime's come behind the driver's. */
#define BEHIND_NS 100000

/* A submission is forgotten when another one needs its place, so long behind it. */
#define SUBMITS_NS 4000000000ull

/* Times that are further from when they were brought are damaged: they come from GPUs. */
#define LATE_MOST_NS 3600000000000ull
#define EARLY_MOST_NS 1000000000ull

/* The last submissions, by their correlation's low bits. */
#define SUBMITS_FIRST ((size_t)1 << 10)
#define SUBMITS_MOST ((size_t)1 << 17)

struct submit {
	uint32_t correlation; /* 0: none */
	uint32_t tid;
	uint64_t begin_ns, end_ns;
};

struct gpu_ops_stream {
	struct stream *stream;
	struct gpu_times *times;
	struct gpu_event *heap; /* binary, the one that began first on top; owned */
	size_t n, room;
	struct submit *submits; /* owned */
	size_t n_submits; /* a power of two */
	bool has_clock, ended;
	bool on, any_state; /* as of the record in hand; has it told so? */
	int64_t offset_ns; /* the trace's clock less CUPTI's */
	uint64_t brought_ns; /* time of the record in hand */
	uint64_t taken_ns; /* the last one that left began then */
};

/* Those of processes that use the same GPU. */
struct gpu_ops_queue {
	struct gpu_ops_stream *streams; /* a binary heap by what comes next; owned */
	size_t n_streams;
	uint32_t number; /* its first process */
	uint64_t moment_ns; /* of the last one that was taken */
	uint64_t due_ns; /* of the next one, no less than that; UINT64_MAX: there is none */
};

/* ---- one stream ------------------------------------------------------------------------------ */

static void push(struct gpu_ops_stream *s, const struct gpu_event *event)
{
	size_t i, above;

	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->heap = xrealloc(s->heap, s->room, sizeof(*s->heap));
	}
	for (i = s->n++; i; i = above) {
		above = (i - 1) / 2;
		if (s->heap[above].begin_ns <= event->begin_ns)
			break;
		s->heap[i] = s->heap[above];
	}
	s->heap[i] = *event;
}

static void pop(struct gpu_ops_stream *s)
{
	struct gpu_event last = s->heap[--s->n];
	size_t i = 0, below;

	for (; (below = 2 * i + 1) < s->n; i = below) {
		if (below + 1 < s->n && s->heap[below + 1].begin_ns < s->heap[below].begin_ns)
			below++;
		if (s->heap[below].begin_ns >= last.begin_ns)
			break;
		s->heap[i] = s->heap[below];
	}
	s->heap[i] = last;
}

/* CUPTI's time in the trace's; false: it cannot be. */
static bool convert(const struct gpu_ops_stream *s, uint64_t gpu_ns, uint64_t *ns)
{
	*ns = gpu_ns + (uint64_t)s->offset_ns;
	return s->has_clock && gpu_ns && *ns <= s->brought_ns + EARLY_MOST_NS &&
	       *ns + LATE_MOST_NS >= s->brought_ns;
}

static struct submit *place_of(const struct gpu_ops_stream *s, uint32_t correlation)
{
	return &s->submits[correlation & (s->n_submits - 1)];
}

static void grow_submits(struct gpu_ops_stream *s)
{
	struct submit *old = s->submits;
	size_t n = s->n_submits, i;

	s->n_submits = n ? 2 * n : SUBMITS_FIRST;
	s->submits = xcalloc(s->n_submits, sizeof(*s->submits));
	for (i = 0; i < n; i++)
		if (old[i].correlation)
			*place_of(s, old[i].correlation) = old[i];
	free(old);
}

/* May the one in that place still be asked for? */
static bool is_in_use(const struct submit *place, const struct submit *by)
{
	return place->correlation && place->correlation != by->correlation &&
	       place->begin_ns + SUBMITS_NS > by->begin_ns;
}

static void remember_submit(struct gpu_ops_stream *s, const struct submit *submit)
{
	while (!s->n_submits ||
	       (s->n_submits < SUBMITS_MOST && is_in_use(place_of(s, submit->correlation), submit)))
		grow_submits(s);
	*place_of(s, submit->correlation) = *submit;
}

static void see_submit(struct gpu_ops_stream *s, const struct spy_rec_gpu_submit *of)
{
	struct submit submit = {.correlation = of->correlation, .tid = of->tid};

	if (!of->correlation || !convert(s, of->begin_ns, &submit.begin_ns) ||
	    !convert(s, of->end_ns, &submit.end_ns) || submit.end_ns < submit.begin_ns)
		return;
	remember_submit(s, &submit);
}

static void see_op(struct gpu_ops_stream *s, const struct spy_rec_gpu_op *of)
{
	struct gpu_event event = {.event = GPU_EVENT_OP,
				  .process = s->stream->trace->index,
				  .amount = of->amount,
				  .correlation = of->correlation,
				  .stream = of->stream,
				  .context = of->context,
				  .kernel = of->kernel,
				  .kind = of->kind,
				  .direction = of->direction,
				  .device = of->device};

	s->times->ops++;
	if (!s->has_clock && !s->on) /* the stream's begin is gone: nothing is known of that time */
		return;
	if (!of->end_ns && (!of->begin_ns || convert(s, of->begin_ns, &event.begin_ns))) {
		/* Brought before it had ended, at the end of the recording or a window. */
		s->times->unfinished++;
		if (!of->begin_ns)
			return;
		event.end_ns = max_u64(event.begin_ns, s->brought_ns);
	} else if (!convert(s, of->begin_ns, &event.begin_ns) ||
		   !convert(s, of->end_ns, &event.end_ns) || event.end_ns < event.begin_ns) {
		s->times->damaged++;
		return;
	}
	/* It had ended when it was brought: the clock is off. */
	event.begin_ns = min_u64(event.begin_ns, s->brought_ns);
	event.end_ns = min_u64(event.end_ns, s->brought_ns);
	if (event.begin_ns < s->taken_ns) {
		s->times->late++;
		event.begin_ns = s->taken_ns;
		event.end_ns = max_u64(event.end_ns, event.begin_ns);
	}
	push(s, &event);
}

static void set_on(struct gpu_ops_stream *s, bool on)
{
	if (s->on == on)
		return;
	s->on = on;
	push(s, &(struct gpu_event){.begin_ns = max_u64(s->brought_ns, s->taken_ns),
				    .process = s->stream->trace->index,
				    .event = on ? GPU_EVENT_ON : GPU_EVENT_OFF});
}

static void see_clock(struct gpu_ops_stream *s, const struct record *record)
{
	const struct gpu_clock_record clock = decode_gpu_clock(record);
	struct gpu_times *t = s->times;

	if (!clock.valid)
		return;
	s->offset_ns = (int64_t)(clock.ns - clock.gpu_ns);
	s->has_clock = true;
	if (!t->clocks++)
		t->first_offset_ns = s->offset_ns;
	t->last_offset_ns = s->offset_ns;
	t->error_ns = max_u64(t->error_ns, clock.error_ns);
	t->dropped = max_u64(t->dropped, clock.dropped);
	/* Clocks are compared while the recording is on. That it is was told in a packet that is gone. */
	if (!s->any_state && s->stream->reader.losses.packets_dropped)
		set_on(s, true);
}

static void see_state(struct gpu_ops_stream *s, const struct spy_rec_gpu_state *of)
{
	s->any_state = true;
	if (of->state != SPY_GPU_ON && of->state != SPY_GPU_OFF) {
		s->times->state = of->state;
		memcpy(s->times->text, of->text, sizeof(of->text));
	}
	set_on(s, of->state == SPY_GPU_ON);
}

static void see(struct gpu_ops_stream *s)
{
	struct record record = {0};

	record_of_stream(&record, s->stream);
	s->brought_ns = record.ns;
	switch (record.event) {
	case SPY_EV_GPU_OP:
		see_op(s, record_gpu_op(&record));
		break;
	case SPY_EV_GPU_SUBMIT:
		see_submit(s, record_gpu_submit(&record));
		break;
	case SPY_EV_GPU_CLOCK:
		see_clock(s, &record);
		break;
	case SPY_EV_GPU_STATE:
		see_state(s, record_gpu_state(&record));
		break;
	default:
		break;
	}
}

/* Until nothing that comes later can be of an earlier time than the top. */
static void read_ahead(struct gpu_ops_stream *s)
{
	while (!s->ended && s->n < AHEAD_MOST &&
	       (!s->n || s->brought_ns <= s->heap[0].begin_ns + s->stream->behind_ns)) {
		see(s);
		s->ended = !reader_next(&s->stream->reader);
		if (s->ended) /* the process was killed, or is still running */
			set_on(s, false);
	}
}

/* Who submitted the one on top: known at the latest when its turn comes. */
static void find_submit(struct gpu_ops_stream *s)
{
	struct gpu_event *top = s->heap;
	const struct submit *submit;

	if (!s->n || !s->n_submits || !top->correlation || top->event != GPU_EVENT_OP)
		return;
	submit = place_of(s, top->correlation);
	if (submit->correlation != top->correlation)
		return;
	top->tid = submit->tid;
	top->submit_begin_ns = submit->begin_ns;
	top->submit_end_ns = submit->end_ns;
}

/* ---- the first reading ----------------------------------------------------------------------- */

void gpu_ops_measure(struct stream *stream, struct trace_use *use)
{
	struct gpu_times times = {0};
	struct gpu_ops_stream s = {.stream = stream, .times = &times};
	const struct spy_rec_gpu_op *op;
	struct record record = {0};
	uint64_t ns;

	use->gpu_times = true;
	do {
		record_of_stream(&record, stream);
		s.brought_ns = record.ns;
		op = record_gpu_op(&record);
		if (op)
			use->timed[op->device / 64] |= 1ull << op->device % 64;
		if (record.event == SPY_EV_GPU_CLOCK)
			see_clock(&s, &record);
		else if (op && convert(&s, op->begin_ns, &ns))
			stream->behind_ns = max_u64(stream->behind_ns,
						    s.brought_ns - min_u64(ns, s.brought_ns));
	} while (reader_next(&stream->reader));
}

/* ---- those of one GPU ------------------------------------------------------------------------- */

static uint64_t first_ns(const struct gpu_ops_stream *s)
{
	return s->n ? s->heap[0].begin_ns : UINT64_MAX;
}

/* The stream at i has another top. */
static void sift(struct gpu_ops_queue *q, size_t i)
{
	struct gpu_ops_stream moved = q->streams[i];
	size_t below;

	for (; (below = 2 * i + 1) < q->n_streams; i = below) {
		if (below + 1 < q->n_streams &&
		    first_ns(&q->streams[below + 1]) < first_ns(&q->streams[below]))
			below++;
		if (first_ns(&q->streams[below]) >= first_ns(&moved))
			break;
		q->streams[i] = q->streams[below];
	}
	q->streams[i] = moved;
}

static void find_due(struct gpu_ops_queue *q)
{
	const struct gpu_event *next = q->streams[0].n ? &q->streams[0].heap[0] : NULL;

	q->due_ns = UINT64_MAX;
	if (next)
		q->due_ns = max_u64(max_u64(next->begin_ns, next->submit_end_ns) + BEHIND_NS,
				    q->moment_ns);
}

static void add_stream(struct gpu_ops *ops, struct gpu_ops_queue *q, struct stream *stream)
{
	struct gpu_ops_stream *s;

	q->streams = grow(q->streams, q->n_streams, sizeof(*q->streams));
	s = &q->streams[q->n_streams++];
	reading_place.position = (struct reading_position){1, stream->index + 1};
	*s = (struct gpu_ops_stream){.stream = stream, .times = &ops->times[stream->trace->index]};
	read_ahead(s);
	find_submit(s);
}

static void begin_queue(struct gpu_ops_queue *q)
{
	for (size_t i = q->n_streams; i; i--)
		sift(q, i - 1);
	find_due(q);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool is_before(const struct gpu_ops_queue *a, const struct gpu_ops_queue *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

/* The queue at i has another due time. */
static void sift_queue(struct gpu_ops *ops, size_t i)
{
	struct gpu_ops_queue moved = ops->queues[i];
	size_t below;

	for (; (below = 2 * i + 1) < ops->n_queues; i = below) {
		if (below + 1 < ops->n_queues &&
		    is_before(&ops->queues[below + 1], &ops->queues[below]))
			below++;
		if (!is_before(&ops->queues[below], &moved))
			break;
		ops->queues[i] = ops->queues[below];
	}
	ops->queues[i] = moved;
}

static struct gpu_ops_queue *queue_of(struct gpu_ops *ops, uint32_t number)
{
	size_t i = 0;

	while (i < ops->n_queues && ops->queues[i].number != number)
		i++;
	if (i < ops->n_queues)
		return &ops->queues[i];
	ops->queues = grow(ops->queues, ops->n_queues, sizeof(*ops->queues));
	ops->queues[ops->n_queues++] = (struct gpu_ops_queue){.number = number};
	return &ops->queues[i];
}

void gpu_ops_init(struct gpu_ops *ops, const struct trace_set *set, struct stream *const *streams,
		  size_t n)
{
	struct groups groups;

	*ops = (struct gpu_ops){.n_processes = set->n_traces};
	ops->times = xcalloc(set->n_traces + 1, sizeof(*ops->times));
	groups_init(&groups, set->n_traces);
	groups_by_gpu_times(&groups, set);
	for (size_t i = 0; i < n; i++)
		if (streams[i]->reader.kind == SPY_STREAM_GPU && streams[i]->reader.records)
			add_stream(ops,
				   queue_of(ops, groups_find(&groups, streams[i]->trace->index)),
				   streams[i]);
	for (size_t i = 0; i < ops->n_queues; i++)
		begin_queue(&ops->queues[i]);
	for (size_t i = ops->n_queues; i; i--)
		sift_queue(ops, i - 1);
	groups_release(&groups);
}

void gpu_ops_release(struct gpu_ops *ops)
{
	for (size_t i = 0; i < ops->n_queues; i++) {
		for (size_t j = 0; j < ops->queues[i].n_streams; j++) {
			free(ops->queues[i].streams[j].heap);
			free(ops->queues[i].streams[j].submits);
		}
		free(ops->queues[i].streams);
	}
	free(ops->queues);
	free(ops->times);
	*ops = (struct gpu_ops){0};
}

const struct gpu_event *gpu_ops_next(const struct gpu_ops *ops, uint64_t *due_ns,
				     struct reading_position *position)
{
	const struct gpu_ops_queue *q = ops->queues;

	if (!ops->n_queues || !q->streams[0].n)
		return NULL;
	*due_ns = q->due_ns;
	*position = (struct reading_position){q->due_ns - 1, POSITION_BEHIND + q->number};
	return &q->streams[0].heap[0];
}

void gpu_ops_take(struct gpu_ops *ops)
{
	struct gpu_ops_queue *q = &ops->queues[0];
	struct gpu_ops_stream *s = &q->streams[0];

	q->moment_ns = q->due_ns;
	s->taken_ns = s->heap[0].begin_ns;
	pop(s);
	read_ahead(s);
	find_submit(s);
	sift(q, 0);
	find_due(q);
	sift_queue(ops, 0);
}
