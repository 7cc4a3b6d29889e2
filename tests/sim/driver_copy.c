/*
 * tests/sim/driver_copy.c: copies of every shape, on the calling thread. All shapes become one
 * operation (rows of planes); what differs is who waits, as measured on driver 580:
 *
 *   device to pageable     waits for the stream and the copy, also when called Async, holding the
 *                          device's staging lock: other pageable copies of the device queue up behind
 *   pageable to device     takes a copy of the bytes and returns; when more than staging_bytes would be
 *                          outstanding in the stream it first waits for the stream's earlier work
 *   host to host           waits
 *   pinned, device, array  Async returns at once; otherwise waits unless both sides are on the device
 *
 * From one GPU to another it goes at the speed of the link where one of them reaches the other's memory, and
 * else through the host, at a tenth of that (38 GB/s instead of 390 between two H200s).
 *
 * SPYSIM_STAGING says what the staging lock stops: d2h (default) only copies to pageable memory, as
 * when four threads copied, launched and copied back once on an H200; pageable also those from it, as
 * some did when they went on doing so; all every copy and launch of the device.
 */
#include "sim.h"

#include <string.h>

struct copy_work {
	struct sim_work work;
	char *dst;
	const char *src;
	size_t dst_pitch, dst_slice, src_pitch, src_slice;
	size_t width, height, depth;
	char staged[];
};

struct side {
	char *at;
	size_t pitch, slice;
	enum sim_mem kind;
	int dev;
};

enum flavour { ASYNC, SYNC, PEER_SYNC, BATCH };

static void run_copy(struct sim_work *work)
{
	struct copy_work *c = (struct copy_work *)work;

	for (size_t z = 0; z < c->depth; z++) {
		char *dst = c->dst + z * c->dst_slice;
		const char *src = c->src + z * c->src_slice;

		for (size_t y = 0; y < c->height; y++)
			memmove(dst + y * c->dst_pitch, src + y * c->src_pitch, c->width);
	}
}

static int resolve(struct side *side, int type, const void *host, sim_ptr dev,
		   struct sim_array *array, size_t pitch, size_t height, size_t x, size_t y,
		   size_t z)
{
	if (type == SIM_ARRAY) {
		if (!array || array->magic != ARRAY_MAGIC)
			return SIM_INVALID_HANDLE;
		side->kind = MEM_ARRAY;
		side->dev = array->dev;
		side->pitch = array->pitch;
		side->slice = array->slice;
		side->at = (char *)array->data;
	} else {
		side->at = type == SIM_HOST ? (char *)(uintptr_t)host : (char *)(uintptr_t)dev;
		if (!side->at)
			return SIM_INVALID_VALUE;
		side->kind = sim_mem_at((uint64_t)(uintptr_t)side->at, &side->dev);
		side->pitch = pitch;
		side->slice = pitch * height;
		if (type == SIM_DEVICE && side->kind == MEM_PAGEABLE)
			return SIM_INVALID_VALUE;
	}
	side->at += x + y * side->pitch + z * side->slice;
	return SIM_OK;
}

static bool is_host(enum sim_mem kind)
{
	return kind == MEM_PAGEABLE || kind == MEM_PINNED;
}

/* From GPU to GPU: does it go through the host? It does if neither reaches the other's memory. */
static bool is_staged(const struct side *dst, const struct side *src)
{
	return dst->dev != src->dev && dst->kind == MEM_DEVICE && src->kind == MEM_DEVICE &&
	       !sim_reaches(src->dev, (uint64_t)(uintptr_t)dst->at) &&
	       !sim_reaches(dst->dev, (uint64_t)(uintptr_t)src->at);
}

static struct sim_op *make_op(const struct side *dst, const struct side *src, size_t width,
			      size_t height, size_t depth, bool stage)
{
	size_t bytes = width * height * depth;
	struct copy_work *c = sim_work_new(sizeof(*c) + (stage ? bytes : 0), run_copy);
	double gbps = sim_script.copy_gbps;
	struct sim_op *op;

	*c = (struct copy_work){c->work,    dst->at,    src->at, dst->pitch, dst->slice,
				src->pitch, src->slice, width,   height,     depth};
	if (stage) {
		for (size_t z = 0; z < depth; z++)
			for (size_t y = 0; y < height; y++)
				memcpy(c->staged + (z * height + y) * width,
				       src->at + z * src->slice + y * src->pitch, width);
		c->src = c->staged;
		c->src_pitch = width;
		c->src_slice = width * height;
	}
	if (!is_host(dst->kind) && !is_host(src->kind))
		gbps *= dst->dev == src->dev ? 40 : is_staged(dst, src) ? 1 : 10;
	op = sim_op_new(OP_COPY, 1000 + (uint64_t)((double)bytes / gbps));
	op->work = &c->work;
	op->what.bytes = bytes;
	op->what.src = (unsigned char)src->kind;
	op->what.dst = (unsigned char)dst->kind;
	op->what.src_dev = (short)(is_host(src->kind) ? -1 : src->dev);
	op->what.dst_dev = (short)(is_host(dst->kind) ? -1 : dst->dev);
	if (stage)
		op->staged_bytes = bytes;
	return op;
}

static int submit(const struct side *dst, const struct side *src, size_t width, size_t height,
		  size_t depth, void *handle, bool per_thread, enum flavour flavour)
{
	bool to_pageable = dst->kind == MEM_PAGEABLE, from_pageable = src->kind == MEM_PAGEABLE;
	bool host_only = is_host(dst->kind) && is_host(src->kind);
	uint64_t bytes = (uint64_t)width * height * depth;
	struct sim_op *op, *done = NULL;
	struct sim_stream *stream;
	enum sim_why why;
	bool wait, stage;
	unsigned set, held;
	int rc, dev;

	stream = sim_stream_of(handle, per_thread, &rc);
	if (rc || !bytes)
		return rc;
	sim_note_copy(bytes, src->kind, dst->kind, handle);
	if (is_staged(dst, src))
		sim_note_staged();
	dev = stream->ctx->dev;
	if (sim_capturing(stream))
		return sim_enqueue(stream, make_op(dst, src, width, height, depth, false), NULL);
	rc = sim_capture_legacy(stream);
	if (rc)
		return rc;

	wait = host_only || to_pageable ||
	       (flavour == SYNC && (is_host(dst->kind) || is_host(src->kind)));
	stage = from_pageable && !host_only;
	why = flavour == SYNC || flavour == PEER_SYNC ? WHY_INTENDED : WHY_HIDDEN;
	/* Who waits for the stream anyway does not wait for room in it. */
	sim_wait_room(stream, wait ? why : WHY_QUEUE);
	set = HOLD_CTX_READ;
	if (to_pageable && sim_script.staging == STAGING_ALL)
		set = HOLD_CTX_WRITE;
	else if (to_pageable || (from_pageable && sim_script.staging != STAGING_D2H))
		set = HOLD_STAGING;
	held = sim_lock(set, dev);
	if (stage) {
		if (flavour == SYNC)
			wait = false;
		if (flavour == SYNC || flavour == BATCH ||
		    sim_staged_bytes(stream) + bytes > sim_script.staging_bytes)
			sim_wait_stream(stream, why);
	}
	op = make_op(dst, src, width, height, depth, stage);
	if (flavour == PEER_SYNC) {
		sim_op_dep_device(op, dst->dev);
		sim_op_dep_device(op, src->dev);
	}
	op->what.async = flavour == ASYNC || flavour == BATCH;
	sim_submit(stream, op, wait ? &done : NULL);
	if (done) {
		sim_wait_op(done, why);
		sim_op_put(done);
	}
	sim_unlock(held, dev);
	return SIM_OK;
}

static int linear(sim_ptr dst, sim_ptr src, size_t bytes, void *handle, bool per_thread,
		  enum flavour flavour)
{
	struct side d = {.at = (char *)(uintptr_t)dst}, s = {.at = (char *)(uintptr_t)src};

	if (!bytes)
		return SIM_OK;
	if (!dst || !src)
		return SIM_INVALID_VALUE;
	d.kind = sim_mem_at(dst, &d.dev);
	s.kind = sim_mem_at(src, &s.dev);
	return submit(&d, &s, bytes, 1, 1, handle, per_thread, flavour);
}

/* As linear, but the named side must be memory of the device (or managed, or pinned). */
static int directed(sim_ptr dst, bool dst_dev, sim_ptr src, bool src_dev, size_t bytes,
		    void *handle, bool per_thread, enum flavour flavour)
{
	if (bytes && ((dst_dev && sim_mem_at(dst, NULL) == MEM_PAGEABLE) ||
		      (src_dev && sim_mem_at(src, NULL) == MEM_PAGEABLE)))
		return SIM_INVALID_VALUE;
	return linear(dst, src, bytes, handle, per_thread, flavour);
}

#define HOST_ADDRESS(p) ((sim_ptr)(uintptr_t)(p))

EXPORT(cuMemcpy, (sim_ptr d, sim_ptr s, size_t n), linear(d, s, n, NULL, false, SYNC))
EXPORT(cuMemcpy_ptds, (sim_ptr d, sim_ptr s, size_t n), linear(d, s, n, NULL, true, SYNC))
EXPORT(cuMemcpyAsync, (sim_ptr d, sim_ptr s, size_t n, void *h), linear(d, s, n, h, false, ASYNC))
EXPORT(cuMemcpyAsync_ptsz, (sim_ptr d, sim_ptr s, size_t n, void *h),
       linear(d, s, n, h, true, ASYNC))

EXPORT(cuMemcpyHtoD_v2, (sim_ptr d, const void *s, size_t n),
       directed(d, true, HOST_ADDRESS(s), false, n, NULL, false, SYNC))
EXPORT(cuMemcpyHtoD_v2_ptds, (sim_ptr d, const void *s, size_t n),
       directed(d, true, HOST_ADDRESS(s), false, n, NULL, true, SYNC))
EXPORT(cuMemcpyHtoDAsync_v2, (sim_ptr d, const void *s, size_t n, void *h),
       directed(d, true, HOST_ADDRESS(s), false, n, h, false, ASYNC))
EXPORT(cuMemcpyHtoDAsync_v2_ptsz, (sim_ptr d, const void *s, size_t n, void *h),
       directed(d, true, HOST_ADDRESS(s), false, n, h, true, ASYNC))
EXPORT(cuMemcpyDtoH_v2, (void *d, sim_ptr s, size_t n),
       directed(HOST_ADDRESS(d), false, s, true, n, NULL, false, SYNC))
EXPORT(cuMemcpyDtoH_v2_ptds, (void *d, sim_ptr s, size_t n),
       directed(HOST_ADDRESS(d), false, s, true, n, NULL, true, SYNC))
EXPORT(cuMemcpyDtoHAsync_v2, (void *d, sim_ptr s, size_t n, void *h),
       directed(HOST_ADDRESS(d), false, s, true, n, h, false, ASYNC))
EXPORT(cuMemcpyDtoHAsync_v2_ptsz, (void *d, sim_ptr s, size_t n, void *h),
       directed(HOST_ADDRESS(d), false, s, true, n, h, true, ASYNC))
EXPORT(cuMemcpyDtoD_v2, (sim_ptr d, sim_ptr s, size_t n),
       directed(d, true, s, true, n, NULL, false, SYNC))
EXPORT(cuMemcpyDtoD_v2_ptds, (sim_ptr d, sim_ptr s, size_t n),
       directed(d, true, s, true, n, NULL, true, SYNC))
EXPORT(cuMemcpyDtoDAsync_v2, (sim_ptr d, sim_ptr s, size_t n, void *h),
       directed(d, true, s, true, n, h, false, ASYNC))
EXPORT(cuMemcpyDtoDAsync_v2_ptsz, (sim_ptr d, sim_ptr s, size_t n, void *h),
       directed(d, true, s, true, n, h, true, ASYNC))

EXPORT(cuMemcpyPeer, (sim_ptr d, void *dc, sim_ptr s, void *sc, size_t n),
       linear(d, s, n, NULL, false, PEER_SYNC))
EXPORT(cuMemcpyPeer_ptds, (sim_ptr d, void *dc, sim_ptr s, void *sc, size_t n),
       linear(d, s, n, NULL, true, PEER_SYNC))
EXPORT(cuMemcpyPeerAsync, (sim_ptr d, void *dc, sim_ptr s, void *sc, size_t n, void *h),
       linear(d, s, n, h, false, ASYNC))
EXPORT(cuMemcpyPeerAsync_ptsz, (sim_ptr d, void *dc, sim_ptr s, void *sc, size_t n, void *h),
       linear(d, s, n, h, true, ASYNC))

/* ---- boxes ---- */
static int sides_of(struct side *dst, struct side *src, const struct sim_memcpy3d *c)
{
	int rc = resolve(src, c->src_type, c->src_host, c->src_dev, c->src_array, c->src_pitch,
			 c->src_height, c->src_x, c->src_y, c->src_z);

	if (!rc)
		rc = resolve(dst, c->dst_type, c->dst_host, c->dst_dev, c->dst_array, c->dst_pitch,
			     c->dst_height, c->dst_x, c->dst_y, c->dst_z);
	return rc;
}

static int box(const struct sim_memcpy3d *c, void *handle, bool per_thread, enum flavour flavour)
{
	struct side d, s;
	int rc = c ? sides_of(&d, &s, c) : SIM_INVALID_VALUE;

	return rc ? rc : submit(&d, &s, c->width, c->height, c->depth, handle, per_thread, flavour);
}

static struct sim_memcpy3d box_of_rectangle(const struct sim_memcpy2d *c)
{
	return (struct sim_memcpy3d){
		.src_x = c->src_x,
		.src_y = c->src_y,
		.src_type = c->src_type,
		.src_host = c->src_host,
		.src_dev = c->src_dev,
		.src_array = c->src_array,
		.src_pitch = c->src_pitch ? c->src_pitch : c->width,
		.dst_x = c->dst_x,
		.dst_y = c->dst_y,
		.dst_type = c->dst_type,
		.dst_host = c->dst_host,
		.dst_dev = c->dst_dev,
		.dst_array = c->dst_array,
		.dst_pitch = c->dst_pitch ? c->dst_pitch : c->width,
		.width = c->width,
		.height = c->height,
		.depth = 1,
	};
}

static int rectangle(const struct sim_memcpy2d *c, void *handle, bool per_thread,
		     enum flavour flavour)
{
	struct sim_memcpy3d all;

	if (!c)
		return SIM_INVALID_VALUE;
	all = box_of_rectangle(c);
	return box(&all, handle, per_thread, flavour);
}

EXPORT(cuMemcpy2D_v2, (const struct sim_memcpy2d *c), rectangle(c, NULL, false, SYNC))
EXPORT(cuMemcpy2D_v2_ptds, (const struct sim_memcpy2d *c), rectangle(c, NULL, true, SYNC))
EXPORT(cuMemcpy2DUnaligned_v2, (const struct sim_memcpy2d *c), rectangle(c, NULL, false, SYNC))
EXPORT(cuMemcpy2DUnaligned_v2_ptds, (const struct sim_memcpy2d *c), rectangle(c, NULL, true, SYNC))
EXPORT(cuMemcpy2DAsync_v2, (const struct sim_memcpy2d *c, void *h), rectangle(c, h, false, ASYNC))
EXPORT(cuMemcpy2DAsync_v2_ptsz, (const struct sim_memcpy2d *c, void *h),
       rectangle(c, h, true, ASYNC))
EXPORT(cuMemcpy3D_v2, (const struct sim_memcpy3d *c), box(c, NULL, false, SYNC))
EXPORT(cuMemcpy3D_v2_ptds, (const struct sim_memcpy3d *c), box(c, NULL, true, SYNC))
EXPORT(cuMemcpy3DAsync_v2, (const struct sim_memcpy3d *c, void *h), box(c, h, false, ASYNC))
EXPORT(cuMemcpy3DAsync_v2_ptsz, (const struct sim_memcpy3d *c, void *h), box(c, h, true, ASYNC))
EXPORT(cuMemcpy3DPeer, (const struct sim_memcpy3d *c), box(c, NULL, false, PEER_SYNC))
EXPORT(cuMemcpy3DPeer_ptds, (const struct sim_memcpy3d *c), box(c, NULL, true, PEER_SYNC))
EXPORT(cuMemcpy3DPeerAsync, (const struct sim_memcpy3d *c, void *h), box(c, h, false, ASYNC))
EXPORT(cuMemcpy3DPeerAsync_ptsz, (const struct sim_memcpy3d *c, void *h), box(c, h, true, ASYNC))

struct sim_op *sim_copy_op(const struct sim_memcpy3d *copy)
{
	struct side d, s;

	if (sides_of(&d, &s, copy))
		return NULL;
	return make_op(&d, &s, copy->width, copy->height, copy->depth, false);
}

/* ---- arrays by offset ---- */
static int array_copy(struct sim_array *da, size_t doff, sim_ptr d, struct sim_array *sa,
		      size_t soff, sim_ptr s, size_t bytes, void *handle, bool per_thread,
		      enum flavour flavour)
{
	struct sim_memcpy3d c = {
		.src_type = sa ? SIM_ARRAY : SIM_UNIFIED,
		.src_array = sa,
		.src_x = soff,
		.src_dev = s,
		.dst_type = da ? SIM_ARRAY : SIM_UNIFIED,
		.dst_array = da,
		.dst_x = doff,
		.dst_dev = d,
		.width = bytes,
		.height = 1,
		.depth = 1,
	};

	return box(&c, handle, per_thread, flavour);
}

#define A struct sim_array *
EXPORT(cuMemcpyHtoA_v2, (A a, size_t o, const void *s, size_t n),
       array_copy(a, o, 0, NULL, 0, HOST_ADDRESS(s), n, NULL, false, SYNC))
EXPORT(cuMemcpyHtoA_v2_ptds, (A a, size_t o, const void *s, size_t n),
       array_copy(a, o, 0, NULL, 0, HOST_ADDRESS(s), n, NULL, true, SYNC))
EXPORT(cuMemcpyHtoAAsync_v2, (A a, size_t o, const void *s, size_t n, void *h),
       array_copy(a, o, 0, NULL, 0, HOST_ADDRESS(s), n, h, false, ASYNC))
EXPORT(cuMemcpyHtoAAsync_v2_ptsz, (A a, size_t o, const void *s, size_t n, void *h),
       array_copy(a, o, 0, NULL, 0, HOST_ADDRESS(s), n, h, true, ASYNC))
EXPORT(cuMemcpyAtoH_v2, (void *d, A a, size_t o, size_t n),
       array_copy(NULL, 0, HOST_ADDRESS(d), a, o, 0, n, NULL, false, SYNC))
EXPORT(cuMemcpyAtoH_v2_ptds, (void *d, A a, size_t o, size_t n),
       array_copy(NULL, 0, HOST_ADDRESS(d), a, o, 0, n, NULL, true, SYNC))
EXPORT(cuMemcpyAtoHAsync_v2, (void *d, A a, size_t o, size_t n, void *h),
       array_copy(NULL, 0, HOST_ADDRESS(d), a, o, 0, n, h, false, ASYNC))
EXPORT(cuMemcpyAtoHAsync_v2_ptsz, (void *d, A a, size_t o, size_t n, void *h),
       array_copy(NULL, 0, HOST_ADDRESS(d), a, o, 0, n, h, true, ASYNC))
EXPORT(cuMemcpyDtoA_v2, (A a, size_t o, sim_ptr s, size_t n),
       array_copy(a, o, 0, NULL, 0, s, n, NULL, false, SYNC))
EXPORT(cuMemcpyAtoD_v2, (sim_ptr d, A a, size_t o, size_t n),
       array_copy(NULL, 0, d, a, o, 0, n, NULL, false, SYNC))
EXPORT(cuMemcpyAtoA_v2, (A da, size_t doff, A sa, size_t soff, size_t n),
       array_copy(da, doff, 0, sa, soff, 0, n, NULL, false, SYNC))
#undef A

/* ---- batches ---- */
static int batch(sim_ptr *d, sim_ptr *s, size_t *n, size_t cnt, size_t *failed, void *handle,
		 bool per_thread)
{
	if (!d || !s || !n || !cnt || handle == NULL || handle == SIM_LEGACY)
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < cnt; i++) {
		int rc = linear(d[i], s[i], n[i], handle, per_thread, BATCH);

		if (rc) {
			if (failed)
				*failed = i;
			return rc;
		}
	}
	return SIM_OK;
}
#define BATCH_PARAMS \
	sim_ptr *d, sim_ptr *s, size_t *n, size_t cnt, void *attrs, size_t *idx, size_t acnt
EXPORT(cuMemcpyBatchAsync, (BATCH_PARAMS, size_t *failed, void *h),
       batch(d, s, n, cnt, failed, h, false))
EXPORT(cuMemcpyBatchAsync_ptsz, (BATCH_PARAMS, size_t *failed, void *h),
       batch(d, s, n, cnt, failed, h, true))
EXPORT(cuMemcpyBatchAsync_v2, (BATCH_PARAMS, void *h), batch(d, s, n, cnt, NULL, h, false))
EXPORT(cuMemcpyBatchAsync_v2_ptsz, (BATCH_PARAMS, void *h), batch(d, s, n, cnt, NULL, h, true))
