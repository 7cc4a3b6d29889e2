/*
 * shim/inspect/inspect_copy.c: what a copy moves: direction, bytes without padding, the memory kind
 * of both ends, the stream. Runs on the application's threads, around each copy (spy_enter,
 * spy_leave).
 *
 * Each form of copy is read into a struct copy; one function makes the details out of that. The
 * kinds come from our own map before the call. Where the map does not know a host address, the form
 * is read again after the call, if it succeeded, and the driver is asked (memory.h says why then).
 * A kind named by the application (cudaMemcpyHostToDevice) decides the direction; what memory is
 * really there is looked up all the same, because a "device" end may be managed and a "host" end
 * pinned. The device end of such a copy is taken for device memory when the map does not know it,
 * without asking. Only of a large copy between memory of GPUs, if there are several, the driver is
 * asked where an end lies that the map does not know, as it knows none of pools'.
 */
#include "describe/describe.h"
#include "inspect/cuda_layout.h"
#include "inspect/inspect_common.h"
#include "inspect/memory.h"

/* Places of a row. */
enum { DST, SRC, WIDTH, HEIGHT, KIND, STREAM, DST_PITCH, SRC_PITCH };
enum { PEER_DST = 3, PEER_SRC = 4 };
enum { BATCH_DSTS = 0, BATCH_SRCS, BATCH_SIZES, BATCH_COUNT, BATCH_STREAM_12 = 6 };

struct end {
	uint64_t address; /* or array */
	uint64_t span; /* bytes from the first to the last one touched, padding included */
	uint8_t side; /* enum spy_side */
	uint8_t device;
};

struct copy {
	struct end dst, src;
	uint64_t bytes;
};

/* Reads the arguments; false: there is nothing to read. ask: the driver may be asked. */
typedef bool read_form(struct spy_frame *frame, const struct spy_inspector *self, struct copy *copy,
		       bool ask);

/* ---- from a struct copy to details --------------------------------------------------------------
 */

static uint8_t kind_of(struct spy_frame *frame, const struct end *end, bool ask)
{
	struct spy_inspect_cache *cache = &frame->thread->inspect;
	enum spy_memory_kind kind;

	if (end->side == SPY_SIDE_ARRAY)
		return SPY_MEM_ARRAY;
	kind = spy_memory_kind(cache, end->address, end->span);
	if (kind == SPY_MEM_UNKNOWN && end->side == SPY_SIDE_DEVICE)
		return SPY_MEM_DEVICE;
	if (kind == SPY_MEM_UNKNOWN && ask)
		kind = spy_memory_ask(frame->thread, cache, end->address, end->span);
	return (uint8_t)kind;
}

/* Which side of the bus an end is on. Managed memory counts as the device's: that is where it goes
 * when a copy touches it. A "device" address of pinned memory is the host's: such a copy behaves as
 * host to host, and CUPTI calls it so (docs/CUDA_FACTS.md). */
static inline uint8_t side_of(const struct end *end, uint8_t kind)
{
	static const uint8_t sides[] = {
		[SPY_MEM_UNKNOWN] = SPY_SIDE_ANY,   [SPY_MEM_PAGEABLE] = SPY_SIDE_HOST,
		[SPY_MEM_PINNED] = SPY_SIDE_HOST,   [SPY_MEM_MANAGED] = SPY_SIDE_DEVICE,
		[SPY_MEM_DEVICE] = SPY_SIDE_DEVICE, [SPY_MEM_ARRAY] = SPY_SIDE_DEVICE,
		[SPY_MEM_MIXED] = SPY_SIDE_HOST,
	};

	if (end->side == SPY_SIDE_ANY || (end->side == SPY_SIDE_DEVICE && kind == SPY_MEM_PINNED))
		return sides[kind];
	return end->side;
}

static inline uint8_t direction_of(uint8_t dst, uint8_t src)
{
	static const uint8_t directions[4][4] = {
		/* [src][dst], enum spy_side */
		[SPY_SIDE_HOST] = {0, SPY_DIR_H2H, SPY_DIR_H2D, SPY_DIR_H2D},
		[SPY_SIDE_DEVICE] = {0, SPY_DIR_D2H, SPY_DIR_D2D, SPY_DIR_D2D},
		[SPY_SIDE_ARRAY] = {0, SPY_DIR_D2H, SPY_DIR_D2D, SPY_DIR_D2D},
	};

	return directions[src][dst];
}

/* Less is not worth a question: it passes a link between GPUs, or the host, in some
 * microseconds. */
#define LARGE (256u << 10)

static bool may_be_between_gpus(const struct spy_details *details)
{
	return details->bytes >= LARGE && !details->captured && spy_may_see_several_gpus();
}

/* The GPU that an end lies on, as the call says or else where the memory was allocated; returns
 * how other GPUs reach that memory. */
static enum spy_access find_device(struct spy_frame *frame, const struct end *end, uint8_t kind,
				   uint8_t *device, bool ask)
{
	struct spy_inspect_cache *cache = &frame->thread->inspect;
	const struct spy_memory_hit *hit;

	*device = end->device;
	if (kind != SPY_MEM_DEVICE || !end->address)
		return SPY_ACCESS_UNKNOWN;
	hit = spy_memory_known(cache, end->address);
	if (!hit && ask) {
		spy_memory_ask(frame->thread, cache, end->address, end->span);
		hit = spy_memory_known(cache, end->address);
	}
	if (!hit) {
		frame->details.unplaced = true;
		return SPY_ACCESS_UNKNOWN;
	}
	if (*device == SPY_DEVICE_NONE)
		*device = hit->device;
	return hit->access;
}

/* From one GPU to another? */
static void find_devices(struct spy_frame *frame, const struct copy *copy, bool ask)
{
	struct spy_details *details = &frame->details;
	unsigned int src, dst;

	ask = ask && may_be_between_gpus(details);
	src = find_device(frame, &copy->src, details->src_kind, &details->src_device, ask);
	dst = find_device(frame, &copy->dst, details->dst_kind, &details->dst_device, ask);
	details->access = (uint8_t)(src | dst << 2);
}

static void mark_pageable(struct spy_details *details, bool async)
{
	details->pageable =
		async && !details->captured && details->bytes &&
		(details->src_kind == SPY_MEM_PAGEABLE || details->dst_kind == SPY_MEM_PAGEABLE);
}

static void fill_details(struct spy_frame *frame, const struct spy_inspector *self,
			 const struct copy *copy, bool ask)
{
	struct spy_details *details = &frame->details;
	bool async = self->at[STREAM] != SPY_NO_ARG;

	ask = ask && copy->bytes;
	details->stream = stream_arg(frame, self, STREAM);
	details->captured = async && capturing(frame, details->stream);
	details->form = self->b & 0xf;
	details->bytes = copy->bytes;
	details->src_kind = kind_of(frame, &copy->src, ask);
	details->dst_kind = kind_of(frame, &copy->dst, ask);
	details->direction = direction_of(side_of(&copy->dst, details->dst_kind),
					  side_of(&copy->src, details->src_kind));
	details->src_device = copy->src.device;
	details->dst_device = copy->dst.device;
	details->access = 0;
	details->unplaced = false;
	if (details->direction == SPY_DIR_D2D)
		find_devices(frame, copy, ask);
	mark_pageable(details, async);
}

/* Inlined, so that each form is read without an indirect call. */
static inline __attribute__((always_inline)) void
inspect(struct spy_frame *frame, const struct spy_inspector *self, read_form *read, bool ask)
{
	struct copy copy = {.dst.device = SPY_DEVICE_NONE, .src.device = SPY_DEVICE_NONE};

	if (!read(frame, self, &copy, ask))
		return;
	if (!ask)
		set_event(frame, SPY_EV_COPY);
	fill_details(frame, self, &copy, ask);
}

/* After the call: is there anything to ask the driver? */
static bool unsettled(const struct spy_frame *frame)
{
	const struct spy_details *details = &frame->details;

	if (!succeeded(frame) || details->event != SPY_EV_COPY)
		return false;
	if (details->unplaced && may_be_between_gpus(details))
		return true;
	if (details->src_kind == SPY_MEM_ARRAY || details->dst_kind == SPY_MEM_ARRAY)
		return !details->bytes || details->src_kind == SPY_MEM_UNKNOWN ||
		       details->dst_kind == SPY_MEM_UNKNOWN;
	return details->bytes &&
	       (details->src_kind == SPY_MEM_UNKNOWN || details->dst_kind == SPY_MEM_UNKNOWN);
}

/* The two functions of inspectors.def for one way to read a copy. */
#define COPY_INSPECTORS(form) \
	void inspect_##form(struct spy_frame *frame, const struct spy_inspector *self) \
	{ \
		inspect(frame, self, read_##form, false); \
	} \
	void inspect_##form##_ask(struct spy_frame *frame, const struct spy_inspector *self) \
	{ \
		if (unsettled(frame)) \
			inspect(frame, self, read_##form, true); \
	}

/* ---- copies whose arguments say it all ------------------------------------------------------ */

/* cudaMemcpyKind. An array or a symbol is what it is. */
static void apply_kind(struct copy *copy, uint32_t kind)
{
	bool to_device = kind == LAYOUT_H2D || kind == LAYOUT_D2D;
	bool from_device = kind == LAYOUT_D2H || kind == LAYOUT_D2D;

	if (kind > LAYOUT_D2D)
		return;
	if (copy->dst.side == SPY_SIDE_ANY)
		copy->dst.side = to_device ? SPY_SIDE_DEVICE : SPY_SIDE_HOST;
	if (copy->src.side == SPY_SIDE_ANY)
		copy->src.side = from_device ? SPY_SIDE_DEVICE : SPY_SIDE_HOST;
}

static uint64_t span_of(uint64_t width, uint64_t height, uint64_t pitch)
{
	return height ? (height - 1) * pitch + width : 0;
}

static void narrow(struct end *end)
{
	if (end->side == SPY_SIDE_DEVICE)
		end->address = (uint32_t)end->address;
}

/* Rows of a pitch. */
static void read_rows(struct spy_frame *frame, const struct spy_inspector *self, struct copy *copy)
{
	uint64_t height = arg(frame, self, HEIGHT);

	copy->dst.span = span_of(copy->bytes, height, arg(frame, self, DST_PITCH));
	copy->src.span = span_of(copy->bytes, height, arg(frame, self, SRC_PITCH));
	copy->bytes *= height;
}

/* What stands for a symbol is the address of a variable of the host's that is not copied: it says
 * nothing, and must not be looked up. */
static void forget_shadow(struct copy *copy)
{
	if (copy->dst.side == SPY_SIDE_DEVICE)
		copy->dst.address = 0;
	if (copy->src.side == SPY_SIDE_DEVICE)
		copy->src.address = 0;
}

static inline bool read_copy(struct spy_frame *frame, const struct spy_inspector *self,
			     struct copy *copy, bool ask)
{
	(void)ask;
	copy->dst.address = spy_word(frame, (unsigned int)self->at[DST]);
	copy->src.address = spy_word(frame, (unsigned int)self->at[SRC]);
	copy->dst.side = self->a & 3;
	copy->src.side = self->a >> 2 & 3;
	copy->bytes = copy->dst.span = copy->src.span = size_arg(frame, self, WIDTH);
	if (self->at[HEIGHT] != SPY_NO_ARG)
		read_rows(frame, self, copy);
	if ((self->b & 0xf) == SPY_FORM_SYMBOL)
		forget_shadow(copy);
	if (self->at[KIND] != SPY_NO_ARG)
		apply_kind(copy, (uint32_t)arg(frame, self, KIND));
	if (self->b & SPY_NARROW) {
		narrow(&copy->dst);
		narrow(&copy->src);
	}
	return true;
}

COPY_INSPECTORS(copy)

static uint8_t device_number(uint64_t device)
{
	return (uint32_t)device < SPY_DEVICE_NONE ? (uint8_t)device : SPY_DEVICE_NONE;
}

static inline bool read_copy_peer(struct spy_frame *frame, const struct spy_inspector *self,
				  struct copy *copy, bool ask)
{
	uint64_t dst = arg(frame, self, PEER_DST), src = arg(frame, self, PEER_SRC);

	(void)ask;
	copy->dst.address = arg(frame, self, DST);
	copy->src.address = arg(frame, self, SRC);
	copy->dst.side = copy->src.side = SPY_SIDE_DEVICE;
	copy->bytes = copy->dst.span = copy->src.span = arg(frame, self, WIDTH);
	copy->dst.device = self->a ? spy_context_device(dst) : device_number(dst);
	copy->src.device = self->a ? spy_context_device(src) : device_number(src);
	return true;
}

COPY_INSPECTORS(copy_peer)

/* ---- copies described by a structure -------------------------------------------------------- */

/* CUmemorytype. A unified address is in the place of the device's. */
static struct end typed_end(uint32_t type, uint64_t host, uint64_t device, uint64_t array)
{
	struct end end = {.device = SPY_DEVICE_NONE};

	switch (type) {
	case LAYOUT_HOST:
		end.side = SPY_SIDE_HOST;
		end.address = host;
		break;
	case LAYOUT_ARRAY:
		end.side = SPY_SIDE_ARRAY;
		end.address = array;
		break;
	default:
		end.side = type == LAYOUT_UNIFIED ? SPY_SIDE_ANY : SPY_SIDE_DEVICE;
		end.address = device;
		break;
	}
	return end;
}

/* Where in its memory an end begins, and how far it reaches. */
static void place(struct end *end, uint64_t offset, uint64_t span)
{
	if (end->side == SPY_SIDE_ARRAY)
		return;
	end->address += offset;
	end->span = span;
}

static bool read_2d_v1(const struct layout_copy_2d_v1 *from, struct copy *copy)
{
	copy->dst = typed_end(from->dst_type, from->dst_host, from->dst_device, from->dst_array);
	copy->src = typed_end(from->src_type, from->src_host, from->src_device, from->src_array);
	place(&copy->dst, (uint64_t)from->dst_y * from->dst_pitch + from->dst_x_bytes,
	      span_of(from->width_bytes, from->height, from->dst_pitch));
	place(&copy->src, (uint64_t)from->src_y * from->src_pitch + from->src_x_bytes,
	      span_of(from->width_bytes, from->height, from->src_pitch));
	copy->bytes = (uint64_t)from->width_bytes * from->height;
	return true;
}

static struct end end_2d(const struct layout_end_2d *from, uint64_t width, uint64_t height)
{
	struct end end = typed_end(from->type, from->host, from->device, from->array);

	place(&end, from->y * from->pitch + from->x_bytes, span_of(width, height, from->pitch));
	return end;
}

static bool read_copy_cu_2d(struct spy_frame *frame, const struct spy_inspector *self,
			    struct copy *copy, bool ask)
{
	const struct layout_copy_2d *from = (const void *)arg(frame, self, DST);

	(void)ask;
	if (!from)
		return false;
	if (self->b & SPY_NARROW)
		return read_2d_v1((const void *)from, copy);
	copy->dst = end_2d(&from->dst, from->width_bytes, from->height);
	copy->src = end_2d(&from->src, from->width_bytes, from->height);
	copy->bytes = from->width_bytes * from->height;
	return true;
}

COPY_INSPECTORS(copy_cu_2d)

/* The same for three dimensions: rows of `pitch` bytes, `rows` of them in a slice. */
static void place_3d(struct end *end, const uint64_t at[3], uint64_t pitch, uint64_t rows,
		     const struct layout_extent *extent)
{
	uint64_t slice = pitch * rows;

	place(end, at[2] * slice + at[1] * pitch + at[0],
	      extent->depth
		      ? (extent->depth - 1) * slice + span_of(extent->width, extent->height, pitch)
		      : 0);
}

static bool read_3d_v1(const struct layout_copy_3d_v1 *from, struct copy *copy)
{
	const struct layout_extent extent = {from->width_bytes, from->height, from->depth};

	copy->dst = typed_end(from->dst_type, from->dst_host, from->dst_device, from->dst_array);
	copy->src = typed_end(from->src_type, from->src_host, from->src_device, from->src_array);
	place_3d(&copy->dst, (uint64_t[]){from->dst_x_bytes, from->dst_y, from->dst_z},
		 from->dst_pitch, from->dst_height, &extent);
	place_3d(&copy->src, (uint64_t[]){from->src_x_bytes, from->src_y, from->src_z},
		 from->src_pitch, from->src_height, &extent);
	copy->bytes = extent.width * extent.height * extent.depth;
	return true;
}

static struct end end_3d(const struct layout_end_3d *from, const struct layout_extent *extent,
			 bool peer)
{
	struct end end = typed_end(from->type, from->host, from->device, from->array);

	place_3d(&end, (uint64_t[]){from->x_bytes, from->y, from->z}, from->pitch, from->height,
		 extent);
	if (peer)
		end.device = spy_context_device(from->context);
	return end;
}

static bool read_copy_cu_3d(struct spy_frame *frame, const struct spy_inspector *self,
			    struct copy *copy, bool ask)
{
	const struct layout_copy_3d *from = (const void *)arg(frame, self, DST);
	struct layout_extent extent;

	(void)ask;
	if (!from)
		return false;
	if (self->b & SPY_NARROW)
		return read_3d_v1((const void *)from, copy);
	extent = (struct layout_extent){from->width_bytes, from->height, from->depth};
	copy->dst = end_3d(&from->dst, &extent, self->a);
	copy->src = end_3d(&from->src, &extent, self->a);
	copy->bytes = extent.width * extent.height * extent.depth;
	return true;
}

COPY_INSPECTORS(copy_cu_3d)

/* The extent of a runtime's copy counts elements when an array takes part: their size is not among
 * the arguments. 0 bytes: unknown. */
static uint64_t element_of(struct spy_frame *frame, uint64_t src_array, uint64_t dst_array,
			   bool ask)
{
	if (!src_array && !dst_array)
		return 1;
	return spy_array_element(frame, src_array ? src_array : dst_array, ask);
}

static struct end rt_end_3d(const struct layout_rt_end_3d *from, const struct layout_extent *extent)
{
	struct end end = {.address = from->array, .device = SPY_DEVICE_NONE};

	if (from->array) {
		end.side = SPY_SIDE_ARRAY;
		return end;
	}
	end.address = from->memory.address;
	place_3d(&end, (uint64_t[]){from->x, from->y, from->z}, from->memory.pitch,
		 from->memory.ysize, extent);
	return end;
}

static void rt_copy_3d(struct spy_frame *frame, const struct layout_rt_end_3d *dst,
		       const struct layout_rt_end_3d *src, const struct layout_extent *extent,
		       struct copy *copy, bool ask)
{
	struct layout_extent bytes = *extent;

	bytes.width *= element_of(frame, src->array, dst->array, ask);
	copy->dst = rt_end_3d(dst, &bytes);
	copy->src = rt_end_3d(src, &bytes);
	copy->bytes = bytes.width * bytes.height * bytes.depth;
}

static bool read_copy_rt_3d(struct spy_frame *frame, const struct spy_inspector *self,
			    struct copy *copy, bool ask)
{
	const struct layout_rt_copy_3d *from = (const void *)arg(frame, self, DST);

	if (!from)
		return false;
	rt_copy_3d(frame, &from->dst, &from->src, &from->extent, copy, ask);
	apply_kind(copy, from->kind);
	return true;
}

COPY_INSPECTORS(copy_rt_3d)

static bool read_copy_rt_3d_peer(struct spy_frame *frame, const struct spy_inspector *self,
				 struct copy *copy, bool ask)
{
	const struct layout_rt_copy_3d_peer *from = (const void *)arg(frame, self, DST);

	if (!from)
		return false;
	rt_copy_3d(frame, &from->dst, &from->src, &from->extent, copy, ask);
	copy->dst.device = device_number(from->dst_device);
	copy->src.device = device_number(from->src_device);
	return true;
}

COPY_INSPECTORS(copy_rt_3d_peer)

/* ---- batches -------------------------------------------------------------------------------- */

/* The kind of several: pageable if any is, else unknown if any is, else mixed if they differ. */
static uint8_t joint_kind(uint8_t kind, uint8_t other)
{
	if (kind == SPY_MEM_PAGEABLE || other == SPY_MEM_PAGEABLE)
		return SPY_MEM_PAGEABLE;
	if (kind == SPY_MEM_UNKNOWN || other == SPY_MEM_UNKNOWN)
		return SPY_MEM_UNKNOWN;
	return kind == other ? kind : SPY_MEM_MIXED;
}

static void join(struct spy_details *details, struct spy_frame *frame, const struct copy *copy,
		 bool first, bool ask)
{
	uint8_t src = kind_of(frame, &copy->src, ask && copy->bytes);
	uint8_t dst = kind_of(frame, &copy->dst, ask && copy->bytes);
	uint8_t direction = direction_of(side_of(&copy->dst, dst), side_of(&copy->src, src));

	if (first) {
		details->src_kind = src;
		details->dst_kind = dst;
		details->direction = direction;
		details->bytes = copy->bytes;
		return;
	}
	details->src_kind = joint_kind(details->src_kind, src);
	details->dst_kind = joint_kind(details->dst_kind, dst);
	details->bytes += copy->bytes;
	if (details->direction != direction)
		details->direction = SPY_DIR_UNKNOWN;
}

/* False: the arrays are not there, which the real function refuses. */
typedef bool read_batch(struct spy_frame *frame, const struct spy_inspector *self, uint64_t i,
			struct copy *copy, bool ask);

/* libcudart.so.12 has one argument more before the stream than 13 has. */
static uint64_t batch_stream(struct spy_frame *frame, const struct spy_inspector *self)
{
	unsigned int place = STREAM;

	if (frame->slot->layer == SPY_LAYER_RT12 && self->at[BATCH_STREAM_12] != SPY_NO_ARG)
		place = BATCH_STREAM_12;
	return stream_arg(frame, self, place);
}

static void inspect_batch(struct spy_frame *frame, const struct spy_inspector *self,
			  read_batch *read, bool ask)
{
	struct spy_details *details = &frame->details;
	uint64_t count = arg(frame, self, BATCH_COUNT);

	if (!ask)
		set_event(frame, SPY_EV_COPY);
	details->stream = batch_stream(frame, self);
	details->captured = capturing(frame, details->stream);
	details->form = SPY_FORM_BATCH;
	details->src_device = details->dst_device = SPY_DEVICE_NONE;
	details->direction = SPY_DIR_UNKNOWN;
	details->src_kind = details->dst_kind = SPY_MEM_UNKNOWN;
	details->access = 0;
	details->bytes = 0;
	for (uint64_t i = 0; i < count; i++) {
		struct copy copy = {.dst.device = SPY_DEVICE_NONE, .src.device = SPY_DEVICE_NONE};

		if (!read(frame, self, i, &copy, ask))
			break;
		join(details, frame, &copy, !i, ask);
	}
	mark_pageable(details, true);
}

static void ask_batch(struct spy_frame *frame, const struct spy_inspector *self, read_batch *read)
{
	const struct spy_details *details = &frame->details;

	if (succeeded(frame) && details->event == SPY_EV_COPY &&
	    (!details->direction || !details->src_kind || !details->dst_kind))
		inspect_batch(frame, self, read, true);
}

static bool read_batch_1d(struct spy_frame *frame, const struct spy_inspector *self, uint64_t i,
			  struct copy *copy, bool ask)
{
	const uint64_t *dsts = (const uint64_t *)arg(frame, self, BATCH_DSTS);
	const uint64_t *srcs = (const uint64_t *)arg(frame, self, BATCH_SRCS);
	const uint64_t *sizes = (const uint64_t *)arg(frame, self, BATCH_SIZES);

	(void)ask;
	if (!dsts || !srcs || !sizes)
		return false;
	copy->dst.address = dsts[i];
	copy->src.address = srcs[i];
	copy->bytes = copy->dst.span = copy->src.span = sizes[i];
	return true;
}

static struct end operand(const struct layout_operand_3d *from, const struct layout_extent *extent,
			  uint64_t element)
{
	struct end end = {.address = from->object, .device = SPY_DEVICE_NONE};
	uint64_t pitch = from->row_length ? from->row_length * element : extent->width;
	uint64_t rows = from->layer_height ? from->layer_height : extent->height;

	if (from->type == LAYOUT_OPERAND_ARRAY)
		end.side = SPY_SIDE_ARRAY;
	else
		place_3d(&end, (uint64_t[]){0, 0, 0}, pitch, rows, extent);
	return end;
}

static bool read_batch_3d(struct spy_frame *frame, const struct spy_inspector *self, uint64_t i,
			  struct copy *copy, bool ask)
{
	const struct layout_batch_op_3d *op = (const void *)arg(frame, self, DST);
	struct layout_extent extent;
	uint64_t element;

	if (!op)
		return false;
	op += i;
	extent = op->extent;
	element = element_of(frame, op->src.type == LAYOUT_OPERAND_ARRAY ? op->src.object : 0,
			     op->dst.type == LAYOUT_OPERAND_ARRAY ? op->dst.object : 0, ask);
	extent.width *= element;
	copy->dst = operand(&op->dst, &extent, element);
	copy->src = operand(&op->src, &extent, element);
	copy->bytes = extent.width * extent.height * extent.depth;
	return true;
}

#define BATCH_INSPECTORS(form, read) \
	void inspect_##form(struct spy_frame *frame, const struct spy_inspector *self) \
	{ \
		inspect_batch(frame, self, read, false); \
	} \
	void inspect_##form##_ask(struct spy_frame *frame, const struct spy_inspector *self) \
	{ \
		ask_batch(frame, self, read); \
	}

BATCH_INSPECTORS(copy_batch, read_batch_1d)
BATCH_INSPECTORS(copy_batch_3d, read_batch_3d)
