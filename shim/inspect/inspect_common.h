/*
 * shim/inspect/inspect_common.h: what the inspect_*.c files share: reading arguments, and the
 * tables that one of them keeps and others read. Used inside the application's calls.
 */
#ifndef CUDASPY_SHIM_INSPECT_COMMON_H
#define CUDASPY_SHIM_INSPECT_COMMON_H

#include "lib/handle_map.h"
#include "inspect/inspect.h"
#include "state/thread.h"

/* Constants of rows: column b. */
#define SPY_NARROW 0x80 /* the driver's first ABI: device addresses, sizes, outputs of 32 bits */
#define SPY_POOL 0x40 /* stream ordered, from a pool */

static inline bool succeeded(const struct spy_frame *frame)
{
	return !(uint32_t)frame->result;
}

static inline uint64_t arg(const struct spy_frame *frame, const struct spy_inspector *self,
			   unsigned int i)
{
	return self->at[i] == SPY_NO_ARG ? 0 : spy_word(frame, (unsigned int)self->at[i]);
}

/* A size or a device address: half a word in the driver's first ABI, where the rest is garbage. */
static inline uint64_t size_arg(const struct spy_frame *frame, const struct spy_inspector *self,
				unsigned int i)
{
	uint64_t value = arg(frame, self, i);

	return self->b & SPY_NARROW ? (uint32_t)value : value;
}

/* What an output of pointer size holds now; 0 if the call failed or the pointer is NULL. */
static inline uint64_t output(const struct spy_frame *frame, const struct spy_inspector *self,
			      unsigned int i)
{
	const void *at = (const void *)arg(frame, self, i);

	if (!succeeded(frame) || !at)
		return 0;
	return self->b & SPY_NARROW ? *(const uint32_t *)at : *(const uint64_t *)at;
}

/* Stream 0 is the legacy default stream or the thread's own, depending on the callee. */
static inline uint64_t stream_or_default(const struct spy_frame *frame, uint64_t stream)
{
	if (stream)
		return stream;
	return spy_fn_per_thread[frame->slot->fn] ? SPY_STREAM_PER_THREAD : SPY_STREAM_LEGACY;
}

static inline uint64_t stream_arg(const struct spy_frame *frame, const struct spy_inspector *self,
				  unsigned int i)
{
	return stream_or_default(frame, arg(frame, self, i));
}

/* The call gets a record of this shape. */
static inline void set_event(struct spy_frame *frame, enum spy_event event)
{
	frame->details.event = (uint8_t)event;
}

/* ---- inspect_stream.c ----------------------------------------------------------------------- */

/* How many streams and events take part in a capture; 0 nearly always. */
extern uint32_t spy_captures;

/* Does work handed to this stream now go into a graph instead? Lock-free. */
bool spy_stream_captured(const struct spy_thread *thread, uint64_t stream);

static inline bool capturing(const struct spy_frame *frame, uint64_t stream)
{
	return __atomic_load_n(&spy_captures, __ATOMIC_RELAXED) &&
	       spy_stream_captured(frame->thread, stream);
}

void spy_stream_reset(void);
void spy_stream_locks(spy_visit_lock *visit);

/* ---- inspect_memory.c ----------------------------------------------------------------------- */

/* Bytes of an element of an array; 0 unknown. ask: the driver, if we did not see it created. */
uint32_t spy_array_element(struct spy_frame *frame, uint64_t array, bool ask);

void spy_arrays_reset(void);
void spy_arrays_locks(spy_visit_lock *visit);

/* ---- inspect_context.c ---------------------------------------------------------------------- */

/* Device of a context's handle, SPY_DEVICE_NONE if we never saw it. */
uint8_t spy_context_device(uint64_t context);

void spy_contexts_reset(void);
void spy_contexts_locks(spy_visit_lock *visit);

/* ---- inspect_launch.c ----------------------------------------------------------------------- */

void spy_kernels_reset(void);
void spy_kernels_locks(spy_visit_lock *visit);

/* ---- inspect_copy.c: constants of rows, column a -------------------------------------------- */

/* What an end of a copy is by the name of the function. */
enum spy_side { SPY_SIDE_ANY, SPY_SIDE_HOST, SPY_SIDE_DEVICE, SPY_SIDE_ARRAY };

#define SPY_SIDES(dst, src) (SPY_SIDE_##dst | SPY_SIDE_##src << 2)

/* ---- the functions that inspectors.def names ------------------------------------------------ */

#define INSPECTOR(name, before, after, ...) \
	void inspect_##before(struct spy_frame *frame, const struct spy_inspector *self); \
	void inspect_##after(struct spy_frame *frame, const struct spy_inspector *self);
#include "inspect/inspectors.def"

#endif
