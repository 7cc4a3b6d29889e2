/*
 * shim/inspect/inspect_memory.c: allocations, frees, registrations, memset, prefetch, mappings.
 * Runs on the application's threads, around those calls, and keeps memory.c up to date.
 *
 * A range is added after the call that made it, when no other thread can have its address yet. It
 * is removed before the call that frees it: afterwards another thread may already have been given
 * the same address. A free that fails puts its range back. Stream-ordered memory is not put into
 * the map at all: it is always the device's, and the calls are cheap (0.6 us). A copy without a
 * direction asks the driver once, as does a large one between memory of several GPUs.
 */
#include "cudaspy/function_numbers.h"
#include "hook/resolve.h"
#include "inspect/cuda_layout.h"
#include "inspect/inspect_common.h"
#include "inspect/memory.h"

/* Places of the rows, group by group. */
enum { OUT = 0, BYTES = 1, STREAM = 2, HEIGHT = 3, PITCH_OUT = 4 };
enum { ADDRESS = 0, FLAGS = 3 };
enum { SET_COUNT = 2, SET_HEIGHT = 3, SET_STREAM = 5 };
enum { FETCH_COUNT = 2, FETCH_STREAM = 5, FETCH_STREAM_12 = 6 };
enum { DESCRIPTOR = 1, EXTENT = 2 };
enum { PROPERTIES = 2, HANDLE = 2 };
enum { OPENED_BYTES = 3, TO_WHOM = 4, HOW_MANY = 5 };
enum { MADE = 3, POOL_WHERE = 4 };

static void describe_memory(struct spy_frame *frame, enum spy_memory_op op, uint8_t kind)
{
	struct spy_details *details = &frame->details;

	set_event(frame, SPY_EV_MEMORY);
	details->op = (uint8_t)op;
	details->dst_kind = kind;
	details->stream = details->address = details->bytes = 0;
	details->access = kind == SPY_MEM_DEVICE ? SPY_ACCESS_PEER : SPY_ACCESS_UNKNOWN;
}

/* The range that details speak of, made now by this thread. */
static struct spy_memory made(const struct spy_frame *frame)
{
	const struct spy_details *details = &frame->details;

	return (struct spy_memory){
		.lo = details->address,
		.hi = details->address ? details->address + details->bytes : 0,
		.kind = details->dst_kind,
		.device = spy_thread_device(frame->thread),
		.context = frame->thread->context,
		.access = details->access,
	};
}

static void add_made(const struct spy_frame *frame)
{
	struct spy_memory range = made(frame);

	spy_memory_add(&range);
}

/* ---- allocations ---------------------------------------------------------------------------- */

void inspect_alloc(struct spy_frame *frame, const struct spy_inspector *self)
{
	struct spy_details *details = &frame->details;

	describe_memory(frame, SPY_MEMOP_ALLOC, self->a);
	details->bytes = size_arg(frame, self, BYTES);
	if (self->b & SPY_POOL) {
		details->pool = true;
		details->stream = stream_arg(frame, self, STREAM);
		details->captured = capturing(frame, details->stream);
	}
}

/* cuMemAllocHost of the first ABI: a size of 32 bits, but a pointer of 64. */
void inspect_alloc_host_v1(struct spy_frame *frame, const struct spy_inspector *self)
{
	inspect_alloc(frame, self);
	frame->details.bytes = (uint32_t)frame->details.bytes;
}

void inspect_alloc_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	struct spy_details *details = &frame->details;

	details->address = output(frame, self, OUT);
	if (self->at[HEIGHT] != SPY_NO_ARG) /* rows of the pitch that the driver chose */
		details->bytes = output(frame, self, PITCH_OUT) * size_arg(frame, self, HEIGHT);
	if (!(self->b & SPY_POOL))
		add_made(frame);
}

void inspect_alloc_3d(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_extent *extent = (const void *)&frame->stack[self->at[BYTES] - 6];

	describe_memory(frame, SPY_MEMOP_ALLOC, self->a);
	frame->details.bytes = extent->width * extent->height * extent->depth;
}

void inspect_alloc_3d_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_extent *extent = (const void *)&frame->stack[self->at[BYTES] - 6];
	const struct layout_pitched *out = (const void *)arg(frame, self, OUT);

	if (!succeeded(frame) || !out)
		return;
	frame->details.address = out->address;
	frame->details.bytes = out->pitch * extent->height * extent->depth;
	add_made(frame);
}

/* ---- arrays --------------------------------------------------------------------------------- */

static struct spy_handle_map arrays; /* handle -> bytes of an element | KNOWN */
static struct spy_handle_map pools; /* handle -> KNOWN | device */
static struct spy_handle_map allocations; /* handle of cuMemCreate -> KNOWN | kind | device << 8 */

#define KNOWN (1ull << 32)

void spy_arrays_reset(void)
{
	spy_handle_reset(&arrays);
	spy_handle_reset(&allocations);
	spy_handle_reset(&pools);
}

void spy_arrays_locks(spy_visit_lock *visit)
{
	visit(&arrays.lock);
	visit(&allocations.lock);
	visit(&pools.lock);
}

static uint32_t element_of_format(uint32_t format, uint32_t channels)
{
	switch (format) {
	case LAYOUT_UINT8:
	case LAYOUT_SINT8:
		return channels;
	case LAYOUT_UINT16:
	case LAYOUT_SINT16:
	case LAYOUT_HALF:
		return 2 * channels;
	case LAYOUT_UINT32:
	case LAYOUT_SINT32:
	case LAYOUT_FLOAT:
		return 4 * channels;
	default:
		return 0; /* planar, packed or block-compressed: no size per element */
	}
}

/* A runtime's cudaArray_t is a driver's CUarray (the runtime's reference, "Interactions with the
 * CUDA Driver API"). */
static uint32_t ask_element(struct spy_frame *frame, uint64_t array)
{
	int (*get)(struct layout_array_3d * descriptor, uint64_t handle) =
		(int (*)(struct layout_array_3d *, uint64_t))spy_resolve_driver(
			SPY_FN_cuArray3DGetDescriptor_v2);
	struct layout_array_3d descriptor = {0};
	uint64_t begun = spy_overhead_begin();
	uint32_t element = 0;

	if (get && !get(&descriptor, array))
		element = element_of_format(descriptor.format, descriptor.channels);
	spy_handle_set(&arrays, array, KNOWN | element);
	spy_overhead_end(frame->thread, begun);
	return element;
}

uint32_t spy_array_element(struct spy_frame *frame, uint64_t array, bool ask)
{
	uint64_t known = spy_handle_get(&arrays, array);

	if (known)
		return (uint32_t)known;
	return ask && array ? ask_element(frame, array) : 0;
}

void inspect_array(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)self;
	describe_memory(frame, SPY_MEMOP_ALLOC, SPY_MEM_ARRAY);
}

/* Extents of 0 stand for dimensions that the array does not have. */
static void array_made(struct spy_frame *frame, uint64_t array, uint32_t element,
		       const struct layout_extent *extent)
{
	if (!array)
		return;
	spy_handle_set(&arrays, array, KNOWN | element);
	frame->details.address = array;
	frame->details.bytes = element * extent->width * (extent->height ? extent->height : 1) *
			       (extent->depth ? extent->depth : 1);
}

static uint32_t element_of_channels(const struct layout_channel *channel)
{
	if (!channel || (channel->format >= LAYOUT_CHANNEL_BC_FIRST &&
			 channel->format <= LAYOUT_CHANNEL_BC_LAST))
		return 0;
	if (channel->format == LAYOUT_CHANNEL_1010102)
		return 4;
	return (uint32_t)(channel->x + channel->y + channel->z + channel->w) / 8;
}

void inspect_array_rt_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_extent extent = {.width = arg(frame, self, EXTENT),
					     .height = arg(frame, self, EXTENT + 1)};

	array_made(frame, output(frame, self, OUT),
		   element_of_channels((const void *)arg(frame, self, DESCRIPTOR)), &extent);
}

void inspect_array_rt_3d_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	array_made(frame, output(frame, self, OUT),
		   element_of_channels((const void *)arg(frame, self, DESCRIPTOR)),
		   (const void *)&frame->stack[self->at[EXTENT] - 6]);
}

/* Handles have 64 bits in the first ABI, too: read the output here, not by output(). */
static uint64_t array_output(const struct spy_frame *frame, const struct spy_inspector *self)
{
	const uint64_t *out = (const uint64_t *)arg(frame, self, OUT);

	return succeeded(frame) && out ? *out : 0;
}

void inspect_array_cu_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_array *from = (const void *)arg(frame, self, DESCRIPTOR);
	const struct layout_array_v1 *old = (const void *)from;
	struct layout_extent extent = {0};
	uint32_t element;

	if (!from)
		return;
	if (self->b & SPY_NARROW) {
		extent = (struct layout_extent){.width = old->width, .height = old->height};
		element = element_of_format(old->format, old->channels);
	} else {
		extent = (struct layout_extent){.width = from->width, .height = from->height};
		element = element_of_format(from->format, from->channels);
	}
	array_made(frame, array_output(frame, self), element, &extent);
}

void inspect_array_cu_3d_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_array_3d *from = (const void *)arg(frame, self, DESCRIPTOR);
	const struct layout_array_3d_v1 *old = (const void *)from;
	struct layout_extent extent;
	uint32_t element;

	if (!from)
		return;
	if (self->b & SPY_NARROW) {
		extent = (struct layout_extent){old->width, old->height, old->depth};
		element = element_of_format(old->format, old->channels);
	} else {
		extent = (struct layout_extent){from->width, from->height, from->depth};
		element = element_of_format(from->format, from->channels);
	}
	array_made(frame, array_output(frame, self), element, &extent);
}

/* A level of a mipmapped array has its elements. */
void inspect_array_level_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t array = output(frame, self, OUT);

	if (array)
		spy_handle_set(&arrays, array, spy_handle_get(&arrays, arg(frame, self, 1)));
}

void inspect_array_free(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t array = arg(frame, self, ADDRESS);

	describe_memory(frame, SPY_MEMOP_FREE, SPY_MEM_ARRAY);
	frame->details.address = array;
	frame->details.object = spy_handle_get(&arrays, array); /* should the free fail */
	spy_handle_set(&arrays, array, 0);
}

void inspect_array_free_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (!succeeded(frame))
		spy_handle_set(&arrays, arg(frame, self, ADDRESS), frame->details.object);
}

/* ---- frees and registrations ---------------------------------------------------------------- */

static void describe_unmade(struct spy_frame *frame, const struct spy_inspector *self,
			    uint64_t address, const struct spy_memory *was)
{
	struct spy_details *details = &frame->details;

	describe_memory(frame, self->a, was->kind);
	details->address = address;
	details->bytes = was->hi - was->lo;
	details->src_device = was->device; /* should the call fail: unmake_done */
	details->object = was->context;
	details->access = was->access;
}

/* Is it the driver's call inside the runtime's, about the same memory? */
static bool unmade_already(const struct spy_frame *frame, uint64_t address)
{
	return frame->kind != SPY_FRAME_PASS && frame->depth &&
	       frame->thread->inspect.unmaking == address;
}

void inspect_unmake(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t address = size_arg(frame, self, ADDRESS);
	struct spy_memory was = {.kind = SPY_MEM_UNKNOWN};

	if (address && !unmade_already(frame, address))
		spy_memory_remove(address, &was);
	frame->thread->inspect.unmaking = address;
	describe_unmade(frame, self, address, &was);
}

/* cudaFreeAsync takes what cudaMalloc gave, too. Pool memory is not in the map, and stays out of
 * its lock. */
void inspect_unmake_async(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t address = arg(frame, self, ADDRESS);
	struct spy_memory was = {.kind = SPY_MEM_DEVICE};
	bool known = spy_memory_find(address, &was) && spy_memory_remove(address, &was);

	if (!known)
		was = (struct spy_memory){.kind = SPY_MEM_DEVICE};
	describe_unmade(frame, self, address, &was);
	frame->details.pool = !known;
	frame->details.stream = stream_arg(frame, self, STREAM);
	frame->details.captured = capturing(frame, frame->details.stream);
}

void inspect_unmake_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct spy_details *details = &frame->details;
	struct spy_memory was = {
		.lo = details->address,
		.hi = details->address + details->bytes,
		.kind = details->dst_kind,
		.device = details->src_device,
		.context = (uint16_t)details->object,
		.access = details->access,
	};

	(void)self;
	frame->thread->inspect.unmaking = 0;
	if (!succeeded(frame))
		spy_memory_add(&was);
}

void inspect_host_register(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_memory(frame, SPY_MEMOP_REGISTER, SPY_MEM_PINNED);
	frame->details.address = arg(frame, self, ADDRESS);
	frame->details.bytes = arg(frame, self, BYTES);
	frame->details.flags = (uint16_t)arg(frame, self, FLAGS);
}

void inspect_host_register_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)self;
	if (succeeded(frame))
		add_made(frame);
}

/* ---- virtual memory management -------------------------------------------------------------- */

void inspect_vmm_reserve(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_memory(frame, SPY_MEMOP_RESERVE, SPY_MEM_UNKNOWN);
	frame->details.bytes = arg(frame, self, BYTES);
}

void inspect_vmm_reserve_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	frame->details.address = output(frame, self, OUT);
}

void inspect_vmm_address_free(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_memory(frame, SPY_MEMOP_FREE, SPY_MEM_UNKNOWN);
	frame->details.address = arg(frame, self, ADDRESS);
	frame->details.bytes = arg(frame, self, BYTES);
}

/* What a handle stands for. Where the memory of one that was made unseen is (of another process,
 * of several GPUs) is unknown. */
static void describe_allocation(struct spy_frame *frame, enum spy_memory_op op, uint64_t known)
{
	describe_memory(frame, op, known ? (uint8_t)known : SPY_MEM_DEVICE);
	frame->details.src_device = known ? (uint8_t)(known >> 8) : SPY_DEVICE_NONE;
}

/* It lies where the properties say, whatever device is current (cuMemCreate's page). */
void inspect_vmm_create(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_allocation *from = (const void *)arg(frame, self, PROPERTIES);
	uint64_t known = KNOWN | SPY_MEM_DEVICE | SPY_DEVICE_NONE << 8;

	if (from && from->location_type >= LAYOUT_LOCATION_HOST)
		known = KNOWN | SPY_MEM_PINNED | SPY_DEVICE_NONE << 8;
	else if (from && from->location_id < SPY_DEVICE_NONE)
		known = KNOWN | SPY_MEM_DEVICE | from->location_id << 8;
	describe_allocation(frame, SPY_MEMOP_ALLOC, known);
	frame->details.bytes = arg(frame, self, BYTES);
}

void inspect_vmm_create_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t handle = output(frame, self, OUT);

	frame->details.address = handle;
	if (handle)
		spy_handle_set(&allocations, handle,
			       KNOWN | frame->details.dst_kind |
				       (uint64_t)frame->details.src_device << 8);
}

/* Memory of another process, or of several GPUs: the handle may have been another's before. */
void inspect_vmm_foreign(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t handle = output(frame, self, MADE);

	frame->details.object = handle;
	if (spy_handle_get(&allocations, handle))
		spy_handle_set(&allocations, handle, 0);
}

/* The memory exists while it is mapped, and the handle may be mapped again until then: only a
 * new allocation of the same handle changes its entry. */
void inspect_vmm_release(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t handle = arg(frame, self, ADDRESS);

	describe_allocation(frame, SPY_MEMOP_FREE, spy_handle_get(&allocations, handle));
	frame->details.address = handle;
}

void inspect_vmm_map(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_allocation(frame, SPY_MEMOP_MAP,
			    spy_handle_get(&allocations, arg(frame, self, HANDLE)));
	frame->details.address = arg(frame, self, ADDRESS);
	frame->details.bytes = arg(frame, self, BYTES);
	if (frame->details.access)
		frame->details.access = SPY_ACCESS_MAPPED;
}

/* It goes away with no context (cuCtxDestroy's page). */
void inspect_vmm_map_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	struct spy_memory range = made(frame);

	(void)self;
	range.device = frame->details.src_device;
	range.context = SPY_CONTEXT_NONE;
	if (succeeded(frame))
		spy_memory_add(&range);
}

void inspect_vmm_unmap(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t address = arg(frame, self, ADDRESS), bytes = arg(frame, self, BYTES);
	struct spy_memory was = {.kind = SPY_MEM_DEVICE};

	spy_memory_find(address, &was);
	describe_memory(frame, SPY_MEMOP_UNMAP, was.kind ? was.kind : SPY_MEM_DEVICE);
	frame->details.address = address;
	frame->details.bytes = bytes;
	spy_memory_remove_span(address, address + bytes);
}

/* A bit for each GPU that was given access. What was taken away is not tracked. */
static uint64_t given_to(const struct layout_access *to, uint64_t count)
{
	uint64_t given = SPY_ACCESS_GIVEN;

	for (uint64_t i = 0; to && i < count; i++)
		if (to[i].location_type == LAYOUT_LOCATION_DEVICE && to[i].flags &&
		    to[i].location_id < SPY_ACCESS_GPUS)
			given |= (uint64_t)1 << to[i].location_id;
	return given;
}

#define PIECES_MOST 1024

/* The GPU that a span of memory lies on with all its pieces; spans of more than PIECES_MOST are
 * not looked at. */
static uint8_t device_of_span(uint64_t address, uint64_t bytes)
{
	struct spy_memory piece = {.hi = address};
	uint8_t device = SPY_DEVICE_NONE;

	for (int i = 0; i < PIECES_MOST; i++) {
		spy_memory_find(piece.hi, &piece);
		if (piece.device == SPY_DEVICE_NONE || (i && piece.device != device))
			break;
		device = piece.device;
		if (piece.hi - address >= bytes)
			return device;
	}
	return SPY_DEVICE_NONE;
}

void inspect_vmm_access_given(struct spy_frame *frame, const struct spy_inspector *self)
{
	if (!succeeded(frame))
		return;
	frame->details.flags =
		device_of_span(frame->details.object, arg(frame, self, OPENED_BYTES));
	frame->details.object =
		given_to((const void *)arg(frame, self, TO_WHOM), arg(frame, self, HOW_MANY));
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* Getters may be called often: what is known already is not set again. */
static void know_pool(uint64_t pool, uint32_t device)
{
	uint64_t value = KNOWN | (device < SPY_DEVICE_NONE ? device : SPY_DEVICE_NONE);

	if (pool && spy_handle_get(&pools, pool) != value)
		spy_handle_set(&pools, pool, value);
}

/* Of another process's there are no properties. */
void inspect_pool_created(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_allocation *from = (const void *)arg(frame, self, POOL_WHERE);
	uint64_t pool = output(frame, self, MADE);

	frame->details.object = pool;
	know_pool(pool, from && from->location_type == LAYOUT_LOCATION_DEVICE ? from->location_id
									      : SPY_DEVICE_NONE);
}

void inspect_pool_found(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t where = arg(frame, self, POOL_WHERE), pool = output(frame, self, MADE);
	const struct layout_access *location = (const void *)where;

	if (!self->a)
		know_pool(pool, (uint32_t)where);
	else if (pool && location && location->location_type == LAYOUT_LOCATION_DEVICE)
		know_pool(pool, location->location_id);
}

void inspect_pool_access_given(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t known = spy_handle_get(&pools, frame->details.object);

	if (!succeeded(frame))
		return;
	frame->details.flags = known ? (uint8_t)known : SPY_DEVICE_NONE;
	frame->details.object =
		given_to((const void *)arg(frame, self, TO_WHOM), arg(frame, self, HOW_MANY));
}

/* ---- memory from elsewhere: other processes, graphics, managed variables -------------------- */

void inspect_map_in(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_memory(frame, SPY_MEMOP_MAP, self->a);
	frame->details.access = SPY_ACCESS_UNKNOWN;
}

/* Its size is an output, in the description of a buffer, or nowhere among the arguments. */
void inspect_map_in_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_mapped_buffer *buffer = (const void *)arg(frame, self, DESCRIPTOR + 1);

	frame->details.address = output(frame, self, OUT);
	if (!frame->details.address)
		return;
	if (buffer)
		frame->details.bytes = buffer->size;
	else
		frame->details.bytes = output(frame, self, BYTES);
	add_made(frame);
}

/* ---- memset and prefetch -------------------------------------------------------------------- */

static uint8_t target_kind(struct spy_frame *frame, uint64_t address, uint64_t bytes,
			   enum spy_memory_kind otherwise)
{
	enum spy_memory_kind kind = spy_memory_kind(&frame->thread->inspect, address, bytes);

	return (uint8_t)(kind == SPY_MEM_UNKNOWN ? otherwise : kind);
}

static void describe_memset(struct spy_frame *frame, const struct spy_inspector *self,
			    uint64_t address, uint64_t bytes)
{
	struct spy_details *details = &frame->details;

	describe_memory(frame, SPY_MEMOP_SET, target_kind(frame, address, bytes, SPY_MEM_DEVICE));
	details->address = address;
	details->bytes = bytes;
	details->stream = stream_arg(frame, self, SET_STREAM);
	details->captured = self->at[SET_STREAM] != SPY_NO_ARG && capturing(frame, details->stream);
}

void inspect_memset(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t bytes = size_arg(frame, self, SET_COUNT) * self->a;

	if (self->at[SET_HEIGHT] != SPY_NO_ARG)
		bytes *= size_arg(frame, self, SET_HEIGHT);
	describe_memset(frame, self, size_arg(frame, self, ADDRESS), bytes);
}

void inspect_memset_3d(struct spy_frame *frame, const struct spy_inspector *self)
{
	const struct layout_pitched *to = (const void *)&frame->stack[self->at[ADDRESS] - 6];
	const struct layout_extent *extent = (const void *)&frame->stack[self->at[SET_COUNT] - 6];

	describe_memset(frame, self, to->address, extent->width * extent->height * extent->depth);
}

static void describe_prefetch(struct spy_frame *frame, const struct spy_inspector *self,
			      uint64_t address, uint64_t bytes)
{
	struct spy_details *details = &frame->details;
	bool old = self->at[FETCH_STREAM_12] != SPY_NO_ARG &&
		   frame->slot->layer != SPY_LAYER_RT13; /* no flags before the stream */

	describe_memory(frame, SPY_MEMOP_PREFETCH, target_kind(frame, address, 1, SPY_MEM_MANAGED));
	details->address = address;
	details->bytes = bytes;
	details->stream = stream_arg(frame, self, old ? FETCH_STREAM_12 : FETCH_STREAM);
	details->captured = capturing(frame, details->stream);
}

void inspect_prefetch(struct spy_frame *frame, const struct spy_inspector *self)
{
	describe_prefetch(frame, self, arg(frame, self, ADDRESS), arg(frame, self, BYTES));
}

void inspect_prefetch_batch(struct spy_frame *frame, const struct spy_inspector *self)
{
	const uint64_t *addresses = (const uint64_t *)arg(frame, self, ADDRESS);
	const uint64_t *sizes = (const uint64_t *)arg(frame, self, BYTES);
	uint64_t count = arg(frame, self, FETCH_COUNT), bytes = 0;

	for (uint64_t i = 0; sizes && i < count; i++)
		bytes += sizes[i];
	describe_prefetch(frame, self, addresses && count ? addresses[0] : 0, bytes);
}
