/*
 * analyzer/account/streams.c: the streams of each GPU: found, busy or drained, ordered by events.
 * Called by work.c for each call that hands something over or waits.
 */
#include <stdlib.h>
#include <utlist.h>
#include "stream_functions.h"
#include "streams.h"

#define OTHER_STREAMS 3 /* no handle: CUDA's own numbers are 1 and 2, all others are addresses */

struct gpu_stream *streams_find(struct gpu_work *w, const struct stream_key *key, bool make)
{
	struct gpu_stream *stream;

	HASH_FIND(hh, w->by_key, key, sizeof(*key), stream);
	if (!stream && make && unlikely(HASH_COUNT(w->by_key) >= STREAMS_MOST) &&
	    key->stream != OTHER_STREAMS)
		return streams_find(
			w, &(struct stream_key){OTHER_STREAMS, key->process, key->device}, make);
	if (!stream && make) {
		HASH_NEW(w->by_key, stream, key, *key);
		if (key->device >= w->n_devices)
			w->n_devices = key->device + 1;
		stream->beside = &w->devices[work_index(w, key->process, key->device)];
	}
	return stream;
}

struct gpu_stream *streams_named(struct gpu_work *w, const struct record *record, uint64_t handle,
				 bool make)
{
	struct stream_key key = {.stream = handle,
				 .process = record->process,
				 .device = streams_device(record->device)};

	return streams_find(w, &key, make);
}

static struct gpu_stream **list_of(struct device_streams *d, const struct gpu_stream *stream)
{
	if (!stream_is_busy(stream))
		return &d->drained;
	return stream->non_blocking ? &d->busy_non_blocking : &d->busy;
}

void streams_begin_busy(struct gpu_stream *stream, uint64_t ns)
{
	struct device_streams *d = stream->beside;

	stream->busy_ns = ns;
	if (stream->prev)
		DL_DELETE(d->drained, stream);
	if (stream->non_blocking)
		DL_PREPEND(d->busy_non_blocking, stream);
	else
		DL_PREPEND(d->busy, stream);
}

static void end_busy(struct device_streams *d, struct gpu_stream *stream)
{
	if (stream->non_blocking)
		DL_DELETE(d->busy_non_blocking, stream);
	else
		DL_DELETE(d->busy, stream);
	DL_PREPEND(d->drained, stream);
}

void streams_set_non_blocking(struct gpu_stream *stream, bool non_blocking)
{
	struct device_streams *d = stream->beside;
	struct gpu_stream **before = list_of(d, stream), **after;

	stream->non_blocking = non_blocking;
	after = list_of(d, stream);
	if (before == after)
		return;
	DL_DELETE(*before, stream);
	DL_PREPEND(*after, stream);
}

void streams_bring(struct gpu_stream *stream)
{
	struct device_streams *d = stream->beside;

	if (stream->host_visible_prev)
		DL_DELETE2(d->host_visible, stream, host_visible_prev, host_visible_next);
	DL_PREPEND2(d->host_visible, stream, host_visible_prev, host_visible_next);
	stream->host_visible = stream->submitted;
}

/* So many of the stream's operations have been waited for. */
static void set_done(struct gpu_stream *stream, uint64_t done)
{
	struct device_streams *d = stream->beside;

	d->done += done - stream->done;
	stream->done = done;
	if (!stream_is_busy(stream))
		end_busy(d, stream);
	if (stream->host_visible_prev && stream->host_visible <= done) {
		DL_DELETE2(d->host_visible, stream, host_visible_prev, host_visible_next);
		stream->host_visible_prev = NULL;
	}
	if (stream->waited_prev)
		DL_DELETE2(d->waited, stream, waited_prev, waited_next);
	DL_PREPEND2(d->waited, stream, waited_prev, waited_next);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct event_mark *streams_find_event(const struct gpu_work *w, uint32_t process, uint64_t event)
{
	struct event_key key = {.event = event, .process = process};
	struct event_mark *mark;

	HASH_FIND(hh, w->events, &key, sizeof(key), mark);
	return mark;
}

struct event_mark *streams_event(struct gpu_work *w, const struct record *record, bool make)
{
	uint64_t event = record_object(record);
	struct event_mark *mark = streams_find_event(w, record->process, event);

	if (!mark && make)
		HASH_NEW(w->events, mark, key,
			 (struct event_key){.event = event, .process = record->process});
	return mark;
}

void streams_mark_event(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
			const struct gpu_stream *own)
{
	struct event_mark *mark = streams_event(w, record, true);

	mark->stream = stream;
	mark->submitted = stream_upto(stream, record, own);
	mark->work = stream == own ? stream->work : 0; /* else some of it may have come behind */
	mark->ns = record->ns;
	mark->capture = stream->capture;
}

static bool is_done(const struct gpu_stream *stream, uint64_t upto)
{
	return !stream || stream->done >= upto;
}

void streams_wait_for_event(struct gpu_work *w, const struct record *record,
			    struct gpu_stream *stream)
{
	const struct event_mark *mark = streams_event(w, record, false);
	struct stream_behind *b = stream->behind, *end = b + STREAM_BEHIND;

	if (!mark || mark->stream == stream || is_done(mark->stream, mark->submitted))
		return;
	while (b < end && b->stream != mark->stream && !is_done(b->stream, b->upto))
		b++;
	if (b < end)
		*b = (struct stream_behind){.stream = mark->stream,
					    .upto = mark->submitted,
					    .at = stream->submitted,
					    .upto_work = mark->work,
					    .work = stream->work};
}

void streams_forget_event(struct gpu_work *w, const struct record *record)
{
	struct event_mark *mark = streams_event(w, record, false);

	if (!mark)
		return;
	HASH_DEL(w->events, mark);
	free(mark);
}

/* ---- devices in turn ---------------------------------------------------------------------------- */

#define LOOKED_AT 16 /* busy streams of a device; where there are more they count as not in order */

/* Does what comes now in the stream come behind all work of the other one? */
static bool waits_for_all(const struct gpu_stream *stream, const struct gpu_stream *other)
{
	const struct stream_behind *b = stream->behind;

	while (b < stream->behind + STREAM_BEHIND && b->stream != other)
		b++;
	return b < stream->behind + STREAM_BEHIND && b->upto_work >= other->work;
}

static bool waits_for_each(const struct gpu_stream *stream, const struct gpu_stream *others)
{
	unsigned int n = 0;

	for (; others && n < LOOKED_AT; others = others->next, n++)
		if (others->work && !waits_for_all(stream, others))
			return false;
	return !others;
}

void device_begins_turn(struct device_turn *turn, const struct gpu_stream *stream)
{
	const struct device_streams *before = turn->device;
	uint64_t work = before ? before->handed_over - turn->begun : 0;

	if (before && !turn->in_order)
		turn->beside += min_u64(work, turn->before);
	turn->before = work;
	turn->in_order = !before || (waits_for_each(stream, before->busy) &&
				     waits_for_each(stream, before->busy_non_blocking));
	turn->n++;
	turn->device = stream->beside;
	turn->begun = stream->beside->handed_over;
}

/* ---- what is done ---------------------------------------------------------------------------- */

/* From stream to stream that waited for the next one's events: no further than that. */
#define CHAIN_MOST 16

static void drain_chain(struct gpu_stream *stream, uint64_t done, uint64_t ns, unsigned int chain)
{
	const struct stream_behind *b;

	if (done <= stream->done || chain == CHAIN_MOST)
		return;
	stream->before_drain = stream->submitted - stream->done;
	stream->done_before = stream->done;
	stream->drained_ns = ns;
	set_done(stream, done);
	for (b = stream->behind; b < stream->behind + STREAM_BEHIND; b++)
		if (b->stream && b->at <= done)
			drain_chain(b->stream, b->upto, ns, chain + 1);
}

void stream_drain(struct gpu_stream *stream, uint64_t done, uint64_t ns)
{
	drain_chain(stream, done, ns, 0);
}

/* What a drained stream had waited for may have left the list, too. */
static void drain_list(struct gpu_stream *const *list, const struct record *record,
		       const struct gpu_stream *own)
{
	struct gpu_stream *stream = *list, *next;

	for (; stream; stream = next) {
		next = stream->next;
		stream_drain(stream, stream_upto(stream, record, own), record->ns);
		if (next && !stream_is_busy(next))
			next = *list;
	}
}

void streams_drain(struct gpu_work *w, const struct record *record, bool non_blocking,
		   const struct gpu_stream *own)
{
	struct device_streams *d = streams_of_device(w, record);

	drain_list(&d->busy, record, own);
	if (non_blocking)
		drain_list(&d->busy_non_blocking, record, own);
}

void streams_release(struct gpu_work *w)
{
	struct gpu_stream *stream, *next;
	struct event_mark *mark, *next_mark;

	HASH_EMPTY (w->by_key, stream, next) {
		stream_functions_free(stream->functions);
		free(stream);
	}
	HASH_EMPTY (w->events, mark, next_mark)
		free(mark);
}
