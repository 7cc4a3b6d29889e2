/*
 * analyzer/account/work.c: how much work is outstanding on the GPU. Called by the accounting for
 * each call of the application.
 */
#include <stdlib.h>
#include "captures.h"
#include "legacy.h"
#include "stream_functions.h"
#include "streams.h"
#include "cudaspy/contract.h"

void work_init(struct gpu_work *w, const struct model *model)
{
	*w = (struct gpu_work){.n_processes = model->n_processes};
	w->devices = xcalloc(WORK_DEVICES * w->n_processes, sizeof(*w->devices));
	w->legacy = xcalloc(WORK_DEVICES * w->n_processes, sizeof(*w->legacy));
	w->submissions = xcalloc(model->n_processes, sizeof(*w->submissions));
	w->first_work_ns = xcalloc(model->n_processes, sizeof(*w->first_work_ns));
	w->views = xcalloc(model->n_processes, sizeof(*w->views));
	w->turns = xcalloc(model->n_processes, sizeof(*w->turns));
	w->n_capturing = xcalloc(model->n_processes, sizeof(*w->n_capturing));
}

void work_release(struct gpu_work *w)
{
	streams_release(w);
	for (size_t i = 0; w->devices && i < w->n_devices * w->n_processes; i++)
		stream_sharing_free(w->devices[i].shared);
	free(w->devices);
	free(w->legacy);
	free(w->submissions);
	free(w->first_work_ns);
	free(w->views);
	free(w->turns);
	free(w->n_capturing);
	*w = (struct gpu_work){0};
}

uint64_t work_queued(struct gpu_work *w, struct gpu_stream **last, const struct record *record)
{
	const struct gpu_stream *stream = streams_of_call(w, last, record, false);

	return stream ? min_u64(stream_outstanding(stream, record_begin_ns(record)),
				stream->submitted - stream->notified)
		      : 0;
}

/*
 * One wait alone, however long, is believed where the count of what is outstanding can be that of a
 * full queue: one holds about 1,020 (expect.h), fewer for work of which each piece takes more room.
 * Far fewer leave room, and far more cannot be: then the program has learnt otherwise than by a
 * wait that work was done (it asked an event, or had a function called), and the count says
 * nothing.
 */
#define ALONE_LEAST 512
#define ALONE_MOST 2048
#define LONG_IN_QUEUE_NS 200000
#define NEIGHBOURS 3

bool work_queue_was_full(struct gpu_stream *stream, uint64_t queued, uint64_t excess_ns)
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
	const struct device_streams *d = streams_of_device(w, record);
	uint64_t begin_ns = record_begin_ns(record);
	const struct gpu_stream *stream;

	if (streams_outstanding(d))
		return true;
	for (stream = d->drained; stream && stream->drained_ns > begin_ns; stream = stream->next)
		if (stream_outstanding(stream, begin_ns))
			return true;
	return false;
}

/* ---- what a call changes --------------------------------------------------------------------- */

/* The legacy stream waits for the others, but for those that were made non-blocking. */
static uint64_t before_legacy(struct gpu_work *w, const struct record *record)
{
	const struct device_streams *d = streams_of_device(w, record);
	uint64_t begin_ns = record_begin_ns(record), sum = 0;
	const struct gpu_stream *stream;

	for (stream = d->busy; stream; stream = stream->next)
		sum += stream_outstanding(stream, begin_ns);
	for (stream = d->drained; stream && stream->drained_ns > begin_ns; stream = stream->next)
		if (!stream->non_blocking)
			sum += stream_outstanding(stream, begin_ns);
	return sum;
}

uint64_t work_outstanding(struct gpu_work *w, const struct record *record)
{
	const struct device_streams *d = streams_of_device(w, record);
	uint64_t begin_ns = record_begin_ns(record), sum = streams_outstanding(d);

	/* What is so now, and what was more when the call began: that was waited for since. */
	for (const struct gpu_stream *stream = d->waited; stream && stream->drained_ns > begin_ns;
	     stream = stream->waited_next)
		sum += stream_outstanding(stream, begin_ns) - (stream->submitted - stream->done);
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
		stream = streams_of_call(w, last, record, false);
		if (!stream || stream->key.stream != STREAM_LEGACY)
			return stream ? stream_outstanding(stream, record_begin_ns(record)) : 0;
		return before_legacy(w, record);
	case GPU_WAIT_EVENT:
		mark = record->event == SPY_EV_OP ? streams_event(w, record, false) : NULL;
		if (!mark)
			return UINT64_MAX;
		done = stream_done_before(mark->stream, record_begin_ns(record));
		return mark->submitted > done ? mark->submitted - done : 0;
	case GPU_WAIT_DEVICE:
		return work_outstanding(w, record);
	default:
		return 0;
	}
}

/*
 * For a stream that got some work at the start, for which no call ever waited, it must be assumed
 * at some time that this is done.
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

/* So many streams are looked at for one that is not forgotten. */
#define FORGOTTEN_LOOKS 256

/* Are more than `most` operations outstanding in the streams of that device? by: of this thread
 * only, unless NULL. */
static bool is_more_to_do(const struct device_streams *d, const struct record *record,
			  const struct thread *by, uint64_t most)
{
	uint64_t begin_ns = record_begin_ns(record), sum = 0;
	const struct gpu_stream *stream;
	unsigned int looks = 0;

	for (stream = streams_first(d, begin_ns); stream && looks < FORGOTTEN_LOOKS && sum <= most;
	     stream = streams_next(d, stream, begin_ns), looks++)
		if ((!by || stream->by == by) && !is_forgotten(stream, record))
			sum += stream_outstanding(stream, begin_ns);
	return sum > most;
}

bool work_ends(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
	       const struct gpu_waits *waits)
{
	const struct device_streams *own = streams_of_device(w, record), *other;
	uint64_t awaited = work_awaited(w, last, record, waits);

	if (awaited == UINT64_MAX || is_more_to_do(own, record, NULL, awaited))
		return false;
	for (uint32_t device = 0; device < w->n_devices; device++) {
		other = &w->devices[work_index(w, record->process, device)];
		if (other != own && is_more_to_do(other, record, record->thread, 0))
			return false;
	}
	return true;
}

bool work_host_visible(struct gpu_work *w, const struct record *record)
{
	const struct gpu_stream *stream = streams_of_device(w, record)->host_visible;

	for (unsigned int looks = 0; stream && looks < FORGOTTEN_LOOKS;
	     stream = stream->host_visible_next, looks++)
		if (!is_forgotten(stream, record))
			return true;
	return false;
}

uint64_t work_handed_over(const struct gpu_work *w, const struct record *record, uint8_t device)
{
	return w->devices[work_index(w, record->process, streams_device(device))].handed_over;
}

/* The stream of that key as the record's thread names it. */
static uint64_t as_named(const struct record *record, uint64_t stream)
{
	return stream == STREAM_PER_THREAD + own_stream(record->thread) ? STREAM_PER_THREAD
									: stream;
}

/* Comes what is done in stream `behind` after all that was handed to `stream` before? As the
 * record's thread names them. The legacy stream does so with those of which it is known. */
static bool comes_behind(struct gpu_work *w, const struct record *record, uint64_t behind,
			 uint64_t stream)
{
	const struct gpu_stream *before;

	if (behind == stream)
		return true;
	before = behind == STREAM_LEGACY ? streams_named(w, record, stream, false) : NULL;
	return behind == STREAM_LEGACY &&
	       (stream == STREAM_PER_THREAD || (before && before->blocking));
}

bool work_covers(struct gpu_work *w, const struct record *record, const struct gpu_waits *waits,
		 uint64_t stream, uint8_t device, uint64_t ns)
{
	const struct event_mark *mark;
	uint64_t recorded;

	if (streams_device(device) != streams_device(record->device))
		return false;
	switch (waits->what) {
	case GPU_WAIT_STREAM:
		return comes_behind(w, record, record_stream(record), stream);
	case GPU_WAIT_EVENT:
		mark = record->event == SPY_EV_OP ? streams_event(w, record, false) : NULL;
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

bool work_nothing_submitted(struct gpu_work *w, const struct record *record, uint64_t *only)
{
	const struct device_streams *d = streams_of_device(w, record);
	uint64_t begin_ns = record_begin_ns(record), busy = 0;

	*only = 0;
	if (d->handed_ns > begin_ns)
		return false;
	for (const struct gpu_stream *stream = streams_first(d, begin_ns); stream && busy < 2;
	     stream = streams_next(d, stream, begin_ns)) {
		if (!stream_outstanding(stream, begin_ns))
			continue;
		*only = busy++ ? 0 : as_named(record, stream->key.stream);
	}
	return true;
}

/* Not what other threads have handed over meanwhile. */
static void drain(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
		  const struct gpu_waits *waits, const struct gpu_stream *own)
{
	struct gpu_stream *stream;
	struct event_mark *mark;
	uint64_t upto;

	switch (waits->what) {
	case GPU_WAIT_STREAM:
		stream = streams_of_call(w, last, record, false);
		upto = stream ? stream_upto(stream, record, own) : 0;
		if (stream && stream->sharing && record->contract == SPY_CONTRACT_STREAM)
			stream_is_awaited(stream, record, upto);
		else if (stream && stream->sharing && record->contract == SPY_CONTRACT_COPY_SYNC)
			stream_is_copied_in(stream, record, upto);
		if (stream && stream->key.stream == STREAM_LEGACY)
			streams_drain(w, record, false, own);
		else if (stream)
			stream_drain(stream, upto, record->ns);
		break;
	case GPU_WAIT_EVENT:
		mark = record->event == SPY_EV_OP ? streams_event(w, record, false) : NULL;
		if (mark && mark->ns <= record_begin_ns(record))
			stream_drain(mark->stream, mark->submitted, record->ns);
		break;
	case GPU_WAIT_DEVICE:
		streams_drain(w, record, true, own);
		break;
	default:
		break;
	}
}

#define NON_BLOCKING 1 /* cudaStreamNonBlocking, the driver's the same */

/* The stream a call has made. */
static void created(struct gpu_work *w, const struct record *record)
{
	const struct spy_rec_op *op = record_op(record);
	struct gpu_stream *stream;

	if (!op || !op->object)
		return;
	stream = streams_named(w, record, op->object, true);
	if (stream->begun) /* of one that is no more */
		capture_forget(w, stream);
	stream->capture = (struct capture){0};
	streams_set_non_blocking(stream, op->flags & NON_BLOCKING);
	stream->blocking = !stream->non_blocking;
}

/* A call that changes what streams and events there are, and what becomes of work for them. */
static void see_host_call(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
			  const struct call_signature *signature)
{
	if (signature->does == FUNCTION_BEGINS_CAPTURE || signature->does == FUNCTION_ENDS_CAPTURE)
		capture_see(w, last, record, signature->does);
	else if (signature->failed)
		return;
	else if (signature->does == FUNCTION_CREATES_STREAM)
		created(w, record);
	else if (signature->does == FUNCTION_MAKES_EVENT)
		streams_forget_event(w, record);
}

/* The same for all calls of a signature. */
static void look_for_views(struct host_view *view, const struct record *record,
			   const struct call_signature *signature)
{
	const struct spy_rec_memory *memory = record_memory(record);

	view->copies |= signature->to_host;
	if (!memory)
		return;
	if (memory->op == SPY_MEMOP_ALLOC && memory->kind == SPY_MEM_MANAGED)
		view->managed = true;
	if ((memory->op == SPY_MEMOP_ALLOC || memory->op == SPY_MEMOP_REGISTER) &&
	    memory->kind == SPY_MEM_PINNED)
		view->pinned = true;
}

/* The call has handed something over: to its stream, if it has one. Was it work for the GPU?
 * *alone: the stream, if no other thread has handed it anything since the call began. */
static inline bool submit(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
			  const struct call_signature *signature, const struct gpu_stream **alone)
{
	struct gpu_stream *own = *last, *stream = streams_of_call(w, last, record, true);
	bool marks = signature->does == FUNCTION_RECORDS_EVENT;

	if (stream && likely(stream->handed_ns <= record_begin_ns(record)))
		*alone = stream;
	if (unlikely(w->n_capturing[record->process]) && stream &&
	    capture_takes(w, record, stream, signature->does)) {
		if (marks)
			streams_mark_event(w, record, stream, *alone);
		return false;
	}
	if (unlikely(!w->submissions[record->process]) && signature->is_work)
		w->first_work_ns[record->process] = record->ns;
	w->handed = stream || signature->is_work;
	if (stream && signature->is_work)
		device_takes_turn(w, record->process, stream);
	w->submissions[record->process] += signature->is_work;
	streams_of_device(w, record)->handed_over += signature->is_work;
	streams_of_device(w, record)->others += (uint64_t)(stream != NULL) - signature->is_work;
	if (!stream)
		return signature->is_work;
	if (unlikely(stream->blocking || stream->key.stream == STREAM_LEGACY) && signature->is_work)
		legacy_take_turn(w, record, stream, own, signature->waited);
	if (unlikely(!stream_is_busy(stream)))
		streams_begin_busy(stream, record->ns);
	stream->work += signature->is_work;
	stream_hand_over(streams_of_device(w, record), stream, record->thread, record->ns,
			 signature->host_visible);
	if (unlikely(signature->does == FUNCTION_SHOWS_OTHERS)) {
		stream->notified = stream->submitted;
		stream_function_handed(stream, record_begin_ns(record));
	}
	if (unlikely(marks))
		streams_mark_event(w, record, stream, *alone);
	else if (unlikely(signature->does == FUNCTION_WAITS_FOR_EVENT))
		streams_wait_for_event(w, record, stream);
	return signature->is_work;
}

static __attribute__((noinline)) bool work_see_slow(struct gpu_work *w, struct gpu_stream **last,
						    const struct record *record,
						    const struct call_signature *signature)
{
	const struct gpu_stream *alone = NULL;
	bool submitted = false;

	w->handed = false;
	if (signature->does != FUNCTION_OTHER && signature->contract == SPY_CONTRACT_HOST)
		see_host_call(w, last, record, signature);
	if (signature->failed)
		return false;
	if (unlikely(!signature->first_seen))
		look_for_views(&w->views[record->process], record, signature);
	if (signature->submits)
		submitted = submit(w, last, record, signature, &alone);
	if (signature->waited)
		drain(w, last, record, signature->waits, alone);
	return submitted;
}

bool work_see(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
	      const struct call_signature *signature)
{
	struct gpu_stream *stream = *last;

	if (!signature->only_submits || !signature->first_seen || !stream ||
	    !work_goes_on(w, stream, record, record->thread, signature) ||
	    unlikely(!w->submissions[record->process]))
		return work_see_slow(w, last, record, signature);
	work_go_on(w, stream, record, record->thread, signature);
	w->handed = true;
	return true;
}

/* The stream of that handle, which names one whatever the device: not a default stream's. */
static struct gpu_stream *stream_of_handle(struct gpu_work *w, uint32_t process, uint64_t handle)
{
	struct gpu_stream *stream = NULL;
	uint32_t device;

	for (device = 0; handle > STREAM_PER_THREAD && !stream && device < w->n_devices; device++)
		stream = streams_find(w, &(struct stream_key){handle, process, device}, false);
	return stream && stream->key.stream == handle ? stream : NULL;
}

void work_see_outside(struct gpu_work *w, const struct record *record)
{
	const struct outside_record wait = decode_outside(record);
	uint64_t upto;
	const struct event_mark *mark;
	struct gpu_stream *stream;

	w->found_done = NULL;
	if (wait.kind != SPY_WAIT_QUERY || wait.flags & SPY_WAIT_FAILED)
		return;
	mark = streams_find_event(w, record->process, wait.object);
	stream = mark ? mark->stream : stream_of_handle(w, record->process, wait.object);
	if (!stream || (mark && mark->ns > wait.begin_ns)) /* recorded anew meanwhile */
		return;
	upto = mark ? mark->submitted : stream_submitted_before(stream, wait.begin_ns);
	stream_drain(stream, upto, record->ns);
	w->found_done = stream->beside;
}
