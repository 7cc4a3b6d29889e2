/*
 * tests/sim/driver_capture.c: stream capture: while a stream captures, its operations become nodes behind
 * its last ones; an event recorded in it carries the capture to the stream that waits for the event. On
 * the thread that uses the stream.
 *
 * What a capture does not permit breaks it (measured on an H200, docs/CUDA_FACTS.md): waiting for its stream or
 * device; work in the legacy stream, if its stream is a blocking one; and, by its mode, what might wait for more than
 * it says: allocating, freeing, pinning, a changed limit, waiting for other streams and events. Global: in all threads,
 * thread-local: in the thread that began it, relaxed: in none.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct sim_capture {
	struct sim_graph *graph;
	struct sim_stream *origin;
	unsigned long long id;
	int refs; /* streams that capture into it, and events that point to it */
	bool ended, broken;
	int mode;
	const int *thread; /* that began it: its capture_mode */
};

enum { GLOBAL, THREAD_LOCAL, RELAXED };

/* Most programs capture nothing. */
static atomic_int captures;

static __thread int capture_mode; /* of the thread: cuThreadExchangeStreamCaptureMode */
static atomic_ullong next_id = 1;

bool sim_capturing(const struct sim_stream *stream)
{
	return stream->capture;
}

static void set_deps(struct sim_stream *stream, struct sim_node *const *deps, unsigned cnt)
{
	struct sim_node **copy = malloc((cnt + 1) * sizeof(*copy));

	if (!copy)
		abort();
	for (unsigned i = 0; i < cnt; i++)
		copy[i] = deps[i];
	copy[cnt] = NULL;
	free(stream->capture_deps);
	stream->capture_deps = copy;
	stream->capture_dep_cnt = cnt;
}

static void add_dep(struct sim_stream *stream, struct sim_node *dep)
{
	struct sim_node *one[1] = {dep};

	for (unsigned i = 0; i < stream->capture_dep_cnt; i++)
		if (stream->capture_deps[i] == dep)
			return;
	if (!stream->capture_dep_cnt) {
		set_deps(stream, one, 1);
		return;
	}
	stream->capture_deps[stream->capture_dep_cnt++] = dep;
	set_deps(stream, stream->capture_deps, stream->capture_dep_cnt);
}

int sim_capture(struct sim_stream *stream, struct sim_op *op, struct sim_node **out)
{
	static const enum node_type types[] = {[OP_MARK] = NODE_EMPTY,
					       [OP_KERNEL] = NODE_KERNEL,
					       [OP_COPY] = NODE_MEMCPY,
					       [OP_SET] = NODE_MEMSET,
					       [OP_HOST] = NODE_HOST};
	struct sim_node *node;

	if (stream->capture->broken) {
		sim_op_put(op);
		return SIM_CAPTURE_INVALIDATED;
	}
	node = graph_add(stream->capture->graph, types[op->kind], op, stream->capture_deps,
			 stream->capture_dep_cnt);
	set_deps(stream, &node, 1);
	if (out)
		*out = node;
	return SIM_OK;
}

/* Breaks the captures of all streams for which `forbids` says so. Returns `error` if there is one. */
static int break_captures(bool (*forbids)(const struct sim_stream *, const void *),
			  const void *about, int error)
{
	int rc = SIM_OK;

	if (!atomic_load(&captures))
		return SIM_OK;
	sim_spin_lock(&sim_engine);
	for (struct sim_ctx *ctx = sim_contexts; ctx; ctx = ctx->next)
		for (struct sim_stream *s = ctx->streams; s; s = s->next)
			if (s->capture && forbids(s, about)) {
				s->capture->broken = true;
				rc = error;
			}
	sim_spin_unlock(&sim_engine);
	return rc;
}

static bool is_stream(const struct sim_stream *s, const void *stream)
{
	return s == stream;
}

static bool is_in_context(const struct sim_stream *s, const void *ctx)
{
	return s->ctx == ctx;
}

static bool is_beside_legacy(const struct sim_stream *s, const void *ctx)
{
	return s->ctx == ctx && !(s->flags & 1);
}

static bool forbids_unsafe(const struct sim_stream *s, const void *unused)
{
	bool own = s->capture->thread == &capture_mode;

	(void)unused;
	if (capture_mode == RELAXED || s->capture->mode == RELAXED)
		return false;
	return own || (capture_mode == GLOBAL && s->capture->mode == GLOBAL);
}

int sim_capture_unsafe(void)
{
	return break_captures(forbids_unsafe, NULL, SIM_CAPTURE_UNSUPPORTED);
}

int sim_capture_waited(const struct sim_stream *stream)
{
	return break_captures(is_stream, stream, SIM_CAPTURE_UNSUPPORTED);
}

int sim_capture_device(const struct sim_ctx *ctx)
{
	return break_captures(is_in_context, ctx, SIM_CAPTURE_UNSUPPORTED);
}

int sim_capture_legacy(const struct sim_stream *stream)
{
	if (stream != &stream->ctx->legacy)
		return SIM_OK;
	return break_captures(is_beside_legacy, stream->ctx, SIM_CAPTURE_IMPLICIT);
}

int sim_capture_event(struct sim_stream *stream, struct sim_event *event)
{
	/* An event stands for one node; several are joined by an empty one. */
	if (stream->capture_dep_cnt > 1)
		sim_capture(stream, sim_op_new(OP_MARK, 0), NULL);
	if (event->capture != stream->capture) {
		event->capture = stream->capture;
		event->capture->refs++;
	}
	event->capture_node = stream->capture_dep_cnt ? stream->capture_deps[0] : NULL;
	return SIM_OK;
}

int sim_capture_wait(struct sim_stream *stream, struct sim_event *event, bool *handled)
{
	bool from_capture = event->capture && !event->capture->ended;

	*handled = true;
	if (!stream->capture && from_capture) {
		if (stream == &stream->ctx->legacy)
			return SIM_CAPTURE_IMPLICIT;
		stream->capture = event->capture;
		stream->capture->refs++;
		set_deps(stream, NULL, 0);
	} else if (stream->capture && event->capture != stream->capture) {
		return SIM_CAPTURE_ISOLATION;
	}
	if (stream->capture && event->capture_node)
		add_dep(stream, event->capture_node);
	*handled = stream->capture;
	return SIM_OK;
}

static int begin(void *handle, bool per_thread, int mode, struct sim_graph *graph,
		 struct sim_node *const *deps, size_t cnt)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	struct sim_capture *capture;

	if (rc)
		return rc;
	if (stream == &stream->ctx->legacy)
		return SIM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return SIM_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		abort();
	capture->graph = graph ? graph : graph_new();
	capture->origin = stream;
	capture->id = atomic_fetch_add(&next_id, 1);
	capture->refs = 1;
	capture->mode = mode;
	capture->thread = &capture_mode;
	atomic_fetch_add(&captures, 1);
	stream->capture = capture;
	set_deps(stream, deps, (unsigned)cnt);
	return SIM_OK;
}
EXPORT(cuStreamBeginCapture, (void *h), begin(h, false, GLOBAL, NULL, NULL, 0))
EXPORT(cuStreamBeginCapture_ptsz, (void *h), begin(h, true, GLOBAL, NULL, NULL, 0))
EXPORT(cuStreamBeginCapture_v2, (void *h, int mode), begin(h, false, mode, NULL, NULL, 0))
EXPORT(cuStreamBeginCapture_v2_ptsz, (void *h, int mode), begin(h, true, mode, NULL, NULL, 0))
EXPORT(cuStreamBeginCaptureToGraph,
       (void *h, struct sim_graph *g, struct sim_node *const *deps, const void *data, size_t cnt,
	int mode),
       begin(h, false, mode, g, deps, cnt))
EXPORT(cuStreamBeginCaptureToGraph_ptsz,
       (void *h, struct sim_graph *g, struct sim_node *const *deps, const void *data, size_t cnt,
	int mode),
       begin(h, true, mode, g, deps, cnt))

/* Every node without a successor must be one the origin has joined. */
static bool joined(const struct sim_capture *capture)
{
	const struct sim_graph *graph = capture->graph;
	const struct sim_stream *origin = capture->origin;

	for (unsigned i = 0; i < graph->cnt; i++)
		graph->nodes[i]->mark = 0;
	for (unsigned i = 0; i < graph->cnt; i++)
		for (unsigned k = 0; k < graph->nodes[i]->dep_cnt; k++)
			graph->nodes[i]->deps[k]->mark = 1;
	for (unsigned i = 0; i < origin->capture_dep_cnt; i++)
		origin->capture_deps[i]->mark = 1;
	for (unsigned i = 0; i < graph->cnt; i++)
		if (!graph->nodes[i]->mark)
			return false;
	return true;
}

static void leave(struct sim_stream *stream, const struct sim_capture *capture)
{
	if (stream->capture != capture)
		return;
	stream->capture = NULL;
	free(stream->capture_deps);
	stream->capture_deps = NULL;
	stream->capture_dep_cnt = 0;
}

static int end(void *handle, bool per_thread, struct sim_graph **out)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	struct sim_capture *capture;
	bool whole;

	if (rc)
		return rc;
	capture = stream->capture;
	if (!capture)
		return SIM_ILLEGAL_STATE;
	if (capture->origin != stream)
		return SIM_CAPTURE_UNMATCHED;
	whole = joined(capture);
	sim_spin_lock(&sim_engine);
	for (struct sim_ctx *ctx = sim_contexts; ctx; ctx = ctx->next)
		for (struct sim_stream *s = ctx->streams; s; s = s->next)
			leave(s, capture);
	sim_spin_unlock(&sim_engine);
	/* Events may still point to it: it stays, marked as ended. */
	capture->ended = true;
	atomic_fetch_sub(&captures, 1);
	if (!whole || capture->broken) {
		graph_free(capture->graph);
		*out = NULL;
		return capture->broken ? SIM_CAPTURE_INVALIDATED : SIM_CAPTURE_UNJOINED;
	}
	*out = capture->graph;
	if (capture->refs == 1)
		free(capture);
	return SIM_OK;
}
EXPORT(cuStreamEndCapture, (void *h, struct sim_graph **out), end(h, false, out))
EXPORT(cuStreamEndCapture_ptsz, (void *h, struct sim_graph **out), end(h, true, out))

static int info(void *handle, bool per_thread, int *status, unsigned long long *id,
		struct sim_graph **graph, struct sim_node *const **deps, const void **data,
		size_t *cnt)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc)
		return rc;
	*status = !stream->capture ? 0 : stream->capture->broken ? 2 : 1;
	if (!stream->capture)
		return SIM_OK;
	if (id)
		*id = stream->capture->id;
	if (graph)
		*graph = stream->capture->graph;
	if (deps)
		*deps = stream->capture_deps;
	if (data)
		*data = NULL;
	if (cnt)
		*cnt = stream->capture_dep_cnt;
	return SIM_OK;
}
EXPORT(cuStreamIsCapturing, (void *h, int *status),
       info(h, false, status, NULL, NULL, NULL, NULL, NULL))
EXPORT(cuStreamIsCapturing_ptsz, (void *h, int *status),
       info(h, true, status, NULL, NULL, NULL, NULL, NULL))
EXPORT(cuStreamGetCaptureInfo, (void *h, int *status, unsigned long long *id),
       info(h, false, status, id, NULL, NULL, NULL, NULL))
EXPORT(cuStreamGetCaptureInfo_ptsz, (void *h, int *status, unsigned long long *id),
       info(h, true, status, id, NULL, NULL, NULL, NULL))
#define INFO_PARAMS \
	void *h, int *status, unsigned long long *id, struct sim_graph **g, \
		struct sim_node *const **deps
EXPORT(cuStreamGetCaptureInfo_v2, (INFO_PARAMS, size_t *cnt),
       info(h, false, status, id, g, deps, NULL, cnt))
EXPORT(cuStreamGetCaptureInfo_v2_ptsz, (INFO_PARAMS, size_t *cnt),
       info(h, true, status, id, g, deps, NULL, cnt))
EXPORT(cuStreamGetCaptureInfo_v3, (INFO_PARAMS, const void **data, size_t *cnt),
       info(h, false, status, id, g, deps, data, cnt))
EXPORT(cuStreamGetCaptureInfo_v3_ptsz, (INFO_PARAMS, const void **data, size_t *cnt),
       info(h, true, status, id, g, deps, data, cnt))

static int update(void *handle, bool per_thread, struct sim_node *const *deps, size_t cnt,
		  unsigned flags)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);

	if (rc)
		return rc;
	if (!stream->capture)
		return SIM_ILLEGAL_STATE;
	if (flags == 1) /* set */
		set_deps(stream, deps, (unsigned)cnt);
	else
		for (size_t i = 0; i < cnt; i++)
			add_dep(stream, deps[i]);
	return SIM_OK;
}
EXPORT(cuStreamUpdateCaptureDependencies,
       (void *h, struct sim_node **deps, size_t cnt, unsigned flags),
       update(h, false, deps, cnt, flags))
EXPORT(cuStreamUpdateCaptureDependencies_ptsz,
       (void *h, struct sim_node **deps, size_t cnt, unsigned flags),
       update(h, true, deps, cnt, flags))
EXPORT(cuStreamUpdateCaptureDependencies_v2,
       (void *h, struct sim_node **deps, const void *data, size_t cnt, unsigned flags),
       update(h, false, deps, cnt, flags))
EXPORT(cuStreamUpdateCaptureDependencies_v2_ptsz,
       (void *h, struct sim_node **deps, const void *data, size_t cnt, unsigned flags),
       update(h, true, deps, cnt, flags))

static int exchange_mode(int *mode)
{
	int old = capture_mode;

	if (!mode || *mode < 0 || *mode > 2)
		return SIM_INVALID_VALUE;
	capture_mode = *mode;
	*mode = old;
	return SIM_OK;
}
EXPORT(cuThreadExchangeStreamCaptureMode, (int *mode), exchange_mode(mode))
