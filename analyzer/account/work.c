/*
 * analyzer/account/work.c: how much work is outstanding on the GPU. Called by the accounting for each call of
 * the application.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "work.h"
#include "cudaspy/contract.h"

struct event_key {
	uint64_t event;
	uint64_t process;
};

struct event_mark {
	struct event_key key;
	struct gpu_stream *stream;
	uint64_t submitted; /* before it */
	uint64_t ns; /* when it was recorded */
	struct capture capture; /* of its stream, when it was recorded */
	UT_hash_handle hh;
};

void work_init(struct gpu_work *w, const struct model *model)
{
	*w = (struct gpu_work){.n_devices = model->n_processes * WORK_DEVICES};
	w->devices = xcalloc(w->n_devices, sizeof(*w->devices));
	w->legacy = xcalloc(w->n_devices, sizeof(*w->legacy));
	w->submissions = xcalloc(model->n_processes, sizeof(*w->submissions));
	w->first_work_ns = xcalloc(model->n_processes, sizeof(*w->first_work_ns));
	w->handed_over = xcalloc(w->n_devices, sizeof(*w->handed_over));
	w->views = xcalloc(model->n_processes, sizeof(*w->views));
}

void work_release(struct gpu_work *w)
{
	struct gpu_stream *stream, *next;
	struct event_mark *mark, *next_mark;

	HASH_ITER (hh, w->by_key, stream, next) {
		HASH_DEL(w->by_key, stream);
		free(stream);
	}
	HASH_ITER (hh, w->events, mark, next_mark) {
		HASH_DEL(w->events, mark);
		free(mark);
	}
	free(w->devices);
	free(w->legacy);
	free(w->submissions);
	free(w->first_work_ns);
	free(w->handed_over);
	free(w->views);
	*w = (struct gpu_work){0};
}

static size_t index_of(const struct record *record, uint8_t device)
{
	return record->process * WORK_DEVICES + (device == SPY_DEVICE_NONE ? 0 : device);
}

static size_t device_index(const struct record *record)
{
	return index_of(record, record->raw->call_head.device);
}

static struct device_streams *device_of(struct gpu_work *w, const struct record *record)
{
	return &w->devices[device_index(record)];
}

static struct gpu_stream *stream_of(struct gpu_work *w, const struct stream_key *key, bool make)
{
	struct gpu_stream *stream;

	HASH_FIND(hh, w->by_key, key, sizeof(*key), stream);
	if (!stream && make) {
		stream = xcalloc(1, sizeof(*stream));
		stream->key = *key;
		HASH_ADD(hh, w->by_key, key, sizeof(stream->key), stream);
	}
	return stream;
}

/* What tells apart the default streams that are each a thread's own. */
static uint64_t own_stream(const struct record *record)
{
	return ((uint64_t)record->thread->index + 1) << 8;
}

/*
 * The stream that the call works in. last: it is most often the one the thread used last. The key is put together
 * only where it is not: the processor would wait for its halves to be compared as a whole.
 */
static inline struct gpu_stream *find(struct gpu_work *w, struct gpu_stream **last,
				      const struct record *record, bool make)
{
	uint64_t handle = record_stream(record->raw);
	uint32_t device = record->raw->call_head.device;
	struct gpu_stream *stream = *last;

	if (!handle)
		return NULL;
	if (handle == 2)
		handle += own_stream(record);
	if (device == SPY_DEVICE_NONE)
		device = 0;
	if (likely(stream) && likely(stream->key.stream == handle) &&
	    stream->key.process == record->process && stream->key.device == device)
		return stream;
	stream = stream_of(w, &(struct stream_key){handle, record->process, device}, make);
	if (stream)
		*last = stream;
	return stream;
}

static struct device_streams *device_of_stream(struct gpu_work *w, const struct gpu_stream *stream)
{
	return &w->devices[stream->key.process * WORK_DEVICES + stream->key.device];
}

static inline bool is_busy(const struct gpu_stream *stream)
{
	return stream->submitted != stream->done;
}

/* It had nothing to do, and has now. */
static void begin_busy(struct gpu_work *w, struct gpu_stream *stream)
{
	struct device_streams *d = device_of_stream(w, stream);

	if (stream->prev)
		DL_DELETE(d->drained, stream);
	DL_PREPEND(d->busy, stream);
}

static void end_busy(struct gpu_work *w, struct gpu_stream *stream)
{
	struct device_streams *d = device_of_stream(w, stream);

	DL_DELETE(d->busy, stream);
	DL_PREPEND(d->drained, stream);
}

/* Streams that have work, or had some at that time: there may be thousands that had not. */
static struct gpu_stream *first(const struct device_streams *d, uint64_t begin_ns)
{
	if (d->busy)
		return d->busy;
	return d->drained && d->drained->drained_ns > begin_ns ? d->drained : NULL;
}

static struct gpu_stream *next(const struct device_streams *d, const struct gpu_stream *stream,
			       uint64_t begin_ns)
{
	struct gpu_stream *behind = stream->next;

	if (!behind && is_busy(stream))
		behind = d->drained;
	return behind && (is_busy(behind) || behind->drained_ns > begin_ns) ? behind : NULL;
}

static uint64_t begin_of(const struct record *record)
{
	return record->ns > record->duration_ns ? record->ns - record->duration_ns : 0;
}

/* A wait that has ended since then is one that did not know. */
static uint64_t outstanding(const struct gpu_stream *stream, uint64_t begin_ns)
{
	uint64_t now = stream->submitted - stream->done;

	return stream->drained_ns > begin_ns && stream->before_drain > now ? stream->before_drain
									   : now;
}

/* What of its work was known to be done when a call began that has returned since. */
static uint64_t done_before(const struct gpu_stream *stream, uint64_t begin_ns)
{
	return stream->drained_ns > begin_ns ? stream->done_before : stream->done;
}

uint64_t work_queued(struct gpu_work *w, struct gpu_stream **last, const struct record *record)
{
	const struct gpu_stream *stream = find(w, last, record, false);

	return stream ? least(outstanding(stream, begin_of(record)),
			      stream->submitted - stream->told)
		      : 0;
}

/*
 * One wait alone, however long, is believed where the count of what is outstanding can be that of a full queue: one
 * holds about 1,020 (expect.h), fewer for work of which each piece takes more room. Far fewer leave room, and far
 * more cannot be: then the program has learnt otherwise than by a wait that work was done (it asked an event, or
 * had a function called), and the count says nothing.
 */
#define ALONE_LEAST 512
#define ALONE_MOST 2048
#define LONG_IN_QUEUE_NS 200000
#define NEIGHBOURS 3

bool work_crowded(struct gpu_stream *stream, uint64_t queued, uint64_t excess_ns)
{
	uint64_t last = stream->late;

	if (!excess_ns)
		return false;
	stream->late = stream->submitted + 1; /* this one is not yet among them */
	if (last && stream->late - last <= NEIGHBOURS)
		return true;
	return excess_ns >= LONG_IN_QUEUE_NS && queued >= ALONE_LEAST && queued <= ALONE_MOST;
}

bool work_on_device(struct gpu_work *w, const struct record *record)
{
	const struct device_streams *d = device_of(w, record);
	uint64_t begin_ns = begin_of(record);
	const struct gpu_stream *stream;

	for (stream = first(d, begin_ns); stream; stream = next(d, stream, begin_ns))
		if (outstanding(stream, begin_ns))
			return true;
	return false;
}

/* ---- what a call changes --------------------------------------------------------------------- */

static inline bool submits(const struct record *record)
{
	switch (record->contract) {
	case SPY_CONTRACT_SUBMIT:
	case SPY_CONTRACT_LAUNCH:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_PEER:
	case SPY_CONTRACT_MEMSET_SYNC:
		return record->raw->other.event != SPY_EV_COPY || copy_moves(&record->raw->copy);
	default:
		return false;
	}
}

/* What a submission that is no launch, copy or memset does. */
static uint8_t does(const struct model *model, const struct record *record)
{
	return model->set->functions.all[record->fn].does;
}

static struct event_mark *event_of(struct gpu_work *w, const struct record *record, bool make)
{
	struct event_key key = {.event = record->raw->op.object, .process = record->process};
	struct event_mark *mark;

	HASH_FIND(hh, w->events, &key, sizeof(key), mark);
	if (!mark && make) {
		mark = xcalloc(1, sizeof(*mark));
		mark->key = key;
		HASH_ADD(hh, w->events, key, sizeof(mark->key), mark);
	}
	return mark;
}

/* The legacy stream waits for the others, but for those that were made non-blocking. */
static uint64_t before_legacy(struct gpu_work *w, const struct record *record)
{
	const struct device_streams *d = device_of(w, record);
	uint64_t begin_ns = begin_of(record), sum = 0;
	const struct gpu_stream *stream;

	for (stream = first(d, begin_ns); stream; stream = next(d, stream, begin_ns))
		if (!stream->apart)
			sum += outstanding(stream, begin_ns);
	return sum;
}

uint64_t work_outstanding(struct gpu_work *w, const struct record *record)
{
	const struct device_streams *d = device_of(w, record);
	uint64_t begin_ns = begin_of(record), sum = 0;
	const struct gpu_stream *stream;

	for (stream = first(d, begin_ns); stream; stream = next(d, stream, begin_ns))
		sum += outstanding(stream, begin_ns);
	return sum;
}

uint64_t work_awaited(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
		      const struct gpu_waits *waits)
{
	const struct gpu_stream *stream;
	const struct event_mark *mark;
	uint64_t done;

	switch (waits->what) {
	case GPU_WAIT_STREAM:
		stream = find(w, last, record, false);
		if (!stream || stream->key.stream != 1)
			return stream ? outstanding(stream, begin_of(record)) : 0;
		return before_legacy(w, record);
	case GPU_WAIT_EVENT:
		mark = record->raw->other.event == SPY_EV_OP ? event_of(w, record, false) : NULL;
		if (!mark)
			return UINT64_MAX;
		done = done_before(mark->stream, begin_of(record));
		return mark->submitted > done ? mark->submitted - done : 0;
	case GPU_WAIT_DEVICE:
		return work_outstanding(w, record);
	default:
		return 0;
	}
}

/*
 * For a stream in which somebody did a few things at the begin, and never waited for them, it must be assumed
 * at some time that they are done.
 */
#define FORGOTTEN_MOST 4
#define FORGOTTEN_NS 100000000
#define FORGOTTEN_WAITS 100

static bool is_forgotten(const struct gpu_stream *stream, const struct record *record)
{
	uint64_t since_ns = record->ns - stream->handed_ns;

	return stream->submitted - stream->done <= FORGOTTEN_MOST && since_ns >= FORGOTTEN_NS &&
	       since_ns / FORGOTTEN_WAITS >= record->duration_ns;
}

/* Operations outstanding in the streams of that device; by: of this thread only, unless NULL. */
static uint64_t still_to_do(const struct device_streams *d, const struct record *record,
			    const struct thread *by)
{
	uint64_t begin_ns = begin_of(record), sum = 0;
	const struct gpu_stream *stream;

	for (stream = first(d, begin_ns); stream; stream = next(d, stream, begin_ns))
		if ((!by || stream->by == by) && !is_forgotten(stream, record))
			sum += outstanding(stream, begin_ns);
	return sum;
}

bool work_ends(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
	       const struct gpu_waits *waits)
{
	size_t own = device_index(record), first = index_of(record, 0), i;
	uint64_t awaited = work_awaited(w, last, record, waits);

	if (awaited == UINT64_MAX || awaited < still_to_do(&w->devices[own], record, NULL))
		return false;
	for (i = first; i < first + WORK_DEVICES; i++)
		if (i != own && still_to_do(&w->devices[i], record, record->thread))
			return false;
	return true;
}

bool work_brings(struct gpu_work *w, const struct record *record)
{
	const struct gpu_stream *stream;

	DL_FOREACH(device_of(w, record)->busy, stream)
	if (stream->brings > stream->done && !is_forgotten(stream, record))
		return true;
	return false;
}

uint64_t work_handed_over(const struct gpu_work *w, const struct record *record, uint8_t device)
{
	return w->handed_over[index_of(record, device)];
}

/* The stream of that key as the record's thread names it. */
static uint64_t as_named(const struct record *record, uint64_t stream)
{
	return stream == 2 + own_stream(record) ? 2 : stream;
}

/* Comes what is done in stream `behind` after all that was handed to `stream` before? As the record's thread
 * names them. The legacy stream does so with those of which it is known. */
static bool comes_behind(struct gpu_work *w, const struct record *record, uint64_t behind,
			 uint64_t stream)
{
	struct stream_key key = {.stream = stream,
				 .process = record->process,
				 .device = (uint32_t)(device_index(record) % WORK_DEVICES)};
	const struct gpu_stream *before;

	if (behind == stream)
		return true;
	before = behind == 1 ? stream_of(w, &key, false) : NULL;
	return behind == 1 && (stream == 2 || (before && before->blocking));
}

bool work_covers(struct gpu_work *w, const struct record *record, const struct gpu_waits *waits,
		 uint64_t stream, uint8_t device, uint64_t ns)
{
	const struct event_mark *mark;
	uint64_t recorded;

	if (index_of(record, device) != device_index(record))
		return false;
	switch (waits->what) {
	case GPU_WAIT_STREAM:
		return comes_behind(w, record, record_stream(record->raw), stream);
	case GPU_WAIT_EVENT:
		mark = record->raw->other.event == SPY_EV_OP ? event_of(w, record, false) : NULL;
		if (!mark)
			return false;
		recorded = as_named(record, mark->stream->key.stream);
		if (mark->ns <= ns)
			return recorded == stream && mark->submitted == mark->stream->submitted;
		return comes_behind(w, record, recorded, stream);
	case GPU_WAIT_DEVICE:
		return true;
	default:
		return false;
	}
}

bool work_stood_still(struct gpu_work *w, const struct record *record, uint64_t *only)
{
	const struct device_streams *d = device_of(w, record);
	uint64_t begin_ns = begin_of(record), busy = 0;
	const struct gpu_stream *stream;

	*only = 0;
	for (stream = first(d, begin_ns); stream; stream = next(d, stream, begin_ns)) {
		if (stream->handed_ns > begin_ns)
			return false;
		if (!outstanding(stream, begin_ns))
			continue;
		*only = busy++ ? 0 : as_named(record, stream->key.stream);
	}
	return true;
}

/* From stream to stream that waited for the next one's events: no further than that. */
#define CHAIN_MOST 16

static void drain_chain(struct gpu_work *w, struct gpu_stream *stream, uint64_t done, uint64_t ns,
			unsigned int chain)
{
	const struct stream_behind *b;

	if (done <= stream->done || chain == CHAIN_MOST)
		return;
	stream->before_drain = stream->submitted - stream->done;
	stream->done_before = stream->done;
	stream->drained_ns = ns;
	stream->done = done;
	if (!is_busy(stream))
		end_busy(w, stream);
	for (b = stream->behind; b < stream->behind + STREAM_BEHIND; b++)
		if (b->stream && b->at <= done)
			drain_chain(w, b->stream, b->upto, ns, chain + 1);
}

static void drain_stream(struct gpu_work *w, struct gpu_stream *stream, uint64_t done, uint64_t ns)
{
	drain_chain(w, stream, done, ns, 0);
}

/* apart: also the streams for which the legacy one does not wait. */
static void drain_streams(struct gpu_work *w, const struct record *record, bool apart)
{
	struct device_streams *d = device_of(w, record);
	struct gpu_stream *stream, *behind;

	for (stream = d->busy; stream; stream = behind) {
		behind = stream->next;
		if (!apart && stream->apart)
			continue;
		drain_stream(w, stream, stream->submitted, record->ns);
		if (behind && !is_busy(behind)) /* drained as well, by an event: it has moved */
			behind = d->busy;
	}
}

static void drain(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
		  const struct gpu_waits *waits)
{
	struct gpu_stream *stream;
	struct event_mark *mark;

	switch (waits->what) {
	case GPU_WAIT_STREAM:
		stream = find(w, last, record, false);
		if (stream && stream->key.stream == 1)
			drain_streams(w, record, false);
		else if (stream)
			drain_stream(w, stream, stream->submitted, record->ns);
		break;
	case GPU_WAIT_EVENT:
		mark = record->raw->other.event == SPY_EV_OP ? event_of(w, record, false) : NULL;
		if (mark)
			drain_stream(w, mark->stream, mark->submitted, record->ns);
		break;
	case GPU_WAIT_DEVICE:
		drain_streams(w, record, true);
		break;
	default:
		break;
	}
}

/*
 * Is what the call waits for done now? Of hidden waits only some are certain: a copy from pageable memory
 * may have been staged, and not every load of code or change of a limit waits.
 */
static inline bool has_waited(const struct record *record, const struct gpu_waits *waits)
{
	if (waits->sort == GPU_WAIT_INTENDED)
		return true;
	if (waits->sort != GPU_WAIT_HIDDEN)
		return false;
	if (record->raw->other.event == SPY_EV_COPY)
		return record->raw->copy.direction != SPY_DIR_H2D;
	return record->contract == SPY_CONTRACT_FREE;
}

/* ---- the legacy default stream ---------------------------------------------------------------- */

/* Who of them made most of it: a majority is left over if each other one takes a vote away. */
static void vote(struct legacy_use *use, const struct record *record)
{
	const union spy_any *raw = record->raw;
	uint64_t caller = raw->other.event >= SPY_EV_OP ? raw->op.caller : 0; /* the same in all */

	if (use->votes && (use->fn != record->fn || use->caller != caller)) {
		use->votes--;
		return;
	}
	use->fn = record->fn;
	use->caller = caller;
	use->ns = record->ns;
	use->votes++;
}

/* Blocking streams of the device with work outstanding; and the stream `but` does not count. */
static bool others_busy(struct gpu_work *w, const struct record *record, struct legacy_use *use,
			const struct gpu_stream *but)
{
	struct gpu_stream *stream;
	bool busy = false;

	DL_FOREACH(device_of(w, record)->busy, stream)
	{
		if (!stream->blocking || stream == but)
			continue;
		busy = true;
		use->streams += !stream->counted;
		stream->counted = true;
	}
	return busy;
}

static bool legacy_busy(struct gpu_work *w, const struct gpu_stream *beside)
{
	struct stream_key key = {
		.stream = 1, .process = beside->key.process, .device = beside->key.device};
	const struct gpu_stream *stream = stream_of(w, &key, false);

	return stream && is_busy(stream);
}

/*
 * Work is about to be counted as handed to the stream. A call that waits for it, in the legacy stream, is
 * meant to come behind what its thread did before (own), but not behind other streams.
 */
static void take_turn(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
		      const struct gpu_stream *own, bool waits)
{
	struct legacy_use *use = &w->legacy[device_index(record)];
	bool legacy = stream->key.stream == 1, turn;

	if (!legacy && !stream->blocking)
		return;
	if (legacy == use->was_legacy)
		return;
	turn = legacy ? others_busy(w, record, use, waits ? own : NULL) : legacy_busy(w, stream);
	if (legacy && turn)
		vote(use, record);
	use->was_legacy = legacy;
	if (!turn)
		return;
	use->last_turn = w->submissions[record->process];
	if (!use->turns++)
		use->first_turn = use->last_turn;
}

/* ---- captures --------------------------------------------------------------------------------- */

/*
 * As long as a capture lasts, what is handed to its streams goes into a graph. A stream takes part from the begin
 * of its capture, or from the moment it waits for an event that was recorded in a stream that takes part. The
 * recorder follows them likewise (shim/inspect_stream.c), but says so of copies only.
 */

static bool lasts(const struct capture *capture)
{
	return capture->stream && capture->stream->begun == capture->number;
}

static void forget_capture(struct gpu_work *w, struct gpu_stream *stream)
{
	if (lasts(&stream->capture)) {
		stream->capture.stream->begun = 0;
		w->n_capturing--;
	}
	stream->capture = (struct capture){0};
}

/* A stream is in one at a time: of an earlier one the end was not told. */
static void begin_capture(struct gpu_work *w, struct gpu_stream *stream)
{
	forget_capture(w, stream);
	stream->begun = ++w->n_captures;
	stream->capture = (struct capture){stream, stream->begun};
	w->n_capturing++;
}

/* Made for another stream than the one that began it, or on another thread: then it goes on. */
#define UNMATCHED 903
#define WRONG_THREAD 908

/* Also one that failed has ended. */
static void end_capture(struct gpu_work *w, struct gpu_stream *stream, uint16_t result)
{
	if (result != UNMATCHED && result != WRONG_THREAD)
		forget_capture(w, stream);
}

static void see_capture(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
			uint8_t what)
{
	struct gpu_stream *stream = find(w, last, record, true);

	if (!stream)
		return;
	if (what == FUNCTION_ENDS_CAPTURE)
		end_capture(w, stream, record->raw->call_head.result);
	else if (!call_failed(&record->raw->call_head))
		begin_capture(w, stream);
}

#define NON_BLOCKING 1 /* cudaStreamNonBlocking, the driver's the same */

/* The stream a call has made. */
static void created(struct gpu_work *w, const struct record *record)
{
	const struct spy_rec_op *op = &record->raw->op;
	struct stream_key key = {.stream = op->object,
				 .process = record->process,
				 .device = (uint32_t)(device_index(record) % WORK_DEVICES)};
	struct gpu_stream *stream;

	if (!op->object)
		return;
	stream = stream_of(w, &key, true);
	if (stream->begun) /* of one that is no more */
		forget_capture(w, stream);
	stream->capture = (struct capture){0};
	stream->apart = op->flags & NON_BLOCKING;
	stream->blocking = !stream->apart;
}

/* Another event may be made in its place: that one stands for nothing until it is recorded. */
static void forget_event(struct gpu_work *w, const struct record *record)
{
	struct event_mark *mark = event_of(w, record, false);

	if (!mark)
		return;
	HASH_DEL(w->events, mark);
	free(mark);
}

/* A call that changes what streams and events there are, and what becomes of work for them. */
static void see_host_call(struct gpu_work *w, struct gpu_stream **last, const struct model *model,
			  const struct record *record)
{
	uint8_t what = does(model, record);

	if (what == FUNCTION_BEGINS_CAPTURE || what == FUNCTION_ENDS_CAPTURE)
		see_capture(w, last, record, what);
	else if (call_failed(&record->raw->call_head))
		return;
	else if (what == FUNCTION_CREATES_STREAM)
		created(w, record);
	else if (what == FUNCTION_MAKES_EVENT)
		forget_event(w, record);
}

/* Does what is handed to the stream go into a graph? */
static bool is_captured(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
			uint8_t what)
{
	const struct event_mark *mark;

	if (what == FUNCTION_WAITS_FOR_EVENT && !lasts(&stream->capture)) {
		mark = event_of(w, record, false);
		if (mark && lasts(&mark->capture))
			stream->capture = mark->capture;
	}
	return lasts(&stream->capture);
}

/* ---- what is handed over ---------------------------------------------------------------------- */

/* The event stands for all that the stream was given so far. */
static void mark_event(struct gpu_work *w, const struct record *record, struct gpu_stream *stream)
{
	struct event_mark *mark = event_of(w, record, true);

	mark->stream = stream;
	mark->submitted = stream->submitted;
	mark->ns = record->ns;
	mark->capture = stream->capture;
}

static bool is_done(const struct gpu_stream *stream, uint64_t upto)
{
	return !stream || stream->done >= upto;
}

/* What comes now in the stream comes behind the event. */
static void wait_for_event(struct gpu_work *w, const struct record *record,
			   struct gpu_stream *stream)
{
	const struct event_mark *mark = event_of(w, record, false);
	struct stream_behind *b = stream->behind, *end = b + STREAM_BEHIND;

	if (!mark || mark->stream == stream || is_done(mark->stream, mark->submitted))
		return;
	while (b < end && b->stream != mark->stream && !is_done(b->stream, b->upto))
		b++;
	if (b < end)
		*b = (struct stream_behind){mark->stream, mark->submitted, stream->submitted};
}

/* Also where nobody knows the direction. */
static bool copies_to_host(const union spy_any *raw)
{
	return raw->other.event == SPY_EV_COPY && raw->copy.direction != SPY_DIR_H2D &&
	       raw->copy.direction != SPY_DIR_D2D;
}

static void look_for_views(struct host_view *view, const union spy_any *raw)
{
	if (raw->other.event == SPY_EV_COPY)
		view->copies |= copies_to_host(raw);
	if (raw->other.event != SPY_EV_MEMORY)
		return;
	if (raw->memory.op == SPY_MEMOP_ALLOC && raw->memory.kind == SPY_MEM_MANAGED)
		view->managed = true;
	if ((raw->memory.op == SPY_MEMOP_ALLOC || raw->memory.op == SPY_MEMOP_REGISTER) &&
	    raw->memory.kind == SPY_MEM_PINNED)
		view->pinned = true;
}

/* The call has handed something over: to its stream, if it has one. Was it work for the GPU? */
static inline bool submit(struct gpu_work *w, struct gpu_stream **last, const struct model *model,
			  const struct record *record, const struct gpu_waits *waits)
{
	struct gpu_stream *own = *last, *stream = find(w, last, record, true);
	bool is_work = true, marks = false, brings = copies_to_host(record->raw), tells = false;
	uint8_t what = FUNCTION_OTHER;

	if (record->raw->other.event == SPY_EV_OP) {
		what = does(model, record);
		is_work = what == FUNCTION_LAUNCHES_GRAPH;
		marks = what == FUNCTION_RECORDS_EVENT;
		tells = what == FUNCTION_SHOWS_OTHERS;
		brings = is_work || tells;
	}
	if (unlikely(w->n_capturing) && stream && is_captured(w, record, stream, what)) {
		if (marks)
			mark_event(w, record, stream);
		return false;
	}
	if (unlikely(!w->submissions[record->process]) && is_work)
		w->first_work_ns[record->process] = record->ns;
	w->submissions[record->process] += is_work;
	w->handed_over[device_index(record)] += is_work;
	if (!stream)
		return is_work;
	if (unlikely(stream->blocking || stream->key.stream == 1) && is_work)
		take_turn(w, record, stream, own, has_waited(record, waits));
	if (unlikely(!is_busy(stream)))
		begin_busy(w, stream);
	stream->submitted++;
	stream->by = record->thread;
	stream->handed_ns = record->ns;
	if (unlikely(brings)) {
		stream->brings = stream->submitted;
		stream->told = tells ? stream->submitted : stream->told;
	}
	if (unlikely(marks))
		mark_event(w, record, stream);
	if (unlikely(what == FUNCTION_WAITS_FOR_EVENT))
		wait_for_event(w, record, stream);
	return is_work;
}

bool work_see(struct gpu_work *w, struct gpu_stream **last, const struct model *model,
	      const struct record *record, const struct gpu_waits *waits)
{
	const union spy_any *raw = record->raw;
	bool submitted = false;

	if (record->contract == SPY_CONTRACT_HOST && raw->other.event == SPY_EV_OP)
		see_host_call(w, last, model, record);
	if (call_failed(&raw->call_head))
		return false;
	if (raw->other.event == SPY_EV_COPY || raw->other.event == SPY_EV_MEMORY)
		look_for_views(&w->views[record->process], raw);
	if (submits(record))
		submitted = submit(w, last, model, record, waits);
	if (has_waited(record, waits))
		drain(w, last, record, waits);
	return submitted;
}
