/*
 * tests/sim/runtime_copy.c: copies and memsets. Each becomes the driver call that the real runtime makes
 * for it: host to device cuMemcpyHtoD, host to host a 2D copy, arrays a 3D copy after asking for the
 * array's format, and so on. On the calling thread.
 */
#include "runtime.h"

enum { H2H, H2D, D2H, D2D, DEFAULT };

#define DEV RT_ADDRESS

/* Host to host is a rectangle of one row, as in the real runtime. */
static struct sim_memcpy2d host_row(void *dst, const void *src, size_t n)
{
	return (struct sim_memcpy2d){.src_type = SIM_HOST,
				     .src_host = src,
				     .src_pitch = n,
				     .dst_type = SIM_HOST,
				     .dst_host = dst,
				     .dst_pitch = n,
				     .width = n,
				     .height = 1};
}

static int copy(const struct rt_driver *drv, void *dst, const void *src, size_t n, int kind)
{
	struct sim_memcpy2d row;

	if (!n)
		return SIM_OK;
	switch (kind) {
	case H2H:
		row = host_row(dst, src, n);
		return drv->cuMemcpy2DUnaligned(&row);
	case H2D:
		return drv->cuMemcpyHtoD(DEV(dst), src, n);
	case D2H:
		return drv->cuMemcpyDtoH(dst, DEV(src), n);
	case D2D:
		return drv->cuMemcpyDtoD(DEV(dst), DEV(src), n);
	case DEFAULT:
		return drv->cuMemcpy(DEV(dst), DEV(src), n);
	}
	return SIM_INVALID_DIRECTION;
}

static int copy_async(const struct rt_driver *drv, void *dst, const void *src, size_t n, int kind,
		      void *s)
{
	struct sim_memcpy2d row;

	if (!n)
		return SIM_OK;
	switch (kind) {
	case H2H:
		row = host_row(dst, src, n);
		return drv->cuMemcpy2DAsync(&row, s);
	case H2D:
		return drv->cuMemcpyHtoDAsync(DEV(dst), src, n, s);
	case D2H:
		return drv->cuMemcpyDtoHAsync(dst, DEV(src), n, s);
	case D2D:
		return drv->cuMemcpyDtoDAsync(DEV(dst), DEV(src), n, s);
	case DEFAULT:
		return drv->cuMemcpyAsync(DEV(dst), DEV(src), n, s);
	}
	return SIM_INVALID_DIRECTION;
}
RT_PTDS(cudaMemcpy, (void *dst, const void *src, size_t n, int kind), copy(drv, dst, src, n, kind))
RT_PTSZ(cudaMemcpyAsync, (void *dst, const void *src, size_t n, int kind, void *s),
	copy_async(drv, dst, src, n, kind, s))

/* ---- symbols ---- */
static int to_symbol(const struct rt_driver *drv, const void *symbol, const void *src, size_t n,
		     size_t offset, int kind, void *s, bool async)
{
	size_t bytes;
	sim_ptr p;
	int rc = rt_symbol(&p, &bytes, symbol);
	void *dst;

	if (rc)
		return rc;
	if (offset + n > bytes)
		return SIM_INVALID_VALUE;
	dst = (char *)(uintptr_t)p + offset;
	return async ? copy_async(drv, dst, src, n, kind, s) : copy(drv, dst, src, n, kind);
}

static int from_symbol(const struct rt_driver *drv, void *dst, const void *symbol, size_t n,
		       size_t offset, int kind, void *s, bool async)
{
	size_t bytes;
	sim_ptr p;
	int rc = rt_symbol(&p, &bytes, symbol);
	void *src;

	if (rc)
		return rc;
	if (offset + n > bytes)
		return SIM_INVALID_VALUE;
	src = (char *)(uintptr_t)p + offset;
	return async ? copy_async(drv, dst, src, n, kind, s) : copy(drv, dst, src, n, kind);
}
RT_PTDS(cudaMemcpyToSymbol,
	(const void *symbol, const void *src, size_t n, size_t offset, int kind),
	to_symbol(drv, symbol, src, n, offset, kind, NULL, false))
RT_PTSZ(cudaMemcpyToSymbolAsync,
	(const void *symbol, const void *src, size_t n, size_t offset, int kind, void *s),
	to_symbol(drv, symbol, src, n, offset, kind, s, true))
RT_PTDS(cudaMemcpyFromSymbol, (void *dst, const void *symbol, size_t n, size_t offset, int kind),
	from_symbol(drv, dst, symbol, n, offset, kind, NULL, false))
RT_PTSZ(cudaMemcpyFromSymbolAsync,
	(void *dst, const void *symbol, size_t n, size_t offset, int kind, void *s),
	from_symbol(drv, dst, symbol, n, offset, kind, s, true))

/* ---- rectangles ---- */
static bool host_source(int kind)
{
	return kind == H2H || kind == H2D;
}

static bool host_target(int kind)
{
	return kind == H2H || kind == D2H;
}

/* host: where a kind that says so puts this side. */
static int side_type(const void *array, int kind, bool host)
{
	if (array)
		return SIM_ARRAY;
	if (kind == DEFAULT)
		return SIM_UNIFIED;
	return host ? SIM_HOST : SIM_DEVICE;
}

static int rectangle(const struct rt_driver *drv, void *dst, size_t dpitch, const void *src,
		     size_t spitch, size_t width, size_t height, int kind, void *s, bool async)
{
	struct sim_memcpy2d c = {
		.src_type = side_type(NULL, kind, host_source(kind)),
		.src_host = src,
		.src_dev = DEV(src),
		.src_pitch = spitch,
		.dst_type = side_type(NULL, kind, host_target(kind)),
		.dst_host = dst,
		.dst_dev = DEV(dst),
		.dst_pitch = dpitch,
		.width = width,
		.height = height,
	};

	if (kind < H2H || kind > DEFAULT)
		return SIM_INVALID_DIRECTION;
	if (width > dpitch || width > spitch)
		return SIM_INVALID_PITCH;
	if (!width || !height)
		return SIM_OK;
	return async ? drv->cuMemcpy2DAsync(&c, s) : drv->cuMemcpy2DUnaligned(&c);
}
RT_PTDS(cudaMemcpy2D,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	 int kind),
	rectangle(drv, dst, dpitch, src, spitch, width, height, kind, NULL, false))
RT_PTSZ(cudaMemcpy2DAsync,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	 int kind, void *s),
	rectangle(drv, dst, dpitch, src, spitch, width, height, kind, s, true))

/* ---- arrays ---- */
static const unsigned char format_bytes[0x21] = {
	[1] = 1, [2] = 2, [3] = 4, [8] = 1, [9] = 2, [10] = 4, [0x10] = 2, [0x20] = 4};

static size_t element_of(const struct sim_array3d_desc *d)
{
	unsigned f = (unsigned)d->format;

	return (f < sizeof(format_bytes) ? format_bytes[f] : 1) * d->channels;
}

/* One side of a copy is (part of) an array, the other linear memory or another array. */
struct end {
	void *array;
	size_t x, y; /* bytes, rows */
	void *ptr;
	size_t pitch;
};

static int array_copy(const struct rt_driver *drv, struct end d, struct end f, size_t width,
		      size_t height, int kind, void *s, bool async)
{
	struct sim_array3d_desc desc;
	struct sim_memcpy3d c = {
		.src_x = f.x,
		.src_y = f.y,
		.src_type = side_type(f.array, kind, host_source(kind)),
		.src_host = f.ptr,
		.src_dev = DEV(f.ptr),
		.src_array = f.array,
		.src_pitch = f.pitch,
		.dst_x = d.x,
		.dst_y = d.y,
		.dst_type = side_type(d.array, kind, host_target(kind)),
		.dst_host = d.ptr,
		.dst_dev = DEV(d.ptr),
		.dst_array = d.array,
		.dst_pitch = d.pitch,
		.width = width,
		.height = height,
		.depth = 1,
	};
	int rc = drv->cuArray3DGetDescriptor(&desc, d.array ? d.array : f.array);

	if (rc)
		return rc;
	return async ? drv->cuMemcpy3DAsync(&c, s) : drv->cuMemcpy3D(&c);
}

/* A run of bytes into rows of an array: the part of the first row, whole rows, the rest. */
static int run_copy(const struct rt_driver *drv, void *array, size_t x, size_t y, char *ptr,
		    size_t n, bool to, int kind, void *s, bool async)
{
	struct sim_array3d_desc desc;
	size_t row;
	int rc = drv->cuArray3DGetDescriptor(&desc, array);

	if (rc)
		return rc;
	row = desc.width * element_of(&desc);
	if (!row || x >= row)
		return SIM_INVALID_VALUE;
	while (n && !rc) {
		size_t width = x || n < row ? (n < row - x ? n : row - x) : row;
		size_t height = !x && n >= row ? n / row : 1;
		struct end a = {.array = array, .x = x, .y = y}, l = {.ptr = ptr, .pitch = width};

		rc = to ? array_copy(drv, a, l, width, height, kind, s, async)
			: array_copy(drv, l, a, width, height, kind, s, async);
		ptr += width * height;
		n -= width * height;
		y += height;
		x = 0;
	}
	return rc;
}

#define LINEAR(p, pitch_) ((struct end){.ptr = (void *)(uintptr_t)(p), .pitch = pitch_})
#define IN_ARRAY(a, x_, y_) ((struct end){.array = a, .x = x_, .y = y_})

RT_PTDS(cudaMemcpyToArray, (void *a, size_t x, size_t y, const void *src, size_t n, int kind),
	run_copy(drv, a, x, y, (char *)(uintptr_t)src, n, true, kind, NULL, false))
RT_PTSZ(cudaMemcpyToArrayAsync,
	(void *a, size_t x, size_t y, const void *src, size_t n, int kind, void *s),
	run_copy(drv, a, x, y, (char *)(uintptr_t)src, n, true, kind, s, true))
RT_PTDS(cudaMemcpyFromArray, (void *dst, void *a, size_t x, size_t y, size_t n, int kind),
	run_copy(drv, a, x, y, dst, n, false, kind, NULL, false))
RT_PTSZ(cudaMemcpyFromArrayAsync,
	(void *dst, void *a, size_t x, size_t y, size_t n, int kind, void *s),
	run_copy(drv, a, x, y, dst, n, false, kind, s, true))
RT_PTDS(cudaMemcpy2DToArray,
	(void *a, size_t x, size_t y, const void *src, size_t pitch, size_t w, size_t h, int kind),
	array_copy(drv, IN_ARRAY(a, x, y), LINEAR(src, pitch), w, h, kind, NULL, false))
RT_PTSZ(cudaMemcpy2DToArrayAsync,
	(void *a, size_t x, size_t y, const void *src, size_t pitch, size_t w, size_t h, int kind,
	 void *s),
	array_copy(drv, IN_ARRAY(a, x, y), LINEAR(src, pitch), w, h, kind, s, true))
RT_PTDS(cudaMemcpy2DFromArray,
	(void *dst, size_t pitch, void *a, size_t x, size_t y, size_t w, size_t h, int kind),
	array_copy(drv, LINEAR(dst, pitch), IN_ARRAY(a, x, y), w, h, kind, NULL, false))
RT_PTSZ(cudaMemcpy2DFromArrayAsync,
	(void *dst, size_t pitch, void *a, size_t x, size_t y, size_t w, size_t h, int kind,
	 void *s),
	array_copy(drv, LINEAR(dst, pitch), IN_ARRAY(a, x, y), w, h, kind, s, true))
RT_PTDS(cudaMemcpy2DArrayToArray,
	(void *d, size_t dx, size_t dy, void *f, size_t x, size_t y, size_t w, size_t h, int kind),
	array_copy(drv, IN_ARRAY(d, dx, dy), IN_ARRAY(f, x, y), w, h, kind, NULL, false))

/* Through a bounce buffer, so that it costs an allocation and a free, as in the real runtime. */
static int array_to_array(const struct rt_driver *drv, void *d, size_t dx, size_t dy, void *f,
			  size_t x, size_t y, size_t n)
{
	sim_ptr bounce;
	int rc = drv->cuMemAlloc(&bounce, n);

	if (rc)
		return rc;
	rc = run_copy(drv, f, x, y, (char *)(uintptr_t)bounce, n, false, D2D, NULL, false);
	if (!rc)
		rc = run_copy(drv, d, dx, dy, (char *)(uintptr_t)bounce, n, true, D2D, NULL, false);
	drv->cuMemFree(bounce);
	return rc;
}
RT_PTDS(cudaMemcpyArrayToArray,
	(void *d, size_t dx, size_t dy, void *f, size_t x, size_t y, size_t n, int kind),
	array_to_array(drv, d, dx, dy, f, x, y, n))

/* ---- boxes ---- */
static size_t array_element(void *array)
{
	struct sim_array3d_desc desc;

	return array && !rt_drivers[0].cuArray3DGetDescriptor(&desc, array) ? element_of(&desc) : 1;
}

int rt_memcpy3d(struct sim_memcpy3d *out, const struct sim_rt_memcpy3d *in)
{
	size_t unit = 1, src_unit, dst_unit;
	int kind;

	if (!in)
		return SIM_INVALID_VALUE;
	src_unit = array_element(in->src_array);
	dst_unit = array_element(in->dst_array);
	kind = in->kind;
	if ((in->src_array && in->src.ptr) || (in->dst_array && in->dst.ptr) || kind < H2H ||
	    kind > DEFAULT)
		return SIM_INVALID_VALUE;
	/* The extent counts elements when an array takes part, bytes otherwise. */
	if (in->src_array)
		unit = src_unit;
	else if (in->dst_array)
		unit = dst_unit;
	*out = (struct sim_memcpy3d){
		.src_x = in->src_pos.x * src_unit,
		.src_y = in->src_pos.y,
		.src_z = in->src_pos.z,
		.src_type = side_type(in->src_array, kind, host_source(kind)),
		.src_host = in->src.ptr,
		.src_dev = DEV(in->src.ptr),
		.src_array = in->src_array,
		.src_pitch = in->src.pitch,
		.src_height = in->src.ysize,
		.dst_x = in->dst_pos.x * dst_unit,
		.dst_y = in->dst_pos.y,
		.dst_z = in->dst_pos.z,
		.dst_type = side_type(in->dst_array, kind, host_target(kind)),
		.dst_host = in->dst.ptr,
		.dst_dev = DEV(in->dst.ptr),
		.dst_array = in->dst_array,
		.dst_pitch = in->dst.pitch,
		.dst_height = in->dst.ysize,
		.width = in->extent.width * unit,
		.height = in->extent.height,
		.depth = in->extent.depth,
	};
	return SIM_OK;
}

static int box(const struct rt_driver *drv, const struct sim_rt_memcpy3d *in, void *s, bool async)
{
	struct sim_memcpy3d c;
	int rc = rt_memcpy3d(&c, in);

	if (rc)
		return rc;
	return async ? drv->cuMemcpy3DAsync(&c, s) : drv->cuMemcpy3D(&c);
}
RT_PTDS(cudaMemcpy3D, (const struct sim_rt_memcpy3d *in), box(drv, in, NULL, false))
RT_PTSZ(cudaMemcpy3DAsync, (const struct sim_rt_memcpy3d *in, void *s), box(drv, in, s, true))

/* ---- peers ---- */
static int peer_contexts(const struct rt_driver *drv, int dst, void **dst_ctx, int src,
			 void **src_ctx)
{
	unsigned version;
	int rc = rt_context(dst, dst_ctx);

	if (!rc)
		rc = rt_context(src, src_ctx);
	if (rc)
		return rc;
	drv->cuCtxGetApiVersion(*dst_ctx, &version);
	drv->cuCtxGetApiVersion(*src_ctx, &version);
	return SIM_OK;
}

static int peer(const struct rt_driver *drv, void *dst, int dst_dev, const void *src, int src_dev,
		size_t n, void *s, bool async)
{
	void *dc, *sc;
	int rc = peer_contexts(drv, dst_dev, &dc, src_dev, &sc);

	if (rc || !n)
		return rc;
	return async ? drv->cuMemcpyPeerAsync(DEV(dst), dc, DEV(src), sc, n, s)
		     : drv->cuMemcpyPeer(DEV(dst), dc, DEV(src), sc, n);
}
RT_EXPORT(cudaMemcpyPeer, (void *dst, int dst_dev, const void *src, int src_dev, size_t n),
	  peer(drv, dst, dst_dev, src, src_dev, n, NULL, false))
RT_EXPORT(cudaMemcpyPeerAsync,
	  (void *dst, int dst_dev, const void *src, int src_dev, size_t n, void *s),
	  peer(drv, dst, dst_dev, src, src_dev, n, s, true))

static int peer_box(const struct rt_driver *drv, const struct sim_rt_memcpy3d_peer *in, void *s,
		    bool async)
{
	struct sim_rt_memcpy3d plain;
	struct sim_memcpy3d c;
	int rc;

	if (!in)
		return SIM_INVALID_VALUE;
	plain = (struct sim_rt_memcpy3d){in->src_array, in->src_pos, in->src,    in->dst_array,
					 in->dst_pos,   in->dst,     in->extent, DEFAULT};
	rc = rt_memcpy3d(&c, &plain);
	if (!rc)
		rc = peer_contexts(drv, in->dst_device, &c.dst_ctx, in->src_device, &c.src_ctx);
	if (rc)
		return rc;
	return async ? drv->cuMemcpy3DPeerAsync(&c, s) : drv->cuMemcpy3DPeer(&c);
}
RT_PTDS(cudaMemcpy3DPeer, (const struct sim_rt_memcpy3d_peer *in), peer_box(drv, in, NULL, false))
RT_PTSZ(cudaMemcpy3DPeerAsync, (const struct sim_rt_memcpy3d_peer *in, void *s),
	peer_box(drv, in, s, true))

/* ---- batches: 12.8 has a place for the index of the failed copy, 13 has not ---- */
#define BATCH_PARAMS \
	void **d, const void **f, const size_t *n, size_t cnt, void *attrs, size_t *idx, size_t acnt
#define BATCH_CALL \
	drv->cuMemcpyBatchAsync((sim_ptr *)d, (sim_ptr *)(uintptr_t)f, (size_t *)(uintptr_t)n, \
				cnt, attrs, idx, acnt, s)
#if RT_GEN >= 13
RT_PTSZ(cudaMemcpyBatchAsync, (BATCH_PARAMS, void *s), BATCH_CALL)
#elif RT_GEN == 12
RT_PTSZ(cudaMemcpyBatchAsync, (BATCH_PARAMS, size_t *failed, void *s), BATCH_CALL)
#endif

/* ---- memset ---- */
static int set_3d(const struct rt_driver *drv, struct sim_pitched p, int value, struct sim_extent e,
		  void *s, bool async)
{
	size_t rows = e.height * e.depth;

	if (!e.width || !rows)
		return SIM_OK;
	/* Planes follow each other without a gap when the rows of a plane are all set. */
	if (e.depth > 1 && e.height != p.ysize) {
		for (size_t z = 0; z < e.depth; z++) {
			sim_ptr plane = DEV(p.ptr) + z * p.pitch * p.ysize;
			int rc =
				async ? drv->cuMemsetD2D8Async(plane, p.pitch, (unsigned char)value,
							       e.width, e.height, s)
				      : drv->cuMemsetD2D8(plane, p.pitch, (unsigned char)value,
							  e.width, e.height);

			if (rc)
				return rc;
		}
		return SIM_OK;
	}
	return async ? drv->cuMemsetD2D8Async(DEV(p.ptr), p.pitch, (unsigned char)value, e.width,
					      rows, s)
		     : drv->cuMemsetD2D8(DEV(p.ptr), p.pitch, (unsigned char)value, e.width, rows);
}
RT_PTDS(cudaMemset, (void *p, int v, size_t n),
	n ? drv->cuMemsetD8(DEV(p), (unsigned char)v, n) : SIM_OK)
RT_PTSZ(cudaMemsetAsync, (void *p, int v, size_t n, void *s),
	n ? drv->cuMemsetD8Async(DEV(p), (unsigned char)v, n, s) : SIM_OK)
RT_PTDS(cudaMemset2D, (void *p, size_t pitch, int v, size_t w, size_t h),
	drv->cuMemsetD2D8(DEV(p), pitch, (unsigned char)v, w, h))
RT_PTSZ(cudaMemset2DAsync, (void *p, size_t pitch, int v, size_t w, size_t h, void *s),
	drv->cuMemsetD2D8Async(DEV(p), pitch, (unsigned char)v, w, h, s))
RT_PTDS(cudaMemset3D, (struct sim_pitched p, int v, struct sim_extent e),
	set_3d(drv, p, v, e, NULL, false))
RT_PTSZ(cudaMemset3DAsync, (struct sim_pitched p, int v, struct sim_extent e, void *s),
	set_3d(drv, p, v, e, s, true))
