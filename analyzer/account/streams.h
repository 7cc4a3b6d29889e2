/*
 * analyzer/account/streams.h: the streams of each GPU, as far as the calls tell: which have work
 * outstanding, and what is known to be done. For what accounts for the work (work.h); the
 * operations of a stream are counted.
 */
#ifndef CUDASPY_STREAMS_H
#define CUDASPY_STREAMS_H

#include "shared_streams.h"
#include "work.h"

struct event_key {
	uint64_t event;
	uint64_t process;
};

/* Where in its stream an event was recorded. */
struct event_mark {
	struct event_key key;
	struct gpu_stream *stream;
	uint64_t submitted, work; /* before it */
	uint64_t ns; /* when it was recorded */
	struct capture capture; /* of its stream, when it was recorded */
	UT_hash_handle hh;
};

/* The device whose work is meant, of one that a record tells. */
static inline uint32_t streams_device(uint8_t device)
{
	return device == SPY_DEVICE_NONE ? 0 : device;
}

static inline size_t streams_device_index(const struct gpu_work *w, const struct record *record)
{
	return work_index(w, record->process, streams_device(record->device));
}

static inline struct device_streams *streams_of_device(struct gpu_work *w,
						       const struct record *record)
{
	return &w->devices[streams_device_index(w, record)];
}

/* Operations outstanding in all streams of a device. */
static inline uint64_t streams_outstanding(const struct device_streams *d)
{
	return d->handed_over + d->others - d->done;
}

/* Its stream, or NULL; make: a new one if there is none. */
struct gpu_stream *streams_find(struct gpu_work *w, const struct stream_key *key, bool make);

/* The stream of that handle on the record's device; not one of the default streams that are each a
 * thread's own. */
struct gpu_stream *streams_named(struct gpu_work *w, const struct record *record, uint64_t handle,
				 bool make);

/* What distinguishes the default streams that are each a thread's own. */
static inline uint64_t own_stream(const struct thread *thread)
{
	return ((uint64_t)thread->index + 1) << 8;
}

/*
 * The stream that the call works in. last: it is most often the one the thread used last. The key
 * is put together only where it is not: the processor would wait for its halves to be compared as a
 * whole.
 */
static inline struct gpu_stream *streams_of_call(struct gpu_work *w, struct gpu_stream **last,
						 const struct record *record, bool make)
{
	uint64_t handle = record_stream(record);
	uint32_t device = streams_device(record->device);
	struct gpu_stream *stream = *last;

	if (!handle)
		return NULL;
	if (handle == STREAM_PER_THREAD)
		handle += own_stream(record->thread);
	if (likely(stream) && likely(stream->key.stream == handle) &&
	    stream->key.process == record->process && stream->key.device == device)
		return stream;
	stream = streams_find(w, &(struct stream_key){handle, record->process, device}, make);
	if (stream)
		*last = stream;
	return stream;
}

static inline bool stream_is_busy(const struct gpu_stream *stream)
{
	return stream->submitted != stream->done;
}

/* It had nothing to do, and has now, since then. */
void streams_begin_busy(struct gpu_stream *stream, uint64_t ns);

/* The host may see something of the last of its work. */
void streams_bring(struct gpu_stream *stream);

/* It is one for which the legacy stream does not wait, or no more. */
void streams_set_non_blocking(struct gpu_stream *stream, bool non_blocking);

static inline void stream_hand_over(struct device_streams *d, struct gpu_stream *stream,
				    const struct thread *by, uint64_t ns, bool host_visible)
{
	d->handed_ns = ns;
	if (unlikely(stream->by != by))
		stream_changes_hands(stream, by);
	stream->submitted++;
	stream->by = by;
	stream->handed_ns = ns;
	if (unlikely(host_visible))
		streams_bring(stream);
}

/* Does work for the stream certainly begin no turn (legacy_take_turn)? */
static inline bool work_begins_no_turn(const struct gpu_work *w, const struct gpu_stream *stream,
				       const struct record *record)
{
	bool legacy = stream->key.stream == STREAM_LEGACY;

	return !(legacy | stream->blocking) ||
	       likely(w->legacy[streams_device_index(w, record)].was_legacy == legacy);
}

/* As most calls are: `by` goes on with the stream that it used last, which is not captured, by a
 * call that only submits. */
static inline bool work_goes_on(const struct gpu_work *w, const struct gpu_stream *stream,
				const struct record *record, const struct thread *by,
				const struct call_signature *signature)
{
	uint32_t device = streams_device(record->device);
	uint64_t handle = signature_stream(signature, record);

	if (unlikely(handle == STREAM_PER_THREAD))
		handle += own_stream(by);
	return likely(!w->n_capturing[record->process]) && stream->key.stream == handle &&
	       stream->key.device == device && work_begins_no_turn(w, stream, record);
}

/* The device's turn begins, with work for that stream. */
void device_begins_turn(struct device_turn *turn, const struct gpu_stream *stream);

/* The process hands work to that stream: to another device than before? */
static inline void device_takes_turn(struct gpu_work *w, uint32_t process,
				     const struct gpu_stream *stream)
{
	if (unlikely(w->turns[process].device != stream->beside))
		device_begins_turn(&w->turns[process], stream);
}

/* That call. It is not the first of its process that hands something over. */
static inline void work_go_on(struct gpu_work *w, struct gpu_stream *stream,
			      const struct record *record, const struct thread *by,
			      const struct call_signature *signature)
{
	struct device_streams *d = stream->beside;

	device_takes_turn(w, record->process, stream);
	w->submissions[record->process]++;
	d->handed_over++;
	stream->work++;
	if (unlikely(!stream_is_busy(stream)))
		streams_begin_busy(stream, record->ns);
	stream_hand_over(d, stream, by, record->ns, signature->host_visible);
}

/* Streams that have work, or had some at that time: there may be thousands that had not. */
static inline struct gpu_stream *streams_first(const struct device_streams *d, uint64_t begin_ns)
{
	if (d->busy)
		return d->busy;
	if (d->busy_non_blocking)
		return d->busy_non_blocking;
	return d->drained && d->drained->drained_ns > begin_ns ? d->drained : NULL;
}

static inline struct gpu_stream *streams_next(const struct device_streams *d,
					      const struct gpu_stream *stream, uint64_t begin_ns)
{
	struct gpu_stream *behind = stream->next;

	if (!behind && stream_is_busy(stream) && !stream->non_blocking)
		behind = d->busy_non_blocking;
	if (!behind && stream_is_busy(stream))
		behind = d->drained;
	return behind && (stream_is_busy(behind) || behind->drained_ns > begin_ns) ? behind : NULL;
}

static inline uint64_t record_begin_ns(const struct record *record)
{
	return record->ns > record->duration_ns ? record->ns - record->duration_ns : 0;
}

/* A wait that has ended since then is one that did not know. */
static inline uint64_t stream_outstanding(const struct gpu_stream *stream, uint64_t begin_ns)
{
	uint64_t now = stream->submitted - stream->done;

	return stream->drained_ns > begin_ns && stream->before_drain > now ? stream->before_drain
									   : now;
}

/* What of its work was known to be done when a call began that has returned since. */
static inline uint64_t stream_done_before(const struct gpu_stream *stream, uint64_t begin_ns)
{
	return stream->drained_ns > begin_ns ? stream->done_before : stream->done;
}

/* The mark of the event that the record is about; NULL: none; make: a new one. */
struct event_mark *streams_event(struct gpu_work *w, const struct record *record, bool make);

/* Of that process's event; NULL: none. */
struct event_mark *streams_find_event(const struct gpu_work *w, uint32_t process, uint64_t event);

/* So many operations had been handed over by calls that had returned by then, no less: what a call that began then comes
 * behind. */
uint64_t stream_submitted_before(const struct gpu_stream *stream, uint64_t ns);

/* What the record's call comes behind in the stream, or waits for; own: the stream in which nothing came between that
 * and what it submits itself. */
static inline uint64_t stream_upto(const struct gpu_stream *stream, const struct record *record,
				   const struct gpu_stream *own)
{
	return stream == own ? stream->submitted
			     : stream_submitted_before(stream, record_begin_ns(record));
}

/* The event stands for what the stream had been given before the call. */
void streams_mark_event(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
			const struct gpu_stream *own);

/* Another event may be made in its place: that one stands for nothing until it is recorded. */
void streams_forget_event(struct gpu_work *w, const struct record *record);

/* What comes now in the stream comes behind the event. */
void streams_wait_for_event(struct gpu_work *w, const struct record *record,
			    struct gpu_stream *stream);

/* At that time the first so many of its operations were done, and with them what they had waited
 * for. */
void stream_drain(struct gpu_stream *stream, uint64_t done, uint64_t ns);

/* All work is done that the record's device had been given before the call, and by it (own: stream_upto). non_blocking: also
 * that of the streams for which the legacy one does not wait. */
void streams_drain(struct gpu_work *w, const struct record *record, bool non_blocking,
		   const struct gpu_stream *own);

void streams_release(struct gpu_work *w);

#endif
