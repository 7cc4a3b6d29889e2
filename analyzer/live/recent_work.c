/*
 * analyzer/live/recent_work.c: what was handed to the streams of GPUs, in its order, and how far calls have waited for it.
 * Called by recent.c for each call.
 */
#include <stdlib.h>
#include "expect/gpu_wait.h"
#include "recent_see.h"

/* Where in its stream an event was recorded, and what is to end before it. */
struct recent_event {
	struct recent_event_key {
		uint64_t event, process;
	} key;
	struct recent_key stream;
	uint64_t at, ns;
	struct recent_piece piece; /* at is 0: nothing that is known */
	UT_hash_handle hh;
};

/* The stream to which a thread has handed work last. */
struct recent_thread {
	const struct thread *thread;
	struct recent_work *work;
	uint64_t at;
	UT_hash_handle hh;
};

static struct recent_key key_of(const struct record *record, uint64_t stream)
{
	struct recent_key key;

	memset(&key, 0, sizeof(key));
	if (stream == STREAM_PER_THREAD)
		stream |= (uint64_t)(record->thread->index + 1) << 8;
	key.stream = stream;
	key.process = record->process;
	key.device = record->device;
	return key;
}

static struct recent_work *work_of(struct recent *r, const struct recent_key *key, bool make)
{
	struct recent_work *work;

	HASH_FIND(hh, r->works, key, sizeof(*key), work);
	if (work || !make)
		return work;
	HASH_NEW(r->works, work, key, *key);
	return work;
}

bool recent_is_outstanding(const struct recent *r, const struct recent_piece *piece)
{
	const struct recent_work *work =
		piece->at ? work_of((struct recent *)r, &piece->stream, false) : NULL;

	return work && piece->at > work->done;
}

/* ---- handed over ----------------------------------------------------------------------------- */

static void remember_thread(struct recent *r, const struct thread *thread, struct recent_work *work)
{
	struct recent_thread *t;

	HASH_FIND_PTR(r->threads, &thread, t);
	if (!t)
		HASH_NEW(r->threads, t, thread, thread);
	t->work = work;
	t->at = work->handed;
}

struct recent_work *recent_handed_over(struct recent *r, const struct thread *thread)
{
	struct recent_thread *t;

	HASH_FIND_PTR(r->threads, &thread, t);
	return t && t->work->handed == t->at ? t->work : NULL;
}

static struct recent_piece piece_of(const struct recent_work *work, const struct record *record)
{
	return (struct recent_piece){.stream = work->key,
				     .at = work->handed,
				     .ns = record->ns,
				     .caller = record_return_address(record),
				     .thread = record->thread,
				     .stack = model_stack(record),
				     .fn = record->fn,
				     .kernel = record_kernel(record)};
}

/* Of several pieces that have not ended a kernel is what takes long: others do not replace it. */
static void replace(const struct recent_work *work, struct recent_piece *old,
		    const struct recent_piece *piece)
{
	if (piece->kernel || !old->kernel || old->at <= work->done)
		*old = *piece;
}

static void hand_over(struct recent *r, const struct record *record)
{
	struct recent_key key = key_of(record, record_stream(record) ?: STREAM_LEGACY);
	struct recent_work *work = work_of(r, &key, true);
	struct recent_piece piece;

	work->handed++;
	work->handed_ns = record->ns;
	work->host_caller = 0;
	piece = piece_of(work, record);
	work->before = work->other;
	replace(work, &work->last, &piece);
	replace(work, &work->other, &piece);
	remember_thread(r, record->thread, work);
}

/* cudaLaunchHostFunc and its like: what lies behind in the stream waits for that function. */
static void hand_over_function(struct recent *r, const struct record *record)
{
	struct recent_key key = key_of(record, record_stream(record) ?: STREAM_LEGACY);
	struct recent_work *work = work_of(r, &key, true);
	bool first = work->handed == work->done;

	work->handed++;
	if (first)
		work->last = work->other = piece_of(work, record);
	work->host_caller = record_return_address(record);
}

/* ---- ended ----------------------------------------------------------------------------------- */

static void ended_until(struct recent_work *work, uint64_t at)
{
	work->done = max_u64(work->done, min_u64(at, work->handed));
	if (work->done == work->handed)
		work->host_caller = 0;
}

void recent_ended(struct recent *r, const struct recent_piece *piece)
{
	struct recent_work *work = piece->at ? work_of(r, &piece->stream, false) : NULL;

	if (work)
		ended_until(work, piece->at);
}

static void stream_ended(struct recent *r, struct recent_work *work)
{
	ended_until(work, work->handed);
	recent_ended(r, &work->behind);
}

static void device_ended(struct recent *r, const struct record *record)
{
	for (struct recent_work *work = r->works; work; work = work->hh.next)
		if (work->key.process == record->process && work->key.device == record->device)
			ended_until(work, work->handed);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct recent_event *event_of(struct recent *r, const struct record *record, bool make)
{
	struct recent_event_key key = {record_object(record), record->process};
	struct recent_event *event;

	if (record->event != SPY_EV_OP)
		return NULL;
	HASH_FIND(hh, r->events, &key, sizeof(key), event);
	if (event || !make)
		return event;
	HASH_NEW(r->events, event, key, key);
	return event;
}

static void record_event(struct recent *r, const struct record *record)
{
	struct recent_key key = key_of(record, record_stream(record) ?: STREAM_LEGACY);
	const struct recent_work *work = work_of(r, &key, false);
	struct recent_event *event = event_of(r, record, true);

	if (!event)
		return;
	event->stream = key;
	event->at = work ? work->handed : 0;
	event->ns = record->ns;
	event->piece = (struct recent_piece){0};
	if (work && recent_is_outstanding(r, &work->other))
		event->piece = work->other;
	else if (work && recent_is_outstanding(r, &work->behind))
		event->piece = work->behind;
}

/* A stream waits for it: what is handed to it from here on has that work in front of it. */
static void wait_for_event(struct recent *r, const struct record *record)
{
	struct recent_key key = key_of(record, record_stream(record) ?: STREAM_LEGACY);
	const struct recent_event *event = event_of(r, record, false);

	if (event && memcmp(&event->piece.stream, &key, sizeof(key)) != 0 &&
	    recent_is_outstanding(r, &event->piece))
		work_of(r, &key, true)->behind = event->piece;
}

static void event_ended(struct recent *r, const struct record *record)
{
	const struct recent_event *event = event_of(r, record, false);
	struct recent_work *work = event ? work_of(r, &event->stream, false) : NULL;

	if (work)
		ended_until(work, event->at);
	if (event)
		recent_ended(r, &event->piece);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void see_wait(struct recent *r, const struct record *record, const struct gpu_waits *waits)
{
	struct recent_work *work;
	struct recent_key key;

	if (!gpu_wait_ended(record, record->contract, waits))
		return;
	switch (waits->what) {
	case GPU_WAIT_DEVICE:
		device_ended(r, record);
		return;
	case GPU_WAIT_EVENT:
		event_ended(r, record);
		return;
	case GPU_WAIT_STREAM:
		key = key_of(record, record_stream(record) ?: STREAM_LEGACY);
		work = work_of(r, &key, false);
		if (work)
			stream_ended(r, work);
		return;
	default:
		return;
	}
}

static bool calls_host(const char *function)
{
	return strstr(function, "LaunchHostFunc") || strstr(function, "StreamAddCallback");
}

void recent_see_work(struct recent *r, const struct function *function, const struct record *record)
{
	if (function->does == FUNCTION_RECORDS_EVENT)
		record_event(r, record);
	else if (function->does == FUNCTION_WAITS_FOR_EVENT)
		wait_for_event(r, record);
	else if ((record->event == SPY_EV_LAUNCH || record->event == SPY_EV_COPY ||
		  function->does == FUNCTION_LAUNCHES_GRAPH) &&
		 spy_contract_submits(record->contract))
		hand_over(r, record);
	else if (calls_host(function->name))
		hand_over_function(r, record);
	see_wait(r, record, gpu_wait_of(record, record->contract, &record->stream->trace->cuda));
}

/* ---- what is asked --------------------------------------------------------------------------- */

const struct recent_work *recent_find_work(const struct recent *r, uint32_t process,
					   uint32_t device, uint64_t stream,
					   const struct thread *thread)
{
	const struct recent_work *work, *best = NULL;

	if (stream == STREAM_PER_THREAD && thread)
		stream |= (uint64_t)(thread->index + 1) << 8;
	for (work = r->works; work; work = work->hh.next) {
		if (work->key.process != process || work->key.device != device ||
		    work->handed == work->done || (stream && work->key.stream != stream))
			continue;
		/* a kernel rather than a copy, the one launched last */
		if (!best || (work->last.kernel && !best->last.kernel) ||
		    (!work->last.kernel == !best->last.kernel && work->last.ns > best->last.ns))
			best = work;
	}
	return best;
}

const struct recent_work *recent_asked(const struct recent *r, uint32_t process, uint64_t object,
				       const struct thread *thread, uint64_t *ns)
{
	const struct recent_event_key key = {object, process};
	struct recent_event *event;

	HASH_FIND(hh, r->events, &key, sizeof(key), event);
	if (event) {
		*ns = event->ns;
		return work_of((struct recent *)r, &event->stream, false);
	}
	if (object == STREAM_PER_THREAD && thread)
		object |= (uint64_t)(thread->index + 1) << 8;
	for (const struct recent_work *work = r->works; work; work = work->hh.next)
		if (work->key.process == process && work->key.stream == object) {
			*ns = work->handed_ns;
			return work;
		}
	return NULL;
}

uint64_t recent_outstanding(const struct recent *r, uint32_t process, uint32_t device)
{
	uint64_t sum = 0;

	for (const struct recent_work *work = r->works; work; work = work->hh.next)
		if (work->key.process == process && work->key.device == device)
			sum += work->handed - work->done;
	return sum;
}

void recent_release_work(struct recent *r)
{
	struct recent_work *work, *next_work;
	struct recent_event *event, *next_event;
	struct recent_thread *thread, *next_thread;

	HASH_EMPTY (r->works, work, next_work)
		free(work);
	HASH_EMPTY (r->events, event, next_event)
		free(event);
	HASH_EMPTY (r->threads, thread, next_thread)
		free(thread);
}
