/*
 * tests/sim/driver_set.c: memset in all widths, on the calling thread. Setting device memory never
 * waits; setting pinned or managed memory without Async waits for the copy of the value, as measured.
 */
#include "sim.h"

#include <string.h>

struct set_work {
	struct sim_work work;
	char *dst;
	size_t pitch, width, height;
	unsigned value, element;
};

static void run_set(struct sim_work *work)
{
	struct set_work *s = (struct set_work *)work;

	for (size_t y = 0; y < s->height; y++) {
		char *row = s->dst + y * s->pitch;

		if (s->element == 1)
			memset(row, (int)s->value, s->width);
		else
			for (size_t x = 0; x < s->width; x++)
				memcpy(row + x * s->element, &s->value, s->element);
	}
}

struct sim_op *sim_set_op(sim_ptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
			  size_t height)
{
	struct set_work *s = sim_work_new(sizeof(*s), run_set);
	double bytes = (double)width * element * (double)height;
	struct sim_op *op =
		sim_op_new(OP_SET, 1000 + (uint64_t)(bytes / (sim_script.copy_gbps * 40)));

	*s = (struct set_work){s->work, (char *)(uintptr_t)dst, pitch, width, height, value,
			       element};
	op->work = &s->work;
	op->what.bytes = (uint64_t)width * element * height;
	op->what.value = value;
	op->what.dst = (unsigned char)sim_mem_at(dst, NULL);
	return op;
}

static int set(sim_ptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
	       size_t height, void *handle, bool per_thread, bool async)
{
	enum sim_mem kind = sim_mem_at(dst, NULL);
	struct sim_op *done = NULL;
	struct sim_stream *stream;
	unsigned held;
	int rc, dev;

	stream = sim_stream_of(handle, per_thread, &rc);
	if (rc || !width || !height)
		return rc;
	if (kind == MEM_PAGEABLE || dst % element)
		return SIM_INVALID_VALUE;
	sim_note_copy(width * element * height, MEM_NONE, kind, handle);
	if (!sim_capturing(stream))
		sim_wait_room(stream, WHY_QUEUE);
	dev = stream->ctx->dev;
	held = sim_lock(HOLD_CTX_READ, dev);
	rc = sim_enqueue(stream, sim_set_op(dst, pitch, value, element, width, height),
			 !async && kind != MEM_DEVICE ? &done : NULL);
	sim_unlock(held, dev);
	if (done) {
		sim_wait_op(done, WHY_INTENDED);
		sim_op_put(done);
	}
	return rc;
}

#define SET1D(bits, type) \
	EXPORT(cuMemsetD##bits##_v2, (sim_ptr d, type v, size_t n), \
	       set(d, 0, v, bits / 8, n, 1, NULL, false, false)) \
	EXPORT(cuMemsetD##bits##_v2_ptds, (sim_ptr d, type v, size_t n), \
	       set(d, 0, v, bits / 8, n, 1, NULL, true, false)) \
	EXPORT(cuMemsetD##bits##Async, (sim_ptr d, type v, size_t n, void *h), \
	       set(d, 0, v, bits / 8, n, 1, h, false, true)) \
	EXPORT(cuMemsetD##bits##Async_ptsz, (sim_ptr d, type v, size_t n, void *h), \
	       set(d, 0, v, bits / 8, n, 1, h, true, true))
#define SET2D(bits, type) \
	EXPORT(cuMemsetD2D##bits##_v2, (sim_ptr d, size_t p, type v, size_t w, size_t n), \
	       set(d, p, v, bits / 8, w, n, NULL, false, false)) \
	EXPORT(cuMemsetD2D##bits##_v2_ptds, (sim_ptr d, size_t p, type v, size_t w, size_t n), \
	       set(d, p, v, bits / 8, w, n, NULL, true, false)) \
	EXPORT(cuMemsetD2D##bits##Async, \
	       (sim_ptr d, size_t p, type v, size_t w, size_t n, void *h), \
	       set(d, p, v, bits / 8, w, n, h, false, true)) \
	EXPORT(cuMemsetD2D##bits##Async_ptsz, \
	       (sim_ptr d, size_t p, type v, size_t w, size_t n, void *h), \
	       set(d, p, v, bits / 8, w, n, h, true, true))

SET1D(8, unsigned char)
SET1D(16, unsigned short)
SET1D(32, unsigned)
SET2D(8, unsigned char)
SET2D(16, unsigned short)
SET2D(32, unsigned)
