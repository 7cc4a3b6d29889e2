/*
 * shim/inspect/inspect_context.c: the current device and context of a thread, shadowed, so that no
 * record has to ask for them. Runs on the application's threads, around the calls that change them.
 *
 * There is no stack of contexts here. Where a call uncovers a context that it does not name (pop,
 * destroy), the driver is asked, which takes 8 ns, and such calls are rare. A context whose making
 * was not seen is asked for its device once, when it is current. The runtime's threads begin on
 * device 0; once the runtime works, its own driver calls are seen here and name the context.
 */
#include "cudaspy/function_numbers.h"
#include "describe/describe.h"
#include "gpu/gpu.h"
#include "hook/resolve.h"
#include "inspect/inspect_common.h"
#include "inspect/memory.h"

/* Places of the rows. */
enum { OBJECT = 1, OUT = 3, DEVICE = 4 };
enum { SET_DEVICE = 0 };

#define DEVICES 256

static struct spy_handle_map contexts; /* handle -> KNOWN | device << 16 | number */
static uint32_t last_number;
static uint64_t primary[DEVICES]; /* as in contexts; 0 unknown */
static uint32_t retained[DEVICES]; /* times each primary context was, that we saw */

#define KNOWN (1ull << 32)

static uint16_t number_of(uint64_t known)
{
	return (uint16_t)known;
}

static uint8_t device_of(uint64_t known)
{
	return known ? (uint8_t)(known >> 16) : SPY_DEVICE_NONE;
}

static uint8_t device_arg(uint64_t device)
{
	return (uint32_t)device < SPY_DEVICE_NONE ? (uint8_t)device : SPY_DEVICE_NONE;
}

void spy_contexts_reset(void)
{
	spy_handle_reset(&contexts);
	for (int i = 0; i < DEVICES; i++)
		primary[i] = retained[i] = 0;
	last_number = 0;
}

void spy_contexts_locks(spy_visit_lock *visit)
{
	visit(&contexts.lock);
}

uint8_t spy_context_device(uint64_t context)
{
	return device_of(spy_handle_get(&contexts, context));
}

/* Keeps a context; its number stays as long as its device does. Numbers above 65534: 0, unknown. */
static uint64_t know(uint64_t context, uint8_t device)
{
	uint64_t known = spy_handle_get(&contexts, context);
	uint32_t number;

	if (known && (device_of(known) == device || device == SPY_DEVICE_NONE))
		return known;
	number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	return spy_handle_replace(&contexts, context, known,
				  KNOWN | (uint64_t)device << 16 |
					  (number < SPY_CONTEXT_NONE ? number : 0));
}

/* Device of the thread's current context, from the driver. */
static uint8_t ask_device(void)
{
	int (*get)(int *device) = (int (*)(int *))spy_resolve_driver(SPY_FN_cuCtxGetDevice);
	int device;

	return get && !get(&device) ? device_arg((uint64_t)device) : SPY_DEVICE_NONE;
}

/* A context is current now in this thread; 0: none. */
static void bound(struct spy_frame *frame, uint64_t context)
{
	uint64_t known = spy_handle_get(&contexts, context), begun;

	if (context && !known) {
		begun = spy_overhead_begin();
		known = know(context, ask_device());
		spy_overhead_end(frame->thread, begun);
	}
	spy_thread_set_device(frame->thread, device_of(known), number_of(known));
}

/* Whatever is current now. */
static void look_again(struct spy_frame *frame)
{
	int (*get)(uint64_t * context) =
		(int (*)(uint64_t *))spy_resolve_driver(SPY_FN_cuCtxGetCurrent);
	uint64_t context = 0;

	if (get && !get(&context))
		bound(frame, context);
	else
		spy_thread_set_device(frame->thread, SPY_DEVICE_NONE, 0);
}

/* ---- the driver's contexts ------------------------------------------------------------------ */

void inspect_ctx_created(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t context = output(frame, self, OUT);
	uint64_t known;

	if (!context)
		return;
	frame->details.object = context;
	spy_handle_set(&contexts, context, 0); /* the handle may have been another's */
	known = know(context, device_arg(arg(frame, self, DEVICE)));
	spy_thread_set_device(frame->thread, device_of(known), number_of(known));
}

void inspect_ctx_destroyed(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t context = arg(frame, self, OBJECT);
	uint64_t known = spy_handle_get(&contexts, context);

	if (!succeeded(frame))
		return;
	frame->details.flags = number_of(known); /* the record has the one that is current now */
	if (number_of(known))
		spy_memory_remove_context(SPY_DEVICE_NONE, number_of(known));
	spy_handle_set(&contexts, context, 0);
	look_again(frame);
}

void inspect_ctx_bound(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t context = arg(frame, self, OBJECT);

	if (!succeeded(frame))
		return;
	if (context)
		bound(frame, context);
	else
		look_again(frame); /* cuCtxSetCurrent(NULL) pops */
}

void inspect_ctx_popped(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t context = output(frame, self, OUT);

	if (context)
		frame->details.object = context;
	if (succeeded(frame))
		look_again(frame);
}

/* ---- primary contexts, the runtime's -------------------------------------------------------- */

void inspect_primary_retained(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t context = output(frame, self, OUT);
	uint8_t device = device_arg(arg(frame, self, DEVICE));

	if (!context || device == SPY_DEVICE_NONE)
		return;
	frame->details.object = context;
	__atomic_store_n(&primary[device], know(context, device), __ATOMIC_RELAXED);
	__atomic_fetch_add(&retained[device], 1, __ATOMIC_RELAXED);
}

/* All memory of a device's primary context goes now. This runs before the call, because the
 * context's number stays and new memory may belong to it right after. */
static void forget_primary(uint8_t device)
{
	uint64_t known = __atomic_load_n(&primary[device], __ATOMIC_RELAXED);

	spy_memory_remove_context(device, number_of(known));
}

static void describe_device(struct spy_frame *frame, uint64_t device)
{
	set_event(frame, SPY_EV_OP);
	frame->details.stream = 0;
	frame->details.object = device;
}

void inspect_primary_release(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint8_t device = device_arg(arg(frame, self, SET_DEVICE));

	describe_device(frame, device);
	if (device != SPY_DEVICE_NONE && retained[device] &&
	    !__atomic_sub_fetch(&retained[device], 1, __ATOMIC_RELAXED))
		forget_primary(device);
}

void inspect_device_reset(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint8_t device = spy_thread_device(frame->thread);

	if (self->a)
		device = device_arg(arg(frame, self, SET_DEVICE));
	describe_device(frame, device);
	if (device != SPY_DEVICE_NONE)
		forget_primary(device);
}

/* The record's context may reach, or not any more, the memory of its object, a device; of a
 * driver's call that of one context there. */
void inspect_peer_access(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint64_t peer = arg(frame, self, SET_DEVICE), known;

	if (!self->a) {
		describe_device(frame, device_arg(peer));
		return;
	}
	known = spy_handle_get(&contexts, peer);
	describe_device(frame, device_of(known));
	frame->details.flags = number_of(known);
}

/* Since 12.0 the call itself makes the primary context current, and those driver calls were seen;
 * before, it only says which one will be. */
void inspect_rt_set_device_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	uint8_t device = device_arg(arg(frame, self, SET_DEVICE));
	uint64_t known;

	if (!succeeded(frame) || device == SPY_DEVICE_NONE ||
	    (spy_thread_device(frame->thread) == device && frame->thread->context))
		return;
	known = __atomic_load_n(&primary[device], __ATOMIC_RELAXED);
	spy_thread_set_device(frame->thread, device, number_of(known));
}

void inspect_cu_init(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)frame;
	(void)self;
	spy_mps_driver_begins();
}

void inspect_cu_init_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)self;
	if (!succeeded(frame))
		return;
	spy_gpus_driver_ready();
	spy_gpu_begin();
}
