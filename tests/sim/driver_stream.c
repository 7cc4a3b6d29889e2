/*
 * tests/sim/driver_stream.c: streams, events, host functions and callbacks, on the calling thread;
 * host functions run on the engine's worker.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

int sim_enqueue(struct sim_stream *stream, struct sim_op *op, struct sim_op **out)
{
	int rc;

	if (out)
		*out = NULL;
	if (sim_capturing(stream))
		return sim_capture(stream, op, NULL);
	rc = sim_capture_legacy(stream);
	if (rc)
		sim_op_put(op);
	else
		sim_submit(stream, op, out);
	return rc;
}

/* ---- streams ---- */
static int stream_create(struct sim_stream **out, unsigned flags, int priority)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc)
		return rc;
	if (!out || flags > 1)
		return SIM_INVALID_VALUE;
	held = sim_lock(HOLD_PROCESS, ctx->dev);
	sim_host_work(FN_cuStreamCreate, 2000);
	*out = sim_stream_new(ctx, flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
	sim_unlock(held, ctx->dev);
	return SIM_OK;
}
EXPORT(cuStreamCreate, (struct sim_stream * *out, unsigned flags), stream_create(out, flags, 0))
EXPORT(cuStreamCreateWithPriority, (struct sim_stream * *out, unsigned flags, int priority),
       stream_create(out, flags, priority))

static int stream_destroy(struct sim_stream *stream)
{
	unsigned held;
	int dev;

	if (stream <= SIM_PER_THREAD || stream->magic != STREAM_MAGIC)
		return SIM_INVALID_HANDLE;
	dev = stream->ctx->dev;
	held = sim_lock(HOLD_PROCESS, dev);
	sim_host_work(FN_cuStreamDestroy_v2, 2000);
	sim_stream_retire(stream);
	sim_unlock(held, dev);
	return SIM_OK;
}
EXPORT(cuStreamDestroy, (struct sim_stream * s), stream_destroy(s))
EXPORT(cuStreamDestroy_v2, (struct sim_stream * s), stream_destroy(s))

static int stream_synchronize(void *handle, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc)
		return rc;
	rc = sim_capturing(stream) ? sim_capture_waited(stream) : sim_capture_unsafe();
	if (rc)
		return rc;
	sim_note_stream(handle);
	sim_wait_stream(stream, WHY_INTENDED);
	return SIM_OK;
}
EXPORT(cuStreamSynchronize, (void *h), stream_synchronize(h, false))
EXPORT(cuStreamSynchronize_ptsz, (void *h), stream_synchronize(h, true))

static int stream_query(void *handle, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc)
		return rc;
	if (sim_capturing(stream))
		return sim_capture_waited(stream);
	return sim_stream_idle(stream) ? SIM_OK : SIM_NOT_READY;
}
EXPORT(cuStreamQuery, (void *h), stream_query(h, false))
EXPORT(cuStreamQuery_ptsz, (void *h), stream_query(h, true))

static int stream_info(void *handle, bool per_thread, unsigned *flags, int *priority,
		       unsigned long long *id, int *dev, struct sim_ctx **ctx)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc)
		return rc;
	if (flags)
		*flags = stream->flags;
	if (priority)
		*priority = stream->priority;
	if (id)
		*id = stream->id;
	if (dev)
		*dev = stream->ctx->dev;
	if (ctx)
		*ctx = stream->ctx;
	return SIM_OK;
}
#define INFO(name, type, flags, priority, id, dev, ctx) \
	EXPORT(name, (void *h, type out), stream_info(h, false, flags, priority, id, dev, ctx)) \
	EXPORT(name##_ptsz, (void *h, type out), \
	       stream_info(h, true, flags, priority, id, dev, ctx))
INFO(cuStreamGetFlags, unsigned *, out, NULL, NULL, NULL, NULL)
INFO(cuStreamGetPriority, int *, NULL, out, NULL, NULL, NULL)
INFO(cuStreamGetId, unsigned long long *, NULL, NULL, out, NULL, NULL)
INFO(cuStreamGetDevice, int *, NULL, NULL, NULL, out, NULL)
INFO(cuStreamGetCtx, struct sim_ctx **, NULL, NULL, NULL, NULL, out)

/* ---- events ---- */
static int event_create(struct sim_event **out, unsigned flags)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (!out || flags > 7)
		return SIM_INVALID_VALUE;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return SIM_OUT_OF_MEMORY;
	(*out)->magic = EVENT_MAGIC;
	(*out)->flags = flags;
	(*out)->ctx = ctx;
	return SIM_OK;
}
EXPORT(cuEventCreate, (struct sim_event * *out, unsigned flags), event_create(out, flags))

static bool event_ok(const struct sim_event *event)
{
	return event && event->magic == EVENT_MAGIC;
}

static int event_destroy(struct sim_event *event)
{
	if (!event_ok(event))
		return SIM_INVALID_HANDLE;
	event->magic = 0;
	sim_op_put(event->op);
	free(event);
	return SIM_OK;
}
EXPORT(cuEventDestroy, (struct sim_event * e), event_destroy(e))
EXPORT(cuEventDestroy_v2, (struct sim_event * e), event_destroy(e))

/* The event's operation, with a reference; NULL: never recorded. */
static struct sim_op *event_op(struct sim_event *event)
{
	struct sim_op *op;

	sim_spin_lock(&sim_engine);
	op = event->op;
	if (op)
		op->refs++;
	sim_spin_unlock(&sim_engine);
	return op;
}

static int event_record(struct sim_event *event, void *handle, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	struct sim_op *op, *old;
	unsigned held;

	if (rc || !event_ok(event))
		return rc ? rc : SIM_INVALID_HANDLE;
	sim_note_stream(handle);
	if (sim_capturing(stream))
		return sim_capture_event(stream, event);
	if (event->ctx->dev != stream->ctx->dev)
		return SIM_INVALID_HANDLE;
	held = sim_lock(HOLD_CTX_READ, stream->ctx->dev);
	sim_submit(stream, sim_op_new(OP_MARK, 0), &op);
	sim_spin_lock(&sim_engine);
	old = event->op;
	event->op = op;
	event->capture = NULL;
	sim_spin_unlock(&sim_engine);
	sim_op_put(old);
	sim_unlock(held, stream->ctx->dev);
	return SIM_OK;
}
EXPORT(cuEventRecord, (struct sim_event * e, void *h), event_record(e, h, false))
EXPORT(cuEventRecord_ptsz, (struct sim_event * e, void *h), event_record(e, h, true))
EXPORT(cuEventRecordWithFlags, (struct sim_event * e, void *h, unsigned flags),
       event_record(e, h, false))
EXPORT(cuEventRecordWithFlags_ptsz, (struct sim_event * e, void *h, unsigned flags),
       event_record(e, h, true))

static int event_query(struct sim_event *event)
{
	struct sim_op *op;
	bool done;

	if (!event_ok(event))
		return SIM_INVALID_HANDLE;
	op = event_op(event);
	done = sim_op_done(op);
	sim_op_put(op);
	return done ? SIM_OK : SIM_NOT_READY;
}
EXPORT(cuEventQuery, (struct sim_event * e), event_query(e))

static int event_synchronize(struct sim_event *event)
{
	struct sim_op *op;
	int rc;

	if (!event_ok(event))
		return SIM_INVALID_HANDLE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	op = event_op(event);
	sim_wait_op(op, WHY_INTENDED);
	sim_op_put(op);
	return SIM_OK;
}
EXPORT(cuEventSynchronize, (struct sim_event * e), event_synchronize(e))

static int event_elapsed(float *ms, struct sim_event *from, struct sim_event *to)
{
	uint64_t begin_ns = 0, end_ns = 0;
	struct sim_op *a, *b;
	bool done;

	if (!ms)
		return SIM_INVALID_VALUE;
	if (!event_ok(from) || !event_ok(to) || (from->flags | to->flags) & 2 || !from->op ||
	    !to->op)
		return SIM_INVALID_HANDLE;
	a = event_op(from);
	b = event_op(to);
	sim_op_done(a);
	sim_op_done(b);
	done = sim_op_end(a, &begin_ns);
	done = sim_op_end(b, &end_ns) && done;
	sim_op_put(a);
	sim_op_put(b);
	if (!done)
		return SIM_NOT_READY;
	*ms = (float)((double)end_ns - (double)begin_ns) / 1e6f;
	return SIM_OK;
}
EXPORT(cuEventElapsedTime, (float *ms, struct sim_event *a, struct sim_event *b),
       event_elapsed(ms, a, b))
EXPORT(cuEventElapsedTime_v2, (float *ms, struct sim_event *a, struct sim_event *b),
       event_elapsed(ms, a, b))

static int stream_wait(void *handle, struct sim_event *event, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	struct sim_op *op, *on;
	bool handled = false;

	if (rc || !event_ok(event))
		return rc ? rc : SIM_INVALID_HANDLE;
	sim_note_stream(handle);
	rc = sim_capture_wait(stream, event, &handled);
	if (handled)
		return rc;
	on = event_op(event);
	if (!on)
		return SIM_OK;
	op = sim_op_new(OP_MARK, 0);
	sim_op_dep(op, on);
	sim_op_put(on);
	sim_submit(stream, op, NULL);
	return SIM_OK;
}
EXPORT(cuStreamWaitEvent, (void *h, struct sim_event *e, unsigned flags), stream_wait(h, e, false))
EXPORT(cuStreamWaitEvent_ptsz, (void *h, struct sim_event *e, unsigned flags),
       stream_wait(h, e, true))

/* ---- host functions ---- */
struct host_work {
	struct sim_work work;
	void (*fn)(void *);
	void (*callback)(void *stream, int status, void *arg);
	void *stream, *arg;
};

static void run_host(struct sim_work *work)
{
	struct host_work *h = (struct host_work *)work;

	if (h->fn)
		h->fn(h->arg);
	else
		h->callback(h->stream, SIM_OK, h->arg);
}

struct sim_op *sim_host_op(void (*fn)(void *), void *arg)
{
	struct host_work *h = sim_work_new(sizeof(*h), run_host);
	struct sim_op *op = sim_op_new(OP_HOST, 0);

	h->fn = fn;
	h->arg = arg;
	op->work = &h->work;
	return op;
}

static int host_func(void *handle, void (*fn)(void *), void *arg, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc || !fn)
		return rc ? rc : SIM_INVALID_VALUE;
	sim_note_stream(handle);
	return sim_enqueue(stream, sim_host_op(fn, arg), NULL);
}
EXPORT(cuLaunchHostFunc, (void *h, void (*fn)(void *), void *arg), host_func(h, fn, arg, false))
EXPORT(cuLaunchHostFunc_ptsz, (void *h, void (*fn)(void *), void *arg), host_func(h, fn, arg, true))

static int add_callback(void *handle, void (*fn)(void *, int, void *), void *arg, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	struct sim_op *op;
	struct host_work *h;

	if (rc || !fn)
		return rc ? rc : SIM_INVALID_VALUE;
	if (sim_capturing(stream))
		return SIM_CAPTURE_UNSUPPORTED;
	op = sim_host_op(NULL, arg);
	h = (struct host_work *)op->work;
	h->callback = fn;
	h->stream = handle;
	sim_submit(stream, op, NULL);
	return SIM_OK;
}
EXPORT(cuStreamAddCallback, (void *h, void (*fn)(void *, int, void *), void *arg, unsigned flags),
       add_callback(h, fn, arg, false))
EXPORT(cuStreamAddCallback_ptsz,
       (void *h, void (*fn)(void *, int, void *), void *arg, unsigned flags),
       add_callback(h, fn, arg, true))

static int attach(void *handle, bool per_thread)
{
	int rc;

	sim_stream_of(handle, per_thread, &rc);
	return rc;
}
EXPORT(cuStreamAttachMemAsync, (void *h, sim_ptr p, size_t n, unsigned flags), attach(h, false))
EXPORT(cuStreamAttachMemAsync_ptsz, (void *h, sim_ptr p, size_t n, unsigned flags), attach(h, true))
EXPORT(cuMemPrefetchAsync, (sim_ptr p, size_t n, int dev, void *h), attach(h, false))
EXPORT(cuMemPrefetchAsync_ptsz, (sim_ptr p, size_t n, int dev, void *h), attach(h, true))
EXPORT(cuMemPrefetchAsync_v2, (sim_ptr p, size_t n, struct sim_location l, unsigned flags, void *h),
       attach(h, false))
EXPORT(cuMemPrefetchAsync_v2_ptsz,
       (sim_ptr p, size_t n, struct sim_location l, unsigned flags, void *h), attach(h, true))
EXPORT(cuMemAdvise, (sim_ptr p, size_t n, int advice, int dev),
       sim_block_of(p) ? SIM_OK : SIM_INVALID_VALUE)
EXPORT(cuMemAdvise_v2, (sim_ptr p, size_t n, int advice, struct sim_location l),
       sim_block_of(p) ? SIM_OK : SIM_INVALID_VALUE)
