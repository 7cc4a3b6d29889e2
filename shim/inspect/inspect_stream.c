/*
 * shim/inspect/inspect_stream.c: streams, events, waits, graphs, which streams are being captured,
 * and calls that begin or end a window. Runs on the application's threads, around those calls.
 *
 * Captures: a stream takes part from the begin of its capture, or from the moment it waits for an
 * event that was recorded in a stream that takes part, until the capture ends. The calls are
 * followed, without a question to the driver, in a small table that is not read while
 * `spy_captures` is 0. If it overflows, work of the streams left out is reported as if it ran.
 */
#include "inspect/inspect.h"
#include "inspect/inspect_common.h"
#include "lib/lock.h"
#include "nccl/profiler.h"
#include "probe/query.h"
#include "window/capture.h"

/* Places of the rows that only name an operation. */
enum { STREAM, OBJECT, FLAGS, OUT };

#define CAPTURE_MAX 256
#define NOTHING UINT64_MAX /* neither a capture nor a handle */

uint32_t spy_captures;

static struct {
	struct spy_lock lock; /* of writers */
	uint32_t last; /* number of the last capture that began */
	struct {
		uint64_t handle; /* key() of a stream or an event; 0: free */
		uint64_t capture;
	} at[CAPTURE_MAX]; /* the first spy_captures may be in use */
} captures;

/* ---- captures ------------------------------------------------------------------------------- */

/* Default streams are distinguished by their thread; handles of streams and events never
 * collide. */
static uint64_t key(const struct spy_thread *thread, uint64_t handle)
{
	return handle > SPY_STREAM_PER_THREAD ? handle : (uint64_t)(uintptr_t)thread ^ handle;
}

static uint64_t capture_of(uint64_t wanted)
{
	uint32_t n = __atomic_load_n(&spy_captures, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		if (__atomic_load_n(&captures.at[i].handle, __ATOMIC_ACQUIRE) == wanted)
			return __atomic_load_n(&captures.at[i].capture, __ATOMIC_RELAXED);
	}
	return 0;
}

bool spy_stream_captures(void)
{
	return __atomic_load_n(&spy_captures, __ATOMIC_RELAXED);
}

bool spy_stream_captured(const struct spy_thread *thread, uint64_t stream)
{
	return capture_of(key(thread, stream)) != 0;
}

/* The lock is held by the functions from here to leave. */
static void put(uint32_t i, uint64_t handle, uint64_t capture)
{
	__atomic_store_n(&captures.at[i].capture, capture, __ATOMIC_RELAXED);
	__atomic_store_n(&captures.at[i].handle, handle, __ATOMIC_RELEASE);
}

static void join(uint64_t handle, uint64_t capture)
{
	uint32_t i = 0;

	while (i < spy_captures && captures.at[i].handle && captures.at[i].handle != handle)
		i++;
	if (i == CAPTURE_MAX)
		return;
	put(i, handle, capture);
	if (i == spy_captures)
		__atomic_store_n(&spy_captures, i + 1, __ATOMIC_RELEASE);
}

/* Forgets all of one capture, or one stream or event. */
static void leave(uint64_t capture, uint64_t handle)
{
	uint32_t n = spy_captures;

	for (uint32_t i = 0; i < n; i++) {
		if (captures.at[i].capture == capture || captures.at[i].handle == handle)
			put(i, 0, 0);
	}
	while (n && !captures.at[n - 1].handle)
		n--;
	__atomic_store_n(&spy_captures, n, __ATOMIC_RELEASE);
}

/* Something waits for, or was recorded after, work of `from`: it takes part if `from` does. An
 * event recorded elsewhere meanwhile takes part no more. */
static void follow(uint64_t from, uint64_t to, bool event)
{
	uint64_t capture, before;

	if (!__atomic_load_n(&spy_captures, __ATOMIC_RELAXED))
		return;
	capture = capture_of(from);
	before = capture_of(to);
	if (capture == before || (!capture && !event) || !spy_lock_table(&captures.lock))
		return;
	capture = capture_of(from); /* again: it may have ended meanwhile */
	if (capture)
		join(to, capture);
	else
		leave(NOTHING, to);
	spy_unlock(&captures.lock);
}

void spy_stream_reset(void)
{
	for (uint32_t i = 0; i < CAPTURE_MAX; i++)
		put(i, 0, 0);
	spy_captures = 0;
}

void spy_stream_locks(spy_visit_lock *visit)
{
	visit(&captures.lock);
}

/* All of the capture that a stream takes part in is over. */
static void end_capture(uint64_t stream)
{
	uint64_t capture;

	if (!spy_lock_table(&captures.lock)) {
		__atomic_store_n(&spy_captures, 0,
				 __ATOMIC_RELEASE); /* rather none than one for ever */
		return;
	}
	capture = capture_of(stream);
	if (capture)
		leave(capture, NOTHING);
	spy_unlock(&captures.lock);
}

void inspect_capture_begin_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (!succeeded(frame))
		return;
	spy_nccl_capture_began();
	if (!spy_lock_table(&captures.lock))
		return;
	join(key(frame->thread, stream_arg(frame, self, STREAM)), ++captures.last);
	spy_unlock(&captures.lock);
}

/* cudaErrorStreamCaptureUnmatched and ...WrongThread (driver_types.h), the driver's the same. */
#define NOT_THE_ORIGIN 903
#define WRONG_THREAD 908

/* Also a capture that failed has ended, unless the call was made in the wrong place. */
void inspect_capture_end_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t stream = key(frame->thread, stream_arg(frame, self, STREAM));
	uint32_t result = (uint32_t)frame->result;

	inspect_op_done(frame, self);
	if (result != NOT_THE_ORIGIN && result != WRONG_THREAD)
		end_capture(stream);
}

/* A stream that is destroyed takes its capture along; its handle may be another's soon. */
void inspect_stream_destroyed(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (succeeded(frame) && __atomic_load_n(&spy_captures, __ATOMIC_RELAXED))
		end_capture(arg(frame, self, OBJECT));
}

void inspect_event_destroyed(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (!succeeded(frame) || !__atomic_load_n(&spy_captures, __ATOMIC_RELAXED) ||
	    !spy_lock_table(&captures.lock))
		return;
	leave(NOTHING, arg(frame, self, OBJECT));
	spy_unlock(&captures.lock);
}

/* ---- operations ----------------------------------------------------------------------------- */

void inspect_op(struct spy_frame *frame, const struct spy_inspector *self)
{
	struct spy_details *details = &frame->details;

	set_event(frame, SPY_EV_OP);
	details->stream = self->at[STREAM] == SPY_NO_ARG ? 0 : stream_arg(frame, self, STREAM);
	details->object = arg(frame, self, OBJECT);
	details->flags = (uint16_t)arg(frame, self, FLAGS);
	details->captured = details->stream && capturing(frame, details->stream);
}

/* What the call made becomes its object. */
void inspect_op_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	frame->details.object = output(frame, self, OUT);
}

void inspect_event_record_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (succeeded(frame))
		follow(key(frame->thread, frame->details.stream), arg(frame, self, OBJECT), true);
}

void inspect_stream_wait_event_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (succeeded(frame))
		follow(arg(frame, self, OBJECT), key(frame->thread, frame->details.stream), false);
}

/* Of the program's own questions, for an event or a stream. */
void inspect_query_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (!frame->depth && frame->kind == SPY_FRAME_COUNTED)
		spy_query_answered(frame, stream_arg(frame, self, OBJECT));
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Not the driver's call inside the runtime's. */
void inspect_profiler_started(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (!frame->depth && frame->kind != SPY_FRAME_PASS)
		spy_window_profiler(self->a);
}
